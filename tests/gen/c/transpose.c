__attribute__((visibility("default")))
void transpose(const u64 *p, const i64 *grid, i64 begin, i64 end, char *scratch)
{
    f32 *const x = (f32 *)p[0];
    f32 *const y = (f32 *)p[1];
    const i64 n = (i64)p[2];
    const i64 m = (i64)p[3];
    f32 *const tile0 = (f32 *)(scratch + p[4]);
    f32 *const tile1 = (f32 *)(scratch + p[5]);
    for (i64 prog = begin; prog < end; prog++) {
        const i64 pid0 = prog % grid[0];
        const i64 pid1 = prog / grid[0] % grid[1];
        const i64 s1 = pid0 * 32;
        const i64 s2 = pid1 * 32;
        /* %t = load %vx[%i:32][%j:32] : f32[32][32] */
        {
            const i32 lo1 = kl_lo(s1, n, 32);
            const i32 hi1 = kl_hi(s1, n, 32);
            const i32 lo2 = kl_lo(s2, m, 32);
            const i32 hi2 = kl_hi(s2, m, 32);
            f32 *const x_p1 = x + ((s1 * m) + s2);
            for (i32 i = 0; i < 32; i++) {
                const i32 hi3 = (i >= lo1) & (i < hi1) ? hi2 : 0;
                f32 *const x_r1 = x_p1 + ((i64)i * m);
                f32 *const tile0_1 = tile0 + ((i64)i * 32);
                i32 from = 0, to = 32;
                from = lo2 > from ? lo2 : from;
                to = hi3 < to ? hi3 : to;
                to = to < from ? from : to;
                if (from == 0 && to == 32) {
                    KL_SIMD
                    for (i32 j = 0; j < 32; j++) {
                        tile0_1[j] = x_r1[j];
                    }
                }
                else {
                    KL_EDGE
                    for (i32 j = 0; j < 32; j++) {
                        tile0_1[j] = ((j >= lo2) & (j < hi3)) ? x_r1[j] : 0.0f;
                    }
                }
            }
        }
        /* %u = permute %t (1, 0) : f32[32][32] */
        kl_transpose_w4(tile1, 32, tile0, 32, 32, 32);
        /* store %vy[%j:32][%i:32], %u */
        {
            const i32 lo3 = kl_lo(s2, m, 32);
            const i32 hi4 = kl_hi(s2, m, 32);
            const i32 lo4 = kl_lo(s1, n, 32);
            const i32 hi5 = kl_hi(s1, n, 32);
            f32 *const y_p1 = y + ((s2 * n) + s1);
            for (i32 i = 0; i < 32; i++) {
                const i32 hi6 = (i >= lo3) & (i < hi4) ? hi5 : 0;
                f32 *const y_r1 = y_p1 + ((i64)i * n);
                f32 *const tile1_1 = tile1 + ((i64)i * 32);
                i32 from = 0, to = 32;
                from = lo4 > from ? lo4 : from;
                to = hi6 < to ? hi6 : to;
                to = to < from ? from : to;
                if (from == 0 && to == 32) {
                    KL_SIMD
                    for (i32 j = 0; j < 32; j++) {
                        y_r1[j] = tile1_1[j];
                    }
                }
                else {
                    KL_EDGE
                    for (i32 j = 0; j < 32; j++) {
                        if ((j >= lo4) & (j < hi6))
                            y_r1[j] = tile1_1[j];
                    }
                }
            }
        }
    }
}

