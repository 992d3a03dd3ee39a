/* words.c - the words of an instruction, like mad.lo.s32, to a row of ptx.def. */
#include "sim/exec.h"
#include "sim/parse.h"

static const struct tok {
    const char *text;
    char cls;
    uint8_t value;
} toks[] = {
#define TOK(text, cls, value) {#text, cls, value},
#include "sim/tok.def"
};

static const struct tok *tok_find(const char *s, uint32_t n)
{
    for (size_t i = 0; i < sizeof toks / sizeof *toks; i++)
        if (strlen(toks[i].text) == n && memcmp(toks[i].text, s, n) == 0)
            return &toks[i];
    return NULL;
}

enum { MAX_WORDS = 24 };
struct word {
    const char *s;
    uint32_t n;
    const struct tok *t;
};

/* Splits at dots, and unknown words at '_': cp.async.wait_group is cp_async_wait_group. */
static uint32_t split(const char *s, uint32_t n, struct word w[MAX_WORDS], struct sim_form *f)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < n;) {
        uint32_t j = i;
        while (j < n && s[j] != '.')
            j++;
        uint32_t len = j - i;
        const char *colon = memchr(s + i, ':', len);
        if (colon && len > 4 && memcmp(s + i, "L", 1) == 0) {
            f->policy |= len == 14 && memcmp(s + i, "L2::cache_hint", 14) == 0;
            len = (uint32_t)(colon - (s + i));
        } else if (colon) {
            f->proto.cluster |= len == 15 && memcmp(s + i, "shared::cluster", 15) == 0;
            len = (uint32_t)(colon - (s + i)); /* shared::cta is shared */
        }
        const struct tok *t = tok_find(s + i, len);
        for (uint32_t b = i; b <= i + len;) {
            uint32_t e = b;
            while (e < i + len && (t || s[e] != '_'))
                e++;
            if (k == MAX_WORDS)
                return SIM_NONE;
            w[k++] = (struct word){s + b, e - b, t};
            b = e + 1;
        }
        i = j + 1;
    }
    return k;
}

/* Whether the words are row r; each goes to the row's own form or to a class it allows. */
static bool fits(const struct sim_row *r, const struct word *w, uint32_t n, bool own[MAX_WORDS])
{
    const char *id = r->id;
    for (uint32_t i = 0; i < n; i++) {
        own[i] = strncmp(id, w[i].s, w[i].n) == 0 && (id[w[i].n] == '_' || id[w[i].n] == 0);
        if (own[i])
            id += w[i].n + (id[w[i].n] == '_');
        else if (i == 0 || !w[i].t || !strchr(r->opt, w[i].t->cls))
            return false;
    }
    return *id == 0;
}

static bool words(struct sim_form *f, const struct word *w, uint32_t n, const bool *own)
{
    struct sim_ins *p = &f->proto;
    const char *opt = kl_sim_rows[f->row].opt;
    uint32_t types = 0, want = 0;
    p->vec = 1;
    for (; *opt; opt++)
        want += *opt == 'T';
    for (uint32_t i = 1; i < n; i++) {
        const struct tok *t = w[i].t;
        if (t && t->cls == 'T') {
            if (!own[i]) {
                if (!want)
                    return false;
                want--;
            }
            if (types++ == 0)
                p->type = t->value;
            else
                p->type2 = t->value;
        }
        if (!t || own[i])
            continue;
        switch (t->cls) {
        case 'V': p->vec = t->value; break;
        case 'C': p->cmp = (uint8_t)(t->value + 1); break;
        case 'B': p->boolop = t->value; break;
        case 'R': p->round = t->value, p->has_round = true; break;
        case 'I': p->iround = t->value, p->has_iround = true; break;
        case 'F': p->ftz = true; break;
        case 'S': p->sat = true; break;
        case 'N': p->nan = true; break;
        case 'L': p->relu = true; break;
        case 'Y': p->satfinite = true; break;
        case 'O':
            p->strong |= t->value != ORD_WEAK;
            p->order = t->value > p->order ? t->value : p->order;
            break;
        case 'P': p->in_cta |= t->value == 1; break;
        case 'M':
        case 'J': p->mode = t->value; break;
        default: break;
        }
    }
    return want == 0;
}

void kl_sp_form(struct sim_form *f, const char *s, uint32_t n)
{
    struct word w[MAX_WORDS] = {{0}};
    bool own[MAX_WORDS];
    memset(f, 0, sizeof *f);
    f->row = SIM_NONE;
    uint32_t k = split(s, n, w, f);
    bool cluster = f->proto.cluster;
    for (uint32_t r = 0; k != SIM_NONE && k && r < kl_sim_nrows; r++) {
        if (!fits(&kl_sim_rows[r], w, k, own))
            continue;
        memset(&f->proto, 0, sizeof f->proto);
        f->proto.cluster = cluster;
        f->row = r;
        if (!words(f, w, k, own)) {
            f->row = SIM_NONE;
            continue;
        }
        struct sim_ins *p = &f->proto;
        p->kind = kl_sim_rows[r].kind;
        p->fn = kl_sim_rows[r].fn;
        kl_sim_finish_form(p, &kl_sim_rows[r]);
        return;
    }
}
