/* Sets of lifetimes for tests of plans. Needs cmocka.h. */
#ifndef GM_TESTS_SUPPORT_PLAN_TENSORS_H
#define GM_TESTS_SUPPORT_PLAN_TENSORS_H

#include <stdbool.h>
#include <stdint.h>

#include "gm/plan.h"
#include "support/random.h"

/* `ops` operations; lives are short or long, sizes of every magnitude, alignments mixed; some want a place. */
static inline void plan_random_tensors(uint64_t *random, gm_plan_tensor *tensors, uint64_t count, uint64_t ops,
                                       uint64_t largest) {
  for (uint64_t i = 0; i < count; i++) {
    uint64_t first = test_random(random) % ops, life = test_random(random) % 8 ? test_random(random) % 4 : ops;
    tensors[i] = (gm_plan_tensor){.bytes = test_log_uniform(random, largest), .first_op = first};
    tensors[i].last_op = first + life < ops ? first + life : ops - 1;
    if (test_random(random) % 16 == 0) tensors[i].bytes = 0;
    if (test_random(random) % 4 == 0) tensors[i].align = UINT64_C(1) << test_random(random) % 6;
    if (i > 0 && test_random(random) % 3 == 0) tensors[i].take_over = 1 + test_random(random) % i;
    if (tensors[i].take_over && test_random(random) % 2) { /* often one that it can have */
      const gm_plan_tensor *other = &tensors[tensors[i].take_over - 1];
      tensors[i].bytes = other->bytes;
      tensors[i].first_op = other->last_op;
      if (tensors[i].last_op < other->last_op) tensors[i].last_op = other->last_op;
    }
  }
}

#endif
