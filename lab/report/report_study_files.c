/*
 * report_study_files.c: what a paper takes from a study: each figure as an SVG file, and each table in LaTeX.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/base_file.h"
#include "report/report_page.h"
#include "report/report_study.h"

/* ---- figures ---- */

/* Programs that draw SVG know neither variables of CSS nor a page around the figure, so colours are written out. */
static const char style[] =
    "<style>text{font-family:Helvetica,Arial,sans-serif}.line{fill:none;stroke-width:2;stroke-linejoin:round}"
    ".dashed{fill:none;stroke-width:1.5;stroke-dasharray:5 4}.dot{fill:#fff;stroke-width:1.8;vector-effect:"
    "non-scaling-stroke}.area{stroke:none;fill-opacity:.2}.swatch{stroke-width:4;stroke-linecap:round}.grid{stroke:"
    "#e3e6e9;stroke-width:1}.axis{stroke:#555;stroke-width:1}.neutral{stroke:#777}.tick{fill:#444;font-size:11.5px}."
    "label{fill:#333;"
    "font-size:12px}.legend{fill:#111;font-size:12px}";
static const char *const colors[] = {"#1f6fb2", "#d9722b", "#17936d", "#a8528f",
                                     "#8c7a1e", "#4fa3c7", "#c0464b", "#747c86"};

static void add_style(cvy_text *svg)
{
    cvy_text_add(svg, "%s", style);
    for (int i = 0; i < CVY_COUNT(colors); i++)
        cvy_text_add(svg, ".line.c%d,.dashed.c%d,.dot.c%d,.swatch.c%d{stroke:%s}.area.c%d{fill:%s}", i, i, i, i,
                     colors[i], i, colors[i]);
    cvy_text_add(svg, "</style><rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>");
}

/* "Efficiency, resnet-50" becomes "figures/efficiency-resnet-50.svg". */
void cvy_study_svg_name(const char *figure, const char *panel, char *name, size_t room)
{
    static const char folder[] = "figures/", ending[] = ".svg";
    const char *const part[] = {figure, panel};
    size_t n = (size_t)snprintf(name, room, "%s", folder);
    room -= sizeof ending;
    for (int i = 0; i < CVY_COUNT(part); i++)
        for (const char *at = part[i]; *at && n + 2 < room; at++) {
            const int plain = isalnum((unsigned char)*at);
            const int is_first = n < sizeof folder;
            if (plain && !is_first && at == part[i] && name[n - 1] != '-')
                name[n++] = '-';
            if (plain || (!is_first && name[n - 1] != '-'))
                name[n++] = plain ? (char)tolower((unsigned char)*at) : '-';
        }
    while (n > 0 && name[n - 1] == '-')
        n--;
    snprintf(name + n, sizeof ending, "%s", ending);
}

cvy_status cvy_study_write_svg(cvy_study_page *p, const char *figure, const char *panel, const char *html)
{
    static const char open[] = "<svg ", close[] = "</svg>";
    const char *begin = strstr(html, open), *end = begin ? strstr(begin, close) : NULL, *body = NULL;
    char name[160], *path = NULL;
    cvy_text svg = {0};
    if (!end)
        return CVY_OK;
    body = strchr(begin, '>') + 1;
    cvy_text_add(&svg, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" ");
    cvy_text_add_bytes(&svg, begin + strlen(open), (size_t)(body - begin) - strlen(open));
    add_style(&svg);
    cvy_text_add_bytes(&svg, body, (size_t)(end - body) + strlen(close));
    cvy_text_add(&svg, "\n");
    cvy_study_svg_name(figure, panel, name, sizeof name);
    cvy_status status = cvy_pool_printf(p->pool, &path, "%s/figures", p->folder);
    if (status == CVY_OK)
        status = cvy_file_make_folder(path);
    if (status == CVY_OK)
        status = cvy_pool_printf(p->pool, &path, "%s/%s", p->folder, name);
    if (status == CVY_OK)
        status = svg.status;
    if (status == CVY_OK)
        status = cvy_file_replace(path, svg.data, svg.bytes);
    cvy_text_free(&svg);
    return status;
}

/* ---- tables ---- */

static void add_escaped(cvy_text *tex, const char *text)
{
    for (; *text; text++) {
        if (strchr("&%$#_{}", *text))
            cvy_text_add(tex, "\\%c", *text);
        else if (*text == '\\' || *text == '~' || *text == '^')
            cvy_text_add(tex, "\\char%d{}", *text);
        else
            cvy_text_add(tex, "%c", *text);
    }
}

static void add_head(cvy_text *tex, const cvy_study_page *p, const cvy_experiment *e)
{
    cvy_text_add(tex, "\\begin{table}\n\\centering\n\\caption{");
    add_escaped(tex, p->spec.title);
    cvy_text_add(tex, ": ");
    add_escaped(tex, e->show_label);
    cvy_text_add(tex, ", median (range) over the repeats}\n\\begin{tabular}{");
    for (int a = 0; a < e->naxis; a++)
        cvy_text_add(tex, "l");
    cvy_text_add(tex, "r}\n\\hline\n");
    for (int a = 0; a < e->naxis; a++) {
        add_escaped(tex, e->axis[a].name);
        cvy_text_add(tex, " & ");
    }
    add_escaped(tex, e->show_label);
    cvy_text_add(tex, " \\\\\n\\hline\n");
}

static void add_row(cvy_text *tex, const cvy_experiment *e, const cvy_study_row *row)
{
    const cvy_spread s = cvy_study_spread(row, e->show);
    for (int a = 0; a < e->naxis; a++) {
        add_escaped(tex, cvy_study_value(row, e->axis[a].name));
        cvy_text_add(tex, " & ");
    }
    if (s.n == 0)
        cvy_text_add(tex, "--- \\\\\n");
    else if (s.n == 1)
        cvy_text_add(tex, "%.4g%s \\\\\n", s.median, row->first->is_predicted ? "$^{p}$" : "");
    else
        cvy_text_add(tex, "%.4g (%.4g--%.4g) \\\\\n", s.median, s.low, s.high);
}

cvy_status cvy_study_write_latex(cvy_study_page *p)
{
    cvy_text tex = {0};
    char *path = NULL;
    cvy_text_add(&tex, "%% A superscript p marks a prediction.\n");
    for (int i = 0; i < p->spec.nexperiment; i++) {
        const cvy_experiment *e = &p->spec.experiment[i];
        int n = 0;
        for (int k = 0; k < p->nrow; k++) {
            if (!cvy_study_shows(p, &p->row[k], e->name))
                continue;
            if (n++ == 0)
                add_head(&tex, p, e);
            add_row(&tex, e, &p->row[k]);
        }
        if (n > 0)
            cvy_text_add(&tex, "\\hline\n\\end{tabular}\n\\end{table}\n\n");
    }
    cvy_status status = tex.status;
    if (status == CVY_OK)
        status = cvy_pool_printf(p->pool, &path, "%s/tables.tex", p->folder);
    if (status == CVY_OK)
        status = cvy_file_replace(path, tex.data, tex.bytes);
    cvy_text_free(&tex);
    return status;
}
