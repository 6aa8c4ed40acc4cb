/*
 * onnx_case.h: runs small ONNX files, which onnx_file.h writes: operators, the layers that they become, and the numbers
 * that these give.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef TEST_ONNX_CASE_H
#define TEST_ONNX_CASE_H

#include "test_util.h"

#include <convoy/convoy.h>

#include "exchange/exchange.h"
#include "exchange/onnx_file.h"
#include "exchange/onnx_folder.h"

enum { SAMPLES = 2, MOST = 512 };

typedef void (*expect_fn)(const float *x, double *y); /* of one sample */

struct operator_case {
    struct onnx_graph graph;
    const char *layers; /* operators of the model, ' ' between */
    int elems;          /* of a sample of the output */
    expect_fn expect;
};

static void operators_of(const cvy_model *model, char *out, size_t size)
{
    *out = '\0';
    for (int i = 0; i < model->nlayer; i++)
        snprintf(out + strlen(out), size - strlen(out), "%s%s", i ? " " : "", model->layer[i].op->name);
}

static void check_layers(const struct operator_case *c)
{
    cvy_import import = {0};
    char layers[TEXT];
    EXPECT_OK(cvy_import_onnx("small.onnx", &import));
    if (import.model) {
        operators_of(import.model, layers, sizeof layers);
        EXPECT_TEXT(layers, c->layers);
    }
    cvy_import_free(&import);
}

static void check_numbers(const struct operator_case *c)
{
    static float x[SAMPLES * 24], y[SAMPLES * MOST];
    double expected[MOST];
    const cvy_network_in in = {"x", CVY_DTYPE_F32, SAMPLES * 24, x, {0}};
    const cvy_network_out out = {NULL, CVY_DTYPE_F32, SAMPLES * c->elems, y};
    cvy_network *network = NULL;
    for (int i = 0; i < SAMPLES * 24; i++)
        x[i] = (float)((i * 37 + i / 24) % 41) / 5 - 3.5f;
    EXPECT_OK(cvy_network_open(context, "small.onnx", NULL, &network));
    if (network) {
        EXPECT_OK(cvy_network_apply(network, SAMPLES, &in, 1, &out, 1));
        for (int s = 0; s < SAMPLES; s++) {
            c->expect(x + s * 24, expected);
            for (int i = 0; i < c->elems; i++)
                EXPECT_NEAR(y[s * c->elems + i], expected[i], 1e-5 * fmax(1, fabs(expected[i])));
        }
    }
    cvy_network_destroy(&network);
}

/* Each file becomes the expected layers, which give the expected numbers. */
static void run_cases(const struct operator_case *cases, int n)
{
    for (int i = 0; i < n; i++) {
        const int failures = test_failures;
        onnx_write(&cases[i].graph, "small.onnx");
        check_layers(&cases[i]);
        check_numbers(&cases[i]);
        if (test_failures != failures)
            printf("       that was case %d: %s\n", i, cases[i].layers);
    }
}

static cvy_status read_small(void)
{
    cvy_import import = {0};
    const cvy_status status = cvy_import_onnx("small.onnx", &import);
    cvy_import_free(&import);
    return status;
}

/* An allocation that fails is an error of each translation, and leaves nothing. */
static void run_without_memory(const struct operator_case *cases, int n)
{
    const int64_t held = cvy_memory_bytes();
    for (int i = 0; i < n; i++) {
        onnx_write(&cases[i].graph, "small.onnx");
        EXPECT_SURVIVES_NO_MEMORY(read_small());
        EXPECT_INT(cvy_memory_bytes(), held);
    }
}

#endif
