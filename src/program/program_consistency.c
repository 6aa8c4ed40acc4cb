/*
 * program_consistency.c: checks before planning that all ranks have the same options and tasks, because planning itself
 * exchanges messages; and after it that all ranks have the same weights in the same layouts, and make the same
 * reductions in the same order. Otherwise they would wait for each other for ever, or add tensors that do
 * not belong together. Reasons are ranks with different models or options, or nodes with different processors, which
 * choose different kernels.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "base/base_hash.h"
#include "base/base_mem.h"
#include "kernel/kernel_library.h"
#include "op/comm/op_reduce.h"
#include "program/program_impl.h"
#include "program/program_options.h"

/* ---- before planning: options and tasks ---- */

static void describe_tree(const char *name, const cvy_tree *tree, cvy_text *t)
{
    char *line = NULL;
    const cvy_status status = tree ? cvy_tree_print_line(tree, &line) : CVY_OK;
    if (t->status == CVY_OK)
        t->status = status;
    cvy_text_add(t, "%s %s\n", name, line ? line : "missing");
    cvy_mem_free(&line);
}

/* Ranks measure together what no earlier plan has decided, so all of them need the same plan. The trees are long, so
 * their checksums are compared. */
static void describe_plan(const cvy_program *p, cvy_text *t)
{
    const cvy_tree *const tree[] = {p->kernel.choices, p->reduce.saved, p->pipeline.saved};
    cvy_text all = {0};
    int is_given = 0;
    for (int i = 0; i < CVY_COUNT(tree); i++) {
        describe_tree("", tree[i], &all);
        is_given |= tree[i] != NULL;
    }
    if (t->status == CVY_OK)
        t->status = all.status;
    if (is_given)
        cvy_text_add(t, "a plan_file with the checksum %016llx\n", (unsigned long long)cvy_hash(all.data, all.bytes));
    else
        cvy_text_add(t, "no plan_file\n");
    cvy_text_free(&all);
}

static void describe_training(const cvy_program_task *s, int i, cvy_text *t)
{
    const cvy_optimise_opts *o = &s->train.optimise;
    char name[80];
    snprintf(name, sizeof name, "in task %d the optimiser %s with the options", i, o->op);
    describe_tree(name, o->options, t);
    cvy_text_add(t,
                 "weight_decay %.17g, clip_norm %.17g, clip_value %.17g, clip_weights %.17g and l1 %.17g in task %d\n",
                 o->weight_decay, o->clip_norm, o->clip_value, o->clip_weights, o->l1, i);
    cvy_text_add(t, "trains '%s' in task %d\n", s->train.trains ? s->train.trains : "", i);
    for (int k = 0; k < s->nloss; k++)
        cvy_text_add(t, "the loss %s in task %d\n", s->loss[k].name, i);
    for (int k = 0; k < s->train.ngroup; k++) {
        const cvy_training_group *g = &s->train.group[k];
        cvy_text_add(t, "the group '%s' with lr_mult %.17g, decay_mult %.17g, no_decay %d and frozen %d in task %d\n",
                     g->match, g->lr_mult, g->decay_mult, g->no_decay != 0, g->frozen != 0, i);
    }
}

static cvy_status options_differ(int line, const char *here, const char *there)
{
    (void)line;
    return cvy_error_set(CVY_E_DISAGREE,
                         "this rank's program has %s where rank 0's has %s: all ranks need the same options and tasks",
                         here ? here : "nothing more", there ? there : "nothing more");
}

cvy_status cvy_program_compare_options(const cvy_program *p)
{
    cvy_text mine = {0};
    cvy_program_opts_describe(&p->opts, &mine);
    describe_plan(p, &mine);
    for (int i = 0; i < p->ntask; i++) {
        const cvy_program_task *s = p->task[i];
        cvy_text_add(&mine, "as task %d %s with a batch of %lld samples in %lld parts\n", i,
                     s->training ? "training" : "a forward task", (long long)s->batch, (long long)s->accumulate);
        if (s->training)
            describe_training(s, i, &mine);
    }
    const cvy_status status = cvy_comm_compare(p->context->comm, &mine, options_differ);
    cvy_text_free(&mine);
    return status;
}

/* ---- after planning ---- */

static void describe_weights(const cvy_program *p, cvy_text *t)
{
    for (int i = 0; i < p->vars->count; i++) {
        const cvy_variable *v = p->vars->at[i];
        cvy_text_add(t, "%s, %s of %s laid out as %s\n", v->name, cvy_shape_text(&v->shape), cvy_dtype_text(v->dtype),
                     v->layout.tag[0] ? v->layout.tag : "plain");
    }
}

/* Whether it adds over the ranks of the data axis. Those of other axes have other parts of layers or samples. */
static int is_over_data(const cvy_instr *instr)
{
    const cvy_op_comm *comm = cvy_instr_comm(instr);
    return comm && comm->exchange != CVY_EXCHANGE_BUCKET && comm->exchange != CVY_EXCHANGE_MESSAGE &&
           cvy_node_comm_axis(instr->call->node) == CVY_COMM_DATA;
}

/* In deterministic training, a rank with other shards has other micro-batches, and its blocking reductions follow the
 * shards. They are not compared; all other reductions are the same on all ranks. */
static void describe_sums(const cvy_program *p, int task, cvy_text *t)
{
    const cvy_plan *plan = p->task[task]->plan;
    for (int i = 0; i < plan->ninstr; i++) {
        const cvy_instr *instr = &plan->instr[i];
        const int bucket_started = cvy_instr_starts_bucket(instr);
        if (is_over_data(instr) && !plan->opts.deterministic) {
            const cvy_instance *instance = &plan->lowered[instr->micro]->instance[instr->call->dst[0]];
            cvy_text_add(t, "the sum of %s over ranks in step %d, %lld of %s\n", instance->value->name, task,
                         (long long)instance->elems, cvy_dtype_text(instance->dtype));
        }
        if (bucket_started >= 0) {
            const cvy_bucket *bucket = &plan->buckets->bucket[bucket_started];
            cvy_text_add(t, "the sum of a bucket of gradients in step %d, %zu bytes of %s\n", task, bucket->bytes,
                         cvy_dtype_text(bucket->dtype));
        }
    }
}

/* The gradients of a bucket are summed as one range, so each must have the same place in it. A variable has one
 * gradient. */
static cvy_status describe_gradients(const cvy_program *p, int task, cvy_text *t)
{
    const cvy_plan *plan = p->task[task]->plan;
    const cvy_buffer **of_variable = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *of_variable * ((size_t)p->vars->count + 1), &of_variable));
    for (int i = 0; i < plan->nbuffer; i++) {
        const cvy_buffer *b = &plan->buffer[i];
        if (b->region == CVY_REGION_STEP && b->bucket >= 0 && b->value->variable)
            of_variable[b->value->variable->index] = b;
    }
    for (int v = 0; v < p->vars->count; v++)
        if (of_variable[v])
            cvy_text_add(t, "the gradient of %s at byte %zu of the sums of step %d\n", p->vars->at[v]->name,
                         of_variable[v]->offset, task);
    cvy_mem_free(&of_variable);
    return CVY_OK;
}

static cvy_status differ(int line, const char *here, const char *there)
{
    char library[80];
    CVY_CHECK(line > 0, CVY_E_DISAGREE, "this is libconvoy %s, but that of rank 0 is %s", here, there);
    cvy_kernel_libraries_about(NULL, library, sizeof library);
    return cvy_error_set(
        CVY_E_DISAGREE,
        "this rank's plan has %s where rank 0's has %s: all ranks need the same model and options, "
        "and processors that support the same kernels (here: %s; opts.kernels: native needs fewer instruction sets)",
        here ? here : "nothing more", there ? there : "nothing more", library);
}

cvy_status cvy_program_check_consistency(const cvy_program *p)
{
    cvy_text mine = {0};
    if (p->grid.data->nranks == 1)
        return CVY_OK;
    cvy_text_add(&mine, "%s\n", cvy_version());
    describe_weights(p, &mine);
    for (int i = 0; i < p->ntask; i++) {
        describe_sums(p, i, &mine);
        const cvy_status described = describe_gradients(p, i, &mine);
        mine.status = mine.status == CVY_OK ? described : mine.status;
    }
    const cvy_status status = cvy_comm_compare(p->grid.data, &mine, differ);
    cvy_text_free(&mine);
    return status;
}
