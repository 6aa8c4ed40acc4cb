/*
 * data_decode.h: shared by the decoders, each of which has its own file. data_decode.c chooses one by the first bytes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_DECODE_H
#define CVY_DATA_DECODE_H

#include "data/data_reader.h"

/* Arguments for decoding one picture from bytes to planes. */
typedef struct cvy_decode {
    const void *bytes;
    size_t count;
    int64_t channels;            /* of the result: 1 or 3 */
    cvy_window_fn choose_window; /* chooses a part of the picture; NULL: the whole picture */
    void *user;
    cvy_bytes *room, *rows; /* buffers for the planes, and for scratch memory */
} cvy_decode;

cvy_status cvy_jpeg_read_header(const void *bytes, size_t count, int64_t *C_out, int64_t *H_out, int64_t *W_out);
cvy_status cvy_jpeg_decode(const cvy_decode *d, cvy_picture *out);

/* Grey from colour: ITU-R BT.601. */
static inline uint8_t cvy_picture_luma(uint8_t r, uint8_t g, uint8_t b)
{
    return (uint8_t)((299 * r + 587 * g + 114 * b + 500) / 1000);
}
/* Checks the size against the limits for malicious files. The error names `kind`. */
cvy_status cvy_picture_check_size(const char *kind, int64_t H, int64_t W);
/* Allocates planes of bytes in d->room, and describes them in *out. */
cvy_status cvy_picture_need_planes(const cvy_decode *d, int64_t H, int64_t W, cvy_picture *out);

#endif
