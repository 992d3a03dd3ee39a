/* nn_map.c - kiln_nn.h: element by element, and elements moved. */
#include "lib/nn.h"

/* The numbers of kernels/activation.kiln. */
static bool act_number(struct nn *c, kiln_nn_activation act, int64_t *out)
{
    static const int8_t of[] = {
        [KILN_NN_GELU] = 2,    [KILN_NN_GELU_TANH] = 3, [KILN_NN_RELU] = 0, [KILN_NN_SILU] = 1,
        [KILN_NN_SIGMOID] = 4, [KILN_NN_TANH] = 5,      [KILN_NN_NONE] = -1};
    if ((unsigned)act >= sizeof of || of[act] < 0)
        return kl_nn_fail(c, "%d is no activation here", (int)act);
    *out = of[act];
    return true;
}

kiln_status kiln_nn_act(kiln_nn *nn, kiln_stream *s, kiln_nn_activation act, const kiln_tensor *y,
                        const kiln_tensor *x, const kiln_tensor *gate, kiln_diags **diags)
{
    struct nn c;
    int64_t number = 0;
    kl_nn_begin(&c, nn, s, "kiln_nn_act", "activation", diags);
    act_number(&c, act, &number);
    kl_nn_flat(&c, "y", y);
    kl_nn_flat(&c, "x", x);
    if (gate)
        kl_nn_flat(&c, "gate", gate);
    kl_nn_int(&c, "ACT", number);
    kl_nn_launch(&c, gate ? "act_mul" : "act");
    return kl_nn_end(&c);
}

kiln_status kiln_nn_act_halves(kiln_nn *nn, kiln_stream *s, kiln_nn_activation act,
                               const kiln_tensor *y, const kiln_tensor *x, kiln_diags **diags)
{
    struct nn c;
    int64_t number = 0;
    kl_nn_begin(&c, nn, s, "kiln_nn_act_halves", "activation", diags);
    act_number(&c, act, &number);
    kl_nn_rows(&c, "y", y);
    kl_nn_rows(&c, "x", x);
    kl_nn_int(&c, "ACT", number);
    kl_nn_launch(&c, "act_halves");
    return kl_nn_end(&c);
}

kiln_status kiln_nn_act_backward(kiln_nn *nn, kiln_stream *s, kiln_nn_activation act,
                                 const kiln_tensor *dx, const kiln_tensor *dgate,
                                 const kiln_tensor *dy, const kiln_tensor *x,
                                 const kiln_tensor *gate, kiln_diags **diags)
{
    struct nn c;
    int64_t number = 0;
    kl_nn_begin(&c, nn, s, "kiln_nn_act_backward", "activation", diags);
    act_number(&c, act, &number);
    kl_nn_flat(&c, "dx", dx);
    if (dgate)
        kl_nn_flat(&c, "dgate", dgate);
    kl_nn_flat(&c, "dy", dy);
    kl_nn_flat(&c, "x", x);
    if (gate)
        kl_nn_flat(&c, "gate", gate);
    else if (!c.st && dgate)
        kl_nn_fail(&c, "dgate is given, and gate is not");
    kl_nn_int(&c, "ACT", number);
    kl_nn_launch(&c, "act_backward");
    return kl_nn_end(&c);
}

kiln_status kiln_nn_dropout(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y, const kiln_tensor *x,
                            double p, int64_t seed, kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_dropout", "dropout", diags);
    kl_nn_flat(&c, "y", y);
    kl_nn_flat(&c, "x", x);
    if (!c.st && !(p >= 0 && p < 1))
        kl_nn_fail(&c, "p is %g, and must be at least 0 and less than 1", p);
    kl_nn_float(&c, "p", p);
    kl_nn_int(&c, "seed", seed);
    kl_nn_launch(&c, "dropout");
    return kl_nn_end(&c);
}

kiln_status kiln_nn_rope_theta(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                               const kiln_tensor *x, int64_t turned, double theta,
                               const kiln_tensor *place, int64_t begin, int near, int back,
                               kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_rope_theta", "rope", diags);
    kl_nn_need(&c, "y", "y", y, 3);
    kl_nn_need(&c, "x", "x", x, 3);
    kl_nn_tensor(&c, "place", place, 1);
    if (c.st)
        return kl_nn_end(&c);
    turned = turned ? turned : x->shape[2];
    if (turned < 2 || turned % 2 || turned > x->shape[2])
        kl_nn_fail(&c, "%lld elements of %lld are to be turned: an even number is needed",
                   (long long)turned, (long long)x->shape[2]);
    kl_nn_int(&c, "half", turned / 2);
    kl_nn_float(&c, "theta", theta);
    kl_nn_int(&c, "begin", begin);
    kl_nn_int(&c, "NEAR", near != 0);
    kl_nn_int(&c, "BACK", back != 0);
    kl_nn_launch(&c, "rope_theta");
    return kl_nn_end(&c);
}

kiln_status kiln_nn_rope(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y, const kiln_tensor *x,
                         const kiln_tensor *cosine, const kiln_tensor *sine,
                         const kiln_tensor *place, int near, int back, kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_rope", "rope", diags);
    kl_nn_need(&c, "y", "y", y, 3);
    kl_nn_need(&c, "x", "x", x, 3);
    kl_nn_need(&c, "cosine", "cosine", cosine, 2);
    kl_nn_need(&c, "sine", "sine", sine, 2);
    kl_nn_tensor(&c, "place", place, 1);
    kl_nn_int(&c, "NEAR", near != 0);
    kl_nn_int(&c, "BACK", back != 0);
    kl_nn_launch(&c, "rope");
    return kl_nn_end(&c);
}

kiln_status kiln_nn_transpose(kiln_nn *nn, kiln_stream *s, const kiln_tensor *y,
                              const kiln_tensor *x, kiln_diags **diags)
{
    struct nn c;
    kl_nn_begin(&c, nn, s, "kiln_nn_transpose", "transpose", diags);
    kl_nn_need(&c, "y", "y", y, 2);
    kl_nn_need(&c, "x", "x", x, 2);
    kl_nn_launch(&c, "transpose");
    return kl_nn_end(&c);
}
