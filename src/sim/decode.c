/* decode.c - one PTX instruction: its words to a row of ptx.def, its operands to numbers.
 *
 * A row's sig lists the operands:
 *   w r      written, read; then the bytes of a register (2 4 8), p for a predicate, T for the
 *            size of the first type word, D and S for at least the first and the second, E for
 *            at least the type word, in braces for vectors
 *   m l i    an address in brackets, a label, an integer
 *   M        the operands of mov
 *   |p       a second destination behind |, if it is there
 *   ?        the operand may be missing */
#include "sim/num.h"
#include "sim/parse.h"

#include "sim/exec.h"

static bool is_float(uint8_t t)
{
    return kl_sim_types[t].cls == TC_FLT;
}

/* ---- constants and registers ---- */

/* An array of 32 equal values in the bank of constants. */
static uint32_t constant(struct sim_parser *s, uint64_t bits, uint32_t size, bool fresh)
{
    struct {
        uint64_t bits, size;
    } key = {bits, size};
    bool isnew = true;
    uint32_t *at = NULL;
    if (!fresh) {
        at = kl_map_put(&s->consts, &key, sizeof key, &isnew);
        if (!isnew)
            return *at;
    }
    uint32_t off = (uint32_t)s->cst.n;
    for (int l = 0; l < LANES; l++)
        kl_buf_put(&s->cst, (const char *)&bits, size);
    if (at)
        *at = off;
    return off;
}

static struct sim_opnd const_opnd(struct sim_parser *s, uint64_t bits, uint32_t size)
{
    size = size < 2 ? 2 : size;
    if (size < 8)
        bits &= (UINT64_C(1) << (8 * size)) - 1;
    return (struct sim_opnd){.off = constant(s, bits, size, false),
                             .reg = SIM_NONE,
                             .bank = BANK_CONST,
                             .size = (uint8_t)size,
                             .given = 1};
}

static void allot(struct sim_parser *s, struct sim_decl *x, uint32_t size)
{
    x->at = s->f->nreg++;
    if (!size) {
        x->off = s->f->npred++;
        return;
    }
    x->off = s->f->reg_bytes;
    s->f->reg_bytes += size * LANES;
}

bool kl_sp_register(struct sim_parser *s, struct sim_opnd *o, const char *name, uint32_t len)
{
    uint32_t k = kl_sp_find(s, s->scope, name, len);
    if (k == SIM_NONE)
        return false;
    struct sim_decl *x = &s->decl.v[k];
    if (x->kind == DECL_SPECIAL) {
        /* one copy for each function that uses it */
        if (x->fn != s->fn.n + 1) {
            x->fn = s->fn.n + 1;
            allot(s, x, x->size);
            struct sim_special sp = {x->off, x->at, x->special, (uint8_t)x->size};
            kl_push(s->a, &s->special, sp);
        }
        *o = (struct sim_opnd){
            .off = x->off, .reg = x->at, .bank = BANK_REG, .size = (uint8_t)x->size, .given = 1};
        return true;
    }
    if (x->kind != DECL_REG)
        return false;
    uint32_t size = kl_sim_types[x->type].size;
    if (x->type != PT_PRED && size < 2)
        size = 2;
    if (x->at == SIM_NONE)
        allot(s, x, size);
    *o = (struct sim_opnd){
        .off = x->off, .reg = x->at, .bank = BANK_REG, .size = (uint8_t)size, .given = 1};
    return true;
}

uint32_t kl_sp_shared_at(struct sim_parser *s, struct sim_decl *x)
{
    if (x->fn != s->fn.n + 1) { /* the first use in this function gives it a place */
        x->fn = s->fn.n + 1;
        s->shared_at = (s->shared_at + x->align - 1) & ~(x->align - 1);
        x->at = s->shared_at;
        s->shared_at += x->size;
    }
    return x->at;
}

/* ---- operands ---- */

static const struct sim_opnd none = {.bank = BANK_TMP, .reg = SIM_NONE, .size = 8};
static const struct sim_opnd none_pred = {.reg = SIM_NONE};

/* Address of a symbol as a constant; its space in *space. */
static bool symbol(struct sim_parser *s, uint32_t k, int64_t *value, enum sim_space *space,
                   bool *dynamic)
{
    struct sim_decl *x = &s->decl.v[k];
    *dynamic = false;
    switch (x->kind) {
    case DECL_SHARED:
        *space = SP_SHARED;
        if (x->dynamic) {
            *dynamic = true;
            *value = 0;
            if (x->align > s->dyn_align)
                s->dyn_align = x->align;
        } else {
            *value = kl_sp_shared_at(s, x);
        }
        return true;
    case DECL_PARAM:
        *space = SP_PARAM;
        *value = x->at;
        return true;
    case DECL_LOCAL:
        *space = SP_LOCAL;
        *value = x->at;
        return true;
    case DECL_VAR:
        *space = SP_CONST;
        *value = (int64_t)(uintptr_t)s->var.v[x->at].data;
        return true;
    default: return false;
    }
}

/* A read operand of `size` bytes (0: a predicate); atleast: a larger register will do. */
static bool source(struct sim_parser *s, struct sim_opnd *o, uint32_t size, bool atleast, bool flt)
{
    kl_sp_skip(s);
    const char *from = s->p, *name;
    bool neg = size == 0 && kl_sp_char(s, '!');
    uint64_t bits;
    if (size && kl_sp_number(s, size < 2 ? 2 : size, flt, &bits)) {
        *o = const_opnd(s, bits, size);
        return true;
    }
    uint32_t len = kl_sp_name(s, &name);
    if (!len) {
        kl_sp_error(s, KL_K1602, from, "an operand is missing here");
        return false;
    }
    if (len == 7 && memcmp(name, "WARP_SZ", 7) == 0) {
        *o = const_opnd(s, LANES, size);
        return true;
    }
    if (kl_sp_register(s, o, name, len)) {
        o->neg = neg;
        if (o->size == size || (atleast && o->size > size))
            return true;
        if (size == 1 && o->size == 2)
            return true;
        kl_sp_error(s, KL_K1605, from, "a register of %u bits stands where the instruction has %u",
                    o->size ? o->size * 8u : 1u, size ? size * 8 : 1);
        return false;
    }
    uint32_t k = kl_sp_find(s, s->scope, name, len);
    int64_t value;
    enum sim_space space;
    bool dyn;
    if (k == SIM_NONE || !symbol(s, k, &value, &space, &dyn)) {
        kl_sp_error(s, KL_K1604, from, "`%.*s` is not declared", (int)(len > 60 ? 60 : len), name);
        return false;
    }
    if (size != 4 && size != 8) {
        kl_sp_error(s, KL_K1605, from, "an address has 32 or 64 bits");
        return false;
    }
    if (dyn) {
        struct sim_dynfix fx = {SIM_NONE, constant(s, 0, size, true), size, 0};
        kl_push(s->a, &s->dynfix, fx);
        *o = (struct sim_opnd){
            .off = fx.cst, .reg = SIM_NONE, .bank = BANK_CONST, .size = (uint8_t)size, .given = 1};
    } else {
        *o = const_opnd(s, (uint64_t)value, size);
    }
    return true;
}

static bool dest(struct sim_parser *s, struct sim_opnd *o, uint32_t size, bool atleast)
{
    kl_sp_skip(s);
    const char *from = s->p, *name;
    uint32_t len = kl_sp_name(s, &name);
    if (len == 1 && name[0] == '_') {
        *o = size ? none : none_pred;
        return true;
    }
    if (!len || !kl_sp_register(s, o, name, len)) {
        kl_sp_error(s, KL_K1604, from, "a declared register must stand here");
        return false;
    }
    uint32_t k = kl_sp_find(s, s->scope, name, len);
    if (s->decl.v[k].kind == DECL_SPECIAL) {
        kl_sp_error(s, KL_K1605, from, "a special register cannot be written");
        return false;
    }
    if (o->size == size || (atleast && o->size > size) || (size == 1 && o->size == 2))
        return true;
    kl_sp_error(s, KL_K1605, from, "a register of %u bits stands where the instruction has %u",
                o->size ? o->size * 8u : 1u, size ? size * 8 : 1);
    return false;
}

/* [reg + n], [symbol + n], [n] */
static bool address(struct sim_parser *s, struct sim_opnd *o, int64_t *imm, struct sim_ins *i)
{
    kl_sp_skip(s);
    const char *from = s->p, *name;
    if (!kl_sp_char(s, '[')) {
        kl_sp_error(s, KL_K1602, from, "an address in brackets must stand here");
        return false;
    }
    *imm = 0;
    uint64_t bits;
    bool dyn = false;
    kl_sp_skip(s);
    if (kl_sp_number(s, 8, false, &bits)) {
        *imm = (int64_t)bits;
        *o = const_opnd(s, 0, 8);
    } else {
        uint32_t len = kl_sp_name(s, &name);
        if (len && kl_sp_register(s, o, name, len)) {
            if (o->size != 4 && o->size != 8) {
                kl_sp_error(s, KL_K1605, from, "an address has 32 or 64 bits");
                return false;
            }
        } else {
            uint32_t k = len ? kl_sp_find(s, s->scope, name, len) : SIM_NONE;
            enum sim_space space;
            if (k == SIM_NONE || !symbol(s, k, imm, &space, &dyn)) {
                kl_sp_error(s, KL_K1604, from, "`%.*s` is not declared", (int)(len > 60 ? 60 : len),
                            len ? name : "");
                return false;
            }
            *o = const_opnd(s, 0, 8);
        }
        bool plus = kl_sp_char(s, '+');
        kl_sp_skip(s);
        if (plus || (s->p < s->end && *s->p == '-')) {
            if (!kl_sp_number(s, 8, false, &bits)) {
                kl_sp_error(s, KL_K1602, s->p, "an offset must stand here");
                return false;
            }
            *imm = (int64_t)((uint64_t)*imm + bits);
        }
    }
    if (dyn) { /* the instruction's number is that of the next one */
        struct sim_dynfix fx = {s->ins.n, imm == &i->imm2, 0, 0};
        kl_push(s->a, &s->dynfix, fx);
    }
    if (!kl_sp_char(s, ']')) {
        kl_sp_error(s, KL_K1602, s->p, "`]` must stand here");
        return false;
    }
    return true;
}

/* One or several registers in braces. */
static bool vector(struct sim_parser *s, struct sim_opnd *o, uint32_t n, uint32_t size, bool write,
                   bool atleast, bool flt)
{
    bool brace = kl_sp_char(s, '{');
    if (!brace && n > 1) {
        kl_sp_error(s, KL_K1602, s->p, "%u registers in braces must stand here", n);
        return false;
    }
    for (uint32_t k = 0; k < n; k++) {
        if (k && !kl_sp_char(s, ',')) {
            kl_sp_error(s, KL_K1602, s->p, "%u registers in braces must stand here", n);
            return false;
        }
        if (write ? !dest(s, &o[k], size, atleast) : !source(s, &o[k], size, atleast, flt))
            return false;
    }
    if (brace && !kl_sp_char(s, '}')) {
        kl_sp_error(s, KL_K1602, s->p, "`}` must stand here");
        return false;
    }
    return true;
}

/* How many operands stand in the braces that come next; 0: no braces. */
static uint32_t parts(struct sim_parser *s)
{
    kl_sp_skip(s);
    if (s->p >= s->end || *s->p != '{')
        return 0;
    uint32_t n = 1;
    for (const char *p = s->p; p < s->end && *p != '}' && *p != ';'; p++)
        n += *p == ',';
    return n;
}

static bool part_size(struct sim_parser *s, uint32_t size, uint32_t n)
{
    if ((n == 2 || n == 4) && size / n >= 2)
        return true;
    kl_sp_error(s, KL_K1605, s->p, "%u parts cannot have %u bits together", n, size * 8);
    return false;
}

/* mov: plain, from a special clock, packing and unpacking */
static bool mov(struct sim_parser *s, struct sim_ins *i, struct sim_opnd *o)
{
    uint32_t size = kl_sim_types[i->type].size;
    if (i->type == PT_PRED) {
        i->fn = kl_sim_x_mov_pred;
        i->nd = i->ns = 1;
        return dest(s, &o[0], 0, false) && kl_sp_char(s, ',') && source(s, &o[1], 0, false, false);
    }
    uint32_t n = parts(s);
    if (n) { /* unpack */
        if (!part_size(s, size, n) || !vector(s, o, n, size / n, true, false, false) ||
            !kl_sp_char(s, ',') || !source(s, &o[n], size, false, false))
            return false;
        i->nd = (uint8_t)n, i->ns = 1;
        i->fn = kl_sim_x_unpack;
        return true;
    }
    if (!dest(s, &o[0], size, false) || !kl_sp_char(s, ','))
        return false;
    i->nd = 1;
    n = parts(s);
    if (n) {
        if (!part_size(s, size, n) || !vector(s, &o[1], n, size / n, false, false, false))
            return false;
        i->ns = (uint8_t)n;
        i->fn = kl_sim_x_pack;
        return true;
    }
    const char *at = s->p, *name;
    uint32_t len = kl_sp_name(s, &name);
    uint32_t k = len ? kl_sp_find(s, s->scope, name, len) : SIM_NONE;
    s->p = at;
    if (k != SIM_NONE && s->decl.v[k].kind == DECL_SPECIAL) {
        uint8_t w = s->decl.v[k].special;
        if (w == SR_CLOCK || w == SR_CLOCK64 || w == SR_CLOCK_HI || w == SR_TIMER ||
            w == SR_TIMER_LO) {
            s->p = at + len;
            i->fn = kl_sim_x_clock;
            i->imm = w;
            return true;
        }
    }
    i->ns = 1;
    return source(s, &o[1], size, false, is_float(i->type));
}

static bool label(struct sim_parser *s)
{
    kl_sp_skip(s);
    const char *from = s->p, *name;
    uint32_t len = kl_sp_name(s, &name);
    if (!len) {
        kl_sp_error(s, KL_K1602, from, "a label must stand here");
        return false;
    }
    struct sim_fix fx = {s->ins.n, s->scope, name, len};
    kl_push(s->a, &s->fix, fx);
    return true;
}

static bool next_is_pred(struct sim_parser *s)
{
    const char *at = s->p, *name;
    bool yes = kl_sp_char(s, '!');
    struct sim_opnd o;
    kl_sp_skip(s);
    uint32_t len = kl_sp_name(s, &name);
    if (len && kl_sp_register(s, &o, name, len) && o.size == 0)
        yes = true;
    s->p = at;
    return yes;
}

/* All operands after the sig.  Sources follow destinations in o. */
static bool operands(struct sim_parser *s, const char *sig, struct sim_ins *i, struct sim_opnd *o)
{
    if (sig[0] == 'M')
        return mov(s, i, o);
    uint32_t t1 = kl_sim_types[i->type].size, t2 = kl_sim_types[i->type2].size, nm = 0, n = 0;
    bool flt = is_float(i->type), flt2 = is_float(i->type2 ? i->type2 : i->type);
    if (!i->type2)
        t2 = t1;
    for (bool first = true; *sig; first = false) {
        bool opt = *sig == '?';
        sig += opt;
        bool write = *sig == 'w', pred = false;
        char what = *sig == 'w' || *sig == 'r' ? sig[1] : *sig;
        sig += *sig == 'w' || *sig == 'r' ? 2 : 1;
        uint32_t size = what == 'T' || what == 'E' || what == 'D' ? t1
                        : what == 'S'                             ? t2
                        : what >= '2' && what <= '8'              ? (uint32_t)(what - '0')
                                                                  : 0;
        bool more = first || kl_sp_char(s, ',');
        if (opt && more && *sig == ',' && next_is_pred(s)) { /* it is the operand behind */
            o[n++] = none;
            i->ns++;
            sig++;
            write = false, what = 'p', sig += 2;
            opt = false, size = 0;
        }
        if (!more) {
            if (!opt) {
                kl_sp_error(s, KL_K1602, s->p, "an operand is missing here");
                return false;
            }
            o[n++] = what == 'p' ? none_pred : none;
            i->ns++;
            sig += *sig == ',';
            continue;
        }
        pred = what == 'p';
        bool atleast = what == 'D' || what == 'S' || what == 'E';
        bool fl = what == 'S' ? flt2 : flt;
        if (what == 'm') {
            if (!address(s, &o[n++], nm++ ? &i->imm2 : &i->imm, i))
                return false;
            i->ns++;
        } else if (what == 'l') {
            if (!label(s))
                return false;
        } else if (what == 'i') {
            uint64_t bits;
            kl_sp_skip(s);
            if (!kl_sp_number(s, 8, false, &bits)) {
                kl_sp_error(s, KL_K1602, s->p, "an integer must stand here");
                return false;
            }
            i->lut = (int64_t)bits;
        } else if (what == 'E' && i->vec > 1) {
            if (n + i->vec > MAX_OPND || !vector(s, &o[n], i->vec, size, write, true, fl))
                return false;
            n += i->vec;
            *(write ? &i->nd : &i->ns) += i->vec;
        } else if (what == 'E') {
            if (!vector(s, &o[n++], 1, size, write, true, fl))
                return false;
            *(write ? &i->nd : &i->ns) += 1;
        } else if (pred && !write) {
            if (!source(s, &o[n++], 0, false, false))
                return false;
            i->ns++;
        } else if (write) {
            if (!dest(s, &o[n++], pred ? 0 : size, atleast))
                return false;
            i->nd++;
            if (sig[0] == '|') {
                sig += 2;
                o[n] = none_pred;
                if (kl_sp_char(s, '|') && !dest(s, &o[n], 0, false))
                    return false;
                n++, i->nd++;
            }
        } else {
            if (!source(s, &o[n++], size, atleast, fl))
                return false;
            i->ns++;
        }
        sig += *sig == ',';
    }
    return true;
}

bool kl_sp_instruction(struct sim_parser *s, const char *from, uint32_t guard, bool guardneg)
{
    kl_sp_skip(s);
    const char *word = s->p;
    while (s->p < s->end) {
        char c = *s->p;
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            c == '_' || c == '.' || c == ':')
            s->p++;
        else
            break;
    }
    uint32_t len = (uint32_t)(s->p - word);
    if (!len || len > 200) {
        kl_sp_error(s, KL_K1602, word, "an instruction must stand here");
        return false;
    }
    bool isnew;
    uint32_t *at = kl_map_put(&s->forms, word, len, &isnew);
    if (isnew) {
        struct sim_form f;
        kl_sp_form(&f, word, len);
        *at = s->form.n;
        kl_push(s->a, &s->form, f);
    }
    const struct sim_form *f = &s->form.v[*at];
    if (f->row == SIM_NONE) {
        kl_sp_error(s, KL_K1603, word, "the executor does not know `%.*s`", (int)len, word);
        return false;
    }
    struct sim_ins i = f->proto;
    struct sim_opnd o[MAX_OPND] = {0};
    uint32_t fixes = s->fix.n, dynfixes = s->dynfix.n;
    bool policy = f->policy, good = operands(s, kl_sim_rows[f->row].sig, &i, o);
    if (good && policy && kl_sp_char(s, ',')) { /* a cache policy changes no value */
        struct sim_opnd p;
        good = source(s, &p, 8, false, false);
    }
    kl_sp_skip(s);
    if (good && (s->p >= s->end || *s->p != ';')) {
        kl_sp_error(s, KL_K1602, s->p, "`;` must stand here");
        good = false;
    }
    const char *why = good ? kl_sim_check_form(&i, o) : NULL;
    if (why) {
        kl_sp_error(s, KL_K1603, word, "`%.*s`: %s", (int)len, word, why);
        good = false;
    }
    if (!good) {
        s->fix.n = fixes, s->dynfix.n = dynfixes;
        return false;
    }
    s->p++;
    if (i.fn == kl_sim_x_cvt)
        i.fn = kl_sim_fast_cvt(&i, o);
    i.pred = guard;
    i.pred_reg = s->guard_reg;
    i.predneg = guardneg;
    i.loc = s->loc.n;
    i.row = f->row;
    i.span = kl_sp_span(s, from, s->p);
    i.target = i.rpc = SIM_NONE;
    i.first_op = s->opnd.n;
    for (uint32_t k = 0; k < (uint32_t)i.nd + i.ns; k++)
        kl_push(s->a, &s->opnd, o[k]);
    kl_push(s->a, &s->ins, i);
    return true;
}
