/*
 * cmd_signals.h: the table of the signals of signal(7), from which the handlers are set and which the documentation
 * repeats (docs/reference/command.md; `convoy --print-tables` prints it for the test that compares them).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CMD_SIGNALS_H
#define CMD_SIGNALS_H

#include "cmd.h"

/* What a training does. SYSTEM: no handler is set, and what the system does happens. */
typedef enum { CMD_DO_SYSTEM, CMD_DO_IGNORE, CMD_DO_STOP, CMD_DO_SAVE, CMD_DO_LEAVE } cmd_action;

typedef enum {
    CMD_SIGNAL_FREE,  /* --on-signal chooses the action */
    CMD_SIGNAL_WRITE, /* an error of the write that meets it */
    CMD_SIGNAL_TIMER, /* timers of the command */
    CMD_SIGNAL_FAULT, /* of the program */
    CMD_SIGNAL_CHILD,
    CMD_SIGNAL_KERNEL /* no program can catch it */
} cmd_signal_kind;

typedef struct cmd_signal {
    const char *name;
    int number;
    cmd_signal_kind kind;
    cmd_action does;   /* without --on-signal */
    const char *means; /* who sends it, or why */
} cmd_signal;

enum { CMD_SIGNAL_NUMBERS = 128 }; /* more than any system has */

extern const char *const cmd_action_name[];
/* The table; real-time signals are its last row, with the number of the first one. */
const cmd_signal *cmd_signal_table(int *count_out);
/* Reads "USR1=save,XCPU=ignore,24=stop" into `does`, which has the actions by number, and `given`. Returns 0, or the
 * exit code after it has printed a message. */
int cmd_signals_read(const char *text, cmd_action does[CMD_SIGNAL_NUMBERS], char given[CMD_SIGNAL_NUMBERS]);
void cmd_signals_print_table(void);

#endif
