/*
 * base_text.c: a growing text, and a search for the nearest name.
 *
 * Errors are kept in the status of the text, so one check after many additions is enough.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/text/base_text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for `more` bytes and a NUL; 0: there is no memory. */
static int reserve(cvy_text *t, size_t more)
{
    if (t->status != CVY_OK)
        return 0;
    if (t->data && t->room - t->bytes > more)
        return 1;
    if (more > SIZE_MAX / 4) {
        t->status = cvy_error_set(CVY_E_MEMORY, "cannot allocate %zu bytes of text", more);
        return 0;
    }
    const size_t room = CVY_MAX(t->room * 2, t->bytes + more + 256);
    t->status = cvy_mem_grow(&t->data, t->bytes, room);
    if (t->status == CVY_OK)
        t->room = room;
    return t->status == CVY_OK;
}

void cvy_text_add(cvy_text *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const int length = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (length < 0 || !reserve(t, (size_t)length))
        return;
    va_start(args, fmt);
    vsnprintf(t->data + t->bytes, (size_t)length + 1, fmt, args);
    va_end(args);
    t->bytes += (size_t)length;
}

void cvy_text_add_bytes(cvy_text *t, const char *data, size_t bytes)
{
    if (!reserve(t, bytes))
        return;
    memcpy(t->data + t->bytes, data, bytes);
    t->bytes += bytes;
    t->data[t->bytes] = 0;
}

void cvy_text_add_score(cvy_text *t, double value)
{
    if (isnan(value)) {
        cvy_text_add(t, "undefined");
        return;
    }
    const int is_usual = !isfinite(value) || value == 0 || (fabs(value) >= 0.01 && fabs(value) < 1e6);
    cvy_text_add(t, is_usual ? "%.4f" : "%.5g", value);
}

/* Prints the first of 15, 16 and 17 digits that reads back as the same number. */
void cvy_text_add_real(cvy_text *t, double value)
{
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    cvy_text_add(t, "%s", text);
}

void cvy_text_add_ints(cvy_text *t, const int64_t *at, int n)
{
    cvy_text_add(t, "[");
    for (int i = 0; i < n; i++)
        cvy_text_add(t, "%s%lld", i ? ", " : "", (long long)at[i]);
    cvy_text_add(t, "]");
}

/* The number of a character of n bytes. */
static unsigned code_of(const unsigned char *s, int n)
{
    unsigned code = n > 1 ? s[0] & (0x7Fu >> n) : s[0];
    for (int i = 1; i < n; i++)
        code = code << 6 | (s[i] & 0x3F);
    return code;
}

/* Characters that YAML does not read back as they are: C1, line breaks of Unicode, marks of the byte order. */
static int yaml_changes(unsigned code)
{
    return (code >= 0x80 && code < 0xA0) || code == 0x2028 || code == 0x2029 || code == 0xFEFF || code == 0xFFFE ||
           code == 0xFFFF;
}

void cvy_text_add_quoted(cvy_text *t, const char *value)
{
    cvy_text_add_bytes(t, "\"", 1);
    for (const unsigned char *s = (const unsigned char *)value; *s;) {
        const int n = cvy_utf8_length(s);
        if (*s == '"' || *s == '\\')
            cvy_text_add(t, "\\%c", *s);
        else if (*s == '\n')
            cvy_text_add(t, "\\n");
        else if (*s < 32 || *s == 127)
            cvy_text_add(t, "\\u%04x", (unsigned)*s);
        else if (n > 1 && yaml_changes(code_of(s, n)))
            cvy_text_add(t, "\\u%04x", code_of(s, n));
        else if (n > 0)
            cvy_text_add_bytes(t, (const char *)s, (size_t)n);
        else
            cvy_text_add(t, "\\ufffd"); /* not UTF-8, such as a file name: the reader must still get valid JSON */
        s += CVY_MAX(n, 1);
    }
    cvy_text_add_bytes(t, "\"", 1);
}

void cvy_text_free(cvy_text *t)
{
    cvy_mem_free(&t->data);
    *t = (cvy_text){0};
}

cvy_status cvy_text_take(cvy_text *t, char **out)
{
    const cvy_status status = t->status;
    *out = NULL;
    if (status == CVY_OK)
        *out = t->data;
    else
        cvy_text_free(t);
    return status;
}

/* ---- the nearest name ---- */

enum { WORD_MAX = 48 };

static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/* The number of edits that turn a into b: insert, delete, replace, swap of neighbours (optimal string alignment). */
static int edit_distance(const char *a, const char *b)
{
    int row[3][WORD_MAX + 1] = {{0}};
    const int na = (int)strlen(a), nb = (int)strlen(b);
    for (int j = 0; j <= nb; j++)
        row[0][j] = j;
    for (int i = 1; i <= na; i++) {
        int *now = row[i % 3], *up = row[(i + 2) % 3], *up2 = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= nb; j++) {
            const int same = lower(a[i - 1]) == lower(b[j - 1]);
            now[j] = CVY_MIN(CVY_MIN(up[j], now[j - 1]) + 1, up[j - 1] + !same);
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
                now[j] = CVY_MIN(now[j], up2[j - 2] + 1);
        }
    }
    return row[na % 3][nb];
}

const char *cvy_text_nearest(const char *word, const char *const *names, int count)
{
    const char *best = NULL;
    const size_t length = strlen(word);
    int best_distance = (int)CVY_MAX(length, 3) / 3 + 1; /* a third of the letters may be wrong */
    if (length > WORD_MAX)
        return NULL;
    for (int i = 0; i < count; i++) {
        if (strlen(names[i]) > WORD_MAX)
            continue;
        const int distance = edit_distance(word, names[i]);
        if (distance < best_distance) {
            best_distance = distance;
            best = names[i];
        }
    }
    for (int i = 0; !best && length >= 3 && i < count; i++) /* "momen" for "momentum" */
        if (strncmp(word, names[i], length) == 0)
            best = names[i];
    return best;
}

int cvy_text_lists(const char *list, const char *separators, const char *entry)
{
    const size_t n = strlen(entry);
    for (const char *at = list; *at; at += *at != 0) {
        at += strspn(at, " ");
        const char *end = at + strcspn(at, separators), *last = end;
        while (last > at && last[-1] == ' ')
            last--;
        if (n > 0 && (size_t)(last - at) == n && strncmp(at, entry, n) == 0)
            return 1;
        at = end;
    }
    return 0;
}

void cvy_text_add_known(cvy_text *t, const char *word, const char *const *names, int count)
{
    const char *near = cvy_text_nearest(word, names, count);
    if (near)
        cvy_text_add(t, ", did you mean '%s'?", near);
    cvy_text_add(t, "; there are ");
    for (int i = 0; i < count; i++)
        cvy_text_add(t, "%s%s", i ? ", " : "", names[i]);
    if (count == 0)
        cvy_text_add(t, "none");
}
