/* Commands of the contract that this version does not have: they say so, in text and in JSON. Their options are not
 * known yet. */
#include "tools/gmem/command.h"
#include "tools/gmem/options/args.h"
#include "tools/gmem/output/output.h"

int command_later(int argc, char **argv) {
  output out;
  output_begin(&out, argv[0], args_ask_for_json(argc, argv));
  int code = output_fail_text(&out, "not in this version of gm");
  return output_end(&out, code);
}
