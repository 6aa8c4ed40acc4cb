/*
 * cmd_json.c: JSON that the library wrote, for people: members by name, and whole objects as lines. It trusts that the text is well formed.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"

/* ---- walking ---- */

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

/* Behind a comma, if there is one. */
static const char *next(const char *at)
{
    at = skip_blank(skip_value(at));
    return *at == ',' ? skip_blank(at + 1) : at;
}

const char *cmd_json_member(const char *object, const char *key)
{
    const size_t n = strlen(key);
    object = object ? skip_blank(object) : "";
    if (*object != '{')
        return NULL;
    for (const char *at = skip_blank(object + 1); *at == '"';) {
        const char *value = skip_blank(skip_blank(skip_string(at)) + 1);
        if (strncmp(at + 1, key, n) == 0 && at[1 + n] == '"')
            return value;
        at = next(value);
    }
    return NULL;
}

const char *cmd_json_item(const char *list, int i)
{
    const char *at = list && *list == '[' ? skip_blank(list + 1) : "";
    for (; *at && *at != ']' && i > 0; i--)
        at = next(at);
    return *at && *at != ']' ? at : NULL;
}

const char *cmd_json_pair(const char *object, int i, char *key, size_t room)
{
    const char *at = object && *object == '{' ? skip_blank(object + 1) : "";
    for (; *at == '"' && i > 0; i--)
        at = next(skip_blank(skip_blank(skip_string(at)) + 1));
    if (*at != '"')
        return NULL;
    snprintf(key, room, "%.*s", (int)(skip_string(at) - at - 2), at + 1);
    return skip_blank(skip_blank(skip_string(at)) + 1);
}

double cmd_json_number(const char *value)
{
    char *end = NULL;
    const double x = value ? strtod(value, &end) : NAN;
    return value && end != value ? x : NAN;
}

const char *cmd_json_text(const char *value, char *text, size_t room)
{
    text[0] = '\0';
    if (value && *value == '"')
        snprintf(text, room, "%.*s", (int)(skip_string(value) - value - 2), value + 1);
    else if (value)
        snprintf(text, room, "%.*s", (int)(skip_value(value) - value), value);
    return text;
}

/* ---- printing ---- */

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
