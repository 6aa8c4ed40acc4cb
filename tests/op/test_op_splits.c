/*
 * test_op_splits.c: tests the axes along which operators say that they may be cut (cvy_op_def.splits, node_splits).
 *
 * Each sample of an operator is cut along each axis that it declares, and the parts are compared with the whole
 * (sample_splits.h). An axis in `splits` that no sample tries is a failure too. Arguments name the operators whose
 * samples are tried; without arguments all are tried.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "op/op_sample.h"
#include "sample/sample_splits.h"

enum { OPERATORS_MAX = 256 };

static unsigned tried[OPERATORS_MAX]; /* for each operator of the table: the bits that were tried */

static void fail(void *user, const cvy_op_def *op, const cvy_sample *sample, const char *what)
{
    (void)user;
    test_failures++;
    printf("FAILED %s(%s; %s), %s\n", op->name, sample->src, sample->options ? sample->options : "", what);
}

static void note_tried(void *user, const cvy_op_def *op, unsigned bit)
{
    int count = 0;
    const cvy_op_def *const *table = cvy_op_table(&count);
    (void)user;
    for (int i = 0; i < count; i++)
        if (table[i] == op)
            tried[i] |= bit;
}

static int chosen(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return 1;
    return argc < 2;
}

int main(int argc, char **argv)
{
    cvy_split_report report = {.complain = fail, .tried = note_tried};
    int count = 0;
    const cvy_op_def *const *table = cvy_op_table(&count);
    EXPECT(count <= OPERATORS_MAX);
    for (int i = 0; i < count; i++)
        for (const cvy_sample *s = table[i]->samples; s && s->src && chosen(table[i]->name, argc, argv); s++)
            for (int training = 0; training < 2 && !(s->flags & CVY_SAMPLE_TIMING); training++)
                EXPECT_OK(cvy_sample_check_splits(table[i], s, training, &report));
    test_checks += (int)report.checks;
    for (int i = 0; i < count && argc < 2; i++) {
        test_checks++;
        if (table[i]->splits & ~tried[i]) {
            test_failures++;
            printf("FAILED %s: splits 0x%x, but samples try only 0x%x\n", table[i]->name, table[i]->splits, tried[i]);
        }
    }
    return test_end();
}
