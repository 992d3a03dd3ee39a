__attribute__((visibility("default")))
void names(const u64 *p, const i64 *grid, i64 begin, i64 end, char *scratch)
{
    f32 *const i_ = (f32 *)p[0];
    f32 *const tile_ = (f32 *)p[1];
    f32 *const b1_ = (f32 *)p[2];
    f32 *const arg3_ = (f32 *)p[3];
    const i64 for_ = (i64)p[4];
    const i64 int_ = (i64)p[5];
    for (i64 prog = begin; prog < end; prog++) {
        /* store %vy[%k:64], %f */
        {
            const i32 lo1 = kl_lo(int_, for_, 64);
            const i32 hi1 = kl_hi(int_, for_, 64);
            f32 *const b1__p1 = b1_ + int_;
            f32 *const i__p1 = i_ + int_;
            f32 *const tile__p1 = tile_ + int_;
            f32 *const arg3__p1 = arg3_ + int_;
            i32 from = 0, to = 64;
            from = lo1 > from ? lo1 : from;
            to = hi1 < to ? hi1 : to;
            to = to < from ? from : to;
            if (from == 0 && to == 64) {
                KL_SIMD
                for (i32 i = 0; i < 64; i++) {
                    const f32 i__1 = i__p1[i];
                    b1__p1[i] = ((i__1 + tile__p1[i]) * i__1) - arg3__p1[i];
                }
            }
            else {
                KL_EDGE
                for (i32 i = 0; i < 64; i++) {
                    const f32 i__2 = ((i >= lo1) & (i < hi1)) ? i__p1[i] : 0.0f;
                    const f32 tile__1 = ((i >= lo1) & (i < hi1)) ? tile__p1[i] : 0.0f;
                    const f32 arg3__1 = ((i >= lo1) & (i < hi1)) ? arg3__p1[i] : 0.0f;
                    if ((i >= lo1) & (i < hi1))
                        b1__p1[i] = ((i__2 + tile__1) * i__2) - arg3__1;
                }
            }
        }
    }
}

