/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_print.c: all that the command prints. Names of files, classes and layers come from elsewhere, and a terminal
 * would obey the control sequences in them. */
#include <stdarg.h>
#include <stdlib.h>

#include "cmd.h"

/* The bytes of the character at s in UTF-8; 0: it is none. */
static size_t length_of(const unsigned char *s)
{
    const size_t n = s[0] < 0x80                   ? 1
                     : s[0] >= 0xC2 && s[0] < 0xE0 ? 2
                     : s[0] >= 0xE0 && s[0] < 0xF0 ? 3
                     : s[0] >= 0xF0 && s[0] < 0xF5 ? 4
                                                   : 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    return n;
}

static int is_control(const unsigned char *s)
{
    return (*s < 32 && *s != '\n' && *s != '\t') || *s == 127 || (s[0] == 0xC2 && s[1] < 0xA0);
}

size_t cmd_plain_length(const char *text)
{
    size_t at = 0, n = 0;
    while (text[at] && (n = length_of((const unsigned char *)text + at)) > 0 &&
           !is_control((const unsigned char *)text + at))
        at += n;
    return at;
}

void cmd_put(FILE *to, const char *text)
{
    while (*text) {
        const size_t plain = cmd_plain_length(text);
        fwrite(text, 1, plain, to);
        text += plain;
        if (!*text)
            return;
        const size_t n = length_of((const unsigned char *)text);
        putc('?', to);
        text += n ? n : 1;
    }
}

int cmd_put_args(FILE *to, const char *fmt, va_list args)
{
    char line[512], *longer = NULL;
    va_list again;
    va_copy(again, args);
    const int n = vsnprintf(line, sizeof line, fmt, args);
    if (n >= (int)sizeof line && (longer = malloc((size_t)n + 1)))
        vsnprintf(longer, (size_t)n + 1, fmt, again);
    va_end(again);
    cmd_put(to, longer ? longer : line);
    free(longer);
    return n;
}

int cmd_say(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const int n = cmd_put_args(stdout, fmt, args);
    va_end(args);
    return n;
}

void cmd_note(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    cmd_put_args(stderr, fmt, args);
    va_end(args);
}
