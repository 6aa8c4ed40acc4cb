/* SPDX-License-Identifier: BSD-3-Clause */
/* test_data_pictures.h: writes small JPEG and PNG files for the tests. They are so smooth that JPEG keeps them nearly
 * unchanged. */
#ifndef TEST_DATA_PICTURES_H
#define TEST_DATA_PICTURES_H

#include "test_data_support.h"

#if CVY_HAVE_JPEG && CVY_HAVE_SPNG
#include <jpeglib.h>
#include <spng.h>
#include <stdio.h>

/* Returns channel c of pixel (y, x) of picture `which`. */
static inline uint8_t picture_value(int which, int c, int y, int x)
{
    return (uint8_t)(40 + which * 10 + c * 30 + 3 * y + 2 * x);
}

/* components is 1, 3 or 4 (CMYK). */
static inline void put_jpeg(const char *path, int which, int H, int W, int components)
{
    struct jpeg_compress_struct cinfo = {0};
    struct jpeg_error_mgr err;
    FILE *f = fopen(path, "wb");
    TRUE_THAT(f);
    uint8_t *row = malloc((size_t)(W * 4));
    cinfo.err = jpeg_std_error(&err);
    jpeg_create_compress(&cinfo);
    jpeg_stdio_dest(&cinfo, f);
    cinfo.image_width = (JDIMENSION)W;
    cinfo.image_height = (JDIMENSION)H;
    cinfo.input_components = components;
    cinfo.in_color_space = components == 1 ? JCS_GRAYSCALE : components == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&cinfo);
    jpeg_set_quality(&cinfo, 98, TRUE);
    jpeg_start_compress(&cinfo, TRUE);
    for (int y = 0; y < H; y++) {
        for (int i = 0; i < W * components; i++)
            row[i] = picture_value(which, i % components, y, i / components);
        jpeg_write_scanlines(&cinfo, &row, 1);
    }
    jpeg_finish_compress(&cinfo);
    jpeg_destroy_compress(&cinfo);
    free(row);
    fclose(f);
}

static inline void put_png(const char *path, int which, int H, int W, int components)
{
    static const uint8_t type[] = {0, SPNG_COLOR_TYPE_GRAYSCALE, SPNG_COLOR_TYPE_GRAYSCALE_ALPHA,
                                   SPNG_COLOR_TYPE_TRUECOLOR, SPNG_COLOR_TYPE_TRUECOLOR_ALPHA};
    uint8_t *pixels = malloc((size_t)(H * W * components));
    for (int i = 0; i < H * W * components; i++)
        pixels[i] = picture_value(which, i % components, i / components / W, i / components % W);
    struct spng_ihdr ihdr = {
        .width = (uint32_t)W, .height = (uint32_t)H, .bit_depth = 8, .color_type = type[components]};
    spng_ctx *ctx = spng_ctx_new(SPNG_CTX_ENCODER);
    FILE *f = fopen(path, "wb");
    TRUE_THAT(f && spng_set_png_file(ctx, f) == 0 && spng_set_ihdr(ctx, &ihdr) == 0);
    TRUE_THAT(spng_encode_image(ctx, pixels, (size_t)(H * W * components), SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE) == 0);
    spng_ctx_free(ctx);
    fclose(f);
    free(pixels);
}

#endif

/* Removes the last `bytes` bytes of the file. */
static inline void cut_file(const char *path, long bytes)
{
    FILE *f = fopen(path, "rb");
    TRUE_THAT(f && fseek(f, 0, SEEK_END) == 0);
    const long size = ftell(f);
    fclose(f);
    TRUE_THAT(truncate(path, size - bytes) == 0);
}
#endif
