/*
 * use.c: a program outside of convoy, built against an installed convoy by the two projects in this folder. It makes a
 * context of its own and one over a communicator, and prints the library's version. It is not part of convoy's build.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include <convoy/mpi.h>

static int fail(const char *what)
{
    fprintf(stderr, "use: %s: %s\n", what, cvy_error_text());
    return 1;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    cvy_context *own = NULL, *ranks = NULL;
    if (cvy_context_create(NULL, &own))
        return fail("cvy_context_create");
    if (cvy_context_create_mpi(MPI_COMM_WORLD, NULL, &ranks))
        return fail("cvy_context_create_mpi");
    int expected = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &expected);
    const int good = cvy_context_nranks(own) == 1 && cvy_context_nranks(ranks) == expected;
    cvy_context_destroy(&ranks);
    cvy_context_destroy(&own);
    MPI_Finalize();
    printf("%s\n", cvy_version());
    return good ? 0 : 1;
}
