/*
 * cmd_signal_table.c: what each signal of signal(7) does to a training, and the words of --on-signal.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cmd_signals.h"

const char *const cmd_action_name[] = {[CMD_DO_SYSTEM] = "system",
                                       [CMD_DO_IGNORE] = "ignore",
                                       [CMD_DO_STOP] = "stop",
                                       [CMD_DO_SAVE] = "save",
                                       [CMD_DO_LEAVE] = "leave"};

#define FREE(name, action, means)                                                                                      \
    {                                                                                                                  \
#name, SIG##name, CMD_SIGNAL_FREE, CMD_DO_##action, means                                                      \
    }
#define FAULT(name, means)                                                                                             \
    {                                                                                                                  \
#name, SIG##name, CMD_SIGNAL_FAULT, CMD_DO_SYSTEM, means                                                       \
    }

static const cmd_signal table[] = {
    FREE(USR1, STOP, "a batch system, before the end of the job"),
    FREE(XCPU, STOP, "the limit of CPU time (ulimit -t)"),
    FREE(INT, STOP, "Ctrl-C; a second one ends the process at once"),
    FREE(TERM, LEAVE, "a batch system, seconds before it kills"),
#ifdef SIGPWR
    FREE(PWR, LEAVE, "the power supply fails; a container is stopped"),
#endif
    FREE(USR2, SAVE, "a user"),
    FREE(HUP, SAVE, "the terminal is gone; stays ignored under nohup"),
    {"PIPE", SIGPIPE, CMD_SIGNAL_WRITE, CMD_DO_IGNORE,
     "of the write to a pipe that nobody reads (EPIPE); the run goes on"},
    {"XFSZ", SIGXFSZ, CMD_SIGNAL_WRITE, CMD_DO_IGNORE,
     "of the write beyond the limit on the size of files (EFBIG); the run goes on"},
    {"ALRM", SIGALRM, CMD_SIGNAL_TIMER, CMD_DO_IGNORE, "the timer of `leave`"},
    {"VTALRM", SIGVTALRM, CMD_SIGNAL_TIMER, CMD_DO_IGNORE, "the timer of the start"},
    FREE(QUIT, SYSTEM, "Ctrl-backslash: ends the process at once"),
    FREE(TSTP, SYSTEM, "Ctrl-Z: pauses the process until CONT"),
    FREE(TTIN, SYSTEM, "reading from a terminal in the background: pauses the process"),
    FREE(TTOU, SYSTEM, "writing to a terminal in the background: pauses the process"),
    FREE(CONT, SYSTEM, "goes on after a pause"),
    FREE(URG, SYSTEM, "nothing happens"),
    FREE(WINCH, SYSTEM, "the terminal's size: nothing happens"),
#ifdef SIGIO
    FREE(IO, SYSTEM, "ends the process at once"),
#endif
    FREE(PROF, SYSTEM, "the timer of a profiler: ends the process at once"),
#ifdef SIGSTKFLT
    FREE(STKFLT, SYSTEM, "ends the process at once"),
#endif
    {"CHLD", SIGCHLD, CMD_SIGNAL_CHILD, CMD_DO_SYSTEM, "a child process has ended: nothing happens"},
    FAULT(SEGV, "a fault: wrong memory address"),
    FAULT(BUS, "a fault: memory that cannot be read, such as that of a file which was cut"),
    FAULT(FPE, "a fault: arithmetic of integers"),
    FAULT(ILL, "a fault: an instruction that the processor does not have"),
    FAULT(ABRT, "a fault: a library gave up"),
    FAULT(SYS, "a fault: a forbidden system call"),
    FAULT(TRAP, "a fault: a debugger's breakpoint"),
    {"KILL", SIGKILL, CMD_SIGNAL_KERNEL, CMD_DO_SYSTEM, "ends the process at once"},
    {"STOP", SIGSTOP, CMD_SIGNAL_KERNEL, CMD_DO_SYSTEM, "pauses the process until CONT"},
#ifdef SIGRTMIN
    {"RTMIN", -1, CMD_SIGNAL_FREE, CMD_DO_SYSTEM, "RTMIN to RTMAX, such as RTMIN+1: ends the process at once"},
#endif
};

const cmd_signal *cmd_signal_table(int *count_out)
{
    *count_out = CMD_COUNT(table);
    return table;
}

void cmd_signals_print_table(void)
{
    for (int i = 0; i < CMD_COUNT(table); i++)
        cmd_say("signal\t%s\t%s\t%s\n", table[i].name,
                table[i].kind == CMD_SIGNAL_WRITE ? "error" : cmd_action_name[table[i].does], table[i].means);
}

/* ---- names ---- */

static int is_word(const char *text, size_t bytes, const char *word)
{
    return strlen(word) == bytes && strncasecmp(text, word, bytes) == 0;
}

/* "RTMIN", "RTMIN+2", "RTMAX-1"; 0: it is none of these. */
static int real_time(const char *text, size_t bytes)
{
#ifdef SIGRTMIN
    const int is_first = strncasecmp(text, "RTMIN", 5) == 0, is_last = strncasecmp(text, "RTMAX", 5) == 0;
    char *end = NULL;
    if (bytes < 5 || (!is_first && !is_last))
        return 0;
    const long more = bytes > 5 ? strtol(text + 5, &end, 10) : 0;
    const long number = (is_first ? SIGRTMIN : SIGRTMAX) + more;
    const int is_whole = bytes == 5 || (end == text + bytes && (text[5] == '+' || text[5] == '-'));
    return is_whole && number >= SIGRTMIN && number <= SIGRTMAX ? (int)number : 0;
#else
    (void)text, (void)bytes;
    return 0;
#endif
}

/* The number of a signal that is named as by kill(1): XCPU, SIGXCPU or 24, in any case; 0: there is none. */
static int number_of(const char *text, size_t bytes)
{
    static const struct {
        const char *name;
        int number;
    } other[] = {{"IOT", SIGABRT}, {"CLD", SIGCHLD}, {"POLL", SIGIO}};
    if (bytes > 0 && bytes < 4 && strspn(text, "0123456789") == bytes)
        return atoi(text);
    if (bytes > 3 && strncasecmp(text, "SIG", 3) == 0) {
        text += 3;
        bytes -= 3;
    }
    for (int i = 0; i < CMD_COUNT(table); i++)
        if (table[i].number > 0 && is_word(text, bytes, table[i].name))
            return table[i].number;
    for (int i = 0; i < CMD_COUNT(other); i++)
        if (is_word(text, bytes, other[i].name))
            return other[i].number;
    return real_time(text, bytes);
}

static const cmd_signal *row_of(int number)
{
    for (int i = 0; i < CMD_COUNT(table); i++)
        if (table[i].number == number && number > 0)
            return &table[i];
#ifdef SIGRTMIN
    if (number >= SIGRTMIN && number <= SIGRTMAX)
        return &table[CMD_COUNT(table) - 1];
#endif
    return NULL;
}

/* ---- --on-signal ---- */

/* Why the action of a signal cannot be chosen; NULL: it can. */
static const char *why_not(const cmd_signal *s, cmd_action does)
{
    if (s->kind == CMD_SIGNAL_FREE)
        return NULL;
    if (s->kind == CMD_SIGNAL_WRITE)
        return does == CMD_DO_IGNORE ? NULL
                                     : "it is an error of the call that writes, and the run goes on: leave it out";
    return s->kind == CMD_SIGNAL_KERNEL  ? "no program can catch it: the kernel acts at once"
           : s->kind == CMD_SIGNAL_FAULT ? "it says that the program is at fault, and what it would save may be wrong"
           : s->kind == CMD_SIGNAL_CHILD ? "it tells of the end of child processes, which MPI libraries and convoy have"
                                         : "convoy has a timer of its own that sends it";
}

static int action_of(const char *text, size_t bytes)
{
    for (int k = CMD_DO_IGNORE; k <= CMD_DO_LEAVE; k++)
        if (strlen(cmd_action_name[k]) == bytes && strncmp(cmd_action_name[k], text, bytes) == 0)
            return k;
    return -1;
}

static int expected(const char *text, size_t bytes, const char *why)
{
    cmd_error("--on-signal %.*s: expected NAME=ACTION with a NAME such as USR1, XCPU, TERM, RTMIN+1 (`kill -l` lists "
              "them) and an ACTION of stop, save, leave, ignore; %s",
              (int)bytes, text, why);
    return CMD_EXIT_USAGE;
}

static int read_one(const char *text, size_t bytes, cmd_action *does, char *given)
{
    const char *equal = memchr(text, '=', bytes);
    if (!equal)
        return expected(text, bytes, "there is no '='");
    const size_t name_bytes = (size_t)(equal - text);
    const int number = number_of(text, name_bytes), action = action_of(equal + 1, bytes - name_bytes - 1);
    const cmd_signal *s = row_of(number);
    if (!s)
        return expected(text, bytes, "this system has no such signal");
    const char *why = why_not(s, action < 0 ? CMD_DO_STOP : (cmd_action)action);
    if (why) {
        cmd_error("--on-signal %.*s: SIG%s has no action: %s", (int)bytes, text, s->name, why);
        return CMD_EXIT_USAGE;
    }
    if (action < 0)
        return expected(text, bytes, "there is no such action");
    if (given[number]) {
        cmd_error("--on-signal %.*s: the signal was given before: give each signal once", (int)bytes, text);
        return CMD_EXIT_USAGE;
    }
    given[number] = 1;
    does[number] = (cmd_action)action;
    return 0;
}

int cmd_signals_read(const char *text, cmd_action does[CMD_SIGNAL_NUMBERS], char given[CMD_SIGNAL_NUMBERS])
{
    int code = 0;
    for (int i = 0; i < CMD_COUNT(table); i++)
        if (table[i].number > 0)
            does[table[i].number] = table[i].does;
    while (text && *text && !code) {
        const size_t n = strcspn(text, ",");
        code = read_one(text, n, does, given);
        text += n + (text[n] == ',');
    }
    return code;
}
