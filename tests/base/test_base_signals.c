/* SPDX-License-Identifier: BSD-3-Clause */
/* test_base_signals.c: a write of the library beyond the limit on the size of files, or to a closed pipe, is an error
 * with file, size and limit in a program that handles no signal; masks and pending signals of the program stay, and the
 * library's threads block all signals. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/base_process.h"
#include "test_util.h"

enum { LIMIT = 8192 };

static char folder[] = "/tmp/convoy_test_XXXXXX";
static char data[3 * LIMIT];

static const char *path_of(const char *name)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int is_pending(int number)
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, number);
}

static int is_blocked(int number)
{
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    return sigismember(&mask, number);
}

static void set_limit(rlim_t bytes)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    EXPECT_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* This program would end by SIGXFSZ. */
static void large_files(void)
{
    static const char why[] = "File too large: it has 8192 bytes, and the limit of this process for a file is 8192";
    set_limit(LIMIT);
    EXPECT_FAULT(cvy_file_replace(path_of("whole"), data, sizeof data), CVY_E_IO, why);
    EXPECT(!cvy_file_exists(path_of("whole")));
    EXPECT_OK(cvy_file_replace(path_of("whole"), data, LIMIT));
    const int fd = cvy_file_open(path_of("part"), O_RDWR | O_CREAT, 0600, NULL);
    EXPECT_FAULT(cvy_pwrite_all(fd, data, LIMIT, 100, "part"), CVY_E_IO, "part: cannot write at byte 8192: File too");
    EXPECT_FAULT(cvy_pwrite_all(fd, data, 1, LIMIT, "part"), CVY_E_IO, why);
    EXPECT_FAULT(cvy_file_cut(fd, LIMIT + 1, "part"), CVY_E_IO, why);
    EXPECT_INT(cvy_file_allocate(fd, LIMIT + 1), EFBIG);
    EXPECT_OK(cvy_file_cut(fd, 5, "part"));
    close(fd);
    cvy_file_temporary file = {0};
    EXPECT_OK(cvy_file_temporary_open(path_of("stream"), &file));
    for (int i = 0; i < 3; i++)
        fwrite(data, 1, LIMIT, file.stream);
    EXPECT_FAULT(cvy_file_temporary_commit(&file), CVY_E_IO, why);
    EXPECT(!cvy_file_exists(path_of("stream")));
    EXPECT(!is_pending(SIGXFSZ) && !is_blocked(SIGXFSZ) && !is_blocked(SIGPIPE));
    set_limit(RLIM_INFINITY);
    EXPECT_OK(cvy_file_replace(path_of("whole"), data, sizeof data));
}

static void closed_pipe(void)
{
    int end[2];
    EXPECT_INT(pipe(end), 0);
    close(end[0]);
    EXPECT_FAULT(cvy_write_all(end[1], "x", 1, "the pipe"), CVY_E_IO, "the pipe: cannot write at byte 0 of 1: Broken");
    close(end[1]);
    EXPECT(!is_pending(SIGPIPE) && !is_blocked(SIGPIPE));
}

/* What the program had blocked stays blocked, and pending. */
static void the_programs_own(void)
{
    sigset_t mine, before;
    sigemptyset(&mine);
    sigaddset(&mine, SIGXFSZ);
    sigprocmask(SIG_BLOCK, &mine, &before);
    raise(SIGXFSZ);
    set_limit(LIMIT);
    EXPECT(cvy_file_replace(path_of("own"), data, sizeof data) == CVY_E_IO);
    set_limit(RLIM_INFINITY);
    EXPECT(is_pending(SIGXFSZ) && is_blocked(SIGXFSZ) && !is_blocked(SIGPIPE));
    signal(SIGXFSZ, SIG_IGN); /* forgets it */
    signal(SIGXFSZ, SIG_DFL);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

static void *count_blocked(void *count)
{
    for (int i = 1; i < 32; i++)
        *(int *)count += is_blocked(i);
    return NULL;
}

static void threads(void)
{
    int blocked = 0;
    pthread_t thread;
    EXPECT_INT(cvy_thread_start(&thread, count_blocked, &blocked), 0);
    pthread_join(thread, NULL);
    EXPECT_INT(blocked, 29); /* all but KILL and STOP */
    blocked = 0;
    count_blocked(&blocked);
    EXPECT_INT(blocked, 0);
}

int main(void)
{
    EXPECT(mkdtemp(folder) != NULL);
    signal(SIGPIPE, SIG_DFL); /* what has started this program may ignore it */
    signal(SIGXFSZ, SIG_DFL);
    TEST(large_files);
    TEST(closed_pipe);
    TEST(the_programs_own);
    TEST(threads);
    EXPECT_OK(cvy_file_remove_tree(folder));
    return test_end();
}
