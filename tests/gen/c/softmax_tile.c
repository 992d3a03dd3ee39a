__attribute__((visibility("default")))
void softmax_tile(const u64 *p, const i64 *grid, i64 begin, i64 end, char *scratch)
{
    f32 *const x = (f32 *)p[0];
    f32 *const y = (f32 *)p[1];
    const i64 rows = (i64)p[2];
    const i64 cols = (i64)p[3];
    f32 *const tile0 = (f32 *)(scratch + p[4]);
    f32 *const tile1 = (f32 *)(scratch + p[5]);
    f32 *const tile2 = (f32 *)(scratch + p[6]);
    f32 *const tile3 = (f32 *)(scratch + p[7]);
    f32 *const tile4 = (f32 *)(scratch + p[8]);
    for (i64 prog = begin; prog < end; prog++) {
        const i64 pid0 = prog % grid[0];
        const i64 s1 = pid0 * 4;
        /* %v = load %vx[%r:4][%c0:64] fill %ninf : f32[4][64] */
        /* %m = reduce max %v axis 1 : f32[4][1] */
        {
            const i32 lo1 = kl_lo(s1, rows, 4);
            const i32 hi1 = kl_hi(s1, rows, 4);
            const i32 hi2 = kl_hi(0, cols, 64);
            f32 *const x_p1 = x + (s1 * cols);
            for (i32 i = 0; i < 4; i++) {
                const i32 hi3 = (i >= lo1) & (i < hi1) ? hi2 : 0;
                f32 *const x_r1 = x_p1 + ((i64)i * cols);
                f32 *const tile0_1 = tile0 + ((i64)i * 64);
                f32 m1[64];
                for (i32 l = 0; l < 64; l++)
                    m1[l] = -KL_INF32;
                i32 from = 0, to = 64;
                to = hi3 < to ? hi3 : to;
                i64 at = from;
                for (; at + 64 <= to; at += 64) {
                    KL_SIMD
                    for (i32 l = 0; l < 64; l++) {
                        const i32 j = (i32)at + l;
                        const f32 t1 = x_r1[at + l];
                        tile0_1[at + l] = t1;
                        m1[l] = kl_max_f32(m1[l], t1);
                    }
                }
                const i64 rest = at;
                for (i32 part = 0; part < 2; part++) {
                    const i64 end = part ? 64 : from;
                    for (i64 at = (part ? rest : 0); at < end; at += 64) {
                        const i32 left = end - at < 64 ? (i32)(end - at) : 64;
                        KL_EDGE
                        for (i32 l = 0; l < left; l++) {
                            const i32 j = (i32)at + l;
                            const f32 t2 = (j < hi3) ? x_r1[at + l] : (-KL_INF32);
                            tile0_1[at + l] = t2;
                            m1[l] = kl_max_f32(m1[l], t2);
                        }
                    }
                }
                KL_FOLD64(m1, kl_max_f32)
                tile1[i] = m1[0];
            }
        }
        /* %e = exp %d : f32[4][64] */
        {
            for (i32 i = 0; i < 4; i++) {
                f32 *const tile0_2 = tile0 + ((i64)i * 64);
                const f32 t3 = tile1[i];
                f32 *const tile2_1 = tile2 + ((i64)i * 64);
                KL_SIMD
                for (i32 j = 0; j < 64; j++) {
                    tile2_1[j] = kl_exp_f32(tile0_2[j] - t3);
                }
            }
        }
        for (i32 i = 0; i < 4; i++) {
            tile4[i] = kl_sum64_f32(tile2 + (i64)i * 64);
        }
        /* store %vy[%r:4][%c0:64], %q */
        {
            const i32 lo2 = kl_lo(s1, rows, 4);
            const i32 hi4 = kl_hi(s1, rows, 4);
            const i32 hi5 = kl_hi(0, cols, 64);
            f32 *const y_p1 = y + (s1 * cols);
            for (i32 i = 0; i < 4; i++) {
                const i32 hi6 = (i >= lo2) & (i < hi4) ? hi5 : 0;
                f32 *const y_r1 = y_p1 + ((i64)i * cols);
                f32 *const tile2_2 = tile2 + ((i64)i * 64);
                const f32 t4 = tile4[i];
                i32 from = 0, to = 64;
                to = hi6 < to ? hi6 : to;
                if (from == 0 && to == 64) {
                    KL_SIMD
                    for (i32 j = 0; j < 64; j++) {
                        y_r1[j] = tile2_2[j] / t4;
                    }
                }
                else {
                    KL_EDGE
                    for (i32 j = 0; j < 64; j++) {
                        if (j < hi6)
                            y_r1[j] = tile2_2[j] / t4;
                    }
                }
            }
        }
    }
}

