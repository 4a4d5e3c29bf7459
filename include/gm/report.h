/* Reports: what gm sees and what it did, as text (F9). Reads every layer. Thread-safe. */
#ifndef GM_REPORT_H
#define GM_REPORT_H

#include <stdio.h>

#include "gm/device.h"

GM_BEGIN_DECLS

/* The summary of backends, devices, free memory and the recommendation, written through `write_text`; discovers at
 * `level` first. Returns the first failure, after which nothing more is written: INVALID_ARGUMENT,
 * OUT_OF_HOST_MEMORY, FORKED. */
GM_API gm_status gm_summary(gm_context *ctx, gm_probe_level level,
                            void (*write_text)(void *user, const char *text, size_t bytes), void *user, gm_error *err);

/* The short summary. It leaves out the null backend unless it was chosen by name, backends that were switched off, and
 * those that this build never has. One line names all backends whose driver is not installed, unless they were chosen.
 * A driver that is there and fails keeps its line. Parameters and failures as for gm_summary. */
GM_API gm_status gm_summary_brief(gm_context *ctx, gm_probe_level level,
                                  void (*write_text)(void *user, const char *text, size_t bytes), void *user,
                                  gm_error *err);

/* The text of gm_summary onto a stream, since printing is what its caller asks for here. Failures as gm_summary; IO. */
GM_API gm_status gm_print_summary(gm_context *ctx, gm_probe_level level, FILE *file, gm_error *err);

GM_END_DECLS

#endif
