/*
 * data_decode.h: between the decoders: one a file, data_decode.c chooses by the first bytes.
 */
#ifndef CVY_DATA_DECODE_H
#define CVY_DATA_DECODE_H

#include "data/data_reader.h"

/* One picture on its way from bytes to planes. */
typedef struct cvy_decode {
    const void *bytes;
    size_t count;
    int64_t channels; /* 1 or 3 */
    cvy_want_fn want; /* NULL: the whole picture */
    void *user;
    cvy_bytes *room, *rows; /* of the planes, and for work */
} cvy_decode;

cvy_status cvy_jpeg_look(const void *bytes, size_t count, int64_t *C_out, int64_t *H_out, int64_t *W_out);
cvy_status cvy_jpeg_decode(const cvy_decode *d, cvy_picture *out);

/* Within the limits on hostile files, or a fault that names `kind`. */
cvy_status cvy_picture_check_size(const char *kind, int64_t H, int64_t W);
/* Planes of bytes in d->room. */
cvy_status cvy_picture_need_planes(const cvy_decode *d, int64_t H, int64_t W, cvy_picture *out);

#endif
