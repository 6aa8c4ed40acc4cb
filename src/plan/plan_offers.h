/*
 * plan_offers.h: what each kernel answers to each node, asked once: nodes of equal shapes share the answer, and so do
 * the many plans that the planner tries (plan_tune.c).
 */
#ifndef CVY_PLAN_OFFERS_H
#define CVY_PLAN_OFFERS_H

#include "base/base_index.h"
#include "base/base_text.h"
#include "plan/plan.h"

#define CVY_MS_UNKNOWN (-1.0)

typedef struct cvy_offer {
    const cvy_kernel_def *kernel; /* cvy_kernel_plain: the operator's own plain kernel */
    cvy_kernel_ask in, out;       /* how the sources lay; what the kernel wants and leaves; node is not set */
    cvy_status status;            /* CVY_OK or CVY_NOT_APPLICABLE */
    char *reason;                 /* of a kernel that declined */
    double ms;                    /* measured, INFINITY where the kernel could not run, or CVY_MS_UNKNOWN */
    struct cvy_offer *next;       /* of the same signature */
} cvy_offer;

struct cvy_offers {
    cvy_keys signature; /* operator, options, shapes, dtypes of nodes */
    cvy_offer **first;  /* by signature */
    int room;
};

/* Stands for the operator's plain kernel where a kernel is named. */
extern const cvy_kernel_def cvy_kernel_plain;

/* The number that nodes share to which every kernel gives the same answer, in the same time. */
cvy_status cvy_offers_signature(cvy_offers *offers, const cvy_node *node, int *signature_out);
/* The answer of one kernel, which may be cvy_kernel_plain, to in->node. A fault of the kernel is one of this call. */
cvy_status cvy_offers_ask(cvy_offers *offers, int signature, const cvy_kernel_def *kernel, const cvy_kernel_ask *in,
                          cvy_offer **out);
/* Among the kernels of this operator that the choice allows, the one that is asked after `after`, NULL: the first. NULL
 * when there is none. */
const cvy_kernel_def *cvy_kernel_below(const char *op, const cvy_kernel_def *after, const cvy_kernels *kernels);
/* What a time is remembered by: threads, operator, options, shapes, dtypes, layouts, kernel. */
void cvy_offer_key(const cvy_offers *offers, int signature, const cvy_node *node, const cvy_offer *offer,
                   cvy_text *out);
void cvy_call_key(const cvy_lowered *u, const cvy_call *call, int threads, cvy_text *out);
void cvy_reorder_key(const cvy_instance *from, const cvy_instance *to, int threads, cvy_text *out);

#endif
