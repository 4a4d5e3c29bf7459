/* Commands of the contract that this version does not have: they say so, in text and in JSON. */
#include <string.h>

#include "tools/gmem/args.h"
#include "tools/gmem/command.h"
#include "tools/gmem/output.h"

static error_t later_parse(int key, char *text, struct argp_state *state) {
  (void)text;
  if (key == 'j') *(bool *)state->input = true;
  return 0; /* its options and arguments are not known yet */
}

/* Only --help and --json are understood; the rest of the line is for the version that has the command. */
static bool later_is_known(const char *text) {
  static const char *const known[] = {"--json", "-j", "--help", "-?", "--usage"};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (strcmp(text, known[i]) == 0) return true;
  }
  return false;
}

int command_later(int argc, char **argv) {
  static const struct argp_option options[] = {ARGS_JSON_OPTION, {0}};
  static const struct argp argp = {
      .options = options, .parser = later_parse, .doc = "This command comes with a later version of gm."};
  bool as_json = false;
  int kept = 1;
  for (int i = 1; i < argc; i++) {
    if (later_is_known(argv[i])) argv[kept++] = argv[i];
  }
  args_parse(&argp, 0, kept, argv, &as_json);
  output out;
  output_begin(&out, argv[0], as_json);
  int code = output_fail_text(&out, "this command comes with a later version of gm");
  return output_end(&out, code);
}
