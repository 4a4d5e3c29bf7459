#include "core/provider/va_range.h"

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/shadow.h"
#include "core/device/memory_answer.h"
#include "core/device/peer.h"
#include "core/provider/ask.h"
#include "core/provider/provider.h"
#include "core/room/holding.h"

enum {
  RANGE_LEAST_PAGES = 64,
  RANGE_FINE_SHARE = 100 /* of the mapped pages of fine ranges: the largest handle there */
};

static const uint64_t range_most_bytes = UINT64_C(512) << 30; /* each thread has a range, and all share one process */

static uint64_t range_pages(const gm__provider *provider, uint64_t bytes) { return bytes / provider->pages.page_bytes; }

static uint64_t range_bytes(const gm__provider *provider, const gm__va_range *range) {
  return range->page_count * provider->pages.page_bytes;
}

/* ---- begin and end ---- */

/* Twice the device's memory, so that there is a place for large blocks between small ones. */
static uint32_t range_wish(const gm__provider *provider) {
  const uint64_t total = provider->device->info.total_bytes,
                 most = range_pages(provider, provider->rules.granule << 31);
  const uint64_t twice = total ? 2 * range_pages(provider, total) : (uint64_t)RANGE_LEAST_PAGES * 1024;
  const uint64_t wish = gm__min(twice, range_pages(provider, range_most_bytes));
  return (uint32_t)gm__min(gm__max(wish, RANGE_LEAST_PAGES), gm__min(most, UINT32_MAX));
}

uint64_t gm__va_range_most_bytes(const gm__provider *provider) {
  return range_wish(provider) * provider->pages.page_bytes;
}

static void range_unreserve(gm__provider *provider, const gm__va_range *range, gm_close_mode mode) {
  const gm_device *device = provider->device;
  device->ops->vmm_unreserve(device->handle, range->address, range_bytes(provider, range), mode, NULL);
}

static gm_status range_reserve(gm__provider *provider, gm__va_range *range, gm_error *err) {
  const gm_device *device = provider->device;
  const uint64_t page = provider->pages.page_bytes;
  gm_status status = GM_ERR_NOT_SUPPORTED;
  for (uint32_t pages = range_wish(provider); pages >= RANGE_LEAST_PAGES; pages /= 2) {
    status = device->ops->vmm_reserve(device->handle, pages * page, page, &range->address, err);
    range->page_count = pages;
    if (status) continue;
    status = gm__answer_check_range(device, range->address, pages * page, page, err);
    if (status) range_unreserve(provider, range, GM_CLOSE_NORMAL);
    return status;
  }
  return status;
}

static gm_status range_describe(gm__provider *provider, gm__va_range *range, gm_memory *out, gm_error *err) {
  const gm_device *device = provider->device;
  const uint64_t bytes = range_bytes(provider, range);
  const uint32_t type = provider->pages.type;
  const gm__answer_asked asked = {"vmm_memory", bytes, type, .address = range->address};
  const gm_status status = device->ops->vmm_memory(device->handle, range->address, bytes, type, out, err);
  range->described = status == GM_OK;
  if (status == GM_OK) return gm__answer_check_memory(device, &asked, out, err);
  if (status != GM_ERR_NOT_SUPPORTED) return status;
  *out = (gm_memory){.handle = range->address, .address = range->address, .bytes = bytes, .type = type};
  return GM_OK;
}

static bool range_furnish(gm__provider *provider, gm__va_range *range, gm_memory *out_memory, gm_error *err) {
  if (range_reserve(provider, range, err)) return false;
  range->handle_of = gm__alloc_array(gm__provider_services(provider), range->page_count, sizeof *range->handle_of);
  range->zeroed = provider->rules.zeroes;
  if (range->handle_of && range_describe(provider, range, out_memory, err) == GM_OK) {
    range->memory = *out_memory;
    return true;
  }
  gm__release(gm__provider_services(provider), range->handle_of, range->page_count * sizeof *range->handle_of);
  range_unreserve(provider, range, GM_CLOSE_NORMAL);
  return false;
}

gm__va_range *gm__va_range_open(gm__provider *provider, bool fine, uint64_t *mapped_pages, gm_memory *out_memory,
                                gm_error *err) {
  gm__va_range *range = gm__alloc(gm__provider_services(provider), sizeof *range);
  if (range) range->fine = fine;
  if (range) range->mapped_pages = mapped_pages;
  if (range && range_furnish(provider, range, out_memory, err)) return range;
  gm__release(gm__provider_services(provider), range, sizeof *range);
  gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_alloc", "no addresses, or no host memory for a table of them");
  return NULL;
}

/* Unmaps the bytes from `page` on. AddressSanitizer's marks go first: no memory will be behind them. False: the driver
 * refused. */
static bool range_withdraw(gm__provider *provider, const gm__va_range *range, const gm_memory *memory, uint64_t page,
                           uint64_t bytes) {
  const gm_device *device = provider->device;
  const uint64_t offset = page * provider->pages.page_bytes, address = range->address + offset;
  gm__peer_forget_range(provider->device, address);
  if (memory->host) gm__shadow_open((unsigned char *)memory->host + offset, bytes);
  return gm__submitting(device)->vmm_unmap(device->handle, address, bytes, NULL) == GM_OK;
}

void gm__va_range_close(gm__provider *provider, gm__va_range *range, const gm_memory *memory, gm_close_mode mode) {
  const gm_device *device = provider->device;
  for (uint32_t page = 0, pages; page < range->page_count; page += pages) {
    const uint32_t number = range->handle_of[page];
    const gm__handle *handle = &provider->pages.handles[number];
    pages = number ? handle->pages : 1;
    if (!number) continue;
    const uint64_t bytes = gm__handle_bytes(&provider->pages, number);
    if (handle->asleep) continue;
    if (mode == GM_CLOSE_NORMAL) range_withdraw(provider, range, memory, page, bytes);
    gm__device_destroy_physical(provider->device, provider->pages.type, handle->native, bytes);
  }
  gm__saved_pages_drop(gm__provider_services(provider), &range->saved);
  if (range->described) device->ops->memory_free(device->handle, memory, mode, NULL);
  range_unreserve(provider, range, mode);
  gm__release(gm__provider_services(provider), range->handle_of, range->page_count * sizeof *range->handle_of);
  gm__release(gm__provider_services(provider), range, sizeof *range);
}

/* ---- mapping ---- */

/* Writes `number` (0: none) behind the pages of the handle. */
static void range_write(gm__va_range *range, const gm__handle *handle, uint32_t number) {
  for (uint32_t i = 0; i < handle->pages; i++) range->handle_of[handle->first + i] = number;
}

static gm_status range_map(gm__provider *provider, gm__va_range *range, uint32_t page, uint32_t number, gm_error *err) {
  const gm_device *device = provider->device;
  gm__handle *handle = &provider->pages.handles[number];
  const uint64_t offset = page * provider->pages.page_bytes, address = range->address + offset;
  const uint64_t bytes = gm__handle_bytes(&provider->pages, number);
  gm_status status = gm__submitting(device)->vmm_map(device->handle, address, bytes, handle->native, 0, err);
  if (status) return status;
  handle->first = page;
  status = device->ops->vmm_access(device->handle, address, bytes, err);
  if (!status) status = gm__peer_note_range(provider->device, address, bytes, err);
  if (status) {
    if (gm__submitting(device)->vmm_unmap(device->handle, address, bytes, NULL) == GM_OK) return status;
    handle->shut = true;
    provider->pages.shut_count++;
    range_write(range, handle, number);
    return status;
  }
  if (range->zeroed && gm__device_zero(provider->device, &range->memory, offset, bytes, NULL)) {
    range->zeroed = false; /* for good: a request for zeros clears its block itself */
  }
  range_write(range, handle, number);
  *range->mapped_pages += handle->pages;
  return GM_OK;
}

bool gm__va_range_is_shut(const gm__provider *provider, const gm__va_range *range, uint64_t page) {
  return range->handle_of[page] && provider->pages.handles[range->handle_of[page]].shut;
}

static gm_status range_shut(gm_error *err) {
  return gm__fail(err, GM_ERR_DRIVER, "vmm_unmap", "the driver has pages there that it neither opened nor unmaps");
}

/* The most pages that a handle of the range may have, while `coming` are about to be mapped. */
static uint32_t range_handle_most(const gm__va_range *range, uint64_t coming) {
  return range->fine ? (uint32_t)gm__min((*range->mapped_pages + coming) / RANGE_FINE_SHARE + 1, UINT32_MAX)
                     : UINT32_MAX;
}

/* Obtains handles for the pages of [from, to) that have none, in one turn of the card. They come linked by `next` from
 * *first on, each with its page in `first`. After a failure those of the first pages have come. */
static gm_status range_obtain(gm__provider *provider, const gm__va_range *range, gm__growth *growth, uint32_t from,
                              uint32_t to, uint32_t reach, uint32_t *first, gm_error *err) {
  const gm__pages *pages = &provider->pages;
  gm_status status = GM_OK;
  uint64_t coming = 0;
  *first = 0;
  uint32_t number = 0;
  for (uint32_t page = from, end = from, last = 0; page < to && !status;
       page += number ? pages->handles[number].pages : 1) {
    number = 0;
    if (gm__va_range_is_shut(provider, range, page)) status = range_shut(err);
    if (status || range->handle_of[page]) continue;
    if (end < page) end = page; /* no page of [page, end) is mapped */
    while (end < reach && !range->handle_of[end]) end++;
    const uint32_t most = range_handle_most(range, coming);
    const uint32_t need = (end < to ? end : to) - page, have = end - page;
    status = gm__handle_obtain(provider, growth, need < most ? need : most, have < most ? have : most, &number, err);
    if (status) continue;
    *(last ? &pages->handles[last].next : first) = number;
    pages->handles[number].next = 0;
    pages->handles[number].first = page;
    last = number;
    coming += pages->handles[number].pages;
  }
  gm__growth_end_turn(growth);
  return status;
}

static bool range_unmap(gm__provider *provider, gm__va_range *range, uint32_t number) {
  const gm__handle *handle = &provider->pages.handles[number];
  const uint64_t bytes = gm__handle_bytes(&provider->pages, number);
  if (!range_withdraw(provider, range, &range->memory, handle->first, bytes)) {
    const uint64_t address = range->address + handle->first * provider->pages.page_bytes;
    gm__peer_note_range(provider->device, address, bytes, NULL); /* it is still mapped */
    return false;
  }
  range_write(range, handle, 0);
  *range->mapped_pages -= handle->pages;
  return true;
}

/* Maps a handle at its page. Memory that it has of a promise is touched. A handle without memory is destroyed. */
static gm_status range_place(gm__provider *provider, gm__va_range *range, gm__growth *growth, uint32_t number,
                             gm_error *err) {
  const uint32_t page = provider->pages.handles[number].first;
  const uint64_t bytes = gm__handle_bytes(&provider->pages, number);
  gm_status status = range_map(provider, range, page, number, err);
  if (status) {
    if (!provider->pages.handles[number].shut) gm__handle_destroy(provider, number);
    return status;
  }
  status = gm__growth_touch(provider, growth, &range->memory, page * provider->pages.page_bytes, bytes, err);
  if (status && range_unmap(provider, range, number)) gm__handle_destroy(provider, number);
  return status;
}

/* It maps memory that was obtained before a failure, too. After a failure to map, the handles that follow are
 * destroyed. */
gm_status gm__va_range_fill(gm__provider *provider, gm__va_range *range, uint32_t from, uint32_t to, uint32_t reach,
                            gm_error *err) {
  gm__growth growth = {.begun = false};
  gm_status placed = GM_OK;
  uint64_t returned = 0;
  uint32_t number, next;
  const gm_status obtained = range_obtain(provider, range, &growth, from, to, reach, &number, err);
  for (; number; number = next) {
    const uint64_t bytes = gm__handle_bytes(&provider->pages, number);
    next = provider->pages.handles[number].next;
    if (placed) gm__handle_destroy(provider, number);
    if (!placed) placed = range_place(provider, range, &growth, number, err);
    if (placed) returned += bytes;
  }
  gm__growth_finish(provider, &growth, placed ? placed : obtained, returned);
  provider->pages.drawn += growth.drawn;
  return obtained ? obtained : placed;
}

/* ---- unmapping ---- */

bool gm__va_range_unmap(gm__provider *provider, gm__va_range *range, uint32_t number) {
  if (provider->pages.handles[number].asleep) {
    range_write(range, &provider->pages.handles[number], 0);
    gm__handle_destroy(provider, number);
    return true;
  }
  if (!range_unmap(provider, range, number)) return false;
  gm__handle_keep(provider, number);
  return true;
}

void gm__va_range_undo(gm__provider *provider, gm__va_range *range, uint32_t from, uint32_t to, uint64_t since) {
  uint64_t returned = 0;
  for (uint32_t page = from; page < to; page++) {
    const uint32_t number = range->handle_of[page];
    if (!number || provider->pages.handles[number].shut || provider->pages.handles[number].made <= since) continue;
    const uint64_t bytes = gm__handle_bytes(&provider->pages, number);
    if (!range_unmap(provider, range, number)) continue;
    gm__handle_destroy(provider, number);
    returned += bytes;
  }
  gm__holding_retake(&provider->claim, gm__min(returned, provider->pages.drawn));
  provider->pages.drawn = 0;
}

/* Tries again to unmap a shut handle. */
static bool range_unshut(gm__provider *provider, gm__va_range *range, uint32_t number) {
  gm__handle *handle = &provider->pages.handles[number];
  const uint64_t bytes = gm__handle_bytes(&provider->pages, number);
  if (!range_withdraw(provider, range, &range->memory, handle->first, bytes)) return false;
  handle->shut = false;
  provider->pages.shut_count--;
  return true;
}

void gm__va_range_retry(gm__provider *provider, gm__va_range *range, uint64_t from, uint64_t to) {
  for (uint64_t page = from; page < to; page++) {
    const uint32_t number = range->handle_of[page];
    if (!gm__va_range_is_shut(provider, range, page)) continue;
    if (!range_unshut(provider, range, number)) return;
    range_write(range, &provider->pages.handles[number], 0);
    gm__handle_keep(provider, number);
  }
}

/* ---- sleep ---- */

/* The next handle of the range, at *page or behind it; 0: there is none. *page moves behind it. */
static uint32_t range_next_handle(const gm__provider *provider, const gm__va_range *range, uint32_t *page) {
  while (*page < range->page_count && !range->handle_of[*page]) *page += 1;
  if (*page == range->page_count) return 0;
  const uint32_t number = range->handle_of[*page];
  *page += provider->pages.handles[number].pages;
  return number;
}

static gm_status range_sleep_handle(gm__provider *provider, gm__va_range *range, uint32_t number, gm_error *err) {
  if (!range_unmap(provider, range, number)) {
    return gm__fail(err, GM_ERR_DRIVER, "vmm_unmap", "the driver does not unmap pages of a pool that falls asleep");
  }
  gm__handle_sleep(provider, number);
  range_write(range, &provider->pages.handles[number], number);
  return GM_OK;
}

gm_status gm__va_range_sleep(gm__provider *provider, gm__va_range *range, uint64_t *bytes, gm_error *err) {
  gm_status status = GM_OK;
  uint32_t page = 0, number;
  while (!status && (number = range_next_handle(provider, range, &page))) {
    const gm__handle *handle = &provider->pages.handles[number];
    if (handle->asleep || handle->shut) continue;
    status = range_sleep_handle(provider, range, number, err);
    if (!status) *bytes += gm__handle_bytes(&provider->pages, number);
  }
  return status;
}

/* Gives a handle that sleeps memory again. One that was shut at its last waking is unmapped first. */
static gm_status range_wake_handle(gm__provider *provider, gm__va_range *range, gm__growth *growth, uint32_t number,
                                   gm_error *err) {
  gm__handle *handle = &provider->pages.handles[number];
  if (handle->shut) {
    if (!range_unshut(provider, range, number)) return range_shut(err);
    gm__handle_sleep(provider, number);
  }
  if (!handle->asleep) return GM_OK;
  const gm_status status = gm__handle_wake(provider, growth, number, err);
  if (status) return status;
  handle->next = range->woken;
  range->woken = number;
  return GM_OK;
}

static gm_status range_wake_handles(gm__provider *provider, gm__va_range *range, gm__growth *growth, gm_error *err) {
  gm_status status = GM_OK;
  uint32_t page = 0, number;
  while (!status && (number = range_next_handle(provider, range, &page))) {
    status = range_wake_handle(provider, range, growth, number, err);
  }
  return status;
}

/* Maps a handle that has memory again. After a failure it sleeps, or is shut. */
static gm_status range_wake_map(gm__provider *provider, gm__va_range *range, gm__growth *growth, uint32_t number,
                                gm_error *err) {
  const gm__handle *handle = &provider->pages.handles[number];
  gm_status status = range_map(provider, range, handle->first, number, err);
  if (status) {
    if (!handle->shut) gm__handle_sleep(provider, number);
    return status;
  }
  status = gm__growth_touch(provider, growth, &range->memory, handle->first * provider->pages.page_bytes,
                            gm__handle_bytes(&provider->pages, number), err);
  if (status) range_sleep_handle(provider, range, number, NULL);
  return status;
}

/* Maps the handles of a range that have memory again. After a failure, of an earlier range also, the others sleep on.
 * *returned counts their bytes. */
static gm_status range_wake_maps(gm__provider *provider, gm__va_range *range, gm__growth *growth, gm_status status,
                                 uint64_t *returned, gm_error *err) {
  for (uint32_t number = range->woken, next; number; number = next) {
    next = provider->pages.handles[number].next;
    if (status) {
      gm__handle_sleep(provider, number);
    } else {
      status = range_wake_map(provider, range, growth, number, err);
    }
    if (status) *returned += gm__handle_bytes(&provider->pages, number);
  }
  range->woken = 0;
  return status;
}

gm_status gm__va_ranges_wake(gm__provider *provider, gm__va_range *first, gm_error *err) {
  gm__growth growth = {.begun = false};
  gm_status status = GM_OK;
  uint64_t returned = 0;
  for (gm__va_range *range = first; range && !status; range = range->next) {
    status = range_wake_handles(provider, range, &growth, err);
  }
  gm__growth_end_turn(&growth);
  for (gm__va_range *range = first; range; range = range->next) {
    status = range_wake_maps(provider, range, &growth, status, &returned, err);
  }
  return gm__growth_finish(provider, &growth, status, returned);
}

static gm_status range_restore(gm__provider *provider, const gm__va_range *range, const gm__saved_pages *saved,
                               gm_stream *stream, gm_error *err) {
  gm__access part = {.device = provider->device, .memory = range->memory};
  const uint64_t size = provider->pages.page_bytes, last = (saved->offset + saved->bytes) / size;
  gm_status status = GM_OK;
  for (uint64_t page = saved->offset / size, end; page < last && !status; page = end) {
    for (end = page; end < last && range->handle_of[end];) end++;
    part.offset = page * size;
    part.bytes = (end - page) * size;
    if (end > page) status = gm__saved_pages_write(&part, stream, saved, err);
    if (end == page) end++;
  }
  return status;
}

gm_status gm__va_range_restore(gm__provider *provider, const gm__va_range *range, gm_stream *stream, gm_error *err) {
  gm_status status = GM_OK;
  for (const gm__saved_pages *saved = range->saved; saved && !status; saved = saved->next) {
    status = range_restore(provider, range, saved, stream, err);
  }
  return status;
}
