/*
 * data_agrees.h: whether further data are like those of the training, before a step reads them.
 *
 * A training fixes what a network may be given: the type of x and what happens to bytes, the shapes of the fields, the
 * channels of pictures, the names of columns and of classes. Each further source (validation, test, prediction, the
 * files of a list) follows that form as far as it can: pictures are decoded to its channels, and labels take its
 * numbers of classes by their names. Anything else that differs is a fault with both values.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_AGREES_H
#define CVY_DATA_AGREES_H

#include "data/data_sources.h"

/* The name of a source, or of a data set, for messages. */
const char *cvy_source_name(const cvy_source *s);
const char *cvy_dataset_name(const cvy_dataset_info *info);
/* The field of this name; NULL: there is none. */
const cvy_field *cvy_dataset_field(const cvy_dataset_info *info, const char *name);

/* Checks that source b can follow source a in one data set. Sets whole->varying if pictures differ in size. */
cvy_status cvy_sources_agree(const cvy_source *a, const cvy_source *b, cvy_reader_info *whole);
/* How the lists of variables of a source follow those of the training. */
typedef struct cvy_followed {
    char *note[2]; /* what to say about x and y; NULL: nothing */
    int renamed;   /* a list has other names, and is taken as it is */
} cvy_followed;
/* Of formats whose sources list the variables of x and y, before a source is opened: brings its lists into the order of
 * the training. *source becomes a copy if that changes it. */
cvy_status cvy_variables_follow(cvy_pool *pool, const cvy_reader_def *reader, const cvy_columns *like,
                                const cvy_tree **source, cvy_followed *out);
/* Makes these lists the columns of the open source, and its notes. */
cvy_status cvy_variables_describe(cvy_pool *pool, const cvy_reader_def *reader, const cvy_tree *source,
                                  const cvy_followed *followed, cvy_reader_info *info);
/* Checks that the classes of two sources of one data set can be matched by name: not numbers with words. */
cvy_status cvy_classes_check_kinds(const cvy_source *a, const cvy_source *b);
/* Decodes the pictures of s to the channels of those samples: 1 or 3. */
cvy_status cvy_source_follow_channels(const cvy_reader_info *like, const char *of_like, cvy_source *s);
/* Finds the number that each class of s has in the training data, by its name if both have names. label_out: [classes
 * of s], -1 for one without samples; NULL: the numbers are the same. A class that the training data lack is a fault;
 * one that s lacks is a note. */
cvy_status cvy_source_follow_classes(const cvy_dataset_info *like, cvy_source *s, int32_t **label_out);
/* Gives s the number of classes and the names of the training data. */
cvy_status cvy_source_take_classes(const cvy_dataset_info *like, cvy_source *s);
/* Whether its classes are called "0", "1", .. in this order, as those without names are. */
int cvy_classes_are_numbers(const cvy_dataset_info *data);
/* Checks classes whose form of training is known by their names and number alone: of runs of older versions. */
cvy_status cvy_classes_agree(const char *const *known, int64_t nknown, const cvy_dataset_info *data);
/* If d has the columns, or the classes, of the form in another order, or says its numbers in other units or along axes
 * in another order or direction, opens it again so that they are like those, and says so. What cannot be mended is only
 * said. all_classes 1: also if it has some of the classes. from: what has the form, for messages. source, augment,
 * seed: those that d was opened with, without random augmentation. */
cvy_status cvy_dataset_take_order(const cvy_data_form *like, const char *from, int all_classes, const cvy_tree *source,
                                  const cvy_tree *augment, uint64_t seed, cvy_dataset **d);
/* Checks that d, which was opened like data of this form, has the same fields, or the same x if the form says so. */
cvy_status cvy_dataset_agrees(const cvy_data_form *like, cvy_dataset *d);

#endif
