/*
 * extension.c: loads shared libraries of operators, adds operators of the program, and keeps those of a context.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "extension/extension.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#ifdef __linux__
#include <link.h>
#endif

#include "base/base_file.h"
#include "base/base_hash.h"
#include "base/base_opts.h"

#define ENTRY "convoy_extension"
/* More than any sensible library: a wrong path (a data set, a core file) is not read as a whole. */
#define FILE_BYTES_MAX ((size_t)1 << 30)
enum { PARTITIONS_MAX = 64 };

typedef const cvy_extension *entry_fn(void);

/* ---- the table ---- */

cvy_status cvy_extensions_table(const cvy_extensions *x, const cvy_op_def ***table_out, int *count_out)
{
    int count = 0;
    const cvy_op_def *const *own = cvy_op_table(&count), **table = NULL;
    const int nop = x ? x->nop : 0;
    CVY_TRY(cvy_mem_alloc(sizeof *table * (size_t)(count + nop + 1), &table));
    memcpy(table, own, sizeof *table * (size_t)count);
    for (int i = 0; i < nop; i++)
        table[count + i] = &x->op[i]->forward;
    *table_out = table;
    *count_out = count + nop;
    return CVY_OK;
}

/* ---- one file ---- */

/* The name of an operator, or of the gradient of an operator. */
static const char *owner_of(const cvy_extensions *x, const char *name)
{
    if (cvy_op_find(name) || strcmp(name, "repeat") == 0)
        return "convoy";
    for (int i = 0; i < x->nop; i++)
        if (strcmp(x->op[i]->forward.name, name) == 0 || strcmp(x->op[i]->grad.name, name) == 0)
            return x->op[i]->file->path;
    return NULL;
}

static cvy_status check_name(const cvy_extensions *x, const char *name)
{
    const char *owner = owner_of(x, name);
    CVY_CHECK(!owner, CVY_E_ARGUMENT, "the name '%s' is taken by an operator of %s: give yours another name", name,
              owner ? owner : "");
    return CVY_OK;
}

static cvy_status add_operator(cvy_extensions *x, const cvy_extension_file *file, const cvy_operator *given)
{
    cvy_extension_op *op = NULL;
    CVY_TRY(cvy_extension_op_create(x->pool, file, given, &op));
    CVY_TRY(check_name(x, op->forward.name));
    CVY_TRY(check_name(x, op->grad.name));
    CVY_TRY(cvy_mem_reserve(&x->op, &x->op_room, x->nop, sizeof *x->op));
    x->op[x->nop++] = op;
    return CVY_OK;
}

static cvy_status add_operators(cvy_extensions *x, const cvy_extension_file *file)
{
    const cvy_operator *const *at = file->about.operators;
    for (; at && *at; at++)
        CVY_TRY(add_operator(x, file, *at));
    return CVY_OK;
}

static cvy_status add_partitions(const cvy_extensions *x, cvy_extension_file *file)
{
    const cvy_partition *const *list = file->about.partitions;
    int n = 0;
    while (list && list[n])
        CVY_CHECK(++n <= PARTITIONS_MAX, CVY_E_ARGUMENT,
                  "more than %d partitioning passes: the table must end with NULL", PARTITIONS_MAX);
    CVY_TRY(cvy_pool_alloc(x->pool, sizeof *file->partition * (size_t)(n + 1), &file->partition));
    for (int i = 0; i < n; i++) {
        CVY_TRY(CVY_OPTS_READ(cvy_partition, list[i], &file->partition[i]));
        CVY_CHECK(file->partition[i].name && (file->partition[i].run || file->partition[i].split), CVY_E_ARGUMENT,
                  "partitioning pass %d has no %s", i, file->partition[i].name ? "run or split function" : "name");
    }
    file->npartition = n;
    return CVY_OK;
}

/* The fields before `size` are the same in every version. */
static cvy_status read_about(const cvy_extension *given, cvy_extension *out)
{
    const size_t least = offsetof(cvy_extension, operators) + sizeof given->operators;
    CVY_CHECK(given, CVY_E_ARGUMENT, ENTRY "() returns NULL, expected a cvy_extension");
    CVY_CHECK(given->abi == CVY_EXTENSION_ABI, CVY_E_UNSUPPORTED,
              "it is an extension of kind %d, built with the headers of convoy %d.%d.%d, and this is convoy %s, which "
              "loads kind %d: compile it with the headers of this version",
              given->abi, given->version / 10000, given->version / 100 % 100, given->version % 100, cvy_version(),
              CVY_EXTENSION_ABI);
    CVY_CHECK(given->size >= least && given->size < 4096, CVY_E_ARGUMENT,
              "the size of its cvy_extension is %zu: set it to sizeof(cvy_extension)", given->size);
    for (size_t i = sizeof *out; i < given->size; i++)
        CVY_CHECK(((const unsigned char *)given)[i] == 0, CVY_E_UNSUPPORTED,
                  "it has something that convoy %s does not know: load it with the version that it was built for, "
                  "%d.%d.%d",
                  cvy_version(), given->version / 10000, given->version / 100 % 100, given->version % 100);
    memset(out, 0, sizeof *out);
    memcpy(out, given, CVY_MIN(given->size, sizeof *out));
    CVY_CHECK(out->name && *out->name, CVY_E_ARGUMENT, "its cvy_extension has no name");
    return CVY_OK;
}

/* Local binding keeps the symbols of two extensions apart. The code is never removed: a library that has started
 * threads (OpenMP) would crash them. */
static cvy_status open_file(cvy_extensions *x, cvy_extension_file *file)
{
    entry_fn *entry = NULL;
    file->handle = dlopen(file->place, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!file->handle) {
        const char *why = dlerror();
        CVY_FAIL(CVY_E_IO, "it cannot be loaded: %s: build it with -shared -fPIC for this machine",
                 why ? why : "unknown reason");
    }
    void *symbol = dlsym(file->handle, ENTRY);
    CVY_CHECK(symbol, CVY_E_IO,
              "it is no extension of convoy: it does not export " ENTRY "(), which convoy/operator.h declares");
    memcpy(&entry, &symbol, sizeof entry); /* ISO C has no cast from an object to a function */
    CVY_TRY(read_about(entry(), &file->about));
    CVY_TRY(add_partitions(x, file));
    return add_operators(x, file);
}

/* ---- operators of the program ---- */

static void hash_text(cvy_hasher *h, const char *text)
{
    cvy_hash_add(h, text ? text : "", text ? strlen(text) + 1 : 1);
}

/* What ranks must have in common. Addresses differ. */
static uint64_t hash_operator(const cvy_operator *own)
{
    const int64_t number[] = {
        own->nsrc_min, own->nsrc_max,         own->integer_src,   own->nsaved,      own->splits,
        own->reads,    own->backward != NULL, own->shape != NULL, own->result.ndim, (int64_t)own->options_size};
    cvy_hasher h;
    cvy_hash_begin(&h);
    hash_text(&h, own->name);
    cvy_hash_add(&h, number, sizeof number);
    cvy_hash_add(&h, own->result.dim, sizeof *own->result.dim * (size_t)own->result.ndim);
    for (const cvy_operator_param *p = own->params; p && p->name; p++) {
        hash_text(&h, p->name);
        hash_text(&h, p->init);
        hash_text(&h, p->init_options);
        cvy_hash_add(&h, &p->decay, sizeof p->decay);
    }
    for (const cvy_operator_option *o = own->options; o && o->name; o++) {
        hash_text(&h, o->name);
        hash_text(&h, o->fallback);
        hash_text(&h, o->valid);
    }
    return cvy_hash_end(&h);
}

cvy_status cvy_extensions_add(cvy_extensions *x, const cvy_operator *op)
{
    cvy_extension_file *file = NULL;
    CVY_CHECK(op, CVY_E_ARGUMENT, "cvy_context_add_operator() needs an operator");
    if (!x->pool)
        CVY_TRY(cvy_pool_create(&x->pool));
    CVY_TRY(cvy_mem_reserve(&x->file, &x->file_room, x->nfile, sizeof *x->file));
    CVY_TRY(cvy_pool_alloc(x->pool, sizeof *file, &file));
    CVY_TRY(cvy_pool_strdup(x->pool, "this program", &file->path));
    CVY_TRY(add_operator(x, file, op));
    file->hash = hash_operator(&x->op[x->nop - 1]->own);
    x->file[x->nfile++] = file;
    return CVY_OK;
}

/* ---- all files ---- */

/* dlopen() maps the parts of a file that its table names, and a process that reads beyond the end of the file is ended
 * by SIGBUS. */
static cvy_status check_whole(const char *data, size_t bytes)
{
#ifdef __linux__
    ElfW(Ehdr) head;
    ElfW(Phdr) part;
    if (bytes < sizeof head || memcmp(data, ELFMAG, SELFMAG) != 0)
        return CVY_OK; /* dlopen() says what it is */
    memcpy(&head, data, sizeof head);
    for (size_t i = 0; i < head.e_phnum && head.e_phentsize == sizeof part; i++) {
        const uint64_t at = (uint64_t)head.e_phoff + i * sizeof part;
        CVY_CHECK(at <= bytes && bytes - at >= sizeof part, CVY_E_FORMAT, "it is cut off: it has %zu bytes only",
                  bytes);
        memcpy(&part, data + at, sizeof part);
        CVY_CHECK(part.p_type != PT_LOAD || (part.p_offset <= bytes && part.p_filesz <= bytes - part.p_offset),
                  CVY_E_FORMAT, "it is cut off: it has %zu bytes of %llu at least: copy it again", bytes,
                  (unsigned long long)part.p_offset + (unsigned long long)part.p_filesz);
    }
#else
    (void)data, (void)bytes;
#endif
    return CVY_OK;
}

static cvy_status hash_file(const char *path, cvy_extension_file *file)
{
    struct stat about;
    char *data = NULL;
    size_t bytes = 0;
    CVY_CHECK(stat(path, &about) == 0, CVY_E_IO, "it cannot be opened: %s", strerror(errno));
    CVY_CHECK(S_ISREG(about.st_mode), CVY_E_IO, "it is not a file, expected a shared library");
    CVY_TRY(cvy_file_read(path, FILE_BYTES_MAX, &data, &bytes));
    file->device = (uint64_t)about.st_dev;
    file->inode = (uint64_t)about.st_ino;
    file->hash = cvy_hash(data, bytes);
    const cvy_status status = check_whole(data, bytes);
    cvy_mem_free(&data);
    return status;
}

/* dlopen() would look for a path without '/' in the search path of libraries. */
static cvy_status find_place(const cvy_extensions *x, cvy_extension_file *file)
{
    char *place = realpath(file->path, NULL);
    CVY_CHECK(place, CVY_E_IO, "it cannot be opened: %s", strerror(errno));
    const cvy_status status = cvy_pool_strdup(x->pool, place, &file->place);
    free(place);
    return status;
}

static cvy_status load(cvy_extensions *x, const char *path, const cvy_extension_file **file_out)
{
    cvy_extension_file found = {0}, *file = NULL;
    const int before = x->nop;
    CVY_TRY(hash_file(path, &found));
    for (int i = 0; i < x->nfile; i++)
        if (x->file[i]->place && x->file[i]->device == found.device && x->file[i]->inode == found.inode) {
            *file_out = x->file[i];
            return CVY_OK;
        }
    if (!x->pool)
        CVY_TRY(cvy_pool_create(&x->pool));
    CVY_TRY(cvy_mem_reserve(&x->file, &x->file_room, x->nfile, sizeof *x->file));
    CVY_TRY(cvy_pool_alloc(x->pool, sizeof *file, &file));
    *file = found;
    CVY_TRY(cvy_pool_strdup(x->pool, path, &file->path));
    CVY_TRY(find_place(x, file));
    const cvy_status status = open_file(x, file);
    if (status != CVY_OK) {
        x->nop = before;
        if (file->handle)
            dlclose(file->handle);
        return status;
    }
    *file_out = x->file[x->nfile++] = file;
    return CVY_OK;
}

cvy_status cvy_extensions_load(cvy_extensions *x, const char *path, const cvy_extension_file **file_out)
{
    const cvy_extension_file *file = NULL;
    CVY_CHECK(path && *path, CVY_E_ARGUMENT, "a library needs a path");
    const cvy_status status = load(x, path, &file);
    if (status == CVY_OK && file_out)
        *file_out = file;
    return status == CVY_OK ? CVY_OK : cvy_error_prefix(status, "library %s", path);
}

/* An operator of the program has the place of its file among the others: their order is compared over ranks. */
cvy_status cvy_extensions_copy(cvy_extensions *to, const cvy_extensions *from)
{
    for (int i = 0; i < from->nfile; i++) {
        if (from->file[i]->place)
            CVY_TRY(cvy_extensions_load(to, from->file[i]->place, NULL));
        for (int k = 0; k < from->nop && !from->file[i]->place; k++)
            if (from->op[k]->file == from->file[i])
                CVY_TRY(cvy_extensions_add(to, &from->op[k]->own));
    }
    return CVY_OK;
}

void cvy_extensions_cut(cvy_extensions *x, int nfile, int nop)
{
    for (int i = nfile; i < x->nfile; i++)
        if (x->file[i]->handle)
            dlclose(x->file[i]->handle);
    x->nfile = nfile;
    x->nop = nop;
}

void cvy_extensions_unload(cvy_extensions *x)
{
    cvy_extensions_cut(x, 0, 0);
    cvy_mem_free(&x->file);
    cvy_mem_free(&x->op);
    cvy_pool_destroy(&x->pool);
    *x = (cvy_extensions){0};
}
