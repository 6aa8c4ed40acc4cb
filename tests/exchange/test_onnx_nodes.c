/* rows: release */
/*
 * test_onnx_nodes.c: no test of a single node that comes with ONNX is computed wrongly, and
 * docs/reference/onnx.md says which of them pass and why others are declined (`test_onnx_nodes --write` updates
 * it).
 *
 * The tests are folders with a model, its inputs and its outputs. They are in the folder that CONVOY_ONNX_NODES names,
 * or where Debian's package libonnx-testdata has them; without them this test is skipped. scripts/check_onnx_nodes.sh
 * makes those of a newer ONNX.
 *
 * The nodes of these tests have all their sources as inputs, and many have no axis of samples. A network of convoy has
 * its weights inside, and the first axis of its inputs is that of the samples. So each test is run several times: with
 * each input as the one that depends on the sample, while the other inputs are constants in the file, and with all
 * inputs as activations. Two changes are tried if a test is not taken as it is. Operators for which axes before the
 * first one do not matter get an axis of one sample (BATCHED). If the node only moves elements, so that no layer
 * computes the output, a Neg follows (NEGATED). A test passes if convoy takes it in one of these ways, and gives the
 * expected numbers in each that it takes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test_util.h"

#if CVY_HAVE_PROTOBUF_C

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include <convoy/convoy.h>

#include "base/base_file.h"
#include "exchange/exchange.h"
#include "exchange/onnx/onnx_def.h"
#include "exchange/onnx/onnx_file.h"

enum { MOST = 16, NAME = 256, SENTENCE = 400 };
#define FILE_BYTES ((size_t)64 << 20)

static cvy_context *context;
static char small_file[64];

/* ---- what is found out ---- */

enum verdict { PASSED, DECLINED, WRONG };

struct result {
    char test[NAME], op[NAME], sentence[SENTENCE];
    enum verdict verdict;
};

static struct result *results;
static int nresult, result_room;

static int by_operator(const void *a, const void *b)
{
    const struct result *x = a, *y = b;
    const int op = strcmp(x->op, y->op), said = strcmp(x->sentence, y->sentence);
    return op ? op : said ? said : strcmp(x->test, y->test);
}

/* ---- one test: its model and arrays ---- */

struct arrays {
    Cvy__Onnx__TensorProto *proto[MOST]; /* NULL: there is none, or it is no tensor */
    cvy_onnx_tensor value[MOST];
    int count;
};

struct node_test {
    cvy_pool *pool;
    Cvy__Onnx__ModelProto *model;
    struct arrays in, out;
    double tolerance;
};

static void read_arrays(struct node_test *t, const char *folder, const char *kind, size_t count, struct arrays *out)
{
    out->count = (int)(count < MOST ? count : MOST);
    for (int i = 0; i < out->count; i++) {
        char path[1024], *data = NULL;
        size_t bytes = 0;
        snprintf(path, sizeof path, "%s/test_data_set_0/%s_%d.pb", folder, kind, i);
        if (cvy_file_read(path, FILE_BYTES, &data, &bytes) != CVY_OK)
            continue;
        out->proto[i] = cvy__onnx__tensor_proto__unpack(NULL, bytes, (const uint8_t *)data);
        cvy_mem_free(&data);
        if (out->proto[i] && cvy_onnx_tensor_read(t->pool, ".", out->proto[i], &out->value[i]) != CVY_OK) {
            cvy__onnx__tensor_proto__free_unpacked(out->proto[i], NULL);
            out->proto[i] = NULL;
        }
    }
}

static double number(const cvy_onnx_tensor *t, int64_t i)
{
    return t->dtype == CVY_DTYPE_F32   ? (double)((const float *)t->data)[i]
           : t->dtype == CVY_DTYPE_F64 ? ((const double *)t->data)[i]
                                       : (double)((const int64_t *)t->data)[i];
}

static void close_test(struct node_test *t)
{
    for (int i = 0; i < MOST; i++) {
        if (t->in.proto[i])
            cvy__onnx__tensor_proto__free_unpacked(t->in.proto[i], NULL);
        if (t->out.proto[i])
            cvy__onnx__tensor_proto__free_unpacked(t->out.proto[i], NULL);
    }
    cvy_onnx_file_free(&t->model);
    cvy_pool_destroy(&t->pool);
}

/* ---- a way to run it ---- */

enum { BATCHED = 1, NEGATED = 2, CHANGES = 4 };

struct way {
    unsigned activations; /* a bit for each input that depends on the sample */
    int output, changes;
};

/* An input with an axis of length 1 before the others. */
struct batched_info {
    Cvy__Onnx__ValueInfoProto info;
    Cvy__Onnx__TypeProto type;
    Cvy__Onnx__TensorTypeProto tensor;
    Cvy__Onnx__TensorShapeProto shape;
    Cvy__Onnx__DimensionProto first, *dim[2 * CVY_NDIM_MAX];
};

static Cvy__Onnx__ValueInfoProto *add_batch(const Cvy__Onnx__ValueInfoProto *from, struct batched_info *to)
{
    to->info = *from;
    to->type = *from->type;
    to->tensor = *from->type->tensor_type;
    to->shape = *from->type->tensor_type->shape;
    to->info.type = &to->type;
    to->type.tensor_type = &to->tensor;
    to->tensor.shape = &to->shape;
    cvy__onnx__dimension_proto__init(&to->first);
    to->first.dim_value = 1;
    to->dim[0] = &to->first;
    for (size_t i = 0; i < to->shape.n_dim && i < CVY_NDIM_MAX; i++)
        to->dim[i + 1] = to->shape.dim[i];
    to->shape.dim = to->dim;
    to->shape.n_dim = CVY_MIN(to->shape.n_dim, (size_t)CVY_NDIM_MAX) + 1;
    return &to->info;
}

static void pack(const Cvy__Onnx__ModelProto *model)
{
    const size_t bytes = cvy__onnx__model_proto__get_packed_size(model);
    uint8_t *data = malloc(bytes + 1);
    cvy__onnx__model_proto__pack(model, data);
    EXPECT_OK(cvy_file_replace(small_file, data, bytes));
    free(data);
}

/* Writes the model with the activations as inputs, the other inputs as initialisers, and one output. */
static void write_way(const struct node_test *t, const struct way *way)
{
    static char negated[] = "negated", op[] = "Neg";
    Cvy__Onnx__ModelProto model = *t->model;
    Cvy__Onnx__GraphProto graph = *t->model->graph;
    Cvy__Onnx__ValueInfoProto *in[MOST], *out[1] = {graph.output[way->output]}, last = *out[0];
    Cvy__Onnx__TensorProto *constant[MOST], *copy = calloc(MOST, sizeof *copy);
    Cvy__Onnx__NodeProto neg = CVY__ONNX__NODE_PROTO__INIT, *node[2] = {graph.node[0], &neg};
    struct batched_info *info = calloc(MOST, sizeof *info);
    char *source = out[0]->name, *result = negated;
    model.graph = &graph;
    graph.output = out;
    graph.n_output = 1;
    graph.input = in;
    graph.initializer = constant;
    graph.n_input = graph.n_initializer = 0;
    for (int i = 0; i < t->in.count; i++) {
        Cvy__Onnx__ValueInfoProto *given = t->model->graph->input[i];
        if (way->activations >> i & 1) {
            in[graph.n_input++] = way->changes & BATCHED ? add_batch(given, &info[i]) : given;
        } else if (t->in.proto[i]) {
            copy[i] = *t->in.proto[i];
            copy[i].name = given->name;
            constant[graph.n_initializer++] = &copy[i];
        }
    }
    if (way->changes & NEGATED) {
        neg.op_type = op;
        neg.input = &source;
        neg.output = &result;
        neg.n_input = neg.n_output = 1;
        last.name = negated;
        out[0] = &last;
        graph.node = node;
        graph.n_node = 2;
    }
    pack(&model);
    free(info);
    free(copy);
}

/* Whether axes before the first one do not change what the node does. */
static int is_batchable(const Cvy__Onnx__NodeProto *node)
{
    static const char *const pointwise[] = {
        "Abs",   "Add",       "Celu",        "Clip",       "Cos",      "Div",    "Dropout", "Elu",
        "Erf",   "Exp",       "Gelu",        "Log",        "Max",      "Mean",   "Min",     "Mish",
        "Mul",   "Neg",       "Pow",         "Reciprocal", "Relu",     "Selu",   "Sin",     "Sigmoid",
        "Sqrt",  "Softsign",  "Softplus",    "Sub",        "Sum",      "Tanh",   "Cast",    "DequantizeLinear",
        "PRelu", "HardSwish", "HardSigmoid", "LeakyRelu",  "Identity", "MatMul", "Swish"};
    for (int i = 0; i < CVY_COUNT(pointwise); i++)
        if (strcmp(pointwise[i], node->op_type) == 0)
            return 1;
    for (size_t i = 0; i < node->n_attribute; i++)
        if (strcmp(node->attribute[i]->name, "axis") == 0 && strcmp(node->op_type, "Flatten") != 0)
            return node->attribute[i]->i < 0;
    return 0;
}

/* The message without the file, and without the node. */
static void take_message(const char *op, char *sentence)
{
    char mark[NAME + 8];
    const char *text = cvy_error_text(), *at = NULL;
    while ((at = strstr(text, small_file)) != NULL && at[strlen(small_file)] == ':')
        text = at + strlen(small_file) + 2;
    snprintf(mark, sizeof mark, "(%s): ", op);
    at = *op ? strstr(text, mark) : NULL;
    snprintf(sentence, SENTENCE, "%s", at ? at + strlen(mark) : text);
}

/* Tests whose inputs and expected numbers were rounded to four decimals. */
static const char *const rounded[] = {"test_averagepool_2d_ceil_last_window_starts_on_pad"};

static double tolerance_of(const char *test)
{
    for (int i = 0; i < CVY_COUNT(rounded); i++)
        if (strcmp(rounded[i], test) == 0)
            return 1e-4;
    return 1e-5;
}

static int is_close(double got, double expected, double tolerance)
{
    return (isnan(got) && isnan(expected)) || got == expected ||
           fabs(got - expected) <= tolerance * fmax(1, fabs(expected));
}

static enum verdict compare(const struct node_test *t, const struct way *way, const cvy_shape *sample, const float *y,
                            char *sentence)
{
    const cvy_onnx_tensor *expected = &t->out.value[way->output];
    const int skipped = way->changes & BATCHED ? 0 : 1;
    const cvy_shape rest = cvy_shape_make(expected->shape.ndim - skipped, expected->shape.dim + skipped);
    if (!cvy_shape_equal(&rest, sample)) {
        snprintf(sentence, SENTENCE, "the result of a sample is %s, expected %s", cvy_shape_text(sample),
                 cvy_shape_text(&rest));
        return WRONG;
    }
    for (int64_t i = 0; i < expected->elems; i++) {
        const double got = way->changes & NEGATED ? -(double)y[i] : (double)y[i];
        if (!is_close(got, number(expected, i), t->tolerance)) {
            snprintf(sentence, SENTENCE, "element %lld is %.9g, expected %.9g", (long long)i, got, number(expected, i));
            return WRONG;
        }
    }
    return PASSED;
}

/* Applies the open network to the activations. */
static enum verdict apply(const struct node_test *t, cvy_network *network, const struct way *way, int64_t samples,
                          char *sentence)
{
    const cvy_onnx_tensor *expected = &t->out.value[way->output];
    cvy_network_in in[MOST];
    cvy_shape sample;
    int nin = 0, is_read = 1, is_turned = 0;
    enum verdict verdict = DECLINED;
    EXPECT_OK(cvy_network_output(network, 0, NULL, &sample));
    for (int i = 0; i < t->in.count; i++) {
        if (!(way->activations >> i & 1))
            continue;
        const cvy_onnx_tensor *v = &t->in.value[i];
        const char *name = NULL;
        cvy_dtype dtype = CVY_DTYPE_F32;
        float *x = malloc(sizeof *x * (size_t)(v->elems + 1));
        const int skipped = way->changes & BATCHED ? 0 : 1;
        const cvy_shape given = cvy_shape_make(v->shape.ndim - skipped, v->shape.dim + skipped);
        cvy_shape taken = given;
        if (cvy_network_input(network, nin, &name, &dtype, &taken) != CVY_OK)
            is_read = 0;
        for (int64_t k = 0; k < v->elems; k++)
            if (dtype == CVY_DTYPE_U8)
                ((uint8_t *)x)[k] = (uint8_t)number(v, k);
            else
                x[k] = (float)number(v, k);
        is_turned |= !cvy_shape_equal(&taken, &given);
        in[nin++] = (cvy_network_in){name, dtype == CVY_DTYPE_U8 ? dtype : CVY_DTYPE_F32, v->elems, x, {0}};
    }
    const int64_t elems = samples * cvy_shape_elems(&sample);
    float *y = calloc((size_t)(elems + 1), sizeof *y);
    const cvy_network_out out = {NULL, CVY_DTYPE_F32, elems, y};
    const cvy_status status = is_read && !is_turned ? cvy_network_apply(network, samples, in, nin, &out, 1) : CVY_END;
    if (status == CVY_END)
        snprintf(sentence, SENTENCE, "%s",
                 is_turned ? "its input, of which only a Transpose moves the last axis to the front, is taken with the "
                             "channels first"
                           : "its output does not depend on one of its inputs");
    else if (status != CVY_OK)
        take_message("", sentence);
    else if (!(way->changes & BATCHED) && (expected->shape.ndim < 1 || expected->shape.dim[0] != samples))
        snprintf(sentence, SENTENCE, "the first axis of its result is not that of the samples");
    else
        verdict = compare(t, way, &sample, y, sentence);
    for (int i = 0; i < nin; i++)
        free((void *)(uintptr_t)in[i].data);
    free(y);
    return verdict;
}

/* The number of samples of the activations; 0: they are no samples. */
static int64_t count_samples(const struct node_test *t, const struct way *way, char *sentence)
{
    int64_t samples = -1;
    for (int i = 0; i < t->in.count; i++) {
        const cvy_shape *shape = &t->in.value[i].shape;
        const int batched = way->changes & BATCHED;
        if (!t->in.proto[i] && *t->model->graph->input[i]->name) {
            snprintf(sentence, SENTENCE, "an input is no tensor, or of a data type that is not supported");
            return 0;
        }
        if (!(way->activations >> i & 1))
            continue;
        if (!t->in.proto[i] || t->in.value[i].elems == 0 || shape->ndim < (batched ? 0 : 1) ||
            shape->ndim >= CVY_NDIM_MAX) {
            snprintf(sentence, SENTENCE, "an input has no axis of samples");
            return 0;
        }
        if (!batched && samples >= 0 && shape->dim[0] != samples) {
            snprintf(sentence, SENTENCE, "the first axes of its inputs differ, so they are not those of the samples");
            return 0;
        }
        samples = batched ? 1 : shape->dim[0];
    }
    return samples;
}

static int is_f32_or_f64(const Cvy__Onnx__TensorProto *t)
{
    return t->data_type == CVY_ONNX_FLOAT || t->data_type == CVY_ONNX_DOUBLE;
}

static enum verdict run_way(struct node_test *t, const struct way *way, char *sentence)
{
    const cvy_onnx_tensor *expected = &t->out.value[way->output];
    cvy_network_opts opts = {.size = sizeof opts};
    cvy_network *network = NULL;
    enum verdict verdict = DECLINED;
    if ((opts.batch = count_samples(t, way, sentence)) == 0)
        return DECLINED;
    if (!t->out.proto[way->output] || !is_f32_or_f64(t->out.proto[way->output]) || expected->elems == 0) {
        snprintf(sentence, SENTENCE, "its result is not a tensor of f32 or f64 with elements");
        return DECLINED;
    }
    write_way(t, way);
    if (cvy_network_open(context, small_file, &opts, &network) != CVY_OK)
        take_message(t->model->graph->node[0]->op_type, sentence);
    else
        verdict = apply(t, network, way, opts.batch, sentence);
    cvy_network_destroy(&network);
    return verdict;
}

/* Batch norm and dropout in training mode depend on the other samples or on random numbers. convoy trains with them,
 * and predicts without. */
static int is_training(const struct node_test *t)
{
    const Cvy__Onnx__NodeProto *node = t->model->graph->node[0];
    for (size_t i = 0; i < node->n_attribute; i++)
        if (strcmp(node->attribute[i]->name, "training_mode") == 0)
            return node->attribute[i]->i != 0;
    return strcmp(node->op_type, "Dropout") == 0 && t->in.count > 2 && t->in.proto[2] && t->in.value[2].elems == 1 &&
           number(&t->in.value[2], 0) != 0;
}

/* The verdict with these activations and output; the sentence is that for the test as it is. */
static enum verdict run_changes(struct node_test *t, struct way *way, char *sentence)
{
    char said[SENTENCE];
    enum verdict verdict = DECLINED;
    for (way->changes = 0; way->changes < CHANGES && verdict == DECLINED; way->changes++) {
        if ((way->changes & BATCHED) && !is_batchable(t->model->graph->node[0]))
            continue;
        verdict = run_way(t, way, said);
        if (way->changes == 0 || verdict != DECLINED)
            snprintf(sentence, SENTENCE, "%s", said);
    }
    return verdict;
}

/* The verdict on all ways: wrong if one of them is, else passed if one is. */
static enum verdict run_ways(struct node_test *t, char *sentence)
{
    const unsigned all = (1U << t->in.count) - 1;
    enum verdict verdict = DECLINED;
    char said[SENTENCE];
    *sentence = '\0';
    if (is_training(t))
        snprintf(sentence, SENTENCE, "it is in training mode, and convoy predicts as in evaluation");
    else if (t->in.count == 0)
        snprintf(sentence, SENTENCE, "it has no input");
    if (*sentence)
        return DECLINED;
    for (size_t k = 0; k < t->model->graph->n_output && k < MOST; k++)
        for (int i = 0; i <= t->in.count && *t->model->graph->output[k]->name; i++) {
            struct way way = {.activations = i < t->in.count ? 1U << i : all, .output = (int)k};
            if (i == t->in.count && i == 1)
                continue;
            const enum verdict one = run_changes(t, &way, said);
            if (one == WRONG || !*sentence)
                snprintf(sentence, SENTENCE, "%s", said);
            if (one == WRONG)
                return WRONG;
            verdict = one == PASSED ? PASSED : verdict;
        }
    return verdict;
}

/* A test counts if it has one node, of an operator that is read. */
static void run_test(const char *root, const char *name)
{
    char folder[1024], path[1100];
    struct node_test t = {.tolerance = tolerance_of(name)};
    snprintf(folder, sizeof folder, "%s/%s", root, name);
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    EXPECT_OK(cvy_pool_create(&t.pool));
    if (cvy_onnx_file_read(path, &t.model) == CVY_OK && t.model->graph->n_node == 1 &&
        (!t.model->graph->node[0]->domain || !*t.model->graph->node[0]->domain) &&
        cvy_onnx_find(t.model->graph->node[0]->op_type)) {
        struct result *r = NULL;
        EXPECT_OK(cvy_mem_reserve(&results, &result_room, nresult, sizeof *results));
        r = &results[nresult++];
        *r = (struct result){0};
        snprintf(r->test, sizeof r->test, "%s", name);
        snprintf(r->op, sizeof r->op, "%s", t.model->graph->node[0]->op_type);
        read_arrays(&t, folder, "input", t.model->graph->n_input, &t.in);
        read_arrays(&t, folder, "output", t.model->graph->n_output, &t.out);
        r->verdict = run_ways(&t, r->sentence);
        test_checks++;
        if (r->verdict == WRONG) {
            printf("%s (%s): %s\n", r->test, r->op, r->sentence);
            test_failures++;
        }
        if (r->verdict == PASSED)
            *r->sentence = '\0';
    }
    close_test(&t);
}

/* ---- the page ---- */

static const char head[] =
    "# Operators of ONNX\n"
    "\n"
    "Convoy reads the operators of this table, in `model: {onnx: FILE}`, `convoy predict FILE.onnx` and\n"
    "`cvy_network_open()`, of operator sets 1 and newer. Operators on constants alone, which compute shapes, are "
    "computed\n"
    "while the file is read.\n"
    "\n"
    "In operator sets 1 to 6 `broadcast` and `axis` say how two sources lie to each other; later ones align the last "
    "axes.\n"
    "Both are read. A node with an attribute that is not known, or whose value has no counterpart here, is refused.\n"
    "\n"
    "An input declared as integers (`UINT8`, `INT8`, .. `INT64`, `BOOL`) gets the numbers of the data: bytes stay 0 to "
    "255.\n"
    "For an input of real numbers bytes are divided by 255, as in all jobs. Layers compute with real numbers, so "
    "integers may\n"
    "be moved, compared and cast to `FLOAT`. Arithmetic that would wrap around is refused.\n"
    "\n"
    "A file with other operators is refused; the message begins with `N nodes use operators that are not supported` "
    "and "
    "has\n"
    "each operator with its node. What is refused of the operators of this page stands in the last table, with the "
    "sentence of\n"
    "the message. `test_onnx_networks` runs the 104 networks that come with ONNX and have one real input: 96 of them "
    "are "
    "read,\n"
    "and none is wrong; `scripts/check_onnx_nodes.sh` also runs those of the model zoo that the package onnx has.\n"
    "`scripts/check_onnx.py` compares torchvision's networks with ONNX Runtime, and steps of training with PyTorch.\n"
    "\n"
    "`Einsum` with more than two sources, with a label twice in a source that depends on the input, or with a sum over "
    "the\n"
    "samples is refused (`its equation ..`). So is `ScatterND` with indices that are not constant, that name samples "
    "or "
    "name\n"
    "a place twice (with reduction add they may), or with another reduction than none and add.\n"
    "\n"
    "This page is made by `test_onnx_nodes --write`. It says for each operator of ONNX that convoy reads how many of "
    "the\n"
    "tests in ONNX's own collection pass: the result differs by less than 1e-5, absolute or relative. No test may give "
    "a\n"
    "wrong result. A test that convoy does not take is declined with the sentence that a user sees.\n"
    "\n"
    "In these tests all sources of a node are inputs. Convoy reads networks: the first axis of each input is that of "
    "the\n"
    "samples, which do not depend on each other, and weights are constants of the file. So a test is run with each of "
    "its\n"
    "inputs as the one that depends on the sample while the others are constants, and with all of them as inputs.\n"
    "Operators on single elements also get an axis of one sample before the others. Many tests are declined because "
    "their\n"
    "first axis is not one of samples, or because they compute with integers.\n"
    "\n";

static void write_table(cvy_text *page)
{
    cvy_text_add(page, "| operator | tests | passed | declined |\n|---|---|---|---|\n");
    for (int i = 0, end = 0; i < nresult; i = end) {
        int passed = 0;
        for (end = i; end < nresult && strcmp(results[end].op, results[i].op) == 0; end++)
            passed += results[end].verdict == PASSED;
        cvy_text_add(page, "| %s | %d | %d | %d |\n", results[i].op, end - i, passed, end - i - passed);
    }
}

static void write_declined(cvy_text *page)
{
    cvy_text_add(page, "\n## Declined tests\n\n| operator | tests | why |\n|---|---|---|\n");
    for (int i = 0, end = 0; i < nresult; i = end) {
        for (end = i; end < nresult && strcmp(results[end].op, results[i].op) == 0 &&
                      strcmp(results[end].sentence, results[i].sentence) == 0;
             end++)
            ;
        if (results[i].verdict == PASSED)
            continue;
        cvy_text_add(page, "| %s | ", results[i].op);
        for (int k = i; k < end; k++)
            cvy_text_add(page, "%s`%s`", k > i ? ", " : "", results[k].test);
        cvy_text_add(page, " | %s |\n", results[i].sentence);
    }
}

static void make_page(cvy_text *page)
{
    int passed = 0;
    for (int i = 0; i < nresult; i++)
        passed += results[i].verdict == PASSED;
    cvy_text_add(page, "%s%d tests of these operators were run: %d pass, %d are declined.\n\n", head, nresult, passed,
                 nresult - passed);
    write_table(page);
    write_declined(page);
}

static const char *page_path(char *out, size_t size)
{
    const char *source = getenv("CONVOY_SOURCE"), *here = strstr(__FILE__, "tests/exchange/");
    if (source)
        snprintf(out, size, "%s/docs/reference/onnx.md", source);
    else
        snprintf(out, size, "%.*sdocs/reference/onnx.md", here ? (int)(here - __FILE__) : 0, __FILE__);
    return out;
}

/* Another version of the collection has other tests, and so another page. */
static void page_is_current(const char *page)
{
    char path[1024], *old = NULL, mark[64];
    size_t bytes = 0;
    EXPECT_OK(cvy_file_read(page_path(path, sizeof path), FILE_BYTES, &old, &bytes));
    snprintf(mark, sizeof mark, "\n%d tests of ", nresult);
    if (old && strstr(old, mark) && strcmp(old, page) != 0) {
        printf("docs/reference/onnx.md differs; run test_onnx_nodes --write\n");
        test_failures++;
    }
    test_checks++;
    cvy_mem_free(&old);
}

/* ---- all tests ---- */

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int run_all(const char *root, int writes)
{
    struct dirent **entry = NULL;
    cvy_text page = {0};
    char path[1024];
    const int n = scandir(root, &entry, NULL, by_name);
    if (n < 0) {
        printf("the tests of ONNX's nodes are not there: install libonnx-testdata, or set CONVOY_ONNX_NODES\n");
        return 77;
    }
    for (int i = 0; i < n; i++) {
        if (strncmp(entry[i]->d_name, "test_", 5) == 0)
            run_test(root, entry[i]->d_name);
        free(entry[i]);
    }
    free(entry);
    qsort(results, (size_t)nresult, sizeof *results, by_operator);
    make_page(&page);
    EXPECT_OK(page.status);
    if (writes)
        EXPECT_OK(cvy_file_replace(page_path(path, sizeof path), page.data, page.bytes));
    else
        page_is_current(page.data);
    cvy_text_free(&page);
    cvy_mem_free(&results);
    return test_end();
}

int main(int argc, char **argv)
{
    const char *root = getenv("CONVOY_ONNX_NODES");
    cvy_context_opts opts = cvy_context_opts_default();
    opts.threads = 1;
    snprintf(small_file, sizeof small_file, "onnx_node_%ld.onnx", (long)getpid());
    EXPECT_OK(cvy_context_create(&opts, &context));
    const int status =
        run_all(root ? root : "/usr/share/libonnx-testdata/data/node", argc > 1 && strcmp(argv[1], "--write") == 0);
    cvy_context_destroy(&context);
    unlink(small_file);
    return status;
}

#else

int main(void)
{
    printf("this build has no ONNX\n");
    return 77;
}

#endif
