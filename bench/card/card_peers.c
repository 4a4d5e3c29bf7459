#include "bench/card/card_peers.h"

#include <string.h>

static void *gm_take(const card_peer *self, uint64_t bytes) {
  return gm_malloc(self->card->pool, bytes, self->card->stream);
}

static void gm_give(const card_peer *self, void *pointer, uint64_t bytes) {
  gm_free_ptr(self->card->pool, pointer, bytes, self->card->stream);
}

static void gm_tidy(const card_peer *self) { gm_pool_trim(self->card->pool, 0); }

/* A device address as a pointer, as torch and gm_malloc have it. */
static void *peer_pointer(uint64_t address) {
  void *pointer;
  memcpy(&pointer, &address, sizeof pointer);
  return pointer;
}

static uint64_t peer_address(void *pointer) { return (uint64_t)(uintptr_t)pointer; }

static void *pool_take(const card_peer *self, uint64_t bytes) {
  const card_driver *driver = &self->card->driver;
  uint64_t address = 0;
  return driver->alloc_async(&address, bytes, driver->stream) == 0 ? peer_pointer(address) : NULL;
}

static void pool_give(const card_peer *self, void *pointer, uint64_t bytes) {
  (void)bytes;
  self->card->driver.free_async(peer_address(pointer), self->card->driver.stream);
}

static void pool_tidy(const card_peer *self) {
  const card_driver *driver = &self->card->driver;
  driver->stream_wait(driver->stream);
  driver->pool_trim(driver->pool, 0);
}

static void *raw_take(const card_peer *self, uint64_t bytes) {
  uint64_t address = 0;
  return self->card->driver.alloc(&address, bytes) == 0 ? peer_pointer(address) : NULL;
}

static void raw_give(const card_peer *self, void *pointer, uint64_t bytes) {
  (void)bytes;
  self->card->driver.free(peer_address(pointer));
}

static void *torch_take(const card_peer *self, uint64_t bytes) {
  void *pointer = NULL;
  return self->card->torch.alloc(bytes, &pointer) == 0 ? pointer : NULL;
}

static void torch_give(const card_peer *self, void *pointer, uint64_t bytes) {
  (void)bytes;
  self->card->torch.free(pointer);
}

static void torch_tidy(const card_peer *self) { self->card->torch.empty_cache(); }

static void card_add(card *self, card_peer peer) {
  peer.card = self;
  self->peers[self->peer_count++] = peer;
}

static gm_status card_open_gm(card *self) {
  gm_status status = gm_context_create(NULL, &self->ctx, &self->err);
  if (status == GM_OK) status = gm_config_set(self->ctx, "memory_fraction", "1", &self->err);
  if (status == GM_OK) status = gm_config_set(self->ctx, "min_free_bytes", "0", &self->err);
  if (status == GM_OK) status = gm_device_open_index(self->ctx, "cuda", 0, &self->device, &self->err);
  if (status == GM_OK) status = gm_pool_create(self->device, NULL, &self->pool, &self->err);
  return status == GM_OK ? gm_stream_create(self->device, &self->stream, &self->err) : status;
}

const char *card_open(card *out, const gm_card_torch *torch) {
  *out = (card){.peer_count = 0};
  const char *why = card_driver_open(&out->driver);
  if (why) return why;
  if (card_open_gm(out) != GM_OK) return out->err.message;
  card_add(out, (card_peer){.name = "gm", .alloc = gm_take, .free = gm_give, .tidy = gm_tidy});
  if (out->driver.alloc_async) {
    card_add(out, (card_peer){.name = "driver_pool", .alloc = pool_take, .free = pool_give, .tidy = pool_tidy});
  }
  card_add(out, (card_peer){.name = "driver", .alloc = raw_take, .free = raw_give});
  if (torch) {
    out->torch = *torch;
    card_add(out, (card_peer){.name = "torch", .alloc = torch_take, .free = torch_give, .tidy = torch_tidy});
  }
  return NULL;
}

void card_close(card *self) {
  if (self->stream) gm_stream_close(self->stream, NULL);
  if (self->pool) gm_pool_destroy(self->pool, NULL);
  if (self->device) gm_device_close(self->device, NULL);
  if (self->ctx) gm_context_destroy(self->ctx, NULL);
}
