/* Each tensor's last reader is known as the list grows; which operand a result takes the place of only at its end. */
#include "core/fit/op_list.h"

#include "core/base/alloc.h"
#include "core/base/error.h"

enum { LIST_ROOM = 256 };

void gm__op_list_begin(gm__op_list *list, const gm_services *services) {
  *list = (gm__op_list){.services = services ? *services : *gm__default_services()};
}

void gm__op_list_end(gm__op_list *list) {
  gm__release(&list->services, list->tensors, list->room * sizeof *list->tensors);
  gm__release(&list->services, list->operands, list->room * sizeof *list->operands);
  *list = (gm__op_list){.count = 0};
}

static bool list_make_room(gm__op_list *list) {
  if (list->count < list->room) return true;
  uint64_t room = list->room ? 2 * list->room : LIST_ROOM;
  gm_plan_tensor *tensors = gm__alloc_array(&list->services, room, sizeof *tensors);
  gm__op_operands *operands = gm__alloc_array(&list->services, room, sizeof *operands);
  if (!tensors || !operands) {
    gm__release(&list->services, tensors, room * sizeof *tensors);
    gm__release(&list->services, operands, room * sizeof *operands);
    return false;
  }
  for (uint64_t i = 0; i < list->count; i++) {
    tensors[i] = list->tensors[i];
    operands[i] = list->operands[i];
  }
  gm__release(&list->services, list->tensors, list->room * sizeof *tensors);
  gm__release(&list->services, list->operands, list->room * sizeof *operands);
  list->tensors = tensors;
  list->operands = operands;
  list->room = room;
  return true;
}

static void list_read(gm__op_list *list, gm__op_tensor tensor) {
  if (tensor) list->tensors[tensor - 1].last_op = list->ops;
}

gm__op_tensor gm__op_add(gm__op_list *list, uint64_t bytes, gm__op_operands operands) {
  if (list->status != GM_OK) return 0;
  if (!list_make_room(list)) {
    list->status = GM_ERR_OUT_OF_HOST_MEMORY;
    return 0;
  }
  for (int i = 0; i < 2; i++) list_read(list, operands.over[i]);
  for (int i = 0; i < GM__OP_READS; i++) list_read(list, operands.reads[i]);
  uint64_t op = list->ops++;
  if (bytes == 0) return 0;
  /* A tensor that nobody reads stays to the end. */
  list->tensors[list->count] = (gm_plan_tensor){.bytes = bytes, .first_op = op, .last_op = UINT64_MAX};
  list->operands[list->count] = operands;
  return (gm__op_tensor)++list->count;
}

static bool list_can_take(const gm__op_list *list, uint64_t taker, gm__op_tensor place) {
  if (!place) return false;
  const gm_plan_tensor *tensor = &list->tensors[place - 1];
  return tensor->last_op == list->tensors[taker].first_op && tensor->bytes == list->tensors[taker].bytes;
}

gm_status gm__op_list_plan(gm__op_list *list, uint64_t alignment, uint64_t *out, gm_error *err) {
  uint64_t *offsets = NULL;
  if (list->status == GM_OK) offsets = gm__alloc_array(&list->services, list->count, sizeof *offsets);
  if (!offsets) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_estimate_memory", "no host memory for %llu operations",
                    (unsigned long long)list->count);
  }
  for (uint64_t i = 0; i < list->count; i++) {
    gm_plan_tensor *tensor = &list->tensors[i];
    tensor->align = alignment;
    for (int k = 1; k >= 0; k--) {
      if (list_can_take(list, i, list->operands[i].over[k])) tensor->take_over = list->operands[i].over[k];
    }
  }
  gm_status status = gm_plan_make(&list->services, GM_PLAN_ENGINE, list->tensors, list->count, offsets, out, err);
  gm__release(&list->services, offsets, list->count * sizeof *offsets);
  return status;
}
