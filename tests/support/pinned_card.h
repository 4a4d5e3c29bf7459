/* A card with memory of its own that can run out, and a type of pinned host memory: the CPU backend in disguise. Needs
 * cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_PINNED_CARD_H
#define GM_TESTS_SUPPORT_PINNED_CARD_H

#include "support/discrete_card.h"
#include "support/pool_bench.h"

#define MIB (UINT64_C(1) << 20)

static struct {
  uint64_t local_left, pinned_left;
  bool break_copies;
  bool no_pointer; /* pinned memory has no address for the host until it is mapped, by a command */
  unsigned maps, unmaps;
  bool break_unmap;
} card;

static inline gm_status card_type(void *device, uint32_t type, gm_memory_type *out, gm_error *err) {
  gm_status status = gm__cpu_backend.memory_type(device, 0, out, err);
  if (type == 1) out->flags = (out->flags & ~(uint32_t)GM_MEMORY_DEVICE_LOCAL) | GM_MEMORY_PINNED;
  if (type == 1 && card.no_pointer) out->flags &= ~(uint32_t)(GM_MEMORY_HOST_POINTER | GM_MEMORY_PERSISTENT_MAP);
  return status;
}

static inline gm_status card_alloc(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err) {
  uint64_t *left = params->type == 0 ? &card.local_left : &card.pinned_left;
  gm_memory_params cpu = *params;
  cpu.type = 0;
  if (params->bytes > *left) return params->type == 0 ? GM_ERR_OUT_OF_DEVICE_MEMORY : GM_ERR_PINNED_LIMIT;
  gm_status status = gm__cpu_backend.memory_alloc(device, &cpu, out, err);
  if (status) return status;
  *left -= params->bytes;
  out->bytes = params->bytes;
  out->type = params->type;
  if (params->type == 1 && card.no_pointer) out->host = NULL;
  return GM_OK;
}

static inline gm_status card_free(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err) {
  *(memory->type == 0 ? &card.local_left : &card.pinned_left) += memory->bytes;
  gm_memory cpu = *memory;
  cpu.type = 0;
  cpu.bytes = (memory->bytes + 4095) / 4096 * 4096;
  return gm__cpu_backend.memory_free(device, &cpu, mode, err);
}

static inline gm_status card_copy(void *device, void *stream, const gm_copy_item *item, gm_backend_point *out,
                                  gm_error *err) {
  if (card.break_copies) return GM_ERR_DRIVER;
  return gm__cpu_backend.copy(device, stream, item, out, err);
}

static inline gm_status card_write(void *device, void *stream, const gm_memory *dst, uint64_t offset, const void *src,
                                   uint64_t bytes, gm_backend_point *out, gm_error *err) {
  if (card.break_copies) return GM_ERR_DRIVER;
  return gm__cpu_backend.copy_to_device(device, stream, dst, offset, src, bytes, out, err);
}

static inline gm_status card_map(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                 uint32_t mode, void **out, gm_error *err) {
  if (memory->type == 1 && card.no_pointer && (mode & GM_MAP_NO_WAIT || !stream)) return GM_ERR_NOT_SUPPORTED;
  card.maps++;
  return gm__cpu_backend.map(device, stream, memory, offset, bytes, mode, out, err);
}

static inline gm_status card_unmap(void *device, void *stream, const gm_memory *memory, void *pointer, gm_error *err) {
  if (card.break_unmap) return GM_ERR_DRIVER;
  card.unmaps++;
  return gm__cpu_backend.unmap(device, stream, memory, pointer, err);
}

static inline void open_card(pool_bench *bench, uint64_t local, uint64_t pinned) {
  card.local_left = local;
  card.pinned_left = pinned;
  card.break_copies = card.break_unmap = false;
  card.maps = card.unmaps = 0;
  gm_backend_ops ops = card_backend(2);
  ops.memory_type = card_type;
  ops.memory_alloc = card_alloc;
  ops.memory_free = card_free;
  ops.map = card_map;
  ops.unmap = card_unmap;
  ops.copy = card_copy;
  ops.copy_to_device = card_write;
  counted_services_init(&bench->host);
  gm_context_params context = {
      .struct_size = sizeof context, .services = &bench->host.services, .ignore_environment = true};
  gm_pool_params params = {
      .struct_size = sizeof params, .checked = true, .track = true, .name = "card", .no_vmm = true};
  pool_bench_ok(gm_context_create(&context, &bench->ctx, err));
  pool_bench_ok(gm_backend_register(bench->ctx, &ops, err));
  pool_bench_ok(gm_device_open_index(bench->ctx, "card", 0, &bench->device, err));
  pool_bench_ok(gm_pool_create(bench->device, &params, &bench->pool, err));
}

#endif
