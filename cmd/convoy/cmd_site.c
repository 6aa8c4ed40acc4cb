/*
 * cmd_site.c: the site file, as the library finds it from the place of this command.
 */
#include <string.h>
#include <unistd.h>

#include "cmd.h"

int cmd_open_site(cvy_site **site_out, cvy_site_about *about_out)
{
    char program[4096];
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    const int is_known = n > 0 && n < (ssize_t)sizeof program - 1;
    if (is_known)
        program[n] = '\0';
    const int code = cmd_outcome(cvy_site_open(is_known ? program : NULL, site_out));
    if (code)
        return code;
    return cmd_outcome(cvy_site_describe(*site_out, about_out));
}
