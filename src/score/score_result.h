/*
 * score_result.h: the scores of cvy_run_test() as a struct.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_SCORE_RESULT_H
#define CVY_SCORE_RESULT_H

#include <convoy/score.h>

/* Checks the size that the caller has set. The first version of the struct ended with `owned`: without that field the
 * caller could not release what it is given. */
cvy_status cvy_test_result_check(const cvy_test_result *given);
/* Empties the caller's struct: no scores, and a loss that is NaN. */
void cvy_test_result_clear(cvy_test_result *given);
/* Fills the caller's struct from the JSON object that metrics and methods have written, and takes ownership of the
 * text. On a fault the struct stays as it is. */
cvy_status cvy_test_result_make(char **json_take, cvy_test_result *given);

#endif
