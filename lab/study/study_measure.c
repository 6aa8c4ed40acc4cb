/*
 * study_measure.c: one measurement: its command, what it printed, and its line of the results, with the machine
 * and the version of the framework.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "study/study_measure.h"

#include <ctype.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <convoy/model.h>

#include "base/base_entry.h"
#include "base/base_file.h"
#include "base/base_hash.h"
#include "base/machine/base_clock.h"
#include "base/machine/base_machine.h"

enum { PREPARE_S = 3600 };
#define MOST_OF_JOB 0.8 /* a measurement that had so much of a job's time would not fit into the next one either */

/* ---- the machine ---- */

/* The nodes of a cluster have names such as node017: one job gets this one, another job that one. */
static void drop_digits(char *name)
{
    char *to = name;
    for (; *name; name++)
        if (!isdigit((unsigned char)*name))
            *to++ = *name;
    *to = '\0';
}

static cvy_status know_machine(cvy_measurer *m)
{
    struct utsname name;
    char *text = NULL;
    cvy_machine_cpu(m->cpu, sizeof m->cpu);
    m->cores = cvy_machine_cores();
    CVY_CHECK(uname(&name) == 0, CVY_E_IO, "the system does not tell its name");
    snprintf(m->host, sizeof m->host, "%s", name.nodename);
    if (m->nodes > 0)
        drop_digits(m->host);
    snprintf(m->system, sizeof m->system, "%.60s %.60s", name.sysname, name.release);
    CVY_TRY(cvy_pool_printf(m->pool, &text, "%s|%d|%s", m->cpu, m->cores, m->host));
    snprintf(m->machine, sizeof m->machine, "%016llx", (unsigned long long)cvy_hash(text, strlen(text)));
    return CVY_OK;
}

/* ---- what is there ---- */

static cvy_status name_measurement(cvy_measurer *m, const char *key, int64_t repeat, const char *machine, char **out)
{
    return cvy_pool_printf(m->pool, out, "%s #%lld @%s", key, (long long)repeat, machine);
}

static cvy_status know_results(cvy_measurer *m)
{
    CVY_TRY(cvy_study_results_read(m->pool, m->paths.out, &m->before));
    CVY_TRY(cvy_pool_alloc(m->pool, sizeof *m->done_line * ((size_t)m->before.n + 1), &m->done_line));
    for (int i = 0; i < m->before.n; i++) {
        const cvy_study_result_line *line = &m->before.line[i];
        char *name = NULL;
        int number = 0;
        if (line->error && m->retry)
            continue;
        CVY_TRY(name_measurement(m, line->key, line->repeat, line->machine, &name));
        CVY_TRY(cvy_keys_add(&m->done, name, &number));
        m->done_line[number] = i;
    }
    return CVY_OK;
}

/* The result that is there; NULL: none. */
static cvy_status find_result(cvy_measurer *m, const cvy_case *c, int64_t repeat, const cvy_study_result_line **out)
{
    char *name = NULL;
    CVY_TRY(name_measurement(m, c->key, repeat, m->machine, &name));
    const int number = cvy_keys_find(&m->done, name);
    *out = number >= 0 ? &m->before.line[m->done_line[number]] : NULL;
    return CVY_OK;
}

cvy_status cvy_measurer_open(cvy_measurer *m)
{
    m->result.size = sizeof m->result;
    CVY_TRY(know_machine(m));
    CVY_TRY(cvy_study_results_path(m->pool, m->paths.out, m->part, m->nodes, &m->results));
    CVY_TRY(cvy_study_results_mend(m->results));
    return know_results(m);
}

void cvy_measurer_close(cvy_measurer *m)
{
    cvy_text_release(&m->devices);
    cvy_keys_free(&m->away);
    cvy_keys_free(&m->done);
    cvy_keys_free(&m->slow);
}

/* ---- frameworks ---- */

void cvy_measurer_say(const cvy_measurer *m, const char *fmt, ...)
{
    char line[1024];
    va_list args;
    if (!m->show)
        return;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    CVY_CALLBACK();
    m->show(m->user, line);
}

cvy_status cvy_measurer_framework(cvy_measurer *m, const char *name, cvy_framework **out)
{
    for (int i = 0; i < m->nframework; i++)
        if (strcmp(m->framework[i].name, name) == 0) {
            *out = &m->framework[i];
            return CVY_OK;
        }
    CVY_CHECK(m->nframework < CVY_FRAMEWORKS_MAX, CVY_E_CONFIG, "more than %d frameworks", CVY_FRAMEWORKS_MAX);
    cvy_framework *f = &m->framework[m->nframework];
    CVY_TRY(cvy_framework_open(m->pool, m->frameworks, m->program, &m->paths, name, m->stop, f));
    f->ranks_per_node = m->nodes > 0 ? m->ranks_per_node : 0;
    f->node_ranks = m->ranks_per_node;
    m->nframework++;
    if (f->found)
        cvy_measurer_say(m, "%s: %s", name, f->found);
    else
        cvy_measurer_say(m, "%s is left out, because it is not here: %s%s%s", name, f->missing,
                         f->install ? "; to install it: " : "", f->install ? f->install : "");
    *out = f;
    return CVY_OK;
}

/* ---- devices ---- */

/* The line of `list` that is about the device: "cuda:0 NVIDIA H200, .." or "cuda no device: WHY". A name without a
 * number means any device of the driver. NULL: there is none. */
static const char *line_of_device(const char *list, const char *name)
{
    const size_t n = strlen(name);
    const char *at = list;
    while (at && *at && !(strncmp(at, name, n) == 0 && (at[n] == ' ' || at[n] == ':'))) {
        at = strchr(at, '\n');
        at += at != NULL;
    }
    return at && *at ? at : NULL;
}

/* Whether the device of a case is here. One that is not is named once. */
static cvy_status find_device(cvy_measurer *m, const cvy_case *c, int *out)
{
    const char *name = cvy_case_value(c, "device");
    int number = 0;
    *out = 1;
    if (!name || strcmp(name, "host") == 0 || strcmp(name, "auto") == 0)
        return CVY_OK;
    if (!m->devices)
        CVY_TRY(cvy_device_list(&m->devices));
    const char *line = line_of_device(m->devices, name);
    *out = line && line[strcspn(line, ": \n")] == ':';
    if (*out || cvy_keys_find(&m->away, name) >= 0)
        return CVY_OK;
    CVY_TRY(cvy_keys_add(&m->away, name, &number));
    const char *why = line ? line + strlen(name) + 1 : "`convoy info` does not list it";
    cvy_measurer_say(m, "device %s is left out, because it is not here: %.*s", name, (int)strcspn(why, "\n"), why);
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

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* A line of Google's logs that is no error, such as "I0000 00:00:17.. port.cc:153] oneDNN custom operations are on". */
static int is_remark(const char *line)
{
    static const char before_them[] = "WARNING: All log messages before absl::InitializeLog()";
    return ((line[0] == 'I' || line[0] == 'W') && strspn(line + 1, "0123456789") == 4 && line[5] == ' ') ||
           strncmp(line, before_them, sizeof before_them - 1) == 0;
}

/* The line that says most about a failure: the first one of convoy's errors, otherwise the last one that Python calls
 * an error, otherwise the last one with words. mpiexec frames its own words, which come last, with lines of dashes. */
static const char *find_reason(char *text)
{
    const char *last = NULL, *last_error = NULL;
    for (char *at = text; at && *at;) {
        char *end = strchr(at, '\n');
        if (end)
            *end = '\0';
        const char *error = strstr(at, "convoy: error: ");
        if (error)
            return error + strlen("convoy: error: ");
        last_error = strstr(at, "Error: ") ? at : last_error;
        last = at[strcspn(at, LETTERS)] && !is_remark(at) ? at : last;
        at = end ? end + 1 : NULL;
    }
    return last_error ? last_error : last;
}

/* "signal 9 (Killed)", or "exit code 3". mpiexec and shells end with 128 + the signal that has ended their program. */
static void name_end(int code, char *text, size_t room)
{
    const char *name = code > 128 && code < 128 + 32 ? strsignal(code - 128) : NULL;
    if (name)
        snprintf(text, room, "signal %d (%s)%s", code - 128, name,
                 code - 128 == SIGKILL ? ", which the system sends if memory runs out" : "");
    else
        snprintf(text, room, "exit code %d", code);
}

static void explain(const cvy_case *c, cvy_process_result *r, const char *object, char *why, size_t room)
{
    const char *reason = find_reason(r->err);
    char end[128];
    name_end(r->code, end, sizeof end);
    if (r->timed_out && r->seconds < c->of->limit_s)
        snprintf(why, room, "it was ended after %.0f s, as the job had to end: a longer job is needed", r->seconds);
    else if (r->timed_out)
        snprintf(why, room, "it was ended after %g s, the limit of its experiment", c->of->limit_s);
    else if (r->code != 0)
        snprintf(why, room, "%s: %.300s", end, reason ? reason : "it wrote no error to stderr");
    else if (object)
        snprintf(why, room, "what it printed last is no JSON object: %.300s", object);
    else
        snprintf(why, room, "it printed no JSON object%s%.300s", reason ? "; it wrote to stderr: " : "",
                 reason ? reason : "");
}

static void add_case(cvy_json *json, const cvy_case *c)
{
    cvy_json_open(json, "case", '{');
    for (int a = 0; a < c->of->naxis; a++)
        cvy_json_string(json, c->of->axis[a].name, c->value[a]);
    cvy_json_close(json, '}');
}

static void add_environment(const cvy_measurer *m, cvy_json *json)
{
    cvy_json_open(json, "environment", '{');
    cvy_json_string(json, "host", m->host);
    cvy_json_string(json, "cpu", m->cpu);
    cvy_json_int(json, "cores", m->cores);
    cvy_json_string(json, "system", m->system);
    cvy_json_string(json, "convoy", cvy_version());
    if (m->commit && *m->commit)
        cvy_json_string(json, "commit", m->commit);
    cvy_json_close(json, '}');
}

static cvy_status write_result(cvy_measurer *m, const cvy_framework *f, const cvy_case *c, int64_t repeat,
                               const char *const *word, double seconds, const char *object, const char *error)
{
    char time[32];
    cvy_json json = {0};
    cvy_status shown = CVY_OK;
    cvy_clock_text(time);
    cvy_json_open(&json, NULL, '{');
    cvy_json_string(&json, "key", c->key);
    cvy_json_int(&json, "repeat", repeat);
    cvy_json_string(&json, "experiment", c->of->name);
    add_case(&json, c);
    cvy_json_string(&json, "framework", f->found);
    cvy_json_bool(&json, "predicted", f->is_predicted);
    if (m->quick)
        cvy_json_bool(&json, "quick", 1);
    cvy_json_string(&json, "machine", m->machine);
    cvy_json_string(&json, "time", time);
    cvy_json_real(&json, "seconds", seconds);
    if (error)
        cvy_json_string(&json, "error", error);
    cvy_json_open(&json, "command", '[');
    for (int i = 0; word[i] && shown == CVY_OK; i++) {
        const char *text = NULL;
        shown = cvy_case_shown_word(m->pool, f, word[i], &text);
        cvy_json_string(&json, NULL, shown == CVY_OK ? text : "");
    }
    cvy_json_close(&json, ']');
    add_environment(m, &json);
    if (object)
        cvy_text_add(&json.text, ", \"result\": %s", object);
    cvy_json_close(&json, '}');
    cvy_status status = shown != CVY_OK ? shown : json.text.status;
    if (status == CVY_OK)
        status = cvy_study_results_add(m->results, json.text.data);
    cvy_text_free(&json.text);
    return status;
}

/* NULL: there is no JSON object, or it cannot be read. */
static const cvy_tree *read_object(cvy_measurer *m, const char *object)
{
    cvy_tree *root = NULL;
    return object && cvy_tree_parse_text(m->pool, "output", object, strlen(object), &root) == CVY_OK &&
                   root->kind == CVY_TREE_MAP
               ? root
               : NULL;
}

/* The seconds until the study has to have ended. */
static double left_s(const cvy_measurer *m)
{
    return m->time.end_s > 0 ? m->time.end_s - cvy_clock_wall_s() : INFINITY;
}

/* A measurement may leave files in a folder that is its own. */
static cvy_status run_command(cvy_measurer *m, const cvy_case *c, const char *const *word, cvy_process_result *r)
{
    const char *scratch = NULL;
    const double limit_s = fmin(c->of->limit_s, left_s(m));
    CVY_TRY(cvy_study_scratch(m->pool, &m->paths, &scratch));
    CVY_TRY(cvy_file_make_folder(scratch));
    const cvy_status status = cvy_process_run(word, limit_s, m->stop, r);
    const cvy_status removed = cvy_file_remove_tree(scratch);
    r->stopped |= r->timed_out && limit_s < c->of->limit_s && limit_s < MOST_OF_JOB * (m->time.end_s - m->time.begin_s);
    return status == CVY_OK ? removed : status;
}

static void count_time(cvy_measurer *m, double seconds)
{
    const double n = (double)(m->result.measured + m->result.failed);
    m->time.mean_s += (seconds - m->time.mean_s) / n;
    m->time.longest_s = fmax(m->time.longest_s, seconds);
    m->left -= m->left > 0;
}

struct left {
    char at[64];
};

/* "; 12 more, about 5 min". */
static struct left left_text(const cvy_measurer *m)
{
    struct left text = {""};
    const double s = m->time.mean_s * (double)m->left;
    if (m->left > 0)
        snprintf(text.at, sizeof text.at, "; %lld more, about %.0f %s", (long long)m->left,
                 s < 120    ? ceil(s)
                 : s < 7200 ? ceil(s / 60)
                            : ceil(s / 3600),
                 s < 120    ? "s"
                 : s < 7200 ? "min"
                            : "h");
    return text;
}

/* A result without the number of the table is kept: others of its numbers may be those of a figure. */
static void say_result(const cvy_measurer *m, const cvy_case *c, const cvy_tree *result)
{
    const double value = cvy_tree_real_at(result, c->of->show);
    const int is_computed = strncmp(c->of->show, "target_", 7) == 0; /* from the curve, for the page */
    if (isfinite(value))
        cvy_measurer_say(m, "%s: %.4g %s%s", c->key, value, c->of->show_label, left_text(m).at);
    else if (is_computed)
        cvy_measurer_say(m, "%s: done%s", c->key, left_text(m).at);
    else
        cvy_measurer_say(m, "%s: its JSON object has no number %s, so its cell stays empty%s", c->key, c->of->show,
                         left_text(m).at);
}

static cvy_status make(cvy_measurer *m, const cvy_framework *f, const cvy_case *c, int64_t repeat,
                       const cvy_tree **result_out)
{
    const char *const *word = NULL;
    cvy_process_result r = {0};
    char why[512] = "";
    int number = 0;
    cvy_status status = cvy_case_command(m->pool, f, c, repeat, &word);
    if (status == CVY_E_UNSUPPORTED) {
        cvy_measurer_say(m, "%s: left out: %s", c->key, cvy_error_text());
        m->result.skipped++;
        return CVY_OK;
    }
    CVY_TRY(status);
    status = run_command(m, c, word, &r);
    if (status == CVY_OK && r.stopped)
        status = CVY_STOPPED;
    if (status == CVY_OK) {
        const char *object = r.code == 0 && !r.timed_out ? find_object(r.out) : NULL;
        const cvy_tree *read = read_object(m, object);
        const int good = read != NULL;
        if (!good)
            explain(c, &r, object, why, sizeof why);
        status = write_result(m, f, c, repeat, word, r.seconds, good ? object : NULL, good ? NULL : why);
        m->result.measured += good;
        m->result.failed += !good;
        *result_out = read;
        count_time(m, r.seconds);
        if (status == CVY_OK && r.seconds > c->of->once_s)
            status = cvy_keys_add(&m->slow, c->key, &number);
        if (good)
            say_result(m, c, read);
        else
            cvy_measurer_say(m, "%s: failed: %s%s", c->key, why, left_text(m).at);
    }
    cvy_mem_free(&r.out);
    cvy_mem_free(&r.err);
    return status;
}

/* Whether the ranks and threads of a case have a core each, and are not too many for the framework. */
static int fits(const cvy_measurer *m, const cvy_framework *f, const cvy_case *c)
{
    if (f->most_ranks > 0 && cvy_case_ranks(c) > f->most_ranks)
        return 0;
    if (c->of->oversubscribes || !f->needs_cores)
        return 1;
    return cvy_framework_ranks_here(f, c) * cvy_case_threads(c) <= m->cores;
}

/* Whether a case is measured this time. A prediction that is the same each time is made once, and so is a measurement
 * that takes very long. */
static cvy_status is_repeated(cvy_measurer *m, const cvy_framework *f, const cvy_case *c, int64_t repeat, int *out)
{
    const cvy_study_result_line *first = NULL;
    *out = repeat == 1 || (!f->is_exact && cvy_keys_find(&m->slow, c->key) < 0);
    if (*out && repeat > 1)
        CVY_TRY(find_result(m, c, 1, &first));
    *out = *out && !(first && first->seconds > c->of->once_s);
    return CVY_OK;
}

cvy_status cvy_measure_is_due(cvy_measurer *m, const cvy_case *c, int64_t repeat, int *out)
{
    const cvy_study_result_line *there = NULL;
    cvy_framework *f = NULL;
    int has_device = 0, repeated = 0;
    CVY_TRY(find_result(m, c, repeat, &there));
    CVY_TRY(cvy_measurer_framework(m, cvy_case_value(c, "framework"), &f));
    CVY_TRY(find_device(m, c, &has_device));
    CVY_TRY(is_repeated(m, f, c, repeat, &repeated));
    *out = !there && f->found && has_device && fits(m, f, c) && repeated;
    return CVY_OK;
}

cvy_status cvy_measure(cvy_measurer *m, const cvy_case *c, int64_t repeat, const cvy_tree **result_out)
{
    const cvy_study_result_line *there = NULL;
    const cvy_tree *result = NULL;
    cvy_framework *f = NULL;
    int has_device = 0, repeated = 0;
    CVY_TRY(cvy_measurer_framework(m, cvy_case_value(c, "framework"), &f));
    CVY_TRY(is_repeated(m, f, c, repeat, &repeated));
    if (!repeated)
        return CVY_OK;
    m->result.total++;
    CVY_TRY(find_result(m, c, repeat, &there));
    m->result.earlier += there != NULL;
    if (there) {
        result = there->result;
    } else {
        if ((m->stop && *m->stop) || left_s(m) <= m->time.longest_s)
            return CVY_STOPPED;
        CVY_TRY(find_device(m, c, &has_device));
        if (f->found && has_device && fits(m, f, c))
            CVY_TRY(make(m, f, c, repeat, &result));
        else
            m->result.skipped++;
    }
    if (result_out)
        *result_out = result;
    return CVY_OK;
}

/* ---- what comes before ---- */

cvy_status cvy_make_target(cvy_measurer *m, const cvy_study_target *target)
{
    const char *const *word = NULL;
    char *path = NULL, *parent = NULL;
    cvy_process_result r = {0};
    CVY_TRY(cvy_pool_printf(m->pool, &path, "%s/%s", m->paths.out, target->name));
    if (cvy_file_exists(path))
        return CVY_OK;
    cvy_status status = cvy_target_command(m->pool, &m->paths, m->program, target, path, &word);
    if (status == CVY_E_UNSUPPORTED) {
        cvy_measurer_say(m, "%s is not made: %s", target->name, cvy_error_text());
        return CVY_OK;
    }
    CVY_TRY(status);
    cvy_measurer_say(m, "making %s", target->name);
    CVY_TRY(cvy_pool_printf(m->pool, &parent, "%.*s", (int)(strrchr(path, '/') - path), path));
    CVY_TRY(cvy_file_make_folder(parent));
    status = cvy_process_run(word, PREPARE_S, m->stop, &r);
    if (status == CVY_E_UNSUPPORTED) { /* nobody knows whether all of the target is there */
        const cvy_status removed = cvy_file_remove_tree(path);
        status = removed == CVY_OK ? status : removed;
    }
    if (status == CVY_OK && (r.stopped || r.timed_out || r.code != 0)) {
        const char *reason = find_reason(r.err);
        if (r.timed_out)
            cvy_measurer_say(m, "%s is not made: it took longer than %d s", target->name, (int)PREPARE_S);
        else
            cvy_measurer_say(m, "%s is not made: exit code %d: %.400s", target->name, r.code,
                             reason ? reason : "no message");
        status = cvy_file_remove_tree(path);
    }
    if (status == CVY_OK && r.stopped)
        status = CVY_STOPPED;
    cvy_mem_free(&r.out);
    cvy_mem_free(&r.err);
    return status;
}
