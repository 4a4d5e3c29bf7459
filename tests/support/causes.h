/* A request that is refused, and what the report says of it. Needs cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_CAUSES_H
#define GM_TESTS_SUPPORT_CAUSES_H

#include "support/explained.h"

#ifndef MIB
#define MIB (UINT64_C(1) << 20)
#endif

static inline gm_explanation refused_as(gm_pool *pool, const gm_request *request, gm_refusal_cause cause,
                                        gm_change change) {
  gm_block block;
  const gm_acquire answer = gm_alloc(pool, request, &block);
  const gm_explanation why = explained(pool, request);
  if (gm_acquired(answer) || why.cause != cause || why.change != change) {
    fail_msg("answer %s, cause %s, change %s: %s", gm_acquire_name(answer), gm_refusal_cause_name(why.cause),
             gm_change_name(why.change), why.text);
  }
  assert_true(why.last_failure_bytes == request->bytes);
  assert_true(why.fragmentation >= 0 && why.fragmentation <= 1);
  return why;
}

static inline gm_block served(gm_pool *pool, const gm_request *request) {
  gm_block block = {0};
  const gm_acquire answer = gm_alloc(pool, request, &block);
  if (!gm_acquired(answer)) fail_msg("%s: %s", gm_acquire_name(answer), explained(pool, request).text);
  return block;
}

#endif
