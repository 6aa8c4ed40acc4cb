/*
 * plan_offers.h: the offer of each kernel for each node. A kernel is asked once: nodes of equal shapes share the offer,
 * and so do the many plans that the planner tries (plan_tune.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_PLAN_OFFERS_H
#define CVY_PLAN_OFFERS_H

#include "base/base_index.h"
#include "base/text/base_text.h"
#include "plan/plan.h"

#define CVY_MS_UNKNOWN (-1.0)

typedef struct cvy_offer {
    const cvy_kernel_def *kernel; /* cvy_kernel_plain: the operator's own plain kernel */
    cvy_kernel_ask in, out;       /* layouts as asked; layouts that the kernel reads and writes; node is NULL in both */
    cvy_status status;            /* CVY_OK or CVY_NOT_APPLICABLE */
    char *reason;                 /* why the kernel declined; NULL: it did not */
    double ms;                    /* measured time; INFINITY: the kernel could not run; or CVY_MS_UNKNOWN */
    struct cvy_offer *next;       /* next offer of the same signature */
} cvy_offer;

struct cvy_offers {
    cvy_keys signature; /* operator, options, shapes and dtypes of nodes */
    cvy_offer **first;  /* by signature: list of its offers */
    int room;
};

/* Stands for the operator's plain kernel (reference kernel) wherever a kernel definition is needed. */
extern const cvy_kernel_def cvy_kernel_plain;

/* Gives the number of a node's signature. Every kernel makes the same offer for all nodes of one signature, and takes
 * the same time. */
cvy_status cvy_offers_signature(cvy_offers *offers, const cvy_node *node, int *signature_out);
/* Gives the offer of one kernel, which may be cvy_kernel_plain, for in->node. If the kernel fails, so does this
 * call. */
cvy_status cvy_offers_ask(cvy_offers *offers, int signature, const cvy_kernel_def *kernel, const cvy_kernel_ask *in,
                          cvy_offer **out);
/* The kernel that is asked after `after` (NULL: the first one), among the kernels of this operator that `kernels`
 * allows. NULL: there is none. */
const cvy_kernel_def *cvy_kernel_next(const char *op, const cvy_kernel_def *after, const cvy_kernels *kernels);
/* These print the key of a time in the wisdom: operator, options, shapes, dtypes, kernel, threads, layouts. */
void cvy_offer_key(const cvy_offers *offers, int signature, const cvy_node *node, const cvy_offer *offer,
                   cvy_text *out);
void cvy_call_key(const cvy_lowered *u, const cvy_call *call, int threads, cvy_text *out);
void cvy_reorder_key(const cvy_instance *from, const cvy_instance *to, int threads, cvy_text *out);

#endif
