/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_study.h: what `convoy study` and `convoy tune` share: both run commands that measure. */
#ifndef CMD_STUDY_H
#define CMD_STUDY_H

#include "cmd.h"

/* Finds the descriptions of frameworks beside this program, or takes the given folder. Returns 0, or an exit code after
 * a message. */
int cmd_find_frameworks(const char *given, const char *self, char *path, size_t room);
/* From now on SIGINT and SIGTERM set what this returns. */
const volatile int *cmd_stop_by_signal(void);
/* Prints a line of progress, if *user, an int, is 0: it is whether to be quiet. */
void cmd_show_line(void *user, const char *line);
/* "studies/NAME", without the folder and the end of a file's name. */
void cmd_name_folder(const char *parent, const char *file, char *path, size_t room);

#endif
