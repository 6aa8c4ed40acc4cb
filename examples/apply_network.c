/*
 * apply_network.c: a program applies a trained network to inputs that it has in memory.
 *
 *     mpicc apply_network.c $(pkg-config --cflags --libs convoy) -o apply_network && ./apply_network runs/demo
 *
 * The argument is a run of examples/collider.yaml, a checkpoint of it, or a file of `convoy export`. Without one, the
 * program trains a small network first. The events are as the data set holds them: the network does log and scaling.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include <convoy/convoy.h>
#include <stdio.h>
#include <stdlib.h>

enum { EVENTS = 20 };

static void check(cvy_status status)
{
    if (status != CVY_OK) {
        fprintf(stderr, "apply_network: %s\n", cvy_error_text());
        exit(1);
    }
}

/* What a simulation would compute: [EVENTS, sample] f32. The caller frees it. */
static float *simulate(cvy_context *context, const cvy_shape *sample)
{
    char source[128];
    cvy_data *data = NULL;
    cvy_data_loader *loader = NULL;
    cvy_data_batch batch = cvy_data_batch_default();
    cvy_data_loader_opts opts = cvy_data_loader_opts_default();
    const size_t bytes = sizeof(float) * EVENTS * (size_t)(sample->dim[0] * sample->dim[1] * sample->dim[2]);
    float *x = malloc(bytes);
    snprintf(source, sizeof source, "{format: collider, events: %d, first: 100000, cells: %lld}", EVENTS,
             (long long)sample->dim[1]);
    opts.batch = EVENTS, opts.shuffle = "false";
    check(cvy_data_open(source, NULL, &data));
    check(cvy_data_loader_create(context, data, &opts, &loader));
    check(cvy_data_loader_next(loader, &batch));
    memcpy(x, batch.field[0], bytes);
    cvy_data_loader_destroy(&loader);
    cvy_data_destroy(&data);
    return x;
}

static void train(cvy_context *context, char *run)
{
    const char *job = "model: {name: hep-cnn, filters: 4}\n"
                      "data: {train: {format: collider, events: 300, cells: 32}, augment: [log]}\n"
                      "train: {batch: 50, epochs: 1, optimizer: {name: adam, lr: 0.001}}\n";
    const cvy_job_source source = {.size = sizeof source, .text = job};
    if (!mkdtemp(run)) {
        perror(run);
        exit(1);
    }
    const cvy_train_opts opts = {.size = sizeof opts, .out = strcat(run, "/run")};
    check(cvy_run_train(context, &source, &opts, NULL));
}

int main(int argc, char **argv)
{
    char run[64] = "apply-network-XXXXXX";
    cvy_context *context = NULL;
    cvy_network *network = NULL;
    cvy_shape sample;
    float score[EVENTS][2];
    check(cvy_context_create(NULL, &context));
    if (argc < 2)
        train(context, run);

    check(cvy_network_open(context, argc < 2 ? run : argv[1], NULL, &network));
    cvy_network_input(network, 0, NULL, NULL, &sample);
    float *x = simulate(context, &sample);
    const cvy_network_in in = {"x", CVY_DTYPE_F32, EVENTS * sample.dim[0] * sample.dim[1] * sample.dim[2], x, {0}};
    const cvy_network_out out = {NULL, CVY_DTYPE_F32, EVENTS * 2, score};
    check(cvy_network_apply(network, EVENTS, &in, 1, &out, 1));
    for (int i = 0; i < EVENTS; i++)
        printf("event %d: %s\n", i, cvy_network_class(network, score[i][1] > score[i][0]));

    free(x);
    cvy_network_destroy(&network);
    cvy_context_destroy(&context);
    return 0;
}
