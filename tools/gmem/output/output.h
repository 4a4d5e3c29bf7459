/* Where a command's result goes: standard output, as text or as one JSON object. */
#ifndef GM_TOOLS_GMEM_OUTPUT_OUTPUT_H
#define GM_TOOLS_GMEM_OUTPUT_OUTPUT_H

#include "gm/status.h"
#include "tools/gmem/output/json.h"

typedef struct output {
  const char *command; /* "gmem load" */
  FILE *file;
  bool json;
  json_writer writer; /* onto `file` */
} output;

/* From here on standard output is `out->file` alone: what drivers print goes to standard error. */
void output_begin(output *out, const char *command, bool as_json);

/* Tells on standard error why the command could not do it. With JSON the field "error" says it, too: of the open
 * object, or of one of its own. Returns the exit code for that. */
int output_fail(output *out, const gm_error *err);
int output_fail_text(output *out, const char *format, ...) GM_PRINTF(2, 3);

/* Like output_fail, for a command whose context was there: an invalid argument is then one that was typed. */
int output_fail_typed(output *out, const gm_error *err);

/* `code`, or failure when not everything could be written. */
int output_end(output *out, int code);

#endif
