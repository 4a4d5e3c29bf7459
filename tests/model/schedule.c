#include "model/schedule.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "gm/batch.h"
#include "gm/cleanup.h"
#include "gm/config.h"
#include "gm/copy.h"
#include "model/hands.h"
#include "model/schedule_parts.h"
#include "support/counted_services.h"

/* ---- work ---- */

static void follow_readers(schedule *s, const lease *l, int to) {
  for (int i = 0; i < STREAMS; i++) {
    if (l->readers & 1u << i) follow(s, to, i);
  }
}

static void kernel(schedule *s, const lease *l, int stream, late_kind kind) {
  say(s, kind == LATE_WRITE ? "write" : "read", l, stream, NOBODY);
  late_kernel(s->driver, s->slots[stream], kind, l->block.address, l->block.bytes, l->word);
}

static void write_on(schedule *s, lease *l, int stream) {
  if (l->taken_on != NOBODY && l->taken_on != stream) follow(s, stream, l->taken_on);
  if (l->writer != NOBODY) follow(s, stream, l->writer);
  follow_readers(s, l, stream);
  l->taken_on = NOBODY;
  l->word = ++s->word;
  l->writer = stream;
  l->readers = 0;
  l->written = true;
  kernel(s, l, stream, LATE_WRITE);
}

static void read_on(schedule *s, lease *l, int stream) {
  if (!l->written) return;
  if (l->writer != NOBODY) follow(s, stream, l->writer);
  l->readers |= 1u << stream;
  kernel(s, l, stream, LATE_CHECK);
}

/* ---- taking ---- */

static bool overlaps(const lease *a, const lease *b) {
  return a->block.address < b->block.address + b->block.bytes && b->block.address < a->block.address + a->block.bytes;
}

/* The block is the schedule's; what it is used for first comes at once, in the order of the request's stream. */
static void begin_lease(schedule *s, const lease *fresh, int stream, bool zeroed) {
  for (uint32_t i = 0; i < s->count; i++) {
    if (overlaps(&s->leases[i], fresh)) wrong(s, "a block overlaps a live one", fresh->block.address);
  }
  say(s, zeroed ? "take zeroed" : "take", fresh, stream, NOBODY);
  if (fresh->block.bytes < fresh->asked) wrong(s, "fewer bytes than asked for", fresh->block.bytes);
  lease *l = &s->leases[s->count++];
  *l = *fresh;
  l->taken_on = stream;
  if (zeroed) {
    l->written = true;
    l->writer = stream;
    read_on(s, l, stream == NOBODY ? any_stream(s) : stream);
  }
  if (chance(s, 90)) write_on(s, l, stream == NOBODY ? any_stream(s) : stream);
}

static bool obey(schedule *s, gm_acquire answer, const gm_block *block, int stream, bool insert) {
  if (answer == GM_ACQUIRE_EXHAUSTED || answer == GM_ACQUIRE_OVER_LIMIT) return false;
  if (answer > GM_ACQUIRE_OVER_LIMIT || (insert && answer > GM_ACQUIRE_FRESH)) wrong(s, "gm_alloc", answer);
  if (answer > GM_ACQUIRE_FRESH && stream == NOBODY) wrong(s, "the host is to wait", answer);
  if (s->why[0]) return false;
  say(s, "answer", NULL, stream, (int)answer);
  if (answer == GM_ACQUIRE_NEEDS_BARRIER) follow(s, stream, stream);
  if (answer != GM_ACQUIRE_NEEDS_WAIT) return true;
  const gm_point point = gm_block_point(s->pool, block);
  if (!point.stream) wrong(s, "NEEDS_WAIT without a point", block->address);
  wait_for(s, stream, &point);
  return true;
}

static uint64_t any_bytes(schedule *s) { return test_log_uniform(&s->random, s->largest); }

static uint64_t whole_granules(uint64_t bytes) { return (bytes + LATE_GRANULE - 1) / LATE_GRANULE * LATE_GRANULE; }

static void take(schedule *s) {
  const int stream = chance(s, 90) ? any_stream(s) : NOBODY;
  const bool insert = chance(s, s->insert), zeroed = chance(s, 4) && !is_mute(s, stream);
  lease l = {.asked = any_bytes(s), .writer = NOBODY};
  gm_request request = {.bytes = l.asked, .stream = stream == NOBODY ? NULL : s->streams[stream]};
  request.flags = (insert ? GM_INSERT_WAIT : 0) | (zeroed ? GM_ZERO : 0) | (chance(s, 3) ? GM_POOLED_ONLY : 0);
  if (chance(s, 10)) request.align = 1u << below(s, 16);
  if (chance(s, 3)) {
    request.flags |= GM_DEDICATED;
    request.bytes = l.asked = whole_granules(l.asked); /* the driver counts those, the pool what it asks for */
  }
  wish_for_memory(s, &request);
  const gm_acquire answer = gm_alloc(s->pool, &request, &l.block);
  if (!obey(s, answer, &l.block, stream, insert || zeroed)) return;
  if (request.align && l.block.address % request.align) wrong(s, "not aligned", request.align);
  check_wish(s, &request, &l.block);
  begin_lease(s, &l, stream, zeroed);
}

static void take_by_pointer(schedule *s) {
  const int stream = any_stream(s);
  lease l = {.asked = any_bytes(s), .writer = NOBODY, .by_pointer = true};
  char *pointer = gm_malloc(s->pool, l.asked, s->streams[stream]);
  if (!pointer) return;
  must(s, "gm_block_of", gm_block_of(s->pool, pointer + below(s, l.asked), &l.block));
  if (l.block.address != (uintptr_t)pointer) wrong(s, "gm_block_of found another block", l.block.address);
  begin_lease(s, &l, stream, false);
}

static void take_batch(schedule *s) {
  gm_request requests[BATCH];
  gm_part parts[BATCH];
  const int stream = any_stream(s);
  const uint32_t count = 1 + (uint32_t)below(s, BATCH);
  if (s->count + count > LEASES) return;
  for (uint32_t i = 0; i < count; i++) requests[i] = (gm_request){any_bytes(s), .stream = s->streams[stream]};
  const gm_batch_params params = {.struct_size = sizeof params, .requests = requests, .count = count};
  const gm_status status = gm_alloc_batch(s->pool, &params, parts, NULL, NULL);
  if (status == GM_ERR_OVER_LIMIT || status == GM_ERR_OUT_OF_DEVICE_MEMORY) return;
  must(s, "gm_alloc_batch", status);
  for (uint32_t i = 0; i < count && status == GM_OK; i++) {
    const lease l = {.block = parts[i].block, .asked = requests[i].bytes, .writer = NOBODY};
    begin_lease(s, &l, stream, false);
  }
}

/* ---- giving ---- */

/* Work of the block outside the order of `stream` is made known; with less right than that a block may not be freed. */
static void announce(schedule *s, const lease *l, int stream) {
  uint32_t users = l->readers | (l->writer == NOBODY ? 0 : 1u << l->writer);
  if (stream != NOBODY) users &= ~(1u << stream);
  for (int i = 0; i < STREAMS; i++) {
    if (!(users & 1u << i)) continue;
    if (stream != NOBODY && chance(s, 50)) {
      follow(s, stream, i);
    } else {
      say(s, "use on", l, i, NOBODY);
      must(s, "gm_use_on", gm_use_on(s->pool, &l->block, s->streams[i]));
    }
  }
}

/* With a point of the stream, which may be given more work before that is done. Without a stream: with the kept point,
 * which says nothing of the block. */
static gm_status end_at(schedule *s, const lease *l, int stream) {
  if (stream == NOBODY) return gm_free_at(s->pool, &l->block, &s->kept, NULL);
  gm_point point = point_of(s, stream);
  if (s->count && chance(s, 30)) read_on(s, &s->leases[below(s, s->count)], stream);
  const gm_status status = gm_free_at(s->pool, &l->block, &point, NULL);
  gm_point_release(s->device, &point);
  return status;
}

static void end_lease(schedule *s, uint32_t at) {
  lease l = s->leases[at];
  const bool by_point = chance(s, 15);
  const int stream = chance(s, by_point ? 40 : 8)          ? NOBODY
                     : chance(s, 70) && l.writer != NOBODY ? l.writer
                                                           : any_stream(s);
  gm_stream *order = stream == NOBODY ? NULL : s->streams[stream];
  announce(s, &l, stream);
  say(s, by_point ? "give at a point" : "give", &l, stream, NOBODY);
  s->leases[at] = s->leases[--s->count];
  if (by_point) {
    must(s, "gm_free_at", end_at(s, &l, stream));
  } else if (l.by_pointer) {
    must(s, "gm_free_ptr", gm_free_ptr(s->pool, (void *)(uintptr_t)l.block.address, l.asked, order));
  } else {
    must(s, "gm_free", gm_free(s->pool, &l.block, order));
  }
  if (!chance(s, 5)) return;
  const gm_status again = by_point ? end_at(s, &l, stream) : gm_free(s->pool, &l.block, order);
  if (again != GM_ERR_INVALID_ARGUMENT) wrong(s, "a second free", again);
}

static void give(schedule *s) {
  if (s->count == 0) return;
  const uint32_t at = (uint32_t)below(s, s->count);
  if (chance(s, 70)) read_on(s, &s->leases[at], any_stream(s));
  end_lease(s, at);
}

/* ---- the rest ---- */

static void tidy(schedule *s) {
  const uint64_t what = below(s, 6);
  say(s, "tidy", NULL, (int)what, NOBODY);
  switch (what) {
    case 0: gm_pool_trim(s->pool, below(s, s->largest)); break;
    case 1: gm_pool_coalesce(s->pool, chance(s, 50)); break;
    case 2: gm_pool_collect(s->pool); break;
    case 3: gm_pool_clear(s->pool); break;
    case 4: gm_pool_shrink(s->pool, below(s, 4 * s->largest)); break;
    default: late_drift(s->driver); break;
  }
}

static void step(schedule *s) {
  const uint64_t what = below(s, 100);
  lease *l = s->count ? &s->leases[below(s, s->count)] : NULL;
  if (chance(s, 5)) keep_point(s, any_stream(s));
  if (what < 44 && s->count < LEASES) {
    chance(s, 80) ? take(s) : take_by_pointer(s);
  } else if (what < 46) {
    take_batch(s);
  } else if (what < 82) {
    give(s);
  } else if (what < 94) {
    if (l) chance(s, 60) ? read_on(s, l, any_stream(s)) : write_on(s, l, any_stream(s));
  } else if (what < 96) {
    chance(s, 70) ? sync_stream(s, any_stream(s)) : tell_passed(s, any_stream(s));
  } else if (what < 97) {
    renew_stream(s, any_stream(s));
    if (chance(s, 30)) close_filler(s, (uint32_t)below(s, FILLERS));
  } else {
    tidy(s);
  }
}

/* ---- a schedule ---- */

static void check_quiet(schedule *s) {
  gm_stats stats = {.struct_size = sizeof stats};
  uint64_t bytes = 0, asked = 0;
  for (uint32_t i = 0; i < s->count; i++) {
    bytes += s->leases[i].block.bytes;
    asked += s->leases[i].asked;
  }
  gm_pool_stats(s->pool, &stats);
  if (stats.active != s->count) wrong(s, "active", stats.active);
  if (stats.in_use_bytes != bytes) wrong(s, "in_use_bytes", stats.in_use_bytes);
  if (stats.requested_bytes != asked) wrong(s, "requested_bytes", stats.requested_bytes);
  if (stats.reserved_bytes != s->driver->used) wrong(s, "reserved_bytes", stats.reserved_bytes);
  if (stats.reserved_bytes != stats.in_use_bytes + stats.pooled_bytes) wrong(s, "pooled_bytes", stats.pooled_bytes);
}

static void open_pool(schedule *s, const schedule_params *how) {
  const uint64_t page = LATE_PAGE;
  gm_pool_params params = {.struct_size = sizeof params, .strategy = how->strategy};
  if (how->any_strategy) params.strategy = chance(s, 20) ? GM_STRATEGY_BUCKET : GM_STRATEGY_BEST_FIT;
  params.no_vmm = how->no_vmm || chance(s, 50);
  params.checked = chance(s, 50);
  params.track = chance(s, 10);
  params.max_bytes = page * (2 + below(s, 7));
  s->largest = page >> below(s, 5);
  s->stream_count = 2 + (uint32_t)below(s, STREAMS - 1);
  s->insert = (uint32_t)below(s, 3) * 50;
  s->mutes = chance(s, 30) ? 40 : 0;
  draw_wishes(s);
  s->driver->eagerness = (uint32_t)(chance(s, 40) ? 0 : below(s, 15));
  s->driver->high = chance(s, 50);
  s->aloud = how->aloud;
  must(s, "gm_pool_create", gm_pool_create(s->device, &params, &s->pool, NULL));
  for (int i = 0; i < (int)s->stream_count; i++) open_stream(s, i);
  if (chance(s, 3)) open_fillers(s);
}

/* A pool whose streams nobody can wait for stays until the engine has said that they are done. */
static void destroy_pool(schedule *s) {
  bool mute = false;
  for (int i = 0; i < (int)s->stream_count; i++) mute |= is_mute(s, i);
  gm_status status = gm_pool_destroy(s->pool, NULL);
  if (status == GM_ERR_BUSY && mute) {
    settle_all(s);
    status = gm_pool_destroy(s->pool, NULL);
  }
  must(s, "gm_pool_destroy", status);
  if (s->driver->used) wrong(s, "bytes are left after the pool", s->driver->used);
}

/* Everything is freed, and every byte is the driver's again: after a trim, or with the pool while work is pending. */
static void end(schedule *s) {
  const bool trim = chance(s, 70);
  check_quiet(s);
  while (s->count) end_lease(s, s->count - 1);
  keep_point(s, NOBODY);
  if (trim) settle_all(s);
  if (trim) gm_pool_trim(s->pool, 0);
  check_quiet(s);
  if (trim && s->driver->used) wrong(s, "bytes are left after a trim", s->driver->used);
  destroy_pool(s);
  for (int i = 0; i < (int)s->stream_count; i++) close_stream(s, i);
  for (uint32_t i = 0; i < FILLERS; i++) close_filler(s, i);
  if (s->driver->points) wrong(s, "points are left", (uint64_t)s->driver->points);
}

static void step_of(void *argument) {
  late_next = ((schedule *)argument)->driver; /* the other thread has the same clock */
  step(argument);
}

static void run_one(schedule *s, const schedule_params *how, hands *h) {
  late_reset(s->driver, s->random ^ UINT64_C(0x5851f42d4c957f2d));
  s->count = s->word = 0;
  s->why[0] = 0;
  open_pool(s, how);
  const bool both = h->running && chance(s, 6);
  for (uint64_t left = 16 + below(s, 48); left && !s->why[0] && !s->driver->faults; left--) {
    if (both && chance(s, 50)) {
      hands_do(h, step_of, s);
    } else {
      step(s);
    }
  }
  end(s);
  if (s->driver->faults) snprintf(s->why, sizeof s->why, "%s", s->driver->fault);
}

/* ---- all of them ---- */

typedef struct share {
  const schedule_params *params;
  uint64_t first, count;
  uint64_t failed;
  unsigned processor; /* where the caller of all shares ran */
  uint32_t nth;
  bool started;
  pthread_t thread;
} share;

static gm_status open_context(schedule *s, const counted_services *host) {
  const gm_context_params params = {
      .struct_size = sizeof params, .services = &host->services, .backends = "late", .ignore_environment = true};
  gm_status status = gm_context_create(&params, &s->ctx, NULL);
  late_next = s->driver;
  if (!status) status = gm_backend_register(s->ctx, &late_ops, NULL);
  if (!status) status = gm_config_set(s->ctx, "memory_fraction", "1", NULL);
  if (!status) status = gm_config_set(s->ctx, "min_free_bytes", "0", NULL);
  if (!status) status = gm_config_set(s->ctx, "track_allocations", "false", NULL); /* the short ways, too */
  const bool alone = s->seed / PER_CONTEXT % 4; /* one context in four looks at what other processes reserve */
  if (!status && alone) status = gm_config_set(s->ctx, "reserve.share", "off", NULL);
  return status ? status : gm_device_open_index(s->ctx, "late", 0, &s->device, NULL);
}

static uint64_t close_context(schedule *s, const counted_services *host) {
  must(s, "gm_device_close", gm_device_close(s->device, NULL));
  must(s, "gm_context_destroy", gm_context_destroy(s->ctx, NULL));
  if (!s->why[0] && atomic_load(&host->live_bytes)) wrong(s, "host memory is left", atomic_load(&host->live_bytes));
  if (!s->why[0]) return 0;
  fprintf(stderr, "failed: around seed %" PRIu64 ": %s\n", s->seed, s->why);
  return 1;
}

/* So many schedules in one context; how many failed. The first that fails ends them: what it left behind is its own. */
static uint64_t run_some(const schedule_params *params, uint64_t first, uint64_t count, late_driver *driver) {
  counted_services host;
  hands h;
  schedule s = {.driver = driver, .seed = first};
  counted_services_init(&host);
  if (open_context(&s, &host) != GM_OK) return fprintf(stderr, "failed: no context with the late driver\n"), 1;
  hands_begin(&h);
  for (uint64_t i = 0; i < count && !s.why[0]; i++) {
    s.seed = s.random = first + i;
    run_one(&s, params, &h);
  }
  hands_end(&h);
  return close_context(&s, &host);
}

/* Keeps this thread, and the hand that it starts, on one processor: the hands take turns, so two would only wake each
 * other. Shares that count from the same processor get different ones. A refusal leaves the thread as it was. */
static void keep_near(unsigned processor, uint32_t nth) {
  cpu_set_t all, one;
  if (processor >= CPU_SETSIZE || sched_getaffinity(0, sizeof all, &all)) return;
  for (uint32_t left = nth % (uint32_t)CPU_COUNT(&all) + 1; left; left -= CPU_ISSET(processor, &all) != 0) {
    processor = (processor + 1) % CPU_SETSIZE;
  }
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  (void)sched_setaffinity(0, sizeof one, &one);
}

static void *run_share(void *argument) {
  share *part = argument;
  keep_near(part->processor, part->nth);
  for (uint64_t at = 0; at < part->count && !part->failed; at += PER_CONTEXT) {
    const uint64_t left = part->count - at;
    late_driver *driver = calloc(1, sizeof *driver);
    if (driver)
      part->failed += run_some(part->params, part->first + at, left < PER_CONTEXT ? left : PER_CONTEXT, driver);
    if (!driver) part->failed++;
    late_next = NULL;
    free(driver);
  }
  return NULL;
}

bool schedules_run(const schedule_params *params) {
  share shares[16];
  uint64_t failed = 0;
  const unsigned processor = (unsigned)sched_getcpu();
  for (uint32_t i = 0; i < params->threads; i++) {
    const uint64_t from = params->count * i / params->threads, to = params->count * (i + 1) / params->threads;
    shares[i] =
        (share){.params = params, .first = params->seed + from, .count = to - from, .processor = processor, .nth = i};
    shares[i].started = i && !pthread_create(&shares[i].thread, NULL, run_share, &shares[i]);
  }
  for (uint32_t i = 0; i < params->threads; i++) {
    if (!shares[i].started) run_share(&shares[i]);
  }
  for (uint32_t i = 0; i < params->threads; i++) {
    if (shares[i].started) pthread_join(shares[i].thread, NULL);
    failed += shares[i].failed;
  }
  printf("%" PRIu64 " schedules, seeds from %" PRIu64 "\n%" PRIu64 " passed, %" PRIu64 " failed\n", params->count,
         params->seed, failed ? 0 : params->count, failed);
  return failed == 0;
}
