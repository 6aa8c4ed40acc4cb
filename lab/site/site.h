/*
 * site.h: what a computing centre says once for all its users, in a file site.yaml: scheduler, account, queue,
 * modules, launcher and defaults of its jobs.
 *
 * `convoy jobscript` writes its scripts with these values. docs/guide/launching.md lists the keys.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SITE_H
#define CVY_SITE_H

#include <convoy/base.h>

/** The values of a site, read from up to two files. */
typedef struct cvy_site cvy_site;

/** What is known of a site. Set size; the library fills the rest. Strings and lists are valid until the site is
 * destroyed. A string is NULL, a number 0 and a list empty if no file gives the key. */
typedef struct cvy_site_about {
    size_t size;
    /** The centre's file and the user's own; NULL: there is none. */
    const char *path, *user_path;
    /** "slurm", "pbs", "lsf", "flux" or "sge". */
    const char *scheduler;
    /** Whom the time is charged to, and the queue or partition: words without blanks, quotes or other signs of a shell.
     */
    const char *account, *queue;
    /** SGE's parallel environment (`qsub -pe`); a word like these. */
    const char *parallel_environment;
    /** The command that starts the ranks: "srun", "mpiexec", "flux", or a path that ends so. */
    const char *launcher;
    /** The interface between launcher and MPI library: `srun --mpi=`, `flux run -o pmi=`. A word like these. */
    const char *mpi;
    /** Further words for the launcher. They may have any characters except control characters. */
    const char *const *launcher_option;
    int launcher_options;
    /** Names for `module load`, in order; likewise. */
    const char *const *module;
    int modules;
    /** Lines for the head of the script, without control characters: an option of the scheduler, or a whole line that
     * begins with '#'. */
    const char *const *header;
    int headers;
    /** Environment variables: environment[2 i] is a name (letters, digits, '_'), environment[2 i + 1] its value, which
     * has no control characters. */
    const char *const *environment;
    int variables;
    /** Defaults of a job: nodes, ranks of a node, threads of a rank, seconds between the signal and the limit. */
    int64_t nodes, ppn, threads, signal_s;
    /** Default of the limit: HH:MM:SS, D-HH:MM:SS or minutes. The library does not interpret it. */
    const char *time;
} cvy_site_about;
CVY_SIZED_STRUCT(cvy_site_about)

/**
 * cvy_site_open - find and read the site file
 * @program: absolute path of the running command, such as "/opt/convoy/bin/convoy"; NULL: unknown. Borrowed
 * @site_out: the site, which has no values if there is no file; the caller destroys it
 *
 * The centre's file is the first of these: $CONVOY_SITE, which must exist if it is set; ../etc/convoy/site.yaml as seen
 * from the folder of @program; /etc/convoy/site.yaml. Values of the user's own file replace those of the centre, key by
 * key: $XDG_CONFIG_HOME/convoy/site.yaml, or ~/.config/convoy/site.yaml. With CONVOY_SITE=off no file is read.
 *
 * Collective: no. Threads: any, while no thread changes the environment. Errors: CVY_E_IO (a file cannot be read),
 * CVY_E_CONFIG with file, line and column (no such key, the nearest is named; a value that is invalid or could be taken
 * for a command of the script), CVY_E_MEMORY.
 */
CVY_MUST_CHECK cvy_status cvy_site_open(const char *program, cvy_site **site_out);

/** Destroys the site and sets the pointer to NULL; NULL is accepted. Collective: no. */
void cvy_site_destroy(cvy_site **site);

/** The values of a site. Collective: no. Threads: any. Errors: CVY_E_ARGUMENT. */
CVY_MUST_CHECK cvy_status cvy_site_describe(const cvy_site *site, cvy_site_about *about_out);

#endif
