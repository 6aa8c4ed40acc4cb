/*
 * model_vgg.c: VGG: stacks of 3x3 convolutions between poolings, three fully connected layers.
 * Source: Simonyan and Zisserman 2015, table 1.
 */
#include "model/model.h"

struct vgg { double dropout; };

static const cvy_option vgg_opts[] = {
    {"dropout", CVY_TYPE_REAL, CVY_FIELD(vgg, dropout), "0", "0..0.95", "", "probability of dropping behind the first two fully connected layers"},
    {0},
};

/* convs[s]: convolutions of stage s; widths double from 64 to 512. */
static cvy_status vgg_build(cvy_model *m, const struct vgg *o, const int convs[5], int64_t classes)
{
    static const int width[] = {64, 128, 256, 512, 512};
    char name[24];
    for (int s = 0; s < 5; s++) {
        for (int i = 1; i <= convs[s]; i++) {
            snprintf(name, sizeof name, "conv%d_%d", s + 1, i);
            CVY_TRY(cvy_model_addf(m, "conv", name, NULL, "channels: %d, kernel: 3, pad: 1", width[s]));
            CVY_TRY(cvy_model_add(m, "relu", NULL, NULL, NULL));
        }
        snprintf(name, sizeof name, "pool%d", s + 1);
        CVY_TRY(cvy_model_add(m, "max_pool", name, "kernel: 2", NULL));
    }
    for (int i = 6; i <= 7; i++) {
        snprintf(name, sizeof name, "fc%d", i);
        CVY_TRY(cvy_model_add(m, "fc", name, "channels: 4096", NULL));
        CVY_TRY(cvy_model_add(m, "relu", NULL, NULL, NULL));
        if (o->dropout > 0)
            CVY_TRY(cvy_model_addf(m, "dropout", NULL, NULL, "p: %.17g", o->dropout));
    }
    return cvy_model_addf(m, "fc", "fc8", NULL, "channels: %lld, init: xavier", (long long)classes);
}

static cvy_status vgg_a_build(cvy_model *m, const void *options, const cvy_shape *input, int64_t classes)
{
    (void)input;
    return vgg_build(m, options, (const int[]){1, 1, 2, 2, 2}, classes);
}

CVY_MODEL_DEFINE(vgg_a) = {
    .name = "vgg-a", .summary = "VGG with 11 weight layers", .source = "Simonyan and Zisserman 2015",
    .options = vgg_opts, .options_size = sizeof(struct vgg),
    .input = {3, {3, 224, 224}}, .classes = 1000, .build = vgg_a_build,
};
