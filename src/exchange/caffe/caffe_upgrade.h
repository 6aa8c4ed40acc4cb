/*
 * caffe_upgrade.h: brings networks of Caffe into the newest form.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_CAFFE_UPGRADE_H
#define CVY_CAFFE_UPGRADE_H

#include "exchange/caffe/caffe_file.h"

/**
 * cvy_caffe_upgrade - bring a network into the newest form, in place
 * @path: of its file, for messages
 * @net: from a text or a binary file; net->layer has all layers then
 *
 * Layers of the form V1 become LayerParameters, the transformation in the parameters of a data layer becomes its
 * transform_param, and inputs that the network names become a layer of the type Input, which is the first. Errors:
 * CVY_E_FORMAT (old and new layers in one network, too many layers), CVY_E_UNSUPPORTED (layers of the form V0, which is
 * older), CVY_E_MEMORY; the network can only be freed then.
 */
cvy_status cvy_caffe_upgrade(const char *path, Cvy__Caffe__NetParameter *net);

/* Removes the layers that this state of the network leaves out. CVY_E_FORMAT: a layer has rules to include and to
 * exclude it. */
cvy_status cvy_caffe_select(const char *path, const Cvy__Caffe__NetState *state, Cvy__Caffe__NetParameter *net);

/* "line 12: conv1 (Convolution)", for messages; the text is in the pool. */
cvy_status cvy_caffe_where(cvy_pool *pool, const Cvy__Caffe__LayerParameter *layer, char **out);

#endif
