/*
 * report_page.c: reads what a run left in its folder and writes its page: one file, no scripts, nothing loaded from elsewhere, for screen and paper.
 *
 * In the step: never; at the end of `train`, after `test`, and by `convoy report RUN` at any time.
 */
#include <locale.h>
#include <string.h>

#include "report/report.h"

#define TEXT_BYTES_MAX ((size_t)16 << 20)

/* Colours of the series are told apart by people with any colour vision (after Okabe and Ito 2008), on light and on dark. */
static const char *const style[] = {
    ":root{--bg:#f7f7f5;--card:#fff;--ink:#1b2430;--soft:#5d6876;--line:#e2e4e7;--grid:#eceef0;--accent:#1f6fb2;"
    "--c0:#1f6fb2;--c1:#d9722b;--c2:#17936d;--c3:#a8528f;--c4:#8c7a1e;--c5:#4fa3c7;--c6:#c0464b;--c7:#747c86}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#11151a;--card:#1a2027;--ink:#e7eaee;--soft:#9aa5b1;--line:#2c343d;--grid:#262d35;--accent:#6db3ec;"
    "--c0:#6db3ec;--c1:#f0985c;--c2:#4cc49c;--c3:#d68cc0;--c4:#cdb94f;--c5:#86cbe6;--c6:#ec7f83;--c7:#9aa3ad}}\n"
    "*{box-sizing:border-box}html{color-scheme:light dark}\n"
    "body{margin:0;background:var(--bg);color:var(--ink);font:16px/1.55 system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;"
    "font-variant-numeric:tabular-nums;-webkit-text-size-adjust:100%}\n"
    "main{max-width:1120px;margin:0 auto;padding:44px 24px 64px}\n"
    ".over{margin:0;color:var(--accent);font-size:.78rem;font-weight:600;letter-spacing:.1em;text-transform:uppercase}\n"
    "h1{margin:.1em 0 .35em;font-size:2.3rem;line-height:1.15;letter-spacing:-.02em;overflow-wrap:anywhere}\n"
    "h2{margin:2.6em 0 .8em;font-size:1.35rem;letter-spacing:-.01em;border-bottom:1px solid var(--line);padding-bottom:.35em}\n"
    "h3{margin:2em 0 .8em;font-size:1rem}\n"
    ".verdict{margin:0 0 1.2em;max-width:54em;font-size:1.18rem;line-height:1.5}\n"
    ".soft{color:var(--soft)}.facts{font-size:.9rem;margin:0 0 1em}.facts b{color:var(--ink);font-weight:600;overflow-wrap:anywhere}\n",
    ".tiles{display:flex;flex-wrap:wrap;gap:14px;margin:0 0 1.2em}\n"
    ".tiles div{flex:1 1 150px;max-width:260px;background:var(--card);border:1px solid var(--line);border-radius:10px;padding:12px 16px}\n"
    ".tiles dt{color:var(--soft);font-size:.8rem}.tiles dd{margin:0;font-size:1.45rem;font-weight:650;letter-spacing:-.01em;white-space:nowrap}\n"
    ".notes{margin:0 0 1em;padding:12px 18px 12px 34px;background:var(--card);border:1px solid var(--line);border-left:4px solid var(--c1);border-radius:6px;font-size:.95rem}\n"
    ".charts{display:grid;grid-template-columns:repeat(6,minmax(0,1fr));gap:18px}\n"
    "figure{margin:0;background:var(--card);border:1px solid var(--line);border-radius:10px;padding:16px 16px 10px;break-inside:avoid}\n"
    ".half{grid-column:span 3}.third{grid-column:span 2}\n"
    "@media screen and (max-width:820px){.half,.third{grid-column:span 6}h1{font-size:1.8rem}}\n"
    "figcaption b{display:block;font-size:1rem}figcaption span{display:block;color:var(--soft);font-size:.84rem}figcaption{margin-bottom:8px}\n"
    "svg{display:block;width:100%;height:auto;font-family:inherit}\n",
    ".c0{--c:var(--c0)}.c1{--c:var(--c1)}.c2{--c:var(--c2)}.c3{--c:var(--c3)}.c4{--c:var(--c4)}.c5{--c:var(--c5)}.c6{--c:var(--c6)}.c7{--c:var(--c7)}"
    ".neutral{--c:var(--soft)}\n"
    ".line{fill:none;stroke:var(--c);stroke-width:2;stroke-linejoin:round;stroke-linecap:round}\n"
    ".dashed{fill:none;stroke:var(--c);stroke-width:1.3;stroke-dasharray:5 4}\n"
    ".dot{fill:var(--card);stroke:var(--c);stroke-width:1.8}.point{fill:var(--c);fill-opacity:.4}\n"
    ".area{fill:var(--c);fill-opacity:.82}.area.light{fill-opacity:.16}.area.faint{fill-opacity:.2}.column{fill:var(--c);fill-opacity:.85}\n"
    ".swatch{stroke:var(--c);stroke-width:4;stroke-linecap:round}\n"
    ".grid{stroke:var(--grid);stroke-width:1}.axis{stroke:var(--soft);stroke-width:1}\n"
    ".tick{fill:var(--soft);font-size:11.5px}.label{fill:var(--soft);font-size:12px}.legend{fill:var(--ink);font-size:12px}\n"
    ".cell{fill:var(--c1);stroke:var(--grid)}.cell.hit{fill:var(--c0)}.in{fill:var(--ink);font-size:11.5px}.in.dark{fill:var(--card);font-weight:600}\n",
    "table{border-collapse:collapse;font-size:.88rem}th{font-weight:500;text-align:left}td{text-align:right}td,th{padding:5px 12px;border-bottom:1px solid var(--line)}\n"
    "thead td{color:var(--soft);font-size:.8rem;vertical-align:bottom}.t{text-align:left}.compare{width:100%;margin:0 0 22px}.compare thead td{max-width:11em}\n"
    ".pictures{display:flex;flex-wrap:wrap;gap:10px}.pictures figure{padding:8px;max-width:180px;font-size:.85rem}.pictures img{display:block;max-width:160px;min-width:96px;image-rendering:auto;margin-bottom:4px}\n"
    ".scores{width:100%;margin:4px 0 10px;font-size:1rem}.wide{overflow-x:auto}.layers{width:100%;white-space:nowrap}.share{min-width:90px;text-align:left}\n"
    ".share i{display:block;height:9px;border-radius:3px;background:var(--c0);min-width:0}\n"
    ".bar{display:flex;height:22px;border-radius:6px;overflow:hidden}.bar i{display:block}.keys{font-size:.85rem;color:var(--soft)}.keys span{margin-right:18px;white-space:nowrap}\n"
    ".keys i{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:6px}\n"
    ".f0{background:var(--c0)}.f1{background:var(--c3)}.f2{background:var(--c1)}.f3{background:var(--c2)}.f4{background:var(--c7)}\n"
    "summary{cursor:pointer;font-weight:600;margin:0 0 .6em}details{margin:0 0 1em}\n"
    "pre{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:14px 16px;overflow-x:auto;font:13px/1.5 ui-monospace,Menlo,Consolas,monospace}\n"
    "footer{margin-top:48px;color:var(--soft);font-size:.85rem}\n",
    "@media print{:root{--bg:#fff;--card:#fff;--ink:#111;--soft:#555;--line:#ccc;--grid:#e6e6e6;--accent:#1f6fb2;"
    "--c0:#1f6fb2;--c1:#d9722b;--c2:#17936d;--c3:#a8528f;--c4:#8c7a1e;--c5:#4fa3c7;--c6:#c0464b;--c7:#747c86}\n"
    "html{font-size:12px}main{max-width:none;padding:0}body{font-size:9.5pt;-webkit-print-color-adjust:exact;print-color-adjust:exact}h2,h3{break-after:avoid}.charts{gap:10px}figure{padding:8px 10px 4px}.compare td{white-space:nowrap}.compare thead td{white-space:normal}.layers{font-size:7.5pt}.layers td{padding:2px 6px}tr{break-inside:avoid}figure{border-color:#ddd}}\n",
};

/* ---- reading ---- */

static cvy_status path_of(cvy_report *r, const char *name, char **path_out, int *exists_out)
{
    CVY_TRY(cvy_pool_printf(r->pool, path_out, "%s/%s", r->folder, name));
    *exists_out = cvy_file_exists(*path_out);
    return CVY_OK;
}

/* A file that cannot be read is said in the page; only a lack of memory ends the page. */
static cvy_status tolerate(cvy_report *r, const char *name, cvy_status status)
{
    if (status == CVY_OK || status == CVY_E_MEMORY || r->ntrouble == CVY_COUNT(r->trouble))
        return status == CVY_E_MEMORY ? status : CVY_OK;
    CVY_TRY(cvy_pool_printf(r->pool, &r->trouble[r->ntrouble], "%s is left out: %s", name, cvy_error_text()));
    r->ntrouble++;
    return CVY_OK;
}

static cvy_status read_tree(cvy_report *r, const char *name, const cvy_tree **out)
{
    char *path = NULL;
    cvy_tree *tree = NULL;
    int exists = 0;
    CVY_TRY(path_of(r, name, &path, &exists));
    if (!exists)
        return CVY_OK;
    CVY_TRY(tolerate(r, name, cvy_tree_parse_file(r->pool, path, &tree)));
    *out = tree && tree->kind == CVY_TREE_MAP ? tree : NULL;
    return CVY_OK;
}

static cvy_status read_text(cvy_report *r, const char *name, const char **out)
{
    char *path = NULL, *data = NULL, *text = NULL;
    size_t bytes = 0;
    int exists = 0;
    CVY_TRY(path_of(r, name, &path, &exists));
    if (!exists)
        return CVY_OK;
    CVY_TRY(tolerate(r, name, cvy_file_read(path, TEXT_BYTES_MAX, &data, &bytes)));
    if (!data)
        return CVY_OK;
    const cvy_status status = cvy_pool_strdup(r->pool, data, &text);
    cvy_mem_free(&data);
    *out = text;
    return status;
}

static cvy_status read_all(cvy_report *r)
{
    char *path = NULL;
    int exists = 0;
    CVY_TRY(read_tree(r, "job.resolved.yaml", &r->job));
    CVY_TRY(read_text(r, "job.resolved.yaml", &r->job_text));
    CVY_TRY(read_text(r, "STATUS", &r->status_text));
    CVY_TRY(read_tree(r, "plan.json", &r->plan));
    CVY_TRY(read_tree(r, "test.json", &r->test));
    CVY_TRY(path_of(r, "metrics.jsonl", &path, &exists));
    return exists ? tolerate(r, "metrics.jsonl", cvy_frames_read(path, &r->steps, &r->epochs)) : CVY_OK;
}

/* ---- writing ---- */

void cvy_report_foot(cvy_report *r)
{
    const cvy_tree *machine = cvy_tree_at(r->plan, "machine");
    const char *version = cvy_tree_text_at(r->plan, "version");
    char time[32];
    cvy_clock_text(time);
    if (machine && machine->kind == CVY_TREE_MAP && machine->count > 0) {
        cvy_text_add(&r->html, "<section><h2>Machine</h2>\n<table><tbody>\n");
        for (int i = 0; i < machine->count; i++) {
            if (!machine->child[i]->text)
                continue;
            cvy_text_add(&r->html, "<tr><th>");
            cvy_html_escape(&r->html, machine->key[i]);
            cvy_text_add(&r->html, "</th><td class=\"t\">");
            cvy_html_escape(&r->html, machine->child[i]->text);
            cvy_text_add(&r->html, "</td></tr>\n");
        }
        cvy_text_add(&r->html, "</tbody></table></section>\n");
    }
    if (r->job_text) {
        cvy_text_add(&r->html, "<section><h2>Job</h2>\n<details><summary>job.resolved.yaml: repeats this run</summary><pre>");
        cvy_html_escape(&r->html, r->job_text);
        cvy_text_add(&r->html, "</pre></details></section>\n");
    }
    cvy_text_add(&r->html, "<footer>Written %s by convoy %s", time, cvy_version());
    if (version && strcmp(version, cvy_version()) != 0) {
        cvy_text_add(&r->html, "; the run was made by convoy ");
        cvy_html_escape(&r->html, version);
    }
    cvy_text_add(&r->html, ".</footer>\n");
}

static void write_page(cvy_report *r)
{
    cvy_text_add(&r->html, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\" /><meta name=\"viewport\" content=\"width=device-width,initial-scale=1\" />"
                 "<title>");
    cvy_html_escape(&r->html, r->folder);
    cvy_text_add(&r->html, ": convoy report</title>\n<style>\n");
    for (int i = 0; i < CVY_COUNT(style); i++)
        cvy_text_add_bytes(&r->html, style[i], strlen(style[i]));
    cvy_text_add(&r->html, "</style></head><body><main>\n");
    cvy_report_head(r);
    cvy_report_test(r);
    cvy_report_training(r);
    cvy_report_network(r);
    cvy_report_foot(r);
    cvy_text_add(&r->html, "</main></body></html>\n");
}

static cvy_status write_inner(cvy_report *r)
{
    char *path = NULL;
    int exists = 0;
    CVY_TRY(read_all(r));
    write_page(r);
    CVY_TRY(r->html.status);
    CVY_TRY(path_of(r, "report.html", &path, &exists));
    return cvy_file_replace(path, r->html.data, r->html.bytes);
}

cvy_status cvy_report_write(const char *run_folder)
{
    cvy_report r = {.folder = run_folder};
    CVY_CHECK(cvy_file_is_folder(run_folder), CVY_E_IO, "%s: no such run folder", run_folder);
    CVY_TRY(cvy_pool_create(&r.pool));
    /* Numbers are read and written with a point, whatever the locale of the program that we are a guest in. */
    locale_t numbers = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0), before = (locale_t)0;
    if (numbers)
        before = uselocale(numbers);
    const cvy_status status = write_inner(&r);
    if (numbers) {
        uselocale(before);
        freelocale(numbers);
    }
    cvy_text_free(&r.html);
    cvy_frame_free(&r.steps);
    cvy_frame_free(&r.epochs);
    cvy_pool_destroy(&r.pool);
    return status;
}
