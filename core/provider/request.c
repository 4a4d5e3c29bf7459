#include "core/provider/request.h"

#include "core/provider/provider.h"

static uint32_t request_memory_flags(const gm__provider *provider, const gm__allocation *allocation) {
  return allocation->memory.type < provider->device->type_count ? provider->device->types[allocation->memory.type].flags
                                                                : 0;
}

bool gm__want_fits(const gm__provider *provider, const gm__want *want, const gm__allocation *allocation) {
  if (allocation->bytes < want->exact || allocation->must_be > want->must_be || want->usage & ~allocation->usage)
    return false;
  if (!gm__type_wish_is_same(&want->wish, &allocation->wish) || gm__want_is_dedicated(want) != allocation->exact)
    return false;
  if (allocation->exact && allocation->bytes != want->exact) return false;
  if (want->flags & GM_COMMIT && !allocation->committed) return false;
  if (want->beside_device && request_memory_flags(provider, allocation) & GM_MEMORY_DEVICE_LOCAL) return false;
  uint32_t visible = request_memory_flags(provider, allocation) & (GM_MEMORY_HOST_VISIBLE | GM_MEMORY_HOST_POINTER);
  if (want->flags & GM_HOST_VISIBLE && !visible) return false;
  return allocation->align >= want->align ||
         (allocation->memory.address && allocation->memory.address % want->align == 0);
}

bool gm__want_order(gm__provider *provider, const gm__want *want, gm__order *order, gm__last_use *use, int slot,
                    gm__order_verdict verdict, gm_acquire *answer) {
  gm_status status = GM_OK;
  if (want->insert && gm__stream_captured(want->stream)) {
    return false; /* a wait that gm submits now would not be in the recording */
  }
  if (want->insert) {
    status = gm__order_insert(order, use, slot, NULL);
  } else if (verdict == GM__ORDER_BARRIER) {
    *answer = GM_ACQUIRE_NEEDS_BARRIER;
  } else {
    *answer = GM_ACQUIRE_NEEDS_WAIT;
    status = gm__order_attach_point(order, use, slot, NULL);
  }
  if (!status) gm__stats_count(&provider->stats.waits, 1);
  return status == GM_OK;
}
