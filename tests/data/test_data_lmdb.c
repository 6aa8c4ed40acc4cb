/*
 * test_data_lmdb.c: LMDB databases of Caffe's Datum.
 *
 * Data bases made by Python's lmdb (tests/data/files/make_lmdb.py) are read value by value. What our writer makes is
 * read back unchanged, also after an interruption. Cut, damaged and foreign files and a writer at work are reported;
 * bad offsets are never followed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <pthread.h>
#include <stdarg.h>

#include "data/data_writer.h"
#include "data/lmdb/data_lmdb.h"
#include "test_data_support.h"

#if CVY_HAVE_LMDB
#include <lmdb.h>
#include <stdio.h>
#endif
#if CVY_HAVE_JPEG && CVY_HAVE_SPNG
#include "test_data_pictures.h"
#endif

enum { SAMPLES = 70 };

/* ---- files made by other programs ---- */

/* Returns a formatted text, in one of eight buffers that are used in turn. */
static const char *text(const char *format, ...)
{
    static char ring[8][1024];
    static int at;
    char *to = ring[at++ % 8];
    va_list list;
    va_start(list, format);
    vsnprintf(to, sizeof ring[0], format, list);
    va_end(list);
    return to;
}

static const char *made(const char *name)
{
    return text("%s/tests/data/files/%s", getenv("CONVOY_SOURCE"), name);
}

/* Returns channel c of pixel (y, x) of sample i, as make_lmdb.py writes it. */
static uint8_t pixel(int64_t i, int64_t c, int64_t y, int64_t x)
{
    return (uint8_t)(7 * i + 50 * c + 3 * y + 2 * x);
}

static void check_imageset(cvy_dataset *d, int64_t i, int red, cvy_raw *raw)
{
    OK(cvy_dataset_read_raw(d, i, raw));
    TRUE_THAT(raw->coding == CVY_CODING_PLAIN && raw->dtype == CVY_DTYPE_U8 && raw->label == i % 3);
    TRUE_THAT(strcmp(cvy_shape_text(&raw->shape), i == 69 ? "3x30x40" : "3x5x4") == 0);
    const int64_t H = raw->shape.dim[1], W = raw->shape.dim[2];
    TRUE_THAT(raw->x.bytes == (size_t)(3 * H * W));
    for (int64_t c = 0; c < 3; c++)
        for (int64_t k = 0; k < H * W; k++)
            TRUE_THAT(((uint8_t *)raw->x.data)[c * H * W + k] == pixel(i, red ? 2 - c : c, k / W, k % W));
}

static void test_imageset(void)
{
    cvy_dataset *d = NULL, *plain = NULL, *said = NULL;
    cvy_raw raw = {0};
    OK(open_text(made("lmdb-imageset"), NULL, 0, &d));
    OK(open_text(text("{path: \"%s/data.mdb\", format: lmdb, bgr: false}", made("lmdb-imageset")), NULL, 0, &plain));
    OK(open_text(text("{path: \"%s\", classes: 3}", made("lmdb-imageset")), "[{resize: 5}]", 0, &said));
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    TRUE_THAT(strcmp(info->format, "lmdb") == 0 && info->nsamples == SAMPLES && info->nclasses == 3);
    TRUE_THAT(cvy_dataset_reader_info(d)->varying && cvy_dataset_describe(said)->nclasses == 3);
    for (int64_t k = 0; k < SAMPLES; k++) {
        const int64_t i = k * 37 % SAMPLES;
        int32_t label = -1;
        check_imageset(d, i, 0, &raw);
        check_imageset(plain, i, 1, &raw);
        OK(cvy_dataset_label(said, i, &label));
        TRUE_THAT(label == i % 3);
    }
    FAILS(open_text(text("{path: \"%s\", clases: 3}", made("lmdb-imageset")), NULL, 0, &d), CVY_E_CONFIG, "classes");
    cvy_raw_free(&raw);
    cvy_dataset_destroy(&said);
    cvy_dataset_destroy(&plain);
    cvy_dataset_destroy(&d);
}

static void test_floats(void)
{
    cvy_dataset *d = NULL;
    float x[24];
    void *const field[] = {x};
    OK(open_text(made("lmdb-floats"), NULL, 0, &d));
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    TRUE_THAT(info->nsamples == 3 && info->nfield == 1 && info->nclasses == 0 &&
              strcmp(cvy_shape_text(&info->field[0].shape), "2x3x4") == 0);
    for (int i = 0; i < 3; i++) {
        OK(cvy_dataset_read(d, i, 0, field));
        for (int k = 0; k < 24; k++)
            TRUE_THAT(x[k] == 0.5f * (float)i + 0.25f * (float)k);
    }
    cvy_dataset_destroy(&d);
}

static void test_encoded(void)
{
#if CVY_HAVE_JPEG && CVY_HAVE_SPNG
    cvy_dataset *d = NULL;
    static float x[3 * 16 * 24];
    int32_t label = -1;
    void *const field[] = {x, &label};
    OK(open_text(made("lmdb-encoded"), NULL, 0, &d));
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    TRUE_THAT(info->nsamples == 6 && info->nclasses == 2 &&
              strcmp(cvy_shape_text(&info->field[0].shape), "3x16x24") == 0);
    for (int i = 0; i < 6; i++) {
        OK(cvy_dataset_read(d, i, 0, field));
        TRUE_THAT(label == i % 2);
        for (int k = 0; k < 3 * 16 * 24; k++) {
            const double want = 20 + 8 * i + 20 * (k / 384) + 3 * (k % 384 / 24) + 2 * (k % 24);
            const double off = x[k] * 255 - want;
            TRUE_THAT(off < (i % 2 ? 0.01 : 8) && off > (i % 2 ? -0.01 : -8));
        }
    }
    cvy_dataset_destroy(&d);
    OK(open_text(text("{path: \"%s\", channels: grey}", made("lmdb-encoded")), NULL, 0, &d));
    TRUE_THAT(strcmp(cvy_shape_text(&cvy_dataset_describe(d)->field[0].shape), "1x16x24") == 0);
    cvy_dataset_destroy(&d);
#endif
}

/* ---- two threads ---- */

struct reading {
    cvy_dataset *d;
    int64_t stride;
    int good;
};

static void *read_all(void *user)
{
    struct reading *r = user;
    cvy_raw raw = {0};
    for (int64_t k = 0; k < 20 * SAMPLES; k++) {
        const int64_t i = k * r->stride % SAMPLES;
        if (cvy_dataset_read_raw(r->d, i, &raw) != CVY_OK || raw.label != i % 3)
            break;
        const int64_t plane = raw.shape.dim[1] * raw.shape.dim[2];
        if (((uint8_t *)raw.x.data)[2 * plane] != pixel(i, 2, 0, 0))
            break;
        r->good++;
    }
    cvy_raw_free(&raw);
    return NULL;
}

static void test_threads(void)
{
    cvy_dataset *d = NULL;
    pthread_t thread[2];
    OK(open_text(made("lmdb-imageset"), NULL, 0, &d));
    struct reading r[2] = {{.d = d, .stride = 11}, {.d = d, .stride = 69}};
    for (int i = 0; i < 2; i++)
        TRUE_THAT(pthread_create(&thread[i], NULL, read_all, &r[i]) == 0);
    for (int i = 0; i < 2; i++) {
        TRUE_THAT(pthread_join(thread[i], NULL) == 0);
        TRUE_THAT(r[i].good == 20 * SAMPLES);
    }
    cvy_dataset_destroy(&d);
}

/* ---- damage ---- */

/* Copies the file to a folder in the scratch folder, which is opened as `damaged`. */
static char *copy_of(const char *name, size_t *bytes)
{
    char *data = NULL;
    OK(cvy_file_read(text("%s/data.mdb", made(name)), 1 << 20, &data, bytes));
    OK(cvy_file_make_folder(in_scratch("damaged")));
    put_file(in_scratch("damaged/data.mdb"), data, *bytes);
    return data;
}

static cvy_status open_damaged(cvy_dataset **out)
{
    return open_text(text("{path: \"%s\", classes: 3}", in_scratch("damaged")), NULL, 0, out);
}

/* Sets byte `at` of the value of this key. */
static void spoil(const char *name, const char *key, size_t at, uint8_t byte)
{
    size_t bytes = 0, found = 0;
    char *data = copy_of(name, &bytes);
    const size_t n = strlen(key);
    for (size_t i = 0; i + n + at < bytes; i++)
        if (memcmp(data + i, key, n) == 0 && data[i + n] == 8) { /* a copy of the key in a branch has no value */
            data[i + n + at] = (char)byte;
            found++;
        }
    TRUE_THAT(found > 0);
    put_file(in_scratch("damaged/data.mdb"), data, bytes);
    cvy_mem_free(&data);
}

static void test_datum_damage(void)
{
    static const struct {
        size_t at;
        uint8_t byte;
        const char *words;
    } bad[] = {
        {1, 4, "a Datum of 4x5x4 has 60 bytes of data"},
        {1, 0, "a Datum of 0 channels, height 5, width 4"},
        {7, 0x7f, "is not a Datum, or a truncated one: no field begins at byte 6 of 72"},
        {7, 0x3b, "is not a Datum"},
        {0, 0x0a, "is not a Datum: field 1 (channels) at byte 0 of 72 is of kind 2"},
        {6, 0x2a, "is not a Datum: field 5 (label) at byte 6 of 72 is of kind 2"},
        {6, 0x42, "a Datum with neither data nor float_data"},
        {69, 9, "label 9 is out of range, expected 0 .. 2"},
    };
    cvy_raw raw = {0};
    for (int i = 0; i < CVY_COUNT(bad); i++) {
        cvy_dataset *d = NULL;
        spoil("lmdb-imageset", "00000003_class0/picture3.jpg", bad[i].at, bad[i].byte);
        OK(open_damaged(&d));
        OK(cvy_dataset_read_raw(d, 2, &raw));
        FAILS(cvy_dataset_read_raw(d, 3, &raw), CVY_E_FORMAT,
              text("damaged/data.mdb, record 3 (key \"00000003_class0/picture3.jpg\"): %s", bad[i].words));
        cvy_dataset_destroy(&d);
    }
    cvy_raw_free(&raw);
}

static void poke(long at, const void *bytes, size_t count)
{
    FILE *f = fopen(in_scratch("damaged/data.mdb"), "r+b");
    TRUE_THAT(f && fseek(f, at, SEEK_SET) == 0 && fwrite(bytes, 1, count, f) == count && fclose(f) == 0);
}

static void test_foreign(void)
{
    cvy_dataset *d = NULL;
    size_t bytes = 0;
    char *data = copy_of("lmdb-imageset", &bytes);
    poke(16, "\xBE\xEF\xC0\xDE", 4);
    FAILS(open_damaged(&d), CVY_E_UNSUPPORTED, "of a big-endian machine");
    poke(12, "\xDE\xC0\xEF\xBE", 4);
    poke(16, "\1\0\0\0", 4);
    FAILS(open_damaged(&d), CVY_E_UNSUPPORTED, "of a 32-bit machine");
    poke(12, "\0\0\0\0\0\0\0\0\0\0\0\0\xDE\xC0\xEF\xBE", 16);
    FAILS(open_damaged(&d), CVY_E_UNSUPPORTED, "of LMDB 1.0 or later");
    poke(12, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
    FAILS(open_damaged(&d), CVY_E_FORMAT, "is not an LMDB database");
    put_file(in_scratch("damaged/data.mdb"), data, bytes);
    poke(20, "\3", 1);
    FAILS(open_damaged(&d), CVY_E_UNSUPPORTED, "LMDB data format 3, expected 1");
    put_file(in_scratch("damaged/data.mdb"), "", 0);
    FAILS(open_damaged(&d), CVY_E_FORMAT, "damaged/data.mdb: holds 0 bytes");
    FAILS(open_text("{format: lmdb, path: /nowhere}", NULL, 0, &d), CVY_E_IO, "/nowhere: cannot be opened");
    cvy_mem_free(&data);
}

/* Reads whatever can be read. The test is that this returns. */
static int try_all(void)
{
    cvy_dataset *d = NULL;
    cvy_raw raw = {0};
    int good = 0;
    if (open_damaged(&d) != CVY_OK)
        return -1;
    const int64_t n = cvy_dataset_describe(d)->nsamples;
    for (int64_t i = 0; i < n; i++)
        good += cvy_dataset_read_raw(d, i, &raw) == CVY_OK;
    cvy_raw_free(&raw);
    cvy_dataset_destroy(&d);
    return good;
}

static void test_cut(void)
{
    cvy_dataset *d = NULL;
    size_t bytes = 0;
    char *data = copy_of("lmdb-imageset", &bytes);
    TRUE_THAT(try_all() == SAMPLES);
    for (size_t n = bytes - 1; n > 0; n -= CVY_MIN(n, 611)) {
        TRUE_THAT(truncate(in_scratch("damaged/data.mdb"), (off_t)n) == 0);
        const int good = try_all();
        TRUE_THAT(good == -1 || good == SAMPLES); /* the free space after the last value holds no data */
    }
    put_file(in_scratch("damaged/data.mdb"), data, bytes / 2);
    FAILS(open_damaged(&d), CVY_E_FORMAT, "truncated");
    put_file(in_scratch("damaged/data.mdb"), data, 5000);
    FAILS(open_damaged(&d), CVY_E_FORMAT, "in its head of 8192: the file was truncated");
    cvy_mem_free(&data);
}

/* In every seventeenth byte, first the lowest bit is flipped and then all bits. */
static void test_flips(void)
{
    size_t bytes = 0;
    int opened = 0;
    char *data = copy_of("lmdb-imageset", &bytes);
    for (size_t at = 0; at < bytes; at += 17)
        for (int all = 0; all < 2; all++) {
            const char byte = (char)(data[at] ^ (all ? 0xFF : 1));
            poke((long)at, &byte, 1);
            opened += try_all() >= 0;
            poke((long)at, &data[at], 1);
        }
    TRUE_THAT(opened > 0 && try_all() == SAMPLES);
    cvy_mem_free(&data);
}

/* ---- our writer ---- */

#if CVY_HAVE_LMDB

struct job {
    cvy_pool *pool;
    cvy_dataset *d;
    cvy_reader_info info;
    const cvy_writer_def *def;
    void *options, *state;
    int64_t npieces;
};

static cvy_status job_open(struct job *j, const char *source, const char *folder, const char *options, int64_t npieces)
{
    *j = (struct job){.npieces = npieces};
    OK(cvy_pool_create(&j->pool));
    OK(open_text(source, NULL, 0, &j->d));
    OK(cvy_writer_by_name("lmdb", &j->def));
    OK(cvy_file_make_folder(folder));
    OK(cvy_pool_alloc(j->pool, j->def->options_size, &j->options));
    OK(cvy_options_parse_text(j->pool, "lmdb", j->def->options, options, j->options, j->def->options_size));
    j->info = *cvy_dataset_reader_info(j->d);
    const cvy_writer_args args = {.pool = j->pool,
                                  .path = folder,
                                  .options = j->options,
                                  .npieces = npieces,
                                  .info = &j->info,
                                  .class_name = cvy_dataset_describe(j->d)->class_name};
    return j->def->open(&args, &j->state);
}

/* Writes the pieces first .. end-1. If half is set, the last one is left in the middle. */
static void job_write(struct job *j, int64_t first, int64_t end, int half)
{
    cvy_raw raw = {0};
    const int64_t n = j->info.nsamples;
    for (int64_t p = first; p < end; p++) {
        const int64_t from = p * n / j->npieces, to = (p + 1) * n / j->npieces, stop = half && p == end - 1;
        OK(j->def->begin_piece(j->state, p, to - from));
        for (int64_t i = from; i < (stop ? (from + to) / 2 : to); i++) {
            OK(cvy_dataset_read_raw(j->d, i, &raw));
            OK(j->def->write(j->state, i, &raw));
        }
        if (!stop)
            OK(j->def->end_piece(j->state));
    }
    cvy_raw_free(&raw);
}

static void job_close(struct job *j)
{
    if (j->state)
        j->def->close(j->state);
    cvy_dataset_destroy(&j->d);
    cvy_pool_destroy(&j->pool);
}

static void job_finish(struct job *j)
{
    int64_t nsamples = 0, bytes = 0;
    OK(j->def->finish(j->state, &nsamples, &bytes));
    TRUE_THAT(nsamples == j->info.nsamples && bytes > 8192);
}

static void check_same(const char *source, const char *written)
{
    cvy_dataset *a = NULL, *b = NULL;
    cvy_raw x = {0}, y = {0};
    OK(open_text(source, NULL, 0, &a));
    OK(open_text(written, NULL, 0, &b));
    const cvy_dataset_info *i = cvy_dataset_describe(a), *k = cvy_dataset_describe(b);
    TRUE_THAT(i->nsamples == k->nsamples && i->nclasses == k->nclasses);
    TRUE_THAT(strcmp(cvy_shape_text(&i->field[0].shape), cvy_shape_text(&k->field[0].shape)) == 0);
    for (int64_t c = 0; c < i->nclasses; c++)
        TRUE_THAT(strcmp(i->class_name[c], k->class_name[c]) == 0);
    for (int64_t n = 0; n < i->nsamples; n++) {
        OK(cvy_dataset_read_raw(a, n, &x));
        OK(cvy_dataset_read_raw(b, n, &y));
        TRUE_THAT(x.coding == y.coding && x.label == y.label && x.x.bytes == y.x.bytes);
        TRUE_THAT(memcmp(x.x.data, y.x.data, x.x.bytes) == 0);
        TRUE_THAT(x.coding != CVY_CODING_PLAIN || (x.dtype == y.dtype && cvy_shape_equal(&x.shape, &y.shape)));
    }
    cvy_raw_free(&x);
    cvy_raw_free(&y);
    cvy_dataset_destroy(&a);
    cvy_dataset_destroy(&b);
}

static void round_trip(const char *name, const char *source, const char *options, int64_t npieces)
{
    struct job j;
    OK(job_open(&j, source, in_scratch(name), options, npieces));
    job_write(&j, 0, npieces, 0);
    job_finish(&j);
    job_close(&j);
    TRUE_THAT(!cvy_data_has_file(in_scratch(name), CVY_LMDB_PARTIAL));
    check_same(source, in_scratch(name));
}

static void test_round_trips(void)
{
    cvy_dataset *d = NULL, *e = NULL;
    cvy_raw a = {0}, b = {0};
    round_trip("bytes", "{format: pictures, size: 12, samples: 50, classes: 5}", "", 3);
    round_trip("varying", "{format: pictures, size: [8, 40], samples: 40, classes: 7}", "", 1);
    round_trip("floats", "{format: synthetic, shape: [2, 4, 30], samples: 40}", "", 2);
    round_trip("cosmology", "{format: cosmology, size: 16, samples: 12, classes: 3}", "", 1);
#if CVY_HAVE_JPEG
    round_trip("jpeg", "{format: pictures, size: [16, 40], samples: 30, encode: jpeg}", "", 2);
#endif
    /* The map begins with little more than 1 MiB and must grow for 300 x 12 KiB. */
    round_trip("large", "{format: pictures, size: 64, samples: 300}", "transaction: 65536", 2);
    round_trip("huge", "{format: pictures, size: 500, samples: 3}", "transaction: 65536", 1);
    round_trip("bgr", "{format: pictures, size: 9, samples: 4}", "bgr: true", 1);
    OK(open_text("{format: pictures, size: 9, samples: 4}", NULL, 0, &d));
    OK(open_text(text("{path: \"%s\", bgr: false}", in_scratch("bgr")), NULL, 0, &e));
    OK(cvy_dataset_read_raw(d, 1, &a));
    OK(cvy_dataset_read_raw(e, 1, &b));
    for (int c = 0; c < 3; c++)
        TRUE_THAT(memcmp((uint8_t *)a.x.data + 81 * c, (uint8_t *)b.x.data + 81 * (2 - c), 81) == 0);
    cvy_raw_free(&a);
    cvy_raw_free(&b);
    cvy_dataset_destroy(&d);
    cvy_dataset_destroy(&e);
}

/* A grey picture that comes first makes the set grey, and a later one in colour is said. */
static void test_lost_colour(void)
{
#if CVY_HAVE_JPEG && CVY_HAVE_SPNG
    cvy_dataset *d = NULL;
    OK(cvy_file_make_folder(in_scratch("mono/one")));
    OK(cvy_file_make_folder(in_scratch("mono/two")));
    put_png(in_scratch("mono/one/a.png"), 0, 16, 16, 1);
    put_jpeg(in_scratch("mono/two/b.jpg"), 1, 16, 16, 3);
    round_trip("mono-lmdb", in_scratch("mono"), "", 1);
    OK(open_text(in_scratch("mono-lmdb"), NULL, 0, &d));
    const char *note = cvy_dataset_describe(d)->note;
    TRUE_THAT(note && strstr(note, "is in colour, and the first picture of the set is grey"));
    cvy_dataset_destroy(&d);
#endif
}

static void test_resume(void)
{
    static const char *const source = "{format: pictures, size: 20, samples: 80, classes: 4}";
    const char *folder = in_scratch("resume");
    cvy_dataset *d = NULL;
    struct job j;
    OK(job_open(&j, source, folder, "transaction: 65536", 4));
    TRUE_THAT(!j.def->has_piece(j.state, 0));
    job_write(&j, 0, 3, 1);
    job_close(&j);
    FAILS(open_text(text("{format: lmdb, path: \"%s\"}", folder), NULL, 0, &d), CVY_E_FORMAT, "was not finished");
    OK(job_open(&j, source, folder, "", 5)); /* another number of pieces: nothing of it is used */
    TRUE_THAT(!j.def->has_piece(j.state, 0));
    job_close(&j);
    OK(job_open(&j, source, folder, "", 4));
    TRUE_THAT(j.def->has_piece(j.state, 0) && j.def->has_piece(j.state, 1) && !j.def->has_piece(j.state, 2));
    job_write(&j, 2, 4, 0);
    job_close(&j); /* interrupted before the end */
    OK(job_open(&j, source, folder, "", 4));
    TRUE_THAT(j.def->has_piece(j.state, 3));
    job_finish(&j);
    job_close(&j);
    check_same(source, folder);
    /* Pieces that are complete are written again over the old ones, as if the record of their completion had been
     * lost. */
    folder = in_scratch("again");
    OK(job_open(&j, source, folder, "transaction: 65536", 4));
    job_write(&j, 0, 2, 0);
    job_write(&j, 0, 4, 0);
    job_finish(&j);
    job_close(&j);
    check_same(source, folder);
    OK(job_open(&j, source, folder, "", 4));
    FAILS(j.def->begin_piece(j.state, 0, 1), CVY_E_CONFIG, "exists already");
    job_close(&j);
}

static void test_refusals(void)
{
    struct job j;
    FAILS(job_open(&j, "{format: synthetic, targets: 3}", in_scratch("no"), "", 1), CVY_E_CONFIG,
          "holds no real targets (y of 3)");
    job_close(&j);
    FAILS(job_open(&j, "{format: synthetic, shape: 27}", in_scratch("no"), "", 1), CVY_E_CONFIG,
          "channels x height x width, these are 27");
    job_close(&j);
    TRUE_THAT(!cvy_data_has_file(in_scratch("no"), "data.mdb"));
}

/* A writer begins and commits transactions while a data set is open. Reading reports it after the first commit. */
static void test_writer_at_work(void)
{
    cvy_dataset *d = NULL;
    cvy_raw raw = {0};
    MDB_env *env = NULL;
    MDB_txn *txn = NULL;
    MDB_dbi dbi = 0;
    size_t bytes = 0;
    char *data = copy_of("lmdb-imageset", &bytes);
    cvy_mem_free(&data);
    OK(open_damaged(&d));
    OK(cvy_dataset_read_raw(d, 5, &raw));
    TRUE_THAT(mdb_env_create(&env) == 0 && mdb_env_set_mapsize(env, 1 << 20) == 0 &&
              mdb_env_open(env, in_scratch("damaged"), 0, 0600) == 0);
    MDB_val key = {8, "99999999"}, value = {6, "\x08\x03\x10\x05\x18\x04"};
    for (int round = 0; round < 3; round++) {
        TRUE_THAT(mdb_txn_begin(env, NULL, 0, &txn) == 0 && mdb_dbi_open(txn, NULL, 0, &dbi) == 0 &&
                  mdb_put(txn, dbi, &key, &value, 0) == 0);
        if (round == 0)
            OK(cvy_dataset_read_raw(d, 5, &raw)); /* nothing is committed yet */
        TRUE_THAT(mdb_txn_commit(txn) == 0);
        FAILS(cvy_dataset_read_raw(d, 5, &raw), CVY_E_IO,
              "damaged/data.mdb: was written to while it is being read: transaction ");
    }
    mdb_env_close(env);
    cvy_raw_free(&raw);
    cvy_dataset_destroy(&d);
}

static void test_writer(void)
{
    test_round_trips();
    test_lost_colour();
    test_resume();
    test_refusals();
    test_writer_at_work();
}
#else
static void test_writer(void)
{
}
#endif

int main(void)
{
    if (!getenv("CONVOY_SOURCE"))
        return 77;
    scratch_make();
    test_imageset();
    test_floats();
    test_encoded();
    test_threads();
    test_datum_damage();
    test_foreign();
    test_cut();
    test_flips();
    test_writer();
    scratch_remove();
    return 0;
}
