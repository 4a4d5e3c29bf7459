#include "gm/memory_info.h"

const char *gm_figure_state_name(gm_figure_state state) {
  switch (state) {
    case GM_FIGURE_UNKNOWN: return "unknown";
    case GM_FIGURE_ESTIMATED: return "estimated";
    case GM_FIGURE_KNOWN: return "known";
  }
  return "?";
}

const char *gm_figure_source_name(gm_figure_source source) {
  switch (source) {
    case GM_SOURCE_NONE: return "none";
    case GM_SOURCE_DRIVER: return "driver";
    case GM_SOURCE_NVML: return "nvml";
    case GM_SOURCE_SYSFS: return "sysfs";
    case GM_SOURCE_SYSMAN: return "sysman";
    case GM_SOURCE_OS: return "os";
    case GM_SOURCE_OWN_ACCOUNTING: return "own_accounting";
    case GM_SOURCE_PEER_API: return "peer_api";
    case GM_SOURCE_GROUP: return "group";
  }
  return "?";
}
