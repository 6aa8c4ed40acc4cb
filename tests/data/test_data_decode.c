/* SPDX-License-Identifier: BSD-3-Clause */
/* rows: clang asan */
/* test_data_decode.c: decoding only what is wanted: windows equal the same window of the whole picture, and reduced
 * pictures show the same positions; every kind of PNG; then hostile files, which are cut off anywhere, have flipped
 * bits or absurd headers, or are kinds of pictures that are refused. */
#include "test_data_pictures.h"

#if CVY_HAVE_JPEG && CVY_HAVE_SPNG
#include <math.h>

#include "data/data_index.h"

enum { H = 230, W = 310 };

static cvy_bytes room[2], rows;
static unsigned char *file; /* the current JPEG */
static unsigned long file_bytes;
static int ycck; /* the next JPEG of four inks is stored as YCCK, not as CMYK */

/* ---- making pictures ---- */

enum { WAVES, RAMP };

static uint8_t pixel(int kind, int c, int y, int x)
{
    if (kind == RAMP)
        return (uint8_t)(20 + 0.6 * x + 0.1 * c + 0.1 * y);
    return (uint8_t)(128 + 50 * sin(0.06 * x + c) + 40 * cos(0.045 * y - 0.03 * x) + 20 * sin(0.21 * (x + 2 * y)));
}

static void make_jpeg(int kind, int components, int quality, int samples, int progressive)
{
    struct jpeg_compress_struct cinfo = {0};
    struct jpeg_error_mgr err;
    static uint8_t line[4 * W];
    free(file);
    file = NULL;
    file_bytes = 0;
    cinfo.err = jpeg_std_error(&err);
    jpeg_create_compress(&cinfo);
    jpeg_mem_dest(&cinfo, &file, &file_bytes);
    cinfo.image_width = W;
    cinfo.image_height = H;
    cinfo.input_components = components;
    cinfo.in_color_space = components == 1   ? JCS_GRAYSCALE
                           : components == 3 ? JCS_RGB
                           : components == 4 ? JCS_CMYK
                                             : JCS_UNKNOWN;
    jpeg_set_defaults(&cinfo);
    jpeg_set_quality(&cinfo, quality, TRUE);
    if (ycck)
        jpeg_set_colorspace(&cinfo, JCS_YCCK);
    if (components == 3) {
        cinfo.comp_info[0].h_samp_factor = samples > 1 ? 2 : 1;
        cinfo.comp_info[0].v_samp_factor = samples > 2 ? 2 : 1;
    }
    if (progressive)
        jpeg_simple_progression(&cinfo);
    jpeg_start_compress(&cinfo, TRUE);
    for (int y = 0; y < H; y++) {
        JSAMPROW row = line;
        for (int i = 0; i < W * components; i++)
            line[i] = pixel(kind, i % components, y, i / components);
        jpeg_write_scanlines(&cinfo, &row, 1);
    }
    jpeg_finish_compress(&cinfo);
    jpeg_destroy_compress(&cinfo);
}

static int give(void *user, int64_t height, int64_t width, cvy_picture_window *out)
{
    if (height != H || width != W) /* of a damaged header */
        return 0;
    *out = *(const cvy_picture_window *)user;
    return 1;
}

static cvy_status decode(int64_t channels, const cvy_picture_window *want, int to, cvy_picture *out)
{
    return cvy_picture_decode_part(CVY_CODING_JPEG, file, file_bytes, channels, want ? give : NULL,
                                   (void *)(uintptr_t)want, &room[to], &rows, out);
}

/* ---- windows ---- */

static uint8_t at(const cvy_picture *p, int64_t c, int64_t y, int64_t x)
{
    return ((const uint8_t *)p->data)[(c * p->H + y) * p->W + x];
}

/* Every pixel of the window equals that of the whole picture, wherever it lies among the blocks. */
static void test_windows(void)
{
    static const cvy_picture_window windows[] = {
        {0, 0, H, W, 1},       {0, 0, 50, 40, 1}, {101, 77, 60, 90, 1}, {H - 33, W - 47, 33, 47, 1},
        {16, 32, 64, 64, 0.9}, {15, 31, 1, 1, 1}, {7, 0, 100, W, 1},    {0, 133, H, 8, 3}};
    for (int samples = 1; samples <= 3; samples++) {
        for (int progressive = 0; progressive < 2; progressive++) {
            make_jpeg(WAVES, 3, 90, samples, progressive);
            for (int channels = 1; channels <= 3; channels += 2) {
                cvy_picture all, part;
                OK(decode(channels, NULL, 0, &all));
                TRUE_THAT(all.H == H && all.W == W && all.eighths == 0);
                for (int k = 0; k < CVY_COUNT(windows); k++) {
                    const cvy_picture_window *w = &windows[k];
                    OK(decode(channels, w, 1, &part));
                    const int64_t top = part.eighths ? part.top : 0, left = part.eighths ? part.left : 0;
                    TRUE_THAT(part.eighths == 0 || (part.eighths == 8 && part.whole_h == H && part.whole_w == W));
                    TRUE_THAT(top <= w->top && top + part.H >= w->top + w->height);
                    TRUE_THAT(left <= w->left && left + part.W >= w->left + w->width);
                    for (int64_t c = 0; c < channels; c++)
                        for (int64_t y = w->top; y < w->top + w->height; y++)
                            for (int64_t x = w->left; x < w->left + w->width; x++)
                                TRUE_THAT(at(&part, c, y - top, x - left) == at(&all, c, y, x));
                }
            }
        }
    }
}

/* Compares a reduced picture with the means of the blocks that its pixels stand for. */
static void test_reduced(void)
{
    for (int samples = 1; samples <= 3; samples += 2) {
        make_jpeg(WAVES, 3, 95, samples, 0);
        cvy_picture all, part;
        OK(decode(3, NULL, 0, &all));
        for (int k = 1; k <= 4; k *= 2) {
            const cvy_picture_window w = {41, 83, 120, 160, k / 8.0};
            double sum = 0, mean = 0;
            int64_t n = 0;
            OK(decode(3, &w, 1, &part));
            TRUE_THAT(part.eighths == k && part.H <= (H * k + 7) / 8 && part.W <= (W * k + 7) / 8);
            for (int64_t c = 0; c < 3; c++)
                for (int64_t y = (w.top * k + 7) / 8; y < (w.top + w.height) * k / 8; y++)
                    for (int64_t x = (w.left * k + 7) / 8; x < (w.left + w.width) * k / 8; x++, n++) {
                        double block = 0;
                        for (int64_t i = 0; i < 64 / k / k; i++)
                            block += at(&all, c, y * 8 / k + i / (8 / k), x * 8 / k + i % (8 / k));
                        const double far = at(&part, c, y - part.top, x - part.left) - block * k * k / 64;
                        sum += fabs(far);
                        mean += far;
                    }
            /* The waves are shorter than some blocks are wide. A picture that is shifted by a pixel is far above this
             * bound. */
            if (sum / (double)n > 1.5 || fabs(mean / (double)n) > 0.25) {
                fprintf(stderr, "%d/8 of sampling %d: mean difference %.3f, absolute %.3f\n", k, samples,
                        mean / (double)n, sum / (double)n);
                exit(1);
            }
        }
    }
}

/* ---- through a data set ---- */

static float x[2][3 * 96 * 96];

/* Compares the same sample with reduced and with full decoding. Differences are in levels of 0 to 255. */
static void compare_augment(const char *folder, const char *steps, const char *full, int random, double absolute,
                            double signed_bound)
{
    cvy_dataset *d[2] = {NULL, NULL};
    double worst = 0, worst_mean = 0;
    OK(open_text(folder, steps, random, &d[0]));
    OK(open_text(folder, full, random, &d[1]));
    for (uint64_t epoch = 0; epoch < (random ? 60 : 1); epoch++) {
        double sum = 0, mean = 0;
        const int64_t n = cvy_shape_elems(&cvy_dataset_describe(d[0])->field[0].shape);
        for (int k = 0; k < 2; k++)
            OK(cvy_dataset_read(d[k], 0, epoch, (void *const[]){x[k]}));
        for (int64_t i = 0; i < n; i++) {
            sum += fabs(x[0][i] - x[1][i]) * 255 / (double)n;
            mean += (x[0][i] - x[1][i]) * 255 / (double)n;
        }
        worst = fmax(worst, sum);
        worst_mean = fmax(worst_mean, fabs(mean));
    }
    cvy_dataset_destroy(&d[0]);
    cvy_dataset_destroy(&d[1]);
    if (worst > absolute || worst_mean > signed_bound) {
        fprintf(stderr, "%s: differs by up to %.3f (mean of absolute differences), %.3f (mean)\n", steps, worst,
                worst_mean);
        exit(1);
    }
}

static void test_data_set(void)
{
    OK(cvy_file_make_folder(in_scratch("waves")));
    OK(cvy_file_make_folder(in_scratch("ramp")));
    make_jpeg(WAVES, 3, 92, 3, 0);
    put_file(in_scratch("waves/a.jpg"), file, file_bytes);
    make_jpeg(RAMP, 3, 92, 3, 0);
    put_file(in_scratch("ramp/a.jpg"), file, file_bytes);
    /* With windows alone not a bit differs. */
    compare_augment(in_scratch("waves"), "[{random_crop: 96}]", "[{random_crop: {size: 96, decode: full}}]", 1, 0, 0);
    compare_augment(in_scratch("waves"), "[{random_crop: {size: 64, pad: 30}}]",
                    "[{random_crop: {size: 64, pad: 30, decode: full}}]", 1, 0, 0);
    compare_augment(in_scratch("waves"), "[{center_crop: [50, 91]}]", "[{center_crop: {size: [50, 91], decode: full}}]",
                    0, 0, 0);
    /* Reduced pictures may differ by some levels, because they pass through another filter first. On a slope of 0.6 a
     * pixel, a shift of a third of a pixel would be 0.2 levels. */
    compare_augment(in_scratch("waves"), "[{random_resized_crop: 32}]",
                    "[{random_resized_crop: {size: 32, decode: full}}]", 1, 4, 1);
    compare_augment(in_scratch("ramp"), "[{random_resized_crop: 32}]",
                    "[{random_resized_crop: {size: 32, decode: full}}]", 1, 0.8, 0.2);
    compare_augment(in_scratch("ramp"), "[{random_resized_crop: {size: 24, filter: area}}]",
                    "[{random_resized_crop: {size: 24, filter: area, decode: full}}]", 1, 0.8, 0.2);
    compare_augment(in_scratch("ramp"), "[{resize: 40}, {center_crop: 32}]",
                    "[{resize: {size: 40, decode: full}}, {center_crop: 32}]", 0, 0.8, 0.2);
    compare_augment(in_scratch("ramp"), "[{resize: {size: [20, 80], fit: stretch}}]",
                    "[{resize: {size: [20, 80], fit: stretch, decode: full}}]", 0, 0.8, 0.2);
    compare_augment(in_scratch("ramp"), "[{random_resized_crop: 64}]",
                    "[{random_resized_crop: {size: 64, decode: full}}]", 0, 0.8, 0.2);
}

/* ---- hostile files ---- */

/* A file that is cut off anywhere gives a fault, decoded whole or in part. A flipped bit gives a fault or goes
 * unnoticed; it does nothing worse. */
static void test_damage(void)
{
    const cvy_picture_window w = {20, 30, 40, 50, 0.5};
    cvy_picture p;
    for (int progressive = 0; progressive < 2; progressive++) {
        make_jpeg(WAVES, 3, 80, 3, progressive);
        const unsigned long bytes = file_bytes;
        unsigned char *whole = file;
        for (unsigned long cut = 0; cut < bytes; cut += cut < 700 ? 13 : bytes / 23 + (cut > bytes - 40)) {
            file = malloc(cut + 1); /* a block of its own, so that the sanitizer sees each byte read after it */
            TRUE_THAT(file);
            memcpy(file, whole, cut);
            file = realloc(file, cut ? cut : 1);
            file_bytes = cut;
            TRUE_THAT(decode(3, NULL, 0, &p) == CVY_E_FORMAT && decode(3, &w, 0, &p) == CVY_E_FORMAT);
            free(file);
        }
        file = whole;
        file_bytes = bytes - 1;
        FAILS(decode(3, NULL, 0, &p), CVY_E_FORMAT, "damaged JPEG");
        FAILS(decode(3, &w, 0, &p), CVY_E_FORMAT, "damaged JPEG");
        file_bytes = bytes;
        for (unsigned long flip = 2; flip < bytes; flip += 1 + bytes / 150) {
            file[flip] ^= 0x24;
            (void)!decode(3, NULL, 0, &p);
            (void)!decode(1, &w, 0, &p);
            file[flip] ^= 0x24;
        }
        OK(decode(3, &w, 0, &p));
    }
}

/* Inks become colours as Pillow converts them. Pillow 13.0 computed the numbers, by Image.open(file).convert("RGB") and
 * convert("L"), from the files that make_jpeg(WAVES, 4, 90, 1, 0) makes. Its luma is rounded in another way. */
static void test_inks(void)
{
    static const struct {
        int y, x, rgb[3], grey;
    } want[2][6] = {{{0, 0, {115, 143, 145}, 135},
                     {3, 7, {125, 143, 133}, 136},
                     {100, 150, {81, 58, 47}, 64},
                     {117, 20, {57, 55, 41}, 54},
                     {229, 309, {73, 101, 113}, 94},
                     {64, 255, {43, 28, 20}, 32}},
                    {{0, 0, {116, 143, 145}, 135},
                     {3, 7, {125, 142, 133}, 136},
                     {100, 150, {81, 58, 47}, 64},
                     {117, 20, {57, 55, 41}, 54},
                     {229, 309, {72, 102, 112}, 94},
                     {64, 255, {44, 28, 20}, 32}}};
    for (ycck = 0; ycck < 2; ycck++) {
        const cvy_picture_window w = {101, 77, 60, 90, 1};
        cvy_picture all, grey, part;
        int64_t c = 0, h = 0, wd = 0;
        make_jpeg(WAVES, 4, 90, 1, 0);
        OK(cvy_picture_read_header(CVY_CODING_JPEG, file, file_bytes, &c, &h, &wd));
        TRUE_THAT(c == 3 && h == H && wd == W);
        OK(decode(1, NULL, 1, &grey));
        for (int i = 0; i < CVY_COUNT(want[ycck]); i++)
            TRUE_THAT(abs(at(&grey, 0, want[ycck][i].y, want[ycck][i].x) - want[ycck][i].grey) <= 1);
        OK(decode(3, NULL, 0, &all));
        for (int i = 0; i < CVY_COUNT(want[ycck]); i++)
            for (int k = 0; k < 3; k++)
                TRUE_THAT(abs(at(&all, k, want[ycck][i].y, want[ycck][i].x) - want[ycck][i].rgb[k]) <= 1);
        OK(decode(3, &w, 1, &part));
        TRUE_THAT(part.C == 3 && part.top + part.H >= w.top + w.height);
        for (int64_t k = 0; k < 3; k++)
            for (int64_t y = w.top; y < w.top + w.height; y++)
                for (int64_t x = w.left; x < w.left + w.width; x++)
                    TRUE_THAT(at(&part, k, y - part.top, x - part.left) == at(&all, k, y, x));
    }
    ycck = 0;
}

static void test_refused(void)
{
    cvy_picture p;
    int64_t c = 0, h = 0, wd = 0;
    make_jpeg(WAVES, 2, 80, 1, 0);
    FAILS(decode(3, NULL, 0, &p), CVY_E_UNSUPPORTED, "JPEG of 2 components, expected 1 (grey), 3 (RGB) or 4 (CMYK)");
    FAILS(cvy_picture_read_header(CVY_CODING_JPEG, file, file_bytes, &c, &h, &wd), CVY_E_UNSUPPORTED, "2 components");
    FAILS(cvy_picture_decode(CVY_CODING_PLAIN, "", 0, 3, &room[0], &rows, &p), CVY_E_FORMAT, "neither a JPEG nor");
    TRUE_THAT(cvy_picture_coding("", 0) == CVY_CODING_PLAIN);
    /* A header that claims 104 million pixels. */
    make_jpeg(WAVES, 3, 80, 1, 0);
    unsigned long i = 2;
    while (i + 9 < file_bytes && !(file[i] == 0xFF && file[i + 1] == 0xC0))
        i += 2 + (unsigned long)(file[i + 2] << 8 | file[i + 3]);
    TRUE_THAT(i + 9 < file_bytes);
    file[i + 5] = file[i + 7] = 10240 >> 8;
    file[i + 6] = file[i + 8] = 10240 & 255;
    FAILS(cvy_picture_decode(CVY_CODING_JPEG, file, file_bytes, 3, &room[0], &rows, &p), CVY_E_FORMAT,
          "JPEG of 10240x10240 pixels, expected at most");
    FAILS(cvy_picture_read_header(CVY_CODING_JPEG, file, file_bytes, &c, &h, &wd), CVY_E_FORMAT, "10240x10240");
}

/* Grey becomes three equal planes, and colour becomes luma. */
static void test_grey(void)
{
    cvy_picture p;
    const cvy_picture_window w = {64, 96, 32, 32, 0.25};
    make_jpeg(WAVES, 1, 90, 1, 0);
    OK(decode(3, &w, 0, &p));
    TRUE_THAT(p.eighths == 2);
    for (int64_t i = 0; i < p.H * p.W; i++)
        TRUE_THAT(at(&p, 0, 0, i) == at(&p, 1, 0, i) && at(&p, 0, 0, i) == at(&p, 2, 0, i));
    OK(decode(1, NULL, 0, &p));
    TRUE_THAT(p.C == 1 && abs(at(&p, 0, 100, 100) - pixel(WAVES, 0, 100, 100)) < 6);
}

/* ---- every kind of PNG ---- */

static void test_png(int type, int depth, int channels)
{
    enum { SIDE = 16 };
    static uint16_t wide[SIDE * SIDE * 4];
    static uint8_t narrow[SIDE * SIDE * 4];
    const int per = type == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA   ? 2
                    : type == SPNG_COLOR_TYPE_TRUECOLOR       ? 3
                    : type == SPNG_COLOR_TYPE_TRUECOLOR_ALPHA ? 4
                                                              : 1;
    struct spng_ihdr ihdr = {.width = SIDE, .height = SIDE, .bit_depth = (uint8_t)depth, .color_type = (uint8_t)type};
    struct spng_plte plte = {.n_entries = 256};
    for (int i = 0; i < SIDE * SIDE * per; i++) {
        narrow[i] = (uint8_t)(i % per * 40 + i / per % 200);
        wide[i] = (uint16_t)(narrow[i] << 8 | 0x31);
    }
    for (int i = 0; i < 256; i++) {
        plte.entries[i].red = (uint8_t)(255 - i);
        plte.entries[i].green = (uint8_t)(i / 2);
        plte.entries[i].blue = (uint8_t)i;
    }
    spng_ctx *ctx = spng_ctx_new(SPNG_CTX_ENCODER);
    TRUE_THAT(ctx && spng_set_option(ctx, SPNG_ENCODE_TO_BUFFER, 1) == 0 && spng_set_ihdr(ctx, &ihdr) == 0);
    TRUE_THAT(type != SPNG_COLOR_TYPE_INDEXED || spng_set_plte(ctx, &plte) == 0);
    const size_t bytes = (size_t)(SIDE * SIDE * per * depth / 8);
    TRUE_THAT(spng_encode_image(ctx, depth == 16 ? (void *)wide : narrow, bytes, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE) ==
              0);
    int error = 0;
    size_t size = 0;
    void *png = spng_get_png_buffer(ctx, &size, &error);
    TRUE_THAT(png && error == 0);
    cvy_picture p;
    int64_t c = 0, h = 0, wd = 0;
    OK(cvy_picture_read_header(CVY_CODING_PNG, png, size, &c, &h, &wd));
    TRUE_THAT(c == channels && h == SIDE && wd == SIDE);
    OK(cvy_picture_decode(CVY_CODING_PNG, png, size, channels, &room[0], &rows, &p));
    for (int64_t i = 0; i < SIDE * SIDE; i++) {
        for (int64_t k = 0; k < channels; k++) {
            const int64_t at_value = i * per + (per >= 3 ? k : 0);
            const int v = narrow[at_value];
            if (depth == 16) { /* all its bits, as reals from 0 to 255 */
                TRUE_THAT(p.dtype == CVY_DTYPE_F32);
                TRUE_THAT(((float *)p.data)[k * SIDE * SIDE + i] == (float)(wide[at_value] / 257.0));
                continue;
            }
            const int want = type == SPNG_COLOR_TYPE_INDEXED ? (k == 0 ? 255 - v : k == 1 ? v / 2 : v) : v;
            TRUE_THAT(at(&p, k, 0, i) == want);
        }
    }
    for (size_t cut = 0; cut < size - 12; cut += 7) /* the last 12 bytes are the empty end mark */
        TRUE_THAT(cvy_picture_decode(CVY_CODING_PNG, png, cut, channels, &room[0], &rows, &p) < 0);
    free(png);
    spng_ctx_free(ctx);
}

/* ---- PNG of 16 bits in a data set ---- */

enum { DEEP = 8 };

static void put_deep(const char *path, int type, const uint16_t *values, size_t bytes)
{
    struct spng_ihdr ihdr = {.width = DEEP, .height = DEEP, .bit_depth = 16, .color_type = (uint8_t)type};
    spng_ctx *ctx = spng_ctx_new(SPNG_CTX_ENCODER);
    size_t size = 0;
    int error = 0;
    TRUE_THAT(ctx && spng_set_option(ctx, SPNG_ENCODE_TO_BUFFER, 1) == 0 && spng_set_ihdr(ctx, &ihdr) == 0);
    TRUE_THAT(spng_encode_image(ctx, values, bytes, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE) == 0);
    void *png = spng_get_png_buffer(ctx, &size, &error);
    put_file(path, png, size);
    free(png);
    spng_ctx_free(ctx);
}

/* What is read with this list, for grey values that are stored; the list may scale them and move pixels. */
static void check_deep(const char *list, const uint16_t *values, double by, int is_mirrored)
{
    cvy_dataset *d = NULL;
    float x[DEEP * DEEP];
    int32_t label = 0;
    OK(open_text(in_scratch("deep"), list, 1, &d));
    OK(cvy_dataset_read(d, 0, 0, (void *const[]){x, &label}));
    for (int i = 0; i < DEEP * DEEP; i++) {
        const int from = is_mirrored ? i / DEEP * DEEP + DEEP - 1 - i % DEEP : i;
        TRUE_THAT(fabs(x[i] - values[from] * by) <= 1e-6 * 65535 * by);
    }
    cvy_dataset_destroy(&d);
}

static void test_deep(void)
{
    uint16_t grey[DEEP * DEEP], colour[3 * DEEP * DEEP];
    cvy_picture p = {0};
    cvy_raw raw = {0};
    for (int i = 0; i < DEEP * DEEP; i++) {
        grey[i] = (uint16_t)(i * 1040 + 7);
        for (int c = 0; c < 3; c++)
            colour[3 * i + c] = (uint16_t)(1000 * c + i);
    }
    OK(cvy_file_make_folder(in_scratch("deep/a")));
    put_deep(in_scratch("deep/a/1.png"), SPNG_COLOR_TYPE_GRAYSCALE, grey, sizeof grey);
    put_deep(in_scratch("colour.png"), SPNG_COLOR_TYPE_TRUECOLOR, colour, sizeof colour);
    check_deep(NULL, grey, 1 / 65535.0, 0);
    check_deep("[{scale: 257}]", grey, 1, 0);
    check_deep("[{mirror: {share: 1}}, {std: 0.5}]", grey, 2 / 65535.0, 1);
    check_deep("[{scale: 257}, {mirror: {share: 1}}, {center_crop: 8}]", grey, 1, 1);
    OK(cvy_data_read_picture(in_scratch("colour.png"), &raw));
    OK(cvy_picture_decode(raw.coding, raw.x.data, raw.x.bytes, 1, &room[0], &rows, &p));
    for (int i = 0; i < DEEP * DEEP; i++) {
        const double luma = (0.299 * i + 0.587 * (1000 + i) + 0.114 * (2000 + i)) / 257;
        TRUE_THAT(fabs(((float *)p.data)[i] - luma) < 1e-5);
    }
    cvy_picture_to_bytes(&p);
    for (int i = 0; i < DEEP * DEEP; i++)
        TRUE_THAT(p.dtype == CVY_DTYPE_U8 && abs(((uint8_t *)p.data)[i] - (815 + i) / 257) <= 1);
    cvy_raw_free(&raw);
}

int main(void)
{
    scratch_make();
    test_windows();
    test_reduced();
    test_data_set();
    test_damage();
    test_inks();
    test_refused();
    test_grey();
    test_deep();
    test_png(SPNG_COLOR_TYPE_GRAYSCALE, 8, 1);
    test_png(SPNG_COLOR_TYPE_GRAYSCALE, 16, 1);
    test_png(SPNG_COLOR_TYPE_GRAYSCALE_ALPHA, 8, 1);
    test_png(SPNG_COLOR_TYPE_GRAYSCALE_ALPHA, 16, 1);
    test_png(SPNG_COLOR_TYPE_TRUECOLOR, 16, 3);
    test_png(SPNG_COLOR_TYPE_TRUECOLOR_ALPHA, 8, 3);
    test_png(SPNG_COLOR_TYPE_TRUECOLOR_ALPHA, 16, 3);
    test_png(SPNG_COLOR_TYPE_INDEXED, 8, 3);
    free(file);
    cvy_mem_free(&room[0].data);
    cvy_mem_free(&room[1].data);
    cvy_mem_free(&rows.data);
    scratch_remove();
    return 0;
}
#else
int main(void)
{
    return 0; /* nothing to test: this build decodes no pictures */
}
#endif
