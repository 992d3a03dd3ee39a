/* forms.c - what follows from the words of an instruction form: memory space, operation,
 * wrapping; and which combinations the executor takes. */
#include "sim/exec.h"
#include "sim/run.h"

static bool id_has(const char *id, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = id; (p = strstr(p, word)); p += n)
        if ((p == id || p[-1] == '_') && (p[n] == 0 || p[n] == '_'))
            return true;
    return false;
}

static uint8_t space_of(const char *id)
{
    static const struct {
        const char *word;
        uint8_t space;
    } t[] = {
        {"param", SP_PARAM}, {"shared", SP_SHARED}, {"local", SP_LOCAL},
        {"const", SP_CONST}, {"global", SP_GLOBAL},
    };
    for (size_t k = 0; k < sizeof t / sizeof *t; k++)
        if (id_has(id, t[k].word))
            return t[k].space;
    return SP_GENERIC;
}

static const char *const atoms[ATOM_N] = {"add", "min",  "max", "and", "or",
                                          "xor", "exch", "inc", "dec", "cas"};
/* the order of what testp and the windows of addresses ask */
static const char *const tests[] = {"finite",     "infinite", "number",
                                    "notanumber", "normal",   "subnormal"};

static uint8_t one_of(const char *id, const char *const *words, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        if (id_has(id, words[k]))
            return (uint8_t)k;
    return 0;
}

void kl_sim_finish_form(struct sim_ins *i, const struct sim_row *row)
{
    const char *id = row->id;
    i->space = space_of(id);
    i->is_branch = i->fn == kl_sim_x_bra;
    i->lazy = i->fn == kl_sim_x_selp;
    if (i->fn == kl_sim_x_atom || i->fn == kl_sim_x_redux)
        i->mode = one_of(id, atoms, ATOM_N);
    if (i->fn == kl_sim_x_testp)
        i->mode = one_of(id, tests, 6);
    if (i->fn == kl_sim_x_vote)
        i->mode = id_has(id, "all") ? 0 : id_has(id, "any") ? 1 : 2;
    if (i->fn == kl_sim_x_bar_red)
        i->mode = id_has(id, "popc") ? 0 : id_has(id, "and") ? 1 : 2;
    if (i->fn == kl_sim_x_minmax_f32 || i->fn == kl_sim_x_minmax_h)
        i->mode = id_has(id, "max");
    if (i->fn == kl_sim_x_cvta)
        i->mode = id_has(id, "to");
    /* carry: 1 takes it in, 2 gives it, 4 the high half of a product */
    if (i->fn == kl_sim_x_carry_add || i->fn == kl_sim_x_carry_sub || i->fn == kl_sim_x_carry_mad)
        i->mode = (uint8_t)((id_has(id, "addc") || id_has(id, "subc") || id_has(id, "madc")) |
                            id_has(id, "cc") << 1 | id_has(id, "hi") << 2);
    bool rounds = i->has_round && i->round != RND_N;
    if (row->plain && (i->ftz || i->sat || rounds)) {
        i->inner = i->fn;
        i->fn = kl_sim_x_adjusted;
    }
}

/* Sets of types as bits */
#define B(t)    (1u << PT_##t)
#define INT32   (B(B32) | B(U32) | B(S32))
#define INT64   (B(B64) | B(U64) | B(S64))
#define INT16   (B(B16) | B(U16) | B(S16))
#define INTEGER (INT16 | INT32 | INT64)
#define FLOATS  (B(F32) | B(F64))
#define HALFS   (B(F16) | B(BF16))

static uint32_t atom_types(uint8_t op)
{
    switch (op) {
    case ATOM_ADD: return B(U32) | B(S32) | B(U64) | B(S64) | FLOATS | HALFS | B(F16X2) | B(BF16X2);
    case ATOM_MIN:
    case ATOM_MAX: return B(U32) | B(S32) | B(U64) | B(S64);
    case ATOM_INC:
    case ATOM_DEC: return B(U32);
    case ATOM_CAS: return B(B16) | B(B32) | B(U32) | B(S32) | B(B64) | B(U64) | B(S64);
    default: return B(B32) | B(B64) | B(U32) | B(S32) | B(U64) | B(S64);
    }
}

static uint32_t cvt_types(void)
{
    return INTEGER | B(U8) | B(S8) | B(B8) | FLOATS | HALFS | B(TF32);
}

/* Each of these says what is wrong with an instruction of its kind; NULL: nothing. */

static const char *compare_form(const struct sim_ins *i, const struct sim_opnd *o)
{
    if (!i->cmp)
        return "no comparison";
    bool given = o[i->nd + i->ns - 1].given;
    if (given != (i->boolop != BOOL_NONE))
        return given ? "a third operand needs .and, .or or .xor" : "an operand is missing";
    uint8_t cls = kl_sim_types[i->fn == kl_sim_x_set ? i->type2 : i->type].cls;
    return cls != TC_FLT && i->cmp > CMP_GE + 1 ? "this comparison is for floats" : NULL;
}

static const char *move_form(const struct sim_ins *i)
{
    uint32_t size = kl_sim_types[i->type].size;
    if (!size)
        return "not with this type";
    return size * (uint32_t)i->vec > 32 || (i->vec == 8 && size != 4) ? "the vector is too long" : NULL;
}

/* Shared memory of this CTA or of another one. */
static const char *space_form(const struct sim_ins *i)
{
    bool far = i->fn == kl_sim_x_ld || i->fn == kl_sim_x_st || i->fn == kl_sim_x_mapa ||
               i->fn == kl_sim_x_st_async;
    if (i->cluster && !far)
        return "not in the shared memory of another CTA";
    return !i->cluster && (i->fn == kl_sim_x_mapa || i->fn == kl_sim_x_st_async) ? "only in shared::cluster"
                                                                                 : NULL;
}

static const char *convert_form(const struct sim_ins *i)
{
    uint32_t to = 1u << i->type, from = 1u << i->type2;
    bool df = kl_sim_types[i->type].cls == TC_FLT, sf = kl_sim_types[i->type2].cls == TC_FLT;
    if (!(cvt_types() & to) || !((cvt_types() & ~B(TF32)) & from))
        return "not between these types";
    if (i->type == PT_TF32 && i->type2 != PT_F32)
        return "not between these types";
    if (!df && sf && !i->has_iround)
        return "a float becomes an integer with .rni, .rzi, .rmi or .rpi";
    if (df && !sf && !i->has_round)
        return "an integer becomes a float with a rounding";
    if (!df && !sf && (i->has_round || i->has_iround))
        return "integers are not rounded";
    if (df && sf && i->type != i->type2 && !i->has_round &&
        kl_sim_types[i->type].size <= kl_sim_types[i->type2].size && i->type != PT_TF32)
        return "a smaller float needs a rounding";
    return NULL;
}

/* Types that rows of ptx.def do not say. */
static bool type_fits(const struct sim_ins *i)
{
    static const struct {
        sim_exec *fn;
        uint32_t types;
    } rule[] = {
        {kl_sim_x_setp, INTEGER | FLOATS | HALFS},
        {kl_sim_x_selp, INTEGER | FLOATS | HALFS | B(F16X2) | B(BF16X2)},
        {kl_sim_x_set, INT32 | FLOATS},
        {kl_sim_x_slct, INTEGER | FLOATS},
        {kl_sim_x_testp, FLOATS},
        {kl_sim_x_bfind, B(U32) | B(S32) | B(U64) | B(S64)},
        {kl_sim_x_carry_add, B(U32) | B(S32) | B(U64) | B(S64)},
        {kl_sim_x_carry_sub, B(U32) | B(S32) | B(U64) | B(S64)},
        {kl_sim_x_carry_mad, B(U32) | B(S32) | B(U64) | B(S64)},
        {kl_sim_x_mov, INTEGER | FLOATS | HALFS | B(F16X2) | B(BF16X2)},
        {kl_sim_x_shfl, INT32 | B(F32)},
        {kl_sim_x_match_any, B(B32) | B(B64)},
        {kl_sim_x_match_all, B(B32) | B(B64)},
        {kl_sim_x_cvta, B(U32) | B(U64)},
    };
    uint32_t t = 1u << i->type;
    for (size_t k = 0; k < sizeof rule / sizeof *rule; k++)
        if (i->fn == rule[k].fn && !(rule[k].types & t))
            return false;
    if (i->fn == kl_sim_x_set)
        return (INTEGER | FLOATS | HALFS) & 1u << i->type2;
    if (i->fn == kl_sim_x_st_async)
        return (INT32 | INT64 | FLOATS) & t && kl_sim_types[i->type].size * i->vec <= 16;
    if (i->fn == kl_sim_x_atom)
        return atom_types(i->mode) & t;
    return i->fn != kl_sim_x_redux || i->mode > ATOM_MAX || (B(U32) | B(S32)) & t;
}

const char *kl_sim_check_form(const struct sim_ins *i, const struct sim_opnd *o)
{
    const char *wrong = space_form(i);
    if (wrong)
        return wrong;
    if (!type_fits(i))
        return "not with this type";
    if (i->fn == kl_sim_x_slct && !((B(S32) | B(F32)) & 1u << i->type2))
        return "the last operand is s32 or f32";
    if (i->fn == kl_sim_x_setp || i->fn == kl_sim_x_set)
        wrong = compare_form(i, o);
    else if (i->fn == kl_sim_x_ld || i->fn == kl_sim_x_st)
        wrong = move_form(i);
    else if (i->fn == kl_sim_x_cvt)
        wrong = convert_form(i);
    if (wrong)
        return wrong;
    if (i->fn == kl_sim_x_cp_async && i->lut != 4 && i->lut != 8 && i->lut != 16)
        return "4, 8 or 16 bytes are copied";
    if (i->fn == kl_sim_x_wait_group && (i->lut < 0 || i->lut > 1 << 20))
        return "a number of groups must stand here";
    for (int k = 0; k < i->nd; k++) /* only vectors of destinations may overlap; none does */
        for (int j = 0; j < k; j++)
            if (o[k].given && o[j].given && o[k].reg == o[j].reg)
                return "two results in one register";
    return NULL;
}
