/* Augmentation: each step's arithmetic, that it depends on (seed, epoch, number) alone, the test set's part, and wrong
 * lists. */
#include "test_data_support.h"

#include <math.h>

enum { C = 2, H = 5, W = 7, N = C * H * W };

/* A data set of bytes from a CIFAR-like source would be 3x32x32 only; these go through the augmenter itself. */
static uint8_t bytes[N];
static cvy_bytes turn[2];
static const cvy_reader_info info = {.dtype = CVY_DTYPE_U8, .shape = {3, {C, H, W}}};

static cvy_status make(const char *text, int random, const cvy_reader_info *of, cvy_augment **out)
{
    cvy_pool *pool = NULL;
    cvy_tree *steps = NULL;
    OK(cvy_pool_create(&pool));
    OK(cvy_tree_parse_text(pool, "job.yaml", text, strlen(text), &steps));
    const cvy_status status = cvy_augment_create(steps, random, 11, of, out);
    cvy_pool_destroy(&pool);
    return status;
}

static void run(const char *text, int random, uint64_t epoch, int64_t number, float *out)
{
    cvy_augment *a = NULL;
    uint8_t copy[N];
    memcpy(copy, bytes, sizeof copy);
    OK(make(text, random, &info, &a));
    const cvy_picture p = {.dtype = CVY_DTYPE_U8, .C = C, .H = H, .W = W, .data = copy};
    OK(cvy_augment_apply(a, p, epoch, number, turn, out));
    cvy_augment_destroy(&a);
}

static int near(float a, double b)
{
    return fabs(a - b) <= 1e-5 * (1 + fabs(b));
}

static void test_values(void)
{
    float x[N];
    run("[]", 1, 0, 0, x);
    for (int i = 0; i < N; i++)
        TRUE_THAT(near(x[i], bytes[i] / 255.0));
    run("[{scale: 0.5}]", 1, 0, 0, x);
    TRUE_THAT(near(x[20], bytes[20] * 0.5));
    run("[{mean: [0.25, 0.5]}, {std: 2}]", 1, 0, 0, x);
    TRUE_THAT(near(x[3], (bytes[3] / 255.0 - 0.25) / 2) && near(x[N - 1], (bytes[N - 1] / 255.0 - 0.5) / 2));
    run("{normalize: {mean: 0.25, std: [2, 4]}}", 0, 0, 0, x);
    TRUE_THAT(near(x[3], (bytes[3] / 255.0 - 0.25) / 2) && near(x[N - 1], (bytes[N - 1] / 255.0 - 0.25) / 4));
    run("[{scale: 1}, {log: 2}]", 0, 0, 0, x);
    TRUE_THAT(near(x[9], log1p(bytes[9] / 2.0)));
}

static void test_geometry(void)
{
    float plain[N], x[C * 11 * 11];
    run("[]", 0, 0, 0, plain);
    run("[{mirror: {share: 1}}]", 1, 0, 0, x);
    for (int r = 0; r < C * H; r++)
        for (int i = 0; i < W; i++)
            TRUE_THAT(x[r * W + i] == plain[r * W + W - 1 - i]);
    run("[{mirror: {share: 1, axis: height}}]", 1, 0, 0, x);
    for (int c = 0; c < C; c++)
        for (int y = 0; y < H; y++)
            TRUE_THAT(memcmp(&x[(c * H + y) * W], &plain[(c * H + H - 1 - y) * W], W * sizeof *x) == 0);
    run("[{mirror: {share: 1}}]", 0, 0, 0, x);
    TRUE_THAT(memcmp(x, plain, sizeof plain) == 0);
    run("[{center_crop: [3, 5]}]", 1, 0, 0, x);
    for (int c = 0; c < C; c++)
        for (int y = 0; y < 3; y++)
            TRUE_THAT(memcmp(&x[(c * 3 + y) * 5], &plain[(c * H + y + 1) * W + 1], 5 * sizeof *x) == 0);
    /* A test set's crop is central, and the pad shows only where the crop is larger than the picture. */
    run("[{random_crop: {size: 11, pad: 3}}]", 0, 0, 0, x);
    for (int y = 0; y < 11; y++)
        for (int i = 0; i < 11; i++)
            TRUE_THAT(x[y * 11 + i] == (y < 3 || y >= 8 || i < 2 || i >= 9 ? 0 : plain[(y - 3) * W + i - 2]));
    run("[{random_crop: {pad: 2}}]", 0, 0, 0, x);
    TRUE_THAT(memcmp(x, plain, sizeof plain) == 0);
}

/* Every place of the crop occurs, and each shows the right window. */
static void test_random_crop(void)
{
    float plain[N], x[N];
    int seen[5][5] = {{0}};
    run("[]", 0, 0, 0, plain);
    for (int64_t number = 0; number < 400; number++) {
        int found = 0;
        run("[{random_crop: {pad: 2}}]", 1, 3, number, x);
        for (int top = 0; top < 5; top++) {
            for (int left = 0; left < 5; left++) {
                int same = 1;
                for (int y = 0; y < H && same; y++) {
                    for (int i = 0; i < W && same; i++) {
                        const int from_y = y + top - 2, from_x = i + left - 2;
                        const int inside = from_y >= 0 && from_y < H && from_x >= 0 && from_x < W;
                        same = x[y * W + i] == (inside ? plain[from_y * W + from_x] : 0);
                    }
                }
                seen[top][left] += same;
                found += same;
            }
        }
        TRUE_THAT(found == 1);
    }
    for (int i = 0; i < 25; i++)
        TRUE_THAT(seen[i / 5][i % 5] > 3);
}

static void test_reproducible(void)
{
    const char *steps = "[mirror, {random_crop: {pad: 2}}, {mean: 0.4}]";
    float a[N], b[N];
    int differ_epoch = 0, differ_number = 0, mirrored = 0;
    for (int64_t number = 0; number < 64; number++) {
        run(steps, 1, 5, number, a);
        run(steps, 1, 5, number, b);
        TRUE_THAT(memcmp(a, b, sizeof a) == 0);
        run(steps, 1, 6, number, b);
        differ_epoch += memcmp(a, b, sizeof a) != 0;
        run(steps, 1, 5, number + 64, b);
        differ_number += memcmp(a, b, sizeof a) != 0;
        run("[mirror]", 1, 0, number, a);
        mirrored += near(a[0], bytes[W - 1] / 255.0);
    }
    TRUE_THAT(differ_epoch > 50 && differ_number > 50 && mirrored > 16 && mirrored < 48);
}

/* Shrinking by two with the widened filter keeps a constant and a ramp; enlarging keeps the corners' values. */
static void test_resize(void)
{
    enum { S = 16 };
    static float in[S * S], out[64 * 64];
    const cvy_reader_info square = {.dtype = CVY_DTYPE_F32, .shape = {3, {1, S, S}}};
    for (int i = 0; i < S * S; i++)
        in[i] = (float)(i / S + 10 * (i % S));
    const cvy_picture p = {.dtype = CVY_DTYPE_F32, .C = 1, .H = S, .W = S, .data = in};
    cvy_augment *a = NULL;
    OK(make("[{resize: {size: 8, fit: stretch}}]", 0, &square, &a));
    OK(cvy_augment_apply(a, p, 0, 0, turn, out));
    for (int y = 1; y < 7; y++)
        for (int x = 1; x < 7; x++)
            TRUE_THAT(near(out[y * 8 + x], 2 * y + 0.5 + 10 * (2 * x + 0.5)));
    cvy_augment_destroy(&a);
    OK(make("[{resize: [64, 32]}]", 0, &square, &a));
    OK(cvy_augment_apply(a, p, 0, 0, turn, out));
    TRUE_THAT(strcmp(cvy_shape_text(cvy_augment_shape(a)), "1x64x32") == 0);
    TRUE_THAT(out[0] >= in[0] && out[64 * 32 - 1] <= in[S * S - 1]);
    cvy_augment_destroy(&a);
}

static void test_wrong_lists(void)
{
    cvy_augment *a = NULL;
    const cvy_reader_info vector = {.dtype = CVY_DTYPE_F32, .shape = {1, {4}}};
    FAILS(make("[mirorr]", 1, &info, &a), CVY_E_CONFIG, "did you mean \"mirror\"");
    FAILS(make("[{random_crop: {size: 4, padd: 1}}]", 1, &info, &a), CVY_E_CONFIG, "pad");
    FAILS(make("[{mean: [1, 2, 3]}]", 1, &info, &a), CVY_E_CONFIG, "mean has 3 values, expected 1 or 2");
    FAILS(make("[{random_crop: 9}]", 1, &info, &a), CVY_E_SHAPE,
          "random_crop of 9x9 does not fit into a picture of 5x7");
    FAILS(make("[{std: 0}]", 1, &info, &a), CVY_E_CONFIG, "");
    FAILS(make("[mirror]", 1, &vector, &a), CVY_E_CONFIG, "mirror needs samples of the shape [C, H, W], these are 4");
    FAILS(make("[{mirror: true, resize: 3}]", 1, &info, &a), CVY_E_CONFIG, "one a list item");
    OK(make("[{mean: [1, 2, 3, 4]}]", 1, &vector, &a));
    cvy_augment_destroy(&a);
}

int main(void)
{
    for (int i = 0; i < N; i++)
        bytes[i] = (uint8_t)(37 * i + 11);
    test_values();
    test_geometry();
    test_random_crop();
    test_reproducible();
    test_resize();
    test_wrong_lists();
    cvy_mem_free(&turn[0].data);
    cvy_mem_free(&turn[1].data);
    return 0;
}
