/*
 * test_op_activation.c: silu, gelu, hard_swish, hard_sigmoid, clamp, elu and softplus equal PyTorch in f64, values
 * and gradients, to 1e-12.
 *
 * PyTorch has the slope 1/6 of hard_sigmoid in f32; it is exact here. The numbers are from PyTorch 2.15, for x as
 * below, with F the module torch.nn.functional:
 *
 *     x = torch.tensor([...], dtype=torch.float64, requires_grad=True); y = F.silu(x); y.sum().backward(); y, x.grad
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <string.h>

#include "base/text/base_tree.h"
#include "op/pointwise/op_activation.h"
#include "test_util.h"

enum { N = 11 };
static const double x[N] = {-30, -4.5, -3, -1.25, -1e-3, 0, 1e-3, 0.7, 2.9, 3.5, 30};

static const struct activation {
    const char *op, *options;
    double value[N], slope[N];
} activations[] = {
    {"silu",
     "{}",
     {-2.8072868906517896e-12, -0.049441241837669313, -0.14227761953270035, -0.27837517353163604,
      -0.00049975000002083336, 0, 0.00050024999997916667, 0.46773144051771626, 2.7487546670725886, 3.3974071923702525,
      29.999999999997197},
     {-2.7137106609631341e-12, -0.03791109111942037, -0.088104106015169617, 0.0063191550846875702, 0.49950000008333328,
      0.5, 0.5004999999166666, 0.82338678347334249, 1.0912037868378475, 1.0702733528277182, 1.0000000000027109}},
    {"gelu",
     "{}",
     {-0, -1.5289529061324192e-05, -0.0040496940948903104, -0.13206221708356905, -0.00049960105778608897, 0,
      0.00050039894221391105, 0.53062544344384888, 2.8945891414288862, 3.4991857982233756, 30},
     {-4.420938404635643e-195, -6.8529161856335932e-05, -0.01194564720418392, -0.12266158306942215, 0.4992021157051586,
      0.5, 0.5007978842948414, 0.97661410113365987, 1.0153965307169659, 1.0028217603536247, 1}},
    {"gelu",
     "{approximate: tanh}",
     {-0, -5.1367374119259956e-06, -0.0036373920817729943, -0.13228579703028537, -0.00049960105778641803, 0,
      0.00050039894221358199, 0.53057013470511671, 2.8950333337645282, 3.4993838023446262, 30},
     {0, -2.9322270442568694e-05, -0.011584166630969648, -0.12249263224964863, 0.49920211570647499, 0.5,
      0.50079788429352501, 0.97635721865610403, 1.0151255217340986, 1.0024226437601167, 1}},
    {"hard_swish",
     "{}",
     {-0, -0, -0, -0.36458333333333331, -0.00049983333333333336, 0, 0.00050016666666666666, 0.43166666666666664,
      2.8516666666666666, 3.5, 30},
     {0, 0, 0, 0.083333333333333315, 0.49966666666666665, 0.5, 0.5003333333333333, 0.73333333333333328,
      1.4666666666666668, 1, 1}},
    {"hard_sigmoid",
     "{}",
     {0, 0, 0, 0.2916666666666667, 0.49983333333333335, 0.5, 0.5001666666666666, 0.6166666666666667, 0.9833333333333334,
      1, 1},
     {0, 0, 0, 1. / 6, 1. / 6, 1. / 6, 1. / 6, 1. / 6, 1. / 6, 0, 0}},
    {"clamp", "{min: 0, max: 6}", {0, 0, 0, 0, 0, 0, 1e-3, 0.7, 2.9, 3.5, 6}, {0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0}},
    {"clamp",
     "{min: -1.25001, max: 2}",
     {-1.25001, -1.25001, -1.25001, -1.25, -1e-3, 0, 1e-3, 0.7, 2, 2, 2},
     {0, 0, 0, 1, 1, 1, 1, 1, 0, 0, 0}},
    {"elu",
     "{}",
     {-0.99999999999990641, -0.98889100346175773, -0.95021293163213605, -0.71349520313980985, -0.00099950016662500845,
      0, 0.001, 0.69999999999999996, 2.8999999999999999, 3.5, 30},
     {9.3576229688401748e-14, 0.011108996538242306, 0.049787068367863944, 0.28650479686019009, 0.99900049983337502, 1,
      1, 1, 1, 1, 1}},
    {"elu",
     "{alpha: 0.3}",
     {-0.2999999999999719, -0.29666730103852729, -0.28506387948964079, -0.21404856094194294, -0.00029985004998750252, 0,
      0.001, 0.69999999999999996, 2.8999999999999999, 3.5, 30},
     {2.8072868906520524e-14, 0.0033326989614726917, 0.014936120510359183, 0.085951439058057022, 0.29970014995001248,
      0.29999999999999999, 1, 1, 1, 1, 1}},
    {"softplus",
     "{}",
     {9.3576229688397368e-14, 0.011047744848593817, 0.048587351573742062, 0.2519290813453729, 0.69264730555994014,
      0.69314718055994529, 0.69364730555994014, 1.1031860488854579, 2.953562776217963, 3.5297504182726205, 30},
     {9.3576229688393001e-14, 0.01098694263059318, 0.047425873177566788, 0.22270013882530884, 0.49975000002083336, 0.5,
      0.50024999997916664, 0.66818777216816616, 0.94784643692158221, 0.97068776924864364, 1}},
    {"softplus",
     "{beta: 2, threshold: 5}",
     {4.37825538134826e-27, 6.1701094861629413e-05, 0.0012378425688652247, 0.039444867146274813, 0.34607384027993099,
      0.34657359027997264, 0.34707384027993099, 0.81020870495922548, 2.8999999999999999, 3.5, 30},
     {8.75651076269652e-27, 0.00012339457598623172, 0.0024726231566347748, 0.07585818002124356, 0.49950000016666657,
      0.5, 0.50049999983333338, 0.80218388855858169, 1, 1, 1}},
};

static void fail_at(const struct activation *a, const char *what, int i, double got, double expected)
{
    TEST_FAIL("%s %s: %s at %g is %.17g, expected %.17g", a->op, a->options, what, x[i], got, expected);
}

/* Runs the operator's reference on x, or that of its gradient with ddst 1. */
static cvy_status compute(const char *name, const char *options, const double *src, int is_grad, double *dst)
{
    static const double one[N] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const cvy_op_def *op = cvy_op_find(name);
    cvy_span in[2] = {{.dtype = CVY_DTYPE_F64, .ndim = 1, .dim = {N}, .elems = N}}, out = in[0];
    cvy_node node = {.op = op};
    cvy_pool *pool = NULL;
    cvy_tree *tree = NULL;
    cvy_status status = CVY_OK;
    in[1] = in[0];
    in[0].data = (void *)(uintptr_t)(is_grad ? one : src);
    in[1].data = (void *)(uintptr_t)src;
    out.data = dst;
    CVY_TRY(cvy_pool_create(&pool));
    CVY_TRY_OUT(cvy_pool_alloc(pool, op->options_size + 1, &node.options));
    CVY_TRY_OUT(cvy_tree_parse_text(pool, "options", options, strlen(options), &tree));
    if (op->options)
        CVY_TRY_OUT(cvy_options_parse(pool, name, op->options, tree, NULL, node.options, op->options_size));
    CVY_TRY_OUT(op->reference(&node, in, &out));
out:
    cvy_pool_destroy(&pool);
    return status;
}

static void equal_pytorch(void)
{
    for (size_t k = 0; k < sizeof activations / sizeof activations[0]; k++) {
        const struct activation *a = &activations[k];
        const cvy_activation_def *family = cvy_op_find(a->op)->family;
        double value[N], slope[N];
        EXPECT_OK(compute(a->op, a->options, x, 0, value));
        EXPECT_OK(compute(family->grad, a->options, family->from_dst ? value : x, 1, slope));
        for (int i = 0; i < N; i++) {
            test_checks += 2;
            if (fabs(value[i] - a->value[i]) > 1e-12 * fmax(1, fabs(a->value[i])))
                fail_at(a, "the value", i, value[i], a->value[i]);
            if (fabs(slope[i] - a->slope[i]) > 1e-12)
                fail_at(a, "the gradient", i, slope[i], a->slope[i]);
        }
    }
}

int main(void)
{
    TEST(equal_pytorch);
    return test_end();
}
