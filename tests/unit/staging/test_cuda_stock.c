/* One stock of page-locked memory for all rings of a device, on the simulated CUDA driver. It has sizes and a bound.
 * Rings give memory to each other, and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/thread.h"
#include "core/device/device.h"
#include "core/device/stream.h"
#include "core/staging/staging.h"
#include "core/staging/stock.h"
#include "gm/config.h"
#include "support/adopt_scene.h"
#include "support/cuda_fixture.h"
#include "support/random.h"

enum { PAGE = 4096, SLOT = 65536, MOST = 4 };

static gm_context *ctx;
static gm_device *device;
static uint64_t later; /* by how much the clock is ahead */

uint64_t __real_gm__now_ns(void);
uint64_t __wrap_gm__now_ns(void);
uint64_t __wrap_gm__now_ns(void) { return __real_gm__now_ns() + later; }

/* A device that has MOST slots of SLOT bytes for its rings. */
static int begin(void **state) {
  (void)state;
  gm_error err;
  cuda_say("reload");
  cuda_say("set LATENCY_US 0");
  cuda_say("set PINNED 0");
  later = 0;
  ctx = adopt_scene_context("cuda", getenv("GM_CUDA_LIBRARY"));
  adopt_scene_ok(gm_config_set(ctx, "staging.max_bytes", "262144", &err), &err);
  adopt_scene_ok(gm_device_open_index(ctx, "cuda", 0, &device, &err), &err);
  return 0;
}

static int end(void **state) {
  (void)state;
  char left[1024];
  adopt_scene_end(ctx, device);
  if (cuda_script("leaks", left, sizeof left)) fail_msg("left at the driver:\n%s", left);
  return 0;
}

static gm__ring *make(uint32_t slots, uint64_t bytes) {
  gm_error err;
  gm__ring *ring = NULL;
  adopt_scene_ok(gm__ring_create(device, slots, bytes, &ring, &err), &err);
  return ring;
}

static void drop(gm__ring *ring) {
  gm_error err;
  adopt_scene_ok(gm__ring_destroy(ring, &err), &err);
}

static gm__ring_slot *take_now(gm__ring *ring) {
  gm__ring_slot *slot = NULL;
  const gm_status status = gm__ring_take(ring, 0, &slot, NULL);
  assert_true(status == GM_OK || status == GM_ERR_TIMEOUT);
  return slot;
}

/* It takes as many as it gets. */
static uint32_t take_all(gm__ring *ring, gm__ring_slot *slots[]) {
  uint32_t count = 0;
  while ((slots[count] = take_now(ring))) count++;
  return count;
}

static void give_all(gm__ring *ring, gm__ring_slot *slots[], uint32_t count) {
  for (uint32_t i = 0; i < count; i++) gm__ring_give(ring, slots[i], NULL);
}

static gm__ring_info figures(gm__ring *ring) {
  gm__ring_info info;
  gm__ring_figures(ring, &info);
  return info;
}

static void the_next_ring_uses_the_same_memory(void **state) {
  (void)state;
  gm__ring_slot *slots[64];
  gm__ring *ring = make(3, SLOT);
  give_all(ring, slots, take_all(ring, slots));
  drop(ring);
  assert_int_equal(cuda_calls("cuMemHostRegister"), 1);
  ring = make(48, PAGE - 100); /* 48 pages lie in three times 16 */
  const uint32_t count = take_all(ring, slots);
  assert_int_equal(count, 48);
  for (uint32_t i = 0; i < count; i++) {
    assert_int_equal((uintptr_t)slots[i]->host % PAGE, 0);
    assert_int_equal(slots[i]->bytes, PAGE - 100);
    memset(slots[i]->host, (int)i, PAGE - 100);
  }
  for (uint32_t i = 0; i < count; i++) assert_int_equal(slots[i]->host[PAGE - 101], i);
  give_all(ring, slots, count);
  drop(ring);
  ring = make(1, 3 * SLOT);
  give_all(ring, slots, take_all(ring, slots));
  drop(ring);
  assert_int_equal(cuda_calls("cuMemHostRegister"), 1);
  assert_int_equal(cuda_calls("cuMemHostUnregister"), 0);
}

/* Memory of another size goes where it does not do. */
static void what_is_too_small_makes_room(void **state) {
  (void)state;
  gm__ring_slot *slots[8];
  gm__ring *ring = make(2, SLOT);
  give_all(ring, slots, take_all(ring, slots));
  drop(ring);
  ring = make(1, MOST * SLOT);
  assert_int_equal(take_all(ring, slots), 1);
  assert_int_equal(cuda_count("registered"), 1);
  assert_string_equal(figures(ring).why, "");
  give_all(ring, slots, 1);
  drop(ring);
}

static void the_bound_holds_and_each_ring_has_one_slot(void **state) {
  (void)state;
  gm__ring_slot *first[8], *second[8], *third[8];
  gm__ring *a = make(8, SLOT), *b = make(8, SLOT), *c = make(2, 16 * SLOT);
  assert_int_equal(take_all(a, first), MOST);
  assert_non_null(strstr(figures(a).why, "staging.max_bytes"));
  assert_int_equal(take_all(b, second), 1);
  assert_true(second[0]->pinned);
  assert_int_equal(take_all(c, third), 1);
  assert_int_equal(figures(c).bytes, 16 * SLOT);
  give_all(c, third, 1);
  give_all(b, second, 1);
  give_all(a, first, MOST);
  drop(c), drop(b), drop(a);
}

static void a_ring_that_rests_gives_all(void **state) {
  (void)state;
  gm__ring_slot *first[8], *second[8];
  gm__ring *a = make(8, SLOT), *b = make(8, SLOT);
  give_all(a, first, take_all(a, first));
  assert_int_equal(take_all(b, second), MOST);
  assert_int_equal(figures(a).made, 0);
  assert_int_equal(figures(a).slot_bytes, SLOT); /* not those of all, divided by none */
  assert_int_equal(take_all(a, first), 1);       /* beyond the bound */
  give_all(b, second, MOST);
  give_all(a, first, 1);
  assert_int_equal(take_all(a, first), MOST + 1);
  give_all(a, first, MOST + 1);
  drop(a), drop(b);
}

static void of_two_in_use_each_has_its_share(void **state) {
  (void)state;
  gm__ring_slot *first[8], *second[8];
  gm__ring *a = make(8, SLOT), *b = make(8, SLOT);
  assert_int_equal(take_all(a, first), MOST);
  assert_int_equal(take_all(b, second), 1);
  give_all(a, first, MOST - 1); /* one is still in use */
  second[1] = take_now(b);
  assert_non_null(second[1]);
  assert_null(take_now(b));
  assert_int_equal(figures(a).made, MOST - 1);
  give_all(b, second, 2);
  gm__ring_give(a, first[MOST - 1], NULL);
  drop(a), drop(b);
}

/* A slot that the device still uses is no memory for others. */
static void a_slot_under_way_goes_to_nobody(void **state) {
  (void)state;
  gm_error err;
  gm_point point;
  gm_memory target;
  gm_stream *stream = NULL;
  const gm_memory_params params = {.struct_size = sizeof params, .bytes = SLOT};
  gm__ring_slot *second[8];
  gm__ring *a = make(8, MOST * SLOT), *b = make(8, SLOT);
  adopt_scene_ok(gm_stream_create(device, &stream, &err), &err);
  assert_int_equal(device->ops->memory_alloc(device->handle, &params, &target, NULL), GM_OK);
  cuda_say("set LINK h2d:1000,poll:0");
  gm__ring_slot *slot = take_now(a);
  gm_backend_point mark; /* without one the copy waits */
  assert_int_equal(
      device->ops->copy_to_device(device->handle, stream->handle, &target, 0, slot->host, SLOT, &mark, &err), GM_OK);
  device->ops->point_release(device->handle, &mark, GM_CLOSE_NORMAL);
  adopt_scene_ok(gm_stream_record(stream, &point, &err), &err);
  gm__ring_give(a, slot, &point);
  assert_int_equal(take_all(b, second), 1);
  assert_int_equal(figures(a).made, 1);
  adopt_scene_ok(gm_stream_sync(stream, &err), &err);
  gm__ring_give(b, second[0], NULL);
  assert_int_equal(take_all(b, second), MOST + 1);
  assert_int_equal(figures(a).made, 0);
  give_all(b, second, MOST + 1);
  drop(a), drop(b);
  device->ops->memory_free(device->handle, &target, GM_CLOSE_NORMAL, NULL);
  adopt_scene_ok(gm_stream_close(stream, &err), &err);
}

/* Slots in the hands of others are no reason to be pageable, but a driver that locks no more is. */
static void a_driver_that_locks_no_more(void **state) {
  (void)state;
  gm__ring_slot *first[8], *second[8];
  cuda_say("set PINNED 131072");
  gm__ring *a = make(2, SLOT), *b = make(2, SLOT);
  assert_int_equal(take_all(a, first), 2);
  assert_int_equal(take_all(b, second), 2);
  assert_false(second[0]->pinned);
  assert_true(figures(b).why[0] != 0);
  give_all(b, second, 2);
  give_all(a, first, 2);
  drop(b);
  b = make(2, SLOT); /* now the other ring rests */
  assert_int_equal(take_all(b, second), 2);
  assert_true(second[0]->pinned && second[1]->pinned);
  give_all(b, second, 2);
  drop(a), drop(b);
}

/* Two rings without page-locked memory have nothing for each other. */
static void pageable_rings_keep_their_slots(void **state) {
  (void)state;
  gm__ring_slot *first[8], *second[8];
  cuda_say("set PINNED 1");
  gm__ring *a = make(2, SLOT), *b = make(2, SLOT);
  give_all(a, first, take_all(a, first));
  assert_int_equal(take_all(b, second), 2);
  assert_int_equal(figures(a).made, 2);
  give_all(b, second, 2);
  drop(a), drop(b);
}

static void unused_memory_goes_after_a_while(void **state) {
  (void)state;
  gm__ring_slot *slots[8];
  gm__ring *ring = make(2, SLOT);
  give_all(ring, slots, take_all(ring, slots));
  drop(ring);
  later = UINT64_C(5000000000);
  drop(make(1, SLOT));
  assert_int_equal(cuda_count("registered"), 1);
  later = UINT64_C(11000000000);
  drop(make(1, SLOT));
  assert_int_equal(cuda_count("registered"), 0);
}

/* The driver may use the memory still. The device forgets it, and closes. */
static void memory_that_the_driver_keeps_stays_mapped(void **state) {
  (void)state;
  gm__ring_slot *slots[8];
  gm__ring *ring = make(1, SLOT);
  assert_int_equal(take_all(ring, slots), 1);
  unsigned char *host = slots[0]->host;
  give_all(ring, slots, 1);
  drop(ring);
  cuda_say("fail cuMemHostUnregister:*:1");
  later = UINT64_C(11000000000);
  drop(make(1, SLOT));
  assert_int_equal(cuda_calls("cuMemHostUnregister"), 2);
  cuda_say("fail");
  assert_int_equal(cuda_count("registered"), 1);
  host[SLOT - 1] = 1;
}

static int end_kept(void **state) {
  (void)state;
  adopt_scene_end(ctx, device);
  return 0;
}

/* The policy of the pages at an address, and the first nodes of it; -1: the system does not tell. */
static int policy_at(void *at, unsigned long *out_nodes) {
  unsigned long nodes[16] = {0};
  int policy = -1;
  if (syscall(SYS_get_mempolicy, &policy, nodes, 1024UL, at, (long)MPOL_F_ADDR)) return -1;
  *out_nodes = nodes[0];
  return policy;
}

static void slots_lie_on_the_node_of_the_card(void **state) {
  (void)state;
  unsigned long nodes = 0;
  gm__ring_slot *slots[8];
  if (policy_at(&nodes, &nodes) < 0) skip(); /* no NUMA in this kernel, or a sandbox */
  gm__ring *ring = make(1, SLOT);
  device->info.numa_node = 0;
  assert_int_equal(take_all(ring, slots), 1);
  assert_int_equal(policy_at(slots[0]->host, &nodes), MPOL_PREFERRED);
  assert_int_equal(nodes, 1);
  gm__ring *other = make(2, 2 * SLOT);
  device->info.numa_node = -1; /* nobody knows */
  gm__ring_slot *slot = take_now(other);
  assert_non_null(slot);
  assert_int_equal(policy_at(slot->host, &nodes), MPOL_DEFAULT);
  gm__ring_give(other, slot, NULL);
  give_all(ring, slots, 1);
  drop(ring), drop(other);
}

/* --- a user that holds a slot gets on without a second one --- */

enum { THREADS = 4, TURNS = 300 };
static atomic_int clashes;

/* Slots of its own size. It never waits for memory while it has some, but for slots that it gave back. */
static void use_slots(void *arg) {
  uint64_t random = (uintptr_t)arg;
  gm__ring *ring = NULL;
  if (gm__ring_create(device, 4, (uintptr_t)arg * PAGE, &ring, NULL)) {
    atomic_fetch_add(&clashes, 1000);
    return;
  }
  for (int i = 0; i < TURNS; i++) {
    gm__ring_slot *slots[4];
    uint32_t count = 0;
    if (gm__ring_take(ring, GM__NEVER, &slots[count++], NULL)) atomic_fetch_add(&clashes, 1000);
    const uint32_t wanted = (uint32_t)(test_random(&random) % 4);
    while (count < wanted && gm__ring_take(ring, 0, &slots[count], NULL) == GM_OK) count++;
    for (uint32_t k = 0; k < count; k++) memset(slots[k]->host, (int)(uintptr_t)arg, slots[k]->bytes);
    for (uint32_t k = 0; k < count; k++) {
      if (slots[k]->host[slots[k]->bytes - 1] != (uintptr_t)arg) atomic_fetch_add(&clashes, 1);
      gm__ring_give(ring, slots[k], NULL);
    }
  }
  if (gm__ring_destroy(ring, NULL)) atomic_fetch_add(&clashes, 1000);
}

static void threads_with_rings_of_their_own_share_the_bound(void **state) {
  (void)state;
  gm__thread threads[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++) {
    const uintptr_t pages = 3 + 7 * i;
    assert_int_equal(gm__thread_create(&threads[i], "test-stock", use_slots, (void *)pages, NULL), GM_OK);
  }
  for (int i = 0; i < THREADS; i++) gm__thread_join(&threads[i]);
  assert_int_equal(clashes, 0);
}

/* --- what else may happen --- */

static void a_lost_device_with_slots_in_use(void **state) {
  (void)state;
  gm__ring_slot *slots[8];
  gm__ring *a = make(2, SLOT), *b = make(2, SLOT);
  assert_int_equal(take_all(a, slots), 2);
  cuda_say("fail cuMemHostRegister:1:700");
  gm__ring_slot *none = NULL;
  assert_int_equal(gm__ring_take(b, 0, &none, NULL), GM_ERR_DEVICE_LOST);
  give_all(a, slots, 2);
  drop(a), drop(b);
  cuda_say("fail");
}

/* The child has neither the driver nor the threads of its parent, of which one had the lock. It ends all that it
 * inherited. */
static void a_forked_child_ends_rings_with_slots_in_use(void **state) {
  (void)state;
  gm__ring_slot *slots[8];
  int answer = 0;
  gm__ring *ring = make(2, SLOT);
  assert_int_equal(take_all(ring, slots), 2);
  gm__mutex_lock(&device->stock->lock);
  const pid_t child = fork();
  if (!child) {
    alarm(20);
    gm__ring_give(ring, slots[0], NULL);
    const bool told = figures(ring).made == 2;
    const bool fine = gm__ring_destroy(ring, NULL) == GM_OK && gm_device_close(device, NULL) == GM_OK;
    _exit(told && fine ? 0 : 1);
  }
  gm__mutex_unlock(&device->stock->lock);
  assert_int_equal(waitpid(child, &answer, 0), child);
  assert_true(WIFEXITED(answer) && WEXITSTATUS(answer) == 0);
  give_all(ring, slots, 2);
  drop(ring);
}

/* A device does not close under a ring, and gets its rings anew after it was asked to. */
static void a_device_with_a_ring_stays_open(void **state) {
  (void)state;
  gm_error err;
  gm__ring_slot *slots[8];
  gm__ring *own = NULL, *ring = make(2, SLOT);
  assert_int_equal(take_all(ring, slots), 2);
  adopt_scene_ok(gm__staging_open(device, &own, &err), &err);
  gm__staging_close(device);
  assert_int_equal(gm_device_close(device, &err), GM_ERR_BUSY);
  assert_int_equal(cuda_count("registered"), 1);
  memset(slots[1]->host, 1, SLOT);
  give_all(ring, slots, 2);
  drop(ring);
  adopt_scene_ok(gm__staging_open(device, &own, &err), &err);
  gm__staging_close(device);
}

int main(void) {
#define STOCK_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      STOCK_TEST(the_next_ring_uses_the_same_memory),
      STOCK_TEST(what_is_too_small_makes_room),
      STOCK_TEST(the_bound_holds_and_each_ring_has_one_slot),
      STOCK_TEST(a_ring_that_rests_gives_all),
      STOCK_TEST(of_two_in_use_each_has_its_share),
      STOCK_TEST(a_slot_under_way_goes_to_nobody),
      STOCK_TEST(a_driver_that_locks_no_more),
      STOCK_TEST(pageable_rings_keep_their_slots),
      STOCK_TEST(unused_memory_goes_after_a_while),
      cmocka_unit_test_setup_teardown(memory_that_the_driver_keeps_stays_mapped, begin, end_kept),
      STOCK_TEST(slots_lie_on_the_node_of_the_card),
      STOCK_TEST(threads_with_rings_of_their_own_share_the_bound),
      STOCK_TEST(a_lost_device_with_slots_in_use),
      STOCK_TEST(a_forked_child_ends_rings_with_slots_in_use),
      STOCK_TEST(a_device_with_a_ring_stays_open),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
