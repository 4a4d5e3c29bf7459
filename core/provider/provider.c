#include "core/provider/provider.h"

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/shadow.h"
#include "core/device/import.h"
#include "core/provider/ask.h"
#include "core/provider/native_objects.h"
#include "core/provider/upstream.h"
#include "core/provider/walk.h"

/* Invariants: bytes are taken from the budget before anybody is asked for them, and they return to it after the memory
 * is back. So the budget never says less than the pool holds. An allocation leaves the address map before its memory
 * goes back, because the backend may hand out the same address at once. */

/* Addresses for devices whose API has none. They are above every address of a 46-bit user space, and no two are the
 * same. */
#define PROVIDER_FIRST_ADDRESS (UINT64_C(1) << 46)

static gm_status provider_address(gm_device *device, uint64_t bytes, uint64_t align, uint64_t *out, gm_error *err) {
  uint64_t used = atomic_load_explicit(&device->synthetic_bytes, memory_order_relaxed), at;
  do {
    uint64_t next = PROVIDER_FIRST_ADDRESS + used;
    uint64_t pad = (align - next % align) % align;
    if (pad > UINT64_MAX - next || bytes > UINT64_MAX - next - pad) {
      return gm__fail(err, GM_ERR_NOT_SUPPORTED, "gm_alloc", "no synthetic addresses are left on this device");
    }
    at = next + pad;
  } while (!atomic_compare_exchange_weak_explicit(&device->synthetic_bytes, &used, at + bytes - PROVIDER_FIRST_ADDRESS,
                                                  memory_order_relaxed, memory_order_relaxed));
  *out = at;
  return GM_OK;
}

void gm__provider_let_go(const gm__provider *provider, const gm_memory *memory, const gm__allocation *allocation) {
  if (memory->host) gm__shadow_open(memory->host, memory->bytes);
  if (allocation->heap) gm__profiler_heap_end(provider->profiler, allocation->heap);
}

/* Gives the memory back. `memory` is passed apart, because an allocation that leaves no longer names it. */
static void provider_free(gm__provider *provider, const gm_memory *memory, const gm__allocation *allocation) {
  uint64_t began = gm__now_ns();
  gm__provider_let_go(provider, memory, allocation);
  gm__profiler_push(provider->profiler, "free at the driver", provider->name, memory->bytes);
  if (provider->has_upstream && !allocation->foreign) {
    gm__upstream_free(provider, memory, allocation->token);
  } else if (allocation->import) {
    gm__import_close(provider->device, allocation->import);
  } else {
    gm__device_free(provider->device, memory, NULL);
  }
  gm__profiler_pop(provider->profiler);
  gm__stats_count(&provider->stats.driver_frees, 1);
  gm__stats_count(&provider->stats.driver_ns, gm__now_ns() - began);
}

/* Fills the record and enters it into the address map. */
static gm_status provider_enter(gm__provider *provider, const gm__want *want, uint64_t bytes,
                                gm__allocation *allocation, gm_error *err) {
  allocation->bytes = bytes;
  allocation->align = want->align;
  allocation->usage = want->usage;
  allocation->must_be = want->must_be;
  allocation->wish = want->wish;
  allocation->exact = gm__want_is_dedicated(want);
  allocation->size_class = want->size_class;
  allocation->committed = (want->flags & GM_COMMIT) != 0;
  allocation->foreign |= want->managed; /* it goes back when it is freed */
  allocation->address = allocation->memory.address ? allocation->memory.address + allocation->offset : 0;
  gm_status status = GM_OK;
  if (!allocation->address) status = provider_address(provider->device, bytes, want->align, &allocation->address, err);
  if (status) return status;
  gm__mutex_lock(&provider->lock);
  status = gm__address_map_insert(&provider->addresses, allocation);
  gm__mutex_unlock(&provider->lock);
  if (status == GM_ERR_DRIVER && allocation->import)
    status = GM_OK; /* the memory is imported twice: look-ups find the first */
  if (!status && provider->profiler && !allocation->foreign) {
    allocation->heap = gm__profiler_heap(provider->profiler, provider->name, allocation->memory.address, bytes);
  }
  if (!status) return GM_OK;
  if (status == GM_ERR_DRIVER && allocation->foreign && !want->managed) {
    return gm__bad_argument(err, "gm_block_wrap", "`native` overlaps memory that pool \"%s\" has", provider->name);
  }
  return gm__fail(err, status, "gm_alloc", "%s",
                  status == GM_ERR_DRIVER ? "the driver gave an address that overlaps memory it gave before"
                                          : "no host memory for the pool's addresses");
}

static gm_status provider_fill(gm__provider *provider, const gm__want *want, uint64_t bytes, gm__allocation *allocation,
                               gm_error *err) {
  gm__growth growth = {.begun = false};
  gm_status status = gm__claim_take(&provider->claim, bytes, "gm_alloc", err);
  if (status) return status;
  status = gm__ask(provider, &growth, want, bytes, &allocation->memory, &allocation->token, err);
  gm__growth_end_turn(&growth);
  if (!status) {
    status = gm__ask_commit(provider, &growth, want, bytes, &allocation->memory, err);
    if (!status) status = gm__growth_touch(provider, &growth, &allocation->memory, 0, bytes, err);
    if (gm__is_shortage(status)) gm__ladder_blame(want->ladder, GM_CAUSE_LAZY_COMMIT);
    if (!status) status = provider_enter(provider, want, bytes, allocation, err);
    if (status) provider_free(provider, &allocation->memory, allocation);
    gm__growth_finish(provider, &growth, status, bytes);
  }
  if (status) {
    gm__claim_return(&provider->claim, bytes);
  } else {
    gm__growth_count(provider, bytes);
  }
  return status;
}

/* A record without memory. OUT_OF_HOST_MEMORY. */
static gm_status provider_new(gm__provider *provider, const char *op, gm__allocation **out, gm_error *err) {
  gm__mutex_lock(&provider->lock);
  *out = gm__allocation_new(&provider->allocations);
  gm__mutex_unlock(&provider->lock);
  return *out ? GM_OK : gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for the pool's table");
}

static void provider_drop(gm__provider *provider, gm__allocation *allocation) {
  gm__mutex_lock(&provider->lock);
  allocation->memory.handle = 0;
  gm__allocation_release(&provider->allocations, allocation);
  gm__mutex_unlock(&provider->lock);
}

gm_status gm__provider_alloc(gm__provider *provider, const gm__want *want, uint64_t bytes, gm__allocation **out,
                             gm_error *err) {
  gm__allocation *allocation;
  gm_status status = provider_new(provider, "gm_alloc", &allocation, err);
  if (status) return status;
  status = provider_fill(provider, want, bytes, allocation, err);
  if (status) {
    provider_drop(provider, allocation);
  } else {
    *out = allocation;
  }
  return status;
}

gm_status gm__provider_adopt(gm__provider *provider, const gm__want *want, const gm_memory *memory, uint64_t offset,
                             gm__import *import, gm__allocation **out, gm_error *err) {
  const char *op = import ? "gm_block_import" : "gm_block_wrap";
  gm__allocation *allocation;
  gm_status status = provider_new(provider, op, &allocation, err);
  if (status) return status;
  status = gm__claim_take(&provider->claim, want->bytes, op, err);
  if (!status) {
    allocation->memory = *memory;
    allocation->offset = offset;
    allocation->import = import;
    allocation->foreign = true;
    status = provider_enter(provider, want, want->bytes, allocation, err);
    if (status) gm__claim_return(&provider->claim, want->bytes);
  }
  if (status) {
    provider_drop(provider, allocation);
    return status;
  }
  gm__stats_grow(&provider->stats.reserved_bytes, &provider->stats.peak_reserved_bytes, want->bytes);
  *out = allocation;
  return GM_OK;
}

gm_status gm__provider_enter_range(gm__provider *provider, const gm_memory *memory, struct gm__segment *segment,
                                   gm__allocation **out, gm_error *err) {
  gm__allocation *allocation;
  gm_status status = provider_new(provider, "gm_alloc", &allocation, err);
  if (status) return status;
  allocation->memory = *memory;
  allocation->address = memory->address;
  allocation->bytes = memory->bytes;
  allocation->segment = segment;
  allocation->is_range = true;
  gm__mutex_lock(&provider->lock);
  status = gm__address_map_insert(&provider->addresses, allocation);
  if (!status) allocation->state = GM__ALLOCATION_SEGMENT;
  gm__mutex_unlock(&provider->lock);
  if (status) {
    provider_drop(provider, allocation);
    return gm__fail(err, status, "gm_alloc", "a range of addresses cannot be entered");
  }
  if (provider->profiler)
    allocation->heap = gm__profiler_heap(provider->profiler, provider->name, memory->address, memory->bytes);
  *out = allocation;
  return GM_OK;
}

void gm__provider_leave_range(gm__provider *provider, gm__allocation *allocation) {
  if (allocation->heap) gm__profiler_heap_end(provider->profiler, allocation->heap);
  gm__mutex_lock(&provider->lock);
  gm__address_map_remove(&provider->addresses, allocation);
  allocation->memory.handle = 0;
  gm__allocation_release(&provider->allocations, allocation);
  gm__mutex_unlock(&provider->lock);
}

void gm__provider_leave(gm__provider *provider, gm__leaving *leaving, gm__allocation *allocation) {
  gm__address_map_remove(&provider->addresses, allocation);
  allocation->links[GM__BY_USE].next = leaving->first;
  leaving->first = allocation;
  leaving->bytes += allocation->bytes;
}

void gm__provider_return(gm__provider *provider, gm__leaving *leaving) {
  if (!leaving->first) return;
  for (gm__allocation *allocation = leaving->first; allocation; allocation = allocation->links[GM__BY_USE].next) {
    gm_memory memory = allocation->memory;
    gm__native_objects_end(provider, allocation);
    allocation->memory.handle = 0; /* a child that is forked now must not find the memory and free it again */
    /* The statistics come first: others can get at once what the driver gets back. */
    gm__stats_uncount(&provider->stats.reserved_bytes, allocation->bytes);
    provider_free(provider, &memory, allocation);
    gm__claim_return(&provider->claim, allocation->bytes);
  }
  gm__mutex_lock(&provider->lock);
  for (uint32_t looks = 0; leaving->first;) {
    gm__allocation *allocation = leaving->first;
    leaving->first = allocation->links[GM__BY_USE].next;
    gm__allocation_release(&provider->allocations, allocation);
    if (++looks % GM__PROVIDER_PIECE == 0) gm__provider_breathe(provider);
  }
  gm__mutex_unlock(&provider->lock);
}

void gm__provider_note_failure(gm__provider *provider, const gm__want *want, const gm_error *failure) {
  if (want->beside_device) return;
  gm__refused refused = {.failure = *failure,
                         .want = *want,
                         .stream = want->stream ? want->stream->id : 0,
                         .ladder = gm__ladder_copy(want->ladder)};
  refused.want.stream = NULL;
  refused.want.ladder = NULL;
  gm__mutex_lock(&provider->lock);
  *(want->flags & GM_POOLED_ONLY ? &provider->probed : &provider->refused) = refused;
  gm__mutex_unlock(&provider->lock);
}
