/* sarif.c - diagnostics as SARIF 2.1.0.
 *
 * A code is a rule, with the page of `kiln help`; a diagnostic is a result.  Notes with a place are
 * related locations, others further paragraphs of the message.  What a comment allows is a result
 * with a suppression.  Columns count characters there, bytes in a kiln_place. */
#include "cli/sarif.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/case.h"
#include "cli/json.h"
#include "tool.h"

static const char schema[] =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/* A path as a URI: bytes that have a meaning there, or none, are written as %20. */
static json_t *uri(const char *path)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t n = 0;
    bool whole = path[0] == '/';
    char *to = kl_xalloc(3 * strlen(path) + 8);
    if (whole)
        memcpy(to, "file://", n = 7);
    for (const char *p = path; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (c < 0x80 && (isalnum(c) || strchr("/-._~", c))) {
            to[n++] = (char)c;
        } else {
            to[n++] = '%';
            to[n++] = hex[c >> 4];
            to[n++] = hex[c & 15];
        }
    }
    to[n] = 0;
    json_t *j = json_string(to);
    free(to);
    return j;
}

/* Column of a byte, both from 1, in the line's text. */
static json_int_t column(const char *line, uint32_t col)
{
    json_int_t n = col;
    size_t len = line ? strlen(line) : 0;
    for (size_t i = 0; i + 1 < col && i < len; i++)
        n -= ((unsigned char)line[i] & 0xc0) == 0x80;
    return n < 1 ? 1 : n;
}

static json_t *region(const kiln_place *p)
{
    return json_pack("{s:I, s:I, s:I}", "startLine", (json_int_t)(p->line ? p->line : 1), "startColumn",
                     column(p->text, p->col), "endColumn",
                     column(p->text, p->end_col > p->col ? p->end_col : p->col));
}

static json_t *location(const kiln_place *p)
{
    json_t *j = json_pack("{s:{s:o}, s:o}", "artifactLocation", "uri", uri(p->file), "region", region(p));
    if (p->text) /* the line */
        json_object_set_new(j, "contextRegion",
                            json_pack("{s:I, s:{s:o}}", "startLine", (json_int_t)(p->line ? p->line : 1),
                                      "snippet", "text", kl_json_text(p->text)));
    return json_pack("{s:o}", "physicalLocation", j);
}

static json_t *message(const char *text)
{
    return json_pack("{s:o}", "text", kl_json_text(text));
}

/* The text and those notes that have no place. */
static json_t *whole_message(const kiln_diag *g)
{
    size_t n = strlen(g->text) + 1;
    for (size_t i = 0; i < g->nnotes; i++)
        n += strlen(g->notes[i].text) + 1;
    char *text = kl_xalloc(n);
    strcpy(text, g->text);
    for (size_t i = 0; i < g->nnotes; i++)
        if (!g->notes[i].place.file)
            strcat(strcat(text, "\n"), g->notes[i].text);
    json_t *j = message(text);
    free(text);
    return j;
}

static bool is_suppressed(const kiln_diag *g)
{
    return kl_is_finding(g) && g->severity == KILN_NOTE;
}

static json_t *suppression(const kiln_diag *g)
{
    json_t *j = json_pack("{s:s, s:s}", "kind", "inSource", "status", "accepted");
    const kiln_diag_note *by = g->nnotes ? &g->notes[g->nnotes - 1] : NULL;
    if (by && by->place.file)
        json_object_set_new(j, "location", location(&by->place));
    return json_pack("[o]", j);
}

static json_t *fixes(const kiln_diag *g)
{
    const kiln_place *p = &g->fix_place;
    return json_pack("[{s:[{s:{s:o}, s:[{s:o, s:o}]}]}]", "artifactChanges", "artifactLocation", "uri",
                     uri(p->file), "replacements", "deletedRegion", region(p), "insertedContent",
                     message(g->fix));
}

static json_t *result(const kiln_diag *g, json_int_t rule)
{
    static const char *const level[] = {"note", "warning", "error"};
    bool quiet = is_suppressed(g);
    json_t *j = json_pack("{s:s, s:I, s:s, s:o}", "ruleId", g->code, "ruleIndex", rule, "level",
                          level[g->severity], "message", whole_message(g));
    json_t *related = json_array();
    if (g->place.file)
        json_object_set_new(j, "locations", json_pack("[o]", location(&g->place)));
    for (size_t i = 0; i + quiet < g->nnotes; i++) { /* the last one is the comment that allows it */
        const kiln_diag_note *n = &g->notes[i];
        json_t *at = n->place.file ? location(&n->place) : NULL;
        if (!at)
            continue;
        json_object_set_new(at, "id", json_integer((json_int_t)json_array_size(related) + 1));
        json_object_set_new(at, "message", message(n->text));
        json_array_append_new(related, at);
    }
    if (json_array_size(related))
        json_object_set(j, "relatedLocations", related);
    json_decref(related);
    if (quiet)
        json_object_set_new(j, "suppressions", suppression(g));
    if (g->fix && g->fix_place.file)
        json_object_set_new(j, "fixes", fixes(g));
    return j;
}

/* The index of a code among the rules, which gets one if it is new. */
static json_int_t rule_of(json_t *rules, const char *code)
{
    size_t i;
    json_t *r;
    json_array_foreach (rules, i, r)
        if (strcmp(json_string_value(json_object_get(r, "id")), code) == 0)
            return (json_int_t)i;
    const char *c, *title, *page;
    r = json_pack("{s:s}", "id", code);
    for (i = 0; (c = kl_tool_diag_code(i, &title, &page)); i++) {
        if (strcmp(c, code) != 0)
            continue;
        json_object_set_new(r, "shortDescription", message(title));
        json_object_set_new(r, "help", message(page));
    }
    json_array_append_new(rules, r);
    return (json_int_t)json_array_size(rules) - 1;
}

json_t *kl_sarif(const kiln_diags *d, bool ran, int rc)
{
    json_t *rules = json_array(), *results = json_array();
    unsigned v = kiln_version();
    char version[40];
    snprintf(version, sizeof version, "%u.%u.%u", v / 10000, v / 100 % 100, v % 100);
    for (size_t i = 0; i < kiln_diags_count(d); i++) {
        const kiln_diag *g = kiln_diags_at(d, i);
        json_array_append_new(results, result(g, rule_of(rules, g->code)));
    }
    return json_pack("{s:s, s:s, s:[{s:{s:{s:s, s:s, s:o}}, s:[{s:b, s:i}], s:s, s:o}]}", "$schema", schema,
                     "version", "2.1.0", "runs", "tool", "driver", "name", "kiln", "version",
                     version, "rules", rules, "invocations", "executionSuccessful", ran, "exitCode",
                     rc, "columnKind", "unicodeCodePoints", "results", results);
}
