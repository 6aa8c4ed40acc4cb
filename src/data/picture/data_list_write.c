/*
 * data_list_write.c: writes a text file that lists pictures and their labels, as Caffe and CNTK read it: list.txt, and
 * labels.txt with the names of the classes.
 *
 * If each sample of the source is a file of its own (a folder, another list), the list names these files, and nothing
 * is copied. Otherwise pictures/00003/00000017.jpg is written, named by piece and number of the sample. A piece of the
 * list is .list-00003 until all are joined: a line for each sample, after a line with their number and bytes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/data_writer.h"
#include "data/picture/data_picture_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/text/base_text.h"

enum { PATH_ROOM = 4096, FILES_AUTO = 0, FILES_NAME, FILES_COPY };

struct list_writer_opts {
    const char *root;
    int separator, labels, files;
};

static const cvy_option list_writer_options[] = {
    {"separator", CVY_TYPE_CHOICE, CVY_FIELD(list_writer_opts, separator), "space", "space|tab|comma", "",
     "between path and label: Caffe's lists have a space, CNTK's a tab"},
    {"labels", CVY_TYPE_CHOICE, CVY_FIELD(list_writer_opts, labels), "numbers", "numbers|names", "",
     "how labels are written"},
    {"files", CVY_TYPE_CHOICE, CVY_FIELD(list_writer_opts, files), "auto", "auto|name|copy", "",
     "name: the list names the files of the source; copy: pictures are written beside the list; auto: name if each "
     "sample is a file"},
    {"root", CVY_TYPE_STRING, CVY_FIELD(list_writer_opts, root), "", "", "",
     "folder that the paths of named files start from; by default they are absolute"},
    {0},
};

struct list_writer {
    cvy_writer_args args;
    const struct list_writer_opts *o;
    int names_files;      /* 1: the list names the files of the source */
    char root[PATH_ROOM]; /* absolute, of the paths that are named; "": there is none */
    char here[PATH_ROOM]; /* the working folder */
    const char *folder;   /* of the pictures of this piece */
    int64_t piece, count, bytes;
    cvy_text lines;
    cvy_picture_files files;
};

static const char separator_of[] = {' ', '\t', ','};

/* ---- files of the source ---- */

/* The path from the root of the file system, without a slash at its end. */
static cvy_status make_absolute(const struct list_writer *w, const char *path, char out[PATH_ROOM])
{
    while (path[0] == '.' && path[1] == '/')
        path += 2;
    const int is_absolute = path[0] == '/';
    int n = snprintf(out, PATH_ROOM, "%s%s%s", is_absolute ? "" : w->here, is_absolute ? "" : "/",
                     strcmp(path, ".") == 0 ? "" : path);
    CVY_CHECK(n < PATH_ROOM, CVY_E_UNSUPPORTED, "%s: a path of %d bytes", path, n);
    for (; n > 1 && out[n - 1] == '/'; n--)
        out[n - 1] = 0;
    return CVY_OK;
}

static int is_picture_file(const char *path)
{
    return (cvy_data_has_suffix(path, ".jpg") || cvy_data_has_suffix(path, ".jpeg") ||
            cvy_data_has_suffix(path, ".png")) &&
           cvy_file_exists(path);
}

/* The path of a sample's file, as the list names it. */
static cvy_status named_path(const struct list_writer *w, int64_t number, char path[PATH_ROOM])
{
    char name[PATH_ROOM];
    cvy_dataset_file(w->args.from, number, name, sizeof name);
    CVY_CHECK(is_picture_file(name), CVY_E_UNSUPPORTED,
              "sample %lld (%s) is no file of its own that a list can name: set files: copy", (long long)number, name);
    CVY_TRY(make_absolute(w, name, path));
    if (!w->o->root)
        return CVY_OK;
    const size_t n = strlen(w->root);
    CVY_CHECK(strncmp(path, w->root, n) == 0 && path[n] == '/', CVY_E_CONFIG, "%s is not below root: %s", path,
              w->root);
    memmove(path, path + n + 1, strlen(path + n + 1) + 1);
    return CVY_OK;
}

/* ---- lines ---- */

/* What the reader, and Caffe, would take for something else. */
static cvy_status check_text(const struct list_writer *w, const char *text, int is_label)
{
    const char mark = separator_of[w->o->separator];
    const size_t n = strlen(text);
    CVY_CHECK(!strpbrk(text, "\r\n") && n > 0 && text[0] != ' ' && text[0] != '\t' && text[n - 1] != ' ' &&
                  text[n - 1] != '\t',
              CVY_E_UNSUPPORTED,
              "\"%s\" begins or ends with a blank, is empty or has a line break: a list cannot hold it", text);
    CVY_CHECK(!is_label || (!strchr(text, mark) && !(mark == ' ' && strchr(text, '\t'))), CVY_E_UNSUPPORTED,
              "the class \"%s\" has the separator in its name: set another `separator`, or labels: numbers", text);
    return CVY_OK;
}

static cvy_status add_line(struct list_writer *w, const char *path, int32_t label)
{
    const cvy_reader_info *info = w->args.info;
    CVY_TRY(check_text(w, path, 0));
    cvy_text_add(&w->lines, "%s%s", path[0] == '#' ? "./" : "", path);
    if (info->has_label) {
        CVY_CHECK(label >= 0 && label < info->nclasses, CVY_E_FORMAT, "label %d of %lld classes", label,
                  (long long)info->nclasses);
        if (w->o->labels)
            cvy_text_add(&w->lines, "%c%s", separator_of[w->o->separator], w->args.class_name[label]);
        else
            cvy_text_add(&w->lines, "%c%d", separator_of[w->o->separator], (int)label);
    }
    cvy_text_add(&w->lines, "\n");
    w->count++;
    return w->lines.status;
}

/* ---- pieces ---- */

static cvy_status piece_path(const struct list_writer *w, int64_t piece, const char **out)
{
    char name[40];
    snprintf(name, sizeof name, ".list-%05lld", (long long)piece);
    return cvy_data_path_join(w->args.pool, w->args.path, name, out);
}

static cvy_status find_root(struct list_writer *w)
{
    CVY_CHECK(getcwd(w->here, sizeof w->here), CVY_E_IO, "the working folder: %s", strerror(errno));
    return w->o->root ? make_absolute(w, w->o->root, w->root) : CVY_OK;
}

static cvy_status list_writer_open(const cvy_writer_args *args, void **state_out)
{
    struct list_writer *w = NULL;
    char name[PATH_ROOM] = "";
    CVY_TRY(cvy_picture_files_check(args->info, "a list"));
    CVY_TRY(cvy_pool_alloc(args->pool, sizeof *w, &w));
    w->args = *args;
    w->o = args->options;
    cvy_dataset_file(args->from, 0, name, sizeof name);
    const int may_name = args->info->varying && is_picture_file(name);
    CVY_CHECK(w->o->files != FILES_NAME || may_name, CVY_E_CONFIG,
              "files: name: the samples (%s ..) are no files of their own, or are resized: set files: copy", name);
    w->names_files = w->o->files == FILES_NAME || (w->o->files == FILES_AUTO && may_name);
    CVY_CHECK(!w->o->root || w->names_files, CVY_E_CONFIG, "root: %s is for files that the list names, not for copies",
              w->o->root);
    for (int64_t i = 0; w->o->labels && args->info->has_label && i < args->info->nclasses; i++)
        CVY_TRY(check_text(w, args->class_name[i], 1));
    CVY_TRY(find_root(w));
    *state_out = w;
    return CVY_OK;
}

static int list_writer_has_piece(void *state, int64_t piece)
{
    const char *path = NULL;
    return piece_path(state, piece, &path) == CVY_OK && cvy_file_exists(path);
}

static cvy_status list_writer_begin_piece(void *state, int64_t piece, int64_t count)
{
    struct list_writer *w = state;
    char name[40];
    (void)count;
    cvy_text_free(&w->lines);
    w->count = w->bytes = w->files.bytes = 0;
    w->piece = piece;
    if (w->names_files)
        return CVY_OK;
    CVY_TRY(cvy_data_path_join(w->args.pool, w->args.path, "pictures", &w->folder));
    CVY_TRY(cvy_file_make_folder(w->folder));
    snprintf(name, sizeof name, "%05lld", (long long)piece);
    CVY_TRY(cvy_data_path_join(w->args.pool, w->folder, name, &w->folder));
    return cvy_file_make_folder(w->folder);
}

static cvy_status list_writer_write(void *state, int64_t number, const cvy_raw *raw)
{
    struct list_writer *w = state;
    char path[PATH_ROOM];
    if (w->names_files) {
        CVY_TRY(named_path(w, number, path));
        return add_line(w, path, raw->label);
    }
    CVY_TRY(cvy_picture_files_write(&w->files, w->folder, number, raw));
    return add_line(w, (const char *)w->files.path.data + strlen(w->args.path) + 1, raw->label);
}

static cvy_status list_writer_end_piece(void *state)
{
    struct list_writer *w = state;
    const char *path = NULL;
    cvy_text text = {0};
    if (!w->names_files)
        CVY_TRY(cvy_picture_files_sync(w->args.path));
    CVY_TRY(piece_path(w, w->piece, &path));
    cvy_text_add(&text, "%lld %lld\n", (long long)w->count, (long long)w->files.bytes);
    cvy_text_add_bytes(&text, w->lines.data, w->lines.bytes);
    const cvy_status status = text.status == CVY_OK ? cvy_file_replace(path, text.data, text.bytes) : text.status;
    cvy_text_free(&text);
    return status;
}

/* ---- the whole list ---- */

static cvy_status join_piece(struct list_writer *w, int64_t piece, cvy_new_file *list, int64_t *nsamples,
                             int64_t *bytes)
{
    const char *path = NULL;
    char *text = NULL;
    size_t size = 0;
    long long count = 0, written = 0;
    int head = 0;
    CVY_TRY(piece_path(w, piece, &path));
    CVY_TRY(cvy_file_read(path, SIZE_MAX / 2, &text, &size));
    cvy_status status = CVY_OK;
    if (sscanf(text, "%lld %lld%n", &count, &written, &head) != 2 || text[head] != '\n')
        status = cvy_error_set(CVY_E_FORMAT, "%s: is not what was written", path);
    else
        status = cvy_new_file_write(list, text + head + 1, size - (size_t)head - 1);
    cvy_mem_free(&text);
    *nsamples += count;
    *bytes += written;
    return status;
}

static cvy_status list_writer_finish(void *state, int64_t *nsamples_out, int64_t *bytes_out)
{
    struct list_writer *w = state;
    const char *path = NULL;
    cvy_new_file list = {.fd = -1};
    int64_t nsamples = 0, bytes = 0;
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_data_path_join(w->args.pool, w->args.path, "list.txt", &path));
    CVY_TRY(cvy_new_file_begin(w->args.pool, path, &list));
    for (int64_t p = 0; p < w->args.npieces; p++)
        CVY_TRY_OUT(join_piece(w, p, &list, &nsamples, &bytes));
    bytes += list.bytes;
    CVY_TRY_OUT(cvy_new_file_end(&list));
    if (!w->o->labels)
        CVY_TRY_OUT(cvy_labels_file_write(&w->args, &bytes));
    for (int64_t p = 0; p < w->args.npieces; p++) {
        CVY_TRY_OUT(piece_path(w, p, &path));
        unlink(path);
    }
    *nsamples_out = nsamples;
    *bytes_out = bytes;
out:
    cvy_new_file_drop(&list);
    return status;
}

static void list_writer_close(void *state)
{
    struct list_writer *w = state;
    cvy_text_free(&w->lines);
    cvy_picture_files_free(&w->files);
}

CVY_WRITER_DEFINE(list) = {
    .name = "list",
    .summary = "a text file of paths of pictures and labels, as for Caffe and CNTK",
    .options = list_writer_options,
    .options_size = sizeof(struct list_writer_opts),
    .open = list_writer_open,
    .has_piece = list_writer_has_piece,
    .begin_piece = list_writer_begin_piece,
    .write = list_writer_write,
    .end_piece = list_writer_end_piece,
    .finish = list_writer_finish,
    .close = list_writer_close,
};
