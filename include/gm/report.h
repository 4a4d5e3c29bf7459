/* Reports: what gm finds on this machine, and the statistics of a context, as text. Every call is thread-safe. */
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

/* Writes the statistics of all pools of a context as OpenMetrics text 1.0, which Prometheus reads (docs/statistics.md).
 * Its content type is "application/openmetrics-text; version=1.0.0; charset=utf-8". Each figure is that of
 * gm_pool_stats; pools that track have the bytes of each tag, too. Bytes are bytes, and times are seconds.
 *
 * The call reaches no driver and waits for no work. It looks at each pool, 256 of them inside the context's lock. It
 * calls `write_text` in the calling thread for each line, outside of gm's locks; that must not throw. Beside other
 * threads the figures are of several moments. After a failure nothing was written. Errors: INVALID_ARGUMENT, FORKED,
 * OUT_OF_HOST_MEMORY. */
GM_API gm_status gm_report_open_metrics(gm_context *ctx, void (*write_text)(void *user, const char *text, size_t bytes),
                                        void *user, gm_error *err);

GM_END_DECLS

#endif
