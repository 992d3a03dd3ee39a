__attribute__((visibility("default")))
void atomics(const u64 *p, const i64 *grid, i64 begin, i64 end, char *scratch)
{
    i32 *const h = (i32 *)p[0];
    i64 *const s = (i64 *)p[1];
    f32 *const y = (f32 *)p[2];
    i32 *const t = (i32 *)p[3];
    const i64 n = (i64)p[4];
    i32 *const tile0 = (i32 *)(scratch + p[5]);
    i32 *const tile1 = (i32 *)(scratch + p[6]);
    i32 *const tile2 = (i32 *)(scratch + p[7]);
    i32 *const tile3 = (i32 *)(scratch + p[8]);
    i32 *const tile4 = (i32 *)(scratch + p[9]);
    for (i64 prog = begin; prog < end; prog++) {
        /* %a = load %vt[%c0:64] : i32[64] */
        {
            const i32 hi1 = kl_hi(0, n, 64);
            i32 from = 0, to = 64;
            to = hi1 < to ? hi1 : to;
            if (from == 0 && to == 64) {
                KL_SIMD
                for (i32 i = 0; i < 64; i++) {
                    tile0[i] = t[i];
                }
            }
            else {
                KL_EDGE
                for (i32 i = 0; i < 64; i++) {
                    tile0[i] = (i < hi1) ? t[i] : 0;
                }
            }
        }
        /* %old = atomic add %vh[%k], %one : i32[64] */
        {
            /* in order */
            for (i32 i = 0; i < 64; i++) {
                const i64 t1 = (i64)(tile0[i] & 63);
                tile1[i] = kl_in(t1, n) ? kl_atomic_add_i32(&h[t1], 1, KL_RELAXED) : 0;
            }
        }
        /* %o2 = atomic max acquire %vh[%c0:64], %old mask %even : i32[64] */
        {
            const i32 hi2 = kl_hi(0, n, 64);
            i32 from = 0, to = 64;
            to = hi2 < to ? hi2 : to;
            if (from == 0 && to == 64) {
                /* in order */
                for (i32 i = 0; i < 64; i++) {
                    const i32 t_1 = tile0[i];
                    tile2[i] = (t_1 == (t_1 & 63)) ? kl_atomic_max_i32(&h[i], tile1[i], KL_ACQUIRE) : 0;
                }
            }
            else {
                /* in order */
                for (i32 i = 0; i < 64; i++) {
                    const i32 t_2 = tile0[i];
                    tile2[i] = (i < hi2) & (t_2 == (t_2 & 63)) ? kl_atomic_max_i32(&h[i], tile1[i], KL_ACQUIRE) : 0;
                }
            }
        }
        /* %o3 = atomic xor %vh[%k], %o2 : i32[64] */
        {
            /* in order */
            for (i32 i = 0; i < 64; i++) {
                const i64 t2 = (i64)(tile0[i] & 63);
                tile3[i] = kl_in(t2, n) ? kl_atomic_xor_i32(&h[t2], tile2[i], KL_RELAXED) : 0;
            }
        }
        /* %g = atomic_load %vh[%c0:64] : i32[64] */
        {
            const i32 hi3 = kl_hi(0, n, 64);
            i32 from = 0, to = 64;
            to = hi3 < to ? hi3 : to;
            if (from == 0 && to == 64) {
                /* in order */
                for (i32 i = 0; i < 64; i++) {
                    tile4[i] = kl_atomic_load_i32(&h[i], KL_RELAXED);
                }
            }
            else {
                /* in order */
                for (i32 i = 0; i < 64; i++) {
                    tile4[i] = (i < hi3) ? kl_atomic_load_i32(&h[i], KL_RELAXED) : 0;
                }
            }
        }
        /* atomic_store release %vs[%c0:64], %w mask %even */
        {
            const i32 hi4 = kl_hi(0, n, 64);
            i32 from = 0, to = 64;
            to = hi4 < to ? hi4 : to;
            if (from == 0 && to == 64) {
                /* in order */
                for (i32 i = 0; i < 64; i++) {
                    const i32 t_3 = tile0[i];
                    if (t_3 == (t_3 & 63))
                        kl_atomic_store_i64(&s[i], (i64)(tile4[i] + tile3[i]), KL_RELEASE);
                }
            }
            else {
                /* in order */
                for (i32 i = 0; i < 64; i++) {
                    const i32 t_4 = tile0[i];
                    if ((i < hi4) & (t_4 == (t_4 & 63)))
                        kl_atomic_store_i64(&s[i], (i64)(tile4[i] + tile3[i]), KL_RELEASE);
                }
            }
        }
        /* %x = atomic add %vy[%k], %f : f32[64] */
        {
            /* in order */
            for (i32 i = 0; i < 64; i++) {
                const i64 t3 = (i64)(tile0[i] & 63);
                if (kl_in(t3, n))
                    kl_atomic_add_f32(&y[t3], (f32)tile1[i], KL_RELAXED);
            }
        }
        /* %c = atomic cas acq_rel %vs[%c1], %c0, %big : i64 */
        const i64 old1 = kl_in(1, n) ? kl_atomic_cas_i64(&s[1], 0, 1000, KL_ACQ_REL) : 0;
        /* %d = atomic add %vs[%c0], %c : i64 */
        const i64 old2 = kl_in(0, n) ? kl_atomic_add_i64(&s[0], old1, KL_RELAXED) : 0;
        /* %e = atomic min system %vs[%c0], %d : i64 */
        const i64 old3 = kl_in(0, n) ? kl_atomic_min_i64(&s[0], old2, KL_RELAXED) : 0;
        /* store %vs[%c1], %e */
        if (kl_in(1, n))
            s[1] = old3;
    }
}

