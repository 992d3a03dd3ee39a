__attribute__((visibility("default")))
void scalars(const u64 *p, const i64 *grid, i64 begin, i64 end, char *scratch)
{
    f64 *const y = (f64 *)p[0];
    const i64 a = (i64)p[1];
    const i64 b = (i64)p[2];
    const f32 f = kl_bitcast_f32_u32((u32)p[3]);
    const u16 h = (u16)p[4];
    const u32 u = (u32)p[5];
    const b1 t = (p[6] & 0xff) != 0;
    for (i64 prog = begin; prog < end; prog++) {
        const i64 s1 = kl_div_i64(a, b);
        const i64 s2 = kl_shl_i64(kl_floormod_i64(s1, kl_rem_i64(a, b)), b);
        const f32 s3 = kl_cvt_f32_f16(h);
        const f32 s4 = kl_fma_f32(kl_exp_f32(f), s3, f);
        const b1 s5 = s4 < f;
        const f32 s6 = s5 ? s4 : s3;
        const i32 s7 = kl_div_i32((kl_shr_i32(kl_cvt_i32_f32(s6), (i32)u)) ^ (-1), (-0x7fffffff - 1));
        const f64 s8 = (f64)s7;
        /* store %vy[%c0], %f1 */
        y[0] = s8;
        const f64 s9 = (f64)(kl_max_i64(s2, s1));
        /* store %vy[%c1], %f2 */
        y[1] = s9;
        const f64 s10 = (f64)s6;
        /* store %vy[%r2], %f3 */
        y[2] = s10;
        const f64 s11 = (f64)(kl_max_f32(s4, kl_bitcast_f32_u32(0x7fc00001u)));
        /* store %vy[%r3], %f4 */
        y[3] = s11;
        const f64 s12 = (f64)u;
        /* store %vy[%r4], %f5 */
        y[4] = s12;
        const f64 s13 = (f64)(t ^ s5);
        /* store %vy[%r5], %f6 */
        y[5] = s13;
        const f64 s14 = (-0.0) * s13;
        /* store %vy[%r6], %f7 */
        y[6] = s14;
        const i64 s15 = kl_floordiv_i64((i64)((-0x7fffffffffffffffll - 1)), b);
        const f64 s16 = (f64)s15;
        /* store %vy[%r7], %f8 */
        y[7] = s16;
    }
}

