__attribute__((visibility("default")))
void scans(const u64 *p, const i64 *grid, i64 begin, i64 end, char *scratch)
{
    const i64 n = (i64)p[0];
    f32 *const y = (f32 *)p[1];
    f32 *const x = (f32 *)p[2];
    i32 *const w = (i32 *)p[3];
    i32 *const v = (i32 *)p[4];
    const i32 n0 = (i32)p[5];
    f32 *const tile0 = (f32 *)(scratch + p[6]);
    i32 *const tile1 = (i32 *)(scratch + p[7]);
    i32 *const tile2 = (i32 *)(scratch + p[8]);
    i32 *const tile3 = (i32 *)(scratch + p[9]);
    i32 *const tile4 = (i32 *)(scratch + p[10]);
    for (i64 prog = begin; prog < end; prog++) {
        /* %12 = load %9[%5:4][%5:2000] : f32[4][2000] */
        {
            const i32 hi1 = kl_hi(0, n, n0);
            for (i32 i = 0; i < 4; i++) {
                f32 *const x_r1 = x + ((i64)i * n);
                f32 *const tile0_1 = tile0 + ((i64)i * n0);
                i32 from = 0, to = n0;
                to = hi1 < to ? hi1 : to;
                KL_SIMD
                for (i32 j = from; j < to; j++) {
                    tile0_1[j] = x_r1[j];
                }
                for (i32 part = 0; part < 2; part++) {
                    const i32 end = part ? n0 : from;
                    KL_EDGE
                    for (i32 j = part ? to : 0; j < end; j++) {
                        const f32 x_1 = (j < hi1) ? x_r1[j] : 0.0f;
                        tile0_1[j] = x_1;
                    }
                }
            }
        }
        /* %13 = scan %12 axis 1 : f32[4][2000] (%14: f32, %15: f32) { */
        for (i32 i = 0; i < 4; i++) {
            f32 *const x1 = tile0 + (i64)i * n0;
            i64 group0 = 0;
            for (; group0 + 8 <= n0; group0 += 8) {
                const f32 t1 = x1[group0 + 0];
                const f32 t2 = x1[group0 + 1];
                const f32 t3 = x1[group0 + 2];
                const f32 t4 = x1[group0 + 3];
                const f32 t5 = x1[group0 + 4];
                const f32 t6 = x1[group0 + 5];
                const f32 t7 = x1[group0 + 6];
                const f32 t8 = x1[group0 + 7];
                const f32 s1 = t1 + t2;
                const f32 s2 = t3 + t4;
                const f32 s3 = t5 + t6;
                const f32 s4 = t7 + t8;
                const f32 s5 = s1 + t3;
                const f32 s6 = s1 + s2;
                const f32 s7 = s3 + t7;
                const f32 s8 = s3 + s4;
                const f32 s9 = s6 + t5;
                const f32 s10 = s6 + s3;
                const f32 s11 = s6 + s7;
                const f32 s12 = s6 + s8;
                x1[group0 + 1] = s1;
                x1[group0 + 2] = s5;
                x1[group0 + 3] = s6;
                x1[group0 + 4] = s9;
                x1[group0 + 5] = s10;
                x1[group0 + 6] = s11;
                x1[group0 + 7] = s12;
            }
            for (i64 h0 = 1; h0 < 8; h0 *= 2) {
                for (i64 b0 = group0 + h0; b0 < n0; b0 += 2 * h0) {
                    for (i64 j = b0; j < b0 + h0 && j < n0; j++) {
                        const f32 t9 = x1[b0 - 1];
                        const f32 t10 = x1[j];
                        const f32 s13 = t9 + t10;
                        x1[j] = s13;
                    }
                }
            }
            const i64 parts0 = (n0 + 1023) / 1024;
            for (i64 part = 0; part <= parts0; part++) {
                const i64 from = part < parts0 ? part * 1024 : 0;
                const i64 end = part < parts0 && from + 1024 < n0 ? from + 1024 : n0;
                const i64 least0 = part < parts0 ? 8 : 1024, most0 = part < parts0 ? 1024 : n0;
                for (i64 h0 = least0; h0 < most0; h0 *= 2) {
                    for (i64 b0 = from + h0; b0 < end; b0 += 2 * h0) {
                        const i64 stop0 = b0 + h0 < end ? b0 + h0 : end;
                        const f32 t11 = x1[b0 - 1];
                        KL_SIMD
                        for (i64 j = b0; j < stop0; j++) {
                            const f32 t12 = x1[j];
                            const f32 s14 = t11 + t12;
                            x1[j] = s14;
                        }
                    }
                }
            }
        }
        /* %17 = scan %13 axis 0 : f32[4][2000] (%18: f32, %19: f32) { */
        {
            f32 *const x2 = tile0;
            const i64 parts0 = (4 + 1) / 2;
            for (i64 part = 0; part <= parts0; part++) {
                const i64 from = part < parts0 ? part * 2 : 0;
                const i64 end = part < parts0 && from + 2 < 4 ? from + 2 : 4;
                const i64 least0 = part < parts0 ? 1 : 2, most0 = part < parts0 ? 2 : 4;
                for (i64 h0 = least0; h0 < most0; h0 *= 2) {
                    for (i64 b0 = from + h0; b0 < end; b0 += 2 * h0) {
                        const i64 stop0 = b0 + h0 < end ? b0 + h0 : end;
                        for (i64 j = b0; j < stop0; j++) {
                            KL_SIMD
                            for (i64 k = 0; k < n0; k++) {
                                const f32 t13 = x2[(b0 - 1) * n0 + k];
                                const f32 t14 = x2[j * n0 + k];
                                const f32 s15 = t13 * t14;
                                x2[j * n0 + k] = s15;
                            }
                        }
                    }
                }
            }
        }
        /* store %8[%5:4][%5:2000], %17 */
        {
            const i32 hi2 = kl_hi(0, n, n0);
            for (i32 i = 0; i < 4; i++) {
                f32 *const y_r1 = y + ((i64)i * n);
                f32 *const tile0_2 = tile0 + ((i64)i * n0);
                i32 from = 0, to = n0;
                to = hi2 < to ? hi2 : to;
                KL_SIMD
                for (i32 j = from; j < to; j++) {
                    y_r1[j] = tile0_2[j];
                }
                for (i32 part = 0; part < 2; part++) {
                    const i32 end = part ? n0 : from;
                    KL_EDGE
                    for (i32 j = part ? to : 0; j < end; j++) {
                        if (j < hi2)
                            y_r1[j] = tile0_2[j];
                    }
                }
            }
        }
        /* %21 = load %11[%5:100] : i32[100] */
        {
            const i32 hi3 = kl_hi(0, n, 100);
            i32 from = 0, to = 100;
            to = hi3 < to ? hi3 : to;
            if (from == 0 && to == 100) {
                KL_SIMD
                for (i32 i = 0; i < 100; i++) {
                    tile1[i] = v[i];
                }
            }
            else {
                KL_EDGE
                for (i32 i = 0; i < 100; i++) {
                    const i32 v_1 = (i < hi3) ? v[i] : 0;
                    tile1[i] = v_1;
                }
            }
        }
        /* %22 = scan %21 axis 0 : i32[100] (%23: i32, %24: i32) { */
        {
            i32 *const x3 = tile1;
            for (i64 j = 1; j < 100; j++) {
                const i32 t15 = x3[j - 1];
                const i32 t16 = x3[j];
                const i32 s16 = kl_max_i32(t15, t16);
                x3[j] = s16;
            }
        }
        /* %26 = neg %21 : i32[100] */
        {
            const i32 hi4 = kl_hi(0, n, 100);
            i32 from = 0, to = 100;
            to = hi4 < to ? hi4 : to;
            if (from == 0 && to == 100) {
                KL_SIMD
                for (i32 i = 0; i < 100; i++) {
                    tile2[i] = 0 - v[i];
                }
            }
            else {
                KL_EDGE
                for (i32 i = 0; i < 100; i++) {
                    const i32 v_2 = (i < hi4) ? v[i] : 0;
                    tile2[i] = 0 - v_2;
                }
            }
        }
        /* %27, %28 = scan %22, %26 axis 0 (%29: i32, %30: i32, %31: i32, %32: i32) { */
        {
            i32 *const x4 = tile1;
            i32 *const x5 = tile2;
            const i64 end = 100;
            for (i64 h0 = 1; h0 < end; h0 *= 2) {
                for (i64 b0 = h0; b0 < end; b0 += 2 * h0) {
                    const i64 stop0 = b0 + h0 < end ? b0 + h0 : end;
                    const i32 t17 = x4[b0 - 1];
                    const i32 t18 = x5[b0 - 1];
                    KL_SIMD
                    for (i64 j = b0; j < stop0; j++) {
                        const i32 t19 = x4[j];
                        const i32 t20 = x5[j];
                        const i32 s17 = t17 - t20;
                        const i32 s18 = t18 + t19;
                        x4[j] = s17;
                        x5[j] = s18;
                    }
                }
            }
        }
        i32 s19;
        i32 s20;
        /* %35, %36 = reduce_fn %27, %28 axis 0 (%37: i32, %38: i32, %39: i32, %40: i32) { */
        {
            const i32 *x6 = tile1;
            const i32 *x7 = tile2;
            for (i64 left = 100, pairs; left > 1; left -= pairs, x6 = tile3, x7 = tile4) {
                pairs = left / 2;
                const i64 count0 = pairs * 1;
                KL_SIMD
                for (i64 j = 0; j < count0; j++) {
                    const i32 t21 = x6[2 * j];
                    const i32 t22 = x7[2 * j];
                    const i32 t23 = x6[2 * j + 1];
                    const i32 t24 = x7[2 * j + 1];
                    const i32 s21 = t21 - t24;
                    const i32 s22 = kl_max_i32(t22, t23);
                    tile3[j] = s21;
                    tile4[j] = s22;
                }
                if (left % 2) {
                    for (i64 k = 0; k < 1; k++)
                        tile3[pairs * 1 + k] = x6[2 * pairs * 1 + k];
                    for (i64 k = 0; k < 1; k++)
                        tile4[pairs * 1 + k] = x7[2 * pairs * 1 + k];
                }
            }
            s19 = x6[0];
            s20 = x7[0];
        }
        /* store %10[%5:100], %45 */
        {
            const i32 hi5 = kl_hi(0, n, 100);
            i32 from = 0, to = 100;
            to = hi5 < to ? hi5 : to;
            if (from == 0 && to == 100) {
                KL_SIMD
                for (i32 i = 0; i < 100; i++) {
                    w[i] = tile1[i] + s20;
                }
            }
            else {
                KL_EDGE
                for (i32 i = 0; i < 100; i++) {
                    if (i < hi5)
                        w[i] = tile1[i] + s20;
                }
            }
        }
    }
}

