#include "core/staging/stock.h"

#include <inttypes.h>

#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/mapping.h"
#include "core/base/saturate.h"
#include "core/context/config.h"
#include "core/device/device.h"
#include "core/device/host_range.h"

enum { STOCK_TOUCHERS = 4, STOCK_PAGE = 4096, STOCK_CHUNK = 4 << 20, STOCK_CHUNK_MOST = 16 << 20 };

static const uint64_t stock_idle_ns = UINT64_C(10000000000);

uint64_t gm__stock_pitch(uint64_t slot_bytes) { return gm__round_up(slot_bytes, STOCK_PAGE); }

/* --- slots of a chunk --- */

static uint32_t stock_slots(const gm__stock_chunk *chunk) {
  const uint64_t slots = chunk->bytes / chunk->slot_bytes;
  return slots < GM__STOCK_SLOTS ? (uint32_t)slots : GM__STOCK_SLOTS;
}

/* A chunk without slots in use takes any size. */
static bool stock_fits(const gm__stock_chunk *chunk, uint64_t pitch, bool pinned) {
  if (chunk->pinned != pinned || chunk->bytes < pitch) return false;
  if (!chunk->used) return true;
  return chunk->slot_bytes == pitch && ~chunk->used << (GM__STOCK_SLOTS - stock_slots(chunk));
}

/* Chunks that are in use go first: so others stay whole. */
static gm__stock_chunk *stock_find(gm__stock *stock, uint64_t pitch, bool pinned) {
  gm__stock_chunk *best = NULL;
  for (gm__stock_chunk *chunk = stock->chunks; chunk; chunk = chunk->next) {
    if (!stock_fits(chunk, pitch, pinned)) continue;
    if (chunk->used) return chunk;
    if (!best || chunk->bytes < best->bytes) best = chunk;
  }
  return best;
}

bool gm__stock_cut(gm__stock *stock, uint64_t slot_bytes, bool pinned, gm__ring_slot *slot) {
  const uint64_t pitch = gm__stock_pitch(slot_bytes);
  gm__stock_chunk *chunk = stock_find(stock, pitch, pinned);
  if (!chunk) return false;
  chunk->slot_bytes = pitch;
  uint32_t index = 0;
  while (chunk->used >> index & 1) index++;
  chunk->used |= UINT64_C(1) << index;
  *slot = (gm__ring_slot){.host = chunk->host + index * pitch, .bytes = slot_bytes, .pinned = pinned, .chunk = chunk};
  return true;
}

void gm__stock_put(gm__ring_slot *slot) {
  gm__stock_chunk *chunk = slot->chunk;
  chunk->used &= ~(UINT64_C(1) << ((uint64_t)(slot->host - chunk->host) / chunk->slot_bytes));
  if (!chunk->used) chunk->since = gm__now_ns();
  slot->host = NULL;
}

uint32_t gm__stock_room(const gm__stock *stock, uint64_t slot_bytes, uint32_t wanted, uint32_t most) {
  const uint64_t pitch = gm__stock_pitch(slot_bytes), large = gm__max(STOCK_CHUNK_MOST / pitch, 1);
  const uint64_t left = gm__sub_sat(stock->most, stock->bytes) / pitch;
  const uint64_t slots = gm__min(gm__min(gm__max(wanted, STOCK_CHUNK / pitch), most), large);
  return (uint32_t)gm__min(gm__min(slots, GM__STOCK_SLOTS), left);
}

/* --- making a chunk --- */

typedef struct stock_touch {
  volatile unsigned char *host;
  uint64_t bytes;
  gm__thread thread;
} stock_touch;

/* Each page is written once: so it is there when the system locks it. */
static void stock_touch_run(void *arg) {
  const stock_touch *touch = arg;
  for (uint64_t at = 0; at < touch->bytes; at += STOCK_PAGE) touch->host[at] = 0;
}

static void stock_touch_all(const gm__stock_chunk *chunk) {
  stock_touch touches[STOCK_TOUCHERS];
  bool started[STOCK_TOUCHERS] = {false};
  const uint64_t part = gm__round_up(chunk->bytes / STOCK_TOUCHERS, STOCK_PAGE);
  const uint32_t count = chunk->bytes < STOCK_CHUNK / 4 ? 1 : STOCK_TOUCHERS;
  for (uint32_t i = 0; i < count; i++) {
    const uint64_t at = gm__min(i * part, chunk->bytes), end = i + 1 < count ? at + part : chunk->bytes;
    touches[i] = (stock_touch){.host = chunk->host + at, .bytes = gm__min(end, chunk->bytes) - at};
    if (i) started[i] = gm__thread_create(&touches[i].thread, "gm-touch", stock_touch_run, &touches[i], NULL) == GM_OK;
  }
  for (uint32_t i = 0; i < count; i++) {
    if (!started[i]) stock_touch_run(&touches[i]);
  }
  for (uint32_t i = 1; i < count; i++) {
    if (started[i]) gm__thread_join(&touches[i].thread);
  }
}

/* NOT_SUPPORTED: the driver has no host memory to lend. */
static gm_status stock_borrow(gm__stock *stock, gm__stock_chunk *chunk, gm_error *err) {
  void *host = NULL;
  const gm_status status = gm__host_range_alloc(stock->device, chunk->bytes, &host, err);
  chunk->lent = status == GM_OK;
  chunk->host = host;
  return status;
}

static gm_status stock_make(gm__stock *stock, gm__stock_chunk *chunk, bool pinned, gm_error *err) {
  const gm_status borrowed = pinned ? stock_borrow(stock, chunk, err) : GM_ERR_NOT_SUPPORTED;
  chunk->pinned = pinned;
  if (borrowed != GM_ERR_NOT_SUPPORTED) return borrowed;
  chunk->host = gm__mapping_new((size_t)chunk->bytes);
  if (!chunk->host) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "ring", "no host memory for a slot of %" PRIu64 " bytes",
                    chunk->slot_bytes);
  }
  const int32_t node = stock->device->info.numa_node;
  if (node >= 0) (void)gm__mapping_prefer(chunk->host, (size_t)chunk->bytes, (uint32_t)node);
  if (!pinned) return GM_OK;
  stock_touch_all(chunk);
  const gm_status status = gm_host_register(stock->device, chunk->host, chunk->bytes, err);
  if (status) gm__mapping_release(chunk->host, (size_t)chunk->bytes);
  return status;
}

static void stock_forget(const gm__stock *stock, gm__stock_chunk *chunk) {
  gm__release(gm__context_services(stock->device->ctx), chunk, sizeof *chunk);
}

/* A chunk of so many slots, else of half as many, and so on. NULL: `err` says why not even of one. */
static gm__stock_chunk *stock_try(gm__stock *stock, uint64_t pitch, uint32_t slots, bool pinned, gm_error *err) {
  gm__stock_chunk *chunk = gm__alloc(gm__context_services(stock->device->ctx), sizeof *chunk);
  gm_status status = GM_ERR_OUT_OF_HOST_MEMORY;
  if (!chunk) return gm__fail(err, status, "ring", "no host memory for a chunk's record"), NULL;
  for (; slots && status != GM_ERR_DEVICE_LOST && status != GM_ERR_NOT_SUPPORTED; slots /= 2) {
    chunk->slot_bytes = pitch;
    chunk->bytes = slots * pitch;
    status = stock_make(stock, chunk, pinned, err);
    if (status == GM_OK) return chunk;
  }
  stock_forget(stock, chunk);
  return NULL;
}

/* Keeps what the next ring need not find out again. REQUIRES: lock. */
static void stock_note(gm__stock *stock, bool came, const gm_error *why) {
  stock->scarce = !came;
  if (!came && why->status == GM_ERR_NOT_SUPPORTED) stock->unable = *why;
}

/* Does what gm__stock_add does. */
static gm_status stock_add(gm__stock *stock, uint64_t pitch, uint32_t slots, bool pinned, gm_error *err) {
  stock->bytes += slots * pitch;
  gm__mutex_unlock(&stock->lock);
  gm__stock_chunk *chunk = stock_try(stock, pitch, slots, pinned, err);
  gm__mutex_lock(&stock->lock);
  stock->bytes -= slots * pitch;
  if (pinned) stock_note(stock, chunk, err);
  if (!chunk) return err->status;
  stock->bytes += chunk->bytes;
  chunk->next = stock->chunks;
  stock->chunks = chunk;
  return GM_OK;
}

gm_status gm__stock_add(gm__stock *stock, uint64_t slot_bytes, uint32_t slots, bool pinned, gm_error *err) {
  gm_error why = pinned ? stock->unable : (gm_error){.status = GM_OK};
  gm_status status = why.status;
  if (!status)
    status = stock_add(stock, gm__stock_pitch(slot_bytes), pinned && stock->scarce ? 1 : slots, pinned, &why);
  if (status && err) *err = why;
  return status;
}

/* --- giving chunks back --- */

/* A lost device does no more work. */
static bool stock_may_go(gm_status status) { return status == GM_OK || status == GM_ERR_DEVICE_LOST; }

/* Where the device fails twice to let go, the driver may have the memory still: then it stays mapped. */
static void stock_release(gm__stock *stock, gm__stock_chunk *chunk) {
  gm_status status = chunk->pinned ? GM_ERR_TIMEOUT : GM_OK;
  for (int turn = 0; turn < 2 && !stock_may_go(status); turn++) {
    status = gm_host_unregister(stock->device, chunk->host, NULL);
  }
  if (stock_may_go(status)) {
    if (!chunk->lent) gm__mapping_release(chunk->host, (size_t)chunk->bytes);
  } else {
    gm__host_range_forget(stock->device, chunk->host);
  }
  stock_forget(stock, chunk);
}

bool gm__stock_drop(gm__stock *stock, uint64_t since, bool pinned) {
  gm__stock_chunk **at = &stock->chunks;
  while (*at && ((*at)->used || (*at)->since > since || (pinned && !(*at)->pinned))) at = &(*at)->next;
  gm__stock_chunk *chunk = *at;
  if (!chunk) return false;
  *at = chunk->next;
  gm__mutex_unlock(&stock->lock);
  const uint64_t bytes = chunk->bytes;
  stock_release(stock, chunk);
  gm__mutex_lock(&stock->lock);
  stock->bytes -= bytes;
  return true;
}

void gm__stock_tidy(gm__stock *stock) {
  const uint64_t now = gm__now_ns();
  gm__mutex_lock(&stock->lock);
  while (now > stock_idle_ns && gm__stock_drop(stock, now - stock_idle_ns, false)) continue;
  gm__mutex_unlock(&stock->lock);
}

/* --- the stock of a device --- */

static void stock_free(gm__stock *stock, bool forked) {
  const gm_services *services = gm__context_services(stock->device->ctx);
  while (stock->chunks) {
    gm__stock_chunk *chunk = stock->chunks;
    stock->chunks = chunk->next;
    stock_release(stock, chunk);
  }
  if (!forked) gm__mutex_destroy(&stock->lock);
  gm__release(services, stock, sizeof *stock);
}

gm_status gm__stock_end(gm_device *device, gm_error *err) {
  const bool forked = gm__context_forked(device->ctx);
  (void)err;
  if (!forked) gm__mutex_lock(&device->lock);
  gm__stock *stock = device->stock;
  if (stock && stock->users) stock = NULL;
  if (stock) device->stock = NULL;
  if (!forked) gm__mutex_unlock(&device->lock);
  if (stock) stock_free(stock, forked);
  return GM_OK;
}

/* NULL: there is none yet. */
static gm__stock *stock_use(gm_device *device) {
  gm__mutex_lock(&device->lock);
  gm__stock *stock = device->stock;
  if (stock) stock->users++;
  gm__mutex_unlock(&device->lock);
  return stock;
}

static gm_status stock_new(gm_device *device, gm_error *err) {
  gm__stock *stock = gm__alloc(gm__context_services(device->ctx), sizeof *stock);
  if (!stock) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "ring", "no host memory for a device's rings");
  stock->device = device;
  stock->most = gm__config_u64(device->ctx, "staging.max_bytes");
  gm__mutex_init(&stock->lock, GM__RANK_LEAF);
  gm__mutex_lock(&device->lock);
  const bool first = !device->stock;
  if (first) device->stock = stock;
  if (first) device->end_stock = gm__stock_end;
  gm__mutex_unlock(&device->lock);
  if (!first) stock_free(stock, false); /* another thread was first */
  return GM_OK;
}

gm_status gm__stock_join(gm_device *device, gm__stock **out, gm_error *err) {
  gm_status status = GM_OK;
  while (!(*out = stock_use(device)) && !status) status = stock_new(device, err);
  return *out ? GM_OK : status;
}

void gm__stock_leave(gm__stock *stock, bool forked) {
  gm_device *device = stock->device;
  if (!forked) gm__mutex_lock(&device->lock);
  stock->users--;
  if (!forked) gm__mutex_unlock(&device->lock);
}
