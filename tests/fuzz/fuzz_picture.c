/*
 * fuzz_picture.c: JPEG and PNG from memory, as libFuzzer makes them up: looked at and decoded, to grey and to colour.
 */
#include <stdlib.h>

#include "data/data_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cvy_bytes room = {0}, rows = {0};
    int64_t C = 0, H = 0, W = 0;
    cvy_picture p;
    const cvy_coding coding = cvy_picture_coding(data, size);
    if (coding == CVY_CODING_PLAIN)
        return 0;
    const cvy_status status = cvy_picture_look(coding, data, size, &C, &H, &W);
    if (status == CVY_OK && H * W <= 1 << 20) /* larger ones are only slow */
        for (int64_t channels = 1; channels <= 3; channels += 2)
            if (cvy_picture_decode(coding, data, size, channels, &room, &rows, &p) == CVY_OK && (p.C != channels || p.H != H || p.W != W))
                abort();
    cvy_mem_free(&room.data);
    cvy_mem_free(&rows.data);
    return 0;
}
