/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_info.c: `convoy info`: prints what was built in, which data formats it reads and writes, which MPI library it
 * has, what the machine offers, which devices can compute, and which site file is in use. */
#include <string.h>
#include <unistd.h>

#include <convoy/mpi.h>

#include "cmd.h"
#include "cmd_machine.h"
#if CVY_HAVE_LAB
#include "cmd_site.h"
#include "files/files.h"
#include "health/health.h"
#endif

enum { WARNING_BYTES = 1024 };

typedef struct verb_options {
    int json;
} verb_options;

/* The first line of the MPI library's version text. MPI allows this call before MPI_Init. */
static void mpi_library(char *text)
{
    int length = 0;
    text[0] = '\0';
    MPI_Get_library_version(text, &length);
    text[strcspn(text, "\n")] = '\0';
}

static void cpu_name(char *text, size_t room)
{
    char line[256];
    FILE *file = cmd_open_stream("/proc/cpuinfo", "r");
    snprintf(text, room, "unknown: /proc/cpuinfo %s", file ? "does not name it" : "cannot be read");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':')) {
            const char *name = strchr(line, ':') + 1;
            name += strspn(name, " \t");
            snprintf(text, room, "%.*s", (int)strcspn(name, "\n"), name);
            break;
        }
    if (file)
        fclose(file);
}

static void print_pair(const char *key, size_t n, const char *value, int json, int first)
{
    if (!json) {
        cmd_say("%-12.*s  %s\n", (int)n, key, value);
        return;
    }
    cmd_say("%s\"%.*s\": \"", first ? "" : ", ", (int)n, key);
    while (*value) {
        const size_t plain = strcspn(value, "\"\\\n\t");
        cmd_say("%.*s", (int)plain, value);
        value += plain;
        if (*value)
            cmd_say(*value == '"' || *value == '\\' ? "\\%c" : " ", *value);
        value += *value != 0;
    }
    putchar('"');
}

/* text has one pair per line: "key value". */
static void print_pairs(const char *text, int json, int first)
{
    for (const char *at = text; *at; first = 0) {
        char value[800];
        const size_t key = strcspn(at, " \n"), end = strcspn(at, "\n");
        snprintf(value, sizeof value, "%.*s", (int)(end - key), at + key + (end > key));
        value[strcspn(value, "\n")] = '\0';
        print_pair(at, key, value, json, first);
        at += end + (at[end] == '\n');
    }
}

#if CVY_HAVE_LAB
/* A site file with an error does not keep `convoy info` from saying the rest. */
static void print_site(int json)
{
    cvy_site *site = NULL;
    cvy_site_about about = cvy_site_about_default();
    char text[1100];
    if (cmd_open_site(&site, &about) != 0)
        snprintf(text, sizeof text, "with an error");
    else if (about.path && about.user_path)
        snprintf(text, sizeof text, "%s and %s", about.path, about.user_path);
    else
        snprintf(text, sizeof text, "%s", about.path ? about.path : about.user_path ? about.user_path : "none");
    print_pair("site", 4, text, json, 0);
    cvy_site_destroy(&site);
}

/* The libraries of a vendor on the devices. They do not keep `convoy info` from saying the rest. */
static void print_libraries(int json)
{
    char *libraries = NULL;
    if (cvy_run_libraries(&libraries) == CVY_OK)
        print_pairs(libraries, json, 0);
    cvy_text_release(&libraries);
}

/* Which data formats this build reads and writes. Returns the exit code. */
static int print_formats(int json)
{
    char *formats = NULL;
    const cvy_status status = cvy_run_formats(&formats);
    if (status != CVY_OK)
        return cmd_outcome(status);
    print_pairs(formats, json, 0);
    cvy_text_release(&formats);
    return 0;
}
#endif

/* Which devices there are, or why none. It does not keep `convoy info` from saying the rest. */
static void print_devices(int json)
{
    char *devices = NULL;
    if (cvy_device_list(&devices) == CVY_OK)
        print_pairs(devices, json, 0);
    cvy_text_release(&devices);
}

static void keep_warning(void *text, cvy_log_level level, const char *line)
{
    if (level == CVY_LOG_WARN)
        snprintf(text, WARNING_BYTES, "%s", line);
}

/* The compute threads of one rank that is alone on this node, and why they are fewer than the cores. */
static void print_threads(int json)
{
    char warning[WARNING_BYTES] = "", text[WARNING_BYTES + 32];
    const cvy_context_opts opts = {
        .size = sizeof opts, .log_level = CVY_LOG_WARN, .log = keep_warning, .log_user = warning};
    cvy_context *context = NULL;
    if (cvy_context_create(&opts, &context) == CVY_OK)
        snprintf(text, sizeof text, "%d%s%s", cvy_context_threads(context), *warning ? ": " : "", warning);
    else
        snprintf(text, sizeof text, "unknown: %s", cvy_error_text());
    print_pair("threads", 7, text, json, 0);
    cvy_context_destroy(&context);
}

static int run(const cmd_line *line)
{
    const verb_options *o = line->options;
    char library[MPI_MAX_LIBRARY_VERSION_STRING], cpu[256], cores[64];
    cmd_cores mine;
    if (o->json)
        putchar('{');
    print_pairs(cvy_build_info(), o->json, 1);
#if CVY_HAVE_LAB
    const int code = print_formats(o->json);
    if (code)
        return code;
#else
    print_pair("laboratory", 10, "none: built with CONVOY_WITH_LAB=OFF", o->json, 0);
#endif
    mpi_library(library);
    cpu_name(cpu, sizeof cpu);
    snprintf(cores, sizeof cores, "%d of %ld usable", cmd_cores_get(0, &mine) ? cmd_cores_count(&mine) : 1,
             sysconf(_SC_NPROCESSORS_ONLN));
    print_pair("mpi-library", 11, library, o->json, 0);
    print_pair("cpu", 3, cpu, o->json, 0);
    print_pair("cores", 5, cores, o->json, 0);
    print_threads(o->json);
    print_devices(o->json);
#if CVY_HAVE_LAB
    print_libraries(o->json);
#endif
#if CVY_HAVE_LAB
    print_site(o->json);
#endif
    if (o->json)
        cmd_say("}\n");
    return 0;
}

static const cmd_option options[] = {CMD_OPTION_JSON("prints one JSON object"), {0}};

const cmd_verb cmd_info = {
    .name = "info",
    .arguments = "[--json]",
    .summary = "says what was built in and what the machine offers",
    .options = options,
    .options_size = sizeof(verb_options),
    .run = run,
};
