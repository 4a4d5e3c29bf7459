/* A card that maps pages, and has only so many of them. Its calls for virtual memory can be told to fail. It is the CPU
 * backend in disguise. Blocks have addresses that the host can read. Needs cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_PAGED_CARD_H
#define GM_TESTS_SUPPORT_PAGED_CARD_H

#include "backends/cpu/cpu_backend.h"
#include "support/pool_bench.h"

#define MIB (UINT64_C(1) << 20)

static struct {
  uint64_t all, left;
  uint64_t fail_create, fail_map, fail_access, fail_unmap, fail_copy; /* 1: the next call fails, and no later one */
  bool refuse_unmap;
  bool hidden; /* its ranges say no host address, so gm copies by streams */
} paged_card;

static inline bool paged_card_fails(uint64_t *counter) { return *counter && --*counter == 0; }

static inline gm_status paged_card_create(void *device, const gm_vmm_props *props, uint64_t bytes, uint64_t *out,
                                          gm_error *err) {
  if (paged_card_fails(&paged_card.fail_create)) return GM_ERR_DRIVER;
  if (bytes > paged_card.left) return GM_ERR_OUT_OF_DEVICE_MEMORY;
  const gm_status status = gm__cpu_backend.vmm_create(device, props, bytes, out, err);
  if (!status) paged_card.left -= bytes;
  return status;
}

static inline gm_status paged_card_destroy(void *device, uint64_t handle, uint64_t bytes, gm_close_mode mode,
                                           gm_error *err) {
  paged_card.left += bytes;
  return gm__cpu_backend.vmm_destroy(device, handle, bytes, mode, err);
}

static inline gm_status paged_card_map(void *device, uint64_t address, uint64_t bytes, uint64_t handle, uint64_t offset,
                                       gm_error *err) {
  if (paged_card_fails(&paged_card.fail_map)) return GM_ERR_DRIVER;
  return gm__cpu_backend.vmm_map(device, address, bytes, handle, offset, err);
}

static inline gm_status paged_card_access(void *device, uint64_t address, uint64_t bytes, gm_error *err) {
  if (paged_card_fails(&paged_card.fail_access)) return GM_ERR_DRIVER;
  return gm__cpu_backend.vmm_access(device, address, bytes, err);
}

static inline gm_status paged_card_unmap(void *device, uint64_t address, uint64_t bytes, gm_error *err) {
  if (paged_card.refuse_unmap || paged_card_fails(&paged_card.fail_unmap)) return GM_ERR_DRIVER;
  return gm__cpu_backend.vmm_unmap(device, address, bytes, err);
}

static inline gm_status paged_card_memory(void *device, uint64_t address, uint64_t bytes, uint32_t type, gm_memory *out,
                                          gm_error *err) {
  const gm_status status = gm__cpu_backend.vmm_memory(device, address, bytes, type, out, err);
  if (paged_card.hidden) out->host = NULL;
  return status;
}

static inline gm_memory paged_card_seen(const gm_memory *memory) {
  gm_memory seen = *memory;
  seen.host = (void *)(uintptr_t)memory->address;
  return seen;
}

static inline gm_status paged_card_read(void *device, void *stream, const gm_memory *src, uint64_t offset, void *dst,
                                        uint64_t bytes, gm_backend_point *out, gm_error *err) {
  const gm_memory seen = paged_card_seen(src);
  if (paged_card_fails(&paged_card.fail_copy)) return GM_ERR_DRIVER;
  return gm__cpu_backend.copy_to_host(device, stream, &seen, offset, dst, bytes, out, err);
}

static inline gm_status paged_card_write(void *device, void *stream, const gm_memory *dst, uint64_t offset,
                                         const void *src, uint64_t bytes, gm_backend_point *out, gm_error *err) {
  const gm_memory seen = paged_card_seen(dst);
  if (paged_card_fails(&paged_card.fail_copy)) return GM_ERR_DRIVER;
  return gm__cpu_backend.copy_to_device(device, stream, &seen, offset, src, bytes, out, err);
}

static inline gm_status paged_card_free(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err) {
  const gm_memory seen = paged_card_seen(memory);
  return gm__cpu_backend.memory_free(device, &seen, mode, err);
}

/* A pool on the card. *bench.host counts the host memory. */
static inline void open_paged_card_as(pool_bench *bench, uint64_t bytes, bool hidden) {
  memset(&paged_card, 0, sizeof paged_card);
  paged_card.all = paged_card.left = bytes;
  paged_card.hidden = hidden;
  gm_backend_ops ops = gm__cpu_backend;
  ops.name = "paged";
  ops.api = GM_API_OTHER;
  ops.vmm_create = paged_card_create;
  ops.vmm_destroy = paged_card_destroy;
  ops.vmm_map = paged_card_map;
  ops.vmm_access = paged_card_access;
  ops.vmm_unmap = paged_card_unmap;
  ops.vmm_memory = paged_card_memory;
  ops.copy_to_host = paged_card_read;
  ops.copy_to_device = paged_card_write;
  ops.memory_free = paged_card_free;
  counted_services_init(&bench->host);
  gm_context_params context = {.struct_size = sizeof context,
                               .services = &bench->host.services,
                               .backend_options = "paged:memfd", /* valgrind moves no private pages */
                               .ignore_environment = true};
  gm_pool_params params = {.struct_size = sizeof params, .track = true, .name = "pages"};
  pool_bench_ok(gm_context_create(&context, &bench->ctx, err));
  pool_bench_ok(gm_backend_register(bench->ctx, &ops, err));
  pool_bench_ok(gm_device_open_index(bench->ctx, "paged", 0, &bench->device, err));
  pool_bench_ok(gm_pool_create(bench->device, &params, &bench->pool, err));
}

static inline void open_paged_card(pool_bench *bench, uint64_t bytes) { open_paged_card_as(bench, bytes, false); }

#endif
