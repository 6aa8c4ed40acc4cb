/*
 * data_encode_jpeg.c: encodes planes of bytes as JPEG (libjpeg-turbo), for generators of pictures.
 *
 * A training from files does not call it. After an error libjpeg leaves with longjmp. It writes directly into a buffer
 * of ours.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/picture/data_encode.h"

#include <stdio.h>
#include <string.h>

#if CVY_HAVE_JPEG
#include <jpeglib.h>
#include <setjmp.h>

struct encoder {
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr fault;
    struct jpeg_destination_mgr sink;
    jmp_buf leave;
    char text[JMSG_LENGTH_MAX];
    cvy_bytes *out;
    cvy_status status; /* result of growing the buffer */
};

static void leave(j_common_ptr c)
{
    struct encoder *e = c->client_data;
    c->err->format_message(c, e->text);
    longjmp(e->leave, 1);
}

static void silent(j_common_ptr c)
{
    (void)c;
}

static void sink_begin(j_compress_ptr c)
{
    struct encoder *e = c->client_data;
    c->dest->next_output_byte = e->out->data;
    c->dest->free_in_buffer = e->out->room;
}

/* libjpeg calls it when the buffer is completely full. */
static boolean sink_grow(j_compress_ptr c)
{
    struct encoder *e = c->client_data;
    const size_t used = e->out->room;
    e->status = cvy_mem_grow(&e->out->data, used, 2 * used);
    if (e->status != CVY_OK)
        longjmp(e->leave, 1);
    e->out->room = 2 * used;
    c->dest->next_output_byte = (JOCTET *)e->out->data + used;
    c->dest->free_in_buffer = used;
    return TRUE;
}

static void sink_end(j_compress_ptr c)
{
    struct encoder *e = c->client_data;
    e->out->bytes = e->out->room - c->dest->free_in_buffer;
}

/* All calls that may longjmp are here, so that no local variable of the caller is half changed after a jump. */
static void encode(struct encoder *e, const cvy_picture *p, int quality, uint8_t *row)
{
    const uint8_t *plane = p->data;
    e->c.image_width = (JDIMENSION)p->W;
    e->c.image_height = (JDIMENSION)p->H;
    e->c.input_components = (int)p->C;
    e->c.in_color_space = p->C == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&e->c);
    jpeg_set_quality(&e->c, quality, TRUE);
    jpeg_start_compress(&e->c, TRUE);
    for (int64_t y = 0; y < p->H; y++) {
        for (int64_t x = 0; x < p->W; x++)
            for (int64_t k = 0; k < p->C; k++)
                row[x * p->C + k] = plane[(k * p->H + y) * p->W + x];
        jpeg_write_scanlines(&e->c, &row, 1);
    }
    jpeg_finish_compress(&e->c);
}

cvy_status cvy_picture_encode_jpeg(const cvy_picture *picture, int quality, cvy_bytes *out)
{
    struct encoder e = {.out = out};
    uint8_t *row = NULL;
    CVY_CHECK(picture->dtype == CVY_DTYPE_U8 && (picture->C == 1 || picture->C == 3) && picture->W >= 1 &&
                  picture->H >= 1 && picture->W <= CVY_PICTURE_SIDE_MAX && picture->H <= CVY_PICTURE_SIDE_MAX,
              CVY_E_UNSUPPORTED, "a picture of %lld channels, %lldx%lld, cannot be written as a JPEG",
              (long long)picture->C, (long long)picture->H, (long long)picture->W);
    CVY_TRY(cvy_bytes_need(out, CVY_MAX((size_t)(picture->C * picture->H * picture->W) / 4, 4096)));
    CVY_TRY(cvy_mem_alloc((size_t)(picture->C * picture->W), &row));
    e.c.err = jpeg_std_error(&e.fault);
    e.c.client_data = &e;
    e.fault.error_exit = leave;
    e.fault.output_message = silent;
    if (setjmp(e.leave)) {
        jpeg_destroy_compress(&e.c);
        cvy_mem_free(&row);
        CVY_TRY(e.status);
        CVY_FAIL(CVY_E_INTERNAL, "a JPEG cannot be written: %s", e.text);
    }
    jpeg_create_compress(&e.c);
    e.sink = (struct jpeg_destination_mgr){
        .init_destination = sink_begin, .empty_output_buffer = sink_grow, .term_destination = sink_end};
    e.c.dest = &e.sink;
    encode(&e, picture, quality, row);
    jpeg_destroy_compress(&e.c);
    cvy_mem_free(&row);
    return CVY_OK;
}
#else
cvy_status cvy_picture_encode_jpeg(const cvy_picture *picture, int quality, cvy_bytes *out)
{
    (void)picture, (void)quality, (void)out;
    CVY_FAIL(CVY_E_UNSUPPORTED, "this build cannot write a JPEG: install libjpeg-turbo's headers and build again");
}
#endif
