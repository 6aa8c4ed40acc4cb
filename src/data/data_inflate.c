/*
 * data_inflate.c: see data_inflate.h. libdeflate decompresses and verifies. It is several times as fast as zlib, which
 * the HDF5 library uses.
 *
 * Sources: RFC 1950 (zlib), RFC 1952 (gzip).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/data_inflate.h"

#include <string.h>

int cvy_is_gzip(const char *path)
{
    uint8_t head[2];
    return cvy_data_peek(path, head, sizeof head) == sizeof head && head[0] == 0x1f && head[1] == 0x8b;
}

cvy_status cvy_inflate_check_ratio(int64_t packed, int64_t bytes, const char *cure)
{
    CVY_CHECK(bytes <= CVY_INFLATE_LARGE || bytes / CVY_INFLATE_RATIO_MAX <= packed, CVY_E_UNSUPPORTED,
              "%lld bytes unpack to %lld, more than %d times as many: %s if that is right", (long long)packed,
              (long long)bytes, CVY_INFLATE_RATIO_MAX, cure);
    return CVY_OK;
}

#if CVY_HAVE_LIBDEFLATE
#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/machine/base_memfile.h"

static cvy_status judge(enum libdeflate_result result, size_t in_bytes, size_t got, size_t out_bytes)
{
    CVY_CHECK(result != LIBDEFLATE_BAD_DATA, CVY_E_FORMAT, "%zu bytes do not unpack to %zu: they are damaged", in_bytes,
              out_bytes);
    CVY_CHECK(result != LIBDEFLATE_INSUFFICIENT_SPACE, CVY_E_FORMAT, "%zu bytes unpack to more than %zu", in_bytes,
              out_bytes);
    CVY_CHECK(result == LIBDEFLATE_SUCCESS && got == out_bytes, CVY_E_FORMAT, "%zu bytes unpack to %zu, expected %zu",
              in_bytes, got, out_bytes);
    return CVY_OK;
}

cvy_status cvy_inflate(const void *in, size_t in_bytes, void *out, size_t out_bytes)
{
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    CVY_CHECK(d, CVY_E_MEMORY, "libdeflate cannot start");
    size_t used = 0, got = 0;
    const enum libdeflate_result result = libdeflate_zlib_decompress_ex(d, in, in_bytes, out, out_bytes, &used, &got);
    libdeflate_free_decompressor(d);
    return judge(result, in_bytes, got, out_bytes);
}

cvy_status cvy_inflate_any(const void *in, size_t in_bytes, cvy_bytes *out)
{
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    CVY_CHECK(d, CVY_E_MEMORY, "libdeflate cannot start");
    enum libdeflate_result result = LIBDEFLATE_INSUFFICIENT_SPACE;
    cvy_status status = CVY_OK;
    size_t used = 0, got = 0;
    for (size_t room = 4 * in_bytes + 4096; result == LIBDEFLATE_INSUFFICIENT_SPACE; room *= 2) {
        CVY_TRY_OUT(cvy_inflate_check_ratio((int64_t)in_bytes, (int64_t)room, "write it without compression"));
        CVY_TRY_OUT(cvy_bytes_need(out, room));
        result = libdeflate_zlib_decompress_ex(d, in, in_bytes, out->data, room, &used, &got);
    }
    if (result != LIBDEFLATE_SUCCESS)
        CVY_FAIL_OUT(CVY_E_FORMAT, "%zu compressed bytes do not unpack: truncated or damaged", in_bytes);
    out->bytes = got;
out:
    libdeflate_free_decompressor(d);
    return status;
}

static cvy_status inflate_member(cvy_inflate_kind kind, const void *in, size_t in_bytes, void *out, size_t out_bytes,
                                 uint32_t crc)
{
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    CVY_CHECK(d, CVY_E_MEMORY, "libdeflate cannot start");
    size_t used = 0, got = 0;
    const enum libdeflate_result result =
        kind == CVY_INFLATE_GZIP ? libdeflate_gzip_decompress_ex(d, in, in_bytes, out, out_bytes, &used, &got)
                                 : libdeflate_deflate_decompress_ex(d, in, in_bytes, out, out_bytes, &used, &got);
    libdeflate_free_decompressor(d);
    CVY_CHECK(result != LIBDEFLATE_SUCCESS || used == in_bytes, CVY_E_FORMAT,
              "%zu bytes follow the first compressed part: unpack it by gunzip", in_bytes - used);
    CVY_TRY(judge(result, in_bytes, got, out_bytes));
    CVY_CHECK(kind == CVY_INFLATE_GZIP || libdeflate_crc32(0, out, out_bytes) == crc, CVY_E_FORMAT,
              "the checksum of the unpacked bytes is wrong: damaged");
    return CVY_OK;
}

/* An anonymous file of so many bytes, and its memory. */
static cvy_status make_memory(int64_t bytes, int *fd_out, void **out)
{
    const int fd = cvy_memfile_create();
    CVY_CHECK(fd >= 0, CVY_E_UNSUPPORTED, "cannot be unpacked in memory (%s): unpack it first", strerror(errno));
    const int code = cvy_file_allocate(fd, (size_t)bytes);
    void *p = code == 0 ? mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (p == MAP_FAILED) {
        char why[CVY_WRITE_WHY];
        cvy_write_why(fd, code ? code : errno, why);
        cvy_data_file_close(&(cvy_data_file){.fd = fd});
        CVY_FAIL(CVY_E_MEMORY, "%lld bytes of memory to unpack it: %s", (long long)bytes, why);
    }
    *fd_out = fd;
    *out = p;
    return CVY_OK;
}

cvy_status cvy_inflate_file(const cvy_data_file *from, cvy_inflate_kind kind, int64_t offset, int64_t packed,
                            int64_t bytes, uint32_t crc, cvy_data_file *out)
{
    void *in = NULL, *memory = NULL;
    int fd = -1;
    cvy_status status = CVY_OK;
    CVY_CHECK(bytes > 0 && packed > 0 && offset >= 0 && packed <= from->bytes - offset, CVY_E_FORMAT,
              "%s: is truncated or empty, or has several compressed parts: unpack it by hand", from->path);
    CVY_TRY_OUT(cvy_inflate_check_ratio(packed, bytes, "it may be truncated: fetch it again, or unpack it by hand"));
    CVY_TRY_OUT(cvy_mem_alloc((size_t)packed, &in));
    CVY_TRY_OUT(cvy_pread_all(from->fd, in, (size_t)packed, offset, from->path));
    CVY_TRY_OUT(make_memory(bytes, &fd, &memory));
    CVY_TRY_OUT(inflate_member(kind, in, (size_t)packed, memory, (size_t)bytes, crc));
    *out = (cvy_data_file){.fd = fd, .bytes = bytes, .path = from->path};
out:
    cvy_mem_free(&in);
    if (memory)
        munmap(memory, (size_t)bytes);
    if (status == CVY_OK)
        return status;
    cvy_data_file_close(&(cvy_data_file){.fd = fd});
    return cvy_error_prefix(status, "%s", from->path);
}

cvy_status cvy_inflate_gzip(cvy_data_file *file)
{
    uint8_t size[4] = {0}; /* the last bytes have the size, modulo 2^32 */
    cvy_data_file out;
    CVY_CHECK(file->bytes >= 18, CVY_E_FORMAT, "%s: %lld bytes, too short for gzip", file->path,
              (long long)file->bytes);
    CVY_TRY(cvy_pread_all(file->fd, size, sizeof size, file->bytes - 4, file->path));
    const int64_t bytes = (int64_t)size[0] | (int64_t)size[1] << 8 | (int64_t)size[2] << 16 | (int64_t)size[3] << 24;
    CVY_TRY(cvy_inflate_file(file, CVY_INFLATE_GZIP, 0, file->bytes, bytes, 0, &out));
    cvy_data_file_close(file);
    *file = out;
    return CVY_OK;
}

/* ---- files that do not say how much they unpack to ---- */

/* Unpacks all members. CVY_NOT_APPLICABLE: there is not room enough. */
static cvy_status inflate_members(cvy_inflate_kind kind, const uint8_t *in, size_t in_bytes, uint8_t *out, size_t room,
                                  size_t *got_out)
{
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    CVY_CHECK(d, CVY_E_MEMORY, "libdeflate cannot start");
    enum libdeflate_result result = LIBDEFLATE_SUCCESS;
    size_t at = 0, got = 0;
    do {
        size_t used = 0, n = 0;
        result = kind == CVY_INFLATE_GZIP
                     ? libdeflate_gzip_decompress_ex(d, in + at, in_bytes - at, out + got, room - got, &used, &n)
                     : libdeflate_zlib_decompress_ex(d, in + at, in_bytes - at, out + got, room - got, &used, &n);
        if (result == LIBDEFLATE_SUCCESS) {
            at += used;
            got += n;
        }
    } while (result == LIBDEFLATE_SUCCESS && at < in_bytes && kind == CVY_INFLATE_GZIP);
    libdeflate_free_decompressor(d);
    if (result == LIBDEFLATE_INSUFFICIENT_SPACE)
        return CVY_NOT_APPLICABLE;
    CVY_CHECK(result == LIBDEFLATE_SUCCESS, CVY_E_FORMAT,
              "the compressed data from byte %zu of %zu on do not unpack: truncated or damaged; fetch the file again",
              at, in_bytes);
    CVY_CHECK(at == in_bytes, CVY_E_FORMAT, "%zu bytes follow the end of the compressed data, at byte %zu",
              in_bytes - at, at);
    *got_out = got;
    return CVY_OK;
}

/* Room for a first try: what the end of a file of gzip says, which holds if it has one member of less than 4 GiB. */
static int64_t guess_room(cvy_inflate_kind kind, const uint8_t *in, int64_t packed)
{
    const uint8_t *size = in + packed - 4;
    const int64_t usual = 4 * packed + 4096;
    if (kind != CVY_INFLATE_GZIP || packed < 18)
        return usual;
    const int64_t said = (int64_t)size[0] | (int64_t)size[1] << 8 | (int64_t)size[2] << 16 | (int64_t)size[3] << 24;
    return said > packed / 2 && said <= 4 * usual ? said : usual;
}

/* Unpacks to `room` bytes of memory, and gives back those that are not used. */
static cvy_status inflate_to_room(cvy_inflate_kind kind, const uint8_t *in, int64_t packed, int64_t room,
                                  cvy_data_file *out)
{
    void *memory = NULL;
    int fd = -1;
    size_t got = 0;
    CVY_TRY(make_memory(room, &fd, &memory));
    cvy_status status = inflate_members(kind, in, (size_t)packed, memory, (size_t)room, &got);
    munmap(memory, (size_t)room);
    if (status == CVY_OK && ftruncate(fd, (off_t)got) != 0)
        status = cvy_error_set(CVY_E_IO, "cannot be cut to %zu bytes: %s", got, strerror(errno));
    *out = (cvy_data_file){.fd = fd, .bytes = (int64_t)got, .path = out->path};
    if (status != CVY_OK)
        cvy_data_file_close(out);
    return status;
}

/* Tries with twice the room until all fits. */
static cvy_status inflate_all(const cvy_inflate_ask *ask, const uint8_t *in, int64_t packed, cvy_data_file *out)
{
    int64_t room = ask->bytes >= 0 ? ask->bytes : guess_room(ask->kind, in, packed);
    cvy_status status = CVY_NOT_APPLICABLE;
    for (; status == CVY_NOT_APPLICABLE; room *= 2) {
        room = CVY_MAX(room, 1);
        CVY_TRY(cvy_inflate_check_ratio(packed, room, "unpack it by hand"));
        CVY_CHECK(ask->most < 0 || room <= ask->most, CVY_E_MEMORY,
                  "to unpack it takes %lld bytes or more, and %lld bytes of memory are left: unpack it on a disk",
                  (long long)room, (long long)ask->most);
        status = inflate_to_room(ask->kind, in, packed, room, out);
    }
    CVY_TRY(status);
    CVY_CHECK(ask->bytes < 0 || out->bytes == ask->bytes, CVY_E_FORMAT,
              "unpacks to %lld bytes, and had %lld before: it was changed", (long long)out->bytes,
              (long long)ask->bytes);
    return CVY_OK;
}

cvy_status cvy_inflate_stream(const cvy_data_file *from, const cvy_inflate_ask *ask, cvy_data_file *out)
{
    uint8_t *in = NULL;
    *out = (cvy_data_file){.fd = -1, .path = from->path};
    CVY_TRY(cvy_mem_alloc((size_t)CVY_MAX(from->bytes, 1), &in));
    cvy_status status = cvy_pread_all(from->fd, in, (size_t)from->bytes, 0, from->path);
    if (status == CVY_OK) {
        status = inflate_all(ask, in, from->bytes, out);
        if (status != CVY_OK) {
            cvy_data_file_close(out);
            status = cvy_error_prefix(status, "%s", from->path);
        }
    }
    cvy_mem_free(&in);
    return status;
}

cvy_status cvy_deflate_gzip(const void *in, size_t bytes, cvy_bytes *out)
{
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(6);
    CVY_CHECK(c, CVY_E_MEMORY, "libdeflate cannot start");
    cvy_status status = cvy_bytes_need(out, libdeflate_gzip_compress_bound(c, bytes));
    if (status == CVY_OK) {
        out->bytes = libdeflate_gzip_compress(c, in, bytes, out->data, out->bytes);
        if (out->bytes == 0)
            status = cvy_error_set(CVY_E_INTERNAL, "%zu bytes cannot be compressed", bytes);
    }
    libdeflate_free_compressor(c);
    return status;
}

#else
cvy_status cvy_inflate_any(const void *in, size_t in_bytes, cvy_bytes *out)
{
    (void)in, (void)in_bytes, (void)out;
    CVY_FAIL(CVY_E_UNSUPPORTED,
             "is compressed, and libdeflate is not part of this build: write it without compression");
}

cvy_status cvy_inflate(const void *in, size_t in_bytes, void *out, size_t out_bytes)
{
    (void)in, (void)in_bytes, (void)out, (void)out_bytes;
    CVY_FAIL(CVY_E_UNSUPPORTED, "libdeflate is not part of this build");
}

cvy_status cvy_inflate_file(const cvy_data_file *from, cvy_inflate_kind kind, int64_t offset, int64_t packed,
                            int64_t bytes, uint32_t crc, cvy_data_file *out)
{
    (void)kind, (void)offset, (void)packed, (void)bytes, (void)crc, (void)out;
    CVY_FAIL(CVY_E_UNSUPPORTED, "%s: is compressed, and libdeflate is not part of this build: unpack it first",
             from->path);
}

cvy_status cvy_inflate_stream(const cvy_data_file *from, const cvy_inflate_ask *ask, cvy_data_file *out)
{
    (void)ask, (void)out;
    CVY_FAIL(CVY_E_UNSUPPORTED, "%s: is compressed, and libdeflate is not part of this build: unpack it first",
             from->path);
}

cvy_status cvy_deflate_gzip(const void *in, size_t bytes, cvy_bytes *out)
{
    (void)in, (void)bytes, (void)out;
    CVY_FAIL(CVY_E_UNSUPPORTED, "libdeflate is not part of this build, so nothing can be compressed");
}

cvy_status cvy_inflate_gzip(cvy_data_file *file)
{
    CVY_FAIL(CVY_E_UNSUPPORTED,
             "%s: is compressed by gzip, and libdeflate is not part of this build: unpack it by gunzip", file->path);
}
#endif
