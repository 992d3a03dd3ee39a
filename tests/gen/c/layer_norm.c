__attribute__((visibility("default")))
void layer_norm(const u64 *p, const i64 *grid, i64 begin, i64 end, char *scratch)
{
    f32 *const x = (f32 *)p[0];
    f32 *const gamma = (f32 *)p[1];
    f32 *const y = (f32 *)p[2];
    const i64 rows = (i64)p[3];
    const i64 cols = (i64)p[4];
    const f32 eps = kl_bitcast_f32_u32((u32)p[5]);
    const i32 n0 = (i32)p[6];
    f32 *const tile0 = (f32 *)(scratch + p[7]);
    f32 *const tile1 = (f32 *)(scratch + p[8]);
    f32 *const tile2 = (f32 *)(scratch + p[9]);
    f32 *const tile3 = (f32 *)(scratch + p[10]);
    for (i64 prog = begin; prog < end; prog++) {
        const i64 pid0 = prog % grid[0];
        const f32 s1 = (f32)cols;
        /* %v = load %vx[%r][%c0:1024] : f32[1024] */
        {
            const i32 hi1 = kl_in(pid0, rows) ? kl_hi(0, cols, n0) : 0;
            f32 *const x_p1 = x + (pid0 * cols);
            i32 from = 0, to = n0;
            to = hi1 < to ? hi1 : to;
            KL_SIMD
            for (i32 i = from; i < to; i++) {
                tile0[i] = x_p1[i];
            }
            for (i32 part = 0; part < 2; part++) {
                const i32 end = part ? n0 : from;
                KL_EDGE
                for (i32 i = part ? to : 0; i < end; i++) {
                    tile0[i] = (i < hi1) ? x_p1[i] : 0.0f;
                }
            }
        }
        const f32 s2 = kl_sum_pow2_f32(tile0, n0, tile1);
        const f32 s3 = s2 / s1;
        /* %dd = mul %d, %d : f32[1024] */
        {
            const i32 hi2 = kl_in(pid0, rows) ? kl_hi(0, cols, n0) : 0;
            KL_SIMD
            for (i32 i = 0; i < n0; i++) {
                const f32 t1 = (i < hi2) ? (tile0[i] - s3) : 0.0f;
                tile2[i] = t1 * t1;
            }
        }
        const f32 s4 = kl_sum_pow2_f32(tile2, n0, tile3);
        const f32 s5 = kl_rsqrt_f32((s4 / s1) + eps);
        /* store %vy[%r][%c0:1024], %ow */
        {
            const i32 hi3 = kl_in(pid0, rows) ? kl_hi(0, cols, n0) : 0;
            f32 *const y_p1 = y + (pid0 * cols);
            const i32 hi4 = kl_hi(0, cols, n0);
            i32 from = 0, to = n0;
            to = hi3 < to ? hi3 : to;
            to = hi4 < to ? hi4 : to;
            KL_SIMD
            for (i32 i = from; i < to; i++) {
                y_p1[i] = ((tile0[i] - s3) * s5) * gamma[i];
            }
            for (i32 part = 0; part < 2; part++) {
                const i32 end = part ? n0 : from;
                KL_EDGE
                for (i32 i = part ? to : 0; i < end; i++) {
                    const f32 t2 = (i < hi3) ? (tile0[i] - s3) : 0.0f;
                    const f32 gamma_1 = (i < hi4) ? gamma[i] : 0.0f;
                    if (i < hi3)
                        y_p1[i] = (t2 * s5) * gamma_1;
                }
            }
        }
    }
}

