/* SPDX-License-Identifier: BSD-3-Clause */
/* test_monitor_owner.c: on a file system without locks a run's folder belongs to the process that is named in it as
 * long as that process lives; it is taken over from one that is gone, of another host, or not named in full. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base_file.h"
#include "monitor/monitor_owner.h"
#include "test_util.h"

static char folder[] = "/tmp/convoy_test_XXXXXX";
static char path[300];

static void put(const char *text)
{
    EXPECT_OK(cvy_file_replace(path, text, strlen(text)));
}

static void this_process(void)
{
    EXPECT_INT(cvy_owner_look(folder), CVY_OWNER_NONE);
    EXPECT_INT(cvy_owner_take(folder), 1);
    EXPECT_INT(cvy_owner_look(folder), CVY_OWNER_LIVES);
    EXPECT_INT(cvy_owner_take(folder), 0); /* a second run of this process */
    cvy_owner_drop(folder);
    EXPECT(!cvy_file_exists(path));
    EXPECT_INT(cvy_owner_take("/nowhere/folder"), 1);
}

/* Another process that lives, and is then gone. */
static void another_process(void)
{
    int go[2], end[2];
    char byte = 0;
    EXPECT(pipe(go) == 0 && pipe(end) == 0);
    const pid_t child = fork();
    if (child == 0) {
        byte = (char)cvy_owner_take(folder);
        (void)!write(go[1], &byte, 1);
        (void)!read(end[0], &byte, 1);
        _exit(0);
    }
    EXPECT(read(go[0], &byte, 1) == 1 && byte == 1);
    EXPECT_INT(cvy_owner_look(folder), CVY_OWNER_LIVES);
    EXPECT_INT(cvy_owner_take(folder), 0);
    cvy_owner_drop(folder); /* not this one's */
    EXPECT(cvy_file_exists(path));
    EXPECT(write(end[1], &byte, 1) == 1);
    EXPECT(waitpid(child, NULL, 0) == child);
    EXPECT_INT(cvy_owner_look(folder), CVY_OWNER_GONE);
    EXPECT_INT(cvy_owner_take(folder), 1);
    cvy_owner_drop(folder);
    EXPECT(!cvy_file_exists(path));
}

static void other_files(void)
{
    char text[200], host[128] = "";
    put("process 1 started 5 host another.host.of.the.cluster\n");
    EXPECT_INT(cvy_owner_look(folder), CVY_OWNER_ELSEWHERE);
    EXPECT_INT(cvy_owner_take(folder), 1);
    EXPECT_INT(cvy_owner_look(folder), CVY_OWNER_LIVES);
    static const char *const damaged[] = {"", "process", "process x started 1 host y", "process -1 started 1 host y"};
    for (int i = 0; i < CVY_COUNT(damaged); i++) {
        put(damaged[i]);
        EXPECT_INT(cvy_owner_look(folder), CVY_OWNER_NONE);
        EXPECT_INT(cvy_owner_take(folder), 1);
        cvy_owner_drop(folder);
    }
    gethostname(host, sizeof host - 1);
    if (access("/proc/self/stat", R_OK) == 0) { /* the number of this process, used before by one that is gone */
        snprintf(text, sizeof text, "process %ld started 1 host %s\n", (long)getpid(), host);
        put(text);
        EXPECT_INT(cvy_owner_look(folder), CVY_OWNER_GONE);
        EXPECT_INT(cvy_owner_take(folder), 1);
        cvy_owner_drop(folder);
    }
    EXPECT(!cvy_file_exists(path));
}

int main(void)
{
    EXPECT(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/" CVY_RUN_OWNER, folder);
    TEST(this_process);
    TEST(another_process);
    TEST(other_files);
    EXPECT_OK(cvy_file_remove_tree(folder));
    return test_end();
}
