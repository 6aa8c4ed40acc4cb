/*
 * new_job_network.c: a network that suits shape, number of samples and task of a new job.
 *
 * Pictures of usual sizes get a network of the zoo. All others get layers that a user can change.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "files/new_job/new_job.h"

static int64_t least_position(const cvy_new_job *job)
{
    int64_t least = job->size ? job->size : INT64_MAX;
    for (int i = 1; i < job->x.ndim && !job->size; i++)
        least = CVY_MIN(least, job->x.dim[i]);
    return least;
}

/* A network of the zoo for pictures; NULL: none suits. */
static const char *zoo_name(const cvy_new_job *job, const char **why)
{
    const int64_t least = least_position(job);
    if (!job->is_picture || least < 24)
        return NULL;
    if (job->x.dim[0] == 1 && job->x.dim[1] == 28 && job->x.dim[2] == 28 && !job->size) {
        *why = "small and fast; resnet-20 is more accurate and slower";
        return "lenet";
    }
    if (least <= 96) {
        *why = "resnet-32, -44 and -56 are larger; cifar-convnet is faster";
        return "resnet-20";
    }
    *why = "resnet-34 and resnet-50 are larger";
    if (job->nsamples < 200000)
        return "resnet-18";
    *why = "resnet-18 is faster";
    return "resnet-50";
}

static void add_convolution(cvy_text *t, int64_t channels, int64_t dilation, const char *name)
{
    cvy_text_add(t, "    - conv: {channels: %lld, kernel: 3, pad: %lld", (long long)channels, (long long)dilation);
    if (dilation > 1)
        cvy_text_add(t, ", dilation: %lld", (long long)dilation);
    cvy_text_add(t, ", bias: false}\n    - batch_norm\n    - relu%s%s%s\n", name ? ": {name: " : "", name ? name : "",
                 name ? "}" : "");
}

/* Vectors: fully connected layers. */
static void add_perceptron(const cvy_new_job *job, cvy_text *t)
{
    int64_t width = 32;
    while (width < 512 && width < 2 * job->x.dim[0])
        width *= 2;
    cvy_text_add(t, "    - fc: {channels: %lld}\n    - relu\n    - fc: {channels: %lld}\n    - relu\n",
                 (long long)width, (long long)width);
    cvy_text_add(t, "    - fc: {name: answer, channels: %lld}   # as many as there are %s\n", (long long)job->outputs,
                 job->task == CVY_NEW_CLASSIFY ? "classes" : "targets");
}

/* One answer for each sample: convolutions with pooling, then the mean over the positions. */
static void add_convolutions(const cvy_new_job *job, cvy_text *t)
{
    int64_t least = least_position(job), channels = job->x.ndim > 3 ? 16 : 32;
    add_convolution(t, channels, 1, NULL);
    for (int i = 0; i < 4 && least >= 8; i++, least /= 2) {
        cvy_text_add(t, "    - max_pool: {kernel: 2}\n");
        channels = CVY_MIN(2 * channels, 256);
        add_convolution(t, channels, 1, NULL);
    }
    cvy_text_add(t, "    - global_avg_pool\n    - fc: {name: answer, channels: %lld}   # as many as there are %s\n",
                 (long long)job->outputs, job->task == CVY_NEW_CLASSIFY ? "classes" : "targets");
}

/* Pictures: a small U-Net (Ronneberger et al. 2015). */
static void add_u_net(cvy_text *t)
{
    cvy_text_add(t, "    # down: half the height and width, twice, and more channels\n");
    add_convolution(t, 32, 1, "fine");
    cvy_text_add(t, "    - max_pool: {kernel: 2}\n");
    add_convolution(t, 64, 1, "middle");
    cvy_text_add(t, "    - max_pool: {kernel: 2}\n");
    add_convolution(t, 128, 1, "coarse");
    cvy_text_add(t, "    # up again, each time with what was there at this size\n"
                    "    - resize: {name: up1, scale: 2}\n    - concat: {from: [up1, middle]}\n");
    add_convolution(t, 64, 1, NULL);
    cvy_text_add(t, "    - resize: {name: up2, scale: 2}\n    - concat: {from: [up2, fine]}\n");
    add_convolution(t, 32, 1, NULL);
}

/* An answer for each position. */
static void add_map_network(const cvy_new_job *job, cvy_text *t)
{
    if (job->x.ndim == 3 && job->x.dim[1] % 4 == 0 && job->x.dim[2] % 4 == 0) {
        add_u_net(t);
    } else {
        static const int64_t dilation[] = {1, 2, 4, 1};
        cvy_text_add(t, "    # no pooling: the dilation lets each position see its surroundings\n");
        for (int i = 0; i < CVY_COUNT(dilation); i++)
            add_convolution(t, job->x.ndim > 3 ? 16 : 32, dilation[i], NULL);
    }
    cvy_text_add(t, "    - conv: {name: answer, channels: %lld, kernel: 1}   # as many as there are %s\n",
                 (long long)job->outputs, job->task == CVY_NEW_SEGMENT ? "classes" : "channels of y");
    if (job->x.ndim == 2)
        cvy_text_add(
            t,
            "    # y has as many numbers as x has times, %lld: one for each time. If they are something else, end "
            "with\n    # - global_avg_pool\n    # - fc: {name: answer, channels: %lld}\n",
            (long long)job->x.dim[1], (long long)job->x.dim[1]);
}

int cvy_new_job_add_network(const cvy_new_job *job, cvy_text *t)
{
    const char *why = "";
    const int is_each = job->task == CVY_NEW_SEGMENT || (job->task == CVY_NEW_REGRESS && job->y_is_map);
    const char *name = is_each ? NULL : zoo_name(job, &why);
    if (name) {
        cvy_text_add(t,
                     "# `convoy models` lists the networks; `convoy models --as-job %s` prints the layers to change.\n",
                     name);
        cvy_text_add(t, "model: %s   # %s\n", name, why);
        return name[0] == 'r' && job->task == CVY_NEW_CLASSIFY;
    }
    cvy_text_add(t,
                 "# `convoy models --layers` lists the layers, and `convoy plan` shows the shapes of their results.\n"
                 "model:\n  layers:\n");
    if (job->is_turned)
        cvy_text_add(t, "    - transpose: {order: [2, 1]}   # the features at each time become channels\n");
    if (is_each)
        add_map_network(job, t);
    else if (job->x.ndim == 1)
        add_perceptron(job, t);
    else
        add_convolutions(job, t);
    return 0;
}
