/* SPDX-License-Identifier: BSD-3-Clause */
/* test_data_where.c: conditions on a sample's numbers: which samples fulfil them, which names they use, and the
 * position of errors. */
#include "test_data_support.h"

#include <math.h>

#include "data/data_where.h"

/* Evaluates the condition for x, y and z. A name that it does not use is left out. */
static int holds(const char *text, double x, double y, double z)
{
    cvy_pool *pool = NULL;
    cvy_where *w = NULL;
    double value[3] = {0};
    OK(cvy_pool_create(&pool));
    OK(cvy_where_parse(pool, text, &w));
    for (int i = 0; i < cvy_where_name_count(w); i++)
        value[i] = cvy_where_name(w, i)[0] == 'x' ? x : cvy_where_name(w, i)[0] == 'y' ? y : z;
    const int answer = cvy_where_holds(w, value);
    cvy_pool_destroy(&pool);
    return answer;
}

static void test_truth(void)
{
    static const struct {
        const char *text;
        double x, y, z;
        int holds;
    } row[] = {
        {"x > 50", 50.5, 0, 0, 1},
        {"x > 50", 50, 0, 0, 0},
        {"50<x", 51, 0, 0, 1},
        {"x >= -1.5e1", -15, 0, 0, 1},
        {"x<=y", 2, 1, 0, 0},
        {"x == y and y != z", 1, 1, 2, 1},
        {"x == y and y != z", 1, 1, 1, 0},
        {"x > 0 or y > 0 and z > 0", 1, 0, 0, 1}, /* "and" binds more tightly */
        {"(x > 0 or y > 0) and z > 0", 1, 0, 0, 0},
        {"x > 0 || y > 0 && z > 0", 0, 1, 1, 1},
        {"x>0 | y>0 & z>0", 0, 1, 0, 0},
        {"0 < x < y <= 3", 1, 3, 0, 1},
        {"0 < x < y <= 3", 3, 3, 0, 0},
        {"not x > 1", 1, 0, 0, 1},
        {"NOT (x > 1 OR y > 1)", 0, 2, 0, 0},
        {"not not x", 5, 0, 0, 1},
        {"x and y", 1, 0, 0, 0},
        {"x/events.met > 2", 3, 0, 0, 1},
        {"'x of the-jet' > 2", 3, 0, 0, 1},
        {"x > -.5", 0, 0, 0, 1},
        {"not_x > 1 or x > 1", 0, 0, 2, 1}, /* a name that begins with a word of the language; it is the third */
    };
    for (int i = 0; i < CVY_COUNT(row); i++)
        if (holds(row[i].text, row[i].x, row[i].y, row[i].z) != row[i].holds) {
            fprintf(stderr, "\"%s\" should give %d\n", row[i].text, row[i].holds);
            exit(1);
        }
    TRUE_THAT(holds("x > 0 or (y > 0 or (z > 0 and (x < 1 and (y < 1 and not (z > 9)))))", 0, 0, 1) == 1);
    TRUE_THAT(holds("x < 1 or x >= 1", NAN, 0, 0) == 0 && holds("x != x", NAN, 0, 0) == 1);
}

static void test_names(void)
{
    cvy_pool *pool = NULL;
    cvy_where *w = NULL;
    OK(cvy_pool_create(&pool));
    OK(cvy_where_parse(pool, "met > 50 and 'a b' < met and njet", &w));
    TRUE_THAT(cvy_where_name_count(w) == 3 && strcmp(cvy_where_name(w, 0), "met") == 0 &&
              strcmp(cvy_where_name(w, 1), "a b") == 0 && strcmp(cvy_where_name(w, 2), "njet") == 0);
    cvy_pool_destroy(&pool);
}

static void test_mistakes(void)
{
    static const struct {
        const char *text, *words;
    } row[] = {
        {"", "at its end (character 1) expected a name or a number"},
        {"met >", "at its end (character 6) expected a name or a number"},
        {"met = 5", "expected one of < <= > >= == !="},
        {"met > 5 njet", "at \"njet\" (character 9) expected \"and\", \"or\" or the end"},
        {"(met > 5", "expected \")\""},
        {"5", "expected one of <"},
        {"met > 5x", "expected a name or a number"},
        {"met > 'a", "a name between two quotes"},
        {"met + 1 > 2", "at \"+ 1 > 2\""},
        {"((((((((((((((((((((x))))))))))))))))))))", "fewer nested brackets"},
        {"not not not not not not not not not not not not not not not not not not not x", "fewer nested brackets"},
    };
    cvy_pool *pool = NULL;
    cvy_where *w = NULL;
    OK(cvy_pool_create(&pool));
    for (int i = 0; i < CVY_COUNT(row); i++)
        FAILS(cvy_where_parse(pool, row[i].text, &w), CVY_E_CONFIG, row[i].words);
    char many[8192] = "x";
    for (int i = 0; i < 400; i++)
        strcat(many, " or x > 1");
    FAILS(cvy_where_parse(pool, many, &w), CVY_E_CONFIG, "longer than 256");
    cvy_pool_destroy(&pool);
}

int main(void)
{
    test_truth();
    test_names();
    test_mistakes();
    return 0;
}
