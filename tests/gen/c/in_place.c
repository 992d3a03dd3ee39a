__attribute__((visibility("default")))
void in_place(const u64 *p, const i64 *grid, i64 begin, i64 end, char *scratch)
{
    f32 *const y = (f32 *)p[0];
    const i64 n = (i64)p[1];
    const i32 n0 = (i32)p[2];
    const i32 n1 = (i32)p[3];
    f32 *const tile0 = (f32 *)(scratch + p[4]);
    f32 *const tile1 = (f32 *)(scratch + p[5]);
    f32 *const tile2 = (f32 *)(scratch + p[6]);
    f32 *const tile3 = (f32 *)(scratch + p[7]);
    f32 *const tile4 = (f32 *)(scratch + p[8]);
    for (i64 prog = begin; prog < end; prog++) {
        /* store %vy[%c0:1000], %w */
        {
            const i32 hi1 = kl_hi(0, n, n0);
            i32 from = 0, to = n0;
            to = hi1 < to ? hi1 : to;
            KL_SIMD
            for (i32 i = from; i < to; i++) {
                const f32 y_1 = y[i];
                y[i] = y_1 * y_1;
            }
            for (i32 part = 0; part < 2; part++) {
                const i32 end = part ? n0 : from;
                KL_EDGE
                for (i32 i = part ? to : 0; i < end; i++) {
                    const f32 y_2 = (i < hi1) ? y[i] : 0.0f;
                    if (i < hi1)
                        y[i] = y_2 * y_2;
                }
            }
        }
        /* %a = load %vy[%c1:600] : f32[600] */
        {
            const i32 hi2 = kl_hi(1, n, n1);
            f32 *const y_p1 = y + 1;
            i32 from = 0, to = n1;
            to = hi2 < to ? hi2 : to;
            KL_SIMD
            for (i32 i = from; i < to; i++) {
                tile0[i] = y_p1[i];
            }
            for (i32 part = 0; part < 2; part++) {
                const i32 end = part ? n1 : from;
                KL_EDGE
                for (i32 i = part ? to : 0; i < end; i++) {
                    tile0[i] = (i < hi2) ? y_p1[i] : 0.0f;
                }
            }
        }
        /* store %vy[%c0:600], %a */
        {
            const i32 hi3 = kl_hi(0, n, n1);
            i32 from = 0, to = n1;
            to = hi3 < to ? hi3 : to;
            KL_SIMD
            for (i32 i = from; i < to; i++) {
                y[i] = tile0[i];
            }
            for (i32 part = 0; part < 2; part++) {
                const i32 end = part ? n1 : from;
                KL_EDGE
                for (i32 i = part ? to : 0; i < end; i++) {
                    if (i < hi3)
                        y[i] = tile0[i];
                }
            }
        }
        /* %b = load %vy[%c0:500] : f32[500] */
        /* %c = load %vy[%o:500] : f32[500] */
        {
            const i32 hi4 = kl_hi(0, n, 500);
            const i32 hi5 = kl_hi(100, n, 500);
            f32 *const y_p2 = y + 100;
            i32 from = 0, to = 500;
            to = hi4 < to ? hi4 : to;
            to = hi5 < to ? hi5 : to;
            KL_SIMD
            for (i32 i = from; i < to; i++) {
                tile1[i] = y[i];
                tile2[i] = y_p2[i];
            }
            for (i32 part = 0; part < 2; part++) {
                const i32 end = part ? 500 : from;
                KL_EDGE
                for (i32 i = part ? to : 0; i < end; i++) {
                    tile1[i] = (i < hi4) ? y[i] : 0.0f;
                    tile2[i] = (i < hi5) ? y_p2[i] : 0.0f;
                }
            }
        }
        /* store %vy[%o:500], %s */
        {
            const i32 hi6 = kl_hi(100, n, 500);
            f32 *const y_p3 = y + 100;
            i32 from = 0, to = 500;
            to = hi6 < to ? hi6 : to;
            KL_SIMD
            for (i32 i = from; i < to; i++) {
                y_p3[i] = tile1[i] + tile2[i];
            }
            for (i32 part = 0; part < 2; part++) {
                const i32 end = part ? 500 : from;
                KL_EDGE
                for (i32 i = part ? to : 0; i < end; i++) {
                    if (i < hi6)
                        y_p3[i] = tile1[i] + tile2[i];
                }
            }
        }
        /* %u = load %vy[%c0:500] : f32[500] */
        /* store %vy[%c0:500], %t */
        {
            const i32 hi7 = kl_hi(0, n, 500);
            i32 from = 0, to = 500;
            to = hi7 < to ? hi7 : to;
            KL_SIMD
            for (i32 i = from; i < to; i++) {
                tile3[i] = y[i];
                y[i] = -(tile1[i] + tile2[i]);
            }
            for (i32 part = 0; part < 2; part++) {
                const i32 end = part ? 500 : from;
                KL_EDGE
                for (i32 i = part ? to : 0; i < end; i++) {
                    tile3[i] = (i < hi7) ? y[i] : 0.0f;
                    if (i < hi7)
                        y[i] = -(tile1[i] + tile2[i]);
                }
            }
        }
        /* store %vy[%o:500], %d */
        {
            const i32 hi8 = kl_hi(100, n, 500);
            f32 *const y_p4 = y + 100;
            i32 from = 0, to = 500;
            to = hi8 < to ? hi8 : to;
            KL_SIMD
            for (i32 i = from; i < to; i++) {
                y_p4[i] = tile3[i] + tile1[i];
            }
            for (i32 part = 0; part < 2; part++) {
                const i32 end = part ? 500 : from;
                KL_EDGE
                for (i32 i = part ? to : 0; i < end; i++) {
                    if (i < hi8)
                        y_p4[i] = tile3[i] + tile1[i];
                }
            }
        }
        /* %f = load %vy[%c0:64] : f32[64] */
        {
            const i32 hi9 = kl_hi(0, n, 64);
            i32 from = 0, to = 64;
            to = hi9 < to ? hi9 : to;
            if (from == 0 && to == 64) {
                KL_SIMD
                for (i32 i = 0; i < 64; i++) {
                    tile4[i] = y[i];
                }
            }
            else {
                KL_EDGE
                for (i32 i = 0; i < 64; i++) {
                    tile4[i] = (i < hi9) ? y[i] : 0.0f;
                }
            }
        }
        /* store %vy[%c0:64], %g */
        {
            const i32 hi10 = kl_hi(0, n, 64);
            f32 *const tile4_1 = tile4 + (63);
            i32 from = 0, to = 64;
            to = hi10 < to ? hi10 : to;
            if (from == 0 && to == 64) {
                KL_SIMD
                for (i32 i = 0; i < 64; i++) {
                    y[i] = tile4_1[(i64)i * -1];
                }
            }
            else {
                KL_EDGE
                for (i32 i = 0; i < 64; i++) {
                    if (i < hi10)
                        y[i] = tile4_1[(i64)i * -1];
                }
            }
        }
    }
}

