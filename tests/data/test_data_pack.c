/* SPDX-License-Identifier: BSD-3-Clause */
/* rows: clang asan */
/* test_data_pack.c: packed sets: what is read back equals the source to the bit; flipped bits, truncation, invalid
 * indices and interrupted packing are reported. */
#include <stdio.h>

#include "data/data_convert.h"
#include "test_data_pictures.h"

enum { ELEMS = 3 * 8 * 8 };

static void check_same(cvy_dataset *a, cvy_dataset *b)
{
    const cvy_dataset_info *i = cvy_dataset_describe(a), *j = cvy_dataset_describe(b);
    static float x[2][4096], y[2][16];
    int32_t label[2];
    TRUE_THAT(i->nsamples == j->nsamples && i->nfield == j->nfield && i->nclasses == j->nclasses);
    for (int64_t c = 0; c < i->nclasses; c++)
        TRUE_THAT(strcmp(i->class_name[c], j->class_name[c]) == 0);
    for (int f = 0; f < i->nfield; f++)
        TRUE_THAT(strcmp(i->field[f].name, j->field[f].name) == 0 &&
                  cvy_shape_equal(&i->field[f].shape, &j->field[f].shape));
    for (int64_t n = 0; n < i->nsamples; n++) {
        for (int k = 0; k < 2; k++) {
            void *const field[] = {x[k], i->nclasses ? (void *)&label[k] : (void *)y[k]};
            memset(x[k], 0, sizeof x[k]);
            memset(y[k], 0, sizeof y[k]);
            label[k] = 0;
            OK(cvy_dataset_read(k ? b : a, n, 2, field));
        }
        TRUE_THAT(memcmp(x[0], x[1], sizeof x[0]) == 0 && memcmp(y[0], y[1], sizeof y[0]) == 0 &&
                  (!i->nclasses || label[0] == label[1]));
    }
}

static cvy_comm *alone;
static cvy_convert_report report;

static cvy_status pack(cvy_dataset *d, const char *folder, cvy_convert_opts opts)
{
    opts.format = "pack";
    return cvy_convert(d, alone, folder, &opts, &report);
}

static void round_trip(const char *source, const char *augment, const char *folder, int64_t parts)
{
    cvy_dataset *d = NULL, *p = NULL;
    OK(open_text(source, augment, 1, &d));
    OK(pack(d, folder, (cvy_convert_opts){.pieces = parts, .check = 1}));
    TRUE_THAT(report.nsamples == cvy_dataset_describe(d)->nsamples && report.nbad == 0 && report.npieces == parts);
    OK(open_text(folder, augment, 1, &p));
    TRUE_THAT(strcmp(cvy_dataset_describe(p)->format, "pack") == 0);
    check_same(d, p);
    cvy_dataset_destroy(&p);
    cvy_dataset_destroy(&d);
}

static void test_damage(void)
{
    cvy_dataset *d = NULL, *p = NULL;
    static float x[ELEMS];
    int32_t label;
    void *const field[] = {x, &label};
    OK(open_text("{format: synthetic, shape: [3, 8, 8], samples: 5}", NULL, 0, &d));
    const char *folder = in_scratch("damage");
    OK(pack(d, folder, (cvy_convert_opts){.pieces = 3}));
    FAILS(pack(d, folder, (cvy_convert_opts){.pieces = 3}), CVY_E_CONFIG, "is not empty");
    flip_byte(in_scratch("damage/part-00001.cvy"), 300);
    OK(open_text(in_scratch("damage"), NULL, 0, &p));
    OK(cvy_dataset_read(p, 1, 0, field));
    FAILS(cvy_dataset_read(p, 2, 0, field), CVY_E_FORMAT, "damage/part-00001.cvy, record 2 at byte 0: checksum");
    flip_byte(in_scratch("damage/part-00001.cvy"), 300);
    OK(cvy_dataset_read(p, 2, 0, field));
    cvy_dataset_destroy(&p);
    flip_byte(in_scratch("damage/index.bin"), 40);
    FAILS(open_text(in_scratch("damage"), NULL, 0, &p), CVY_E_FORMAT, "index.bin: checksum");
    flip_byte(in_scratch("damage/index.bin"), 40);
    TRUE_THAT(truncate(in_scratch("damage/part-00002.cvy"), 100) == 0);
    FAILS(open_text(in_scratch("damage"), NULL, 0, &p), CVY_E_FORMAT,
          "part-00002.cvy: 100 bytes, expected 824: truncated");
    TRUE_THAT(truncate(in_scratch("damage/index.bin"), 100) == 0);
    TRUE_THAT(truncate(in_scratch("damage/part-00002.cvy"), 824) == 0);
    FAILS(open_text(in_scratch("damage"), NULL, 0, &p), CVY_E_FORMAT, "index.bin: 100 bytes, expected 160");
    TRUE_THAT(unlink(in_scratch("damage/part-00000.cvy")) == 0);
    FAILS(open_text(in_scratch("damage"), NULL, 0, &p), CVY_E_IO, "part-00000.cvy: cannot be opened");
    put_file(in_scratch("damage/pack.json"), "{\"format\": \"convoy-pack\", \"version\": 1}", 39);
    FAILS(open_text(in_scratch("damage"), NULL, 0, &p), CVY_E_FORMAT, "pack.json: has no \"samples\"");
    static const char *const shapes[] = {"4294967296x4294967296", "65536x65536"}, *const words[] = {"can be counted",
                                                                                                    "less than 4 GiB"};
    for (int i = 0; i < 2; i++) {
        char text[256];
        const int n =
            snprintf(text, sizeof text, "{format: convoy-pack, version: 2, samples: 1, x_dtype: u8, x_shape: \"%s\"}",
                     shapes[i]);
        put_file(in_scratch("damage/pack.json"), text, (size_t)n);
        FAILS(open_text(in_scratch("damage"), NULL, 0, &p), i == 0 ? CVY_E_ARGUMENT : CVY_E_FORMAT, words[i]);
    }
    TRUE_THAT(unlink(in_scratch("damage/pack.json")) == 0);
    FAILS(open_text("{format: pack, path: /nowhere}", NULL, 0, &p), CVY_E_IO, "not a packed set");
    cvy_dataset_destroy(&d);
}

/* A bad sample stops packing and leaves nothing that looks like a set; with skip_bad it is left out. */
static void test_bad_source(void)
{
    enum { RECORD = 3073 };
    static uint8_t bytes[3 * RECORD];
    bytes[RECORD] = 77;
    put_file(in_scratch("data_batch_1.bin"), bytes, sizeof bytes);
    cvy_dataset *d = NULL, *p = NULL;
    OK(open_text(in_scratch("data_batch_1.bin"), NULL, 0, &d));
    FAILS(pack(d, in_scratch("stopped"), (cvy_convert_opts){.pieces = 3}), CVY_E_FORMAT,
          "data_batch_1.bin, record 1: label 77");
    TRUE_THAT(open_text(in_scratch("stopped"), NULL, 0, &p) != CVY_OK);
    /* Packing again keeps the first piece and writes the others. */
    OK(pack(d, in_scratch("stopped"), (cvy_convert_opts){.pieces = 3, .skip_bad = 1}));
    TRUE_THAT(report.nkept == 1 && report.npieces == 3);
    TRUE_THAT(report.nsamples == 2 && report.nbad == 1);
    OK(open_text(in_scratch("stopped"), NULL, 0, &p));
    TRUE_THAT(cvy_dataset_describe(p)->nsamples == 2);
    cvy_dataset_destroy(&p);
    cvy_dataset_destroy(&d);
}

/* Opens a set as further data of the first, and reads x and y of sample 1. */
static cvy_status read_like(cvy_dataset *first, const char *source, float *x, float *y, const char **note_out)
{
    const cvy_data_form form = cvy_dataset_form(first);
    cvy_dataset *d = NULL;
    static char note[512];
    cvy_tree *tree = NULL;
    cvy_pool *pool = NULL;
    OK(cvy_pool_create(&pool));
    OK(cvy_tree_parse_text(pool, "source", source, strlen(source), &tree));
    const cvy_status status = cvy_dataset_open_like(tree, NULL, 0, 1, &form, &d);
    if (status == CVY_OK) {
        snprintf(note, sizeof note, "%s", cvy_dataset_describe(d)->note ? cvy_dataset_describe(d)->note : "");
        OK(cvy_dataset_read(d, 1, 0, (void *const[]){x, y}));
    }
    *note_out = note;
    cvy_dataset_destroy(&d);
    cvy_pool_destroy(&pool);
    return status;
}

/* The names of columns are kept, and further sets are read in the order of the training data, as tables are. */
static void test_columns(void)
{
    static const struct {
        const char *lines, *words; /* a table to be packed; what is said, or the fault */
        int fits;
    } t[] = {
        {"a,b,p,q\n1,2,3,4\n5,6,7,8\n", "", 1},
        {"q,b,a,p\n4,2,1,3\n8,6,5,7\n", "", 1},
        {"q,b,c,a,p\n4,2,0,1,3\n8,6,9,5,7\n", "of 3 columns those of the training data are read: a, b", 1},
        {"c,b,p,q\n1,2,3,4\n5,6,7,8\n", "the columns of x are c, b, and those of the training data are a, b", 0},
        {"a,b,r,p,q\n1,2,9,3,4\n5,6,9,7,8\n", "of 3 columns those of the training data are read: a, b", 1},
    };
    cvy_dataset *first = NULL, *d = NULL;
    const char *note = NULL;
    char folder[32];
    float x[3], y[2];
    for (int i = 0; i < CVY_COUNT(t); i++) {
        char source[600];
        put_file(in_scratch("columns.csv"), t[i].lines, strlen(t[i].lines));
        snprintf(source, sizeof source, "{path: %s, y: [%s]}", in_scratch("columns.csv"), i ? "q, p" : "p, q");
        snprintf(folder, sizeof folder, "columns-%d", i);
        OK(open_text(source, NULL, 0, &d));
        OK(pack(d, in_scratch(folder), (cvy_convert_opts){0}));
        cvy_dataset_destroy(&d);
        if (i == 0)
            OK(open_text(in_scratch(folder), NULL, 0, &first));
        if (!t[i].fits) {
            FAILS(read_like(first, in_scratch(folder), x, y, &note), CVY_E_CONFIG, t[i].words);
            continue;
        }
        OK(read_like(first, in_scratch(folder), x, y, &note));
        TRUE_THAT(x[0] == 5 && x[1] == 6 && y[0] == 7 && y[1] == 8);
        TRUE_THAT(*t[i].words ? strstr(note, t[i].words) != NULL : !*note);
    }
    /* As older versions wrote it. */
    static const char old[] = "{format: convoy-pack, version: 2, samples: 2, x_dtype: f32, x_shape: \"2\", "
                              "varying: false, weight: false, y_shape: \"2\", index_crc32c: %s, part_bytes: [%s]}";
    char *text = NULL, meta[400], crc[16], bytes[16];
    size_t length = 0;
    OK(cvy_file_read(in_scratch("columns-1/pack.json"), 4096, &text, &length));
    TRUE_THAT(sscanf(strstr(text, "index_crc32c"), "index_crc32c\": %15[0-9]", crc) == 1 &&
              sscanf(strstr(text, "part_bytes"), "part_bytes\": [%15[0-9]", bytes) == 1);
    snprintf(meta, sizeof meta, old, crc, bytes);
    put_file(in_scratch("columns-1/pack.json"), meta, strlen(meta));
    cvy_mem_free(&text);
    OK(read_like(first, in_scratch("columns-1"), x, y, &note));
    TRUE_THAT(x[0] == 6 && strstr(note, "has no names of columns: its numbers are taken in the order of the training"));
    cvy_dataset_destroy(&first);
}

#if CVY_HAVE_JPEG && CVY_HAVE_SPNG
static void test_pictures(void)
{
    OK(cvy_file_make_folder(in_scratch("set/a")));
    OK(cvy_file_make_folder(in_scratch("set/b")));
    put_jpeg(in_scratch("set/a/1.jpg"), 0, 20, 24, 3);
    put_png(in_scratch("set/a/2.png"), 1, 31, 17, 3);
    put_jpeg(in_scratch("set/b/1.jpg"), 2, 16, 16, 1);
    round_trip(in_scratch("set"), "[{resize: 12}, mirror]", in_scratch("encoded"), 1);
    cvy_dataset *d = NULL, *p = NULL;
    OK(open_text(in_scratch("set"), NULL, 0, &d));
    OK(pack(d, in_scratch("resized"), (cvy_convert_opts){.resize_h = 12, .resize_w = 12}));
    OK(open_text(in_scratch("resized"), NULL, 0, &p));
    TRUE_THAT(strcmp(cvy_shape_text(&cvy_dataset_describe(p)->field[0].shape), "3x12x12") == 0);
    cvy_dataset_destroy(&p);
    cut_file(in_scratch("set/b/1.jpg"), 20);
    FAILS(pack(d, in_scratch("checked"), (cvy_convert_opts){.check = 1}), CVY_E_FORMAT, "set/b/1.jpg: damaged JPEG");
    cvy_dataset_destroy(&d);
}
#else
static void test_pictures(void)
{
}
#endif

int main(void)
{
    scratch_make();
    OK(cvy_comm_create_self(&alone));
    round_trip("{format: synthetic, shape: [3, 8, 8], samples: 23}", "[{random_crop: {pad: 1}}]", in_scratch("p1"), 1);
    round_trip("{format: synthetic, shape: [3, 8, 8], samples: 23}", NULL, in_scratch("p2"), 6);
    round_trip("{format: synthetic, shape: [9], samples: 4, targets: 3}", NULL, in_scratch("p3"), 4);
    test_damage();
    test_bad_source();
    test_columns();
    test_pictures();
    alone->ops->destroy(alone);
    scratch_remove();
    return 0;
}
