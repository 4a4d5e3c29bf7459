/* In its turn, each word of each answer of each entry of a backend is another one. Meanwhile gm does all that it does
 * with a device. Nothing may crash, end never, or hand the same memory out twice. When the backend is honest again all
 * can be given back, to the last byte of host memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gm/buffer.h"
#include "gm/cleanup.h"
#include "gm/config.h"
#include "gm/copy.h"
#include "gm/device.h"
#include "gm/managed.h"
#include "gm/peer.h"
#include "gm/pool.h"
#include "gm/share.h"
#include "support/counted_services.h"
#include "support/liar_backend.h"
#include "support/sample.h"
#include "test_data.h"

enum { POOLS = 4, BLOCKS = 32, STREAMS = 3, ENTRIES_MOST = 300 };

/* All that one scenario opens. */
typedef struct scene {
  counted_services host;
  gm_context *ctx;
  gm_device *devices[2];
  gm_stream *streams[STREAMS]; /* the last one is adopted */
  gm_pool *pools[POOLS];
  struct {
    gm_block block;
    gm_pool *pool; /* NULL: none */
  } blocks[BLOCKS];
  uint32_t count;
  void *registered; /* host memory; NULL: none */
} scene;

/* Linked in the place of gm's own: small slots, because half the time would go into touching large ones. */
uint64_t __wrap_gm__ring_usual_bytes(void);

uint64_t __wrap_gm__ring_usual_bytes(void) { return 16 << 10; }

static void ok(gm_status status, const gm_error *err) {
  if (status != GM_OK) {
    fail_msg("%s at %zu of output %u is %llu: %s: %s",
             liar.lie.entry < LIAR_ENTRIES ? liar_words[liar.lie.entry].name : "-", liar.lie.at, liar.lie.output,
             (unsigned long long)liar.lie.value, gm_status_name(status), err->message);
  }
}

/* ---- open ---- */

static void scene_begin(scene *s) {
  gm_error err = {.status = GM_OK};
  memset(s, 0, sizeof *s);
  counted_services_init(&s->host);
  const gm_context_params params = {.struct_size = sizeof params,
                                    .services = &s->host.services,
                                    .host_root = GM_TEST_DATA "/fault/host", /* two million files of the machine's */
                                    .backends = "other",
                                    .ignore_environment = true};
  ok(gm_context_create(&params, &s->ctx, &err), &err);
  ok(gm_backend_register(s->ctx, &liar_ops, &err), &err);
  ok(gm_config_set(s->ctx, "track_allocations", "false", &err), &err);
}

static void scene_discover(scene *s) {
  static gm_device_entry entries[ENTRIES_MOST] = {{.struct_size = sizeof *entries}};
  gm_backend_info infos[16] = {{.struct_size = sizeof *infos}};
  size_t count = 0;
  gm_discover_backends(s->ctx, GM_PROBE_PASSIVE, infos, 16, &count, NULL);
  gm_discover_backends(s->ctx, GM_PROBE_ACTIVE, infos, 16, &count, NULL);
  gm_discover_devices(s->ctx, entries, ENTRIES_MOST, &count, NULL);
}

static void scene_open_devices(scene *s) {
  const gm_native_device native = {sizeof native, GM_API_OTHER};
  gm_device *adopted = NULL;
  for (uint32_t i = 0; i < 2; i++) gm_device_open_index(s->ctx, "other", i, &s->devices[i], NULL);
  for (int i = 0; i < 2; i++) {
    if (gm_device_adopt(s->ctx, &native, &adopted, NULL) == GM_OK)
      assert_int_equal(gm_device_close(adopted, NULL), GM_OK);
  }
}

static void scene_ask_heaps(gm_device *device) {
  gm_heap_info heap = {.struct_size = sizeof heap};
  uint32_t count = 0;
  if (gm_device_heap_count(device, &count, NULL) != GM_OK) return;
  assert_true(count <= 16);
  for (uint32_t i = 0; i < count; i++) gm_device_heap(device, i, &heap, NULL);
}

static void scene_register(scene *s) {
  static char memory[64];
  gm_device *device = s->devices[0];
  s->registered = gm_host_register(device, memory, sizeof memory, NULL) == GM_OK ? memory : NULL;
  const gm_status status = s->registered ? gm_host_unregister(device, memory, NULL) : GM_OK;
  if (status == GM_OK || status == GM_ERR_DEVICE_LOST) s->registered = NULL; /* what was registered is gone */
}

static void scene_ask_device(scene *s) {
  gm_memory_info info = {.struct_size = sizeof info};
  gm_native_device native = {sizeof native, GM_API_OTHER};
  gm_peer_path path = {.struct_size = sizeof path};
  if (!s->devices[0]) return;
  gm_device_memory_info(s->devices[0], &info, NULL);
  gm_device_managed_memory_info(s->devices[0], &info, NULL);
  gm_device_state(s->devices[0], NULL);
  gm_device_native(s->devices[0], &native, NULL);
  scene_ask_heaps(s->devices[0]);
  scene_register(s);
  if (!s->devices[1]) return;
  gm_peer_enable(s->devices[0], s->devices[1], NULL);
  gm_peer_get_info(s->devices[0], s->devices[1], &path, NULL);
}

static gm_status upstream_allocate(void *user, uint64_t bytes, uint32_t align, gm_native_memory *out, void **token) {
  (void)user, (void)bytes, (void)align, (void)out;
  *token = NULL;
  return GM_OK;
}

static void upstream_release(void *user, void *token) { (void)user, (void)token; }

static void scene_open_pools(scene *s) {
  const gm_native_stream native = {sizeof native, GM_API_OTHER};
  const gm_upstream upstream = {.allocate = upstream_allocate, .release = upstream_release};
  const gm_pool_params params[POOLS] = {
      {.struct_size = sizeof params[0], .strategy = GM_STRATEGY_BEST_FIT, .checked = true},
      {.struct_size = sizeof params[0], .strategy = GM_STRATEGY_BUCKET, .share = GM_SHARE_IPC},
      {.struct_size = sizeof params[0], .strategy = GM_STRATEGY_BEST_FIT, .no_vmm = true, .track = true},
      {.struct_size = sizeof params[0], .strategy = GM_STRATEGY_BUCKET, .upstream = &upstream}};
  gm_device *device = s->devices[0];
  for (int i = 0; device && i < STREAMS - 1; i++) gm_stream_create(device, &s->streams[i], NULL);
  gm_stream **adopted = &s->streams[STREAMS - 1], *again = NULL;
  if (device) gm_stream_adopt(device, &native, adopted, NULL);
  if (*adopted && gm_stream_adopt(device, &native, &again, NULL) == GM_OK) gm_stream_close(again, NULL);
  gm_stream *named = NULL;
  for (int i = 0; device && i < 4; i++) gm_stream_of(device, &native, &named, NULL);
  for (int i = 0; i < POOLS; i++) {
    gm_device *of = i == 2 && s->devices[1] ? s->devices[1] : device;
    if (of) gm_pool_create(of, &params[i], &s->pools[i], NULL);
  }
}

/* ---- use ---- */

/* Nothing that is out is handed out a second time. */
static void scene_keep(scene *s, gm_pool *pool, const gm_block *block) {
  for (uint32_t i = 0; i < s->count; i++) {
    const gm_block *other = &s->blocks[i].block;
    if (s->blocks[i].pool != pool || block->address >= other->address + other->bytes) continue;
    if (other->address < block->address + block->bytes)
      fail_msg("%s: one memory twice", liar_words[liar.lie.entry].name);
  }
  assert_true(s->count < BLOCKS);
  s->blocks[s->count].pool = pool;
  s->blocks[s->count++].block = *block;
}

static void scene_take(scene *s, gm_pool *pool) {
  static const gm_request requests[] = {{.bytes = 300, .align = 512, .flags = GM_INSERT_WAIT},
                                        {.bytes = 5 << 20, .flags = GM_ZERO},
                                        {.bytes = 70000, .flags = GM_HOST_VISIBLE | GM_COMMIT, .must_be = GM_ANYWHERE}};
  for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
    gm_request request = requests[i];
    gm_block block;
    request.stream = gm_pool_device(pool) == s->devices[0] ? s->streams[i % STREAMS] : NULL;
    if (gm_alloc(pool, &request, &block) > GM_ACQUIRE_NEEDS_BARRIER) {
      gm_explanation report = {.struct_size = sizeof report};
      gm_explain(pool, &request, &report, NULL);
      continue;
    }
    assert_true(block.address % 256 == 0 && block.address != 0 && block.bytes >= request.bytes);
    scene_keep(s, pool, &block);
  }
}

static void scene_share(gm_pool *pool, const gm_block *block) {
  gm_shared shared = {.struct_size = sizeof shared, .fd = -1};
  gm_native_memory native = {sizeof native, GM_API_OTHER};
  gm_block more;
  uint64_t view;
  gm_block_native(pool, block, &native, NULL);
  if (gm_block_view_create(pool, block, 0, 256, &view, NULL) == GM_OK) gm_block_view_destroy(pool, view, NULL);
  for (int i = 0; i < 2; i++) gm_block_object(pool, block, 0, 256, &native, NULL);
  if (gm_block_export(pool, block, &shared, NULL) != GM_OK) return;
  if (gm_block_import(pool, &shared, &more, NULL) == GM_OK) gm_free(pool, &more, NULL);
  gm_shared_close(&shared);
}

static void scene_copy(gm_pool *pool, const gm_block *block, gm_stream *stream) {
  unsigned char bytes[64] = {0};
  gm_point point = {0, 0, 0};
  void *pointer;
  bool done;
  gm_device *device = gm_pool_device(pool);
  gm_block_write(pool, block, 0, bytes, sizeof bytes, stream, NULL, NULL);
  gm_block_read(pool, block, 1, bytes, sizeof bytes, stream, NULL, NULL);
  gm_block_copy(pool, block, 0, pool, block, 128, 100, stream, NULL, NULL);
  gm_block_copy_record(pool, block, 0, pool, block, 128, 100, 1, NULL);
  const gm_rect rect = {.row_bytes = 4, .rows = 2, .slices = 2, .dst_offset = 100};
  gm_block_write_rect(pool, block, bytes, &rect, stream, NULL, NULL);
  gm_block_copy_rect(pool, block, pool, block, &rect, stream, NULL, NULL);
  const gm_rect back = {.row_bytes = 4, .rows = 2, .slices = 2, .src_offset = 100};
  if (gm_block_read_rect(pool, block, bytes, &back, stream, &point, NULL) == GM_OK) gm_point_release(device, &point);
  point = (gm_point){0, 0, 0};
  if (gm_block_fill(pool, block, 0, 256, "ab", 2, stream, &point, NULL) == GM_OK) {
    if (stream) gm_stream_wait(stream, &point, NULL);
    for (int i = 0; i < 3 && stream; i++) gm_stream_passed(stream, &point, NULL); /* not passed at each look */
    gm_point_done(device, &point, &done, NULL);
    gm_point_wait(device, &point, 1000, NULL);
    gm_point_release(device, &point);
  }
  gm_block_host(pool, block, &pointer, NULL);
  gm_block_invalidate(pool, block, 1, 100, NULL);
  gm_block_flush(pool, block, 1, 100, NULL);
  if (gm_block_map(pool, block, 0, 200, GM_MAP_READ | GM_MAP_WRITE, stream, &pointer, NULL) == GM_OK) {
    const gm_status status = gm_block_unmap(pool, block, pointer, stream, NULL);
    if (status == GM_OK || status == GM_ERR_DEVICE_LOST) return; /* what was mapped is gone */
    liar.honest = true;
    assert_int_equal(gm_block_unmap(pool, block, pointer, stream, NULL), GM_OK);
    liar.honest = false;
  }
}

static void scene_points(const scene *s) {
  const gm_native_point given = {sizeof given, GM_API_OTHER};
  gm_native_point native = {sizeof native, GM_API_OTHER};
  gm_point point;
  for (int i = 0; i < STREAMS; i++) {
    gm_stream *stream = s->streams[i];
    if (!stream) continue;
    gm_stream_flush(stream, NULL);
    gm_stream_barrier(stream, NULL);
    if (gm_stream_record(stream, &point, NULL) == GM_OK) {
      gm_point_native(s->devices[0], &point, &native, NULL);
      gm_point_release(s->devices[0], &point);
    }
    if (gm_stream_import_point(stream, &given, &point, NULL) == GM_OK) gm_point_release(s->devices[0], &point);
    gm_stream_sync(stream, NULL);
  }
}

static void scene_managed(gm_pool *pool, gm_stream *stream) {
  const gm_managed_params params = {.struct_size = sizeof params, .bytes = 4096};
  gm_managed *managed = NULL;
  if (gm_managed_create(pool, &params, &managed, NULL) != GM_OK) return;
  gm_managed_prefetch(managed, GM_MANAGED_ON_DEVICE, 0, 4096, stream, NULL, NULL);
  gm_managed_advise(managed, GM_ADVICE_READ_MOSTLY, GM_MANAGED_ON_HOST, 0, 4096, true, NULL);
  if (gm_managed_destroy(managed, stream, NULL) == GM_OK) return;
  liar.honest = true;
  assert_int_equal(gm_managed_destroy(managed, stream, NULL), GM_OK);
  liar.honest = false;
}

static void scene_use(scene *s) {
  const gm_native_memory native = {sizeof native, GM_API_OTHER};
  gm_stats stats = {.struct_size = sizeof stats};
  gm_block block;
  for (int i = 0; i < POOLS; i++) {
    gm_pool *pool = s->pools[i];
    if (!pool) continue;
    const uint32_t first = s->count;
    scene_take(s, pool);
    gm_stream *stream = i == 2 ? NULL : s->streams[i % STREAMS];
    if (s->count > first) {
      scene_copy(pool, &s->blocks[s->count - 1].block, stream);
      scene_share(pool, &s->blocks[first].block);
    }
    if (s->count > first + 1 && gm_free(pool, &s->blocks[s->count - 1].block, stream) == GM_OK) s->count--;
    scene_take(s, pool);
    if (gm_block_wrap(pool, &native, &block, NULL) == GM_OK) gm_free(pool, &block, NULL);
    if (i == 0) scene_managed(pool, stream);
    gm_pool_collect(pool);
    gm_pool_trim(pool, 0);
    gm_pool_stats(pool, &stats);
  }
}

static void scene_peers(const scene *s) {
  const gm_block *from = NULL, *to = NULL;
  gm_peer_result result = {.struct_size = sizeof result};
  for (uint32_t i = 0; i < s->count; i++) {
    if (s->blocks[i].pool == s->pools[0]) from = &s->blocks[i].block;
    if (s->blocks[i].pool == s->pools[2]) to = &s->blocks[i].block;
  }
  if (!from || !to) return;
  gm_block_copy_peer(s->pools[2], to, 0, s->pools[0], from, 0, 256, NULL, NULL, &result, NULL);
  gm_peer_disable(s->devices[0], s->devices[1], NULL);
}

/* ---- close ---- */

static void scene_end(scene *s) {
  gm_error err = {.status = GM_OK};
  liar.honest = true;
  for (uint32_t i = 0; i < s->count; i++) ok(gm_free(s->blocks[i].pool, &s->blocks[i].block, NULL), &err);
  for (int i = 0; i < POOLS; i++) {
    gm_stats stats = {.struct_size = sizeof stats};
    if (!s->pools[i]) continue;
    gm_pool_trim(s->pools[i], 0);
    gm_pool_stats(s->pools[i], &stats);
    if (stats.in_use_bytes || stats.reserved_bytes || stats.reclaimable_bytes) {
      fail_msg("%s at %zu of output %u is %llu: %llu bytes in use, %llu reserved", liar_words[liar.lie.entry].name,
               liar.lie.at, liar.lie.output, (unsigned long long)liar.lie.value, (unsigned long long)stats.in_use_bytes,
               (unsigned long long)stats.reserved_bytes);
    }
    ok(gm_pool_destroy(s->pools[i], &err), &err);
  }
  for (int i = 0; i < STREAMS; i++) ok(gm_stream_close(s->streams[i], &err), &err);
  if (s->registered) ok(gm_host_unregister(s->devices[0], s->registered, &err), &err);
  for (int i = 0; i < 2; i++) ok(gm_device_close(s->devices[i], &err), &err);
  ok(gm_context_destroy(s->ctx, &err), &err);
  counted_services_check(&s->host);
  if (liar.calls > LIAR_CALLS_MOST) fail_msg("%s: no end", liar_words[liar.lie.entry].name);
}

static void play(const liar_lie *lie) {
  scene s;
  liar_reset();
  liar.lie = *lie;
  scene_begin(&s);
  scene_discover(&s);
  scene_open_devices(&s);
  scene_ask_device(&s);
  scene_open_pools(&s);
  scene_points(&s);
  scene_use(&s);
  scene_peers(&s);
  scene_end(&s);
}

/* ---- the table ---- */

/* Entries that the core never calls, or for devices of CUDA alone. */
static bool is_spare_entry(uint32_t entry) {
  switch (entry) {
    case LIAR_commit:
    case LIAR_copy_many:
    case LIAR_device_call:
    case LIAR_expand:
    case LIAR_host_alloc: /* the liar has no such memory */
    case LIAR_share_export_vmm:
    case LIAR_share_import_vmm: return true;
    default: return false;
  }
}

/* An honest backend: everything is called, and everything it gives is known; a new entry is forgotten nowhere. */
static void test_the_scenario_calls_every_entry(void **state) {
  (void)state;
  play(&(liar_lie){.entry = LIAR_ENTRIES});
  for (uint32_t entry = 0; entry < LIAR_ENTRIES; entry++) {
    if (!liar.calls_of[entry] != is_spare_entry(entry)) fail_msg("%s: called or not", liar_words[entry].name);
  }
  const char *forgotten = liar_forgets_an_output();
  if (forgotten) fail_msg("%s has another number of outputs", forgotten);
}

/* A descriptor is the core's to close: one that is another's nobody could tell. */
static bool is_descriptor(uint32_t entry, size_t at) {
  const size_t fd = offsetof(gm_shared, fd);
  return entry == LIAR_share_export && at + 8 > fd && at < fd + sizeof(int32_t);
}

static void lie_with(uint32_t entry, uint32_t output, size_t width, const uint64_t *values, size_t count, size_t most) {
  for (size_t at = 0; at + width <= liar_sizes[entry][output]; at += width) {
    if (is_descriptor(entry, at)) continue;
    for (size_t i = 0; i < (count < most ? count : most); i++) {
      const uint64_t value = values[(at / width + i) % count];
      if (!sample_takes(8)) continue;
      play(&(liar_lie){entry, output, at, width, value, .every = 1});
      play(&(liar_lie){entry, output, at, width, value, .every = 2});
    }
  }
}

static void test_every_word_of_every_answer(void **state) {
  static const uint64_t words[] = {0, 1, 3, 4097, UINT64_C(1) << 31, UINT64_C(1) << 32, UINT64_C(1) << 63, UINT64_MAX};
  static const uint64_t halves[] = {0, 1, 3, 4097, 1u << 31, UINT32_MAX};
  static const uint64_t bytes[] = {0, 1, 2, 127, 255};
  (void)state;
  for (uint32_t entry = 0; entry < LIAR_ENTRIES; entry++) {
    for (uint32_t output = 0; output < LIAR_OUTPUTS; output++) {
      const size_t size = liar_sizes[entry][output];
      const size_t most = size <= 1024 ? 8 : 2; /* figures have tests of their own */
      lie_with(entry, output, 8, words, sizeof words / sizeof *words, most);
      if (size % 8 || size > 8) lie_with(entry, output, 4, halves, sizeof halves / sizeof *halves, most);
      if (size <= 1024) lie_with(entry, output, 1, bytes, sizeof bytes / sizeof *bytes, most);
    }
  }
}

static void test_every_status(void **state) {
  static const uint64_t statuses[] = {
      GM_ERR_DRIVER, GM_ERR_OUT_OF_DEVICE_MEMORY, GM_ERR_NOT_SUPPORTED, GM_ERR_DEVICE_LOST, 9999, UINT32_MAX};
  (void)state;
  for (uint32_t entry = 0; entry < LIAR_ENTRIES; entry++) {
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
      for (uint32_t every = 1; every <= 3; every++) {
        play(&(liar_lie){.entry = entry, .value = statuses[i], .every = every});
      }
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_scenario_calls_every_entry),
      cmocka_unit_test(test_every_word_of_every_answer),
      cmocka_unit_test(test_every_status),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
