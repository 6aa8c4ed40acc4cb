/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_check_op.c: `convoy check-op`: tests the operators of a user's library. */
#include "cmd.h"

static void print_line(void *user, const char *line)
{
    (void)user;
    cmd_say("%s\n", line);
    fflush(stdout); /* a user's function may crash */
}

static int check(const cmd_line *line, cvy_context *context)
{
    const cvy_operators_opts opts = {
        .size = sizeof opts, .only = line->narg > 1 ? line->arg[1] : NULL, .line = print_line};
    cvy_operators_result result = {.size = sizeof result};
    const int code = cmd_outcome(cvy_run_check_operators(context, line->arg[0], &opts, &result));
    if (code)
        return code;
    cmd_say("check-op: %d operator%s, %d checks, %d failed\n", result.operators, result.operators == 1 ? "" : "s",
            result.checks, result.failed);
    return result.failed ? CMD_EXIT_FAULT : 0;
}

static int run(const cmd_line *line)
{
    cvy_context *context = NULL;
    int code = cmd_outcome(cvy_context_create(NULL, &context));
    code = code ? code : check(line, context);
    cvy_context_destroy(&context);
    return code;
}

const cmd_verb cmd_check_op = {
    .name = "check-op",
    .arguments = "LIBRARY.so [OPERATOR]",
    .summary = "tests your own operators: gradients, splits, shapes",
    .detail =
        "Loads a library of operators (convoy/operator.h), and tries each operator, or the one that is named, on its "
        "samples, as convoy's own operators are tested. It prints a line for each check: ok, skipped with the reason, "
        "or FAILED with what is wrong. The exit code is 0 if no check failed.\n"
        "Checks: shapes, results (all elements are written, and nothing else), gradient (against finite differences, "
        "in f64), f32 (against f64), splits (the parts of a layer together are the whole), cost.",
    .narg_min = 1,
    .narg_max = 2,
    .run = run,
};
