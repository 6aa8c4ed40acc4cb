/* SPDX-License-Identifier: BSD-3-Clause */
/* rows: clang asan */
/* test_data_tfrecord.c: TFRecord: what is written is read back to the byte; files made by TensorFlow; every byte
 * flipped and every length cut; damaged and unusual records are reported. */
#include "test_data_damage.h"
#include "test_data_pictures.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>

#include "data/data_inflate.h"
#include "data/data_writer.h"
#include "data/tfrecord/data_example.h"
#include "data/tfrecord/data_tfrecord.h"

/* ---- round trips ---- */

static void write_set(cvy_dataset *d, const char *folder, int64_t npieces, const void *options)
{
    const cvy_writer_def *def = NULL;
    cvy_pool *pool = NULL;
    void *state = NULL;
    cvy_raw raw = {0};
    int64_t nsamples = 0, bytes = 0;
    const int64_t n = cvy_dataset_describe(d)->nsamples;
    OK(cvy_writer_by_name("tfrecord", &def));
    OK(cvy_pool_create(&pool));
    OK(cvy_file_make_folder(folder));
    const cvy_writer_args args = {.pool = pool,
                                  .path = folder,
                                  .options = options,
                                  .npieces = npieces,
                                  .info = cvy_dataset_reader_info(d),
                                  .class_name = cvy_dataset_describe(d)->class_name};
    OK(def->open(&args, &state));
    for (int64_t p = npieces - 1; p >= 0; p--) { /* pieces may be written in any order */
        TRUE_THAT(!def->has_piece(state, p));
        OK(def->begin_piece(state, p, n));
        for (int64_t i = n * p / npieces; i < n * (p + 1) / npieces; i++) {
            OK(cvy_dataset_read_raw(d, i, &raw));
            OK(def->write(state, i, &raw));
        }
        TRUE_THAT(!def->has_piece(state, p));
        OK(def->end_piece(state));
        TRUE_THAT(def->has_piece(state, p));
    }
    OK(def->finish(state, &nsamples, &bytes));
    TRUE_THAT(nsamples == n && bytes > n * 16);
    def->close(state);
    cvy_raw_free(&raw);
    cvy_pool_destroy(&pool);
}

static void check_same(cvy_dataset *a, cvy_dataset *b)
{
    const cvy_dataset_info *i = cvy_dataset_describe(a), *j = cvy_dataset_describe(b);
    const cvy_reader_info *r = cvy_dataset_reader_info(a), *s = cvy_dataset_reader_info(b);
    cvy_raw x = {0}, y = {0};
    TRUE_THAT(i->nsamples == j->nsamples && i->nfield == j->nfield && i->nclasses == j->nclasses);
    TRUE_THAT(r->dtype == s->dtype && cvy_shape_equal(&r->shape, &s->shape) && r->varying == s->varying);
    TRUE_THAT(r->has_y == s->has_y && r->has_weight == s->has_weight &&
              (!r->has_y || cvy_shape_equal(&r->y_shape, &s->y_shape)));
    for (int64_t c = 0; c < i->nclasses; c++)
        TRUE_THAT(strcmp(i->class_name[c], j->class_name[c]) == 0);
    for (int64_t n = 0; n < i->nsamples; n++) {
        OK(cvy_dataset_read_raw(a, n, &x));
        OK(cvy_dataset_read_raw(b, n, &y));
        TRUE_THAT(x.coding == y.coding && (!r->has_label || x.label == y.label) && x.weight == y.weight);
        TRUE_THAT(x.x.bytes == y.x.bytes && memcmp(x.x.data, y.x.data, x.x.bytes) == 0);
        TRUE_THAT(x.coding != CVY_CODING_PLAIN || (x.dtype == y.dtype && cvy_shape_equal(&x.shape, &y.shape)));
        TRUE_THAT(!r->has_y || memcmp(x.y.data, y.y.data, (size_t)cvy_shape_elems(&r->y_shape) * 4) == 0);
    }
    cvy_raw_free(&x);
    cvy_raw_free(&y);
}

static void round_trip_with(const char *source, const char *folder, int64_t npieces, const void *options)
{
    cvy_dataset *d = NULL, *p = NULL;
    OK(open_text(source, NULL, 0, &d));
    write_set(d, folder, npieces, options);
    OK(open_text(folder, NULL, 0, &p));
    TRUE_THAT(strcmp(cvy_dataset_describe(p)->format, "tfrecord") == 0);
    check_same(d, p);
    cvy_dataset_destroy(&p);
    cvy_dataset_destroy(&d);
}

static void round_trip(const char *source, const char *folder, int64_t npieces)
{
    round_trip_with(source, folder, npieces, NULL);
}

static void test_round_trips(void)
{
    enum { RECORD = 3073 };
    static uint8_t bytes[4 * RECORD];
    for (int i = 0; i < (int)sizeof bytes; i++)
        bytes[i] = (uint8_t)(i % RECORD ? 7 * i : i / RECORD);
    put_file(in_scratch("data_batch_1.bin"), bytes, sizeof bytes);
    round_trip(in_scratch("data_batch_1.bin"), in_scratch("u8"), 1);
    round_trip("{format: synthetic, shape: [3, 8, 8], samples: 23}", in_scratch("classes"), 4);
    round_trip("{format: synthetic, shape: [9], samples: 4, targets: 3}", in_scratch("targets"),
               5); /* an empty piece */
    static const char table[] = "a,b,t,w\n1,2,3,0.5\n4,5,6,2\n7,8,9,1\n";
    put_file(in_scratch("table.csv"), table, sizeof table - 1);
    char text[600];
    snprintf(text, sizeof text, "{path: \"%s\", y: t, weight: w}", in_scratch("table.csv"));
    round_trip(text, in_scratch("weights"), 2);
}

/* Opens a file, a glob, a folder, and a folder with a missing shard. */
static void test_paths(void)
{
    cvy_dataset *d = NULL;
    OK(open_text(in_scratch("classes/convoy-00001-of-00004.tfrecord"), NULL, 0, &d));
    TRUE_THAT(cvy_dataset_describe(d)->nsamples == 6 && cvy_dataset_describe(d)->nclasses == 10);
    cvy_dataset_destroy(&d);
    OK(open_text(in_scratch("classes/convoy-0000[12]*"), NULL, 0, &d));
    TRUE_THAT(cvy_dataset_describe(d)->nsamples == 12);
    cvy_dataset_destroy(&d);
    FAILS(open_text(in_scratch("classes/none*"), NULL, 0, &d), CVY_E_IO, "no such file");
    TRUE_THAT(rename(in_scratch("classes/convoy-00002-of-00004.tfrecord"), in_scratch("kept")) == 0);
    FAILS(open_text(in_scratch("classes"), NULL, 0, &d), CVY_E_FORMAT, "shard 00002 of 00004 is missing");
    TRUE_THAT(rename(in_scratch("kept"), in_scratch("classes/convoy-00002-of-00004.tfrecord")) == 0);
    TRUE_THAT(rename(in_scratch("classes/convoy-00003-of-00004.tfrecord"), in_scratch("kept")) == 0);
    FAILS(open_text(in_scratch("classes"), NULL, 0, &d), CVY_E_FORMAT, "shard 00003 of 00004 is missing");
    TRUE_THAT(rename(in_scratch("kept"), in_scratch("classes/convoy-00003-of-00004.tfrecord")) == 0);
    OK(open_text(in_scratch("classes"), NULL, 0, &d));
    TRUE_THAT(!strstr(cvy_dataset_describe(d)->note, "not read")); /* labels.txt is read */
    cvy_dataset_destroy(&d);
    TRUE_THAT(symlink(in_scratch("classes/convoy-00003-of-00004.tfrecord"), in_scratch("classes/val.tfrecord")) == 0 &&
              symlink(in_scratch("classes/convoy-00003-of-00004.tfrecord"), in_scratch("classes/train.tfrecord")) == 0);
    put_file(in_scratch("classes/more.parquet"), "PAR1", 4);
    OK(open_text(in_scratch("classes"), NULL, 0, &d));
    TRUE_THAT(strstr(cvy_dataset_describe(d)->note, "train.tfrecord and val.tfrecord are read as one set") &&
              strstr(cvy_dataset_describe(d)->note, "1 file is not read (more.parquet)"));
    cvy_dataset_destroy(&d);
    TRUE_THAT(unlink(in_scratch("classes/val.tfrecord")) == 0 && unlink(in_scratch("classes/train.tfrecord")) == 0 &&
              unlink(in_scratch("classes/more.parquet")) == 0);
    OK(cvy_file_make_folder(in_scratch("bare")));
    char text[600];
    snprintf(text, sizeof text, "{path: \"%s\", format: tfrecord}", in_scratch("bare"));
    FAILS(open_text(text, NULL, 0, &d), CVY_E_IO, "holds no *.tfrecord");
}

/* ---- records made by hand ---- */

static uint8_t made[1 << 14];
static size_t made_bytes;

static void add_bytes(const void *record, size_t bytes)
{
    uint8_t *at = made + made_bytes;
    TRUE_THAT(made_bytes + bytes + 16 <= sizeof made);
    cvy_tfrecord_put(at, bytes, 8);
    cvy_tfrecord_put(at + 8, cvy_tfrecord_crc(at, 8), 4);
    memcpy(at + 12, record, bytes);
    cvy_tfrecord_put(at + 12 + bytes, cvy_tfrecord_crc(at + 12, bytes), 4);
    made_bytes += bytes + 16;
}

static void add_example(const cvy_new_feature *f, int n)
{
    static uint8_t record[4096];
    TRUE_THAT(cvy_example_bytes(f, n) <= sizeof record);
    cvy_example_put(f, n, record);
    add_bytes(record, cvy_example_bytes(f, n));
}

static const char *put_made(const char *name)
{
    put_file(in_scratch(name), made, made_bytes);
    made_bytes = 0;
    return in_scratch(name);
}

/* Returns {path: <name in the scratch folder>, format: tfrecord, options}, in one of several buffers used in turn. */
static const char *source_of(const char *name, const char *options)
{
    static char ring[4][800];
    static int at;
    char *text = ring[at++ % 4];
    snprintf(text, sizeof ring[0], "{path: \"%s\", format: tfrecord%s%s}", in_scratch(name), *options ? ", " : "",
             options);
    return text;
}

/* Writes three samples: x of four floats, a label, two targets. */
static void make_three(const char *name)
{
    for (int i = 0; i < 3; i++) {
        const float x[] = {(float)i, 0.5f, -1, 8}, y[] = {2, (float)-i};
        const int64_t label = i;
        add_example((cvy_new_feature[]){{"x", CVY_FEATURE_FLOATS, x, 4},
                                        {"label", CVY_FEATURE_INTS, &label, 1},
                                        {"y", CVY_FEATURE_FLOATS, y, 2}},
                    3);
    }
    put_made(name);
}

/* Opens the set and reads all samples. Returns the number of faults (a failed open is one) and checks what was read
 * without a fault. */
static int read_three(const char *name)
{
    cvy_dataset *d = NULL;
    int faults = 0;
    if (open_text(source_of(name, ""), NULL, 0, &d) != CVY_OK)
        return 1;
    TRUE_THAT(cvy_dataset_describe(d)->nfield == 3 && cvy_dataset_describe(d)->nsamples <= 3);
    for (int64_t i = 0; i < cvy_dataset_describe(d)->nsamples; i++) {
        float x[4], y[2];
        int32_t label;
        if (cvy_dataset_read(d, i, 0, (void *const[]){x, &label, y}) != CVY_OK)
            faults++;
        else
            TRUE_THAT(x[0] == (float)i && x[1] == 0.5f && x[2] == -1 && x[3] == 8 && label == i && y[0] == 2 &&
                      y[1] == (float)-i);
    }
    cvy_dataset_destroy(&d);
    return faults;
}

static void look_at_three(const char *name, int bit, void *user)
{
    int *good = user;
    const int faults = read_three(name);
    TRUE_THAT(bit == DAMAGE_CUT || faults > 0);
    *good += faults == 0;
}

static void test_every_byte(void)
{
    char *whole = NULL;
    size_t bytes = 0;
    int good = 0;
    make_three("three.tfrecord");
    TRUE_THAT(read_three("three.tfrecord") == 0);
    OK(cvy_file_read(in_scratch("three.tfrecord"), 1 << 14, &whole, &bytes));
    damage_each_byte("damaged.tfrecord", whole, bytes, look_at_three, &good);
    TRUE_THAT(good == 2); /* cut after the first record and after the second */
    cvy_mem_free(&whole);
}

/* Records with right checksums and wrong content: no byte of an Example may lead to an access outside of it. */
static void test_every_byte_of_an_example(void)
{
    static uint8_t record[4096];
    const float x[] = {1, 2, 3, 4};
    const int64_t label = 300, shape[] = {2, 2};
    const cvy_new_feature f[] = {{"x", CVY_FEATURE_FLOATS, x, 4},
                                 {"label", CVY_FEATURE_INTS, &label, 1},
                                 {"x/shape", CVY_FEATURE_INTS, shape, 2},
                                 {"x/dtype", CVY_FEATURE_BYTES, "f32", 3}};
    const size_t bytes = cvy_example_bytes(f, 4);
    cvy_example_put(f, 4, record);
    for (size_t at = 0; at < bytes; at++) {
        for (int bit = 0; bit < 8; bit++) {
            float out[64];
            int32_t got;
            cvy_dataset *d = NULL;
            record[at] ^= (uint8_t)(1 << bit);
            add_bytes(record, bytes);
            record[at] ^= (uint8_t)(1 << bit);
            add_bytes(record, bytes);
            put_made("strange.tfrecord");
            if (open_text(source_of("strange.tfrecord", ""), NULL, 0, &d) != CVY_OK)
                continue;
            TRUE_THAT(cvy_shape_elems(&cvy_dataset_describe(d)->field[0].shape) <= 64);
            const cvy_status status = cvy_dataset_read(d, 0, 0, (void *const[]){out, &got, out, out});
            TRUE_THAT(status == CVY_OK || status == CVY_E_FORMAT);
            cvy_dataset_destroy(&d);
        }
    }
}

static void test_damage(void)
{
    cvy_dataset *d = NULL;
    float x[4], y[2];
    int32_t label;
    void *const field[] = {x, &label, y};
    make_three("three.tfrecord");
    flip_byte(in_scratch("three.tfrecord"), 3);
    FAILS(open_text(source_of("three.tfrecord", ""), NULL, 0, &d), CVY_E_FORMAT,
          "three.tfrecord, record 0 at byte 0: checksum of the length is");
    flip_byte(in_scratch("three.tfrecord"), 3);
    flip_byte(in_scratch("three.tfrecord"), -6); /* in the last record */
    OK(open_text(source_of("three.tfrecord", ""), NULL, 0, &d));
    OK(cvy_dataset_read(d, 1, 0, field));
    FAILS(cvy_dataset_read(d, 2, 0, field), CVY_E_FORMAT, "three.tfrecord, record 2 at byte");
    FAILS(cvy_dataset_read(d, 2, 0, field), CVY_E_FORMAT, ": checksum ");
    cvy_dataset_destroy(&d);
    make_three("three.tfrecord");
    OK(open_text(source_of("three.tfrecord", "classes: 2"), NULL, 0, &d));
    OK(cvy_dataset_read(d, 1, 0, field));
    FAILS(cvy_dataset_read(d, 2, 0, field), CVY_E_FORMAT, "label 2 is out of range, expected 0 .. 1");
    cvy_dataset_destroy(&d);
    FAILS(open_text(source_of("three.tfrecord", "label: lable"), NULL, 0, &d), CVY_E_FORMAT,
          "record 0 at byte 0: has no feature lable; it has x (floats), label (integers), y (floats)");
    FAILS(open_text(source_of("three.tfrecord", "y: label"), NULL, 0, &d), CVY_E_FORMAT,
          "feature label holds integers, expected floats");
    FAILS(open_text(source_of("three.tfrecord", "shape: [3, 2]"), NULL, 0, &d), CVY_E_FORMAT,
          "feature x has 4 numbers, expected 3x2");
    FAILS(open_text(source_of("three.tfrecord", "image: x, x: y"), NULL, 0, &d), CVY_E_CONFIG, "are both given");
    cvy_tfrecord_put(made, (uint64_t)1 << 40, 8);
    cvy_tfrecord_put(made + 8, cvy_tfrecord_crc(made, 8), 4);
    put_file(in_scratch("huge.tfrecord"), made, 64);
    FAILS(open_text(in_scratch("huge.tfrecord"), NULL, 0, &d), CVY_E_FORMAT,
          "record 0 at byte 0: truncated: a record of 1099511627776 bytes, and the file has 52 more");
    put_file(in_scratch("huge.tfrecord"), made, 11);
    FAILS(open_text(in_scratch("huge.tfrecord"), NULL, 0, &d), CVY_E_FORMAT, "truncated: 11 bytes");
    put_file(in_scratch("empty.tfrecord"), "", 0);
    FAILS(open_text(in_scratch("empty.tfrecord"), NULL, 0, &d), CVY_E_FORMAT, "holds no samples");
    add_bytes("hello, world", 12);
    put_made("hello.tfrecord");
    FAILS(open_text(in_scratch("hello.tfrecord"), NULL, 0, &d), CVY_E_FORMAT, "is not a tf.train.Example");
    add_bytes("", 0);
    put_made("hello.tfrecord");
    FAILS(open_text(in_scratch("hello.tfrecord"), NULL, 0, &d), CVY_E_FORMAT, "without a feature");
}

/* A record that differs from the first is reported when it is read; other records can still be read. */
static void test_strange_records(void)
{
    const float x[] = {1, 2};
    const int64_t label[] = {1, 2}, big = (int64_t)1 << 40;
    const cvy_new_feature f = {"x", CVY_FEATURE_FLOATS, x, 2};
    cvy_dataset *d = NULL;
    float out[2];
    int32_t got;
    void *const field[] = {out, &got};
    add_example((cvy_new_feature[]){f, {"label", CVY_FEATURE_INTS, label, 1}}, 2);
    add_example(&f, 1);
    add_example((cvy_new_feature[]){f, {"label", CVY_FEATURE_INTS, label, 2}}, 2);
    add_example((cvy_new_feature[]){f, {"label", CVY_FEATURE_INTS, &big, 1}}, 2);
    add_example((cvy_new_feature[]){f, {"label", CVY_FEATURE_BYTES, "one", 3}}, 2);
    add_example((cvy_new_feature[]){{"x", CVY_FEATURE_FLOATS, x, 1}, {"label", CVY_FEATURE_INTS, label, 1}}, 2);
    put_made("strange.tfrecord");
    OK(open_text(source_of("strange.tfrecord", ""), NULL, 0, &d));
    TRUE_THAT(cvy_dataset_describe(d)->nclasses == 2);
    OK(cvy_dataset_read(d, 0, 0, field));
    FAILS(cvy_dataset_read(d, 1, 0, field), CVY_E_FORMAT, "has no feature label; it has x (floats)");
    FAILS(cvy_dataset_read(d, 2, 0, field), CVY_E_FORMAT, "feature label has 2 numbers, expected one label");
    FAILS(cvy_dataset_read(d, 3, 0, field), CVY_E_FORMAT, "label 1099511627776 is out of range");
    FAILS(cvy_dataset_read(d, 4, 0, field), CVY_E_FORMAT, "feature label holds bytes, expected numbers");
    FAILS(cvy_dataset_read(d, 5, 0, field), CVY_E_FORMAT, "f32 of 1, expected f32 of 2");
    cvy_dataset_destroy(&d);
}

/* Labels that are floats are taken if they are whole. Raw bytes may be booleans or half floats. */
static void test_kinds_of_numbers(void)
{
    const float x[] = {1, 2}, label[] = {1, 0.5f};
    const uint8_t raw[] = {0, 1, 0, 0x3C}; /* booleans; f16: 2^-16 and 1 */
    cvy_dataset *d = NULL;
    float out[4];
    int32_t got = -1;
    for (int i = 0; i < 2; i++)
        add_example((cvy_new_feature[]){{"x", CVY_FEATURE_FLOATS, x, 2}, {"label", CVY_FEATURE_FLOATS, &label[i], 1}},
                    2);
    put_made("reals.tfrecord");
    OK(open_text(source_of("reals.tfrecord", ""), NULL, 0, &d));
    OK(cvy_dataset_read(d, 0, 0, (void *[]){out, &got}));
    TRUE_THAT(got == 1);
    FAILS(cvy_dataset_read(d, 1, 0, (void *[]){out, &got}), CVY_E_FORMAT, "the label 0.5 is not a whole number");
    cvy_dataset_destroy(&d);
    add_example((cvy_new_feature[]){{"x", CVY_FEATURE_BYTES, raw, sizeof raw}}, 1);
    put_made("raw.tfrecord");
    OK(open_text(source_of("raw.tfrecord", "dtype: bool, shape: [1, 2, 2]"), NULL, 0, &d));
    OK(cvy_dataset_read(d, 0, 0, (void *[]){out}));
    TRUE_THAT(out[0] == 0 && out[1] == 1 && out[2] == 0 && out[3] == 1);
    cvy_dataset_destroy(&d);
    OK(open_text(source_of("raw.tfrecord", "dtype: f16"), NULL, 0, &d));
    OK(cvy_dataset_read(d, 0, 0, (void *[]){out}));
    TRUE_THAT(out[0] == 0x1p-16f && out[1] == 1);
    cvy_dataset_destroy(&d);
}

/* Raw pixels, integers, and the options that say what they are. */
static void test_kinds_of_input(void)
{
    const uint8_t pixels[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}; /* [2, 2, 3] */
    const int64_t numbers[] = {3, -1, 1 << 20}, label = 1;
    cvy_dataset *d = NULL;
    float x[12];
    int32_t got;
    void *const field[] = {x, &got};
    const cvy_new_feature raw[] = {{"image_raw", CVY_FEATURE_BYTES, pixels, sizeof pixels},
                                   {"label", CVY_FEATURE_INTS, &label, 1}};
    add_example(raw, 2);
    put_made("raw.tfrecord");
    FAILS(open_text(source_of("raw.tfrecord", ""), NULL, 0, &d), CVY_E_FORMAT,
          "if these are raw pixels, give their shape");
    FAILS(open_text(source_of("raw.tfrecord", "shape: [4, 4]"), NULL, 0, &d), CVY_E_FORMAT,
          "feature image_raw has 12 bytes, expected 4x4x1 pixels");
    OK(open_text(source_of("raw.tfrecord", "shape: [2, 2, 3], first_label: 1"), NULL, 0, &d));
    TRUE_THAT(strcmp(cvy_shape_text(&cvy_dataset_describe(d)->field[0].shape), "3x2x2") == 0);
    OK(cvy_dataset_read(d, 0, 0, field));
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < 4; i++)
            TRUE_THAT(x[c * 4 + i] == (float)pixels[3 * i + c] * (1.0f / 255.0f));
    TRUE_THAT(got == 0);
    cvy_dataset_destroy(&d);
    OK(open_text(source_of("raw.tfrecord", "x: image_raw, dtype: i16, shape: [2, 3], label: none"), NULL, 0, &d));
    TRUE_THAT(cvy_dataset_describe(d)->nfield == 1);
    OK(cvy_dataset_read(d, 0, 0, field));
    TRUE_THAT(x[0] == 0x0201 && x[5] == 0x0C0B);
    cvy_dataset_destroy(&d);
    OK(open_text(
        source_of("raw.tfrecord", "x: image_raw, dtype: i16, shape: [1, 3, 2], label: none, channels_last: true"), NULL,
        0, &d));
    TRUE_THAT(strcmp(cvy_shape_text(&cvy_dataset_describe(d)->field[0].shape), "2x1x3") == 0);
    OK(cvy_dataset_read(d, 0, 0, field));
    TRUE_THAT(x[0] == 0x0201 && x[1] == 0x0605 && x[2] == 0x0A09 && x[3] == 0x0403 && x[5] == 0x0C0B);
    cvy_dataset_destroy(&d);
    OK(open_text(source_of("raw.tfrecord", "x: image_raw, shape: [3, 2, 2], label: none, channels_last: true"), NULL, 0,
                 &d));
    OK(cvy_dataset_read(d, 0, 0, field));
    TRUE_THAT(x[1] == 3 * (1.0f / 255.0f) && x[6] == 2 * (1.0f / 255.0f));
    cvy_dataset_destroy(&d);
    FAILS(
        open_text(source_of("raw.tfrecord", "x: image_raw, shape: 12, label: none, channels_last: true"), NULL, 0, &d),
        CVY_E_CONFIG, "channels_last: feature image_raw has one axis");
    add_example((cvy_new_feature[]){{"n", CVY_FEATURE_INTS, numbers, 3}}, 1);
    put_made("ints.tfrecord");
    FAILS(open_text(source_of("ints.tfrecord", ""), NULL, 0, &d), CVY_E_FORMAT, "it has n (integers)");
    OK(open_text(source_of("ints.tfrecord", "x: n"), NULL, 0, &d));
    OK(cvy_dataset_read(d, 0, 0, field));
    TRUE_THAT(x[0] == 3 && x[1] == -1 && x[2] == 1 << 20);
    cvy_dataset_destroy(&d);
}

/* ---- files that are compressed as a whole ---- */

#if CVY_HAVE_LIBDEFLATE
/* Compresses a file, each half as a member of its own. */
static size_t pack(const char *path, uint8_t *to)
{
    cvy_bytes member = {0};
    char *whole = NULL;
    size_t bytes = 0, all = 0;
    OK(cvy_file_read(path, 1 << 14, &whole, &all));
    for (int half = 0; half < 2; half++) {
        const size_t from = half ? all / 2 : 0, end = half ? all : all / 2;
        OK(cvy_deflate_gzip(whole + from, end - from, &member));
        memcpy(to + bytes, member.data, member.bytes);
        bytes += member.bytes;
    }
    cvy_mem_free(&member.data);
    cvy_mem_free(&whole);
    return bytes;
}

/* What is cut is refused; what is changed is refused too, or is in the head of a member and does not matter. */
static void look_at_packed(const char *name, int bit, void *user)
{
    int *good = user;
    const int faults = read_three(name);
    TRUE_THAT(bit != DAMAGE_CUT || faults > 0);
    *good += faults == 0;
}

static void test_packed(void)
{
    static uint8_t packed[1 << 14];
    cvy_dataset *d = NULL;
    int good = 0;
    make_three("three.tfrecord");
    const size_t bytes = pack(in_scratch("three.tfrecord"), packed);
    put_file(in_scratch("three.tfrecord.gz"), packed, bytes);
    TRUE_THAT(read_three("three.tfrecord.gz") == 0);
    put_file(in_scratch("three-00000-of-00001"), packed, bytes); /* TensorFlow's writer changes no name */
    TRUE_THAT(read_three("three-00000-of-00001") == 0);
    damage_each_byte("damaged.tfrecord", packed, bytes, look_at_packed, &good);
    TRUE_THAT(good > 0 && good <= 2 * 8 * 7); /* time, system, level and one flag of two heads */
    put_file(in_scratch("cut.tfrecord.gz"), packed, bytes - 9);
    FAILS(open_text(in_scratch("cut.tfrecord.gz"), NULL, 0, &d), CVY_E_FORMAT, "truncated or damaged");
    put_file(in_scratch("more.tfrecord.gz"), packed, bytes + 4);
    FAILS(open_text(in_scratch("more.tfrecord.gz"), NULL, 0, &d), CVY_E_FORMAT, "do not unpack");
    OK(cvy_file_make_folder(in_scratch("both")));
    TRUE_THAT(link(in_scratch("three.tfrecord"), in_scratch("both/a.tfrecord")) == 0 &&
              link(in_scratch("three.tfrecord"), in_scratch("both/a.tfrecord-1.tfrecord")) == 0 &&
              link(in_scratch("three.tfrecord.gz"), in_scratch("both/a.tfrecord.gz")) == 0);
    FAILS(open_text(in_scratch("both"), NULL, 0, &d), CVY_E_FORMAT, "is there too without compression");
}

static void *read_in_leaps(void *set)
{
    cvy_raw raw = {0};
    for (int i = 0; i < 20; i++)
        OK(cvy_dataset_read_raw(set, i * 151 % 400, &raw));
    cvy_raw_free(&raw);
    return NULL;
}

/* More than the memory that the set may take: files are dropped and unpacked again, by any thread. */
static void test_packed_files(void)
{
    static const char from[] = "{format: synthetic, shape: [3, 32, 32], samples: 400}";
    const int gzip = 1;
    pthread_t thread[3];
    cvy_dataset *d = NULL, *p = NULL;
    char text[600];
    OK(open_text(from, NULL, 0, &d));
    write_set(d, in_scratch("gzip"), 5, &gzip);
    TRUE_THAT(cvy_file_exists(in_scratch("gzip/convoy-00004-of-00005.tfrecord.gz")));
    snprintf(text, sizeof text, "{path: \"%s\", cache_mb: 1, index: \"%s\"}", in_scratch("gzip"),
             in_scratch("gzindex"));
    for (int turn = 0; turn < 2; turn++) { /* the second one reads the index */
        OK(open_text(text, NULL, 0, &p));
        TRUE_THAT(strstr(cvy_dataset_describe(p)->note, "they are unpacked again and again"));
        check_same(d, p);
        for (int i = 0; i < CVY_COUNT(thread); i++)
            TRUE_THAT(pthread_create(&thread[i], NULL, read_in_leaps, p) == 0);
        for (int i = 0; i < CVY_COUNT(thread); i++)
            TRUE_THAT(pthread_join(thread[i], NULL) == 0);
        cvy_dataset_destroy(&p);
    }
    cvy_dataset_destroy(&d);
    round_trip_with("{format: synthetic, shape: [9], samples: 4, targets: 3}", in_scratch("gzempty"), 5, &gzip);
    snprintf(text, sizeof text, "{path: \"%s\"}", in_scratch("gzempty"));
    OK(open_text(text, NULL, 0, &d));
    TRUE_THAT(strstr(cvy_dataset_describe(d)->note, "each rank unpacks them in memory"));
    cvy_dataset_destroy(&d);
}
#else
static void test_packed(void)
{
    cvy_dataset *d = NULL;
    put_file(in_scratch("three.tfrecord.gz"), "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", 13);
    FAILS(open_text(in_scratch("three.tfrecord.gz"), NULL, 0, &d), CVY_E_UNSUPPORTED, "libdeflate is not part");
}

static void test_packed_files(void)
{
}
#endif

/* ---- files that TensorFlow wrote ---- */

static const char *made_by_tensorflow(const char *name, const char *options)
{
    static char text[1200];
    const char *source = getenv("CONVOY_SOURCE");
    snprintf(text, sizeof text, "{path: \"%s/tests/data/files/%s\"%s%s}", source ? source : ".", name,
             *options ? ", " : "", options);
    return text;
}

static void test_tensorflow_numbers(void)
{
    cvy_dataset *d = NULL;
    float x[6], y[2], weight;
    int32_t label;
    OK(open_text(made_by_tensorflow("numbers.tfrecord", ""), NULL, 0, &d));
    TRUE_THAT(cvy_dataset_describe(d)->nsamples == 5 && cvy_dataset_describe(d)->nclasses == 3 &&
              cvy_dataset_describe(d)->nfield == 4);
    for (int i = 0; i < 5; i++) {
        OK(cvy_dataset_read(d, i, 0, (void *const[]){x, &label, y, &weight}));
        for (int k = 0; k < 6; k++)
            TRUE_THAT(x[k] == (float)i + (float)k / 8);
        TRUE_THAT(label == i % 3 && y[0] == (float)i && y[1] == (float)-i && weight == 1 + (float)i / 4);
    }
    cvy_dataset_destroy(&d);
    OK(open_text(made_by_tensorflow("names.tfrecord", ""), NULL, 0, &d));
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    TRUE_THAT(info->nclasses == 2 && strcmp(info->class_name[0], "apple") == 0 &&
              strcmp(info->class_name[1], "pear") == 0 && strcmp(cvy_shape_text(&info->field[0].shape), "2x3") == 0);
    for (int i = 0; i < 3; i++) {
        OK(cvy_dataset_read(d, i, 0, (void *const[]){x, &label}));
        TRUE_THAT(label == (i != 1) && x[0] == (float)(100 * i - 3) && x[5] == (float)(100 * i + 2));
    }
    cvy_dataset_destroy(&d);
}

#if CVY_HAVE_JPEG && CVY_HAVE_SPNG
static void test_pictures(void)
{
    cvy_dataset *d = NULL;
    static float x[3 * 12 * 10];
    int32_t label;
    OK(cvy_file_make_folder(in_scratch("set/a")));
    OK(cvy_file_make_folder(in_scratch("set/b")));
    put_jpeg(in_scratch("set/a/1.jpg"), 0, 20, 24, 3);
    put_png(in_scratch("set/a/2.png"), 1, 31, 17, 3);
    put_jpeg(in_scratch("set/b/1.jpg"), 2, 16, 16, 1);
    round_trip(in_scratch("set"), in_scratch("encoded"), 2);
    OK(open_text(made_by_tensorflow("pictures.tfrecord", "first_label: 1"), NULL, 0, &d));
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    TRUE_THAT(info->nsamples == 4 && info->nclasses == 3 && strcmp(info->class_name[2], "tulip") == 0 &&
              strcmp(cvy_shape_text(&info->field[0].shape), "3x12x10") == 0);
    for (int i = 0; i < 4; i++) {
        OK(cvy_dataset_read(d, i, 0, (void *const[]){x, &label}));
        TRUE_THAT(label == i % 3);
        for (int k = 0; k < 3 * 12 * 10; k++) {
            const float want = picture_value(i, k / 120, k / 10 % 12, k % 10), off = x[k] * 255 - want;
            TRUE_THAT(i % 2 ? off > -0.01f && off < 0.01f : off > -12 && off < 12);
        }
    }
    cvy_dataset_destroy(&d);
}
#else
static void test_pictures(void)
{
}
#endif

/* ---- the kept index ---- */

/* Writes "data/a.tfrecord" and "data/b.tfrecord" with four samples each, whose classes have these names. */
static void put_named(const char *names)
{
    OK(cvy_file_make_folder(in_scratch("data")));
    for (int i = 0; i < 8; i++) {
        const float x = (float)i;
        add_example((cvy_new_feature[]){{"x", CVY_FEATURE_FLOATS, &x, 1}, {"label", CVY_FEATURE_BYTES, names + i, 1}},
                    2);
        if (i % 4 == 3)
            put_made(i == 3 ? "data/a.tfrecord" : "data/b.tfrecord");
    }
}

static cvy_status open_kept(const char *options, cvy_dataset **out)
{
    char text[700];
    snprintf(text, sizeof text, "index: \"%s\"%s", in_scratch("index"), options);
    return open_text(source_of("data", text), NULL, 0, out);
}

/* Checks each sample's class by name in the kept index and in what is read. `damaged` is a sample that cannot be read,
 * or -1. */
static void expect_names(const char *options, const char *names, int damaged)
{
    cvy_dataset *d = NULL;
    float x;
    int32_t label = -1, got = -1;
    OK(open_kept(options, &d));
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    TRUE_THAT(info->nsamples == 8 && info->nfield == 2);
    for (int i = 0; i < 8; i++) {
        OK(cvy_dataset_label(d, i, &label));
        TRUE_THAT(info->class_name[label][0] == names[i] && info->class_name[label][1] == 0);
        if (i == damaged) {
            FAILS(cvy_dataset_read(d, i, 0, (void *const[]){&x, &got}), CVY_E_FORMAT, "checksum");
            continue;
        }
        OK(cvy_dataset_read(d, i, 0, (void *const[]){&x, &got}));
        TRUE_THAT(x == (float)i && got == label);
    }
    cvy_dataset_destroy(&d);
}

static int64_t files_in(const char *folder, char ***name_out, cvy_pool *pool)
{
    int64_t n = 0;
    OK(cvy_file_list(pool, in_scratch(folder), name_out, &n));
    return n;
}

static void test_kept(void)
{
    cvy_pool *pool = NULL;
    cvy_dataset *d = NULL;
    char **name = NULL, path[64];
    struct stat st;
    OK(cvy_pool_create(&pool));
    put_named("bcabcaab");
    expect_names("", "bcabcaab", -1);
    TRUE_THAT(files_in("index", &name, pool) == 1);
    snprintf(path, sizeof path, "index/%s", name[0]);
    expect_names("", "bcabcaab", -1);
    /* A record is damaged while size, time and ends of the file stay the same. Opening does not notice it, so its label
     * is known until it is read. */
    TRUE_THAT(stat(in_scratch("data/a.tfrecord"), &st) == 0);
    const long second = st.st_size / 4 + 20;
    flip_byte(in_scratch("data/a.tfrecord"), second);
    TRUE_THAT(utimensat(AT_FDCWD, in_scratch("data/a.tfrecord"), (struct timespec[]){st.st_atim, st.st_mtim}, 0) == 0);
    expect_names("", "bcabcaab", 1);
    flip_byte(in_scratch("data/a.tfrecord"), second);
    TRUE_THAT(utimensat(AT_FDCWD, in_scratch("data/a.tfrecord"), (struct timespec[]){st.st_atim, st.st_mtim}, 0) == 0);
    /* A damaged index is ignored and replaced by a good one. */
    for (long at = 0; at < 200; at += 25) {
        flip_byte(in_scratch(path), at);
        expect_names("", "bcabcaab", -1);
        put_file(in_scratch(path), "CONT", (size_t)(at % 5));
        expect_names("", "bcabcaab", -1);
    }
    TRUE_THAT(stat(in_scratch(path), &st) == 0 && st.st_size > 200);
    /* Another set of the same size, with another time. */
    put_named("ccabbaab");
    TRUE_THAT(
        utimensat(AT_FDCWD, in_scratch("data/b.tfrecord"), (struct timespec[]){{.tv_sec = 9}, {.tv_sec = 9}}, 0) == 0);
    expect_names("", "ccabbaab", -1);
    expect_names("", "ccabbaab", -1);
    TRUE_THAT(files_in("index", &name, pool) == 1);
    OK(open_kept(", label: none", &d)); /* other features: an index of its own */
    TRUE_THAT(cvy_dataset_describe(d)->nclasses == 0);
    cvy_dataset_destroy(&d);
    TRUE_THAT(files_in("index", &name, pool) == 2);
    char options[700];
    snprintf(options, sizeof options, "index: \"%s\"", in_scratch("data/a.tfrecord/below"));
    FAILS(open_text(source_of("data", options), NULL, 0, &d), CVY_E_IO, "a.tfrecord");
    cvy_pool_destroy(&pool);
}

/* Names of numbered classes are restored too, even with gaps. */
static void test_kept_numbers(void)
{
    static const int64_t label[] = {3, 1, 3, 0};
    OK(cvy_file_remove_tree(in_scratch("data")));
    OK(cvy_file_make_folder(in_scratch("data")));
    for (int i = 0; i < 4; i++) {
        const char *text = label[i] == 0 ? "zero" : label[i] == 3 ? "three" : "";
        const float x = (float)i;
        add_example((cvy_new_feature[]){{"x", CVY_FEATURE_FLOATS, &x, 1},
                                        {"image/class/label", CVY_FEATURE_INTS, &label[i], 1},
                                        {"image/class/text", CVY_FEATURE_BYTES, text, (int64_t)strlen(text)}},
                    3);
    }
    put_made("data/a.tfrecord");
    uint64_t hash = 0;
    for (int turn = 0; turn < 2; turn++) {
        cvy_dataset *d = NULL;
        OK(open_kept("", &d));
        const cvy_dataset_info *info = cvy_dataset_describe(d);
        TRUE_THAT(info->nclasses == 4 && strcmp(info->class_name[0], "zero") == 0 &&
                  strcmp(info->class_name[1], "1") == 0 && strcmp(info->class_name[3], "three") == 0);
        TRUE_THAT(turn == 0 || cvy_dataset_hash(d) == hash);
        hash = cvy_dataset_hash(d);
        cvy_dataset_destroy(&d);
    }
}

int main(void)
{
    scratch_make();
    test_round_trips();
    test_paths();
    test_every_byte();
    test_every_byte_of_an_example();
    test_damage();
    test_strange_records();
    test_kinds_of_numbers();
    test_kinds_of_input();
    test_packed();
    test_packed_files();
    test_tensorflow_numbers();
    test_pictures();
    test_kept();
    test_kept_numbers();
    scratch_remove();
    return 0;
}
