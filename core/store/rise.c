#include "core/store/rise.h"

#include "core/buffer/promote.h"

/* Invariant: a block that somebody may know stays where it is. The holders of a value may know its blocks, and so may
 * the holders of a part of it, or of a buffer. */

/* True: all of the value is on the device. */
static bool rise_value(gm_value *value, bool alone) {
  bool up = true;
  if (!atomic_load(&value->fell)) return true;
  if (value->buffer) up = gm__promote_one(value->buffer, alone && atomic_load(&value->buffer->references) == 1);
  for (size_t i = 0; i < value->count; i++) {
    gm_value *item = value->items[i];
    up = rise_value(item, alone && gm__value_references(item) == 1) && up;
  }
  if (up) atomic_store(&value->fell, false);
  return up;
}

void gm__rise(gm_value *value, bool alone) { (void)rise_value(value, alone); }
