__attribute__((visibility("default")))
void add_masked(const u64 *p, const i64 *grid, i64 begin, i64 end, char *scratch)
{
    f32 *const x = (f32 *)p[0];
    f32 *const z = (f32 *)p[1];
    f32 *const y = (f32 *)p[2];
    const i64 n = (i64)p[3];
    const i32 n0 = (i32)p[4];
    for (i64 prog = begin; prog < end; prog++) {
        const i64 pid0 = prog % grid[0];
        const i64 s1 = pid0 * 512;
        /* store %vy[%i:512], %s */
        {
            const i32 lo1 = kl_lo(s1, n, n0);
            const i32 hi1 = kl_hi(s1, n, n0);
            f32 *const y_p1 = y + s1;
            f32 *const x_p1 = x + s1;
            f32 *const z_p1 = z + s1;
            i32 from = 0, to = n0;
            from = lo1 > from ? lo1 : from;
            to = hi1 < to ? hi1 : to;
            to = to < from ? from : to;
            KL_SIMD
            for (i32 i = from; i < to; i++) {
                y_p1[i] = x_p1[i] + z_p1[i];
            }
            for (i32 part = 0; part < 2; part++) {
                const i32 end = part ? n0 : from;
                KL_EDGE
                for (i32 i = part ? to : 0; i < end; i++) {
                    const f32 x_1 = ((i >= lo1) & (i < hi1)) ? x_p1[i] : 0.0f;
                    const f32 z_1 = ((i >= lo1) & (i < hi1)) ? z_p1[i] : 0.0f;
                    if ((i >= lo1) & (i < hi1))
                        y_p1[i] = x_1 + z_1;
                }
            }
        }
    }
}

