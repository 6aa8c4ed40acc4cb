/* SPDX-License-Identifier: BSD-3-Clause */
/* test_base_file.c: files: a file is replaced completely or not at all; faults of the disk; folders. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_file.h"
#include "test_util.h"

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

    cvy_file_temporary aside = {0};
    EXPECT_OK(cvy_file_temporary_open(path_of("f"), &aside));
    fputs("dropped", aside.stream);
    cvy_file_temporary_drop(&aside);
    EXPECT_OK(cvy_file_temporary_open(path_of("g"), &aside));
    fputs("kept", aside.stream);
    EXPECT(!cvy_file_exists(path_of("g")));
    EXPECT_OK(cvy_file_temporary_commit(&aside));
    EXPECT_OK(cvy_file_read(path_of("f"), 100, &data, &bytes));
    EXPECT_TEXT(data, "newer");
    cvy_mem_free(&data);

    cvy_pool *pool = NULL;
    char **names = NULL;
    int64_t count = 0;
    EXPECT_OK(cvy_pool_create(&pool));
    EXPECT_OK(cvy_file_list(pool, folder, &names, &count)); /* no temporary file is left */
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
    EXPECT_FAULT(cvy_write_all(fd, "abc", 3, "model.st"), CVY_E_IO,
                 "model.st: cannot write at byte 0 of 3: No space left");
    close(fd);
}

static void file_pread(void)
{
    char data[8] = {0};
    EXPECT_OK(cvy_file_replace(path_of("p"), "0123456789", 10));
    const int fd = open(path_of("p"), O_RDONLY);
    EXPECT_OK(cvy_pread_all(fd, data, 4, 6, "p"));
    EXPECT_TEXT(data, "6789");
    EXPECT_FAULT(cvy_pread_all(fd, data, 5, 6, "p"), CVY_E_FORMAT,
                 "p: the file ends at byte 10, expected 5 bytes at offset 6");
    close(fd);
}

static void folders(void)
{
    EXPECT_OK(cvy_file_make_folder(path_of("a/b/c")));
    EXPECT_OK(cvy_file_make_folder(path_of("a/b/c/")));
    EXPECT(cvy_file_is_folder(path_of("a/b/c")));
    EXPECT_OK(cvy_file_replace(path_of("outside"), "x", 1));
    EXPECT_OK(cvy_file_replace(path_of("a/b/file"), "x", 1));
    EXPECT_FAULT(cvy_file_make_folder(path_of("a/b/file/d")), CVY_E_IO, "a file of that name exists");
    EXPECT(symlink(folder, path_of("a/link")) == 0);
    EXPECT_OK(cvy_file_remove_tree(path_of("a")));
    EXPECT(!cvy_file_exists(path_of("a")));
    EXPECT(cvy_file_exists(path_of("outside"))); /* the link was not followed */
    EXPECT_OK(cvy_file_remove_tree(path_of("a")));
}

int main(void)
{
    EXPECT(mkdtemp(folder) != NULL);
    TEST(file_replace);
    TEST(full_disk);
    TEST(file_pread);
    TEST(folders);
    EXPECT_OK(cvy_file_remove_tree(folder));
    return test_end();
}
