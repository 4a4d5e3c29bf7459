#include "tools/gmem/output/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "tools/gmem/command.h"
#include "tools/gmem/output/progress.h"

void output_begin(output *out, const char *command, bool as_json) {
  *out = (output){.command = command, .file = stdout, .json = as_json};
  fflush(stdout);
  int own = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0); /* a helper process has no part in it */
  FILE *file = own >= 0 ? fdopen(own, "w") : NULL;
  if (file) {
    out->file = file;
    dup2(STDERR_FILENO, STDOUT_FILENO);
  } else if (own >= 0) {
    close(own);
  }
  out->writer = (json_writer){.file = out->file};
}

static int output_say(output *out, const char *message) {
  progress_clear();
  fprintf(stderr, "%s: %s\n", out->command, message);
  if (out->json) {
    bool alone = out->writer.depth == 0;
    if (alone) writer_open(&out->writer, NULL, '{');
    writer_text(&out->writer, "error", message);
    if (alone) writer_close(&out->writer);
  }
  return GMEM_FAILED;
}

int output_fail(output *out, const gm_error *err) {
  return output_say(out, err->message[0] ? err->message : gm_status_text(err->status));
}

int output_fail_typed(output *out, const gm_error *err) {
  int code = output_fail(out, err);
  return err->status == GM_ERR_INVALID_ARGUMENT ? GMEM_USAGE : code;
}

int output_fail_text(output *out, const char *format, ...) {
  char message[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  return output_say(out, message);
}

int output_end(output *out, int code) {
  bool failed = fflush(out->file) != 0 || ferror(out->file);
  int reason = errno;
  if (out->file != stdout) failed |= fclose(out->file) != 0;
  if (!failed) return code;
  fprintf(stderr, "%s: standard output could not be written: %s\n", out->command, strerror(reason));
  return GMEM_FAILED;
}
