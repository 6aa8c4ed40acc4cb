/*
 * cmd_jobscript_values.c: what the templates of job scripts may name: the job, the site, and the launcher of the ranks.
 * Names from outside are words of the shell, in single quotes if needed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <mpi.h>

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_jobscript.h"

/* ---- the launcher ---- */

/* The value of a launcher's kind is "yes". */
static const char *kind_of(const char *launcher)
{
    const char *slash = strrchr(launcher, '/'), *name = slash ? slash + 1 : launcher;
    if (strcmp(name, "srun") == 0)
        return "by_srun";
    if (strcmp(name, "flux") == 0)
        return "by_flux";
    return strncmp(name, "mpiexec", 7) == 0 || strncmp(name, "mpirun", 6) == 0 ? "by_mpiexec" : NULL;
}

/* Checks that the launcher can be used with the scheduler. */
static int check_launcher(const jobscript *s, const char *launcher, const char *kind)
{
    const char *only = !kind                          ? NULL
                       : strcmp(kind, "by_srun") == 0 ? "slurm"
                       : strcmp(kind, "by_flux") == 0 ? "flux"
                                                      : NULL;
    if (!kind)
        cmd_error("the launcher is %s, expected srun, mpiexec, mpirun, flux, or a path that ends so", launcher);
    else if (only && strcmp(only, s->scheduler) != 0)
        cmd_error("the launcher %s works under %s alone, and the scheduler is %s: expected mpiexec or mpirun", launcher,
                  only, s->scheduler);
    else
        return 0;
    return CMD_EXIT_USAGE;
}

static int is_open_mpi(void)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(library, &length);
    return strstr(library, "Open MPI") != NULL;
}

/* ---- values ---- */

static int set(const jobscript *s, const char *name, const char *fmt, ...) CVY_PRINTF(3, 4);
static int set(const jobscript *s, const char *name, const char *fmt, ...)
{
    FILE *to = jobscript_value(s->templates, name);
    va_list args;
    if (!to)
        return CMD_EXIT_FAULT;
    va_start(args, fmt);
    vfprintf(to, fmt, args);
    va_end(args);
    return fclose(to) == 0 ? 0 : CMD_EXIT_FAULT;
}

/* 0 is no value. */
static int set_number(const jobscript *s, const char *name, int64_t number)
{
    return number ? set(s, name, "%lld", (long long)number) : set(s, name, "%s", "");
}

/* Words of the shell, each behind a blank. */
static int set_words(const jobscript *s, const char *name, const char *const *word, int count)
{
    FILE *to = jobscript_value(s->templates, name);
    for (int i = 0; to && i < count; i++) {
        putc(' ', to);
        cmd_put_word(to, word[i]);
    }
    return to && fclose(to) == 0 ? 0 : CMD_EXIT_FAULT;
}

/* A path that starts with '-' gets "./" in front, so that no command takes it for an option. */
static int set_path(const jobscript *s, const char *name, const char *path)
{
    FILE *to = jobscript_value(s->templates, name);
    if (!to)
        return CMD_EXIT_FAULT;
    if (*path == '-')
        fputs("./", to);
    cmd_put_word(to, path);
    return fclose(to) == 0 ? 0 : CMD_EXIT_FAULT;
}

int jobscript_set_launcher(const jobscript *s)
{
    char *text = NULL;
    int code = s->site.launcher ? 0 : jobscript_text(s->templates, "launcher", &text);
    if (code)
        return code;
    if (text)
        text[strcspn(text, "\n")] = '\0';
    const char *launcher = s->site.launcher ? s->site.launcher : text, *kind = kind_of(launcher);
    code = check_launcher(s, launcher, kind);
    const char *const kinds[] = {"by_srun", "by_flux", "by_mpiexec"};
    for (int i = 0; !code && i < CMD_COUNT(kinds); i++)
        code = set(s, kinds[i], "%s", strcmp(kind, kinds[i]) == 0 ? "yes" : "");
    code = code ? code : set_path(s, "launcher", launcher);
    const char *mpi = strcmp(kind ? kind : "", "by_srun") != 0 ? "" : is_open_mpi() ? "pmix" : "pmi2";
    code = code ? code : set(s, "mpi", "%s", s->site.mpi ? s->site.mpi : mpi);
    code = code ? code : set(s, "open_mpi", "%s", is_open_mpi() ? "yes" : "");
    free(text);
    return code ? code : set_words(s, "launcher_options", s->site.launcher_option, s->site.launcher_options);
}

/* Lines of the head and of the environment. */
static int set_site(const jobscript *s)
{
    char *directive = NULL;
    int code = jobscript_text(s->templates, "directive", &directive);
    FILE *to = code ? NULL : jobscript_value(s->templates, "headers");
    for (int i = 0; to && i < s->site.headers; i++)
        if (*s->site.header[i] == '#')
            fprintf(to, "%s\n", s->site.header[i]);
        else
            fprintf(to, "%.*s %s\n", (int)strcspn(directive, "\n"), directive, s->site.header[i]);
    free(directive);
    if (!to || fclose(to) != 0)
        return code ? code : CMD_EXIT_FAULT;
    to = jobscript_value(s->templates, "environment");
    for (int i = 0; to && i < s->site.variables; i++) {
        fprintf(to, "export %s=", s->site.environment[2 * i]);
        cmd_put_word(to, s->site.environment[2 * i + 1]);
        putc('\n', to);
    }
    if (!to || fclose(to) != 0)
        return CMD_EXIT_FAULT;
    code = set_words(s, "modules", s->site.module, s->site.modules);
    code = code ? code : set(s, "account", "%s", s->site.account ? s->site.account : "");
    code = code ? code : set(s, "queue", "%s", s->site.queue ? s->site.queue : "");
    return code
               ? code
               : set(s, "parallel_environment", "%s", s->site.parallel_environment ? s->site.parallel_environment : "");
}

static int64_t minutes(int64_t seconds)
{
    return (seconds + 59) / 60;
}

/* The limit as HH:MM:SS and, rounded up, as H:MM; the warning before it in seconds and whole minutes. */
static int set_times(const jobscript *s)
{
    const long long limit = s->limit_s, limit_m = minutes(limit);
    int code = set_number(s, "limit_s", limit);
    code = code ? code : set(s, "limit", "%02lld:%02lld:%02lld", limit / 3600, limit / 60 % 60, limit % 60);
    code = code ? code : set(s, "limit_minutes", "%lld:%02lld", limit_m / 60, limit_m % 60);
    code = code ? code : set_number(s, "signal", s->signal_s);
    return code ? code
                : set(s, "signal_minutes", "%lld",
                      minutes(s->signal_s) < limit_m ? (long long)minutes(s->signal_s) : limit_m - 1);
}

int jobscript_set_values(const jobscript *s)
{
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {{"nodes", s->nodes},
                   {"ppn", s->ppn},
                   {"threads", s->threads},
                   {"ranks", s->nodes * s->ppn},
                   {"cores", s->nodes * s->ppn * s->threads},
                   {"cores_of_node", s->ppn * s->threads},
                   {"gpus", s->gpus},
                   {"gpus_of_slot", s->threads ? s->gpus / s->ppn : s->gpus},
                   {"seed", s->seed},
                   {"last_seed", s->last_seed}};
    int code = set(s, "name", "%s", s->name);
    for (int i = 0; !code && i < CMD_COUNT(numbers); i++)
        code = set_number(s, numbers[i].name, numbers[i].value);
    code = code ? code : set(s, "seeds", "%s", "");
    if (!code && s->last_seed)
        code = set(s, "seeds", "%lld-%lld", (long long)s->seed, (long long)s->last_seed);
    if (!code && s->job_file)
        code = set_path(s, "job", s->job_file);
    code = code ? code : set_path(s, "out", s->out);
    code = code ? code : set_times(s);
    return code ? code : set_site(s);
}
