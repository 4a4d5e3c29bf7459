#include "gm/pool.h"

const char *gm_acquire_name(gm_acquire acquire) {
  switch (acquire) {
#define X(name, value) \
  case name: return #name;
    GM_ACQUIRE_MAP(X)
#undef X
  }
  return "GM_ACQUIRE_?";
}

bool gm_acquired(gm_acquire acquire) {
  switch (acquire) {
    case GM_ACQUIRE_OK:
    case GM_ACQUIRE_FRESH:
    case GM_ACQUIRE_NEEDS_WAIT:
    case GM_ACQUIRE_NEEDS_BARRIER: return true;
    case GM_ACQUIRE_EXHAUSTED:
    case GM_ACQUIRE_OVER_LIMIT:
    case GM_ACQUIRE_INVALID:
    case GM_ACQUIRE_FAILED: break;
  }
  return false;
}
