/*
 * plan_call.h: what a call of a lowered graph does, and what an instruction of a plan does. Other folders ask these
 * functions and know no kind of call by name.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_PLAN_CALL_H
#define CVY_PLAN_CALL_H

#include "plan/plan.h"

/* ---- calls; NULL is that of an instruction which the plan itself has added, and does nothing of this ---- */
/* A kernel, or the reference kernel, computes its node. */
int cvy_call_runs_node(const cvy_call *call);
/* The kernel that it runs; NULL: none, or the reference kernel. */
const cvy_kernel_def *cvy_call_kernel(const cvy_call *call);
/* The host computes its node, on copies of tensors that are on a device. */
int cvy_call_is_staged(const cvy_call *call);
/* It copies a value into another layout or dtype. */
int cvy_call_reorders(const cvy_call *call);
/* It runs its node or reorders, so its time can be measured. */
int cvy_call_is_timed(const cvy_call *call);
/* It makes a shadow copy, which is kept across steps: it costs nothing in most of them. */
int cvy_call_makes_shadow(const cvy_lowered *u, const cvy_call *call);
/* Its result is memory of a source: it makes no instruction. */
int cvy_call_is_view(const cvy_call *call);
void cvy_call_become_view(cvy_call *call);

/* Creates the state that a call needs to run, if it has none yet. cvy_call_run: the function that runs the call. */
cvy_status cvy_call_ready(const cvy_plan_opts *opts, const cvy_lowered *u, cvy_call *call);
cvy_run_fn cvy_call_run(const cvy_call *call);
void cvy_call_release(cvy_call *call);

/* ---- instructions ---- */
/* Names it in messages: its node's name, or what else it does. */
const char *cvy_instr_text(const cvy_instr *instr);
/* The name of what runs it: a kernel, an operator that communicates, or "reference", "reorder", "zero" and so on. */
const char *cvy_instr_runs_by(const cvy_instr *instr);
/* It computes: kernels, reorders, zeroing and accumulating; not communication. */
int cvy_instr_computes(const cvy_instr *instr);
/* On a device it only puts work into the lane COMPUTE: the host takes no part and waits for nothing. */
int cvy_instr_needs_no_host(const cvy_instr *instr);
/* It starts an exchange with other ranks or waits for them: its time counts as communication. */
int cvy_instr_is_comm(const cvy_instr *instr);
/* What its operator exchanges; NULL: it has none that communicates. */
const cvy_op_comm *cvy_instr_comm(const cvy_instr *instr);
/* The number of the bucket that it starts, or that it waits for; -1: it does not. */
int cvy_instr_starts_bucket(const cvy_instr *instr);
int cvy_instr_awaits_bucket(const cvy_instr *instr);
/* It starts a bucket, waits for one, or is a barrier around updates in parts. */
int cvy_instr_exchanges(const cvy_instr *instr);
/* It sets its destination to zero. */
int cvy_instr_zeroes(const cvy_instr *instr);
/* Of one that the plan has added: how often it goes through the memory of its destination, or as much; else 0. */
int cvy_instr_passes(const cvy_instr *instr);
/* Releases what binding has made for it alone. */
void cvy_instr_release(cvy_instr *instr);

#endif
