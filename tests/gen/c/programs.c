__attribute__((visibility("default")))
void programs(const u64 *p, const i64 *grid, i64 begin, i64 end, char *scratch)
{
    i64 *const y = (i64 *)p[0];
    const i64 n = (i64)p[1];
    for (i64 prog = begin; prog < end; prog++) {
        const i64 pid0 = prog % grid[0];
        const i64 pid1 = prog / grid[0] % grid[1];
        const i64 pid2 = prog / grid[0] / grid[1];
        const i64 s1 = (((pid2 * grid[1]) + pid1) * grid[0]) + pid0;
        /* store %vy[%d][%c0], %p0 */
        if (kl_in(s1, n))
            y[(s1 * 8)] = pid0;
        /* store %vy[%d][%c1], %p1 */
        if (kl_in(s1, n))
            y[((s1 * 8) + 1)] = pid1;
        /* store %vy[%d][%r2], %p2 */
        if (kl_in(s1, n))
            y[((s1 * 8) + 2)] = pid2;
        /* store %vy[%d][%r3], %n2 */
        if (kl_in(s1, n))
            y[((s1 * 8) + 3)] = grid[2];
        /* store %vy[%d][%r4], %sms */
        if (kl_in(s1, n))
            y[((s1 * 8) + 4)] = grid[3];
    }
}

