/* cmd_doctor.c: `convoy doctor`: what the ranks run on, how fast their files and network are, and what of that is wrong. */
#include "cmd.h"

static int doctor(const cmd_line *line, cvy_context *context)
{
    const cvy_doctor_opts opts = {.size = sizeof opts, .max = line->max, .seconds = (double)line->seconds, .out = line->out};
    char *text = NULL;
    const cvy_status status = cvy_run_doctor(context, &opts, line->json ? "json" : "table", &text);
    return cmd_print(status, &text);
}

static int run(const cmd_line *line)
{
    return cmd_on_ranks(line, doctor);
}

static const cmd_option options[] = {
    {"--max", "BYTES", CMD_TEXT, CMD_FIELD(max), "the longest sum, such as 64MiB; 256MiB if not given"},
    {"--out", "FOLDER", CMD_TEXT, CMD_FIELD(out), "where files are tried: the folder that runs will be in; the current one if not given"},
    {"--seconds", "S", CMD_NUMBER, CMD_FIELD(seconds), "for all measurements, about; longer sums are left out where they do not fit; 30 if not given"},
    CMD_OPTION_JSON("prints one JSON object, with medians and all nodes and ranks"),
    CMD_OPTION_THREADS,
    CMD_OPTION_VERBOSE,
    {0},
};

const cmd_verb cmd_doctor = {
    .name = "doctor", .arguments = "[--max BYTES] [--seconds S] [--json]", .summary = "looks at ranks, cores, clocks, files and network before a training does",
    .detail = "Start it as a training would be started: mpiexec -n N convoy doctor. It prints where the ranks are and on which cores; how their clocks\n"
              "agree; how fast files are written, and whether all ranks see them; the time of single messages as alpha + beta bytes; and the time of sums over all ranks, 1 KiB to --max, by each algorithm, by the MPI library and through\n"
              "the memory of the nodes (node, and node+ring and so on between several nodes). The star marks what `comm.algorithm: auto` takes. Every way's\n"
              "first sum is checked number by number. What could be better is listed at the end.",
    .options = options, .run = run,
};
