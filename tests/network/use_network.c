/*
 * use_network.c: the program that use_network.sh builds: applies a network to the pictures of a .npy file, and writes
 * the outputs as they are.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    cvy_context *context = NULL;
    cvy_network *network = NULL;
    cvy_shape in, out;
    const int64_t n = argc > 2 ? atoi(argv[2]) : 0;
    if (cvy_context_create(NULL, &context) || cvy_network_open(context, argv[1], NULL, &network))
        return fprintf(stderr, "%s\n", cvy_error_text());
    cvy_network_input(network, 0, NULL, NULL, &in);
    cvy_network_output(network, 0, NULL, &out);
    const int64_t pixels = n * in.dim[0] * in.dim[1] * in.dim[2], scores = n * out.dim[0];
    unsigned char *x = malloc((size_t)pixels);
    float *y = malloc(sizeof *y * (size_t)scores);
    fseek(stdin, 128, SEEK_SET); /* the header */
    if (fread(x, 1, (size_t)pixels, stdin) != (size_t)pixels ||
        cvy_network_apply(network, n, &(cvy_network_in){"x", CVY_DTYPE_U8, pixels, x, {0}}, 1,
                          &(cvy_network_out){NULL, CVY_DTYPE_F32, scores, y}, 1))
        return fprintf(stderr, "%s\n", cvy_error_text());
    fwrite(y, sizeof *y, (size_t)scores, stdout);
    free(x), free(y);
    cvy_network_destroy(&network);
    cvy_context_destroy(&context);
    return 0;
}
