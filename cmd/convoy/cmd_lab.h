/*
 * cmd_lab.h: what `convoy train` and `convoy test` use of the laboratory. cmd_pages.c and cmd_ensemble.c have it. In a
 * build without the laboratory cmd_without_lab.c stands in for them and for the verbs that need it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CMD_LAB_H
#define CMD_LAB_H

#include "cmd.h"

/* ---- cmd_pages.c ---- */
/* Writes the page of a run again. Returns whether it is written; if it cannot be, a warning says so in the words of
 * `fault`, and why. */
int cmd_page_write(const char *run, const char *fault);
/* Prints what a run has reached as a JSON object. Returns the exit code. */
int cmd_page_json(const char *run);
/* Reads a profile of `convoy tune`: adds its keys, which live as long as the process. Returns 0, or the exit code after
 * it has printed a message. */
int cmd_profile_read(const char *path, cmd_sets *sets, int *ranks_out, int *threads_out);

/* ---- cmd_ensemble.c ---- */
/* Whether the arguments of `convoy test` name several networks, or a folder of runs. */
int cmd_is_ensemble(const cmd_line *line);
/* Scores them, and prints the scores of each and of all together. Returns the exit code. */
int cmd_test_ensemble(const cmd_line *line, cvy_context *context, const char *data, int calibrated, int json);

#endif
