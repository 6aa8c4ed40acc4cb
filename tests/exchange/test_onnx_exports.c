/* rows: clang asan */
/*
 * test_onnx_exports.c: ten networks as PyTorch exports them, with attention, masks, samples that move from axis to
 * axis, and group norms, give the numbers of ONNX Runtime; their parameters are trained, and their masks, tables and
 * means are not. tests/exchange/onnx_exports.py has written the files and the numbers (tests/exchange/exports).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test_util.h"

#if CVY_HAVE_PROTOBUF_C

#include <math.h>
#include <stdlib.h>

#include <convoy/convoy.h>

#include "base/base_file.h"
#include "exchange/exchange.h"

enum { SAMPLES = 2, MOST = 1024, PATH = 1024 };

static cvy_context *context;

static const char *path_of(const char *name, const char *end, char *out)
{
    const char *source = getenv("CONVOY_SOURCE"), *here = strstr(__FILE__, "tests/exchange/");
    if (source)
        snprintf(out, PATH, "%s/tests/exchange/exports/%s%s", source, name, end);
    else
        snprintf(out, PATH, "%.*stests/exchange/exports/%s%s", here ? (int)(here - __FILE__) : 0, __FILE__, name, end);
    return out;
}

/* What is not trained of each network. PyTorch's newer exporter says which tensors are parameters; in files of the
 * older one the names `pos` and `cls` do not say it. The norms of `groups` and `bare` have scales of 1 that are no
 * parameters. */
static const struct {
    const char *name, *kept;
} networks[] = {
    {"mha-first-newer-train-free", ""},
    {"mha-second-causal-older-eval-fixed", " attention.Add_2.shift"},
    {"sdpa-causal-newer-eval-fixed", " node_Add_69.shift"},
    {"masked-newer-eval-free", " node_masked_fill.shift"},
    {"masked-made-older-train-free", " pos Where.shift"},
    {"merged-older-eval-free", ""},
    {"positions-newer-eval-fixed", " node_add.shift"},
    {"token-older-eval-one", " cls pos"},
    {"groups-newer-train-fixed", " node_InstanceNormalization_12.scale node_InstanceNormalization_12.shift"
                                 " node_InstanceNormalization_35.scale node_InstanceNormalization_35.shift"},
    {"bare-newer-eval-fixed",
     " pixel_mean node_div.scale node_instance_norm.scale node_instance_norm.shift node_InstanceNormalization_26.scale"
     " node_InstanceNormalization_26.shift node_Mul_36.scale node_group_norm.shift node_layer_norm.scale"
     " node_layer_norm.shift"},
};

static void test_kept(void)
{
    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        cvy_import import = {0};
        char path[PATH], line[512] = "";
        size_t n = 0;
        EXPECT_OK(cvy_import_onnx(path_of(networks[i].name, ".onnx", path), &import));
        for (int t = 0; t < import.ntensor; t++)
            for (int k = 0; k < import.model->nlayer; k++)
                if (cvy_model_keeps(import.model, &import.model->layer[k], import.tensor[t].name)) {
                    n += (size_t)snprintf(line + n, sizeof line - n, " %s", import.tensor[t].name);
                    break;
                }
        EXPECT_TEXT(line, networks[i].kept);
        cvy_import_free(&import);
    }
}

static void compare(const char *name, int64_t elems, int64_t n, const float *expected)
{
    static float x[SAMPLES * MOST], y[MOST];
    char path[PATH];
    double largest = 0, error = 0;
    cvy_network *network = NULL;
    for (int64_t i = 0; i < SAMPLES * elems; i++)
        x[i] = (float)(i * 37 % 101) / 50 - 1;
    const cvy_network_in in = {"x", CVY_DTYPE_F32, SAMPLES * elems, x, {0}};
    const cvy_network_out out = {NULL, CVY_DTYPE_F32, n, y};
    EXPECT_OK(cvy_network_open(context, path_of(name, ".onnx", path), NULL, &network));
    if (!network)
        return;
    EXPECT_OK(cvy_network_apply(network, SAMPLES, &in, 1, &out, 1));
    for (int64_t i = 0; i < n; i++) {
        largest = fmax(largest, fabs(expected[i]));
        error = fmax(error, fabs(y[i] - expected[i]));
    }
    EXPECT(largest > 0 && error < 1e-5 * largest);
    if (!(error < 1e-5 * largest))
        printf("       that was %s: %g of %g\n", name, error, largest);
    cvy_network_destroy(&network);
}

static void test_numbers(void)
{
    static float expected[MOST];
    char path[PATH], *text = NULL, *rest = NULL;
    size_t bytes = 0;
    int count = 0;
    EXPECT_OK(cvy_file_read(path_of("expected", ".txt", path), 1 << 20, &text, &bytes));
    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest), count++) {
        char *at = strchr(line, ' ');
        *at = '\0';
        const int64_t elems = strtoll(at + 1, &at, 10), n = strtoll(at, &at, 10);
        EXPECT(elems <= MOST && n <= MOST);
        for (int64_t i = 0; i < n; i++)
            expected[i] = strtof(at, &at);
        compare(line, elems, n, expected);
    }
    EXPECT_INT(count, 10);
    cvy_mem_free(&text);
}

int main(void)
{
    cvy_context_opts opts = cvy_context_opts_default();
    opts.threads = 1;
    EXPECT_OK(cvy_context_create(&opts, &context));
    TEST(test_numbers);
    TEST(test_kept);
    cvy_context_destroy(&context);
    return test_end();
}

#else

int main(void)
{
    EXPECT_OK(CVY_OK);
    return test_end();
}

#endif
