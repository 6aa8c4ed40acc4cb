/*
 * data_lmdb_file.c: reads the pages of an LMDB database by position: from the number of a key to the bytes of its
 * value.
 *
 * The loader's threads call it through data_lmdb.c. liblmdb maps the file and trusts its contents, so a truncated or
 * damaged file ends the process (SIGBUS, abort). Training runs are long and data files are copied around, so here the
 * pages are read and checked without a map, a lock file or liblmdb. The reader keeps the leaves of the tree in the
 * order of keys: 16 bytes per leaf, and a leaf has a hundred keys or so.
 *
 * The format (version 1, LMDB 0.9): the file consists of pages, whose size the head gives. Pages 0 and 1 are heads,
 * which are used in turn; the one with the higher transaction is valid. The last write of a commit is the head on page
 * (transaction & 1). A tree page has a head of 16 bytes {u64 number, u16 pad, u16 flags, u16 lower, u16 upper},
 * followed by the u16 positions of its nodes. A node is {u16 low, u16 high, u16 flags, u16 key bytes, key}. In a
 * branch, low, high and flags are the number of the page below. In a leaf, low and high are the size of the value;
 * after the key comes the value, or, if it is large, the number of the first page which holds it. Source: mdb.c of
 * OpenLDAP's LMDB.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_file.h"
#include "data/lmdb/data_lmdb.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

#include "format/format_protobuf.h"

#define LMDB_MAGIC INT64_C(0xBEEFC0DE)
enum {
    PAGE_HEAD = 16,
    PAGE_MIN = 512,
    NODE_HEAD = 8,
    DEPTH_MAX = 32, /* the same limit as in LMDB */
    META_BYTES = 152,
    META_TRANSACTION = 144,
};
enum { PAGE_BRANCH = 1, PAGE_LEAF = 2, PAGE_OVERFLOW = 4, PAGE_META = 8, PAGE_KINDS = 0x6F };
enum { NODE_BIG = 1, NODE_TREE = 2, NODE_MANY = 4 };

struct leaf {
    int64_t page, first; /* first: number of its first key */
};

struct cvy_lmdb {
    cvy_data_file file;
    int64_t page_bytes, count;
    int64_t transaction; /* the latest one when the file was opened */
    int64_t root, depth, entries;
    struct leaf *leaf; /* nleaf entries, and one more after the last */
    int64_t nleaf, room;
};

static int64_t get16(const uint8_t *p)
{
    return (int64_t)cvy_wire_little(p, 2);
}

static int64_t get32(const uint8_t *p)
{
    return (int64_t)cvy_wire_little(p, 4);
}

static int64_t get64(const uint8_t *p)
{
    return (int64_t)cvy_wire_little(p, 8);
}

int64_t cvy_lmdb_count(const cvy_lmdb *db)
{
    return db->count;
}

const char *cvy_lmdb_path(const cvy_lmdb *db)
{
    return db->file.path;
}

/* ---- the head ---- */

/* If the file is not an LMDB database of this kind, find out which other kind it is: it may come from another
 * machine. */
static cvy_status check_magic(const cvy_data_file *f, const uint8_t *head)
{
    static const uint8_t swapped[] = {0xBE, 0xEF, 0xC0, 0xDE};
    const char *other = memcmp(head + 16, swapped, 4) == 0 ? "of a big-endian machine"
                        : get32(head + 12) == LMDB_MAGIC   ? "of a 32-bit machine"
                        : get32(head + 24) == LMDB_MAGIC   ? "of LMDB 1.0 or later"
                                                           : NULL;
    if (get32(head + 16) != LMDB_MAGIC) {
        CVY_CHECK(!other, CVY_E_UNSUPPORTED,
                  "%s: an LMDB database %s, expected one of LMDB 0.9 on a 64-bit little-endian machine: copy it by "
                  "mdb_dump there and mdb_load here",
                  f->path, other);
        CVY_FAIL(CVY_E_FORMAT, "%s: is not an LMDB database: magic number %08llx, expected %08x", f->path,
                 (unsigned long long)get32(head + 16), (unsigned)LMDB_MAGIC);
    }
    CVY_CHECK(get32(head + 20) == 1, CVY_E_UNSUPPORTED, "%s: LMDB data format %lld, expected 1", f->path,
              (long long)get32(head + 20));
    return CVY_OK;
}

static cvy_status read_head(cvy_lmdb *db)
{
    const cvy_data_file *f = &db->file;
    uint8_t head[2][META_BYTES];
    CVY_CHECK(f->bytes >= META_BYTES, CVY_E_FORMAT, "%s: holds %lld bytes, too few for an LMDB database", f->path,
              (long long)f->bytes);
    CVY_TRY(cvy_pread_all(f->fd, head[0], META_BYTES, 0, f->path));
    CVY_TRY(check_magic(f, head[0]));
    db->page_bytes = get32(head[0] + 40);
    CVY_CHECK(db->page_bytes >= PAGE_MIN && db->page_bytes <= CVY_LMDB_PAGE_MAX &&
                  (db->page_bytes & (db->page_bytes - 1)) == 0,
              CVY_E_FORMAT, "%s: pages of %lld bytes, expected a power of two from %d to %d", f->path,
              (long long)db->page_bytes, PAGE_MIN, CVY_LMDB_PAGE_MAX);
    CVY_CHECK(f->bytes >= 2 * db->page_bytes, CVY_E_FORMAT,
              "%s: ends after %lld bytes, in its head of %lld: the file was truncated", f->path, (long long)f->bytes,
              (long long)(2 * db->page_bytes));
    CVY_TRY(cvy_pread_all(f->fd, head[1], META_BYTES, db->page_bytes, f->path));
    CVY_TRY(check_magic(f, head[1]));
    const uint8_t *at = head[get64(head[0] + META_TRANSACTION) < get64(head[1] + META_TRANSACTION)];
    db->transaction = get64(at + META_TRANSACTION);
    const int64_t flags = get16(at + 92);
    db->depth = get16(at + 94);
    db->entries = get64(at + 120);
    db->root = get64(at + 128);
    CVY_CHECK(!(flags & NODE_MANY), CVY_E_UNSUPPORTED,
              "%s: holds several values per key (MDB_DUPSORT), expected one Datum for each key", f->path);
    CVY_CHECK(db->depth <= DEPTH_MAX && db->entries >= 0, CVY_E_FORMAT,
              "%s: the head is damaged: a tree of depth %lld with %lld keys", f->path, (long long)db->depth,
              (long long)db->entries);
    return CVY_OK;
}

cvy_status cvy_lmdb_check_still(const cvy_lmdb *db)
{
    uint8_t bytes[8];
    const int64_t next = ~db->transaction & 1; /* the head that the next commit writes */
    CVY_TRY(cvy_pread_all(db->file.fd, bytes, sizeof bytes, next * db->page_bytes + META_TRANSACTION, db->file.path));
    CVY_CHECK(get64(bytes) <= db->transaction, CVY_E_IO,
              "%s: was written to while it is being read: transaction %lld when it was opened, now %lld; wait until "
              "the writer has ended, or read a copy (mdb_copy)",
              db->file.path, (long long)db->transaction, (long long)get64(bytes));
    return CVY_OK;
}

/* ---- the tree ---- */

static int page_count(const cvy_lmdb *db, const uint8_t *page)
{
    const int64_t lower = get16(page + 12), upper = get16(page + 14);
    return lower >= PAGE_HEAD && lower <= upper && upper <= db->page_bytes ? (int)((lower - PAGE_HEAD) / 2) : -1;
}

/* Reads a page of the tree and checks its kind. *count_out: its number of nodes. */
static cvy_status read_page(const cvy_lmdb *db, int64_t number, int kind, uint8_t *page, int *count_out)
{
    const char *path = db->file.path;
    CVY_CHECK(
        number >= 2 && number < db->file.bytes / db->page_bytes, CVY_E_FORMAT,
        "%s: the tree of keys leads to page %lld, the file of %lld bytes has %lld of %lld bytes: it was truncated or "
        "is damaged",
        path, (long long)number, (long long)db->file.bytes, (long long)(db->file.bytes / db->page_bytes),
        (long long)db->page_bytes);
    CVY_TRY(cvy_pread_all(db->file.fd, page, (size_t)db->page_bytes, number * db->page_bytes, path));
    const int64_t flags = get16(page + 10);
    *count_out = page_count(db, page);
    CVY_CHECK(get64(page) == number && (flags & PAGE_KINDS) == kind && *count_out > 0, CVY_E_FORMAT,
              "%s: page %lld (byte %lld) is damaged: it says that it is page %lld of kind %llx, expected kind %x", path,
              (long long)number, (long long)(number * db->page_bytes), (long long)get64(page),
              (unsigned long long)flags, (unsigned)kind);
    return CVY_OK;
}

/* Node i of a page; NULL if its head and key are not within the page. */
static const uint8_t *node_of(const cvy_lmdb *db, const uint8_t *page, int i)
{
    const int64_t at = get16(page + PAGE_HEAD + 2 * i);
    if (at < PAGE_HEAD || at + NODE_HEAD > db->page_bytes || at + NODE_HEAD + get16(page + at + 6) > db->page_bytes)
        return NULL;
    return page + at;
}

/* Finds the value of a leaf's node. *overflow_out: the first page of a large value, otherwise 0. */
static cvy_status value_of(const cvy_lmdb *db, const uint8_t *page, int i, cvy_lmdb_value *out, int64_t *overflow_out)
{
    const char *path = db->file.path;
    const uint8_t *node = node_of(db, page, i);
    CVY_CHECK(node, CVY_E_FORMAT, "%s: page %lld is damaged at node %d", path, (long long)get64(page), i);
    const int64_t flags = get16(node + 4);
    const uint8_t *value = node + NODE_HEAD + get16(node + 6), *end = page + db->page_bytes;
    CVY_CHECK(!(flags & (NODE_TREE | NODE_MANY)), CVY_E_UNSUPPORTED,
              "%s: holds named databases or several values per key, expected one Datum for each key of the main one",
              path);
    *out = (cvy_lmdb_value){.bytes = get32(node)};
    *overflow_out = 0;
    if (flags & NODE_BIG) {
        CVY_CHECK(value + 8 <= end, CVY_E_FORMAT, "%s: page %lld is damaged at node %d", path, (long long)get64(page),
                  i);
        const int64_t first = get64(value);
        CVY_CHECK(
            first >= 2 && first < db->file.bytes / db->page_bytes &&
                first * db->page_bytes + PAGE_HEAD + out->bytes <= db->file.bytes,
            CVY_E_FORMAT,
            "%s: a value of %lld bytes on page %lld ends after the file's %lld bytes: it was truncated or is damaged",
            path, (long long)out->bytes, (long long)first, (long long)db->file.bytes);
        *overflow_out = first;
        out->at = first * db->page_bytes + PAGE_HEAD;
        return CVY_OK;
    }
    CVY_CHECK(value + out->bytes <= end, CVY_E_FORMAT, "%s: a value of %lld bytes does not fit on its page %lld", path,
              (long long)out->bytes, (long long)get64(page));
    out->here = value;
    out->at = get64(page) * db->page_bytes + (value - page);
    return CVY_OK;
}

struct walk {
    cvy_lmdb *db;
    uint8_t *pages; /* one for each level of the tree */
    int64_t visited;
};

/* Checks that every value is within the file, so that a truncated file is found at the start and not late in a
 * training. */
static cvy_status add_leaf(cvy_lmdb *db, const uint8_t *page, int count)
{
    cvy_lmdb_value value;
    int64_t overflow = 0;
    for (int i = 0; i < count; i++)
        CVY_TRY(value_of(db, page, i, &value, &overflow));
    if (db->nleaf + 1 >= db->room) {
        const int64_t room = CVY_MAX(2 * db->room, 256);
        CVY_TRY(cvy_mem_grow(&db->leaf, (size_t)db->room * sizeof *db->leaf, (size_t)room * sizeof *db->leaf));
        db->room = room;
    }
    db->leaf[db->nleaf++] = (struct leaf){.page = get64(page), .first = db->count};
    db->count += count;
    db->leaf[db->nleaf] = (struct leaf){.first = db->count};
    return CVY_OK;
}

/* Visits the pages below `number` in the order of keys. The depth bounds the recursion. */
static cvy_status walk_below(struct walk *w, int64_t number, int64_t level)
{
    cvy_lmdb *db = w->db;
    uint8_t *page = w->pages + level * db->page_bytes;
    const int is_leaf = level + 1 == db->depth;
    int count = 0;
    CVY_TRY(read_page(db, number, is_leaf ? PAGE_LEAF : PAGE_BRANCH, page, &count));
    CVY_CHECK(++w->visited <= db->file.bytes / db->page_bytes, CVY_E_FORMAT,
              "%s: is damaged: the tree of keys comes to page %lld again", db->file.path, (long long)number);
    if (is_leaf)
        return add_leaf(db, page, count);
    for (int i = 0; i < count; i++) {
        const uint8_t *node = node_of(db, page, i);
        CVY_CHECK(node, CVY_E_FORMAT, "%s: page %lld is damaged at node %d", db->file.path, (long long)number, i);
        CVY_TRY(walk_below(w, (int64_t)cvy_wire_little(node, 6), level + 1));
    }
    return CVY_OK;
}

static cvy_status walk_tree(cvy_lmdb *db)
{
    struct walk w = {.db = db};
    CVY_CHECK(db->depth > 0, CVY_E_FORMAT, "%s: an LMDB database without a key in its main database", db->file.path);
    CVY_TRY(cvy_mem_alloc((size_t)(db->depth * db->page_bytes), &w.pages));
    const cvy_status status = walk_below(&w, db->root, 0);
    cvy_mem_free(&w.pages);
    CVY_TRY(cvy_lmdb_check_still(db)); /* first: if somebody writes to the file, it may look damaged */
    CVY_TRY(status);
    CVY_CHECK(db->count == db->entries, CVY_E_FORMAT, "%s: is damaged: its tree holds %lld keys, its header says %lld",
              db->file.path, (long long)db->count, (long long)db->entries);
    return CVY_OK;
}

cvy_status cvy_lmdb_open(cvy_pool *pool, const char *path, cvy_lmdb **out)
{
    cvy_lmdb *db = NULL;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *db, &db));
    CVY_TRY(cvy_data_file_open(pool, path, &db->file));
    cvy_status status = read_head(db);
    if (status == CVY_OK)
        status = walk_tree(db);
    if (status == CVY_OK)
        *out = db;
    else
        cvy_lmdb_close(db);
    return status;
}

void cvy_lmdb_close(cvy_lmdb *db)
{
    cvy_data_file_close(&db->file);
    cvy_mem_free(&db->leaf);
}

/* ---- values ---- */

/* Finds the leaf of a key by bisection. */
static int64_t leaf_of(const cvy_lmdb *db, int64_t number)
{
    int64_t low = 0, high = db->nleaf;
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        if (db->leaf[middle].first <= number)
            low = middle;
        else
            high = middle;
    }
    return low;
}

cvy_status cvy_lmdb_find(const cvy_lmdb *db, int64_t number, cvy_lmdb_page *page, cvy_lmdb_value *out)
{
    const char *path = db->file.path;
    const struct leaf *leaf = &db->leaf[leaf_of(db, number)];
    uint8_t head[PAGE_HEAD];
    int64_t overflow = 0;
    if (page->number != leaf->page) {
        int count = 0;
        page->number = 0;
        CVY_TRY(read_page(db, leaf->page, PAGE_LEAF, page->bytes, &count));
        CVY_CHECK(count == leaf[1].first - leaf->first, CVY_E_FORMAT,
                  "%s: page %lld holds %d keys, %lld when the database was opened", path, (long long)leaf->page, count,
                  (long long)(leaf[1].first - leaf->first));
        page->number = leaf->page;
    }
    CVY_TRY(value_of(db, page->bytes, (int)(number - leaf->first), out, &overflow));
    if (!overflow)
        return CVY_OK;
    CVY_TRY(cvy_pread_all(db->file.fd, head, sizeof head, overflow * db->page_bytes, path));
    CVY_CHECK(get64(head) == overflow && (get16(head + 10) & PAGE_KINDS) == PAGE_OVERFLOW &&
                  PAGE_HEAD + out->bytes <= get32(head + 12) * db->page_bytes,
              CVY_E_FORMAT, "%s: page %lld (byte %lld), where a value of %lld bytes should begin, is damaged", path,
              (long long)overflow, (long long)(overflow * db->page_bytes), (long long)out->bytes);
    return CVY_OK;
}

cvy_status cvy_lmdb_fetch(const cvy_lmdb *db, const cvy_lmdb_value *value, int64_t from, int64_t bytes, void *to)
{
    CVY_EXPECT(from >= 0 && bytes >= 0 && from + bytes <= value->bytes);
    if (!value->here)
        return cvy_pread_all(db->file.fd, to, (size_t)bytes, value->at + from, db->file.path);
    memcpy(to, value->here + from, (size_t)bytes);
    return CVY_OK;
}

void cvy_lmdb_key_text(const cvy_lmdb *db, int64_t number, char *text, size_t room)
{
    uint8_t page[CVY_LMDB_PAGE_MAX];
    const struct leaf *leaf = &db->leaf[leaf_of(db, number)];
    const int64_t i = number - leaf->first;
    size_t at = 0;
    text[0] = 0;
    if (pread(db->file.fd, page, (size_t)db->page_bytes, leaf->page * db->page_bytes) != (ssize_t)db->page_bytes ||
        i >= page_count(db, page))
        return;
    const uint8_t *node = node_of(db, page, (int)i);
    for (int64_t k = 0; node && k < get16(node + 6) && at + 5 < room; k++) {
        const int c = node[NODE_HEAD + k];
        at += (size_t)snprintf(text + at, room - at, isprint(c) ? "%c" : "\\x%02x", c);
    }
}
