/* A provider's life. */
#include <stdio.h>

#include "core/device/import.h"
#include "core/provider/native_objects.h"
#include "core/provider/provider.h"
#include "core/provider/upstream.h"

void gm__provider_init(gm__provider *provider, gm_device *device, const gm_pool_params *params, uint64_t pool_id) {
  const gm_services *services = gm__context_services(device->ctx);
  provider->device = device;
  snprintf(provider->name, sizeof provider->name, "%s", params->name ? params->name : "pool");
  provider->claim.room = &device->room;
  provider->claim.name = provider->name;
  provider->has_upstream = params->upstream != NULL;
  provider->captures = (params->flags & GM_POOL_CAPTURES) != 0;
  provider->no_trim = provider->captures || params->flags & GM_POOL_NO_TRIM;
  provider->share = params->share;
  provider->priority = params->priority;
  provider->claim.apart = provider->has_upstream;
  provider->claim.memory_fraction = params->memory_fraction;
  provider->claim.min_free_bytes = params->min_free_bytes;
  if (params->upstream) provider->upstream = *params->upstream;
  provider->profiler = gm__profiler_of(device->ctx);
  gm__mutex_init(&provider->lock, GM__RANK_PROVIDER);
  gm__allocation_table_init(&provider->allocations, services, pool_id);
  gm__address_map_init(&provider->addresses, services);
}

void gm__provider_clear(gm__provider *provider, bool forked) {
  gm__address_map_clear(&provider->addresses);
  gm__allocation_table_clear(&provider->allocations);
  if (!forked) gm__mutex_destroy(&provider->lock);
}

void gm__provider_end(gm__provider *provider) {
  const bool forked = gm__provider_forked(provider);
  uint32_t cursor = 0;
  for (gm__allocation *allocation; (allocation = gm__allocation_next(&provider->allocations, &cursor));) {
    if (allocation->state == GM__ALLOCATION_UNUSED || !allocation->memory.handle) continue;
    if (allocation->is_range) { /* the arena closes it */
      if (!forked && allocation->heap) gm__profiler_heap_end(provider->profiler, allocation->heap);
      continue;
    }
    if (forked && allocation->state == GM__ALLOCATION_AWAY)
      continue; /* a thread of the parent may be half through with it */
    gm__native_objects_end(provider, allocation);
    if (!forked) gm__provider_let_go(provider, &allocation->memory, allocation);
    if (provider->has_upstream && !allocation->foreign) {
      gm__upstream_free(provider, &allocation->memory, allocation->token);
      continue;
    }
    if (allocation->import) {
      gm__import_close(provider->device, allocation->import);
      continue;
    }
    bool noted = allocation->state == GM__ALLOCATION_POOLED && gm__provider_lends(provider) &&
                 gm__device_is_charged(provider->device, &allocation->memory);
    if (noted && !forked) gm__device_note_pooled(provider->device, -(int64_t)allocation->bytes);
    gm__device_free(provider->device, &allocation->memory, NULL);
  }
}
