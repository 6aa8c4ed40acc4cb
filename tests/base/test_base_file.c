/* SPDX-License-Identifier: BSD-3-Clause */
/* test_base_file.c: files: a file is replaced completely or not at all; faults of the disk; folders. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
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

/* Only regular files are opened, and nothing waits for the other end of a FIFO. */
static void other_kinds(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *const fifo = path_of("fifo"), *const here = path_of("socket"), *why = "";
    char *data = NULL;
    size_t bytes = 0;
    EXPECT_INT(mkfifo(fifo, 0600), 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%.90s", here);
    const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT(listener >= 0 && bind(listener, (const struct sockaddr *)&address, sizeof address) == 0);
    const struct {
        const char *path, *why;
    } other[] = {{fifo, "it is a FIFO, expected a regular file"},
                 {here, "it is a socket, expected a regular file"},
                 {folder, "it is a folder, expected a regular file"},
                 {"/dev/zero", "it is a device, expected a regular file"}};
    for (int i = 0; i < CVY_COUNT(other); i++) {
        EXPECT_INT(cvy_file_open(other[i].path, O_RDONLY, 0, &why), -1);
        EXPECT_TEXT(why, other[i].why);
        EXPECT_FAULT(cvy_file_read(other[i].path, 100, &data, &bytes), CVY_E_IO, other[i].why);
        EXPECT(cvy_file_stream(other[i].path, &why) == NULL);
        EXPECT_TEXT(why, other[i].why);
    }
    EXPECT_INT(cvy_file_open(fifo, O_WRONLY | O_CREAT, 0666, &why), -1);
    EXPECT_TEXT(why, other[0].why);
    EXPECT_INT(cvy_file_open(fifo, O_RDWR, 0, &why), -1);
    EXPECT_TEXT(why, other[0].why);
    EXPECT_INT(cvy_file_open(path_of("none"), O_RDONLY, 0, &why), -1);
    EXPECT(errno == ENOENT && strcmp(why, strerror(ENOENT)) == 0);
    close(listener);
    EXPECT(unlink(fifo) == 0 && unlink(here) == 0);
}

/* A new file is nobody else's: a link of its name is not followed, and a file of its name stays with its owner. */
static void created_new(void)
{
    char *data = NULL;
    size_t bytes = 0;
    const char *why = "";
    struct stat first, second;
    EXPECT_OK(cvy_file_replace(path_of("victim"), "old", 3));
    EXPECT_INT(symlink(path_of("victim"), path_of("new")), 0);
    int fd = cvy_file_create(path_of("new"), 0600, &why);
    EXPECT(fd >= 0 && write(fd, "x", 1) == 1 && fstat(fd, &first) == 0);
    EXPECT_OK(cvy_file_read(path_of("victim"), 100, &data, &bytes));
    EXPECT_TEXT(data, "old");
    cvy_mem_free(&data);
    const int other = cvy_file_create(path_of("new"), 0600, &why);
    EXPECT(other >= 0 && fstat(other, &second) == 0 && second.st_ino != first.st_ino);
    EXPECT(unlink(path_of("new")) == 0 && mkdir(path_of("new"), 0700) == 0);
    EXPECT_INT(cvy_file_create(path_of("new"), 0600, &why), -1);
    EXPECT(rmdir(path_of("new")) == 0 && unlink(path_of("victim")) == 0);
    close(fd);
    close(other);
}

/* A pipe that the shell has given, as in `convoy train <(make_job)`, is read to its end. */
static void given_pipe(void)
{
    char path[40], *data = NULL;
    size_t bytes = 0;
    int end[2];
    EXPECT(pipe(end) == 0 && write(end[1], "job", 3) == 3);
    close(end[1]);
    snprintf(path, sizeof path, "/dev/fd/%d", end[0]);
    EXPECT_OK(cvy_file_read(path, 100, &data, &bytes));
    EXPECT_TEXT(data, "job");
    cvy_mem_free(&data);
    close(end[0]);
}

/* A path below a folder leads to nothing outside of it. */
static void below(void)
{
    static const struct {
        const char *path, *why;
    } wrong[] = {{"../secret", "its path leads upwards"},
                 {"in/../../secret", "its path leads upwards"},
                 {"/etc/passwd", "a name in its path is empty or too long"},
                 {"", "a name in its path is empty or too long"},
                 {"up/secret", "its path has a symbolic link, which may lead elsewhere"},
                 {"in/link", "its path has a symbolic link, which may lead elsewhere"},
                 {"in", "it is a folder, expected a regular file"},
                 {"in/fifo", "it is a FIFO, expected a regular file"}};
    const char *why = "";
    struct stat s;
    EXPECT_OK(cvy_file_make_folder(path_of("safe/in")));
    EXPECT_OK(cvy_file_replace(path_of("secret"), "s", 1));
    EXPECT_INT(symlink("..", path_of("safe/up")), 0);
    EXPECT_INT(symlink("../../secret", path_of("safe/in/link")), 0);
    EXPECT_INT(mkfifo(path_of("safe/in/fifo"), 0600), 0);
    const int at = cvy_file_open(path_of("safe"), O_RDONLY | O_DIRECTORY, 0, &why);
    for (int i = 0; i < CVY_COUNT(wrong); i++) {
        EXPECT_INT(cvy_file_open_below(at, wrong[i].path, O_RDONLY, 0, &why), -1);
        EXPECT_TEXT(why, wrong[i].why);
    }
    int fd = cvy_file_open_below(at, "./new//deep/file", O_WRONLY | O_CREAT | O_EXCL, 0600, &why);
    EXPECT(fd >= 0 && stat(path_of("safe/new/deep/file"), &s) == 0 && (s.st_mode & 0777) == 0600);
    EXPECT(stat(path_of("safe/new"), &s) == 0 && (s.st_mode & 0777) == 0700);
    close(fd);
    EXPECT_INT(cvy_file_open_below(at, "new/deep/file", O_WRONLY | O_CREAT | O_EXCL, 0600, &why), -1);
    EXPECT_INT(errno, EEXIST);
    EXPECT_INT(cvy_file_open_below(at, "up/made", O_WRONLY | O_CREAT, 0600, &why), -1);
    EXPECT(!cvy_file_exists(path_of("made")));
    close(at);
    EXPECT_OK(cvy_file_remove_tree(path_of("safe")));
    EXPECT_INT(unlink(path_of("secret")), 0);
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
    TEST(other_kinds);
    TEST(created_new);
    TEST(given_pipe);
    TEST(below);
    TEST(full_disk);
    TEST(file_pread);
    TEST(folders);
    EXPECT_OK(cvy_file_remove_tree(folder));
    return test_end();
}
