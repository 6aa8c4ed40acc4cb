/*
 * score_result.h: the scores of cvy_run_test() as a struct.
 */
#ifndef CVY_SCORE_RESULT_H
#define CVY_SCORE_RESULT_H

#include <convoy/score.h>

/* Fills the result from the JSON object that metrics and methods have written, and takes ownership of the text. `full`
 * must have the size of this version's struct. */
cvy_status cvy_test_result_make(char **json_take, cvy_test_result *full);

#endif
