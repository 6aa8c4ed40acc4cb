/* rows: release */
/*
 * test_onnx_networks.c: no network that comes with ONNX is computed wrongly: those that PyTorch's first exporter wrote
 * (operator set 6), and the networks of the model zoo without weights.
 *
 * The first are in the folder that CONVOY_ONNX_DATA names, or where Debian's package libonnx-testdata has them; without
 * them this test is skipped. The others are in the folder that CONVOY_ONNX_LIGHT names: scripts/check_onnx_nodes.sh
 * takes those of the Python package onnx. A network counts if it has one input of real numbers with an axis of samples.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test_util.h"

#if CVY_HAVE_PROTOBUF_C

#include <dirent.h>
#include <stdlib.h>

#include <convoy/convoy.h>

#include "base/base_file.h"
#include "exchange/onnx/onnx_file.h"

#define FILE_BYTES ((size_t)1 << 30)

static cvy_context *context;
static int passed, refused;

static int read_array(cvy_pool *pool, const char *path, cvy_onnx_tensor *out)
{
    char *data = NULL;
    size_t bytes = 0;
    Cvy__Onnx__TensorProto *proto = NULL;
    if (cvy_file_read(path, FILE_BYTES, &data, &bytes) != CVY_OK)
        return 0;
    proto = cvy__onnx__tensor_proto__unpack(NULL, bytes, (const uint8_t *)data);
    const int is_read = proto && cvy_onnx_tensor_read(pool, ".", proto, out) == CVY_OK;
    cvy_mem_free(&data);
    cvy__onnx__tensor_proto__free_unpacked(proto, NULL);
    return is_read && out->dtype == CVY_DTYPE_F32 && out->shape.ndim >= 1 && out->elems > 0;
}

/* The shape of the only input that is no initialiser; 0: there are several. */
static int find_input(const char *path, cvy_shape *out)
{
    Cvy__Onnx__ModelProto *file = NULL;
    int n = 0;
    if (cvy_onnx_file_read(path, &file) != CVY_OK)
        return 0;
    const Cvy__Onnx__GraphProto *g = file->graph;
    for (size_t i = 0; i < g->n_input; i++) {
        int is_weight = 0;
        for (size_t k = 0; k < g->n_initializer; k++)
            is_weight |= strcmp(g->initializer[k]->name, g->input[i]->name) == 0;
        if (is_weight)
            continue;
        const Cvy__Onnx__TensorShapeProto *shape = g->input[i]->type->tensor_type->shape;
        *out = (cvy_shape){.ndim = (int)CVY_MIN(shape->n_dim, (size_t)CVY_NDIM_MAX)};
        for (int d = 0; d < out->ndim; d++)
            out->dim[d] = shape->dim[d]->dim_value;
        n++;
    }
    cvy_onnx_file_free(&file);
    return n == 1;
}

static void compare(const char *name, const float *y, const cvy_onnx_tensor *expected)
{
    for (int64_t i = 0; i < expected->elems; i++) {
        const double e = cvy_onnx_f32(expected)[i];
        if (isnan(y[i]) && isnan(e))
            continue;
        test_checks++;
        if (fabs(y[i] - e) <= 1e-5 + 1e-3 * fabs(e))
            continue;
        printf("%s: element %lld is %.9g, expected %.9g\n", name, (long long)i, y[i], e);
        test_failures++;
        return;
    }
    passed++;
}

static void run_network(const char *path, int64_t samples, const float *x, int64_t elems,
                        const cvy_onnx_tensor *expected)
{
    cvy_network_opts opts = {.size = sizeof opts, .batch = samples};
    cvy_network *network = NULL;
    cvy_shape sample = {0};
    float *y = calloc((size_t)expected->elems, sizeof *y);
    const cvy_network_in in = {NULL, CVY_DTYPE_F32, elems, x, {0}};
    cvy_status status = cvy_network_open(context, path, &opts, &network);
    if (status == CVY_OK)
        status = cvy_network_output(network, 0, NULL, &sample);
    if (status == CVY_OK && samples * cvy_shape_elems(&sample) != expected->elems) {
        printf("%s: a result of %s, expected %s\n", path, cvy_shape_text(&sample), cvy_shape_text(&expected->shape));
        test_failures++;
    } else {
        const cvy_network_out out = {NULL, CVY_DTYPE_F32, expected->elems, y};
        if (status == CVY_OK)
            status = cvy_network_apply(network, samples, &in, 1, &out, 1);
        if (status == CVY_OK)
            compare(path, y, expected);
        else
            refused++;
    }
    cvy_network_destroy(&network);
    free(y);
}

/* A folder with model.onnx and test_data_set_0. */
static void run_folder(const char *root, const char *name)
{
    char path[1024], in[1100], out[1100];
    cvy_pool *pool = NULL;
    cvy_onnx_tensor x = {0}, y = {0};
    cvy_shape shape;
    snprintf(path, sizeof path, "%s/%s/model.onnx", root, name);
    snprintf(in, sizeof in, "%s/%s/test_data_set_0/input_0.pb", root, name);
    snprintf(out, sizeof out, "%s/%s/test_data_set_0/output_0.pb", root, name);
    EXPECT_OK(cvy_pool_create(&pool));
    if (find_input(path, &shape) && read_array(pool, in, &x) && read_array(pool, out, &y))
        run_network(path, x.shape.dim[0], x.data, x.elems, &y);
    cvy_pool_destroy(&pool);
}

/* NAME.onnx with NAME_output_0.pb; ONNX's own runner makes the input: 0, 1 / n, 2 / n, .. */
static void run_light(const char *root, const char *name)
{
    char path[1024], out[1100];
    cvy_pool *pool = NULL;
    cvy_onnx_tensor y = {0};
    cvy_shape shape = {0};
    const size_t n = strlen(name);
    if (n < 6 || strcmp(name + n - 5, ".onnx") != 0)
        return;
    snprintf(path, sizeof path, "%s/%s", root, name);
    snprintf(out, sizeof out, "%s/%.*s_output_0.pb", root, (int)n - 5, name);
    EXPECT_OK(cvy_pool_create(&pool));
    if (find_input(path, &shape) && read_array(pool, out, &y)) {
        const int64_t elems = cvy_shape_elems(&shape);
        float *x = malloc((size_t)elems * sizeof *x);
        for (int64_t i = 0; i < elems; i++)
            x[i] = (float)((double)i / (double)elems);
        run_network(path, shape.dim[0], x, elems, &y);
        free(x);
    }
    cvy_pool_destroy(&pool);
}

static int run_all(const char *root, void (*run)(const char *root, const char *name))
{
    struct dirent **entry = NULL;
    const int n = root ? scandir(root, &entry, NULL, alphasort) : -1;
    for (int i = 0; i < n; i++) {
        if (entry[i]->d_name[0] != '.')
            run(root, entry[i]->d_name);
        free(entry[i]);
    }
    free(entry);
    return n > 0;
}

int main(void)
{
    static const char *const folders[] = {"pytorch-operator", "pytorch-converted", "simple"};
    const char *root = getenv("CONVOY_ONNX_DATA");
    cvy_context_opts opts = cvy_context_opts_default();
    char path[1024];
    int any = 0;
    opts.threads = 1;
    EXPECT_OK(cvy_context_create(&opts, &context));
    for (int i = 0; i < CVY_COUNT(folders); i++) {
        snprintf(path, sizeof path, "%s/%s", root ? root : "/usr/share/libonnx-testdata/data", folders[i]);
        any |= run_all(path, run_folder);
    }
    any |= run_all(getenv("CONVOY_ONNX_LIGHT"), run_light);
    cvy_context_destroy(&context);
    printf("%d networks of ONNX are right, %d refused\n", passed, refused);
    EXPECT(passed >= 4 * refused);
    if (!any)
        printf("the networks of ONNX are not there: install libonnx-testdata, or set CONVOY_ONNX_DATA\n");
    return any ? test_end() : 77;
}

#else

int main(void)
{
    printf("this build has no ONNX\n");
    return 77;
}

#endif
