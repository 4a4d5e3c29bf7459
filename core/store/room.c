#include "core/store/room.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/store/down.h"
#include "core/tier/tier.h"
#include "gm/size.h"

/* Invariant: a tensor takes the way of the store's fallback only after no value could go down any more. */

static bool room_is_short(gm_status status) {
  return status == GM_ERR_OUT_OF_DEVICE_MEMORY || status == GM_ERR_OVER_LIMIT;
}

enum { ROOM_SIZE_TEXT = 32 };

/* Why no more room could be made. */
typedef enum room_lack { ROOM_NO_LACK, ROOM_TOO_LARGE, ROOM_HELD, ROOM_FULL_BELOW } room_lack;

/* Makes room, unless the pool could not have the bytes even alone. */
static bool room_make_for(gm_store *store, uint64_t bytes, room_lack *lack) {
  bool held = false;
  *lack = ROOM_TOO_LARGE;
  if (bytes > gm__claim_cap(&store->pool->heap.provider.claim)) return false;
  const bool made = gm__down_for(store, bytes, &held);
  *lack = held ? ROOM_HELD : ROOM_FULL_BELOW;
  return made;
}

/* Adds to a text as far as it has room. */
static void room_add(char *text, size_t capacity, const char *format, ...) {
  const size_t used = strlen(text);
  va_list more;
  va_start(more, format);
  (void)vsnprintf(text + used, capacity - used, format, more);
  va_end(more);
}

static void room_add_host(char *text, size_t capacity, uint64_t there, uint64_t bound) {
  char has[ROOM_SIZE_TEXT], most[ROOM_SIZE_TEXT];
  if (!bound) return;
  if (bound == GM_NO_LIMIT) {
    room_add(text, capacity, "; the system has no host memory");
    return;
  }
  gm_format_bytes(there, has, sizeof has);
  gm_format_bytes(bound, most, sizeof most);
  room_add(text, capacity, "; host memory: %s of %s", has, most);
}

/* The places below and why each one takes no more. REQUIRES: store lock. */
static void room_name_places(const gm_store *store, char *text, size_t capacity) {
  room_add_host(text, capacity, store->image_bytes[GM__PLACE_HOST], store->max_host_bytes);
  for (uint32_t i = 0; i < store->tier_count; i++) {
    const char *why = *store->refused[i] ? store->refused[i] : "takes values";
    room_add(text, capacity, "; tier \"%.64s\": %s", gm__tier_where(store->tiers[i]), why);
  }
  if (!store->tier_count) room_add(text, capacity, "; the store has no tier");
}

/* The pool says that its memory is full, which is no news to a store. The news is what keeps values from leaving
 * it. */
static gm_status room_refused(gm_store *store, uint64_t bytes, room_lack lack, gm_status status, gm_error *err) {
  char size[ROOM_SIZE_TEXT], places[sizeof err->message] = "";
  if (!err || lack == ROOM_NO_LACK || lack == ROOM_TOO_LARGE) return status;
  gm_format_bytes(bytes, size, sizeof size);
  if (lack == ROOM_HELD) {
    return gm__fail_native(err, status, err->native_code, "gm_store",
                           "the device has no room for %s, and no value may leave it: all that are there are held",
                           size);
  }
  gm__mutex_lock(&store->watch->lock);
  room_name_places(store, places, sizeof places);
  gm__mutex_unlock(&store->watch->lock);
  return gm__fail_native(err, status, err->native_code, "gm_store",
                         "the device has no room for %s, and nothing below has room%.380s", size, places);
}

gm_status gm__room_tensor(gm_store *store, const gm_tensor_desc *desc, uint64_t bytes, const gm__transfer *from,
                          gm_value **out, gm_error *err) {
  gm_status status;
  room_lack lack = ROOM_NO_LACK;
  do {
    status = gm__value_pool_tensor(store->pool, desc, bytes, from, GM_FALLBACK_REFUSE, NULL, out, err);
  } while (room_is_short(status) && room_make_for(store, bytes, &lack));
  if (!room_is_short(status)) return status;
  if (store->fallback == GM_FALLBACK_REFUSE) return room_refused(store, bytes, lack, status, err);
  return gm__value_pool_tensor(store->pool, desc, bytes, from, store->fallback, NULL, out, err);
}

/* ---- a value with tensors in host memory ---- */

static bool room_has_host(const gm_value *value) {
  if (value->host) return true;
  for (size_t i = 0; i < value->count; i++) {
    if (room_has_host(value->items[i])) return true;
  }
  return false;
}

static gm_status room_tree(gm_store *store, const gm_value *value, gm_value **items, gm_value **out, gm_error *err) {
  gm_status status = GM_OK;
  for (size_t i = 0; i < value->count && !status; i++) {
    status = gm__room_value(store, value->items[i], &items[i], err);
  }
  if (status) return status;
  return value->names ? gm_value_dict(store->ctx, (const char *const *)value->names, items, value->count, out, err)
                      : gm_value_list(store->ctx, items, value->count, out, err);
}

gm_status gm__room_value(gm_store *store, gm_value *value, gm_value **out, gm_error *err) {
  if (!room_has_host(value)) {
    gm_value_retain(value);
    *out = value;
    return GM_OK;
  }
  if (value->form == GM_VALUE_TENSOR) {
    const gm_tensor_desc desc = gm__value_desc(value);
    const gm__transfer from = {.kind = GM__TRANSFER_WRITE, .src = value->host, .pageable = true};
    return gm__room_tensor(store, &desc, value->bytes, &from, out, err);
  }
  const gm_services *services = gm__context_services(store->ctx);
  gm_value **items = gm__alloc_array(services, value->count, sizeof(gm_value *));
  if (!items) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_store_put", "no host memory for a value");
  const gm_status status = room_tree(store, value, items, out, err);
  for (size_t i = 0; i < value->count; i++) gm_value_release(items[i], NULL);
  gm__release(services, items, value->count * sizeof(gm_value *));
  return status;
}

/* ---- a value of an image ---- */

static gm_status room_make(void *user, const gm_tensor_desc *desc, uint64_t bytes, const gm__transfer *from,
                           gm_value **out, gm_error *err) {
  return gm__room_tensor(user, desc, bytes, from, out, err);
}

gm_status gm__room_image(gm_store *store, const gm__image *image, gm_value **out, gm_error *err) {
  const gm__image_maker maker = {room_make, store};
  return gm__image_read(store->ctx, image, &maker, out, err);
}
