/* Some devices of one context, each with a pool, a stream and memory: the world of the tests of transfers. Needs
 * cmocka.h included before. */
#ifndef GM_TESTS_TRANSFER_TRANSFER_WORLD_H
#define GM_TESTS_TRANSFER_TRANSFER_WORLD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gm/config.h"
#include "gm/copy.h"
#include "gm/pool.h"
#include "support/counted_services.h"
#include "support/named_libraries.h"

enum { WORLD_DEVICES = 3, WORLD_BYTES = (5 << 20) + 3 };

typedef struct world_end {
  gm_device *device;
  gm_pool *pool;
  gm_stream *stream;
  gm_block block; /* WORLD_BYTES */
} world_end;

typedef struct transfer_world {
  counted_services host;
  gm_context *ctx;
  unsigned count;
  world_end ends[WORLD_DEVICES];
} transfer_world;

static unsigned char world_sent[WORLD_BYTES], world_got[WORLD_BYTES];

#define world_ok(call)                                              \
  do {                                                              \
    gm_error world_err = {.status = GM_OK};                         \
    gm_error *err = &world_err;                                     \
    gm_status world_status = (call);                                \
    if (world_status) fail_msg("%s: %s", #call, world_err.message); \
  } while (0)

static inline void world_fill_sent(unsigned seed) {
  for (unsigned i = 0; i < WORLD_BYTES; i++) world_sent[i] = (unsigned char)(i * 31 + i / 253 + seed);
  memset(world_got, 0, WORLD_BYTES);
}

/* A context without devices. */
static inline void world_begin(transfer_world *w) {
  memset(w, 0, sizeof *w);
  counted_services_init(&w->host);
  const gm_context_params params = {.struct_size = sizeof params,
                                    .services = &w->host.services,
                                    .libraries = named_libraries(),
                                    .backend_options = "null:capacity=256M",
                                    .ignore_environment = true};
  world_ok(gm_context_create(&params, &w->ctx, err));
  world_ok(gm_config_set(w->ctx, "memory_fraction", "1", err));
  world_ok(gm_config_set(w->ctx, "min_free_bytes", "0", err));
}

/* False: there is no such device. */
static inline bool world_add(transfer_world *w, const char *backend, uint32_t index) {
  world_end *end = &w->ends[w->count];
  gm_error why;
  if (gm_device_open_index(w->ctx, backend, index, &end->device, &why) != GM_OK) {
    printf("without %s device %u: %s\n", backend, index, why.message);
    return false;
  }
  w->count++;
  world_ok(gm_pool_create(end->device, NULL, &end->pool, err));
  world_ok(gm_stream_create(end->device, &end->stream, err));
  const gm_request request = {.bytes = WORLD_BYTES};
  assert_in_range(gm_alloc(end->pool, &request, &end->block), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
  return true;
}

static inline void world_remove(transfer_world *w, unsigned i) {
  world_end *end = &w->ends[i];
  if (!end->device) return;
  assert_int_equal(gm_free(end->pool, &end->block, NULL), GM_OK);
  world_ok(gm_stream_close(end->stream, err));
  world_ok(gm_pool_destroy(end->pool, err));
  world_ok(gm_device_close(end->device, err));
  end->device = NULL;
}

static inline void world_finish(transfer_world *w) {
  for (unsigned i = 0; i < w->count; i++) world_remove(w, i);
  world_ok(gm_context_destroy(w->ctx, err));
  counted_services_check(&w->host);
}

static inline void world_write(const world_end *end, const void *bytes) {
  world_ok(gm_block_write(end->pool, &end->block, 0, bytes, WORLD_BYTES, NULL, NULL, err));
}

static inline void world_read(const world_end *end) {
  world_ok(gm_block_read(end->pool, &end->block, 0, world_got, WORLD_BYTES, NULL, NULL, err));
}

static inline gm_stats world_stats(const world_end *end) {
  gm_stats stats = {.struct_size = sizeof stats};
  gm_pool_stats(end->pool, &stats);
  return stats;
}

#endif
