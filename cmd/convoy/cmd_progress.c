/*
 * cmd_progress.c: shows the progress of a training: one live line on a terminal, a plain line every 30 s in a batch
 * log, and events in both.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "cmd_launch.h"

#define LIVE_S 0.1
#define PLAIN_S 30.0

cmd_progress cmd_progress_begin(const char *how)
{
    const cmd_launch *l = cmd_launch_here();
    const int is_below = l->launcher && l->kind != CMD_LAUNCH_SHELL;
    cmd_progress p = {0};
    how = how ? how : "auto";
    p.silent = strcmp(how, "none") == 0;
    p.live =
        strcmp(how, "live") == 0 || (strcmp(how, "auto") == 0 && (is_below ? l->has_terminal : isatty(STDOUT_FILENO)));
    /* On a terminal the first step is shown at once, so that a short training has a live line, too. */
    p.last_s = p.live ? -LIVE_S : 0;
    return p;
}

/* "1 h 02 min", "3 min 20 s", "12 s". */
static const char *duration(double seconds, char *text, size_t room)
{
    const long s = seconds > 0 && seconds < 1e9 ? lround(seconds) : 0;
    if (s >= 3600)
        snprintf(text, room, "%ld h %02ld min", s / 3600, s % 3600 / 60);
    else if (s >= 60)
        snprintf(text, room, "%ld min %02ld s", s / 60, s % 60);
    else
        snprintf(text, room, "%ld s", s);
    return text;
}

static void print_state(const cvy_progress *p)
{
    char left[32];
    const double hundredths = round(p->epochs * 100) / 100; /* 35 steps of 352 are 0.1 epochs, not 0.0994318 */
    cmd_say("step %lld/%lld  epoch %.2f/%.10g", (long long)p->step, (long long)p->steps, p->epoch, hundredths);
    if (isfinite(p->loss))
        cmd_say("  loss %.4g", p->loss);
    if (isfinite(p->images_per_s) && p->images_per_s > 0)
        cmd_say("  %.*f images/s", p->images_per_s < 10, p->images_per_s);
    if (isfinite(p->left_s))
        cmd_say("  %s left", duration(p->left_s, left, sizeof left));
}

static void wipe(cmd_progress *progress)
{
    if (progress->dirty)
        fputs("\r\033[K", stdout);
    progress->dirty = 0;
}

void cmd_progress_show(void *user, const cvy_progress *p)
{
    cmd_progress *progress = user;
    if (p->event) {
        wipe(progress);
        cmd_say("%s\n", p->event);
        fflush(stdout);
        return;
    }
    if (progress->silent || p->elapsed_s - progress->last_s < (progress->live ? LIVE_S : PLAIN_S))
        return;
    progress->last_s = p->elapsed_s;
    wipe(progress);
    print_state(p);
    if (!progress->live)
        putchar('\n');
    progress->dirty = progress->live;
    fflush(stdout);
}

void cmd_progress_end(cmd_progress *progress)
{
    wipe(progress);
    fflush(stdout);
}
