/* cmd_report.c: `convoy report`: writes the report page of a run again. */

#include "cmd.h"

static int run(const cmd_line *line)
{
    const cvy_status status = cvy_report_write(line->arg[0]);
    if (status == CVY_OK)
        printf("the page is %s/report.html\n", line->arg[0]);
    return cmd_outcome(status);
}

const cmd_verb cmd_report = {
    .name = "report",
    .arguments = "RUN",
    .summary = "writes the page of a run again: RUN/report.html",
    .narg_min = 1,
    .narg_max = 1,
    .run = run,
};
