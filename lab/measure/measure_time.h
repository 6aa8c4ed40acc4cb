/*
 * measure_time.h: what the parts of `convoy time` share: measure_time.c makes a table of the times of a step,
 * measure_time_print.c prints it for people, and measure_time_json.c for programs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_MEASURE_TIME_H
#define CVY_MEASURE_TIME_H

#include "measure/measure_bench.h"

typedef struct cvy_time_row { /* a layer, or instructions that belong to no layer */
    const char *name, *op;
    const cvy_value *output; /* output of its last forward node; NULL: none */
    /* place: order in the network, 2 x layer; multiplies: it is a convolution or fully connected layer */
    int place, multiplies;
    double ms[CVY_STEP_PARTS], flop[CVY_STEP_PARTS], bytes[CVY_STEP_PARTS];
    const char *kernel[CVY_STEP_PARTS]; /* kernel of the longest instruction of each part */
    double longest_ms[CVY_STEP_PARTS];
    /* the least time that the machine allows for its instructions (measure_limit.c); memory_ms: the part of it that is
     * bytes */
    double limit_ms, memory_ms;
    /* of all parts; share: of the step; gflop_per_s: of forward and backward */
    double all_ms, share, gflop_per_s, all_bytes;
} cvy_time_row;

typedef struct cvy_time_table { /* of a turn */
    const cvy_bench *b;
    int turn;
    const cvy_plan *plan; /* of its task */
    int first;            /* its first instruction among those of all turns */
    double *instr_ms;     /* median of each instruction */
    cvy_time_row *row;
    int count, room;
    double ms[CVY_STEP_PARTS], all_ms, step_ms;
} cvy_time_table;

typedef struct cvy_time_kind {
    const char *name;
    double ms;
} cvy_time_kind;

enum { CVY_TIME_KINDS = 48 };
extern const char *const cvy_time_part_name[CVY_STEP_PARTS];

static inline const cvy_grid *cvy_time_grid(const cvy_bench *b)
{
    return cvy_program_grid(b->session.program);
}

/* What messages call the turn; NULL: nothing. */
static inline const char *cvy_time_label(const cvy_time_table *t)
{
    return cvy_program_about(t->b->session.program, t->b->turn[t->turn].number).label;
}

/* ---- measure_time.c ---- */
/* The table of a turn; free it with cvy_time_table_free(). */
cvy_status cvy_time_table_make(const cvy_bench *b, int turn, cvy_time_table *t);
void cvy_time_table_free(cvy_time_table *t);
/* The name of the instruction's row. *op_out: its operator, or the kind of the instruction. */
const char *cvy_time_name(const cvy_plan *plan, const cvy_instr *instr, const char **op_out);
/* Bytes of the tensors that it reads and writes; the least time of the i-th instruction. */
double cvy_time_bytes(const cvy_plan *plan, const cvy_instr *instr);
cvy_limit cvy_time_limit(const cvy_time_table *t, int i);
/* Adds up the milliseconds of each operator's layers. All updates together count as one kind. Sorts by time, longest
 * first. */
int cvy_time_kinds(const cvy_time_table *t, cvy_time_kind *kind, int room, double *multiplying_ms_out);

/* ---- measure_time_print.c ---- */
extern const cvy_column cvy_time_columns[]; /* of a cvy_time_row */
void cvy_time_print_head(const cvy_time_table *t, double flop, cvy_text *out);
cvy_status cvy_time_print_table(const cvy_time_table *t, cvy_text *to);
/* Only the limit of the step, and what it was computed from. */
cvy_status cvy_time_print_limit(const cvy_time_table *t, cvy_text *to);
/* The least time of all instructions, and which part of it is bytes. */
double cvy_time_limit_ms(const cvy_time_table *t, double *by_bytes_out);

/* ---- measure_time_json.c ---- */
cvy_status cvy_time_print_json(const cvy_time_table *t, double flop, cvy_text *to);
cvy_status cvy_time_print_stage_json(const cvy_time_table *t, cvy_text *to);

#endif
