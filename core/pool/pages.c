#include "core/pool/pages.h"

#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/shadow.h"
#include "core/device/answer.h"
#include "core/device/device_vmm.h"
#include "core/device/peer.h"
#include "core/pool/pool.h"
#include "core/pool/supply.h"

/* Invariants. A handle is mapped as a whole at one place, or spare; its bytes are claimed of the pool's cap and counted
 * as reserved from before it is made until after it is destroyed. A handle that the driver maps, but neither opens nor
 * unmaps again, is shut: it stays behind its pages, which count as not mapped, until unmapping succeeds. Large handles
 * cost few calls, but one live block pins all of one: so they are large only while the device is nearly empty, and only
 * in large pools. */

enum {
  PAGES_LEAST = 64,      /* of a range */
  PAGES_ROOM_SHARE = 96, /* of what is free: the largest handle on an empty device */
  PAGES_HELD_SHARE = 16, /* of what the pool holds */
  PAGES_HANDLES = 512    /* for one gap, however little is free */
};

static const uint64_t pages_least_bytes = UINT64_C(2) << 20;
static const uint64_t pages_handle_bytes = UINT64_C(24) << 20; /* of a pool that holds little */
static const uint64_t pages_range_most = UINT64_C(512) << 30;  /* each thread has a range, and all are in one process */

static const gm_services *pages_services(const gm_pool *pool) { return gm__context_services(pool->device->ctx); }

/* Blocks in pages of the type can be all that plain blocks of the device are: where all its memory is seen by the host,
 * that is a pointer of their own. */
static bool pages_suit(const gm_pool *pool, uint32_t flags) {
  return !pool->rules.all_visible || flags & GM_MEMORY_HOST_POINTER;
}

/* The memory type that plain requests get first, if it can be mapped in pieces. */
static bool pages_find_type(gm__pages *pages, const gm_device *device) {
  for (uint32_t i = 0; i < device->type_count; i++) {
    const gm_vmm_props props = {.type = i, .exclusive = true};
    const uint32_t flags = device->types[i].flags;
    uint64_t granule = 0;
    if (!(flags & GM_MEMORY_DEVICE_LOCAL) || flags & GM_MEMORY_MANAGED) continue;
    if (device->ops->vmm_granularity(device->handle, &props, &granule, NULL) != GM_OK) return false;
    if (!gm__answer_is_unit(granule)) return false;
    pages->type = i;
    pages->page_bytes = gm__max(granule, pages_least_bytes);
    return true;
  }
  return false;
}

void gm__pages_init(gm_pool *pool, bool wanted) {
  gm__pages *pages = &pool->pages;
  const gm_device *device = pool->device;
  gm__mutex_init(&pages->lock, GM__RANK_PAGES);
  if (!wanted || !(device->info.capabilities & GM_CAP_VMM)) return;
  pages->usable = pages_find_type(pages, device) && pages->page_bytes >= pool->rules.granule &&
                  pages_suit(pool, device->types[pages->type].flags);
}

static uint32_t pages_take_any(gm__pages *pages) {
  return gm__spare_take(&pages->spare, pages->handles, UINT32_MAX, UINT32_MAX);
}

void gm__pages_clear(gm_pool *pool, gm_close_mode mode) {
  gm__pages *pages = &pool->pages;
  if (mode == GM_CLOSE_NORMAL) gm__device_note_pooled(pool->device, -(int64_t)gm__pages_spare_bytes(pool));
  for (uint32_t i; (i = pages_take_any(pages));) {
    gm__device_destroy_physical(pool->device, pages->handles[i].native, pages->handles[i].pages * pages->page_bytes);
  }
  gm__release(pages_services(pool), pages->handles, pages->capacity * sizeof *pages->handles);
  if (mode == GM_CLOSE_NORMAL) gm__mutex_destroy(&pages->lock);
}

/* ---- ranges ---- */

static uint64_t pages_of(const gm_pool *pool, uint64_t bytes) { return bytes / pool->pages.page_bytes; }

/* Twice what can be in it at once, so that there is a place for what needs to be in one piece. */
static uint32_t range_wish(const gm_pool *pool) {
  const uint64_t total = pool->device->info.total_bytes, most = pages_of(pool, pool->rules.granule << 31);
  const uint64_t twice = total ? 2 * pages_of(pool, total) : (uint64_t)PAGES_LEAST * 1024;
  const uint64_t wish = gm__min(twice, pages_of(pool, pages_range_most));
  return (uint32_t)gm__min(gm__max(wish, PAGES_LEAST), gm__min(most, UINT32_MAX));
}

uint64_t gm__range_most_bytes(const gm_pool *pool) { return range_wish(pool) * pool->pages.page_bytes; }

static void range_unreserve(gm_pool *pool, const gm__range *range, gm_close_mode mode) {
  const gm_device *device = pool->device;
  device->ops->vmm_unreserve(device->handle, range->address, range->page_count * pool->pages.page_bytes, mode, NULL);
}

static gm_status range_reserve(gm_pool *pool, gm__range *range, gm_error *err) {
  const gm_device *device = pool->device;
  gm_status status = GM_ERR_NOT_SUPPORTED;
  for (uint32_t pages = range_wish(pool); pages >= PAGES_LEAST; pages /= 2) {
    status = device->ops->vmm_reserve(device->handle, pages * pool->pages.page_bytes, pool->pages.page_bytes,
                                      &range->address, err);
    range->page_count = pages;
    if (status != GM_OK) continue;
    status =
        gm__answer_check_range(device, range->address, pages * pool->pages.page_bytes, pool->pages.page_bytes, err);
    if (status != GM_OK) range_unreserve(pool, range, GM_CLOSE_NORMAL);
    return status;
  }
  return status;
}

/* What copies and native objects of its blocks take. */
static gm_status range_describe(gm_pool *pool, gm__range *range, gm_memory *out, gm_error *err) {
  const gm_device *device = pool->device;
  const uint64_t bytes = range->page_count * pool->pages.page_bytes;
  const gm__answer_asked asked = {"vmm_memory", bytes, pool->pages.type, .address = range->address};
  const gm_status status = device->ops->vmm_memory(device->handle, range->address, bytes, pool->pages.type, out, err);
  range->described = status == GM_OK;
  if (status == GM_OK) return gm__answer_check_memory(device, &asked, out, err);
  if (status != GM_ERR_NOT_SUPPORTED) return status;
  *out = (gm_memory){.handle = range->address, .address = range->address, .bytes = bytes, .type = pool->pages.type};
  return GM_OK;
}

static bool range_furnish(gm_pool *pool, gm__range *range, gm_memory *out_memory, gm_error *err) {
  if (range_reserve(pool, range, err) != GM_OK) return false;
  range->handle_of = gm__alloc_array(pages_services(pool), range->page_count, sizeof *range->handle_of);
  range->zeroed = pool->rules.zeroes;
  if (range->handle_of && range_describe(pool, range, out_memory, err) == GM_OK) {
    range->memory = *out_memory;
    return true;
  }
  gm__release(pages_services(pool), range->handle_of, range->page_count * sizeof *range->handle_of);
  range_unreserve(pool, range, GM_CLOSE_NORMAL);
  return false;
}

gm__range *gm__range_open(gm_pool *pool, uint64_t *mapped_pages, gm_memory *out_memory, gm_error *err) {
  gm__range *range = gm__alloc(pages_services(pool), sizeof *range);
  if (range) range->mapped_pages = mapped_pages;
  if (range && range_furnish(pool, range, out_memory, err)) return range;
  gm__release(pages_services(pool), range, sizeof *range);
  gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "gm_alloc", "no addresses, or no host memory for a table of them");
  return NULL;
}

/* The bytes leave the range; no mark of AddressSanitizer stays at addresses with nothing behind them. False: the driver
 * refused. */
static bool range_withdraw(gm_pool *pool, const gm__range *range, const gm_memory *memory, uint64_t page,
                           uint64_t bytes) {
  const gm_device *device = pool->device;
  const uint64_t offset = page * pool->pages.page_bytes, address = range->address + offset;
  gm__peer_forget_range(pool->device, address);
  if (memory->host) gm__shadow_open((unsigned char *)memory->host + offset, bytes);
  return gm__submitting(device)->vmm_unmap(device->handle, address, bytes, NULL) == GM_OK;
}

void gm__range_close(gm_pool *pool, gm__range *range, const gm_memory *memory, gm_close_mode mode) {
  const gm_device *device = pool->device;
  for (uint32_t page = 0, pages; page < range->page_count; page += pages) {
    const gm__handle *handle = &pool->pages.handles[range->handle_of[page]];
    pages = range->handle_of[page] ? handle->pages : 1;
    if (!range->handle_of[page]) continue;
    const uint64_t bytes = pages * pool->pages.page_bytes;
    if (mode == GM_CLOSE_NORMAL) range_withdraw(pool, range, memory, page, bytes);
    gm__device_destroy_physical(pool->device, handle->native, bytes);
  }
  if (range->described) device->ops->memory_free(device->handle, memory, mode, NULL);
  range_unreserve(pool, range, mode);
  gm__release(pages_services(pool), range->handle_of, range->page_count * sizeof *range->handle_of);
  gm__release(pages_services(pool), range, sizeof *range);
}

/* ---- handles ---- */

static bool pages_reserve_record(gm_pool *pool) {
  gm__pages *pages = &pool->pages;
  if (pages->unused) return true;
  const uint32_t capacity = pages->capacity ? pages->capacity * 2 : 64;
  const size_t size = sizeof *pages->handles;
  if (!gm__grow(pages_services(pool), &pages->handles, pages->capacity * size, capacity * size)) return false;
  for (uint32_t i = capacity; i-- > (pages->capacity ? pages->capacity : 1);) {
    pages->handles[i].next = pages->unused;
    pages->unused = i;
  }
  pages->capacity = capacity;
  return true;
}

static void pages_give_record(gm__pages *pages, uint32_t number) {
  pages->handles[number] = (gm__handle){.next = pages->unused};
  pages->unused = number;
}

/* What the pool may still take. */
static uint64_t pages_room(gm_pool *pool) {
  const uint64_t cap = atomic_load_explicit(&pool->max_bytes, memory_order_relaxed);
  const uint64_t claimed = atomic_load_explicit(&pool->claimed, memory_order_relaxed);
  return gm__min(gm__sub_sat(cap, claimed), gm__device_room(pool->device, false));
}

/* How many pages a new handle has, of `most` that are wanted: the 8th power of the share that is left of what the pool
 * may have at most. */
static uint32_t pages_size(gm_pool *pool, uint32_t most) {
  const double held = (double)atomic_load_explicit(&pool->claimed, memory_order_relaxed);
  const double room = (double)gm__min(pages_room(pool), UINT64_C(1) << 40);
  double share = room / (room + held + 1);
  share *= share;
  share *= share;
  share *= share;
  const double bytes = room / PAGES_ROOM_SHARE * share;
  const double bound =
      held > (double)pages_handle_bytes * PAGES_HELD_SHARE ? held / PAGES_HELD_SHARE : (double)pages_handle_bytes;
  const double pages = (bytes < bound ? bytes : bound) / (double)pool->pages.page_bytes;
  const uint32_t count = pages >= most ? most : (uint32_t)pages;
  return (uint32_t)gm__max(count, most / PAGES_HANDLES + 1);
}

static gm_status pages_check_room(gm_pool *pool, uint64_t bytes, gm_error *err) {
  uint64_t room = gm__device_room(pool->device, false);
  if (bytes > room) room = gm__device_room(pool->device, true);
  if (bytes <= room) return GM_OK;
  return gm__fail(err, GM_ERR_OVER_LIMIT, 0, "gm_alloc",
                  "more pages are more than memory_fraction and min_free_bytes leave on this device");
}

static gm_status pages_ask(gm_pool *pool, uint64_t bytes, uint64_t *out_native, gm_error *err) {
  gm_device *device = pool->device;
  const uint64_t began = gm__now_ns();
  gm__mutex_lock(&device->grow_lock);
  gm_status status = pages_check_room(pool, bytes, err);
  if (status == GM_OK) {
    gm__marks_push(pool->marks, "pages from the driver", pool->name, bytes);
    status = gm__device_create_physical(device, pool->pages.type, bytes, out_native, err);
    gm__marks_pop(pool->marks);
    gm__stats_count(&pool->stats.driver_allocs, 1);
  }
  gm__mutex_unlock(&device->grow_lock);
  gm__stats_count(&pool->stats.driver_ns, gm__now_ns() - began);
  return status;
}

/* A new handle, mapped nowhere; its number in *out. */
static gm_status pages_create(gm_pool *pool, uint32_t count, uint32_t *out, gm_error *err) {
  gm__pages *pages = &pool->pages;
  const uint64_t bytes = count * pages->page_bytes;
  uint64_t native;
  if (!pages_reserve_record(pool)) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "gm_alloc", "no host memory for the table of pages");
  }
  gm_status status = gm__pool_claim(pool, bytes, "gm_alloc", err);
  if (status != GM_OK) return status;
  status = pages_ask(pool, bytes, &native, err);
  if (status != GM_OK) {
    gm__pool_unclaim(pool, bytes);
    return status;
  }
  gm__stats_grow(&pool->stats.reserved_bytes, &pool->stats.peak_reserved_bytes, bytes);
  *out = pages->unused;
  pages->unused = pages->handles[*out].next;
  pages->handles[*out] = (gm__handle){.native = native, .pages = count, .made = ++pages->made};
  return GM_OK;
}

static void pages_destroy(gm_pool *pool, uint32_t number) {
  gm__pages *pages = &pool->pages;
  const uint64_t bytes = pages->handles[number].pages * pages->page_bytes;
  gm__device_destroy_physical(pool->device, pages->handles[number].native, bytes);
  gm__stats_count(&pool->stats.driver_frees, 1);
  gm__stats_uncount(&pool->stats.reserved_bytes, bytes);
  gm__pool_unclaim(pool, bytes);
  pages_give_record(pages, number);
}

uint64_t gm__pages_spare_bytes(const gm_pool *pool) {
  return atomic_load_explicit(&pool->pages.spare_bytes, memory_order_relaxed);
}

/* `sign`: 1 or -1. */
static void pages_count_spare(gm_pool *pool, uint32_t number, int sign) {
  gm__pages *pages = &pool->pages;
  const uint64_t bytes = pages->handles[number].pages * pages->page_bytes;
  const uint64_t was = gm__pages_spare_bytes(pool);
  atomic_store_explicit(&pages->spare_bytes, sign > 0 ? was + bytes : was - bytes, memory_order_relaxed);
  gm__device_note_pooled(pool->device, sign > 0 ? (int64_t)bytes : -(int64_t)bytes);
}

static void pages_put_spare(gm_pool *pool, uint32_t number) {
  gm__spare_put(&pool->pages.spare, pool->pages.handles, number);
  pages_count_spare(pool, number, 1);
}

uint64_t gm__pages_release(gm_pool *pool) {
  gm__pages *pages = &pool->pages;
  const uint64_t bytes = gm__pages_spare_bytes(pool);
  for (uint32_t number; (number = pages_take_any(pages));) {
    pages_count_spare(pool, number, -1);
    pages_destroy(pool, number);
  }
  return bytes;
}

/* A spare handle, best of `most` pages and never of more than `reach`; 0: none. */
static uint32_t pages_take_spare(gm_pool *pool, uint32_t most, uint32_t reach) {
  const uint32_t number = gm__spare_take(&pool->pages.spare, pool->pages.handles, most, reach);
  if (number) pages_count_spare(pool, number, -1);
  return number;
}

/* A handle for at most so many pages: spare, then even of up to `reach`, or new; or, when the device is full, new in
 * place of spare ones that are too large. */
static gm_status pages_obtain(gm_pool *pool, uint32_t most, uint32_t reach, uint32_t *out, gm_error *err) {
  if ((*out = pages_take_spare(pool, most, reach))) return GM_OK;
  const uint32_t count = pages_size(pool, most);
  gm_status status = pages_create(pool, count, out, err);
  if (gm__supply_is_shortage(status) && count > 1) status = pages_create(pool, 1, out, err);
  if (!gm__supply_is_shortage(status) || !gm__pages_spare_bytes(pool)) return status;
  gm__pages_release(pool);
  return pages_create(pool, 1, out, err);
}

/* The handle is behind the pages from `page` on. */
static void pages_enter(gm_pool *pool, gm__range *range, uint32_t page, uint32_t number) {
  gm__handle *handle = &pool->pages.handles[number];
  handle->first = page;
  for (uint32_t i = 0; i < handle->pages; i++) range->handle_of[page + i] = number;
}

static gm_status pages_map(gm_pool *pool, gm__range *range, uint32_t page, uint32_t number, gm_error *err) {
  const gm_device *device = pool->device;
  gm__handle *handle = &pool->pages.handles[number];
  const uint64_t address = range->address + page * pool->pages.page_bytes;
  const uint64_t bytes = handle->pages * pool->pages.page_bytes;
  gm_status status = gm__submitting(device)->vmm_map(device->handle, address, bytes, handle->native, 0, err);
  if (status != GM_OK) return status;
  status = device->ops->vmm_access(device->handle, address, bytes, err);
  if (status == GM_OK) status = gm__peer_note_range(pool->device, address, bytes, err);
  if (status != GM_OK) {
    if (gm__submitting(device)->vmm_unmap(device->handle, address, bytes, NULL) == GM_OK) return status;
    handle->shut = true;
    pool->pages.shut_count++;
    pages_enter(pool, range, page, number);
    return status;
  }
  if (range->zeroed && gm__supply_zero(pool, &range->memory, page * pool->pages.page_bytes, bytes, NULL) != GM_OK) {
    range->zeroed = false; /* for good: requests for zeros see to it themselves */
  }
  pages_enter(pool, range, page, number);
  *range->mapped_pages += handle->pages;
  return GM_OK;
}

bool gm__page_is_shut(const gm_pool *pool, const gm__range *range, uint64_t page) {
  return range->handle_of[page] && pool->pages.handles[range->handle_of[page]].shut;
}

static gm_status pages_shut(gm_error *err) {
  return gm__fail(err, GM_ERR_DRIVER, 0, "vmm_unmap", "the driver has pages there that it neither opened nor unmaps");
}

gm_status gm__pages_fill(gm_pool *pool, gm__range *range, uint32_t from, uint32_t to, uint32_t reach, gm_error *err) {
  for (uint32_t page = from, end = from, number; page < to; page++) {
    if (gm__page_is_shut(pool, range, page)) return pages_shut(err);
    if (range->handle_of[page]) continue;
    if (end < page) end = page; /* up to there nothing was mapped */
    while (end < reach && !range->handle_of[end]) end++;
    gm_status status = pages_obtain(pool, (end < to ? end : to) - page, end - page, &number, err);
    if (status != GM_OK) return status;
    status = pages_map(pool, range, page, number, err);
    if (status == GM_OK) continue;
    if (!pool->pages.handles[number].shut) pages_destroy(pool, number);
    return status;
  }
  return GM_OK;
}

/* The handle leaves its pages. */
static void pages_leave(gm_pool *pool, gm__range *range, uint32_t number) {
  const gm__handle *handle = &pool->pages.handles[number];
  for (uint32_t i = 0; i < handle->pages; i++) range->handle_of[handle->first + i] = 0;
}

static bool pages_unmap(gm_pool *pool, gm__range *range, uint32_t number) {
  gm__pages *pages = &pool->pages;
  gm__handle *handle = &pages->handles[number];
  const uint64_t bytes = handle->pages * pages->page_bytes;
  if (!range_withdraw(pool, range, &range->memory, handle->first, bytes)) {
    const uint64_t address = range->address + handle->first * pages->page_bytes;
    gm__peer_note_range(pool->device, address, bytes, NULL); /* still there */
    return false;
  }
  pages_leave(pool, range, number);
  *range->mapped_pages -= handle->pages;
  return true;
}

bool gm__pages_unmap(gm_pool *pool, gm__range *range, uint32_t number) {
  if (!pages_unmap(pool, range, number)) return false;
  pages_put_spare(pool, number);
  return true;
}

void gm__pages_undo(gm_pool *pool, gm__range *range, uint32_t from, uint32_t to, uint64_t since) {
  for (uint32_t page = from; page < to; page++) {
    const uint32_t number = range->handle_of[page];
    if (!number || pool->pages.handles[number].shut || pool->pages.handles[number].made <= since) continue;
    if (pages_unmap(pool, range, number)) pages_destroy(pool, number);
  }
}

void gm__pages_retry(gm_pool *pool, gm__range *range, uint64_t from, uint64_t to) {
  for (uint64_t page = from; page < to; page++) {
    const uint32_t number = range->handle_of[page];
    if (!gm__page_is_shut(pool, range, page)) continue;
    gm__handle *handle = &pool->pages.handles[number];
    const uint64_t bytes = handle->pages * pool->pages.page_bytes;
    if (!range_withdraw(pool, range, &range->memory, handle->first, bytes)) return;
    pages_leave(pool, range, number);
    handle->shut = false;
    pool->pages.shut_count--;
    pages_put_spare(pool, number);
  }
}
