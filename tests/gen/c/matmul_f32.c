__attribute__((visibility("default")))
void matmul_f32(const u64 *p, const i64 *grid, i64 begin, i64 end, char *scratch)
{
    f32 *const a = (f32 *)p[0];
    f32 *const b = (f32 *)p[1];
    f32 *const c = (f32 *)p[2];
    const i64 M = (i64)p[3];
    const i64 N = (i64)p[4];
    const i64 K = (i64)p[5];
    f32 *const tile0 = (f32 *)(scratch + p[6]);
    f32 *const tile1 = (f32 *)(scratch + p[7]);
    f32 *const tile2 = (f32 *)(scratch + p[8]);
    for (i64 prog = begin; prog < end; prog++) {
        const i64 pid0 = prog % grid[0];
        const i64 pid1 = prog / grid[0] % grid[1];
        const i64 s1 = pid0 * 16;
        const i64 s2 = pid1 * 64;
        /* %z = const 0.0 : f32[16][64] */
        {
            for (i32 i = 0; i < 16; i++) {
                f32 *const tile0_1 = tile0 + ((i64)i * 64);
                KL_SIMD
                for (i32 j = 0; j < 64; j++) {
                    tile0_1[j] = 0.0f;
                }
            }
        }
        for (i64 k1 = 0; k1 < K; k1 += 32) {
            /* %ta = load %va[%m:16][%k:32] : f32[16][32] */
            {
                const i32 lo1 = kl_lo(s1, M, 16);
                const i32 hi1 = kl_hi(s1, M, 16);
                const i32 lo2 = kl_lo(k1, K, 32);
                const i32 hi2 = kl_hi(k1, K, 32);
                f32 *const a_p1 = a + ((s1 * K) + k1);
                for (i32 i = 0; i < 16; i++) {
                    const i32 hi3 = (i >= lo1) & (i < hi1) ? hi2 : 0;
                    f32 *const a_r1 = a_p1 + ((i64)i * K);
                    f32 *const tile1_1 = tile1 + ((i64)i * 32);
                    i32 from = 0, to = 32;
                    from = lo2 > from ? lo2 : from;
                    to = hi3 < to ? hi3 : to;
                    to = to < from ? from : to;
                    if (from == 0 && to == 32) {
                        KL_SIMD
                        for (i32 j = 0; j < 32; j++) {
                            tile1_1[j] = a_r1[j];
                        }
                    }
                    else {
                        KL_EDGE
                        for (i32 j = 0; j < 32; j++) {
                            const f32 a_1 = ((j >= lo2) & (j < hi3)) ? a_r1[j] : 0.0f;
                            tile1_1[j] = a_1;
                        }
                    }
                }
            }
            /* %tb = load %vb[%k:32][%n:64] : f32[32][64] */
            {
                const i32 lo3 = kl_lo(k1, K, 32);
                const i32 hi4 = kl_hi(k1, K, 32);
                const i32 lo4 = kl_lo(s2, N, 64);
                const i32 hi5 = kl_hi(s2, N, 64);
                f32 *const b_p1 = b + ((k1 * N) + s2);
                for (i32 i = 0; i < 32; i++) {
                    const i32 hi6 = (i >= lo3) & (i < hi4) ? hi5 : 0;
                    f32 *const b_r1 = b_p1 + ((i64)i * N);
                    f32 *const tile2_1 = tile2 + ((i64)i * 64);
                    i32 from = 0, to = 64;
                    from = lo4 > from ? lo4 : from;
                    to = hi6 < to ? hi6 : to;
                    to = to < from ? from : to;
                    if (from == 0 && to == 64) {
                        KL_SIMD
                        for (i32 j = 0; j < 64; j++) {
                            tile2_1[j] = b_r1[j];
                        }
                    }
                    else {
                        KL_EDGE
                        for (i32 j = 0; j < 64; j++) {
                            const f32 b_1 = ((j >= lo4) & (j < hi6)) ? b_r1[j] : 0.0f;
                            tile2_1[j] = b_1;
                        }
                    }
                }
            }
            /* %d = dot %ta, %tb, %s : f32[16][64] */
            kl_dot_f32(16, 64, 32, tile1, 32, tile2, 64, tile0, 64);
        }
        /* store %vc[%m:16][%n:64], %acc */
        {
            const i32 lo5 = kl_lo(s1, M, 16);
            const i32 hi7 = kl_hi(s1, M, 16);
            const i32 lo6 = kl_lo(s2, N, 64);
            const i32 hi8 = kl_hi(s2, N, 64);
            f32 *const c_p1 = c + ((s1 * N) + s2);
            for (i32 i = 0; i < 16; i++) {
                const i32 hi9 = (i >= lo5) & (i < hi7) ? hi8 : 0;
                f32 *const c_r1 = c_p1 + ((i64)i * N);
                f32 *const tile0_2 = tile0 + ((i64)i * 64);
                i32 from = 0, to = 64;
                from = lo6 > from ? lo6 : from;
                to = hi9 < to ? hi9 : to;
                to = to < from ? from : to;
                if (from == 0 && to == 64) {
                    KL_SIMD
                    for (i32 j = 0; j < 64; j++) {
                        c_r1[j] = tile0_2[j];
                    }
                }
                else {
                    KL_EDGE
                    for (i32 j = 0; j < 64; j++) {
                        if ((j >= lo6) & (j < hi9))
                            c_r1[j] = tile0_2[j];
                    }
                }
            }
        }
    }
}

