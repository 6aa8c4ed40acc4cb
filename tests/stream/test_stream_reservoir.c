/*
 * test_stream_reservoir.c: a reservoir keeps the newest samples, each with the same probability, or hard ones; batches
 * have no sample twice; fields of a sample stay together; a state that was saved goes on with the same samples and
 * batches. What does not fit is refused, and changes nothing.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "test_util.h"

enum { BATCH = 16, CAPACITY = 100 };

static cvy_context *context;
static cvy_program *program;
static int train, apply;

static void make_program(void)
{
    const cvy_program_opts opts = {.size = sizeof opts, .wisdom = "off"};
    cvy_model *m = NULL;
    EXPECT_OK(cvy_model_create("stream", &m));
    EXPECT_OK(cvy_model_add_input(m, "x", CVY_DTYPE_F32, &(cvy_shape){1, {2}}));
    EXPECT_OK(cvy_model_add_input(m, "label", CVY_DTYPE_I32, &(cvy_shape){0}));
    EXPECT_OK(cvy_model_add(m, "fc", "fc", "channels: 3", "x"));
    EXPECT_OK(cvy_model_add(m, "softmax_cross_entropy", "loss", NULL, "fc, label"));
    EXPECT_OK(cvy_program_create(context, &opts, &program));
    EXPECT_OK(cvy_program_add_training(program, m, BATCH, NULL, &train));
    EXPECT_OK(cvy_program_add_forward(program, m, BATCH, "fc", &apply));
    EXPECT_OK(cvy_program_plan(program));
    cvy_model_destroy(&m);
}

static cvy_reservoir *new_reservoir(int64_t capacity, const char *keep, uint64_t seed)
{
    const cvy_reservoir_opts opts = {.size = sizeof opts, .capacity = capacity, .keep = keep, .seed = seed};
    cvy_reservoir *r = NULL;
    EXPECT_OK(cvy_reservoir_create(&opts, &r));
    EXPECT_OK(cvy_reservoir_add_field(r, "x", CVY_DTYPE_F32, &(cvy_shape){1, {2}}));
    EXPECT_OK(cvy_reservoir_add_field(r, "label", CVY_DTYPE_U8, &(cvy_shape){0}));
    return r;
}

/* Sample t is x = (t, -t), label = t % 3. */
static void push(cvy_reservoir *r, int64_t first, int n)
{
    double x[200];
    int64_t label[100];
    for (int i = 0; i < n; i++) {
        x[2 * i] = (double)(first + i);
        x[2 * i + 1] = -(double)(first + i);
        label[i] = (first + i) % 3;
    }
    EXPECT_OK(cvy_reservoir_put(r, "x", CVY_DTYPE_F64, x, 2 * n));
    EXPECT_OK(cvy_reservoir_put(r, "label", CVY_DTYPE_I64, label, n));
    EXPECT_OK(cvy_reservoir_push(r));
}

/* Draws, and gives the numbers of the samples, whose fields must belong together. */
static void draw(cvy_reservoir *r, int64_t t[BATCH])
{
    EXPECT_OK(cvy_reservoir_draw(r, program, train));
    const float *x = cvy_program_feed(program, train, "x");
    const int32_t *label = cvy_program_feed(program, train, "label");
    for (int i = 0; i < BATCH; i++) {
        t[i] = (int64_t)x[2 * i];
        EXPECT(x[2 * i + 1] == -x[2 * i]);
        EXPECT_INT(label[i], t[i] % 3);
    }
}

static void newest_are_kept(void)
{
    cvy_reservoir *r = new_reservoir(CAPACITY, "newest", 1);
    int64_t t[BATCH], least = 1000, most = 0;
    int count[1000] = {0};
    for (int i = 0; i < 50; i++)
        push(r, 7 * i, 7);
    EXPECT_INT(cvy_reservoir_held(r), CAPACITY);
    EXPECT_INT(cvy_reservoir_seen(r), 350);
    for (int k = 0; k < 200; k++) {
        draw(r, t);
        for (int i = 0; i < BATCH; i++) {
            least = t[i] < least ? t[i] : least;
            most = t[i] > most ? t[i] : most;
            count[t[i]]++;
            for (int j = 0; j < i; j++)
                EXPECT(t[i] != t[j]);
        }
    }
    EXPECT_INT(least, 250);
    EXPECT_INT(most, 349);
    for (int i = 250; i < 350; i++) /* 32 expected, with a deviation of 5.2 */
        EXPECT(count[i] > 6 && count[i] < 62);
    cvy_reservoir_destroy(&r);
}

/* After 2000 samples the mean number of those that are kept is 1000, with a deviation of 577 / sqrt(kept). */
static void all_are_equally_likely(void)
{
    double sum = 0, early = 0;
    int n = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        cvy_reservoir *r = new_reservoir(BATCH, NULL, seed);
        int64_t t[BATCH];
        for (int i = 0; i < 100; i++)
            push(r, 20 * i, 20);
        draw(r, t); /* all that it holds */
        for (int i = 0; i < BATCH; i++, n++) {
            sum += (double)t[i];
            early += t[i] < 200;
        }
        cvy_reservoir_destroy(&r);
    }
    EXPECT_NEAR(sum / n, 999.5, 4 * 577 / sqrt(n));
    EXPECT_NEAR(early / n, 0.1, 4 * 0.3 / sqrt(n));
}

static void few_are_repeated(void)
{
    cvy_reservoir *r = new_reservoir(CAPACITY, NULL, 3);
    int64_t t[BATCH];
    int count[5] = {0};
    EXPECT_FAULT(cvy_reservoir_draw(r, program, train), CVY_E_ARGUMENT, "empty");
    push(r, 0, 5);
    draw(r, t);
    for (int i = 0; i < BATCH; i++)
        count[t[i]]++;
    for (int i = 0; i < 5; i++)
        EXPECT(count[i] == 3 || count[i] == 4);
    push(r, 0, 0); /* a time step without samples */
    EXPECT_INT(cvy_reservoir_seen(r), 5);
    cvy_reservoir_destroy(&r);
}

static void a_state_goes_on(void)
{
    cvy_reservoir *a = new_reservoir(CAPACITY, NULL, 9), *b = new_reservoir(CAPACITY, NULL, 9),
                  *other = new_reservoir(CAPACITY, "newest", 9);
    int64_t t[BATCH], u[BATCH];
    for (int i = 0; i < 30; i++) {
        push(a, 10 * i, 10);
        draw(a, t);
    }
    const int64_t bytes = cvy_reservoir_bytes(a);
    char *memory = malloc((size_t)bytes);
    EXPECT_FAULT(cvy_reservoir_save(a, memory, bytes - 1), CVY_E_ARGUMENT, "which needs");
    EXPECT_OK(cvy_reservoir_save(a, memory, bytes));
    push(b, 5000, 10);
    memory[bytes - 1] ^= 1;
    EXPECT_FAULT(cvy_reservoir_load(b, memory, bytes), CVY_E_FORMAT, "damaged");
    memory[bytes - 1] ^= 1;
    EXPECT_FAULT(cvy_reservoir_load(b, memory, bytes - 1), CVY_E_FORMAT, "damaged");
    EXPECT_FAULT(cvy_reservoir_load(b, memory, 8), CVY_E_FORMAT, "8 bytes are no state");
    EXPECT_FAULT(cvy_reservoir_load(b, "0123456789012345678901234567890123456789012345678901234567890123", 64),
                 CVY_E_FORMAT, "no state");
    EXPECT_FAULT(cvy_reservoir_load(other, memory, bytes), CVY_E_SHAPE, "other fields");
    EXPECT_INT(cvy_reservoir_seen(b), 10); /* as it was */
    EXPECT_OK(cvy_reservoir_load(b, memory, bytes));
    for (int i = 30; i < 60; i++) {
        push(a, 10 * i, 10);
        push(b, 10 * i, 10);
        draw(a, t);
        draw(b, u);
        EXPECT(memcmp(t, u, sizeof t) == 0);
    }
    free(memory);
    cvy_reservoir_destroy(&a);
    cvy_reservoir_destroy(&b);
    cvy_reservoir_destroy(&other);
}

static void wrong_use(void)
{
    cvy_reservoir *r = NULL;
    const cvy_shape pair = {1, {2}};
    float x[4] = {1, 2, 3, NAN};
    int64_t label[2] = {1, 300};
    cvy_reservoir_opts opts = {.size = sizeof opts};
    EXPECT_FAULT(cvy_reservoir_create(&opts, &r), CVY_E_ARGUMENT, "opts.capacity is 0");
    opts.capacity = 10;
    opts.keep = "best";
    EXPECT_FAULT(cvy_reservoir_create(&opts, &r), CVY_E_ARGUMENT,
                 "opts.keep is 'best'; there are uniform, newest, loss");
    opts.keep = NULL;
    EXPECT_OK(cvy_reservoir_create(&opts, &r));
    EXPECT_FAULT(cvy_reservoir_push(r), CVY_E_ARGUMENT, "no fields");
    EXPECT_OK(cvy_reservoir_add_field(r, "x", CVY_DTYPE_F32, &pair));
    EXPECT_FAULT(cvy_reservoir_add_field(r, "x", CVY_DTYPE_F32, &pair), CVY_E_ARGUMENT, "has a field x already");
    EXPECT_FAULT(cvy_reservoir_add_field(r, "y", CVY_DTYPE_BF16, &pair), CVY_E_ARGUMENT, "expected f32");
    EXPECT_FAULT(cvy_reservoir_add_field(r, "y", CVY_DTYPE_F32, &(cvy_shape){2, {1 << 30, 1 << 30}}), CVY_E_SHAPE,
                 "dimension 1 of a sample is 1073741824");
    EXPECT_FAULT(cvy_reservoir_add_field(r, "y", CVY_DTYPE_F32, &(cvy_shape){2, {1 << 30, 1 << 28}}), CVY_E_MEMORY,
                 "field y");
    EXPECT_FAULT(cvy_reservoir_add_field(r, "y", CVY_DTYPE_F32, &(cvy_shape){1, {-1}}), CVY_E_SHAPE, "field y");
    EXPECT_OK(cvy_reservoir_add_field(r, "label", CVY_DTYPE_U8, &(cvy_shape){0}));
    EXPECT_FAULT(cvy_reservoir_put(r, "z", CVY_DTYPE_F32, x, 2), CVY_E_ARGUMENT, "no field z");
    EXPECT_FAULT(cvy_reservoir_put(r, "x", CVY_DTYPE_F32, x, 3), CVY_E_SHAPE, "a multiple of 2");
    EXPECT_FAULT(cvy_reservoir_put(r, "x", CVY_DTYPE_F32, x, 4), CVY_E_NUMERIC,
                 "element 1 of field x of new sample 1 is nan in f32");
    EXPECT_FAULT(cvy_reservoir_put(r, "x", CVY_DTYPE_I64, label, 2), CVY_E_ARGUMENT, "x is of dtype f32");
    EXPECT_FAULT(cvy_reservoir_put(r, "label", CVY_DTYPE_I64, label, 2), CVY_E_ARGUMENT, "element 1 for label is 300");
    EXPECT_FAULT(cvy_reservoir_put(r, "x", CVY_DTYPE_F32, NULL, 2), CVY_E_ARGUMENT, "no data for x");
    EXPECT_FAULT(cvy_reservoir_push(r), CVY_E_SHAPE, "no new samples of field x");
    EXPECT_OK(cvy_reservoir_put(r, "x", CVY_DTYPE_F32, x, 2));
    EXPECT_OK(cvy_reservoir_put(r, "label", CVY_DTYPE_I64, label, 0));
    EXPECT_FAULT(cvy_reservoir_push(r), CVY_E_SHAPE, "0 new samples of field label, but 1 of field x");
    EXPECT_INT(cvy_reservoir_seen(r), 0);
    EXPECT_OK(cvy_reservoir_put(r, "label", CVY_DTYPE_I64, label, 1));
    EXPECT_OK(cvy_reservoir_push(r));
    EXPECT_FAULT(cvy_reservoir_add_field(r, "w", CVY_DTYPE_F32, &pair), CVY_E_ARGUMENT, "after samples have come");
    EXPECT_FAULT(cvy_reservoir_draw(r, program, 5), CVY_E_ARGUMENT, "task 5");
    cvy_reservoir_destroy(&r);
    cvy_reservoir_destroy(&r);
}

/* A sample whose loss is large stays longer than one whose loss is small. */
static void keeps_by_loss(void)
{
    cvy_reservoir *r = new_reservoir(CAPACITY, "loss", 3), *again = new_reservoir(CAPACITY, "loss", 3);
    double loss[BATCH];
    int hard = 0;
    EXPECT_FAULT(cvy_reservoir_set_losses(r, loss, BATCH), CVY_E_ARGUMENT, "before a draw");
    push(r, 0, CAPACITY);
    for (int i = 0; i < 300; i++) { /* samples of label 0 are hard */
        EXPECT_OK(cvy_reservoir_draw(r, program, train));
        const int32_t *label = cvy_program_feed(program, train, "label");
        for (int k = 0; k < BATCH; k++) {
            loss[k] = label[k] == 0 ? 5 : 0.1;
            hard += label[k] == 0;
        }
        EXPECT_OK(cvy_reservoir_set_losses(r, loss, BATCH));
        push(r, CAPACITY + 2 * i, 2);
    }
    const int drawn = hard;
    hard = 0;
    for (int i = 0; i < 50; i++) {
        EXPECT_OK(cvy_reservoir_draw(r, program, train));
        const int32_t *label = cvy_program_feed(program, train, "label");
        for (int k = 0; k < BATCH; k++)
            hard += label[k] == 0;
    }
    EXPECT(drawn > 300 * BATCH / 3 && hard > 50 * BATCH / 2); /* a third would be by chance */
    EXPECT_FAULT(cvy_reservoir_set_losses(r, loss, 3), CVY_E_SHAPE, "has 16 samples");
    loss[2] = NAN;
    EXPECT_FAULT(cvy_reservoir_set_losses(r, loss, BATCH), CVY_E_NUMERIC, "loss 2 is nan");
    push(r, 0, 1);
    EXPECT_FAULT(cvy_reservoir_set_losses(r, loss, BATCH), CVY_E_ARGUMENT, "after samples were added");

    /* The losses are part of the state. */
    const int64_t bytes = cvy_reservoir_bytes(r);
    char *state = malloc((size_t)bytes), *other = malloc((size_t)bytes);
    EXPECT_OK(cvy_reservoir_save(r, state, bytes));
    EXPECT_OK(cvy_reservoir_load(again, state, bytes));
    push(r, 5000, 50);
    push(again, 5000, 50);
    EXPECT_OK(cvy_reservoir_save(r, state, bytes));
    EXPECT_OK(cvy_reservoir_save(again, other, bytes));
    EXPECT(memcmp(state, other, (size_t)bytes) == 0);
    free(state);
    free(other);
    cvy_reservoir_destroy(&r);
    cvy_reservoir_destroy(&again);
}

/* A new sample takes the place of one with a small loss rather than of one that was never drawn, which counts as the
 * mean: half of what was drawn has loss 1, the others 3. */
static void never_drawn_is_the_mean(void)
{
    enum { ALL = 2 * BATCH, NEW = 4 };
    cvy_reservoir *r = new_reservoir(ALL, "loss", 3);
    double loss[BATCH];
    int64_t t[BATCH];
    int easy[ALL] = {0}, easy_left = 0;
    push(r, 0, ALL);
    draw(r, t);
    for (int i = 0; i < BATCH; i++) {
        loss[i] = i % 2 ? 3 : 1;
        easy[t[i]] = i % 2 == 0;
    }
    EXPECT_OK(cvy_reservoir_set_losses(r, loss, BATCH));
    push(r, 1000, NEW);
    const int64_t bytes = cvy_reservoir_bytes(r);
    char *state = malloc((size_t)bytes);
    EXPECT_OK(cvy_reservoir_save(r, state, bytes));
    for (int i = 0; i < ALL; i++) { /* a state ends with x, labels and losses of all samples */
        float x = 0;
        memcpy(&x, state + bytes - ALL * 17 + 8 * i, sizeof x);
        EXPECT(x >= 0 && (x < ALL || x >= 1000));
        if (x < ALL)
            easy_left += easy[(int)x];
    }
    EXPECT(easy_left <= BATCH / 2 - NEW + 1);
    free(state);
    cvy_reservoir_destroy(&r);
}

static void no_rows_have_no_losses(void)
{
    cvy_reservoir *r = new_reservoir(CAPACITY, "loss", 3);
    push(r, 0, CAPACITY);
    EXPECT_OK(cvy_program_set_rows(program, apply, 0));
    EXPECT_OK(cvy_reservoir_draw(r, program, apply));
    EXPECT_OK(cvy_reservoir_set_losses(r, NULL, 0));
    EXPECT_OK(cvy_reservoir_draw(r, program, train));
    EXPECT_FAULT(cvy_reservoir_set_losses(r, NULL, BATCH), CVY_E_SHAPE, "16 samples");
    cvy_reservoir_destroy(&r);
}

int main(void)
{
    EXPECT_OK(cvy_context_create(&(cvy_context_opts){.size = sizeof(cvy_context_opts), .threads = 1}, &context));
    make_program();
    TEST(newest_are_kept);
    TEST(all_are_equally_likely);
    TEST(few_are_repeated);
    TEST(a_state_goes_on);
    TEST(keeps_by_loss);
    TEST(never_drawn_is_the_mean);
    TEST(no_rows_have_no_losses);
    TEST(wrong_use);
    cvy_program_destroy(&program);
    cvy_context_destroy(&context);
    return test_end();
}
