/*
 * session_values.c: looks at the numbers that a network gets, before the first step: see session_values.h.
 *
 * The first weights and the usual learning rates suit inputs of about mean 0 and standard deviation 1. The limits are
 * wide, so that what trains well is not named: pictures of 0 to 1 as they are (mean 0.5, deviation 0.25), those that
 * are normalised with the numbers of another set (at most 3 from 0), masks, one-hot vectors, sparse counts.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "session/session_values.h"

#include <math.h>
#include <string.h>

#include "base/number/base_moments.h"
#include "data/data_reader.h"

enum {
    SAMPLES_MIN = 4, /* that are read */
    SAMPLES_MAX = 256,
    ELEMS = 1 << 21, /* of all of them, unless that is less than SAMPLES_MIN */
    VALUES = 8192,   /* that are wanted of a channel */
    EACH = 256,      /* of them in one sample, at most */
    RUNS = 8,        /* of samples that follow each other, if the file stores them in blocks that are read whole */
    COUNT_MIN = 16,  /* fewer values of a channel say nothing */
    SHOWN = 3
};

#define SPREAD_MIN 0.01 /* standard deviations that are too far from 1 */
#define SPREAD_MAX 100.0
#define DEVIATIONS 10.0 /* a mean that is so many standard deviations from 0, and so far from it in x or y: */
#define FAR_X 5.0
#define FAR_Y 10.0

struct channel {
    cvy_moments of, nonzero; /* of finite values; of those that are not 0 */
    double least, most;
    int64_t at_least, at_most; /* values that are equal to these ends */
    int64_t integers, units;   /* values that are integers; those that are -1, 0 or 1 */
};

struct look { /* at one field */
    const cvy_field *field;
    int64_t nchannels;
    struct channel *channel;
    const char *const *name; /* of columns; NULL: they have none */
    int is_y, is_scaled;     /* is_scaled: of y */
    int64_t nsamples;        /* that were read */
};

/* ---- looking ---- */

static void add_value(struct channel *c, double x)
{
    if (!isfinite(x))
        return;
    cvy_moments_add(&c->of, x);
    if (x != 0)
        cvy_moments_add(&c->nonzero, x);
    c->at_least = x < c->least ? 1 : c->at_least + (x == c->least);
    c->at_most = x > c->most ? 1 : c->at_most + (x == c->most);
    c->least = CVY_MIN(c->least, x);
    c->most = CVY_MAX(c->most, x);
    c->integers += x == floor(x);
    c->units += fabs(x) == 1 || x == 0;
}

static void add_sample(struct look *l, const float *x)
{
    const int64_t plane = cvy_shape_elems(&l->field->shape) / l->nchannels;
    const int64_t stride = plane > EACH ? (plane / EACH) | 1 : 1; /* odd, so that it does not stay in one column */
    for (int64_t c = 0; c < l->nchannels; c++)
        for (int64_t k = l->nsamples % stride; k < plane; k += stride)
            add_value(&l->channel[c], x[c * plane + k]);
    l->nsamples++;
}

static cvy_status begin(struct look *l, const cvy_field *field, int64_t nchannels, const char *const *name,
                        int64_t nname)
{
    *l = (struct look){.field = field, .nchannels = nchannels, .name = nname == nchannels ? name : NULL};
    CVY_TRY(cvy_mem_alloc(sizeof *l->channel * (size_t)nchannels, &l->channel));
    for (int64_t c = 0; c < nchannels; c++)
        l->channel[c] = (struct channel){.least = INFINITY, .most = -INFINITY};
    return CVY_OK;
}

/* How many samples of so many numbers are read: few of those that have many values in each channel. */
static int64_t samples_wanted(const cvy_dataset_info *info, const struct look *l, int64_t elems)
{
    const int64_t plane = CVY_MAX(cvy_shape_elems(&l->field->shape) / l->nchannels, 1),
                  wanted = CVY_MIN(VALUES / CVY_MIN(plane, EACH), SAMPLES_MAX);
    return CVY_MIN(CVY_MAX(CVY_MIN(wanted, ELEMS / CVY_MAX(elems, 1)), SAMPLES_MIN), info->nsamples);
}

/* The number of sample i of n that are read: they are spread evenly over the set, one by one or in runs. */
static int64_t place_of(const cvy_dataset *d, int64_t i, int64_t n)
{
    const int64_t all = cvy_dataset_describe(d)->nsamples,
                  each = cvy_dataset_reader_info(d)->blocks.count > 0 ? (n + RUNS - 1) / RUNS : 1,
                  runs = (n + each - 1) / each;
    return CVY_MIN((int64_t)((double)all * (double)(i / each) / (double)runs) + i % each, all - 1);
}

static cvy_status read_samples(cvy_dataset *d, struct look *x, struct look *y)
{
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    void *field[CVY_FIELD_MAX] = {NULL};
    int64_t elems = 0;
    cvy_status status = CVY_OK;
    for (int i = 0; i < info->nfield; i++) {
        const int64_t n = cvy_shape_elems(&info->field[i].shape);
        elems += n;
        CVY_TRY_OUT(cvy_mem_alloc((size_t)n * cvy_dtype_bytes(info->field[i].dtype), &field[i]));
    }
    const int64_t n = samples_wanted(info, x->field ? x : y, elems);
    for (int64_t i = 0; i < n; i++) {
        if (cvy_dataset_read(d, place_of(d, i, n), 0, field) != CVY_OK)
            break; /* the training names it; more attempts at a file that ends its reader process would bar it */
        for (int k = 0; k < info->nfield; k++) {
            if (x->field == &info->field[k])
                add_sample(x, field[k]);
            if (y->field == &info->field[k])
                add_sample(y, field[k]);
        }
    }
out:
    for (int i = 0; i < info->nfield; i++)
        cvy_mem_free(&field[i]);
    return status;
}

/* ---- which channels are far ---- */

/* Half of the values are 0, or the same number at an end, such as the background of pictures that are normalised. */
static int is_sparse(const struct channel *c)
{
    return 2 * c->nonzero.n <= c->of.n || 2.0 * (double)CVY_MAX(c->at_least, c->at_most) >= c->of.n;
}

static int is_far(const struct look *l, int64_t at)
{
    const struct channel *c = &l->channel[at];
    const double mean = fabs(c->of.mean), std = cvy_moments_std(&c->of), far = l->is_y ? FAR_Y : FAR_X;
    if (c->of.n < COUNT_MIN || (double)c->units == c->of.n)
        return 0;
    if (std > 0 && is_sparse(c)) { /* its spread depends on how often it is not 0 */
        const double size = hypot(c->nonzero.mean, cvy_moments_std(&c->nonzero));
        return size > 0 && (size > SPREAD_MAX * SPREAD_MAX || size < SPREAD_MIN * SPREAD_MIN);
    }
    if (std == 0) /* another constant is harmless */
        return mean > far;
    return std > SPREAD_MAX || std < SPREAD_MIN || (mean > far && mean > DEVIATIONS * std);
}

/* The values that the samples have before they are normalised, as far as the steps can be undone. */
struct before {
    int known, normalised;
    const cvy_value_step *step; /* (x - shift) * by; NULL: none */
    double unit;                /* 255 if bytes are divided by it, else 1 */
};

static double shift_of(const struct before *b, int64_t c)
{
    return b->step ? b->step->shift[b->step->n == 1 ? 0 : c] / b->unit : 0;
}

static double std_of(const struct before *b, int64_t c)
{
    return b->step ? 1 / (b->step->by[b->step->n == 1 ? 0 : c] * b->unit) : 1;
}

static double undo(const struct before *b, int64_t c, double value)
{
    return value * std_of(b, c) + shift_of(b, c);
}

static double undo_std(const struct before *b, int64_t c, const struct channel *of)
{
    return cvy_moments_std(&of->of) * fabs(std_of(b, c));
}

/* The steps live as long as *augment_out. */
static void find_before(const cvy_values_ask *ask, const cvy_dataset *d, cvy_augment **augment_out,
                        cvy_value_step step[CVY_VALUE_STEPS_MAX], struct before *out)
{
    const cvy_reader_info *stored = cvy_dataset_reader_info(d);
    const int64_t nchannels =
        cvy_dataset_describe(d)->field[0].shape.ndim > 0 ? cvy_dataset_describe(d)->field[0].shape.dim[0] : 1;
    int nstep = 0, moves = 0;
    *out = (struct before){.unit = 1};
    if (cvy_augment_create(ask->job->data.steps, 0, 0, stored, augment_out) != CVY_OK ||
        cvy_augment_value_steps(*augment_out, stored->dtype == CVY_DTYPE_U8, step, &nstep, &moves) != CVY_OK ||
        nstep > 1 || (nstep == 1 && (step->curve != CVY_CURVE_AFFINE || (step->n > 1 && step->n != nchannels))))
        return;
    out->known = 1;
    if (cvy_augment_divides(*augment_out, stored))
        out->unit = 255;
    for (int64_t c = 0; nstep && c < step->n; c++) {
        out->known &= step->by[c] != 0;
        out->normalised |= step->shift[c] != 0 || fabs(step->by[c] * out->unit - 1) > 1e-9;
    }
    out->step = nstep ? step : NULL;
}

/* Whether x has bytes of pictures, 0 to 255, that nothing divides. */
static int are_bytes(const struct look *x, const struct before *b)
{
    struct channel all = {.least = INFINITY, .most = -INFINITY};
    if (!b->known || b->step || (x->field->shape.ndim < 2 && x->nchannels < 64))
        return 0;
    for (int64_t c = 0; c < x->nchannels; c++) {
        const struct channel *of = &x->channel[c];
        cvy_moments_merge(&all.of, &of->of);
        cvy_moments_merge(&all.nonzero, &of->nonzero);
        all.least = CVY_MIN(all.least, of->least);
        all.most = CVY_MAX(all.most, of->most);
        all.integers += of->integers;
    }
    return all.of.n >= COUNT_MIN && all.least >= 0 && all.most > 127 && all.most <= 255 &&
           all.nonzero.mean > 0.2 * all.most && ((double)all.integers == all.of.n || all.most > 250);
}

/* Whether values that have mean 0 and standard deviation 1 in the file are normalised by far other numbers. */
static int are_normalised_twice(const struct look *x, const struct before *b)
{
    int are = b->known && b->normalised, other = 0;
    for (int64_t c = 0; c < x->nchannels && are; c++) {
        const double mean = fabs(undo(b, c, x->channel[c].of.mean)), std = undo_std(b, c, &x->channel[c]);
        are = x->channel[c].of.n >= COUNT_MIN && mean < 0.25 && std > 0.75 && std < 1.33;
        other |= fabs(shift_of(b, c)) > 2 || std_of(b, c) < 1. / 3 || std_of(b, c) > 3;
    }
    return are && other;
}

/* ---- the likely cause ---- */

struct said { /* a mean, with the digits that its deviation asks for */
    char text[CVY_NUMBER_ROOM];
};

static struct said say_mean(double mean, double std)
{
    struct said said;
    cvy_number_write(mean, std / 10, said.text);
    return said;
}

/* How many standard deviations the mean that is given for channel k lies from the values of channel c. */
static double misfit(const struct look *x, const struct before *b, int64_t c, int64_t k)
{
    return fabs(undo(b, c, x->channel[c].of.mean) - shift_of(b, k)) / undo_std(b, c, &x->channel[c]);
}

/* Another channel whose given mean does not fit it, but fits the values of channel c; -1: none. */
static int64_t find_other(const struct look *x, const struct before *b, int64_t c)
{
    for (int64_t k = 0; k < x->nchannels && b->step->n > 1; k++)
        if (k != c && misfit(x, b, c, c) > 5 && misfit(x, b, c, k) < 2 && misfit(x, b, k, k) > 5)
            return k;
    return -1;
}

static void add_cause_of_normalised(const struct look *x, const struct before *b, int64_t c, cvy_text *t)
{
    const struct channel *of = &x->channel[c];
    const double std = std_of(b, c), own_mean = undo(b, c, of->of.mean), own_std = undo_std(b, c, of),
                 ends[] = {undo(b, c, of->least), undo(b, c, of->most)};
    const double least = CVY_MIN(ends[0], ends[1]), most = CVY_MAX(ends[0], ends[1]);
    const int64_t other = find_other(x, b, c);
    const struct said given = say_mean(shift_of(b, c), std), own = say_mean(own_mean, own_std);
    if (least > -0.01 && most < 1.01 && std > 2)
        cvy_text_add(t,
                     "the mean and std that are given (%s and %.6g) are in units of 0 to 255, and the values are 0 to "
                     "1%s: divide both by 255",
                     given.text, std, b->unit > 1 ? ", because bytes of pictures are divided by 255 before" : "");
    else if (least > -0.01 && most > 2 && most < 256 && std < 1 && fabs(shift_of(b, c)) <= 1)
        cvy_text_add(t,
                     "the mean and std that are given (%s and %.6g) are in units of 0 to 1, and the values are 0 to "
                     "255: multiply both by 255",
                     given.text, std);
    else if (own_std > 0 && fabs(std / (own_std * own_std) - 1) < 0.25 && fabs(log(own_std)) > 0.5)
        cvy_text_add(t, "the std that is given, %.6g, is about the variance of the values: give its root, %.4g", std,
                     own_std);
    else if (other >= 0)
        cvy_text_add(t,
                     "their own mean is %s, and the given one, %s, does not fit, but that of channel %lld does, %s: "
                     "are the lists of mean and std in another order than the channels?",
                     own.text, given.text, (long long)other, say_mean(shift_of(b, other), std_of(b, other)).text);
    else if (fabs(own_mean) < 3 && own_std > 0.2 && own_std < 5)
        cvy_text_add(t,
                     "the values in the file have mean %s and standard deviation %.4g, so they are normalised already: "
                     "leave out the mean and std that are given (%s and %.6g)",
                     own.text, own_std, given.text, std);
    else
        cvy_text_add(t,
                     "the mean and std that are given (%s and %.6g) are not those of the values, %s and %.4g: correct "
                     "them",
                     given.text, std, own.text, own_std);
}

/* Values that vary by so little that f32, as which they were read, may have lost their differences. Returns their size,
 * or 0. */
static double coarse_size(const struct look *l, const struct before *b, int64_t c)
{
    const struct channel *of = &l->channel[c];
    if (l->is_y ? l->is_scaled : !b->known)
        return 0;
    const double size = fabs(l->is_y ? of->of.mean : undo(b, c, of->of.mean)),
                 std = l->is_y ? cvy_moments_std(&of->of) : undo_std(b, c, of);
    return cvy_f32_spacing(size) >= 1 && cvy_moments_are_coarse(size, std, 0) ? size : 0;
}

static void add_coarse(const struct look *l, const struct before *b, int64_t c, cvy_text *t)
{
    const double coarse = coarse_size(l, b, c);
    cvy_text_add(t,
                 "values are read as f32, in which numbers near %.6g are %.3g apart, so smaller differences are lost: "
                 "subtract a constant before they are written",
                 coarse, cvy_f32_spacing(coarse));
}

static void add_cause(const struct look *l, const struct before *b, int bytes, int64_t c, cvy_text *t)
{
    if (coarse_size(l, b, c) > 0)
        add_coarse(l, b, c, t);
    else if (l->is_y && l->is_scaled)
        cvy_text_add(t, "the mean and std of data.normalize_targets are not those of the targets: "
                        "`data.normalize_targets: auto` computes them");
    else if (l->is_y && l->channel[c].of.m2 == 0)
        cvy_text_add(t, "a target that is constant teaches nothing: leave it out");
    else if (l->is_y)
        cvy_text_add(t, "a loss of such numbers begins far off: `data.normalize_targets: auto` scales them, and gives "
                        "predictions their units back");
    else if (bytes)
        cvy_text_add(t, "the values are 0 to 255, and only bytes of pictures are divided by 255 when they are read: "
                        "`data.normalize: auto`, or a step `scale: 0.00392157` in data.augment, brings them to about "
                        "1");
    else if (l->channel[c].of.m2 == 0)
        cvy_text_add(t, "a constant tells a network nothing: leave it out, or subtract it (`data.normalize: auto`)");
    else if (b->known && b->normalised)
        add_cause_of_normalised(l, b, c, t);
    else
        cvy_text_add(t, "`data.normalize: auto` subtracts the mean of the training data and divides by their standard "
                        "deviation");
}

/* ---- the line ---- */

static void add_channel(const struct look *l, int64_t c, cvy_text *t)
{
    const struct channel *of = &l->channel[c];
    if (l->nchannels > 1 && l->name)
        cvy_text_add(t, "column %s", l->name[c]);
    else if (l->nchannels > 1)
        cvy_text_add(t, "%s %lld", l->field->shape.ndim > 1 ? "channel" : "number", (long long)c);
    else
        cvy_text_add(t, "it");
    const double std = cvy_moments_std(&of->of);
    char value[CVY_NUMBER_ROOM];
    cvy_number_write_f32(of->of.mean, value);
    if (std == 0)
        cvy_text_add(t, " is %s in all of the %lld samples that were looked at", value, (long long)l->nsamples);
    else
        cvy_text_add(t, " has mean %s and standard deviation %.4g", say_mean(of->of.mean, std).text, std);
}

/* Warns if any channel is far. */
static int say(const cvy_context *context, const cvy_values_ask *ask, const struct look *l, const struct before *b)
{
    const int bytes = !l->is_y && are_bytes(l, b), twice = !l->is_y && are_normalised_twice(l, b);
    int64_t far = 0, first = -1;
    cvy_text t = {0};
    for (int64_t c = 0; c < l->nchannels; c++) {
        if (!is_far(l, c) && !twice && !(bytes && l->channel[c].of.m2 > 0))
            continue;
        first = first < 0 ? c : first;
        if (far++ == 0)
            cvy_text_add(&t,
                         "%s: %s is far from mean 0 and standard deviation 1, where a network trains well: ", ask->key,
                         l->is_y ? "y" : "x");
        else if (far <= SHOWN)
            cvy_text_add(&t, ", ");
        if (far <= SHOWN)
            add_channel(l, c, &t);
    }
    if (far > SHOWN)
        cvy_text_add(&t, ", and %lld more of %lld", (long long)(far - SHOWN), (long long)l->nchannels);
    if (far > 0) {
        cvy_text_add(&t, "; ");
        add_cause(l, b, bytes, first, &t);
        if (t.status == CVY_OK)
            cvy_log(context, CVY_LOG_WARN, "%s", t.data);
    }
    cvy_text_free(&t);
    return far > 0;
}

/* Warns of channels that normalisation has brought to about 1, although f32 has lost what they differ by. */
static void say_coarse(const cvy_context *context, const cvy_values_ask *ask, const struct look *l,
                       const struct before *b)
{
    int64_t coarse = 0;
    cvy_text t = {0};
    for (int64_t c = 0; c < l->nchannels; c++) {
        if (is_far(l, c) || l->channel[c].of.n < COUNT_MIN || coarse_size(l, b, c) <= 0)
            continue;
        if (coarse == 0)
            add_coarse(l, b, c, &t);
        coarse++;
    }
    if (coarse > 0 && t.status == CVY_OK)
        cvy_log(context, CVY_LOG_WARN, "%s: %lld of %lld %s of %s lose digits: %s", ask->key, (long long)coarse,
                (long long)l->nchannels, l->field->shape.ndim > 1 ? "channels" : "numbers", l->is_y ? "y" : "x",
                t.data);
    cvy_text_free(&t);
}

/* ---- what is judged ---- */

static int is_one_of(const char *word, const char *const *list, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(word, list[i]) == 0)
            return 1;
    return 0;
}

/* Whether weights meet x as it is: a matrix or a convolution reads it, at most with steps between that keep its size.
 * Indices of an embedding have no scale, and a norm, or arithmetic of the model's own, may set it right. */
static int meets_weights(const cvy_model *m)
{
    static const char *const weighs[] = {"conv", "fc", "deconv", "matmul"};
    static const char *const passes[] = {"reshape", "flatten", "transpose", "pad",        "crop",  "slice",
                                         "concat",  "expand",  "resize",    "max_pool",   "relu",  "avg_pool",
                                         "dropout", "noise",   "mix",       "leaky_relu", "prelu", "elu"};
    char *as_it_is = NULL;
    int found = 0, embeds = 0;
    if (m->nlayer == 0 || cvy_mem_alloc((size_t)m->nlayer, &as_it_is) != CVY_OK)
        return 0;
    for (int i = 0; i < m->nlayer; i++) {
        const cvy_layer *layer = &m->layer[i];
        int reads = 0;
        for (int k = 0; k < layer->nfrom; k++) {
            reads |= strcmp(layer->from[k], "x") == 0;
            for (int before = 0; before < i && !reads; before++)
                reads = as_it_is[before] && strcmp(layer->from[k], m->layer[before].output) == 0;
        }
        if (!reads)
            continue;
        as_it_is[i] = (char)is_one_of(layer->op->name, passes, CVY_COUNT(passes));
        found |= is_one_of(layer->op->name, weighs, CVY_COUNT(weighs));
        embeds |= strcmp(layer->op->name, "embedding") == 0;
    }
    cvy_mem_free(&as_it_is);
    return found && !embeds;
}

/* Whether the output comes from weights as it is, and not from a layer that gives it a scale. */
static int output_has_no_scale(const cvy_model *m)
{
    static const char *const scales[] = {"scale", "affine", "offset", "multiply", "add", "exp", "power", "square"};
    const char *output = cvy_model_output(m);
    for (int i = 0; i < m->nlayer; i++)
        if (strcmp(m->layer[i].output, output) == 0)
            return !is_one_of(m->layer[i].op->name, scales, CVY_COUNT(scales));
    return 0;
}

static const cvy_field *field_y(const cvy_dataset_info *info)
{
    for (int i = 1; i < info->nfield; i++)
        if (strcmp(info->field[i].name, "y") == 0 && info->field[i].dtype == CVY_DTYPE_F32)
            return &info->field[i];
    return NULL;
}

int cvy_values_look(const cvy_context *context, const cvy_values_ask *ask, cvy_dataset *d)
{
    const cvy_dataset_info *info = cvy_dataset_describe(d);
    const cvy_columns *columns = &cvy_dataset_reader_info(d)->columns;
    const cvy_field *x = &info->field[0], *y = field_y(info);
    const int of_x = x->dtype == CVY_DTYPE_F32 && meets_weights(ask->model);
    const int of_y =
        ask->targets && y && info->target_channels > 0 && !info->target_is_input && output_has_no_scale(ask->model);
    struct look look[2] = {{0}};
    struct before before = {0};
    cvy_augment *augment = NULL;
    cvy_value_step step[CVY_VALUE_STEPS_MAX];
    cvy_status status = CVY_OK;
    int said = 0;
    if (context->comm->rank != 0 || (!of_x && !of_y) || info->nsamples == 0)
        return 0;
    if (of_x)
        CVY_TRY_OUT(begin(&look[0], x, x->shape.ndim > 0 ? x->shape.dim[0] : 1, columns->x, columns->nx));
    if (of_y)
        CVY_TRY_OUT(begin(&look[1], y, info->target_channels, columns->x ? columns->y : NULL, columns->ny));
    look[1].is_y = 1;
    look[1].is_scaled = info->scaling.n > 0;
    CVY_TRY_OUT(read_samples(d, &look[0], &look[1]));
    find_before(ask, d, &augment, step, &before);
    said = of_x && say(context, ask, &look[0], &before);
    if (of_x)
        say_coarse(context, ask, &look[0], &before);
    if (of_y)
        say(context, ask, &look[1], &before);
out:
    (void)status;
    cvy_augment_destroy(&augment);
    cvy_mem_free(&look[0].channel);
    cvy_mem_free(&look[1].channel);
    return said;
}
