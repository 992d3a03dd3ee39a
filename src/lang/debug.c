/* debug.c - assert and print.
 *
 * Both become ordinary operations on an array that the kernel has beside its own (debug.h): atomics
 * reserve, stores fill in.  So passes keep them in order with each other, and every back end runs
 * them without knowing what they are.  A kernel without them is what it would be otherwise.
 *
 * A failed assertion ends the program as an early return does: by flags, of the function it stands
 * in and of all that called it.  A call that may set them is marked in the tree (KL_NF_DEBUG), and
 * kl_jumps sees it; where flags could not be looked at in time, such a call is refused. */
#include "lang/debug.h"

#include "lang/builtin.h"
#include "lang/stmt.h"

/* ---- which kernels use them ---- */

enum { SEEN = 8, OPEN = 16 }; /* in ival of a FUNC, beside KL_DEBUG_... */

static unsigned uses(kl_elab *e, kl_node *n);

static unsigned uses_of_function(kl_elab *e, kl_node *fn)
{
    if (fn->ival & OPEN) /* recursion: refused later */
        return 0;
    if (!(fn->ival & SEEN)) {
        fn->ival = OPEN;
        fn->ival = SEEN | uses(e, fn->kid[2]);
    }
    return fn->ival & (KL_DEBUG_ASSERT | KL_DEBUG_PRINT);
}

/* Parts of n that are evaluated where what follows is not guarded. */
static bool unguarded(const kl_node *n, uint32_t kid)
{
    switch (n->kind) {
    case KL_N_COND: return true;
    case KL_N_BINARY: return n->op == KL_TK_ANDAND || n->op == KL_TK_OROR;
    case KL_N_IF: return kid == 0;
    case KL_N_FOR: return kid < 3;
    case KL_N_WHILE: return kid == 0;
    case KL_N_DO: return kid == 1;
    default: return false;
    }
}

static unsigned uses(kl_elab *e, kl_node *n)
{
    if (!n)
        return 0;
    unsigned u = 0;
    if (n->kind == KL_N_CALL) {
        kl_sym *s = kl_sym_find(e, n->name);
        if (s && s->kind == KL_S_FUNC)
            u = uses_of_function(e, s->node);
        else if (!s && strcmp(n->name, "assert") == 0)
            u = KL_DEBUG_ASSERT;
        else if (!s && strcmp(n->name, "print") == 0)
            u = KL_DEBUG_PRINT;
        if (u & KL_DEBUG_ASSERT)
            n->flags |= KL_NF_DEBUG;
    }
    for (uint32_t i = 0; i < n->nkid; i++) {
        unsigned k = uses(e, n->kid[i]);
        if (k & KL_DEBUG_ASSERT && unguarded(n, i))
            kl_err(e, KL_K0421, n->kid[i]->span,
                   "a function that asserts is called in a condition, or in a part of an expression "
                   "that may be left out; call it in a statement of its own before");
        u |= k;
    }
    return u;
}

/* The parameter that carries what is recorded; its name is no other parameter's. */
static void add_param(const kl_module_ast *m, kl_node *kernel)
{
    kl_arena *a = m->a;
    kl_node *params = kernel->kid[0];
    const char *name = "debug_";
    for (uint32_t i = 0; i < params->nkid; i++)
        if (params->kid[i]->name && strcmp(params->kid[i]->name, name) == 0) {
            name = kl_printf(a, "%s_", name);
            i = UINT32_MAX;
        }
    kl_node **kid = kl_new_n(a, kl_node *, params->nkid + 1);
    for (uint32_t i = 0; i < params->nkid; i++)
        kid[i] = params->kid[i];
    kl_span s = kernel->name_span;
    kl_node *n = kl_new_n(a, kl_node, 4), *p = n, *type = n + 1, *dims = n + 2, *size = n + 3;
    kl_node **sub = kl_new_n(a, kl_node *, 5);
    sub[0] = type, sub[1] = dims, sub[4] = size;
    *type = (kl_node){.kind = KL_N_TYPE, .span = s, .name = "i64"};
    *size = (kl_node){.kind = KL_N_INT, .span = s, .ival = kl_debug_words(kernel)};
    *dims = (kl_node){.kind = KL_N_DIMS, .span = s, .nkid = 1, .kid = sub + 4};
    *p = (kl_node){.kind = KL_N_PARAM, .span = s, .name_span = s, .name = name, .nkid = 4, .kid = sub,
                   .flags = KL_NF_DEBUG | KL_NF_WRITTEN | KL_NF_USED};
    kid[params->nkid] = p;
    params->kid = kid;
    params->nkid++;
}

void kl_debug_mark(kl_elab *e, kl_node *kernel)
{
    if (kernel->kid[2])
        kernel->ival = uses(e, kernel->kid[2]);
}

void kl_debug_finish(const kl_module_ast *m)
{
    for (uint32_t i = 0; i < m->kernels.n; i++)
        if (kl_debug_uses(m->kernels.v[i]))
            add_param(m, m->kernels.v[i]);
}

unsigned kl_debug_uses(const kl_node *kernel)
{
    return (unsigned)kernel->ival;
}

uint32_t kl_debug_words(const kl_node *kernel)
{
    unsigned u = kl_debug_uses(kernel);
    return u & KL_DEBUG_PRINT ? KL_DEBUG_HEAD + KL_DEBUG_BUFFER : u ? KL_DEBUG_HEAD : 0;
}

static const kl_node *find_call(const kl_node *n, kl_span at)
{
    if (!n)
        return NULL;
    if (n->kind == KL_N_CALL && n->span.beg == at.beg && n->span.end == at.end)
        return n;
    for (uint32_t i = 0; i < n->nkid; i++) {
        const kl_node *x = find_call(n->kid[i], at);
        if (x)
            return x;
    }
    return NULL;
}

const kl_node *kl_debug_call(const kl_module_ast *m, uint64_t where)
{
    return find_call(m->root, (kl_span){(uint32_t)where, (uint32_t)(where >> 32)});
}

/* ---- words of the array ---- */

static uint64_t where(kl_span s)
{
    return s.beg | (uint64_t)s.end << 32;
}

static kl_val word(kl_elab *e, uint64_t v)
{
    return kl_cst_i64(&e->b, (int64_t)v);
}

/* v, a scalar or n elements of i64, from word base + offset on; no base: the array's begin. */
static void put(kl_elab *e, kl_val base, uint64_t offset, kl_val v)
{
    kl_val at = base;
    if (offset || !base.id)
        at = word(e, offset);
    if (offset && base.id)
        at = kl_ew2(&e->b, KL_OP_add, base, at);
    const struct kl_type *t = kl_type_of(e->f, v);
    int64_t step = t->rank ? 1 : 0;
    kl_val args[] = {e->debug, at, v};
    union kl_attr attr = {.access = {.at = kl_aux_add(e->f, &step, 1), .n = 1}};
    kl_emit(&e->b, KL_OP_store, (kl_typ){0}, args, 3, attr);
}

/* The word becomes larger by n; what it was. */
static kl_val add(kl_elab *e, uint32_t at, uint64_t n)
{
    int64_t step = 0;
    kl_val place = word(e, at), by = word(e, n), args[] = {e->debug, place, by};
    union kl_attr attr = {.access = {.at = kl_aux_add(e->f, &step, 1), .n = 1,
                                     .how = KL_HOW(KL_RMW_add, KL_RELAXED, KL_SC_DEVICE)}};
    return kl_emit(&e->b, KL_OP_atomic, kl_scalar(e->f, KL_i64), args, 3, attr);
}

static void put_program(kl_elab *e, kl_val base, uint32_t at)
{
    for (int64_t d = 0; d < 3; d++) {
        kl_val id = kl_emit(&e->b, KL_OP_program_id, kl_scalar(e->f, KL_i64), NULL, 0,
                            (union kl_attr){.index = d});
        put(e, base, at + (uint64_t)d, id);
    }
}

void kl_debug_open(kl_elab *e, kl_val array, uint32_t words)
{
    kl_val zero = word(e, 0), extent = word(e, words), one = word(e, 1);
    kl_val args[] = {array, zero, extent, one};
    e->debug = kl_emit(&e->b, KL_OP_view, kl_array(e->f, KL_i64, 1), args, 4, (union kl_attr){0});
}

/* A tile in one row. */
static kl_val flat(kl_elab *e, kl_val v)
{
    const struct kl_type t = *kl_type_of(e->f, v);
    uint32_t n = (uint32_t)kl_numel(&t);
    if (t.rank == 1)
        return v;
    return kl_emit(&e->b, KL_OP_reshape, kl_tile(e->f, (enum kl_elem)t.elem, 1, &n), &v, 1,
                   (union kl_attr){0});
}

static kl_val scalar_of(kl_elab *e, kl_val one)
{
    return kl_emit(&e->b, KL_OP_reshape, kl_scalar(e->f, (enum kl_elem)kl_type_of(e->f, one)->elem), &one,
                   1, (union kl_attr){0});
}

/* ---- assert ---- */

struct failing {
    kl_span span;
    kl_val ok; /* LOWER: what should hold, of any shape */
};

static void record(kl_elab *e, const void *user)
{
    const struct failing *x = user;
    const struct kl_type t = *kl_type_of(e->f, x->ok);
    const kl_val begin = {0};
    kl_val zero = word(e, 0), at = word(e, UINT64_MAX);
    if (t.rank) {
        uint32_t one = 1;
        kl_val c = flat(e, kl_to(&e->b, KL_i32, x->ok));
        at = kl_emit(&e->b, KL_OP_argmin, kl_tile(e->f, KL_i32, 1, &one), &c, 1, (union kl_attr){0});
        at = kl_to(&e->b, KL_i64, scalar_of(e, at));
    }
    put(e, begin, KL_DEBUG_WHERE, word(e, where(x->span)));
    put_program(e, zero, KL_DEBUG_PROGRAM);
    put(e, begin, KL_DEBUG_ELEMENT, at);
    for (uint32_t i = 0; i < 2; i++)
        put(e, begin, KL_DEBUG_SHAPE + i, word(e, t.dim[2 * i] | (uint64_t)t.dim[2 * i + 1] << 32));
}

/* This program has failed: the first one says where; then it ends. */
static void failed(kl_elab *e, const void *user)
{
    if (kl_emitting(e)) {
        kl_span s = ((const struct failing *)user)->span;
        kl_val zero = word(e, 0);
        kl_val first = kl_ew2(&e->b, KL_OP_eq, add(e, KL_DEBUG_FAILED, 1), zero);
        kl_branch(e, kl_rt(e, KL_bool, 0, NULL, first, s), record, NULL, user);
    }
    for (struct kl_fctx *fx = e->fx; fx; fx = fx->up) {
        kl_set_flag(e, fx->ret);
        for (struct kl_loopctx *l = fx->loop; l; l = l->up)
            kl_set_flag(e, l->brk), kl_set_flag(e, l->skip);
    }
    for (uint32_t i = 1; i < e->var.n; i++) /* what follows here does not run */
        e->var.v[i].def = KL_DEF;
}

/* The text of an argument that must be one; NULL: reported. */
static const char *text(kl_elab *e, struct kl_args *a, uint32_t i, const char *what)
{
    if (a->pos[i]->kind == KL_N_STRING)
        return a->pos[i]->name;
    kl_err(e, KL_K0422, a->pos[i]->span, "%s is a text in quotes", what);
    return NULL;
}

static bool stands_alone(kl_elab *e, struct kl_args *a)
{
    if (kl_in_fold(e, a->s, a->call->name[0] == 'a' ? "an assertion" : "a print"))
        return false;
    if (e->fx)
        return true;
    kl_err(e, KL_K0403, a->s, "`%s` can only stand in a program", a->call->name);
    return false;
}

kl_value kl_call_assert(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    kl_value none = {.kind = KL_V_VOID, .span = a->s};
    (void)b;
    if (!stands_alone(e, a) || !text(e, a, 1, "what an assertion says"))
        return kl_bad(a->s);
    kl_value c = kl_to_bool(e, kl_arg_value(e, a, 0));
    if (c.kind != KL_V_TILE)
        return kl_bad(a->s);
    if (c.konst && c.known && c.bits)
        return none;
    struct failing x = {.span = a->s};
    kl_value bad = kl_rt(e, KL_bool, 0, NULL, (kl_val){0}, a->s);
    e->b.loc = a->s;
    if (kl_emitting(e)) {
        uint32_t one = 1;
        x.ok = kl_ir(e, &c);
        kl_val all = x.ok;
        if (c.rank) {
            all = flat(e, all);
            all = kl_emit(&e->b, KL_OP_reduce, kl_tile(e->f, KL_bool, 1, &one), &all, 1,
                          (union kl_attr){.red = {.op = KL_OP_and}});
            all = scalar_of(e, all);
        }
        bad.ir = kl_ew2(&e->b, KL_OP_xor, all, kl_cst(&e->b, kl_scalar(e->f, KL_bool), 1));
    }
    kl_branch(e, bad, failed, NULL, &x);
    return none;
}

/* ---- print ---- */

/* Placeholders of a format: `{}`; `{{` and `}}` stand for the braces.  -1: a lone brace. */
static int placeholders(const char *s)
{
    int n = 0;
    for (; *s; s++) {
        if (*s != '{' && *s != '}')
            continue;
        if (s[1] == *s)
            s++;
        else if (*s == '{' && s[1] == '}')
            n++, s++;
        else
            return -1;
    }
    return n;
}

/* A value as words: integers as they are, floats by their bits (those below 64 as f32). */
static kl_val words_of(kl_elab *e, kl_val v, enum kl_elem el)
{
    kl_typ t;
    const struct kl_type ty = *kl_type_of(e->f, v);
    if (!kl_is_float(el) && el != KL_u64)
        return kl_to(&e->b, KL_i64, v);
    enum kl_elem to = el == KL_f64 || el == KL_u64 ? KL_i64 : KL_i32;
    if (to == KL_i32)
        v = kl_to(&e->b, KL_f32, v);
    t = kl_tile(e->f, to, ty.rank, ty.dim);
    v = kl_emit(&e->b, KL_OP_bitcast, t, &v, 1, (union kl_attr){0});
    return kl_to(&e->b, KL_i64, v);
}

struct printing {
    struct kl_args *a;
    const kl_value *v; /* [1] to [a->n - 1] */
    uint64_t size;
    kl_val at;
};

static void put_record(kl_elab *e, const void *user)
{
    const struct printing *p = user;
    kl_val at = p->at;
    put(e, at, 0, word(e, where(p->a->s)));
    put(e, at, KL_PRINT_SIZE, word(e, p->size));
    put_program(e, at, KL_PRINT_PROGRAM);
    uint64_t k = KL_PRINT_HEAD;
    for (uint32_t i = 1; i < p->a->n; i++) {
        kl_val x = kl_ir(e, &p->v[i]);
        const struct kl_type t = *kl_type_of(e->f, x);
        uint64_t head = t.elem | (uint64_t)t.rank << 8;
        for (uint32_t d = 0; d < t.rank; d++)
            head |= (uint64_t)t.dim[d] << (16 + 12 * d);
        put(e, at, k++, word(e, head));
        kl_val w = words_of(e, x, (enum kl_elem)t.elem);
        put(e, at, k, t.rank ? flat(e, w) : w);
        k += kl_numel(&t);
    }
}

kl_value kl_call_print(kl_elab *e, const struct kl_builtin *b, struct kl_args *a)
{
    kl_value none = {.kind = KL_V_VOID, .span = a->s}, v[KL_MAX_ARGS];
    const char *format = stands_alone(e, a) ? text(e, a, 0, "the format of print") : NULL;
    uint64_t size = KL_PRINT_HEAD;
    bool ok = true;
    (void)b;
    if (!format)
        return kl_bad(a->s);
    int want = placeholders(format);
    if (want < 0) {
        kl_err(e, KL_K0422, a->pos[0]->span, "a brace of the format is neither `{}` nor doubled");
        return kl_bad(a->s);
    }
    if ((uint32_t)want != a->n - 1) {
        kl_err(e, KL_K0422, a->s, "the format has %d `{}`, and there %s %u value%s", want,
               a->n == 2 ? "is" : "are", a->n - 1, a->n == 2 ? "" : "s");
        return kl_bad(a->s);
    }
    for (uint32_t i = 1; i < a->n; i++) {
        v[i] = kl_concrete(e, kl_arg_value(e, a, i));
        if (v[i].kind != KL_V_TILE) {
            ok = false;
            continue;
        }
        uint64_t n = 1;
        for (uint32_t d = 0; d < v[i].rank; d++)
            n *= v[i].dim[d].n ? v[i].dim[d].n : 1;
        size += 1 + n;
        if (n > KL_PRINT_MOST) {
            kl_err(e, KL_K0422, a->pos[i]->span, "a tile of %llu elements is printed; %d are the most",
                   (unsigned long long)n, KL_PRINT_MOST);
            ok = false;
        }
    }
    if (!ok)
        return kl_bad(a->s);
    if (!kl_emitting(e))
        return none;
    e->b.loc = a->s;
    add(e, KL_DEBUG_PRINTS, 1);
    struct printing p = {a, v, size, {0}};
    kl_val head = word(e, KL_DEBUG_HEAD);
    p.at = kl_ew2(&e->b, KL_OP_add, add(e, KL_DEBUG_USED, size), head);
    uint64_t last = KL_DEBUG_HEAD + KL_DEBUG_BUFFER - size;
    kl_val fits = kl_ew2(&e->b, KL_OP_le, p.at, word(e, last));
    kl_branch(e, kl_rt(e, KL_bool, 0, NULL, fits, a->s), put_record, NULL, &p);
    return none;
}
