/* emit.c - the entry: parameters, the loop over programs, scalars of the launch. */
#include "gen/ptx/ptx.h"

static const struct target {
    uint32_t arch, shared, ctas;
    const char *version, *clusters;
} targets[] = {
#define PTX_TARGET(arch, version, clusters, shared, ctas) {arch, shared, ctas, version, clusters},
#include "gen/ptx/target.def"
};

static const struct target *find_target(const kl_fn *f, uint32_t arch)
{
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (targets[i].arch == arch)
            return &targets[i];
    kl_raise(f->a->env, KILN_E_UNSUPPORTED, "the GPU back end has no target sm_%u", arch);
}

void kl_ptx_prelude(kl_buf *b, const kl_fn *f, const kl_ptx_opts *o, bool clusters)
{
    const struct target *t = find_target(f, o->arch);
    kl_putf(b, ".version %s\n.target sm_%u\n.address_size 64\n", clusters ? t->clusters : t->version,
            t->arch);
    kl_puts(b, ".extern .shared .align 16 .b8 kiln_dynamic[];\n");
}

uint32_t kl_px_cluster_most(const struct pgen *g)
{
    uint32_t most = find_target(g->f, g->o->arch)->ctas;
    return g->o->cluster && g->o->cluster < most ? g->o->cluster : most;
}

/* ---- programs ---- */

/* One step of taking the linear index apart: q / extent d, and the rest; b32 under the fact i32. */
static void split(struct pgen *g, uint32_t d, opnd q, opnd *quo, opnd *rem)
{
    opnd before = d ? kl_px_once(g, CL_B64, "mul.lo.u64 $, %s, %s", g->grid[0], g->grid[1])
                    : g->grid[0];
    /* in a grid of fewer axes nothing is left to divide */
    opnd only = kl_px_once(g, CL_P, "setp.eq.u64 $, %s, %s", g->total, before);
    if (g->o->i32) {
        uint32_t found = kl_px_new_label(g);
        *quo = kl_px_set(g, CL_B32, "mov.u32 $, 0");
        *rem = kl_px_set(g, CL_B32, "mov.u32 $, %s", q);
        kl_px(g, "@%s bra $L%u", only, found);
        opnd n = kl_px_once(g, CL_B32, "cvt.u32.u64 $, %s", g->grid[d]);
        kl_px(g, "div.u32 %s, %s, %s", *quo, q, n);
        opnd below = kl_px_set(g, CL_B32, "mul.lo.u32 $, %s, %s", *quo, n);
        kl_px(g, "sub.u32 %s, %s, %s", *rem, q, below);
        kl_px_label(g, found);
        return;
    }
    opnd big = kl_px_once(g, CL_P, "setp.gt.u64 $, %s, 4294967295", g->total);
    uint32_t wide = kl_px_new_label(g), done = kl_px_new_label(g);
    *quo = kl_px_set(g, CL_B64, "mov.u64 $, 0");
    *rem = kl_px_set(g, CL_B64, "mov.u64 $, %s", q);
    kl_px(g, "@%s bra $L%u", only, done);
    kl_px(g, "@%s bra $L%u", big, wide);
    opnd a = kl_px_set(g, CL_B32, "cvt.u32.u64 $, %s", q);
    opnd b = kl_px_set(g, CL_B32, "cvt.u32.u64 $, %s", g->grid[d]);
    opnd c = kl_px_set(g, CL_B32, "div.u32 $, %s, %s", a, b);
    opnd m = kl_px_set(g, CL_B32, "mul.lo.u32 $, %s, %s", c, b);
    opnd r = kl_px_set(g, CL_B32, "sub.u32 $, %s, %s", a, m);
    kl_px(g, "cvt.u64.u32 %s, %s", *quo, c);
    kl_px(g, "cvt.u64.u32 %s, %s", *rem, r);
    kl_px(g, "bra.uni $L%u", done);
    kl_px_label(g, wide);
    kl_px(g, "div.u64 %s, %s, %s", *quo, q, g->grid[d]);
    opnd mm = kl_px_set(g, CL_B64, "mul.lo.u64 $, %s, %s", *quo, g->grid[d]);
    kl_px(g, "sub.u64 %s, %s, %s", *rem, q, mm);
    kl_px_label(g, done);
}

/* Index of this program along an axis, from its linear index. */
static opnd program_id(struct pgen *g, uint32_t axis)
{
    for (uint32_t d = 0; d < 2 && d <= axis; d++)
        if (!g->pid[d])
            split(g, d, d ? g->over[0] : g->prog, &g->over[d], &g->pid[d]);
    opnd id = axis < 2 ? g->pid[axis] : g->over[1];
    return g->o->i32 ? kl_px_set(g, CL_B64, "cvt.u64.u32 $, %s", id) : id;
}

/* Program ids are found before the body, so that branches may share them. */
static void program_ids(struct pgen *g)
{
    for (uint32_t i = 1; i < g->f->nins; i++) {
        const struct kl_ins *in = &g->f->ins[i];
        if (in->blk.id && in->op == KL_OP_program_id)
            program_id(g, (uint32_t)in->attr.index);
    }
}

static void splat(struct pgen *g, kl_val v, opnd r)
{
    g->val[v.id].l = NULL;
    g->val[v.id].r = kl_new_n(g->a, opnd, 1);
    g->val[v.id].r[0] = r;
}

static void ins(struct pgen *g, kl_val v)
{
    const kl_fn *f = g->f;
    const struct kl_ins *in = kl_in(f, v);
    g->loc = in->loc;
    if (kl_ops[in->op].flags & KL_F_EW) {
        kl_px_ew(g, v);
        return;
    }
    switch (in->op) {
    case KL_OP_const:
        splat(g, v, kl_px_imm(g, (enum kl_elem)kl_type_of(f, v)->elem, in->attr.bits));
        break;
    case KL_OP_param:
    case KL_OP_result: break; /* set by who owns them */
    case KL_OP_program_id: splat(g, v, program_id(g, (uint32_t)in->attr.index)); break;
    case KL_OP_num_programs: splat(g, v, g->grid[in->attr.index]); break;
    case KL_OP_num_sms: splat(g, v, g->sms); break;
    case KL_OP_view: kl_px_view(g, v); break;
    case KL_OP_load: kl_px_load(g, v); break;
    case KL_OP_store: kl_px_store(g, v); break;
    case KL_OP_inside: kl_px_inside(g, v); break;
    case KL_OP_atomic:
    case KL_OP_atomic_load:
    case KL_OP_atomic_store: kl_px_atomic(g, v); break;
    case KL_OP_reduce:
    case KL_OP_reduce_fn:
    case KL_OP_argmax:
    case KL_OP_argmin: kl_px_reduce(g, v); break;
    case KL_OP_scan: kl_px_scan(g, v); break;
    case KL_OP_dot: kl_px_dot(g, v); break;
    case KL_OP_table: kl_px_table(g, v); break;
    case KL_OP_for:
    case KL_OP_while:
    case KL_OP_if: kl_px_flow(g, v); break;
    case KL_OP_yield: break;
    default: kl_px_shape(g, v); break;
    }
}

void kl_px_ins(struct pgen *g, kl_val v)
{
    kl_val outer = g->at;
    g->at = v;
    ins(g, v);
    g->at = outer;
}

void kl_px_block(struct pgen *g, kl_blk b)
{
    kl_each_ins(g->f, b, v)
        kl_px_ins(g, v);
}

/* The body.  What an instruction needs that is computed once stands before the first of them, outside
 * of its loops and branches: not at the very beginning, from where it would be alive all the time. */
static void whole_body(struct pgen *g)
{
    kl_each_ins(g->f, KL_BODY, v) {
        kl_buf pro = g->pro, body = g->body;
        g->pro = (kl_buf){.a = g->a};
        g->body = (kl_buf){.a = g->a};
        kl_px_ins(g, v);
        kl_buf_put(&body, kl_buf_str(&g->pro), g->pro.n);
        kl_buf_put(&body, kl_buf_str(&g->body), g->body.n);
        g->pro = pro;
        g->body = body;
    }
}

/* ---- the entry ---- */

static void parameters(struct pgen *g, kl_buf *head)
{
    const kl_fn *f = g->f;
    uint32_t n = f->nparam + 5;
    kl_putf(head, ".visible .entry %s(\n", g->entry);
    for (uint32_t i = 0; i < n; i++)
        kl_putf(head, "\t.param .u64 %s_%u%s\n", g->entry, i, i + 1 < n ? "," : "");
    kl_puts(head, ")\n");
    g->base = kl_new_n(g->a, opnd, f->nparam + 1);
    for (int i = 0; i < 3; i++)
        g->grid[i] = kl_px_once(g, CL_B64, "ld.param.u64 $, [%s_%u]", g->entry, f->nparam + (uint32_t)i);
    g->total = kl_px_once(g, CL_B64, "ld.param.u64 $, [%s_%u]", g->entry, f->nparam + 3);
    g->sms = kl_px_once(g, CL_B64, "ld.param.u64 $, [%s_%u]", g->entry, f->nparam + 4);
    kl_each_ins(f, KL_BODY, v) {
        const struct kl_ins *in = kl_in(f, v);
        if (in->op != KL_OP_param)
            continue;
        uint32_t i = (uint32_t)in->attr.index;
        opnd raw = kl_px_once(g, CL_B64, "ld.param.u64 $, [%s_%u]", g->entry, i);
        if (f->param[i].use == KL_P_ARRAY) {
            g->base[i] = kl_px_once(g, CL_B64, "cvta.to.global.u64 $, %s", raw);
            continue;
        }
        opnd x = raw;
        enum cls c = kl_px_vcls(g, v);
        if (c == CL_F64)
            x = kl_px_once(g, c, "mov.b64 $, %s", raw);
        else if (c != CL_B64) {
            opnd low = kl_px_once(g, CL_B32, "cvt.u32.u64 $, %s", raw);
            x = c == CL_P     ? kl_px_once(g, c, "setp.ne.u32 $, %s, 0", low)
                : c == CL_B16 ? kl_px_once(g, c, "cvt.u16.u32 $, %s", low)
                : c == CL_F32 ? kl_px_once(g, c, "mov.b32 $, %s", low)
                              : low;
        }
        splat(g, v, x);
    }
}

static bool valid_name(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    return n && !s[n] && !(s[0] >= '0' && s[0] <= '9');
}

/* The text with the sizes that are known now. */
static void put_with_sizes(struct pgen *g, kl_buf *b, kl_buf *text)
{
    static const char mark[] = "KL_REGION_BYTES";
    const char *s = kl_buf_str(text);
    for (const char *at; (at = strstr(s, mark)) != NULL; s = at + sizeof mark - 1) {
        kl_buf_put(b, s, (size_t)(at - s));
        kl_putf(b, "%u", g->region_bytes[0] + (g->clog2 ? MBARRIERS : 0));
    }
    kl_puts(b, s);
}

/* An access whose elements lie a number apart that is known at the launch: each has an address of
 * its own, of two registers. */
static bool spread(const kl_fn *f, kl_val v)
{
    const struct kl_ins *in = kl_in(f, v);
    if (in->op != KL_OP_load && in->op != KL_OP_store)
        return false;
    kl_val u = kl_arg(f, v, 0);
    uint32_t rank = kl_type_of(f, u)->rank;
    return rank && kl_in(f, u)->op == KL_OP_view &&
           kl_in(f, kl_arg(f, u, 1 + 2 * rank))->op != KL_OP_const;
}

static uint32_t carried_tiles(const kl_fn *f, kl_val loop)
{
    uint32_t n = 0, op = kl_in(f, loop)->op;
    if (op != KL_OP_for && op != KL_OP_while)
        return 0;
    for (uint32_t i = op == KL_OP_for ? 3 : 0; i < kl_in(f, loop)->nargs; i++)
        n += kl_numel(kl_type_of(f, kl_arg(f, loop, i))) > 1;
    return n;
}

/* Loads and stores in the blocks of an instruction. */
static uint32_t accesses(const kl_fn *f, kl_val outer)
{
    kl_blk own[2];
    uint32_t n = 0, blocks = kl_blocks(f, outer, own);
    for (uint32_t k = 0; k < blocks; k++)
        kl_each_ins(f, own[k], v)
            n += (kl_in(f, v)->op == KL_OP_load || kl_in(f, v)->op == KL_OP_store) + accesses(f, v);
    return n;
}

/* CTAs of `warps` warps that an SM has room for, if a thread has r registers: a quarter of the SM has
 * 16384, warps take whole ones of 256, and no SM has more than 64 warps and 32 CTAs. */
static uint32_t ctas_of(uint32_t warps, uint32_t r)
{
    uint32_t most = 4 * (512 / r);
    most = (most < 64 ? most : 64) / warps;
    return most < 32 ? most : 32;
}

/* As many registers as leave room for as many CTAs. */
static uint32_t spare(uint32_t warps, uint32_t r)
{
    while (r + 8 <= 248 && ctas_of(warps, r + 8) == ctas_of(warps, r))
        r += 8;
    return r < 248 ? r : 255;
}

/* Registers a thread may have.  What the driver assembles is linked, and of that the assembler
 * does not know how many CTAs share an SM: it takes half as many registers again, and halves the
 * warps that hide the latency.  What is needed is counted from the widest values at work.  In a
 * cluster 64 are enough for 32 elements of a row, the parameters of a norm (a scale, or with 72
 * a scale and a shift) included: four CTAs (three) of 256 threads share an SM. */
static uint32_t register_limit(struct pgen *g)
{
    const kl_fn *f = g->f;
    uint32_t room = 65536 / g->threads, need = g->each + 32;
    uint32_t steps = kl_px_steps(g) == 2 ? 48 : kl_px_steps(g) ? 16 : 0;
    bool narrow = false, wide = false, apart = false;
    bool scalar = false; /* narrow elements one by one */
    uint32_t loads = 0, tiles = 0; /* loads of whole tiles: of at least 4 bytes, all */
    uint32_t beside = 0; /* tiles that a fold or a flip holds beside its operand */
    uint32_t around = 0; /* accesses but one of a loop that carries a tile: what is the same each time */
    for (uint32_t i = 1; i < f->nins; i++) {
        const struct kl_ins *in = &f->ins[i];
        bool several = in->op == KL_OP_reduce_fn && in->nargs > 1;
        if (in->blk.id && (in->op == KL_OP_scan || in->op == KL_OP_flip || several))
            beside = in->nargs > beside ? in->nargs : beside;
        uint32_t carried = in->blk.id ? carried_tiles(f, (kl_val){i}) : 0;
        if (carried > 1)
            beside = 1 + carried;
        uint32_t moves = carried ? accesses(f, (kl_val){i}) : 0;
        around = moves > around + 1 ? moves - 1 : around;
        if (!in->blk.id || !in->type.id || in->op == KL_OP_const)
            continue;
        const struct kl_type *t = &f->type[in->type.id];
        if (t->kind != KL_T_TILE || kl_numel(t) == 1)
            continue;
        wide |= kl_elems[t->elem].bytes == 8;
        apart |= spread(f, (kl_val){i});
        loads += in->op == KL_OP_load && kl_elems[t->elem].bytes >= 4;
        tiles += in->op == KL_OP_load;
        bool small = in->op == KL_OP_load && kl_elems[t->elem].bytes < 4;
        narrow |= small;
        scalar |= small && !kl_px_access_vec(g, (kl_val){i});
        if (in->op == KL_OP_dot)
            return room < 255 ? room : 255;
    }
    if (beside)
        need += beside * g->each + 16;
    if (around) {
        need += 3 * around;
        narrow = false;
    }
    if (wide) /* in a cluster one CTA has an SM either way */
        need += 2 * g->each + (g->clog2 ? 16 : 0);
    if (steps && g->each < 32) /* functions in full keep several elements in flight */
        need += g->each < 16 && steps > 32 ? 32 : steps;
    else if (!narrow && !wide && g->each >= 16)
        need += g->threads >= 512 ? 0 : g->clog2 ? (loads > 2 ? 8 : 0) : steps ? 8 : 16;
    if (!steps && !wide && g->each < 32 && kl_px_has_math(f)) /* some elements after the others */
        need = g->each + (tiles > 1 ? 40 : 24);
    if (apart)
        need += 2 * g->each;
    if (g->clog2 && g->each >= 128) /* three CTAs of 128 threads an SM */
        need = need < 168 ? 168 : need;
    if (scalar && g->each >= 16 && need < g->each + 40) /* all are there before they are converted */
        need = g->each + 40;
    uint32_t held = kl_px_pressure(g) + 20; /* addresses, conditions */
    need = need < held ? held : need;
    need = (need + 7) & ~7u;
    need = need < 32 ? 32 : need;
    need = need > room ? room : need;
    return need > 255 ? 255 : spare(g->warps, need);
}

/* What all CTAs do when they begin: make the mbarriers, and say that they run. */
static void put_begin(struct pgen *g, kl_buf *b)
{
    if (!g->opened)
        return;
    if (g->pushes) {
        opnd one = "%p_one";
        kl_putf(b, "\t.reg .pred %s;\n\tsetp.eq.u32 %s, %s, 0;\n", one, one, g->tid);
        for (uint32_t k = 0; k < REGIONS; k++)
            kl_putf(b, "\t@%s mbarrier.init.shared.b64 [%s+%u], 1;\n", one, g->smem, 8 * k);
        kl_putf(b, "\tmov.b32 %s, 0;\n", g->turns);
        kl_putf(b, "\t@%s fence.mbarrier_init.release.cluster;\n", one);
    }
    kl_puts(b, "\tbarrier.cluster.arrive.relaxed.aligned;\n");
}

static void put_files(struct pgen *g, kl_buf *b)
{
    for (uint32_t i = 0; i < g->files.n; i++) {
        kl_putf(b, ".file %u \"", kl_px_file(g, i));
        for (const char *c = g->files.v[i]; *c; c++) {
            bool plain = *c != '"' && *c != '\\' && (unsigned char)*c >= ' ';
            kl_buf_put(b, plain ? c : "_", 1);
        }
        kl_puts(b, "\"\n");
    }
}

/* The text around what was emitted.  head: name and parameters. */
static void put_entry(struct pgen *g, kl_buf *b, const kl_buf *head)
{
    static const char *const prefix[CL_N] = {"%p", "%h", "%r", "%rd", "%f", "%fd"};
    uint32_t shared = g->out->shared, dynamic = g->out->dynamic;
    put_files(g, b);
    kl_puts(b, kl_buf_str(&g->data));
    kl_puts(b, head->s);
    kl_putf(b, ".maxntid %u, 1, 1\n.maxnreg %u\n", g->threads, register_limit(g));
    if (g->clog2)
        kl_putf(b, ".explicitcluster\n.reqnctapercluster %u, 1, 1\n", g->ctas);
    kl_puts(b, "{\n");
    for (int c = 0; c < CL_N; c++)
        if (g->nreg[c])
            kl_putf(b, "\t.reg .%s %s<%u>;\n", kl_px_b((enum cls)c), prefix[c], g->nreg[c]);
    if (shared)
        kl_putf(b, "\t.shared .align 16 .b8 %s_shared[%u];\n", g->entry, shared);
    if (shared || dynamic)
        kl_putf(b, "\tmov.u32 %s, %s%s;\n", g->smem, dynamic ? "kiln_dynamic" : g->entry,
                dynamic ? "" : "_shared");
    put_with_sizes(g, b, &g->pro);
    put_begin(g, b);
    if (g->turn)
        kl_putf(b, "\tmov.u32 %s, 0;\n", g->turn);
    put_with_sizes(g, b, &g->body);
    kl_puts(b, "}\n");
}

/* The body for one program: all run at once. */
static void one_program(struct pgen *g, opnd cta)
{
    g->prog = cta;
    program_ids(g);
    whole_body(g);
    kl_px(g, "ret");
}

/* The body once for each program of the CTA, by steps of n programs. */
static void program_loop(struct pgen *g, opnd cta, opnd n)
{
    uint32_t top = kl_px_new_label(g), end = kl_px_new_label(g);
    opnd first = kl_px_once(g, CL_B64, "cvt.u64.u32 $, %s", cta);
    g->turn = kl_px_reg(g, CL_B32);
    kl_px_label(g, top);
    g->prog = kl_px_set(g, CL_B64, "mad.wide.u32 $, %s, %s, %s", g->turn, n, first);
    program_ids(g);
    whole_body(g);
    if (g->no_cluster && g->clog2)
        return;
    kl_px(g, "add.u32 %s, %s, 1", g->turn, g->turn);
    opnd next = kl_px_set(g, CL_B64, "mad.wide.u32 $, %s, %s, %s", g->turn, n, first);
    opnd more = kl_px_set(g, CL_P, "setp.lt.u64 $, %s, %s", next, g->total);
    kl_px(g, "@!%s bra $L%u", more, end);
    if (g->p.dirty & 3)
        kl_px_barrier(g);
    if (g->opened) /* the next program waits before its first push */
        kl_px(g, "barrier.cluster.arrive.aligned");
    kl_px(g, "bra.uni $L%u", top);
    kl_px_label(g, end);
    kl_px(g, "ret");
}

/* One way to lay the tiles out; false: something crosses CTAs that cannot, or there is not enough
 * shared memory for it; do it without. */
static bool emit(kl_buf *b, const kl_fn *f, const kl_ptx_opts *o, bool no_cluster, kl_ptxinfo *out)
{
    struct pgen gen = {.f = f, .a = f->a, .o = o, .out = out, .no_cluster = no_cluster}, *g = &gen;
    const struct target *t = find_target(f, o->arch);
    kl_buf head = {.a = f->a};
    g->pro.a = g->body.a = g->data.a = f->a;
    g->cache.a = f->a;
    g->to = &g->body;
    g->shared_max = t->shared;
    g->entry = o->symbol ? o->symbol
                         : kl_printf(f->a, "kiln_%s", valid_name(f->name) ? f->name : "kernel");
    g->val = kl_new_n(f->a, struct pval, f->nins);
    g->view = kl_new_n(f->a, struct pview *, f->nins);
    g->ctas = 1;
    g->tid = kl_px_once(g, CL_B32, "mov.u32 $, %%tid.x");
    kl_px_align(g);
    g->range = kl_ranges(f);
    kl_px_assign(g);
    kl_px_trace_begin(g);

    parameters(g, &head);
    g->smem = "kl_smem_base";
    opnd cta = kl_px_once(g, CL_B32, "mov.u32 $, %%ctaid.x");
    opnd ncta = o->i32 ? NULL : kl_px_once(g, CL_B32, "mov.u32 $, %%nctaid.x");
    if (g->clog2) { /* a program is a cluster */
        g->shared_max -= MBARRIERS;
        g->rank = kl_px_once(g, CL_B32, "mov.u32 $, %%cluster_ctarank");
        cta = kl_px_once(g, CL_B32, "shr.u32 $, %s, %u", cta, g->clog2);
        ncta = ncta ? kl_px_once(g, CL_B32, "shr.u32 $, %s, %u", ncta, g->clog2) : NULL;
    }
    g->smem = kl_px_reg(g, CL_B32);
    kl_px_trace_zero(g, g->smem);
    if (o->i32)
        one_program(g, cta);
    else
        program_loop(g, cta, ncta);
    if (g->no_cluster && g->clog2)
        return false;

    uint32_t bytes = g->region_bytes[0] + g->region_bytes[1];
    bytes += g->pushes ? MBARRIERS : 0;
    if (bytes > t->shared && g->clog2)
        return false;
    if (bytes > t->shared)
        kl_px_unsupported(g, "%u bytes of shared memory are needed; sm_%u has %u for a CTA", bytes,
                          t->arch, t->shared);
    bool dynamic = bytes > 48 * 1024;
    *out = (kl_ptxinfo){.entry = g->entry,
                        .threads = g->threads,
                        .shared = dynamic ? 0 : bytes,
                        .dynamic = dynamic ? bytes : 0,
                        .nparam = f->nparam + 5,
                        .cluster = g->ctas,
                        .grid_limit = INT32_MAX,
                        .approximate = g->approximate};
    put_entry(g, b, &head);
    return true;
}

void kl_ptx_emit(kl_buf *b, const kl_fn *f, const kl_ptx_opts *o, kl_ptxinfo *out)
{
    if (!emit(b, f, o, false, out))
        emit(b, f, o, true, out);
}
