/*
 * onnx_folder.h: the context of a test of ONNX files, and the folder that it writes small.onnx into.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef TEST_ONNX_FOLDER_H
#define TEST_ONNX_FOLDER_H

#include "test_util.h"

#include <stdlib.h>
#include <unistd.h>

#include <convoy/convoy.h>

static cvy_context *context;
static char test_folder[] = "onnx_test_XXXXXX";

static void enter_folder(void)
{
    cvy_context_opts opts = cvy_context_opts_default();
    opts.threads = 1;
    EXPECT(mkdtemp(test_folder) && chdir(test_folder) == 0);
    EXPECT_OK(cvy_context_create(&opts, &context));
}

static void leave_folder(void)
{
    cvy_context_destroy(&context);
    EXPECT(unlink("small.onnx") == 0 && chdir("..") == 0 && rmdir(test_folder) == 0);
}

#endif
