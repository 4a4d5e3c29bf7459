/* One card that all contexts of the process share, as real cards are: the null backend in disguise. The card gives more
 * than it has when it is asked for more, and remembers the most that it ever gave. Simulated. Needs cmocka.h included
 * before.
 *
 *   shared_card_reset(64 * MIB);
 *   pool_bench one, other;
 *   shared_card_open(&one, NULL); shared_card_open(&other, NULL); ... pool_bench_close(&one); */
#ifndef GM_TESTS_SUPPORT_SHARED_CARD_H
#define GM_TESTS_SUPPORT_SHARED_CARD_H

#include <stdatomic.h>

#include "backends/null/null_backend.h"
#include "core/base/clock.h"
#include "support/pool_bench.h"

#define MIB (UINT64_C(1) << 20)

typedef struct shared_card_state {
  uint64_t capacity;
  _Atomic uint64_t used, most;
  _Atomic int inside;               /* threads that the driver serves now */
  int await;                        /* a call of the driver waits until so many are inside, for a while */
  _Atomic int refuse;               /* so many of the next calls fail */
  _Atomic int calls;                /* of the driver, for memory */
  _Atomic int refuse_from;          /* so many fail once `calls` has reached 1 */
  bool lazy;                        /* memory is used once it is touched: by commit */
  bool stuck;                       /* no call touches it */
  _Atomic int fail;                 /* so many of the next commits fail */
  void (*touching)(uint64_t bytes); /* called in each commit */
} shared_card_state;

static shared_card_state shared_card_own, *shared_card = &shared_card_own; /* a test of processes puts it elsewhere */

/* Where processes tell each other of their reservations; NULL: they do not. The second one is the key reserve.share;
 * NULL: not set.
 */
static const char *shared_card_folder, *shared_card_share = "require";

static inline void shared_card_reset(uint64_t capacity) {
  shared_card->capacity = capacity;
  atomic_store(&shared_card->used, 0);
  atomic_store(&shared_card->most, 0);
  atomic_store(&shared_card->inside, 0);
  atomic_store(&shared_card->refuse, 0);
  atomic_store(&shared_card->refuse_from, 0);
  atomic_store(&shared_card->fail, 0);
  shared_card->await = 0;
  shared_card->lazy = shared_card->stuck = false;
  shared_card->touching = NULL;
}

static inline void shared_card_take(uint64_t bytes) {
  const uint64_t used = atomic_fetch_add(&shared_card->used, bytes) + bytes;
  uint64_t most = atomic_load(&shared_card->most);
  while (used > most && !atomic_compare_exchange_weak(&shared_card->most, &most, used)) {}
}

static inline bool shared_card_is_due(_Atomic int *count) {
  int left = atomic_load(count);
  while (left > 0 && !atomic_compare_exchange_weak(count, &left, left - 1)) {}
  return left > 0;
}

static inline bool shared_card_refuses(void) {
  const bool now = atomic_fetch_add(&shared_card->calls, 1) >= 0;
  return shared_card_is_due(&shared_card->refuse) || (now && shared_card_is_due(&shared_card->refuse_from));
}

/* Gives another thread the time to come in, too. */
static inline void shared_card_enter(void) {
  atomic_fetch_add(&shared_card->inside, 1);
  for (int i = 0; i < 200 && atomic_load(&shared_card->inside) < shared_card->await; i++) gm__sleep_ns(1000 * 1000);
}

static inline gm_status shared_card_alloc(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err) {
  if (shared_card_refuses()) return GM_ERR_OUT_OF_DEVICE_MEMORY;
  shared_card_enter();
  const gm_status status = gm__null_backend.memory_alloc(device, params, out, err);
  if (status == GM_OK && !shared_card->lazy) shared_card_take(out->bytes);
  atomic_fetch_sub(&shared_card->inside, 1);
  return status;
}

static inline gm_status shared_card_free(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err) {
  if (!shared_card->lazy) atomic_fetch_sub(&shared_card->used, memory->bytes);
  return gm__null_backend.memory_free(device, memory, mode, err);
}

static inline gm_status shared_card_create(void *device, const gm_vmm_props *props, uint64_t bytes, uint64_t *out,
                                           gm_error *err) {
  if (shared_card_refuses()) return GM_ERR_OUT_OF_DEVICE_MEMORY;
  shared_card_enter();
  const gm_status status = gm__null_backend.vmm_create(device, props, bytes, out, err);
  if (status == GM_OK && !shared_card->lazy) shared_card_take(bytes);
  atomic_fetch_sub(&shared_card->inside, 1);
  return status;
}

static inline gm_status shared_card_destroy(void *device, uint64_t handle, uint64_t bytes, gm_close_mode mode,
                                            gm_error *err) {
  if (!shared_card->lazy) atomic_fetch_sub(&shared_card->used, bytes);
  return gm__null_backend.vmm_destroy(device, handle, bytes, mode, err);
}

/* Touched pages stay touched. */
static inline gm_status shared_card_commit(void *device, void *stream, const gm_memory *memory, uint64_t offset,
                                           uint64_t bytes, gm_error *err) {
  (void)device, (void)stream, (void)err;
  if (memory->bytes < offset + bytes) return GM_ERR_INVALID_ARGUMENT;
  if (shared_card_is_due(&shared_card->fail)) return GM_ERR_OUT_OF_DEVICE_MEMORY;
  if (shared_card->touching) shared_card->touching(bytes);
  shared_card_take(bytes);
  return GM_OK;
}

static inline gm_status shared_card_memory_type(void *device, uint32_t type, gm_memory_type *out, gm_error *err) {
  const gm_status status = gm__null_backend.memory_type(device, type, out, err);
  if (status == GM_OK && shared_card->lazy) out->flags |= GM_MEMORY_LAZY;
  return status;
}

/* An engine lends its device: the first one. */
static inline gm_status shared_card_adopt(void *driver, const gm_native_device *native, void **out, gm_error *err) {
  (void)native;
  return gm__null_backend.device_open(driver, 0, out, err);
}

static inline gm_status shared_card_adopt_stream(void *device, const gm_native_stream *native, void **out,
                                                 gm_stream_kind *kind, gm_error *err) {
  (void)device, (void)native, (void)out, (void)kind, (void)err;
  return GM_ERR_NOT_SUPPORTED;
}

static inline gm_status shared_card_import_point(void *device, const gm_native_point *native, gm_backend_point *out,
                                                 gm_error *err) {
  (void)device, (void)native, (void)out, (void)err;
  return GM_ERR_NOT_SUPPORTED;
}

static inline gm_status shared_card_figures(void *driver, uint32_t index, void *device, gm_raw_figures *out,
                                            gm_error *err) {
  const gm_status status = gm__null_backend.figures(driver, index, device, out, err);
  const uint64_t used = atomic_load(&shared_card->used);
  out->driver.total_bytes = shared_card->capacity;
  out->driver.free_bytes = used < shared_card->capacity ? shared_card->capacity - used : 0;
  return status;
}

static inline gm_status shared_card_info(void *driver, uint32_t index, void *device, gm_device_info *out,
                                         gm_error *err) {
  const gm_status status = gm__null_backend.device_info(driver, index, device, out, err);
  out->api = GM_API_OTHER;
  out->total_bytes = shared_card->capacity;
  if (shared_card->lazy && !shared_card->stuck) out->capabilities |= GM_CAP_COMMIT;
  return status;
}

/* A context that knows the card. The keys memory_fraction and min_free_bytes: "1", "0": all of it; NULL: not set. */
static inline void shared_card_open_context(pool_bench *bench, const char *fraction, const char *least) {
  gm_backend_ops ops = gm__null_backend;
  ops.name = "shared";
  ops.api = GM_API_OTHER;
  ops.device_info = shared_card_info;
  ops.figures = shared_card_figures;
  ops.memory_alloc = shared_card_alloc;
  ops.memory_free = shared_card_free;
  ops.vmm_create = shared_card_create;
  ops.vmm_destroy = shared_card_destroy;
  ops.memory_type = shared_card_memory_type;
  ops.device_adopt = shared_card_adopt;
  ops.stream_adopt = shared_card_adopt_stream;
  ops.point_import = shared_card_import_point;
  if (shared_card->lazy && !shared_card->stuck) ops.commit = shared_card_commit;
  counted_services_init(&bench->host);
  const gm_context_params context = {.struct_size = sizeof context,
                                     .services = &bench->host.services,
                                     .backends = "shared",
                                     .backend_options = "shared:devices=2",
                                     .ignore_environment = true};
  bench->pool = NULL;
  pool_bench_ok(gm_context_create(&context, &bench->ctx, err));
  pool_bench_ok(gm_backend_register(bench->ctx, &ops, err));
  if (fraction) pool_bench_ok(gm_config_set(bench->ctx, "memory_fraction", fraction, err));
  if (least) pool_bench_ok(gm_config_set(bench->ctx, "min_free_bytes", least, err));
  const char *share = shared_card_folder ? shared_card_share : "off";
  if (share) pool_bench_ok(gm_config_set(bench->ctx, "reserve.share", share, err));
  if (shared_card_folder) pool_bench_ok(gm_config_set(bench->ctx, "reserve.folder", shared_card_folder, err));
}

static inline void shared_card_open_device(pool_bench *bench, const char *fraction, const char *least) {
  shared_card_open_context(bench, fraction, least);
  pool_bench_ok(gm_device_open_index(bench->ctx, "shared", 0, &bench->device, err));
}

static inline void shared_card_open(pool_bench *bench, const gm_pool_params *params) {
  shared_card_open_device(bench, "1", "0");
  pool_bench_ok(gm_pool_create(bench->device, params, &bench->pool, err));
}

/* Opens it like an engine that lends its device to gm. */
static inline void shared_card_open_adopted(pool_bench *bench, const gm_pool_params *params) {
  const gm_native_device native = {sizeof native, GM_API_OTHER};
  shared_card_open_context(bench, NULL, NULL);
  pool_bench_ok(gm_device_adopt_as(bench->ctx, "shared", &native, &bench->device, err));
  pool_bench_ok(gm_pool_create(bench->device, params, &bench->pool, err));
}

#endif
