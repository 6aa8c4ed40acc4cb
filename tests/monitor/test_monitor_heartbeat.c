/*
 * test_monitor_heartbeat.c: the heartbeat file of the ranks: lines have a fixed width and are read as they were
 * written, and the heartbeats of all ranks tell which one delays the others.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "monitor/monitor_heartbeat.h"
#include "test_util.h"

static char path[] = "/tmp/cvy-heartbeat-XXXXXX";

static cvy_heartbeat heartbeat_of(int rank, double time, cvy_heartbeat_state state, int64_t met, const char *what)
{
    cvy_heartbeat s = {.rank = rank, .time = time, .state = state, .step = 41, .ncollectives = met, .still_s = 2.5};
    snprintf(s.host, sizeof s.host, "node%d", rank);
    snprintf(s.what, sizeof s.what, "%s", what);
    return s;
}

static void lines_come_back(void)
{
    cvy_heartbeat back[4];
    char text[CVY_HEARTBEAT_LINE * 2] = "";
    const int fd = open(path, O_RDWR);
    const cvy_heartbeat two =
        heartbeat_of(2, 1e9 + 0.25, CVY_HEARTBEAT_STALLED, 7, "a training step, node conv1, in an allreduce");
    cvy_heartbeat zero = heartbeat_of(0, 1e9, CVY_HEARTBEAT_RUNNING, 8, "waiting for samples");
    cvy_heartbeat_write(fd, &two);
    cvy_heartbeat_write(fd, &zero);
    zero.ncollectives = 1234567890123; /* a longer line replaced by a shorter one */
    cvy_heartbeat_write(fd, &zero);
    EXPECT_OK(cvy_heartbeat_read(path, 4, back));
    EXPECT_INT(back[0].rank, 0);
    EXPECT_INT(back[0].ncollectives, 1234567890123);
    EXPECT_TEXT(back[0].what, "waiting for samples");
    EXPECT_INT(back[1].rank, -1); /* never written */
    EXPECT_INT(back[2].state, CVY_HEARTBEAT_STALLED);
    EXPECT_TEXT(back[2].host, "node2");
    EXPECT_TEXT(back[2].what, "a training step, node conv1, in an allreduce");
    EXPECT_NEAR(back[2].time, 1e9 + 0.25, 1e-6);
    EXPECT_INT(back[3].rank, -1);
    EXPECT_INT(pread(fd, text, CVY_HEARTBEAT_LINE, 0), CVY_HEARTBEAT_LINE);
    EXPECT_INT(text[CVY_HEARTBEAT_LINE - 1], '\n');
    close(fd);
    EXPECT_FAULT(cvy_heartbeat_read("/nowhere/at/all", 4, back), CVY_E_IO, "/nowhere/at/all");
}

/* The last heartbeat of a run on a full disk comes after the fault that ended it, and must leave its text. */
static void full_disk(void)
{
    const cvy_heartbeat heartbeat = heartbeat_of(0, 1e9, CVY_HEARTBEAT_FINISHED, 1, "the end");
    const int fd = open("/dev/full", O_WRONLY);
    if (fd < 0)
        return;
    (void)cvy_error_set(CVY_E_IO, "checkpoint of step 900 is not saved");
    cvy_heartbeat_write(fd, &heartbeat);
    EXPECT_TEXT(cvy_error_text(), "checkpoint of step 900 is not saved");
    close(fd);
}

/* Checks the message for four ranks, one of which has the heartbeat `odd`. NULL: there is no message. */
static void suspect(cvy_heartbeat odd, const char *expected)
{
    cvy_heartbeat all[4];
    char text[320] = "";
    for (int r = 0; r < 4; r++)
        all[r] = heartbeat_of(r, 1000, CVY_HEARTBEAT_STALLED, 50, "a training step");
    const int at = odd.rank < 0 ? 1 : odd.rank;
    all[at] = odd;
    const int told = cvy_heartbeat_suspect(all, 4, 3, text, sizeof text);
    EXPECT(expected ? told > 0 && strstr(text, expected) != NULL : told == 0);
}

static void slowest_rank_is_named(void)
{
    suspect(heartbeat_of(2, 999, CVY_HEARTBEAT_RUNNING, 50, "a training step"), NULL); /* one second older is normal */
    suspect(heartbeat_of(2, 990, CVY_HEARTBEAT_RUNNING, 50, "a training step, node fc1"),
            "rank 2 on node2 writes no heartbeat: its last one was 10.0 s before the others'");
    suspect(heartbeat_of(-1, 1000, CVY_HEARTBEAT_RUNNING, 50, ""), "rank 1 has never written a heartbeat");
    suspect(heartbeat_of(3, 1000, CVY_HEARTBEAT_FINISHED, 50, "the end"), "rank 3 on node3 has left at step 41");
    suspect(heartbeat_of(0, 1000, CVY_HEARTBEAT_STALLED, 49, "waiting for samples"),
            "rank 0 on node0 is slow or stopped: at step 41 in waiting for samples, it has begun 1 collectives fewer "
            "than rank 1");
    suspect(heartbeat_of(2, 1000, CVY_HEARTBEAT_STALLED, 51, "a training step, in an allreduce"),
            "rank 2 on node2 is 1 collectives ahead of all others");
    suspect(heartbeat_of(1, 1000, CVY_HEARTBEAT_STALLED, 50, "a training step, barrier of the node's ranks"),
            "rank 1 on node1 is not where all others are: it is at step 41 in a training step, barrier of the node's "
            "ranks, and they are at step 41 in a training step");
}

static void who_went_first(void)
{
    char text[320] = "";
    const int fd = open(path, O_RDWR | O_TRUNC);
    EXPECT_INT(cvy_heartbeat_first_gone(path, 2, text, sizeof text), 0); /* an empty heartbeat file */
    for (int r = 0; r < 3; r++) {
        const cvy_heartbeat s =
            heartbeat_of(r, r == 1 ? 2000.0 : 2010.0 + r, r == 0 ? CVY_HEARTBEAT_STALLED : CVY_HEARTBEAT_RUNNING, 5,
                         "a training step");
        cvy_heartbeat_write(fd, &s);
    }
    EXPECT_INT(cvy_heartbeat_first_gone(path, 15, text, sizeof text),
               0); /* ten seconds before the others may be chance */
    EXPECT(cvy_heartbeat_first_gone(path, 2, text, sizeof text) > 0);
    EXPECT(strstr(text, "rank 1 on node1 wrote its last heartbeat before all others did") != NULL);
    close(fd);
}

int main(void)
{
    const int fd = mkstemp(path);
    EXPECT(fd >= 0);
    close(fd);
    TEST(lines_come_back);
    TEST(full_disk);
    TEST(slowest_rank_is_named);
    TEST(who_went_first);
    unlink(path);
    return test_end();
}
