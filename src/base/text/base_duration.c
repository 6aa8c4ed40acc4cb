/*
 * base_duration.c: parses durations and parts of a run.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/text/base_duration.h"

#include <math.h>
#include <string.h>

#include "base/text/base_tree.h"

static const struct {
    const char *word;
    cvy_duration_unit unit;
    double factor;
} units[] = {
    {"step", CVY_DURATION_STEPS, 1},       {"steps", CVY_DURATION_STEPS, 1},     {"sample", CVY_DURATION_SAMPLES, 1},
    {"samples", CVY_DURATION_SAMPLES, 1},  {"epoch", CVY_DURATION_EPOCHS, 1},    {"epochs", CVY_DURATION_EPOCHS, 1},
    {"s", CVY_DURATION_SECONDS, 1},        {"seconds", CVY_DURATION_SECONDS, 1}, {"min", CVY_DURATION_SECONDS, 60},
    {"minutes", CVY_DURATION_SECONDS, 60}, {"h", CVY_DURATION_SECONDS, 3600},    {"hours", CVY_DURATION_SECONDS, 3600},
    {"minute", CVY_DURATION_SECONDS, 60},  {"hour", CVY_DURATION_SECONDS, 3600},
};

cvy_status cvy_duration_parse(const char *text, cvy_duration *out)
{
    char number[32] = "";
    text = text ? text : ""; /* an option that is given as "" */
    const size_t digits =
        strspn(text, "0123456789._+-eE"); /* in "5 epochs" the space ends the number before the e of epochs */
    size_t length = digits;
    while (length > 0 && (text[length - 1] == 'e' || text[length - 1] == 'E')) /* "5epochs" */
        length--;
    double amount = -1;
    if (length > 0 && length < sizeof number) {
        memcpy(number, text, length);
        if (cvy_text_real(number, &amount) != CVY_OK)
            amount = -1;
    }
    const char *word = text + length + strspn(text + length, " ");
    for (int i = 0; amount >= 0 && i < CVY_COUNT(units); i++)
        if (strcmp(word, units[i].word) == 0) {
            *out = (cvy_duration){amount * units[i].factor, units[i].unit};
            return CVY_OK;
        }
    CVY_FAIL(CVY_E_ARGUMENT,
             "\"%s\" is not a duration, expected a number and a unit: steps, samples, epochs, s, min or h", text);
}

/* "5 %", "5%", "100 steps", "2 epochs" */
static int read_stretch(const char *text, cvy_stretch *out)
{
    char number[32] = "";
    size_t length = strlen(text);
    double percent = -1;
    *out = (cvy_stretch){.share = -1};
    if (length > 0 && text[length - 1] == '%') {
        for (length--; length > 0 && text[length - 1] == ' '; length--) {
        }
        if (length == 0 || length >= sizeof number)
            return 0;
        memcpy(number, text, length);
        if (cvy_text_real(number, &percent) != CVY_OK || !(percent >= 0) || percent > 100)
            return 0;
        out->share = percent / 100;
        return 1;
    }
    return cvy_duration_parse(text, &out->length) == CVY_OK && out->length.amount <= 1e15 &&
           (out->length.unit == CVY_DURATION_STEPS || out->length.unit == CVY_DURATION_EPOCHS);
}

cvy_status cvy_stretch_parse(const char *text, cvy_stretch *out)
{
    CVY_CHECK(text && read_stretch(text, out), CVY_E_CONFIG,
              "is \"%s\", expected a share of the run such as 5 %%, or a number of steps or epochs", text ? text : "");
    return CVY_OK;
}

int64_t cvy_stretch_steps(const cvy_stretch *s, int64_t steps, int64_t steps_per_epoch)
{
    const double each = s->length.unit == CVY_DURATION_EPOCHS ? (double)steps_per_epoch : 1;
    const double length = s->share >= 0 ? s->share * (double)steps : s->length.amount * each;
    return length >= (double)steps ? steps : (int64_t)llround(length);
}
