/* Pools that sleep as a whole: pages give their memory back, and blocks keep their addresses and, if asked, their
 * contents. The card is the CPU backend in disguise, whose virtual memory can run out and can refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gm/copy.h"
#include "gm/explain.h"
#include "support/paged_card.h"
#include "support/relocation_bench.h"

enum { BLOCKS = 12 };

/* Blocks of many sizes, small ones among them, each filled with bytes of its own. */
typedef struct sleepers {
  gm_block blocks[BLOCKS];
  const unsigned char *wanted[BLOCKS]; /* NULL: freed */
} sleepers;

/* Each 8 bytes are another number. A block has the same ones in each test, and they are made once. */
static const unsigned char *sleepers_bytes(int block, uint64_t bytes) {
  static struct {
    unsigned char *bytes;
    uint64_t count;
  } made[BLOCKS];
  if (made[block].count >= bytes) return made[block].bytes;
  free(made[block].bytes);
  unsigned char *out = malloc((size_t)bytes);
  assert_non_null(out);
  uint64_t seed = (uint64_t)block + 1;
  for (uint64_t at = 0; at + sizeof seed <= bytes; at += sizeof seed) {
    const uint64_t word = test_random(&seed);
    memcpy(out + at, &word, sizeof word);
  }
  made[block].bytes = out;
  made[block].count = bytes;
  return out;
}

static void sleepers_make(pool_bench *bench, sleepers *out) {
  for (int i = 0; i < BLOCKS; i++) {
    const gm_request request = {.bytes = (i % 3 ? MIB / 4 : 4096) * (uint64_t)(i + 1)};
    assert_true(gm_acquired(gm_alloc(bench->pool, &request, &out->blocks[i])));
    out->wanted[i] = sleepers_bytes(i, out->blocks[i].bytes);
    pool_bench_ok(
        gm_block_write(bench->pool, &out->blocks[i], 0, out->wanted[i], out->blocks[i].bytes, NULL, NULL, err));
  }
}

/* The host reads at the addresses from before. */
static void sleepers_check(const sleepers *all) {
  for (int i = 0; i < BLOCKS; i++) {
    if (!all->wanted[i]) continue;
    assert_memory_equal((void *)(uintptr_t)all->blocks[i].address, all->wanted[i], (size_t)all->blocks[i].bytes);
  }
}

static void sleepers_free(pool_bench *bench, sleepers *all, int i) {
  if (all->wanted[i]) assert_int_equal(gm_free(bench->pool, &all->blocks[i], NULL), GM_OK);
  all->wanted[i] = NULL;
}

static void sleepers_end(pool_bench *bench, sleepers *all) {
  for (int i = 0; i < BLOCKS; i++) sleepers_free(bench, all, i);
}

static void sleep_ok(pool_bench *bench, bool keep, uint64_t *freed) {
  pool_bench_ok(gm_pool_sleep_whole(bench->pool, keep, NULL, freed, err));
}

static void blocks_keep_addresses_and_contents(bool hidden) {
  pool_bench bench;
  sleepers all;
  uint64_t freed = 0, again = 7;
  open_paged_card_as(&bench, 256 * MIB, hidden);
  sleepers_make(&bench, &all);
  const uint64_t held = pool_bench_stats(&bench).reserved_bytes;
  for (int i = 0; i < 3; i++) {
    sleep_ok(&bench, true, &freed);
    assert_true(freed > 0 && freed <= held);
    assert_int_equal(paged_card.left, paged_card.all);
    assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 0);
    assert_int_equal(pool_bench_stats(&bench).active, BLOCKS);
    sleep_ok(&bench, true, &again); /* it sleeps */
    assert_int_equal(again, 0);
    pool_bench_ok(gm_pool_sleep(bench.pool, true, NULL, &again, err));
    assert_int_equal(again, 0);
    pool_bench_ok(gm_pool_wake(bench.pool, NULL, err));
    pool_bench_ok(gm_pool_wake(bench.pool, NULL, err)); /* it is awake */
    sleepers_check(&all);
    assert_int_equal(pool_bench_stats(&bench).reserved_bytes, freed);
  }
  sleepers_end(&bench, &all);
  pool_bench_close(&bench);
}

static void test_blocks_keep_addresses_and_contents(void **state) {
  (void)state;
  blocks_keep_addresses_and_contents(false);
  blocks_keep_addresses_and_contents(true);
}

static void test_contents_may_be_dropped(void **state) {
  (void)state;
  pool_bench bench;
  sleepers all;
  open_paged_card(&bench, 256 * MIB);
  sleepers_make(&bench, &all);
  const uint64_t bytes = atomic_load(&bench.host.live_bytes);
  sleep_ok(&bench, false, NULL);
  assert_true(atomic_load(&bench.host.live_bytes) < bytes + MIB);
  assert_int_equal(paged_card.left, paged_card.all);
  pool_bench_ok(gm_pool_wake(bench.pool, NULL, err));
  for (int i = 0; i < BLOCKS; i++) {
    memcpy((void *)(uintptr_t)all.blocks[i].address, all.wanted[i], (size_t)all.blocks[i].bytes);
  }
  sleepers_check(&all);
  sleepers_end(&bench, &all);
  pool_bench_close(&bench);
}

/* The answers of calls on a sleeping pool: requests, copies, mappings; frees serve. */
static void test_a_sleeping_pool_refuses_and_frees(void **state) {
  (void)state;
  pool_bench bench;
  sleepers all;
  gm_error failure;
  gm_block block;
  void *host = NULL;
  unsigned char byte = 1;
  const gm_request small = {.bytes = 100}, exact = {.bytes = 100, .flags = GM_DEDICATED};
  open_paged_card(&bench, 256 * MIB);
  sleepers_make(&bench, &all);
  gm_block idle;
  assert_true(gm_acquired(gm_alloc(bench.pool, &small, &idle)));
  assert_int_equal(gm_free(bench.pool, &idle, NULL), GM_OK); /* it lies in a quick list */
  sleep_ok(&bench, true, NULL);
  assert_int_equal(gm_alloc(bench.pool, &small, &block), GM_ACQUIRE_EXHAUSTED);
  assert_int_equal(gm_alloc(bench.pool, &exact, &block), GM_ACQUIRE_EXHAUSTED);
  assert_null(gm_malloc(bench.pool, 100, NULL));
  gm_explanation why = {.struct_size = sizeof why};
  pool_bench_ok(gm_explain(bench.pool, NULL, &why, err));
  assert_int_equal(why.cause, GM_CAUSE_ASLEEP);
  assert_int_equal(why.change, GM_CHANGE_WAKE);
  assert_int_equal(why.last_failure.status, GM_ERR_BUSY);
  const gm_block *one = &all.blocks[1];
  assert_int_equal(gm_block_read(bench.pool, one, 0, &byte, 1, NULL, NULL, &failure), GM_ERR_BUSY);
  assert_string_equal(failure.op, "gm_block_read");
  assert_int_equal(gm_block_write(bench.pool, one, 0, &byte, 1, NULL, NULL, &failure), GM_ERR_BUSY);
  assert_int_equal(gm_block_fill(bench.pool, one, 0, 1, &byte, 1, NULL, NULL, &failure), GM_ERR_BUSY);
  assert_int_equal(gm_block_copy(bench.pool, one, 0, bench.pool, &all.blocks[2], 0, 1, NULL, NULL, &failure),
                   GM_ERR_BUSY);
  assert_int_equal(gm_block_map(bench.pool, one, 0, 1, GM_MAP_READ, NULL, &host, &failure), GM_ERR_BUSY);
  gm_memory memory;
  uint64_t offset;
  assert_int_equal(gm_block_memory(bench.pool, one, &memory, &offset), GM_OK);
  assert_int_equal(memory.address + offset, one->address);
  for (int i = 0; i < BLOCKS; i += 2) sleepers_free(&bench, &all, i);
  assert_int_equal(gm_pool_trim(bench.pool, 0), 0);
  assert_int_equal(gm_alloc(bench.pool, &small, &block), GM_ACQUIRE_EXHAUSTED);
  pool_bench_ok(gm_pool_wake(bench.pool, NULL, err));
  sleepers_check(&all);
  assert_true(gm_acquired(gm_alloc(bench.pool, &small, &block)));
  memset((void *)(uintptr_t)block.address, 5, 100);
  sleepers_check(&all);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  sleepers_end(&bench, &all);
  pool_bench_close(&bench);
}

/* Memory that was freed meanwhile takes none at waking. */
static void test_waking_takes_memory_for_what_lives(void **state) {
  (void)state;
  pool_bench bench;
  sleepers all;
  open_paged_card(&bench, 256 * MIB);
  sleepers_make(&bench, &all);
  sleep_ok(&bench, true, NULL);
  for (int i = 1; i < BLOCKS; i++) sleepers_free(&bench, &all, i);
  paged_card.left = 4 * MIB;
  pool_bench_ok(gm_pool_wake(bench.pool, NULL, err));
  sleepers_check(&all);
  paged_card.left += paged_card.all - 4 * MIB;
  sleepers_end(&bench, &all);
  pool_bench_close(&bench);
}

static void test_a_sleeping_pool_can_end(void **state) {
  (void)state;
  pool_bench bench;
  sleepers all;
  gm_error failure;
  open_paged_card(&bench, 256 * MIB);
  sleepers_make(&bench, &all);
  sleep_ok(&bench, true, NULL);
  assert_int_equal(gm_pool_destroy(bench.pool, &failure), GM_ERR_BUSY);
  sleepers_end(&bench, &all);
  pool_bench_close(&bench);
  assert_int_equal(paged_card.left, paged_card.all);
  open_paged_card(&bench, 256 * MIB);
  sleepers_make(&bench, &all);
  sleep_ok(&bench, true, NULL);
  pool_bench_ok(gm_pool_destroy_force(bench.pool, err));
  assert_int_equal(paged_card.left, paged_card.all);
  pool_bench_ok(gm_device_close(bench.device, err));
  pool_bench_ok(gm_context_destroy(bench.ctx, err));
  counted_services_check(&bench.host);
}

/* Memory is short at waking: the pool sleeps on as a whole, holds nothing, and wakes later. */
static void test_waking_without_room_can_be_repeated(void **state) {
  (void)state;
  pool_bench bench;
  sleepers all;
  gm_error failure;
  gm_block block;
  const gm_request small = {.bytes = 100};
  uint64_t freed = 0;
  open_paged_card(&bench, 256 * MIB);
  sleepers_make(&bench, &all);
  sleep_ok(&bench, true, &freed);
  for (uint64_t left = 0; left < freed; left += 8 * MIB) {
    paged_card.left = left;
    assert_int_equal(gm_pool_wake(bench.pool, NULL, &failure), GM_ERR_OUT_OF_DEVICE_MEMORY);
    assert_int_equal(paged_card.left, left);
    assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 0);
    assert_int_equal(gm_alloc(bench.pool, &small, &block), GM_ACQUIRE_EXHAUSTED);
  }
  paged_card.left = paged_card.all;
  pool_bench_ok(gm_pool_wake(bench.pool, NULL, err));
  sleepers_check(&all);
  sleepers_end(&bench, &all);
  pool_bench_close(&bench);
}

/* The device's other pool keeps idle memory, which it gives back for the one that wakes. */
static void test_waking_takes_what_other_pools_keep(void **state) {
  (void)state;
  pool_bench bench;
  sleepers all;
  gm_pool *other = NULL;
  gm_block block;
  uint64_t freed = 0;
  const gm_request large = {.bytes = 64 * MIB};
  const gm_pool_params shape = {.struct_size = sizeof shape};
  open_paged_card(&bench, 256 * MIB);
  sleepers_make(&bench, &all);
  sleep_ok(&bench, true, &freed);
  pool_bench_ok(gm_pool_create(bench.device, &shape, &other, err));
  assert_true(gm_acquired(gm_alloc(other, &large, &block)));
  assert_int_equal(gm_free(other, &block, NULL), GM_OK);
  assert_true(paged_card.left <= paged_card.all - 64 * MIB);
  paged_card.left = freed - 32 * MIB;
  pool_bench_ok(gm_pool_wake(bench.pool, NULL, err));
  sleepers_check(&all);
  sleepers_end(&bench, &all);
  pool_bench_ok(gm_pool_destroy(other, err));
  pool_bench_close(&bench);
}

/* Whichever call for virtual memory fails at falling asleep or at waking, no byte is lost. */
static void test_the_nth_call_of_the_driver_fails(void **state) {
  (void)state;
  static uint64_t *const counters[] = {&paged_card.fail_create, &paged_card.fail_map, &paged_card.fail_access,
                                       &paged_card.fail_unmap, &paged_card.fail_copy};
  int slept_not = 0, woke_not = 0;
  for (size_t kind = 0; kind < 5; kind++) {
    for (uint64_t n = 1; n < 60; n++) {
      pool_bench bench;
      sleepers all;
      gm_error failure;
      open_paged_card_as(&bench, 256 * MIB, true);
      sleepers_make(&bench, &all);
      *counters[kind] = n;
      const gm_status slept = gm_pool_sleep_whole(bench.pool, true, NULL, NULL, &failure);
      assert_true(slept == GM_OK || slept == GM_ERR_DRIVER);
      if (slept) sleepers_check(&all);
      const gm_status woken = gm_pool_wake(bench.pool, NULL, &failure);
      assert_true(woken == GM_OK || woken == GM_ERR_DRIVER);
      slept_not += slept != GM_OK;
      woke_not += woken != GM_OK;
      const bool reached = *counters[kind] == 0;
      *counters[kind] = 0;
      pool_bench_ok(gm_pool_wake(bench.pool, NULL, err));
      sleepers_check(&all);
      sleepers_end(&bench, &all);
      pool_bench_close(&bench);
      assert_int_equal(paged_card.left, paged_card.all);
      if (!reached) break;
    }
  }
  assert_true(slept_not > 0);
  assert_true(woke_not > 0);
}

/* The driver maps pages, and will then neither open nor unmap them. They stay asleep until it does. */
static void test_pages_that_are_shut_at_waking(void **state) {
  (void)state;
  pool_bench bench;
  sleepers all;
  gm_error failure;
  open_paged_card(&bench, 256 * MIB);
  sleepers_make(&bench, &all);
  sleep_ok(&bench, true, NULL);
  paged_card.fail_access = 2;
  paged_card.refuse_unmap = true;
  assert_int_equal(gm_pool_wake(bench.pool, NULL, &failure), GM_ERR_DRIVER);
  assert_int_equal(gm_pool_wake(bench.pool, NULL, &failure), GM_ERR_DRIVER);
  gm_pool_trim(bench.pool, 0);
  paged_card.refuse_unmap = false;
  pool_bench_ok(gm_pool_wake(bench.pool, NULL, err));
  sleepers_check(&all);
  sleepers_end(&bench, &all);
  pool_bench_close(&bench);
  assert_int_equal(paged_card.left, paged_card.all);
}

static void test_the_nth_host_allocation_fails(void **state) {
  (void)state;
  int failed = 0;
  for (size_t n = 1; n < 30; n++) {
    pool_bench bench;
    sleepers all;
    gm_error failure;
    open_paged_card(&bench, 256 * MIB);
    sleepers_make(&bench, &all);
    bench.host.fail_at = atomic_load(&bench.host.calls) + n;
    bench.host.fail_count = 1;
    const gm_status slept = gm_pool_sleep_whole(bench.pool, true, NULL, NULL, &failure);
    assert_true(slept == GM_OK || slept == GM_ERR_OUT_OF_HOST_MEMORY);
    failed += slept != GM_OK;
    if (slept) sleepers_check(&all);
    const gm_status woken = gm_pool_wake(bench.pool, NULL, &failure);
    assert_true(woken == GM_OK || woken == GM_ERR_OUT_OF_HOST_MEMORY);
    if (woken) pool_bench_ok(gm_pool_wake(bench.pool, NULL, err));
    sleepers_check(&all);
    sleepers_end(&bench, &all);
    pool_bench_close(&bench);
  }
  assert_true(failed > 2);
}

/* Nothing sleeps while somebody holds a buffer or has mapped a block. */
static void test_who_holds_memory_refuses_the_sleep(void **state) {
  (void)state;
  pool_bench bench;
  sleepers all;
  gm_error failure;
  void *host = NULL;
  open_paged_card(&bench, 256 * MIB);
  sleepers_make(&bench, &all);
  gm_buffer *buffer = relocation_make(bench.pool, MIB, 0);
  relocation_fill(buffer);
  pool_bench_ok(gm_buffer_lock(buffer, NULL, err));
  assert_int_equal(gm_pool_sleep_whole(bench.pool, false, NULL, NULL, &failure), GM_ERR_BUSY);
  pool_bench_ok(gm_buffer_unlock(buffer, NULL, err));
  pool_bench_ok(gm_block_map(bench.pool, &all.blocks[1], 0, 8, GM_MAP_READ, NULL, &host, err));
  assert_int_equal(gm_pool_sleep_whole(bench.pool, false, NULL, NULL, &failure), GM_ERR_BUSY);
  pool_bench_ok(gm_block_unmap(bench.pool, &all.blocks[1], host, NULL, err));
  relocation_check(buffer);
  sleepers_check(&all);
  gm_block block;
  const gm_request small = {.bytes = 100};
  assert_true(gm_acquired(gm_alloc(bench.pool, &small, &block)));
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  gm_buffer_release(buffer, NULL);
  sleepers_end(&bench, &all);
  pool_bench_close(&bench);
}

/* gm may not wait for a stream that an engine captures. */
static void test_a_captured_stream_refuses_the_sleep(void **state) {
  (void)state;
  pool_bench bench;
  gm_error failure;
  gm_stream *stream = NULL, *strange = NULL;
  gm_block block;
  open_paged_card(&bench, 256 * MIB);
  pool_bench_ok(gm_stream_create(bench.device, &stream, err));
  pool_bench_ok(gm_stream_create(bench.device, &strange, err));
  const gm_request request = {.bytes = MIB, .stream = stream};
  assert_true(gm_acquired(gm_alloc(bench.pool, &request, &block)));
  pool_bench_ok(gm_stream_capture_begin(stream, err));
  assert_int_equal(gm_pool_sleep_whole(bench.pool, false, NULL, NULL, &failure), GM_ERR_BUSY);
  pool_bench_ok(gm_stream_capture_end(stream, err));
  pool_bench_ok(gm_stream_capture_begin(strange, err));
  assert_int_equal(gm_pool_sleep_whole(bench.pool, false, strange, NULL, &failure), GM_ERR_BUSY);
  memset((void *)(uintptr_t)block.address, 5, (size_t)block.bytes);
  sleep_ok(&bench, false, NULL); /* the pool knows nothing of the other stream */
  assert_int_equal(gm_pool_wake(bench.pool, strange, &failure), GM_ERR_BUSY);
  pool_bench_ok(gm_stream_capture_end(strange, err));
  pool_bench_ok(gm_pool_wake(bench.pool, strange, err));
  assert_int_equal(gm_free(bench.pool, &block, stream), GM_OK);
  pool_bench_ok(gm_stream_close(stream, err));
  pool_bench_ok(gm_stream_close(strange, err));
  pool_bench_close(&bench);
}

/* A buffer stays in its place, and can be released while it has no memory. */
static void test_buffers_keep_their_addresses(void **state) {
  (void)state;
  pool_bench bench;
  gm_error failure;
  gm_block before, after;
  unsigned char byte = 0;
  open_paged_card(&bench, 256 * MIB);
  gm_buffer *buffer = relocation_make(bench.pool, 5 * MIB, 0), *gone = relocation_make(bench.pool, MIB, GM_RELOCATABLE);
  relocation_fill(buffer);
  pool_bench_ok(gm_buffer_block(buffer, &before, err));
  sleep_ok(&bench, true, NULL);
  assert_int_equal(gm_buffer_read(buffer, 0, &byte, 1, NULL, &failure), GM_ERR_BUSY);
  assert_int_equal(gm_buffer_move(buffer, GM_LOCATION_HOST, NULL, &failure), GM_ERR_BUSY);
  assert_int_equal(gm_buffer_location(buffer), GM_LOCATION_DEVICE);
  gm_compact_report report = relocation_compact(bench.pool);
  assert_int_equal(report.moves, 0);
  gm_buffer_release(gone, NULL);
  pool_bench_ok(gm_pool_wake(bench.pool, NULL, err));
  pool_bench_ok(gm_buffer_block(buffer, &after, err));
  assert_memory_equal(&before, &after, sizeof before);
  relocation_check(buffer);
  gm_buffer_release(buffer, NULL);
  pool_bench_close(&bench);
}

static void test_pools_that_cannot_sleep_say_so(void **state) {
  (void)state;
  pool_bench bench;
  gm_error failure;
  gm_pool *other = NULL;
  const gm_pool_params plain = {.struct_size = sizeof plain, .no_vmm = true},
                       zones = {.struct_size = sizeof zones, .red_zone_bytes = 64};
  open_paged_card(&bench, 256 * MIB);
  pool_bench_ok(gm_pool_create(bench.device, &plain, &other, err));
  assert_int_equal(gm_pool_sleep_whole(other, true, NULL, NULL, &failure), GM_ERR_NOT_SUPPORTED);
  pool_bench_ok(gm_pool_destroy(other, err));
  pool_bench_ok(gm_pool_create(bench.device, &zones, &other, err));
  assert_int_equal(gm_pool_sleep_whole(other, true, NULL, NULL, &failure), GM_ERR_NOT_SUPPORTED);
  pool_bench_ok(gm_pool_destroy(other, err));
  assert_int_equal(gm_pool_sleep_whole(NULL, true, NULL, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  sleep_ok(&bench, true, NULL); /* an empty one can */
  pool_bench_ok(gm_pool_wake(bench.pool, NULL, err));
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_blocks_keep_addresses_and_contents),
      cmocka_unit_test(test_contents_may_be_dropped),
      cmocka_unit_test(test_a_sleeping_pool_refuses_and_frees),
      cmocka_unit_test(test_waking_takes_memory_for_what_lives),
      cmocka_unit_test(test_a_sleeping_pool_can_end),
      cmocka_unit_test(test_waking_without_room_can_be_repeated),
      cmocka_unit_test(test_waking_takes_what_other_pools_keep),
      cmocka_unit_test(test_the_nth_call_of_the_driver_fails),
      cmocka_unit_test(test_pages_that_are_shut_at_waking),
      cmocka_unit_test(test_the_nth_host_allocation_fails),
      cmocka_unit_test(test_who_holds_memory_refuses_the_sleep),
      cmocka_unit_test(test_a_captured_stream_refuses_the_sleep),
      cmocka_unit_test(test_buffers_keep_their_addresses),
      cmocka_unit_test(test_pools_that_cannot_sleep_say_so),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
