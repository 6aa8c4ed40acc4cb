/*
 * main.c: `convoy`: finds the verb and runs it. --help and --version need neither MPI nor a machine that can train.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd_signals.h"

/* All verbs, in the order of --help. A new verb is a file cmd_<verb>.c and an entry in these two lists. */
extern const cmd_verb cmd_new, cmd_train, cmd_sweep, cmd_test, cmd_predict, cmd_bench, cmd_time, cmd_plan, cmd_convert,
    cmd_pack, cmd_inspect, cmd_ls, cmd_export, cmd_import, cmd_report, cmd_models, cmd_keys, cmd_info, cmd_doctor,
    cmd_selftest, cmd_simulate, cmd_study, cmd_tune, cmd_jobscript, cmd_check_op;

static const cmd_verb *const verbs[] = {
    &cmd_new,    &cmd_train,   &cmd_sweep,     &cmd_test,     &cmd_predict, &cmd_bench,    &cmd_time,
    &cmd_plan,   &cmd_convert, &cmd_pack,      &cmd_inspect,  &cmd_ls,      &cmd_export,   &cmd_import,
    &cmd_report, &cmd_models,  &cmd_keys,      &cmd_info,     &cmd_doctor,  &cmd_selftest, &cmd_simulate,
    &cmd_study,  &cmd_tune,    &cmd_jobscript, &cmd_check_op,
};

static void help(void)
{
    cmd_say("convoy %s: trains neural networks on clusters\n\n"
            "usage: convoy VERB ...                 one process\n"
            "       mpiexec -n N convoy VERB ...    N ranks; srun likewise\n\n",
            cvy_version());
    for (int i = 0; i < CMD_COUNT(verbs); i++)
        cmd_say("  %-9s  %s\n", verbs[i]->name, verbs[i]->summary);
    cmd_say("\nconvoy VERB --help prints more; convoy help WORD says what a word, such as AMP, is called here.\n"
            "Try: mpiexec -n 2 convoy train\n");
}

static const cmd_verb *verb_of(const char *name)
{
    for (int i = 0; i < CMD_COUNT(verbs); i++)
        if (strcmp(name, verbs[i]->name) == 0)
            return verbs[i];
    return NULL;
}

/* As verb_of(), with a message if there is none. */
static const cmd_verb *find_verb(const char *name)
{
    const char *names[CMD_COUNT(verbs)];
    if (verb_of(name))
        return verb_of(name);
    for (int i = 0; i < CMD_COUNT(verbs); i++)
        names[i] = verbs[i]->name;
    const char *near = cmd_nearest(name, names, CMD_COUNT(verbs));
    cmd_error("there is no verb '%s'%s%s%s `convoy --help` lists them", name, near ? ", did you mean '" : ";",
              near ? near : "", near ? "'?" : "");
    return NULL;
}

/* `convoy @FILE` reads the words after `convoy` from a file in which a NUL follows each word. It is for launchers that
 * split words at blanks. Returns 0 if the file cannot be read. */
static int read_words(const char *path, int *argc, char ***argv)
{
    enum { ROOM = 1 << 16 };
    FILE *file = cmd_open_stream(path, "r");
    char *text = calloc(ROOM + 1, 1), **word = calloc(ROOM + 2, sizeof *word);
    const size_t bytes = file && text && word ? fread(text, 1, ROOM, file) : 0;
    int n = 0;
    if (word)
        word[n++] = (*argv)[0];
    for (size_t at = 0; at < bytes; at += strlen(text + at) + 1)
        word[n++] = text + at;
    if (file)
        fclose(file);
    *argc = n; /* never freed: the words live as long as the process */
    *argv = word;
    return n > 1 && bytes < ROOM;
}

static int run(int argc, char **argv)
{
    const char *words = argc == 2 && argv[1][0] == '@' ? argv[1] + 1 : NULL;
    if (words && !read_words(words, &argc, &argv)) {
        cmd_error("%s: the command's words cannot be read from there, or are more than 64 KiB", words);
        return CMD_EXIT_USAGE;
    }
    const char *first = argc > 1 ? argv[1] : "--help";
    cmd_line line = {0};
    const int asks = strcmp(first, "help") == 0 && argc > 2;
    if (strcmp(first, "--version") == 0) {
        cmd_say("convoy %s\n", cvy_version());
        return 0;
    }
    if (strcmp(first, "--print-tables") == 0) { /* for the build: manual pages, completions */
        cmd_signals_print_table();
        for (int i = 0; i < CMD_COUNT(verbs); i++)
            if (verbs[i]->run)
                cmd_print_tables(verbs[i]);
        return 0;
    }
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0 || (strcmp(first, "help") == 0 && !asks)) {
        if (cmd_launch_rank() == 0)
            help();
        return argc > 1 ? 0 : CMD_EXIT_USAGE;
    }
    if (asks && (argc > 3 || !verb_of(argv[2])))
        return cmd_help_word(argc - 2, argv + 2);
    const cmd_verb *verb = find_verb(asks ? argv[2] : first);
    if (!verb)
        return CMD_EXIT_USAGE;
    if (!verb->run) {
        cmd_error("`convoy %s` is not in this build: it was configured with CONVOY_WITH_LAB=OFF", verb->name);
        return CMD_EXIT_FAULT;
    }
    for (int i = 2; i < argc; i++)
        if (asks || strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            if (cmd_launch_rank() == 0)
                cmd_help(verb);
            return 0;
        }
    line.argc = argc;
    line.argv = argv;
    void *options = calloc(1, verb->options_size + 1);
    int code = options ? cmd_parse(verb, argc - 2, argv + 2, &line, options) : CMD_EXIT_FAULT;
    code = code ? code : verb->run(&line);
    free(options);
    return code;
}

/* Whether stdout is closed, or a pipe whose reader has closed it: the caller wants no more of it. */
static int is_unwanted(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return fcntl(STDOUT_FILENO, F_GETFD) < 0 || (poll(&out, 1, 0) == 1 && out.revents & (POLLERR | POLLHUP));
}

/* A job or a script that was cut off by a full disk must not look complete. */
int main(int argc, char **argv)
{
    cmd_signals_of_writes();
    cmd_signals_of_children();
    const int code = run(argc, argv);
    if ((fflush(stdout) == 0 && !ferror(stdout)) || is_unwanted())
        return code;
    cmd_error("what this command prints cannot be written in full: the disk may be full, or the file at the limit of "
              "`ulimit -f`");
    return code ? code : CMD_EXIT_FAULT;
}
