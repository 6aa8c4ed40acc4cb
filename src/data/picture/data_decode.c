/*
 * data_decode.c: decodes pictures to planes of bytes: chooses the decoder, checks the limits, and decodes PNG with
 * libspng. JPEG is in data_decode_jpeg.c.
 *
 * The loader's threads call it, between reader and augmentation. Files may be malicious, so sides and pixels are
 * checked before memory is allocated. What the libraries only warn of is an error here (libjpeg fills the rest of a
 * truncated JPEG with grey), because a network must not be trained on half pictures unnoticed. Colour becomes grey by
 * luma (ITU-R BT.601), and an alpha channel is dropped. A PNG of 16 bits becomes reals from 0 to 255, so that nothing
 * is lost and all that follows treats it as bytes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/picture/data_decode.h"

#include <math.h>
#include <string.h>

#if CVY_HAVE_SPNG
#include <spng.h>
#endif

cvy_coding cvy_picture_coding(const void *bytes, size_t count)
{
    static const unsigned char jpeg[] = {0xFF, 0xD8, 0xFF}, png[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
    if (count >= sizeof jpeg && memcmp(bytes, jpeg, sizeof jpeg) == 0)
        return CVY_CODING_JPEG;
    if (count >= sizeof png && memcmp(bytes, png, sizeof png) == 0)
        return CVY_CODING_PNG;
    return CVY_CODING_PLAIN;
}

cvy_status cvy_picture_check_size(const char *kind, int64_t H, int64_t W)
{
    CVY_CHECK(H > 0 && W > 0 && H <= CVY_PICTURE_SIDE_MAX && W <= CVY_PICTURE_SIDE_MAX &&
                  H * W <= CVY_PICTURE_PIXELS_MAX,
              CVY_E_FORMAT, "%s of %lldx%lld pixels, expected at most %d a side and %lld in all", kind, (long long)H,
              (long long)W, CVY_PICTURE_SIDE_MAX, (long long)CVY_PICTURE_PIXELS_MAX);
    return CVY_OK;
}

cvy_status cvy_picture_need_planes(const cvy_decode *d, int64_t H, int64_t W, cvy_picture *out)
{
    CVY_TRY(cvy_bytes_need(d->room, (size_t)(d->channels * H * W)));
    *out = (cvy_picture){.dtype = CVY_DTYPE_U8, .C = d->channels, .H = H, .W = W, .data = d->room->data};
    return CVY_OK;
}

void cvy_picture_to_bytes(cvy_picture *p)
{
    uint8_t *to = p->data;
    for (int64_t i = 0; i < p->C * p->H * p->W && p->dtype == CVY_DTYPE_F32; i++) {
        float value; /* a byte never overwrites a real that has not been read yet */
        memcpy(&value, (const char *)p->data + (size_t)i * sizeof value, sizeof value);
        to[i] = (uint8_t)lrintf(CVY_MIN(CVY_MAX(value, 0), 255));
    }
    p->dtype = CVY_DTYPE_U8;
}

#if CVY_HAVE_SPNG
static cvy_status png_check(int code)
{
    CVY_CHECK(code == 0, CVY_E_FORMAT, "damaged PNG: %s", spng_strerror(code));
    return CVY_OK;
}

static cvy_status png_begin(const void *bytes, size_t count, spng_ctx **out, struct spng_ihdr *ihdr)
{
    spng_ctx *ctx = spng_ctx_new(0);
    CVY_CHECK(ctx, CVY_E_MEMORY, "cannot create a PNG decoder");
    spng_set_image_limits(ctx, CVY_PICTURE_SIDE_MAX, CVY_PICTURE_SIDE_MAX);
    spng_set_chunk_limits(ctx, 64 << 20, 64 << 20);
    spng_set_crc_action(ctx, SPNG_CRC_ERROR, SPNG_CRC_ERROR);
    cvy_status status = png_check(spng_set_png_buffer(ctx, bytes, count));
    if (status == CVY_OK)
        status = png_check(spng_get_ihdr(ctx, ihdr));
    if (status == CVY_OK)
        status = cvy_picture_check_size("PNG", ihdr->height, ihdr->width);
    if (status == CVY_OK)
        *out = ctx;
    else
        spng_ctx_free(ctx);
    return status;
}

static int png_is_grey(const struct spng_ihdr *ihdr)
{
    return ihdr->color_type == SPNG_COLOR_TYPE_GRAYSCALE || ihdr->color_type == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA;
}

static cvy_status png_read_header(const void *bytes, size_t count, int64_t *C_out, int64_t *H_out, int64_t *W_out)
{
    spng_ctx *ctx = NULL;
    struct spng_ihdr ihdr;
    CVY_TRY(png_begin(bytes, count, &ctx, &ihdr));
    *C_out = png_is_grey(&ihdr) ? 1 : 3;
    *H_out = ihdr.height;
    *W_out = ihdr.width;
    spng_ctx_free(ctx);
    return CVY_OK;
}

static void png_row_to_planes(const uint8_t *row, int64_t channels, int64_t width, int64_t plane, uint8_t *out)
{
    for (int64_t i = 0; i < width && channels == 3; i++) {
        out[i] = row[3 * i];
        out[plane + i] = row[3 * i + 1];
        out[2 * plane + i] = row[3 * i + 2];
    }
    for (int64_t i = 0; i < width && channels == 1; i++)
        out[i] = cvy_picture_luma(row[3 * i], row[3 * i + 1], row[3 * i + 2]);
}

/* The same for four numbers of 16 bits a pixel, in this machine's byte order. 65535 becomes 255. */
static void png_deep_row_to_planes(const uint16_t *row, int64_t channels, int is_grey, int64_t width, int64_t plane,
                                   float *out)
{
    for (int64_t i = 0; i < width; i++, row += 4) {
        if (channels == 1)
            out[i] = (float)((is_grey ? row[0] : 0.299 * row[0] + 0.587 * row[1] + 0.114 * row[2]) / 257);
        for (int64_t c = 0; c < channels && channels == 3; c++)
            out[c * plane + i] = (float)(row[c] / 257.0);
    }
}

static cvy_status png_need_reals(const cvy_decode *d, int64_t H, int64_t W, cvy_picture *out)
{
    CVY_TRY(cvy_bytes_need(d->room, (size_t)(d->channels * H * W) * sizeof(float)));
    *out = (cvy_picture){.dtype = CVY_DTYPE_F32, .C = d->channels, .H = H, .W = W, .data = d->room->data};
    return CVY_OK;
}

/* Decodes to RGB of 8 bits, or to RGBA of 16, which libspng supports for every kind of PNG of so many bits. */
static cvy_status png_decode(const cvy_decode *d, cvy_picture *out)
{
    spng_ctx *ctx = NULL;
    struct spng_ihdr ihdr;
    CVY_TRY(png_begin(d->bytes, d->count, &ctx, &ihdr));
    const int64_t H = ihdr.height, W = ihdr.width;
    const int is_deep = ihdr.bit_depth > 8, is_grey = png_is_grey(&ihdr);
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(cvy_bytes_need(d->rows, (size_t)((is_deep ? 8 : 3) * H * W)));
    CVY_TRY_OUT(
        png_check(spng_decode_image(ctx, d->rows->data, d->rows->bytes, is_deep ? SPNG_FMT_RGBA16 : SPNG_FMT_RGB8, 0)));
    /* Read to the end: only this verifies the checksum of the last image data chunk. */
    CVY_TRY_OUT(png_check(spng_decode_chunks(ctx)));
    CVY_TRY_OUT(is_deep ? png_need_reals(d, H, W, out) : cvy_picture_need_planes(d, H, W, out));
    for (int64_t y = 0; y < H; y++)
        if (is_deep)
            png_deep_row_to_planes((const uint16_t *)d->rows->data + 4 * y * W, d->channels, is_grey, W, H * W,
                                   (float *)out->data + y * W);
        else
            png_row_to_planes((const uint8_t *)d->rows->data + 3 * y * W, d->channels, W, H * W,
                              (uint8_t *)out->data + y * W);
out:
    spng_ctx_free(ctx);
    return status;
}
#else
static cvy_status png_read_header(const void *bytes, size_t count, int64_t *C_out, int64_t *H_out, int64_t *W_out)
{
    (void)bytes, (void)count, (void)C_out, (void)H_out, (void)W_out;
    CVY_FAIL(CVY_E_UNSUPPORTED, "a PNG, and this build has no PNG decoder: install libspng's headers and build again");
}

static cvy_status png_decode(const cvy_decode *d, cvy_picture *out)
{
    (void)d, (void)out;
    return png_read_header(NULL, 0, NULL, NULL, NULL);
}
#endif

cvy_status cvy_picture_read_header(cvy_coding coding, const void *bytes, size_t count, int64_t *C_out, int64_t *H_out,
                                   int64_t *W_out)
{
    switch (coding) {
    case CVY_CODING_JPEG: return cvy_jpeg_read_header(bytes, count, C_out, H_out, W_out);
    case CVY_CODING_PNG: return png_read_header(bytes, count, C_out, H_out, W_out);
    default: CVY_FAIL(CVY_E_FORMAT, "is neither a JPEG nor a PNG");
    }
}

cvy_status cvy_picture_decode_part(cvy_coding coding, const void *bytes, size_t count, int64_t channels,
                                   cvy_window_fn choose_window, void *user, cvy_bytes *room, cvy_bytes *rows,
                                   cvy_picture *out)
{
    const cvy_decode d = {bytes, count, channels, choose_window, user, room, rows};
    CVY_CHECK(channels == 1 || channels == 3, CVY_E_UNSUPPORTED,
              "a picture cannot be converted to %lld channels, only to 1 or 3", (long long)channels);
    switch (coding) {
    case CVY_CODING_JPEG: return cvy_jpeg_decode(&d, out);
    case CVY_CODING_PNG: return png_decode(&d, out);
    default: CVY_FAIL(CVY_E_FORMAT, "is neither a JPEG nor a PNG");
    }
}

cvy_status cvy_picture_decode(cvy_coding coding, const void *bytes, size_t count, int64_t channels, cvy_bytes *room,
                              cvy_bytes *rows, cvy_picture *out)
{
    return cvy_picture_decode_part(coding, bytes, count, channels, NULL, NULL, room, rows, out);
}

cvy_picture cvy_raw_planes(const cvy_raw *raw)
{
    cvy_picture p = {.dtype = raw->dtype, .C = 1, .H = 1, .W = 1, .data = raw->x.data};
    p.C = raw->shape.ndim > 0 ? raw->shape.dim[0] : 1;
    p.H = raw->shape.ndim > 1 ? raw->shape.dim[1] : 1;
    for (int i = 2; i < raw->shape.ndim; i++)
        p.W *= raw->shape.dim[i];
    return p;
}

cvy_status cvy_raw_picture(const cvy_raw *raw, int64_t channels, cvy_bytes *room, cvy_bytes *rows, cvy_picture *out)
{
    if (raw->coding != CVY_CODING_PLAIN)
        return cvy_picture_decode(raw->coding, raw->x.data, raw->x.bytes, channels, room, rows, out);
    *out = cvy_raw_planes(raw);
    return CVY_OK;
}
