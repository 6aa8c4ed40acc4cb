/* SPDX-License-Identifier: BSD-3-Clause */
/* test_base_hash.c: hashes: known answers, streams, names. */
#include "base/base_hash.h"
#include "test_util.h"

static void hashes(void)
{
    EXPECT_INT(cvy_crc32c(0, "123456789", 9), 0xE3069283);
    EXPECT_INT(cvy_crc32c(cvy_crc32c(0, "1234", 4), "56789", 5), 0xE3069283);
    char data[1000];
    for (int i = 0; i < 1000; i++)
        data[i] = (char)(i * 37);
    cvy_hasher h;
    cvy_hash_begin(&h);
    cvy_hash_add(&h, data, 333);
    cvy_hash_add(&h, data + 333, 667);
    const uint64_t whole = cvy_hash(data, 1000);
    EXPECT(cvy_hash_end(&h) == whole);
    uint64_t named = 0;
    EXPECT_OK(cvy_hash_by_name(cvy_hash_name(), data, 1000, &named));
    EXPECT(named == whole);
    EXPECT_FAULT(cvy_hash_by_name("md5", data, 1000, &named), CVY_E_UNSUPPORTED,
                 "checksum method \"md5\" is not built in");
    data[500] ^= 1;
    EXPECT(cvy_hash(data, 1000) != whole);
    if (strcmp(cvy_hash_name(), "xxh3") == 0)
        EXPECT(cvy_hash("", 0) == UINT64_C(0x2d06800538d394c2));
}

int main(void)
{
    TEST(hashes);
    return test_end();
}
