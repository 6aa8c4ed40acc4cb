/* rows: clang asan */
/*
 * test_format_safetensors.c: files are read back bit by bit as they were written; 16-bit floats become f32; damaged and
 * hostile headers are refused with a message.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/base_hash.h"
#include "format/format.h"
#include "test_util.h"

static char path[] = "/tmp/cvy-safetensors-XXXXXX";

static void set_up(void)
{
    const int fd = mkstemp(path);
    EXPECT(fd >= 0 && close(fd) == 0);
}

static void tear_down(void)
{
    EXPECT_INT(unlink(path), 0);
}

/* Writes header and data to a file without any check, as an attacker could. */
static void put(const char *header, uint64_t header_bytes, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    EXPECT(f != NULL);
    fwrite(&header_bytes, 1, 8, f);
    fwrite(header, 1, strlen(header), f);
    fwrite(data, 1, bytes, f);
    fclose(f);
}

static void refused(const char *header, size_t data_bytes, const char *reason)
{
    static const char zeros[4096];
    cvy_safetensors *f = NULL;
    put(header, strlen(header), zeros, data_bytes);
    EXPECT(cvy_safetensors_open(path, &f) < 0);
    EXPECT(f == NULL);
    if (!strstr(cvy_error_text(), reason) || !strstr(cvy_error_text(), path))
        TEST_FAIL("expected '%s' in '%s'", reason, cvy_error_text());
}

static void round_trip(void)
{
    const float w[6] = {1, -2.5f, 3e-30f, INFINITY, -0.0f, 6};
    const double d[1] = {M_PI};
    const int64_t n[3] = {1, -2, INT64_MAX};
    const uint8_t u[5] = {0, 1, 2, 254, 255};
    const cvy_tensor_entry entry[] = {
        {"conv1.weight", CVY_DTYPE_F32, {2, {2, 3}}, w}, {"scale", CVY_DTYPE_F64, {0, {0}}, d},
        {"count", CVY_DTYPE_I64, {1, {3}}, n},           {"bytes \"quoted\" \xc3\xa9", CVY_DTYPE_U8, {1, {5}}, u},
        {"none", CVY_DTYPE_F32, {2, {0, 7}}, w},
    };
    const char *const meta[] = {"step", "17", "writer", "test", NULL};
    uint64_t hash = 0;
    size_t bytes = 0, read_bytes = 0;
    char *all = NULL;
    cvy_safetensors *f = NULL;

    EXPECT_OK(cvy_safetensors_write(path, entry, CVY_COUNT(entry), meta, &hash, &bytes));
    EXPECT_OK(cvy_file_read(path, 1 << 20, &all, &read_bytes));
    EXPECT_INT(read_bytes, bytes);
    EXPECT(cvy_hash(all, bytes) == hash);
    cvy_mem_free(&all);

    EXPECT_OK(cvy_safetensors_open(path, &f));
    EXPECT_INT(cvy_safetensors_count(f), CVY_COUNT(entry));
    EXPECT_TEXT(cvy_safetensors_meta(f, "step"), "17");
    EXPECT(cvy_safetensors_meta(f, "nothing") == NULL);
    EXPECT(cvy_safetensors_find(f, "conv1") == NULL);
    for (int i = 0; i < CVY_COUNT(entry); i++) {
        const cvy_tensor_entry *e = cvy_safetensors_find(f, entry[i].name);
        const size_t size = (size_t)cvy_shape_elems(&entry[i].shape) * cvy_dtype_bytes(entry[i].dtype);
        char copy[64];
        EXPECT(e != NULL);
        EXPECT_INT(e->dtype, entry[i].dtype);
        EXPECT(cvy_shape_equal(&e->shape, &entry[i].shape));
        EXPECT(memcmp(e->data, entry[i].data, size) == 0);
        EXPECT_OK(cvy_safetensors_read(f, cvy_safetensors_index(f, e->name), e->dtype, copy));
        EXPECT(memcmp(copy, entry[i].data, size) == 0);
    }
    double wide[6];
    EXPECT_OK(cvy_safetensors_read(f, 0, CVY_DTYPE_F64, wide));
    for (int i = 0; i < 6; i++)
        EXPECT(wide[i] == w[i]);
    EXPECT(cvy_safetensors_read(f, cvy_safetensors_index(f, "count"), CVY_DTYPE_F32, wide) == CVY_E_UNSUPPORTED);
    cvy_safetensors_close(&f);
    EXPECT(f == NULL);
}

static void empty_file_of_tensors(void)
{
    cvy_safetensors *f = NULL;
    EXPECT_OK(cvy_safetensors_write(path, NULL, 0, NULL, NULL, NULL));
    EXPECT_OK(cvy_safetensors_open(path, &f));
    EXPECT_INT(cvy_safetensors_count(f), 0);
    cvy_safetensors_close(&f);
}

static void sixteen_bits(void)
{
    /* 1, -2, 65504 (largest half), 2^-24 (smallest), -inf, nan; then the first two as bf16 */
    const uint16_t data[] = {0x3c00, 0xc000, 0x7bff, 0x0001, 0xfc00, 0x7e00, 0x3f80, 0xc000};
    const char *const header = "{\"h\":{\"dtype\":\"F16\",\"shape\":[6],\"data_offsets\":[0,12]},"
                               "\"b\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[12,16]}}";
    const float expected[] = {1, -2, 65504, 0x1p-24f, -INFINITY};
    cvy_safetensors *f = NULL;
    float x[6];
    put(header, strlen(header), data, sizeof data);
    EXPECT_OK(cvy_safetensors_open(path, &f));
    EXPECT_INT(cvy_safetensors_find(f, "h")->dtype, CVY_DTYPE_COUNT);
    EXPECT_TEXT(cvy_safetensors_dtype(f, cvy_safetensors_index(f, "b")), "BF16");
    EXPECT_OK(cvy_safetensors_read(f, cvy_safetensors_index(f, "h"), CVY_DTYPE_F32, x));
    for (int i = 0; i < 5; i++)
        EXPECT(x[i] == expected[i]);
    EXPECT(isnan(x[5]));
    EXPECT_OK(cvy_safetensors_read(f, cvy_safetensors_index(f, "b"), CVY_DTYPE_F32, x));
    EXPECT(x[0] == 1 && x[1] == -2);
    cvy_safetensors_close(&f);
}

static void hostile_headers(void)
{
    cvy_safetensors *f = NULL;
    refused("", 0, "does not begin with '{'");
    refused("[]", 0, "does not begin with '{'");
    refused("{\"a\":", 0, "");
    refused("{\"a\":1}", 0, "tensor 'a'");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "data_offsets");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 4, "the file has 4 bytes of data");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, "does not take");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, "bytes 4 to 0");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, "non-negative");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1e0],\"data_offsets\":[0,4]}}", 4, "non-negative");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,8],\"data_offsets\":[0,4]}}", 4, "overflows");
    refused("{\"a\":{\"dtype\":\"F64\",\"shape\":[2305843009213693952],\"data_offsets\":[0,0]}}", 0, "does not take");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,99999999999999999999]}}", 4, "below 2^63");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4, "7 dimensions");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"F32\",\"shape\":[1],"
            "\"data_offsets\":[0,4]}}",
            4, "overlap");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"F32\",\"shape\":[1],"
            "\"data_offsets\":[8,12]}}",
            12, "overlap or leave a gap");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 8,
            "8 bytes of data, of which the header names 4");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"a\":{\"dtype\":\"F32\",\"shape\":[1],"
            "\"data_offsets\":[4,8]}}",
            8, "a");
    put("{}", (uint64_t)1 << 62, "", 0);
    EXPECT(cvy_safetensors_open(path, &f) == CVY_E_FORMAT);
    put("{}", UINT64_MAX, "", 0);
    EXPECT(cvy_safetensors_open(path, &f) == CVY_E_FORMAT);
    EXPECT(cvy_safetensors_open("/nonexistent/file", &f) == CVY_E_IO);
    EXPECT(cvy_safetensors_open("/tmp", &f) == CVY_E_IO);
    EXPECT(f == NULL);
}

/* Any prefix of a good file, and the file with any flipped bit of its header, is refused or opens to tensors within the
 * file. Nothing crashes. */
static void prefixes_and_flips(void)
{
    const float w[6] = {1, 2, 3, 4, 5, 6};
    const cvy_tensor_entry entry[] = {{"a.weight", CVY_DTYPE_F32, {2, {2, 3}}, w},
                                      {"a.bias", CVY_DTYPE_F32, {1, {2}}, w}};
    char *all = NULL;
    size_t bytes = 0;
    cvy_safetensors *f = NULL;
    EXPECT_OK(cvy_safetensors_write(path, entry, 2, NULL, NULL, NULL));
    EXPECT_OK(cvy_file_read(path, 1 << 20, &all, &bytes));
    for (size_t n = 0; n < bytes; n++) {
        EXPECT_INT(truncate(path, 0), 0);
        FILE *out = fopen(path, "wb");
        fwrite(all, 1, n, out);
        fclose(out);
        EXPECT(cvy_safetensors_open(path, &f) < 0);
    }
    for (size_t bit = 0; bit < 8 * (bytes - 32); bit++) {
        all[bit / 8] ^= (char)(1 << bit % 8);
        FILE *out = fopen(path, "wb");
        fwrite(all, 1, bytes, out);
        fclose(out);
        all[bit / 8] ^= (char)(1 << bit % 8);
        if (cvy_safetensors_open(path, &f) != CVY_OK)
            continue;
        for (int i = 0; i < cvy_safetensors_count(f); i++) {
            char copy[32];
            EXPECT(cvy_shape_elems(&cvy_safetensors_at(f, i)->shape) * 4 <= (int64_t)sizeof copy ||
                   cvy_safetensors_at(f, i)->dtype != CVY_DTYPE_F32);
            if (cvy_safetensors_at(f, i)->dtype == CVY_DTYPE_F32)
                EXPECT_OK(cvy_safetensors_read(f, i, CVY_DTYPE_F32, copy));
        }
        cvy_safetensors_close(&f);
    }
    cvy_mem_free(&all);
}

static void out_of_memory(void)
{
    const float w[2] = {1, 2};
    const cvy_tensor_entry entry[] = {{"a", CVY_DTYPE_F32, {1, {2}}, w}};
    cvy_safetensors *f = NULL;
    int failed = 0;
    EXPECT_OK(cvy_safetensors_write(path, entry, 1, NULL, NULL, NULL));
    for (int k = 1; k < 100; k++) {
        cvy_mem_fail_at(k, 0);
        const cvy_status status = cvy_safetensors_open(path, &f);
        cvy_mem_fail_at(0, 0);
        if (status == CVY_OK) {
            cvy_safetensors_close(&f);
            break;
        }
        EXPECT_INT(status, CVY_E_MEMORY);
        EXPECT(f == NULL);
        failed++;
    }
    EXPECT(failed > 1 && failed < 99);
}

int main(void)
{
    set_up();
    TEST(round_trip);
    TEST(empty_file_of_tensors);
    TEST(sixteen_bits);
    TEST(hostile_headers);
    TEST(prefixes_and_flips);
    TEST(out_of_memory);
    tear_down();
    return test_end();
}
