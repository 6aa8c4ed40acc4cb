/*
 * score_worst.c: see score_worst.h. Samples are ordered by the probability of the network's answer less that of the
 * true class.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "score/score_worst.h"

#include <math.h>
#include <string.h>

#include "score/score_ensemble.h"
#include "score/score_picture.h"

enum { SHOWN = 12, SIDE = CVY_SCORE_PICTURE_SIDE };

struct worst {
    int64_t sample;
    int32_t target, answer;
    double margin, share; /* share: probability of the answer; margin: share less the probability of the true class */
};

/* Inserts the sample into the list, if its margin is large enough. The largest margin comes first. */
static void keep(struct worst *list, int *count, const struct worst *m)
{
    int at = *count;
    while (at > 0 && list[at - 1].margin < m->margin)
        at--;
    if (at == SHOWN)
        return;
    *count = CVY_MIN(SHOWN, *count + 1);
    memmove(list + at + 1, list + at, sizeof *list * (size_t)(*count - at - 1));
    list[at] = *m;
}

static int find_worst(const float *rows, int64_t n, int64_t row_elems, int64_t nclasses, double *share,
                      struct worst *list)
{
    int count = 0;
    for (int64_t i = 0; i < n; i++) {
        const float *row = rows + i * row_elems;
        struct worst m = {.sample = i, .target = (int32_t)row[nclasses]};
        cvy_class_probabilities(row, nclasses, nclasses, 0, share);
        for (int32_t k = 1; k < nclasses; k++)
            if (share[k] > share[m.answer])
                m.answer = k;
        if (m.target < 0 || m.target >= nclasses || m.target == m.answer || !isfinite(share[m.answer]))
            continue;
        m.share = share[m.answer];
        m.margin = m.share - share[m.target];
        keep(list, &count, &m);
    }
    return count;
}

/* ---- one picture as text ---- */

struct picture_text {
    cvy_raw raw;
    cvy_bytes decoded, rows, small;
    cvy_score_picture buffers;
};

/* Averages blocks of pixels, so that no side is longer than SIDE. */
static cvy_status reduce(struct picture_text *t, cvy_picture *p)
{
    const int64_t by = (CVY_MAX(p->H, p->W) + SIDE - 1) / SIDE, H = p->H / by, W = p->W / by;
    const uint8_t *from = p->data;
    if (by <= 1 || H < 1 || W < 1)
        return CVY_OK;
    CVY_TRY(cvy_bytes_need(&t->small, (size_t)(p->C * H * W)));
    uint8_t *to = t->small.data;
    for (int64_t i = 0; i < p->C * H * W; i++) {
        const int64_t c = i / (H * W), y = i / W % H, x = i % W;
        int64_t sum = 0;
        for (int64_t k = 0; k < by * by; k++)
            sum += from[(c * p->H + y * by + k / by) * p->W + x * by + k % by];
        to[i] = (uint8_t)(sum / (by * by));
    }
    *p = (cvy_picture){.dtype = CVY_DTYPE_U8, .C = p->C, .H = H, .W = W, .data = to};
    return CVY_OK;
}

static cvy_status add_picture(cvy_dataset *d, int64_t sample, struct picture_text *t, cvy_json *json)
{
    cvy_picture p = {0};
    CVY_TRY(cvy_dataset_read_raw(d, sample, &t->raw));
    CVY_TRY(cvy_raw_picture(&t->raw, cvy_dataset_reader_info(d)->shape.dim[0], &t->decoded, &t->rows, &p));
    cvy_picture_to_bytes(&p);
    CVY_TRY(reduce(t, &p));
    return cvy_score_picture_add(&t->buffers, "picture", &p, json);
}

static cvy_status add_list(const cvy_scoring *s, const struct worst *list, int count, struct picture_text *t,
                           cvy_json *json)
{
    char name[1024];
    cvy_json_open(json, "mistakes", '[');
    for (int i = 0; i < count; i++) {
        cvy_json_open(json, NULL, '{');
        cvy_json_int(json, "sample", list[i].sample);
        cvy_dataset_where(s->session.test, list[i].sample, name, sizeof name);
        cvy_json_string(json, "name", name);
        cvy_json_string(json, "truth", s->class_name[list[i].target]);
        cvy_json_string(json, "answer", s->class_name[list[i].answer]);
        cvy_json_real(json, "share", list[i].share);
        const cvy_status status = add_picture(s->session.test, list[i].sample, t, json);
        if (status == CVY_E_MEMORY)
            return status;
        cvy_json_close(json, '}');
    }
    cvy_json_close(json, ']');
    return CVY_OK;
}

static int has_pictures(const cvy_dataset *d)
{
    const cvy_reader_info *info = cvy_dataset_reader_info(d);
    return info->dtype == CVY_DTYPE_U8 && info->shape.ndim == 3 && (info->shape.dim[0] == 1 || info->shape.dim[0] == 3);
}

cvy_status cvy_worst_add(const cvy_scoring *s, const float *rows, int64_t n, int64_t row_elems, int64_t output_elems,
                         cvy_json *json)
{
    struct worst list[SHOWN + 1];
    struct picture_text t = {0};
    double *share = NULL;
    if (s->nclasses < 2 || !s->class_name || output_elems != s->nclasses || row_elems != output_elems + 1 ||
        !has_pictures(s->session.test))
        return CVY_OK;
    CVY_TRY(cvy_mem_alloc(sizeof *share * (size_t)output_elems, &share));
    const int count = find_worst(rows, n, row_elems, output_elems, share, list);
    const cvy_status status = count ? add_list(s, list, count, &t, json) : CVY_OK;
    cvy_mem_free(&share);
    cvy_raw_free(&t.raw);
    cvy_mem_free(&t.decoded.data);
    cvy_mem_free(&t.rows.data);
    cvy_mem_free(&t.small.data);
    cvy_score_picture_end(&t.buffers);
    return status;
}
