/*
 * checkpoint_weights.c: writes the weights of a program to one file and reads them, without a checkpoint.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/base_entry.h"
#include "base/base_handle.h"
#include "checkpoint/checkpoint.h"
#include "program/program.h"

static cvy_status check(const cvy_program *p, const char *path)
{
    CVY_TRY(CVY_LIVE(PROGRAM, p));
    CVY_CHECK(path && *path, CVY_E_ARGUMENT, "the path of the file of weights is %s", path ? "empty" : "NULL");
    CVY_CHECK(p->allocated, CVY_E_ARGUMENT, "plan the program before its weights are saved or loaded");
    return CVY_OK;
}

cvy_status cvy_program_save(const cvy_program *p, const char *path)
{
    CVY_ENTRY();
    CVY_TRY(check(p, path));
    return cvy_weights_save(path, p->vars);
}

cvy_status cvy_program_load(cvy_program *p, const char *path)
{
    CVY_ENTRY();
    CVY_TRY(check(p, path));
    return cvy_weights_load(path, p->vars);
}
