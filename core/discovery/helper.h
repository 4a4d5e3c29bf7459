/* The helper process (gm-probe, started by exec), in which foreign libraries are tried: one that aborts or hangs there
 * does not harm this process. Its answer is checked like a caller's file. */
#ifndef GM_CORE_DISCOVERY_HELPER_H
#define GM_CORE_DISCOVERY_HELPER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/context/context.h"

enum {
  GM__HELPER_WORDS = 4,    /* arguments: backend, library, options, module */
  GM__HELPER_END_MS = 2000 /* for its end */
};

typedef struct gm__helper {
  pid_t pid;
  int fd; /* its findings */
  uint32_t limit_ms;
  uint64_t deadline;
} gm__helper;

/* Start the helper with up to four words; NULL ends them. It has `limit_ms` for its answer. NOT_FOUND: there is no such
 * program. SYSTEM. */
gm_status gm__helper_start(const gm_context *ctx, const char *const words[GM__HELPER_WORDS], uint32_t limit_ms,
                           gm__helper *out, gm_error *err);

/* From now on it has `limit_ms` for what comes next. */
void gm__helper_limit(gm__helper *helper, uint32_t limit_ms);

/* Read exactly `bytes`. UNAVAILABLE: it ended before; TIMEOUT. */
gm_status gm__helper_read(const gm__helper *helper, void *data, size_t bytes, gm_error *err);

/* Wait for its end, or end it. `status` is what reading answered; the answer is how the helper ended, where that says
 * more: UNAVAILABLE with the signal in native_code. */
gm_status gm__helper_end(gm__helper *helper, gm_status status, gm_error *err);

#endif
