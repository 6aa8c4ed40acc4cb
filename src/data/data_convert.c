/*
 * data_convert.c: the loop that writes any data set in any format.
 *
 * It does not run in training. The samples are cut into pieces by their number alone, the pieces are dealt to the
 * ranks, each piece gets its name when it is complete, and one rank completes the set. So the result does not depend on
 * the number of ranks. A killed conversion can continue: a small file in the folder says which conversion it is.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/data_convert.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/base_entry.h"
#include "base/base_file.h"
#include "base/text/base_json.h"
#include "data/data_writer.h"

#define CONVERSION_FILE "convert.json"

enum {
    PIECE_BYTES = 256 << 20, /* about this size */
    LEAST_BYTES = 16 << 20,  /* pieces are not made smaller only to have more of them */
    GOOD_PIECES = 8,
    MOST_PIECES = 65536,
    PROBES = 16 /* samples that are read to estimate the size of all */
};

struct convert {
    cvy_dataset *from;
    cvy_comm *comm;
    const cvy_convert_opts *o;
    const char *path;
    cvy_pool *pool;
    const cvy_writer_def *def;
    void *writer;
    cvy_reader_info info; /* describes the written samples */
    cvy_augment *resize;  /* NULL: none */
    cvy_raw raw;
    cvy_bytes decoded, rows, real;
    cvy_augment_scratch resized;
    int64_t nsource, npieces, nbad, nkept, done, mine;
};

/* ---- one sample ---- */

/* Decodes the picture if the options ask for it. A resized x replaces the encoded one. */
static cvy_status prepare(struct convert *c)
{
    cvy_picture p;
    cvy_raw *raw = &c->raw;
    if (!c->resize && (raw->coding == CVY_CODING_PLAIN || !c->o->check))
        return CVY_OK;
    CVY_TRY(cvy_raw_picture(raw, c->info.shape.dim[0], &c->decoded, &c->rows, &p));
    if (!c->resize)
        return CVY_OK;
    const cvy_shape *shape = cvy_augment_shape(c->resize);
    const int64_t n = cvy_shape_elems(shape);
    CVY_TRY(cvy_bytes_need(&c->real, (size_t)n * sizeof(float)));
    CVY_TRY(cvy_augment_apply(c->resize, p, 0, 0, &c->resized, c->real.data));
    CVY_TRY(cvy_bytes_need(&raw->x, (size_t)n));
    for (int64_t i = 0; i < n; i++)
        ((uint8_t *)raw->x.data)[i] = (uint8_t)lrintf(CVY_MIN(CVY_MAX(((float *)c->real.data)[i], 0), 255));
    raw->coding = CVY_CODING_PLAIN;
    raw->dtype = CVY_DTYPE_U8;
    raw->shape = *shape;
    return CVY_OK;
}

/* Reads and prepares sample i. *good_out is 0 if it is damaged and shall be left out. */
static cvy_status take(struct convert *c, int64_t i, int *good_out)
{
    cvy_status status = cvy_dataset_read_raw(c->from, i, &c->raw);
    if (status == CVY_OK) {
        status = prepare(c);
        if (status != CVY_OK)
            cvy_dataset_name_sample(c->from, i, status);
    }
    *good_out = status == CVY_OK;
    if (status < CVY_OK && c->o->skip_bad && status != CVY_E_MEMORY && status != CVY_E_INTERNAL) {
        c->nbad++;
        return CVY_OK;
    }
    return status;
}

/* ---- pieces ---- */

static int64_t piece_first(const struct convert *c, int64_t piece)
{
    return c->nsource / c->npieces * piece + CVY_MIN(piece, c->nsource % c->npieces);
}

static int is_mine(const struct convert *c, int64_t piece)
{
    return c->comm->rank == (c->def->in_turn ? 0 : (int)(piece % c->comm->nranks));
}

static cvy_status write_piece(struct convert *c, int64_t piece)
{
    const int64_t first = piece_first(c, piece), end = piece_first(c, piece + 1);
    CVY_TRY(c->def->begin_piece(c->writer, piece, end - first));
    for (int64_t i = first; i < end; i++) {
        int good = 0;
        CVY_TRY(take(c, i, &good));
        if (good)
            CVY_TRY(c->def->write(c->writer, i, &c->raw));
        c->done++;
        if (c->o->progress && c->comm->rank == 0 && (c->done % 256 == 0 || c->done == c->mine)) {
            CVY_CALLBACK();
            c->o->progress(c->o->user, c->done, c->mine);
        }
    }
    return c->def->end_piece(c->writer);
}

static cvy_status write_pieces(struct convert *c)
{
    for (int64_t p = 0; p < c->npieces; p++)
        if (is_mine(c, p))
            c->mine += piece_first(c, p + 1) - piece_first(c, p);
    for (int64_t p = 0; p < c->npieces; p++) {
        if (!is_mine(c, p))
            continue;
        if (c->def->has_piece && c->def->has_piece(c->writer, p)) {
            c->nkept++;
            c->done += piece_first(c, p + 1) - piece_first(c, p);
            continue;
        }
        CVY_TRY(write_piece(c, p));
    }
    return CVY_OK;
}

/* ---- the beginning ---- */

static cvy_status make_resize(struct convert *c)
{
    char text[128];
    cvy_tree *steps = NULL;
    CVY_CHECK(c->info.dtype == CVY_DTYPE_U8 && c->info.shape.ndim == 3, CVY_E_CONFIG,
              "only pictures of bytes can be resized, these samples are %s of %s", cvy_dtype_text(c->info.dtype),
              cvy_shape_text(&c->info.shape));
    const cvy_reader_info *from = cvy_dataset_reader_info(c->from);
    CVY_CHECK(!from->has_y || from->y_shape.ndim < 2, CVY_E_CONFIG,
              "the pictures cannot be resized: the target y of %s would no longer lie on them",
              cvy_shape_text(&from->y_shape));
    snprintf(text, sizeof text, "[{scale: 1}, {resize: [%lld, %lld]}]", (long long)c->o->resize_h,
             (long long)c->o->resize_w);
    CVY_TRY(cvy_tree_parse_text(c->pool, "resize", text, strlen(text), &steps));
    CVY_TRY(cvy_augment_create(steps, 0, 0, from, &c->resize));
    c->info.shape = *cvy_augment_shape(c->resize);
    c->info.varying = 0;
    c->info.described = (cvy_descriptions){0}; /* of axes of another length */
    return CVY_OK;
}

/* Bytes of all samples, estimated from a few of them. */
static cvy_status estimate_bytes(struct convert *c, double *out)
{
    double each = (double)cvy_shape_elems(&c->info.shape) * (double)cvy_dtype_bytes(c->info.dtype);
    if (!c->resize && c->info.varying)
        CVY_TRY(cvy_dataset_stored_bytes(c->from, PROBES, &each));
    *out = each * (double)c->nsource;
    return CVY_OK;
}

static cvy_status count_pieces(struct convert *c)
{
    double bytes = 0;
    CVY_CHECK(c->o->pieces >= 0 && c->o->pieces <= MOST_PIECES, CVY_E_CONFIG, "%lld parts, expected 1 to %d",
              (long long)c->o->pieces, MOST_PIECES);
    CVY_TRY(estimate_bytes(c, &bytes));
    const double enough = CVY_MAX(bytes / PIECE_BYTES, CVY_MIN(bytes / LEAST_BYTES, GOOD_PIECES));
    const int64_t wanted = c->o->pieces ? c->o->pieces : (int64_t)ceil(enough);
    c->npieces = CVY_MAX(1, CVY_MIN(CVY_MIN(wanted, MOST_PIECES), c->nsource));
    return CVY_OK;
}

/* The text that identifies this conversion. */
static cvy_status make_id(const struct convert *c, cvy_json *j)
{
    char source[32];
    snprintf(source, sizeof source, "%016llx", (unsigned long long)cvy_dataset_hash(c->from));
    cvy_json_open(j, NULL, '{');
    cvy_json_string(j, "unfinished", "convoy convert writes here; give the same command again to complete it");
    cvy_json_string(j, "format", c->def->name);
    cvy_json_string(j, "source", source);
    cvy_json_int(j, "samples", c->nsource);
    cvy_json_int(j, "parts", c->npieces);
    cvy_json_string(j, "shape", c->resize ? cvy_shape_text(&c->info.shape) : "stored");
    cvy_json_close(j, '}');
    cvy_text_add(&j->text, "\n");
    return j->text.status;
}

/* Runs on rank 0. A new or empty folder gets the mark; any other folder must have the same mark. */
static cvy_status claim_folder(struct convert *c)
{
    const char *path = NULL;
    char **name = NULL, *there = NULL;
    int64_t n = 0;
    size_t bytes = 0;
    cvy_json j = {0};
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_file_make_folder(c->path));
    CVY_TRY(cvy_file_list(c->pool, c->path, &name, &n));
    CVY_TRY(cvy_data_path_join(c->pool, c->path, CONVERSION_FILE, &path));
    CVY_TRY_OUT(make_id(c, &j));
    if (n == 0) {
        status = cvy_file_replace(path, j.text.data, j.text.bytes);
    } else if (!cvy_file_exists(path)) {
        status = cvy_error_set(CVY_E_CONFIG, "%s: is not empty (%s, ..): name a new folder", c->path, name[0]);
    } else {
        CVY_TRY_OUT(cvy_file_read(path, 1 << 16, &there, &bytes));
        if (bytes != j.text.bytes || memcmp(there, j.text.data, bytes) != 0)
            status =
                cvy_error_set(CVY_E_CONFIG, "%s: holds the beginning of another conversion (see %s): name a new folder",
                              c->path, path);
    }
out:
    cvy_mem_free(&there);
    cvy_text_free(&j.text);
    return status;
}

static cvy_status begin(struct convert *c)
{
    static const cvy_option none[] = {{0}};
    char who[64];
    void *options = NULL;
    CVY_TRY(cvy_writer_by_name(c->o->format, &c->def));
    CVY_TRY(cvy_pool_create(&c->pool));
    c->info = *cvy_dataset_reader_info(c->from);
    c->nsource = cvy_dataset_describe(c->from)->nsamples;
    c->info.nsamples = c->nsource;
    CVY_CHECK(
        c->info.weight_shape.ndim == 0, CVY_E_UNSUPPORTED,
        "weights of %s for each sample: files that convoy writes hold one number for each; use the data as they are",
        cvy_shape_text(&c->info.weight_shape));
    if (c->o->resize_h > 0 || c->o->resize_w > 0)
        CVY_TRY(make_resize(c));
    CVY_TRY(count_pieces(c));
    snprintf(who, sizeof who, "data format %s", c->def->name);
    CVY_TRY(cvy_pool_alloc(c->pool, CVY_MAX(c->def->options_size, 1), &options));
    CVY_TRY(cvy_options_parse(c->pool, who, c->def->options ? c->def->options : none, c->o->options, NULL, options,
                              c->def->options_size));
    const cvy_writer_args args = {.pool = c->pool,
                                  .path = c->path,
                                  .options = options,
                                  .npieces = c->npieces,
                                  .info = &c->info,
                                  .class_name = cvy_dataset_describe(c->from)->class_name,
                                  .from = c->from};
    return c->def->open(&args, &c->writer);
}

/* ---- the end ---- */

static cvy_status finish(struct convert *c, cvy_convert_report *r)
{
    const char *mark = NULL;
    CVY_TRY(c->def->finish(c->writer, &r->nsamples, &r->bytes));
    CVY_CHECK(r->nsamples > 0, CVY_E_FORMAT, "%s: no valid sample among %lld", c->path, (long long)c->nsource);
    CVY_TRY(cvy_data_path_join(c->pool, c->path, CONVERSION_FILE, &mark));
    unlink(mark);
    return cvy_file_sync_folder(c->path);
}

static cvy_status report(struct convert *c, cvy_convert_report *r)
{
    int64_t sums[2] = {c->nkept, 0};
    CVY_TRY(c->comm->ops->allreduce(c->comm, sums, 1, CVY_DTYPE_I64, CVY_REDUCE_SUM));
    CVY_TRY(c->comm->ops->broadcast(c->comm, r, sizeof *r, 0));
    r->npieces = c->npieces;
    r->nkept = sums[0];
    r->nbad = c->nsource - r->nsamples;
    return CVY_OK;
}

cvy_status cvy_convert(cvy_dataset *d, cvy_comm *comm, const char *path, const cvy_convert_opts *opts,
                       cvy_convert_report *report_out)
{
    struct convert c = {.from = d, .comm = comm, .o = opts, .path = path};
    cvy_status status = cvy_comm_agree(comm, begin(&c));
    memset(report_out, 0, sizeof *report_out);
    if (status == CVY_OK)
        status = cvy_comm_agree(comm, comm->rank == 0 ? claim_folder(&c) : CVY_OK);
    if (status == CVY_OK)
        status = cvy_comm_agree(comm, write_pieces(&c));
    if (status == CVY_OK)
        status = cvy_comm_agree(comm, comm->rank == 0 ? finish(&c, report_out) : CVY_OK);
    if (status == CVY_OK)
        status = report(&c, report_out);
    if (c.writer && c.def->close)
        c.def->close(c.writer);
    cvy_raw_free(&c.raw);
    cvy_bytes *const room[] = {&c.decoded, &c.rows, &c.real};
    for (int i = 0; i < CVY_COUNT(room); i++)
        cvy_mem_free(&room[i]->data);
    cvy_augment_scratch_free(&c.resized);
    cvy_augment_destroy(&c.resize);
    cvy_pool_destroy(&c.pool);
    return status;
}
