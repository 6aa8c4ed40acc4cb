/*
 * selftest_launch.c: how the ranks were started, whether they run the same copy with the same libraries, and what the
 * system lacks.
 *
 * A copy is identified by its version, by what was built in, and by the linker's identifiers (build-id) of the command
 * and of the library. A node with an older copy on its own disk differs in it. The version of the MPI library is
 * that of the library which is loaded.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_hash.h"
#include "base/machine/base_code_id.h"
#include "base/machine/base_isa.h"
#include "base/machine/base_machine.h"
#include "base/machine/base_memfile.h"
#include "health/selftest/selftest.h"
#include "kernel/kernel_library.h"

/* ---- ranks ---- */

cvy_status cvy_selftest_ranks(cvy_selftest *t)
{
    const cvy_comm *comm = t->context->comm;
    const long long wanted = t->opts.ranks, n = comm->nranks;
    if (wanted > 0 && wanted != n && comm->rank == 0)
        cvy_selftest_fail(
            t,
            "there %s %lld rank%s, and --ranks asks for %lld%s: start it with the mpiexec or srun --mpi= of "
            "the MPI library that convoy was built with (the line \"versions\" names it)",
            n == 1 ? "is" : "are", n, n == 1 ? "" : "s", wanted,
            n == 1 ? "; each process is alone if the launcher belongs to another MPI" : "");
    else
        cvy_selftest_pass(t, "%lld rank%s on %d node%s, %d thread%s each%s", n, n == 1 ? "" : "s", comm->nnodes,
                          comm->nnodes == 1 ? "" : "s", t->context->threads, t->context->threads == 1 ? "" : "s",
                          wanted > 0 ? ", as --ranks asks for" : "");
    if (wanted == 0 && n == 1)
        cvy_selftest_note(t,
                          "with one rank the network is not tested: start it with mpiexec -n N or srun, and --ranks N");
    return CVY_OK;
}

/* ---- versions ---- */

struct copy { /* what each rank says about its copy */
    char version[32], mpi[192], libraries[160], cpu[64];
    uint64_t build, id;
};

/* Open MPI's text goes on with the package and dates. */
static int version_length(const char *library)
{
    const char *more = strstr(library, ", package:");
    return more ? (int)(more - library) : (int)strlen(library);
}

static struct copy copy_here(const cvy_selftest *t)
{
    struct copy mine;
    cvy_comm_about about = {.threads = ""};
    memset(&mine, 0, sizeof mine);
    if (t->context->comm->probe)
        t->context->comm->probe->about(t->context->comm, &about);
    snprintf(mine.version, sizeof mine.version, "%s", cvy_version());
    snprintf(mine.mpi, sizeof mine.mpi, "%.*s%s%.20s", CVY_MIN(version_length(about.library), 150), about.library,
             *about.threads ? ", thread level " : "", about.threads);
    for (char *at = mine.mpi; *at; at++) /* MPICH's text has a tab */
        *at = (char)(*at == '\t' ? ' ' : *at);
    cvy_kernel_libraries_about(NULL, mine.libraries, sizeof mine.libraries);
    cvy_machine_cpu(mine.cpu, sizeof mine.cpu);
    mine.build = cvy_hash(cvy_build_info(), strlen(cvy_build_info()));
    mine.id = 3 * cvy_code_id((uintptr_t)&cvy_run_selftest) + cvy_code_id((uintptr_t)cvy_build_info());
    return mine;
}

/* Copies the value of a line "key value" of the build information. */
static void build_value(const char *key, char *value, size_t room)
{
    const size_t n = strlen(key);
    *value = '\0';
    for (const char *line = cvy_build_info(); *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (strncmp(line, key, n) == 0 && line[n] == ' ')
            snprintf(value, room, "%.*s", (int)strcspn(line + n + 1, "\n"), line + n + 1);
}

/* Lists the parts of the build information that are "yes", or those that are "no". */
static void list_parts(const char *word, char *text, size_t room)
{
    size_t used = 0;
    *text = '\0';
    for (const char *line = cvy_build_info(); *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const size_t key = strcspn(line, " \n"), end = strcspn(line, "\n");
        if (end - key == strlen(word) + 1 && strncmp(line + key + 1, word, strlen(word)) == 0 && used < room)
            used += (size_t)snprintf(text + used, room - used, "%s%.*s", used ? " " : "", (int)key, line);
    }
}

static void compare_copies(cvy_selftest *t, const struct copy *mine, const struct copy *first)
{
    static const char remedy[] = "load the same module on all nodes, and look for older copies on their own disks";
    if (strcmp(mine->version, first->version) != 0)
        cvy_selftest_fail(t, "this rank runs convoy %s, and rank 0 runs %s: %s", mine->version, first->version, remedy);
    else if (mine->build != first->build || mine->id != first->id)
        cvy_selftest_fail(t, "this rank runs another build of convoy %s than rank 0 on %s: %s", mine->version,
                          t->host[0], remedy);
    else if (strcmp(mine->mpi, first->mpi) != 0)
        cvy_selftest_fail(t, "this rank has loaded the MPI library %s, and rank 0 has %s: %s", mine->mpi, first->mpi,
                          remedy);
    else if (strcmp(mine->cpu, first->cpu) != 0)
        cvy_selftest_note(t,
                          "this rank has the processor %s and rank 0 has %s: a step takes as long as on the slower one",
                          mine->cpu, first->cpu);
    else if (strcmp(mine->libraries, first->libraries) != 0)
        cvy_selftest_note(t,
                          "this rank has %s, and rank 0 has %s: kernels differ, and so do the last digits of results",
                          mine->libraries, first->libraries);
}

cvy_status cvy_selftest_versions(cvy_selftest *t)
{
    cvy_comm *comm = t->context->comm;
    char build[64], compiler[64], with[160], without[160];
    const struct copy mine = copy_here(t);
    struct copy first = mine;
    CVY_TRY(comm->ops->broadcast(comm, &first, sizeof first, 0));
    build_value("build", build, sizeof build);
    build_value("compiler", compiler, sizeof compiler);
    list_parts("yes", with, sizeof with);
    list_parts("no", without, sizeof without);
    cvy_selftest_pass(t, "convoy %s, build %s, %s; %s; %s; with %s%s%s", mine.version, build, compiler,
                      *mine.mpi ? mine.mpi : "no MPI library in use", *mine.libraries ? mine.libraries : "no oneDNN",
                      with, *without ? "; without " : "", without);
    compare_copies(t, &mine, &first);
    return CVY_OK;
}

/* ---- the system ---- */

const char *cvy_selftest_isa_text(void)
{
    return cvy_isa_may_use(CVY_ISA_AMX_BF16)      ? "AVX-512 and AMX"
           : cvy_isa_may_use(CVY_ISA_AVX512_BF16) ? "AVX-512 with bf16"
           : cvy_isa_may_use(CVY_ISA_AVX512)      ? "AVX-512"
           : cvy_isa_may_use(CVY_ISA_AVX2)        ? "AVX2"
           : cvy_isa_sve_bits() == 512            ? "SVE of 512 bits"
           : cvy_isa_sve_bits() == 256            ? "SVE of 256 bits"
                                                  : "no vector instructions beyond the baseline";
}

/* Whether anonymous memory files can be made, and opened by their path in /proc as another rank does it. */
static void look_at_memory_files(cvy_selftest *t)
{
    char path[64];
    struct stat st;
    const int fd = cvy_memfile_create();
    if (fd < 0) {
        cvy_selftest_note(
            t,
            "this system has no memory files (memfd_create): the ranks of a node exchange messages in place of sharing "
            "memory, which is slower");
        return;
    }
    snprintf(path, sizeof path, "/proc/%lld/fd/%d", (long long)getpid(), fd);
    if (stat(path, &st) != 0)
        cvy_selftest_note(t, "/proc does not show this process (a container, hidepid): the ranks of a node exchange "
                             "messages in place of sharing memory, which is slower");
    close(fd);
}

cvy_status cvy_selftest_system(cvy_selftest *t)
{
    char cpu[64], memory[64] = "";
    const int64_t left = cvy_mem_left();
    cvy_machine_cpu(cpu, sizeof cpu);
    if (left >= 0)
        snprintf(memory, sizeof memory, ", %.1f GB of memory left", 1e-9 * (double)left);
    cvy_selftest_pass(t, "%s, %s, %d core%s for this rank%s", cpu, cvy_selftest_isa_text(), t->context->cores,
                      t->context->cores == 1 ? "" : "s", memory);
#if defined(__x86_64__)
    if (!cvy_isa_has(CVY_ISA_AVX2))
        cvy_selftest_note(t,
                          "the processor has no AVX2: plain C kernels and those of oneDNN run, several times slower");
    else if (!cvy_isa_may_use(CVY_ISA_AVX2))
        cvy_selftest_note(t, "ONEDNN_MAX_CPU_ISA forbids AVX2, which the processor has: unset it, or steps are slow");
    else if (cvy_isa_has(CVY_ISA_AVX512) && !cvy_isa_may_use(CVY_ISA_AVX512))
        cvy_selftest_note(t, "ONEDNN_MAX_CPU_ISA forbids AVX-512, which the processor has");
#elif defined(__aarch64__)
    cvy_selftest_note(t, "kernels for this kind of processor (aarch64) were tested in an emulator and never timed");
#else
    cvy_selftest_note(t, "this is not an x86-64 processor: plain C kernels and those of oneDNN run");
#endif
    look_at_memory_files(t);
    return CVY_OK;
}
