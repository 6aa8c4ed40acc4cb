/*
 * model_foreign.c: the names that the variables of the zoo have in files of other programs: the state_dict of
 * torchvision's networks and of timm's. The file of each family names its layers (cvy_model_def.foreign); the names of
 * a layer's variables are the same for all.
 *
 * It is called before step 0, when weights are read (checkpoint/checkpoint_adopt.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "model/model.h"

const char *cvy_names_text(cvy_names names)
{
    static const char *const text[] = {
        [CVY_NAMES_OWN] = "own", [CVY_NAMES_TORCHVISION] = "torchvision", [CVY_NAMES_TIMM] = "timm"};
    return text[names];
}

/* The variable `own` of a layer, as PyTorch names it. */
static const char *variable_name(const cvy_layer *layer, const char *own)
{
    if (strcmp(layer->op->name, "batch_norm") != 0)
        return own;
    return strcmp(own, "scale") == 0 ? "weight" : strcmp(own, "shift") == 0 ? "bias" : own;
}

static cvy_status find_network(const cvy_model *m, cvy_names names, const cvy_model_def **out)
{
    int64_t number = 0;
    CVY_CHECK(cvy_model_resolve(m->name, out, &number) == CVY_OK, CVY_E_UNSUPPORTED,
              "names: %s is for networks of the zoo, and this network is described layer by layer: give the names with "
              "`rename` instead",
              cvy_names_text(names));
    const cvy_model_def *def = *out;
    CVY_CHECK(def->foreign || !def->instead, CVY_E_UNSUPPORTED,
              "%s is not %s's network of that name, whose layers differ: model: %s is", m->name, cvy_names_text(names),
              def->instead);
    CVY_CHECK(def->foreign, CVY_E_UNSUPPORTED,
              "%s has no network with the layers of %s: `convoy models` lists the networks; resnet-18 to resnet-152, "
              "vgg-a to vgg-19, alexnet-v2, googlenet-bn and inception-v3 are the same there",
              cvy_names_text(names), m->name);
    return CVY_OK;
}

cvy_status cvy_model_only_torchvision(const cvy_model *m, cvy_names names)
{
    CVY_CHECK(names == CVY_NAMES_TORCHVISION, CVY_E_UNSUPPORTED, "timm has no network with the layers of %s", m->name);
    return CVY_OK;
}

cvy_status cvy_model_foreign_name(const cvy_model *m, cvy_names names, const char *variable, cvy_label *out)
{
    const cvy_model_def *def = NULL;
    const char *dot = strrchr(variable, '.');
    cvy_label layer = {{0}};
    CVY_TRY(find_network(m, names, &def));
    CVY_EXPECT(dot);
    const int at = cvy_index_find(&m->layer_at, cvy_labelf("%.*s", (int)(dot - variable), variable).text);
    CVY_EXPECT(at >= 0);
    CVY_TRY(def->foreign(m, names, at, &layer));
    *out = cvy_labelf("%s.%s", layer.text, variable_name(&m->layer[at], dot + 1));
    return CVY_OK;
}
