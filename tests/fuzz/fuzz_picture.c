/*
 * fuzz_picture.c: fuzzes JPEG and PNG decoding from memory: the header is read, and the picture is decoded to grey and
 * to colour, completely and as a window at a reduced size as training does it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>

#include "data/data_reader.h"

/* Asks for the lower right part, at the scale that `user` points to. */
static int want_corner(void *user, int64_t H, int64_t W, cvy_picture_window *out)
{
    *out = (cvy_picture_window){
        .top = H / 3, .left = W / 3, .height = H - H / 3, .width = W - W / 3, .scale = *(const double *)user};
    return 1;
}

static void decode(cvy_coding coding, const uint8_t *data, size_t size, int64_t channels, int64_t H, int64_t W)
{
    static const double scales[] = {1, 0.5, 0.1};
    cvy_bytes room = {0}, rows = {0};
    cvy_picture p = {0};
    if (cvy_picture_decode(coding, data, size, channels, &room, &rows, &p) == CVY_OK &&
        (p.C != channels || p.H != H || p.W != W))
        abort();
    for (int i = 0; i < CVY_COUNT(scales); i++) {
        double scale = scales[i];
        if (cvy_picture_decode_part(coding, data, size, channels, want_corner, &scale, &room, &rows, &p) == CVY_OK &&
            p.C != channels)
            abort();
    }
    cvy_mem_free(&room.data);
    cvy_mem_free(&rows.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t C = 0, H = 0, W = 0;
    const cvy_coding coding = cvy_picture_coding(data, size);
    const cvy_status status = cvy_picture_read_header(coding, data, size, &C, &H, &W);
    if (status < CVY_OK && !cvy_error_text()[0])
        abort();
    if (status == CVY_OK && H * W <= 1 << 18) { /* larger ones are only slow */
        decode(coding, data, size, 1, H, W);
        decode(coding, data, size, 3, H, W);
    }
    return 0;
}
