/* The tensors of one component, and figures of it. */
#include <stdio.h>
#include <string.h>

#include "core/fit/component_parts.h"

enum { VIEW_TENSOR_NAME = 256 };

static bool view_tensor(const gm__component_view *view, const char *rest, gm_tensor_info *out) {
  char name[VIEW_TENSOR_NAME];
  uint64_t index = 0;
  snprintf(name, sizeof name, "%s%s", view->prefix, rest);
  *out = (gm_tensor_info){.struct_size = sizeof *out};
  return gm_model_find(view->model, name, &index, NULL) == GM_OK &&
         gm_model_tensor(view->model, index, out, NULL) == GM_OK;
}

bool gm__component_has(const gm__component_view *view, const char *rest) {
  gm_tensor_info tensor;
  return view_tensor(view, rest, &tensor);
}

bool gm__component_shape(const gm__component_view *view, const char *rest, uint32_t rank, uint64_t *out) {
  gm_tensor_info tensor;
  if (!view_tensor(view, rest, &tensor) || tensor.rank != rank) return false;
  memcpy(out, tensor.shape, rank * sizeof *out);
  return true;
}

gm_estimate_part gm__component_range(uint64_t low, uint64_t high, const char *why) {
  gm_estimate_part out = {.standing = low == high ? GM_STANDING_EXACT : GM_STANDING_INTERVAL,
                          .range = {low + (high - low) / 2, low, high}};
  if (low != high) snprintf(out.reason, sizeof out.reason, "%s", why);
  return out;
}

gm_estimate_part gm__component_unknown(const char *why) {
  gm_estimate_part out = {.standing = GM_STANDING_UNKNOWN, .range = {0, 0, UINT64_MAX}};
  snprintf(out.reason, sizeof out.reason, "%s", why);
  return out;
}
