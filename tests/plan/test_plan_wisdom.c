/* rows: clang asan onednn3 minimal */
/*
 * test_plan_wisdom.c: the file of measured times: what is written is read back; a damaged file and one of another
 * machine are reported, ignored and replaced; two processes that write at once lose nothing; and where the file is.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/tree_confusion.h"
#include "plan/plan_offers.h"
#include "plan/plan_wisdom.h"
#include "test_util.h"

static char folder[] = "/tmp/convoy-wisdom-XXXXXX", path[64];

static void write_file(const char *data, size_t bytes)
{
    EXPECT_OK(cvy_file_replace(path, data, bytes));
}

static void add_and_save(const char *key, double ms)
{
    cvy_wisdom *w = NULL;
    EXPECT_OK(cvy_wisdom_open(path, NULL, &w));
    EXPECT_OK(cvy_wisdom_add(w, key, ms));
    EXPECT_OK(cvy_wisdom_save(w));
    EXPECT_INT(w->nfresh, 0);
    cvy_wisdom_close(&w);
}

static void round_trip(void)
{
    cvy_wisdom *w = NULL;
    double many[500];
    EXPECT_OK(cvy_wisdom_open(path, NULL, &w));
    EXPECT(!w->warning && w->key.count == 0);
    EXPECT(cvy_wisdom_find(w, "conv") == CVY_MS_UNKNOWN);
    EXPECT_OK(cvy_wisdom_add(w, "conv 2x3: aBcd16b > \"plain\"", 1.25));
    EXPECT_OK(cvy_wisdom_add(w, "fails", (double)INFINITY));
    EXPECT_OK(cvy_wisdom_add(w, "nothing", 0));
    for (int i = 0; i < 500; i++) {
        char key[32];
        snprintf(key, sizeof key, "many %d", i);
        EXPECT_OK(cvy_wisdom_add(w, key, i / 7.0));
        many[i] = cvy_wisdom_find(w, key);
        EXPECT_NEAR(many[i], i / 7.0, 1e-6);
    }
    EXPECT_OK(cvy_wisdom_save(w));
    cvy_wisdom_close(&w);
    EXPECT_OK(cvy_wisdom_open(path, NULL, &w));
    EXPECT(!w->warning);
    EXPECT_INT(w->key.count, 503);
    EXPECT_NEAR(cvy_wisdom_find(w, "conv 2x3: aBcd16b > \"plain\""), 1.25, 0);
    EXPECT(cvy_wisdom_find(w, "fails") == (double)INFINITY);
    EXPECT_NEAR(cvy_wisdom_find(w, "nothing"), 0, 0);
    for (int i = 0; i < 500; i++) {
        char key[32];
        snprintf(key, sizeof key, "many %d", i);
        EXPECT_NEAR(cvy_wisdom_find(w, key), many[i], 0); /* to the bit, so that equal times give equal choices */
    }
    EXPECT(cvy_wisdom_find(w, "many 500") == CVY_MS_UNKNOWN);
    cvy_wisdom_close(&w);
}

/* The file must be named in a warning, nothing of it used, and the next save must replace it. */
static void expect_ignored(const char *data, size_t bytes, const char *why)
{
    cvy_wisdom *w = NULL;
    write_file(data, bytes);
    EXPECT_OK(cvy_wisdom_open(path, NULL, &w));
    EXPECT(w && w->warning && strstr(w->warning, path) && strstr(w->warning, why));
    EXPECT_INT(w->key.count, 0);
    EXPECT_OK(cvy_wisdom_add(w, "new", 2));
    EXPECT_OK(cvy_wisdom_save(w));
    cvy_wisdom_close(&w);
    EXPECT_OK(cvy_wisdom_open(path, NULL, &w));
    EXPECT(!w->warning);
    EXPECT_NEAR(cvy_wisdom_find(w, "new"), 2, 0);
    cvy_wisdom_close(&w);
}

static void damage(void)
{
    char *data = NULL;
    size_t bytes = 0;
    unlink(path);
    add_and_save("one", 1.5);
    add_and_save("two", 2.5);
    EXPECT_OK(cvy_file_read(path, 1 << 20, &data, &bytes));
    expect_ignored("", 0, "");
    expect_ignored("\0\1\2", 3, "");
    expect_ignored("[1, 2]", 6, "is not a convoy wisdom");
    for (size_t n = 1; n + 8 < bytes; n += bytes / 7)
        expect_ignored(data, n, "");
    char *digit = strstr(data, "1.5");
    EXPECT(digit != NULL);
    if (digit)
        *digit = '4';
    expect_ignored(data, bytes, "the checksum is");
    cvy_mem_free(&data);
}

/* The warning about a wrong checksum has the right one, which takes its place. Whatever is read is a time. */
static cvy_status read_signed(cvy_pool *pool, const char *text)
{
    static const char was[] = "the checksum is '", is[] = "that of its times is ";
    cvy_wisdom *w = NULL;
    char *copy = NULL;
    CVY_TRY(cvy_pool_strdup(pool, text, &copy));
    confuse_file(path, copy);
    CVY_TRY(cvy_wisdom_open(path, NULL, &w));
    const char *noted = w->warning ? strstr(w->warning, was) : NULL, *sum = noted ? strstr(noted, is) : NULL;
    if (sum) {
        sum += strlen(is);
        noted += strlen(was);
        const size_t n = strlen(sum);
        char *at = strcspn(noted, "'") == n ? memmem(copy, strlen(copy), noted, n) : NULL;
        if (at)
            memcpy(at, sum, n);
        cvy_wisdom_close(&w);
        confuse_file(path, copy);
        CVY_TRY(cvy_wisdom_open(path, NULL, &w));
    }
    for (int i = 0; i < w->key.count; i++)
        EXPECT(cvy_wisdom_find(w, w->key.text[i]) >= 0);
    cvy_wisdom_close(&w);
    return CVY_OK;
}

/* Each kind of value in place of each value of the file. */
static void confusion_of_kinds(void)
{
    char *data = NULL;
    size_t bytes = 0;
    unlink(path);
    add_and_save("conv 2x3", 1.5);
    add_and_save("fails", (double)INFINITY);
    EXPECT_OK(cvy_file_read(path, 1 << 20, &data, &bytes));
    confuse(data, read_signed);
    cvy_mem_free(&data);
}

static void other_machine(void)
{
    char *data = NULL;
    size_t bytes = 0;
    unlink(path);
    add_and_save("one", 1.5);
    EXPECT_OK(cvy_file_read(path, 1 << 20, &data, &bytes));
    char *machine = strstr(data, "\"machine\": \"");
    EXPECT(machine != NULL);
    if (machine)
        memcpy(machine + strlen("\"machine\": \""), "Acorn", 5);
    expect_ignored(data, bytes, "another machine or build (Acorn");
    cvy_mem_free(&data);
}

enum { WRITERS = 2, SAVES = 25 };

static int write_many(int writer)
{
    for (int i = 0; i < SAVES; i++) {
        char key[48];
        snprintf(key, sizeof key, "writer %d save %d", writer, i);
        add_and_save(key, writer * 100 + i);
    }
    return test_failures != 0;
}

static void two_writers(void)
{
    pid_t child[WRITERS];
    cvy_wisdom *w = NULL;
    unlink(path);
    for (int c = 0; c < WRITERS; c++) {
        child[c] = fork();
        if (child[c] == 0)
            _exit(write_many(c));
        EXPECT(child[c] > 0);
    }
    for (int c = 0; c < WRITERS; c++) {
        int code = -1;
        EXPECT(waitpid(child[c], &code, 0) == child[c]);
        EXPECT_INT(code, 0);
    }
    EXPECT_OK(cvy_wisdom_open(path, NULL, &w));
    EXPECT(!w->warning);
    EXPECT_INT(w->key.count, WRITERS * SAVES);
    EXPECT_NEAR(cvy_wisdom_find(w, "writer 1 save 24"), 124, 0);
    cvy_wisdom_close(&w);
}

static void expect_path(const char *where, const char *start)
{
    cvy_wisdom *w = NULL;
    EXPECT_OK(cvy_wisdom_open(where, NULL, &w));
    EXPECT(start ? w->path && strncmp(w->path, start, strlen(start)) == 0 : !w->path);
    cvy_wisdom_close(&w);
}

static void places(void)
{
    char expected[96];
    cvy_wisdom *w = NULL;
    unsetenv("CONVOY_WISDOM");
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", folder, 1);
    snprintf(expected, sizeof expected, "%s/.cache/convoy/wisdom-", folder);
    expect_path(NULL, expected);
    setenv("XDG_CACHE_HOME", "/nowhere", 1);
    expect_path(NULL, "/nowhere/convoy/wisdom-");
    setenv("CONVOY_WISDOM", "/of/environment", 1);
    expect_path(NULL, "/of/environment");
    expect_path("/of/job", "/of/job");
    expect_path("off", NULL);
    setenv("CONVOY_WISDOM", "off", 1);
    expect_path(NULL, NULL);
    /* A file that cannot be written is only a fault of saving. */
    EXPECT_OK(cvy_wisdom_open("/proc/convoy/wisdom.json", NULL, &w));
    EXPECT_OK(cvy_wisdom_add(w, "one", 1));
    EXPECT_FAULT(cvy_wisdom_save(w), CVY_E_IO, "/proc/convoy");
    cvy_wisdom_close(&w);
    /* A folder that does not exist is made. */
    snprintf(expected, sizeof expected, "%s/a/b/wisdom.json", folder);
    EXPECT_OK(cvy_wisdom_open(expected, NULL, &w));
    EXPECT_OK(cvy_wisdom_add(w, "one", 1));
    EXPECT_OK(cvy_wisdom_save(w));
    EXPECT(cvy_file_exists(expected));
    cvy_wisdom_close(&w);
}

int main(void)
{
    EXPECT(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/wisdom.json", folder);
    TEST(round_trip);
    TEST(damage);
    TEST(confusion_of_kinds);
    TEST(other_machine);
    TEST(two_writers);
    TEST(places);
    EXPECT_OK(cvy_file_remove_tree(folder));
    return test_end();
}
