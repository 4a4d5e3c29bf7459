/* Reports: what gm finds on this machine, as text. Every call is thread-safe. */
#ifndef GM_REPORT_H
#define GM_REPORT_H

#include <stdio.h>

#include "gm/device.h"

GM_BEGIN_DECLS

/* Writes a summary through `write_text`: backends, devices, free memory and the recommended device. It first discovers
 * at `level`. `write_text` must not throw. After a failure gm writes nothing more. Errors: INVALID_ARGUMENT,
 * OUT_OF_HOST_MEMORY, FORKED. */
GM_API gm_status gm_summary(gm_context *ctx, gm_probe_level level,
                            void (*write_text)(void *user, const char *text, size_t bytes), void *user, gm_error *err);

/* Writes the short summary. It leaves out backends that were switched off, and those that this build never has. It
 * leaves out the null backend, unless it was chosen by name. One line names all backends whose driver is not installed,
 * unless they were chosen. A driver that is installed and fails keeps its line. Parameters and errors are those of
 * gm_summary. */
GM_API gm_status gm_summary_brief(gm_context *ctx, gm_probe_level level,
                                  void (*write_text)(void *user, const char *text, size_t bytes), void *user,
                                  gm_error *err);

/* Prints the text of gm_summary to `file`. Errors: IO, and those of gm_summary. */
GM_API gm_status gm_print_summary(gm_context *ctx, gm_probe_level level, FILE *file, gm_error *err);

GM_END_DECLS

#endif
