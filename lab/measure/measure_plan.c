/*
 * measure_plan.c: cvy_run_plan() and cvy_run_bench_plan(): show what a job would do, without running it: layers,
 * shapes, parameters, flop, kernels, and memory to the byte.
 *
 * They make and plan the program with all its tasks, as cvy_run_train() or cvy_run_bench() does. But no tensor memory
 * is allocated, and no weights are filled in.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_handle.h"
#include "context/context_device.h"
#include "measure/measure_bench.h"
#include "session/session_output.h"
#include "train/trainer.h"

/* ---- numbers ---- */

struct number {
    char text[32];
};

/* 1234567 gives "1,234,567". */
static struct number with_commas(int64_t x)
{
    struct number n;
    char digits[32];
    const int length = snprintf(digits, sizeof digits, "%lld", (long long)x);
    int at = 0;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            n.text[at++] = ',';
        n.text[at++] = digits[i];
    }
    n.text[at] = '\0';
    return n;
}

/* 1234567 gives "1.23 M". */
static struct number short_count(double x)
{
    static const char *const unit[] = {"", " k", " M", " G", " T", " P"};
    struct number n = {""};
    int i = 0;
    for (; x >= 999.5 && i + 1 < CVY_COUNT(unit); i++)
        x /= 1000;
    if (x > 0)
        snprintf(n.text, sizeof n.text, "%.*f%s", i == 0 || x >= 99.95 ? 0 : x >= 9.995 ? 1 : 2, x, unit[i]);
    return n;
}

/* ---- layers ---- */

/* Computes the backward flop for each forward call. All backward flop of a layer is counted at the layer's first
 * forward call. */
static cvy_status backward_flop(const cvy_lowered *u, double **flop_out)
{
    cvy_index first = {0};
    cvy_status status = CVY_OK;
    double *flop = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *flop * (size_t)(u->ncall + 1), &flop));
    for (int i = 0; i < u->ncall && status == CVY_OK; i++)
        if (u->call[i].node && !u->call[i].node->backward)
            status = cvy_index_add(&first, u->call[i].node->layer, i);
    for (int i = 0; i < u->ncall; i++) {
        const int at =
            u->call[i].node && u->call[i].node->backward ? cvy_index_find(&first, u->call[i].node->layer) : -1;
        if (at >= 0)
            flop[at] += (double)cvy_node_cost(u->call[i].node).flop;
    }
    cvy_index_free(&first);
    *flop_out = flop;
    return status;
}

static int64_t node_params(const cvy_node *node)
{
    int64_t params = 0;
    for (int i = 0; i < node->nsrc; i++)
        if (node->src[i]->kind == CVY_VALUE_VARIABLE && node->src[i]->variable->role == CVY_ROLE_WEIGHT)
            params += cvy_shape_elems(&node->src[i]->shape);
    return params;
}

static const char *call_kernel(const cvy_call *call)
{
    const cvy_kernel_def *kernel = cvy_call_kernel(call);
    return kernel                     ? kernel->name
           : cvy_call_is_staged(call) ? "(host)"
           : cvy_call_runs_node(call) ? "reference"
           : cvy_call_is_view(call)   ? "(view)"
           : call->node->op->comm     ? "comm"
                                      : "(no samples)";
}

/* Whether a call is a forward node of the model. */
static int has_line(const cvy_call *call)
{
    const cvy_node *node = call->node;
    return node && node->phase == CVY_PHASE_MICRO && !node->backward &&
           !(node->op->flags & CVY_OP_COMM && node->op->flags & CVY_OP_HIDDEN);
}

/* The width of the column of names: that of the longest one, and at least 20. */
static int name_width(const cvy_lowered *u)
{
    int width = 20;
    for (int i = 0; i < u->ncall; i++)
        if (has_line(&u->call[i]))
            width = CVY_MAX(width, (int)strlen(u->call[i].node->name));
    return width;
}

static void add_layer(const cvy_lowered *u, int i, double backward, int width, cvy_text *t)
{
    const cvy_call *call = &u->call[i];
    const cvy_node *node = call->node;
    const int64_t params = node_params(node);
    const char *layout = call->dst[0] >= 0 ? u->instance[call->dst[0]].layout.tag : "";
    cvy_text_add(t, "%-*s %-22s %-18s %12s %9s %9s  %-24s %s\n", width, node->name, node->op->name,
                 node->dst[0] ? cvy_shape_text(&node->dst[0]->shape) : "", params ? with_commas(params).text : "",
                 cvy_call_is_view(call) ? "" : short_count((double)cvy_node_cost(node).flop).text,
                 short_count(backward).text, call_kernel(call), *layout ? layout : "plain");
}

struct totals {
    double forward, backward, update;
    int64_t params;
};

/* Adds a line for each forward node. Nodes without a line are in the totals. */
static struct totals add_layers(const cvy_lowered *u, cvy_text *t)
{
    struct totals sum = {0};
    double *backward = NULL;
    if ((t->status = backward_flop(u, &backward)) != CVY_OK)
        return sum;
    const int width = name_width(u);
    cvy_text_add(t, "%-*s %-22s %-18s %12s %9s %9s  %-24s %s\n", width, "layer", "operator", "output", "params",
                 "flop fwd", "flop bwd", "kernel", "layout");
    for (int i = 0; i < u->ncall; i++) {
        const cvy_node *node = u->call[i].node;
        const double flop = node && !cvy_call_is_view(&u->call[i]) ? (double)cvy_node_cost(node).flop : 0;
        if (!node)
            continue;
        if (node->phase == CVY_PHASE_UPDATE)
            sum.update += flop;
        else if (node->backward)
            sum.backward += flop;
        else
            sum.forward += flop;
        if (has_line(&u->call[i]))
            add_layer(u, i, backward[i], width, t);
    }
    cvy_mem_free(&backward);
    const cvy_vars *vars = u->graph->vars;
    for (int i = 0; i < vars->count; i++)
        sum.params += vars->at[i]->role == CVY_ROLE_WEIGHT ? cvy_shape_elems(&vars->at[i]->shape) : 0;
    cvy_text_add(t, "%-*s %-22s %-18s %12s %9s %9s  update %s\n", width, "total", "", "", with_commas(sum.params).text,
                 short_count(sum.forward).text, short_count(sum.backward).text, short_count(sum.update).text);
    return sum;
}

/* ---- memory ---- */

static void add_bytes(cvy_text *t, const char *what, int64_t bytes)
{
    cvy_text_add(t, "  %-44s %16s\n", what, with_commas(bytes).text);
}

/* What is left on the device when all its ranks have their memory. */
static void add_device(const cvy_context *c, int64_t total, cvy_text *t)
{
    cvy_device device;
    cvy_space_about(&c->space, &device);
    const int64_t free = device.bytes_left >= 0 ? device.bytes_left : device.bytes;
    cvy_text_add(t, "device %s: %s\n", c->device, cvy_device_title_of(&device).text);
    if (free < 0)
        return;
    add_bytes(t, device.bytes_left >= 0 ? "free on the device now" : "memory of the device", free);
    if (c->device_ranks > 1)
        add_bytes(t, "total of all ranks that compute on it", c->device_ranks * total);
    add_bytes(t, "left on the device", free - CVY_MAX(c->device_ranks, 1) * total);
}

/* The operators that the host computes. */
static void add_staged(const cvy_program *p, const int *turn, int nturn, cvy_text *t)
{
    const cvy_context *c = cvy_program_context(p);
    cvy_text names = {0};
    int all = 0;
    if (cvy_space_is_host(&c->space))
        return;
    const int n = cvy_program_name_staged(p, turn, nturn, &names, &all);
    cvy_text_add(t, "\n%d of %d calls of kernels are staged: the host computes them on copies of tensors%s%s\n", n, all,
                 n ? ": " : "", names.data ? names.data : "");
    cvy_text_free(&names);
}

static void add_records(const cvy_program *p, const int *turn, int nturn, cvy_text *t)
{
    int instr = 0, all = 0;
    const int n = cvy_program_count_records(p, turn, nturn, &instr, &all);
    if (n > 0)
        cvy_text_add(t, "%d of %d instructions of a step can be recorded, in %d recording%s\n", instr, all, n,
                     n == 1 ? "" : "s");
}

/* turn: the trainings of a step; they run one after the other in the same memory. */
static void add_memory(const cvy_program *p, const int *turn, int nturn, cvy_text *t)
{
    const cvy_memory_use use = cvy_program_memory_use(p, turn, nturn);
    const cvy_context *c = cvy_program_context(p);
    const int on_device = !cvy_space_is_host(&c->space);
    cvy_text_add(t, "\nmemory of this rank%s%s, bytes\n", on_device ? " on " : "", on_device ? c->device : "");
    add_bytes(t, "arena: activations and gradients of a step", use.arena);
    add_bytes(t, "  of it gradients and losses", use.head);
    if (on_device)
        add_bytes(t, "  of it workspace of the kernel that needs most", use.workspace);
    add_bytes(t, "weights", use.weights);
    if (use.copies)
        add_bytes(t, "copies of weights in bf16", use.copies);
    add_bytes(t, "running statistics", use.statistics);
    add_bytes(t, use.state_parts > 1 ? "optimiser's state: this rank's part" : "optimiser's state", use.states);
    add_bytes(t, "feeds: inputs and targets", use.feeds);
    if (use.recomputed)
        cvy_text_add(
            t, "  to stay within plan.memory_limit, backward recomputes %d values: %s more flop for each micro-batch\n",
            use.recomputed->nodes, short_count((double)use.recomputed->flop).text);
    add_bytes(t, "total", use.total);
    cvy_text_add(t, "  (%.1f MiB; besides these the libraries' own memory, and rows that are read ahead)\n",
                 (double)use.total / 1048576);
    if (on_device)
        add_device(c, use.total, t);
}

/* ---- the table ---- */

static void add_network(const cvy_session *s, const cvy_dataset_info *data, const char *samples, cvy_text *t)
{
    cvy_text_add(t, "network %s, %s, on %s of %s", s->model->name,
                 cvy_dtype_text(cvy_program_options(s->program)->dtype), samples,
                 cvy_shape_text(&data->field[0].shape));
    if (data->nclasses)
        cvy_text_add(t, ", %lld classes", (long long)data->nclasses);
    cvy_text_add(t, "\n");
    cvy_model_describe_output(s->model, t);
}

static void add_batch(const cvy_session *s, int64_t batch, const cvy_plan *plan, cvy_text *t)
{
    const int nranks = cvy_program_nworkers(s->program), all = s->context->comm->nranks, nservers = all - nranks;
    cvy_text_add(t, "\nbatch %lld over %d rank%s", (long long)batch, nranks, nranks > 1 ? "s" : "");
    if (cvy_grid_is_used(cvy_program_grid(s->program)))
        cvy_text_add(t, " of the data axis of %d ranks", all);
    else if (nservers > 0)
        cvy_text_add(t, ", whose weights %d other%s hold%s", nservers, nservers > 1 ? "s" : "",
                     nservers > 1 ? "" : "s");
    cvy_text_add(t, ": %lld rows on this rank, %d micro-batch%s; %d thread%s a rank\n", (long long)plan->rows,
                 plan->nmicro, plan->nmicro > 1 ? "es" : "", s->context->threads, s->context->threads > 1 ? "s" : "");
}

/* The lines about the samples that are set aside. */
static void add_split(const cvy_session *s, cvy_text *t)
{
    static const char key[] = "data.val: ";
    for (const char *at = s->notes.data; at && *at;) {
        const size_t n = strcspn(at, "\n");
        if (strncmp(at, key, sizeof key - 1) == 0)
            cvy_text_add(t, "\n%.*s", (int)n, at);
        at += n + (at[n] == '\n');
    }
}

/* The network of a job, on the samples of its data. */
static void add_job(const cvy_session *s, int64_t batch, const cvy_plan *plan, cvy_text *t)
{
    const cvy_dataset_info *data = cvy_dataset_describe(s->train);
    const cvy_label samples = cvy_labelf("%s: %s samples", data->path && *data->path ? data->path : data->format,
                                         with_commas(data->nsamples).text);
    add_network(s, data, samples.text, t);
    add_split(s, t);
    add_batch(s, batch, plan, t);
}

static void add_run(const cvy_trainer *tr, const cvy_plan *plan, cvy_text *t)
{
    const cvy_session *s = &tr->session;
    add_job(s, tr->order.batch, plan, t);
    cvy_program_describe_update(s->program, tr->task.full, t);
    cvy_program_describe_grid(s->program, tr->task.full, t);
    cvy_text_add(t, "%lld steps an epoch, %lld in all (%g epochs); optimiser %s, %d bucket%s of gradients%s\n\n",
                 (long long)tr->order.steps_per_epoch, (long long)tr->order.last_step, tr->epochs,
                 s->job->train.optimizer, plan->buckets->n, plan->buckets->n == 1 ? "" : "s",
                 tr->task.nturn > 1 ? " in the first turn" : "");
}

static void add_prediction(const cvy_program *p, int step, cvy_text *t)
{
    cvy_prediction time;
    if (cvy_program_predict(p, step, &time) != CVY_OK)
        cvy_text_add(t, "the step's time is not known: nothing was measured here yet; use --planning measure\n");
    else if (time.nunknown > 0)
        cvy_text_add(t,
                     "the step's time is not known: %d of %d calls were never measured here; use --planning measure\n",
                     time.nunknown, time.ncall);
    else
        cvy_text_add(t,
                     "%.4g ms a step predicted, %.4g samples/s on this rank: the sum of %d measured times, without "
                     "communication and input\n",
                     time.ms, 1e3 * (double)cvy_program_rows(p, step) / time.ms, time.ncall);
}

/* Lists all tasks of the run; they use the same arena. */
static void add_steps(const cvy_program *p, cvy_text *t)
{
    cvy_text_add(t, "\nsteps, all in one arena\n");
    for (int i = 0; i < cvy_program_ntasks(p); i++) {
        const cvy_task_about task = cvy_program_about(p, i);
        const cvy_plan *plan = cvy_program_task_plan(p, i);
        cvy_text_add(t, "  %-10s batch %-6lld %4d instructions %18s bytes%s%s\n", task.kind, (long long)task.batch,
                     plan->ninstr, with_commas((int64_t)plan->arena_bytes).text, task.label ? "  " : "",
                     task.label ? task.label : "");
    }
}

/* What a training trains, if a step takes several. */
static void add_turn(const cvy_task_about *task, cvy_text *t)
{
    if (task->label)
        cvy_text_add(t, "%s: trains %s by %s\n", task->label, task->trains ? task->trains : "all weights",
                     task->optimizer);
}

/* The layers of a task, with the work for a sample and the time. Returns this work in flop. */
static double add_task(const cvy_program *p, int step, cvy_text *t)
{
    const cvy_task_about task = cvy_program_about(p, step);
    const cvy_plan *plan = cvy_program_task_plan(p, step);
    add_turn(&task, t);
    const struct totals sum = add_layers(plan->lowered[plan->nmicro - 1], t);
    const double samples = (double)plan->rows / plan->nmicro, flop = sum.forward + sum.backward;
    if (plan->rows > 0)
        cvy_text_add(t, "\n%s flop a sample and %s step (%s forward)\n", short_count(flop / samples).text, task.kind,
                     short_count(sum.forward / samples).text);
    add_prediction(p, step, t);
    return plan->rows > 0 ? flop / samples : 0;
}

/* Adds everything after the head of the table; `t` has the head already. turn: the tasks of a step. summary: the memory
 * only. */
static cvy_status print_table(const cvy_program *p, const int *turn, int nturn, int summary, cvy_text *t,
                              char **text_out)
{
    double flop = 0;
    for (int k = 0; k < nturn && !summary; k++) {
        cvy_text_add(t, "%s", k ? "\n" : "");
        flop += add_task(p, turn[k], t);
    }
    if (nturn > 1 && !summary)
        cvy_text_add(t, "\n%s flop a sample in a step that takes all turns\n", short_count(flop).text);
    if (!summary)
        add_steps(p, t);
    add_staged(p, turn, nturn, t);
    add_records(p, turn, nturn, t);
    add_memory(p, turn, nturn, t);
    *text_out = t->data;
    return t->status;
}

/* The graphs or candidates of all turns, one after the other. */
static cvy_status print_each(const cvy_program *p, const int *turn, int nturn, const char *how, char **text_out)
{
    cvy_text all = {0};
    cvy_status status = CVY_OK;
    for (int k = 0; k < nturn && status == CVY_OK; k++) {
        const char *label = cvy_program_about(p, turn[k]).label;
        char *text = NULL;
        status = cvy_program_print(p, turn[k], how, &text);
        if (label)
            cvy_text_add(&all, "%s%s\n", strcmp(how, "dot") == 0 ? "// " : "", label);
        cvy_text_add(&all, "%s", text ? text : "");
        cvy_mem_free(&text);
    }
    if (status == CVY_OK)
        status = all.status;
    if (status == CVY_OK)
        *text_out = all.data;
    else
        cvy_text_free(&all);
    return status;
}

static cvy_status print(cvy_program *p, const int *turn, int nturn, const char *how, cvy_text *head, char **text_out)
{
    cvy_status status = CVY_OK;
    for (int k = 0; k < nturn && status == CVY_OK; k++)
        status = cvy_program_price_task(p, turn[k]);
    const int is_summary = strcmp(how, "summary") == 0;
    if (is_summary && head->bytes)
        head->data[--head->bytes] = '\0'; /* the blank line before the layers */
    if (status == CVY_OK && (is_summary || strcmp(how, "table") == 0))
        return print_table(p, turn, nturn, is_summary, head, text_out);
    cvy_text_free(head);
    CVY_TRY(status);
    return strcmp(how, "json") == 0 ? cvy_program_print(p, turn[0], how, text_out)
                                    : print_each(p, turn, nturn, how, text_out);
}

/* ---- the plan of a job ---- */

/* Sets *task_out to the forward pass of a network that has no loss, on data without a target; -1: it is to be trained,
 * and there is no program yet. */
static cvy_status plan_forward(cvy_session *s, const char *plan_file, int64_t *batch_out, int *task_out)
{
    cvy_program_opts opts;
    *task_out = -1;
    CVY_TRY(cvy_job_model(s->job, s->context, cvy_dataset_describe(s->train), CVY_LOSSES_IF_TARGET, &s->model));
    if (cvy_model_has_loss(s->model)) {
        cvy_model_destroy(&s->model);
        return CVY_OK;
    }
    opts = cvy_job_program_opts(s->job, plan_file);
    CVY_TRY(cvy_job_translate(cvy_program_create(s->context, &opts, &s->program)));
    CVY_TRY(cvy_job_batch(s->job, s->context->comm->nranks, batch_out));
    return cvy_job_translate(cvy_job_add_forward(s->job->file, s->model, *batch_out, s->program, task_out));
}

/* *forward_out: the task of plan_forward(), for a batch of *batch_out. */
static cvy_status plan(cvy_trainer *t, const char *plan_file, int64_t *batch_out, int *forward_out)
{
    cvy_session *s = &t->session;
    cvy_comm *comm = s->context->comm;
    CVY_TRY(cvy_session_open_training_data(s, 0));
    CVY_TRY(cvy_session_compare(s));
    CVY_TRY(cvy_comm_agree(comm, plan_forward(s, plan_file, batch_out, forward_out)));
    if (*forward_out < 0) {
        CVY_TRY(cvy_trainer_choose_grid(t));
        CVY_TRY(cvy_comm_agree(comm, cvy_trainer_make_program(t, plan_file)));
    }
    CVY_TRY(cvy_job_translate(cvy_program_prepare(s->program)));
    return *forward_out < 0 ? cvy_trainer_check(t) : CVY_OK;
}

cvy_status cvy_run_plan(cvy_context *context, const cvy_job_source *job, const char *plan_file, const char *how,
                        char **text_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(CONTEXT, context));
    cvy_trainer t = {0};
    int64_t batch = 0;
    int forward = -1;
    *text_out = NULL;
    cvy_status status = cvy_session_open_job(context, job, &t.session);
    if (status == CVY_OK)
        status = plan(&t, plan_file, &batch, &forward);
    if (status == CVY_OK && context->comm->rank == 0) {
        cvy_text head = {0};
        int turn[CVY_TASKS_MAX] = {forward};
        for (int k = 0; k < t.task.nturn; k++)
            turn[k] = t.task.turn[k].full;
        if (forward < 0) {
            add_run(&t, cvy_program_task_plan(t.session.program, t.task.full), &head);
        } else {
            add_job(&t.session, batch, cvy_program_task_plan(t.session.program, forward), &head);
            cvy_text_add(&head, "\n");
        }
        status = print(t.session.program, turn, forward < 0 ? t.task.nturn : 1, how, &head, text_out);
    }
    status = cvy_comm_agree(context->comm, status);
    cvy_schedule_destroy(&t.schedule);
    cvy_session_close(&t.session);
    return status;
}

/* ---- the plan of a network on synthetic data ---- */

static cvy_status plan_bench(cvy_bench *b)
{
    CVY_TRY(cvy_bench_choose_grid(b));
    CVY_TRY(cvy_comm_agree(b->session.context->comm, cvy_bench_make_program(b, NULL, NULL)));
    return cvy_job_translate(cvy_program_prepare(b->session.program));
}

cvy_status cvy_run_bench_plan(cvy_context *context, const cvy_bench_opts *opts, const char *how, char **text_out)
{
    CVY_ENTRY();
    CVY_TRY(CVY_LIVE(CONTEXT, context));
    cvy_bench b;
    *text_out = NULL;
    cvy_status status = cvy_bench_open(context, opts, &b);
    if (status == CVY_OK)
        status = plan_bench(&b);
    if (status == CVY_OK && context->comm->rank == 0) {
        cvy_text head = {0};
        add_network(&b.session, &b.data, "synthetic samples", &head);
        add_batch(&b.session, b.batch, cvy_program_task_plan(b.session.program, b.number), &head);
        cvy_program_describe_update(b.session.program, b.number, &head);
        cvy_program_describe_grid(b.session.program, b.number, &head);
        cvy_text_add(&head, "\n");
        status = print(b.session.program, &b.number, 1, how, &head, text_out);
    }
    status = cvy_comm_agree(context->comm, status);
    cvy_bench_close(&b);
    return status;
}
