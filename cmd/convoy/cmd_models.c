/* cmd_models.c: `convoy models`: the networks of the zoo, and the layers that a network of one's own may have. */
#include "cmd.h"

static int run(const cmd_line *line)
{
    char *text = NULL;
    const cvy_status status = line->layers ? cvy_layers_list(&text) : cvy_models_list(&text);
    return cmd_print(status, &text);
}

static const cmd_option options[] = {
    {"--layers", NULL, CMD_FLAG, CMD_FIELD(layers), "the layers and losses with their options, in place of the networks"},
    {0},
};

const cmd_verb cmd_models = {
    .name = "models", .arguments = "[--layers]", .summary = "lists the networks of the zoo, or the layers that a job file may use",
    .options = options, .run = run,
};
