/* Inside of a buffer: where it was wanted and where it is. */
#ifndef GM_CORE_BUFFER_BUFFER_H
#define GM_CORE_BUFFER_BUFFER_H

#include <stdatomic.h>

#include "core/pool/pool.h"
#include "gm/buffer.h"

struct gm_buffer {
  gm__object head;
  gm_pool *pool;
  _Atomic uint32_t references;
  uint64_t id, bytes, elements;
  gm_request wanted;    /* its stream is good only during the call that brings it */
  gm_location location; /* changes only in gm_buffer_promote */
  bool fell_back;       /* it is not where it was wanted */
  gm_block block;       /* on the device or in pinned memory */
  void *host;           /* plain host memory */
  uint64_t track_id;    /* of plain host memory, in the pool's tracker; 0: none */
};

#endif
