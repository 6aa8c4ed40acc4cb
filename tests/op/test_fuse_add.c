/* minimal */
/*
 * test_fuse_add.c: a chain of sums becomes one sum with the same addends in the same order: equal to the last bit. A sum that others read stays,
 * and no sum gets more addends than the operator takes.
 */
#include "graph_eval.h"
#include "pass/pass.h"

enum { LEAVES = 11 };

struct sums {
    cvy_vars *vars;
    cvy_graph *graph;
    cvy_value *leaf[LEAVES], *result;
};

static void open_sums(struct sums *s)
{
    const cvy_shape sample = {.ndim = 1, .dim = {3}};
    const cvy_graph_opts opts = {.name = "sums", .batch = cvy_batch_share(2, 0, 1), .training = 1, .dtype = CVY_DTYPE_F32};
    char name[16];
    *s = (struct sums){0};
    EXPECT_OK(cvy_vars_create(&s->vars));
    EXPECT_OK(cvy_graph_create(s->vars, &opts, &s->graph));
    for (int i = 0; i < LEAVES; i++) {
        snprintf(name, sizeof name, "leaf%d", i);
        EXPECT_OK(cvy_graph_feed(s->graph, name, CVY_DTYPE_F32, &sample, 0, &s->leaf[i]));
    }
}

static void close_sums(struct sums *s)
{
    cvy_graph_destroy(&s->graph);
    cvy_vars_destroy(&s->vars);
}

static cvy_value *sum(struct sums *s, const char *name, cvy_value *a, cvy_value *b)
{
    cvy_value *const src[] = {a, b};
    cvy_node *node = NULL;
    EXPECT_OK(cvy_graph_add(s->graph, "add", name, name, NULL, src, 2, &node));
    return node->dst[0];
}

/* ((leaf0 + leaf1) + leaf2) + ..., every second time with the sum as the second addend. */
static void chain(struct sums *s, int leaves)
{
    cvy_value *at = s->leaf[0];
    char name[16];
    for (int i = 1; i < leaves; i++) {
        snprintf(name, sizeof name, "sum%d", i);
        at = i % 2 ? sum(s, name, at, s->leaf[i]) : sum(s, name, s->leaf[i], at);
    }
    at->is_output = 1;
    s->result = at;
}

static int count(const cvy_graph *g)
{
    int found = 0;
    for (int n = 0; n < g->nnode; n++)
        found += !g->node[n]->removed;
    return found;
}

static void values(const struct sums *s, float out[6])
{
    eval e = {0};
    uint64_t state = 1;
    EXPECT_OK(eval_create(s->graph, &e));
    for (int i = 0; i < LEAVES; i++)
        for (int k = 0; k < 6; k++)
            cvy_set(eval_of(&e, s->leaf[i]), k, (double)(int64_t)(test_random(&state) % 2048) / 64);  /* sums are exact in any order and precision */
    EXPECT_OK(eval_run(&e, 1));
    for (int k = 0; k < 6; k++)
        out[k] = (float)cvy_get(eval_of(&e, s->result), k);
    eval_destroy(&e);
}

static void chains(void)
{
    for (int leaves = 2; leaves <= LEAVES; leaves++) {
        struct sums s;
        float before[6], after[6];
        open_sums(&s);
        chain(&s, leaves);
        values(&s, before);
        EXPECT_OK(cvy_pass_fuse_add(s.graph));
        EXPECT_INT(count(s.graph), leaves <= 8 ? 1 : 2);
        values(&s, after);
        for (int k = 0; k < 6; k++)
            EXPECT(before[k] == after[k]);
        for (int i = 0; i < CVY_MIN(leaves, 8) && leaves <= 8; i++)      /* the chain's order */
            EXPECT(s.result->producer->src[i] == s.leaf[i]);
        close_sums(&s);
    }
}

static void read_by_others(void)
{
    struct sums s;
    open_sums(&s);
    cvy_value *inner = sum(&s, "inner", s.leaf[0], s.leaf[1]);
    sum(&s, "one", inner, s.leaf[2])->is_output = 1;
    sum(&s, "two", inner, s.leaf[3])->is_output = 1;
    cvy_value *kept = sum(&s, "kept", s.leaf[4], s.leaf[5]);
    kept->is_output = 1;
    sum(&s, "three", kept, s.leaf[6])->is_output = 1;
    EXPECT_OK(cvy_pass_fuse_add(s.graph));
    EXPECT_INT(count(s.graph), 5);
    close_sums(&s);
}

int main(void)
{
    TEST(chains);
    TEST(read_by_others);
    return test_end();
}
