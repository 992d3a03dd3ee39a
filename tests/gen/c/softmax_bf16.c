__attribute__((visibility("default")))
void softmax_bf16(const u64 *p, const i64 *grid, i64 begin, i64 end, char *scratch)
{
    u16 *const x = (u16 *)p[0];
    u16 *const y = (u16 *)p[1];
    const i64 rows = (i64)p[2];
    const i64 cols = (i64)p[3];
    const i32 n0 = (i32)p[4];
    f32 *const tile0 = (f32 *)(scratch + p[5]);
    f32 *const tile1 = (f32 *)(scratch + p[6]);
    for (i64 prog = begin; prog < end; prog++) {
        const i64 pid0 = prog % grid[0];
        f32 s1;
        /* %m = reduce max %v axis 0 : f32[1] */
        {
            const i32 hi1 = kl_in(pid0, rows) ? kl_hi(0, cols, n0) : 0;
            u16 *const x_p1 = x + (pid0 * cols);
            f32 m1[64];
            for (i32 l = 0; l < 64; l++)
                m1[l] = -KL_INF32;
            i32 from = 0, to = n0;
            to = hi1 < to ? hi1 : to;
            i64 at = from;
            for (; at + 64 <= to; at += 64) {
                KL_SIMD
                for (i32 l = 0; l < 64; l++) {
                    const i32 i = (i32)at + l;
                    m1[l] = kl_max_f32(m1[l], kl_cvt_f32_bf16(x_p1[at + l]));
                }
            }
            const i64 rest = at;
            for (i32 part = 0; part < 2; part++) {
                const i64 end = part ? n0 : from;
                for (i64 at = (part ? rest : 0); at < end; at += 64) {
                    const i32 left = end - at < 64 ? (i32)(end - at) : 64;
                    KL_EDGE
                    for (i32 l = 0; l < left; l++) {
                        const i32 i = (i32)at + l;
                        const u16 x_1 = (i < hi1) ? x_p1[at + l] : 0xff80;
                        m1[l] = kl_max_f32(m1[l], kl_cvt_f32_bf16(x_1));
                    }
                }
            }
            KL_FOLD64(m1, kl_max_f32)
            s1 = m1[0];
        }
        /* %e = exp %d : f32[600] */
        {
            const i32 hi2 = kl_in(pid0, rows) ? kl_hi(0, cols, n0) : 0;
            u16 *const x_p2 = x + (pid0 * cols);
            i32 from = 0, to = n0;
            to = hi2 < to ? hi2 : to;
            KL_SIMD
            for (i32 i = from; i < to; i++) {
                tile0[i] = kl_exp_f32(kl_cvt_f32_bf16(x_p2[i]) - s1);
            }
            for (i32 part = 0; part < 2; part++) {
                const i32 end = part ? n0 : from;
                KL_EDGE
                for (i32 i = part ? to : 0; i < end; i++) {
                    const u16 x_2 = (i < hi2) ? x_p2[i] : 0xff80;
                    tile0[i] = kl_exp_f32(kl_cvt_f32_bf16(x_2) - s1);
                }
            }
        }
        const f32 s2 = kl_sum_f32(tile0, n0, tile1);
        /* store %vy[%r][%c0:600], %h */
        {
            const i32 hi3 = kl_in(pid0, rows) ? kl_hi(0, cols, n0) : 0;
            u16 *const y_p1 = y + (pid0 * cols);
            i32 from = 0, to = n0;
            to = hi3 < to ? hi3 : to;
            KL_SIMD
            for (i32 i = from; i < to; i++) {
                y_p1[i] = kl_cvt_bf16_f32(tile0[i] / s2);
            }
            for (i32 part = 0; part < 2; part++) {
                const i32 end = part ? n0 : from;
                KL_EDGE
                for (i32 i = part ? to : 0; i < end; i++) {
                    if (i < hi3)
                        y_p1[i] = kl_cvt_bf16_f32(tile0[i] / s2);
                }
            }
        }
    }
}

