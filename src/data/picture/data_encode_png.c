/*
 * data_encode_png.c: encodes planes of bytes as PNG (libspng), for folders of pictures and for a run's report.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/picture/data_encode.h"

#include <stdlib.h>
#include <string.h>

#if CVY_HAVE_SPNG
#include <spng.h>

static cvy_status encode(spng_ctx *png, const cvy_picture *p, const uint8_t *rows, size_t bytes, cvy_bytes *out)
{
    struct spng_ihdr head = {.width = (uint32_t)p->W,
                             .height = (uint32_t)p->H,
                             .bit_depth = 8,
                             .color_type = p->C == 3 ? SPNG_COLOR_TYPE_TRUECOLOR : SPNG_COLOR_TYPE_GRAYSCALE};
    size_t made = 0;
    void *data = NULL; /* libspng allocates it, the caller frees it */
    int fault = spng_set_option(png, SPNG_ENCODE_TO_BUFFER, 1);
    if (!fault)
        fault = spng_set_ihdr(png, &head);
    if (!fault)
        fault = spng_encode_image(png, rows, bytes, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
    if (!fault)
        data = spng_get_png_buffer(png, &made, &fault);
    CVY_CHECK(!fault && data, CVY_E_INTERNAL, "a picture of %lldx%lldx%lld cannot be written as a PNG: %s",
              (long long)p->C, (long long)p->H, (long long)p->W, spng_strerror(fault));
    const cvy_status status = cvy_bytes_need(out, made);
    if (status == CVY_OK)
        memcpy(out->data, data, made);
    free(data);
    return status;
}

cvy_status cvy_picture_encode_png(const cvy_picture *p, cvy_bytes *rows, cvy_bytes *out)
{
    const int64_t plane = p->H * p->W;
    const uint8_t *from = p->data;
    CVY_CHECK(p->dtype == CVY_DTYPE_U8 && (p->C == 1 || p->C == 3) && plane > 0, CVY_E_UNSUPPORTED,
              "%lld channels of %s are not a picture", (long long)p->C, cvy_dtype_text(p->dtype));
    CVY_TRY(cvy_bytes_need(rows, (size_t)(p->C * plane)));
    uint8_t *to = rows->data;
    for (int64_t i = 0; i < plane; i++)
        for (int64_t c = 0; c < p->C; c++)
            to[i * p->C + c] = from[c * plane + i];
    spng_ctx *png = spng_ctx_new(SPNG_CTX_ENCODER);
    CVY_CHECK(png, CVY_E_MEMORY, "no memory for a PNG");
    const cvy_status status = encode(png, p, to, (size_t)(p->C * plane), out);
    spng_ctx_free(png);
    return status;
}

#else

cvy_status cvy_picture_encode_png(const cvy_picture *p, cvy_bytes *rows, cvy_bytes *out)
{
    (void)p, (void)rows, (void)out;
    CVY_FAIL(CVY_E_UNSUPPORTED, "this build has no libspng, so it cannot write PNG");
}

#endif
