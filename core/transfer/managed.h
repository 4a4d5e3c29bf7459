/* Inside of memory that host and device both use. */
#ifndef GM_CORE_TRANSFER_MANAGED_H
#define GM_CORE_TRANSFER_MANAGED_H

#include <stdatomic.h>

#include "core/base/thread.h"
#include "core/pool/pool.h"
#include "gm/managed.h"

enum { GM__MANAGED_UNIT = 64 << 10 };

struct gm_managed {
  gm__object head;
  gm_pool *pool;
  gm_managed_kind kind;
  gm_block block;
  uint64_t bytes;
  void *host;                     /* COPIED: gm's own */
  gm__mutex lock;                 /* held through a prefetch */
  _Atomic unsigned char *holders; /* COPIED: a gm_managed_place for each unit; changed under the lock */
  uint64_t units;
};

#endif
