/*
 * cmd_site.c: see cmd_site.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cmd_site.h"
#include "cmd.h"
#include "cmd_machine.h"

int cmd_open_site(cvy_site **site_out, cvy_site_about *about_out)
{
    char program[4096];
    const size_t n = cmd_self(program, sizeof program);
    const int is_known = n > 0 && n < sizeof program - 1;
    const int code = cmd_outcome(cvy_site_open(is_known ? program : NULL, site_out));
    if (code)
        return code;
    return cmd_outcome(cvy_site_describe(*site_out, about_out));
}
