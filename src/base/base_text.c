/*
 * base_text.c: a growing text, and JSON written into it.
 *
 * Failures are kept in the text's status, so that a page of additions is followed by one check. JSON is written on one
 * line: a line of metrics.jsonl is such a text.
 */
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_util.h"

/* Room for `more` bytes and a NUL; 0 if there is none. */
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

/* The shortest of 15, 16 and 17 digits that reads back as the same number; with a point in every locale. */
void cvy_text_add_real(cvy_text *t, double value)
{
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    char *point = strchr(text, localeconv()->decimal_point[0]);
    if (point)
        *point = '.';
    cvy_text_add(t, "%s", text);
}

/* Bytes of the UTF-8 sequence at s, 0 if it is none (RFC 3629: no overlong forms, no surrogates). */
static int utf8_length(const unsigned char *s)
{
    const int n = s[0] < 0x80                   ? 1
                  : s[0] >= 0xC2 && s[0] < 0xE0 ? 2
                  : s[0] >= 0xE0 && s[0] < 0xF0 ? 3
                  : s[0] >= 0xF0 && s[0] < 0xF5 ? 4
                                                : 0;
    for (int i = 1; i < n; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F) || (s[0] == 0xF0 && s[1] < 0x90) ||
        (s[0] == 0xF4 && s[1] > 0x8F))
        return 0;
    return n;
}

void cvy_text_add_quoted(cvy_text *t, const char *value)
{
    cvy_text_add_bytes(t, "\"", 1);
    for (const unsigned char *s = (const unsigned char *)value; *s;) {
        const int n = utf8_length(s);
        if (*s == '"' || *s == '\\')
            cvy_text_add(t, "\\%c", *s);
        else if (*s == '\n')
            cvy_text_add(t, "\\n");
        else if (*s < 32 || *s == 127)
            cvy_text_add(t, "\\u%04x", (unsigned)*s);
        else if (n > 0)
            cvy_text_add_bytes(t, (const char *)s, (size_t)n);
        else
            cvy_text_add(t, "\\ufffd"); /* not UTF-8 (a file name, say): the reader must still get valid JSON */
        s += CVY_MAX(n, 1);
    }
    cvy_text_add_bytes(t, "\"", 1);
}

void cvy_text_free(cvy_text *t)
{
    cvy_mem_free(&t->data);
    *t = (cvy_text){0};
}

/* ---- JSON ---- */

static void begin_item(cvy_json *j, const char *key)
{
    const uint64_t bit = UINT64_C(1) << (j->depth & 63);
    if (j->comma & bit)
        cvy_text_add(&j->text, ", ");
    j->comma |= bit;
    if (key) {
        cvy_text_add_quoted(&j->text, key);
        cvy_text_add(&j->text, ": ");
    }
}

void cvy_json_open(cvy_json *j, const char *key, char bracket)
{
    begin_item(j, key);
    cvy_text_add(&j->text, "%c", bracket);
    j->depth++;
    j->comma &= ~(UINT64_C(1) << (j->depth & 63));
}

void cvy_json_close(cvy_json *j, char bracket)
{
    cvy_text_add(&j->text, "%c", bracket);
    j->depth--;
    if (j->depth == 0)
        j->comma = 0; /* the next value is a document of its own: a line of a .jsonl file */
}

void cvy_json_string(cvy_json *j, const char *key, const char *value)
{
    begin_item(j, key);
    if (value)
        cvy_text_add_quoted(&j->text, value);
    else
        cvy_text_add(&j->text, "null");
}

void cvy_json_int(cvy_json *j, const char *key, int64_t value)
{
    begin_item(j, key);
    cvy_text_add(&j->text, "%lld", (long long)value);
}

void cvy_json_real(cvy_json *j, const char *key, double value)
{
    begin_item(j, key);
    if (isfinite(value))
        cvy_text_add_real(&j->text, value);
    else
        cvy_text_add(&j->text, "null");
}

void cvy_json_bool(cvy_json *j, const char *key, int value)
{
    begin_item(j, key);
    cvy_text_add(&j->text, value ? "true" : "false");
}
