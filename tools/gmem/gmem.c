/* gmem: what memory is there, which device to take, load a model, replay a recorded run. docs/gmem.md says what each
 * command prints. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "gm/version.h"
#include "tools/gmem/args.h"
#include "tools/gmem/command.h"

typedef struct gmem_command {
  const char *name;
  command_run run;
  const char *does;
} gmem_command;

static const gmem_command gmem_commands[] = {
    {"info", command_info, "backends, devices, free memory, what is recommended"},
    {"select", command_select, "the device on which some bytes fit, and why not the others"},
    {"fit", command_fit, "does a model fit, where do its layers go, what would help"},
    {"load", command_load, "put a model's tensors into a device's memory, and verify them"},
    {"replay", command_replay, "replay a recorded run of allocations"},
    {"advise", command_advise, "what to set for a program, from its recorded run"},
    {"bench", command_bench, "measure gm beside other allocators"},
    {"top", command_later, "(a later version) live view of processes"},
    {"report", command_later, "(a later version) report of a trace or a snapshot"},
};

enum { GMEM_COMMANDS = sizeof gmem_commands / sizeof *gmem_commands };

typedef struct gmem_arguments {
  const gmem_command *command;
  int at; /* of the command in argv */
} gmem_arguments;

static const gmem_command *gmem_find(const char *name) {
  for (size_t i = 0; i < GMEM_COMMANDS; i++) {
    if (strcmp(gmem_commands[i].name, name) == 0) return &gmem_commands[i];
  }
  return NULL;
}

static error_t gmem_parse(int key, char *text, struct argp_state *state) {
  gmem_arguments *arguments = state->input;
  if (key == ARGP_KEY_NO_ARGS) args_error(state, "a command is missing");
  if (key != ARGP_KEY_ARG) return ARGP_ERR_UNKNOWN;
  arguments->command = gmem_find(text);
  if (!arguments->command) args_error(state, "\"%s\" is no command", text);
  arguments->at = state->next - 1;
  state->next = state->argc; /* the rest is the command's */
  return 0;
}

/* The list of commands below the options; argp frees it. */
static char *gmem_help(int key, const char *text, void *input) {
  (void)input;
  if (key != ARGP_KEY_HELP_POST_DOC) return (char *)(uintptr_t)text; /* as argp asks: the text itself is left alone */
  char *list = NULL;
  size_t bytes = 0;
  FILE *file = open_memstream(&list, &bytes);
  if (!file) return NULL;
  fprintf(file, "Commands:\n");
  for (size_t i = 0; i < GMEM_COMMANDS; i++) fprintf(file, "  %-8s %s\n", gmem_commands[i].name, gmem_commands[i].does);
  fprintf(file,
          "\n\"gmem COMMAND --help\" says more. Sizes are bytes, or end in K, M, G or T (binary).\n"
          "Exit codes: 0 done, 1 could not, 2 bad usage.");
  fclose(file);
  return list;
}

static void gmem_version(FILE *file, struct argp_state *state) {
  (void)state;
  fprintf(file, "gmem %s\n", gm_version_string());
}

int main(int argc, char **argv) {
  static const struct argp argp = {.parser = gmem_parse,
                                   .args_doc = "COMMAND [OPTION...]",
                                   .doc = "GPU memory: what is there, what fits, loading and replaying.\v ",
                                   .help_filter = gmem_help};
  gmem_arguments arguments = {NULL, 0};
  char name[32];
  argp_err_exit_status = GMEM_USAGE;
  argp_program_version_hook = gmem_version;
  args_parse(&argp, ARGP_IN_ORDER, argc, argv, &arguments);
  snprintf(name, sizeof name, "gmem %s", arguments.command->name);
  argv += arguments.at;
  argv[0] = name;
  return arguments.command->run(argc - arguments.at, argv);
}
