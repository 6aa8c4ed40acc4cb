/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_keys.c: `convoy keys`: lists every key of the job file. */
#include "cmd.h"
#include "files/files.h"

static int run(const cmd_line *line)
{
    char *text = NULL;
    (void)line;
    const cvy_status status = cvy_run_keys(&text);
    return cmd_print(status, &text);
}

const cmd_verb cmd_keys = {
    .name = "keys", .arguments = "", .summary = "lists the keys of a job file with their defaults", .run = run};
