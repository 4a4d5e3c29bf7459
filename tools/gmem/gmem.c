/* gmem: what memory is there, which device to take, load a model, replay a recorded run. docs/gmem.md says what each
 * command prints. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "gm/version.h"
#include "tools/gmem/command.h"
#include "tools/gmem/options/args.h"
#include "tools/gmem/options/guess.h"

typedef struct gmem_command {
  const char *name;
  command_run run;
  const char *does; /* NULL: not in this version, and not listed */
} gmem_command;

static int gmem_help(int argc, char **argv);

static const gmem_command gmem_commands[] = {
    {"info", command_info, "backends, devices, free memory, what is recommended"},
    {"select", command_select, "the device on which some bytes fit, and why not the others"},
    {"fit", command_fit, "does a model fit, where do its layers go, what would help"},
    {"load", command_load, "put a model's tensors into a device's memory, and verify them"},
    {"save", command_save, "put a model into one new file, also of another format"},
    {"replay", command_replay, "replay a recorded run of allocations"},
    {"advise", command_advise, "what to set for a program, from its recorded run"},
    {"report", command_report, "where the memory went in a recorded run, as one page for a browser"},
    {"bench", command_bench, "measure gm beside other allocators"},
    {"store", command_store, "what the file of a disk tier holds, and whether it is whole"},
    {"help", gmem_help, "this list, or all about one command"},
    {"top", command_later, NULL},
};

enum { GMEM_COMMANDS = sizeof gmem_commands / sizeof *gmem_commands };

typedef struct gmem_arguments {
  const gmem_command *command;
  int at; /* of the command in argv */
} gmem_arguments;

/* ---- commands ---- */

static const gmem_command *gmem_find(const char *name) {
  for (size_t i = 0; i < GMEM_COMMANDS; i++) {
    if (strcmp(gmem_commands[i].name, name) == 0) return &gmem_commands[i];
  }
  return NULL;
}

/* The listed command that is spelt most like it; NULL: none is near. */
static const char *gmem_guess(const char *typed) {
  const char *names[GMEM_COMMANDS + 1] = {NULL};
  for (size_t i = 0, count = 0; i < GMEM_COMMANDS; i++) {
    if (gmem_commands[i].does) names[count++] = gmem_commands[i].name;
  }
  return guess_word(typed, names);
}

/* Does not return when there is none of that name. */
static const gmem_command *gmem_need(const struct argp_state *state, const char *name) {
  const gmem_command *command = gmem_find(name);
  const char *guess = command ? NULL : gmem_guess(name);
  if (guess) args_error(state, "\"%s\" is no command; did you mean \"%s\"?", name, guess);
  if (!command) args_error(state, "\"%s\" is no command", name);
  return command;
}

static void gmem_list(FILE *file) {
  fprintf(file, "Commands:\n");
  for (size_t i = 0; i < GMEM_COMMANDS; i++) {
    if (gmem_commands[i].does) fprintf(file, "  %-8s %s\n", gmem_commands[i].name, gmem_commands[i].does);
  }
}

/* ---- the command line ---- */

static error_t gmem_parse(int key, char *text, struct argp_state *state) {
  gmem_arguments *arguments = state->input;
  if (key == ARGP_KEY_NO_ARGS) {
    gmem_list(state->err_stream);
    args_error(state, "a command is missing");
  }
  if (key != ARGP_KEY_ARG) return ARGP_ERR_UNKNOWN;
  arguments->command = gmem_need(state, text);
  arguments->at = state->next - 1;
  state->next = state->argc; /* the rest is the command's */
  return 0;
}

/* The list of commands below the options; argp frees it. */
static char *gmem_below(int key, const char *text, void *input) {
  (void)input;
  if (key != ARGP_KEY_HELP_POST_DOC) return (char *)(uintptr_t)text; /* as argp asks: the text itself is left alone */
  char *list = NULL;
  size_t bytes = 0;
  FILE *file = open_memstream(&list, &bytes);
  if (!file) return NULL;
  gmem_list(file);
  fprintf(file,
          "\n\"gmem help COMMAND\" says more, with an example. Sizes: 24G, 24GB, 24GiB (all binary), 2.5G, or bytes.\n"
          "Exit codes: 0 done, 1 could not, 2 bad usage.");
  fclose(file);
  return list;
}

static int gmem_run(int argc, char **argv) {
  static const struct argp argp = {.parser = gmem_parse,
                                   .args_doc = "COMMAND [OPTION...]",
                                   .doc = "GPU memory: what is there, what fits, loading and replaying.\v ",
                                   .help_filter = gmem_below};
  gmem_arguments arguments = {NULL, 0};
  char name[32];
  args_parse(&argp, ARGP_IN_ORDER, argc, argv, &arguments);
  snprintf(name, sizeof name, "gmem %s", arguments.command->name);
  argv += arguments.at;
  argv[0] = name;
  return arguments.command->run(argc - arguments.at, argv);
}

/* ---- help ---- */

static error_t gmem_help_parse(int key, char *text, struct argp_state *state) {
  const gmem_command **command = state->input;
  if (key != ARGP_KEY_ARG) return ARGP_ERR_UNKNOWN;
  if (*command) args_error(state, "one command at a time, \"%s\" is another", text);
  *command = gmem_need(state, text);
  return 0;
}

/* The text of --help, which ends the program. */
static int gmem_help(int argc, char **argv) {
  static const struct argp argp = {.parser = gmem_help_parse,
                                   .args_doc = "[COMMAND]",
                                   .doc = "The list of commands, or all about one of them.\vExample:\n  gmem help fit"};
  const gmem_command *command = NULL;
  char tool[] = "gmem", option[] = "--help", name[16];
  args_parse(&argp, 0, argc, argv, &command);
  if (!command) return gmem_run(2, (char *[]){tool, option, NULL});
  snprintf(name, sizeof name, "%s", command->name);
  return gmem_run(3, (char *[]){tool, name, option, NULL});
}

static void gmem_version(FILE *file, struct argp_state *state) {
  (void)state;
  fprintf(file, "gmem %s\n", gm_version_string());
}

int main(int argc, char **argv) {
  argp_err_exit_status = GMEM_USAGE;
  argp_program_version_hook = gmem_version;
  return gmem_run(argc, argv);
}
