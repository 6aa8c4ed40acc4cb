/*
 * caffe_v0.h: the oldest form of Caffe's layers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_CAFFE_V0_H
#define CVY_CAFFE_V0_H

#include "exchange/caffe/caffe_file.h"

/* Brings the layers of a network that have the V0 form into the form V1, in place, and removes layers of padding. */
cvy_status cvy_caffe_upgrade_v0(const char *path, Cvy__Caffe__NetParameter *net);

#endif
