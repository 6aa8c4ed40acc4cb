/*
 * study_command.c: the command that measures a case, from the description of a framework.
 *
 * A framework is a file NAME.yaml with the words of a command, in which {batch} stands for the value of that axis. Such
 * a command prints one JSON object, with images_per_s, as its last line. convoy is described in the same way.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_file.h"
#include "base/machine/base_machine.h"
#include "base/text/base_option.h"
#include "base/text/base_table.h"
#include "study/study_file.h"

enum { WORD_BYTES = 4096, VERSION_S = 120 };

/* ---- frameworks ---- */

typedef struct fields {
    const char *summary, *install, *python, *variant;
    const cvy_tree *command, *set, *arg, *device, *ignores, *version;
    int predicted, exact, cores;
    int64_t most_ranks;
} fields;

#define ROW(field) offsetof(fields, field)
static const cvy_option rows[] = {
    {"summary", CVY_TYPE_STRING, ROW(summary), "", "", "", "what it is, in a line"},
    {"install", CVY_TYPE_STRING, ROW(install), "", "", "", "how to install it"},
    {"python", CVY_TYPE_STRING, ROW(python), "CONVOY_PYTHON", "", "",
     "the variable of the environment that names the interpreter {python}; CONVOY_PYTHON names that of all others"},
    {"variant", CVY_TYPE_STRING, ROW(variant), "", "", "",
     "what {variant} stands for, unless the framework is named NAME:VARIANT"},
    {"command", CVY_TYPE_TREE, ROW(command), NULL, "", "", "the words of the command that measures a case"},
    {"set", CVY_TYPE_TREE, ROW(set), "", "", "", "words that pass on a key of the job, with {key} and {value}"},
    {"arg", CVY_TYPE_TREE, ROW(arg), "", "", "", "words that pass on an option of the command, with {key} and {value}"},
    {"device", CVY_TYPE_TREE, ROW(device), "", "", "", "words that pass on the axis device, with {device}"},
    {"ignores", CVY_TYPE_TREE, ROW(ignores), "", "", "", "axes that do not matter to it"},
    {"predicted", CVY_TYPE_BOOL, ROW(predicted), "false", "", "", "whether results are predictions"},
    {"exact", CVY_TYPE_BOOL, ROW(exact), "false", "", "",
     "whether a case has the same result each time: it is measured once"},
    {"cores", CVY_TYPE_BOOL, ROW(cores), "true", "", "", "whether all ranks and threads need cores of this machine"},
    {"most_ranks", CVY_TYPE_INT, ROW(most_ranks), "0", "0..", "", "cases with more ranks are left out; 0: none are"},
    {"version", CVY_TYPE_TREE, ROW(version), NULL, "", "", "the words of a command that prints the version"},
    {0},
};

static cvy_status find_file(cvy_pool *pool, const char *folder, const char *name, char **path_out)
{
    cvy_text known = {0};
    char **names = NULL;
    int64_t n = 0, count = 0;
    CVY_TRY(cvy_pool_printf(pool, path_out, "%s/%s.yaml", folder, name));
    if (!strchr(name, '/') && cvy_file_exists(*path_out))
        return CVY_OK;
    CVY_TRY(cvy_file_list(pool, folder, &names, &n));
    for (int64_t i = 0; i < n; i++) {
        const size_t length = strlen(names[i]);
        if (length <= 5 || strcmp(names[i] + length - 5, ".yaml") != 0)
            continue;
        names[i][length - 5] = 0;
        names[count++] = names[i];
    }
    cvy_text_add_known(&known, name, (const char *const *)names, (int)count);
    if (known.status == CVY_OK)
        cvy_error_set(CVY_E_CONFIG, "there is no framework '%s' in %s%s", name, folder, known.data);
    const cvy_status status = known.status == CVY_OK ? CVY_E_CONFIG : known.status;
    cvy_text_free(&known);
    return status;
}

/* ---- words ---- */

struct place { /* what the words of a command may stand for */
    const cvy_case *c;
    const cvy_study_paths *paths;
    const char *program, *folder, *variant, *python, *key, *value, *job, *scratch, *target;
    char threads[16], seconds[32], batch[32], repeat[32], nodes[32], node_ranks[32];
};

/* The global batch of a case that has one for each rank; 0: it has none. */
static int64_t batch_of_ranks(const cvy_case *c)
{
    const char *each = cvy_case_value(c, "batch_per_rank"), *ranks = cvy_case_value(c, "ranks");
    int64_t n = 0, r = 1;
    return each && cvy_text_int(each, &n) == CVY_OK && (!ranks || cvy_text_int(ranks, &r) == CVY_OK) ? n * r : 0;
}

/* The most ranks of the case on a node: what its axis says, or else the same for all cases. */
static int64_t ranks_of_node(const cvy_case *c, int64_t of_all)
{
    const char *text = cvy_case_value(c, "ranks_per_node");
    int64_t n = 0;
    return text && cvy_text_int(text, &n) == CVY_OK && n > 0 ? n : CVY_MAX(of_all, 1);
}

int64_t cvy_framework_nodes(const cvy_framework *f, const cvy_case *c, int64_t ranks_per_node)
{
    const int64_t each = ranks_of_node(c, ranks_per_node);
    return f->needs_cores ? (cvy_case_ranks(c) + each - 1) / each : 1;
}

int64_t cvy_framework_ranks_here(const cvy_framework *f, const cvy_case *c)
{
    const int64_t ranks = cvy_case_ranks(c);
    return f->ranks_per_node > 0 ? CVY_MIN(ranks, ranks_of_node(c, f->ranks_per_node)) : ranks;
}

static int is_set(const char *variable)
{
    const char *value = variable ? getenv(variable) : NULL;
    return value && *value;
}

/* The variable that names the interpreter; NULL: none does. Frameworks may need different ones, because their packages
 * need different versions of others. */
static const char *interpreter_variable(const cvy_framework *f)
{
    return is_set(f->python) ? f->python : is_set("CONVOY_PYTHON") ? "CONVOY_PYTHON" : NULL;
}

int64_t cvy_case_batch(const cvy_case *c)
{
    const char *batch = cvy_case_value(c, "batch");
    int64_t n = 0;
    return batch && cvy_text_int(batch, &n) == CVY_OK ? n : batch_of_ranks(c);
}

static struct place place_of(const cvy_framework *f, const cvy_case *c)
{
    struct place p = {.c = c, .paths = &f->paths, .program = f->program, .folder = f->folder, .variant = f->variant};
    const char *variable = interpreter_variable(f);
    p.python = variable ? getenv(variable) : "python3";
    const int64_t here = c ? cvy_framework_ranks_here(f, c) : 1;
    snprintf(p.threads, sizeof p.threads, "%lld", (long long)CVY_MAX(cvy_machine_cores() / here, 1));
    snprintf(p.seconds, sizeof p.seconds, "%lld", (long long)(c ? c->of->seconds : 1));
    if (c) {
        const int64_t each = CVY_MIN(ranks_of_node(c, f->node_ranks), cvy_case_ranks(c));
        snprintf(p.node_ranks, sizeof p.node_ranks, "%lld", (long long)each);
        snprintf(p.nodes, sizeof p.nodes, "%lld", (long long)((cvy_case_ranks(c) + each - 1) / each));
    }
    if (c && batch_of_ranks(c) > 0)
        snprintf(p.batch, sizeof p.batch, "%lld", (long long)batch_of_ranks(c));
    return p;
}

static const char *value_of(const struct place *p, const char *name)
{
    static const struct {
        const char *axis, *fallback;
    } defaults[] = {{"mode", "train"}, {"dtype", "f32"}, {"ranks", "1"}, {"options", ""}};
    const char *value = p->c ? cvy_case_value(p->c, name) : NULL;
    if (strcmp(name, "threads") == 0 && (!value || strcmp(value, "all") == 0))
        return p->threads;
    if (strcmp(name, "job") == 0)
        return p->job;
    if (value)
        return value;
    if (strcmp(name, "batch") == 0 && *p->batch)
        return p->batch;
    for (int i = 0; i < CVY_COUNT(defaults); i++)
        if (strcmp(defaults[i].axis, name) == 0)
            return defaults[i].fallback;
    return strcmp(name, "program") == 0      ? p->program
           : strcmp(name, "folder") == 0     ? p->folder
           : strcmp(name, "variant") == 0    ? p->variant
           : strcmp(name, "python") == 0     ? p->python
           : strcmp(name, "seconds") == 0    ? p->seconds
           : strcmp(name, "repeat") == 0     ? p->repeat
           : strcmp(name, "nodes") == 0      ? p->nodes
           : strcmp(name, "node_ranks") == 0 ? p->node_ranks
           : strcmp(name, "scratch") == 0    ? p->scratch
           : strcmp(name, "target") == 0     ? p->target
           : strcmp(name, "key") == 0        ? p->key
           : strcmp(name, "value") == 0      ? p->value
                                             : NULL;
}

/* Replaces each {name}, and then each ${name}. */
static cvy_status fill_word(cvy_pool *pool, const char *framework, const struct place *p, const char *word,
                            const char **out)
{
    char text[WORD_BYTES], *copy = NULL;
    size_t n = 0;
    for (const char *at = word; *at;) {
        const int is_path = at > word && at[-1] == '$'; /* ${name} */
        const char *end = *at == '{' && !is_path ? strchr(at, '}') : NULL, *value = NULL;
        char name[64];
        if (end && end - at < (int)sizeof name) {
            snprintf(name, sizeof name, "%.*s", (int)(end - at - 1), at + 1);
            value = value_of(p, name);
            CVY_CHECK(value, CVY_E_CONFIG, "framework %s: %s: the case has no %s", framework, word, name);
            n += (size_t)snprintf(text + n, sizeof text - n, "%s", value);
            at = end + 1;
        } else {
            n += (size_t)snprintf(text + n, sizeof text - n, "%c", *at++);
        }
        CVY_CHECK(n < sizeof text, CVY_E_CONFIG, "framework %s: %s is longer than %d bytes", framework, word,
                  WORD_BYTES - 1);
    }
    CVY_TRY(cvy_pool_strdup(pool, text, &copy));
    return cvy_study_fill(pool, p->paths, copy, out);
}

struct words {
    const char *at[CVY_STUDY_WORDS * 2];
    int n;
};

static cvy_status add_word(cvy_pool *pool, const char *framework, const struct place *p, const char *word,
                           struct words *w)
{
    CVY_CHECK(w->n + 4 < CVY_COUNT(w->at), CVY_E_CONFIG, "framework %s: a command of more than %d words", framework,
              CVY_COUNT(w->at) - 4);
    return fill_word(pool, framework, p, word, &w->at[w->n++]);
}

/* The words in pool, with NULL at the end. */
static cvy_status copy_words(cvy_pool *pool, const struct words *w, const char *const **out)
{
    const char **copy = NULL;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *copy * ((size_t)w->n + 1), &copy));
    memcpy(copy, w->at, sizeof *copy * (size_t)w->n);
    *out = copy;
    return CVY_OK;
}

/* Several ranks are started as `convoy sweep` starts its own. The axis `wrap` has words before the program, such as
 * numactl --interleave=all. */
static cvy_status add_launcher(cvy_pool *pool, const char *framework, const struct place *p, struct words *w)
{
    const char *launcher = getenv("CONVOY_MPIEXEC"), *ranks = value_of(p, "ranks");
    const char *wrap = p->c ? cvy_case_value(p->c, "wrap") : NULL;
    if (strcmp(ranks, "1") != 0) {
        CVY_TRY(add_word(pool, framework, p, launcher && *launcher ? launcher : "mpiexec", w));
        CVY_TRY(add_word(pool, framework, p, "-n", w));
        CVY_TRY(add_word(pool, framework, p, "{ranks}", w));
    }
    for (const char *at = wrap ? wrap + strspn(wrap, " ") : ""; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        char *word = NULL;
        CVY_TRY(cvy_pool_printf(pool, &word, "%.*s", (int)strcspn(at, " "), at));
        CVY_TRY(add_word(pool, framework, p, word, w));
    }
    return CVY_OK;
}

static int is_variable(const char *axis)
{
    return strncmp(axis, "env.", 4) == 0;
}

/* The variables of the axes, and for the launcher the ranks of a node. */
static cvy_status add_environment(cvy_pool *pool, const cvy_case *c, struct words *w)
{
    for (int a = 0; a < c->of->naxis; a++) {
        const char *axis = c->of->axis[a].name;
        char *word = NULL;
        if (!is_variable(axis) && strcmp(axis, "ranks_per_node") != 0)
            continue;
        if (w->n == 0)
            w->at[w->n++] = "env";
        CVY_TRY(
            cvy_pool_printf(pool, &word, "%s=%s", is_variable(axis) ? axis + 4 : "CONVOY_RANKS_PER_NODE", c->value[a]));
        w->at[w->n++] = word;
    }
    return CVY_OK;
}

/* The device, keys of the job, and options of the command. */
static cvy_status add_sets(cvy_pool *pool, const cvy_framework *f, const cvy_case *c, struct place *p, struct words *w)
{
    for (int a = 0; a < c->of->naxis; a++) {
        const char *axis = c->of->axis[a].name;
        if (strcmp(axis, "device") == 0)
            for (int i = 0; f->device[i]; i++)
                CVY_TRY(add_word(pool, f->name, p, f->device[i], w));
        if (!strchr(axis, '.') || is_variable(axis))
            continue;
        const int is_arg = strncmp(axis, "arg.", 4) == 0;
        const char **word = is_arg ? f->arg : f->set;
        CVY_CHECK(word[0], CVY_E_UNSUPPORTED, "%s does not know %s, which is %s", f->name, axis,
                  is_arg ? "an option of another command" : "a key of a job of convoy");
        p->key = is_arg || strncmp(axis, "set.", 4) == 0 ? axis + 4 : axis;
        p->value = c->value[a];
        for (int i = 0; word[i]; i++)
            CVY_TRY(add_word(pool, f->name, p, word[i], w));
    }
    return CVY_OK;
}

static int uses(const char *const *word, const char *what)
{
    int found = 0;
    for (int i = 0; word[i]; i++)
        found |= strstr(word[i], what) != NULL;
    return found;
}

static int is_in(const char *const *word, const char *what)
{
    int found = 0;
    for (int i = 0; word[i]; i++)
        found |= strcmp(word[i], what) == 0;
    return found;
}

/* What every framework does that cannot be told anything else. */
static int is_default(const char *axis, const char *value)
{
    return (strcmp(axis, "ranks") == 0 && strcmp(value, "1") == 0) ||
           (strcmp(axis, "device") == 0 && strcmp(value, "host") == 0);
}

/* What the words {nodes} and {node_ranks} say, or the launcher is told. */
static int is_of_node(const char *axis)
{
    return strcmp(axis, "ranks") == 0 || strcmp(axis, "ranks_per_node") == 0;
}

/* A framework that cannot be told the value of an axis is not measured with another one. */
static cvy_status check_axes(const cvy_framework *f, const cvy_case *c)
{
    for (int a = 0; a < c->of->naxis; a++) {
        char place[72];
        const char *axis = c->of->axis[a].name;
        const int is_told = strcmp(axis, "batch_per_rank") == 0 && uses(f->command, "{batch}"); /* as a product */
        snprintf(place, sizeof place, "{%s}", axis);
        if (strchr(axis, '.') || strcmp(axis, "framework") == 0 || is_in(f->ignores, axis) || is_told ||
            uses(f->command, place) || (strcmp(axis, "device") == 0 && f->device[0]) ||
            ((strcmp(axis, "ranks") == 0 || strcmp(axis, "wrap") == 0) && uses(f->command, "{launch}")) ||
            (is_of_node(axis) && (uses(f->command, "{launch}") || uses(f->command, "{nodes}"))))
            continue;
        CVY_CHECK(is_default(axis, c->value[a]), CVY_E_UNSUPPORTED, "%s cannot be told %s, which is %s here", f->name,
                  axis, c->value[a]);
    }
    return CVY_OK;
}

cvy_status cvy_case_command(cvy_pool *pool, const cvy_framework *f, const cvy_case *c, int64_t repeat,
                            const char *const **out)
{
    struct place p = place_of(f, c);
    struct words w = {.n = 0};
    snprintf(p.repeat, sizeof p.repeat, "%lld", (long long)repeat);
    CVY_TRY(check_axes(f, c));
    CVY_TRY(cvy_study_scratch(pool, p.paths, &p.scratch));
    if (cvy_case_value(c, "job"))
        CVY_TRY(cvy_study_job_path(pool, p.paths, cvy_case_value(c, "job"), &p.job));
    CVY_TRY(add_environment(pool, c, &w));
    for (int i = 0; f->command[i]; i++)
        CVY_TRY(strcmp(f->command[i], "{launch}") == 0 ? add_launcher(pool, f->name, &p, &w)
                                                       : add_word(pool, f->name, &p, f->command[i], &w));
    CVY_TRY(add_sets(pool, f, c, &p, &w));
    return copy_words(pool, &w, out);
}

/* Text, in which each `what`, if that is an absolute path, is replaced by `by`. */
static cvy_status replace_path(cvy_pool *pool, const char *text, const char *what, const char *by, const char **out)
{
    cvy_text shown = {0};
    char *copy = NULL;
    *out = text;
    if (!what || *what != '/' || !strstr(text, what))
        return CVY_OK;
    for (const char *next; (next = strstr(text, what)) != NULL; text = next + strlen(what)) {
        cvy_text_add_bytes(&shown, text, (size_t)(next - text));
        cvy_text_add(&shown, "%s", by);
    }
    cvy_text_add(&shown, "%s", text);
    const cvy_status status = shown.status == CVY_OK ? cvy_pool_strdup(pool, shown.data, &copy) : shown.status;
    cvy_text_free(&shown);
    *out = copy;
    return status;
}

cvy_status cvy_case_shown_word(cvy_pool *pool, const cvy_framework *f, const char *word, const char **out)
{
    const char *launcher = getenv("CONVOY_MPIEXEC"), *variable = interpreter_variable(f);
    char *folder = NULL;
    *out = word;
    for (int i = 0; i < f->paths.ngiven; i++) {
        const char *given = f->paths.given[i], *path = strchr(given, '=');
        char *name = NULL;
        CVY_TRY(cvy_pool_printf(pool, &name, "${%.*s}", (int)strcspn(given, "="), given));
        CVY_TRY(replace_path(pool, *out, path ? path + 1 : NULL, name, out));
    }
    CVY_TRY(cvy_pool_printf(pool, &folder, "%s/", f->paths.out));
    CVY_TRY(replace_path(pool, *out, folder, "", out));
    CVY_TRY(replace_path(pool, *out, f->folder, "frameworks", out));
    CVY_TRY(replace_path(pool, *out, f->program, "convoy", out));
    CVY_TRY(replace_path(pool, *out, variable ? getenv(variable) : NULL, "python3", out));
    return launcher ? replace_path(pool, *out, launcher, cvy_file_base_name(launcher), out) : CVY_OK;
}

cvy_status cvy_target_command(cvy_pool *pool, const cvy_study_paths *paths, const char *program,
                              const cvy_study_target *target, const char *path, const char *const **out)
{
    const cvy_framework self = {.program = program, .paths = *paths, .folder = ""};
    struct place p = place_of(&self, NULL);
    struct words w = {.n = 0};
    p.target = path;
    for (int i = 0; target->word[i]; i++)
        CVY_TRY(add_word(pool, target->name, &p, target->word[i], &w));
    return copy_words(pool, &w, out);
}

/* ---- what is installed ---- */

/* The last line, or the first one. */
static int cut_line(const char **text, int wants_last)
{
    for (const char *at = *text; wants_last && (at = strchr(at, '\n')) != NULL && at[1]; at++)
        *text = at + 1;
    return (int)strcspn(*text, "\n");
}

/* Why there is no version. A wrong path in a variable is a mistake that installing does not cure, so the variable is
 * named. */
static cvy_status say_missing(cvy_pool *pool, const cvy_framework *f, const struct place *p,
                              const cvy_process_result *r, char **out)
{
    const int is_python = strcmp(f->version[0], "{python}") == 0;
    const char *variable = is_python ? interpreter_variable(f) : NULL, *says = r->err;
    const int length = cut_line(&says, 1); /* a traceback ends with the reason */
    if (r->timed_out)
        return cvy_pool_printf(pool, out, "the command for its version has not ended within %d s", VERSION_S);
    if (length == 0)
        return cvy_pool_printf(pool, out, "the command for its version ends with code %d and prints nothing", r->code);
    if (variable)
        return cvy_pool_printf(pool, out, "%.*s (%s names the interpreter %s)", length, says, variable, p->python);
    return cvy_pool_printf(pool, out, "%.*s", length, says);
}

static cvy_status ask_version(cvy_pool *pool, cvy_framework *f, const volatile int *stop)
{
    const struct place p = place_of(f, NULL);
    struct words w = {.n = 0};
    cvy_process_result r = {0};
    char *text = NULL;
    for (int i = 0; f->version[i]; i++)
        CVY_TRY(add_word(pool, f->name, &p, f->version[i], &w));
    w.at[w.n] = NULL;
    cvy_status status = cvy_process_run(w.at, VERSION_S, stop, &r);
    if (status == CVY_OK && r.code == 0 && !r.timed_out) {
        const char *says = r.out;
        const int length = cut_line(&says, 0);
        status = cvy_pool_printf(pool, &text, "%.*s", length, length ? says : "unknown");
        f->found = text;
    } else if (status == CVY_OK) {
        status = say_missing(pool, f, &p, &r, &text);
        f->missing = text;
    }
    cvy_mem_free(&r.out);
    cvy_mem_free(&r.err);
    return status;
}

static cvy_status check_python(const char *path, const char *variable)
{
    const size_t n = strspn(variable, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    CVY_CHECK(n > 0 && !variable[n], CVY_E_CONFIG,
              "%s: python is '%s', expected the name of a variable of the environment, such as CONVOY_PYTHON_PYTORCH",
              path, variable);
    return CVY_OK;
}

cvy_status cvy_framework_read(cvy_pool *pool, const char *folder, const char *program, const cvy_study_paths *paths,
                              const char *name, cvy_framework *out)
{
    const char *variant = strchr(name, ':');
    char *path = NULL, *file = NULL;
    cvy_tree *root = NULL;
    fields f;
    CVY_TRY(cvy_pool_printf(pool, &file, "%.*s", (int)strcspn(name, ":"), name));
    CVY_TRY(find_file(pool, folder, file, &path));
    CVY_TRY(cvy_tree_parse_file(pool, path, &root));
    CVY_TRY(cvy_options_parse(pool, name, rows, root, NULL, &f, sizeof f));
    CVY_TRY(check_python(path, f.python));
    CVY_CHECK(!variant || f.variant, CVY_E_CONFIG, "framework %s: %s has no variants: expected the name without '%s'",
              name, path, variant);
    *out = (cvy_framework){.name = name,
                           .variant = variant ? variant + 1 : f.variant,
                           .summary = f.summary,
                           .install = f.install,
                           .python = f.python,
                           .folder = folder,
                           .program = program,
                           .paths = *paths,
                           .is_predicted = f.predicted,
                           .is_exact = f.exact,
                           .needs_cores = f.cores,
                           .most_ranks = f.most_ranks};
    CVY_TRY(cvy_study_read_words(pool, path, "command", f.command, &out->command));
    CVY_TRY(cvy_study_read_words(pool, path, "set", f.set, &out->set));
    CVY_TRY(cvy_study_read_words(pool, path, "arg", f.arg, &out->arg));
    CVY_TRY(cvy_study_read_words(pool, path, "device", f.device, &out->device));
    CVY_TRY(cvy_study_read_words(pool, path, "ignores", f.ignores, &out->ignores));
    return cvy_study_read_words(pool, path, "version", f.version, &out->version);
}

cvy_status cvy_framework_open(cvy_pool *pool, const char *folder, const char *program, const cvy_study_paths *paths,
                              const char *name, const volatile int *stop, cvy_framework *out)
{
    CVY_TRY(cvy_framework_read(pool, folder, program, paths, name, out));
    return ask_version(pool, out, stop);
}
