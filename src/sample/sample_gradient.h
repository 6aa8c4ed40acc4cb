/*
 * sample_gradient.h: compares the gradients of a sample with central finite differences of the reference kernels, in
 * f64. Every variable must have one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SAMPLE_GRADIENT_H
#define CVY_SAMPLE_GRADIENT_H

#include "sample/sample_kernels.h"

/* The sample has been opened in f64, for training. report->checks counts the derivatives. A wrong gradient is no fault
 * of the call. */
cvy_status cvy_sample_check_gradients(cvy_sample_graph *b, cvy_sample_report *report);

#endif
