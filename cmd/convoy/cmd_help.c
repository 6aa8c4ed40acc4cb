/*
 * cmd_help.c: `convoy help WORD`: looks a word of the field up in the index of the documentation.
 *
 * The index is the last table of docs/README.md, which the build embeds. A row has three cells: words with commas
 * between them, an answer, and a link to the page that says more. The page is a path below the documentation
 * (share/doc/convoy of an installation).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"

extern const char cmd_index[];

enum { WORD_ROOM = 72, WORDS_ROOM = 512, WORDS_MAX = 2048 };

typedef struct span {
    const char *text;
    size_t length;
} span;

/* Copies a text as its words: lower case, without punctuation, with one blank before and after each. */
static void copy_words(span from, char to[WORDS_ROOM])
{
    size_t n = 0;
    to[n++] = ' ';
    for (size_t i = 0; i < from.length && n + 2 < WORDS_ROOM; i++) {
        const unsigned char c = (unsigned char)from.text[i];
        if (isalnum(c))
            to[n++] = (char)tolower(c);
        else if (to[n - 1] != ' ')
            to[n++] = ' ';
    }
    if (to[n - 1] != ' ')
        to[n++] = ' ';
    to[n] = 0;
}

/* Cuts off what is before the next `separator`, without blanks around it. Returns 0 at the end. */
static int next_part(span *rest, char separator, span *part)
{
    while (rest->length && *rest->text == ' ')
        rest->text++, rest->length--;
    if (!rest->length)
        return 0;
    const char *end = memchr(rest->text, separator, rest->length);
    const size_t used = end ? (size_t)(end - rest->text) : rest->length;
    *part = (span){rest->text, used};
    while (part->length && part->text[part->length - 1] == ' ')
        part->length--;
    const size_t skip = used + (end != NULL);
    *rest = (span){rest->text + skip, rest->length - skip};
    return 1;
}

/* Reads the row that begins at *at. Returns 0 after the last one. */
static int next_row(const char **at, span cell[3])
{
    if (strncmp(*at, "| ", 2) != 0)
        return 0;
    const char *end = strchr(*at, '\n');
    span rest = {*at + 1, end ? (size_t)(end - *at - 1) : strlen(*at + 1)};
    *at = end ? end + 1 : *at + strlen(*at);
    return next_part(&rest, '|', &cell[0]) && next_part(&rest, '|', &cell[1]) && next_part(&rest, '|', &cell[2]);
}

/* The first row of the index: after the heading and the head of its table. */
static const char *first_row(void)
{
    const char *at = strstr(cmd_index, "\n## Index\n");
    at = at ? strstr(at, "\n|---") : NULL;
    at = at ? strchr(at + 1, '\n') : NULL;
    return at ? at + 1 : "";
}

/* Prints where a link leads, "[training](guide/training.md#precision)" as "docs/guide/training.md#precision". */
static void print_page(span link)
{
    const char *path = memchr(link.text, '(', link.length);
    if (!path)
        return;
    path++;
    const size_t length = (size_t)(link.text + link.length - path);
    const int shown = (int)(strcspn(path, ")") < length ? strcspn(path, ")") : length);
    if (strncmp(path, "../", 3) == 0)
        cmd_say("    %.*s\n", shown - 3, path + 3);
    else
        cmd_say("    docs/%s%.*s\n", *path == '#' ? "README.md" : "", shown, path);
}

/* Prints the rows with the words: as an entry (0), within an entry (1), or within the answer (2). Returns their number.
 */
static int print_rows(const char *words, int where)
{
    int found = 0;
    span cell[3], part;
    for (const char *at = first_row(); next_row(&at, cell);) {
        int hit = 0;
        for (span rest = cell[where == 2]; !hit && next_part(&rest, ',', &part);) {
            char text[WORDS_ROOM];
            copy_words(part, text);
            hit = where == 0 ? strcmp(text, words) == 0 : strlen(words) > 2 && strstr(text, words) != NULL;
        }
        if (!hit)
            continue;
        cmd_say("%s%.*s\n    %.*s\n", found ? "\n" : "", (int)cell[0].length, cell[0].text, (int)cell[1].length,
                cell[1].text);
        print_page(cell[2]);
        found++;
    }
    return found;
}

/* Copies the word of the index that is nearest to `word` into `near`, or "" if none is near. */
static void find_nearest(const char *word, char near[WORD_ROOM])
{
    char(*copies)[WORD_ROOM] = calloc(WORDS_MAX, sizeof *copies);
    const char **names = calloc(WORDS_MAX, sizeof *names);
    int n = 0;
    span cell[3], part;
    near[0] = 0;
    for (const char *at = first_row(); copies && names && next_row(&at, cell);)
        for (span rest = cell[0]; n < WORDS_MAX && next_part(&rest, ',', &part);) {
            memcpy(copies[n], part.text, part.length < WORD_ROOM ? part.length : WORD_ROOM - 1);
            names[n] = copies[n];
            n++;
        }
    const char *found = names ? cmd_nearest(word, names, n) : NULL;
    if (found)
        strcpy(near, found);
    free(names);
    free(copies);
}

int cmd_help_word(int argc, char **argv)
{
    char word[WORD_ROOM] = "", words[WORDS_ROOM], near[WORD_ROOM];
    size_t length = 0;
    for (int i = 0; i < argc && length + strlen(argv[i]) + 2 < sizeof word; i++)
        length += (size_t)snprintf(word + length, sizeof word - length, "%s%s", i ? " " : "", argv[i]);
    copy_words((span){word, length}, words);
    if (cmd_launch_rank() != 0 || print_rows(words, 0) || print_rows(words, 1) || print_rows(words, 2))
        return 0;
    find_nearest(word, near);
    cmd_error("there is no verb and no word of the index (docs/README.md) that is '%s'%s%s%s `convoy --help` lists the "
              "verbs",
              word, near[0] ? ", did you mean '" : ";", near, near[0] ? "'?" : "");
    return CMD_EXIT_USAGE;
}
