/*
 * fuzz_repair.c: corrects checksums and counts after most mutations, because otherwise hardly any input would get past
 * them. The code that reads such files must be safe nevertheless: a checksum shows damage, and says nothing about who
 * wrote the file.
 *
 * The build sets REPAIR to TFRECORD, PACK or PNG.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "fuzz_files.h"

#include "data/pack/data_pack.h"
#include "data/tfrecord/data_tfrecord.h"
#include "format/format_protobuf.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

/* Corrects each record's length, the length's checksum and the record's checksum. A length beyond the end of the file,
 * if it is less than 1 MiB, is reduced so that the record ends with the file. */
static void repair_tfrecord(uint8_t *data, size_t size)
{
    enum { AROUND = CVY_TFRECORD_HEAD + CVY_TFRECORD_FOOT };
    while (size >= AROUND) {
        uint64_t bytes = cvy_wire_little(data, 8);
        if (bytes > size - AROUND && bytes < 1 << 20)
            cvy_tfrecord_put(data, bytes = size - AROUND, 8);
        cvy_tfrecord_put(data + 8, cvy_tfrecord_crc(data, 8), 4);
        if (bytes > size - AROUND)
            return;
        cvy_tfrecord_put(data + CVY_TFRECORD_HEAD + bytes, cvy_tfrecord_crc(data + CVY_TFRECORD_HEAD, bytes), 4);
        data += AROUND + bytes;
        size -= AROUND + bytes;
    }
}

/* Writes the number after a key of the description, if digits and blanks leave room for it. */
static void set_number(uint8_t *json, size_t size, const char *key, uint64_t value)
{
    char digits[24];
    uint8_t *at = memmem(json, size, key, strlen(key));
    if (!at)
        return;
    at += strlen(key);
    size_t room = 0;
    while (at + room < json + size && strchr("0123456789 ", at[room]) && at[room])
        room++;
    const size_t n = (size_t)snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
    if (n > room)
        return;
    memset(at, ' ', room);
    memcpy(at, digits, n);
}

static void repair_pack(uint8_t *data, size_t size)
{
    const uint8_t *piece[FUZZ_FILES];
    size_t bytes[FUZZ_FILES];
    if (fuzz_cut(data, size, 3, piece, bytes) < 3)
        return;
    uint8_t *json = data, *index = data + (piece[1] - data), *part = data + (piece[2] - data);
    for (size_t at = 0; at + PACK_ENTRY_BYTES <= bytes[1]; at += PACK_ENTRY_BYTES) {
        struct pack_entry e = pack_entry_get(index + at);
        if (e.offset > bytes[2] || e.bytes > bytes[2] - e.offset)
            continue;
        e.crc = cvy_crc32c(0, part + e.offset, e.bytes);
        pack_entry_put(index + at, &e);
    }
    set_number(json, bytes[0], "\"samples\":", bytes[1] / PACK_ENTRY_BYTES);
    set_number(json, bytes[0], "\"index_crc32c\":", cvy_crc32c(0, index, bytes[1]));
    set_number(json, bytes[0], "\"part_bytes\": [", bytes[2]);
}

/* CRC-32 as PNG defines it. */
static uint32_t png_crc(const uint8_t *data, size_t bytes)
{
    uint32_t crc = 0xFFFFFFFF;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
    }
    return ~crc;
}

static void repair_png(uint8_t *data, size_t size)
{
    enum { SIGNATURE = 8, AROUND = 12 };
    if (size < SIGNATURE || data[0] != 0x89)
        return;
    for (size_t at = SIGNATURE; at + AROUND <= size;) {
        const uint32_t bytes =
            (uint32_t)data[at] << 24 | (uint32_t)data[at + 1] << 16 | (uint32_t)data[at + 2] << 8 | data[at + 3];
        if (bytes > size - at - AROUND)
            return;
        const uint32_t crc = png_crc(data + at + 4, bytes + 4);
        for (int i = 0; i < 4; i++)
            data[at + 8 + bytes + (size_t)i] = (uint8_t)(crc >> (24 - 8 * i));
        at += AROUND + bytes;
    }
}

enum { TFRECORD, PACK, PNG };
static void (*const repairs[])(uint8_t *data, size_t size) = {repair_tfrecord, repair_pack, repair_png};

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    size = LLVMFuzzerMutate(data, size, max_size);
    if (seed % 16 != 0)
        repairs[REPAIR](data, size);
    return size;
}
