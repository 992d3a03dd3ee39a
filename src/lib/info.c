/* info.c - version, statuses and element types as text. */
#include "base/elem.h"
#include "kiln.h"

#ifndef KL_BUILD_ID
#define STR1(x)     #x
#define STR(x)      STR1(x)
#define KL_BUILD_ID STR(KILN_VERSION_MAJOR) "." STR(KILN_VERSION_MINOR) "." STR(KILN_VERSION_PATCH)
#endif

unsigned kiln_version(void)
{
    return KILN_VERSION;
}

const char *kiln_build_id(void)
{
    return KL_BUILD_ID;
}

static const struct {
    kiln_status s;
    const char *name, *text;
} statuses[] = {
#define KILN_X(name, num, text) {KILN_##name, "KILN_" #name, text},
    KILN_STATUS_MAP(KILN_X)
#undef KILN_X
};

const char *kiln_status_name(kiln_status s)
{
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].s == s)
            return statuses[i].name;
    return "KILN_?";
}

const char *kiln_status_text(kiln_status s)
{
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].s == s)
            return statuses[i].text;
    return "unknown status";
}

/* The public numbers are those of elem.def; a difference does not compile. */
#define ELEM(name, code, bytes, kind, ctype, acc, doc)                                             \
    _Static_assert((code) == KL_##name, "elem.def and enum kl_elem");
#include "base/elem.def"
/* clang-format off */
_Static_assert((int)KILN_BOOL == KL_bool && (int)KILN_I8 == KL_i8 && (int)KILN_I16 == KL_i16 &&
                   (int)KILN_I32 == KL_i32 && (int)KILN_I64 == KL_i64 && (int)KILN_U8 == KL_u8 &&
                   (int)KILN_U16 == KL_u16 && (int)KILN_U32 == KL_u32 &&
                   (int)KILN_U64 == KL_u64 && (int)KILN_F16 == KL_f16 &&
                   (int)KILN_BF16 == KL_bf16 && (int)KILN_F32 == KL_f32 &&
                   (int)KILN_F64 == KL_f64 && (int)KILN_F8E4M3 == KL_f8e4m3 &&
                   (int)KILN_F8E5M2 == KL_f8e5m2,
               "kiln.h and elem.def");
/* clang-format on */

const char *kiln_dtype_name(kiln_dtype t)
{
    unsigned i = (unsigned)t;
    return i < KL_NELEM && kl_elems[i].name && kl_elems[i].bytes ? kl_elems[i].name : "none";
}

size_t kiln_dtype_size(kiln_dtype t)
{
    unsigned i = (unsigned)t;
    return i < KL_NELEM ? kl_elems[i].bytes : 0;
}
