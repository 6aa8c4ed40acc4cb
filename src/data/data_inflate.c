/*
 * data_inflate.c: see data_inflate.h. zlib unpacks; the checksum is ours, for zlib's own takes a third of the time where
 * data are mostly zeros.
 *
 * Adler-32 is two sums modulo 65521: of the bytes, and of all values that the first sum takes. Over a run of n bytes the
 * second is n times the first as it was, plus each byte times its distance from the end: 32 bytes at a time. Source: RFC
 * 1950.
 */
#include "data/data_inflate.h"

#include "base/base_cpu.h"

#if CVY_HAVE_ZLIB
#include <zlib.h>
#endif

enum {
    MODULUS = 65521,
    RUN = 5504 /* of 32: so many bytes leave both sums within 32 bits */
};

#if defined(__x86_64__)
#include <immintrin.h>

__attribute__((target("avx2"))) static uint32_t sum_lanes(__m256i v)
{
    uint32_t lane[8], sum = 0;
    _mm256_storeu_si256((__m256i *)(void *)lane, v);
    for (int i = 0; i < 8; i++)
        sum += lane[i];
    return sum;
}

/* A run of whole 32 bytes. */
__attribute__((target("avx2"))) static void add_run(const uint8_t *p, size_t bytes, uint32_t *first, uint32_t *second)
{
    const __m256i zero = _mm256_setzero_si256(), ones = _mm256_set1_epi16(1);
    const __m256i distance = _mm256_setr_epi8(32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14,
                                              13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1);
    __m256i sum = zero, before = zero, weighted = zero;
    for (size_t i = 0; i < bytes; i += 32) {
        const __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)(p + i));
        before = _mm256_add_epi32(before, sum);
        sum = _mm256_add_epi32(sum, _mm256_sad_epu8(v, zero));
        weighted = _mm256_add_epi32(weighted, _mm256_madd_epi16(_mm256_maddubs_epi16(v, distance), ones));
    }
    *second += *first * (uint32_t)bytes + 32 * sum_lanes(before) + sum_lanes(weighted);
    *first += sum_lanes(sum);
}
#else
static void add_run(const uint8_t *p, size_t bytes, uint32_t *first, uint32_t *second)
{
    for (size_t i = 0; i < bytes; i++)
        *second += *first += p[i];
}
#endif

uint32_t cvy_adler32(uint32_t before, const void *data, size_t bytes)
{
    const uint8_t *p = data;
    const int wide = cvy_cpu_has(CVY_ISA_AVX2);
    uint32_t first = before & 0xffff, second = before >> 16;
    while (bytes > 0) {
        const size_t run = CVY_MIN(bytes, RUN), whole = wide ? run / 32 * 32 : 0;
        if (whole)
            add_run(p, whole, &first, &second);
        for (size_t i = whole; i < run; i++) {
            first += p[i];
            second += first;
        }
        first %= MODULUS;
        second %= MODULUS;
        p += run;
        bytes -= run;
    }
    return second << 16 | first;
}

#if CVY_HAVE_ZLIB
cvy_status cvy_inflate(const void *in, size_t in_bytes, void *out, size_t out_bytes)
{
    enum { HEAD = 2, CHECK = 4, DICTIONARY = 0x20 };
    const uint8_t *p = in;
    CVY_CHECK(in_bytes > HEAD + CHECK && in_bytes <= UINT32_MAX && out_bytes <= UINT32_MAX && (p[0] & 0xf) == Z_DEFLATED &&
                  (p[0] << 8 | p[1]) % 31 == 0 && !(p[1] & DICTIONARY),
              CVY_E_FORMAT, "%zu bytes are no zlib stream", in_bytes);
    z_stream z = {.next_in = (Bytef *)(uintptr_t)(p + HEAD),
                  .avail_in = (uInt)(in_bytes - HEAD),
                  .next_out = out,
                  .avail_out = (uInt)out_bytes};
    CVY_CHECK(inflateInit2(&z, -MAX_WBITS) == Z_OK, CVY_E_MEMORY, "zlib cannot begin");
    const int code = inflate(&z, Z_FINISH);
    const size_t got = out_bytes - z.avail_out, left = z.avail_in;
    inflateEnd(&z);
    CVY_CHECK(code == Z_STREAM_END && got == out_bytes && left >= CHECK, CVY_E_FORMAT,
              "%zu bytes unpack to %zu, expected %zu (zlib: %s)", in_bytes, got, out_bytes,
              code == Z_STREAM_END ? "too short" : zError(code));
    const uint8_t *c = p + in_bytes - left;
    const uint32_t want = (uint32_t)c[0] << 24 | (uint32_t)c[1] << 16 | (uint32_t)c[2] << 8 | c[3];
    const uint32_t is = cvy_adler32(1, out, out_bytes);
    CVY_CHECK(is == want, CVY_E_FORMAT, "checksum of what was packed is %08x, expected %08x: damaged", is, want);
    return CVY_OK;
}
#else
cvy_status cvy_inflate(const void *in, size_t in_bytes, void *out, size_t out_bytes)
{
    (void)in, (void)in_bytes, (void)out, (void)out_bytes;
    CVY_FAIL(CVY_E_UNSUPPORTED, "zlib is left out of this build");
}
#endif
