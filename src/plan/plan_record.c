/*
 * plan_record.c: see plan_record.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plan/plan_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/gpu/gpu.h"
#include "plan/plan_call.h"

enum { PLAIN_RUNS = 2, CHANGES = 2, PARTS_LEAST = 2 };

/* Instructions that begin at a certain one and were run together. */
struct segment {
    int run_end;  /* where the run of instructions ends to which the first one belongs */
    int end;      /* 0: none were */
    int plain;    /* how often they ran without a recording since something changed */
    int changed;  /* how often in turn they were not as they are recorded */
    int is_small; /* a recording is not worth it */
    uint64_t key; /* of all on which the recording depends */
    cvy_recording *recording;
    int parts;
};

struct cvy_plan_records {
    struct segment *segment; /* [ninstr] */
    enum { QUIET, BEGUN, DONE, SAID } news;
    char why[400]; /* the driver cannot record; "": it can */
};

/* ---- which instructions ---- */

/* A shadow copy is made only if it is stale. Whether it is must not depend on an instruction of the same recording. */
static int depends_on_earlier(const cvy_plan *plan, int first, int at)
{
    const cvy_instr *instr = &plan->instr[at];
    int depends = 0;
    for (int i = first; i < at && instr->weight && cvy_call_reorders(instr->call); i++)
        depends |= plan->instr[i].weight == instr->weight;
    return depends;
}

/* Where the run ends that begins at `first`: the longest one that a recording can have. */
static int end_of_run(const cvy_plan *plan, int first, int end)
{
    int at = first;
    while (at < end && cvy_instr_needs_no_host(&plan->instr[at]) && !depends_on_earlier(plan, first, at))
        at++;
    return at;
}

static void find_runs(const cvy_plan *plan)
{
    for (int first = 0, next; first < plan->ninstr; first = next) {
        next = CVY_MAX(end_of_run(plan, first, plan->ninstr), first + 1);
        for (int i = first; i < next; i++)
            plan->records->segment[i].run_end = next;
    }
}

static int count_runs(const cvy_plan *plan, int first, int end, int *instr)
{
    int n = 0;
    for (int next; first < end; first = CVY_MAX(next, first + 1)) {
        next = end_of_run(plan, first, end);
        n += next - first >= PARTS_LEAST;
        *instr += next - first >= PARTS_LEAST ? next - first : 0;
    }
    return n;
}

int cvy_plan_count_records(const cvy_plan *plan, int *instr_out)
{
    *instr_out = 0;
    return count_runs(plan, 0, plan->update.first, instr_out) +
           count_runs(plan, plan->update.first, plan->ninstr, instr_out);
}

int cvy_plan_record_end(const cvy_plan *plan, int first, int end)
{
    return plan->records ? CVY_MIN(plan->records->segment[first].run_end, end) : end;
}

static uint64_t mix(uint64_t key, uint64_t value)
{
    key = (key ^ value) * 0x9e3779b97f4a7c15u;
    return key ^ key >> 29;
}

static uint64_t mix_pointer(uint64_t key, const void *pointer)
{
    return mix(key, (uint64_t)(uintptr_t)pointer);
}

static uint64_t key_of(const cvy_plan *plan, int first, int end)
{
    uint64_t key = (uint64_t)(end - first);
    for (int i = first; i < end; i++) {
        const cvy_instr *instr = &plan->instr[i];
        key = mix_pointer(mix(key, (uint64_t)cvy_instr_runs(instr)), instr->state);
        for (int s = 0; s < instr->nsrc; s++)
            key = mix_pointer(key, instr->src[s]);
        for (int d = 0; d < instr->ndst; d++)
            key = mix_pointer(key, instr->dst[d]);
        key = mix_pointer(key, instr->scratch);
    }
    return key;
}

/* ---- recordings ---- */

static void drop(const cvy_plan *plan, struct segment *s)
{
    if (s->recording)
        plan->opts.space->backend->recording_destroy(plan->opts.space->state, s->recording);
    *s = (struct segment){.run_end = s->run_end};
}

static void give_up(const cvy_plan *plan)
{
    struct cvy_plan_records *r = plan->records;
    snprintf(r->why, sizeof r->why, "%s", cvy_error_text());
    r->news = DONE;
    for (int i = 0; i < plan->ninstr; i++)
        drop(plan, &r->segment[i]);
}

static cvy_status put_all(const cvy_plan *plan, int first, int end)
{
    cvy_status status = CVY_OK;
    for (int i = first; i < end && status == CVY_OK; i++) {
        const cvy_instr *instr = &plan->instr[i];
        if (cvy_instr_runs(instr))
            status = instr->run(instr->state, instr->src, instr->dst, instr->scratch);
    }
    return status;
}

/* If a kernel cannot be put into the recording, it may be put into the lane all the same, or say better why not. */
static cvy_status record(const cvy_plan *plan, int first, int end, struct segment *s)
{
    const cvy_space *space = plan->opts.space;
    cvy_recording *recording = NULL;
    char what[200];
    snprintf(what, sizeof what, "one of a recording, from %.80s to %.80s", cvy_instr_text(&plan->instr[first]),
             cvy_instr_text(&plan->instr[end - 1]));
    CVY_TRY(space->backend->record_begin(space->state));
    const cvy_status put = put_all(plan, first, end);
    char why[sizeof plan->records->why] = "";
    if (put != CVY_OK)
        snprintf(why, sizeof why, "%s", cvy_error_text());
    const cvy_status status = space->backend->record_end(space->state, what, &recording, &s->parts);
    if (put != CVY_OK) {
        if (status == CVY_OK)
            space->backend->recording_destroy(space->state, recording);
        return cvy_error_set(CVY_NOT_APPLICABLE, "%s", why);
    }
    CVY_TRY(status);
    if (s->parts < PARTS_LEAST) {
        space->backend->recording_destroy(space->state, recording);
        s->is_small = 1;
        recording = NULL;
    }
    s->recording = recording;
    if (recording && plan->records->news != SAID)
        plan->records->news = BEGUN;
    return CVY_OK;
}

/* A change that lasts drops the recording. One that does not, such as shadow copies that are made again after the
 * weights were read from a file, runs the instructions plainly. */
static void compare(const cvy_plan *plan, struct segment *s, int first, int end)
{
    const uint64_t key = key_of(plan, first, end);
    const int changed = s->end != end || s->key != key;
    s->changed = changed ? s->changed + 1 : 0;
    if (s->end == end && (!changed || (s->recording && s->changed < CHANGES)))
        return;
    drop(plan, s);
    s->end = end;
    s->key = key;
}

cvy_status cvy_plan_replay(cvy_plan *plan, int first, int end, int *done_out)
{
    struct cvy_plan_records *r = plan->records;
    const cvy_space *space = plan->opts.space;
    *done_out = 0;
    if (!r || r->why[0] || plan->times.mark || end - first < PARTS_LEAST)
        return CVY_OK;
    struct segment *s = &r->segment[first];
    compare(plan, s, first, end);
    if (s->is_small || s->changed || (!s->recording && s->plain++ < PLAIN_RUNS))
        return CVY_OK;
    cvy_status status = s->recording ? CVY_OK : record(plan, first, end, s);
    if (status == CVY_OK && s->recording) {
        status = space->backend->replay(space->state, s->recording);
        *done_out = status == CVY_OK;
    }
    if (status == CVY_NOT_APPLICABLE)
        give_up(plan);
    return status == CVY_NOT_APPLICABLE ? CVY_OK : status;
}

/* ---- their life ---- */

int cvy_records_are_wanted(const cvy_space *space)
{
    const char *given = getenv("CONVOY_RECORD");
    return !cvy_space_is_host(space) && space->backend->record_begin && !cvy_gpu_is_sync(space) &&
           !(given && strcmp(given, "off") == 0);
}

cvy_status cvy_plan_make_records(cvy_plan *plan)
{
    cvy_plan_free_records(plan);
    if (plan->opts.clock || !cvy_records_are_wanted(plan->opts.space))
        return CVY_OK;
    CVY_TRY(cvy_mem_alloc(sizeof *plan->records, &plan->records));
    CVY_TRY(cvy_mem_alloc(sizeof *plan->records->segment * ((size_t)plan->ninstr + 1), &plan->records->segment));
    find_runs(plan);
    return CVY_OK;
}

void cvy_plan_free_records(cvy_plan *plan)
{
    struct cvy_plan_records *r = plan->records;
    if (!r)
        return;
    for (int i = 0; r->segment && i < plan->ninstr; i++)
        drop(plan, &r->segment[i]);
    cvy_mem_free(&r->segment);
    cvy_mem_free(&plan->records);
}

int cvy_plan_recorded(cvy_plan *plan, cvy_recorded *out)
{
    struct cvy_plan_records *r = plan->records;
    *out = (cvy_recorded){.recordings = 0};
    if (!r || (r->news != BEGUN && r->news != DONE))
        return 0;
    r->news++;
    out->why = r->why[0] ? r->why : NULL;
    for (int i = 0; i < plan->ninstr; i++) {
        out->recordings += r->segment[i].recording != NULL;
        out->parts += r->segment[i].recording ? r->segment[i].parts : 0;
    }
    return r->news == SAID;
}
