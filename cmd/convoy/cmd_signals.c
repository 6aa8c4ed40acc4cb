/*
 * cmd_signals.c: what signals do to a training. Handlers only set flags, which the run reads before each step.
 *
 * A scheduler that ends a job sends SIGTERM to its processes, and kills what is left some seconds later. If the ranks
 * can still reach each other, all of them save together. A rank that cannot reach the others must not wait until it is
 * killed: it exits with the code of a stopped run.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"

/* SIGTERM: how many seconds a rank waits for the others to learn of it. It is more than a step takes, and less than
 * schedulers wait (Slurm's KillWait: 30 s). */
enum { GRACE_LEAST_S = 5, GRACE_MOST_S = 25 };

typedef enum { DO_IGNORE, DO_STOP, DO_SAVE, DO_LEAVE } action;
static const char *const action_name[] = {
    [DO_IGNORE] = "ignore", [DO_STOP] = "stop", [DO_SAVE] = "save", [DO_LEAVE] = "leave"};

static struct signal_entry {
    const char *name;
    int number;
    action does;
} signal_table[] = {
    {"USR1", SIGUSR1, DO_STOP},  {"USR2", SIGUSR2, DO_SAVE}, {"HUP", SIGHUP, DO_SAVE},
    {"TERM", SIGTERM, DO_LEAVE}, {"INT", SIGINT, DO_STOP},
};

static cvy_train_control *control;

static void exit_alone(int signal_number)
{
    static const char text[] = "convoy: asked to stop, but the other ranks do not answer: this rank exits without "
                               "saving; resume from the last checkpoint\n";
    (void)signal_number;
    if (cvy_train_control_is_stopping(control))
        return; /* the ranks are saving now */
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    _exit(CMD_EXIT_STOPPED);
}

static unsigned grace_s(void)
{
    const double twice = 2 * cvy_train_control_longest_s(control);
    return twice < GRACE_LEAST_S ? GRACE_LEAST_S : twice > GRACE_MOST_S ? GRACE_MOST_S : (unsigned)twice + 1;
}

static void on_signal(int signal_number)
{
    static volatile sig_atomic_t interrupted;
    if (signal_number == SIGINT && interrupted)
        _exit(128 + SIGINT); /* the second Ctrl-C exits at once */
    for (int i = 0; i < CMD_COUNT(signal_table); i++) {
        if (signal_table[i].number != signal_number)
            continue;
        interrupted |= signal_number == SIGINT && (signal_table[i].does == DO_STOP || signal_table[i].does == DO_LEAVE);
        if (signal_table[i].does == DO_STOP || signal_table[i].does == DO_LEAVE)
            cvy_train_control_request(control, CVY_TRAIN_STOP);
        if (signal_table[i].does == DO_SAVE)
            cvy_train_control_request(control, CVY_TRAIN_SAVE);
        if (signal_table[i].does == DO_LEAVE)
            alarm(grace_s());
    }
}

/* "USR1=save,TERM=ignore" */
static int read_actions(const char *text)
{
    while (text && *text) {
        const size_t n = strcspn(text, ","), name_n = strcspn(text, "=");
        int at = -1, does = -1;
        for (int i = 0; i < CMD_COUNT(signal_table) && name_n < n; i++)
            if (strlen(signal_table[i].name) == name_n && strncmp(signal_table[i].name, text, name_n) == 0)
                at = i;
        for (int k = 0; k < CMD_COUNT(action_name) && at >= 0; k++)
            if (strlen(action_name[k]) == n - name_n - 1 &&
                strncmp(action_name[k], text + name_n + 1, n - name_n - 1) == 0)
                does = k;
        if (does < 0) {
            cmd_error("--on-signal %.*s: expected NAME=ACTION with a NAME of USR1, USR2, HUP, TERM, INT and an ACTION "
                      "of stop, save, leave, ignore",
                      (int)n, text);
            return CMD_EXIT_USAGE;
        }
        signal_table[at].does = (action)does;
        text += n + (text[n] == ',');
    }
    return 0;
}

/* Handlers run on a stack of their own. Matrix products of oneDNN (issue 4845 there, up to version 3.11) point the
 * stack pointer into the heap for a while. The frame of a handler would overwrite what lies below it, and a later
 * free() would crash (tests/robust/many_signals.sh). */
static void use_own_stack(void)
{
    static char memory[64 << 10];
    const stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    (void)!sigaltstack(&stack, NULL); /* if it fails, handlers run on the thread's stack */
}

static void set_handlers(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < CMD_COUNT(signal_table); i++)
        sigaction(signal_table[i].number, &action, NULL);
    action.sa_handler = exit_alone;
    sigaction(SIGALRM, &action, NULL);
}

int cmd_listen(const char *actions, cvy_train_control **control_out)
{
    const int code = read_actions(actions);
    if (code)
        return code;
    const cvy_status status = cvy_train_control_create(&control); /* is never freed: it lives as long as the process */
    if (status != CVY_OK)
        return cmd_outcome(status);
    use_own_stack();
    set_handlers();
    *control_out = control;
    return 0;
}

void cmd_listen_again(void)
{
    if (control)
        set_handlers();
}
