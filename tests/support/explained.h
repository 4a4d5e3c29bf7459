/* gm_alloc with gm_explain before and after: what gm_explain says is always true. Needs cmocka.h included before. For
 * pools that no other thread uses meanwhile. */
#ifndef GM_TESTS_SUPPORT_EXPLAINED_H
#define GM_TESTS_SUPPORT_EXPLAINED_H

#include <string.h>

#include "gm/pool.h"

static inline gm_explanation explained(gm_pool *pool, const gm_request *request) {
  gm_explanation why = {.struct_size = sizeof why};
  gm_stats stats = {.struct_size = sizeof stats};
  assert_int_equal(gm_explain(pool, request, &why, NULL), GM_OK);
  assert_int_equal(gm_pool_stats(pool, &stats), GM_OK);
  assert_true(why.in_use_bytes == stats.in_use_bytes && why.pooled_bytes == stats.pooled_bytes);
  assert_true(why.asked_bytes == request->bytes);
  assert_null(strstr(why.text, "would"));
  if (why.status) {
    assert_true(why.status == GM_ERR_INVALID_ARGUMENT || why.status == GM_ERR_NOT_SUPPORTED);
    assert_ptr_equal(strstr(why.text, "gm_alloc: "), why.text);
  } else {
    assert_true(why.rounded_bytes >= why.asked_bytes);
    assert_non_null(strstr(why.text, why.last_failure.status ? why.last_failure.message : "has refused nothing."));
  }
  return why;
}

/* The refusal of a valid request is told as it was. */
static inline void explained_refusal(const gm_explanation *why, const gm_request *request, gm_acquire answer) {
  const bool of_limit = why->last_failure.status == GM_ERR_OVER_LIMIT && !(request->flags & GM_POOLED_ONLY);
  if (why->last_failure.status == GM_OK || of_limit != (answer == GM_ACQUIRE_OVER_LIMIT)) {
    fail_msg("answer %d: %s", (int)answer, why->text);
  }
  assert_true(why->last_failure_bytes == request->bytes);
  assert_true(why->last_failure.op[0] && why->last_failure.message[0]);
}

/* gm_explain refuses what gm_alloc refuses as INVALID, and nothing else. It tells a refusal. A request that is served
 * or INVALID changes nothing about the last one. */
static inline gm_acquire explained_alloc(gm_pool *pool, const gm_request *request, gm_block *out) {
  const gm_explanation before = explained(pool, request);
  const gm_acquire answer = gm_alloc(pool, request, out);
  const gm_explanation after = explained(pool, request);
  if ((answer == GM_ACQUIRE_INVALID) != (before.status != GM_OK)) fail_msg("%d: %s", (int)answer, before.text);
  assert_int_equal(after.status, before.status);
  if (!gm_acquired(answer) && answer != GM_ACQUIRE_INVALID) {
    explained_refusal(&after, request, answer);
    return answer;
  }
  assert_true(after.last_failure_bytes == before.last_failure_bytes);
  assert_int_equal(after.last_failure.status, before.last_failure.status);
  assert_string_equal(after.last_failure.op, before.last_failure.op);
  assert_string_equal(after.last_failure.message, before.last_failure.message);
  return answer;
}

#endif
