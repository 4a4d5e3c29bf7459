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
