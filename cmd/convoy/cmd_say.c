/*
 * cmd_say.c: what goes to the terminal: errors, texts of the library, JSON for people.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"

int cmd_launch_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"};
    for (int i = 0; i < CMD_COUNT(names); i++)
        if (getenv(names[i]))
            return atoi(getenv(names[i]));
    return 0;
}

void cmd_error(const char *fmt, ...)
{
    va_list args;
    if (cmd_launch_rank() != 0)
        return;
    va_start(args, fmt);
    fflush(stdout);
    fputs("convoy: error: ", stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
}

int cmd_outcome(cvy_status status)
{
    if (status == CVY_STOPPED)
        return CMD_EXIT_STOPPED;
    if (status == CVY_OK)
        return 0;
    if (status > 0)
        cmd_error("the run ended with '%s', which is a fault of convoy; please report it (latest message: %s)", cvy_status_text(status), cvy_error_text());
    else
        cmd_error("%s", cvy_error_text());
    return CMD_EXIT_FAULT;
}

int cmd_print(cvy_status status, char **text)
{
    if (status == CVY_OK && *text) {
        const size_t n = strlen(*text);
        fputs(*text, stdout);
        if (n && (*text)[n - 1] != '\n')
            putchar('\n');
    }
    cvy_text_release(text);
    return cmd_outcome(status);
}

cvy_job_source cmd_job(const cmd_line *line, const char *path, const char *text)
{
    return (cvy_job_source){.size = sizeof(cvy_job_source), .path = path, .text = path ? NULL : text, .sets = line->set, .nsets = line->nset};
}

/* ---- JSON for people ---- */

static const char *skip_blank(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

/* Behind the string whose opening quote stands at `at`. */
static const char *skip_string(const char *at)
{
    for (at++; *at && *at != '"'; at++)
        if (*at == '\\' && at[1])
            at++;
    return *at ? at + 1 : at;
}

/* Behind the value that begins at `at`. */
static const char *skip_value(const char *at)
{
    int depth = 0;
    do {
        at = skip_blank(at);
        if (*at == '"') {
            at = skip_string(at);
        } else if (*at == '{' || *at == '[') {
            depth++;
            at++;
        } else if (*at == '}' || *at == ']') {
            depth--;
            at++;
        } else if (*at == ',' || *at == ':') {
            at++;
        } else {
            at += strcspn(at, ",:]}\" \t\r\n");
        }
    } while (depth > 0 && *at);
    return at;
}

/* A scalar without its quotes; numbers with as many digits as anyone reads. */
static void print_scalar(const char *from, const char *to)
{
    char *end = NULL;
    const double x = strtod(from, &end);
    if (*from == '"')
        printf("%.*s", (int)(to - from - 2), from + 1);
    else if (end == to && memchr(from, '.', (size_t)(to - from)))
        printf("%.6g", x);
    else
        printf("%.*s", (int)(to - from), from);
}

/* The scalars of a list or object in one line. */
static void print_row(const char *at, int indent)
{
    const int is_map = *at == '{';
    printf("%*s", indent, "");
    for (at = skip_blank(at + 1); *at && *at != ']' && *at != '}';) {
        if (is_map)
            at = skip_blank(skip_blank(skip_string(at)) + 1);
        const char *end = skip_value(at);
        if (*at != '[' && *at != '{') {
            print_scalar(at, end);
            printf("  ");
        }
        at = skip_blank(end);
        at = *at == ',' ? skip_blank(at + 1) : at;
    }
    putchar('\n');
}

static int count_items(const char *at)
{
    int n = 0;
    for (at = skip_blank(at + 1); *at && *at != ']'; n++) {
        at = skip_blank(skip_value(at));
        at = *at == ',' ? skip_blank(at + 1) : at;
    }
    return n;
}

/* Rows of objects or lists line by line, a few scalars in one line, many by their number. */
static void print_list(const char *key, int width, const char *at, int indent)
{
    const int n = count_items(at);
    const char *item = skip_blank(at + 1);
    const int nested = *item == '{' || *item == '[';
    printf("%*s%-*s  ", indent, "", width, key);
    if (n > (nested ? 200 : 20)) {
        printf("(%d values)\n", n);
    } else if (!nested) {
        print_row(at, 0);
    } else {
        putchar('\n');
        while (*item && *item != ']') {
            print_row(item, indent + 2);
            item = skip_blank(skip_value(item));
            item = *item == ',' ? skip_blank(item + 1) : item;
        }
    }
}

static void print_object(const char *at, int indent)
{
    enum { WIDTH = 26 };
    for (at = skip_blank(at + 1); *at == '"';) {
        char key[64];
        const char *end = skip_string(at), *value = skip_blank(skip_blank(end) + 1);
        snprintf(key, sizeof key, "%.*s", (int)(end - at - 2), at + 1);
        end = skip_value(value);
        if (*value == '{') {
            printf("%*s%s\n", indent, "", key);
            print_object(value, indent + 2);
        } else if (*value == '[') {
            print_list(key, WIDTH - indent, value, indent);
        } else {
            printf("%*s%-*s  ", indent, "", WIDTH - indent, key);
            print_scalar(value, end);
            putchar('\n');
        }
        at = skip_blank(end);
        at = *at == ',' ? skip_blank(at + 1) : at;
    }
}

void cmd_print_json(const char *json)
{
    json = skip_blank(json);
    if (*json == '{')
        print_object(json, 0);
}
