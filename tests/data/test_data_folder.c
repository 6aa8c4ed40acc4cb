/* SPDX-License-Identifier: BSD-3-Clause */
/* rows: clang asan */
/* test_data_folder.c: the folder reader and both decoders: classes, channels, varying sizes, and a message for every
 * kind of damage. */
#include "test_data_pictures.h"

#if CVY_HAVE_JPEG && CVY_HAVE_SPNG
#include <math.h>
#include <stdio.h>

static float x[3 * 64 * 64];
static int32_t label;
static void *const field[] = {x, &label};

static void check_pixels(int which, int H, int W, int channels, double tolerance)
{
    for (int c = 0; c < 3; c++)
        for (int y = 0; y < H; y++)
            for (int i = 0; i < W; i++)
                TRUE_THAT(fabs(x[(c * H + y) * W + i] * 255 - picture_value(which, channels == 1 ? 0 : c, y, i)) <=
                          tolerance);
}

static void test_classes(void)
{
    cvy_dataset *d = NULL;
    OK(cvy_file_make_folder(in_scratch("set/dog")));
    OK(cvy_file_make_folder(in_scratch("set/cat")));
    put_jpeg(in_scratch("set/cat/2.jpg"), 1, 12, 16, 3);
    put_png(in_scratch("set/cat/1.png"), 0, 12, 16, 3);
    put_png(in_scratch("set/cat/alpha.PNG"), 4, 12, 16, 4);
    put_jpeg(in_scratch("set/dog/3.JPEG"), 2, 12, 16, 1);
    put_png(in_scratch("set/dog/4.png"), 3, 12, 16, 1);
    put_file(in_scratch("set/README"), "hello", 5);
    OK(open_text(in_scratch("set"), NULL, 0, &d));
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    TRUE_THAT(info->nsamples == 5 && info->nclasses == 2 && strcmp(info->class_name[0], "cat") == 0 &&
              strcmp(info->class_name[1], "dog") == 0);
    TRUE_THAT(strcmp(cvy_shape_text(&info->field[0].shape), "3x12x16") == 0 && strcmp(info->format, "folder") == 0);
    static const struct {
        int which, channels, label, tolerance;
    } want[] = {{0, 3, 0, 0}, {1, 3, 0, 6}, {4, 4, 0, 0}, {2, 1, 1, 2}, {3, 1, 1, 0}};
    for (int i = 0; i < 5; i++) {
        OK(cvy_dataset_read(d, i, 0, field));
        TRUE_THAT(label == want[i].label);
        check_pixels(want[i].which, 12, 16, want[i].channels, want[i].tolerance + 1e-3);
    }
    cvy_dataset_destroy(&d);
    char text[600];
    snprintf(text, sizeof text, "{path: \"%s\", channels: grey}", in_scratch("set"));
    OK(open_text(text, NULL, 0, &d));
    TRUE_THAT(cvy_dataset_describe(d)->field[0].shape.dim[0] == 1);
    OK(cvy_dataset_read(d, 0, 0, field));
    const double luma =
        0.299 * picture_value(0, 0, 5, 5) + 0.587 * picture_value(0, 1, 5, 5) + 0.114 * picture_value(0, 2, 5, 5);
    TRUE_THAT(fabs(x[5 * 16 + 5] * 255 - luma) <= 0.51);
    OK(cvy_dataset_read(d, 4, 0, field));
    TRUE_THAT(fabs(x[5 * 16 + 5] * 255 - picture_value(3, 0, 5, 5)) <= 0.01);
    cvy_dataset_destroy(&d);
}

static void check_note(const char *source, const char *words)
{
    cvy_dataset *d = NULL;
    OK(open_text(source, NULL, 0, &d));
    const char *note = cvy_dataset_describe(d)->note;
    if (words ? !note || !strstr(note, words) : note != NULL) {
        fprintf(stderr, "%s: the note is \"%s\", expected \"%s\"\n", source, note ? note : "", words ? words : "");
        exit(1);
    }
    cvy_dataset_destroy(&d);
}

/* What is not read is counted and named once; what looks like two splits is said. */
static void test_rest(void)
{
    static const char *const rest[] = {"a/2.bmp", "a/3.tif", "b/4.webp", "b/5.gif", "b/notes.txt"};
    cvy_dataset *d = NULL;
    char name[64];
    for (int c = 0; c < 2; c++) {
        snprintf(name, sizeof name, "rest/%c", 'a' + c);
        OK(cvy_file_make_folder(in_scratch(name)));
        snprintf(name, sizeof name, "rest/%c/1.png", 'a' + c);
        put_png(in_scratch(name), c, 8, 8, 3);
    }
    put_file(in_scratch("rest/a/.DS_Store"), "x", 1);
    put_file(in_scratch("rest/Thumbs.db"), "x", 1);
    check_note(in_scratch("rest"), "rest/a/1.png is in colour, and so are all of 2 pictures that were looked at");
    for (int i = 0; i < CVY_COUNT(rest); i++) {
        snprintf(name, sizeof name, "rest/%s", rest[i]);
        put_file(in_scratch(name), "x", 1);
    }
    check_note(in_scratch("rest"), "rest: 5 files are not read (a/2.bmp, a/3.tif, b/4.webp, ..): only *.jpg");
    OK(cvy_file_make_folder(in_scratch("rest/b/more")));
    check_note(in_scratch("rest"), "rest: 6 files are not read");
    check_note(in_scratch("rest/b/1.png"), NULL);
    FAILS(open_text(in_scratch("rest/b"), NULL, 0, &d), CVY_E_FORMAT, "holds both pictures");
    /* the splits of a set: with pictures in them, and with classes */
    OK(cvy_file_make_folder(in_scratch("splits/train")));
    OK(cvy_file_make_folder(in_scratch("splits/val")));
    put_png(in_scratch("splits/train/1.png"), 0, 8, 8, 3);
    put_png(in_scratch("splits/val/1.png"), 0, 8, 8, 3);
    check_note(in_scratch("splits"), "splits: train and val are read as classes: if they are splits");
    OK(cvy_file_make_folder(in_scratch("whole/test/cat")));
    put_png(in_scratch("whole/test/cat/1.png"), 0, 8, 8, 3);
    char text[600];
    snprintf(text, sizeof text, "{path: \"%s\", format: folder}", in_scratch("whole"));
    FAILS(open_text(text, NULL, 0, &d), CVY_E_FORMAT,
          "whole/test: holds no picture, but folders (cat, ..): if it is a split");
}

/* Puts Exif data with an orientation between the first two bytes of a JPEG and the rest. */
static void put_turned_jpeg(const char *path, const char *from, int is_little, int orientation)
{
    static const char head[2][33] = {"\xff\xe1\x00\x22"
                                     "Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01",
                                     "\xff\xe1\x00\x22"
                                     "Exif\0\0II\x2a\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0"};
    char tail[8] = {0}, bytes[20000];
    FILE *f = fopen(from, "rb");
    TRUE_THAT(f);
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    tail[is_little ? 0 : 1] = (char)orientation;
    f = fopen(path, "wb");
    TRUE_THAT(f && fwrite(bytes, 1, 2, f) == 2 && fwrite(head[is_little], 1, 28, f) == 28 &&
              fwrite(tail, 1, 8, f) == 8 && fwrite(bytes + 2, 1, n - 2, f) == n - 2);
    fclose(f);
}

/* What is lost of a picture is said with its name. */
static void test_looks(void)
{
    cvy_dataset *d = NULL;
    OK(cvy_file_make_folder(in_scratch("looks")));
    put_jpeg(in_scratch("looks/a.jpg"), 0, 8, 8, 3);
    put_jpeg(in_scratch("looks/b.jpg"), 0, 8, 8, 4);
    put_png(in_scratch("looks/c.png"), 0, 8, 8, 4);
    check_note(in_scratch("looks"), "looks/c.png has an alpha channel, which is dropped (1 of 3)");
    check_note(in_scratch("looks"), "looks/b.jpg has four inks");
    for (int i = 0; i < 2; i++) {
        put_turned_jpeg(in_scratch("looks/d.jpg"), in_scratch("looks/a.jpg"), i, 6);
        check_note(in_scratch("looks"),
                   "looks/d.jpg has an orientation in its EXIF data, which is not applied (1 of 4)");
        put_turned_jpeg(in_scratch("looks/d.jpg"), in_scratch("looks/a.jpg"), i, 1);
        OK(open_text(in_scratch("looks"), NULL, 0, &d));
        TRUE_THAT(!strstr(cvy_dataset_describe(d)->note, "orientation"));
        OK(cvy_dataset_read(d, 3, 0, field));
        cvy_dataset_destroy(&d);
    }
    /* damaged pictures are for the loader */
    put_file(in_scratch("looks/e.png"), "\x89PNG\r\n\x1a\n", 8);
    put_file(in_scratch("looks/f.jpg"),
             "\xff\xd8\xff\xe1\xff\xff"
             "Exif\0\0II",
             14);
    check_note(in_scratch("looks"), "and so are all of 4 pictures");
    check_note(in_scratch("looks"), "cannot be read, as 2 of 6: ");
}

/* A grey picture that comes first makes the set grey: a picture whose colour is lost is said, if it is seen. */
static void test_lost_colour(void)
{
    char text[600], lines[] = "mono/b.png 0\nmono/c.jpg 1\n";
    OK(cvy_file_make_folder(in_scratch("mono")));
    put_png(in_scratch("mono/a.png"), 0, 8, 8, 1);
    put_jpeg(in_scratch("mono/b.jpg"), 1, 8, 8, 1);
    check_note(in_scratch("mono"), "mono/a.png is grey, and so are all of 2 pictures that were looked at");
    put_png(in_scratch("mono/b.png"), 1, 8, 8, 2);
    put_jpeg(in_scratch("mono/c.jpg"), 2, 8, 8, 3);
    check_note(in_scratch("mono"), "mono/c.jpg is in colour, and the first picture of the set is grey");
    snprintf(text, sizeof text, "{path: \"%s\", channels: grey}", in_scratch("mono"));
    check_note(text, "mono/b.png has an alpha channel, which is dropped (1 of 4)");
    put_file(in_scratch("mono.txt"), lines, strlen(lines));
    snprintf(text, sizeof text, "{path: \"%s\", format: list}", in_scratch("mono.txt"));
    check_note(text, "mono/c.jpg is in colour");
}

static void test_sizes(void)
{
    cvy_dataset *d = NULL;
    OK(cvy_file_make_folder(in_scratch("sizes")));
    put_png(in_scratch("sizes/a.png"), 0, 8, 8, 3);
    put_png(in_scratch("sizes/b.png"), 0, 30, 20, 3);
    OK(open_text(in_scratch("sizes"), NULL, 0, &d));
    TRUE_THAT(cvy_dataset_describe(d)->nfield == 1 && cvy_dataset_describe(d)->nclasses == 0);
    OK(cvy_dataset_read(d, 0, 0, field));
    FAILS(cvy_dataset_read(d, 1, 0, field), CVY_E_SHAPE,
          "sizes/b.png: a picture of 30x20 after augmentation, the set's samples are 8x8");
    cvy_dataset_destroy(&d);
    OK(open_text(in_scratch("sizes"), "[{resize: 10}]", 0, &d));
    TRUE_THAT(strcmp(cvy_shape_text(&cvy_dataset_describe(d)->field[0].shape), "3x10x10") == 0);
    OK(cvy_dataset_read(d, 1, 0, field));
    /* cover takes rows 5 to 24, and every second one of them and of the 20 columns. Inside, a plane stays a plane,
     * rounded to bytes. */
    TRUE_THAT(fabs(x[5 * 10 + 5] * 255 - (40 + 3 * (5 + 2 * 5 + 0.5) + 2 * (2 * 5 + 0.5))) < 0.51);
    cvy_dataset_destroy(&d);
    OK(open_text(in_scratch("sizes"), "[{random_crop: {size: [9, 9]}}]", 0, &d));
    FAILS(cvy_dataset_read(d, 0, 0, field), CVY_E_SHAPE,
          "sizes/a.png: random_crop of 9x9 does not fit into a picture of 8x8");
    cvy_dataset_destroy(&d);
}

/* One picture, and those that match a pattern, have no classes, and samples are named by their files. */
static void test_single(void)
{
    static const struct {
        const char *path;
        int64_t count;
        const char *last;
    } want[] = {{"sizes/b.png", 1, "sizes/b.png"}, {"sizes/*.png", 2, "sizes/b.png"}, {"plain", 1, "plain"}};
    put_png(in_scratch("plain"), 0, 8, 8, 3);
    for (int i = 0; i < 3; i++) {
        cvy_dataset *d = NULL;
        char name[600] = "", expected[600];
        OK(open_text(in_scratch(want[i].path), "[{resize: 10}]", 0, &d));
        const cvy_dataset_info *info = cvy_dataset_describe(d);
        TRUE_THAT(info->nsamples == want[i].count && info->nclasses == 0 && strcmp(info->format, "folder") == 0);
        OK(cvy_dataset_read(d, want[i].count - 1, 0, field));
        cvy_dataset_where(d, want[i].count - 1, name, sizeof name);
        snprintf(expected, sizeof expected, "%s", in_scratch(want[i].last));
        TRUE_THAT(strcmp(name, expected) == 0);
        cvy_dataset_destroy(&d);
    }
    cvy_dataset *d = NULL;
    char text[600];
    snprintf(text, sizeof text, "{path: \"%s\", format: folder}", in_scratch("sizes/none.png"));
    FAILS(open_text(text, NULL, 0, &d), CVY_E_IO, "none.png: no such folder or picture");
}

static void damaged(const char *name, cvy_status code, const char *words)
{
    cvy_dataset *d = NULL;
    OK(open_text(in_scratch("bad"), NULL, 0, &d));
    char text[600];
    snprintf(text, sizeof text, "bad/%s: %s", name, words);
    FAILS(cvy_dataset_read(d, 1, 0, field), code, text);
    cvy_dataset_destroy(&d);
    TRUE_THAT(unlink(in_scratch("bad/b.jpg")) == 0 || unlink(in_scratch("bad/b.png")) == 0);
}

static void test_damage(void)
{
    cvy_dataset *d = NULL;
    OK(cvy_file_make_folder(in_scratch("bad")));
    FAILS(open_text(in_scratch("bad"), NULL, 0, &d), CVY_E_FORMAT, "an empty data folder");
    put_png(in_scratch("bad/a.png"), 0, 40, 40, 3);
    put_jpeg(in_scratch("bad/b.jpg"), 0, 40, 40, 3);
    cut_file(in_scratch("bad/b.jpg"), 100);
    damaged("b.jpg", CVY_E_FORMAT, "damaged JPEG");
    put_jpeg(in_scratch("bad/b.jpg"), 0, 40, 40, 3);
    cut_file(in_scratch("bad/b.jpg"), 2);
    damaged("b.jpg", CVY_E_FORMAT, "damaged JPEG");
    put_png(in_scratch("bad/b.png"), 0, 40, 40, 3);
    cut_file(in_scratch("bad/b.png"), 30);
    damaged("b.png", CVY_E_FORMAT, "damaged PNG");
    put_png(in_scratch("bad/b.png"), 0, 40, 40, 3);
    flip_byte(in_scratch("bad/b.png"), -30);
    damaged("b.png", CVY_E_FORMAT, "damaged PNG");
    /* A header that claims 60000 x 60000 pixels is refused before memory is allocated. */
    put_png(in_scratch("bad/b.png"), 0, 40, 40, 3);
    FILE *f = fopen(in_scratch("bad/b.png"), "r+b");
    static const uint8_t huge[] = {0, 0, 0xEA, 0x60, 0, 0, 0xEA, 0x60, 8, 2, 0, 0, 0, 0xDD, 0xF9, 0x0F, 0x98};
    TRUE_THAT(f && fseek(f, 16, SEEK_SET) == 0 && fwrite(huge, 1, sizeof huge, f) == sizeof huge && fclose(f) == 0);
    damaged("b.png", CVY_E_FORMAT, "");
    put_file(in_scratch("bad/b.png"), "hello, world", 12);
    damaged("b.png", CVY_E_FORMAT, "is neither a JPEG nor a PNG");
    put_file(in_scratch("bad/b.png"), "", 0);
    damaged("b.png", CVY_E_FORMAT, "is neither a JPEG nor a PNG");
    OK(cvy_file_make_folder(in_scratch("bad/inner")));
    FAILS(open_text(in_scratch("bad"), NULL, 0, &d), CVY_E_FORMAT,
          "holds both pictures (a.png, ..) and folders (inner, ..)");
    OK(cvy_file_make_folder(in_scratch("half/full")));
    OK(cvy_file_make_folder(in_scratch("half/void")));
    put_png(in_scratch("half/full/a.png"), 0, 8, 8, 3);
    FAILS(open_text(in_scratch("half"), NULL, 0, &d), CVY_E_FORMAT, "half/void: class folder without a picture");
    OK(cvy_file_make_folder(in_scratch("texts")));
    put_file(in_scratch("texts/a.txt"), "x", 1);
    FAILS(open_text(in_scratch("texts"), NULL, 0, &d), CVY_E_FORMAT, "not in any format that is known");
    put_file(in_scratch("a.tif"), "II*\0\10\0\0\0", 8);
    FAILS(open_text(in_scratch("a.tif"), NULL, 0, &d), CVY_E_UNSUPPORTED,
          "is a TIFF picture: convert the pictures to PNG");
}

int main(void)
{
    scratch_make();
    test_classes();
    test_rest();
    test_lost_colour();
    test_looks();
    test_sizes();
    test_single();
    test_damage();
    scratch_remove();
    return 0;
}
#else
int main(void)
{
    return 0; /* nothing to test: this build decodes no pictures */
}
#endif
