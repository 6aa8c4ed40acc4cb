/*
 * score_picture.h: pictures in test.json, as data URLs of PNG files that a page can show.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SCORE_PICTURE_H
#define CVY_SCORE_PICTURE_H

#include "base/text/base_json.h"
#include "data/picture/data_encode.h"

enum { CVY_SCORE_PICTURE_SIDE = 160 }; /* limit of the longer side, pixels */

typedef struct cvy_score_picture { /* buffers, which the next picture uses again */
    cvy_bytes rows, png;
} cvy_score_picture;

/* Adds "key": "data:image/png;base64,...". The picture is u8, grey or RGB. CVY_E_UNSUPPORTED: this build has no PNG;
 * then nothing is added. */
cvy_status cvy_score_picture_add(cvy_score_picture *buffers, const char *key, const cvy_picture *p, cvy_json *json);
void cvy_score_picture_end(cvy_score_picture *buffers);

#endif
