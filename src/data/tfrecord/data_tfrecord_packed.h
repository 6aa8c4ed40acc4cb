/*
 * data_tfrecord_packed.h: the files of a TFRecord data set, with those that are compressed as a whole (compression_type
 * GZIP and ZLIB of TensorFlow) unpacked in memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_TFRECORD_PACKED_H
#define CVY_DATA_TFRECORD_PACKED_H

#include "data/tfrecord/data_tfrecord_index.h"

/* Looks at the first bytes of file i of the data set, which is open. */
cvy_status cvy_tf_packed_look(struct tf *t, int64_t i);
int cvy_tf_is_packed(const struct tf *t, int64_t i);
/* Opens file i, for reads at offsets without compression; give it back. Any thread may call it. */
cvy_status cvy_tf_file_take(const struct tf *t, int64_t i, cvy_data_file *out);
void cvy_tf_file_give(const struct tf *t, int64_t i, cvy_data_file *file);
/* Sets info's blocks, so that a window shuffle reads few files at a time, and says what unpacking takes. */
cvy_status cvy_tf_packed_note(struct tf *t, const char *path, cvy_reader_info *info);
void cvy_tf_packed_free(struct tf *t);

#endif
