__attribute__((visibility("default")))
void row_sum(const u64 *p, const i64 *grid, i64 begin, i64 end, char *scratch)
{
    f32 *const x = (f32 *)p[0];
    f32 *const y = (f32 *)p[1];
    const i64 rows = (i64)p[2];
    const i64 cols = (i64)p[3];
    f32 *const tile0 = (f32 *)(scratch + p[4]);
    f32 *const tile1 = (f32 *)(scratch + p[5]);
    for (i64 prog = begin; prog < end; prog++) {
        const i64 pid0 = prog % grid[0];
        /* %z = const 0.0 : f32[256] */
        {
            KL_SIMD
            for (i32 i = 0; i < 256; i++) {
                tile0[i] = 0.0f;
            }
        }
        for (i64 k1 = 0; k1 < cols; k1 += 256) {
            /* %t = add %s, %v : f32[256] */
            {
                const i32 lo1 = kl_lo(k1, cols, 256);
                const i32 hi1 = kl_in(pid0, rows) ? kl_hi(k1, cols, 256) : 0;
                f32 *const x_p1 = x + ((pid0 * cols) + k1);
                i32 from = 0, to = 256;
                from = lo1 > from ? lo1 : from;
                to = hi1 < to ? hi1 : to;
                to = to < from ? from : to;
                KL_SIMD
                for (i32 i = from; i < to; i++) {
                    tile0[i] = tile0[i] + x_p1[i];
                }
                for (i32 part = 0; part < 2; part++) {
                    const i32 end = part ? 256 : from;
                    KL_EDGE
                    for (i32 i = part ? to : 0; i < end; i++) {
                        const f32 x_1 = ((i >= lo1) & (i < hi1)) ? x_p1[i] : 0.0f;
                        tile0[i] = tile0[i] + x_1;
                    }
                }
            }
        }
        const f32 s1 = kl_sum256_f32(tile0);
        /* store %vy[%r], %one */
        if (kl_in(pid0, rows))
            y[pid0] = s1;
    }
}

