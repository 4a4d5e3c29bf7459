/* The output of `gmem info --json`, from what discovery found. */
#ifndef GM_TOOLS_GMEM_INFO_INFO_JSON_H
#define GM_TOOLS_GMEM_INFO_INFO_JSON_H

#include "gm/device.h"
#include "tools/gmem/output/json.h"

typedef struct info_view {
  gm_backend_info *backends;
  size_t backend_count;
  gm_device_entry *devices; /* none when they were not asked for */
  size_t device_count;
  gm_host_info host;
  gm_selection best;
  bool has_best;
} info_view;

/* The fields of CLI.md, into the object that is open. */
void info_json(json_writer *out, const info_view *view);

#endif
