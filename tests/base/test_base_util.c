/* The small services: error record, memory, random numbers (known answers of the Philox paper's code), permutation, hashes, files, JSON. */
/* minimal */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../test_util.h"
#include "base/base_tree.h"
#include "base/base_util.h"

static void errors(void)
{
    EXPECT_INT(cvy_error_set(CVY_E_IO, "a %d", 1), CVY_E_IO);
    cvy_error_set(CVY_E_IO, "b: %s", cvy_error_text()); /* the old message as an argument of the new */
    EXPECT_TEXT(cvy_error_text(), "b: a 1");
    cvy_error_prefix(CVY_E_IO, "layer %s", "x");
    EXPECT_TEXT(cvy_error_text(), "layer x: b: a 1");
    EXPECT_TEXT(cvy_status_text(CVY_E_SHAPE), "bad shape");
    cvy_dtype d = CVY_DTYPE_F32;
    EXPECT_OK(cvy_dtype_parse("i64", &d));
    EXPECT_INT(d, CVY_DTYPE_I64);
    EXPECT_INT(cvy_dtype_bytes(d), 8);
    EXPECT_FAULT(cvy_dtype_parse("f16", &d), CVY_E_ARGUMENT, "unknown dtype \"f16\", expected f32");
}

static void memory(void)
{
    char *p = NULL, *text = NULL;
    EXPECT_OK(cvy_mem_alloc(0, &p));
    EXPECT(p && (uintptr_t)p % 64 == 0);
    memcpy(p, "abc", 4);
    EXPECT_OK(cvy_mem_grow(&p, 4, 1000));
    EXPECT_TEXT(p, "abc");
    EXPECT_INT(p[999], 0);
    cvy_mem_free(&p);
    EXPECT(p == NULL);
    cvy_mem_free(&p);
    EXPECT_FAULT(cvy_mem_alloc(SIZE_MAX, &p), CVY_E_MEMORY, "cannot allocate 18446744073709551615 bytes");
    cvy_mem_fail_at(2, 0);
    EXPECT_OK(cvy_mem_strdup("x", &text));
    EXPECT_INT(cvy_mem_alloc(8, &p), CVY_E_MEMORY);
    EXPECT(p == NULL);
    EXPECT_OK(cvy_mem_alloc(8, &p));
    cvy_mem_fail_at(0, 0);
    cvy_mem_free(&p);
    cvy_mem_free(&text);
    const size_t bytes = ((size_t)3 << 20) + 5;
    EXPECT_OK(cvy_mem_alloc_pages(bytes, &p));
    EXPECT((uintptr_t)p % (2 << 20) == 0);
    EXPECT(p[0] == 0 && p[bytes - 1] == 0);
    p[bytes - 1] = 1;
    cvy_mem_free_pages(&p, bytes);
    EXPECT_FAULT(cvy_mem_alloc_pages((size_t)1 << 60, &p), CVY_E_MEMORY, "tensor memory");
}

static void pools(void)
{
    cvy_pool *pool = NULL;
    char *p = NULL;
    EXPECT_OK(cvy_pool_create(&pool));
    for (int i = 0; i < 2000; i++) {
        EXPECT_OK(cvy_pool_alloc(pool, (size_t)i % 300, &p));
        if ((uintptr_t)p % 16 != 0 || (i % 300 && p[i % 300 - 1] != 0))
            EXPECT(!"aligned and zeroed");
        memset(p, 0xff, (size_t)i % 300);
    }
    EXPECT_OK(cvy_pool_alloc(pool, 5 << 20, &p));
    memset(p, 1, 5 << 20);
    EXPECT_OK(cvy_pool_printf(pool, &p, "%s-%d", "x", 7));
    EXPECT_TEXT(p, "x-7");
    cvy_pool_destroy(&pool);
    EXPECT(pool == NULL);
}

/* Vectors of the authors' library Random123, file kat_vectors. */
static void philox_known_answers(void)
{
    static const struct {
        cvy_rng rng;
        uint64_t counter;
        uint32_t out[4];
    } rows[] = {
        {{{0, 0}, {0, 0}}, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{{~0u, ~0u}, {~0u, ~0u}}, ~UINT64_C(0), {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{{0xa4093822, 0x299f31d0}, {0x13198a2e, 0x03707344}}, UINT64_C(0x85a308d3243f6a88), {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (int i = 0; i < CVY_COUNT(rows); i++) {
        uint32_t out[4];
        cvy_rng_block(&rows[i].rng, rows[i].counter, out);
        for (int k = 0; k < 4; k++)
            EXPECT_INT(out[k], rows[i].out[k]);
    }
}

static void rng_moments(void)
{
    const cvy_rng rng = cvy_rng_make(1, "conv1.weight", 2, 3), other = cvy_rng_make(1, "conv1.weight", 3, 2);
    const int n = 200000;
    double sum = 0, squares = 0, uniform = 0, joint = 0;
    int below[5] = {0};
    for (int i = 0; i < n; i++) {
        const double x = cvy_rng_normal(&rng, (uint64_t)i), u = cvy_rng_uniform(&rng, (uint64_t)i);
        EXPECT(u >= 0 && u < 1);
        sum += x;
        squares += x * x;
        uniform += u;
        joint += (u - .5) * (cvy_rng_uniform(&other, (uint64_t)i) - .5);
        below[cvy_rng_below(&rng, (uint64_t)i, 5)]++;
    }
    EXPECT_NEAR(sum / n, 0, 5 / sqrt(n));
    EXPECT_NEAR(squares / n, 1, 5 * sqrt(2.0 / n));
    EXPECT_NEAR(uniform / n, .5, 5 * sqrt(1 / 12.0 / n));
    EXPECT_NEAR(joint / n, 0, 5.0 / 12 / sqrt(n)); /* streams that differ in one word are independent */
    for (int i = 0; i < 5; i++)
        EXPECT_NEAR(below[i] / (double)n, .2, 5 * sqrt(.16 / n));
    EXPECT(cvy_rng_u32(&rng, 7) != cvy_rng_u32(&other, 7));
    EXPECT_INT(cvy_rng_below(&rng, 0, 1), 0);
}

static void permutation_is_a_bijection(void)
{
    static const uint64_t counts[] = {1, 2, 3, 10, 255, 256, 257, 1000, 50000};
    static char seen[50000];
    for (int c = 0; c < CVY_COUNT(counts); c++)
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            const cvy_permutation p = cvy_permutation_make(7, epoch, counts[c]);
            uint64_t missed = counts[c];
            memset(seen, 0, sizeof seen);
            for (uint64_t i = 0; i < counts[c]; i++) {
                const uint64_t at = cvy_permutation_at(&p, i);
                if (at < counts[c] && !seen[at]) {
                    seen[at] = 1;
                    missed--;
                }
            }
            EXPECT_INT(missed, 0);
        }
}

/* Over many epochs every element comes equally often at every place, and neighbours do not stay neighbours. */
static void permutation_is_fair(void)
{
    int count[5][5] = {{0}}, neighbours = 0;
    const int n = 20000;
    for (int e = 0; e < n; e++) {
        const cvy_permutation p = cvy_permutation_make(1, (uint64_t)e, 5);
        for (uint64_t i = 0; i < 5; i++)
            count[i][cvy_permutation_at(&p, i)]++;
    }
    for (int i = 0; i < 25; i++)
        EXPECT_NEAR(count[i / 5][i % 5] / (double)n, .2, 5 * sqrt(.16 / n));
    const cvy_permutation p = cvy_permutation_make(1, 0, 50000);
    for (uint64_t i = 0; i + 1 < 50000; i++)
        neighbours += cvy_permutation_at(&p, i) + 1 == cvy_permutation_at(&p, i + 1);
    EXPECT(neighbours < 10);
}

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
    EXPECT_FAULT(cvy_hash_by_name("md5", data, 1000, &named), CVY_E_UNSUPPORTED, "checksum method \"md5\" is not built in");
    data[500] ^= 1;
    EXPECT(cvy_hash(data, 1000) != whole);
    if (strcmp(cvy_hash_name(), "xxh3") == 0)
        EXPECT(cvy_hash("", 0) == UINT64_C(0x2d06800538d394c2));
}

static char folder[] = "/tmp/convoy_test_XXXXXX";

static char *path_of(const char *name)
{
    static char paths[8][300];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, 300, "%s/%s", folder, name);
    return path;
}

static void file_replace(void)
{
    char *data = NULL;
    size_t bytes = 0;
    EXPECT_OK(cvy_file_replace(path_of("f"), "old", 3));
    EXPECT_OK(cvy_file_replace(path_of("f"), "newer", 5));
    EXPECT_OK(cvy_file_read(path_of("f"), 100, &data, &bytes));
    EXPECT_TEXT(data, "newer");
    EXPECT_INT(bytes, 5);
    cvy_mem_free(&data);
    EXPECT_FAULT(cvy_file_read(path_of("f"), 4, &data, &bytes), CVY_E_FORMAT, "more than 4 bytes");
    EXPECT_FAULT(cvy_file_replace(path_of("no/f"), "x", 1), CVY_E_IO, "No such file");
    EXPECT(data == NULL);

    cvy_file_aside aside = {0};
    EXPECT_OK(cvy_file_aside_open(path_of("f"), &aside));
    fputs("dropped", aside.stream);
    cvy_file_aside_drop(&aside);
    EXPECT_OK(cvy_file_aside_open(path_of("g"), &aside));
    fputs("kept", aside.stream);
    EXPECT(!cvy_file_exists(path_of("g")));
    EXPECT_OK(cvy_file_aside_commit(&aside));
    EXPECT_OK(cvy_file_read(path_of("f"), 100, &data, &bytes));
    EXPECT_TEXT(data, "newer");
    cvy_mem_free(&data);

    cvy_pool *pool = NULL;
    char **names = NULL;
    int64_t count = 0;
    EXPECT_OK(cvy_pool_create(&pool));
    EXPECT_OK(cvy_file_list(pool, folder, &names, &count)); /* nothing is left aside */
    EXPECT_INT(count, 2);
    EXPECT(count == 2 && strcmp(names[0], "f") == 0 && strcmp(names[1], "g") == 0);
    cvy_pool_destroy(&pool);
}

/* /dev/full refuses every byte, as a full disk does. */
static void full_disk(void)
{
    const int fd = open("/dev/full", O_WRONLY);
    if (fd < 0)
        return;
    EXPECT_FAULT(cvy_write_all(fd, "abc", 3, "model.st"), CVY_E_IO, "model.st: cannot write at byte 0 of 3: No space left");
    close(fd);
}

static void file_pread(void)
{
    char data[8] = {0};
    EXPECT_OK(cvy_file_replace(path_of("p"), "0123456789", 10));
    const int fd = open(path_of("p"), O_RDONLY);
    EXPECT_OK(cvy_pread_all(fd, data, 4, 6, "p"));
    EXPECT_TEXT(data, "6789");
    EXPECT_FAULT(cvy_pread_all(fd, data, 5, 6, "p"), CVY_E_FORMAT, "p: the file ends at byte 10, expected 5 bytes at offset 6");
    close(fd);
}

static void folders(void)
{
    EXPECT_OK(cvy_file_make_folder(path_of("a/b/c")));
    EXPECT_OK(cvy_file_make_folder(path_of("a/b/c/")));
    EXPECT(cvy_file_is_folder(path_of("a/b/c")));
    EXPECT_OK(cvy_file_replace(path_of("outside"), "x", 1));
    EXPECT_OK(cvy_file_replace(path_of("a/b/file"), "x", 1));
    EXPECT_FAULT(cvy_file_make_folder(path_of("a/b/file/d")), CVY_E_IO, "a file of that name is in the way");
    EXPECT(symlink(folder, path_of("a/link")) == 0);
    EXPECT_OK(cvy_file_remove_tree(path_of("a")));
    EXPECT(!cvy_file_exists(path_of("a")));
    EXPECT(cvy_file_exists(path_of("outside"))); /* the link was not followed */
    EXPECT_OK(cvy_file_remove_tree(path_of("a")));
}

static void json(void)
{
    cvy_json j = {0};
    cvy_json_open(&j, NULL, '{');
    cvy_json_int(&j, "step", -5);
    cvy_json_real(&j, "loss", 0.1);
    cvy_json_real(&j, "nan", NAN);
    cvy_json_real(&j, "third", 1.0 / 3);
    cvy_json_string(&j, "s", "a\"b\\c\n\x01\xff\xc3\xa9");
    cvy_json_string(&j, "none", NULL);
    cvy_json_open(&j, "list", '[');
    cvy_json_bool(&j, NULL, 1);
    cvy_json_open(&j, NULL, '{');
    cvy_json_close(&j, '}');
    cvy_json_int(&j, NULL, INT64_MAX);
    cvy_json_close(&j, ']');
    cvy_json_close(&j, '}');
    const char *expected = "{\"step\": -5, \"loss\": 0.1, \"nan\": null, \"third\": 0.3333333333333333, \"s\": \"a\\\"b\\\\c\\n\\u0001\\ufffd\xc3\xa9\", "
                           "\"none\": null, \"list\": [true, {}, 9223372036854775807]}";
    EXPECT_TEXT(j.text.data, expected);
    EXPECT_OK(j.text.status);
    cvy_pool *pool = NULL;
    cvy_tree *t = NULL;
    EXPECT_OK(cvy_pool_create(&pool));
    EXPECT_OK(cvy_tree_parse_text(pool, "json", j.text.data, j.text.bytes, &t)); /* our own reader takes it */
    cvy_pool_destroy(&pool);
    cvy_text_free(&j.text);

    cvy_text text = {0};
    cvy_mem_fail_at(1, 1);
    cvy_text_add(&text, "abc");
    cvy_text_add_bytes(&text, "d", 1);
    cvy_mem_fail_at(0, 0);
    EXPECT_INT(text.status, CVY_E_MEMORY);
    cvy_text_free(&text);
}

static void clock_and_sizes(void)
{
    char now[32];
    const double before = cvy_clock_s();
    EXPECT(cvy_clock_s() >= before);
    cvy_clock_text(now);
    EXPECT_INT(strlen(now), 20);
    size_t bytes = 0;
    EXPECT_OK(cvy_size_mul(1000, 8, &bytes));
    EXPECT_INT(bytes, 8000);
    EXPECT_FAULT(cvy_size_mul(SIZE_MAX / 2, 3, &bytes), CVY_E_SHAPE, "more than this machine can address");
}

int main(void)
{
    EXPECT(mkdtemp(folder) != NULL);
    TEST(errors);
    TEST(memory);
    TEST(pools);
    TEST(philox_known_answers);
    TEST(rng_moments);
    TEST(permutation_is_a_bijection);
    TEST(permutation_is_fair);
    TEST(hashes);
    TEST(file_replace);
    TEST(full_disk);
    TEST(file_pread);
    TEST(folders);
    TEST(json);
    TEST(clock_and_sizes);
    EXPECT_OK(cvy_file_remove_tree(folder));
    return test_end();
}
