/*
 * test_base_core_limits.c: finds quotas of control groups on described machines, of versions 1 and 2, in every group
 * upwards, with namespaces, both versions at once and damaged files; and the counts of batch systems and of
 * OMP_NUM_THREADS in variables.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/machine/base_core_limits.h"
#include "base/machine/base_groups.h"
#include "test_util.h"

static char root[64];

/* Writes a file below the root, and makes the folders on its way. */
static void put(const char *name, const char *text)
{
    char path[1024];
    const int n = snprintf(path, sizeof path, "%s/%s", root, name);
    EXPECT(n < (int)sizeof path);
    for (char *slash = path + strlen(root); (slash = strchr(slash + 1, '/')) != NULL;) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *f = fopen(path, "w");
    EXPECT(f != NULL);
    fputs(text, f);
    fclose(f);
}

/* groups: what /proc/self/cgroup has. */
static void begin(const char *groups)
{
    snprintf(root, sizeof root, "/tmp/convoy-limits-XXXXXX");
    EXPECT(mkdtemp(root) != NULL);
    put("proc/self/cgroup", groups);
}

static void end(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -r %s", root);
    EXPECT_INT(system(command), 0);
}

static cvy_core_limit limit[CVY_CORE_LIMITS_MAX];

/* Looks for a limit whose source ends so. */
static const cvy_core_limit *find(int n, const char *source)
{
    const size_t m = strlen(source);
    for (int i = 0; i < n; i++)
        if (strlen(limit[i].source) >= m && strcmp(limit[i].source + strlen(limit[i].source) - m, source) == 0)
            return &limit[i];
    return NULL;
}

/* ---- control groups ---- */

/* The number of quotas; the least one, with its file below sys/fs/cgroup. */
static int expect_quota(double cores, const char *file)
{
    const int n = cvy_core_limits(root, limit);
    const cvy_core_limit *least = NULL;
    for (int i = 0; i < n; i++) {
        EXPECT(limit[i].kind == CVY_LIMIT_GROUP && limit[i].group != 0 && !limit[i].is_exact);
        least = !least || limit[i].cores < least->cores ? &limit[i] : least;
    }
    EXPECT(least != NULL);
    EXPECT_NEAR(least ? least->cores : 0, cores, 1e-12);
    EXPECT(least && least == find(n, file) && strncmp(least->source, root, strlen(root)) == 0);
    return n;
}

static void version_2(void)
{
    begin("0::/user/job_5/step_0\n");
    EXPECT_INT(cvy_core_limits(root, limit), 0);
    put("sys/fs/cgroup/user/job_5/step_0/cpu.max", "max 100000\n");
    EXPECT_INT(cvy_core_limits(root, limit), 0);
    put("sys/fs/cgroup/user/job_5/step_0/cpu.max", "50000 100000\n");
    EXPECT_INT(expect_quota(0.5, "/sys/fs/cgroup/user/job_5/step_0/cpu.max"), 1);
    put("sys/fs/cgroup/user/job_5/cpu.max", "400000 100000\n");
    put("sys/fs/cgroup/user/cpu.max", "10000 25000\n"); /* the one above all others is the least */
    EXPECT_INT(expect_quota(0.4, "/sys/fs/cgroup/user/cpu.max"), 3);
    end();
    begin("0::/\n"); /* in a namespace: its own group is at the mount point */
    put("sys/fs/cgroup/cpu.max", "250000 100000\n");
    EXPECT_INT(expect_quota(2.5, "/sys/fs/cgroup/cpu.max"), 1);
    end();
    begin("0::/../other\n");
    put("sys/fs/cgroup/cpu.max", "150000 50000\n");
    EXPECT_INT(expect_quota(3, "/sys/fs/cgroup/cpu.max"), 1);
    end();
    begin("0::/docker/0123\n"); /* the path of the host, which does not exist here */
    put("sys/fs/cgroup/cpu.max", "100000 100000\n");
    EXPECT_INT(expect_quota(1, "/sys/fs/cgroup/cpu.max"), 1);
    end();
}

static void version_1(void)
{
    begin("12:memory:/m\n4:cpu,cpuacct:/slurm/uid_0/job_7\n1:name=systemd:/s\n");
    put("sys/fs/cgroup/cpu,cpuacct/slurm/uid_0/job_7/cpu.cfs_quota_us", "-1\n");
    put("sys/fs/cgroup/cpu,cpuacct/slurm/uid_0/job_7/cpu.cfs_period_us", "100000\n");
    put("sys/fs/cgroup/memory/m/cpu.cfs_quota_us", "1\n");
    put("sys/fs/cgroup/memory/m/cpu.cfs_period_us", "100000\n");
    EXPECT_INT(cvy_core_limits(root, limit), 0);
    put("sys/fs/cgroup/cpu,cpuacct/slurm/cpu.cfs_quota_us", "150000\n");
    put("sys/fs/cgroup/cpu,cpuacct/slurm/cpu.cfs_period_us", "100000\n");
    EXPECT_INT(expect_quota(1.5, "/cpu,cpuacct/slurm/cpu.cfs_quota_us"), 1);
    /* The usual link: the same group by another name is one limit. */
    char link[128];
    snprintf(link, sizeof link, "%s/sys/fs/cgroup/cpu", root);
    EXPECT_INT(symlink("cpu,cpuacct", link), 0);
    EXPECT_INT(expect_quota(1.5, "/slurm/cpu.cfs_quota_us"), 1);
    end();
    begin("3:cpuacct:/a\n2:cpuset:/a\n1:cpu:/a/b\n0::/v2\n"); /* both versions */
    put("sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "200000\n");
    put("sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000\n");
    EXPECT_INT(expect_quota(2, "/cpu/a/b/cpu.cfs_quota_us"), 1);
    put("sys/fs/cgroup/unified/v2/cpu.max", "30000 100000\n");
    EXPECT_INT(expect_quota(0.3, "/unified/v2/cpu.max"), 2);
    end();
}

static void damaged(void)
{
    static const char *const quotas[] = {"", "\n", "max", "text 5", "-5 100000", "0 0", "100000 0", "100000 -1"};
    static const char *const groups[] = {"", "0", "0:", "0::", "::::\n", ":cpu:\n\n", "1:cpu\n", "0::relative\n"};
    for (int i = 0; i < CVY_COUNT(quotas); i++) {
        begin("0::/g\n");
        put("sys/fs/cgroup/g/cpu.max", quotas[i]);
        EXPECT_INT(cvy_core_limits(root, limit), 0);
        end();
    }
    for (int i = 0; i < CVY_COUNT(groups); i++) {
        begin(groups[i]);
        EXPECT_INT(cvy_core_limits(root, limit), 0);
        end();
    }
    begin("1:cpu:/g\n"); /* a quota without its period */
    put("sys/fs/cgroup/cpu/g/cpu.cfs_quota_us", "50000\n");
    EXPECT_INT(cvy_core_limits(root, limit), 0);
    end();
    char path[3 * CVY_CORE_LIMITS_MAX + 64] = "0::";
    for (int i = 0; i < CVY_CORE_LIMITS_MAX + 4; i++)
        strcat(path, "/gg");
    begin(path); /* more groups with a quota than there is room for */
    for (size_t n = strlen(path); n > 3; n -= 3) {
        char name[300];
        snprintf(name, sizeof name, "sys/fs/cgroup%.*s/cpu.max", (int)(n - 3), path + 3);
        put(name, "70000 100000\n");
    }
    EXPECT_INT(cvy_core_limits(root, limit), CVY_CORE_LIMITS_MAX);
    end();
    snprintf(root, sizeof root, "/nonexistent");
    EXPECT_INT(cvy_core_limits(root, limit), 0);
}

/* ---- variables ---- */

static void expect_variable(const char *name, const char *value, double cores, cvy_core_limit_kind kind)
{
    char source[300];
    setenv(name, value, 1);
    snprintf(source, sizeof source, "%s=%s", name, value);
    const cvy_core_limit *l = find(cvy_core_limits("/nonexistent", limit), source);
    EXPECT(l != NULL && l->kind == kind);
    EXPECT_NEAR(l ? l->cores : -1, cores, 0);
    unsetenv(name);
}

static void variables(void)
{
    expect_variable("OMP_NUM_THREADS", "4", 4, CVY_LIMIT_OPENMP);
    expect_variable("OMP_NUM_THREADS", " 4 , 2", 4, CVY_LIMIT_OPENMP); /* for nested regions */
    expect_variable("OMP_NUM_THREADS", "0", 0, CVY_LIMIT_OPENMP);
    expect_variable("OMP_NUM_THREADS", "-1", 0, CVY_LIMIT_OPENMP);
    expect_variable("OMP_NUM_THREADS", "four", 0, CVY_LIMIT_OPENMP);
    expect_variable("OMP_NUM_THREADS", "4x", 0, CVY_LIMIT_OPENMP);
    expect_variable("OMP_NUM_THREADS", "99999999999999999999", 0, CVY_LIMIT_OPENMP);
    expect_variable("SLURM_CPUS_PER_TASK", "8", 8, CVY_LIMIT_PROCESS);
    expect_variable("SLURM_CPUS_ON_NODE", "16", 16, CVY_LIMIT_NODE);
    setenv("NCPUS", "3", 1); /* a name that others use, too */
    setenv("NSLOTS", "3", 1);
    EXPECT_INT(cvy_core_limits("/nonexistent", limit), 0);
    setenv("PBS_JOBID", "5.server", 1);
    expect_variable("NCPUS", "3", 3, CVY_LIMIT_PROCESS);
    expect_variable("PBS_NUM_PPN", "12", 12, CVY_LIMIT_NODE);
    unsetenv("PBS_JOBID");
    setenv("JOB_ID", "7", 1);
    expect_variable("NSLOTS", "3", 3, CVY_LIMIT_NODE);
    unsetenv("JOB_ID");
    expect_variable("LSB_DJOB_NUMPROC", "6", 6, CVY_LIMIT_NODE);
}

/* Counts that stand beside the names of hosts: the one of this host counts. */
static void hosts(void)
{
    char host[200] = "", text[600], path[128];
    EXPECT_INT(gethostname(host, sizeof host - 1), 0);
    snprintf(text, sizeof text, "other%s 9 %s.site 4 another 5", host, host);
    setenv("LSB_DJOB_NUMPROC", "18", 1); /* of all hosts */
    expect_variable("LSB_MCPU_HOSTS", text, 4, CVY_LIMIT_NODE);
    setenv("LSB_MCPU_HOSTS", "other 9 another", 1);
    EXPECT_INT(cvy_core_limits("/nonexistent", limit), 0);
    setenv("LSB_MCPU_HOSTS", text, 1);
    setenv("LSB_AFFINITY_HOSTFILE", "file", 1); /* a slot may be several cores */
    EXPECT_INT(cvy_core_limits("/nonexistent", limit), 0);
    unsetenv("LSB_AFFINITY_HOSTFILE");
    unsetenv("LSB_MCPU_HOSTS");
    unsetenv("LSB_DJOB_NUMPROC");
    begin("");
    snprintf(text, sizeof text, "other 9 all.q@other UNDEFINED\n%s 2 all.q@here UNDEFINED\n", host);
    put("hosts", text);
    snprintf(path, sizeof path, "%s/hosts", root);
    setenv("JOB_ID", "7", 1);
    setenv("NSLOTS", "11", 1);
    setenv("NHOSTS", "2", 1);
    expect_variable("PE_HOSTFILE", path, 2, CVY_LIMIT_NODE);
    EXPECT_INT(cvy_core_limits("/nonexistent", limit), 0);
    end();
}

int main(void)
{
    static const char *const names[] = {"OMP_NUM_THREADS", "SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE", "PBS_JOBID",
                                        "JOB_ID",          "LSB_MCPU_HOSTS",      "LSB_DJOB_NUMPROC"};
    for (int i = 0; i < CVY_COUNT(names); i++)
        unsetenv(names[i]);
#if defined(__linux__)
    TEST(version_2);
    TEST(version_1);
    TEST(damaged);
#endif
    TEST(variables);
    TEST(hosts);
    return test_end();
}
