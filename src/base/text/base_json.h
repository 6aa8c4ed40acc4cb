/*
 * base_json.h: a writer of JSON. It places the commas itself. Inside lists the key is NULL. Reals are printed with 17
 * digits if they need them; NaN and infinities become null.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_JSON_H
#define CVY_BASE_JSON_H

#include "base/text/base_text.h"

typedef struct cvy_json {
    cvy_text text;
    int depth;
    uint64_t comma;
} cvy_json;
void cvy_json_open(cvy_json *j, const char *key, char bracket); /* '{' or '[' */
void cvy_json_close(cvy_json *j, char bracket);                 /* '}' or ']' */
void cvy_json_string(cvy_json *j, const char *key, const char *value);
void cvy_json_int(cvy_json *j, const char *key, int64_t value);
void cvy_json_real(cvy_json *j, const char *key, double value);
void cvy_json_bool(cvy_json *j, const char *key, int value);
void cvy_json_raw(cvy_json *j, const char *key, const char *value); /* a value that is JSON already */

#endif
