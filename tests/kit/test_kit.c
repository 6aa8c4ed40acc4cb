/*
 * test_kit.c: the sums of the seal against known ones; studies whose time is over.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_file.h"
#include "base/machine/base_clock.h"
#include "kit/kit_file.h"
#include "test_util.h"

static char folder[] = "/tmp/test-kit-XXXXXX";

/* The examples of NIST for SHA-256, and lengths on both sides of a block's end. */
static void test_sha256(void)
{
    static const struct {
        const char *unit;
        size_t times;
        const char *hash;
    } known[] = {
        {"", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"a", 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
        {"a", 56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
        {"a", 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
        {"a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
    };
    char hash[CVY_KIT_HASH], *text = malloc(1000001);
    EXPECT(text != NULL);
    for (int i = 0; text && i < CVY_COUNT(known); i++) {
        const size_t unit = strlen(known[i].unit);
        for (size_t k = 0; k < known[i].times; k++)
            memcpy(text + k * unit, known[i].unit, unit);
        cvy_kit_sha256(text, unit * known[i].times, hash);
        EXPECT(strcmp(hash, known[i].hash) == 0);
    }
    free(text);
}

static void write_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    EXPECT_OK(cvy_file_replace(path, text, strlen(text)));
}

/* After its end a study measures nothing more. A measurement that had all of a job's time counts as failed, because the
 * next job has no more; one that had a small part of it does not. */
static void test_time_over(void)
{
    static const char study[] = "title: A\nexperiments: {a: {framework: sleeper, batch: [1, 2], repeats: 1}}\n";
    char frameworks[256], out[256];
    cvy_study_opts o = {.size = sizeof o, .name = "s.yaml", .text = study, .program = "none"};
    cvy_study_result r = {.size = sizeof r};
    write_file("sleeper.yaml", "command: [sleep, \"6{batch}\"]\nversion: [echo, 1]\n");
    snprintf(frameworks, sizeof frameworks, "%s", folder);
    snprintf(out, sizeof out, "%s/out", folder);
    o.frameworks = frameworks;
    o.out = out;
    o.begin = cvy_clock_wall_s() - 100;
    o.end = o.begin + 90;
    EXPECT(cvy_run_study(&o, &r) == CVY_STOPPED);
    EXPECT(r.measured == 0 && r.failed == 0 && r.left == 2);
    o.end = cvy_clock_wall_s() + 0.2; /* of more than 100 s */
    EXPECT(cvy_run_study(&o, &r) == CVY_STOPPED);
    EXPECT(r.failed == 0 && r.left == 2);
    o.begin = cvy_clock_wall_s();
    o.end = o.begin + 2;
    EXPECT(cvy_run_study(&o, &r) == CVY_STOPPED);
    EXPECT(r.failed == 1 && r.left == 1);
}

int main(void)
{
    EXPECT(mkdtemp(folder) != NULL);
    TEST(test_sha256);
    TEST(test_time_over);
    EXPECT_OK(cvy_file_remove_tree(folder));
    return test_end();
}
