/* rows: asan */
/*
 * test_context_device.c: the device of a context: names that are none, the list of devices, and a job with a device of
 * its own, which the context has only while the job runs, and never beside programs on another one. What needs a device
 * runs if OpenCL has one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/convoy.h>

#include <stdlib.h>

#include "context/context_device.h"
#include "test_util.h"

static const char job[] = "model: {layers: [{fc: {channels: 2}}]}\n"
                          "device: opencl\n"
                          "data: {train: {format: synthetic, samples: 8, shape: [4], classes: 2}}\n"
                          "train: {batch: 4, steps: 1, loss: softmax_cross_entropy}\n";

static cvy_status open_on(const char *device, cvy_context **out)
{
    const cvy_context_opts opts = {.size = sizeof opts, .threads = 1, .device = device};
    return cvy_context_create(&opts, out);
}

static void names(void)
{
    cvy_context *c = NULL;
    EXPECT_FAULT(open_on("gpu", &c), CVY_E_CONFIG, "there is no device \"gpu\": auto takes a GPU");
    EXPECT_FAULT(open_on("cpu", &c), CVY_E_CONFIG, "the processor is \"host\"");
    EXPECT_FAULT(open_on("ots", &c), CVY_E_CONFIG, "there is no device \"ots\"");
    EXPECT_FAULT(open_on("", &c), CVY_E_CONFIG, "there is no device \"\"");
    EXPECT_FAULT(open_on("openc", &c), CVY_E_CONFIG, "did you mean \"opencl\"?");
    EXPECT_FAULT(open_on("opencl:", &c), CVY_E_CONFIG, "expected a number after the colon, as in \"opencl:0\"");
    EXPECT_FAULT(open_on("opencl:1x", &c), CVY_E_CONFIG, "expected a number after the colon");
    EXPECT_FAULT(open_on("opencl:12345678", &c), CVY_E_CONFIG, "expected a number after the colon");
    EXPECT_FAULT(open_on("auto:1", &c), CVY_E_CONFIG, "auto has no number");
    EXPECT_FAULT(open_on("host:0", &c), CVY_E_CONFIG, "host has no number");
    EXPECT_FAULT(open_on("a name that is longer than all names of drivers can be, and then some more of it", &c),
                 CVY_E_CONFIG, "there is no device \"a name");
    EXPECT(c == NULL);
}

static void host(void)
{
    cvy_context *c = NULL;
    EXPECT_OK(open_on(NULL, &c));
    EXPECT(strcmp(cvy_context_device(c), "host") == 0);
    cvy_context_destroy(&c);
    const cvy_context_opts former = {.size = sizeof former, .threads = 1, .backend = "hots"};
    EXPECT_FAULT(cvy_context_create(&former, &c), CVY_E_CONFIG, "did you mean \"host\"?");
}

static void titles(void)
{
    const cvy_device full = {.name = "GPU 9", .driver = "driver 2", .units = 8, .bytes = (int64_t)3 << 29},
                     bare = {.name = "GPU", .bytes = -1};
    EXPECT(strcmp(cvy_device_title_of(&full).text, "GPU 9, driver 2, 8 units, 1.5 GiB") == 0);
    EXPECT(strcmp(cvy_device_title_of(&bare).text, "GPU") == 0);
}

static void run(cvy_context *c, cvy_status expected, const char *text)
{
    const cvy_job_source source = {.size = sizeof source, .text = job};
    const cvy_train_opts opts = {.size = sizeof opts};
    cvy_train_result result = {.size = sizeof result};
    if (expected == CVY_OK)
        EXPECT_OK(cvy_run_train(c, &source, &opts, &result));
    else
        EXPECT_FAULT(cvy_run_train(c, &source, &opts, &result), expected, text);
    EXPECT(strcmp(cvy_context_device(c), "host") == 0);
}

static void job_of_a_device(void)
{
    const cvy_program_opts opts = {.size = sizeof opts};
    cvy_context *c = NULL;
    cvy_program *p = NULL;
    char *list = NULL;
    EXPECT_OK(cvy_device_list(&list));
    const int has_device = list && strstr(list, "opencl:0 ");
    printf("devices: %s\n", list ? list : "");
    cvy_text_release(&list);
    EXPECT_OK(open_on(NULL, &c));
    if (!has_device) {
        run(c, CVY_E_UNSUPPORTED, "there is no device for opencl: ");
        cvy_context_destroy(&c);
        return;
    }
    EXPECT_OK(cvy_program_create(c, &opts, &p));
    run(c, CVY_E_ARGUMENT, "the context has programs on host, so a job on opencl:0 needs a context of its own");
    cvy_program_destroy(&p);
    run(c, CVY_OK, NULL);
    cvy_context_destroy(&c);
    EXPECT_OK(open_on("opencl:0", &c));
    EXPECT(strcmp(cvy_context_device(c), "opencl:0") == 0);
    cvy_context_destroy(&c);
}

int main(void)
{
    setenv("CONVOY_WISDOM", "off", 1);
    TEST(names);
    TEST(host);
    TEST(titles);
    TEST(job_of_a_device);
    EXPECT_INT(cvy_memory_bytes(), 0);
    return test_end();
}
