/*
 * program_options.c: the table of a program's options (program_options.h), and cvy_program_opts_set().
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "program/program_options.h"

#include <stdio.h>
#include <string.h>

#include "base/base_entry.h"
#include "base/base_opts.h"
#include "base/text/base_text.h"
#include "comm/comm_allreduce.h"
#include "kernel/kernel_library.h"
#include "pass/pass.h"

enum { SHARDS_DEFAULT = 8 };

/* ---- the table ---- */

static cvy_status check_kernels(const char *value)
{
    cvy_kernels kernels;
    return cvy_kernels_parse(value, &kernels);
}

static cvy_status check_progress(const char *value)
{
    cvy_progress_by progress;
    return cvy_progress_parse(value, &progress);
}

#define OPTION(section_, key, type, field_, fallback, valid, unit, help)                                               \
    .section = section_, .field = #field_,                                                                             \
    .row = {key, CVY_TYPE_##type, offsetof(cvy_program_opts, field_), fallback, valid, unit, help}

/* The rows of a section stand in the order of the page of keys. An INT row writes the bits of the unsigned seed. A
 * CHOICE row writes the place of the word, which therefore is the value of an enum, or of the field that is named. */
const cvy_program_option cvy_program_option_table[] = {
    {OPTION("", "deterministic_shards", INT, shards, "8", "2^n 1..4096", "",
            "with deterministic, the number of parts in which a step is computed on any number of ranks: a power of "
            "two, at least the number of ranks; another number gives other bits")},

    {OPTION("update", "mode", CHOICE, update_mode, "sync", "sync|delayed|local|parameter_server|zero1", "",
            "how ranks update the weights")},
    {OPTION("update", "servers", INT, update_servers, "1", "1..", "ranks",
            "number of ranks that hold the weights and do not train: the last ranks; at least one rank must train")},
    {OPTION("update", "staleness", INT, update_staleness, "0", "none=-1 0..", "steps",
            "steps that a worker may be ahead of the slowest: 0: workers wait for each other in every step; none: no "
            "limit")},

    {OPTION("train", "seed", INT, seed, "1", "0..", "", "seed of all random numbers"), .any_bits = 1},
    {OPTION("train", "dtype", DTYPE, dtype, "f32", "f32|f64|bf16", "",
            "type of activations; bf16 keeps weights, sums and statistics in f32, and is faster than f32 with AMX or "
            "AVX512_BF16; other CPUs compute in f32, so it saves memory but little time; f64 is slow and for checks")},
    {OPTION("train", "precise", BOOL, precise, "false", "", "",
            "use no algorithm that rounds more than a plain sum does: no Winograd convolutions")},

    {OPTION("batch_norm", "group", INT, batch_norm_group, "32", "batch=-2 rank=-1 shard=-3 1..", "samples",
            "samples that share their statistics: at most this number; batch, the whole global batch; rank (results "
            "then depend on the number of ranks); or, with deterministic, shard, which is the default there; samples "
            "of weight 0 do not count")},
    {OPTION("batch_norm", "frozen", NAMES, batch_norm_frozen, "", "true=*|false=", "",
            "layers that normalise by their running statistics in training too, and do not change them: true for all, "
            "or patterns of layer names, such as [block1_*, conv1_bn]; their scales and shifts are trained unless "
            "train.groups freezes them")},

    {OPTION("plan", "passes_off", NAMES, passes_off, "", "all", "", "list of optimising passes to turn off, or all"),
     .check = cvy_passes_check},
    {OPTION(
         "plan", "kernels", STRING, kernels, "auto", "", "",
         "which kernels may be used: auto (all), direct (all except Winograd), native (convoy's own), onednn "
         "(oneDNN's), both in order of preference (onednn, native), gpu (convoy's own on a device), cudnn (NVIDIA's on "
         "a device of CUDA), or reference (the operators' own, which also "
         "run what the chosen ones cannot); clock (for `convoy bench`): a step only waits for the measured times of "
         "its kernels"),
     .check = check_kernels},
    {OPTION(
        "plan", "tf32", INT, tf32, "false", "true=1 false=0", "",
        "on a device of CUDA, cuDNN may round f32 factors to TF32 and multiply them on tensor cores; sums stay f32; "
        "not with train.precise")},
    {OPTION("plan", "clock_scale", REAL, clock_scale, "1", ">0", "", "with kernels: clock, a factor on all times"),
     .may_differ = 1},
    {OPTION("plan", "clock_noise", REAL, clock_noise, "0", "0.. <1", "",
            "with kernels: clock, how much the times of a step vary by rank and step: the standard deviation as a "
            "share, such as 0.005"),
     .may_differ = 1},
    {OPTION("plan", "planning", WORD, planning, "estimate", "estimate|measure|patient", "",
            "how a kernel is chosen for each node: by preference and known times, by timing the plausible ones, or by "
            "timing all")},
    {OPTION("plan", "wisdom", STRING, wisdom, "", "", "",
            "file of measured times, or off; by default that of the environment's CONVOY_WISDOM, otherwise one for "
            "this machine in ~/.cache/convoy"),
     .may_differ = 1},
    {OPTION("plan", "memory_limit", INT, memory_limit, "0", "0..", "bytes",
            "tensor memory that a rank may use, such as 8 GiB; a plan that needs more recomputes values in the "
            "backward pass, with as little work as it takes; 0 is no limit")},

    {OPTION("comm", "bucket", INT, bucket_bytes, "auto", "auto=0 1..", "bytes",
            "gradients are reduced in buckets of about this size, such as 4 MiB; auto: by the cost of an all-reduce on "
            "this network")},
    {OPTION("comm", "overlap", CHOICE, overlap, "true", "true|forward|false", "",
            "reduce during the backward pass; forward: also during the next step's forward pass, with each update just "
            "before it is needed")},
    {OPTION("comm", "blocking", BOOL, reduce_blocking, "false", "", "",
            "for comparison: wait for each reduction where it starts")},
    {OPTION("comm", "algorithm", STRING, reduce, "auto", "", "",
            "algorithm of the all-reduce: auto, library (MPI_Iallreduce), ring, halving or doubling "
            "(docs/internals/reductions.md)"),
     .check = cvy_allreduce_check_name},
    {OPTION("comm", "progress", STRING, reduce_progress, "poll", "poll|thread", "",
            "what makes reductions progress while kernels run: poll (the rank itself, whenever a kernel ends) or "
            "thread (a progress thread, which needs a core)"),
     .check = check_progress},
    {OPTION("comm", "wire", DTYPE, reduce_wire, "f32", "f32|bf16", "",
            "type of gradients in messages between nodes; bf16: half the bytes, rounded")},
    {OPTION("comm", "node_memory", CHOICE, reduce_no_node, "true", "true|false", "",
            "ranks of a node reduce in shared memory; if false, by messages as between nodes")},

    {OPTION("parallel", "pipeline", INT, pipeline, "1", "1..", "",
            "stages of a pipeline, into which the layers are cut: the number of ranks is a multiple, and a rank holds "
            "one stage. Ranks with the same stage share the batch. Give `train.accumulate` several micro-batches for "
            "each stage")},
    {OPTION("parallel", "order", WORD, pipeline_order, "1f1b", "1f1b|gpipe", "",
            "with pipeline, in which order a stage runs micro-batches: 1f1b (fewest activations) or gpipe (all forward "
            "first)")},
    {OPTION("parallel", "tensor", INT, tensor, "1", "1..", "", "ranks that share the channels of layers with weights")},
    {OPTION("parallel", "tensor_layers", NAMES, tensor_layers, "", "all|auto", "",
            "with tensor, which layers are split by channels: all, a list such as [fc6, fc7, fc8], or auto, which "
            "takes the last ones, as many as make ranks exchange the fewest bytes. Ranks share the samples of all "
            "other layers, as on the data axis")},
    {OPTION("parallel", "spatial", INT3, spatial, "", "1..", "",
            "ranks that share each spatial dimension of a sample, in its order: [2, 2] cuts images into four parts. "
            "The number of ranks is a multiple of the product of pipeline, tensor and spatial; the rest shares the "
            "batch")},
    {OPTION("parallel", "interleave", INT, interleave, "1", "1..1000", "",
            "with pipeline, stages of each rank: with 2, the layers are cut into twice as many stages, and of P ranks "
            "rank r has the stages r and r + P: less idle time and more messages")},
    {OPTION("parallel", "first_layers", NAMES, first_layers, "", "", "",
            "with pipeline, a list of the layers with which the stages begin, the first layer of the network included, "
            "such as [conv1, conv3, fc]; without it the layers are cut into stages of equal time, with those that have "
            "a `stage: N` on theirs")},

    {OPTION(NULL, "plan_file", STRING, plan_file, "", "", "", "a plan.json whose choices of kernels are used again"),
     .may_differ = 1}, /* what the file says is compared */
    {OPTION(NULL, "share_weights", BOOL, share_weights, "false", "", "",
            "the ranks of a node keep one copy of the weights in shared memory")},
    {OPTION(NULL, "gradients_only", BOOL, gradients_only, "false", "", "",
            "a training task computes gradients, sends nothing and changes no weight")},
    {OPTION(NULL, "outputs_in_parts", BOOL, outputs_in_parts, "false", "", "",
            "with spatial, outputs are this rank's part of each sample")},
    {0},
};

/* ---- finding a row ---- */

const cvy_program_option *cvy_program_option_of_field(const char *field, size_t length)
{
    for (const cvy_program_option *o = cvy_program_option_table; o->field; o++)
        if (strlen(o->field) == length && strncmp(o->field, field, length) == 0)
            return o;
    return NULL;
}

const cvy_program_option *cvy_program_option_of_key(const char *section, const char *key)
{
    for (const cvy_program_option *o = cvy_program_option_table; o->field; o++)
        if (o->section && strcmp(o->section, section) == 0 && strcmp(o->row.name, key) == 0)
            return o;
    return NULL;
}

cvy_option_name cvy_program_option_name(const cvy_program_option *option)
{
    const char *section = option->section ? option->section : "";
    cvy_option_name name;
    snprintf(name.text, sizeof name.text, "%s%s%s", section, *section ? "." : "", option->row.name);
    return name;
}

int cvy_program_word_index(const char *field, const char *word)
{
    const cvy_program_option *o = cvy_program_option_of_field(field, strlen(field));
    const char *at = o->row.valid;
    cvy_option_term term;
    for (int i = 0; word && cvy_option_next_word(&o->row, &at, &term); i++)
        if (strlen(word) == (size_t)term.word_length && strncmp(word, term.word, strlen(word)) == 0)
            return i;
    return word ? -1 : 0;
}

/* ---- a struct that a program has filled ---- */

cvy_status cvy_program_option_check_text(const cvy_program_option *option, const cvy_program_opts *opts)
{
    const void *field = (const char *)opts + option->row.offset;
    const char *text = option->check ? *(const char *const *)field : NULL;
    return text ? option->check(text) : CVY_OK;
}

cvy_status cvy_program_opts_check(const cvy_program_opts *opts)
{
    for (const cvy_program_option *o = cvy_program_option_table; o->field; o++) {
        char name[64];
        snprintf(name, sizeof name, "opts.%s", o->field);
        if (!o->any_bits)
            CVY_TRY(cvy_option_check(name, &o->row, opts));
        const cvy_status status = cvy_program_option_check_text(o, opts);
        if (status != CVY_OK)
            return cvy_error_prefix(status, "%s", name);
    }
    return CVY_OK;
}

void cvy_program_opts_describe(const cvy_program_opts *opts, cvy_text *out)
{
    for (const cvy_program_option *o = cvy_program_option_table; o->field; o++) {
        if (o->may_differ)
            continue;
        cvy_text_add(out, "opts.%s ", o->field);
        cvy_option_print(&o->row, opts, out);
        cvy_text_add(out, "\n");
    }
}

/* ---- setting an option by name ---- */

_Static_assert(sizeof(cvy_dtype) == sizeof(int) && sizeof(cvy_update_mode) == sizeof(int) &&
                   sizeof(cvy_overlap) == sizeof(int),
               "a CHOICE row writes an int");

/* "update" is short for "update.mode". */
static cvy_status find_option(const char *name, const cvy_program_option **out)
{
    enum { NAMES_MAX = 64 };
    cvy_option_name room[NAMES_MAX];
    const char *names[NAMES_MAX], *wanted = strcmp(name, "update") == 0 ? "update.mode" : name;
    int count = 0;
    cvy_text known = {0};
    for (const cvy_program_option *o = cvy_program_option_table; o->field; o++) {
        CVY_EXPECT(count < NAMES_MAX - 2);
        room[count] = cvy_program_option_name(o);
        names[count] = room[count].text;
        if (strcmp(names[count++], wanted) == 0) {
            *out = o;
            return CVY_OK;
        }
    }
    names[count++] = "deterministic";
    names[count++] = "update";
    cvy_text_add_known(&known, name, names, count);
    const cvy_status status = known.status == CVY_OK
                                  ? cvy_error_set(CVY_E_CONFIG, "a program has no option '%s'%s", name, known.data)
                                  : known.status;
    cvy_text_free(&known);
    return status;
}

/* The job file's switch: the number of shards that is set, or that of its key's default; false is 0 shards. */
static cvy_status set_deterministic(const char *value, cvy_program_opts *opts)
{
    const cvy_tree node = {.kind = CVY_TREE_SCALAR, .text = value};
    int is_on = 0;
    CVY_CHECK(cvy_tree_bool(&node, &is_on) == CVY_OK, CVY_E_CONFIG, "deterministic is \"%s\", expected true or false",
              value);
    opts->shards = !is_on ? 0 : opts->shards > 0 ? opts->shards : SHARDS_DEFAULT;
    return CVY_OK;
}

static cvy_status set_option(const cvy_program_option *o, const char *value, cvy_program_opts *opts)
{
    const cvy_option_name name = cvy_program_option_name(o);
    const cvy_tree node = {.kind = CVY_TREE_SCALAR, .text = value};
    cvy_option row = o->row;
    row.name = name.text;
    CVY_TRY(cvy_option_set(NULL, NULL, &row, &node, opts));
    const cvy_status status = cvy_program_option_check_text(o, opts);
    return status == CVY_OK ? CVY_OK : cvy_error_prefix(status, "%s", name.text);
}

cvy_status cvy_program_opts_set(cvy_program_opts *opts, const char *name, const char *value)
{
    CVY_ENTRY();
    cvy_program_opts own;
    const cvy_program_option *option = NULL;
    CVY_CHECK(opts && name, CVY_E_ARGUMENT, "an option of a program needs the options and a name, not NULL");
    CVY_CHECK(value, CVY_E_ARGUMENT, "the value of %s is NULL", name);
    CVY_TRY(CVY_OPTS_READ(cvy_program_opts, opts, &own));
    const int is_switch = strcmp(name, "deterministic") == 0;
    CVY_TRY(find_option(is_switch ? "deterministic_shards" : name, &option));
    CVY_CHECK(option->row.offset < opts->size, CVY_E_ARGUMENT,
              "the caller was compiled with an older convoy/program.h, whose options lack %s: compile it again", name);
    CVY_TRY(is_switch ? set_deterministic(value, &own) : set_option(option, value, &own));
    cvy_result_write(opts, &own, sizeof own);
    return CVY_OK;
}
