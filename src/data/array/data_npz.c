/*
 * data_npz.c: see data_npz.h. The directory at the end of the archive is read when the set is opened; arrays that are
 * stored are read by position, as those of .npy files are. Everything in the file is checked against its size.
 *
 * Sources: APPNOTE 6.3 of PKWARE (zip, with 64-bit sizes), NumPy's documentation of numpy.savez.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/array/data_npz.h"

#include <string.h>
#include <strings.h>

#include "base/base_file.h"
#include "data/data_inflate.h"

enum { END_BYTES = 22, END64_BYTES = 56, LOCATOR_BYTES = 20, ENTRY_BYTES = 46, LOCAL_BYTES = 30, ENTRIES_MAX = 4096 };
enum { DIRECTORY_MAX = 1 << 22, COMMENT_MAX = 65535, STORED = 0, DEFLATED = 8 };

static uint64_t number_at(const uint8_t *at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

int cvy_npz_probe(const char *path)
{
    char head[2];
    return cvy_data_has_suffix(path, ".npz") && cvy_data_peek(path, head, sizeof head) == sizeof head &&
           memcmp(head, "PK", 2) == 0;
}

static cvy_status damaged(const cvy_npz *z, const char *what)
{
    CVY_FAIL(CVY_E_FORMAT, "%s: %s: it is damaged or truncated", z->file.path, what);
}

/* ---- the directory ---- */

struct directory {
    uint64_t entries, bytes, offset;
};

/* A large archive has the numbers once more, with 64 bits, in a record to which a locator before the end leads. */
static cvy_status find_large_directory(const cvy_npz *z, int64_t end, struct directory *d)
{
    uint8_t locator[LOCATOR_BYTES], record[END64_BYTES];
    if (end < LOCATOR_BYTES)
        return damaged(z, "its end is incomplete");
    CVY_TRY(cvy_pread_all(z->file.fd, locator, sizeof locator, end - LOCATOR_BYTES, z->file.path));
    const uint64_t at = number_at(locator + 8, 8);
    if (memcmp(locator, "PK\6\7", 4) != 0 || at > (uint64_t)z->file.bytes - END64_BYTES)
        return damaged(z, "its end is incomplete");
    CVY_TRY(cvy_pread_all(z->file.fd, record, sizeof record, (int64_t)at, z->file.path));
    if (memcmp(record, "PK\6\6", 4) != 0)
        return damaged(z, "its end is incomplete");
    *d = (struct directory){number_at(record + 32, 8), number_at(record + 40, 8), number_at(record + 48, 8)};
    return CVY_OK;
}

static cvy_status find_directory(const cvy_npz *z, struct directory *d)
{
    const int64_t all = z->file.bytes, room = CVY_MIN(all, END_BYTES + COMMENT_MAX);
    uint8_t *tail = NULL;
    int64_t at = room - END_BYTES;
    cvy_status status = CVY_OK;
    CVY_TRY_OUT(cvy_mem_alloc((size_t)room, &tail));
    CVY_TRY_OUT(cvy_pread_all(z->file.fd, tail, (size_t)room, all - room, z->file.path));
    while (at >= 0 && memcmp(tail + at, "PK\5\6", 4) != 0)
        at--;
    if (at < 0)
        CVY_FAIL_OUT(CVY_E_FORMAT, "%s: has no directory of its arrays: truncated", z->file.path);
    *d = (struct directory){number_at(tail + at + 10, 2), number_at(tail + at + 12, 4), number_at(tail + at + 16, 4)};
    if (d->entries == 0xffff || d->bytes == 0xffffffff || d->offset == 0xffffffff)
        CVY_TRY_OUT(find_large_directory(z, all - room + at, d));
    if (d->bytes > (uint64_t)all || d->offset > (uint64_t)all - d->bytes || d->entries * ENTRY_BYTES > d->bytes)
        CVY_TRY_OUT(damaged(z, "its directory lies outside of it"));
    if (d->entries > ENTRIES_MAX || d->bytes > DIRECTORY_MAX)
        CVY_FAIL_OUT(CVY_E_UNSUPPORTED, "%s: holds %llu arrays, at most %d are read", z->file.path,
                     (unsigned long long)d->entries, ENTRIES_MAX);
out:
    cvy_mem_free(&tail);
    return status;
}

/* Replaces sizes and offset that do not fit 32 bits by those of the extra field. */
static void read_large_numbers(const uint8_t *extra, size_t bytes, uint64_t number[3])
{
    while (bytes >= 4) {
        const size_t id = (size_t)number_at(extra, 2), n = (size_t)number_at(extra + 2, 2);
        size_t at = 4;
        if (n > bytes - 4)
            return;
        for (int i = 0; id == 1 && i < 3; i++)
            if (number[i] == 0xffffffff && at + 8 <= n + 4) {
                number[i] = number_at(extra + at, 8);
                at += 8;
            }
        extra += 4 + n;
        bytes -= 4 + n;
    }
}

static cvy_status add_member(cvy_pool *pool, cvy_npz *z, const uint8_t *entry, size_t name_bytes, size_t extra_bytes)
{
    const uint64_t flags = number_at(entry + 8, 2), method = number_at(entry + 10, 2);
    uint64_t number[3] = {number_at(entry + 24, 4), number_at(entry + 20, 4), number_at(entry + 42, 4)};
    const uint8_t *text = entry + ENTRY_BYTES;
    char *name = NULL;
    read_large_numbers(text + name_bytes, extra_bytes, number);
    const uint64_t bytes = number[0], packed = number[1], header = number[2], all = (uint64_t)z->file.bytes;
    CVY_TRY(cvy_pool_printf(pool, &name, "%.*s", (int)CVY_MIN(name_bytes, 200), (const char *)text));
    if (!cvy_data_has_suffix(name, ".npy"))
        return CVY_OK;
    name[strlen(name) - 4] = 0;
    CVY_CHECK((flags & 1) == 0 && (method == STORED || method == DEFLATED), CVY_E_UNSUPPORTED,
              "%s: array %s is encrypted, or compressed by method %d, which is not read: write it by numpy.savez",
              z->file.path, name, (int)method);
    if (header > all || packed > all - header || bytes > INT64_MAX / 2 || (method == STORED && bytes != packed))
        return damaged(z, "an array lies outside of it");
    z->member[z->count++] = (cvy_npz_member){.name = name,
                                             .is_deflated = method == DEFLATED,
                                             .crc = (uint32_t)number_at(entry + 16, 4),
                                             .header = (int64_t)header,
                                             .packed = (int64_t)packed,
                                             .bytes = (int64_t)bytes};
    return CVY_OK;
}

static cvy_status read_directory(cvy_pool *pool, cvy_npz *z, const struct directory *d)
{
    uint8_t *all = NULL;
    size_t at = 0;
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_pool_alloc(pool, CVY_MAX((size_t)d->entries, 1) * sizeof *z->member, &z->member));
    CVY_TRY_OUT(cvy_mem_alloc((size_t)d->bytes + 1, &all));
    CVY_TRY_OUT(cvy_pread_all(z->file.fd, all, (size_t)d->bytes, (int64_t)d->offset, z->file.path));
    for (uint64_t i = 0; i < d->entries; i++) {
        const size_t left = (size_t)d->bytes - at;
        if (left < ENTRY_BYTES || memcmp(all + at, "PK\1\2", 4) != 0)
            CVY_TRY_OUT(damaged(z, "its directory is incomplete"));
        const size_t name = (size_t)number_at(all + at + 28, 2), extra = (size_t)number_at(all + at + 30, 2),
                     whole = ENTRY_BYTES + name + extra + (size_t)number_at(all + at + 32, 2);
        if (whole > left)
            CVY_TRY_OUT(damaged(z, "its directory is incomplete"));
        CVY_TRY_OUT(add_member(pool, z, all + at, name, extra));
        at += whole;
    }
    if (z->count == 0)
        CVY_FAIL_OUT(CVY_E_FORMAT, "%s: holds no array (*.npy)", z->file.path);
out:
    cvy_mem_free(&all);
    return status;
}

cvy_status cvy_npz_open(cvy_pool *pool, const char *path, cvy_npz *npz)
{
    struct directory d;
    *npz = (cvy_npz){.file.fd = -1};
    CVY_TRY(cvy_data_file_open(pool, path, &npz->file));
    CVY_CHECK(npz->file.bytes >= END_BYTES, CVY_E_FORMAT, "%s: %lld bytes, too short for a .npz file", path,
              (long long)npz->file.bytes);
    CVY_TRY(find_directory(npz, &d));
    return read_directory(pool, npz, &d);
}

/* ---- roles ---- */

static const char *const usual[CVY_NPZ_ROLES][6] = {[CVY_NPZ_X] = {"x", "data", "images", "features", "inputs"},
                                                    [CVY_NPZ_Y] = {"y", "target", "targets"},
                                                    [CVY_NPZ_LABEL] = {"label", "labels"},
                                                    [CVY_NPZ_WEIGHT] = {"weight", "weights"}};
static const char *const option[CVY_NPZ_ROLES] = {"x", "y", "label", "weight"};

/* Whether the name is a usual one of the role, perhaps with the word of a split: x_train, train_images. *split_out:
 * that split; 0: none. */
static int has_role(const char *name, int role, int *split_out)
{
    *split_out = cvy_split_of(name);
    for (int i = 0; usual[role][i]; i++) {
        const size_t n = strlen(usual[role][i]), all = strlen(name);
        if (*split_out == 0 ? strcasecmp(name, usual[role][i]) == 0
                            : all > n + 1 && ((strncasecmp(name, usual[role][i], n) == 0 && strchr("_-.", name[n])) ||
                                              (strcasecmp(name + all - n, usual[role][i]) == 0 &&
                                               strchr("_-.", name[all - n - 1]))))
            return 1;
    }
    return 0;
}

static const cvy_npz_member *find_usual(const cvy_npz *z, int role, int split)
{
    int own = 0;
    for (int64_t i = 0; i < z->count; i++)
        if (has_role(z->member[i].name, role, &own) && own == split)
            return &z->member[i];
    return NULL;
}

static void list_names(const cvy_npz *z, char *text, size_t room)
{
    size_t at = 0;
    text[0] = 0;
    for (int64_t i = 0; i < z->count && at < room; i++)
        at += (size_t)snprintf(text + at, room - at, "%s%s", i ? ", " : "", z->member[i].name);
}

cvy_status cvy_npz_find(const cvy_npz *z, const char *name, const char *what, const cvy_npz_member **out)
{
    char all[500];
    *out = NULL;
    if (strcmp(name, "none") == 0)
        return CVY_OK;
    for (int64_t i = 0; i < z->count; i++)
        if (strcmp(z->member[i].name, name) == 0)
            *out = &z->member[i];
    list_names(z, all, sizeof all);
    CVY_CHECK(*out, CVY_E_CONFIG, "%s: %s: the archive has no array %s; it holds %s", z->file.path, what, name, all);
    return CVY_OK;
}

/* Says which arrays are read, as names are guesses, and which are not. */
static cvy_status note_choice(const cvy_npz *z, const cvy_npz_member *const *chosen, cvy_reader_info *info)
{
    char read[300];
    size_t at = 0;
    cvy_passed passed = {0};
    for (int k = 0; k < CVY_NPZ_ROLES; k++)
        if (chosen[k] && at < sizeof read)
            at += (size_t)snprintf(read + at, sizeof read - at, "%s%s is %.60s", at ? ", " : "", option[k],
                                   chosen[k]->name);
    CVY_TRY(cvy_reader_note(info, "%s: of the arrays of the archive %s", z->file.path, read));
    for (int64_t i = 0; i < z->count; i++) {
        int is_read = z->group && strcmp(z->group, z->member[i].name) == 0;
        for (int k = 0; k < CVY_NPZ_ROLES; k++)
            is_read |= chosen[k] == &z->member[i];
        if (!is_read)
            cvy_passed_add(&passed, NULL, z->member[i].name);
    }
    return cvy_passed_note(
        &passed, z->file.path, "array",
        "`part: train`, `val` or `test` of the source chooses by the names, and `x:`, `y:`, `label:` "
        "and `weight:` name arrays",
        info);
}

cvy_status cvy_npz_choose(const cvy_npz *npz, const char *const name[CVY_NPZ_ROLES], int split, cvy_reader_info *info,
                          const cvy_npz_member *out[CVY_NPZ_ROLES])
{
    char all[500];
    if (split == 0 && !name[CVY_NPZ_X] && npz->count > 1 && !find_usual(npz, CVY_NPZ_X, 0))
        split = 1;
    for (int k = 0; k < CVY_NPZ_ROLES; k++) {
        out[k] = find_usual(npz, k, split);
        if (name[k])
            CVY_TRY(cvy_npz_find(npz, name[k], option[k], &out[k]));
    }
    if (!out[CVY_NPZ_X] && npz->count == 1 && !name[CVY_NPZ_X])
        out[CVY_NPZ_X] = &npz->member[0];
    list_names(npz, all, sizeof all);
    CVY_CHECK(out[CVY_NPZ_X], CVY_E_CONFIG,
              "%s: which array of the archive is the input? Say `x: NAME`, and `label: NAME` or `y: NAME`. It holds %s",
              npz->file.path, all);
    return note_choice(npz, out, info);
}

/* ---- an array ---- */

cvy_status cvy_npz_open_member(cvy_pool *pool, const cvy_npz *npz, const cvy_npz_member *m, cvy_data_file *out,
                               int64_t *base_out)
{
    uint8_t local[LOCAL_BYTES];
    char *path = NULL;
    const cvy_data_file *z = &npz->file;
    CVY_TRY(cvy_pool_printf(pool, &path, "%s, array %s", z->path, m->name));
    if (m->header > z->bytes - LOCAL_BYTES)
        return damaged(npz, "an array lies outside of it");
    CVY_TRY(cvy_pread_all(z->fd, local, sizeof local, m->header, z->path));
    const int64_t at = m->header + LOCAL_BYTES + (int64_t)number_at(local + 26, 2) + (int64_t)number_at(local + 28, 2);
    if (memcmp(local, "PK\3\4", 4) != 0 || m->packed > z->bytes - at)
        return damaged(npz, "an array lies outside of it");
    if (m->is_deflated) {
        const cvy_data_file whole = {.fd = z->fd, .bytes = z->bytes, .path = path};
        *base_out = 0;
        return cvy_inflate_file(&whole, CVY_INFLATE_RAW, at, m->packed, m->bytes, m->crc, out);
    }
    CVY_TRY(cvy_data_file_open(pool, z->path, out));
    out->path = path;
    out->bytes = at + m->bytes;
    *base_out = at;
    return CVY_OK;
}
