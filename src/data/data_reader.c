/*
 * data_reader.c: finds the reader of a source, by its name or by the format of the file. It also has small services
 * that readers share: files read at given offsets, buffers that grow, path joining.
 *
 * cvy_dataset_open() calls it, before training. Nothing here is format specific.
 */
#include "data/data_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/text/base_table.h"

cvy_status cvy_bytes_need(cvy_bytes *b, size_t bytes)
{
    if (bytes > b->room) {
        void *fresh = NULL;
        const size_t room = bytes + bytes / 4;
        CVY_TRY(cvy_mem_alloc(room, &fresh));
        cvy_mem_free(&b->data);
        b->data = fresh;
        b->room = room;
    }
    b->bytes = bytes;
    return CVY_OK;
}

void cvy_raw_free(cvy_raw *raw)
{
    cvy_mem_free(&raw->x.data);
    cvy_mem_free(&raw->y.data);
    *raw = (cvy_raw){0};
}

cvy_status cvy_data_file_open(cvy_pool *pool, const char *path, cvy_data_file *out)
{
    cvy_data_file file = {.fd = -1};
    char *copy = NULL;
    if (pool)
        CVY_TRY(cvy_pool_strdup(pool, path, &copy));
    file.path = pool ? copy : path;
    file.fd = cvy_file_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0); /* does not wait for a pipe, rejected below */
    CVY_CHECK(file.fd >= 0, CVY_E_IO, "%s%scannot be opened: %s", pool ? path : "", pool ? ": " : "", strerror(errno));
    struct stat st;
    if (fstat(file.fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        cvy_data_file_close(&file);
        CVY_FAIL(CVY_E_IO, "%s%sis not a regular file", pool ? path : "", pool ? ": " : "");
    }
    file.bytes = st.st_size;
    *out = file;
    return CVY_OK;
}

void cvy_data_file_close(cvy_data_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

cvy_status cvy_data_path_join(cvy_pool *pool, const char *folder, const char *name, const char **out)
{
    char *path = NULL;
    const size_t n = strlen(folder);
    CVY_TRY(cvy_pool_printf(pool, &path, "%s%s%s", folder, n && folder[n - 1] == '/' ? "" : "/", name));
    *out = path;
    return CVY_OK;
}

cvy_status cvy_data_folder_of(cvy_pool *pool, const char *path, const char **out)
{
    const char *slash = strrchr(path, '/');
    char *folder = NULL;
    CVY_TRY(cvy_pool_printf(pool, &folder, "%.*s", slash ? (int)CVY_MAX(slash - path, 1) : 1, slash ? path : "."));
    *out = folder;
    return CVY_OK;
}

int cvy_data_has_suffix(const char *name, const char *suffix)
{
    const size_t n = strlen(name), m = strlen(suffix);
    return n > m && strcasecmp(name + n - m, suffix) == 0;
}

size_t cvy_data_peek(const char *path, void *bytes, size_t count)
{
    const int fd = cvy_file_open(path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    const ssize_t got = read(fd, bytes, count);
    close(fd);
    return got > 0 ? (size_t)got : 0;
}

int cvy_data_has_file(const char *folder, const char *name)
{
    char path[4096];
    const int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    return n > 0 && (size_t)n < sizeof path && cvy_file_exists(path);
}

/* Lists all formats for messages: "collider, cifar, folder". */
static void all_names(char *text, size_t room)
{
    int count = 0;
    size_t at = 0;
    const cvy_reader_def *const *table = cvy_reader_table(&count);
    text[0] = 0;
    for (int i = 0; i < count && at < room; i++)
        at += (size_t)snprintf(text + at, room - at, "%s%s", i ? ", " : "", table[i]->name);
}

cvy_status cvy_reader_by_name(const char *name, const cvy_reader_def **out)
{
    static const cvy_table_query query = {.what = "data format"};
    int count = 0;
    const cvy_reader_def *const *table = cvy_reader_table(&count);
    return cvy_table_find(table, count, &query, name, out);
}

/* The first bytes of a TIFF file, in both byte orders, and of BigTIFF. */
static int is_tiff(const char *path)
{
    static const char magic[][4] = {{'I', 'I', 42, 0}, {'M', 'M', 0, 42}, {'I', 'I', 43, 0}, {'M', 'M', 0, 43}};
    char head[4];
    const int is_known = cvy_data_peek(path, head, sizeof head) == sizeof head;
    for (int i = 0; i < CVY_COUNT(magic); i++)
        if (is_known && memcmp(head, magic[i], sizeof head) == 0)
            return 1;
    return 0;
}

cvy_status cvy_reader_detect(const char *path, const cvy_reader_def **out)
{
    int count = 0, best = 0;
    const cvy_reader_def *const *table = cvy_reader_table(&count);
    for (int i = 0; i < count; i++) {
        const int score = table[i]->probe ? table[i]->probe(path) : 0;
        if (score > best) {
            best = score;
            *out = table[i];
        }
    }
    if (best > 0)
        return CVY_OK;
    char all[512];
    all_names(all, sizeof all);
    CVY_CHECK(cvy_file_exists(path), CVY_E_IO, "%s: no such file or folder (and no generated data set of this name)",
              path);
    CVY_CHECK(!is_tiff(path), CVY_E_UNSUPPORTED,
              "%s: TIFF is not read: convert the pictures to PNG, or, if they have more than 8 bits, to a npy or HDF5 "
              "array",
              path);
    CVY_FAIL(CVY_E_FORMAT, "%s: this %s is not in any format that is known (%s): %s", path,
             cvy_file_is_folder(path) ? "folder" : "file", all,
             cvy_file_is_folder(path)
                 ? "an image folder holds *.jpg, *.jpeg or *.png files, or one folder of them for each class"
                 : "give the format by `format:` if it cannot be detected");
}
