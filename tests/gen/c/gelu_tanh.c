__attribute__((visibility("default")))
void gelu_tanh(const u64 *p, const i64 *grid, i64 begin, i64 end, char *scratch)
{
    u16 *const x = (u16 *)p[0];
    u16 *const y = (u16 *)p[1];
    const i64 n = (i64)p[2];
    const i32 n0 = (i32)p[3];
    for (i64 prog = begin; prog < end; prog++) {
        const i64 pid0 = prog % grid[0];
        const i64 s1 = pid0 * 1024;
        /* store %vy[%i:1024], %o */
        {
            const i32 lo1 = kl_lo(s1, n, n0);
            const i32 hi1 = kl_hi(s1, n, n0);
            u16 *const y_p1 = y + s1;
            u16 *const x_p1 = x + s1;
            i32 from = 0, to = n0;
            from = lo1 > from ? lo1 : from;
            to = hi1 < to ? hi1 : to;
            to = to < from ? from : to;
            KL_SIMD
            for (i32 i = from; i < to; i++) {
                const f32 t1 = kl_cvt_f32_bf16(x_p1[i]);
                const f32 t2 = kl_abs_f32((0x1.988454p-1f * t1) * (1.0f + ((0x1.6e4e26p-5f * t1) * t1)));
                const f32 t3 = kl_exp_f32((-2.0f) * t2);
                const f32 t4 = (t1 >= 0.0f) ? t1 : (t1 * t3);
                const f32 t5 = (t1 == (-KL_INF32)) ? 0.0f : (t4 / (1.0f + t3));
                y_p1[i] = kl_cvt_bf16_f32(t5);
            }
            for (i32 part = 0; part < 2; part++) {
                const i32 end = part ? n0 : from;
                KL_EDGE
                for (i32 i = part ? to : 0; i < end; i++) {
                    const u16 x_1 = ((i >= lo1) & (i < hi1)) ? x_p1[i] : 0x0000;
                    const f32 t6 = kl_cvt_f32_bf16(x_1);
                    const f32 t7 = kl_abs_f32((0x1.988454p-1f * t6) * (1.0f + ((0x1.6e4e26p-5f * t6) * t6)));
                    const f32 t8 = kl_exp_f32((-2.0f) * t7);
                    const f32 t9 = (t6 >= 0.0f) ? t6 : (t6 * t8);
                    const f32 t10 = (t6 == (-KL_INF32)) ? 0.0f : (t9 / (1.0f + t8));
                    if ((i >= lo1) & (i < hi1))
                        y_p1[i] = kl_cvt_bf16_f32(t10);
                }
            }
        }
    }
}

