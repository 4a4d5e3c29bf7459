#include "core/provider/handles.h"

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/discovery/answer.h"
#include "core/provider/ask.h"

/* Invariants. A handle is mapped as a whole at one place, or it is in the cache. Its bytes are taken from the budget
 * and counted as reserved from before it is made until after it is destroyed. The driver may map a handle, and then
 * refuse both to open and to unmap it: such a handle is shut. It stays behind its pages, which count as not mapped,
 * until unmapping succeeds. A handle that is asleep has no memory: it stays behind its pages, which count as not
 * mapped, too. Handles sleep only while the pool does. */

enum {
  HANDLE_ROOM_SHARE = 96, /* of what is free: the largest handle on an empty device */
  HANDLE_HELD_SHARE = 16, /* of what the pool holds: the largest handle */
  HANDLE_MOST = 512       /* handles for one unmapped chunk, however little is free */
};

static const uint64_t handle_least_page_bytes = UINT64_C(2) << 20;
static const uint64_t handle_most_bytes = UINT64_C(24) << 20;   /* of a pool that holds little */
static const uint64_t handle_unknown_total = UINT64_C(1) << 40; /* of a device that does not say how much it has */

/* ---- begin and end ---- */

/* Blocks in pages must be able to do all that other plain blocks of the device can. Where the host sees all memory of
 * the device, each block has a host pointer. */
static bool handle_suits(const gm__provider *provider, uint32_t flags) {
  return !provider->rules.all_visible || flags & GM_MEMORY_HOST_POINTER;
}

/* Finds the memory type that plain requests get first. False: the device cannot map it in pages. */
static bool handle_find_type(gm__pages *pages, const gm_device *device) {
  for (uint32_t i = 0; i < device->type_count; i++) {
    const gm_vmm_props props = {.type = i, .exclusive = true};
    const uint32_t flags = device->types[i].flags;
    uint64_t granule = 0;
    if (!(flags & GM_MEMORY_DEVICE_LOCAL) || flags & GM_MEMORY_MANAGED) continue;
    if (device->ops->vmm_granularity(device->handle, &props, &granule, NULL) != GM_OK) return false;
    if (!gm__answer_is_unit(granule)) return false;
    pages->type = i;
    pages->page_bytes = gm__max(granule, handle_least_page_bytes);
    return true;
  }
  return false;
}

void gm__pages_init(gm__provider *provider, bool wanted) {
  gm__pages *pages = &provider->pages;
  const gm_device *device = provider->device;
  gm__mutex_init(&pages->lock, GM__RANK_PAGES);
  if (!wanted || !(device->info.capabilities & GM_CAP_VMM)) return;
  pages->usable = handle_find_type(pages, device) && pages->page_bytes >= provider->rules.granule &&
                  handle_suits(provider, device->types[pages->type].flags);
}

void gm__pages_clear(gm__provider *provider, gm_close_mode mode) {
  gm__pages *pages = &provider->pages;
  if (mode == GM_CLOSE_NORMAL) gm__device_note_pooled(provider->device, -(int64_t)gm__pages_idle_bytes(provider));
  for (uint32_t i; (i = gm__handle_cache_take(&pages->handle_cache, pages->handles, UINT32_MAX, UINT32_MAX));) {
    gm__device_destroy_physical(provider->device, pages->type, pages->handles[i].native, gm__handle_bytes(pages, i));
  }
  gm__release(gm__provider_services(provider), pages->handles, pages->capacity * sizeof *pages->handles);
  if (mode == GM_CLOSE_NORMAL) gm__mutex_destroy(&pages->lock);
}

/* ---- new handles ---- */

static bool handle_reserve_record(gm__provider *provider) {
  gm__pages *pages = &provider->pages;
  if (pages->unused) return true;
  const gm_services *services = gm__provider_services(provider);
  const uint32_t capacity = pages->capacity ? pages->capacity * 2 : 64;
  const size_t size = sizeof *pages->handles;
  if (!gm__grow(services, &pages->handles, pages->capacity * size, capacity * size)) return false;
  for (uint32_t i = capacity; i-- > (pages->capacity ? pages->capacity : 1);) {
    pages->handles[i].next = pages->unused;
    pages->unused = i;
  }
  pages->capacity = capacity;
  return true;
}

/* The bytes that the pool may still have. Where no limit holds, that is what gm has not taken of the device. */
static uint64_t handle_room(const gm__provider *provider, uint64_t used) {
  gm_device *device = provider->device;
  const uint64_t total = device->info.total_bytes ? device->info.total_bytes : handle_unknown_total;
  const uint64_t left = gm__sub_sat(gm__claim_cap(&provider->claim), used);
  const uint64_t room = gm__room_left(&provider->claim, false);
  const uint64_t unlimited = gm__sub_sat(total, gm__max(used, gm__card_used(device->room.card)));
  return gm__min(left, room == UINT64_MAX ? unlimited : room);
}

/* Chooses how many pages a new handle has, of `most` that are wanted. Large handles cost few calls, but one live block
 * pins all of its handle. So handles are large only in large pools, and while the device is nearly empty. Their size
 * follows the 8th power of the free share of what the pool may have. */
static uint32_t handle_size(gm__provider *provider, uint32_t most) {
  const uint64_t used = gm__claim_used(&provider->claim);
  const double held = (double)used, room = (double)handle_room(provider, used);
  double share = room / (room + held + 1);
  share *= share;
  share *= share;
  share *= share;
  const double bytes = room / HANDLE_ROOM_SHARE * share;
  const double bound =
      held > (double)handle_most_bytes * HANDLE_HELD_SHARE ? held / HANDLE_HELD_SHARE : (double)handle_most_bytes;
  const double pages = (bytes < bound ? bytes : bound) / (double)provider->pages.page_bytes;
  const uint32_t count = pages >= most ? most : (uint32_t)pages;
  return (uint32_t)gm__max(count, most / HANDLE_MOST + 1);
}

/* Takes memory for a handle, and counts it. */
static gm_status handle_take(gm__provider *provider, gm__growth *growth, uint64_t bytes, uint64_t *out_native,
                             gm_error *err) {
  gm_memory physical = {.handle = 0};
  gm_status status = gm__claim_take(&provider->claim, bytes, "gm_alloc", err);
  if (status) return status;
  status = gm__ask(provider, growth, NULL, bytes, &physical, NULL, err);
  if (status) {
    gm__claim_return(&provider->claim, bytes);
    return status;
  }
  gm__growth_count(provider, bytes);
  *out_native = physical.handle;
  return GM_OK;
}

/* Gives the memory of a handle back. */
static void handle_give(gm__provider *provider, uint32_t number) {
  gm__pages *pages = &provider->pages;
  const uint64_t bytes = gm__handle_bytes(pages, number);
  gm__device_destroy_physical(provider->device, pages->type, pages->handles[number].native, bytes);
  gm__stats_count(&provider->stats.driver_frees, 1);
  gm__stats_uncount(&provider->stats.reserved_bytes, bytes);
  gm__claim_return(&provider->claim, bytes);
}

static gm_status handle_create(gm__provider *provider, gm__growth *growth, uint32_t count, uint32_t *out,
                               gm_error *err) {
  gm__pages *pages = &provider->pages;
  uint64_t native;
  if (!handle_reserve_record(provider)) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_alloc", "no host memory for the table of pages");
  }
  const gm_status status = handle_take(provider, growth, count * pages->page_bytes, &native, err);
  if (status) return status;
  *out = pages->unused;
  pages->unused = pages->handles[*out].next;
  pages->handles[*out] = (gm__handle){.native = native, .pages = count, .made = ++pages->made};
  return GM_OK;
}

void gm__handle_destroy(gm__provider *provider, uint32_t number) {
  gm__pages *pages = &provider->pages;
  if (pages->handles[number].asleep) {
    pages->asleep_bytes -= gm__handle_bytes(pages, number);
  } else {
    handle_give(provider, number);
  }
  pages->handles[number] = (gm__handle){.next = pages->unused};
  pages->unused = number;
}

/* ---- sleep ---- */

void gm__handle_sleep(gm__provider *provider, uint32_t number) {
  handle_give(provider, number);
  provider->pages.handles[number].native = 0;
  provider->pages.handles[number].asleep = true;
  provider->pages.asleep_bytes += gm__handle_bytes(&provider->pages, number);
}

gm_status gm__handle_wake(gm__provider *provider, gm__growth *growth, uint32_t number, gm_error *err) {
  gm__handle *handle = &provider->pages.handles[number];
  const uint64_t bytes = gm__handle_bytes(&provider->pages, number);
  const gm_status status = handle_take(provider, growth, bytes, &handle->native, err);
  if (status) return status;
  handle->asleep = false;
  provider->pages.asleep_bytes -= bytes;
  return GM_OK;
}

gm_status gm__pages_say_asleep(const gm__provider *provider, const char *op, gm_error *err) {
  return gm__fail(err, GM_ERR_BUSY, op, "pool \"%s\" sleeps: call gm_pool_wake before", provider->name);
}

gm_status gm__pages_check_awake(const gm__provider *provider, const gm__want *want, gm_error *err) {
  if (!gm__pages_are_asleep(&provider->pages)) return GM_OK;
  gm__ladder_blame(want->ladder, GM_CAUSE_ASLEEP);
  return gm__pages_say_asleep(provider, "gm_alloc", err);
}

/* ---- the handle cache ---- */

uint64_t gm__pages_idle_bytes(const gm__provider *provider) {
  return atomic_load_explicit(&provider->pages.idle_bytes, memory_order_relaxed);
}

static void handle_count_cached(gm__provider *provider, int64_t bytes) {
  const uint64_t was = gm__pages_idle_bytes(provider);
  atomic_store_explicit(&provider->pages.idle_bytes, was + (uint64_t)bytes, memory_order_relaxed);
  gm__device_note_pooled(provider->device, bytes);
}

void gm__handle_keep(gm__provider *provider, uint32_t number) {
  gm__handle_cache_put(&provider->pages.handle_cache, provider->pages.handles, number);
  handle_count_cached(provider, (int64_t)gm__handle_bytes(&provider->pages, number));
}

static uint32_t handle_take_cached(gm__provider *provider, uint32_t most, uint32_t reach) {
  const uint32_t number = gm__handle_cache_take(&provider->pages.handle_cache, provider->pages.handles, most, reach);
  if (number) handle_count_cached(provider, -(int64_t)gm__handle_bytes(&provider->pages, number));
  return number;
}

uint64_t gm__pages_release(gm__provider *provider) {
  const uint64_t bytes = gm__pages_idle_bytes(provider);
  for (uint32_t number; (number = handle_take_cached(provider, UINT32_MAX, UINT32_MAX));) {
    gm__handle_destroy(provider, number);
  }
  return bytes;
}

gm_status gm__handle_obtain(gm__provider *provider, gm__growth *growth, uint32_t most, uint32_t reach, uint32_t *out,
                            gm_error *err) {
  if ((*out = handle_take_cached(provider, most, reach))) return GM_OK;
  const uint32_t count = handle_size(provider, most);
  gm_status status = handle_create(provider, growth, count, out, err);
  if (gm__is_shortage(status) && count > 1) status = handle_create(provider, growth, 1, out, err);
  if (!gm__is_shortage(status) || !gm__pages_idle_bytes(provider)) return status;
  gm__pages_release(provider);
  return handle_create(provider, growth, 1, out, err);
}
