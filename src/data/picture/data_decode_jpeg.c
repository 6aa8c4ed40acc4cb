/*
 * data_decode_jpeg.c: decodes a JPEG to planes of bytes with libjpeg-turbo: the whole picture, or a window of it at a
 * reduced size.
 *
 * The loader's threads call it. It avoids computing pixels that are not needed. The inverse DCT does the reduction: the
 * lowest k x k frequencies of each block of 8x8 pixels give k x k pixels. So pixel i of the reduced picture covers
 * exactly the pixels from 8 i / k to 8 (i + 1) / k of the full one. Rows above the window are decompressed but not
 * transformed, rows below it are not even read, and columns beside it are not transformed. Only k = 1, 2, 4, 8 are
 * used: libjpeg-turbo has vector code for these, and the others cost more than they save (crops to 160 of photographs,
 * most of 500x333: 790 us a picture with all eight, 740 with four). For the same reason the exact DCT is as fast as the
 * inexact one.
 *
 * A JPEG of four inks becomes RGB as Pillow converts it: without a colour profile, and with inks stored inverted (255
 * is none), as Adobe's programs store them.
 *
 * Files may be malicious: what libjpeg only warns of is an error here. After a window the decoder only looks for the
 * end of the file.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/picture/data_decode.h"

#include <stdio.h>
#include <string.h>

#if CVY_HAVE_JPEG
#include <jerror.h>
#include <jpeglib.h>
#include <setjmp.h>

#include "data/data_vector.h"

/* libjpeg-turbo before 2.1 had bugs in these two calls; libjpeg does not have the calls. */
#if defined(LIBJPEG_TURBO_VERSION_NUMBER) && LIBJPEG_TURBO_VERSION_NUMBER >= 2001000
#define CAN_SKIP 1
#else
#define CAN_SKIP 0
#endif
/* Four bytes per pixel are split into planes faster than three, and fastest as 32-bit words. */
#if defined(JCS_EXTENSIONS) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define COLOURS_IN_WORDS 1
enum { COLOUR_BYTES = 4, COLOUR_SPACE = JCS_EXT_RGBX };
#else
#define COLOURS_IN_WORDS 0
enum { COLOUR_BYTES = 3, COLOUR_SPACE = JCS_RGB };
#endif

enum {
    INKS = 4,        /* bytes of a pixel of cyan, magenta, yellow and black */
    SCANS_MAX = 500, /* a small file with very many scans would take hours */
    EDGE = 2         /* extra pixels at a cut edge: interpolated chroma needs neighbours */
};

struct fault {
    struct jpeg_error_mgr base; /* first member: libjpeg passes a pointer to it */
    struct jpeg_progress_mgr progress;
    jmp_buf leave;
    char text[JMSG_LENGTH_MAX];
};

static void leave(j_common_ptr cinfo)
{
    struct fault *fault = (struct fault *)cinfo->err;
    cinfo->err->format_message(cinfo, fault->text);
    longjmp(fault->leave, 1);
}

/* Level -1 is a warning: the data are damaged and libjpeg would hide it. Only unknown Adobe data are harmless. */
static void message(j_common_ptr cinfo, int level)
{
    if (level < 0 && cinfo->err->msg_code != JWRN_ADOBE_XFORM)
        leave(cinfo);
}

static void silent(j_common_ptr cinfo)
{
    (void)cinfo;
}

static void count_scans(j_common_ptr cinfo)
{
    struct fault *fault = (struct fault *)cinfo->err;
    if (((j_decompress_ptr)cinfo)->input_scan_number <= SCANS_MAX)
        return;
    snprintf(fault->text, sizeof fault->text, "more than %d scans", SCANS_MAX);
    longjmp(fault->leave, 1);
}

static void begin(struct jpeg_decompress_struct *cinfo, struct fault *fault)
{
    cinfo->err = jpeg_std_error(&fault->base);
    fault->base.error_exit = leave;
    fault->base.emit_message = message;
    fault->base.output_message = silent;
    fault->progress.progress_monitor = count_scans;
    fault->text[0] = 0;
}

/* It may longjmp, as may all calls that follow. */
static void open_bytes(struct jpeg_decompress_struct *cinfo, struct fault *fault, const void *bytes, size_t count)
{
    jpeg_create_decompress(cinfo);
    cinfo->progress = &fault->progress;
    jpeg_mem_src(cinfo, bytes, (unsigned long)count);
    jpeg_read_header(cinfo, TRUE);
}

static int has_inks(const struct jpeg_decompress_struct *cinfo)
{
    return cinfo->jpeg_color_space == JCS_CMYK || cinfo->jpeg_color_space == JCS_YCCK;
}

static cvy_status check(const struct jpeg_decompress_struct *cinfo)
{
    CVY_CHECK(
        cinfo->num_components == 1 || cinfo->num_components == 3 || has_inks(cinfo), CVY_E_UNSUPPORTED,
        "JPEG of %d components, expected 1 (grey), 3 (RGB) or 4 (CMYK): convert it first (for example `convert IN "
        "-colorspace sRGB OUT`)",
        cinfo->num_components);
    return cvy_picture_check_size("JPEG", cinfo->image_height, cinfo->image_width);
}

cvy_status cvy_jpeg_read_header(const void *bytes, size_t count, int64_t *C_out, int64_t *H_out, int64_t *W_out)
{
    struct jpeg_decompress_struct cinfo = {0};
    struct fault fault;
    begin(&cinfo, &fault);
    if (setjmp(fault.leave)) {
        jpeg_destroy_decompress(&cinfo);
        CVY_FAIL(CVY_E_FORMAT, "damaged JPEG: %s", fault.text);
    }
    open_bytes(&cinfo, &fault, bytes, count);
    const cvy_status status = check(&cinfo);
    if (status == CVY_OK) {
        *C_out = cinfo.num_components == 1 ? 1 : 3;
        *H_out = cinfo.image_height;
        *W_out = cinfo.image_width;
    }
    jpeg_destroy_decompress(&cinfo);
    return status;
}

/* ---- which part is decoded ---- */

struct area { /* a part of the reduced picture: columns x0 .. x1-1, rows y0 .. y1-1 */
    int64_t x0, x1, y0, y1;
};

static int eighths_for(double scale)
{
    int k = 1;
    while (k < 8 && k < 8 * scale * (1 - 1e-9))
        k *= 2;
    return k;
}

static void reduce(int64_t first, int64_t count, int eighths, int64_t size, int64_t *from, int64_t *to)
{
    *from = CVY_MAX(first * eighths / 8 - EDGE, 0);
    *to = CVY_MIN((first + count) * eighths / 8 + 1 + EDGE, size);
}

/* Configures the decoder for the wanted part, and returns the area that it will decode. */
static struct area choose(struct jpeg_decompress_struct *cinfo, const cvy_decode *d, int *eighths_out)
{
    cvy_picture_window w = {0};
    const int64_t H = cinfo->image_height, W = cinfo->image_width;
    const int in_part = d->choose_window && d->choose_window(d->user, H, W, &w) && w.top >= 0 && w.left >= 0 &&
                        w.height > 0 && w.width > 0 && w.top + w.height <= H && w.left + w.width <= W;
    const int eighths = in_part ? eighths_for(w.scale) : 8;
    cinfo->out_color_space = has_inks(cinfo)    ? JCS_CMYK
                             : d->channels == 1 ? JCS_GRAYSCALE
                                                : (J_COLOR_SPACE)COLOUR_SPACE;
    cinfo->dct_method = JDCT_ISLOW;
    cinfo->scale_num = (unsigned)eighths;
    cinfo->scale_denom = 8;
    jpeg_start_decompress(cinfo);
    struct area a = {0, cinfo->output_width, 0, cinfo->output_height};
    if (in_part && CAN_SKIP) {
        reduce(w.left, w.width, eighths, a.x1, &a.x0, &a.x1);
        reduce(w.top, w.height, eighths, a.y1, &a.y0, &a.y1);
    }
    const int is_whole = eighths == 8 && a.x0 == 0 && a.y0 == 0 && a.x1 == W && a.y1 == H;
    *eighths_out = is_whole ? 0 : eighths;
    return a;
}

/* Skips what is above and beside the area. *skip_out: decoded columns of each row that are before the area. */
static void go_to(struct jpeg_decompress_struct *cinfo, const struct area *a, int64_t *skip_out)
{
    *skip_out = 0;
#if CAN_SKIP
    JDIMENSION x = (JDIMENSION)a->x0, width = (JDIMENSION)(a->x1 - a->x0);
    if (width < cinfo->output_width) {
        jpeg_crop_scanline(cinfo, &x, &width);
        *skip_out = a->x0 - (int64_t)x;
    }
    if (a->y0 > 0)
        jpeg_skip_scanlines(cinfo, (JDIMENSION)a->y0);
#else
    (void)cinfo, (void)a;
#endif
}

/* ---- decoding ---- */

CVY_VECTOR static void jpeg_colours_to_planes(const uint8_t *restrict row, int64_t width, uint8_t *restrict r,
                                              uint8_t *restrict g, uint8_t *restrict b)
{
#if COLOURS_IN_WORDS
    for (int64_t i = 0; i < width; i++) {
        uint32_t word;
        memcpy(&word, row + 4 * i, sizeof word);
        r[i] = (uint8_t)word;
        g[i] = (uint8_t)(word >> 8);
        b[i] = (uint8_t)(word >> 16);
    }
#else
    for (int64_t i = 0; i < width; i++) {
        r[i] = row[COLOUR_BYTES * i];
        g[i] = row[COLOUR_BYTES * i + 1];
        b[i] = row[COLOUR_BYTES * i + 2];
    }
#endif
}

/* About colour * black / 255, rounded as Pillow does. Inks are stored inverted, so both are shares of light. */
static uint8_t through_ink(uint8_t colour, uint8_t black)
{
    const int product = (255 - colour) * black + 128;
    return (uint8_t)(black - ((product + (product >> 8)) >> 8));
}

static void jpeg_inks_to_planes(const uint8_t *row, int64_t width, int64_t channels, int64_t plane, uint8_t *out)
{
    for (int64_t i = 0; i < width; i++, row += 4, out++) {
        const uint8_t r = through_ink(row[0], row[3]), g = through_ink(row[1], row[3]), b = through_ink(row[2], row[3]);
        out[0] = channels == 1 ? cvy_picture_luma(r, g, b) : r;
        if (channels == 3) {
            out[plane] = g;
            out[2 * plane] = b;
        }
    }
}

/* Called after the area's last row. If that was the picture's last row, libjpeg finishes with all its checks; otherwise
 * it only checks that the file has an end marker. */
static cvy_status finish(struct jpeg_decompress_struct *cinfo)
{
    if (cinfo->output_scanline == cinfo->output_height) {
        jpeg_finish_decompress(cinfo);
        return CVY_OK;
    }
    const JOCTET *at = cinfo->src->next_input_byte;
    size_t left = cinfo->src->bytes_in_buffer;
    if (jpeg_input_complete(cinfo) || cinfo->unread_marker == JPEG_EOI)
        return CVY_OK;
    for (; left >= 2; left--) /* from the end: in coded data 0xD9, the end marker, never follows 0xFF */
        if (at[left - 2] == 0xFF && at[left - 1] == JPEG_EOI)
            return CVY_OK;
    CVY_FAIL(CVY_E_FORMAT, "damaged JPEG: the file ends early");
}

/* All calls that may longjmp are here, so that no local variable of the caller is half changed after a jump. */
static cvy_status decode(struct jpeg_decompress_struct *cinfo, struct fault *fault, const cvy_decode *d,
                         cvy_picture *out)
{
    int eighths = 8;
    int64_t skip = 0;
    open_bytes(cinfo, fault, d->bytes, d->count);
    CVY_TRY(check(cinfo));
    const int inks = has_inks(cinfo);
    const int64_t pixel = inks ? INKS : d->channels == 1 ? 1 : COLOUR_BYTES;
    const struct area a = choose(cinfo, d, &eighths);
    const int64_t H = a.y1 - a.y0, W = a.x1 - a.x0, plane = H * W;
    go_to(cinfo, &a, &skip);
    CVY_TRY(cvy_picture_need_planes(d, H, W, out));
    /* Not aligned: libjpeg-turbo writes aligned rows with stores that bypass the caches, but these rows are read at
     * once. */
    CVY_TRY(cvy_bytes_need(d->rows, (size_t)(pixel * cinfo->output_width) + COLOUR_BYTES));
    JSAMPROW row = (JSAMPROW)d->rows->data + COLOUR_BYTES;
    for (int64_t y = 0; y < H; y++) {
        uint8_t *to = (uint8_t *)out->data + y * W;
        jpeg_read_scanlines(cinfo, &row, 1);
        if (inks)
            jpeg_inks_to_planes(row + skip * pixel, W, d->channels, plane, to);
        else if (d->channels == 1)
            memcpy(to, row + skip, (size_t)W);
        else
            jpeg_colours_to_planes(row + skip * pixel, W, to, to + plane, to + 2 * plane);
    }
    if (eighths) {
        out->whole_h = cinfo->image_height;
        out->whole_w = cinfo->image_width;
        out->top = a.y0;
        out->left = a.x0;
        out->eighths = eighths;
    }
    return finish(cinfo);
}

cvy_status cvy_jpeg_decode(const cvy_decode *d, cvy_picture *out)
{
    struct jpeg_decompress_struct cinfo = {0};
    struct fault fault;
    begin(&cinfo, &fault);
    if (setjmp(fault.leave)) {
        jpeg_destroy_decompress(&cinfo);
        CVY_FAIL(CVY_E_FORMAT, "damaged JPEG: %s", fault.text);
    }
    const cvy_status status = decode(&cinfo, &fault, d, out);
    jpeg_destroy_decompress(&cinfo);
    return status;
}
#else
cvy_status cvy_jpeg_read_header(const void *bytes, size_t count, int64_t *C_out, int64_t *H_out, int64_t *W_out)
{
    (void)bytes, (void)count, (void)C_out, (void)H_out, (void)W_out;
    CVY_FAIL(CVY_E_UNSUPPORTED,
             "a JPEG, and this build has no JPEG decoder: install libjpeg-turbo's headers and build again");
}

cvy_status cvy_jpeg_decode(const cvy_decode *d, cvy_picture *out)
{
    (void)d, (void)out;
    return cvy_jpeg_read_header(NULL, 0, NULL, NULL, NULL);
}
#endif
