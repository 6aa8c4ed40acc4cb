/*
 * report_text.c: helpers for the sections of the page: escaped text, formatted numbers, and values from parsed files.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text/base_text.h"
#include "report/report_page.h"

/* Drops control characters and replaces bytes that are not UTF-8, so that any file name or job text gives a valid
 * page. */
void cvy_html_escape(cvy_text *html, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c;) {
        const int n = *c < 0x80                 ? 1
                      : *c >= 0xC2 && *c < 0xE0 ? 2
                      : *c >= 0xE0 && *c < 0xF0 ? 3
                      : *c >= 0xF0 && *c < 0xF5 ? 4
                                                : 0;
        int whole = n > 0;
        for (int i = 1; i < n && whole; i++)
            whole = (c[i] & 0xC0) == 0x80;
        if (!whole) {
            cvy_text_add(html, "&#xFFFD;");
            c++;
            continue;
        }
        switch (*c) {
        case '<': cvy_text_add(html, "&lt;"); break;
        case '>': cvy_text_add(html, "&gt;"); break;
        case '&': cvy_text_add(html, "&amp;"); break;
        case '"': cvy_text_add(html, "&quot;"); break;
        case '\'': cvy_text_add(html, "&#39;"); break;
        default:
            if (*c >= 32 || *c == '\n' || *c == '\t')
                cvy_text_add_bytes(html, (const char *)c, (size_t)n);
        }
        c += n;
    }
}

void cvy_html_add(cvy_text *html, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    while (*fmt) {
        char number[16]; /* the format of one, such as "%.3g" */
        const size_t plain = strcspn(fmt, "%");
        cvy_text_add_bytes(html, fmt, plain);
        fmt += plain;
        const size_t n = *fmt ? 2 + strspn(fmt + 1, ".0123456789l") : 0;
        snprintf(number, sizeof number, "%.*s", (int)n, fmt);
        fmt += n;
        if (n == 0)
            break;
        switch (fmt[-1]) {
        case 's': cvy_html_escape(html, va_arg(args, const char *)); break;
        case 'd':
            if (n > 3 && fmt[-2] == 'l')
                cvy_text_add(html, number, va_arg(args, long long));
            else
                cvy_text_add(html, number, va_arg(args, int));
            break;
        case '%': cvy_text_add(html, "%%"); break;
        default: cvy_text_add(html, number, va_arg(args, double)); break;
        }
    }
    va_end(args);
}

void cvy_html_picture(cvy_text *html, const char *picture, const char *alt)
{
    if (!picture || strncmp(picture, "data:image/png;base64,", 22) != 0)
        return;
    cvy_html_add(html, "<img alt=\"%s\" src=\"%s\"/>", alt, picture);
}

void cvy_html_sample(cvy_text *html, const cvy_tree *sample)
{
    const char *name = cvy_tree_text_at(sample, "name"), *slash = name ? strrchr(name, '/') : NULL;
    if (!name) {
        cvy_text_add(html, "<span>sample %s</span>", cvy_number_count(cvy_tree_real_at(sample, "sample")).at);
        return;
    }
    cvy_html_add(html, "<span title=\"%s\">%s</span>", name, slash && slash[1] ? slash + 1 : name);
}

/* ---- numbers ---- */

static void add_separators(char *text, size_t room)
{
    char plain[40];
    size_t used = 0;
    snprintf(plain, sizeof plain, "%s", text);
    const size_t sign = plain[0] == '-', digits = strspn(plain + sign, "0123456789"), length = strlen(plain);
    for (size_t i = 0; i < length && used + 2 < room; i++) {
        const size_t left = i >= sign && i < sign + digits ? digits - (i - sign) : 0;
        if (digits > 4 && i > sign && left > 0 && left % 3 == 0)
            text[used++] = ',';
        text[used++] = plain[i];
    }
    text[used] = 0;
}

cvy_number cvy_number_text(double x, int digits)
{
    cvy_number n;
    const double size = fabs(x);
    if (!isfinite(x))
        snprintf(n.at, sizeof n.at, isnan(x) ? "–" : x > 0 ? "∞" : "−∞");
    else if (x == floor(x) && size < 1e9) {
        snprintf(n.at, sizeof n.at, "%.0f", x);
        add_separators(n.at, sizeof n.at);
    } else if (size < 1e-4 || size >= 1e9)
        snprintf(n.at, sizeof n.at, "%.*e", digits - 1, x);
    else if (size >= pow(10, digits - 1)) {
        snprintf(n.at, sizeof n.at, "%.0f", x);
        add_separators(n.at, sizeof n.at);
    } else
        snprintf(n.at, sizeof n.at, "%.*f", CVY_MAX(digits - 1 - (int)floor(log10(size)), 0), x);
    return n;
}

cvy_number cvy_number_count(double x)
{
    cvy_number n;
    if (!isfinite(x) || fabs(x) >= 1e15)
        return cvy_number_text(x, 6);
    snprintf(n.at, sizeof n.at, "%.*f", x == floor(x) ? 0 : 2, x);
    add_separators(n.at, sizeof n.at);
    return n;
}

static cvy_number scaled(double x, double base, const char *const *unit, int nunit)
{
    cvy_number n;
    int i = 0;
    while (i + 1 < nunit && fabs(x) >= base * 0.9995) {
        x /= base;
        i++;
    }
    snprintf(n.at, sizeof n.at, "%.*f %s", i == 0 || x >= 100 ? 0 : x >= 10 ? 1 : 2, x, unit[i]);
    return n;
}

cvy_number cvy_number_bytes(double bytes)
{
    static const char *const unit[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    return scaled(bytes, 1024, unit, CVY_COUNT(unit));
}

cvy_number cvy_number_seconds(double s)
{
    cvy_number n;
    if (!isfinite(s))
        return cvy_number_text(s, 3);
    if (s < 1e-3)
        snprintf(n.at, sizeof n.at, "%.3g µs", s * 1e6);
    else if (s < 1)
        snprintf(n.at, sizeof n.at, "%.3g ms", s * 1e3);
    else if (s < 100)
        snprintf(n.at, sizeof n.at, "%.3g s", s);
    else if (s < 3600)
        snprintf(n.at, sizeof n.at, "%d min %02d s", (int)s / 60, (int)s % 60);
    else
        snprintf(n.at, sizeof n.at, "%lld h %02d min", (long long)CVY_MIN(s, 1e15) / 3600, (int)(fmod(s, 3600) / 60));
    return n;
}

cvy_number cvy_number_percent(double share)
{
    cvy_number n;
    const double percent = 100 * share;
    if (!isfinite(percent))
        return cvy_number_text(percent, 3);
    snprintf(n.at, sizeof n.at, "%.*f %%", percent >= 99.95 ? 2 : fabs(percent) >= 0.995 ? 1 : 2, percent);
    return n;
}

/* ---- parsed files ---- */

cvy_status cvy_tree_reals(cvy_pool *pool, const cvy_tree *list, double **out, int64_t *count_out)
{
    const int64_t n = list && list->kind == CVY_TREE_LIST ? list->count : 0;
    double *x = NULL;
    CVY_TRY(cvy_pool_alloc(pool, sizeof *x * (size_t)(n + 1), &x));
    for (int64_t i = 0; i < n; i++)
        x[i] = cvy_tree_real_or_nan(list->child[i]);
    *out = x;
    *count_out = n;
    return CVY_OK;
}
