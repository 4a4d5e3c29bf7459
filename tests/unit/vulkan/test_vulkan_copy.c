/* Copies and fills of the Vulkan backend against plain memory, directly and through staging, validation on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "backends/vulkan/vulkan_entries.h"
#include "backends/vulkan/vulkan_staging.h"
#include "backends/vulkan/vulkan_stream.h"
#include "core/base/clock.h"
#include "core/base/thread.h"
#include "support/vulkan_fixture.h"

enum { BYTES = 40000, STEPS = 150, THREADS = 4, LARGE = (40 << 20) + 3 };

#define PATIENCE_NS UINT64_C(20000000000)

static const char *const modes[] = {"validation", "validation,no_host_visible"};

static uint32_t rng_next(uint64_t *rng) {
  *rng = *rng * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*rng >> 33);
}

/* One piece of device memory, and what must be in it. */
typedef struct copy_model {
  const vulkan_fixture *fixture;
  void *stream;
  gm_memory memory;
  uint8_t *expected;
  uint8_t *scratch;
  uint64_t rng;
} copy_model;

static void model_open(copy_model *model, const vulkan_fixture *fixture, void *stream, uint64_t seed) {
  *model =
      (copy_model){fixture, stream, vulkan_fixture_alloc(fixture, 0, BYTES), calloc(1, BYTES), calloc(1, BYTES), seed};
  const uint8_t zero = 0;
  assert_int_equal(fixture->ops->fill(fixture->device, stream, &model->memory, 0, BYTES, &zero, 1, NULL, NULL), GM_OK);
}

static void model_close(copy_model *model) {
  vulkan_fixture_free(model->fixture, &model->memory);
  free(model->expected);
  free(model->scratch);
}

static void model_check(copy_model *model) {
  assert_int_equal(model->fixture->ops->copy_to_host(model->fixture->device, model->stream, &model->memory, 0,
                                                     model->scratch, BYTES, NULL, NULL),
                   GM_OK);
  assert_memory_equal(model->scratch, model->expected, BYTES);
}

static void model_range(copy_model *model, uint64_t *offset, uint64_t *bytes) {
  *offset = rng_next(&model->rng) % BYTES;
  uint64_t most = rng_next(&model->rng) % 3 ? 40 : BYTES;
  uint64_t left = BYTES - *offset;
  *bytes = rng_next(&model->rng) % (most < left ? most + 1 : left + 1);
}

static void model_fill(copy_model *model) {
  uint64_t offset, bytes;
  uint8_t pattern[16];
  uint32_t size = 1u << rng_next(&model->rng) % 5;
  model_range(model, &offset, &bytes);
  for (uint32_t i = 0; i < 16; i++) pattern[i] = (uint8_t)rng_next(&model->rng);
  for (uint64_t i = 0; i < bytes; i++) model->expected[offset + i] = pattern[i % size];
  gm_backend_point point = {0};
  assert_int_equal(model->fixture->ops->fill(model->fixture->device, model->stream, &model->memory, offset, bytes,
                                             pattern, size, rng_next(&model->rng) % 2 ? &point : NULL, NULL),
                   GM_OK);
}

static void model_write(copy_model *model) {
  uint64_t offset, bytes;
  model_range(model, &offset, &bytes);
  for (uint64_t i = 0; i < bytes; i++) model->expected[offset + i] = (uint8_t)rng_next(&model->rng);
  gm_backend_point point = {0};
  assert_int_equal(model->fixture->ops->copy_to_device(model->fixture->device, model->stream, &model->memory, offset,
                                                       model->expected + offset, bytes,
                                                       rng_next(&model->rng) % 2 ? &point : NULL, NULL),
                   GM_OK);
}

static void model_copy(copy_model *model) {
  uint64_t bytes = rng_next(&model->rng) % (BYTES / 2);
  uint64_t from = rng_next(&model->rng) % (BYTES / 2 - bytes + 1);
  uint64_t to = BYTES / 2 + rng_next(&model->rng) % (BYTES / 2 - bytes + 1);
  if (rng_next(&model->rng) % 2) {
    uint64_t swap = from;
    from = to, to = swap;
  }
  memcpy(model->expected + to, model->expected + from, bytes);
  gm_backend_point point = {0};
  const gm_copy_item item = {&model->memory, from, &model->memory, to, bytes};
  assert_int_equal(model->fixture->ops->copy(model->fixture->device, model->stream, &item,
                                             rng_next(&model->rng) % 2 ? &point : NULL, NULL),
                   GM_OK);
}

static void model_step(copy_model *model) {
  switch (rng_next(&model->rng) % 4) {
    case 0: model_fill(model); break;
    case 1: model_write(model); break;
    case 2: model_copy(model); break;
    default: model_check(model); break;
  }
}

static void test_random(void **state) {
  (void)state;
  for (size_t mode = 0; mode < 2; mode++) {
    vulkan_fixture fixture;
    copy_model model;
    vulkan_fixture_open(&fixture, modes[mode]);
    model_open(&model, &fixture, fixture.stream, 20261 + mode);
    for (int i = 0; i < STEPS; i++) model_step(&model);
    model_check(&model);
    model_close(&model);
    vulkan_fixture_close(&fixture);
  }
}

static void run_model(void *user) {
  copy_model *model = user;
  for (int i = 0; i < STEPS / 3; i++) model_step(model);
  model_check(model);
}

/* Threads with streams of their own on one queue, sharing staging. */
static void test_threads(void **state) {
  (void)state;
  vulkan_fixture fixture;
  copy_model models[THREADS];
  gm__thread threads[THREADS];
  vulkan_fixture_open(&fixture, modes[1]);
  for (uint32_t i = 0; i < THREADS; i++) {
    void *stream;
    gm_stream_kind kind;
    assert_int_equal(fixture.ops->stream_create(fixture.device, &stream, &kind, NULL), GM_OK);
    model_open(&models[i], &fixture, stream, 7 + i);
  }
  for (uint32_t i = 0; i < THREADS; i++) {
    assert_int_equal(gm__thread_create(&threads[i], "copies", run_model, &models[i], NULL), GM_OK);
  }
  for (uint32_t i = 0; i < THREADS; i++) {
    gm__thread_join(&threads[i]);
    fixture.ops->stream_close(fixture.device, models[i].stream, GM_CLOSE_NORMAL);
    model_close(&models[i]);
  }
  vulkan_fixture_close(&fixture);
}

/* More than all staging holds, asynchronously. */
static void test_larger_than_staging(void **state) {
  (void)state;
  vulkan_fixture fixture;
  vulkan_fixture_open(&fixture, modes[1]);
  uint8_t *bytes = malloc(LARGE), *back = calloc(1, LARGE);
  uint64_t rng = 5;
  assert_true(bytes && back);
  for (size_t i = 0; i < LARGE; i++) bytes[i] = (uint8_t)rng_next(&rng);
  gm_memory memory = vulkan_fixture_alloc(&fixture, 0, LARGE);
  uint64_t held = vulkan_fixture_held(&fixture);
  gm_backend_point written = {0}, read = {0};
  assert_int_equal(fixture.ops->copy_to_device(fixture.device, fixture.stream, &memory, 0, bytes, 10, NULL, NULL),
                   GM_OK);
  assert_int_equal(vulkan_fixture_held(&fixture) - held, 2 << 20); /* as much as it needs */
  assert_int_equal(
      fixture.ops->copy_to_device(fixture.device, fixture.stream, &memory, 0, bytes, LARGE, &written, NULL), GM_OK);
  assert_true(vulkan_fixture_held(&fixture) - held <= 16 << 20);
  assert_int_equal(fixture.ops->copy_to_host(fixture.device, fixture.stream, &memory, 0, back, LARGE, &read, NULL),
                   GM_OK);
  assert_int_equal(fixture.ops->point_wait(fixture.device, &read, UINT64_MAX, NULL), GM_OK);
  assert_memory_equal(bytes, back, LARGE);
  for (size_t i = 0; i < LARGE; i++) bytes[i] = (uint8_t)("0123456789abcdef"[i % 16]);
  assert_int_equal(
      fixture.ops->fill(fixture.device, fixture.stream, &memory, 0, LARGE, "0123456789abcdef", 16, NULL, NULL), GM_OK);
  assert_int_equal(fixture.ops->copy_to_host(fixture.device, fixture.stream, &memory, 0, back, LARGE, NULL, NULL),
                   GM_OK);
  assert_memory_equal(bytes, back, LARGE);
  vulkan_fixture_free(&fixture, &memory);
  vulkan_fixture_close(&fixture);
  free(bytes);
  free(back);
}

/* Threads that hold staging and wait for the lock of an engine's queue, and one that copies on another queue. */
typedef struct held_queue {
  vulkan_fixture fixture;
  void *stream; /* on the engine's queue */
  gm_memory memory;
  uint8_t *bytes, *back;
  gm__mutex mutex; /* of what follows */
  gm__cond changed;
  uint32_t waiting, done;
  bool open, locked;
} held_queue;

static void held_lock(void *user) {
  held_queue *held = user;
  gm__mutex_lock(&held->mutex);
  held->waiting++;
  gm__cond_broadcast(&held->changed);
  while (!held->open || held->locked) gm__cond_wait(&held->changed, &held->mutex);
  held->locked = true;
  gm__mutex_unlock(&held->mutex);
}

static void held_unlock(void *user) {
  held_queue *held = user;
  gm__mutex_lock(&held->mutex);
  held->locked = false;
  gm__cond_broadcast(&held->changed);
  gm__mutex_unlock(&held->mutex);
}

static bool held_await(held_queue *held, const uint32_t *count, uint32_t wanted) {
  const uint64_t deadline = gm__deadline_after(PATIENCE_NS);
  gm__mutex_lock(&held->mutex);
  for (bool there = true; *count < wanted && there;) {
    there = gm__cond_wait_until(&held->changed, &held->mutex, deadline);
  }
  const bool reached = *count >= wanted;
  gm__mutex_unlock(&held->mutex);
  return reached;
}

static void held_open(held_queue *held) {
  *held = (held_queue){.bytes = malloc(LARGE), .back = calloc(1, LARGE)};
  assert_true(held->bytes && held->back);
  gm__mutex_init(&held->mutex, GM__RANK_LEAF);
  gm__cond_init(&held->changed);
  vulkan_fixture_open(&held->fixture, modes[1]);
  const gm__vulkan_stream *own = held->fixture.stream;
  const gm_vulkan_queue queue = {.head = {sizeof queue, GM_API_VULKAN},
                                 .queue = (uintptr_t)own->queue->handle,
                                 .family = own->queue->family,
                                 .may_submit = true,
                                 .lock = held_lock,
                                 .unlock = held_unlock,
                                 .user = held};
  gm_stream_kind kind;
  const gm_backend_ops *ops = held->fixture.ops;
  assert_int_equal(ops->stream_adopt(held->fixture.device, &queue.head, &held->stream, &kind, NULL), GM_OK);
  held->memory = vulkan_fixture_alloc(&held->fixture, 0, LARGE);
  for (size_t i = 0; i < LARGE; i++) held->bytes[i] = (uint8_t)(i * 7 + i / 251);
}

static void held_close(held_queue *held) {
  held->fixture.ops->stream_close(held->fixture.device, held->stream, GM_CLOSE_NORMAL);
  vulkan_fixture_free(&held->fixture, &held->memory);
  vulkan_fixture_close(&held->fixture);
  gm__cond_destroy(&held->changed);
  gm__mutex_destroy(&held->mutex);
  free(held->bytes), free(held->back);
}

static void held_write(void *user) {
  held_queue *held = user;
  const gm_backend_ops *ops = held->fixture.ops;
  ops->copy_to_device(held->fixture.device, held->stream, &held->memory, 0, held->bytes, 64, NULL, NULL);
}

static void held_copy(void *user) {
  held_queue *held = user;
  const gm_backend_ops *ops = held->fixture.ops;
  void *device = held->fixture.device, *stream = held->fixture.stream;
  gm_backend_point point;
  const bool wrote = ops->copy_to_device(device, stream, &held->memory, 0, held->bytes, LARGE, &point, NULL) == GM_OK &&
                     ops->copy_to_host(device, stream, &held->memory, 0, held->back, LARGE, NULL, NULL) == GM_OK;
  gm__mutex_lock(&held->mutex);
  held->done += wrote;
  gm__cond_broadcast(&held->changed);
  gm__mutex_unlock(&held->mutex);
}

static void test_no_copy_waits_for_staging_in_a_hook(void **state) {
  (void)state;
  held_queue held;
  gm__thread writers[VULKAN_STAGING_SLOTS], copier;
  held_open(&held);
  for (uint32_t i = 0; i < VULKAN_STAGING_SLOTS; i++) {
    assert_int_equal(gm__thread_create(&writers[i], "writes", held_write, &held, NULL), GM_OK);
  }
  const bool all_wait = held_await(&held, &held.waiting, VULKAN_STAGING_SLOTS);
  const uint64_t before = vulkan_fixture_held(&held.fixture);
  assert_int_equal(gm__thread_create(&copier, "copies", held_copy, &held, NULL), GM_OK);
  const bool returned = held_await(&held, &held.done, 1);
  gm__mutex_lock(&held.mutex);
  held.open = true;
  gm__cond_broadcast(&held.changed);
  gm__mutex_unlock(&held.mutex);
  for (uint32_t i = 0; i < VULKAN_STAGING_SLOTS; i++) gm__thread_join(&writers[i]);
  gm__thread_join(&copier);
  assert_true(all_wait);
  assert_true(returned);
  assert_memory_equal(held.back, held.bytes, LARGE);
  held_write(&held);
  assert_int_equal(vulkan_fixture_held(&held.fixture), before); /* what was more than the slots is given back */
  held_close(&held);
}

/* The heap has room for one slot, which another copy has at that moment: the second one waits for it, but not for ever.
 */
static struct full_heap {
  PFN_vkAllocateMemory real;
  held_queue held;
  uint32_t refused;
  bool full;
} heap;

static VKAPI_ATTR VkResult VKAPI_CALL full_allocate(VkDevice device, const VkMemoryAllocateInfo *info,
                                                    const VkAllocationCallbacks *callbacks, VkDeviceMemory *out) {
  if (!heap.full) return heap.real(device, info, callbacks, out);
  gm__mutex_lock(&heap.held.mutex);
  heap.refused++;
  gm__cond_broadcast(&heap.held.changed);
  gm__mutex_unlock(&heap.held.mutex);
  return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

static void test_a_copy_waits_for_the_only_slot(void **state) {
  (void)state;
  enum { REFUSALS = 9 }; /* 2 MiB to 8 KiB */
  gm__thread copier;
  gm__vulkan_slot *slot = NULL;
  held_queue *held = &heap.held;
  held_open(held);
  held->open = true;
  gm__vulkan_device *device = held->fixture.device;
  heap.real = device->syms.vkAllocateMemory;
  device->syms.vkAllocateMemory = full_allocate;
  assert_int_equal(gm__vulkan_staging_take(device, &slot, NULL), GM_OK);
  heap.full = true;
  assert_int_equal(gm__thread_create(&copier, "copies", held_copy, held, NULL), GM_OK);
  const bool refused = held_await(held, &heap.refused, REFUSALS);
  gm__vulkan_staging_give(device, slot, NULL);
  gm__thread_join(&copier);
  assert_true(refused);
  assert_int_equal(held->done, 1);
  assert_memory_equal(held->back, held->bytes, LARGE);
  assert_int_equal(gm__vulkan_staging_take(device, &slot, NULL), GM_OK);
  held_copy(held); /* the slot does not come back */
  assert_int_equal(held->done, 1);
  gm__vulkan_staging_give(device, slot, NULL);
  heap.full = false;
  held_close(held);
}

/* A chain in which each item reads what the one before wrote: needs a barrier each; then many that do not meet. */
static void test_copy_many(void **state) {
  (void)state;
  enum { CHAIN = 20, PIECES = 200 };
  vulkan_fixture fixture;
  vulkan_fixture_open(&fixture, modes[1]);
  gm_memory memory = vulkan_fixture_alloc(&fixture, 0, 100 * PIECES), other = vulkan_fixture_alloc(&fixture, 0, BYTES);
  uint8_t bytes[100 * PIECES], back[100 * PIECES];
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 7);
  gm_copy_item items[PIECES];
  for (uint32_t i = 0; i < CHAIN; i++) items[i] = (gm_copy_item){&memory, 100 * i, &memory, 100 * (i + 1), 100};
  assert_int_equal(
      fixture.ops->copy_to_device(fixture.device, fixture.stream, &memory, 0, bytes, sizeof bytes, NULL, NULL), GM_OK);
  assert_int_equal(fixture.ops->copy_many(fixture.device, fixture.stream, items, CHAIN, NULL, NULL), GM_OK);
  for (uint32_t i = 0; i < CHAIN; i++) memcpy(bytes + 100 * (i + 1), bytes + 100 * i, 100);
  for (uint32_t i = 0; i < PIECES; i++) {
    items[i] = (gm_copy_item){&memory, 100 * i, &other, 100 * (PIECES - 1 - i), i % 5 ? 100 : 0};
  }
  gm_backend_point point = {0};
  assert_int_equal(fixture.ops->copy_many(fixture.device, fixture.stream, items, PIECES, &point, NULL), GM_OK);
  assert_int_equal(fixture.ops->copy_to_host(fixture.device, fixture.stream, &other, 0, back, sizeof back, NULL, NULL),
                   GM_OK);
  for (uint32_t i = 0; i < PIECES; i++) {
    if (i % 5) assert_memory_equal(back + 100 * (PIECES - 1 - i), bytes + 100 * i, 100);
  }
  vulkan_fixture_free(&fixture, &other);
  vulkan_fixture_free(&fixture, &memory);
  vulkan_fixture_close(&fixture);
}

/* Copies one box between plain memory, as the seam means it. */
static void rect_plain(const gm_rect *r, uint8_t *dst, const uint8_t *src) {
  uint64_t src_row = r->src_row_pitch ? r->src_row_pitch : r->row_bytes;
  uint64_t dst_row = r->dst_row_pitch ? r->dst_row_pitch : r->row_bytes;
  uint64_t src_slice = r->src_slice_pitch ? r->src_slice_pitch : src_row * r->rows;
  uint64_t dst_slice = r->dst_slice_pitch ? r->dst_slice_pitch : dst_row * r->rows;
  for (uint64_t slice = 0; slice < r->slices; slice++) {
    for (uint64_t row = 0; row < r->rows; row++) {
      memcpy(dst + r->dst_offset + slice * dst_slice + row * dst_row,
             src + r->src_offset + slice * src_slice + row * src_row, r->row_bytes);
    }
  }
}

static void rect_check(const vulkan_fixture *fixture, const gm_rect *rect, uint64_t bytes) {
  const gm_backend_ops *ops = fixture->ops;
  uint8_t *src = malloc(bytes), *want = calloc(1, bytes), *back = calloc(1, bytes);
  gm_memory a = vulkan_fixture_alloc(fixture, 0, bytes), b = vulkan_fixture_alloc(fixture, 0, bytes);
  gm_backend_point point = {0};
  assert_true(src && want && back);
  for (uint64_t i = 0; i < bytes; i++) src[i] = (uint8_t)(i * 13 + i / 251);
  rect_plain(rect, want, src);
  assert_int_equal(ops->fill(fixture->device, fixture->stream, &a, 0, bytes, "", 1, NULL, NULL), GM_OK);
  assert_int_equal(ops->rect_to_device(fixture->device, fixture->stream, &a, src, rect, &point, NULL), GM_OK);
  assert_int_equal(ops->copy_to_host(fixture->device, fixture->stream, &a, 0, back, bytes, NULL, NULL), GM_OK);
  assert_memory_equal(back, want, bytes);
  assert_int_equal(ops->copy_to_device(fixture->device, fixture->stream, &a, 0, src, bytes, NULL, NULL), GM_OK);
  assert_int_equal(ops->fill(fixture->device, fixture->stream, &b, 0, bytes, "", 1, NULL, NULL), GM_OK);
  assert_int_equal(ops->rect_copy(fixture->device, fixture->stream, &b, &a, rect, NULL, NULL), GM_OK);
  assert_int_equal(ops->copy_to_host(fixture->device, fixture->stream, &b, 0, back, bytes, NULL, NULL), GM_OK);
  assert_memory_equal(back, want, bytes);
  memset(back, 0, bytes);
  assert_int_equal(ops->rect_to_host(fixture->device, fixture->stream, &a, back, rect, NULL, NULL), GM_OK);
  assert_memory_equal(back, want, bytes);
  vulkan_fixture_free(fixture, &b);
  vulkan_fixture_free(fixture, &a);
  free(src), free(want), free(back);
}

static void test_rects(void **state) {
  (void)state;
  static const struct {
    gm_rect rect;
    uint64_t bytes;
  } cases[] = {
      {{.row_bytes = 7, .rows = 5, .slices = 3, .src_offset = 3, .src_row_pitch = 11, .dst_row_pitch = 13}, 999},
      {{.row_bytes = 10, .rows = 300, .slices = 2, .src_slice_pitch = 4001, .dst_offset = 9}, 9000},
      {{.row_bytes = 64, .rows = 4, .slices = 4}, 1024}, /* touching: one range */
      {{.row_bytes = 5 << 20, .rows = 2, .slices = 1, .dst_row_pitch = (5 << 20) + 3}, (10 << 20) + 3},
      {{.row_bytes = 8, .rows = 1, .slices = 9, .src_slice_pitch = 8, .dst_slice_pitch = 100}, 900},
      {{.row_bytes = 8, .rows = 0, .slices = 2}, 64},
      {{.row_bytes = 0, .rows = 2, .slices = 2}, 64}};
  for (size_t mode = 0; mode < 2; mode++) {
    vulkan_fixture fixture;
    vulkan_fixture_open(&fixture, modes[mode]);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) rect_check(&fixture, &cases[i].rect, cases[i].bytes);
    vulkan_fixture_close(&fixture);
  }
}

/* Bytes beside words and long patterns take no memory but a table of 256 bytes, whatever the size of the fill. */
static void test_fill_takes_no_staging(void **state) {
  (void)state;
  vulkan_fixture fixture;
  const uint8_t pattern[16] = "0123456789abcde";
  uint8_t *back = malloc(LARGE);
  assert_non_null(back);
  vulkan_fixture_open(&fixture, modes[1]);
  gm_memory memory = vulkan_fixture_alloc(&fixture, 0, LARGE);
  const gm_backend_ops *ops = fixture.ops;
  assert_int_equal(ops->fill(fixture.device, fixture.stream, &memory, 0, LARGE, "", 1, NULL, NULL), GM_OK);
  const uint64_t before = vulkan_fixture_held(&fixture);
  assert_int_equal(ops->fill(fixture.device, fixture.stream, &memory, 5, LARGE - 7, pattern, 16, NULL, NULL), GM_OK);
  assert_int_equal(ops->fill(fixture.device, fixture.stream, &memory, 1, 2, "x", 1, NULL, NULL), GM_OK);
  assert_true(vulkan_fixture_held(&fixture) - before <= 64 << 10); /* a driver may round it up */
  assert_int_equal(ops->copy_to_host(fixture.device, fixture.stream, &memory, 0, back, LARGE, NULL, NULL), GM_OK);
  assert_memory_equal(back + 5, pattern, 16);
  assert_int_equal(memcmp(back + 5, back + 21, LARGE - 7 - 16), 0); /* each is the one before it again */
  assert_true(!back[0] && back[1] == 'x' && back[2] == 'x' && !back[3] && !back[4] && !back[LARGE - 2]);
  vulkan_fixture_free(&fixture, &memory);
  vulkan_fixture_close(&fixture);
  free(back);
}

static void test_bad_pattern(void **state) {
  (void)state;
  vulkan_fixture fixture;
  gm_error err = {0};
  vulkan_fixture_open(&fixture, modes[0]);
  gm_memory memory = vulkan_fixture_alloc(&fixture, 0, 64);
  assert_int_equal(fixture.ops->fill(fixture.device, fixture.stream, &memory, 0, 64, "abc", 3, NULL, &err),
                   GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "pattern_bytes"));
  vulkan_fixture_free(&fixture, &memory);
  vulkan_fixture_close(&fixture);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random),
      cmocka_unit_test(test_threads),
      cmocka_unit_test(test_larger_than_staging),
      cmocka_unit_test(test_no_copy_waits_for_staging_in_a_hook),
      cmocka_unit_test(test_a_copy_waits_for_the_only_slot),
      cmocka_unit_test(test_copy_many),
      cmocka_unit_test(test_rects),
      cmocka_unit_test(test_fill_takes_no_staging),
      cmocka_unit_test(test_bad_pattern),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
