/*
 * data_encode.h: encodes pictures as JPEG and PNG.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_ENCODE_H
#define CVY_DATA_ENCODE_H

#include "data/data_reader.h"

/* Encodes planes of u8, grey or RGB. quality is 1 to 100 as in cjpeg; colour has half the resolution.
 * CVY_E_UNSUPPORTED: this build has no JPEG. */
cvy_status cvy_picture_encode_jpeg(const cvy_picture *picture, int quality, cvy_bytes *out);
/* Encodes planes of u8, grey or RGB. rows is scratch memory. CVY_E_UNSUPPORTED: this build has no PNG. */
cvy_status cvy_picture_encode_png(const cvy_picture *picture, cvy_bytes *rows, cvy_bytes *out);

#endif
