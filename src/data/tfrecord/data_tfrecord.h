/*
 * data_tfrecord.h: the framing of TFRecord files, shared by reader and writer.
 *
 *     u64 length, u32 checksum of the length, the record, u32 checksum of the record
 *
 * Numbers are little endian. Checksums are masked CRC-32C: the mask keeps a checksum useful if the data contain
 * checksums themselves. Source: record_writer.cc and crc32c.h of TensorFlow.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_TFRECORD_H
#define CVY_DATA_TFRECORD_H

#include "base/base_hash.h"
#include "data/data_index.h"

enum { CVY_TFRECORD_HEAD = 12, CVY_TFRECORD_FOOT = 4 };

/* Appended to the name of a feature: the features with the type of its raw bytes, and with its shape. */
#define CVY_TFRECORD_DTYPE "/dtype"
#define CVY_TFRECORD_SHAPE "/shape"

static inline uint32_t cvy_tfrecord_crc(const void *data, size_t bytes)
{
    const uint32_t crc = cvy_crc32c(0, data, bytes);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static inline void cvy_tfrecord_put(uint8_t *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

/* Reads the head of the record at byte `at` of the scan's file. *bytes_out: its size without head and foot. Errors name
 * file, record and byte. */
cvy_status cvy_tfrecord_read_head(cvy_scan *scan, int64_t at, int64_t record, uint32_t *bytes_out);

#endif
