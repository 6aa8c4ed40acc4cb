/*
 * data_lmdb_write.c: writes Caffe's data sets: an LMDB database of Datum messages, as convert_imageset makes them.
 *
 * `convoy convert` calls it. One rank writes all pieces in order, each in one or several transactions. Keys are the
 * samples' numbers, "00000017". If the conversion is killed after the last transaction of a piece, but before it noted
 * that the piece is done, the piece is written again and replaces itself. The note is a file next to data.mdb, because
 * Caffe takes every key for a sample. Encoded pictures stay encoded; plain ones are [C, H, W] of u8, or f32 as
 * float_data. labels.txt gets the names of the classes. There is no lock file: this is the only writer of an unfinished
 * database, and locks in a mapped file fail on shared file systems.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_file.h"
#include "base/base_signals.h"
#include "base/text/base_json.h"
#include "data/lmdb/data_lmdb.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/data_writer.h"
#include "format/format_protobuf.h"

#if CVY_HAVE_LMDB
#include <lmdb.h>
#endif

struct lmdb_write_opts {
    int bgr;
    int64_t transaction;
};

static const cvy_option lmdb_write_opts[] = {
    {"bgr", CVY_TYPE_BOOL, CVY_FIELD(lmdb_write_opts, bgr), "false", "", "",
     "store plain pictures of three channels as blue, green, red, as networks of Caffe's model zoo expect; keys then "
     "end "
     "in _bgr"},
    {"transaction", CVY_TYPE_INT, CVY_FIELD(lmdb_write_opts, transaction), "67108864", "65536..", "bytes",
     "most bytes that are written before they are synced to the disk"},
    {0},
};

#if CVY_HAVE_LMDB

enum { MIB = 1 << 20, DATUM_HEAD_MAX = 96 };

struct writer {
    cvy_writer_args args;
    struct lmdb_write_opts o;
    const char *file, *note, *names;
    int digits; /* of a key */
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    int64_t txn_bytes, map_bytes;
    int64_t ndone; /* pieces that are done; -1: the note has not been read yet */
    int64_t piece;
    char last[32]; /* the largest key in the database; "": none */
};

static cvy_status check(const struct writer *w, int code, const char *what)
{
    char why[CVY_WRITE_WHY];
    int fd = -1;
    if (code != 0 && w->env && mdb_env_get_fd(w->env, &fd) == 0 && cvy_write_is_at_limit(fd))
        CVY_FAIL(CVY_E_IO, "%s: cannot write: %s: %s", w->file, what, cvy_write_why(fd, EFBIG, why));
    CVY_CHECK(code == 0, code == ENOMEM ? CVY_E_MEMORY : CVY_E_IO, "%s: %s: %s", w->file, what, mdb_strerror(code));
    return CVY_OK;
}

/* These three write to the file. */
static int open_held(const struct writer *w)
{
    sigset_t before;
    cvy_signals_hold(&before);
    const int code = mdb_env_open(w->env, w->file, MDB_NOSUBDIR | MDB_NOLOCK | MDB_NORDAHEAD, 0666);
    cvy_signals_release(&before);
    return code;
}

static int put_held(const struct writer *w, MDB_val *key, MDB_val *value, unsigned flags)
{
    sigset_t before;
    cvy_signals_hold(&before);
    const int code = mdb_put(w->txn, w->dbi, key, value, flags);
    cvy_signals_release(&before);
    return code;
}

static int commit_held(MDB_txn *txn)
{
    sigset_t before;
    cvy_signals_hold(&before);
    const int code = mdb_txn_commit(txn);
    cvy_signals_release(&before);
    return code;
}

/* ---- checks: what the format can hold ---- */

static cvy_status refuse(const cvy_writer_args *args)
{
    const cvy_reader_info *info = args->info;
    static const char *const instead = "write hdf5, tfrecord or a packed set instead";
    CVY_CHECK(!info->has_y, CVY_E_CONFIG, "an LMDB database of Datum messages holds no real targets (y of %s): %s",
              cvy_shape_text(&info->y_shape), instead);
    CVY_CHECK(!info->has_weight, CVY_E_CONFIG, "an LMDB database of Datum messages holds no weights of samples: %s",
              instead);
    CVY_CHECK(info->shape.ndim == 3, CVY_E_CONFIG,
              "an LMDB database of Datum messages holds samples of channels x height x width, these are %s: %s",
              cvy_shape_text(&info->shape), instead);
    for (int64_t i = 0; info->has_label && args->class_name && i < info->nclasses; i++)
        CVY_CHECK(!strpbrk(args->class_name[i], "\r\n") && *args->class_name[i], CVY_E_CONFIG,
                  "the name of class %lld is empty or has a line break, %s holds one name per line", (long long)i,
                  CVY_LMDB_NAMES);
    return CVY_OK;
}

static cvy_status lmdb_write_open(const cvy_writer_args *args, void **state_out)
{
    struct writer *w = NULL;
    CVY_TRY(refuse(args));
    CVY_TRY(cvy_pool_alloc(args->pool, sizeof *w, &w));
    w->args = *args;
    w->o = *(const struct lmdb_write_opts *)args->options;
    w->ndone = -1;
    w->digits = snprintf(NULL, 0, "%08lld", (long long)CVY_MAX(args->info->nsamples - 1, 0));
    CVY_TRY(cvy_data_path_join(args->pool, args->path, CVY_LMDB_FILE, &w->file));
    CVY_TRY(cvy_data_path_join(args->pool, args->path, CVY_LMDB_PARTIAL, &w->note));
    CVY_TRY(cvy_data_path_join(args->pool, args->path, CVY_LMDB_NAMES, &w->names));
    *state_out = w;
    return CVY_OK;
}

/* ---- the note of pieces that are done ---- */

static cvy_status write_note(struct writer *w, int64_t ndone)
{
    cvy_json j = {0};
    cvy_json_open(&j, NULL, '{');
    cvy_json_string(&j, "format", "convoy-lmdb-partial");
    cvy_json_int(&j, "pieces", w->args.npieces);
    cvy_json_int(&j, "pieces_done", ndone);
    cvy_json_int(&j, "samples", w->args.info->nsamples);
    cvy_json_bool(&j, "bgr", w->o.bgr);
    cvy_json_close(&j, '}');
    cvy_text_add(&j.text, "\n");
    const cvy_status status =
        j.text.status == CVY_OK ? cvy_file_replace(w->note, j.text.data, j.text.bytes) : j.text.status;
    cvy_text_free(&j.text);
    if (status == CVY_OK)
        w->ndone = ndone;
    return status;
}

/* A number of the note; -1 if it is missing. */
static int64_t note_int(const cvy_tree *note, const char *key)
{
    int64_t value = -1;
    const cvy_tree *node = cvy_tree_get(note, key);
    return node && cvy_tree_int(node, &value) == CVY_OK ? value : -1;
}

/* Reads the note. If its pieces, samples or channel order differ from this conversion, the database is written from the
 * start. */
static void read_note(struct writer *w)
{
    cvy_pool *pool = NULL;
    cvy_tree *note = NULL;
    int bgr = -1;
    w->ndone = 0;
    if (!cvy_file_exists(w->note) || !cvy_file_exists(w->file) || cvy_pool_create(&pool) != CVY_OK)
        return;
    if (cvy_tree_parse_file(pool, w->note, &note) == CVY_OK && note->kind == CVY_TREE_MAP &&
        note_int(note, "pieces") == w->args.npieces && note_int(note, "samples") == w->args.info->nsamples &&
        cvy_tree_get(note, "bgr") && cvy_tree_bool(cvy_tree_get(note, "bgr"), &bgr) == CVY_OK && bgr == w->o.bgr)
        w->ndone = CVY_MAX(note_int(note, "pieces_done"), 0);
    cvy_pool_destroy(&pool);
}

static int lmdb_write_has_piece(void *state, int64_t piece)
{
    struct writer *w = state;
    if (w->ndone < 0)
        read_note(w);
    return piece < w->ndone;
}

/* ---- transactions ---- */

/* The map is only a range of addresses. It is made larger before a transaction which could exceed it, because a
 * transaction that reaches its end must be aborted and written again. The factor of four is for split and copied pages
 * of the tree. */
static cvy_status grow_map(struct writer *w, int64_t bytes)
{
    MDB_envinfo info;
    MDB_stat stat;
    CVY_TRY(check(w, mdb_env_info(w->env, &info), "cannot be described"));
    CVY_TRY(check(w, mdb_env_stat(w->env, &stat), "cannot be described"));
    const int64_t used = (int64_t)(info.me_last_pgno + 1) * stat.ms_psize;
    const int64_t need = used + 4 * (w->o.transaction + bytes) + MIB;
    if (need <= w->map_bytes)
        return CVY_OK;
    w->map_bytes = (CVY_MAX(2 * w->map_bytes, need) + MIB - 1) / MIB * MIB;
    return check(w, mdb_env_set_mapsize(w->env, (size_t)w->map_bytes), "its map cannot grow");
}

static cvy_status begin(struct writer *w, int64_t bytes)
{
    CVY_TRY(grow_map(w, bytes));
    CVY_TRY(check(w, mdb_txn_begin(w->env, NULL, 0, &w->txn), "no transaction can be begun"));
    w->txn_bytes = 0;
    return check(w, mdb_dbi_open(w->txn, NULL, 0, &w->dbi), "its main database cannot be opened");
}

static cvy_status commit(struct writer *w)
{
    MDB_txn *txn = w->txn;
    w->txn = NULL; /* it is freed even if the commit fails */
    return txn ? check(w, commit_held(txn), "a transaction cannot be committed") : CVY_OK;
}

/* Finds the largest key. Larger keys can be appended, which fills pages completely. */
static cvy_status find_last(struct writer *w)
{
    MDB_cursor *cursor = NULL;
    MDB_val key, value;
    CVY_TRY(check(w, mdb_cursor_open(w->txn, w->dbi, &cursor), "cannot be searched"));
    const int code = mdb_cursor_get(cursor, &key, &value, MDB_LAST);
    mdb_cursor_close(cursor);
    w->last[0] = 0;
    if (code == MDB_NOTFOUND)
        return CVY_OK;
    CVY_TRY(check(w, code, "cannot be searched"));
    CVY_CHECK(key.mv_size < sizeof w->last, CVY_E_FORMAT, "%s: holds a key of %zu bytes, which no conversion wrote",
              w->file, key.mv_size);
    memcpy(w->last, key.mv_data, key.mv_size);
    w->last[key.mv_size] = 0;
    return CVY_OK;
}

/* Creates or opens the database when the first piece is written. */
static cvy_status start(struct writer *w)
{
    if (w->env)
        return CVY_OK;
    if (w->ndone < 0)
        read_note(w);
    CVY_CHECK(w->ndone > 0 || cvy_file_exists(w->note) || !cvy_file_exists(w->file), CVY_E_CONFIG,
              "%s: exists already: convert into a new folder", w->file);
    if (w->ndone == 0) {
        CVY_TRY(write_note(w, 0)); /* first: from now on the folder is marked as unfinished */
        CVY_CHECK(unlink(w->file) == 0 || errno == ENOENT, CVY_E_IO, "%s: cannot be removed: %s", w->file,
                  strerror(errno));
    }
    CVY_TRY(check(w, mdb_env_create(&w->env), "no database can be made"));
    CVY_TRY(check(w, open_held(w), "cannot be opened"));
    CVY_TRY(begin(w, 0));
    return find_last(w);
}

static cvy_status lmdb_write_begin_piece(void *state, int64_t piece, int64_t count)
{
    struct writer *w = state;
    (void)count;
    w->piece = piece;
    return start(w);
}

static cvy_status lmdb_write_end_piece(void *state)
{
    struct writer *w = state;
    CVY_TRY(commit(w));
    return write_note(w, w->piece + 1);
}

/* ---- samples ---- */

static int64_t payload_bytes(const cvy_raw *raw)
{
    const int is_real = raw->coding == CVY_CODING_PLAIN && raw->dtype == CVY_DTYPE_F32;
    return is_real ? (int64_t)(raw->x.bytes / 4 * 5) : (int64_t)raw->x.bytes;
}

/* Writes all fields except the payload. It comes between `shape` and `rest`. */
static size_t put_heads(const struct writer *w, const cvy_raw *raw, uint8_t *shape, uint8_t *rest, size_t *rest_out)
{
    uint8_t *at = shape, *end = rest;
    const int is_plain = raw->coding == CVY_CODING_PLAIN;
    for (uint32_t i = 0; is_plain && i < 3; i++)
        at =
            cvy_wire_put_varint(cvy_wire_put_key(at, DATUM_CHANNELS + i, CVY_WIRE_VARINT), (uint64_t)raw->shape.dim[i]);
    if (!is_plain || raw->dtype == CVY_DTYPE_U8)
        at = cvy_wire_put_head(at, DATUM_DATA, raw->x.bytes);
    if (w->args.info->has_label)
        end = cvy_wire_put_varint(cvy_wire_put_key(end, DATUM_LABEL, CVY_WIRE_VARINT), (uint64_t)(int64_t)raw->label);
    if (!is_plain)
        end = cvy_wire_put_varint(cvy_wire_put_key(end, DATUM_ENCODED, CVY_WIRE_VARINT), 1);
    *rest_out = (size_t)(end - rest);
    return (size_t)(at - shape);
}

static void put_payload(const struct writer *w, const cvy_raw *raw, uint8_t *to)
{
    const uint8_t *x = raw->x.data;
    const size_t plane = raw->x.bytes / 3;
    if (raw->coding == CVY_CODING_PLAIN && raw->dtype == CVY_DTYPE_F32) {
        for (size_t i = 0; i < raw->x.bytes; i += 4) {
            to = cvy_wire_put_key(to, DATUM_FLOATS, CVY_WIRE_32);
            memcpy(to, x + i, 4);
            to += 4;
        }
    } else if (raw->coding == CVY_CODING_PLAIN && w->o.bgr && raw->shape.dim[0] == 3) {
        for (size_t i = 0; i < 3; i++)
            memcpy(to + i * plane, x + (2 - i) * plane, plane);
    } else {
        memcpy(to, x, raw->x.bytes);
    }
}

/* Starts a new transaction if the current one has no room for `bytes` more. */
static cvy_status make_room(struct writer *w, int64_t bytes)
{
    if (w->txn && w->txn_bytes + bytes > w->o.transaction) /* also before a single large value, because the map must
                                                            * grow */
        CVY_TRY(commit(w));
    return w->txn ? CVY_OK : begin(w, bytes);
}

static cvy_status lmdb_write_write(void *state, int64_t number, const cvy_raw *raw)
{
    struct writer *w = state;
    uint8_t shape[DATUM_HEAD_MAX], rest[DATUM_HEAD_MAX];
    char name[32] = "";
    size_t nrest = 0;
    CVY_CHECK(raw->coding != CVY_CODING_PLAIN ||
                  (raw->shape.ndim == 3 && (raw->dtype == CVY_DTYPE_U8 || raw->dtype == CVY_DTYPE_F32)),
              CVY_E_CONFIG, "sample %lld is %s of %s, a Datum holds u8 or f32 of channels x height x width",
              (long long)number, cvy_dtype_text(raw->dtype), cvy_shape_text(&raw->shape));
    const size_t nshape = put_heads(w, raw, shape, rest, &nrest);
    const int64_t payload = payload_bytes(raw), bytes = (int64_t)(nshape + nrest) + payload;
    CVY_CHECK(bytes <= 1 << 30, CVY_E_CONFIG, "sample %lld has %lld bytes, expected at most 1 GiB per Datum",
              (long long)number, (long long)bytes);
    CVY_TRY(make_room(w, bytes));
    const int n = snprintf(name, sizeof name, "%0*lld%s", w->digits, (long long)number, w->o.bgr ? "_bgr" : "");
    MDB_val key = {.mv_size = (size_t)n, .mv_data = name}, value = {.mv_size = (size_t)bytes};
    const int is_last = strcmp(name, w->last) > 0;
    CVY_TRY(check(w, put_held(w, &key, &value, MDB_RESERVE | (is_last ? MDB_APPEND : 0)), "a sample cannot be added"));
    uint8_t *to = value.mv_data;
    memcpy(to, shape, nshape);
    put_payload(w, raw, to + nshape);
    memcpy(to + nshape + payload, rest, nrest);
    if (is_last)
        memcpy(w->last, name, sizeof w->last);
    w->txn_bytes += CVY_MAX(bytes, 4096); /* at least a page, because a key inserted between others may change a whole
                                           * page */
    return CVY_OK;
}

/* ---- the end ---- */

static cvy_status write_names(const struct writer *w)
{
    cvy_text text = {0};
    if (!w->args.info->has_label || !w->args.class_name)
        return CVY_OK;
    for (int64_t i = 0; i < w->args.info->nclasses; i++)
        cvy_text_add(&text, "%s\n", w->args.class_name[i]);
    const cvy_status status = text.status == CVY_OK ? cvy_file_replace(w->names, text.data, text.bytes) : text.status;
    cvy_text_free(&text);
    return status;
}

static cvy_status lmdb_write_finish(void *state, int64_t *nsamples_out, int64_t *bytes_out)
{
    struct writer *w = state;
    MDB_stat entries;
    struct stat file;
    CVY_TRY(start(w)); /* all pieces may be done already */
    CVY_TRY(commit(w));
    CVY_TRY(check(w, mdb_env_sync(w->env, 1), "cannot be written to the disk"));
    CVY_TRY(check(w, mdb_env_stat(w->env, &entries), "cannot be described"));
    CVY_CHECK(stat(w->file, &file) == 0, CVY_E_IO, "%s: %s", w->file, strerror(errno));
    CVY_TRY(write_names(w));
    CVY_CHECK(unlink(w->note) == 0 || errno == ENOENT, CVY_E_IO, "%s: cannot be removed: %s", w->note, strerror(errno));
    CVY_TRY(cvy_file_sync_folder(w->args.path));
    *nsamples_out = (int64_t)entries.ms_entries;
    *bytes_out = file.st_size;
    return CVY_OK;
}

static void lmdb_write_close(void *state)
{
    struct writer *w = state;
    if (w->txn)
        mdb_txn_abort(w->txn);
    if (w->env)
        mdb_env_close(w->env);
    w->txn = NULL;
    w->env = NULL;
}

#else

static cvy_status lmdb_write_open(const cvy_writer_args *args, void **state_out)
{
    (void)state_out;
    CVY_FAIL(CVY_E_UNSUPPORTED,
             "%s: an LMDB database, and this build cannot write one: install liblmdb's headers and build again",
             args->path);
}
static int lmdb_write_has_piece(void *state, int64_t piece)
{
    (void)state, (void)piece;
    return 0;
}
static cvy_status lmdb_write_begin_piece(void *state, int64_t piece, int64_t count)
{
    (void)state, (void)piece, (void)count;
    CVY_FAIL(CVY_E_UNSUPPORTED, "this build has no LMDB");
}
static cvy_status lmdb_write_write(void *state, int64_t number, const cvy_raw *raw)
{
    (void)raw;
    return lmdb_write_begin_piece(state, number, 0);
}
static cvy_status lmdb_write_end_piece(void *state)
{
    return lmdb_write_begin_piece(state, 0, 0);
}
static cvy_status lmdb_write_finish(void *state, int64_t *nsamples_out, int64_t *bytes_out)
{
    (void)nsamples_out, (void)bytes_out;
    return lmdb_write_begin_piece(state, 0, 0);
}
static void lmdb_write_close(void *state)
{
    (void)state;
}

#endif

CVY_WRITER_DEFINE(lmdb) = {
    .name = "lmdb",
    .summary = "LMDB database of Caffe's Datum messages",
    .options = lmdb_write_opts,
    .options_size = sizeof(struct lmdb_write_opts),
    .in_turn = 1,
    .open = lmdb_write_open,
    .has_piece = lmdb_write_has_piece,
    .begin_piece = lmdb_write_begin_piece,
    .write = lmdb_write_write,
    .end_piece = lmdb_write_end_piece,
    .finish = lmdb_write_finish,
    .close = lmdb_write_close,
};
