/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_convert.c: `convoy convert` and its short form `convoy pack`: write a data set in another format. */
#include <time.h>
#include <unistd.h>

#include "cmd.h"
#include "files/files.h"

typedef struct verb_options { /* for both verbs */
    const char *format, *format_options;
    int64_t parts;
    cvy_shape resize;
    int skip_bad, unchecked;
    cmd_ranks ranks;
} verb_options;

struct progress {
    time_t shown;
    int any;
};

static void show(void *user, int64_t done, int64_t of)
{
    struct progress *p = user;
    const time_t now = time(NULL);
    if (!isatty(STDERR_FILENO) || (now == p->shown && done < of))
        return;
    p->shown = now;
    p->any = 1;
    fprintf(stderr, "\r%lld of %lld samples ", (long long)done, (long long)of);
    fflush(stderr);
}

static int convert(const cmd_line *line, cvy_context *context, void *user)
{
    const verb_options *o = line->options;
    char *report = NULL;
    (void)user;
    struct progress p = {.shown = time(NULL)};
    const cvy_convert_request request = {
        .size = sizeof request,
        .source = line->arg[0],
        .destination = line->arg[1],
        .format = o->format,
        .options = o->format_options,
        .parts = o->parts,
        .height = o->resize.dim[0],
        .width = o->resize.dim[o->resize.ndim > 1],
        .unchecked = o->unchecked,
        .skip_bad = o->skip_bad,
        .progress = show,
        .user = &p,
    };
    const cvy_status status = cvy_run_convert(context, &request, &report);
    if (p.any)
        fputs("\r", stderr);
    return report || status != CVY_OK ? cmd_print(status, &report) : 0;
}

static int run(const cmd_line *line)
{
    const verb_options *o = line->options;
    if (o->resize.ndim > 2) {
        cmd_error("--resize is H,W or one number for both");
        return CMD_EXIT_USAGE;
    }
    return cmd_on_ranks(line, &o->ranks, convert, NULL);
}

#define COMMON                                                                                                         \
    {"--parts", "N", CMD_NUMBER, CMD_FIELD(parts), "files to write; as many as the size requires if not given"},       \
        {"--resize", "H,W", CMD_SHAPE, CMD_FIELD(resize), "decodes pictures and stores them as bytes of this size"},   \
        {"--skip-bad", NULL, CMD_FLAG, CMD_FIELD(skip_bad),                                                            \
         "leaves damaged samples out and counts them; without it they are errors"},                                    \
    {                                                                                                                  \
        "--unchecked", NULL, CMD_FLAG, CMD_FIELD(unchecked), "does not decode pictures to check them: faster"          \
    }

static const cmd_option convert_options[] = {
    {"--format", "NAME", CMD_TEXT, CMD_FIELD(format),
     "what to write: pack, tfrecord, lmdb, hdf5, folder, list; pack if not given"},
    {"--format-options", "TEXT", CMD_TEXT, CMD_FIELD(format_options),
     "the format's own options, such as 'compress: 4'"},
    COMMON,
    {0},
};

static const cmd_option pack_options[] = {COMMON, {0}};

#define ABOUT                                                                                                          \
    "SOURCE is a path (a folder of pictures by class, CIFAR binary files, IDX, .npy, ...) or a map {path: ..., "       \
    "format: ..., options}.\n"                                                                                         \
    "Under mpiexec all ranks write. The same command again completes a conversion that was interrupted."

const cmd_verb cmd_convert = {
    .name = "convert",
    .arguments = "SOURCE DESTINATION [--format NAME]",
    .summary = "writes a data set in another format",
    .detail = ABOUT,
    .options = convert_options,
    .options_size = sizeof(verb_options),
    .narg_min = 2,
    .narg_max = 2,
    .run = run,
};

const cmd_verb cmd_pack = {
    .name = "pack",
    .arguments = "SOURCE FOLDER [--skip-bad]",
    .summary = "writes a data set as a few large files with checksums and an index",
    .detail = ABOUT "\nA packed set is the fastest to read, and many ranks may open it at once.",
    .options = pack_options,
    .options_size = sizeof(verb_options),
    .narg_min = 2,
    .narg_max = 2,
    .run = run,
};
