__attribute__((visibility("default")))
void gather(const u64 *p, const i64 *grid, i64 begin, i64 end, char *scratch)
{
    f32 *const x = (f32 *)p[0];
    i32 *const t = (i32 *)p[1];
    f32 *const y = (f32 *)p[2];
    f32 *const z = (f32 *)p[3];
    const i64 n = (i64)p[4];
    const i64 m = (i64)p[5];
    f32 *const tile0 = (f32 *)(scratch + p[6]);
    for (i64 prog = begin; prog < end; prog++) {
        /* store %vy[%j][%c0:300], %rows */
        {
            const i32 hi1 = kl_hi(0, m, 300);
            for (i32 i = 0; i < 8; i++) {
                const i64 t1 = (i64)i;
                const i32 hi2 = kl_in(t1, n) ? hi1 : 0;
                f32 *const y_r1 = y + (t1 * m);
                const i32 t_1 = kl_in(i, n) ? t[(i64)i] : 0;
                const i64 t2 = (i64)t_1;
                const i32 hi3 = kl_in(t2, n) ? hi1 : 0;
                f32 *const x_r1 = x + (t2 * m);
                i32 from = 0, to = 300;
                to = hi2 < to ? hi2 : to;
                to = hi3 < to ? hi3 : to;
                KL_SIMD
                for (i32 j = from; j < to; j++) {
                    y_r1[j] = x_r1[j];
                }
                for (i32 part = 0; part < 2; part++) {
                    const i32 end = part ? 300 : from;
                    KL_EDGE
                    for (i32 j = part ? to : 0; j < end; j++) {
                        const f32 x_1 = (j < hi3) ? x_r1[j] : 2.0f;
                        if (j < hi2)
                            y_r1[j] = x_1;
                    }
                }
            }
        }
        /* %p = load %vx[%k][%back] : f32[8] */
        {
            const i32 hi4 = kl_hi(0, n, 8);
            i32 from = 0, to = 8;
            to = hi4 < to ? hi4 : to;
            if (from == 0 && to == 8) {
                KL_EDGE
                for (i32 i = 0; i < 8; i++) {
                    const i64 t3 = (i64)t[i];
                    const i64 t4 = (i64)7 - (i64)i;
                    tile0[i] = (kl_in(t3, n) & kl_in(t4, m)) ? x[((t3 * m) + t4)] : 0.0f;
                }
            }
            else {
                KL_EDGE
                for (i32 i = 0; i < 8; i++) {
                    const i32 t_2 = (i < hi4) ? t[i] : 0;
                    const i64 t5 = (i64)t_2;
                    const i64 t6 = (i64)7 - (i64)i;
                    tile0[i] = (kl_in(t5, n) & kl_in(t6, m)) ? x[((t5 * m) + t6)] : 0.0f;
                }
            }
        }
        /* store %vz[%back], %r mask %in */
        {
            const i32 hi5 = kl_hi(0, n, 8);
            i32 from = 0, to = 8;
            to = hi5 < to ? hi5 : to;
            if (from == 0 && to == 8) {
                KL_EDGE
                for (i32 i = 0; i < 8; i++) {
                    const i64 t7 = (i64)7 - (i64)i;
                    const i64 t8 = (i64)t[i];
                    const f32 t9 = kl_in(t8, 8) ? tile0[(i64)t8 * 1 + 0] : 0.0f;
                    if (kl_in(t7, n) & (kl_in(t8, n) & kl_in(t7, m)))
                        z[t7] = tile0[i] + t9;
                }
            }
            else {
                KL_EDGE
                for (i32 i = 0; i < 8; i++) {
                    const i64 t10 = (i64)7 - (i64)i;
                    const i32 t_3 = (i < hi5) ? t[i] : 0;
                    const i64 t11 = (i64)t_3;
                    const f32 t12 = kl_in(t11, 8) ? tile0[(i64)t11 * 1 + 0] : 0.0f;
                    if (kl_in(t10, n) & (kl_in(t11, n) & kl_in(t10, m)))
                        z[t10] = tile0[i] + t12;
                }
            }
        }
    }
}

