#include "core/store/room.h"

#include "core/base/alloc.h"
#include "core/store/down.h"

/* Invariant: a tensor takes the way of the store's fallback only after no value could go down any more. */

static bool room_is_short(gm_status status) {
  return status == GM_ERR_OUT_OF_DEVICE_MEMORY || status == GM_ERR_OVER_LIMIT;
}

/* Makes room, unless the pool could not have the bytes even alone. */
static bool room_make_for(gm_store *store, uint64_t bytes) {
  return bytes <= gm__budget_cap(&store->pool->heap.provider.budget) && gm__down_for(store, bytes);
}

gm_status gm__room_tensor(gm_store *store, const gm_tensor_desc *desc, uint64_t bytes, const void *data, gm_value **out,
                          gm_error *err) {
  gm_status status;
  do {
    status = gm__value_pool_tensor(store->pool, desc, bytes, data, GM_FALLBACK_REFUSE, NULL, out, err);
  } while (room_is_short(status) && room_make_for(store, bytes));
  if (!room_is_short(status) || store->fallback == GM_FALLBACK_REFUSE) return status;
  return gm__value_pool_tensor(store->pool, desc, bytes, data, store->fallback, NULL, out, err);
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
    return gm__room_tensor(store, &value->desc, value->bytes, value->host, out, err);
  }
  const gm_services *services = gm__context_services(store->ctx);
  gm_value **items = gm__alloc_array(services, value->count, sizeof(gm_value *));
  if (!items) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "gm_store_put", "no host memory for a value");
  const gm_status status = room_tree(store, value, items, out, err);
  for (size_t i = 0; i < value->count; i++) gm_value_release(items[i], NULL);
  gm__release(services, items, value->count * sizeof(gm_value *));
  return status;
}

/* ---- a value of an image ---- */

static gm_status room_make(void *user, const gm_tensor_desc *desc, uint64_t bytes, const void *data, gm_value **out,
                           gm_error *err) {
  return gm__room_tensor(user, desc, bytes, data, out, err);
}

gm_status gm__room_image(gm_store *store, const gm__image *image, gm_value **out, gm_error *err) {
  const gm__image_maker maker = {room_make, store};
  return gm__image_read(store->ctx, image, &maker, out, err);
}
