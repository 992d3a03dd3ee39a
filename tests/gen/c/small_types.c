__attribute__((visibility("default")))
void small_types(const u64 *p, const i64 *grid, i64 begin, i64 end, char *scratch)
{
    f32 *const x = (f32 *)p[0];
    u8 *const a = (u8 *)p[1];
    i16 *const b = (i16 *)p[2];
    u64 *const y = (u64 *)p[3];
    const i64 n = (i64)p[4];
    const i8 k_ = (i8)p[5];
    const u64 u = (u64)p[6];
    for (i64 prog = begin; prog < end; prog++) {
        const f32 s1 = (f32)k_;
        /* store %va[%c0:64], %r */
        /* store %vy[%c0:64], %m */
        {
            const i32 hi1 = kl_hi(0, n, 64);
            i32 from = 0, to = 64;
            to = hi1 < to ? hi1 : to;
            if (from == 0 && to == 64) {
                KL_SIMD
                for (i32 i = 0; i < 64; i++) {
                    const f32 x_1 = x[i];
                    const f32 t1 = kl_cvt_f32_f8e4m3(kl_cvt_nan_f8e4m3_f32(x_1));
                    const f32 t2 = kl_fma_f32(t1, kl_cvt_f32_f8e5m2(kl_cvt_f8e5m2_f32(x_1)), t1) + s1;
                    a[i] = kl_cvt_f8e4m3_f32(t2);
                    y[i] = kl_max_u64(kl_div_u64(u, (u64)b[i]), kl_cvt_u64_f32(t2));
                }
            }
            else {
                KL_EDGE
                for (i32 i = 0; i < 64; i++) {
                    const f32 x_2 = (i < hi1) ? x[i] : 0.0f;
                    const f32 t3 = kl_cvt_f32_f8e4m3(kl_cvt_nan_f8e4m3_f32(x_2));
                    const f32 t4 = kl_fma_f32(t3, kl_cvt_f32_f8e5m2(kl_cvt_f8e5m2_f32(x_2)), t3) + s1;
                    if (i < hi1)
                        a[i] = kl_cvt_f8e4m3_f32(t4);
                    const i16 b_1 = (i < hi1) ? b[i] : 0;
                    if (i < hi1)
                        y[i] = kl_max_u64(kl_div_u64(u, (u64)b_1), kl_cvt_u64_f32(t4));
                }
            }
        }
    }
}

