/* A small graph planned: two layers of an MLP, h = gelu(x * a) * b + x. The results of every operation lie in one
 * buffer, whose size is known before anything is allocated. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "gm/plan.h"

enum { TENSORS = 9 };

/* Operation 0 brings the input; each later one writes one tensor. Adding and gelu may write in an operand's place. */
static const gm_plan_tensor tensors[TENSORS] = {
    {.bytes = 4 << 20, .align = 256, .first_op = 0, .last_op = 4},                  /* x */
    {.bytes = 16 << 20, .align = 256, .first_op = 1, .last_op = 2},                 /* x * a */
    {.bytes = 16 << 20, .align = 256, .first_op = 2, .last_op = 3, .take_over = 2}, /* gelu */
    {.bytes = 4 << 20, .align = 256, .first_op = 3, .last_op = 4},                  /* * b */
    {.bytes = 4 << 20, .align = 256, .first_op = 4, .last_op = 8, .take_over = 4},  /* + x: the second layer's input */
    {.bytes = 16 << 20, .align = 256, .first_op = 5, .last_op = 6},
    {.bytes = 16 << 20, .align = 256, .first_op = 6, .last_op = 7, .take_over = 6},
    {.bytes = 4 << 20, .align = 256, .first_op = 7, .last_op = 8},
    {.bytes = 4 << 20, .align = 256, .first_op = 8, .last_op = 9, .take_over = 8},
};

static uint64_t plan_with(gm_plan_policy policy, uint64_t *offsets) {
  gm_error err;
  uint64_t peak = 0, checked = 0;
  gm_status status = gm_plan_make(NULL, policy, tensors, TENSORS, offsets, &peak, &err);
  if (status == GM_OK) status = gm_plan_check(NULL, tensors, TENSORS, offsets, &checked, &err);
  if (status == GM_OK) return peak;
  fprintf(stderr, "%s: %s\n", err.op, err.message);
  exit(1);
}

int main(void) {
  uint64_t offsets[TENSORS], sum = 0, live = 0;
  uint64_t engine = plan_with(GM_PLAN_ENGINE, offsets), best = plan_with(GM_PLAN_BEST, offsets);
  gm_plan_peak_live(NULL, tensors, TENSORS, &live, NULL);
  for (int i = 0; i < TENSORS; i++) {
    sum += tensors[i].bytes;
    printf("tensor %d: %2" PRIu64 " MiB at %2" PRIu64 " MiB, operations %" PRIu64 " to %" PRIu64 "\n", i,
           tensors[i].bytes >> 20, offsets[i] >> 20, tensors[i].first_op, tensors[i].last_op);
  }
  printf("each by itself %" PRIu64 " MiB, as an engine plans %" PRIu64 " MiB, best %" PRIu64 " MiB, at least %" PRIu64
         " MiB\n",
         sum >> 20, engine >> 20, best >> 20, live >> 20);
  return 0;
}
