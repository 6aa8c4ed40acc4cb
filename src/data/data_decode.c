/*
 * data_decode.c: JPEG (libjpeg-turbo) and PNG (libspng) to planes of bytes.
 *
 * In the step: in the loader's threads, between reader and augmentation. Files may be hostile: sides and pixels are
 * bounded before memory is taken, and what the libraries only warn of (a JPEG that ends early is filled with grey) is a
 * fault here, because a network must not be trained on half pictures unnoticed. Colour to grey is luma (ITU-R BT.601);
 * an alpha channel is dropped.
 */
#include "data/data_reader.h"

#include <string.h>

#if CVY_HAVE_JPEG
#include <jerror.h>
#include <jpeglib.h>
#include <setjmp.h>
#endif
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

#if CVY_HAVE_JPEG || CVY_HAVE_SPNG

static cvy_status check_size(const char *kind, int64_t H, int64_t W)
{
    CVY_CHECK(H > 0 && W > 0 && H <= CVY_PICTURE_SIDE_MAX && W <= CVY_PICTURE_SIDE_MAX &&
                  H * W <= CVY_PICTURE_PIXELS_MAX,
              CVY_E_FORMAT, "%s of %lldx%lld pixels, expected at most %d a side and %lld in all", kind, (long long)H,
              (long long)W, CVY_PICTURE_SIDE_MAX, (long long)CVY_PICTURE_PIXELS_MAX);
    return CVY_OK;
}

/* Interleaved rows to planes. */
static void to_planes(const uint8_t *row, int64_t channels, int64_t width, int64_t plane, uint8_t *out)
{
    if (channels == 3) {
        for (int64_t i = 0; i < width; i++) {
            out[i] = row[3 * i];
            out[plane + i] = row[3 * i + 1];
            out[2 * plane + i] = row[3 * i + 2];
        }
    } else {
        memcpy(out, row, (size_t)width);
    }
}

static cvy_status need_planes(int64_t channels, int64_t H, int64_t W, cvy_bytes *room, cvy_picture *out)
{
    CVY_TRY(cvy_bytes_need(room, (size_t)(channels * H * W)));
    *out = (cvy_picture){.dtype = CVY_DTYPE_U8, .C = channels, .H = H, .W = W, .data = room->data};
    return CVY_OK;
}

#endif

#if CVY_HAVE_JPEG
struct jpeg_fault {
    struct jpeg_error_mgr base; /* first: libjpeg hands it back */
    jmp_buf leave;
    char text[JMSG_LENGTH_MAX];
};

static void jpeg_leave(j_common_ptr cinfo)
{
    struct jpeg_fault *fault = (struct jpeg_fault *)cinfo->err;
    cinfo->err->format_message(cinfo, fault->text);
    longjmp(fault->leave, 1);
}

/* Level -1 is a warning: damaged data that libjpeg would paper over. The harmless one is unknown Adobe data. */
static void jpeg_message(j_common_ptr cinfo, int level)
{
    if (level < 0 && cinfo->err->msg_code != JWRN_ADOBE_XFORM)
        jpeg_leave(cinfo);
}

static void jpeg_silent(j_common_ptr cinfo)
{
    (void)cinfo;
}

static void jpeg_begin(struct jpeg_decompress_struct *cinfo, struct jpeg_fault *fault)
{
    cinfo->err = jpeg_std_error(&fault->base);
    fault->base.error_exit = jpeg_leave;
    fault->base.emit_message = jpeg_message;
    fault->base.output_message = jpeg_silent;
    fault->text[0] = 0;
}

static cvy_status jpeg_check(const struct jpeg_decompress_struct *cinfo)
{
    CVY_CHECK(cinfo->num_components == 1 || cinfo->num_components == 3, CVY_E_UNSUPPORTED,
              "JPEG of %d components%s, expected grey or RGB: convert it first (for example `convert IN -colorspace "
              "sRGB OUT`)",
              cinfo->num_components, cinfo->num_components == 4 ? " (CMYK)" : "");
    return check_size("JPEG", cinfo->image_height, cinfo->image_width);
}

static cvy_status jpeg_look(const void *bytes, size_t count, int64_t *C_out, int64_t *H_out, int64_t *W_out)
{
    struct jpeg_decompress_struct cinfo = {0};
    struct jpeg_fault fault;
    jpeg_begin(&cinfo, &fault);
    if (setjmp(fault.leave)) {
        jpeg_destroy_decompress(&cinfo);
        CVY_FAIL(CVY_E_FORMAT, "damaged JPEG: %s", fault.text);
    }
    jpeg_create_decompress(&cinfo);
    jpeg_mem_src(&cinfo, bytes, (unsigned long)count);
    jpeg_read_header(&cinfo, TRUE);
    const cvy_status status = jpeg_check(&cinfo);
    if (status == CVY_OK) {
        *C_out = cinfo.num_components;
        *H_out = cinfo.image_height;
        *W_out = cinfo.image_width;
    }
    jpeg_destroy_decompress(&cinfo);
    return status;
}

/* All that may longjmp, so that no local outlives a jump half changed. */
static cvy_status jpeg_rows(struct jpeg_decompress_struct *cinfo, int64_t channels, cvy_bytes *room, cvy_bytes *rows,
                            cvy_picture *out)
{
    jpeg_read_header(cinfo, TRUE);
    CVY_TRY(jpeg_check(cinfo));
    cinfo->out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(cinfo);
    const int64_t H = cinfo->output_height, W = cinfo->output_width;
    CVY_TRY(need_planes(channels, H, W, room, out));
    CVY_TRY(cvy_bytes_need(rows, (size_t)(channels * W)));
    while (cinfo->output_scanline < cinfo->output_height) {
        const int64_t y = cinfo->output_scanline;
        JSAMPROW row = rows->data;
        jpeg_read_scanlines(cinfo, &row, 1);
        to_planes(row, channels, W, H * W, (uint8_t *)room->data + y * W);
    }
    jpeg_finish_decompress(cinfo);
    return CVY_OK;
}

static cvy_status jpeg_decode(const void *bytes, size_t count, int64_t channels, cvy_bytes *room, cvy_bytes *rows,
                              cvy_picture *out)
{
    struct jpeg_decompress_struct cinfo = {0};
    struct jpeg_fault fault;
    jpeg_begin(&cinfo, &fault);
    if (setjmp(fault.leave)) {
        jpeg_destroy_decompress(&cinfo);
        CVY_FAIL(CVY_E_FORMAT, "damaged JPEG: %s", fault.text);
    }
    jpeg_create_decompress(&cinfo);
    jpeg_mem_src(&cinfo, bytes, (unsigned long)count);
    const cvy_status status = jpeg_rows(&cinfo, channels, room, rows, out);
    jpeg_destroy_decompress(&cinfo);
    return status;
}
#else
static cvy_status jpeg_look(const void *bytes, size_t count, int64_t *C_out, int64_t *H_out, int64_t *W_out)
{
    (void)bytes, (void)count, (void)C_out, (void)H_out, (void)W_out;
    CVY_FAIL(CVY_E_UNSUPPORTED,
             "a JPEG, and this build has no JPEG decoder: install libjpeg-turbo's headers and build again");
}
static cvy_status jpeg_decode(const void *bytes, size_t count, int64_t channels, cvy_bytes *room, cvy_bytes *rows,
                              cvy_picture *out)
{
    (void)channels, (void)room, (void)rows, (void)out;
    return jpeg_look(bytes, count, NULL, NULL, NULL);
}
#endif

#if CVY_HAVE_SPNG
static cvy_status png_check(int code)
{
    CVY_CHECK(code == 0, CVY_E_FORMAT, "damaged PNG: %s", spng_strerror(code));
    return CVY_OK;
}

static cvy_status png_begin(const void *bytes, size_t count, spng_ctx **out, struct spng_ihdr *ihdr)
{
    spng_ctx *ctx = spng_ctx_new(0);
    CVY_CHECK(ctx, CVY_E_MEMORY, "cannot make a PNG decoder");
    spng_set_image_limits(ctx, CVY_PICTURE_SIDE_MAX, CVY_PICTURE_SIDE_MAX);
    spng_set_chunk_limits(ctx, 64 << 20, 64 << 20);
    spng_set_crc_action(ctx, SPNG_CRC_ERROR, SPNG_CRC_ERROR);
    cvy_status status = png_check(spng_set_png_buffer(ctx, bytes, count));
    if (status == CVY_OK)
        status = png_check(spng_get_ihdr(ctx, ihdr));
    if (status == CVY_OK)
        status = check_size("PNG", ihdr->height, ihdr->width);
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

static cvy_status png_look(const void *bytes, size_t count, int64_t *C_out, int64_t *H_out, int64_t *W_out)
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

static void rgb_to_luma(uint8_t *row, int64_t width)
{
    for (int64_t i = 0; i < width; i++)
        row[i] = (uint8_t)((299 * row[3 * i] + 587 * row[3 * i + 1] + 114 * row[3 * i + 2] + 500) / 1000);
}

/* Always decoded as 8-bit RGB: libspng gives that for every kind of PNG. */
static cvy_status png_decode(const void *bytes, size_t count, int64_t channels, cvy_bytes *room, cvy_bytes *rows,
                             cvy_picture *out)
{
    spng_ctx *ctx = NULL;
    struct spng_ihdr ihdr;
    CVY_TRY(png_begin(bytes, count, &ctx, &ihdr));
    const int64_t H = ihdr.height, W = ihdr.width;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(cvy_bytes_need(rows, (size_t)(3 * H * W)));
    CVY_TRY_OUT(png_check(spng_decode_image(ctx, rows->data, rows->bytes, SPNG_FMT_RGB8, 0)));
    CVY_TRY_OUT(
        png_check(spng_decode_chunks(ctx))); /* to the end: only this compares the last picture chunk's checksum */
    CVY_TRY_OUT(need_planes(channels, H, W, room, out));
    for (int64_t y = 0; y < H; y++) {
        uint8_t *row = (uint8_t *)rows->data + 3 * y * W;
        if (channels == 1)
            rgb_to_luma(row, W);
        to_planes(row, channels, W, H * W, (uint8_t *)room->data + y * W);
    }
out:
    spng_ctx_free(ctx);
    return status;
}
#else
static cvy_status png_look(const void *bytes, size_t count, int64_t *C_out, int64_t *H_out, int64_t *W_out)
{
    (void)bytes, (void)count, (void)C_out, (void)H_out, (void)W_out;
    CVY_FAIL(CVY_E_UNSUPPORTED, "a PNG, and this build has no PNG decoder: install libspng's headers and build again");
}
static cvy_status png_decode(const void *bytes, size_t count, int64_t channels, cvy_bytes *room, cvy_bytes *rows,
                             cvy_picture *out)
{
    (void)channels, (void)room, (void)rows, (void)out;
    return png_look(bytes, count, NULL, NULL, NULL);
}
#endif

cvy_status cvy_picture_look(cvy_coding coding, const void *bytes, size_t count, int64_t *C_out, int64_t *H_out,
                            int64_t *W_out)
{
    switch (coding) {
    case CVY_CODING_JPEG: return jpeg_look(bytes, count, C_out, H_out, W_out);
    case CVY_CODING_PNG: return png_look(bytes, count, C_out, H_out, W_out);
    default: CVY_FAIL(CVY_E_FORMAT, "is neither a JPEG nor a PNG");
    }
}

cvy_status cvy_picture_decode(cvy_coding coding, const void *bytes, size_t count, int64_t channels, cvy_bytes *room,
                              cvy_bytes *rows, cvy_picture *out)
{
    CVY_CHECK(channels == 1 || channels == 3, CVY_E_UNSUPPORTED, "a picture cannot become %lld channels, only 1 or 3",
              (long long)channels);
    switch (coding) {
    case CVY_CODING_JPEG: return jpeg_decode(bytes, count, channels, room, rows, out);
    case CVY_CODING_PNG: return png_decode(bytes, count, channels, room, rows, out);
    default: CVY_FAIL(CVY_E_FORMAT, "is neither a JPEG nor a PNG");
    }
}
