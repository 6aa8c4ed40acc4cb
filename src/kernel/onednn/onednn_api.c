/*
 * onednn_api.c: oneDNN's C API behind the few words of onednn_api.h.
 *
 * Version 2 has operation descriptors and open memory descriptors, version 3 neither; both differences end in this
 * file. Each call owns its engine and stream (cheap on a CPU), so nothing is shared and nothing is global. oneDNN takes
 * the size of the team from OpenMP's setting of the calling thread, which is put back after each use: a guest program
 * keeps its own.
 */
#include "kernel/onednn/onednn_api.h"

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_debug.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_cpu.h"

#if CVY_HAVE_OPENMP
#include <omp.h>
#endif

#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t md_handle;
typedef const_dnnl_memory_desc_t md_ref;
#else
typedef dnnl_memory_desc_t *md_handle;
typedef const dnnl_memory_desc_t *md_ref;
#endif

struct cvy_onednn_call {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    dnnl_memory_t memory[CVY_ONEDNN_ROLES + 1]; /* by role; the last is the scratchpad */
    void *bound[CVY_ONEDNN_ROLES + 1];          /* where each memory points now */
    dnnl_exec_arg_t arg[CVY_ONEDNN_ROLES + 1];
    int narg, threads;
    cvy_onednn_family family;
    cvy_onednn_pass pass;
    int present[CVY_ONEDNN_ROLES];
    int ndim[CVY_ONEDNN_ROLES];
    int64_t dim[CVY_ONEDNN_ROLES][CVY_ONEDNN_NDIM_MAX];
    cvy_dtype dtype[CVY_ONEDNN_ROLES];
};

/* ---- team ---- */

static int team_enter(int threads)
{
#if CVY_HAVE_OPENMP
    const int before = omp_get_max_threads();
    if (before != threads)
        omp_set_num_threads(threads);
    return before;
#else
    return threads;
#endif
}

static void team_leave(int threads, int before)
{
#if CVY_HAVE_OPENMP
    if (before != threads)
        omp_set_num_threads(before);
#else
    (void)threads;
    (void)before;
#endif
}

/* ---- faults ---- */

static cvy_status answer(dnnl_status_t status, const char *what)
{
    switch (status) {
    case dnnl_success: return CVY_OK;
    case dnnl_unimplemented: return cvy_error_set(CVY_NOT_APPLICABLE, "oneDNN has no implementation for %s", what);
    case dnnl_out_of_memory: return cvy_error_set(CVY_E_MEMORY, "oneDNN: out of memory in %s", what);
    default: return cvy_error_set(CVY_NOT_APPLICABLE, "oneDNN answers '%s' to %s", dnnl_status2str(status), what);
    }
}

#define TRY_DNNL(call, what) CVY_TRY(answer((call), (what)))
#define TRY_DNNL_OUT(call, what) CVY_TRY_OUT(answer((call), (what)))

/* ---- instruction sets ---- */

/* oneDNN 2.6 reads the geometry of tiles from CPUID; where a virtual machine hides that, it would configure none and die
 * of an illegal instruction. It keeps to vectors then. oneDNN settles its instruction sets at the process's first use or
 * first question, so this comes before each; what the user says in the environment stands. */
static void shun_tiles(void)
{
    if (!cvy_cpu_describes_amx() && cvy_cpu_may_use(CVY_ISA_AMX_BF16) && !getenv("ONEDNN_MAX_CPU_ISA") &&
        !getenv("DNNL_MAX_CPU_ISA"))
        dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx512_core_bf16);
}

static int may_use(dnnl_cpu_isa_t isa)
{
    shun_tiles();
    return ((int)dnnl_get_effective_cpu_isa() & (int)isa) == (int)isa;
}

int cvy_onednn_has_bf16(void)
{
    return may_use(dnnl_cpu_isa_avx512_core_bf16);
}

/* Where it was settled otherwise before. */
static int tiles_would_crash(void)
{
    return !cvy_cpu_describes_amx() && may_use(dnnl_cpu_isa_avx512_core_amx);
}

/* ---- the library ---- */

void cvy_onednn_library(char *text, size_t room)
{
    const dnnl_version_t *v = dnnl_version();
    shun_tiles();
    snprintf(text, room, "oneDNN %d.%d.%d instructions 0x%x", v->major, v->minor, v->patch,
             (unsigned)dnnl_get_effective_cpu_isa());
}

/* ---- memory descriptors ---- */

static cvy_status dtype_of(cvy_dtype dtype, dnnl_data_type_t *out)
{
    switch (dtype) {
    case CVY_DTYPE_F32: *out = dnnl_f32; return CVY_OK;
    case CVY_DTYPE_BF16: *out = dnnl_bf16; return CVY_OK;
    case CVY_DTYPE_I32: *out = dnnl_s32; return CVY_OK;
    case CVY_DTYPE_U8: *out = dnnl_u8; return CVY_OK;
    default: return cvy_error_set(CVY_NOT_APPLICABLE, "oneDNN has no dtype %s", cvy_dtype_text(dtype));
    }
}

/* oneDNN can print every tag that it knows, so its own list is the table. Plain first: it is the commonest. */
static cvy_status tag_of(const cvy_layout *layout, int ndim, dnnl_format_tag_t *out)
{
    static const dnnl_format_tag_t plain[] = {
        dnnl_format_tag_undef, dnnl_a, dnnl_ab, dnnl_abc, dnnl_abcd, dnnl_abcde, dnnl_abcdef};
    if (cvy_layout_is_plain(layout)) {
        *out = plain[ndim];
        return CVY_OK;
    }
    for (int tag = dnnl_a; tag < dnnl_format_tag_last; tag++) {
        if (strcmp(dnnl_fmt_tag2str((dnnl_format_tag_t)tag), layout->tag) == 0) {
            *out = (dnnl_format_tag_t)tag;
            return CVY_OK;
        }
    }
    CVY_FAIL(CVY_NOT_APPLICABLE, "oneDNN has no layout %s", layout->tag);
}

static cvy_status md_create(int ndim, const int64_t *dim, dnnl_data_type_t dtype, dnnl_format_tag_t tag, md_handle *out)
{
    dnnl_dims_t dims = {0};
    for (int i = 0; i < ndim; i++)
        dims[i] = dim[i];
#if DNNL_VERSION_MAJOR >= 3
    return answer(dnnl_memory_desc_create_with_tag(out, ndim, dims, dtype, tag), "a memory descriptor");
#else
    md_handle md = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *md, &md));
    const cvy_status status = answer(dnnl_memory_desc_init_by_tag(md, ndim, dims, dtype, tag), "a memory descriptor");
    if (status != CVY_OK)
        cvy_mem_free(&md);
    *out = md;
    return status;
#endif
}

static void md_free(md_handle *md)
{
#if DNNL_VERSION_MAJOR >= 3
    if (*md)
        dnnl_memory_desc_destroy(*md);
    *md = NULL;
#else
    cvy_mem_free(md);
#endif
}

static size_t md_bytes(md_ref md)
{
    return md ? dnnl_memory_desc_get_size(md) : 0;
}

/* ---- operations ---- */

struct operation {
    dnnl_alg_kind_t alg;
    md_handle md[CVY_ONEDNN_ROLES];
    dnnl_dims_t stride, dilation, pad_begin, pad_end;
};

static cvy_status make_operation(const cvy_onednn_problem *p, struct operation *op)
{
    memset(op, 0, sizeof *op);
    op->alg = p->family == CVY_ONEDNN_DECONV ? dnnl_deconvolution_direct
              : p->winograd                  ? dnnl_convolution_winograd
                                             : dnnl_convolution_direct;
    for (int i = 0; i < 3; i++) {
        op->stride[i] = p->stride[i];
        op->dilation[i] = p->dilation[i] - 1;
        op->pad_begin[i] = p->pad_begin[i];
        op->pad_end[i] = p->pad_end[i];
    }
    for (int i = 0; i < CVY_ONEDNN_ROLES; i++) {
        const cvy_onednn_tensor *t = &p->tensor[i];
        if (t->ndim == 0)
            continue;
        dnnl_format_tag_t tag = dnnl_format_tag_any;
        dnnl_data_type_t dtype = dnnl_data_type_undef;
        CVY_TRY(dtype_of(t->dtype, &dtype));
        if (!t->any)
            CVY_TRY(tag_of(&t->layout, t->ndim, &tag));
        CVY_TRY(md_create(t->ndim, t->dim, dtype, tag, &op->md[i]));
    }
    return CVY_OK;
}

static void free_operation(struct operation *op)
{
    for (int i = 0; i < CVY_ONEDNN_ROLES; i++)
        md_free(&op->md[i]);
}

#if DNNL_VERSION_MAJOR >= 3

static dnnl_status_t operation_desc(const cvy_onednn_problem *p, cvy_onednn_pass pass, const struct operation *o,
                                    dnnl_engine_t engine, const_dnnl_primitive_desc_t hint,
                                    const_dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *out)
{
    md_ref src = o->md[CVY_ONEDNN_SRC], weight = o->md[CVY_ONEDNN_WEIGHT], bias = o->md[CVY_ONEDNN_BIAS],
           dst = o->md[CVY_ONEDNN_DST];
    const dnnl_prop_kind_t training = dnnl_forward_training;
    switch (p->family * 3 + (int)pass) {
    case CVY_ONEDNN_CONV * 3 + CVY_ONEDNN_FORWARD:
        return dnnl_convolution_forward_primitive_desc_create(out, engine, training, o->alg, src, weight, bias, dst,
                                                              o->stride, o->dilation, o->pad_begin, o->pad_end, attr);
    case CVY_ONEDNN_CONV * 3 + CVY_ONEDNN_GRAD_SRC:
        return dnnl_convolution_backward_data_primitive_desc_create(out, engine, o->alg, src, weight, dst, o->stride,
                                                                    o->dilation, o->pad_begin, o->pad_end, hint, attr);
    case CVY_ONEDNN_CONV * 3 + CVY_ONEDNN_GRAD_WEIGHT:
        return dnnl_convolution_backward_weights_primitive_desc_create(
            out, engine, o->alg, src, weight, bias, dst, o->stride, o->dilation, o->pad_begin, o->pad_end, hint, attr);
    case CVY_ONEDNN_DECONV * 3 + CVY_ONEDNN_FORWARD:
        return dnnl_deconvolution_forward_primitive_desc_create(out, engine, training, o->alg, src, weight, bias, dst,
                                                                o->stride, o->dilation, o->pad_begin, o->pad_end, attr);
    case CVY_ONEDNN_DECONV * 3 + CVY_ONEDNN_GRAD_SRC:
        return dnnl_deconvolution_backward_data_primitive_desc_create(
            out, engine, o->alg, src, weight, dst, o->stride, o->dilation, o->pad_begin, o->pad_end, hint, attr);
    case CVY_ONEDNN_DECONV * 3 + CVY_ONEDNN_GRAD_WEIGHT:
        return dnnl_deconvolution_backward_weights_primitive_desc_create(
            out, engine, o->alg, src, weight, bias, dst, o->stride, o->dilation, o->pad_begin, o->pad_end, hint, attr);
    case CVY_ONEDNN_FC * 3 + CVY_ONEDNN_FORWARD:
        return dnnl_inner_product_forward_primitive_desc_create(out, engine, training, src, weight, bias, dst, attr);
    case CVY_ONEDNN_FC * 3 + CVY_ONEDNN_GRAD_SRC:
        return dnnl_inner_product_backward_data_primitive_desc_create(out, engine, src, weight, dst, hint, attr);
    case CVY_ONEDNN_FC * 3 + CVY_ONEDNN_GRAD_WEIGHT:
        return dnnl_inner_product_backward_weights_primitive_desc_create(out, engine, src, weight, bias, dst, hint,
                                                                         attr);
    default: return dnnl_reorder_primitive_desc_create(out, src, engine, dst, engine, attr);
    }
}

#else

static dnnl_status_t conv_desc(cvy_onednn_pass pass, const struct operation *o, dnnl_convolution_desc_t *d)
{
    md_ref src = o->md[CVY_ONEDNN_SRC], weight = o->md[CVY_ONEDNN_WEIGHT], bias = o->md[CVY_ONEDNN_BIAS],
           dst = o->md[CVY_ONEDNN_DST];
    switch (pass) {
    case CVY_ONEDNN_FORWARD:
        return dnnl_dilated_convolution_forward_desc_init(d, dnnl_forward_training, o->alg, src, weight, bias, dst,
                                                          o->stride, o->dilation, o->pad_begin, o->pad_end);
    case CVY_ONEDNN_GRAD_SRC:
        return dnnl_dilated_convolution_backward_data_desc_init(d, o->alg, src, weight, dst, o->stride, o->dilation,
                                                                o->pad_begin, o->pad_end);
    default:
        return dnnl_dilated_convolution_backward_weights_desc_init(d, o->alg, src, weight, bias, dst, o->stride,
                                                                   o->dilation, o->pad_begin, o->pad_end);
    }
}

static dnnl_status_t deconv_desc(cvy_onednn_pass pass, const struct operation *o, dnnl_deconvolution_desc_t *d)
{
    md_ref src = o->md[CVY_ONEDNN_SRC], weight = o->md[CVY_ONEDNN_WEIGHT], bias = o->md[CVY_ONEDNN_BIAS],
           dst = o->md[CVY_ONEDNN_DST];
    switch (pass) {
    case CVY_ONEDNN_FORWARD:
        return dnnl_dilated_deconvolution_forward_desc_init(d, dnnl_forward_training, o->alg, src, weight, bias, dst,
                                                            o->stride, o->dilation, o->pad_begin, o->pad_end);
    case CVY_ONEDNN_GRAD_SRC:
        return dnnl_dilated_deconvolution_backward_data_desc_init(d, o->alg, src, weight, dst, o->stride, o->dilation,
                                                                  o->pad_begin, o->pad_end);
    default:
        return dnnl_dilated_deconvolution_backward_weights_desc_init(d, o->alg, src, weight, bias, dst, o->stride,
                                                                     o->dilation, o->pad_begin, o->pad_end);
    }
}

static dnnl_status_t fc_desc(cvy_onednn_pass pass, const struct operation *o, dnnl_inner_product_desc_t *d)
{
    md_ref src = o->md[CVY_ONEDNN_SRC], weight = o->md[CVY_ONEDNN_WEIGHT], bias = o->md[CVY_ONEDNN_BIAS],
           dst = o->md[CVY_ONEDNN_DST];
    switch (pass) {
    case CVY_ONEDNN_FORWARD:
        return dnnl_inner_product_forward_desc_init(d, dnnl_forward_training, src, weight, bias, dst);
    case CVY_ONEDNN_GRAD_SRC: return dnnl_inner_product_backward_data_desc_init(d, src, weight, dst);
    default: return dnnl_inner_product_backward_weights_desc_init(d, src, weight, bias, dst);
    }
}

static dnnl_status_t operation_desc(const cvy_onednn_problem *p, cvy_onednn_pass pass, const struct operation *o,
                                    dnnl_engine_t engine, const_dnnl_primitive_desc_t hint,
                                    const_dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *out)
{
    union {
        dnnl_convolution_desc_t conv;
        dnnl_deconvolution_desc_t deconv;
        dnnl_inner_product_desc_t fc;
    } d;
    dnnl_status_t status;
    switch (p->family) {
    case CVY_ONEDNN_CONV: status = conv_desc(pass, o, &d.conv); break;
    case CVY_ONEDNN_DECONV: status = deconv_desc(pass, o, &d.deconv); break;
    case CVY_ONEDNN_FC: status = fc_desc(pass, o, &d.fc); break;
    default:
        return dnnl_reorder_primitive_desc_create(out, o->md[CVY_ONEDNN_SRC], engine, o->md[CVY_ONEDNN_DST], engine,
                                                  attr);
    }
    return status == dnnl_success ? dnnl_primitive_desc_create(out, &d, attr, engine, hint) : status;
}

#endif

static dnnl_status_t append_relu(dnnl_post_ops_t ops)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_relu, 0.0f, 0.0f);
#else
    return dnnl_post_ops_append_eltwise(ops, 1.0f, dnnl_eltwise_relu, 0.0f, 0.0f);
#endif
}

static dnnl_status_t append_sum(dnnl_post_ops_t ops)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_post_ops_append_sum(ops, 1.0f, 0, dnnl_data_type_undef);
#else
    return dnnl_post_ops_append_sum(ops, 1.0f);
#endif
}

static cvy_status make_attr(const cvy_onednn_problem *p, dnnl_primitive_attr_t *out)
{
    cvy_status status = CVY_OK;
    dnnl_post_ops_t ops = NULL;
    TRY_DNNL(dnnl_primitive_attr_create(out), "attributes");
    /* The scratch of all calls is one region of the arena. A reorder also runs outside of plans and needs next to none.
     */
    if (p->family != CVY_ONEDNN_REORDER)
        TRY_DNNL(dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user), "attributes");
    if (!(p->relu || p->sum) || p->pass != CVY_ONEDNN_FORWARD)
        return CVY_OK;
    TRY_DNNL(dnnl_post_ops_create(&ops), "a fused operation");
    if (p->sum)
        TRY_DNNL_OUT(append_sum(ops), "a fused sum");
    if (p->relu)
        TRY_DNNL_OUT(append_relu(ops), "a fused relu");
    TRY_DNNL_OUT(dnnl_primitive_attr_set_post_ops(*out, ops), "a fused operation");
out:
    dnnl_post_ops_destroy(ops);
    return status;
}

/* A gradient's descriptor wants to see a forward one; any forward one of the same shapes will do. */
static cvy_status forward_hint(const cvy_onednn_problem *p, dnnl_engine_t engine, dnnl_primitive_desc_t *out)
{
    cvy_status status = CVY_OK;
    struct operation op;
    cvy_onednn_problem forward = *p;
    forward.winograd = 0;
    for (int i = 0; i < CVY_ONEDNN_ROLES; i++)
        forward.tensor[i].any = 1;
    /* Gradients of weights and biases are f32 whatever the sources are. */
    forward.tensor[CVY_ONEDNN_WEIGHT].dtype = p->tensor[CVY_ONEDNN_SRC].dtype;
    CVY_TRY_OUT(make_operation(&forward, &op));
    TRY_DNNL_OUT(operation_desc(&forward, CVY_ONEDNN_FORWARD, &op, engine, NULL, NULL, out), "the forward pass");
out:
    free_operation(&op);
    return status;
}

static const char *problem_text(const cvy_onednn_problem *p)
{
    static const char *const family[] = {"convolution", "deconvolution", "inner product", "reorder"};
    static const char *const gradient[] = {"", "gradient into the source of a ", "gradient into the weights of a "};
    static _Thread_local char text[160];
    const cvy_onednn_tensor *t = &p->tensor[CVY_ONEDNN_SRC];
    cvy_shape src = {.ndim = t->ndim};
    memcpy(src.dim, t->dim, sizeof src.dim);
    snprintf(text, sizeof text, "a %s%s of %s, source %s", gradient[p->pass], family[p->family],
             cvy_dtype_text(t->dtype), cvy_shape_text(&src));
    return text;
}

static cvy_status build_desc(const cvy_onednn_problem *p, cvy_onednn_call *c)
{
    cvy_status status = CVY_OK;
    struct operation op = {0};
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t hint = NULL;
    TRY_DNNL_OUT(dnnl_engine_create(&c->engine, dnnl_cpu, 0), "an engine");
    TRY_DNNL_OUT(dnnl_stream_create(&c->stream, c->engine, dnnl_stream_default_flags), "a stream");
    CVY_TRY_OUT(make_operation(p, &op));
    CVY_TRY_OUT(make_attr(p, &attr));
    if (p->pass != CVY_ONEDNN_FORWARD)
        CVY_TRY_OUT(forward_hint(p, c->engine, &hint));
    TRY_DNNL_OUT(operation_desc(p, p->pass, &op, c->engine, hint, attr, &c->desc), problem_text(p));
out:
    if (hint)
        dnnl_primitive_desc_destroy(hint);
    if (attr)
        dnnl_primitive_attr_destroy(attr);
    free_operation(&op);
    return status;
}

cvy_status cvy_onednn_describe(const cvy_onednn_problem *problem, cvy_onednn_call **out)
{
    cvy_onednn_call *c = NULL;
    CVY_TRY(cvy_mem_alloc(sizeof *c, &c));
    c->threads = problem->threads;
    c->family = problem->family;
    c->pass = problem->pass;
    for (int i = 0; i < CVY_ONEDNN_ROLES; i++) {
        c->present[i] = problem->tensor[i].ndim > 0;
        c->ndim[i] = problem->tensor[i].ndim;
        c->dtype[i] = problem->tensor[i].dtype;
        memcpy(c->dim[i], problem->tensor[i].dim, sizeof c->dim[i]);
    }
    shun_tiles();
    const int before = team_enter(c->threads);
    cvy_status status = build_desc(problem, c);
    team_leave(c->threads, before);
    if (status == CVY_OK && problem->family != CVY_ONEDNN_REORDER && strstr(cvy_onednn_implementation(c), "ref"))
        status = cvy_error_set(CVY_NOT_APPLICABLE, "oneDNN has only a reference implementation for %s",
                               problem_text(problem));
    if (status == CVY_OK && strstr(cvy_onednn_implementation(c), "amx") && tiles_would_crash())
        status = cvy_error_set(CVY_NOT_APPLICABLE, "oneDNN would use tiles for %s, which this machine does not describe",
                               problem_text(problem));
    if (status != CVY_OK) {
        cvy_onednn_destroy(c);
        return status;
    }
    *out = c;
    return CVY_OK;
}

/* ---- answers ---- */

static md_ref role_md(const cvy_onednn_call *c, int role)
{
    static const dnnl_query_t plain[] = {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_weights_md,
                                         dnnl_query_dst_md};
    static const dnnl_query_t diff[] = {dnnl_query_diff_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_weights_md,
                                        dnnl_query_diff_dst_md};
    const int is_diff = role == CVY_ONEDNN_DST   ? c->pass != CVY_ONEDNN_FORWARD
                        : role == CVY_ONEDNN_SRC ? c->pass == CVY_ONEDNN_GRAD_SRC
                                                 : c->pass == CVY_ONEDNN_GRAD_WEIGHT;
    return dnnl_primitive_desc_query_md(c->desc, is_diff ? diff[role] : plain[role], role == CVY_ONEDNN_BIAS ? 1 : 0);
}

static const dnnl_dim_t *md_strides(md_ref md)
{
#if DNNL_VERSION_MAJOR >= 3
    const dnnl_dims_t *strides = NULL;
    return dnnl_memory_desc_query(md, dnnl_query_strides, &strides) == dnnl_success ? *strides : NULL;
#else
    return md->format_desc.blocking.strides;
#endif
}

/* Layouts that differ only in the stride of a dimension of 1 are equal in memory, but not to oneDNN's choice of an
 * implementation: `to_the_stride`. */
static int same_layout(md_ref md, int ndim, const int64_t *dim, dnnl_data_type_t dtype, dnnl_format_tag_t tag,
                       int to_the_stride)
{
    md_handle candidate = NULL;
    if (md_create(ndim, dim, dtype, tag, &candidate) != CVY_OK)
        return 0;
    int same = dnnl_memory_desc_equal(md, candidate);
    for (int d = 0; d < ndim && same && to_the_stride; d++)
        same = md_strides(md)[d] == md_strides(candidate)[d];
    md_free(&candidate);
    return same;
}

static int tag_ndim(const char *tag)
{
    int n = 0;
    while ((tag[n] >= 'a' && tag[n] <= 'f') || (tag[n] >= 'A' && tag[n] <= 'F'))
        n++;
    return n;
}

static int find_layout(const cvy_onednn_call *call, int role, int to_the_stride, cvy_layout *out)
{
    static const char *const common[] = {"", "aBcd16b", "acdb", "aBcd8b", "aBc16b", "aBcde16b"};
    md_ref md = role_md(call, role);
    const int ndim = call->ndim[role];
    dnnl_data_type_t dtype = dnnl_f32;
    if (dtype_of(call->dtype[role], &dtype) != CVY_OK)
        return 0;
    for (int i = 0; i < CVY_COUNT(common); i++) {
        const cvy_layout layout = cvy_layout_make(common[i]);
        dnnl_format_tag_t tag = dnnl_format_tag_undef;
        if ((i == 0 || tag_ndim(common[i]) == ndim) && tag_of(&layout, ndim, &tag) == CVY_OK &&
            same_layout(md, ndim, call->dim[role], dtype, tag, to_the_stride)) {
            *out = layout;
            return 1;
        }
    }
    for (int tag = dnnl_a; tag < dnnl_format_tag_last; tag++) {
        const char *text = dnnl_fmt_tag2str((dnnl_format_tag_t)tag);
        if (tag_ndim(text) == ndim && strlen(text) < sizeof out->tag &&
            same_layout(md, ndim, call->dim[role], dtype, (dnnl_format_tag_t)tag, to_the_stride)) {
            *out = cvy_layout_make(text);
            return 1;
        }
    }
    return 0;
}

cvy_status cvy_onednn_layout(const cvy_onednn_call *call, int role, cvy_layout *out)
{
    if (find_layout(call, role, 1, out) || find_layout(call, role, 0, out))
        return CVY_OK;
    return cvy_error_set(CVY_NOT_APPLICABLE, "%s of oneDNN wants a layout that has no name",
                         cvy_onednn_implementation(call));
}

size_t cvy_onednn_scratch_bytes(const cvy_onednn_call *call)
{
    return md_bytes(dnnl_primitive_desc_query_md(call->desc, dnnl_query_scratchpad_md, 0));
}

const char *cvy_onednn_implementation(const cvy_onednn_call *call)
{
    const char *text = NULL;
    return dnnl_primitive_desc_query(call->desc, dnnl_query_impl_info_str, 0, (void *)&text) == dnnl_success && text
               ? text
               : "";
}

/* ---- the run ---- */

static int exec_arg(const cvy_onednn_call *c, int role)
{
    static const int plain[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST};
    static const int diff[] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_BIAS, DNNL_ARG_DIFF_DST};
    switch (role) {
    case CVY_ONEDNN_DST: return c->pass != CVY_ONEDNN_FORWARD ? diff[role] : plain[role];
    case CVY_ONEDNN_SRC: return c->pass == CVY_ONEDNN_GRAD_SRC ? diff[role] : plain[role];
    default: return c->pass == CVY_ONEDNN_GRAD_WEIGHT ? diff[role] : plain[role];
    }
}

static cvy_status add_memory(cvy_onednn_call *c, int slot, md_ref md, int arg)
{
    TRY_DNNL(dnnl_memory_create(&c->memory[slot], md, c->engine, DNNL_MEMORY_NONE), "a memory object");
    c->arg[c->narg++] = (dnnl_exec_arg_t){.arg = arg, .memory = c->memory[slot]};
    return CVY_OK;
}

/* The cache of primitives in version 2.6 now and then hands out one whose code has been freed: one in twenty runs of a
 * program that made the same reorder twice died in it. It is emptied and passed by; a guest program that uses oneDNN
 * too only has to fill it again. */
static dnnl_status_t create_primitive(cvy_onednn_call *call)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_primitive_create(&call->primitive, call->desc);
#else
    int capacity = 0;
    dnnl_get_primitive_cache_capacity(&capacity);
    dnnl_set_primitive_cache_capacity(0);
    const dnnl_status_t status = dnnl_primitive_create(&call->primitive, call->desc);
    dnnl_set_primitive_cache_capacity(capacity);
    return status;
#endif
}

cvy_status cvy_onednn_ready(cvy_onednn_call *call)
{
    const int before = team_enter(call->threads);
    const cvy_status status = answer(create_primitive(call), cvy_onednn_implementation(call));
    team_leave(call->threads, before);
    CVY_TRY(status);
    for (int i = 0; i < CVY_ONEDNN_ROLES; i++)
        if (call->present[i] && (i != CVY_ONEDNN_BIAS || call->pass != CVY_ONEDNN_GRAD_SRC))
            CVY_TRY(add_memory(call, i, role_md(call, i), exec_arg(call, i)));
    if (cvy_onednn_scratch_bytes(call) > 0)
        CVY_TRY(add_memory(call, CVY_ONEDNN_ROLES,
                           dnnl_primitive_desc_query_md(call->desc, dnnl_query_scratchpad_md, 0), DNNL_ARG_SCRATCHPAD));
    return CVY_OK;
}

/* Buffers keep their places from step to step: a handle is set only when it moves (version 2 clears padding at each
 * setting). */
static dnnl_status_t bind(cvy_onednn_call *c, int slot, void *data)
{
    if (!c->memory[slot] || c->bound[slot] == data)
        return dnnl_success;
    c->bound[slot] = data;
    return dnnl_memory_set_data_handle(c->memory[slot], data);
}

cvy_status cvy_onednn_run(cvy_onednn_call *call, void *const arg[CVY_ONEDNN_ROLES], void *scratch)
{
    const int before = team_enter(call->threads);
    dnnl_status_t status = bind(call, CVY_ONEDNN_ROLES, scratch);
    for (int i = 0; i < CVY_ONEDNN_ROLES && status == dnnl_success; i++)
        status = bind(call, i, arg[i]);
    if (status == dnnl_success)
        status = dnnl_primitive_execute(call->primitive, call->stream, call->narg, call->arg);
    team_leave(call->threads, before);
    return status == dnnl_success ? CVY_OK
                                  : cvy_error_set(CVY_E_INTERNAL, "oneDNN: %s failed: %s",
                                                  cvy_onednn_implementation(call), dnnl_status2str(status));
}

void cvy_onednn_destroy(cvy_onednn_call *call)
{
    if (!call)
        return;
    for (int i = 0; i <= CVY_ONEDNN_ROLES; i++)
        if (call->memory[i])
            dnnl_memory_destroy(call->memory[i]);
    if (call->primitive)
        dnnl_primitive_destroy(call->primitive);
    if (call->desc)
        dnnl_primitive_desc_destroy(call->desc);
    if (call->stream)
        dnnl_stream_destroy(call->stream);
    if (call->engine)
        dnnl_engine_destroy(call->engine);
    cvy_mem_free(&call);
}

cvy_status cvy_onednn_reorder(const cvy_shape *shape, const cvy_lie *from, const cvy_lie *to, int threads,
                              cvy_onednn_call **out)
{
    cvy_onednn_problem p = {.family = CVY_ONEDNN_REORDER, .threads = threads};
    cvy_onednn_tensor *src = &p.tensor[CVY_ONEDNN_SRC], *dst = &p.tensor[CVY_ONEDNN_DST];
    src->ndim = dst->ndim = shape->ndim;
    memcpy(src->dim, shape->dim, sizeof src->dim);
    memcpy(dst->dim, shape->dim, sizeof dst->dim);
    src->dtype = from->dtype;
    dst->dtype = to->dtype;
    src->layout = from->layout;
    dst->layout = to->layout;
    cvy_onednn_call *call = NULL;
    CVY_TRY(cvy_onednn_describe(&p, &call));
    const cvy_status status = cvy_onednn_ready(call);
    if (status != CVY_OK)
        cvy_onednn_destroy(call);
    else
        *out = call;
    return status;
}
