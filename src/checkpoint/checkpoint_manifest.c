/*
 * checkpoint_manifest.c: writes and checks the manifest of a checkpoint set.
 *
 * The hashes reveal a flipped bit and a file of another set, the names a missing file, the step a renamed set. The
 * manifest protects itself: its last line is the hash of all text before that line, and it is compared as bytes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "checkpoint/checkpoint_manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/base_hash.h"
#include "base/machine/base_clock.h"
#include "base/text/base_text.h"
#include "base/text/base_tree.h"

#define MANIFEST_BYTES_MAX ((size_t)1 << 20)
#define READ_BYTES ((size_t)1 << 20)
#define TAIL_BYTES (sizeof(",\n  \"manifest\": \"0123456789abcdef\"\n}\n") - 1)

/* The last line of the manifest: the hash of everything before it. */
static void tail_text(char text[TAIL_BYTES + 1], uint64_t hash)
{
    snprintf(text, TAIL_BYTES + 1, ",\n  \"manifest\": \"%016llx\"\n}\n", (unsigned long long)hash);
}

cvy_status cvy_manifest_write(const char *folder, int64_t step, const cvy_manifest_file *file, int count)
{
    cvy_status status = CVY_OK;
    cvy_text text = {0};
    char tail[TAIL_BYTES + 1], time[32], *path = NULL;

    cvy_clock_text(time);
    cvy_text_add(&text, "{\n  \"format\": \"convoy checkpoint 1\",\n  \"version\": \"%s\",\n  \"written\": \"%s\",\n",
                 cvy_version(), time);
    cvy_text_add(&text, "  \"step\": %lld,\n  \"hash\": \"%s\",\n  \"files\": [", (long long)step, cvy_hash_name());
    for (int i = 0; i < count; i++)
        cvy_text_add(&text, "%s\n    {\"name\": \"%s\", \"bytes\": %zu, \"hash\": \"%016llx\"}", i ? "," : "",
                     file[i].name, file[i].bytes, (unsigned long long)file[i].hash);
    cvy_text_add(&text, "\n  ]");
    CVY_TRY_OUT(text.status);
    tail_text(tail, cvy_hash(text.data, text.bytes));
    cvy_text_add_bytes(&text, tail, strlen(tail));
    CVY_TRY_OUT(text.status);
    CVY_TRY_OUT(cvy_mem_printf(&path, "%s/%s", folder, CVY_MANIFEST_NAME));
    CVY_TRY_OUT(cvy_file_replace(path, text.data, text.bytes));
out:
    cvy_mem_free(&path);
    cvy_text_free(&text);
    return status;
}

/* ---- hashing a file of any size with the method that the manifest names ---- */

struct method {
    int crc32c; /* otherwise the build's default method */
    cvy_hasher hasher;
    uint32_t crc;
};

static cvy_status method_begin(const char *name, struct method *m)
{
    memset(m, 0, sizeof *m);
    cvy_hash_begin(&m->hasher);
    if (strcmp(name, cvy_hash_name()) == 0)
        return CVY_OK;
    m->crc32c = strcmp(name, "crc32c") == 0;
    CVY_CHECK(m->crc32c, CVY_E_UNSUPPORTED,
              "its hashes are '%.40s', which this build of convoy cannot check: use one built with libxxhash", name);
    return CVY_OK;
}

static void method_add(struct method *m, const void *data, size_t bytes)
{
    if (m->crc32c)
        m->crc = cvy_crc32c(m->crc, data, bytes);
    else
        cvy_hash_add(&m->hasher, data, bytes);
}

static uint64_t method_end(struct method *m)
{
    return m->crc32c ? m->crc : cvy_hash_end(&m->hasher);
}

static cvy_status hash_open_file(int fd, const char *path, const char *method_name, size_t bytes, uint64_t *hash_out)
{
    cvy_status status = CVY_OK;
    struct method method;
    char *block = NULL;
    CVY_TRY_OUT(method_begin(method_name, &method));
    CVY_TRY_OUT(cvy_mem_alloc(CVY_MIN(bytes, READ_BYTES), &block));
    for (size_t done = 0, n; done < bytes; done += n) {
        n = CVY_MIN(bytes - done, READ_BYTES);
        CVY_TRY_OUT(cvy_pread_all(fd, block, n, (int64_t)done, path));
        method_add(&method, block, n);
    }
    *hash_out = method_end(&method);
out:
    cvy_mem_free(&block);
    return status;
}

static cvy_status verify_file(const char *path, const char *method, size_t bytes, uint64_t expected)
{
    struct stat stat;
    uint64_t hash = 0;
    const char *why = "";
    const int fd = cvy_file_open(path, O_RDONLY, 0, &why);
    CVY_CHECK(fd >= 0, errno == ENOENT ? CVY_E_FORMAT : CVY_E_IO, "%s: cannot open: %s", path, why);
    if (fstat(fd, &stat) != 0 || (uint64_t)stat.st_size != bytes) {
        close(fd);
        CVY_FAIL(CVY_E_FORMAT, "%s has %lld bytes, its manifest says %zu", path, (long long)stat.st_size, bytes);
    }
    const cvy_status status = hash_open_file(fd, path, method, bytes, &hash);
    close(fd);
    CVY_TRY(status);
    CVY_CHECK(hash == expected, CVY_E_FORMAT, "%s was altered: its %s hash is %016llx, its manifest says %016llx", path,
              method, (unsigned long long)hash, (unsigned long long)expected);
    return CVY_OK;
}

/* ---- the manifest's own text ---- */

static cvy_status parse_hash(const cvy_tree *node, uint64_t *out)
{
    uint64_t value = 0;
    CVY_CHECK(node && node->text && strlen(node->text) == 16, CVY_E_FORMAT, "a hash is missing or has not 16 digits");
    for (const char *c = node->text; *c; c++) {
        const char *const digits = "0123456789abcdef", *at = strchr(digits, *c);
        CVY_CHECK(at, CVY_E_FORMAT, "%s: '%.40s' is not a hash", cvy_tree_where(node), node->text);
        value = value << 4 | (uint64_t)(at - digits);
    }
    *out = value;
    return CVY_OK;
}

static cvy_status verify_self(const char *path, const char *text, size_t bytes, const char *method_name)
{
    struct method method;
    char tail[TAIL_BYTES + 1];
    const cvy_status status = method_begin(method_name, &method);
    if (status != CVY_OK)
        return cvy_error_prefix(status, "%s", path);
    CVY_CHECK(bytes > TAIL_BYTES, CVY_E_FORMAT, "%s: %zu bytes are too few", path, bytes);
    method_add(&method, text, bytes - TAIL_BYTES);
    tail_text(tail, method_end(&method));
    CVY_CHECK(memcmp(text + bytes - TAIL_BYTES, tail, TAIL_BYTES) == 0, CVY_E_FORMAT,
              "%s was altered or cut: it does not end with its own hash", path);
    return CVY_OK;
}

static int lists(const cvy_tree *files, const char *name)
{
    for (int i = 0; i < files->count; i++) {
        const cvy_tree *at = files->child[i]->kind == CVY_TREE_MAP ? cvy_tree_get(files->child[i], "name") : NULL;
        if (at && at->text && strcmp(at->text, name) == 0)
            return 1;
    }
    return 0;
}

/* Looks for a file by its name, and for tensors by their stem: one file, or all of its parts. */
static int lists_all(const cvy_tree *files, const char *name)
{
    char whole[64], part[64];
    int n = 0, k = 0, found = 0;
    snprintf(whole, sizeof whole, "%s.safetensors", name);
    snprintf(part, sizeof part, "%s-%%5d-of-%%5d.safetensors", name);
    if (lists(files, name) || lists(files, whole))
        return 1;
    for (int i = 0; i < files->count && !n; i++) {
        const cvy_tree *at = files->child[i]->kind == CVY_TREE_MAP ? cvy_tree_get(files->child[i], "name") : NULL;
        if (at && at->text && sscanf(at->text, part, &k, &n) != 2)
            n = 0;
    }
    for (int i = 1; i <= n; i++) {
        snprintf(whole, sizeof whole, "%s-%05d-of-%05d.safetensors", name, i, n);
        found += lists(files, whole);
    }
    return n > 0 && found == n;
}

static cvy_status verify_listed(cvy_pool *pool, const char *folder, const char *method, const cvy_tree *file)
{
    const cvy_tree *name = NULL, *bytes = NULL;
    int64_t size = -1;
    uint64_t hash = 0;
    char *path = NULL;
    if (file->kind == CVY_TREE_MAP) {
        name = cvy_tree_get(file, "name");
        bytes = cvy_tree_get(file, "bytes");
    }
    CVY_CHECK(name && name->text && bytes, CVY_E_FORMAT, "%s: expected name, bytes and hash of a file",
              cvy_tree_where(file));
    CVY_CHECK(!strchr(name->text, '/') && name->text[0] != '.', CVY_E_FORMAT,
              "%s: '%.80s' is not the name of a file in this folder", cvy_tree_where(name), name->text);
    CVY_TRY(cvy_tree_int(bytes, &size));
    CVY_CHECK(size >= 0, CVY_E_FORMAT, "%s: %lld bytes", cvy_tree_where(bytes), (long long)size);
    CVY_TRY(parse_hash(cvy_tree_get(file, "hash"), &hash));
    CVY_TRY(cvy_pool_printf(pool, &path, "%s/%s", folder, name->text));
    return verify_file(path, method, (size_t)size, hash);
}

static cvy_status verify_inner(cvy_pool *pool, const char *folder, const char *path, const char *text, size_t bytes,
                               int64_t step, const char *const *required)
{
    cvy_tree *root = NULL;
    int64_t of_step = -1;
    CVY_TRY(cvy_tree_parse_text(pool, path, text, bytes, &root));
    CVY_CHECK(root->kind == CVY_TREE_MAP, CVY_E_FORMAT, "%s is not a JSON object", path);
    const cvy_tree *method = cvy_tree_get(root, "hash"), *files = cvy_tree_get(root, "files"),
                   *step_node = cvy_tree_get(root, "step");
    CVY_CHECK(method && method->text && step_node && files && files->kind == CVY_TREE_LIST, CVY_E_FORMAT,
              "%s lacks hash, step or files", path);
    CVY_TRY(verify_self(path, text, bytes, method->text));
    CVY_TRY(cvy_tree_int(step_node, &of_step));
    CVY_CHECK(of_step == step, CVY_E_FORMAT, "%s is of step %lld, the folder's name says %lld", path,
              (long long)of_step, (long long)step);
    for (int i = 0; required[i]; i++)
        CVY_CHECK(lists_all(files, required[i]), CVY_E_FORMAT, "%s does not list %s", path, required[i]);
    for (int i = 0; i < files->count; i++)
        CVY_TRY(verify_listed(pool, folder, method->text, files->child[i]));
    return CVY_OK;
}

cvy_status cvy_manifest_verify(const char *folder, int64_t step, const char *const *required)
{
    cvy_status status = CVY_OK;
    cvy_pool *pool = NULL;
    char *path = NULL, *text = NULL;
    size_t bytes = 0;
    CVY_TRY_OUT(cvy_pool_create(&pool));
    CVY_TRY_OUT(cvy_pool_printf(pool, &path, "%s/%s", folder, CVY_MANIFEST_NAME));
    CVY_TRY_OUT(cvy_file_read(path, MANIFEST_BYTES_MAX, &text, &bytes));
    CVY_TRY_OUT(verify_inner(pool, folder, path, text, bytes, step, required));
out:
    cvy_mem_free(&text);
    cvy_pool_destroy(&pool);
    return status;
}
