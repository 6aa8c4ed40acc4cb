/*
 * checkpoint_weights.c: writes the weights of a program to one file and reads them, without a checkpoint.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_entry.h"
#include "base/base_handle.h"
#include "checkpoint/checkpoint.h"
#include "model/model_import.h"
#include "program/program_view.h"

static cvy_status check(const cvy_program *p, const char *path)
{
    CVY_TRY(CVY_LIVE(PROGRAM, p));
    CVY_CHECK(path && *path, CVY_E_ARGUMENT, "the path of the file of weights is %s", path ? "empty" : "NULL");
    CVY_CHECK(cvy_program_is_ready(p), CVY_E_ARGUMENT, "plan the program before its weights are saved or loaded");
    return CVY_OK;
}

cvy_status cvy_program_save(const cvy_program *p, const char *path)
{
    CVY_ENTRY();
    CVY_TRY(check(p, path));
    return cvy_weights_save(path, cvy_program_vars(p));
}

/* The values of a network in the format of another program. */
static cvy_status load_import(const char *path, cvy_vars *vars)
{
    cvy_import import = {0};
    cvy_pool *pool = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_pool_create(&pool));
    status = cvy_import_read_file(pool, path, NULL, &import);
    if (status == CVY_OK && import.ntensor == 0)
        status = cvy_error_set(CVY_E_FORMAT, "%s has no weights", path);
    if (status == CVY_OK)
        status = cvy_weights_set(import.tensor, import.ntensor, vars);
    cvy_import_free(&import);
    cvy_pool_destroy(&pool);
    return status;
}

cvy_status cvy_program_load(cvy_program *p, const char *path)
{
    CVY_ENTRY();
    CVY_TRY(check(p, path));
    return cvy_importer_of_file(path) ? load_import(path, cvy_program_vars(p))
                                      : cvy_weights_load(path, cvy_program_vars(p));
}
