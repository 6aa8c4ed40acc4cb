/* ranks: 1 2 3 */
/*
 * test_data_seen.c: exact copies of samples are counted alike on any number of ranks: between two sets and within the
 * training, with another label or the same, if a sample is read twice or on two ranks, and if only some hashes are
 * kept.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <mpi.h>

#include "comm/mpi/comm_mpi.h"
#include "data/data_seen.h"
#include "test_util.h"

/* Notes a sample of one number, as the rank that reads it. */
static void note_weighted(cvy_seen *s, int64_t number, float x, int32_t label, float weight)
{
    const cvy_reader_info info = {.dtype = CVY_DTYPE_F32, .shape = {1, {1}}, .has_label = 1, .has_weight = 1};
    const cvy_raw raw = {.coding = CVY_CODING_PLAIN,
                         .dtype = CVY_DTYPE_F32,
                         .shape = {1, {1}},
                         .x = {.data = &x, .bytes = sizeof x, .room = sizeof x},
                         .weight = weight,
                         .label = label};
    cvy_seen_note(s, number, &info, &raw);
}

static void note(cvy_seen *s, int64_t number, float x, int32_t label)
{
    note_weighted(s, number, x, label, 1);
}

static cvy_copies compare(cvy_comm *comm, int64_t nsamples, int64_t ntrain, int64_t nother)
{
    cvy_seen *train = NULL, *other = NULL;
    cvy_copies c = {0};
    EXPECT_OK(cvy_seen_create(nsamples, &train));
    EXPECT_OK(cvy_seen_create(nsamples, &other));
    for (int64_t i = 0; i < ntrain; i++)
        for (int r = 0; r < 2; r++) /* two ranks may read a sample */
            if ((i + r) % comm->nranks == comm->rank)
                note(train, i, (float)(i == 7 || i == 8 ? 3 : i), i == 8 ? 1 : 0);
    note_weighted(train, ntrain, 3, 0, 0); /* neither trained on nor scored */
    note_weighted(other, nother, 0, 0, 0);
    for (int64_t i = nother; i-- > 0;)
        if (i % comm->nranks == comm->rank)
            note(other, i, (float)(i % 2 ? i / 2 : -1 - i), i == 5);
    EXPECT_OK(cvy_seen_compare(comm, train, other, &c));
    note(train, 0, 0, 0); /* too late: it is ignored */
    cvy_seen_destroy(&train);
    cvy_seen_destroy(&other);
    return c;
}

static void test_copies(cvy_comm *comm)
{
    const cvy_copies c = compare(comm, 150, 100, 50);
    /* odd samples are copies of training samples i / 2, but 15 and 17 (7 and 8 are 3 there); sample 7 is 3, which has
     * copies with label 1, too; sample 5 has label 1 */
    EXPECT(c.every == 1 && c.ntrain == 100 && c.nother == 50);
    EXPECT(c.shared == 23 && c.relabelled == 2);
    EXPECT(c.example[0] == 1 && c.example[1] == 0);
    EXPECT(c.within == 2 && c.within_relabelled == 1);
    EXPECT(c.within_example[0] == 7 && c.within_example[1] == 3);
}

static void test_none(cvy_comm *comm)
{
    const cvy_copies c = compare(comm, 10, 0, 0), one = compare(comm, 10, 1, 1);
    EXPECT(c.ntrain == 0 && c.shared == 0 && c.within == 0);
    EXPECT(one.ntrain == 1 && one.nother == 1 && one.shared == 0);
}

/* Of 8 million samples an eighth is looked at: those of the same hashes in both sets. */
static void test_some(cvy_comm *comm)
{
    const cvy_copies c = compare(comm, (int64_t)CVY_SEEN_MAX * 8, 40000, 20000);
    EXPECT(c.every == 8);
    EXPECT(c.ntrain > 4000 && c.ntrain < 6000 && c.nother > 2000 && c.nother < 3000);
    EXPECT(c.shared > 1000 && c.shared < 1500);
}

static void test_parts(cvy_comm *comm)
{
    cvy_seen *train = NULL, *other = NULL;
    cvy_copies c;
    EXPECT_OK(cvy_seen_create(10, &train));
    EXPECT_OK(cvy_seen_create(10, &other));
    if (comm->rank == comm->nranks - 1)
        cvy_seen_note_part(other);
    EXPECT(cvy_seen_compare(comm, train, other, &c) == CVY_NOT_APPLICABLE);
    cvy_seen_destroy(&train);
    cvy_seen_destroy(&other);
}

int main(int argc, char **argv)
{
    cvy_comm *comm = NULL;
    MPI_Init(&argc, &argv);
    EXPECT_OK(cvy_comm_create_mpi(MPI_COMM_WORLD, &comm));
    test_copies(comm);
    test_none(comm);
    test_some(comm);
    test_parts(comm);
    comm->ops->destroy(comm);
    MPI_Finalize();
    return test_end();
}
