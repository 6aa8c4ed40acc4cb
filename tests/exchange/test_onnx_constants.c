/* rows: clang asan */
/*
 * test_onnx_constants.c: which constants of an ONNX file are trained: what the file says, or names and places, or what
 * the job says; they keep names, shapes and values when the network is written again, and the user is told.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test_util.h"

#if CVY_HAVE_PROTOBUF_C

#include <math.h>
#include <unistd.h>

#include "exchange/exchange.h"
#include "exchange/onnx_file.h"

static const char file[] = "small.onnx";

/* The network's variables with a '-' before those that are not trained, "fc.weight -mask". */
static const char *variables_of(const cvy_import *import)
{
    static char line[512];
    size_t n = 0;
    line[0] = '\0';
    for (int i = 0; i < import->ntensor; i++) {
        int kept = 0;
        for (int k = 0; k < import->model->nlayer; k++)
            kept |= cvy_model_keeps(import->model, &import->model->layer[k], import->tensor[i].name);
        n += (size_t)snprintf(line + n, sizeof line - n, "%s%s%s", i ? " " : "", kept ? "-" : "",
                              import->tensor[i].name);
    }
    return line;
}

static const cvy_tensor_entry *find_tensor(const cvy_import *import, const char *name)
{
    for (int i = 0; i < import->ntensor; i++)
        if (strcmp(import->tensor[i].name, name) == 0)
            return &import->tensor[i];
    return NULL;
}

#define ROW(tensor, says)                                                                                              \
    {                                                                                                                  \
#tensor, .ndim = 1, .dim = {3 }, .value = {1, 2, 3 }, .kind = says                                             \
    }
#define MATRIX(tensor, says)                                                                                           \
    {                                                                                                                  \
#tensor, .ndim = 2, .dim = {3, 3 }, .value = {1 }, .step = 1, .period = 7, .kind = says                        \
    }

static const struct {
    struct onnx_graph graph;
    cvy_onnx_constants rule;
    const char *variables, *note; /* a part of it, or NULL: there is none */
} cases[] = {
    /* PyTorch's newer exporter says what is a parameter. Then names do not count. */
    {{.ndim = 1,
      .dim = {3},
      .node = {{"MatMul", "x w.weight", "a", NULL}, {"Add", "a mask", "b", NULL}, {"Mul", "b pos_embed", "y", NULL}},
      .constant = {MATRIX(w.weight, "PARAMETER"), ROW(mask, "PARAMETER"), ROW(pos_embed, "BUFFER")}},
     CVY_ONNX_CONSTANTS_AUTO,
     "w.weight mask -pos_embed",
     "not trained, as constants of the file: pos_embed;"},
    {{.ndim = 1,
      .dim = {3},
      .node = {{"MatMul", "x filter", "a", NULL}, {"Add", "a b.bias", "y", NULL}},
      .constant = {MATRIX(filter, "BUFFER"),
                   {"b.bias", .ndim = 2, .dim = {1, 3}, .value = {1, 2, 3}, .kind = "PARAMETER"}}},
     CVY_ONNX_CONSTANTS_AUTO,
     "-a.weight b.shift",
     "a.weight (filter)"},
    /* Other files: by names and places. */
    {{.ndim = 1,
      .dim = {3},
      .node = {{"MatMul", "x w.weight", "a", NULL},
               {"Add", "a block.pos_embed", "b", NULL},
               {"Add", "b attn.mask", "c", NULL},
               {"Sub", "c pixel_mean", "y", NULL}},
      .constant = {MATRIX(w.weight, NULL), ROW(block.pos_embed, NULL), ROW(attn.mask, NULL), ROW(pixel_mean, NULL)}},
     CVY_ONNX_CONSTANTS_AUTO,
     "w.weight block.pos_embed -attn.mask -pixel_mean",
     "not trained, as constants of the file: attn.mask, pixel_mean;"},
    {{.ndim = 1,
      .dim = {3},
      .node = {{"Mul", "x gamma", "a", NULL}, {"Add", "a scale_of_x", "y", NULL}},
      .constant = {ROW(gamma, NULL), {"scale_of_x", .ndim = 1, .dim = {3}, .value = {0, 0, -INFINITY}}}},
     CVY_ONNX_CONSTANTS_AUTO,
     "gamma -scale_of_x",
     "or places: gamma\n"},
    {{.ndim = 1, .dim = {3}, .node = {{"MatMul", "x w", "y", NULL}}, .constant = {MATRIX(w, NULL)}},
     CVY_ONNX_CONSTANTS_AUTO,
     "y_2.weight",
     "y_2.weight (w)"},
    {{.ndim = 1,
      .dim = {3},
      .node = {{"MatMul", "x onnx::MatMul_7", "y", NULL}},
      .constant = {MATRIX(onnx::MatMul_7, NULL)}},
     CVY_ONNX_CONSTANTS_AUTO,
     "y_2.weight",
     NULL},
    /* What is computed from a constant is one; a part of a parameter is a parameter. */
    {{.ndim = 1,
      .dim = {3},
      .node =
          {{"Neg", "mask", "m", NULL}, {"Add", "x m", "a", NULL}, {"Neg", "p", "q", NULL}, {"Add", "a q", "y", NULL}},
      .constant = {ROW(mask, "BUFFER"), ROW(p, "PARAMETER")}},
     CVY_ONNX_CONSTANTS_AUTO,
     "-a.shift y_2.shift",
     "not trained, as constants of the file: a.shift (made of mask)"},
    /* A tensor in two forms becomes two, and the user is told; the same form twice is one. */
    {{.ndim = 1,
      .dim = {3},
      .node = {{"MatMul", "x w.weight", "a", NULL},
               {"Transpose", "w.weight", "t", "perm: 1 0"},
               {"MatMul", "a t", "y", NULL}},
      .constant = {MATRIX(w.weight, "PARAMETER")}},
     CVY_ONNX_CONSTANTS_AUTO,
     "w.weight y_2.weight",
     "are not tied to each other: w.weight\n"},
    {{.ndim = 1,
      .dim = {3},
      .node = {{"Transpose", "w.weight", "s", "perm: 1 0"},
               {"MatMul", "x s", "a", NULL},
               {"Transpose", "w.weight", "t", "perm: 1 0"},
               {"Gemm", "a w.weight", "b", "transB: 1"},
               {"MatMul", "b t", "y", NULL}},
      .constant = {MATRIX(w.weight, "PARAMETER")}},
     CVY_ONNX_CONSTANTS_AUTO,
     "w.weight",
     NULL},
    /* A parameter of one number is an option. */
    {{.ndim = 1,
      .dim = {3},
      .node = {{"MatMul", "x w.weight", "a", NULL}, {"Mul", "a gain", "b", NULL}, {"Add", "two b", "y", NULL}},
      .constant = {MATRIX(w.weight, "PARAMETER"),
                   {"gain", .value = {1.5}, .kind = "PARAMETER"},
                   {"two", .ndim = 1, .dim = {1}, .value = {2}, .kind = "BUFFER"}}},
     CVY_ONNX_CONSTANTS_AUTO,
     "w.weight",
     "not trained, as a single number becomes an option of a layer: gain\n"},
    {{.ndim = 1,
      .dim = {3},
      .node = {{"Div", "x block.temperature_scale", "a", NULL}, {"MatMul", "a w.weight", "y", NULL}},
      .constant = {MATRIX(w.weight, NULL), {"block.temperature_scale", .ndim = 1, .dim = {1}, .value = {3}}}},
     CVY_ONNX_CONSTANTS_AUTO,
     "w.weight",
     "an option of a layer: block.temperature_scale\n"},
    /* What the job says. */
    {{.ndim = 1, .dim = {3}, .node = {{"Add", "x mask", "y", NULL}}, .constant = {ROW(mask, "BUFFER")}},
     CVY_ONNX_CONSTANTS_TRAINED,
     "mask",
     "mask\n"},
    {{.ndim = 1,
      .dim = {3},
      .node = {{"MatMul", "x w.weight", "a", NULL}, {"Add", "a p", "y", NULL}},
      .constant = {MATRIX(w.weight, NULL), {"p", .ndim = 2, .dim = {1, 3}, .value = {1, 2, 3}, .kind = "PARAMETER"}}},
     CVY_ONNX_CONSTANTS_KEPT,
     "w.weight -p",
     "file: p;"},
};

static void test_rules(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cvy_import import = {0};
        const int before = test_failures;
        onnx_write(&cases[i].graph, file);
        EXPECT_OK(cvy_import_onnx_constants(file, cases[i].rule, &import));
        EXPECT_TEXT(variables_of(&import), cases[i].variables);
        EXPECT(cases[i].note ? import.notes.data && strstr(import.notes.data, cases[i].note) : !import.notes.data);
        if (test_failures > before)
            printf("       that was case %zu, with the notes %s\n", i, import.notes.data ? import.notes.data : "none");
        cvy_import_free(&import);
    }
}

/* The file that is written has the same tensors, and says which are not trained. */
static void test_written_again(void)
{
    static const struct onnx_graph graph = {
        .ndim = 2,
        .dim = {2, 3},
        .node = {{"Sub", "x mean", "a", NULL}, {"Add", "a pos_embed", "b", NULL}, {"Add", "b mask", "y", NULL}},
        .constant = {ROW(mean, NULL),
                     {"pos_embed", .ndim = 3, .dim = {1, 2, 3}, .value = {0.5}, .step = 1, .period = 6},
                     {"mask", .ndim = 2, .dim = {2, 3}, .value = {0, -INFINITY, 0, 0, 0, -INFINITY}}}};
    cvy_import first = {0}, again = {0};
    onnx_write(&graph, file);
    EXPECT_OK(cvy_import_onnx(file, &first));
    EXPECT_TEXT(variables_of(&first), "-mean pos_embed -mask");
    const cvy_export_output output = {.name = first.model ? first.model->output : ""};
    const cvy_export export = {.model = first.model,
                               .output = &output,
                               .noutput = 1,
                               .tensor = first.tensor,
                               .ntensor = first.ntensor,
                               .x_dtype = CVY_DTYPE_F32,
                               .opset = CVY_ONNX_OPSET_MAX};
    EXPECT_OK(cvy_export_onnx(file, &export));
    EXPECT_OK(cvy_import_onnx(file, &again));
    EXPECT_TEXT(variables_of(&again), "-mean pos_embed -mask");
    for (int i = 0; i < first.ntensor; i++) {
        const cvy_tensor_entry *a = &first.tensor[i], *b = find_tensor(&again, a->name);
        EXPECT(b && cvy_shape_equal(&a->shape, &b->shape) &&
               memcmp(a->data, b->data, (size_t)cvy_shape_elems(&a->shape) * sizeof(float)) == 0);
    }
    const cvy_tensor_entry *table = find_tensor(&again, "pos_embed"), *mask = find_tensor(&again, "mask");
    EXPECT(table && table->shape.ndim == 3);
    EXPECT(mask && ((const float *)mask->data)[1] == -INFINITY);
    cvy_import_free(&first);
    cvy_import_free(&again);
}

int main(void)
{
    char folder[] = "onnx_constants_XXXXXX";
    EXPECT(mkdtemp(folder) && chdir(folder) == 0);
    TEST(test_rules);
    TEST(test_written_again);
    EXPECT(unlink(file) == 0 && chdir("..") == 0 && rmdir(folder) == 0);
    return test_end();
}

#else

int main(void)
{
    EXPECT_OK(CVY_OK);
    return test_end();
}

#endif
