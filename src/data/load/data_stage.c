/*
 * data_stage.c: `data.stage`: each node copies the files of a source to its own folder, once, before they are opened.
 *
 * Rank 0 of the run lists the files, so the shared file system is asked only once. Then all ranks of a node copy slices
 * of 64 MiB in turn and read back what they wrote. A copy is FOLDER/convoy-USER-HASH, a folder of this user alone
 * (data_stage_folder.c):
 *     manifest     the source, and size, time and name of each file; written last, so a copy without it is incomplete
 *     lock         runs that use the copy hold a shared lock; the run that makes or removes it, an exclusive one
 *     data/NAME    the files
 * If the manifest is the same that a run would write, the run uses the copy as it is.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/load/data_stage.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/base_hash.h"
#include "base/machine/base_clock.h"
#include "base/machine/base_system.h"
#include "data/data_reader.h"
#include "data/fits/data_fits.h"
#include "data/load/data_stage_folder.h"

enum { COPIES_MAX = 64, DEPTH_MAX = 32, WAIT_S = 600 };
#define SLICE_BYTES ((int64_t)64 << 20)
#define PIECE_BYTES ((int64_t)4 << 20)

struct cvy_stage {
    cvy_comm *comm;
    cvy_pool *pool;
    const char *folder;
    int fd; /* of the folder; -1: not open */
    int ncopy;
    cvy_stage_copy copy[COPIES_MAX + 1];
};

struct file {
    int64_t bytes;
    const char *name; /* path relative to the source's root and to the copy's data folder */
};

struct listing {      /* the files of one source; equal on all ranks */
    char *text;       /* the manifest */
    const char *path; /* as given, for messages */
    const char *from; /* the source's root, to which names are relative */
    struct file *file;
    int64_t nfile, bytes;
};

static int leads_node(const cvy_stage *s)
{
    return s->comm->node_rank == 0;
}

/* ---- listing, on rank 0 ---- */

static cvy_status list_path(cvy_pool *pool, const char *path, const char *name, int depth, cvy_text *t)
{
    struct stat st;
    CVY_CHECK(stat(path, &st) == 0, CVY_E_IO, "%s: cannot be staged: %s", path, strerror(errno));
    if (S_ISREG(st.st_mode)) {
        CVY_CHECK(!strchr(name, '\n'), CVY_E_UNSUPPORTED, "%s: a name with a line break cannot be staged", path);
        const struct timespec changed = cvy_file_changed(&st);
        cvy_text_add(t, "%lld %lld.%09ld %s\n", (long long)st.st_size, (long long)changed.tv_sec, changed.tv_nsec,
                     name);
        return t->status;
    }
    CVY_CHECK(depth < DEPTH_MAX, CVY_E_UNSUPPORTED, "%s: folders are nested more than %d deep", path, DEPTH_MAX);
    char **child = NULL;
    int64_t n = 0;
    if (S_ISDIR(st.st_mode))
        CVY_TRY(cvy_file_list(pool, path, &child, &n));
    for (int64_t i = 0; i < n; i++) {
        char *below = NULL, *below_name = NULL;
        CVY_TRY(cvy_pool_printf(pool, &below, "%s/%s", path, child[i]));
        CVY_TRY(cvy_pool_printf(pool, &below_name, "%s/%s", name, child[i]));
        CVY_TRY(list_path(pool, below, below_name, depth + 1, t));
    }
    return CVY_OK;
}

static cvy_status list_pattern(cvy_pool *pool, const char *root, const char *pattern, cvy_text *t)
{
    glob_t found;
    const int fault = glob(pattern, 0, NULL, &found);
    CVY_CHECK(fault == 0, CVY_E_IO, "%s: no file to stage has such a name", pattern);
    cvy_status status = CVY_OK;
    for (size_t i = 0; i < found.gl_pathc && status == CVY_OK; i++)
        status = list_path(pool, found.gl_pathv[i], found.gl_pathv[i] + strlen(root) + 1, 0, t);
    globfree(&found);
    return status;
}

/* If a source is files of one folder: lists the other files that readers look for in that folder. */
static cvy_status list_companions(cvy_pool *pool, const char *root, const char *rest, const char *path, cvy_text *t)
{
    static const char *const usual[] = {"labels.txt", "batches.meta.txt", "fine_label_names.txt",
                                        "coarse_label_names.txt"};
    const char *labels = NULL;
    CVY_TRY(cvy_idx_labels_path(pool, path, &labels));
    if (labels)
        CVY_TRY(list_path(pool, labels, cvy_file_base_name(labels), 0, t));
    for (int i = 0; i < CVY_COUNT(usual); i++) {
        const char *companion = NULL;
        CVY_TRY(cvy_data_path_join(pool, root, usual[i], &companion));
        if (fnmatch(rest, usual[i], 0) != 0 && cvy_file_exists(companion) && !cvy_file_is_folder(companion))
            CVY_TRY(list_path(pool, companion, usual[i], 0, t));
    }
    return CVY_OK;
}

/* Makes the manifest's text: the source's absolute path, then a line for each file. */
static cvy_status list_source(const char *root, const char *rest, cvy_text *t)
{
    cvy_pool *pool = NULL;
    char *path = NULL, *full = realpath(root, NULL);
    cvy_status status = CVY_OK;
    if (!full)
        CVY_FAIL_OUT(CVY_E_IO, "%s: cannot be staged: %s", root, strerror(errno));
    if (strchr(full, '\n') || strchr(rest, '\n'))
        CVY_FAIL_OUT(CVY_E_UNSUPPORTED, "%s/%s: a name with a line break cannot be staged", full, rest);
    cvy_text_add(t, "convoy stage 1\n%s/%s\n", full, rest);
    CVY_TRY_OUT(cvy_pool_create(&pool));
    CVY_TRY_OUT(cvy_pool_printf(pool, &path, "%s/%s", root, rest));
    CVY_TRY_OUT(cvy_file_exists(path) ? list_path(pool, path, rest, 0, t) : list_pattern(pool, root, path, t));
    if (!cvy_file_is_folder(path) && !strchr(rest, '/'))
        status = list_companions(pool, root, rest, path, t);
out:
    free(full);
    cvy_pool_destroy(&pool);
    return status == CVY_OK ? t->status : status;
}

/* Broadcasts rank 0's text. status: rank 0's result of making it. */
static cvy_status share_text(cvy_comm *comm, cvy_status status, const cvy_text *mine, char **out)
{
    uint64_t bytes = comm->rank == 0 ? mine->bytes + 1 : 0;
    char *text = NULL;
    CVY_TRY(cvy_comm_agree(comm, status));
    CVY_TRY(comm->ops->broadcast(comm, &bytes, sizeof bytes, 0));
    CVY_TRY_OUT(cvy_comm_alloc(comm, bytes, &text));
    if (comm->rank == 0)
        memcpy(text, mine->data, bytes);
    CVY_TRY_OUT(comm->ops->broadcast(comm, text, bytes, 0));
    *out = text;
    return CVY_OK;
out:
    cvy_mem_free(&text);
    return status;
}

/* Reads the files from the manifest. Names are copied, because the text is compared later. */
static cvy_status read_listing(cvy_pool *pool, struct listing *l)
{
    const char *line = l->text;
    for (const char *c = l->text; *c; c++)
        l->nfile += *c == '\n';
    l->nfile -= 2;
    CVY_CHECK(l->nfile > 0, CVY_E_IO, "%s: there is no file to stage", l->path);
    CVY_TRY(cvy_pool_alloc(pool, (size_t)l->nfile * sizeof *l->file, &l->file));
    for (int skip = 0; skip < 2; skip++)
        line = strchr(line, '\n') + 1;
    for (int64_t i = 0; i < l->nfile; i++) {
        char *end = NULL, *name = NULL;
        l->file[i].bytes = strtoll(line, &end, 10);
        const char *begin = strchr(end + 1, ' ') + 1, *stop = strchr(begin, '\n');
        CVY_TRY(cvy_pool_printf(pool, &name, "%.*s", (int)(stop - begin), begin));
        l->file[i].name = name;
        l->bytes += l->file[i].bytes;
        line = stop + 1;
    }
    return CVY_OK;
}

/* ---- the folder of the copy ---- */

/* Runs on the node's first rank. Afterwards the copy exists, or this run holds the exclusive lock to make it. */
static cvy_status claim_folder(const cvy_stage *s, cvy_stage_copy *c, const struct listing *l)
{
    int alone = 0;
    const double start = cvy_clock_s();
    while (c->lock < 0) {
        CVY_TRY(cvy_stage_copy_try_lock(c, &alone));
        CVY_CHECK(c->lock >= 0 || cvy_clock_s() - start < WAIT_S, CVY_E_IO,
                  "%s: has been locked by another run for %d s; data.stage must be a folder that is local to each node",
                  c->path, WAIT_S);
        if (c->lock < 0)
            nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    if (cvy_stage_copy_is(c, l->text)) {
        cvy_stage_copy_share(c);
        return CVY_OK;
    }
    CVY_CHECK(alone, CVY_E_IO, "%s: is used by another run and holds another state of %s: name another data.stage",
              c->path, l->path);
    CVY_TRY(cvy_stage_copy_clear(c));
    struct statvfs fs;
    if (statvfs(s->folder, &fs) != 0) {
        cvy_protection_note(CVY_PROTECTION_FREE_SPACE, s->folder, errno);
        return CVY_OK;
    }
    const double room = (double)fs.f_bavail * (double)fs.f_frsize;
    CVY_CHECK(room >= (double)l->bytes, CVY_E_IO,
              "data.stage: %s has %.1f MB free and %s needs %.1f MB: free some space, name another folder, or switch "
              "staging off",
              s->folder, 1e-6 * room, l->path, 1e-6 * (double)l->bytes);
    return CVY_OK;
}

/* ---- copying ---- */

static cvy_status copy_range(int from, const char *from_path, int to, const char *to_path, int64_t offset, int64_t end,
                             void *room)
{
    for (int64_t at = offset; at < end; at += PIECE_BYTES) {
        const size_t bytes = (size_t)CVY_MIN(PIECE_BYTES, end - at);
        CVY_TRY(cvy_pread_all(from, room, bytes, at, from_path));
        const uint32_t crc = cvy_crc32c(0, room, bytes);
        CVY_TRY(cvy_pwrite_all(to, room, bytes, at, to_path));
        CVY_TRY(cvy_pread_all(to, room, bytes, at, to_path));
        CVY_CHECK(cvy_crc32c(0, room, bytes) == crc, CVY_E_IO,
                  "%s: bytes %lld to %lld read back differently from what was written", to_path, (long long)at,
                  (long long)at + (long long)bytes - 1);
    }
    return CVY_OK;
}

static cvy_status copy_slice(const struct listing *l, const cvy_stage_copy *c, const struct file *f, int64_t offset,
                             void *room)
{
    char from_path[4200], to_path[4200];
    const char *why = "";
    int to = -1;
    const int length = snprintf(to_path, sizeof to_path, "%s/data/%s", c->path, f->name);
    CVY_CHECK(length < (int)sizeof to_path, CVY_E_IO, "%s: the path is too long to be staged", f->name);
    snprintf(from_path, sizeof from_path, "%s/%s", l->from, f->name);
    CVY_TRY(cvy_stage_copy_file(c, f->name, &to));
    const int from = cvy_file_open(from_path, O_RDONLY, 0, &why);
    cvy_status status = CVY_OK;
    if (from < 0)
        status = cvy_error_set(CVY_E_IO, "%s: cannot be opened: %s", from_path, why);
    else
        status = copy_range(from, from_path, to, to_path, offset, CVY_MIN(offset + SLICE_BYTES, f->bytes), room);
    if (from >= 0)
        close(from);
    if (close(to) != 0 && status == CVY_OK)
        status = cvy_error_set(CVY_E_IO, "%s: cannot be written: %s", to_path, strerror(errno));
    return status;
}

/* Copies this rank's slices: every node_nranks-th slice of all files. An empty file has one slice. */
static cvy_status copy_share(const cvy_stage *s, const struct listing *l, const cvy_stage_copy *c)
{
    void *room = NULL;
    int64_t slice = 0;
    cvy_status status = cvy_mem_alloc((size_t)PIECE_BYTES, &room);
    for (int64_t i = 0; i < l->nfile; i++)
        for (int64_t offset = 0; (offset == 0 || offset < l->file[i].bytes) && status == CVY_OK; offset += SLICE_BYTES)
            if (slice++ % s->comm->node_nranks == s->comm->node_rank)
                status = copy_slice(l, c, &l->file[i], offset, room);
    cvy_mem_free(&room);
    return status;
}

static cvy_status finish_copy(const struct listing *l, const cvy_stage_copy *c)
{
    struct stat st;
    for (int64_t i = 0; i < l->nfile; i++) {
        int fd = -1;
        CVY_TRY(cvy_stage_copy_file(c, l->file[i].name, &fd));
        const int same = fstat(fd, &st) == 0 && st.st_size == l->file[i].bytes;
        close(fd);
        CVY_CHECK(same, CVY_E_IO, "%s/data/%s: was staged with another size than %lld bytes", c->path, l->file[i].name,
                  (long long)l->file[i].bytes);
    }
    CVY_TRY(cvy_stage_copy_finish(c, l->text));
    cvy_stage_copy_share(c);
    return CVY_OK;
}

/* The node's first rank takes the folder and creates the files; the others open it. Collective. */
static cvy_status take_folder(const cvy_stage *s, cvy_stage_copy *c, const struct listing *l, int *is_there_out)
{
    cvy_status status = leads_node(s) ? claim_folder(s, c, l) : CVY_OK;
    CVY_TRY(cvy_comm_agree(s->comm, status));
    if (!leads_node(s))
        status = cvy_stage_copy_open(c);
    if (status == CVY_END)
        status = cvy_error_set(CVY_E_IO, "%s: the folder is gone: another process removed it", c->path);
    CVY_TRY(cvy_comm_agree(s->comm, status));
    *is_there_out = cvy_stage_copy_is(c, l->text);
    for (int64_t i = 0; i < l->nfile && leads_node(s) && !*is_there_out && status == CVY_OK; i++)
        status = cvy_stage_copy_create(c, l->file[i].name);
    return cvy_comm_agree(s->comm, status);
}

/* Takes the folder, copies the files, writes the manifest. cvy_comm_agree() after each stage is also a barrier. */
static cvy_status make_copy(cvy_stage *s, cvy_stage_copy *c, const struct listing *l, cvy_text *report)
{
    cvy_comm *comm = s->comm;
    int is_there = 0;
    CVY_TRY(take_folder(s, c, l, &is_there));
    int64_t anywhere = !is_there;
    const double start = cvy_clock_s();
    CVY_TRY(comm->ops->allreduce(comm, &anywhere, 1, CVY_DTYPE_I64, CVY_REDUCE_MAX));
    if (!anywhere) {
        cvy_text_add(report, "data.stage: %s is in %s already, %.1f MB\n", l->path, c->path, 1e-6 * (double)l->bytes);
        return CVY_OK;
    }
    CVY_TRY(cvy_comm_agree(comm, is_there ? CVY_OK : copy_share(s, l, c)));
    CVY_TRY(cvy_comm_agree(comm, leads_node(s) && !is_there ? finish_copy(l, c) : CVY_OK));
    const double seconds = cvy_clock_s() - start;
    cvy_text_add(report,
                 "data.stage: %s copied to %s: %lld file%s, %.1f MB in %.2f s, %.0f MB/s per node with %d rank%s, read "
                 "back and verified\n",
                 l->path, c->path, (long long)l->nfile, l->nfile == 1 ? "" : "s", 1e-6 * (double)l->bytes, seconds,
                 1e-6 * (double)l->bytes / CVY_MAX(seconds, 1e-9), comm->node_nranks,
                 comm->node_nranks == 1 ? "" : "s");
    return CVY_OK;
}

/* ---- sources ---- */

/* Splits a path into root and rest; the rest is staged as a whole. "data/x?.h5" has the root "data" and the rest
 * "x?.h5". */
static cvy_status cut_path(cvy_pool *pool, const char *path, const char **root_out, const char **rest_out)
{
    char *copy = NULL;
    CVY_TRY(cvy_pool_strdup(pool, path, &copy));
    for (size_t n = strlen(copy); n > 1 && copy[n - 1] == '/'; n--)
        copy[n - 1] = 0;
    size_t cut = cvy_file_exists(copy) ? strlen(copy) : strcspn(copy, "*?[");
    while (cut > 0 && copy[cut - 1] != '/')
        cut--;
    *rest_out = copy + cut;
    *root_out = cut == 0 ? "." : cut == 1 ? "/" : copy;
    if (cut > 1)
        copy[cut - 1] = 0;
    CVY_CHECK(**rest_out && strcmp(*rest_out, "..") != 0 && strcmp(*rest_out, ".") != 0, CVY_E_CONFIG,
              "%s: data.stage needs a path that ends in a name", path);
    return CVY_OK;
}

/* Rejects lists, since a list names files in any folder. */
static cvy_status check_format(const cvy_tree *at, const char *path, const char *format)
{
    const cvy_reader_def *reader = NULL;
    if (!format && cvy_file_exists(path) && cvy_reader_detect(path, &reader) == CVY_OK)
        format = reader->name;
    CVY_CHECK(
        !format || (strcmp(format, "list") != 0 && (strcmp(format, "fits") != 0 || !cvy_fits_is_list(path))),
        CVY_E_CONFIG,
        "%s: data.stage copies files and folders, but the list %s needs the files that it names: convert it first",
        cvy_tree_where(at), path);
    return CVY_OK; /* if there is no such source, opening it will report that */
}

/* Sets the files, the folder and the path of a copy. The folder's name has the user and a hash of the source's absolute
 * path. */
static cvy_status name_copy(cvy_stage *s, cvy_pool *pool, struct listing *l, const char *rest, cvy_stage_copy *c,
                            char **path_out)
{
    const char *full = strchr(l->text, '\n') + 1;
    char *name = NULL, *path = NULL;
    CVY_TRY(read_listing(pool, l));
    CVY_CHECK(s->ncopy < COPIES_MAX, CVY_E_CONFIG, "data.stage: more than %d sources", COPIES_MAX);
    CVY_TRY(cvy_pool_printf(s->pool, &name, "convoy-%u-%016llx", (unsigned)geteuid(),
                            (unsigned long long)cvy_hash(full, strcspn(full, "\n"))));
    CVY_TRY(cvy_pool_printf(s->pool, &path, "%s/%s", s->folder, name));
    *c = (cvy_stage_copy){.folder = s->fd, .name = name, .path = path, .root = -1, .lock = -1};
    return cvy_pool_printf(pool, path_out, "%s/data/%s", path, rest);
}

static cvy_status stage_listed(cvy_stage *s, cvy_pool *pool, struct listing *l, const char *rest, cvy_text *report,
                               char **path_out)
{
    cvy_stage_copy *c = &s->copy[s->ncopy];
    CVY_TRY(cvy_comm_agree(s->comm, name_copy(s, pool, l, rest, c, path_out)));
    s->ncopy++;
    return make_copy(s, c, l, report);
}

static cvy_status stage_path(cvy_stage *s, cvy_pool *pool, const cvy_tree *at, const char *path, const char *format,
                             cvy_text *report, char **path_out)
{
    cvy_comm *comm = s->comm;
    struct listing l = {.path = path};
    const char *rest = NULL;
    cvy_text text = {0};
    cvy_status status = cut_path(pool, path, &l.from, &rest);
    if (status == CVY_OK && comm->rank == 0) {
        status = check_format(at, path, format);
        if (status == CVY_OK)
            status = list_source(l.from, rest, &text);
    }
    status = share_text(comm, status, &text, &l.text);
    cvy_text_free(&text);
    if (status == CVY_OK)
        status = stage_listed(s, pool, &l, rest, report, path_out);
    cvy_mem_free(&l.text);
    return status;
}

/* Replaces the paths in a tree; the caller has made a copy of it. */
static cvy_status stage_tree(cvy_stage *s, cvy_pool *pool, cvy_tree *at, cvy_text *report)
{
    const int is_map = at->kind == CVY_TREE_MAP;
    cvy_tree *several = is_map ? cvy_tree_get(at, "sources") : at->kind == CVY_TREE_LIST ? at : NULL;
    cvy_tree *path = is_map ? cvy_tree_get(at, "path") : at, *format = is_map ? cvy_tree_get(at, "format") : NULL;
    for (int i = 0; several && i < several->count; i++)
        CVY_TRY(stage_tree(s, pool, several->child[i], report));
    if (several || !path || path->kind != CVY_TREE_SCALAR || !path->text || !*path->text)
        return CVY_OK;
    char *staged = NULL;
    CVY_TRY(stage_path(s, pool, path, path->text, format ? format->text : NULL, report, &staged));
    path->text = staged;
    return CVY_OK;
}

cvy_status cvy_stage_source(cvy_stage *s, cvy_pool *pool, const cvy_tree *source, const cvy_tree **out,
                            cvy_text *report)
{
    cvy_tree *copy = NULL;
    CVY_TRY(cvy_comm_agree(s->comm, cvy_tree_copy(pool, source, &copy)));
    CVY_TRY(stage_tree(s, pool, copy, report));
    *out = copy;
    return CVY_OK;
}

/* ---- create and destroy ---- */

cvy_status cvy_stage_create(cvy_comm *comm, const char *folder, cvy_stage **out)
{
    cvy_stage *s = NULL;
    char *copy = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *s, &s));
    s->comm = comm;
    s->fd = -1;
    cvy_status status = cvy_pool_create(&s->pool);
    if (status == CVY_OK)
        status = cvy_pool_strdup(s->pool, folder, &copy);
    if (status == CVY_OK && strlen(folder) > 3000)
        status = cvy_error_set(CVY_E_CONFIG, "data.stage: the folder's name is longer than 3000 characters");
    s->folder = copy;
    if (status == CVY_OK)
        status = cvy_stage_folder_open(folder, &s->fd);
    if (status != CVY_OK)
        cvy_stage_destroy(&s);
    else
        *out = s;
    return status;
}

void cvy_stage_destroy(cvy_stage **stage)
{
    cvy_stage *s = *stage;
    if (!s)
        return;
    for (int i = 0; i < s->ncopy; i++)
        cvy_stage_copy_close(&s->copy[i]);
    if (s->fd >= 0)
        close(s->fd);
    cvy_pool_destroy(&s->pool);
    cvy_mem_free(stage);
}
