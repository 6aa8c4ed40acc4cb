/*
 * data_pack.h: the layout of a packed data set, for its reader (data_pack.c) and its writer (data_pack_write.c).
 *
 *     pack.json          describes the set: shapes, classes, sizes of the parts, checksum of the index; written last
 *     index.bin          an entry of 32 bytes for each sample
 *     part-00000.cvy ..  records, one after the other
 *
 * All numbers are little endian. A record is a header of 56 bytes, then y, then x as stored (JPEG and PNG stay
 * encoded). The CRC-32C in the entry covers the whole record, and the header repeats the sample's number, so flipped
 * bits and swapped records are detected. Samples that were left out leave gaps in these numbers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_PACK_H
#define CVY_DATA_PACK_H

#include "data/data_reader.h"

enum { PACK_VERSION = 2, PACK_ENTRY_BYTES = 32, PACK_HEAD_BYTES = 56, PACK_MAGIC = 0x31525643 }; /* "CVR1" */
#define PACK_META "pack.json"
#define PACK_INDEX "index.bin"

struct pack_entry { /* u64 offset, u32 bytes, u32 crc, u32 part, i32 label, u64 number in the source (0 in version 1) */
    uint64_t offset, number;
    uint32_t bytes, crc, part;
    int32_t label;
};

static inline void put_u32(uint8_t *at, uint32_t x)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(x >> (8 * i));
}

static inline uint32_t get_u32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline void put_u64(uint8_t *at, uint64_t x)
{
    put_u32(at, (uint32_t)x);
    put_u32(at + 4, (uint32_t)(x >> 32));
}

static inline uint64_t get_u64(const uint8_t *at)
{
    return get_u32(at) | (uint64_t)get_u32(at + 4) << 32;
}

static inline void pack_entry_put(uint8_t *at, const struct pack_entry *e)
{
    put_u64(at, e->offset);
    put_u32(at + 8, e->bytes);
    put_u32(at + 12, e->crc);
    put_u32(at + 16, e->part);
    put_u32(at + 20, (uint32_t)e->label);
    put_u64(at + 24, e->number);
}

static inline struct pack_entry pack_entry_get(const uint8_t *at)
{
    return (struct pack_entry){.offset = get_u64(at),
                               .bytes = get_u32(at + 8),
                               .crc = get_u32(at + 12),
                               .part = get_u32(at + 16),
                               .label = (int32_t)get_u32(at + 20),
                               .number = get_u64(at + 24)};
}

struct pack_head { /* magic, u8 coding, u8 dtype, u8 ndim, u8 zero, u64 number, i32 label, f32 weight, u32 bytes of x,
                      u32 bytes of y, u32 dim[6] */
    cvy_coding coding;
    cvy_dtype dtype;
    cvy_shape shape;
    uint64_t number;
    int32_t label;
    float weight;
    uint32_t x_bytes, y_bytes;
};

#endif
