/*
 * cmd_options.c: parses the words after a verb by the verb's rows, and prints --help from the same rows.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "cmd.h"

/* ---- did you mean ---- */

/* Edit distance of two short words: insertions, deletions, replacements and swaps of neighbours each cost 1. */
static int distance(const char *a, const char *b)
{
    enum { ROOM = 32 };
    int row[3][ROOM + 1];
    const int n = (int)strlen(a), m = (int)strlen(b);
    if (n > ROOM || m > ROOM)
        return ROOM;
    for (int j = 0; j <= m; j++)
        row[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *now = row[i % 3], *before = row[(i + 2) % 3], *earlier = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            int best = before[j - 1] + (a[i - 1] != b[j - 1]);
            best = before[j] + 1 < best ? before[j] + 1 : best;
            best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && earlier[j - 2] + 1 < best)
                best = earlier[j - 2] + 1;
            now[j] = best;
        }
    }
    return row[n % 3][m];
}

const char *cmd_nearest(const char *word, const char *const *names, int n)
{
    const char *near = NULL;
    int best = (int)strlen(word) / 3 + 2;
    for (int i = 0; i < n; i++)
        if (distance(word, names[i]) < best) {
            best = distance(word, names[i]);
            near = names[i];
        }
    return near;
}

void cmd_unknown(const char *kind, const char *name, const char *const *names, int n)
{
    const char *near = cmd_nearest(name, names, n);
    char known[1024];
    size_t length = 0;
    known[0] = 0;
    for (int i = 0; i < n && length < sizeof known; i++)
        length += (size_t)snprintf(known + length, sizeof known - length, "%s%s", i ? ", " : "", names[i]);
    cmd_error("there is no %s '%s'%s%s%s name a file, or one of %s", kind, name, near ? ", did you mean '" : "",
              near ? near : "", near ? "'?" : ";", known);
}

/* ---- one option ---- */

static int wrong_value(const cmd_option *option, const char *value, const char *expected)
{
    cmd_error("%s is '%s', expected %s", option->name, value, expected);
    return CMD_EXIT_USAGE;
}

static int read_number(const cmd_option *option, const char *value, int64_t *out)
{
    char *end = NULL;
    const long long x = strtoll(value, &end, 10);
    if (end == value || *end || x < 1 || x > INT32_MAX)
        return wrong_value(option, value, "a whole number above 0");
    *out = x;
    return 0;
}

/* "3,224,224" or "3x224x224". */
static int read_shape(const cmd_option *option, const char *value, cvy_shape *out)
{
    cvy_shape shape = {0};
    for (const char *at = value;; at++) {
        char *end = NULL;
        const long long x = strtoll(at, &end, 10);
        if (end == at || x < 1 || shape.ndim + 1 >= CVY_NDIM_MAX || (*end && *end != ',' && *end != 'x'))
            return wrong_value(option, value, "a sample's shape, channels first, such as 3,32,32");
        shape.dim[shape.ndim++] = x;
        at = end;
        if (!*at)
            break;
    }
    *out = shape;
    return 0;
}

static int read_choice(const cmd_option *option, const char *value, const char **out)
{
    const size_t n = strlen(value);
    for (const char *word = option->value; word; word = strchr(word, '|') ? strchr(word, '|') + 1 : NULL)
        if (n == strcspn(word, "|") && strncmp(word, value, n) == 0) {
            *out = value;
            return 0;
        }
    return wrong_value(option, value, option->value);
}

int cmd_sets_add(cmd_sets *sets, const char *word)
{
    if (sets->count == CMD_SETS_MAX) {
        cmd_error("more than %d words such as '%s'", CMD_SETS_MAX, word);
        return CMD_EXIT_USAGE;
    }
    sets->word[sets->count++] = word;
    return 0;
}

static int read_set(const cmd_option *option, const char *value, cmd_sets *sets)
{
    if (strchr(value, '='))
        return cmd_sets_add(sets, value);
    cmd_error("%s is '%s', expected %s%s", option->name, value, option->value,
              strcmp(option->name, "--set") == 0 ? " such as train.batch=64" : "");
    return CMD_EXIT_USAGE;
}

/* "16" or "1,4,16". */
static int read_numbers(const cmd_option *option, const char *value, cmd_numbers *numbers)
{
    numbers->count = 0;
    for (const char *at = value;; at++) {
        char *end = NULL;
        const long long x = strtoll(at, &end, 10);
        if (end == at || x < 1 || x > INT32_MAX || (*end && *end != ',') || numbers->count == CMD_NUMBERS_MAX)
            return wrong_value(option, value, "a whole number above 0, or a list of them such as 1,4,16");
        numbers->at[numbers->count++] = x;
        at = end;
        if (!*at)
            return 0;
    }
}

/* Adds a key of the job which has an option of its own. */
static int read_planning(const cmd_option *option, const char *value, cmd_sets *sets)
{
    static const char *const keys[] = {"plan.planning=estimate", "plan.planning=measure", "plan.planning=patient"};
    const char *word = NULL;
    const int code = read_choice(option, value, &word);
    for (int i = 0; !code && i < CMD_COUNT(keys); i++)
        if (strcmp(strchr(keys[i], '=') + 1, value) == 0)
            return cmd_sets_add(sets, keys[i]);
    return code;
}

/* An empty value, as of a script's variable, would be the host, and YAML takes a colon at the end for a key. */
static int read_device(const cmd_option *option, const char *value, cmd_sets *sets)
{
    static char word[128]; /* the option counts once */
    const size_t length = strlen(value);
    if (length == 0 || value[length - 1] == ':' || strchr(value, ' '))
        return wrong_value(option, value, option->value);
    snprintf(word, sizeof word, "device=%s", value);
    return cmd_sets_add(sets, word);
}

static int is_of_programs(cvy_dtype dtype)
{
    return dtype == CVY_DTYPE_F32 || dtype == CVY_DTYPE_BF16 || dtype == CVY_DTYPE_F64;
}

static int read_value(const cmd_option *option, const char *value, void *options)
{
    void *field = (char *)options + option->offset;
    switch (option->kind) {
    case CMD_TEXT: *(const char **)field = value; return 0;
    case CMD_NUMBER: return read_number(option, value, field);
    case CMD_SHAPE: return read_shape(option, value, field);
    case CMD_CHOICE: return read_choice(option, value, field);
    case CMD_SET: return read_set(option, value, field);
    case CMD_NUMBERS: return read_numbers(option, value, field);
    case CMD_PLANNING: return read_planning(option, value, field);
    case CMD_DEVICE: return read_device(option, value, field);
    case CMD_DTYPE:
        if (cvy_dtype_parse(value, field) == CVY_OK && is_of_programs(*(cvy_dtype *)field))
            return 0;
        return wrong_value(option, value, "f32, bf16 or f64");
    case CMD_FLAG: break;
    }
    *(int *)field = 1;
    return 0;
}

/* ---- the command line ---- */

/* Finds an option by the first n characters of the word: "--batch" in "--batch=64", or the whole word. */
static const cmd_option *find_option(const cmd_verb *verb, const char *word, size_t n)
{
    const char *names[32];
    int count = 0;
    for (const cmd_option *o = verb->options; o && o->name; o++) {
        if (strlen(o->name) == n && strncmp(o->name, word, n) == 0)
            return o;
        names[count++] = o->name;
    }
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)n, word);
    const char *near = cmd_nearest(name, names, count);
    cmd_error("`convoy %s` has no option %s%s%s%s `convoy %s --help` lists them", verb->name, name,
              near ? ", did you mean " : ";", near ? near : "", near ? "?" : "", verb->name);
    return NULL;
}

/* Reads the option at argv[0]. *used_out: number of words that it took. */
static int parse_option(const cmd_verb *verb, int argc, char **argv, void *options, int *used_out)
{
    const char *equals = strchr(argv[0], '=');
    const cmd_option *option = find_option(verb, argv[0], equals ? (size_t)(equals - argv[0]) : strlen(argv[0]));
    *used_out = 1;
    if (!option)
        return CMD_EXIT_USAGE;
    if (option->kind == CMD_FLAG && equals)
        return wrong_value(option, equals + 1, "no value");
    if (option->kind == CMD_FLAG)
        return read_value(option, NULL, options);
    if (!equals && argc < 2) {
        cmd_error("%s needs a value: %s", option->name, option->value);
        return CMD_EXIT_USAGE;
    }
    *used_out = equals ? 1 : 2;
    return read_value(option, equals ? equals + 1 : argv[1], options);
}

int cmd_parse(const cmd_verb *verb, int argc, char **argv, cmd_line *line, void *options)
{
    int only_args = 0;
    line->verb = verb;
    line->options = options;
    for (int i = 0, used = 1; i < argc; i += used, used = 1) {
        if (!only_args && strcmp(argv[i], "--") == 0) {
            only_args = 1;
        } else if (!only_args && argv[i][0] == '-' && argv[i][1]) {
            const int code = parse_option(verb, argc - i, argv + i, options, &used);
            if (code)
                return code;
        } else if (line->narg < verb->narg_max) {
            line->arg[line->narg++] = argv[i];
        } else {
            cmd_error("'%s' is one word too many; usage: convoy %s %s", argv[i], verb->name, verb->arguments);
            return CMD_EXIT_USAGE;
        }
    }
    if (line->narg < verb->narg_min) {
        cmd_error("usage: convoy %s %s", verb->name, verb->arguments);
        return CMD_EXIT_USAGE;
    }
    return 0;
}

/* ---- help ---- */

enum { HELP_WIDTH = 100 };

/* Prints text from column `at` on, in lines of at most HELP_WIDTH columns; further lines begin at column `indent`. */
static void print_wrapped(const char *text, int at, int indent)
{
    int is_new = 1;
    while (*text) {
        const int n = (int)strcspn(text, " \n");
        if (!is_new && n > 0 && at + 1 + n > HELP_WIDTH) {
            cmd_say("\n%*s", indent, "");
            at = indent;
        } else if (!is_new && n > 0) {
            putchar(' ');
            at++;
        }
        cmd_say("%.*s", n, text);
        at += n;
        is_new = n == 0 && is_new;
        text += n;
        if (*text == '\n') {
            cmd_say("\n%*s", indent, "");
            at = indent;
            is_new = 1;
        }
        text += *text != 0;
    }
    putchar('\n');
}

void cmd_help(const cmd_verb *verb)
{
    enum { NAME_WIDTH = 24, HELP_AT = 28 };
    const int usage = cmd_say("usage: convoy %s ", verb->name);
    print_wrapped(verb->arguments, usage, usage);
    putchar('\n');
    print_wrapped(verb->summary, 0, 0);
    if (verb->detail) {
        putchar('\n');
        print_wrapped(verb->detail, 0, 0);
    }
    if (!verb->options || !verb->options->name)
        return;
    cmd_say("\noptions:\n");
    for (const cmd_option *o = verb->options; o->name; o++) {
        char left[64];
        const int n = snprintf(left, sizeof left, "%s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
        if (n > NAME_WIDTH)
            cmd_say("  %s\n%*s", left, HELP_AT, "");
        else
            cmd_say("  %-*s  ", NAME_WIDTH, left);
        print_wrapped(o->help, HELP_AT, HELP_AT);
    }
}
