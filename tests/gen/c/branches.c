__attribute__((visibility("default")))
void branches(const u64 *p, const i64 *grid, i64 begin, i64 end, char *scratch)
{
    f32 *const x = (f32 *)p[0];
    f32 *const y = (f32 *)p[1];
    const i64 n = (i64)p[2];
    const i64 k_ = (i64)p[3];
    f32 *const tile0 = (f32 *)(scratch + p[4]);
    f32 *const tile1 = (f32 *)(scratch + p[5]);
    f32 *const tile2 = (f32 *)(scratch + p[6]);
    f32 *const tile3 = (f32 *)(scratch + p[7]);
    for (i64 prog = begin; prog < end; prog++) {
        const b1 s1 = k_ == 0;
        /* %b = load %vx[%c0:100] : f32[100] */
        /* %e = exp %b : f32[100] */
        {
            const i32 hi1 = kl_hi(0, n, 100);
            i32 from = 0, to = 100;
            to = hi1 < to ? hi1 : to;
            if (from == 0 && to == 100) {
                KL_SIMD
                for (i32 i = 0; i < 100; i++) {
                    const f32 t1 = x[i];
                    tile0[i] = t1;
                    tile1[i] = kl_exp_f32(t1);
                }
            }
            else {
                KL_EDGE
                for (i32 i = 0; i < 100; i++) {
                    const f32 t2 = (i < hi1) ? x[i] : 0.0f;
                    tile0[i] = t2;
                    tile1[i] = kl_exp_f32(t2);
                }
            }
        }
        i32 s2;
        if (s1) {
            /* store %vy[%c0][%c0:100], %b */
            /* %f = flip %e axis 0 : f32[100] */
            {
                f32 *const tile1_1 = tile1 + (99);
                KL_SIMD
                for (i32 i = 0; i < 100; i++) {
                    y[i] = tile0[i];
                    tile2[i] = tile1_1[(i64)i * -1];
                }
            }
            __builtin_memcpy(tile3, tile1, (u64)100 * sizeof(f32));
            s2 = 1;
        }
        else {
            __builtin_memcpy(tile2, tile1, (u64)100 * sizeof(f32));
            /* %g = add %e, %b : f32[100] */
            {
                KL_SIMD
                for (i32 i = 0; i < 100; i++) {
                    tile3[i] = tile1[i] + tile0[i];
                }
            }
            s2 = 2;
        }
        /* store %vy[%c1][%c0:100], %d */
        {
            f32 *const y_p1 = y + 200;
            KL_SIMD
            for (i32 i = 0; i < 100; i++) {
                y_p1[i] = tile2[i] - tile3[i];
            }
        }
        const f32 s3 = (f32)s2;
        /* store %vy[%r2][%c0:100], %t */
        {
            f32 *const y_p2 = y + 400;
            KL_SIMD
            for (i32 i = 0; i < 100; i++) {
                y_p2[i] = tile2[i];
            }
        }
        /* store %vy[%r3][%c0], %vf */
        y[600] = s3;
        if (s1) {
            /* store %vy[%r3][%c1], %vf */
            y[601] = s3;
        }
        for (i64 k1 = 0; k1 < 3; k1 += 1) {
            const b1 s4 = k1 == 1;
            if (s4) {
                /* %s = add %a, %b : f32[100] */
                {
                    KL_SIMD
                    for (i32 i = 0; i < 100; i++) {
                        tile1[i] = tile1[i] + tile0[i];
                    }
                }
            }
            else {
            }
        }
        /* store %vy[%r4][%c0:100], %acc */
        {
            f32 *const y_p3 = y + 800;
            KL_SIMD
            for (i32 i = 0; i < 100; i++) {
                y_p3[i] = tile1[i];
            }
        }
    }
}

