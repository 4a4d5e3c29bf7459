/* gm_malloc with alignment, tag and wishes. */
#include "gm/pool.h"

void *gm_malloc_request(gm_pool *pool, const gm_request *request) {
  gm_block block;
  if (!request) return NULL;
  gm_request asked = *request;
  asked.flags = (asked.flags | GM_INSERT_WAIT) & ~(uint32_t)GM_ALLOW_SPANS; /* such a block has no address */
  return gm_acquired(gm_alloc(pool, &asked, &block)) ? (void *)(uintptr_t)block.address : NULL;
}
