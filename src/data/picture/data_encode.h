/*
 * data_encode.h: pictures to JPEG and PNG.
 */
#ifndef CVY_DATA_ENCODE_H
#define CVY_DATA_ENCODE_H

#include "data/data_reader.h"

/* Planes of u8, grey or RGB; quality 1 to 100 as cjpeg counts it, colour at half resolution. CVY_E_UNSUPPORTED where
 * this build has no JPEG. */
cvy_status cvy_picture_encode_jpeg(const cvy_picture *picture, int quality, cvy_bytes *out);
/* Planes of u8, grey or RGB; rows: working space. CVY_E_UNSUPPORTED where this build has no PNG. */
cvy_status cvy_picture_encode_png(const cvy_picture *picture, cvy_bytes *rows, cvy_bytes *out);

#endif
