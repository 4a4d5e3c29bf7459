/* Copies between devices of one driver, on the simulated CUDA and HIP. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>
#include <pthread.h>
#include <time.h>

#include "core/device/peer.h"
#include "transfer/played_copy.h"

static gm_peer_path played_path(const world_end *device, const world_end *other) {
  gm_peer_path path = {.struct_size = sizeof path};
  world_ok(gm_peer_get_info(device->device, other->device, &path, err));
  return path;
}

static void test_a_path_is_taken(void **state) {
  (void)state;
  transfer_world w;
  played_begin(&w, 2);
  const world_end *to = &w.ends[0], *from = &w.ends[1];
  gm_peer_path path = played_path(to, from);
  assert_true(path.direct && !path.enabled);
  assert_string_equal(path.why, "");
  assert_true(path.rank >= 0);
  const bool cuda = strcmp(played_backend, "cuda") == 0;
  assert_int_equal(path.link, !cuda ? GM_PEER_LINK_UNKNOWN : path.atomics ? GM_PEER_LINK_NVLINK : GM_PEER_LINK_PCIE);
  world_fill_sent(1);
  world_write(from, world_sent);
  gm_peer_result result = played_copy(to, from, NULL, NULL);
  assert_int_equal(result.route, GM_PEER_DIRECT);
  assert_int_equal(result.staging_bytes, 0);
  played_check_bytes(to);
  assert_true(played_path(to, from).enabled);
  assert_false(played_path(from, to).enabled); /* one way */
  assert_int_equal(played_number("calls cuCtxEnablePeerAccess"), 1);
  played_copy(to, from, NULL, NULL);
  assert_int_equal(played_number("calls cuCtxEnablePeerAccess"), 1);
  assert_int_equal(world_stats(to).peer_copies, 2);
  assert_int_equal(world_stats(to).peer_staged_copies, 0);
  assert_int_equal(atomic_load(&w.host.lines), 0);
  played_end(&w);
}

/* With a point the call does not wait, and what the sending stream does first is in order by gm_peer_wait. */
static void test_streams_keep_the_order(void **state) {
  (void)state;
  transfer_world w;
  gm_point written = {0, 0, 0}, copied = {0, 0, 0};
  bool done = true;
  played_begin(&w, 2);
  const world_end *to = &w.ends[0], *from = &w.ends[1];
  world_fill_sent(2);
  played_copy(to, from, NULL, NULL); /* the pair is known */
  world_end sender = *from;
  played_say("hold");
  world_ok(gm_block_fill(sender.pool, &sender.block, 0, WORLD_BYTES, "abcdefg8", 8, sender.stream, &written, err));
  world_ok(gm_peer_wait(to->stream, sender.device, &written, err));
  assert_int_equal(played_copy(to, from, to->stream, &copied).route, GM_PEER_DIRECT);
  world_ok(gm_point_done(to->device, &copied, &done, err));
  assert_false(done);
  assert_int_equal(copied.stream, gm_stream_id(to->stream));
  played_say("release");
  world_ok(gm_point_wait(to->device, &copied, UINT64_MAX, err));
  for (unsigned i = 0; i < WORLD_BYTES; i++) world_sent[i] = (unsigned char)"abcdefg8"[i % 8];
  played_check_bytes(to);
  gm_point_release(to->device, &copied);
  gm_point_release(sender.device, &written);
  world_ok(gm_peer_wait(to->stream, sender.device, &written, err)); /* passed: nothing to wait for */
  played_end(&w);
}

static void test_without_a_path_the_driver_stages(void **state) {
  (void)state;
  transfer_world w;
  gm_error failure;
  gm_point copied = {0, 0, 0};
  played_begin(&w, 3);
  played_say("set NO peer");
  const world_end *to = &w.ends[0], *from = &w.ends[1];
  world_fill_sent(3);
  world_write(from, world_sent);
  const gm_peer_path path = played_path(to, from);
  assert_false(path.direct);
  assert_non_null(strstr(path.why, "no direct path"));
  assert_int_equal(gm_peer_enable(to->device, from->device, &failure), GM_ERR_NOT_SUPPORTED);
  gm_peer_result result = played_copy(to, from, to->stream, &copied);
  assert_int_equal(result.route, GM_PEER_STAGED_BY_DRIVER);
  assert_int_equal(result.staging_bytes, 0);
  assert_string_equal(result.why, path.why);
  world_ok(gm_point_wait(to->device, &copied, UINT64_MAX, err));
  gm_point_release(to->device, &copied);
  played_check_bytes(to);
  played_copy(to, from, NULL, NULL);
  assert_int_equal(atomic_load(&w.host.lines), 1); /* once for each pair */
  assert_non_null(strstr(w.host.last_line, "staged by the driver"));
  played_copy(from, to, NULL, NULL);
  assert_int_equal(atomic_load(&w.host.lines), 2);
  played_copy(&w.ends[2], from, NULL, NULL);
  assert_int_equal(atomic_load(&w.host.lines), 3);
  assert_int_equal(world_stats(to).peer_staged_copies, 2);
  assert_int_equal(world_stats(to).peer_staged_bytes, 2 * (uint64_t)WORLD_BYTES);
  played_end(&w);
}

static void test_enabling_fails(void **state) {
  (void)state;
  transfer_world w;
  gm_error failure;
  played_begin(&w, 2);
  const world_end *to = &w.ends[0], *from = &w.ends[1];
  world_fill_sent(4);
  world_write(from, world_sent);
  played_say("fail cuCtxEnablePeerAccess:1:2");
  gm_peer_result result = played_copy(to, from, NULL, NULL);
  assert_int_equal(result.route, GM_PEER_STAGED_BY_DRIVER);
  assert_true(result.why[0] != 0);
  played_check_bytes(to);
  assert_int_equal(atomic_load(&w.host.lines), 1);
  assert_int_equal(played_copy(to, from, NULL, NULL).route, GM_PEER_DIRECT); /* it is tried again */
  played_say("fail cuCtxEnablePeerAccess:1:2");
  assert_int_not_equal(gm_peer_enable(from->device, to->device, &failure), GM_OK);
  assert_false(played_path(from, to).enabled);
  played_end(&w);
}

static void test_enabled_and_disabled_in_balance(void **state) {
  (void)state;
  for (unsigned first = 0; first < 2; first++) {
    transfer_world w;
    played_begin(&w, 3);
    gm_device *a = w.ends[0].device, *b = w.ends[1].device, *c = w.ends[2].device;
    for (int i = 0; i < 2; i++) world_ok(gm_peer_enable(a, b, err));
    world_ok(gm_peer_enable(b, a, err));
    world_ok(gm_peer_enable(c, b, err));
    assert_int_equal(played_number("calls cuCtxEnablePeerAccess"), 3);
    world_ok(gm_peer_disable(c, b, err));
    world_ok(gm_peer_disable(c, b, err));
    assert_int_equal(played_number("calls cuCtxDisablePeerAccess"), 1);
    world_remove(&w, first); /* both ways go, whichever end closes */
    assert_int_equal(played_number("calls cuCtxDisablePeerAccess"), 3);
    played_end(&w);
    assert_int_equal(played_number("calls cuCtxDisablePeerAccess"), 3);
  }
}

/* Copies do not enable access that the program disabled. */
static void test_disabled_stays_disabled(void **state) {
  (void)state;
  transfer_world w;
  played_begin(&w, 2);
  const world_end *to = &w.ends[0], *from = &w.ends[1];
  world_fill_sent(5);
  world_write(from, world_sent);
  played_copy(to, from, NULL, NULL);
  world_ok(gm_peer_disable(to->device, from->device, err));
  gm_peer_result result = played_copy(to, from, NULL, NULL);
  assert_int_equal(result.route, GM_PEER_STAGED_BY_DRIVER);
  assert_non_null(strstr(result.why, "gm_peer_disable"));
  assert_false(played_path(to, from).enabled);
  world_ok(gm_peer_enable(to->device, from->device, err));
  assert_int_equal(played_copy(to, from, NULL, NULL).route, GM_PEER_DIRECT);
  played_end(&w);
}

/* FIELD: some drivers' peer copies succeed and bring nothing. */
static void test_copies_that_bring_nothing(void **state) {
  (void)state;
  transfer_world w;
  gm_error failure;
  played_begin(&w, 2);
  played_say("set PEER silent");
  const world_end *to = &w.ends[0], *from = &w.ends[1];
  world_fill_sent(6);
  world_write(from, world_sent);
  gm_peer_result result = played_copy(to, from, to->stream, NULL);
  assert_int_equal(result.route, GM_PEER_STAGED_BY_GM);
  assert_in_range(result.staging_bytes, 1, 16 << 20);
  assert_true(result.pinned);
  assert_non_null(strstr(result.why, "bring nothing"));
  played_check_bytes(to);
  played_say("zero");
  played_copy(to, from, to->stream, NULL);
  assert_int_equal(played_number("calls cuMemcpyPeerAsync"), 0); /* it is remembered */
  assert_false(played_path(to, from).direct);
  assert_int_equal(gm_peer_enable(to->device, from->device, &failure), GM_OK); /* kernels may still reach it */
  played_end(&w);
}

static void test_contexts_are_apart(void **state) {
  (void)state;
  transfer_world w, other;
  played_begin(&w, 1);
  world_begin(&other);
  assert_true(world_add(&other, played_backend, 1));
  world_fill_sent(7);
  world_write(&other.ends[0], world_sent);
  gm_peer_result result = played_copy(&w.ends[0], &other.ends[0], w.ends[0].stream, NULL);
  assert_int_equal(result.route, GM_PEER_STAGED_BY_GM);
  assert_true(result.pinned);
  assert_non_null(strstr(result.why, "different contexts"));
  played_check_bytes(&w.ends[0]);
  world_finish(&other);
  played_end(&w);
}

/* Enabling does not cover what is mapped. The pools' pages are opened for those who were let in, whether they were
 * mapped before or are mapped afterwards. */
static void test_mapped_pages_are_opened(void **state) {
  (void)state;
  transfer_world w;
  played_begin(&w, 3);
  const world_end *owner = &w.ends[0];
  played_say("zero");
  world_ok(gm_peer_enable(owner->device, w.ends[2].device, err)); /* the other way round, for pages of 2 */
  const long of_other = played_number("calls cuMemSetAccess");
  assert_true(of_other > 0);
  world_ok(gm_peer_enable(w.ends[1].device, owner->device, err));
  assert_true(played_number("calls cuMemSetAccess") > of_other);
  played_say("zero");
  gm_block more;
  const gm_request request = {.bytes = 64 << 20};
  assert_int_equal(gm_alloc(owner->pool, &request, &more), GM_ACQUIRE_FRESH);
  assert_true(played_number("calls cuMemMap") > 0);
  assert_int_equal(played_number("calls cuMemSetAccess"), 2 * played_number("calls cuMemMap"));
  assert_int_equal(gm_free(owner->pool, &more, NULL), GM_OK);
  played_end(&w);
}

static void test_a_range_that_cannot_be_opened(void **state) {
  (void)state;
  transfer_world w;
  gm_error failure;
  gm_block more;
  const gm_request request = {.bytes = 64 << 20};
  played_begin(&w, 2);
  const world_end *owner = &w.ends[0], *user = &w.ends[1];
  played_say("fail cuMemSetAccess:1:2");
  assert_int_not_equal(gm_peer_enable(user->device, owner->device, &failure), GM_OK);
  assert_false(played_path(user, owner).enabled);
  world_ok(gm_peer_enable(user->device, owner->device, err));
  assert_true(played_path(user, owner).enabled);
  played_say("fail cuMemSetAccess:2:999"); /* gm's own is the first */
  assert_true(gm_alloc(owner->pool, &request, &more) > GM_ACQUIRE_FRESH);
  assert_in_range(gm_alloc(owner->pool, &request, &more), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
  assert_int_equal(gm_free(owner->pool, &more, NULL), GM_OK);
  played_end(&w);
}

static void *release_later(void *unused) {
  const struct timespec pause = {.tv_nsec = 50000000};
  (void)unused;
  nanosleep(&pause, NULL);
  played_script("release", NULL, 0);
  return NULL;
}

/* gm waits for the events that the receiving stream waits for on the device, before it reads the sender's memory. */
static void test_a_staged_copy_follows_its_stream(void **state) {
  (void)state;
  transfer_world w;
  pthread_t thread;
  played_engine engine;
  gm_point filled = {0, 0, 0};
  char hold[64];
  played_begin(&w, 2);
  played_say("set PEER silent");
  const world_end *to = &w.ends[0], *from = &w.ends[1];
  played_engine_open(&engine, from->device);
  snprintf(hold, sizeof hold, "hold %ld", played_number("get newest_stream"));
  world_fill_sent(8);
  world_write(from, world_sent);
  played_copy(to, from, NULL, NULL);
  played_say(hold);
  world_ok(gm_block_fill(from->pool, &from->block, 0, WORLD_BYTES, "s", 1, engine.lent, &filled, err));
  world_ok(gm_peer_wait(to->stream, from->device, &filled, err));
  assert_int_equal(pthread_create(&thread, NULL, release_later, NULL), 0);
  assert_int_equal(played_copy(to, from, to->stream, NULL).route, GM_PEER_STAGED_BY_GM);
  assert_int_equal(pthread_join(thread, NULL), 0);
  memset(world_sent, 's', WORLD_BYTES);
  played_check_bytes(to);
  gm_point_release(from->device, &filled);
  played_engine_close(&engine);
  played_end(&w);
}

/* Nothing is tried, enabled or waited for while the engine captures: its capture stays whole. */
static void test_a_capture_is_left_alone(void **state) {
  (void)state;
  transfer_world w;
  played_engine engine;
  gm_point point = {0, 0, 0};
  gm_peer_result result = {.struct_size = sizeof result};
  played_begin(&w, 2);
  const world_end *to = &w.ends[0], *from = &w.ends[1];
  played_engine_open(&engine, to->device);
  played_capture_begin(&engine);
  played_say("zero");
  const gm_status status = gm_block_copy_peer(to->pool, &to->block, 0, from->pool, &from->block, 0, 4096, engine.lent,
                                              &point, &result, NULL);
  assert_int_equal(played_number("calls cuCtxEnablePeerAccess"), 0);
  assert_int_equal(played_number("calls cuMemAlloc"), 0);
  assert_true(status != GM_OK || result.route == GM_PEER_STAGED_BY_DRIVER);
  gm_point_release(to->device, &point);
  played_capture_end(&engine);
  played_engine_close(&engine);
  played_end(&w);
}

enum { OPENERS = 4, OPENINGS = 2000 };

static pthread_barrier_t all_there;

typedef struct opener {
  pthread_t thread;
  gm_device *device, *other;
} opener;

static void *open_and_shut(void *user) {
  const opener *o = user;
  gm_status worst = GM_OK;
  pthread_barrier_wait(&all_there);
  for (int i = 0; i < OPENINGS && !worst; i++) {
    worst = gm_peer_enable(o->device, o->other, NULL);
    if (!worst) worst = gm_peer_disable(o->device, o->other, NULL);
  }
  return (void *)(uintptr_t)worst;
}

/* One way from several threads: what gm opened it shuts, no more and no less often. */
static void test_ways_from_several_threads(void **state) {
  (void)state;
  transfer_world w;
  opener openers[OPENERS];
  played_begin(&w, 2);
  assert_int_equal(pthread_barrier_init(&all_there, NULL, OPENERS), 0);
  for (int i = 0; i < OPENERS; i++) {
    const unsigned near = i == OPENERS - 1;
    openers[i] = (opener){.device = w.ends[near].device, .other = w.ends[!near].device};
    assert_int_equal(pthread_create(&openers[i].thread, NULL, open_and_shut, &openers[i]), 0);
  }
  for (int i = 0; i < OPENERS; i++) {
    void *worst = NULL;
    assert_int_equal(pthread_join(openers[i].thread, &worst), 0);
    assert_null(worst);
  }
  pthread_barrier_destroy(&all_there);
  played_end(&w);
  assert_int_equal(played_number("calls cuCtxEnablePeerAccess"), played_number("calls cuCtxDisablePeerAccess"));
}

typedef struct beginner {
  gm__peer_way *way;
  gm_device *other;
  _Atomic bool begun;
  bool barred;
} beginner;

static void *begin_a_copy(void *user) {
  beginner *b = user;
  b->begun = true;
  return (void *)(uintptr_t)gm__peer_open_for_copy(b->way, b->other, &b->barred, NULL);
}

/* A copy that found the way shut but not forbidden opens it a moment later. Here the program forbids it in that moment,
 * in which the copy, if the machine lets it, has come as far as the lock. */
static void test_disabled_while_a_copy_begins(void **state) {
  (void)state;
  transfer_world w;
  pthread_t thread;
  void *failed = NULL;
  const struct timespec moment = {.tv_nsec = 20000000};
  played_begin(&w, 2);
  beginner b = {.way = gm__peer_way_to(w.ends[0].device, w.ends[1].device), .other = w.ends[1].device};
  assert_non_null(b.way);
  gm__mutex_lock(&b.way->lock);
  assert_int_equal(pthread_create(&thread, NULL, begin_a_copy, &b), 0);
  while (!b.begun) nanosleep(&moment, NULL);
  nanosleep(&moment, NULL);
  atomic_store(&b.way->barred, true); /* as gm_peer_disable does */
  gm__mutex_unlock(&b.way->lock);
  assert_int_equal(pthread_join(thread, &failed), 0);
  assert_null(failed);
  assert_true(b.barred);
  assert_false(played_path(&w.ends[0], &w.ends[1]).enabled);
  assert_int_equal(played_number("calls cuCtxEnablePeerAccess"), 0);
  world_ok(gm_peer_enable(w.ends[0].device, w.ends[1].device, err));
  assert_true(played_path(&w.ends[0], &w.ends[1]).enabled);
  played_end(&w);
}

typedef struct copier {
  const world_end *to, *from;
  _Atomic bool stop;
} copier;

static void *copy_until_told(void *user) {
  copier *c = user;
  gm_status worst = GM_OK;
  while (!c->stop && !worst) {
    worst = gm_block_copy_peer(c->to->pool, &c->to->block, 0, c->from->pool, &c->from->block, 0, 64, NULL, NULL, NULL,
                               NULL);
  }
  return (void *)(uintptr_t)worst;
}

enum { DISABLINGS = 300, LOOKS = 20 };

/* After gm_peer_disable nothing opens it but gm_peer_enable, whatever copies are under way. */
static void test_disabled_among_copies(void **state) {
  (void)state;
  transfer_world w;
  pthread_t thread;
  void *worst = NULL;
  unsigned open = 0;
  played_begin(&w, 2);
  copier c = {.to = &w.ends[0], .from = &w.ends[1]};
  played_say("set LATENCY_US 0");
  assert_int_equal(pthread_create(&thread, NULL, copy_until_told, &c), 0);
  for (int i = 0; i < DISABLINGS; i++) {
    world_ok(gm_peer_enable(c.to->device, c.from->device, err));
    world_ok(gm_peer_disable(c.to->device, c.from->device, err));
    for (int look = 0; look < LOOKS; look++) open += played_path(c.to, c.from).enabled;
  }
  c.stop = true;
  assert_int_equal(pthread_join(thread, &worst), 0);
  assert_null(worst);
  assert_int_equal(open, 0);
  played_end(&w);
}

static void test_a_copy_fails(void **state) {
  (void)state;
  transfer_world w;
  gm_error failure;
  played_begin(&w, 2);
  const world_end *to = &w.ends[0], *from = &w.ends[1];
  played_copy(to, from, NULL, NULL);
  played_say("fail cuMemcpyPeerAsync:1:2");
  assert_int_not_equal(
      gm_block_copy_peer(to->pool, &to->block, 0, from->pool, &from->block, 0, 99, to->stream, NULL, NULL, &failure),
      GM_OK);
  assert_int_equal(world_stats(to).peer_copies, 1);
  assert_true(failure.message[0] != 0);
  played_end(&w);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_path_is_taken),
      cmocka_unit_test(test_streams_keep_the_order),
      cmocka_unit_test(test_without_a_path_the_driver_stages),
      cmocka_unit_test(test_enabling_fails),
      cmocka_unit_test(test_enabled_and_disabled_in_balance),
      cmocka_unit_test(test_disabled_stays_disabled),
      cmocka_unit_test(test_copies_that_bring_nothing),
      cmocka_unit_test(test_contexts_are_apart),
      cmocka_unit_test(test_mapped_pages_are_opened),
      cmocka_unit_test(test_a_range_that_cannot_be_opened),
      cmocka_unit_test(test_a_staged_copy_follows_its_stream),
      cmocka_unit_test(test_a_capture_is_left_alone),
      cmocka_unit_test(test_ways_from_several_threads),
      cmocka_unit_test(test_disabled_while_a_copy_begins),
      cmocka_unit_test(test_disabled_among_copies),
      cmocka_unit_test(test_a_copy_fails),
  };
  const int skipped = played_load(argc, argv);
  return skipped ? skipped : cmocka_run_group_tests(tests, NULL, NULL);
}
