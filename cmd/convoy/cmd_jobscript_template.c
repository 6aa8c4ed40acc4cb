/*
 * cmd_jobscript_template.c: texts from templates. A template consists of blocks, `@block NAME` and the lines that
 * follow, without the empty ones at its end. In them
 *
 *     @NAME@                         stands for a value of the job, or for another block
 *     @if NAME .. @else .. @end      are for when a value or block has any text; `@if !NAME`: has none; `@if A B`: one
 *                                    of the words holds
 *     @# ..                          is a comment, as is what comes before the first block
 *
 * A line of @NAME@ alone is replaced by as many lines as that has, also none. Blocks of the scheduler's own template
 * come before those that all have in common.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_jobscript.h"

enum { BLOCKS_MAX = 256, VALUES_MAX = 64, DEPTH_MAX = 16, NAME_ROOM = 32, PATH_ROOM = 4096, FILE_BYTES_MAX = 1 << 18 };

typedef struct source {
    char path[PATH_ROOM]; /* for messages */
    char *text;
} source;

typedef struct block {
    char name[NAME_ROOM];
    const source *from;
    const char *begin, *end;
    int line; /* of its first line */
} block;

struct jobscript_templates {
    source source[6]; /* of the scheduler, then of all: each of the user, the centre and the command, if there is one */
    block block[BLOCKS_MAX];
    struct value {
        const char *name;
        char *text;
        size_t bytes;
    } value[VALUES_MAX];
    int nsource, nblock, nvalue;
};

extern const char cmd_template_common[], cmd_template_slurm[], cmd_template_pbs[], cmd_template_lsf[],
    cmd_template_flux[], cmd_template_sge[];
static const struct {
    const char *name, *text;
} built_in[] = {{"common", cmd_template_common}, {"slurm", cmd_template_slurm}, {"pbs", cmd_template_pbs},
                {"lsf", cmd_template_lsf},       {"flux", cmd_template_flux},   {"sge", cmd_template_sge}};

static int complain(const source *from, int line, const char *what, const char *name)
{
    cmd_error("%s: line %d: %s%s", from->path, line, what, name);
    return CMD_EXIT_FAULT;
}

static int lack_memory(void)
{
    cmd_error("there is no memory for the job script");
    return CMD_EXIT_FAULT;
}

/* ---- files ---- */

/* The file NAME.job in the folder `jobscripts` beside a site file. Leaves text NULL if there is none. */
static int read_beside(const char *site_file, const char *name, source *s)
{
    const char *slash = site_file ? strrchr(site_file, '/') : NULL;
    if (!site_file)
        return 0;
    snprintf(s->path, sizeof s->path, "%.*sjobscripts/%s.job", slash ? (int)(slash - site_file) + 1 : 0, site_file,
             name);
    FILE *file = cmd_open_stream(s->path, "r");
    if (!file && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    if (!file) {
        cmd_error("%s cannot be opened: %s", s->path, strerror(errno));
        return CMD_EXIT_FAULT;
    }
    s->text = calloc(FILE_BYTES_MAX + 1, 1);
    const size_t bytes = s->text ? fread(s->text, 1, FILE_BYTES_MAX + 1, file) : 0;
    const int is_bad = ferror(file);
    fclose(file);
    if (!s->text)
        return lack_memory();
    s->text[bytes > FILE_BYTES_MAX ? 0 : bytes] = '\0';
    if (!is_bad && bytes > 0 && bytes <= FILE_BYTES_MAX)
        return 0;
    cmd_error("%s cannot be read, or is empty or longer than %d bytes", s->path, FILE_BYTES_MAX);
    return CMD_EXIT_FAULT;
}

/* Adds what there is of a template: of the user, of the centre, and that of the command. */
static int read_sources(jobscript_templates *t, const char *name, const cvy_site_about *site)
{
    const char *const beside[] = {site->user_path, site->path};
    for (int i = 0; i < CMD_COUNT(beside); i++) {
        const int code = read_beside(beside[i], name, &t->source[t->nsource]);
        if (code)
            return code;
        t->nsource += t->source[t->nsource].text != NULL;
    }
    for (int i = 0; i < CMD_COUNT(built_in); i++)
        if (strcmp(built_in[i].name, name) == 0) {
            source *s = &t->source[t->nsource++];
            snprintf(s->path, sizeof s->path, "jobscripts/%s.job", name);
            s->text = strdup(built_in[i].text);
            return s->text ? 0 : lack_memory();
        }
    cmd_error("the site's scheduler is %s, which this version of the command does not know", name);
    return CMD_EXIT_USAGE;
}

static int is_line(const char *line, const char *word)
{
    const size_t n = strlen(word);
    return strncmp(line, word, n) == 0 && (line[n] == ' ' || line[n] == '\n' || line[n] == '\0');
}

static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');
    return end ? end + 1 : line + strlen(line);
}

static int find_blocks(jobscript_templates *t, const source *s)
{
    block *b = NULL;
    int number = 1;
    for (const char *line = s->text; *line; line = next_line(line), number++) {
        if (!is_line(line, "@block")) {
            if (b && *line != '\n' && !is_line(line, "@#"))
                b->end = next_line(line);
            continue;
        }
        if (t->nblock == BLOCKS_MAX)
            return complain(s, number, "there are too many blocks", "");
        b = &t->block[t->nblock++];
        b->from = s;
        b->line = number + 1;
        b->begin = b->end = next_line(line);
        if (sscanf(line, "@block %31[a-z_]", b->name) != 1)
            return complain(s, number, "@block has no name of small letters and _", "");
    }
    return 0;
}

int jobscript_templates_open(const char *scheduler, const cvy_site_about *site, jobscript_templates **out)
{
    jobscript_templates *t = *out = calloc(1, sizeof *t);
    if (!t)
        return lack_memory();
    int code = read_sources(t, scheduler, site);
    code = code ? code : read_sources(t, "common", site);
    for (int i = 0; !code && i < t->nsource; i++)
        code = find_blocks(t, &t->source[i]);
    return code;
}

void jobscript_templates_free(jobscript_templates **templates)
{
    jobscript_templates *t = *templates;
    for (int i = 0; t && i < t->nvalue; i++)
        free(t->value[i].text);
    for (int i = 0; t && i < t->nsource; i++)
        free(t->source[i].text);
    free(t);
    *templates = NULL;
}

FILE *jobscript_value(jobscript_templates *t, const char *name)
{
    int i = 0;
    while (i < t->nvalue && strcmp(t->value[i].name, name) != 0)
        i++;
    if (i < t->nvalue)
        free(t->value[i].text);
    t->value[i] = (struct value){.name = name};
    t->nvalue += i == t->nvalue;
    FILE *to = open_memstream(&t->value[i].text, &t->value[i].bytes);
    if (!to)
        lack_memory();
    return to;
}

/* ---- writing ---- */

static int write_block(jobscript_templates *t, const block *b, FILE *to, int depth);

/* What a name stands for, in a text that the caller frees. */
static int read_name(jobscript_templates *t, const char *name, const source *from, int line, int depth, char **out)
{
    for (int i = 0; i < t->nvalue; i++)
        if (strcmp(t->value[i].name, name) == 0)
            return (*out = strdup(t->value[i].text)) ? 0 : lack_memory();
    for (int i = 0; i < t->nblock; i++)
        if (strcmp(t->block[i].name, name) == 0) {
            size_t bytes = 0;
            FILE *to = depth < DEPTH_MAX ? open_memstream(out, &bytes) : NULL;
            if (!to)
                return depth < DEPTH_MAX ? lack_memory()
                                         : complain(from, line, "too many blocks inside each other: ", name);
            const int code = write_block(t, &t->block[i], to, depth + 1);
            return fclose(to) == 0 ? code : lack_memory();
        }
    return complain(from, line, "there is no value or block of the name ", name);
}

/* The length of @NAME@ at the begin of the text; 0: there is none. */
static size_t name_at(const char *text, char name[NAME_ROOM])
{
    int end = 0;
    return *text == '@' && sscanf(text, "@%31[a-z_]@%n", name, &end) == 1 ? (size_t)end : 0;
}

/* Whether one of the words of an @if holds. */
static int holds(jobscript_templates *t, const block *b, const char *line, int number, int depth, int *holds_out)
{
    int length = 0;
    char mark[2] = "", name[NAME_ROOM];
    *holds_out = 0;
    for (const char *at = line + strlen("@if"); *at && *at != '\n'; at += length) {
        char *text = NULL;
        length = 0;
        mark[0] = '\0';
        while (*at == ' ')
            at++;
        if (*at == '!')
            mark[0] = *at++;
        if (sscanf(at, "%31[a-z_]%n", name, &length) != 1)
            return complain(b->from, number, "@if needs names of values or blocks", "");
        const int code = read_name(t, name, b->from, number, depth, &text);
        *holds_out |= text && (*text != '\0') == (mark[0] == '\0');
        free(text);
        if (code)
            return code;
    }
    return 0;
}

static int write_line(jobscript_templates *t, const block *b, const char *line, int number, FILE *to, int depth)
{
    const char *end = next_line(line);
    char name[NAME_ROOM];
    for (const char *at = line; at < end;) {
        const size_t length = name_at(at, name);
        char *text = NULL;
        if (!length) {
            putc(*at++, to);
            continue;
        }
        const int code = read_name(t, name, b->from, number, depth, &text);
        size_t n = text ? strlen(text) : 0;
        const int is_alone = at == line && at[length] == '\n';
        while (n > 0 && text[n - 1] == '\n')
            n--;
        if (text)
            fwrite(text, 1, n, to);
        free(text);
        if (code)
            return code;
        at += length + (is_alone && n == 0);
    }
    return 0;
}

static int write_block(jobscript_templates *t, const block *b, FILE *to, int depth)
{
    int skips[DEPTH_MAX] = {0}, level = 0, number = b->line; /* skips[i]: whether lines of level i are left out */
    for (const char *line = b->begin; line < b->end; line = next_line(line), number++) {
        int code = 0, is_true = 0;
        if (is_line(line, "@if")) {
            if (level + 1 == DEPTH_MAX)
                return complain(b->from, number, "too many @if inside each other", "");
            if (!skips[level])
                code = holds(t, b, line, number, depth, &is_true);
            level++;
            skips[level] = skips[level - 1] ? 2 : !is_true; /* 2: and so are those after @else */
        } else if (is_line(line, "@else") && level > 0) {
            skips[level] = skips[level] == 2 ? 2 : !skips[level];
        } else if (is_line(line, "@end") && level > 0) {
            level--;
        } else if (is_line(line, "@else") || is_line(line, "@end")) {
            return complain(b->from, number, "@else or @end without @if", "");
        } else if (!skips[level] && !is_line(line, "@#")) {
            code = write_line(t, b, line, number, to, depth);
        }
        if (code)
            return code;
    }
    return level == 0 ? 0 : complain(b->from, number, "@if without @end in the block before this line: ", b->name);
}

int jobscript_text(jobscript_templates *t, const char *name, char **text_out)
{
    const int code = read_name(t, name, &t->source[t->nsource - 1], 1, 0, text_out);
    if (code) {
        free(*text_out);
        *text_out = NULL;
    }
    return code;
}
