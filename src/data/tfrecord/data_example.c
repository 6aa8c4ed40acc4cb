/*
 * data_example.c: see data_example.h.
 *
 * Example { Features features = 1 }, Features { map<string, Feature> feature = 1 }: each entry of the map is a message
 * with the name as field 1 and the feature as field 2. A Feature holds one of three lists. The values of a list are its
 * field 1, packed or one by one. As always in protocol buffers, the last of several equal fields counts.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/tfrecord/data_example.h"

#include <stdio.h>

const char *cvy_feature_kind_text(cvy_feature_kind kind)
{
    static const char *const text[] = {"nothing", "bytes", "floats", "integers"};
    return text[kind];
}

/* ---- reading ---- */

struct walk {
    cvy_wire example, features;
};

static int read_feature(cvy_wire w, cvy_feature *out)
{
    cvy_wire_field f;
    int got;
    *out = (cvy_feature){CVY_FEATURE_ABSENT, {NULL, NULL}};
    while ((got = cvy_wire_next(&w, &f)) > 0)
        if (f.number <= CVY_FEATURE_INTS && f.kind == CVY_WIRE_BYTES)
            *out = (cvy_feature){(cvy_feature_kind)f.number, f.bytes};
    if (out->list.at == out->list.end)
        out->kind = CVY_FEATURE_ABSENT;
    return got == 0;
}

static int read_entry(cvy_wire w, cvy_wire *name, cvy_feature *out)
{
    cvy_wire_field f;
    int got, sound = 1;
    *name = (cvy_wire){NULL, NULL};
    *out = (cvy_feature){CVY_FEATURE_ABSENT, {NULL, NULL}};
    while ((got = cvy_wire_next(&w, &f)) > 0) {
        if (f.number == 1 && f.kind == CVY_WIRE_BYTES)
            *name = f.bytes;
        else if (f.number == 2 && f.kind == CVY_WIRE_BYTES)
            sound = sound && read_feature(f.bytes, out);
    }
    return got == 0 && sound;
}

/* Returns 1 and the next feature, 0 at the end, or -1 if the record is damaged. */
static int next_feature(struct walk *w, cvy_wire *name, cvy_feature *out)
{
    cvy_wire_field f;
    for (;;) {
        int got = cvy_wire_next(&w->features, &f);
        if (got > 0 && f.number == 1)
            return f.kind == CVY_WIRE_BYTES && read_entry(f.bytes, name, out) ? 1 : -1;
        if (got < 0)
            return -1;
        if (got > 0)
            continue;
        got = cvy_wire_next(&w->example, &f);
        if (got <= 0)
            return got;
        if (f.number == 1 && f.kind != CVY_WIRE_BYTES)
            return -1;
        if (f.number == 1)
            w->features = f.bytes;
    }
}

static struct walk walk_begin(const void *record, size_t bytes)
{
    return (struct walk){.example = {record, (const uint8_t *)record + bytes}};
}

static int is_name(const cvy_wire *name, const char *wanted)
{
    const size_t n = (size_t)(name->end - name->at);
    return n > 0 && n == strlen(wanted) && memcmp(wanted, name->at, n) == 0;
}

cvy_status cvy_example_find(const void *record, size_t bytes, const char *const *name, int n, cvy_feature *out)
{
    struct walk w = walk_begin(record, bytes);
    cvy_wire key;
    cvy_feature f;
    int got, count = 0;
    memset(out, 0, (size_t)n * sizeof *out);
    for (; (got = next_feature(&w, &key, &f)) > 0; count++)
        for (int i = 0; i < n; i++)
            if (name[i] && is_name(&key, name[i]))
                out[i] = f;
    CVY_CHECK(got == 0 && count > 0, CVY_E_FORMAT, "is not a tf.train.Example (%zu bytes%s)", bytes,
              got == 0 ? " without a feature" : "");
    return CVY_OK;
}

void cvy_example_describe(const void *record, size_t bytes, char *text, size_t room)
{
    struct walk w = walk_begin(record, bytes);
    cvy_wire key;
    cvy_feature f;
    size_t at = 0;
    text[0] = 0;
    while (next_feature(&w, &key, &f) > 0 && at < room)
        at += (size_t)snprintf(text + at, room - at, "%s%.*s (%s)", at ? ", " : "", (int)CVY_MIN(key.end - key.at, 64),
                               key.at ? (const char *)key.at : "", cvy_feature_kind_text(f.kind));
}

int cvy_feature_bytes(const cvy_feature *f, cvy_wire *out)
{
    cvy_wire w = f->list;
    cvy_wire_field v;
    while (f->kind == CVY_FEATURE_BYTES && cvy_wire_next(&w, &v) > 0) {
        if (v.number == 1 && v.kind == CVY_WIRE_BYTES) {
            *out = v.bytes;
            return 1;
        }
    }
    return 0;
}

int64_t cvy_feature_ints(const cvy_feature *f, int64_t *out, int64_t room)
{
    cvy_wire w = f->list;
    cvy_wire_field v;
    int64_t n = 0;
    int got;
    if (f->kind != CVY_FEATURE_INTS)
        return -1;
    while ((got = cvy_wire_next(&w, &v)) > 0) {
        if (v.number != 1)
            continue;
        if (v.kind == CVY_WIRE_VARINT) {
            if (n < room)
                out[n] = (int64_t)v.value;
            n++;
            continue;
        }
        if (v.kind != CVY_WIRE_BYTES)
            return -1;
        for (uint64_t value = 0; v.bytes.at < v.bytes.end; n++) {
            if (!cvy_wire_varint(&v.bytes, &value))
                return -1;
            if (n < room)
                out[n] = (int64_t)value;
        }
    }
    return got < 0 ? -1 : n;
}

int64_t cvy_feature_floats(const cvy_feature *f, float *out, int64_t room)
{
    cvy_wire w = f->list;
    cvy_wire_field v;
    int64_t n = 0;
    int got;
    if (f->kind != CVY_FEATURE_FLOATS)
        return -1;
    while ((got = cvy_wire_next(&w, &v)) > 0) {
        if (v.number != 1)
            continue;
        if (v.kind == CVY_WIRE_32) {
            const uint32_t bits = (uint32_t)v.value;
            if (n < room)
                memcpy(&out[n], &bits, sizeof bits);
            n++;
            continue;
        }
        const int64_t bytes = v.kind == CVY_WIRE_BYTES ? v.bytes.end - v.bytes.at : 1;
        if (bytes % 4)
            return -1;
        const int64_t take = CVY_MIN(bytes / 4, CVY_MAX(room - n, 0));
        if (take > 0)
            memcpy(out + n, v.bytes.at, (size_t)take * sizeof(float));
        n += bytes / 4;
    }
    return got < 0 ? -1 : n;
}

/* ---- writing: a length comes before its contents, so sizes are computed from the inside out ---- */

struct sizes {
    size_t values, list, feature, entry; /* bytes of the contents, without the key and length before each */
};

static struct sizes sizes_of(const cvy_new_feature *f)
{
    struct sizes s = {.values = f->count};
    if (f->kind == CVY_FEATURE_FLOATS)
        s.values = f->count * sizeof(float);
    if (f->kind == CVY_FEATURE_INTS) {
        s.values = 0;
        for (size_t i = 0; i < f->count; i++)
            s.values += cvy_wire_varint_bytes((uint64_t)((const int64_t *)f->data)[i]);
    }
    s.list = cvy_wire_field_bytes(1, s.values);
    s.feature = cvy_wire_field_bytes((uint32_t)f->kind, s.list);
    s.entry = cvy_wire_field_bytes(1, strlen(f->name)) + cvy_wire_field_bytes(2, s.feature);
    return s;
}

static size_t features_bytes(const cvy_new_feature *f, int n)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += cvy_wire_field_bytes(1, sizes_of(&f[i]).entry);
    return bytes;
}

size_t cvy_example_bytes(const cvy_new_feature *f, int n)
{
    return cvy_wire_field_bytes(1, features_bytes(f, n));
}

void cvy_example_put(const cvy_new_feature *f, int n, uint8_t *to)
{
    to = cvy_wire_put_head(to, 1, features_bytes(f, n));
    for (int i = 0; i < n; i++, f++) {
        const struct sizes s = sizes_of(f);
        const size_t name_bytes = strlen(f->name);
        to = cvy_wire_put_head(to, 1, s.entry);
        to = cvy_wire_put_head(to, 1, name_bytes);
        memcpy(to, f->name, name_bytes);
        to = cvy_wire_put_head(to + name_bytes, 2, s.feature);
        to = cvy_wire_put_head(to, (uint32_t)f->kind, s.list);
        to = cvy_wire_put_head(to, 1, s.values);
        if (f->kind == CVY_FEATURE_INTS) {
            for (size_t k = 0; k < f->count; k++)
                to = cvy_wire_put_varint(to, (uint64_t)((const int64_t *)f->data)[k]);
        } else if (s.values > 0) {
            memcpy(to, f->data, s.values);
            to += s.values;
        }
    }
}
