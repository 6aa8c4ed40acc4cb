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
#include <sys/resource.h>
#include <unistd.h>

#include "cmd_signals.h"

/* SIGTERM: how many seconds a rank waits for the others to learn of it. It is more than a step takes, and less than
 * schedulers wait (Slurm's KillWait: 30 s). */
enum { GRACE_LEAST_S = 5, GRACE_MOST_S = 25 };
/* CPU time that is left to save when SIGXCPU comes. */
enum { CPU_LEAST_S = 2, CPU_MOST_S = 600, CPU_PART = 10 };

static cmd_action does[CMD_SIGNAL_NUMBERS]; /* by the signal's number */
static volatile sig_atomic_t is_leaving;

static cvy_train_control *control;

static void on_alarm(int signal_number)
{
    static const char text[] = "convoy: asked to stop, but a step or a validation goes on for too long, or the other "
                               "ranks do not answer: this rank exits without saving; resume from the last checkpoint\n";
    (void)signal_number;
    if (!is_leaving || cvy_train_control_is_stopping(control))
        return; /* somebody else sent it, or the ranks are saving now */
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
    const cmd_action action = does[signal_number];
    const int ends = action == CMD_DO_STOP || action == CMD_DO_LEAVE;
    if (signal_number == SIGINT && interrupted)
        _exit(128 + SIGINT); /* the second Ctrl-C exits at once */
    interrupted |= signal_number == SIGINT && ends;
    if (ends)
        cvy_train_control_request(control, CVY_TRAIN_STOP);
    if (action == CMD_DO_SAVE)
        cvy_train_control_request(control, CVY_TRAIN_SAVE);
    if (action == CMD_DO_LEAVE) {
        is_leaving = 1;
        alarm(grace_s());
    }
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

static void set_handler(int number, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigset_t one;
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
    sigemptyset(&one);
    sigaddset(&one, number);
    sigprocmask(SIG_UNBLOCK, &one, NULL); /* what has started this process may have blocked it */
}

static int is_ignored(int number)
{
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

static int is_default(int number)
{
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_DFL;
}

static void nothing(int signal_number)
{
    (void)signal_number;
}

/* ---- all verbs ---- */

/* A handler that does nothing, and not SIG_IGN: programs that this one starts do not inherit it. */
void cmd_signals_of_writes(void)
{
    int n = 0;
    const cmd_signal *table = cmd_signal_table(&n);
    for (int i = 0; i < n; i++)
        if (table[i].kind == CMD_SIGNAL_WRITE && !is_ignored(table[i].number))
            set_handler(table[i].number, nothing, SA_RESTART | SA_ONSTACK);
}

void cmd_signals_of_children(void)
{
    if (is_ignored(SIGCHLD))
        signal(SIGCHLD, SIG_DFL);
}

void cmd_signals_on_end(void (*handler)(int))
{
    int n = 0;
    const cmd_signal *table = cmd_signal_table(&n);
    for (int i = 0; i < n; i++) {
        const int ends = table[i].does == CMD_DO_STOP || table[i].does == CMD_DO_LEAVE;
        if (ends || (table[i].number == SIGHUP && !is_ignored(SIGHUP)))
            set_handler(table[i].number, handler, 0);
    }
}

static char partial[4200]; /* path of a result that is not complete */

static void remove_and_end(int signal_number)
{
    unlink(partial);
    signal(signal_number, SIG_DFL);
    raise(signal_number); /* takes effect when this handler returns */
}

void cmd_signals_remove_partial(const char *path)
{
    const int n = snprintf(partial, sizeof partial, "%s.aside-%ld", path, (long)getpid());
    if (n > 0 && (size_t)n < sizeof partial)
        cmd_signals_on_end(remove_and_end);
}

/* ---- trainings ---- */

static char given[CMD_SIGNAL_NUMBERS]; /* by --on-signal */

static void set_handlers(void)
{
    static int keeps_hup = -1;
    if (keeps_hup < 0)
        keeps_hup = is_ignored(SIGHUP) && !given[SIGHUP]; /* nohup */
    for (int i = 1; i < CMD_SIGNAL_NUMBERS; i++)
        if (does[i] != CMD_DO_SYSTEM && !(i == SIGHUP && keeps_hup) && (i != SIGVTALRM || is_default(i)))
            set_handler(i, on_signal, SA_RESTART | SA_ONSTACK); /* the timer of the start has a handler of its own */
    set_handler(SIGALRM, on_alarm, SA_RESTART | SA_ONSTACK);
    cmd_signals_of_writes();
}

/* At the hard limit the kernel kills. `ulimit -t` sets both limits, so without this there would be no SIGXCPU before.
 */
static void leave_cpu_time(void)
{
    struct rlimit limit;
    if (does[SIGXCPU] == CMD_DO_IGNORE || getrlimit(RLIMIT_CPU, &limit) != 0 || limit.rlim_max == RLIM_INFINITY)
        return;
    const rlim_t most = limit.rlim_max, part = most / CPU_PART,
                 left = part > CPU_MOST_S    ? CPU_MOST_S
                        : part > CPU_LEAST_S ? part
                                             : CPU_LEAST_S;
    if (most <= left || limit.rlim_cur <= most - left)
        return;
    limit.rlim_cur = most - left;
    if (setrlimit(RLIMIT_CPU, &limit) == 0 && cmd_launch_rank() == 0)
        cmd_note(
            "convoy: a process may use %llu s of CPU time here (ulimit -t): the run saves and stops after %llu s\n",
            (unsigned long long)most, (unsigned long long)limit.rlim_cur);
}

int cmd_listen(const char *actions, cvy_train_control **control_out)
{
    const int code = cmd_signals_read(actions, does, given);
    if (code)
        return code;
    const cvy_status status = cvy_train_control_create(&control); /* is never freed: it lives as long as the process */
    if (status != CVY_OK)
        return cmd_outcome(status);
    use_own_stack();
    set_handlers();
    leave_cpu_time();
    *control_out = control;
    return 0;
}

void cmd_listen_again(void)
{
    if (control)
        set_handlers();
    else
        cmd_signals_of_writes();
}
