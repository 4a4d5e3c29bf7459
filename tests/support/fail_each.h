/* Every request for host memory fails once. Needs cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_FAIL_EACH_H
#define GM_TESTS_SUPPORT_FAIL_EACH_H

#include "support/counted_services.h"

/* Calls `attempt`, which gives back what it took: first its first request for memory fails, then its second, … until
 * none fails. Fails the test when it makes no more than `least` requests, or ends in another error. */
static inline void fail_each_allocation(gm_status (*attempt)(const gm_services *services), size_t least) {
  gm_status status;
  size_t n = 0;
  do {
    counted_services host;
    counted_services_init(&host);
    host.fail_at = ++n;
    host.fail_count = 1;
    status = attempt(&host.services);
    counted_services_check(&host);
  } while (status == GM_ERR_OUT_OF_HOST_MEMORY);
  assert_int_equal(status, GM_OK);
  assert_true(n > least);
}

#endif
