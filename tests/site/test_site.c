/*
 * test_site.c: cvy_site_open(): values and their defaults, structs of another size, errors that name the file, and
 * no memory that is kept after a fault. tests/cmd/site.sh has the search order and all mistakes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "site/site.h"
#include "test_util.h"

static const char *write_site(const char *text)
{
    static char path[64];
    snprintf(path, sizeof path, "site-%ld.yaml", (long)getpid());
    FILE *file = fopen(path, "w");
    EXPECT(file != NULL);
    if (file) {
        fputs(text, file);
        fclose(file);
    }
    setenv("CONVOY_SITE", path, 1);
    return path;
}

static void values(void)
{
    cvy_site *site = NULL;
    cvy_site_about a = cvy_site_about_default();
    const char *path = write_site("scheduler: lsf\nqueue: q\nmodules: [a, b c]\nheader: -x\nenvironment: {A: 1, B: }\n"
                                  "defaults: {nodes: 2, signal: 90, time: 01:00:00}\n");
    EXPECT_OK(cvy_site_open("/nowhere/bin/convoy", &site));
    EXPECT_OK(cvy_site_describe(site, &a));
    EXPECT_TEXT(a.path, path);
    EXPECT(!a.user_path && !a.account && !a.launcher && !a.mpi);
    EXPECT_TEXT(a.scheduler, "lsf");
    EXPECT_TEXT(a.queue, "q");
    EXPECT_INT(a.modules, 2);
    EXPECT_TEXT(a.module[1], "b c");
    EXPECT_INT(a.headers, 1);
    EXPECT_INT(a.variables, 2);
    EXPECT_TEXT(a.environment[1], "1");
    EXPECT_TEXT(a.environment[3], "");
    EXPECT_INT(a.nodes, 2);
    EXPECT_INT(a.ppn, 0);
    EXPECT_INT(a.signal_s, 90);
    EXPECT_TEXT(a.time, "01:00:00");
    cvy_site_destroy(&site);
    EXPECT(!site);
    remove(path);
}

static void off(void)
{
    cvy_site *site = NULL;
    cvy_site_about a = cvy_site_about_default();
    setenv("CONVOY_SITE", "off", 1);
    EXPECT_OK(cvy_site_open(NULL, &site));
    EXPECT_OK(cvy_site_describe(site, &a));
    EXPECT(!a.path && !a.scheduler && !a.module && !a.nodes);
    cvy_site_destroy(&site);
    cvy_site_destroy(&site);
    cvy_site_destroy(NULL);
}

static void faults(void)
{
    cvy_site *site = NULL;
    cvy_site_about a = {0};
    EXPECT_FAULT(cvy_site_open(NULL, NULL), CVY_E_ARGUMENT, "output pointer");
    EXPECT_FAULT(cvy_site_describe(NULL, &a), CVY_E_ARGUMENT, "needs a site");
    const char *path = write_site("queue: a b\n");
    EXPECT_FAULT(cvy_site_open(NULL, &site), CVY_E_CONFIG, ":1:8: site: queue is \"a b\"");
    EXPECT(!site);
    remove(path);
    EXPECT_FAULT(cvy_site_open(NULL, &site), CVY_E_IO, path);
    path = write_site("queue: q\n");
    EXPECT_OK(cvy_site_open(NULL, &site));
    EXPECT_FAULT(cvy_site_describe(site, &a), CVY_E_ARGUMENT, "cvy_site_about"); /* size 0 */
    struct {
        size_t size;
        const char *path, *guard;
    } older = {2 * sizeof(void *), NULL, "kept"};
    EXPECT_OK(cvy_site_describe(site, (cvy_site_about *)&older));
    EXPECT_TEXT(older.path, path);
    EXPECT_TEXT(older.guard, "kept");
    cvy_site_destroy(&site);
    remove(path);
    EXPECT_INT(cvy_memory_bytes(), 0);
}

int main(void)
{
    /* No file of the user who runs the test. */
    setenv("HOME", "/nonexistent", 1);
    unsetenv("XDG_CONFIG_HOME");
    TEST(values);
    TEST(off);
    TEST(faults);
    return test_end();
}
