/* parse.c - PTX text: directives, declarations, functions.
 *
 * The text is read once.  A register gets storage when it is first used, so that
 * declarations of thousands cost nothing.  After an error the parser goes on
 * behind the next semicolon. */
#include "sim/parse.h"

enum { MAX_PARAM = 1 << 16 };

static const struct {
    const char *text;
    uint8_t what, size;
} sregs[] = {
#define SREG(text, name, size) {text, SR_##name, size},
#include "sim/sreg.def"
};

static void open_scope(struct sim_parser *s)
{
    kl_push(s->a, &s->parent, s->scope);
    s->scope = s->parent.n - 1;
}

/* ---- directives ---- */

static void skip_statement(struct sim_parser *s)
{
    while (s->p < s->end && *s->p != ';' && *s->p != '}')
        s->p++;
    if (s->p < s->end && *s->p == ';')
        s->p++;
}

static void skip_line(struct sim_parser *s)
{
    while (s->p < s->end && *s->p != '\n')
        s->p++;
}

static void skip_text(struct sim_parser *s)
{
    kl_sp_skip(s);
    if (s->p >= s->end || *s->p != '"')
        return;
    for (s->p++; s->p < s->end && *s->p != '"'; s->p++)
        s->p += *s->p == '\\' && s->end - s->p > 1;
    if (s->p < s->end)
        s->p++;
}

static void skip_block(struct sim_parser *s) /* at its brace */
{
    uint32_t depth = 0;
    for (; s->p < s->end; s->p++) {
        if (*s->p == '"') {
            skip_text(s);
            s->p--;
            continue;
        }
        depth += *s->p == '{';
        if (*s->p == '}' && --depth == 0) {
            s->p++;
            return;
        }
    }
}

static void file_line(struct sim_parser *s, bool loc)
{
    const char *from = s->p;
    uint64_t n, line = 0, col = 0;
    if (!kl_sp_integer(s, 65535, &n)) {
        skip_line(s);
        return;
    }
    if (loc) {
        if (kl_sp_integer(s, UINT32_MAX, &line) && kl_sp_integer(s, UINT32_MAX, &col)) {
            struct sim_loc l = {(uint32_t)n, (uint32_t)line, (uint32_t)col};
            kl_push(s->a, &s->loc, l);
        }
        skip_line(s); /* inlined_at and the like */
        return;
    }
    kl_sp_skip(s);
    const char *text = s->p;
    skip_text(s);
    if (s->p - text < 2 || s->p[-1] != '"') {
        kl_sp_error(s, KL_K1602, from, "a file name must stand here");
        return;
    }
    while (s->file.n <= n)
        kl_push(s->a, &s->file, NULL);
    s->file.v[n] = kl_strndup(s->a, text + 1, (size_t)(s->p - text - 2));
    while (kl_sp_char(s, ','))
        if (!kl_sp_integer(s, UINT64_MAX, &n))
            return;
}

/* ---- functions ---- */

static bool param(struct sim_parser *s, struct kl_sim_param *p)
{
    struct sim_decl x = {.kind = DECL_PARAM};
    const char *w, *name;
    uint32_t len, n = kl_sp_directive(s, &w);
    uint64_t count;
    if (!n || !kl_sp_is(w, n, ".param")) {
        kl_sp_error(s, KL_K1602, w, "`.param` must stand here");
        return false;
    }
    if (!kl_sp_typed(s, &x.type, &x.align) || !kl_sp_declarator(s, &name, &len, &count, MAX_PARAM))
        return false;
    uint32_t at = (s->f->pub.param_bytes + x.align - 1) & ~(x.align - 1);
    x.at = at;
    x.size = (uint32_t)count * kl_sim_types[x.type].size;
    s->f->pub.param_bytes = at + x.size;
    if (s->f->pub.param_bytes > MAX_PARAM) {
        kl_sp_error(s, KL_K1602, name, "the parameters are too large");
        return false;
    }
    *p = (struct kl_sim_param){kl_strndup(s->a, name, len), at, x.size, x.align};
    return kl_sp_new_name(s, name, len, x);
}

/* .maxntid, .reqntid and what else stands between parameters and body */
static bool limits(struct sim_parser *s)
{
    const char *w;
    for (uint32_t n; (n = kl_sp_directive(s, &w)) != 0;) {
        uint64_t v[3] = {1, 1, 1};
        bool req = kl_sp_is(w, n, ".reqntid");
        if (kl_sp_is(w, n, ".pragma")) {
            skip_text(s);
            kl_sp_char(s, ';');
            continue;
        }
        kl_sp_skip(s);
        if (s->p < s->end && kl_sp_digit(*s->p)) {
            uint32_t k = 0;
            do {
                if (k == 3 || !kl_sp_integer(s, 1 << 20, &v[k]))
                    return false;
                k++;
            } while (kl_sp_char(s, ','));
        }
        if (kl_sp_is(w, n, ".reqnctapercluster")) {
            uint64_t ctas = v[0] * v[1] * v[2];
            if (!ctas || ctas > SIM_CLUSTER) {
                kl_sp_error(s, KL_K1602, w, "a cluster has 1 to %d CTAs", SIM_CLUSTER);
                return false;
            }
            for (int k = 0; k < 3; k++)
                s->f->pub.cluster[k] = (uint32_t)v[k];
        }
        if (req || kl_sp_is(w, n, ".maxntid")) {
            s->f->pub.max_threads = (uint32_t)(v[0] * v[1] * v[2]);
            if (req)
                for (int k = 0; k < 3; k++)
                    s->f->req[k] = (uint32_t)v[k];
        }
    }
    return true;
}

static bool statement(struct sim_parser *s)
{
    const char *from = s->p, *w;
    uint32_t guard = SIM_NONE;
    bool neg = false;
    if (*s->p == '.') {
        uint32_t n = kl_sp_directive(s, &w);
        if (kl_sp_is(w, n, ".reg"))
            return kl_sp_reg(s) && kl_sp_char(s, ';');
        if (kl_sp_is(w, n, ".shared"))
            return kl_sp_shared(s, false) && kl_sp_char(s, ';');
        if (kl_sp_is(w, n, ".local"))
            return kl_sp_local(s) && kl_sp_char(s, ';');
        if (kl_sp_is(w, n, ".loc")) {
            file_line(s, true);
            return true;
        }
        if (kl_sp_is(w, n, ".pragma")) {
            skip_text(s);
            return kl_sp_char(s, ';');
        }
        kl_sp_error(s, KL_K1603, from, "the executor does not know `%.*s`", (int)(n > 60 ? 60 : n),
                    w);
        return false;
    }
    if (*s->p == '@') {
        s->p++;
        struct sim_opnd o = {0};
        neg = kl_sp_char(s, '!');
        uint32_t n = kl_sp_name(s, &w);
        if (!n || !kl_sp_register(s, &o, w, n) || o.size) {
            kl_sp_error(s, KL_K1604, from, "a declared predicate must stand behind `@`");
            return false;
        }
        guard = o.off;
        s->guard_reg = o.reg;
    } else {
        uint32_t n = kl_sp_name(s, &w);
        kl_sp_skip(s);
        if (n && s->p < s->end && *s->p == ':' && !(s->end - s->p > 1 && s->p[1] == ':')) {
            s->p++;
            struct sim_decl x = {.kind = DECL_LABEL, .at = s->ins.n};
            return kl_sp_new_name(s, w, n, x);
        }
        s->p = from;
    }
    return kl_sp_instruction(s, from, guard, neg);
}

/* Labels and dynamic shared memory have places now. */
static bool resolve(struct sim_parser *s)
{
    bool good = true;
    for (uint32_t k = 0; k < s->fix.n; k++) {
        const struct sim_fix *x = &s->fix.v[k];
        uint32_t at = kl_sp_find(s, x->scope, x->name, x->len);
        if (at == SIM_NONE || s->decl.v[at].kind != DECL_LABEL) {
            kl_sp_error(s, KL_K1604, x->name, "there is no label `%.*s`",
                        (int)(x->len > 60 ? 60 : x->len), x->name);
            good = false;
            continue;
        }
        s->ins.v[x->ins].target = s->decl.v[at].at;
    }
    uint32_t align = s->dyn_align > 16 ? s->dyn_align : 16;
    s->f->dynamic_at = (s->shared_at + align - 1) & ~(align - 1);
    for (uint32_t k = 0; k < s->dynfix.n; k++) {
        const struct sim_dynfix *x = &s->dynfix.v[k];
        if (x->ins != SIM_NONE && x->ins < s->ins.n) {
            *(x->cst ? &s->ins.v[x->ins].imm2 : &s->ins.v[x->ins].imm) += s->f->dynamic_at;
        } else if (x->ins == SIM_NONE) {
            uint64_t v = s->f->dynamic_at;
            for (uint32_t l = 0; l < LANES; l++)
                memcpy(s->cst.s + x->cst + l * x->size, &v, x->size);
        }
    }
    return good;
}

static bool body(struct sim_parser *s)
{
    uint32_t depth = 1;
    s->ins.n = s->opnd.n = s->special.n = s->fix.n = s->dynfix.n = 0;
    s->ins.v = NULL, s->opnd.v = NULL, s->special.v = NULL;
    s->ins.cap = s->opnd.cap = s->special.cap = 0;
    s->shared_at = s->local_at = s->dyn_align = 0;
    bool good = true;
    while (depth) {
        kl_sp_skip(s);
        if (s->p >= s->end) {
            kl_sp_error(s, KL_K1602, s->end, "the function does not end");
            return false;
        }
        if (*s->p == '{') {
            s->p++;
            depth++;
            open_scope(s);
            continue;
        }
        if (*s->p == '}') {
            s->p++;
            depth--;
            s->scope = s->parent.v[s->scope];
            continue;
        }
        uint32_t errors = s->d->nerr;
        if (statement(s))
            continue;
        if (s->d->nerr == errors) /* a rule that said nothing itself */
            kl_sp_error(s, KL_K1602, s->p, "this is not understood");
        good = false;
        skip_statement(s);
    }
    if (!resolve(s) || !good)
        return false;
    struct sim_fn *f = s->f;
    f->ins = s->ins.v;
    f->nins = s->ins.n;
    for (uint32_t k = 0; k < f->nins; k++)
        f->ins[k].op = s->opnd.v + f->ins[k].first_op;
    f->special = s->special.v;
    f->nspecial = s->special.n;
    f->pub.shared_bytes = s->shared_at;
    f->pub.registers = f->nreg;
    f->local_bytes = s->local_at;
    f->local_pitch = (s->local_at + 15u) & ~15u;
    kl_sim_reconverge(s->a, f);
    return true;
}

static bool entry(struct sim_parser *s)
{
    const char *name;
    struct sim_fn f = {.npred = 1, .pub.cluster = {1, 1, 1}}; /* predicate 0 takes what nobody wants */
    s->f = &f;
    uint32_t len = kl_sp_name(s, &name);
    if (!len) {
        kl_sp_error(s, KL_K1602, s->p, "the name of an entry must stand here");
        return false;
    }
    f.pub.name = kl_strndup(s->a, name, len);
    open_scope(s);
    KL_VEC(struct kl_sim_param) params = {0};
    if (kl_sp_char(s, '(') && !kl_sp_char(s, ')')) {
        do {
            struct kl_sim_param p;
            if (!param(s, &p))
                return false;
            kl_push(s->a, &params, p);
        } while (kl_sp_char(s, ','));
        if (!kl_sp_char(s, ')')) {
            kl_sp_error(s, KL_K1602, s->p, "`)` must stand here");
            return false;
        }
    }
    f.pub.param = params.v;
    f.pub.nparam = params.n;
    if (!limits(s))
        return false;
    if (kl_sp_char(s, ';')) { /* declared only */
        s->scope = 0;
        return true;
    }
    if (!kl_sp_char(s, '{')) {
        kl_sp_error(s, KL_K1602, s->p, "the body of the entry must stand here");
        return false;
    }
    bool good = body(s);
    s->scope = 0;
    if (good)
        kl_push(s->a, &s->fn, f);
    return good;
}

/* One directive of the module. */
static bool toplevel(struct sim_parser *s)
{
    const char *w, *from = s->p;
    bool ext = false;
    for (;;) {
        uint32_t n = kl_sp_directive(s, &w);
        uint64_t v;
        if (!n) {
            kl_sp_error(s, KL_K1602, from, "a directive must stand here");
            return false;
        }
        if (kl_sp_is(w, n, ".visible") || kl_sp_is(w, n, ".weak") || kl_sp_is(w, n, ".common")) {
            continue;
        } else if (kl_sp_is(w, n, ".extern")) {
            ext = true;
        } else if (kl_sp_is(w, n, ".version")) {
            return kl_sp_number(s, 8, true, &v);
        } else if (kl_sp_is(w, n, ".target")) {
            do
                if (!kl_sp_name(s, &w))
                    return false;
            while (kl_sp_char(s, ','));
            return true;
        } else if (kl_sp_is(w, n, ".address_size")) {
            if (!kl_sp_integer(s, 64, &v))
                return false;
            if (v != 64)
                kl_sp_error(s, KL_K1603, from, "addresses have 64 bits here");
            return v == 64;
        } else if (kl_sp_is(w, n, ".entry")) {
            return entry(s);
        } else if (kl_sp_is(w, n, ".file")) {
            file_line(s, false);
            return true;
        } else if (kl_sp_is(w, n, ".loc")) {
            file_line(s, true);
            return true;
        } else if (kl_sp_is(w, n, ".pragma")) {
            skip_text(s);
            return kl_sp_char(s, ';');
        } else if (kl_sp_is(w, n, ".section")) {
            while (s->p < s->end && *s->p != '{')
                s->p++;
            skip_block(s);
            return true;
        } else if (kl_sp_is(w, n, ".shared")) {
            return kl_sp_shared(s, ext) && kl_sp_char(s, ';');
        } else if (kl_sp_is(w, n, ".const") || kl_sp_is(w, n, ".global")) {
            return kl_sp_variable(s, ext) && kl_sp_char(s, ';');
        } else if (kl_sp_is(w, n, ".func") && ext) { /* an error only where it is called */
            skip_statement(s);
            return true;
        } else {
            kl_sp_error(s, KL_K1603, w, "the executor does not know `%.*s`", (int)(n > 60 ? 60 : n),
                        w);
            if (kl_sp_is(w, n, ".func")) {
                while (s->p < s->end && *s->p != '{' && *s->p != ';')
                    s->p++;
                if (s->p < s->end && *s->p == '{')
                    skip_block(s);
                else
                    s->p += s->p < s->end;
                return true; /* said already, and the parser stands behind it */
            }
            return false;
        }
    }
}

kl_sim *kl_sim_parse(kl_arena *a, kl_srcmap *src, uint32_t file, kl_diags *d)
{
    const struct kl_file *x = &src->files.v[file];
    struct sim_parser s = {.a = a,
                           .src = src,
                           .d = d,
                           .text = x->text,
                           .p = x->text,
                           .end = x->text + x->len,
                           .base = x->base};
    uint32_t before = d->nerr;
    s.names.a = s.consts.a = s.forms.a = a;
    s.cst.a = a;
    s.m = kl_new(a, struct kl_sim);
    kl_push(a, &s.parent, 0u); /* the module's scope */
    kl_push(a, &s.loc, ((struct sim_loc){0}));
    for (size_t i = 0; i < sizeof sregs / sizeof *sregs; i++) {
        struct sim_decl r = {.kind = DECL_SPECIAL, .special = sregs[i].what, .size = sregs[i].size};
        kl_sp_declare(&s, sregs[i].text, (uint32_t)strlen(sregs[i].text), r);
    }
    for (;;) {
        kl_sp_skip(&s);
        if (s.p >= s.end || *s.p == 0)
            break;
        if (!toplevel(&s)) {
            s.scope = 0;
            if (d->nerr == before)
                kl_sp_error(&s, KL_K1602, s.p, "this is not understood");
            if (d->nerr >= KL_MAX_ERRORS)
                break;
            /* at the next directive that begins a line */
            do
                skip_line(&s), s.p += s.p < s.end;
            while (s.p < s.end && *s.p != '.');
        }
    }
    if (d->nerr != before)
        return NULL;
    s.m->src = src;
    s.m->fn = s.fn.v, s.m->nfn = s.fn.n;
    s.m->cst = s.cst.s;
    s.m->file = s.file.v, s.m->nfile = s.file.n;
    s.m->loc = s.loc.v, s.m->nloc = s.loc.n;
    s.m->var = s.var.v, s.m->nvar = s.var.n;
    return s.m;
}

const kl_sim_entry *kl_sim_at(const kl_sim *m, uint32_t i)
{
    return i < m->nfn ? &m->fn[i].pub : NULL;
}

const kl_sim_entry *kl_sim_find(const kl_sim *m, const char *name)
{
    for (uint32_t i = 0; i < m->nfn; i++)
        if (strcmp(m->fn[i].pub.name, name) == 0)
            return &m->fn[i].pub;
    return NULL;
}
