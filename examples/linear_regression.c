/* rows: clang asan */
/*
 * linear_regression.c: a minimal use of libconvoy: it fits y = W x + b to four points.
 *
 *     mpicc linear_regression.c $(pkg-config --cflags --libs convoy) -lm -o linear_regression && ./linear_regression
 *
 * It prints W = -1.00000, b = 1.00000.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <math.h>
#include <stdio.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        if ((call) < 0) {                                                                                              \
            fprintf(stderr, "linear_regression: %s\n", cvy_error_text());                                              \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)

int main(void)
{
    static const float xs[] = {1, 2, 3, 4}, ys[] = {0, -1, -2, -3};
    cvy_context *context = NULL;
    cvy_model *model = NULL;
    cvy_program *program = NULL;
    int train = 0;

    /* The network: one fully connected layer, mean squared error. */
    CHECK(cvy_model_create("line", &model));
    CHECK(cvy_model_add_input(model, "x", CVY_DTYPE_F32, &(cvy_shape){1, {1}}));
    CHECK(cvy_model_add_input(model, "y", CVY_DTYPE_F32, &(cvy_shape){1, {1}}));
    CHECK(cvy_model_add(model, "fc", "line", "channels: 1", "x"));
    CHECK(cvy_model_add(model, "mse", "loss", NULL, "line, y"));

    /* One training step of four samples, planned before the first one runs. */
    CHECK(cvy_context_create(NULL, &context));
    CHECK(cvy_program_create(context, NULL, &program));
    CHECK(cvy_program_add_training(program, model, 4, NULL, &train));
    CHECK(cvy_program_plan(program));

    float *x = cvy_program_feed(program, train, "x"), *y = cvy_program_feed(program, train, "y");
    for (int i = 0; i < 4; i++) {
        x[i] = xs[i];
        y[i] = ys[i];
    }
    for (int step = 0; step < 2000; step++)
        CHECK(cvy_program_step(program, train, 0.05));

    float W = 0, b = 0;
    double loss = 0;
    CHECK(cvy_program_get(program, "line.weight", &W, 1));
    CHECK(cvy_program_get(program, "line.bias", &b, 1));
    CHECK(cvy_program_loss(program, train, "loss", &loss));
    printf("W = %.5f, b = %.5f, loss = %.2g\n", W, b, loss);

    cvy_program_destroy(&program);
    cvy_model_destroy(&model);
    cvy_context_destroy(&context);
    return fabsf(W + 1) < 1e-4f && fabsf(b - 1) < 1e-4f ? 0 : 1;
}
