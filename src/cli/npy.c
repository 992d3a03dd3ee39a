/* npy.c - reading and writing .npy files (versions 1.0, 2.0 and 3.0).
 *
 * A file is 6 bytes of magic, the version, a little-endian header length (2 bytes in 1.0, else 4),
 * a header that is a Python dictionary with exactly the keys descr, fortran_order and shape, and
 * the data.  The header is parsed strictly: whatever is not that dictionary is refused.  Sizes are
 * checked without overflow and must match the file exactly: a file that is too long was most
 * likely damaged or holds a second array, and its shape cannot be trusted either. */
#include "cli/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
enum { MOST_HEADER = 1 << 20 };

/* What `descr` may say.  Without an element type: NumPy does not know the type, and writes so what
 * extensions of it add (bf16, 8-bit floats); who reads it says what it is. */
static const struct {
    char descr[4];
    uint8_t elem;
} descrs[] = {
    {"|b1", KL_bool}, {"|i1", KL_i8},  {"<i1", KL_i8},  {"|u1", KL_u8},  {"<u1", KL_u8},
    {"<i2", KL_i16},  {"<u2", KL_u16}, {"<i4", KL_i32}, {"<u4", KL_u32}, {"<i8", KL_i64},
    {"<u8", KL_u64},  {"<f2", KL_f16}, {"<f4", KL_f32}, {"<f8", KL_f64}, {"|V2", KL_elem_none},
    {"<V2", KL_elem_none}, {"|V1", KL_elem_none}, {"<V1", KL_elem_none}, {"<f1", KL_elem_none},
};

struct reader {
    const char *p, *end;
    char *msg;
    size_t nmsg;
};

#define FAIL(msg, nmsg, ...) (snprintf((msg), (nmsg), __VA_ARGS__), false)

static void blanks(struct reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\n' || *r->p == '\t'))
        r->p++;
}

static bool take(struct reader *r, char c)
{
    blanks(r);
    if (r->p == r->end || *r->p != c)
        return false;
    r->p++;
    return true;
}

static bool word(struct reader *r, const char *w)
{
    size_t n = strlen(w);
    blanks(r);
    if ((size_t)(r->end - r->p) < n || memcmp(r->p, w, n) != 0)
        return false;
    r->p += n;
    return true;
}

/* 'text' or "text" without escapes, into out. */
static bool string(struct reader *r, char *out, size_t cap)
{
    blanks(r);
    if (r->p == r->end || (*r->p != '\'' && *r->p != '"'))
        return FAIL(r->msg, r->nmsg, "malformed header: a quoted string is expected");
    char quote = *r->p++;
    size_t n = 0;
    while (r->p < r->end && *r->p != quote) {
        if (n + 1 >= cap || *r->p < ' ' || *r->p > '~' || *r->p == '\\')
            return FAIL(r->msg, r->nmsg, "malformed header: an unexpected string");
        out[n++] = *r->p++;
    }
    out[n] = 0;
    if (r->p == r->end)
        return FAIL(r->msg, r->nmsg, "malformed header: a string does not end");
    r->p++;
    return true;
}

static bool parse_descr(struct reader *r, struct kl_npy *out)
{
    blanks(r);
    if (r->p < r->end && *r->p == '[')
        return FAIL(r->msg, r->nmsg, "structured element types are not supported");
    if (!string(r, out->descr, sizeof out->descr))
        return false;
    for (size_t i = 0; i < sizeof descrs / sizeof *descrs; i++)
        if (strcmp(out->descr, descrs[i].descr) == 0) {
            out->elem = (enum kl_elem)descrs[i].elem;
            out->bytes = (uint32_t)(out->descr[2] - '0');
            return true;
        }
    if (out->descr[0] == '>')
        return FAIL(r->msg, r->nmsg, "elements are big-endian (%s); save them as little-endian",
                    out->descr);
    if (out->descr[1] == 'O')
        return FAIL(r->msg, r->nmsg, "elements are Python objects (%s), which is refused",
                    out->descr);
    return FAIL(r->msg, r->nmsg, "element type %s is not supported", out->descr);
}

static bool parse_extent(struct reader *r, struct kl_npy *out)
{
    uint64_t v = 0;
    const char *start = r->p;
    while (r->p < r->end && *r->p >= '0' && *r->p <= '9') {
        uint64_t d = (uint64_t)(*r->p++ - '0');
        if (v > (INT64_MAX - d) / 10u)
            return FAIL(r->msg, r->nmsg, "an extent of the shape is too large");
        v = v * 10 + d;
    }
    if (r->p == start)
        return FAIL(r->msg, r->nmsg, "malformed header: the shape is not a tuple of numbers");
    if (r->p < r->end && *r->p == 'L') /* Python 2 wrote its long integers so */
        r->p++;
    if (out->ndim == KL_NPY_DIMS)
        return FAIL(r->msg, r->nmsg, "more than %d dimensions", KL_NPY_DIMS);
    out->shape[out->ndim++] = (int64_t)v;
    return true;
}

static bool parse_shape(struct reader *r, struct kl_npy *out)
{
    if (!take(r, '('))
        return FAIL(r->msg, r->nmsg, "malformed header: the shape is not a tuple of numbers");
    if (take(r, ')'))
        return true;
    for (;;) {
        blanks(r);
        if (!parse_extent(r, out))
            return false;
        bool comma = take(r, ',');
        if (take(r, ')')) /* (3) is a number in Python, (3,) a tuple */
            return comma || out->ndim > 1 ||
                   FAIL(r->msg, r->nmsg, "malformed header: the shape is not a tuple");
        if (!comma)
            return FAIL(r->msg, r->nmsg, "malformed header: the shape is not a tuple of numbers");
    }
}

static bool parse_dict(struct reader *r, struct kl_npy *out)
{
    enum { DESCR = 1, ORDER = 2, SHAPE = 4 };
    unsigned seen = 0;
    char key[16];
    if (!take(r, '{'))
        return FAIL(r->msg, r->nmsg, "malformed header: it is not a dictionary");
    while (!take(r, '}')) {
        if (!string(r, key, sizeof key))
            return false;
        unsigned k = strcmp(key, "descr") == 0           ? DESCR
                     : strcmp(key, "fortran_order") == 0 ? ORDER
                     : strcmp(key, "shape") == 0         ? SHAPE
                                                         : 0;
        if (!k || (seen & k))
            return FAIL(r->msg, r->nmsg, "malformed header: key `%s` %s", key,
                        k ? "appears twice" : "is unknown");
        seen |= k;
        if (!take(r, ':'))
            return FAIL(r->msg, r->nmsg, "malformed header: no `:` after a key");
        if (k == ORDER) {
            out->fortran = word(r, "True");
            if (!out->fortran && !word(r, "False"))
                return FAIL(r->msg, r->nmsg, "malformed header: fortran_order is no truth value");
        } else if (!(k == DESCR ? parse_descr(r, out) : parse_shape(r, out))) {
            return false;
        }
        if (!take(r, ',')) {
            if (!take(r, '}'))
                return FAIL(r->msg, r->nmsg, "malformed header: no `,` between its entries");
            break;
        }
    }
    blanks(r);
    if (r->p != r->end)
        return FAIL(r->msg, r->nmsg, "malformed header: text after the dictionary");
    if (seen != (DESCR | ORDER | SHAPE))
        return FAIL(r->msg, r->nmsg, "malformed header: it lacks `%s`",
                    !(seen & DESCR)   ? "descr"
                    : !(seen & ORDER) ? "fortran_order"
                                      : "shape");
    return true;
}

/* Strides and size; false if a number does not fit.  Extents of 0 still must give strides that
 * fit, so they count as 1 there. */
static bool lay_out(struct kl_npy *n)
{
    int64_t step = 1, count = 1;
    for (int32_t i = 0; i < n->ndim; i++) {
        int32_t d = n->fortran ? i : n->ndim - 1 - i;
        n->stride[d] = step;
        if (__builtin_mul_overflow(step, n->shape[d] ? n->shape[d] : 1, &step) ||
            __builtin_mul_overflow(count, n->shape[d], &count))
            return false;
    }
    int64_t all;
    if (__builtin_mul_overflow(step, (int64_t)n->bytes, &all))
        return false;
    n->size = (uint64_t)count * n->bytes;
    return true;
}

bool kl_npy_parse(const void *buf, size_t len, uint64_t file_size, struct kl_npy *out, char *msg,
                  size_t nmsg)
{
    const unsigned char *b = buf;
    memset(out, 0, sizeof *out);
    if (len < 10 || memcmp(b, magic, 6) != 0)
        return FAIL(msg, nmsg, file_size == 0 ? "the file is empty" : "it is not a .npy file");
    if (b[6] < 1 || b[6] > 3 || b[7] != 0)
        return FAIL(msg, nmsg, "version %d.%d of the format is not known", b[6], b[7]);
    size_t fixed = b[6] == 1 ? 10 : 12;
    if (len < fixed)
        return FAIL(msg, nmsg, "the file ends inside its header");
    uint64_t hlen = b[8] | (uint64_t)b[9] << 8;
    if (b[6] > 1)
        hlen |= (uint64_t)b[10] << 16 | (uint64_t)b[11] << 24;
    if (hlen > MOST_HEADER)
        return FAIL(msg, nmsg, "a header of %llu bytes is not believable",
                    (unsigned long long)hlen);
    if (hlen > len - fixed)
        return FAIL(msg, nmsg, "the file ends inside its header");
    struct reader r = {(const char *)b + fixed, (const char *)b + fixed + hlen, msg, nmsg};
    if (!parse_dict(&r, out))
        return false;
    out->offset = fixed + hlen;
    if (!lay_out(out))
        return FAIL(msg, nmsg, "the shape describes more elements than memory can hold");
    uint64_t have = file_size - out->offset;
    if (out->size != have)
        return FAIL(msg, nmsg, "the file %s: its shape needs %llu bytes of data, %llu are there",
                    have < out->size ? "is truncated" : "is too long",
                    (unsigned long long)out->size, (unsigned long long)have);
    return true;
}

bool kl_npy_view(struct kl_npy *n, enum kl_elem as, char *msg, size_t nmsg)
{
    if (n->elem == as)
        return true;
    bool raw = n->elem == KL_elem_none || kl_elems[n->elem].kind == KL_KIND_UINT;
    if (kl_elems[as].bytes != n->bytes || !raw)
        return FAIL(msg, nmsg, "elements of type %s cannot be viewed as %s", n->descr,
                    kl_elems[as].name);
    n->elem = as;
    return true;
}

bool kl_npy_map(const char *path, struct kl_npyfile *out, char *msg, size_t nmsg)
{
    struct stat st;
    memset(out, 0, sizeof *out);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st)) {
        int err = errno;
        if (fd >= 0)
            close(fd);
        return FAIL(msg, nmsg, "%s", strerror(err));
    }
    if (!S_ISREG(st.st_mode)) {
        snprintf(msg, nmsg, S_ISDIR(st.st_mode) ? "it is a directory" : "it is no regular file");
    } else if (st.st_size == 0) {
        snprintf(msg, nmsg, "the file is empty");
    } else if ((uint64_t)st.st_size > SIZE_MAX) {
        snprintf(msg, nmsg, "the file is larger than the address space");
    } else {
        out->blocklen = (size_t)st.st_size;
        out->block = mmap(NULL, out->blocklen, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
        if (out->block == MAP_FAILED)
            out->block = NULL, snprintf(msg, nmsg, "cannot map it: %s", strerror(errno));
    }
    close(fd);
    return out->block != NULL;
}

bool kl_npy_settle(struct kl_npyfile *out, char *msg, size_t nmsg)
{
    out->data = (char *)out->block + out->head.offset;
    if (out->head.offset % out->head.bytes) { /* an odd header length: legal, but unaligned */
        void *copy = NULL;
        if (posix_memalign(&copy, 64, (size_t)out->head.size + 1)) {
            kl_npy_close(out);
            return FAIL(msg, nmsg, "out of memory");
        }
        memcpy(copy, out->data, (size_t)out->head.size);
        kl_npy_close(out);
        out->block = out->data = copy;
        out->copied = true;
    }
    return true;
}

bool kl_npy_open(const char *path, struct kl_npyfile *out, char *msg, size_t nmsg)
{
    if (!kl_npy_map(path, out, msg, nmsg))
        return false;
    if (!kl_npy_parse(out->block, out->blocklen, out->blocklen, &out->head, msg, nmsg)) {
        kl_npy_close(out);
        return false;
    }
    return kl_npy_settle(out, msg, nmsg);
}

void kl_npy_close(struct kl_npyfile *f)
{
    if (f->block && f->copied)
        free(f->block);
    else if (f->block)
        munmap(f->block, f->blocklen);
    f->block = f->data = NULL;
}

bool kl_npy_knows(enum kl_elem e)
{
    return e != KL_bf16 && e != KL_f8e4m3 && e != KL_f8e5m2;
}

size_t kl_npy_header(enum kl_elem e, int32_t ndim, const int64_t *shape, char out[KL_NPY_HEADER])
{
    static const char *const raw[] = {"", "|u1", "<u2"};
    const char *descr = raw[kl_elems[e].bytes <= 2 ? kl_elems[e].bytes : 0];
    for (size_t i = 0; kl_npy_knows(e) && i < sizeof descrs / sizeof *descrs; i++)
        if (descrs[i].elem == e) {
            descr = descrs[i].descr;
            break;
        }
    /* 8 extents of 19 digits and the fixed text stay well below 512 bytes */
    int n = 10 + snprintf(out + 10, KL_NPY_HEADER - 10,
                          "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int32_t i = 0; i < ndim; i++)
        n += snprintf(out + n, KL_NPY_HEADER - (size_t)n, i ? ", %lld" : "%lld",
                      (long long)shape[i]);
    n += snprintf(out + n, KL_NPY_HEADER - (size_t)n, ndim == 1 ? ",), }" : "), }");
    size_t total = ((size_t)n + 1 + 63) & ~(size_t)63;
    memset(out + n, ' ', total - (size_t)n);
    out[total - 1] = '\n';
    memcpy(out, magic, 6);
    out[6] = 1;
    out[7] = 0;
    out[8] = (char)((total - 10) & 255);
    out[9] = (char)((total - 10) >> 8);
    return total;
}
