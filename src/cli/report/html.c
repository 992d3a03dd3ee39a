/* html.c - text, figures and JSON on the page of `kiln report`.  All that comes from files and
 * kernels goes through kl_html_text or kl_html_json. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report/report.h"

/* ---- escapes ---- */

/* Characters that turn the direction of text or end a line unseen. */
static bool turns(uint32_t c)
{
    return (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x200e ||
           c == 0x200f || c == 0x61c;
}

/* Length of the UTF-8 character at s, 0: it is none, or one that HTML does not allow. */
static size_t utf8(const unsigned char *s, size_t left)
{
    size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc2 ? 2 : 0;
    uint32_t c = n < 2 ? s[0] : s[0] & (0x7fu >> n);
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (!n || n > left || s[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    if (n > 1 && c < least[n])
        return 0;
    bool control = (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7f && c < 0xa0);
    bool never = (c >= 0xd800 && c < 0xe000) || (c & 0xfffe) == 0xfffe ||
                 (c >= 0xfdd0 && c < 0xfdf0) || c > 0x10ffff;
    return control || never || turns(c) ? 0 : n;
}

void kl_html_text(FILE *f, const char *s, size_t n)
{
    for (size_t i = 0, k; i < n; i += k) {
        k = utf8((const unsigned char *)s + i, n - i);
        if (!k) { /* also what would turn the direction of the text */
            k = 1;
            while (i + k < n && ((unsigned char)s[i + k] & 0xc0) == 0x80)
                k++;
            fputs("\xef\xbf\xbd", f);
            continue;
        }
        switch (s[i]) {
        case '<': fputs("&lt;", f); break;
        case '>': fputs("&gt;", f); break;
        case '&': fputs("&amp;", f); break;
        case '"': fputs("&quot;", f); break;
        case '\'': fputs("&#39;", f); break;
        default: fwrite(s + i, 1, k, f);
        }
    }
}

void kl_html(FILE *f, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    for (const char *p = fmt; *p;) {
        size_t n = strcspn(p, "%");
        fwrite(p, 1, n, f);
        p += n;
        if (!*p)
            break;
        char spec[16];
        n = 1 + strcspn(p + 1, "sdufglc%") + 1;
        if (p[1] == 'l' && p[2] == 'l')
            n = 4;
        snprintf(spec, sizeof spec, "%.*s", (int)n, p);
        const char *s;
        switch (p[n - 1]) {
        case 's':
            s = va_arg(ap, const char *);
            s = s ? s : "";
            kl_html_text(f, s, strlen(s));
            break;
            /* the formats are those of this folder, and checked at each call */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        case 'd':
        case 'u':
            if (n == 4)
                fprintf(f, spec, va_arg(ap, long long));
            else
                fprintf(f, spec, va_arg(ap, int));
            break;
        case 'f':
        case 'g': fprintf(f, spec, va_arg(ap, double)); break;
#pragma GCC diagnostic pop
        case 'c': fputc(va_arg(ap, int), f); break;
        default: fputc('%', f);
        }
        p += n;
    }
    va_end(ap);
}

void kl_html_json(FILE *f, const char *s)
{
    for (; *s; s++) {
        const unsigned char *c = (const unsigned char *)s;
        bool general = c[0] == 0xe2 && (c[1] == 0x80 || c[1] == 0x81); /* U+2000 to U+207F */
        unsigned point = general ? 0x2000 + (c[1] & 1u) * 64 + (c[2] & 63u) : 0;
        if (*s == '<') { /* this and what follows stands only inside strings */
            fputs("\\u003c", f);
        } else if (turns(point)) {
            fprintf(f, "\\u%04x", point);
            s += 2;
        } else {
            fputc(*s, f);
        }
    }
}

void kl_html_ticks(FILE *f, const char *s)
{
    for (const char *from, *to; (from = strchr(s, '`')) && (to = strchr(from + 1, '`')); s = to + 1) {
        kl_html_text(f, s, (size_t)(from - s));
        fputs("<code>", f);
        kl_html_text(f, from + 1, (size_t)(to - from - 1));
        fputs("</code>", f);
    }
    kl_html_text(f, s, strlen(s));
}

/* ---- tables ---- */

void kl_table_begin(FILE *f, const char *cls, const char *label, const char *columns)
{
    kl_html(f,
            "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"%s\"><table "
            "class=\"%s\"><caption>%s</caption><thead><tr>",
            label, cls, label);
    for (const char *s = columns; *s; s += *s == '|') {
        bool number = *s == '#';
        size_t n = strcspn(s += number, "|");
        kl_html(f, "<th scope=\"col\" class=\"%s\">", number ? "n" : "");
        kl_html_text(f, s, n);
        fputs("</th>", f);
        s += n;
    }
    fputs("</tr></thead><tbody>\n", f);
}

void kl_table_end(FILE *f)
{
    fputs("</tbody></table></div>\n", f);
}

void kl_figures_begin(FILE *f, const char *columns)
{
    fputs("<details class=\"data\"><summary>Figures of this chart</summary>\n", f);
    kl_table_begin(f, "", "Figures", columns);
}

void kl_figures_end(FILE *f)
{
    kl_table_end(f);
    fputs("</details>\n", f);
}

/* ---- figures ---- */

/* Digits in groups of three. */
static void group(const char *digits, char *out)
{
    size_t n = strlen(digits), k = 0;
    for (size_t i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0)
            out[k++] = ',';
        out[k++] = digits[i];
    }
    out[k] = 0;
}

const char *kl_rep_num(double v, char buf[32])
{
    char d[32];
    double a = fabs(v);
    if (!isfinite(v))
        snprintf(buf, 32, "–");
    else if (v >= 1e15)
        snprintf(buf, 32, "%.3g", v);
    else if (a >= 1000 && v > 0) {
        snprintf(d, sizeof d, "%.0f", v);
        group(d, buf);
    } else if (a == floor(a))
        snprintf(buf, 32, "%.0f", v);
    else
        snprintf(buf, 32, a >= 100 ? "%.0f" : a >= 10 ? "%.1f" : a >= 1 ? "%.2f" : "%.3g", v);
    return buf;
}

const char *kl_rep_ms(double ms, char buf[32])
{
    double r = ms * 1.0005; /* 999.9 µs are printed as a millisecond */
    const char *unit = r >= 1000 ? "s" : r >= 1 ? "ms" : r >= 1e-3 ? "µs" : "ns";
    double v = r >= 1000 ? ms / 1000 : r >= 1 ? ms : r >= 1e-3 ? ms * 1e3 : ms * 1e6;
    if (!(ms >= 0))
        snprintf(buf, 32, "–");
    else
        snprintf(buf, 32, v >= 100 ? "%.0f %s" : v >= 10 ? "%.1f %s" : "%.2f %s", v, unit);
    return buf;
}

void kl_html_num(FILE *f, double v, const char *unit)
{
    char buf[32];
    if (isfinite(v))
        kl_html(f, "<td class=\"n\">%s%s</td>", kl_rep_num(v, buf), unit);
    else
        kl_html(f, "<td class=\"n dim\">–</td>");
}

void kl_html_share(FILE *f, double v)
{
    if (v > -1e9 && v < 1e9)
        kl_html(f, "<td class=\"n\">%.1f%%</td>", v * 100);
    else
        fputs("<td class=\"n dim\">–</td>", f);
}

/* ---- JSON ---- */

double kl_jnum(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    return json_is_number(v) ? json_number_value(v) : (double)NAN;
}

long long kl_jint(const json_t *o, const char *key)
{
    double v = kl_jnum(o, key);
    return v > -9e15 && v < 9e15 ? (long long)v : 0;
}

bool kl_rep_drawable(double v)
{
    return v > 1e-9 && v < 1e15;
}

const char *kl_jstr(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

const json_t *kl_jat(const json_t *o, const char *a, const char *b)
{
    const json_t *v = json_object_get(o, a);
    return b ? json_object_get(v, b) : v;
}
