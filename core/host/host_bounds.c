#include "core/host/host_readers.h"

#include <stdio.h>
#include <string.h>

static void host_bound_init(gm__host_bound *bound) {
  bound->bytes = GM_UNKNOWN_BYTES;
  bound->by_group = false;
  snprintf(bound->source, sizeof bound->source, "none");
}

void gm__host_bounds_init(gm__host_bounds *out) {
  host_bound_init(&out->total);
  host_bound_init(&out->room);
  out->estimated = false;
}

void gm__host_bound_by(gm__host_bound *bound, uint64_t bytes, const char *kind, const char *directory) {
  if (bytes >= bound->bytes) return;
  bound->bytes = bytes;
  bound->by_group = strncmp(kind, "cgroup", 6) == 0;
  snprintf(bound->source, sizeof bound->source, "%s%s%s", kind, directory ? ":" : "", directory ? directory : "");
}
