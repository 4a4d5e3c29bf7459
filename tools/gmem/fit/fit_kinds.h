/* Layers alike, and what they take together: weights, experts, cache. */
#ifndef GM_TOOLS_GMEM_FIT_FIT_KINDS_H
#define GM_TOOLS_GMEM_FIT_FIT_KINDS_H

#include "tools/gmem/fit/fit.h"

enum { FIT_KINDS = 12, FIT_KIND_NAME = 48 };

typedef struct fit_kind {
  char name[FIT_KIND_NAME]; /* "window 1024, experts" */
  uint32_t layers;
  uint64_t weight_bytes, expert_bytes, kv_bytes;
} fit_kind;

/* Writes at most FIT_KINDS kinds in the order of their first layers, and returns their number. The last one takes all
 * that are left. The output layer is a kind. */
uint32_t fit_kinds(const fit_question *self, fit_kind *out);

#endif
