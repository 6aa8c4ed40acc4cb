/*
 * sample_operators.c: cvy_run_check_operators(): tests the operators of an extension, or of the program, on their
 * samples, with the engine that tests convoy's own operators (sample/).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "base/base_hash.h"
#include "base/base_opts.h"
#include "base/text/base_text.h"
#include "context/context.h"
#include "sample/sample_gradient.h"
#include "sample/sample_splits.h"

typedef struct check {
    const cvy_extension_op *x;
    const cvy_operators_opts *opts;
    cvy_operators_result *result;
    const cvy_sample *samples; /* ends with {0} */
    char fault[600];           /* the first one of the check that runs; "" if there is none */
    int64_t count;             /* what the check has compared */
    unsigned tried;            /* CVY_SPLIT_*: splits of the forward operator that were tried */
} check;

static void note_fault(void *user, const cvy_op_def *op, const cvy_sample *sample, const char *what)
{
    check *c = user;
    (void)op;
    if (!*c->fault)
        snprintf(c->fault, sizeof c->fault, "sample \"%s\"%s%s: %s", sample->src, sample->options ? ", " : "",
                 sample->options ? sample->options : "", what);
}

static void note_graph_fault(void *user, const cvy_sample_graph *b, const char *what)
{
    note_fault(user, b->op, b->sample, what);
}

static void note_tried(void *user, const cvy_op_def *op, unsigned bit)
{
    check *c = user;
    if (op == &c->x->forward)
        c->tried |= bit;
}

/* ---- results: every element is written, and nothing else ---- */

enum { GUARD = 16 }; /* elements before and after each result */

/* Runs the node with results that hold `old`, and copies them to copy[]. */
static cvy_status run_over(const cvy_sample_graph *b, const cvy_node *node, double old, cvy_span *copy,
                           const char **why_out)
{
    cvy_span src[CVY_NODE_SRC_MAX] = {{0}}, dst[CVY_NODE_DST_MAX] = {{0}};
    uint64_t hash[CVY_NODE_SRC_MAX] = {0};
    for (int i = 0; i < node->nsrc; i++) {
        src[i] = *cvy_eval_of(&b->e, node->src[i]);
        hash[i] = cvy_hash(src[i].data, (size_t)src[i].elems * cvy_dtype_bytes(src[i].dtype));
    }
    for (int i = 0; i < node->ndst; i++) {
        if (!node->dst[i])
            continue;
        for (int64_t k = 0; k < copy[i].elems; k++)
            cvy_set(&copy[i], k, old);
        dst[i] = *cvy_eval_of(&b->e, node->dst[i]);
        dst[i].data = (char *)copy[i].data + GUARD * cvy_dtype_bytes(dst[i].dtype);
    }
    CVY_TRY(node->op->reference(node, src, dst));
    for (int i = 0; i < node->nsrc; i++)
        if (hash[i] != cvy_hash(src[i].data, (size_t)src[i].elems * cvy_dtype_bytes(src[i].dtype)))
            *why_out = "changes a tensor that it may only read";
    for (int i = 0; i < node->ndst; i++)
        for (int64_t k = 0; node->dst[i] && k < GUARD; k++)
            if (cvy_get(&copy[i], k) != old || cvy_get(&copy[i], copy[i].elems - 1 - k) != old)
                *why_out = "writes before or behind a result";
    return CVY_OK;
}

static cvy_status make_copies(const cvy_sample_graph *b, const cvy_node *node, cvy_span *copy)
{
    for (int i = 0; i < node->ndst; i++) {
        if (!node->dst[i])
            continue;
        copy[i] = *cvy_eval_of(&b->e, node->dst[i]);
        copy[i].elems += 2 * GUARD;
        copy[i].data = NULL;
        CVY_TRY(cvy_mem_alloc((size_t)copy[i].elems * cvy_dtype_bytes(copy[i].dtype), &copy[i].data));
    }
    return CVY_OK;
}

static int differ(const cvy_span *a, const cvy_span *b)
{
    const size_t bytes = cvy_dtype_bytes(a->dtype), skip = GUARD * bytes;
    return a->data &&
           memcmp((char *)a->data + skip, (char *)b->data + skip, (size_t)(a->elems - 2 * GUARD) * bytes) != 0;
}

/* Compares the results of two runs, which find different old values in their results. */
static cvy_status check_writes(check *c, const cvy_sample_graph *b, const cvy_node *node)
{
    cvy_span first[CVY_NODE_DST_MAX] = {{0}}, second[CVY_NODE_DST_MAX] = {{0}};
    const char *why = NULL;
    char text[200];
    cvy_status status = make_copies(b, node, first);
    if (status == CVY_OK)
        status = make_copies(b, node, second);
    if (status == CVY_OK)
        status = run_over(b, node, 3e33, first, &why);
    if (status == CVY_OK)
        status = run_over(b, node, -7e33, second, &why);
    for (int i = 0; i < node->ndst && status == CVY_OK && !why; i++)
        if (differ(&first[i], &second[i]))
            why = "does not write every element of a result, or gives another result on the second run";
    for (int i = 0; i < node->ndst; i++) {
        cvy_mem_free(&first[i].data);
        cvy_mem_free(&second[i].data);
    }
    if (why) {
        snprintf(text, sizeof text, "%s %s", node->op == &c->x->grad ? "backward" : "forward", why);
        note_graph_fault(c, b, text);
    }
    c->count++;
    return status;
}

static cvy_status check_results(check *c, const cvy_sample *sample)
{
    cvy_sample_graph b;
    cvy_status status = cvy_sample_open(&c->x->forward, sample, CVY_DTYPE_F64, 1, &b);
    for (int n = 0; status == CVY_OK && n < b.graph->nnode; n++)
        if (cvy_extension_op_of(b.graph->node[n]->op) == c->x)
            status = check_writes(c, &b, b.graph->node[n]);
    cvy_sample_close(&b);
    return status;
}

/* ---- f32 against f64 ---- */

/* Gives `wide` the rounded values of `narrow`, and computes it again. */
static cvy_status follow(const cvy_sample_graph *narrow, cvy_sample_graph *wide)
{
    for (int i = 0; i < wide->graph->nvalue; i++)
        for (int64_t k = 0; !wide->graph->value[i]->producer && k < wide->e.at[i].elems; k++)
            cvy_set(&wide->e.at[i], k, cvy_get(&narrow->e.at[i], k));
    return cvy_eval_run(&wide->e, 1);
}

static void compare_values(check *c, const cvy_sample_graph *narrow, const cvy_sample_graph *wide, const cvy_node *node)
{
    const double summands = (double)node->op->summands(node) + 8;
    for (int i = 0; i < node->ndst; i++) {
        if (!node->dst[i])
            continue;
        const cvy_span *x = &narrow->e.at[node->dst[i]->index], *y = &wide->e.at[node->dst[i]->index];
        double scale = 1, worst = 0;
        for (int64_t k = 0; k < y->elems; k++) {
            const double error = fabs(cvy_get(x, k) - cvy_get(y, k));
            scale = fmax(scale, fabs(cvy_get(y, k)));
            worst = isfinite(error) ? fmax(worst, error) : INFINITY;
        }
        c->count++;
        if (!(worst <= 4 * FLT_EPSILON * summands * scale)) {
            char text[200];
            snprintf(text, sizeof text, "%s is %.3g away from its value in f64, of numbers up to %.3g",
                     node->dst[i]->name, worst, scale);
            note_graph_fault(c, narrow, text);
        }
    }
}

static cvy_status check_f32(check *c, const cvy_sample *sample)
{
    cvy_sample_graph narrow, wide;
    cvy_status status = cvy_sample_open(&c->x->forward, sample, CVY_DTYPE_F32, 1, &narrow);
    const cvy_status other = cvy_sample_open(&c->x->forward, sample, CVY_DTYPE_F64, 1, &wide);
    status = status == CVY_OK ? other : status;
    if (status == CVY_OK)
        status = follow(&narrow, &wide);
    for (int n = 0; status == CVY_OK && n < wide.graph->nnode; n++)
        if (cvy_extension_op_of(wide.graph->node[n]->op) == c->x)
            compare_values(c, &narrow, &wide, wide.graph->node[n]);
    cvy_sample_close(&narrow);
    cvy_sample_close(&wide);
    return status;
}

/* ---- the other checks ---- */

static cvy_status check_shapes(check *c, const cvy_sample *sample)
{
    cvy_status status = CVY_OK;
    for (int training = 0; training < 2 && status == CVY_OK; training++) {
        cvy_sample_graph b;
        status = cvy_sample_open(&c->x->forward, sample, CVY_DTYPE_F64, training, &b);
        cvy_sample_close(&b);
    }
    c->count++;
    return status;
}

static cvy_status check_gradient(check *c, const cvy_sample *sample)
{
    cvy_sample_report report = {.complain = note_graph_fault, .user = c};
    cvy_sample_graph b;
    cvy_status status = cvy_sample_open(&c->x->forward, sample, CVY_DTYPE_F64, 1, &b);
    if (status == CVY_OK)
        status = cvy_sample_check_gradients(&b, &report);
    cvy_sample_close(&b);
    c->count += report.checks;
    return status;
}

static cvy_status check_splits(check *c, const cvy_sample *sample)
{
    cvy_split_report report = {.complain = note_fault, .tried = note_tried, .user = c};
    cvy_status status = CVY_OK;
    for (int training = 0; training < 2 && status == CVY_OK; training++)
        status = cvy_sample_check_splits(&c->x->forward, sample, training, &report);
    c->count += report.checks;
    return status;
}

static cvy_status check_cost(check *c, const cvy_sample *sample)
{
    cvy_sample_graph b;
    const cvy_status status = cvy_sample_open(&c->x->forward, sample, CVY_DTYPE_F64, 1, &b);
    for (int n = 0; status == CVY_OK && n < b.graph->nnode; n++) {
        const cvy_node *node = b.graph->node[n];
        if (cvy_extension_op_of(node->op) != c->x)
            continue;
        c->count++;
        if (cvy_node_cost(node).flop <= 0)
            note_graph_fault(c, &b,
                             node->op == &c->x->grad ? "backward_flop is not more than 0"
                                                     : "forward_flop is not more than 0");
    }
    cvy_sample_close(&b);
    return status;
}

/* ---- what cannot be seen from one sample ---- */

static const struct split_name {
    unsigned bit;
    const char *name;
} split_names[] = {
    {CVY_OPERATOR_SPLIT_SAMPLES, "samples"}, {CVY_OPERATOR_SPLIT_CHANNELS, "channels"},
    {CVY_OPERATOR_SPLIT_OUTPUTS, "outputs"}, {CVY_OPERATOR_SPLIT_INPUTS, "inputs"},
    {CVY_OPERATOR_SPLIT_SPACE, "space"},
};

static void list_splits(unsigned bits, char *text, size_t room)
{
    size_t n = 0;
    *text = 0;
    for (int i = 0; i < CVY_COUNT(split_names) && n < room; i++)
        if (bits & split_names[i].bit)
            n += (size_t)snprintf(text + n, room - n, "%s%s", n ? ", " : "", split_names[i].name);
}

static void end_splits(check *c)
{
    const unsigned declared = c->x->own.splits, missing = declared & ~c->tried;
    char names[80];
    if (*c->fault)
        return;
    list_splits(missing, names, sizeof names);
    if (!declared)
        snprintf(c->fault, sizeof c->fault,
                 "it has no split rule, so only one rank can train it: set splits, for example "
                 "CVY_OPERATOR_SPLIT_SAMPLES if each sample is computed by itself");
    else if (missing)
        snprintf(c->fault, sizeof c->fault,
                 "no sample tries the split along %s, which it declares: add a sample whose sources have at least two "
                 "elements along that axis%s",
                 names, missing & CVY_OPERATOR_SPLIT_OUTPUTS ? " (outputs: the option \"channels\")" : "");
}

static void end_gradient(check *c)
{
    if (!*c->fault && c->count == 0)
        snprintf(c->fault, sizeof c->fault,
                 "no sample is differentiated: add one without "
                 "CVY_OPERATOR_SAMPLE_NO_GRADIENT");
}

static void end_cost(check *c)
{
    if (!c->x->own.cost)
        snprintf(c->fault, sizeof c->fault,
                 "it has no cost function, by which convoy shares layers out to the stages of a pipeline: set cost");
}

/* ---- the driver ---- */

static const struct kind {
    const char *name;
    cvy_status (*run)(check *c, const cvy_sample *sample);
    void (*end)(check *c); /* may be NULL */
    const char *counted;
} kinds[] = {
    {"shapes", check_shapes, NULL, "samples"},
    {"results", check_results, NULL, "functions write all of their results and nothing else"},
    {"gradient", check_gradient, end_gradient, "derivatives agree with finite differences"},
    {"f32", check_f32, NULL, "results agree with f64"},
    {"splits", check_splits, end_splits, "layers in two parts are the whole: "},
    {"cost", check_cost, end_cost, "costs"},
};

static void say(const check *c, const char *verdict, const char *kind, const char *text)
{
    char line[900];
    snprintf(line, sizeof line, "%-7s %s: %s: %s", verdict, c->x->own.name, kind, text);
    if (c->opts->line) {
        CVY_CALLBACK();
        c->opts->line(c->opts->user, line);
    }
}

/* Returns 0 if the shapes are wrong: then nothing else can be tried. */
static int run_kind(check *c, const struct kind *kind)
{
    char text[200], names[80] = "";
    *c->fault = 0;
    c->count = 0;
    for (const cvy_sample *s = c->samples; s->src && !*c->fault; s++)
        if (kind->run(c, s) != CVY_OK)
            note_fault(c, &c->x->forward, s, cvy_error_text());
    if (kind->end)
        kind->end(c);
    c->result->checks++;
    c->result->failed += *c->fault != 0;
    if (kind->run == check_splits)
        list_splits(c->tried, names, sizeof names);
    snprintf(text, sizeof text, "%lld %s%s", (long long)c->count, kind->counted, names);
    say(c, *c->fault ? "FAILED" : "ok", kind->name, *c->fault ? c->fault : text);
    return !*c->fault || kind->run != check_shapes;
}

static int is_skipped(const check *c, const struct kind *kind)
{
    if (kind->run == check_gradient && !c->x->own.backward)
        say(c, "skipped", kind->name, "it has no backward function: nothing before such a layer can be trained");
    else if (kind->run == check_cost && !c->x->own.cost && !c->x->file->place)
        say(c, "skipped", kind->name, "it has no cost function");
    else
        return 0;
    return 1;
}

static void check_operator(check *c)
{
    c->result->operators++;
    if (!c->samples) {
        c->result->checks++;
        c->result->failed++;
        say(c, "FAILED", "samples", "it has no samples, so nothing can be tried: set samples");
        return;
    }
    for (int i = 0; i < CVY_COUNT(kinds); i++)
        if (!is_skipped(c, &kinds[i]) && !run_kind(c, &kinds[i]))
            return;
}

/* file NULL: the operators of the program. */
static int is_of(const cvy_extension_op *op, const cvy_extension_file *file)
{
    return file ? op->file == file : !op->file->place;
}

static cvy_status no_such_operator(const cvy_extensions *x, const cvy_extension_file *file, const char *name)
{
    cvy_text names = {0};
    for (int i = 0; i < x->nop; i++)
        if (is_of(x->op[i], file))
            cvy_text_add(&names, "%s%s", names.bytes ? ", " : "", x->op[i]->own.name);
    if (names.status == CVY_OK)
        cvy_error_set(CVY_E_ARGUMENT, "%s%s has no operator '%s'; it has %s", file ? "library " : "this program",
                      file ? file->path : "", name, names.bytes ? names.data : "none");
    const cvy_status status = names.status;
    cvy_text_free(&names);
    return status == CVY_OK ? CVY_E_ARGUMENT : status;
}

cvy_status cvy_run_check_operators(cvy_context *context, const char *path, const cvy_operators_opts *opts,
                                   cvy_operators_result *result_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(CONTEXT, context));
    const cvy_extension_file *file = NULL;
    cvy_operators_opts o;
    cvy_operators_result result = {.size = sizeof result};
    CVY_CHECK(result_out, CVY_E_ARGUMENT, "cvy_run_check_operators() needs a place for its result");
    CVY_TRY(CVY_OPTS_READ(cvy_operators_opts, opts, &o));
    CVY_TRY(CVY_RESULT_CHECK(cvy_operators_result, result_out));
    const cvy_extensions *x = &context->extensions;
    CVY_CHECK(o.sources || !o.values, CVY_E_ARGUMENT, "values need the shapes of their sources: set `sources`, too");
    if (path)
        CVY_TRY(cvy_extensions_load(&context->extensions, path, &file));
    for (int i = 0; i < x->nop; i++) {
        check c = {.x = x->op[i], .opts = &o, .result = &result, .samples = x->op[i]->forward.samples};
        cvy_sample given[2] = {{0}};
        if (!is_of(x->op[i], file) || (o.only && strcmp(o.only, x->op[i]->own.name) != 0))
            continue;
        if (o.sources) {
            CVY_TRY(cvy_extension_read_sample(&x->op[i]->own, &(cvy_operator_sample){.src = o.sources}, 0, given));
            given->values = o.values;
            c.samples = given;
        }
        check_operator(&c);
    }
    if (o.only && result.operators == 0)
        return no_such_operator(x, file, o.only);
    cvy_result_write(result_out, &result, sizeof result);
    return CVY_OK;
}
