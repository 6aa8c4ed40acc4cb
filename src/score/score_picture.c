/*
 * score_picture.c: see score_picture.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "score/score_picture.h"

/* Adds bytes as base 64 (RFC 4648). */
static void add_base64(cvy_text *t, const uint8_t *data, size_t bytes)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < bytes; i += 3) {
        const size_t left = CVY_MIN(3, bytes - i);
        const uint32_t word =
            (uint32_t)data[i] << 16 | (left > 1 ? (uint32_t)data[i + 1] << 8 : 0) | (left > 2 ? data[i + 2] : 0);
        const char four[] = {digit[word >> 18], digit[word >> 12 & 63], left > 1 ? digit[word >> 6 & 63] : '=',
                             left > 2 ? digit[word & 63] : '='};
        cvy_text_add_bytes(t, four, sizeof four);
    }
}

cvy_status cvy_score_picture_add(cvy_score_picture *buffers, const char *key, const cvy_picture *p, cvy_json *json)
{
    cvy_text text = {0};
    CVY_TRY(cvy_picture_encode_png(p, &buffers->rows, &buffers->png));
    cvy_text_add(&text, "data:image/png;base64,");
    add_base64(&text, buffers->png.data, buffers->png.bytes);
    const cvy_status status = text.status;
    if (status == CVY_OK)
        cvy_json_string(json, key, text.data);
    cvy_text_free(&text);
    return status;
}

void cvy_score_picture_end(cvy_score_picture *buffers)
{
    cvy_mem_free(&buffers->rows.data);
    cvy_mem_free(&buffers->png.data);
}
