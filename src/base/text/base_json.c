/*
 * base_json.c: writes JSON into a text, on one line. A line of metrics.jsonl is such a text.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/text/base_json.h"

#include <math.h>
#include <string.h>

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
        j->comma = 0; /* the next value is a new document: a line of a .jsonl file */
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

void cvy_json_raw(cvy_json *j, const char *key, const char *value)
{
    begin_item(j, key);
    cvy_text_add_bytes(&j->text, value, strlen(value));
}
