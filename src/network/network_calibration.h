/*
 * network_calibration.h: the temperature of a run, RUN/calibration.json, by which the logits of its network are divided
 * before they become probabilities.
 *
 *     {"checkpoint": "step-00004500", "temperature": 1.43, "samples": 4000, "nll": [0.31, 0.28], "ece": [0.06, 0.01]}
 *
 * `convoy test --calibrate` writes it, with nll and ece before and after on the validation data. It counts only for
 * the weights of its checkpoint.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_NETWORK_CALIBRATION_H
#define CVY_NETWORK_CALIBRATION_H

#include "base/text/base_text.h"

typedef struct cvy_calibration {
    char checkpoint[64]; /* the folder of the weights: step-00004500 */
    double temperature;
    int64_t samples;
    double nll[2], ece[2]; /* before and after */
} cvy_calibration;

/* CVY_NOT_APPLICABLE: the run has none. Errors: CVY_E_IO, CVY_E_FORMAT (damaged), CVY_E_MEMORY. */
cvy_status cvy_calibration_read(const char *run, cvy_calibration *out);
cvy_status cvy_calibration_write(const char *run, const cvy_calibration *c);
/* Finds the temperature that belongs to a checkpoint, a folder RUN/checkpoints/step-N. 0: none. stale_out (may be NULL)
 * gets 1 if the run has a calibration of another checkpoint. */
cvy_status cvy_calibration_of(const char *checkpoint, double *temperature_out, int *stale_out);
/* Adds this temperature to the description of a network. The text stays empty if there is none. */
cvy_status cvy_calibration_describe(const char *checkpoint, const char *network, cvy_text *out);

#endif
