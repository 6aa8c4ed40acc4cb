/*
 * test_context_topology.c: the line of each node and the warnings, for ranks placed as launchers place them, well and
 * badly, on imaginary machines.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>

#include "context/context_topology.h"
#include "test_util.h"

enum { RANKS = 64 };

static cvy_rank_topology place[RANKS];
static int nranks;

static cpu_set_t range(int first, int last)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = first; i <= last; i++)
        CPU_SET(i, &set);
    return set;
}

/* Adds a rank on node `node`, which has `cores` cores. The rank is bound to the cores first .. last. */
static void add(int node, int cores, int first, int last, int threads)
{
    cvy_rank_topology *p = &place[nranks++];
    memset(p, 0, sizeof *p);
    snprintf(p->host, sizeof p->host, "cn%02d", node);
    p->node = node;
    p->threads = threads;
    p->launcher = CVY_LAUNCHER_OPEN_MPI;
    p->mask = p->cores = range(first, last);
    p->permitted = range(0, cores - 1);
}

/* Each core has two hardware threads, 2 k and 2 k + 1. */
static void make_siblings(void)
{
    for (int r = 0; r < nranks; r++) {
        cpu_set_t *both[] = {&place[r].cores, &place[r].permitted};
        for (int k = 0; k < CVY_COUNT(both); k++)
            for (int i = 0; i + 1 < CPU_SETSIZE; i += 2) {
                if (CPU_ISSET(i + 1, both[k]))
                    CPU_SET(i, both[k]);
                CPU_CLR(i + 1, both[k]);
            }
    }
}

static void expect(const char *lines, const char *warnings)
{
    cvy_text text = {0};
    cvy_text_add(&text, "%s", "");
    EXPECT_OK(cvy_topology_print(place, nranks, &text));
    EXPECT_TEXT(text.data, lines);
    cvy_text_free(&text);
    cvy_text_add(&text, "%s", "");
    EXPECT_OK(cvy_topology_check(place, nranks, &text));
    EXPECT_TEXT(text.data, warnings);
    cvy_text_free(&text);
    nranks = 0;
}

/* The domains that ranks 0 .. nranks-1 reach, on nodes whose domains have `cores` cores each. */
static void make_domains(int cores)
{
    for (int r = 0; r < nranks; r++) {
        int first = 0, last = CPU_SETSIZE - 1;
        while (!CPU_ISSET(first, &place[r].mask))
            first++;
        while (!CPU_ISSET(last, &place[r].mask))
            last--;
        place[r].domains = (UINT64_MAX >> (63 - last / cores)) & (UINT64_MAX << (first / cores));
    }
}

/* Two sockets of 24 cores; two of 64, each of four domains; one rank, ranks for each domain, ranks that are not bound.
 */
static void domains(void)
{
    add(0, 48, 0, 47, 48);
    make_domains(24);
    expect(
        "node cn00: rank 0, 48 cores, 48 threads, not bound\n",
        "node cn00: the threads of a rank may be in 2 NUMA domains, and then wait for memory of another domain: start "
        "2 "
        "ranks a node with 24 threads each, bound to the domains: mpiexec --map-by ppr:1:numa:PE=24 --bind-to core\n");
    for (int r = 0; r < 8; r++)
        add(0, 128, 16 * r, 16 * r + 15, 16);
    make_domains(16);
    expect("node cn00: ranks 0-7, 128 cores, 16 threads each, bound to 0-15 16-31 32-47 48-63 64-79 80-95 96-111 "
           "112-127\n",
           "");
    for (int r = 0; r < 2; r++) {
        add(0, 128, 64 * r, 64 * r + 63, 64);
        place[r].launcher = CVY_LAUNCHER_SLURM;
    }
    make_domains(16);
    expect("node cn00: ranks 0-1, 128 cores, 64 threads each, bound to 0-63 64-127\n",
           "node cn00: the threads of a rank may be in 4 NUMA domains, and then wait for memory of another domain: "
           "start 8 "
           "ranks a node with 16 threads each, bound to the domains: srun --ntasks-per-node=8 --cpus-per-task=16 "
           "--cpu-bind=ldoms\n");
    for (int r = 0; r < 16; r++) {
        add(0, 128, 0, 127, 8);
        place[r].launcher = CVY_LAUNCHER_HYDRA;
    }
    make_domains(16);
    expect("node cn00: ranks 0-15, 128 cores, 8 threads each, not bound\n",
           "node cn00: the threads of a rank may be in 8 NUMA domains, and then wait for memory of another domain: "
           "start 16 "
           "ranks a node with 8 threads each, bound to the domains: mpiexec -ppn 16 -bind-to numa\n");
    for (int r = 0; r < 3; r++) {
        add(0, 64, 0, 63, 16); /* hardware threads: 32 cores */
        place[r].launcher = CVY_LAUNCHER_SLURM;
    }
    make_domains(32);
    make_siblings();
    expect("node cn00: ranks 0-2, 32 cores (64 hardware threads), 16 threads each, not bound\n",
           "node cn00: the threads of a rank may be in 2 NUMA domains, and then wait for memory of another domain: "
           "start 2 "
           "ranks a node with 16 threads each, bound to the domains: srun --ntasks-per-node=2 --cpus-per-task=32 "
           "--cpu-bind=ldoms\n");
    add(0, 8, 0, 7, 8);
    place[0].launcher = CVY_LAUNCHER_UNKNOWN;
    make_domains(4);
    expect(
        "node cn00: rank 0, 8 cores, 8 threads, not bound\n",
        "node cn00: the threads of a rank may be in 2 NUMA domains, and then wait for memory of another domain: start "
        "2 "
        "ranks a node with 4 threads each, bound to the domains: the launcher's option that binds each rank to a NUMA "
        "domain\n");
    for (int r = 0; r < 4; r++) /* one thread cannot be in two domains */
        add(0, 4, 0, 3, 1);
    make_domains(2);
    expect("node cn00: ranks 0-3, 4 cores, 1 thread each, not bound\n", "");
}

static void good_places(void)
{
    for (int r = 0; r < 4; r++)
        add(1, 8, 2 * r, 2 * r + 1, 2);
    expect("node cn01: ranks 0-3, 8 cores, 2 threads each, bound to 0-1 2-3 4-5 6-7\n", "");
    for (int r = 0; r < 4; r++)
        add(r % 2, 16, 0, 15, 8); /* distributed over the nodes in turns */
    expect("node cn00: ranks 0,2, 16 cores, 8 threads each, not bound\nnode cn01: ranks 1,3, 16 cores, 8 threads each, "
           "not bound\n",
           "");
    add(0, 4, 0, 3, 4);
    expect("node cn00: rank 0, 4 cores, 4 threads, not bound\n", "");
    add(0, 8, 0, 5, 6);
    add(0, 8, 6, 7, 2);
    expect("node cn00: ranks 0-1, 8 cores, 2 to 6 threads each, bound to 0-5 6-7\n", "");
}

static void hardware_threads(void)
{
    add(0, 16, 0, 7, 8);
    add(0, 16, 8, 15, 8);
    make_siblings();
    expect("node cn00: ranks 0-1, 8 cores (16 hardware threads), 8 threads each, bound to 0-7 8-15\n", "");
    /* One hardware thread of each core, as with --hint=nomultithread: no core idles. */
    add(0, 16, 0, 15, 8);
    make_siblings();
    place[0].mask = place[0].cores;
    expect("node cn00: rank 0, 8 cores, 8 threads, not bound\n", "");
    add(0, 16, 0, 15, 20);
    make_siblings();
    expect("node cn00: rank 0, 8 cores (16 hardware threads), 20 threads, not bound\n",
           "node cn00 has 20 compute threads on 16 hardware threads, so some threads share a core, and each step "
           "waits for them: give --threads 16, or start fewer ranks a node\n");
}

static void many_nodes(void)
{
    for (int n = 0; n < 12; n++)
        for (int r = 0; r < 2; r++)
            add(n, n == 5 ? 4 : 8, n == 5 ? 2 * r : 4 * r, n == 5 ? 2 * r + 1 : 4 * r + 3, n == 5 ? 2 : 4);
    expect("11 nodes, cn00 to cn11: 2 ranks each, 8 cores, 4 threads each, bound to 0-3 4-7\n"
           "node cn05: ranks 10-11, 4 cores, 2 threads each, bound to 0-1 2-3\n",
           "");
    for (int n = 0; n < 12; n++)
        add(n, 8, 0, n == 7 ? 3 : 1, n == 7 ? 4 : 2);
    expect("11 nodes, cn00 to cn11: 1 rank each, 2 cores, 2 threads, bound to 0-1\nnode cn07: rank 7, 4 cores, 4 "
           "threads, bound to 0-3\n",
           "the ranks of node cn00 and 10 like it are bound to 2 of its 8 cores, and the others idle: mpiexec "
           "--bind-to none, or --map-by slot:PE=8 --bind-to core\n"
           "the ranks of node cn07 are bound to 4 of its 8 cores, and the others idle: mpiexec --bind-to "
           "none, or --map-by slot:PE=8 --bind-to core\n");
}

static void bad_places(void)
{
    /* Open MPI's default for two ranks: a core each, and six cores idle. */
    add(0, 8, 0, 0, 1);
    add(0, 8, 1, 1, 1);
    expect("node cn00: ranks 0-1, 2 cores, 1 thread each, bound to 0 1\n",
           "the ranks of node cn00 are bound to 2 of its 8 cores, and the others idle: mpiexec --bind-to "
           "none, or --map-by slot:PE=4 --bind-to core\n");
    /* More threads than cores: first too many threads of each rank, then too many ranks. */
    for (int r = 0; r < 2; r++)
        add(0, 4, 0, 3, 4);
    expect("node cn00: ranks 0-1, 4 cores, 4 threads each, not bound\n",
           "node cn00 has 8 compute threads on 4 cores, so some threads share a core, and each step waits for them: "
           "give --threads 2, or start fewer ranks a node\n");
    for (int r = 0; r < 3; r++)
        add(0, 2, 0, 1, 1);
    expect("node cn00: ranks 0-2, 2 cores, 1 thread each, not bound\n",
           "node cn00 has 3 compute threads on 2 cores, so some threads share a core, and each step waits for them: "
           "start at most 2 ranks a node\n");
    /* Eight threads that share one core of eight. */
    add(0, 8, 3, 3, 8);
    place[0].launcher = CVY_LAUNCHER_SLURM;
    expect("node cn00: rank 0, 1 core, 8 threads, bound to 3\n",
           "node cn00 has 8 compute threads on 1 of its 8 cores, so some threads share a core, and each step "
           "waits for them: srun --cpus-per-task=8 --cpu-bind=cores\n");
    /* Two of four ranks share one core. */
    for (int r = 0; r < 4; r++)
        add(0, 4, r == 3 ? 1 : r, r == 3 ? 1 : r, 1);
    place[0].launcher = CVY_LAUNCHER_UNKNOWN;
    place[2].cores = place[2].mask = range(2, 3);
    expect("node cn00: ranks 0-3, 4 cores, 1 thread each, bound to 0 1 2-3 1\n",
           "2 ranks on node cn00, such as 1 and 3, are bound to the same core 1, for 2 threads: let the launcher bind "
           "each rank to 1 core of its own, or bind no rank\n");
    /* One rank's threads share a core; the other ranks' threads have one each. */
    add(0, 4, 0, 0, 2);
    add(0, 4, 1, 3, 1);
    expect("node cn00: ranks 0-1, 4 cores, 1 to 2 threads each, bound to 0 1-3\n",
           "rank 0 on node cn00 has 2 threads on core 0: mpiexec --bind-to none, or --map-by slot:PE=2 --bind-to core; "
           "or --threads 1\n");
}

/* Slurm gives a part of a node; the rest belongs to another job. */
static void shared_node(void)
{
    for (int r = 0; r < 2; r++) {
        add(0, 64, r, r, 1);
        place[r].allotted = 2;
        place[r].launcher = CVY_LAUNCHER_SLURM;
    }
    expect("node cn00: ranks 0-1, 2 cores, 1 thread each, bound to 0 1\n", "");
    for (int r = 0; r < 2; r++) {
        add(0, 64, r, r, 1);
        place[r].allotted = 16;
        place[r].launcher = CVY_LAUNCHER_SLURM;
    }
    expect("node cn00: ranks 0-1, 2 cores, 1 thread each, bound to 0 1\n",
           "the ranks of node cn00 are bound to 2 of its 16 cores, and the others idle: srun --cpus-per-task=8 "
           "--cpu-bind=cores\n");
}

static void long_lists(void)
{
    char text[24];
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < 60; i += 2)
        CPU_SET(i, &set);
    cvy_cores_text(&set, text, sizeof text);
    EXPECT_TEXT(text, "0,2,4,6,8,10,12,14,16..");
    for (int r = 0; r < 20; r++)
        add(0, 20, r, r, 1);
    expect("node cn00: ranks 0-19, 20 cores, 1 thread each, bound to 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 ..\n", "");
}

static cvy_status print_and_judge(void)
{
    cvy_text text = {0};
    cvy_status status = cvy_topology_print(place, nranks, &text);
    if (status == CVY_OK)
        status = cvy_topology_check(place, nranks, &text);
    cvy_text_free(&text);
    return status;
}

static void no_memory(void)
{
    for (int r = 0; r < 3; r++)
        add(0, 2, 0, 1, 1);
    EXPECT_SURVIVES_NO_MEMORY(print_and_judge());
    nranks = 0;
}

int main(void)
{
    TEST(domains);
    TEST(good_places);
    TEST(hardware_threads);
    TEST(many_nodes);
    TEST(bad_places);
    TEST(shared_node);
    TEST(long_lists);
    TEST(no_memory);
    return test_end();
}
