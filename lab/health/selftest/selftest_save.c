/*
 * selftest_save.c: a checkpoint on this file system: it is written, every rank finds it valid, a second program reads
 * it back to the bit, and goes on to the same weights as the first.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/checkpoint.h>

#include <stdio.h>

#include "base/machine/base_clock.h"
#include "checkpoint/checkpoint.h"
#include "health/selftest/selftest_train.h"

enum { STEPS_BEFORE = 6, STEPS_AFTER = 4 };

static const char state[] = "{\"selftest\": 1}";

struct hashes {
    uint64_t saved, after;
};

/* Trains, saves and goes on. */
static cvy_status write_and_go_on(const cvy_selftest *t, cvy_bench *b, const char *folder, struct hashes *out,
                                  double *write_s)
{
    cvy_comm *comm = b->session.context->comm;
    double first = 0, last = 0;
    cvy_checkpoint_opts opts = cvy_checkpoint_opts_default();
    opts.folder = folder;
    opts.step = STEPS_BEFORE;
    opts.state = state;
    CVY_TRY(cvy_selftest_train_steps(t, b, STEPS_BEFORE, &first, &last));
    CVY_TRY(cvy_comm_agree(comm, cvy_selftest_train_hash(b, 1, &out->saved)));
    const double begin_s = cvy_clock_s();
    CVY_TRY(cvy_checkpoint_write(b->session.program, &opts));
    *write_s = cvy_clock_s() - begin_s;
    CVY_TRY(cvy_selftest_train_steps(t, b, STEPS_AFTER, &first, &last));
    return cvy_comm_agree(comm, cvy_selftest_train_hash(b, 1, &out->after));
}

/* Reads into a new program, which has other weights, and goes on. */
static cvy_status read_and_go_on(const cvy_selftest *t, cvy_bench *b, const char *folder, struct hashes *out)
{
    cvy_comm *comm = b->session.context->comm;
    double first = 0, last = 0;
    cvy_checkpoint_about about = cvy_checkpoint_about_default();
    const cvy_status status = cvy_checkpoint_read(b->session.program, folder, NULL, &about);
    cvy_text_release(&about.state);
    cvy_text_release(&about.notes);
    if (status == CVY_END)
        return cvy_error_set(CVY_E_IO, "%s: the checkpoint that was written there is not found", folder);
    CVY_TRY(status);
    CVY_TRY(cvy_comm_agree(comm, cvy_selftest_train_hash(b, 1, &out->saved)));
    CVY_TRY(cvy_selftest_train_steps(t, b, STEPS_AFTER, &first, &last));
    return cvy_comm_agree(comm, cvy_selftest_train_hash(b, 1, &out->after));
}

/* Each rank reads all files of the checkpoint and compares their hashes with the manifest. */
static void check_valid(cvy_selftest *t, const char *folder)
{
    cvy_checkpoint found = {0};
    const cvy_status status = cvy_checkpoint_find(folder, NULL, &found);
    if (status == CVY_END || status == CVY_E_FORMAT)
        cvy_selftest_fail(t,
                          "%s holds %s here, expected a valid one: this rank does not see what rank 0 on %s has "
                          "written: give a shared folder by --out",
                          folder, status == CVY_END ? "0 checkpoints" : "a damaged checkpoint", t->host[0]);
    else if (status != CVY_OK)
        cvy_selftest_fail(t, "%s: give another folder by --out", cvy_error_text());
    cvy_checkpoint_close(&found);
}

static cvy_status save_and_resume(cvy_selftest *t, const char *folder, double *write_s)
{
    struct hashes one = {0}, two = {0};
    cvy_bench b;
    const int64_t ranks = t->context->comm->nranks <= 64 ? t->context->comm->nranks : 0;
    cvy_status status = cvy_selftest_train_open(t->context, ranks, "", &b);
    if (status == CVY_OK)
        status = write_and_go_on(t, &b, folder, &one, write_s);
    cvy_bench_close(&b);
    CVY_TRY(status);
    check_valid(t, folder);
    status = cvy_selftest_train_open(t->context, ranks, "", &b);
    if (status == CVY_OK)
        status = read_and_go_on(t, &b, folder, &two);
    cvy_bench_close(&b);
    CVY_TRY(status);
    if (one.saved != two.saved)
        cvy_selftest_fail(t,
                          "the variables that were read from %s have other bits than those that were written: do not "
                          "trust this file system",
                          folder);
    else if (ranks && one.after != two.after)
        cvy_selftest_fail(t,
                          "%d steps after the checkpoint, the resumed training has other weights than the one that was "
                          "not interrupted: report it",
                          STEPS_AFTER);
    return CVY_OK;
}

cvy_status cvy_selftest_checkpoint(cvy_selftest *t)
{
    char folder[600];
    double write_s = 0;
    snprintf(folder, sizeof folder, "%s/checkpoints", t->folder);
    const cvy_status status = save_and_resume(t, folder, &write_s);
    if (status == CVY_E_IO || status == CVY_E_FORMAT)
        return cvy_error_set(status, "%s: give another folder by --out", cvy_error_text());
    cvy_selftest_pass(t, "written in %.2f s, valid for each rank, read back to the bit; resumed with the same result",
                      write_s);
    return status;
}
