/*
 * cmd_say.c: output to the terminal: errors, and texts of the library.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd.h"

void cmd_error(const char *fmt, ...)
{
    va_list args;
    if (cmd_launch_rank() != 0)
        return;
    va_start(args, fmt);
    fflush(stdout);
    fputs("convoy: error: ", stderr);
    cmd_put_args(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
}

static void (*abort_all_ranks)(void *, cvy_status, const char *);

void cmd_outcome_set_abort(void (*abort_ranks)(void *user, cvy_status status, const char *text))
{
    abort_all_ranks = abort_ranks;
}

int cmd_outcome(cvy_status status)
{
    if (status == CVY_E_COMM && abort_all_ranks)
        abort_all_ranks(NULL, status, cvy_error_text()); /* the ranks cannot agree on this error: the others would wait
                                                          * for this rank for ever */
    if (status == CVY_STOPPED)
        return CMD_EXIT_STOPPED;
    if (status == CVY_OK)
        return 0;
    if (status > 0)
        cmd_error("the run ended with '%s', which is a fault of convoy; please report it (latest message: %s)",
                  cvy_status_text(status), cvy_error_text());
    else
        cmd_error("%s", cvy_error_text());
    return CMD_EXIT_FAULT;
}

int cmd_print(cvy_status status, char **text)
{
    if (status == CVY_OK && *text) {
        const size_t n = strlen(*text);
        cmd_put(stdout, *text);
        if (n && (*text)[n - 1] != '\n')
            putchar('\n');
    }
    cvy_text_release(text);
    return cmd_outcome(status);
}

int cmd_check_new(const char *path, int force)
{
    struct stat s;
    if (force || stat(path, &s) != 0)
        return 0;
    cmd_error("%s exists already: choose another name, or replace it with --force", path);
    return CMD_EXIT_FAULT;
}

int cmd_ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);
    return n > m && strcmp(name + n - m, end) == 0;
}

cvy_job_source cmd_job(const cmd_sets *sets, const char *path, const char *text)
{
    if (path && cmd_ends_with(path, ".prototxt"))
        return (cvy_job_source){
            .size = sizeof(cvy_job_source), .sets = sets->word, .nsets = sets->count, .caffe = path};
    return (cvy_job_source){.size = sizeof(cvy_job_source),
                            .path = path,
                            .text = path ? NULL : text,
                            .sets = sets->word,
                            .nsets = sets->count};
}

void cmd_put_word(FILE *to, const char *word)
{
    if (*word &&
        strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./,:=@%+-") == strlen(word)) {
        fputs(word, to);
        return;
    }
    putc('\'', to);
    while (*word) {
        const size_t plain = cmd_plain_length(word), unquoted = strcspn(word, "'"),
                     n = plain < unquoted ? plain : unquoted;
        fwrite(word, 1, n, to);
        word += n;
        if (*word == '\'')
            fputs("'\\''", to);
        else if (*word)
            fprintf(to, "'$'\\%03o''", (unsigned)(unsigned char)*word); /* bash reads back the same byte */
        word += *word != 0;
    }
    putc('\'', to);
}

void cmd_put_command(const cmd_line *line, const char *more)
{
    fputs("convoy", stderr);
    for (int i = 1; i < line->argc; i++) {
        putc(' ', stderr);
        cmd_put_word(stderr, line->argv[i]);
    }
    cmd_note(" %s\n", more);
}
