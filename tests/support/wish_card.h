/* The CPU backend in disguise: a card with its own memory, a window into it, and two sorts of host memory. Needs
 * cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_WISH_CARD_H
#define GM_TESTS_SUPPORT_WISH_CARD_H

#include <string.h>

#include "core/base/error.h"
#include "support/discrete_card.h"
#include "support/pool_bench.h"

enum {
  OWN = 0,    /* the card's own memory */
  WINDOW = 1, /* as the host sees a part of it */
  CACHED = 2, /* host memory */
  COMBINED = 3,
  TYPES = 4,
  ATOM = 64,
  BYTES = 5000
};

static const uint32_t seen = GM_MEMORY_HOST_VISIBLE | GM_MEMORY_HOST_COHERENT | GM_MEMORY_PERSISTENT_MAP;

/* The questions that the card was asked, and the types that are full. */
static struct {
  uint32_t allocs, dedicated, maps;
  uint64_t last_bytes;
  uint32_t full; /* bits of types */
  gm_status map_status;
} card;

static inline gm_status card_type(void *device, uint32_t type, gm_memory_type *out, gm_error *err) {
  (void)device, (void)err;
  const uint32_t flags[TYPES] = {GM_MEMORY_DEVICE_LOCAL, GM_MEMORY_DEVICE_LOCAL | seen | GM_MEMORY_WRITE_COMBINED,
                                 (seen & ~(uint32_t)GM_MEMORY_HOST_COHERENT) | GM_MEMORY_HOST_CACHED | GM_MEMORY_SYSTEM,
                                 seen | GM_MEMORY_WRITE_COMBINED | GM_MEMORY_SYSTEM};
  *out = (gm_memory_type){.struct_size = sizeof *out, .flags = flags[type], .heap = type / 2};
  out->atom_bytes = type == CACHED ? ATOM : 1;
  return GM_OK;
}

static inline gm_status card_alloc(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err) {
  gm_memory_params plain = *params;
  plain.type = 0;
  if (card.full >> params->type & 1) return gm__fail(err, GM_ERR_OUT_OF_DEVICE_MEMORY, "card_alloc", "it is full");
  const gm_status status = gm__cpu_backend.memory_alloc(device, &plain, out, err);
  out->type = params->type;
  out->host = NULL;
  card.allocs++;
  card.dedicated += params->flags & GM_ALLOC_DEDICATED ? 1 : 0;
  card.last_bytes = params->bytes;
  return status;
}

static inline gm_status card_map(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                 uint32_t mode, void **out, gm_error *err) {
  (void)device, (void)bytes;
  assert_true(!(mode & GM_MAP_NO_WAIT) || !stream);
  card.maps++;
  if (card.map_status) return gm__fail(err, card.map_status, "card_map", "as it was told");
  *out = (char *)(uintptr_t)memory->address + offset;
  return GM_OK;
}

static const gm_pool_params card_pool = {
    .struct_size = sizeof card_pool, .strategy = GM_STRATEGY_BEST_FIT, .no_vmm = true};

static inline void open_card(pool_bench *bench, const gm_pool_params *pool) {
  gm_backend_ops ops = card_backend(TYPES);
  memset(&card, 0, sizeof card);
  ops.memory_type = card_type;
  ops.memory_alloc = card_alloc;
  ops.map = card_map;
  counted_services_init(&bench->host);
  const gm_context_params params = {
      .struct_size = sizeof params, .services = &bench->host.services, .ignore_environment = true};
  pool_bench_ok(gm_context_create(&params, &bench->ctx, err));
  pool_bench_ok(gm_config_set(bench->ctx, "memory_fraction", "1", err));
  pool_bench_ok(gm_config_set(bench->ctx, "min_free_bytes", "0", err));
  pool_bench_ok(gm_backend_register(bench->ctx, &ops, err));
  pool_bench_ok(gm_device_open_index(bench->ctx, "card", 0, &bench->device, err));
  pool_bench_ok(gm_pool_create(bench->device, pool, &bench->pool, err));
}

static inline uint32_t type_of(gm_pool *pool, const gm_block *block, uint64_t *out_offset) {
  gm_memory memory;
  assert_int_equal(gm_block_memory(pool, block, &memory, out_offset), GM_OK);
  return memory.type;
}

#define ANY .must_be = GM_DEVICE_ACCESSIBLE

#endif
