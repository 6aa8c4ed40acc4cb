/*
 * plan_forecast.c: plays the lists of all stages; see plan_forecast.h.
 *
 * Time goes from one event to the next: the end of work, or the arrival of an exchange. Between two events each stage
 * works at a fixed speed, which is below 1 if the ranks of a node that work are more than its cores. A message begins
 * when it is sent and its receive is posted, as MPI does with large messages. All that leaves a rank at the same time
 * shares its link fairly, and so does all that comes to it. CVY_TRANSFER_SLOTS exchanges of a rank go on at once.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plan/plan_forecast.h"

#include <math.h>
#include <stdio.h>

#include "base/base_index.h"
#include "base/base_mem.h"
#include "comm/comm_allreduce.h"

enum { STEPS = 2 };
#define DONE_S 1e-12 /* less than this is rounding, and would make further events */

struct exchange {                    /* a message between two stages, or an exchange of the ranks of a stage */
    double sent_s, posted_s, done_s; /* INFINITY: not yet */
    int from, to;                    /* stages; the same one: an exchange of its ranks */
    double left_s, latency_s;        /* on the links, and after them */
    int flows;                       /* it is on the links, not behind others of its stage */
};

struct player {
    const cvy_forecast_stage *stage;
    int at, step;     /* the next item, and the step */
    int *of;          /* [stage->n]: the exchange of each item, -1: none */
    int has_worked;   /* the work of the item is done */
    double left_s;    /* of the work that is being done; 0: none */
    double slowdown;  /* how much longer work takes until the next event */
    double until_s;   /* asleep until then; INFINITY: until another stage does something */
    int out, in;      /* how many exchanges share its link in each direction */
    int nexchanges;   /* of its ranks, on the links */
    cvy_comm_axis on; /* the axis on which it waits */
    int nmeetings;    /* at which it has arrived */
    int is_at_meeting;
    double end_s[STEPS]; /* of each step */
    cvy_forecast_result sum;
};

struct game {
    const cvy_forecast *forecast;
    struct player *player;
    struct exchange *exchange; /* [nexchange][STEPS] */
    int nexchange;
    struct exchange **started; /* [nexchange * STEPS]: those that have started and are not done, in this order */
    int nstarted;
    double now_s;
};

/* ---- the lists ---- */

cvy_status cvy_forecast_add(cvy_forecast_stage *s, const cvy_forecast_item *item)
{
    CVY_TRY(cvy_mem_reserve(&s->item, &s->room, s->n, sizeof *s->item));
    s->item[s->n++] = *item;
    return CVY_OK;
}

void cvy_forecast_free(cvy_forecast *f)
{
    for (int s = 0; s < f->nstages && f->stage; s++)
        cvy_mem_free(&f->stage[s].item);
    cvy_mem_free(&f->stage);
    *f = (cvy_forecast){0};
}

/* Names the exchange to which an item belongs, the same on both stages of a message. Returns 0 if it has none. */
static int name_exchange(const cvy_forecast_item *i, int stage, char *text, size_t room)
{
    switch (i->kind) {
    case CVY_FORECAST_START:
    case CVY_FORECAST_WAIT: snprintf(text, room, "%d %d", stage, i->number); return 1;
    case CVY_FORECAST_SEND:
    case CVY_FORECAST_SENT: snprintf(text, room, "%d-%d %d %d", stage, i->peer, i->number, i->micro); return 1;
    case CVY_FORECAST_RECEIVE:
    case CVY_FORECAST_RECEIVED: snprintf(text, room, "%d-%d %d %d", i->peer, stage, i->number, i->micro); return 1;
    default: return 0;
    }
}

static cvy_status number_exchanges(struct game *g)
{
    cvy_keys names = {0};
    cvy_status status = CVY_OK;
    for (int s = 0; s < g->forecast->nstages && status == CVY_OK; s++) {
        struct player *p = &g->player[s];
        status = cvy_mem_alloc(sizeof *p->of * ((size_t)p->stage->n + 1), &p->of);
        for (int i = 0; i < p->stage->n && status == CVY_OK; i++) {
            char name[64];
            p->of[i] = -1;
            if (!name_exchange(&p->stage->item[i], s, name, sizeof name))
                continue;
            status = cvy_keys_add(&names, name, &p->of[i]);
        }
    }
    g->nexchange = names.count;
    cvy_keys_free(&names);
    if (status == CVY_OK)
        status = cvy_mem_alloc(sizeof *g->exchange * (size_t)(g->nexchange * STEPS + 1), &g->exchange);
    for (int i = 0; i < g->nexchange * STEPS && status == CVY_OK; i++)
        g->exchange[i] = (struct exchange){.sent_s = INFINITY, .posted_s = INFINITY, .done_s = INFINITY};
    if (status == CVY_OK)
        status = cvy_mem_alloc(sizeof *g->started * (size_t)(g->nexchange * STEPS + 1), &g->started);
    return status;
}

/* ---- items ---- */

static struct exchange *exchange_of(const struct game *g, const struct player *p)
{
    return &g->exchange[p->of[p->at] * STEPS + p->step];
}

static void start(struct game *g, struct exchange *x, int from, int to, const cvy_forecast_item *item)
{
    x->from = from;
    x->to = to;
    x->left_s = item->wire_s;
    x->latency_s = item->latency_s;
    g->started[g->nstarted++] = x;
}

/* The item that sends the message which this player receives. */
static const cvy_forecast_item *find_send(const struct game *g, const struct player *p)
{
    const cvy_forecast_item *receive = &p->stage->item[p->at];
    const struct player *peer = &g->player[receive->peer];
    for (int i = 0; i < peer->stage->n; i++)
        if (peer->stage->item[i].kind == CVY_FORECAST_SEND && peer->of[i] == p->of[p->at])
            return &peer->stage->item[i];
    return NULL;
}

static void sleep_until(struct player *p, double until_s, const cvy_forecast_item *item)
{
    p->until_s = until_s;
    p->on = item->axis;
}

/* An exchange of all its ranks begins at once. It may be asked again until it is over. */
static int do_exchange(const struct game *g, struct player *p, const cvy_forecast_item *item)
{
    if (isinf(p->until_s))
        sleep_until(p, g->now_s + item->wire_s, item);
    return p->until_s <= g->now_s;
}

/* All stages leave a meeting together. */
static int do_meeting(const struct game *g, struct player *p, const cvy_forecast_item *item)
{
    p->nmeetings += !p->is_at_meeting;
    p->is_at_meeting = 1;
    for (int s = 0; s < g->forecast->nstages; s++)
        if (g->player[s].nmeetings < p->nmeetings) {
            sleep_until(p, INFINITY, item);
            return 0;
        }
    p->is_at_meeting = !do_exchange(g, p, item);
    return !p->is_at_meeting;
}

/* Does the item's own part, after its work. Returns 0 if the player has to wait before the next item. */
static int do_item(struct game *g, int stage)
{
    struct player *p = &g->player[stage];
    const cvy_forecast_item *item = &p->stage->item[p->at];
    struct exchange *x = p->of[p->at] >= 0 ? exchange_of(g, p) : NULL;
    const cvy_forecast_item *send = NULL;
    switch (item->kind) {
    case CVY_FORECAST_WORK: return 1;
    case CVY_FORECAST_EXCHANGE: return do_exchange(g, p, item);
    case CVY_FORECAST_START: start(g, x, stage, stage, item); return 1;
    case CVY_FORECAST_SEND:
        x->sent_s = g->now_s;
        if (!isinf(x->posted_s))
            start(g, x, stage, item->peer, item);
        return 1;
    case CVY_FORECAST_RECEIVE:
        x->posted_s = g->now_s;
        send = find_send(g, p);
        if (!isinf(x->sent_s) && send)
            start(g, x, item->peer, stage, send);
        return 1;
    case CVY_FORECAST_WAIT:
    case CVY_FORECAST_SENT:
    case CVY_FORECAST_RECEIVED: sleep_until(p, x->done_s, item); return x->done_s <= g->now_s;
    case CVY_FORECAST_MEET: return do_meeting(g, p, item);
    }
    return 1;
}

/* Goes on until the player works or waits. Returns whether it has moved. */
static int advance(struct game *g, int stage)
{
    struct player *p = &g->player[stage];
    int moved = 0;
    while (p->step < STEPS && p->left_s <= 0) {
        const cvy_forecast_item *item = p->at < p->stage->n ? &p->stage->item[p->at] : NULL;
        if (!item) {
            p->end_s[p->step++] = g->now_s;
            p->at = 0;
            moved = 1;
            continue;
        }
        if (!p->has_worked) {
            p->has_worked = 1;
            p->until_s = INFINITY;
            p->left_s = item->work_s;
            moved = 1;
            continue;
        }
        if (!do_item(g, stage))
            return moved;
        p->has_worked = 0;
        p->until_s = INFINITY;
        p->at++;
        moved = 1;
    }
    return moved;
}

/* ---- time ---- */

/* How much longer work takes, because the ranks of the node that work share its cores. */
static double slowdown(const struct game *g, const struct player *p)
{
    const cvy_forecast *f = g->forecast;
    double busy = 0;
    for (int s = 0; s < f->nstages; s++)
        if (g->player[s].left_s > 0 && g->player[s].stage->node == p->stage->node)
            busy += (double)g->player[s].stage->ranks * f->threads;
    return f->cores > 0 ? CVY_MAX(busy / f->cores, 1) : 1;
}

/* Finds which exchanges are on the links, and how many share each of them. */
static void share_links(const struct game *g)
{
    for (int s = 0; s < g->forecast->nstages; s++) {
        g->player[s].out = g->player[s].in = 0;
        g->player[s].nexchanges = 0;
    }
    for (int i = 0; i < g->nstarted; i++) {
        struct exchange *x = g->started[i];
        struct player *from = &g->player[x->from];
        x->flows = x->from != x->to || from->nexchanges < CVY_TRANSFER_SLOTS;
        from->nexchanges += x->from == x->to;
        from->out += x->flows && x->left_s > 0;
        g->player[x->to].in += x->flows && x->left_s > 0;
    }
}

/* How much longer this one takes than on links of its own. */
static double sharing(const struct game *g, const struct exchange *x)
{
    return CVY_MAX(CVY_MAX(g->player[x->from].out, g->player[x->to].in), 1);
}

static double next_event(const struct game *g)
{
    double next_s = INFINITY;
    share_links(g);
    for (int i = 0; i < g->nstarted; i++)
        if (g->started[i]->flows)
            next_s = CVY_MIN(next_s, g->now_s + g->started[i]->left_s * sharing(g, g->started[i]));
    for (int s = 0; s < g->forecast->nstages; s++) {
        struct player *p = &g->player[s];
        p->slowdown = slowdown(g, p);
        if (p->step < STEPS)
            next_s = CVY_MIN(next_s, p->left_s > 0 ? g->now_s + p->left_s * p->slowdown : p->until_s);
    }
    return next_s;
}

static void use_links(struct game *g, double passed_s)
{
    int n = 0;
    for (int i = 0; i < g->nstarted; i++) {
        struct exchange *x = g->started[i];
        x->left_s -= x->flows ? passed_s / sharing(g, x) : 0;
        if (x->flows && x->left_s <= DONE_S)
            x->done_s = g->now_s + passed_s + x->latency_s;
        else
            g->started[n++] = x;
    }
    g->nstarted = n;
}

/* Only the last step counts. */
static void pass_time(struct game *g, double next_s)
{
    const double passed_s = next_s - g->now_s;
    use_links(g, passed_s);
    for (int s = 0; s < g->forecast->nstages; s++) {
        struct player *p = &g->player[s];
        cvy_forecast_result none, *sum = p->step == STEPS - 1 ? &p->sum : &none;
        none = (cvy_forecast_result){0};
        if (p->left_s > 0) {
            sum->work_s += passed_s;
            p->left_s -= passed_s / p->slowdown;
            p->left_s = p->left_s > DONE_S ? p->left_s : 0;
        } else if (p->on == CVY_COMM_PIPELINE) {
            sum->bubble_s += passed_s;
        } else {
            sum->exposed_s[p->on] += passed_s;
        }
    }
    g->now_s = next_s;
}

static cvy_status play(struct game *g)
{
    for (;;) {
        int left = 0;
        for (int moved = 1; moved;) {
            moved = 0;
            for (int s = 0; s < g->forecast->nstages; s++)
                moved |= advance(g, s);
        }
        for (int s = 0; s < g->forecast->nstages; s++)
            left += g->player[s].step < STEPS;
        if (!left)
            return CVY_OK;
        const double next_s = next_event(g);
        CVY_CHECK(!isinf(next_s), CVY_E_INTERNAL, "the stages of the plan wait for each other for ever");
        pass_time(g, next_s);
    }
}

static void add_up(const struct game *g, cvy_forecast_result *out)
{
    const int n = g->forecast->nstages;
    double end_s[STEPS] = {0};
    cvy_forecast_result sum = {0};
    for (int s = 0; s < n; s++) {
        const struct player *p = &g->player[s];
        for (int i = 0; i < STEPS; i++)
            end_s[i] = CVY_MAX(end_s[i], p->end_s[i]);
        sum.work_s += p->sum.work_s / n;
        sum.bubble_s += p->sum.bubble_s / n;
        for (int a = 0; a < CVY_COMM_AXES; a++)
            sum.exposed_s[a] += p->sum.exposed_s[a] / n;
    }
    sum.step_s = end_s[STEPS - 1] - end_s[STEPS - 2];
    *out = sum;
}

cvy_status cvy_forecast_run(const cvy_forecast *f, cvy_forecast_result *out)
{
    struct game g = {.forecast = f};
    CVY_TRY(cvy_mem_alloc(sizeof *g.player * (size_t)f->nstages, &g.player));
    for (int s = 0; s < f->nstages; s++)
        g.player[s] = (struct player){.stage = &f->stage[s], .until_s = INFINITY};
    cvy_status status = number_exchanges(&g);
    if (status == CVY_OK)
        status = play(&g);
    if (status == CVY_OK)
        add_up(&g, out);
    for (int s = 0; s < f->nstages; s++)
        cvy_mem_free(&g.player[s].of);
    cvy_mem_free(&g.player);
    cvy_mem_free(&g.exchange);
    cvy_mem_free(&g.started);
    return status;
}
