/*
 * fuzz_caffe_solver.c: fuzzes solvers of Caffe. The input is cut in four files (fuzz_files.h): the solver, its network,
 * a solverstate, and the mean of the pictures; the last two may be missing. The text of a solver that is accepted must
 * be a text that the job parser reads or refuses in a sentence.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fuzz_files.h"

#include "exchange/exchange.h"
#include "job/job.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    fuzz_make_folder();
    if (chdir(fuzz_folder) != 0) /* the solver names its files by their names alone */
        exit(1);
    return 0;
}

static void check_status(cvy_status status)
{
    if (status < CVY_OK && !cvy_error_text()[0])
        abort();
}

static void parse_job(const cvy_import_job *caffe)
{
    cvy_job *job = NULL;
    const cvy_status status = cvy_job_parse_text("job", caffe->text.data, NULL, 0, &job);
    check_status(status);
    if (status == CVY_OK && (!job->model || job->train.steps + (job->train.epochs > 0) == 0))
        abort();
    cvy_job_destroy(&job);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const files[] = {"solver.prototxt", "net.prototxt", "net.solverstate", "mean.binaryproto", NULL};
    cvy_import_job caffe = {0};
    fuzz_put_files(files, data, size);
    const int has_state = access(files[2], R_OK) == 0;
    const cvy_status status =
        cvy_caffe_read_job(files[0], &(cvy_import_job_opts){.snapshot = has_state ? files[2] : NULL}, &caffe);
    check_status(status);
    if (status == CVY_OK)
        parse_job(&caffe);
    cvy_import_job_free(&caffe);
    return 0;
}
