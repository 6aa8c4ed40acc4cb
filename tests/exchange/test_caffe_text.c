/* rows: clang asan */
/*
 * test_caffe_text.c: the text format of Caffe's files gives the expected messages; what is wrong in a text is named
 * with its line and column.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test_util.h"

#if CVY_HAVE_PROTOBUF_C

#include "exchange/caffe/caffe_file.h"

static cvy_status parse_net(const char *text, cvy_caffe_file *file, Cvy__Caffe__NetParameter **net)
{
    const cvy_status status =
        cvy_caffe_text_parse("net", text, strlen(text), &cvy__caffe__net_parameter__descriptor, file);
    *net = (Cvy__Caffe__NetParameter *)(void *)file->message;
    return status;
}

static void every_form_of_a_value_is_read(void)
{
    static const char text[] =
        "# a comment\n"
        "name: 'Le' \"Net\\n\\x41\\101\\\"'\" ; force_backward: true, input_dim: 1 input_dim: [0x10, 017]\n"
        "input_dim: -3 state: < phase: TRAIN level: -2 stage: ['a', \"b\"] >\n"
        "layer {\n  type: \"Eltwise\" bottom: \"a\" bottom: 'b'\n"
        "  eltwise_param: { operation: 2 coeff: [1, -.5, 1e-3, 2.f, inf] stable_prod_grad: f } }\n"
        "layer{exp_param{base:2}param{lr_mult:2}param{name:\"w\"decay_mult:0}spp_param{pyramid_height: 3 x<y: [1, {z: "
        "2}]>}}";
    cvy_caffe_file file;
    Cvy__Caffe__NetParameter *net = NULL;
    EXPECT_OK(parse_net(text, &file, &net));
    if (!net)
        return;
    EXPECT_TEXT(net->name, "LeNet\nAA\"'");
    EXPECT_INT(net->force_backward, 1);
    EXPECT_INT(net->n_input_dim, 4);
    EXPECT_INT(net->input_dim[1], 16);
    EXPECT_INT(net->input_dim[2], 15);
    EXPECT_INT(net->input_dim[3], -3);
    EXPECT_INT(net->state->phase, CVY__CAFFE__PHASE__TRAIN);
    EXPECT_INT(net->state->level, -2);
    EXPECT_INT(net->state->n_stage, 2);
    EXPECT_TEXT(net->state->stage[1], "b");
    EXPECT_INT(net->n_layer, 2);
    const Cvy__Caffe__EltwiseParameter *sum = net->layer[0]->eltwise_param;
    EXPECT_INT(net->layer[0]->n_bottom, 2);
    EXPECT_INT(net->layer[0]->convoy_line, 4);
    EXPECT_INT(sum->operation, CVY__CAFFE__ELTWISE_PARAMETER__ELTWISE_OP__MAX);
    EXPECT_INT(sum->n_coeff, 5);
    EXPECT_NEAR(sum->coeff[1], -0.5, 0);
    EXPECT_NEAR(sum->coeff[2], 1e-3f, 0);
    EXPECT_NEAR(sum->coeff[3], 2, 0);
    EXPECT(isinf(sum->coeff[4]));
    EXPECT_INT(sum->stable_prod_grad, 0);
    EXPECT_INT(net->layer[1]->n_param, 2);
    EXPECT_NEAR(net->layer[1]->param[0]->lr_mult, 2, 0);
    EXPECT_NEAR(net->layer[1]->param[0]->decay_mult, 1, 0);
    EXPECT(net->layer[1]->param[1]->has_decay_mult && !net->layer[1]->param[1]->has_lr_mult);
    EXPECT(net->layer[1]->spp_param != NULL);
    EXPECT_NEAR(net->layer[1]->exp_param->base_, 2, 0);
    EXPECT_INT(cvy_caffe_line_of(&file, sum, "coeff"), 6);
    EXPECT_INT(cvy_caffe_line_of(&file, net, "force_backward"), 2);
    EXPECT_INT(cvy_caffe_line_of(&file, net, "debug_info"), 0);
    cvy_caffe_file_free(&file);
}

/* Text and binary files give the same message. */
static void a_text_can_be_packed_and_unpacked(void)
{
    static const char text[] = "name: 'n' layer { name: 'c' convolution_param { num_output: 4 kernel_size: 3\n"
                               "weight_filler { type: 'xavier' variance_norm: AVERAGE } } blobs { shape { dim: 2 }\n"
                               "data: 1 data: 2 double_data: [0.5] } }";
    cvy_caffe_file file;
    Cvy__Caffe__NetParameter *net = NULL;
    uint8_t bytes[256];
    EXPECT_OK(parse_net(text, &file, &net));
    if (!net)
        return;
    const size_t n = protobuf_c_message_get_packed_size(file.message);
    EXPECT(n > 0 && n <= sizeof bytes);
    EXPECT_INT(protobuf_c_message_pack(file.message, bytes), n);
    Cvy__Caffe__NetParameter *again = cvy__caffe__net_parameter__unpack(cvy_caffe_allocator(), n, bytes);
    EXPECT(again && again->n_layer == 1 && again->layer[0]->n_blobs == 1);
    if (again && again->n_layer == 1) {
        EXPECT_NEAR(again->layer[0]->blobs[0]->data[1], 2, 0);
        EXPECT_INT(again->layer[0]->convolution_param->weight_filler->variance_norm, 2);
        cvy__caffe__net_parameter__free_unpacked(again, cvy_caffe_allocator());
    }
    cvy_caffe_file_free(&file);
}

static void mistakes_are_named_with_their_place(void)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"name: \"x\"\nlayer {\n  convolution_parm { } }",
         "net:3:3: LayerParameter has no field 'convolution_parm', did you mean 'convolution_param'?"},
        {"zzzzzzzzzzz: 1", "net:1:1: NetParameter has no field 'zzzzzzzzzzz'"},
        {"layer { convoy_line: 3 }", "net:1:9: LayerParameter has no field 'convoy_line'"},
        {"name \"x\"", "net:1:6: expected ':' and the value of name, not '\"x\"'"},
        {"name: 3", "net:1:7: expected a text in quotes, not '3'"},
        {"name: \"x\n\"", "net:1:7: a string has no closing quote on its line"},
        {"name: 'a\\q'", "net:1:7: the text 'a\\q' has an escape"},
        {"name: 'a\\0'", "net:1:7: the text 'a\\0' has an escape"},
        {"name: 'a' name: 'b'", "net:1:17: name is given twice in one NetParameter"},
        {"debug_info: 2", "net:1:13: 2 is out of range: the field holds numbers from 0 to 1"},
        {"debug_info: yes", "net:1:13: expected true or false, not 'yes'"},
        {"input_dim: 2147483648", "net:1:12: 2147483648 is out of range"},
        {"input_dim: -2147483649", "net:1:13: -2147483649 is out of range"},
        {"input_dim: 1.5", "net:1:12: expected an integer, not '1.5'"},
        {"input_dim: 0x", "net:1:12: expected an integer, not '0x'"},
        {"input_dim: [1 2]", "net:1:15: expected ',' or ']' in the list of input_dim, not '2'"},
        {"input_dim: [1,]", "net:1:15: expected an integer, not ']'"},
        {"state { phase: TRIAN }", "net:1:16: 'TRIAN' is no Phase; there are TRAIN, TEST"},
        {"state { phase: 7 }", "net:1:16: 7 is no value of Phase"},
        {"state { level: 1 ", "net:1:18: expected the name of a field of NetState, or its end, not 'the end'"},
        {"state { level: 1 >", "net:1:18: expected the name of a field of NetState, or its end, not '>'"},
        {"state: 3", "net:1:8: expected '{', the begin of NetState, not '3'"},
        {"layer { dropout_param { dropout_ratio: 0.5x } }", "net:1:40: expected a number, not '0.5x'"},
        {"layer { dropout_param { dropout_ratio: - } }", "net:1:42: expected a number, not '}'"},
        {"layer { spp_param { a: [1 } }", "net:1:27: expected ']', not '}'"},
        {"layer { spp_param { a: 1 ", "net:1:26: expected '}', the text ends here"},
        {"}", "net:1:1: expected the name of a field of NetParameter, not '}'"},
        {"\001", "net:1:1: '?' has no place here"},
    };
    cvy_caffe_file file;
    Cvy__Caffe__NetParameter *net = NULL;
    for (int i = 0; i < CVY_COUNT(cases); i++) {
        EXPECT_FAULT(parse_net(cases[i].text, &file, &net), CVY_E_FORMAT, cases[i].message);
        EXPECT(!file.message && !file.path && !file.place);
    }
}

static void deep_messages_are_refused(void)
{
    char text[4096] = "layer { spp_param {";
    cvy_caffe_file file;
    Cvy__Caffe__NetParameter *net = NULL;
    for (int i = 0; i < 1000; i++)
        strcat(text, "a{");
    EXPECT_FAULT(parse_net(text, &file, &net), CVY_E_FORMAT, "messages are more than 32 deep");
}

static cvy_status parse_and_free(void)
{
    cvy_caffe_file file;
    Cvy__Caffe__NetParameter *net = NULL;
    CVY_TRY(parse_net("name: 'a' 'b' input: ['x', 'y', 'z', 'u', 'v'] layer { param { lr_mult: 1 } } layer { }", &file,
                      &net));
    cvy_caffe_file_free(&file);
    return CVY_OK;
}

static void missing_memory_is_reported(void)
{
    const int64_t before = cvy_memory_bytes();
    EXPECT_SURVIVES_NO_MEMORY(parse_and_free());
    EXPECT_INT(cvy_memory_bytes(), before);
}

int main(void)
{
    TEST(every_form_of_a_value_is_read);
    TEST(a_text_can_be_packed_and_unpacked);
    TEST(mistakes_are_named_with_their_place);
    TEST(deep_messages_are_refused);
    TEST(missing_memory_is_reported);
    return test_end();
}

#else

int main(void)
{
    EXPECT_OK(CVY_OK);
    return test_end();
}

#endif
