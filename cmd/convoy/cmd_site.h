/*
 * cmd_site.h: the site file, as the command finds it from its own place.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CMD_SITE_H
#define CMD_SITE_H

#include "site/site.h"

/* Finds and reads the site file. Returns 0, or the exit code after it has printed a message. The caller destroys the
 * site, which owns the strings of *about_out. */
int cmd_open_site(cvy_site **site_out, cvy_site_about *about_out);

#endif
