/*
 * pass_split.c: splits a forward graph over the ranks of one axis of the grid: it makes the graph of one part, node by
 * node, and adds communication where a node needs other entries of a value than its rank has.
 *
 *   tensor   layers with weights are split by their outputs or inputs, or share samples, as told; what comes between
 *            follows by channels or samples
 *   space    all layers are split along one spatial dimension; a sliding window fetches the positions of its neighbours
 *            (halo), a layer that cannot be split gathers its sources first, and all ranks compute it
 *
 * Each part of a node is the same operator, inferred again from the part of its sources. The shapes say what its
 * results are: shorter than in the whole node along one dimension, they are that part of the whole; of the same shape,
 * they are partial sums, which are added over ranks at once (accumulators: with the gradients). Autodiff comes after
 * this, so backward is split by the gradients of the operators, and communication has its gradient, too.
 *
 * It runs once for each axis, on the part that the axis before has made. Sources: Shoeybi et al. 2019, Megatron-LM,
 * section 3; Dryden et al. 2019, spatial parallelism, section 3.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "pass/pass_split.h"

#include <stdio.h>
#include <string.h>

#include "op/comm/op_redistribute.h"
#include "op/pointwise/op_scale.h"
#include "op/tensor/op_concat.h"
#include "op/tensor/op_reshape.h"

/* What the ranks of the axis have of a value: the dimension that is split, or one of these. */
enum { WHOLE = -1, SOME_PART = -2 }; /* SOME_PART: no range of one dimension */

/* A value of the whole graph, in the part. */
struct place {
    cvy_value *value; /* NULL: not made yet */
    int dim;
    cvy_value *gathered; /* the whole value on all ranks; NULL: not made */
};

struct splitting {
    const cvy_pass_split *split;
    const cvy_graph *whole;
    cvy_graph *part;
    struct place *place; /* by value of the whole graph */
    int nsplit;          /* nodes that are split */
};

static unsigned axis_bit(const struct splitting *s)
{
    return CVY_AXIS_BIT(s->split->axis);
}

/* The dimension of activations that is split. */
static int split_along(const struct splitting *s, unsigned split)
{
    if (split == CVY_SPLIT_SAMPLES)
        return 0;
    return s->split->axis == CVY_AXIS_TENSOR ? 1 : 2 + (int)(s->split->axis - CVY_AXIS_SPACE0);
}

static int64_t share_first(const struct splitting *s, int64_t n, int part)
{
    return cvy_share_first(n, part, s->split->parts);
}

static int64_t share_count(const struct splitting *s, int64_t n)
{
    return share_first(s, n, s->split->me + 1) - share_first(s, n, s->split->me);
}

/* ---- tiles ---- */

/* The tile of a part that is a range of dimension dim of a tensor, which may itself be a tile. */
static cvy_status make_tile(cvy_pool *pool, const cvy_shape *whole, const cvy_tile *outer, int dim, int64_t first,
                            const cvy_tile **out)
{
    cvy_tile *tile = NULL;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *tile, &tile));
    *tile = outer ? *outer : (cvy_tile){.whole = *whole};
    tile->first[dim] += first;
    *out = tile;
    return CVY_OK;
}

/* The dimension along which a part is shorter than the whole, if there is one. */
static int split_dim(const cvy_shape *whole, const cvy_shape *part)
{
    int dim = WHOLE;
    if (whole->ndim != part->ndim)
        return SOME_PART;
    for (int d = 0; d < whole->ndim; d++)
        if (whole->dim[d] != part->dim[d])
            dim = dim == WHOLE ? d : SOME_PART;
    return dim;
}

/* Notes in the part's value what it is of the whole one. */
static cvy_status set_place(struct splitting *s, const cvy_value *of, cvy_value *value, int dim)
{
    value->split = of->split | (dim == WHOLE ? 0 : axis_bit(s));
    value->shares_samples = of->shares_samples;
    value->over |= of->over;
    value->tile = of->tile;
    if (dim >= 0)
        CVY_TRY(make_tile(s->part->pool, &of->shape, of->tile, dim, share_first(s, of->shape.dim[dim], s->split->me),
                          &value->tile));
    s->place[of->index] = (struct place){.value = value, .dim = dim};
    return CVY_OK;
}

/* ---- communication ---- */

static cvy_status add_node(struct splitting *s, const char *op, const char *name, const char *what, const cvy_node *at,
                           const void *options, cvy_value *src, cvy_value **out)
{
    cvy_node *node = NULL;
    char full[200];
    snprintf(full, sizeof full, "%s.%s.%s", name, what, cvy_axis_name(s->split->axis));
    CVY_TRY(cvy_graph_add_parsed(s->part, cvy_op_find(op), full, at->layer, options, &src, 1, at->phase, &node));
    node->split = src->split;
    node->dst[0]->split = src->split; /* unless the caller knows better */
    *out = node->dst[0];
    return CVY_OK;
}

static struct cvy_redistribute redistribution(const struct splitting *s, int dim, int64_t n, cvy_has from, cvy_has to)
{
    return (struct cvy_redistribute){.axis = (int)s->split->axis,
                                     .dim = dim,
                                     .n = n,
                                     .parts = s->split->parts,
                                     .me = s->split->me,
                                     .from = from,
                                     .to = to};
}

/* The whole of a value, on all ranks. */
static cvy_status gathered(struct splitting *s, const cvy_value *of, const cvy_node *at, cvy_value **out)
{
    struct place *p = &s->place[of->index];
    if (p->dim == WHOLE) {
        *out = p->value;
        return CVY_OK;
    }
    CVY_CHECK(p->dim >= 0, CVY_E_INTERNAL, "%s reads %s, of which ranks have parts that cannot be gathered", at->name,
              of->name);
    if (!p->gathered) {
        const struct cvy_redistribute o =
            redistribution(s, p->dim, of->shape.dim[p->dim], CVY_HAS_SHARE, CVY_HAS_WHOLE);
        CVY_TRY(add_node(s, "redistribute", of->name, "whole", at, &o, p->value, &p->gathered));
        p->gathered->split = of->split;
        p->gathered->shares_samples = of->shares_samples;
        p->gathered->tile = of->tile;
    }
    *out = p->gathered;
    return CVY_OK;
}

/* This rank's share of a value along a dimension. */
static cvy_status shared(struct splitting *s, const cvy_value *of, int dim, const cvy_node *at, cvy_value **out)
{
    struct place *p = &s->place[of->index];
    char what[24];
    if (p->dim == dim || p->dim == SOME_PART) {
        *out = p->value;
        return CVY_OK;
    }
    CVY_TRY(gathered(s, of, at, out));
    const struct cvy_redistribute o = redistribution(s, dim, of->shape.dim[dim], CVY_HAS_WHOLE, CVY_HAS_SHARE);
    snprintf(what, sizeof what, "%s.share%d", at->name, dim);
    CVY_TRY(add_node(s, "redistribute", of->name, what, at, &o, *out, out));
    (*out)->split = of->split | axis_bit(s);
    (*out)->shares_samples = of->shares_samples || dim == 0;
    return make_tile(s->part->pool, &of->shape, of->tile, dim, share_first(s, of->shape.dim[dim], s->split->me),
                     &(*out)->tile);
}

/* Whether the windows of all ranks are their shares of the source. */
static int windows_are_shares(const struct splitting *s, int64_t n, const cvy_slide *slide)
{
    int equal = 1;
    for (int p = 0; p < s->split->parts; p++) {
        int64_t first, end;
        cvy_slide_range(slide, p, s->split->parts, &first, &end);
        equal = equal && first == share_first(s, n, p) && end == share_first(s, n, p + 1);
    }
    return equal;
}

/* The positions that this rank's share of the results needs. */
static cvy_status windowed(struct splitting *s, const cvy_value *of, const cvy_node_part *part, const cvy_slide *slide,
                           const cvy_node *at, cvy_value **out)
{
    const int64_t n = of->shape.dim[part->dim];
    CVY_TRY(shared(s, of, part->dim, at, out));
    if (windows_are_shares(s, n, slide))
        return CVY_OK;
    struct cvy_redistribute o = redistribution(s, part->dim, n, CVY_HAS_SHARE, CVY_HAS_WINDOW);
    o.slide = *slide;
    o.fill = part->fill;
    CVY_TRY(add_node(s, "redistribute", at->name, "halo", at, &o, *out, out));
    (*out)->split = of->split | axis_bit(s);
    return CVY_OK;
}

/* ---- how a node is split ---- */

static int given_sources(const cvy_node *node)
{
    int n = 0;
    while (n < node->nsrc && node->src[n]->kind != CVY_VALUE_VARIABLE)
        n++;
    return n;
}

/* Fills in *part and the options of the part. */
static cvy_status describe(struct splitting *s, const cvy_node *node, unsigned split, int dim, cvy_node_part *part,
                           void **options_out)
{
    const cvy_value *dst = node->dst[0];
    const int64_t n = dst && dim < dst->shape.ndim ? dst->shape.dim[dim] : 0;
    *part = (cvy_node_part){.split = split,
                            .dim = dim,
                            .first = share_first(s, n, s->split->me),
                            .count = share_count(s, n),
                            .number = s->split->me,
                            .parts = s->split->parts};
    *options_out = node->options;
    if (!node->op->options_size)
        return node->op->part ? node->op->part(node, part, NULL) : CVY_OK;
    CVY_TRY(cvy_pool_alloc(s->part->pool, node->op->options_size, options_out));
    memcpy(*options_out, node->options, node->op->options_size);
    return node->op->part ? node->op->part(node, part, *options_out) : CVY_OK;
}

/* Whether the operator allows this split, and the results are long enough for all parts. */
static int allows(struct splitting *s, const cvy_node *node, unsigned split, int dim)
{
    cvy_node_part part;
    void *options = NULL;
    const cvy_value *dst = node->dst[0];
    if (!((cvy_node_splits(node) | node->op->part_splits) & split))
        return 0;
    if (dst && split != CVY_SPLIT_INPUTS && split != CVY_SPLIT_SAMPLES && dst->shape.ndim == node->src[0]->shape.ndim &&
        dst->shape.ndim > dim && dst->shape.dim[dim] < s->split->parts)
        return 0;
    return describe(s, node, split, dim, &part, &options) == CVY_OK;
}

static int any_source_is_split(const struct splitting *s, const cvy_node *node, int dim)
{
    int any = 0;
    for (int i = 0; i < given_sources(node); i++) {
        const int have = s->place[node->src[i]->index].dim;
        any |= have == dim || have == SOME_PART;
    }
    return any;
}

static int any_source_is_part(const struct splitting *s, const cvy_node *node)
{
    int any = 0;
    for (int i = 0; i < given_sources(node); i++)
        any |= s->place[node->src[i]->index].dim != WHOLE;
    return any;
}

static int may_follow(struct splitting *s, const cvy_node *node, unsigned split)
{
    const int dim = split_along(s, split);
    return any_source_is_split(s, node, dim) && allows(s, node, split, dim);
}

/* CVY_SPLIT_*, or 0: all ranks compute the node. */
static unsigned choose(struct splitting *s, const cvy_node *node)
{
    if (s->split->axis != CVY_AXIS_TENSOR)
        return may_follow(s, node, CVY_SPLIT_SPACE) ? CVY_SPLIT_SPACE : 0;
    const int told = s->split->of_layer ? cvy_index_find(s->split->of_layer, node->layer) : -1;
    if (told > 0 && allows(s, node, (unsigned)told, split_along(s, (unsigned)told)))
        return (unsigned)told;
    if (node->phase != CVY_PHASE_UPDATE && may_follow(s, node, CVY_SPLIT_SAMPLES))
        return CVY_SPLIT_SAMPLES;
    return may_follow(s, node, CVY_SPLIT_CHANNELS) ? CVY_SPLIT_CHANNELS : 0;
}

/* ---- one node ---- */

/* Whether the source has the axis along which the node is split, as addends have. Statistics of channels have another
 * shape. */
static int has_axis(const cvy_node *node, const cvy_value *of, const cvy_node_part *part)
{
    if (part->split == CVY_SPLIT_INPUTS)
        return 1;
    if (part->split == CVY_SPLIT_SAMPLES)
        return of->shape.ndim > 0 && !of->per_step;
    const cvy_shape *dst = node->dst[0]->shape.ndim > part->dim ? &node->dst[0]->shape : cvy_node_src(node, 0);
    return of->shape.ndim == dst->ndim && of->shape.dim[part->dim] == dst->dim[part->dim] &&
           of->dtype == node->src[0]->dtype;
}

static cvy_status source_of(struct splitting *s, const cvy_node *node, const cvy_node_part *part, int i,
                            cvy_value **out)
{
    const cvy_value *of = node->src[i];
    const cvy_slide slide = {node->dst[0] && part->slides ? node->dst[0]->shape.dim[part->dim] : 0, part->stride,
                             part->pad, part->reach, part->transposed};
    if (part->other_src && i == part->other_src) {
        CVY_TRY(shared(s, of, part->other_dim, node, out));
        (*out)->shares_samples = of->shares_samples; /* dimension 0 of a weight is none of samples */
        return CVY_OK;
    }
    if (part->split == 0 || part->split == CVY_SPLIT_OUTPUTS)
        return gathered(s, of, node, out);
    if (part->whole_src >> i & 1)
        return gathered(s, of, node, out);
    if (part->slides && i == 0)
        return windowed(s, of, part, &slide, node, out);
    const cvy_scale_opts by = {part->factor};
    if (part->scaled && i == part->scaled) {
        CVY_TRY(gathered(s, of, node, out));
        return add_node(s, "scale", node->name, "share", node, &by, *out, out);
    }
    if (part->lacks_channels >> i & 1)
        return shared(s, of, part->dim - 1, node, out);
    *out = s->place[of->index].value;
    return part->has_axis >> i & 1 || has_axis(node, of, part) ? shared(s, of, part->dim, node, out) : CVY_OK;
}

/* Variables that the part has created are parts, too. unit_of: the number of channels that are split: a dimension of a
 * variable has a multiple of it. */
static cvy_status take_variable(struct splitting *s, const cvy_variable *whole, int64_t unit_of, cvy_value *read)
{
    cvy_variable *v = read->variable;
    const int dim = split_dim(&whole->shape, &v->shape);
    v->init.fan_in = whole->init.fan_in;
    v->init.fan_out = whole->init.fan_out;
    CVY_CHECK(dim != SOME_PART, CVY_E_INTERNAL, "%s is %s, which is no part of %s", v->name, cvy_shape_text(&v->shape),
              cvy_shape_text(&whole->shape));
    if (!v->tile && dim >= 0)
        CVY_TRY(make_tile(s->part->vars->pool, &whole->shape, whole->tile, dim,
                          share_first(s, unit_of, s->split->me) * (whole->shape.dim[dim] / unit_of), &v->tile));
    else if (!v->tile && whole->tile)
        CVY_TRY(make_tile(s->part->vars->pool, &whole->shape, whole->tile, 0, 0, &v->tile));
    read->tile = v->tile;
    read->split |= dim >= 0 ? axis_bit(s) : 0;
    return CVY_OK;
}

static cvy_status take_variables(struct splitting *s, const cvy_node *node, const cvy_node *part, unsigned split)
{
    const cvy_value *channels = split == CVY_SPLIT_INPUTS ? node->src[0] : node->dst[0];
    const int64_t unit_of = channels && channels->shape.ndim > 1 ? channels->shape.dim[1] : 1;
    for (int i = given_sources(node); i < part->nsrc; i++) {
        /* A bias that only the first part adds belongs to this rank alone, like a part of a weight. */
        part->src[i]->split |= node->src[i]->split | (split == CVY_SPLIT_INPUTS ? axis_bit(s) : 0);
        const cvy_shape *whole = &node->src[i]->variable->shape;
        CVY_TRY(take_variable(s, node->src[i]->variable, node->phase == CVY_PHASE_UPDATE ? whole->dim[0] : unit_of,
                              part->src[i]));
    }
    return CVY_OK;
}

/* The dimension of a result that is split. A rank may have all samples or none, so their number tells nothing. */
static int result_dim(const cvy_node_part *d, const cvy_value *of, const cvy_value *value)
{
    if (d->split != CVY_SPLIT_SAMPLES)
        return split_dim(&of->shape, &value->shape);
    return d->sums_samples || of->kind == CVY_VALUE_ACCUMULATOR ? WHOLE : 0;
}

/* The maxima of all parts, [N, C] each, are gathered as the positions of one more tensor, whose maxima are the result.
 */
static cvy_status join_maxima(struct splitting *s, const cvy_node *node, cvy_value **value)
{
    const cvy_reshape_opts one = {.shape = {.count = 2, .at = {(*value)->shape.dim[1], 1}}};
    const struct cvy_redistribute all = redistribution(s, 2, s->split->parts, CVY_HAS_SHARE, CVY_HAS_WHOLE);
    const unsigned over = (*value)->split;
    CVY_TRY(add_node(s, "reshape", node->name, "maximum", node, &one, *value, value));
    (*value)->split = over | axis_bit(s);
    CVY_TRY(add_node(s, "redistribute", node->name, "maxima", node, &all, *value, value));
    (*value)->split = over;
    return add_node(s, "global_max_pool", node->name, "largest", node, NULL, *value, value);
}

/* Partial sums and means are added over ranks at once; those of accumulators, together with the gradients. */
static cvy_status take_result(struct splitting *s, const cvy_node *node, const cvy_node *part, const cvy_node_part *d,
                              int i)
{
    const cvy_value *of = node->dst[i];
    cvy_value *value = part->dst[i];
    const int dim = result_dim(d, of, value), is_sum = d->split != 0 && dim == WHOLE;
    if (value->kind == CVY_VALUE_VARIABLE) {
        s->place[of->index] = (struct place){.value = value, .dim = dim};
        return CVY_OK;
    }
    if (is_sum && value->kind == CVY_VALUE_ACCUMULATOR && part->phase == CVY_PHASE_MICRO)
        value->over |= axis_bit(s);
    else if (is_sum && d->maxima) {
        value->split = of->split;
        CVY_TRY(join_maxima(s, node, &value));
    } else if (is_sum) {
        const struct cvy_allreduce_axis axis = {(int)s->split->axis};
        const cvy_scale_opts by = {d->share};
        value->split = of->split;
        if (d->share > 0)
            CVY_TRY(add_node(s, "scale", value->name, "weighed", node, &by, value, &value));
        CVY_TRY(add_node(s, "allreduce", value->name, "sum", node, &axis, value, &value));
    }
    CVY_TRY(set_place(s, of, value, dim));
    value->shares_samples |= d->split == CVY_SPLIT_SAMPLES && dim == 0;
    return CVY_OK;
}

/* A part of a transposed convolution's result is cut out of what its sources touch. */
static cvy_status cut_out(struct splitting *s, const cvy_node *node, const cvy_node_part *d, cvy_node *part)
{
    const cvy_slide slide = {node->dst[0]->shape.dim[d->dim], d->stride, d->pad, d->reach, 1};
    int64_t first, end;
    cvy_slide_range(&slide, d->number, d->parts, &first, &end);
    const cvy_slice_opts cut = {d->dim, d->first - (first * d->stride - d->pad), d->count};
    cvy_value *value = NULL;
    part->dst[0]->split = node->dst[0]->split | axis_bit(s);
    if (cut.first == 0 && cut.count == part->dst[0]->shape.dim[d->dim])
        return set_place(s, node->dst[0], part->dst[0], d->dim);
    CVY_TRY(add_node(s, "slice", part->name, "cut", node, &cut, part->dst[0], &value));
    return set_place(s, node->dst[0], value, d->dim);
}

static cvy_status split_node(struct splitting *s, const cvy_node *node)
{
    const int given = given_sources(node);
    const int follows = node->op->flags & CVY_OP_FOLLOWS && any_source_is_part(s, node);
    const unsigned split = follows ? 0 : choose(s, node);
    cvy_value *src[CVY_NODE_SRC_MAX] = {0};
    cvy_node_part d = {0};
    void *options = node->options;
    cvy_node *part = NULL;
    CVY_CHECK(node->op->pass == CVY_LAYER_FORWARD, CVY_E_UNSUPPORTED,
              "layer %s: a gradient penalty does not go with ranks that share layers or samples (tensor, spatial)",
              node->layer);
    if (split)
        CVY_TRY(describe(s, node, split, split_along(s, split), &d, &options));
    for (int i = 0; i < given; i++)
        if (follows)
            src[i] = s->place[node->src[i]->index].value;
        else
            CVY_TRY(source_of(s, node, &d, i, &src[i]));
    CVY_TRY(cvy_graph_add_parsed(s->part, node->op, node->name, node->layer, options, src, given, node->phase, &part));
    part->split = node->split | (split || follows ? axis_bit(s) : 0);
    s->nsplit += split != 0;
    CVY_TRY(take_variables(s, node, part, split));
    if (d.transposed)
        return cut_out(s, node, &d, part);
    for (int i = 0; i < node->ndst - node->op->nsaved; i++)
        if (node->dst[i] && part->dst[i])
            CVY_TRY(take_result(s, node, part, &d, i));
    return CVY_OK;
}

/* ---- the graph ---- */

/* Whether the losses read the value as their weight, and nothing else reads its values. A mask is summed before the
 * first forward, when no rank can ask others for their parts. */
static int is_loss_weight(const struct splitting *s, const cvy_value *of)
{
    enum { WEIGHT = 3 }; /* the source of a loss: op/loss/op_loss.h */
    int readers = 0;
    for (int i = 0; i < s->whole->nnode; i++) {
        const cvy_node *node = s->whole->node[i];
        for (int k = 0; k < node->nsrc && !node->removed; k++) {
            if (node->src[k] != of)
                continue;
            const int is_cut = node->op == cvy_op_find("redistribute"); /* which this pass added for another axis */
            if (!(node->op->flags & CVY_OP_LOSS && k == WEIGHT) && !(node->op->flags & CVY_OP_COUNTS_WEIGHTS) &&
                !(is_cut && is_loss_weight(s, node->dst[0])))
                return 0;
            readers++;
        }
    }
    return readers > 0;
}

/* Inputs are split along a spatial axis if they have it, but masks are not. */
static cvy_status take_feed(struct splitting *s, const cvy_value *of)
{
    const int dim = split_along(s, CVY_SPLIT_SPACE);
    const int is_split = s->split->axis != CVY_AXIS_TENSOR && !of->per_step && cvy_dtype_is_real(of->dtype) &&
                         of->shape.ndim > dim && of->shape.dim[dim] >= s->split->parts && !is_loss_weight(s, of);
    cvy_shape shape = of->shape;
    cvy_value *value = NULL;
    if (is_split)
        shape.dim[dim] = share_count(s, of->shape.dim[dim]);
    const cvy_shape sample = of->per_step ? shape : cvy_shape_make(shape.ndim - 1, shape.dim + 1);
    CVY_TRY(cvy_graph_feed(s->part, of->name, of->dtype, &sample, of->per_step, &value));
    return set_place(s, of, value, is_split ? dim : WHOLE);
}

/* Variables that only other ranks have still belong to the set, so that all ranks know all names. */
static cvy_status declare_others(const cvy_vars *all, cvy_vars *vars)
{
    for (int i = 0; i < all->count; i++) {
        const cvy_variable *v = all->at[i];
        cvy_variable *mine = NULL;
        if (cvy_vars_find(vars, v->name))
            continue;
        CVY_TRY(cvy_vars_declare(vars, v->name, v->role, v->dtype, &v->shape, &v->init, &mine));
        mine->decay = v->decay;
        mine->elsewhere = 1;
    }
    return CVY_OK;
}

static cvy_status split_all(struct splitting *s, cvy_value **value, int n)
{
    for (int v = 0; v < s->whole->nvalue; v++)
        if (s->whole->value[v]->kind == CVY_VALUE_FEED)
            CVY_TRY(take_feed(s, s->whole->value[v]));
    for (int i = 0; i < s->whole->nnode; i++)
        if (!s->whole->node[i]->removed)
            CVY_TRY(split_node(s, s->whole->node[i]));
    for (int i = 0; i < n; i++) {
        const cvy_node *producer = value[i]->producer;
        const struct place *part = &s->place[value[i]->index];
        if (i >= s->split->nwhole && part->dim >= 0) {
            value[i] = part->value;
            continue;
        }
        const cvy_node at = {.name = value[i]->name,
                             .layer = producer ? producer->layer : value[i]->name,
                             .phase = producer ? producer->phase : CVY_PHASE_MICRO};
        CVY_TRY(gathered(s, value[i], &at, &value[i]));
    }
    CVY_CHECK(s->nsplit > 0, CVY_E_CONFIG,
              "%d ranks of the axis %s would all compute the same, because %s; take fewer parts", s->split->parts,
              cvy_axis_name(s->split->axis),
              s->split->axis == CVY_AXIS_TENSOR ? "no layer with weights has so many channels"
                                                : "no input of a layer that can be split has so many positions");
    CVY_TRY(declare_others(s->whole->vars, s->part->vars));
    return cvy_graph_verify(s->part);
}

cvy_status cvy_pass_split_graph(cvy_graph *whole, const cvy_pass_split *split, cvy_vars *vars, cvy_value **value, int n,
                                cvy_graph **out)
{
    struct splitting s = {.split = split, .whole = whole};
    const cvy_graph_opts opts = {.name = whole->name,
                                 .batch = whole->batch,
                                 .training = whole->training,
                                 .dropout = whole->dropout,
                                 .dtype = whole->dtype,
                                 .bn_group = whole->bn_group,
                                 .bn_unit = whole->bn_unit,
                                 .bn_frozen = whole->bn_frozen,
                                 .precise = whole->precise,
                                 .seed = whole->seed};
    cvy_status status = cvy_mem_alloc(sizeof *s.place * ((size_t)whole->nvalue + 1), &s.place);
    if (status == CVY_OK)
        status = cvy_graph_create(vars, &opts, &s.part);
    if (status == CVY_OK) {
        s.part->whole = whole;
        s.part->sample_part = split->axis == CVY_AXIS_TENSOR ? split->me : whole->sample_part;
        s.part->sample_parts = split->axis == CVY_AXIS_TENSOR ? split->parts : whole->sample_parts;
        status = split_all(&s, value, n);
    }
    cvy_mem_free(&s.place);
    if (status == CVY_OK)
        *out = s.part;
    else if (s.part)
        cvy_graph_destroy(&s.part);
    else
        cvy_graph_destroy(&whole);
    return status;
}
