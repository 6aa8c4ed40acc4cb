/*
 * cmd_tables.c: `convoy --print-tables`: the tables of all verbs as lines of words that tabs separate. The build makes
 * the manual pages (tools/make_man.sh) and the completions of the shells (tools/make_completion.sh) from them, so that
 * neither reads C sources or the text of --help. CONTRIBUTING.md describes the lines.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "cmd.h"

static const char *kind_name(cmd_kind kind)
{
    switch (kind) {
    case CMD_FLAG: return "flag";
    case CMD_TEXT: return "text";
    case CMD_NUMBER: return "number";
    case CMD_SHAPE: return "shape";
    case CMD_DTYPE:
    case CMD_CHOICE:
    case CMD_PLANNING: return "choice";
    case CMD_DEVICE: return "text";
    case CMD_SET: return "set";
    case CMD_NUMBERS: return "numbers";
    }
    return "";
}

void cmd_print_tables(const cmd_verb *verb)
{
    cmd_say("verb\t%s\t%s\t%s\n", verb->name, verb->arguments, verb->summary);
    for (const char *at = verb->detail; at && *at; at += *at == '\n') {
        const int n = (int)strcspn(at, "\n");
        cmd_say("detail\t%.*s\n", n, at);
        at += n;
    }
    for (const cmd_option *o = verb->options; o && o->name; o++)
        cmd_say("option\t%s\t%s\t%s\t%s\n", o->name, o->value ? o->value : "", kind_name(o->kind), o->help);
}
