/*
 * experiment_run.c: cvy_run_study(): makes the measurements that are missing, one after the other.
 *
 * Repeats are the outer loop and cases the inner one, so that other work on the machine, which comes and goes, disturbs
 * all cases alike. A line of the results also has the command, the machine and the version of the framework.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/base_file.h"
#include "base/base_hash.h"
#include "base/base_index.h"
#include "base/base_opts.h"
#include "base/machine/base_clock.h"
#include "base/machine/base_machine.h"
#include "experiment/experiment.h"

enum { FRAMEWORKS_MAX = 32 };

struct study {
    cvy_study_opts o;
    cvy_pool *pool;
    cvy_study_spec spec;
    cvy_case *c;
    int ncase;
    cvy_framework framework[FRAMEWORKS_MAX];
    int nframework;
    cvy_study_results before;
    cvy_keys done; /* "KEY #REPEAT @MACHINE" of measurements that are there */
    char cpu[128], host[128], system[128], machine[32];
    int cores;
    double left_s; /* the time that the rest takes at least, from what was measured */
    cvy_study_result result;
};

/* ---- the machine ---- */

static cvy_status know_machine(struct study *s)
{
    struct utsname name;
    char *text = NULL;
    cvy_machine_cpu(s->cpu, sizeof s->cpu);
    s->cores = cvy_machine_cores();
    CVY_CHECK(uname(&name) == 0, CVY_E_IO, "the system does not tell its name");
    snprintf(s->host, sizeof s->host, "%s", name.nodename);
    snprintf(s->system, sizeof s->system, "%.60s %.60s", name.sysname, name.release);
    CVY_TRY(cvy_pool_printf(s->pool, &text, "%s|%d|%s", s->cpu, s->cores, s->host));
    snprintf(s->machine, sizeof s->machine, "%016llx", (unsigned long long)cvy_hash(text, strlen(text)));
    return CVY_OK;
}

/* ---- what is there ---- */

static cvy_status name_measurement(struct study *s, const char *key, int64_t repeat, const char *machine, char **out)
{
    return cvy_pool_printf(s->pool, out, "%s #%lld @%s", key, (long long)repeat, machine);
}

static cvy_status know_results(struct study *s)
{
    CVY_TRY(cvy_study_results_read(s->pool, s->o.out, &s->before));
    for (int i = 0; i < s->before.n; i++) {
        const cvy_study_result_line *line = &s->before.line[i];
        char *name = NULL;
        int number = 0;
        if (line->error && s->o.retry)
            continue;
        CVY_TRY(name_measurement(s, line->key, line->repeat, line->machine, &name));
        CVY_TRY(cvy_keys_add(&s->done, name, &number));
    }
    return CVY_OK;
}

static cvy_status is_done(struct study *s, const cvy_case *c, int64_t repeat, int *out)
{
    char *name = NULL;
    CVY_TRY(name_measurement(s, c->key, repeat, s->machine, &name));
    *out = cvy_keys_find(&s->done, name) >= 0;
    return CVY_OK;
}

/* ---- frameworks ---- */

/* The names of --frameworks take the place of those of the file. */
static cvy_status choose_frameworks(struct study *s)
{
    const char **name = NULL;
    int n = 0;
    if (!s->o.only)
        return CVY_OK;
    CVY_TRY(cvy_pool_alloc(s->pool, sizeof *name * (strlen(s->o.only) + 1), &name));
    for (const char *at = s->o.only; *at; at += strcspn(at, ","), at += *at == ',') {
        char *copy = NULL;
        CVY_TRY(cvy_pool_printf(s->pool, &copy, "%.*s", (int)strcspn(at, ","), at));
        name[n++] = copy;
    }
    CVY_CHECK(n > 0, CVY_E_CONFIG, "--frameworks names none");
    for (int i = 0; i < s->spec.nexperiment; i++)
        for (int a = 0; a < s->spec.experiment[i].naxis; a++)
            if (strcmp(s->spec.experiment[i].axis[a].name, "framework") == 0) {
                s->spec.experiment[i].axis[a].value = name;
                s->spec.experiment[i].axis[a].nvalue = n;
            }
    return CVY_OK;
}

static cvy_framework *find_framework(struct study *s, const char *name)
{
    for (int i = 0; i < s->nframework; i++)
        if (strcmp(s->framework[i].name, name) == 0)
            return &s->framework[i];
    return NULL;
}

static void say(const struct study *s, const char *fmt, ...) CVY_PRINTF(2, 3);
static void say(const struct study *s, const char *fmt, ...)
{
    char line[1024];
    va_list args;
    if (!s->o.show)
        return;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    s->o.show(s->o.user, line);
}

static cvy_status open_frameworks(struct study *s)
{
    for (int i = 0; i < s->ncase; i++) {
        const char *name = cvy_case_value(&s->c[i], "framework");
        if (find_framework(s, name))
            continue;
        CVY_CHECK(s->nframework < FRAMEWORKS_MAX, CVY_E_CONFIG, "%s: more than %d frameworks", s->spec.file,
                  FRAMEWORKS_MAX);
        cvy_framework *f = &s->framework[s->nframework++];
        CVY_TRY(cvy_framework_open(s->pool, s->o.frameworks, s->o.program, name, s->o.stop, f));
        if (f->found)
            say(s, "%s: %s", name, f->found);
        else
            say(s, "%s is left out, because it is not here: %s%s%s", name, f->missing,
                f->install ? "; to install it: " : "", f->install ? f->install : "");
    }
    return CVY_OK;
}

/* ---- a measurement ---- */

/* The last line of the output that is a JSON object. */
static const char *find_object(char *text)
{
    const char *found = NULL;
    for (char *at = text; at && *at;) {
        char *end = strchr(at, '\n');
        if (end)
            *end = '\0';
        const size_t n = strlen(at);
        if (at[0] == '{' && n > 1 && at[n - 1] == '}')
            found = at;
        at = end ? end + 1 : NULL;
    }
    return found;
}

/* The line that says most about a failure: the first one of convoy's errors, otherwise the last one. */
static const char *find_reason(char *text)
{
    const char *last = NULL;
    for (char *at = text; at && *at;) {
        char *end = strchr(at, '\n');
        if (end)
            *end = '\0';
        const char *error = strstr(at, "convoy: error: ");
        if (error)
            return error + strlen("convoy: error: ");
        last = *at ? at : last;
        at = end ? end + 1 : NULL;
    }
    return last;
}

static void explain(const cvy_case *c, cvy_process_result *r, char *why, size_t room)
{
    const char *reason = find_reason(r->err);
    if (r->timed_out)
        snprintf(why, room, "it was ended after %g s, the limit of its experiment", c->of->limit_s);
    else if (r->code != 0)
        snprintf(why, room, "exit code %d: %.400s", r->code, reason ? reason : "it wrote nothing to stderr");
    else
        snprintf(why, room, "it printed no JSON object");
}

static void add_case(cvy_json *json, const cvy_case *c)
{
    cvy_json_open(json, "case", '{');
    for (int a = 0; a < c->of->naxis; a++)
        cvy_json_string(json, c->of->axis[a].name, c->value[a]);
    cvy_json_close(json, '}');
}

static void add_environment(const struct study *s, cvy_json *json)
{
    cvy_json_open(json, "environment", '{');
    cvy_json_string(json, "host", s->host);
    cvy_json_string(json, "cpu", s->cpu);
    cvy_json_int(json, "cores", s->cores);
    cvy_json_string(json, "system", s->system);
    cvy_json_string(json, "convoy", cvy_version());
    cvy_json_close(json, '}');
}

static cvy_status write_result(struct study *s, const cvy_framework *f, const cvy_case *c, int64_t repeat,
                               const char *const *word, double seconds, const char *object, const char *error)
{
    char time[32];
    cvy_json json = {0};
    cvy_clock_text(time);
    cvy_json_open(&json, NULL, '{');
    cvy_json_string(&json, "key", c->key);
    cvy_json_int(&json, "repeat", repeat);
    cvy_json_string(&json, "experiment", c->of->name);
    add_case(&json, c);
    cvy_json_string(&json, "framework", f->found);
    cvy_json_bool(&json, "predicted", f->is_predicted);
    cvy_json_string(&json, "machine", s->machine);
    cvy_json_string(&json, "time", time);
    cvy_json_real(&json, "seconds", seconds);
    if (error)
        cvy_json_string(&json, "error", error);
    cvy_json_open(&json, "command", '[');
    for (int i = 0; word[i]; i++)
        cvy_json_string(&json, NULL, word[i]);
    cvy_json_close(&json, ']');
    add_environment(s, &json);
    if (object)
        cvy_text_add(&json.text, ", \"result\": %s", object);
    cvy_json_close(&json, '}');
    cvy_status status = json.text.status;
    if (status == CVY_OK)
        status = cvy_study_results_add(s->o.out, json.text.data);
    cvy_text_free(&json.text);
    return status;
}

/* NULL: there is no JSON object, or it cannot be read. */
static const cvy_tree *read_object(struct study *s, const char *object)
{
    cvy_tree *root = NULL;
    return object && cvy_tree_parse_text(s->pool, "output", object, strlen(object), &root) == CVY_OK &&
                   root->kind == CVY_TREE_MAP
               ? root
               : NULL;
}

static cvy_status measure(struct study *s, const cvy_case *c, int64_t repeat)
{
    cvy_framework *f = find_framework(s, cvy_case_value(c, "framework"));
    const char *const *word = NULL;
    cvy_process_result r = {0};
    char why[512] = "";
    cvy_status status = cvy_case_command(s->pool, f, c, &word);
    if (status == CVY_E_UNSUPPORTED) {
        s->result.skipped++;
        return CVY_OK;
    }
    CVY_TRY(status);
    status = cvy_process_run(word, c->of->limit_s, s->o.stop, &r);
    if (status == CVY_OK && r.stopped)
        status = CVY_STOPPED;
    if (status == CVY_OK) {
        const char *object = r.code == 0 && !r.timed_out ? find_object(r.out) : NULL;
        const cvy_tree *read = read_object(s, object);
        const int good = read != NULL;
        if (!good)
            explain(c, &r, why, sizeof why);
        status = write_result(s, f, c, repeat, word, r.seconds, good ? object : NULL, good ? NULL : why);
        s->result.measured += good;
        s->result.failed += !good;
        if (good)
            say(s, "%s: %.4g images/s", c->key, cvy_tree_real_at(read, "images_per_s"));
        else
            say(s, "%s: failed: %s", c->key, why);
    }
    cvy_mem_free(&r.out);
    cvy_mem_free(&r.err);
    return status;
}

/* ---- all ---- */

/* Whether the ranks and threads of a case have a core each. */
static int fits(const struct study *s, const cvy_framework *f, const cvy_case *c)
{
    const char *ranks = cvy_case_value(c, "ranks"), *threads = cvy_case_value(c, "threads");
    int64_t n = 1, t = 1;
    if (c->of->oversubscribes || !f->needs_cores || (ranks && cvy_text_int(ranks, &n) != CVY_OK))
        return 1;
    if (threads && cvy_text_int(threads, &t) != CVY_OK) /* all: the ranks share the cores */
        t = 1;
    return n * t <= s->cores;
}

static cvy_status consider(struct study *s, const cvy_case *c, int64_t repeat)
{
    const cvy_framework *f = find_framework(s, cvy_case_value(c, "framework"));
    int done = 0;
    s->result.total++;
    CVY_TRY(is_done(s, c, repeat, &done));
    s->result.earlier += done;
    if (done)
        return CVY_OK;
    if (!f || !f->found || !fits(s, f, c)) {
        s->result.skipped++;
        return CVY_OK;
    }
    return s->o.stop && *s->o.stop ? CVY_STOPPED : measure(s, c, repeat);
}

static cvy_status run_all(struct study *s)
{
    int64_t most = 0;
    for (int i = 0; i < s->ncase; i++)
        most = CVY_MAX(most, s->c[i].of->repeats);
    for (int64_t repeat = 1; repeat <= most; repeat++)
        for (int i = 0; i < s->ncase; i++)
            if (repeat <= s->c[i].of->repeats)
                CVY_TRY(consider(s, &s->c[i], repeat));
    return CVY_OK;
}

/* A folder belongs to one study; with --quick or other frameworks it may grow. */
static cvy_status keep_file(struct study *s)
{
    char *path = NULL, *data = NULL;
    size_t bytes = 0;
    CVY_TRY(cvy_file_make_folder(s->o.out));
    CVY_TRY(cvy_pool_printf(s->pool, &path, "%s/study.yaml", s->o.out));
    if (!cvy_file_exists(path))
        return cvy_file_replace(path, s->o.text, strlen(s->o.text));
    CVY_TRY(cvy_file_read(path, 16 << 20, &data, &bytes));
    const int same = strcmp(data, s->o.text) == 0;
    cvy_mem_free(&data);
    CVY_CHECK(same, CVY_E_CONFIG,
              "%s holds the results of another study, or of an earlier version of %s: take another folder, or compare "
              "%s with it",
              s->o.out, s->o.name, path);
    return CVY_OK;
}

/* The published figures of this study, and the head of the table, become a file of the folder. */
static cvy_status keep_published(struct study *s)
{
    const size_t n = s->spec.published ? strlen(s->spec.published) : 0;
    cvy_text text = {0};
    char *path = NULL;
    if (!s->o.published || n == 0)
        return CVY_OK;
    for (const char *at = s->o.published; *at;) {
        const size_t length = strcspn(at, "\n");
        if (strncmp(at, "study,", 6) == 0 || (strncmp(at, s->spec.published, n) == 0 && at[n] == ','))
            cvy_text_add(&text, "%.*s\n", (int)length, at);
        at += length + (at[length] == '\n');
    }
    cvy_status status = text.status;
    if (status == CVY_OK)
        status = cvy_pool_printf(s->pool, &path, "%s/published.csv", s->o.out);
    if (status == CVY_OK && text.bytes > 0)
        status = cvy_file_replace(path, text.data, text.bytes);
    cvy_text_free(&text);
    return status;
}

static cvy_status run(struct study *s)
{
    CVY_TRY(cvy_study_read(s->pool, s->o.name, s->o.text, s->o.quick, &s->spec));
    CVY_TRY(choose_frameworks(s));
    CVY_TRY(cvy_study_cases(&s->spec, &s->c, &s->ncase));
    CVY_TRY(keep_file(s));
    CVY_TRY(keep_published(s));
    CVY_TRY(know_machine(s));
    CVY_TRY(know_results(s));
    CVY_TRY(open_frameworks(s));
    return run_all(s);
}

cvy_status cvy_run_study(const cvy_study_opts *opts, cvy_study_result *out)
{
    struct study s = {.result = {.size = sizeof s.result}};
    CVY_TRY(CVY_OPTS_READ(cvy_study_opts, opts, &s.o));
    CVY_TRY(CVY_RESULT_CHECK(cvy_study_result, out));
    CVY_CHECK(s.o.name && s.o.text && s.o.out && s.o.frameworks && s.o.program, CVY_E_ARGUMENT,
              "a study needs name, text, out, frameworks and program");
    CVY_TRY(cvy_pool_create(&s.pool));
    const cvy_status status = run(&s);
    cvy_keys_free(&s.done);
    cvy_pool_destroy(&s.pool);
    if (status == CVY_OK || status == CVY_STOPPED)
        cvy_result_write(out, &s.result, sizeof s.result);
    return status;
}
