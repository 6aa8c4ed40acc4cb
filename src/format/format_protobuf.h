/*
 * format_protobuf.h: the wire format of protocol buffers, as far as tf.train.Example and Caffe's Datum need it.
 *
 * A message is a sequence of fields: a key (number << 3 | kind), then a varint, 8 bytes, a length with as many bytes,
 * or 4 bytes. Unknown fields are skipped. Input may be malicious: nothing is read beyond `end`. Source: the encoding
 * page of the protocol buffers documentation.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_FORMAT_PROTOBUF_H
#define CVY_FORMAT_PROTOBUF_H

#include <string.h>

typedef enum { CVY_WIRE_VARINT = 0, CVY_WIRE_64 = 1, CVY_WIRE_BYTES = 2, CVY_WIRE_32 = 5 } cvy_wire_kind;

typedef struct cvy_wire {
    const uint8_t *at, *end;
} cvy_wire;

typedef struct cvy_wire_field {
    uint32_t number;
    cvy_wire_kind kind;
    uint64_t value; /* of VARINT, 64 and 32 (bits) */
    cvy_wire bytes; /* of BYTES */
} cvy_wire_field;

/* Reads a varint. Returns 0 if it does not end within ten bytes or before the end of the input. */
static inline int cvy_wire_varint(cvy_wire *w, uint64_t *out)
{
    uint64_t v = 0;
    for (int shift = 0; shift < 70 && w->at < w->end; shift += 7) {
        const uint8_t byte = *w->at++;
        v |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
        if (!(byte & 0x80)) {
            *out = v;
            return 1;
        }
    }
    return 0;
}

static inline uint64_t cvy_wire_little(const uint8_t *p, int bytes)
{
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)p[i] << 8 * i;
    return v;
}

/* Reads the next field. Returns 1, 0 at the end, or -1 if the input is damaged. */
static inline int cvy_wire_next(cvy_wire *w, cvy_wire_field *out)
{
    uint64_t key = 0, n = 0;
    if (w->at == w->end)
        return 0;
    if (!cvy_wire_varint(w, &key) || key >> 3 == 0 || key >> 32)
        return -1;
    *out = (cvy_wire_field){.number = (uint32_t)(key >> 3), .kind = (cvy_wire_kind)(key & 7)};
    const size_t left = (size_t)(w->end - w->at);
    switch (out->kind) {
    case CVY_WIRE_VARINT: return cvy_wire_varint(w, &out->value) ? 1 : -1;
    case CVY_WIRE_64:
    case CVY_WIRE_32: {
        const int bytes = out->kind == CVY_WIRE_64 ? 8 : 4;
        if (left < (size_t)bytes)
            return -1;
        out->value = cvy_wire_little(w->at, bytes);
        w->at += bytes;
        return 1;
    }
    case CVY_WIRE_BYTES:
        if (!cvy_wire_varint(w, &n) || n > (uint64_t)(w->end - w->at))
            return -1;
        out->bytes = (cvy_wire){w->at, w->at + n};
        w->at += n;
        return 1;
    default: return -1; /* groups are obsolete and not supported */
    }
}

/* ---- writing: `to` must have room; the result is the position after what was written ---- */

static inline uint8_t *cvy_wire_put_varint(uint8_t *to, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        *to++ = (uint8_t)(v | 0x80);
    *to++ = (uint8_t)v;
    return to;
}

static inline uint8_t *cvy_wire_put_key(uint8_t *to, uint32_t number, cvy_wire_kind kind)
{
    return cvy_wire_put_varint(to, (uint64_t)number << 3 | (uint64_t)kind);
}

/* Writes key and length; the caller writes the bytes after them. */
static inline uint8_t *cvy_wire_put_head(uint8_t *to, uint32_t number, uint64_t bytes)
{
    return cvy_wire_put_varint(cvy_wire_put_key(to, number, CVY_WIRE_BYTES), bytes);
}

static inline size_t cvy_wire_varint_bytes(uint64_t v)
{
    size_t n = 1;
    for (; v >= 0x80; v >>= 7)
        n++;
    return n;
}

/* Size of a field with `bytes` bytes, including key and length. */
static inline size_t cvy_wire_field_bytes(uint32_t number, uint64_t bytes)
{
    return cvy_wire_varint_bytes((uint64_t)number << 3) + cvy_wire_varint_bytes(bytes) + (size_t)bytes;
}

#endif
