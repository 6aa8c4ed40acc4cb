/* rows: clang asan minimal */
/*
 * test_base_affinity.c: counts the NUMA domains of described machines: of two sockets, of sockets in several domains,
 * with hardware threads, with domains that have memory alone, and with damaged descriptions. The mask of a process is
 * read on a system with more hardware threads than a cpu_set_t has.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "base/machine/base_affinity.h"
#include "test_util.h"

static char root[] = "/tmp/convoy-affinity-XXXXXX";

static void make_folder(const char *name)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", root, name);
    EXPECT_INT(mkdir(path, 0700), 0);
}

static void describe(int domain, const char *cpus)
{
    char folder[60], path[300];
    snprintf(folder, sizeof folder, "sys/devices/system/node/node%d", domain);
    make_folder(folder);
    snprintf(path, sizeof path, "%s/sys/devices/system/node/node%d/cpulist", root, domain);
    FILE *f = fopen(path, "w");
    EXPECT(f != NULL);
    fputs(cpus, f);
    fclose(f);
}

/* cpus: of each domain; NULL: it has no folder. */
static void make_machine(const char *const *cpus, int ndomains)
{
    static const char *const folders[] = {"sys", "sys/devices", "sys/devices/system", "sys/devices/system/node"};
    snprintf(root, sizeof root, "/tmp/convoy-affinity-XXXXXX");
    EXPECT(mkdtemp(root) != NULL);
    for (int i = 0; i < CVY_COUNT(folders); i++)
        make_folder(folders[i]);
    for (int i = 0; i < ndomains; i++)
        if (cpus[i])
            describe(i, cpus[i]);
}

static void remove_machine(void)
{
    char command[80];
    snprintf(command, sizeof command, "rm -r %s", root);
    EXPECT_INT(system(command), 0);
}

static int domains(int first, int last)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = first; i <= last; i++)
        CPU_SET(i, &set);
    return __builtin_popcountll(cvy_affinity_domains(root, &set));
}

#if defined(__linux__)

static size_t system_bytes; /* of the system's own sets; 0: the real system is asked */

/* Replaces that of libc. Linux refuses a set that is smaller than its own. */
int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set)
{
    if (system_bytes == 0)
        return (int)CVY_MIN(syscall(SYS_sched_getaffinity, pid, bytes, set), 0L);
    if (bytes < system_bytes) {
        errno = EINVAL;
        return -1;
    }
    memset(set, 0, bytes);
    CPU_SET_S(3, bytes, set);
    CPU_SET_S(1500, bytes, set);
    return 0;
}

static void large_system(void)
{
    cpu_set_t set;
    system_bytes = 2048 / 8;
    EXPECT_INT(cvy_affinity_get(0, &set), 1);
    EXPECT(CPU_COUNT(&set) == 1 && CPU_ISSET(3, &set));
    system_bytes = 1 << 20; /* no system has so many */
    EXPECT_INT(cvy_affinity_get(0, &set), 0);
    system_bytes = 0;
    EXPECT_INT(cvy_affinity_get(0, &set), 1);
    EXPECT(CPU_COUNT(&set) > 0);
}

static void two_sockets(void)
{
    static const char *const cpus[] = {"0-23,48-71\n", "24-47,72-95\n"};
    make_machine(cpus, 2);
    EXPECT_INT(domains(0, 95), 2);
    EXPECT_INT(domains(0, 23), 1);
    EXPECT_INT(domains(48, 71), 1);
    EXPECT_INT(domains(20, 24), 2);
    EXPECT_INT(domains(95, 95), 1);
    remove_machine();
}

static void four_domains_a_socket(void)
{
    static const char *const cpus[] = {"0-15", "16-31", "32-47", "48-63", "64-79", "80-95", "96-111", "112-127"};
    make_machine(cpus, 8);
    EXPECT_INT(domains(0, 127), 8);
    EXPECT_INT(domains(0, 63), 4);
    EXPECT_INT(domains(16, 31), 1);
    remove_machine();
}

static void memory_alone(void)
{
    static const char *const cpus[] = {"0,2,4,6\n", "\n", NULL, NULL, NULL, NULL, NULL, NULL, "1,3,5,7\n"};
    make_machine(cpus, 9);
    EXPECT_INT(domains(0, 7), 2);
    EXPECT_INT(domains(2, 2), 1);
    remove_machine();
}

static void damaged(void)
{
    static const char *const cpus[] = {"0-", "text", "", "0-99999999999", "5000", "-3"};
    make_machine(cpus, 6);
    EXPECT(domains(0, 3) >= 1);
    remove_machine();
    make_machine(NULL, 0);
    EXPECT_INT(domains(0, 3), 1);
    remove_machine();
}

#else

static void one_domain(void)
{
    EXPECT_INT(domains(0, 95), 1);
}

#endif

int main(void)
{
#if defined(__linux__)
    TEST(two_sockets);
    TEST(four_domains_a_socket);
    TEST(memory_alone);
    TEST(damaged);
    TEST(large_system);
#else
    TEST(one_domain);
#endif
    return test_end();
}
