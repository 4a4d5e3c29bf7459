/* A list of operations. Each has the tensor that it makes and those that it reads. The list also has the memory that
 * the engine's planner would give it (rule 5a). One failure is kept, and makes every later call do nothing. */
#ifndef GM_CORE_FIT_OP_LIST_H
#define GM_CORE_FIT_OP_LIST_H

#include "gm/plan.h"

enum { GM__OP_READS = 4 };

/* Number of a tensor, from 1 on; 0 is none. */
typedef uint32_t gm__op_tensor;

typedef struct gm__op_operands {
  gm__op_tensor over[2]; /* read, and written over by the result where the planner allows it: the first that may be */
  gm__op_tensor reads[GM__OP_READS];
} gm__op_operands;

typedef struct gm__op_list {
  gm_services services;
  gm_plan_tensor *tensors; /* tensor n is element n - 1 */
  gm__op_operands *operands;
  uint64_t count, room;
  uint64_t ops;
  gm_status status;
} gm__op_list;

void gm__op_list_begin(gm__op_list *list, const gm_services *services);
void gm__op_list_end(gm__op_list *list);

/* An operation whose result takes `bytes`; 0 bytes: it only reads, and 0 is returned. */
gm__op_tensor gm__op_add(gm__op_list *list, uint64_t bytes, gm__op_operands operands);

/* The bytes of a buffer for all of them. Once only. */
gm_status gm__op_list_plan(gm__op_list *list, uint64_t alignment, uint64_t *out, gm_error *err);

#endif
