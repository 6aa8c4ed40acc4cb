/*
 * plan_wisdom.c: the file of measured times. It is modelled on FFTW's wisdom (Frigo and Johnson 2005), but keeps times
 * instead of plans. The kernels are chosen again from these times, so a network profits from another one that has the
 * same layers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plan/plan_wisdom.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/base_hash.h"
#include "base/machine/base_machine.h"
#include "base/text/base_text.h"
#include "kernel/kernel_library.h"
#include "plan/plan_offers.h"

#define FORMAT "convoy wisdom 1"
#define COULD_NOT_RUN "could not run"
enum { FILE_BYTES_MAX = 16 << 20, LOCK_TRIES = 300, LOCK_WAIT_MS = 10 };

/* ---- the machine and build for which times are valid ---- */

/* A hash of the names of all kernels and of their sources: if a kernel was added, removed or changed, old times are
 * doubtful. */
static uint64_t kernel_set(void)
{
    int count = 0;
    const cvy_kernel_def *const *table = cvy_kernel_table(&count);
    cvy_hasher h;
    cvy_hash_begin(&h);
    cvy_hash_add(&h, &cvy_kernel_sum, sizeof cvy_kernel_sum);
    for (int i = 0; i < count; i++)
        cvy_hash_add(&h, table[i]->name, strlen(table[i]->name) + 1);
    return cvy_hash_end(&h);
}

static cvy_status describe_machine(const cvy_space *space, char **out)
{
    char cpu[128], library[96], device[320] = "";
    cvy_device about;
    cvy_machine_cpu(cpu, sizeof cpu);
    cvy_kernel_libraries_about(space, library, sizeof library);
    cvy_space_about(space, &about);
    if (!cvy_space_is_host(space))
        snprintf(device, sizeof device, "%s %s, %s; ", space->backend->name, about.name, about.driver);
    return cvy_mem_printf(out, "%s%s; %s; convoy %s, %s, %s, kernels %08x", device, cpu, library, CVY_VERSION,
                          CVY_BUILD_TYPE, CVY_BUILD_COMPILER, (unsigned)(kernel_set() & 0xffffffff));
}

/* Each machine and build has its own file name, because several may share a home folder. */
static cvy_status default_path(const char *machine, char **out)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const unsigned id = (unsigned)(cvy_hash(machine, strlen(machine)) & 0xffffffff);
    if (cache && cache[0] == '/')
        return cvy_mem_printf(out, "%s/convoy/wisdom-%08x.json", cache, id);
    return home && home[0] == '/' ? cvy_mem_printf(out, "%s/.cache/convoy/wisdom-%08x.json", home, id) : CVY_OK;
}

static cvy_status find_path(const char *where, const char *machine, char **out)
{
    where = where && *where ? where : getenv("CONVOY_WISDOM");
    if (!where || !*where)
        return default_path(machine, out);
    return strcmp(where, "off") == 0 ? CVY_OK : cvy_mem_strdup(where, out);
}

/* ---- times ---- */

double cvy_wisdom_find(const cvy_wisdom *w, const char *key)
{
    const int at = cvy_keys_find(&w->key, key);
    return at < 0 ? CVY_MS_UNKNOWN : w->ms[at];
}

cvy_status cvy_wisdom_find_call(const cvy_wisdom *w, const cvy_lowered *u, const cvy_call *call, int threads,
                                double *ms_out)
{
    cvy_text key = {0};
    cvy_call_key(u, call, threads, &key);
    const cvy_status status = key.status;
    *ms_out = status == CVY_OK ? cvy_wisdom_find(w, key.data) : CVY_MS_UNKNOWN;
    cvy_text_free(&key);
    return status;
}

static cvy_status put(cvy_wisdom *w, const char *key, double ms, int replace)
{
    const int before = w->key.count;
    int at = -1;
    CVY_TRY(cvy_mem_reserve(&w->ms, &w->room, before, sizeof *w->ms));
    CVY_TRY(cvy_keys_add(&w->key, key, &at));
    if (at == before || replace)
        w->ms[at] = ms;
    return CVY_OK;
}

/* Rounds to whole nanoseconds: then the decimal number in the file gives exactly the same time, and so the same
 * choices. */
cvy_status cvy_wisdom_add(cvy_wisdom *w, const char *key, double ms)
{
    CVY_TRY(put(w, key, rint(ms * 1e6) / 1e6, 1));
    w->nfresh++;
    return CVY_OK;
}

/* ---- from a file ---- */

/* A checksum of all entries in their order, which detects a lost or changed line. */
static uint64_t sum_of(const cvy_tree *times)
{
    cvy_hasher h;
    cvy_hash_begin(&h);
    for (int i = 0; i < times->count; i++) {
        cvy_hash_add(&h, times->key[i], strlen(times->key[i]) + 1);
        if (times->child[i]->text)
            cvy_hash_add(&h, times->child[i]->text, strlen(times->child[i]->text) + 1);
    }
    return cvy_hash_end(&h);
}

static const char *text_of(const cvy_tree *map, const char *key)
{
    const cvy_tree *child = cvy_tree_get(map, key);
    return child && child->text ? child->text : "";
}

static cvy_status read_time(const cvy_tree *node, double *ms_out)
{
    double ms = 0;
    if (node->text && node->quoted && strcmp(node->text, COULD_NOT_RUN) == 0) {
        *ms_out = (double)INFINITY;
        return CVY_OK;
    }
    CVY_TRY(cvy_tree_real(node, &ms));
    CVY_CHECK(ms >= 0 && ms < 1e9, CVY_E_FORMAT, "%s: the time %g ms is not valid", cvy_tree_where(node), ms);
    *ms_out = ms;
    return CVY_OK;
}

static cvy_status take(cvy_wisdom *w, const cvy_tree *file)
{
    char sum[24];
    const cvy_tree *times = file->kind == CVY_TREE_MAP ? cvy_tree_get(file, "times") : NULL;
    CVY_CHECK(times && times->kind == CVY_TREE_MAP && strcmp(text_of(file, "format"), FORMAT) == 0, CVY_E_FORMAT,
              "%s is not a %s", w->path, FORMAT);
    CVY_CHECK(strcmp(text_of(file, "machine"), w->machine) == 0, CVY_NOT_APPLICABLE,
              "%s was measured on another machine or build (%s, here: %s)", w->path, text_of(file, "machine"),
              w->machine);
    snprintf(sum, sizeof sum, "%s %08x", cvy_hash_name(), (unsigned)(sum_of(times) & 0xffffffff));
    CVY_CHECK(strcmp(text_of(file, "sum"), sum) == 0, CVY_E_FORMAT,
              "%s: the checksum is '%s', but that of its times is %s", w->path, text_of(file, "sum"), sum);
    for (int i = 0; i < times->count; i++) {
        double ms = 0;
        CVY_TRY(read_time(times->child[i], &ms));
        CVY_TRY(put(w, times->key[i], ms, 0));
    }
    return CVY_OK;
}

/* Adds the times of the file. Times that are known already stay. */
static cvy_status load(cvy_wisdom *w)
{
    cvy_pool *pool = NULL;
    cvy_tree *file = NULL;
    CVY_TRY(cvy_pool_create(&pool));
    cvy_status status = cvy_tree_parse_file(pool, w->path, &file);
    if (status == CVY_OK)
        status = take(w, file);
    cvy_pool_destroy(&pool);
    return status;
}

static cvy_status open_wisdom(const char *where, const cvy_space *space, cvy_wisdom *w)
{
    CVY_TRY(describe_machine(space, &w->machine));
    CVY_TRY(find_path(where, w->machine, &w->path));
    if (!w->path || !cvy_file_exists(w->path))
        return CVY_OK;
    const cvy_status status = load(w);
    if (status == CVY_OK || status == CVY_E_MEMORY)
        return status;
    cvy_keys_free(&w->key);
    return cvy_mem_printf(&w->warning, "wisdom is not used, and kernels will be measured again: %s", cvy_error_text());
}

cvy_status cvy_wisdom_open(const char *where, const cvy_space *space, cvy_wisdom **out)
{
    cvy_wisdom *w = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *w, &w));
    const cvy_status status = open_wisdom(where, space, w);
    if (status != CVY_OK)
        cvy_wisdom_close(&w);
    else
        *out = w;
    return status;
}

void cvy_wisdom_close(cvy_wisdom **wisdom)
{
    cvy_wisdom *w = *wisdom;
    if (!w)
        return;
    cvy_keys_free(&w->key);
    cvy_mem_free(&w->ms);
    cvy_mem_free(&w->path);
    cvy_mem_free(&w->machine);
    cvy_mem_free(&w->warning);
    cvy_mem_free(wisdom);
}

/* ---- to a file ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void print_times(const cvy_wisdom *w, const char *const *sorted, cvy_text *t, cvy_hasher *h)
{
    cvy_hash_begin(h);
    for (int i = 0; i < w->key.count; i++) {
        const double ms = cvy_wisdom_find(w, sorted[i]);
        char number[32];
        snprintf(number, sizeof number, "%.6f", ms);
        const char *text = ms < (double)INFINITY ? number : COULD_NOT_RUN;
        cvy_text_add(t, "%s\n  ", i ? "," : "");
        cvy_text_add_quoted(t, sorted[i]);
        cvy_text_add(t, ms < (double)INFINITY ? ": %s" : ": \"%s\"", text);
        cvy_hash_add(h, sorted[i], strlen(sorted[i]) + 1);
        cvy_hash_add(h, text, strlen(text) + 1);
    }
}

/* Prints the times sorted by key, so that two files can be compared line by line. */
static cvy_status print(const cvy_wisdom *w, cvy_text *out)
{
    const char **sorted = NULL;
    cvy_text times = {0};
    cvy_hasher h;
    CVY_TRY(cvy_mem_alloc(sizeof *sorted * ((size_t)w->key.count + 1), &sorted));
    for (int i = 0; i < w->key.count; i++)
        sorted[i] = w->key.text[i];
    qsort(sorted, (size_t)w->key.count, sizeof *sorted, by_text);
    print_times(w, sorted, &times, &h);
    cvy_text_add(out, "{\"format\": \"%s\",\n\"machine\": ", FORMAT);
    cvy_text_add_quoted(out, w->machine);
    cvy_text_add(out, ",\n\"unit\": \"ms\",\n\"sum\": \"%s %08x\",\n\"times\": {", cvy_hash_name(),
                 (unsigned)(cvy_hash_end(&h) & 0xffffffff));
    cvy_text_add_bytes(out, times.data ? times.data : "", times.bytes);
    cvy_text_add(out, "\n}}\n");
    const cvy_status status = times.status == CVY_OK ? out->status : times.status;
    cvy_text_free(&times);
    cvy_mem_free(&sorted);
    return status;
}

static cvy_status make_folder_of(const char *path)
{
    char *folder = NULL;
    CVY_TRY(cvy_mem_strdup(path, &folder));
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
    const cvy_status status = slash && slash != folder ? cvy_file_make_folder(folder) : CVY_OK;
    cvy_mem_free(&folder);
    return status;
}

/* The lock is on a separate file, because the file itself is replaced. Waiting for it has a time limit, because a
 * network file system may never grant it. */
static cvy_status lock(const char *path, int *fd_out)
{
    char *name = NULL;
    CVY_TRY(cvy_mem_printf(&name, "%s.lock", path));
    const char *why = "";
    const int fd = cvy_file_open(name, O_RDWR | O_CREAT | O_NOFOLLOW, 0666, &why);
    cvy_status status = fd >= 0 ? CVY_OK : cvy_error_set(CVY_E_IO, "%s: cannot open: %s", name, why);
    cvy_lock got = CVY_LOCK_BUSY;
    for (int i = 0; status == CVY_OK && (got = cvy_file_lock(fd)) == CVY_LOCK_BUSY; i++) {
        const struct timespec pause = {.tv_nsec = LOCK_WAIT_MS * 1000000L};
        if (i == LOCK_TRIES)
            status = cvy_error_set(CVY_E_IO, "%s: another process has the lock", name);
        else
            nanosleep(&pause, NULL);
    }
    if (status == CVY_OK && got == CVY_LOCK_CANNOT)
        cvy_protection_note(CVY_PROTECTION_WISDOM_LOCK, name, errno); /* the file is replaced as a whole all the same */
    cvy_mem_free(&name);
    if (status != CVY_OK && fd >= 0)
        close(fd);
    else
        *fd_out = fd;
    return status;
}

/* Keeps what others have written in the meantime, unless the file is damaged or of another machine. */
static cvy_status merge_and_replace(cvy_wisdom *w)
{
    cvy_text t = {0};
    if (cvy_file_exists(w->path) && load(w) == CVY_E_MEMORY)
        return CVY_E_MEMORY;
    cvy_status status = print(w, &t);
    if (status == CVY_OK)
        status = cvy_file_replace(w->path, t.data, t.bytes);
    cvy_text_free(&t);
    return status;
}

cvy_status cvy_wisdom_save(cvy_wisdom *w)
{
    int fd = -1;
    if (!w->path || w->nfresh == 0)
        return CVY_OK;
    CVY_TRY(make_folder_of(w->path));
    CVY_TRY(lock(w->path, &fd));
    const cvy_status status = merge_and_replace(w);
    close(fd);
    if (status == CVY_OK)
        w->nfresh = 0;
    return status;
}
