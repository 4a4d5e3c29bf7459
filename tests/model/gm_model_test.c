/* gm_model_test [--seed N] [--ops N] [--strategy S] [--backend B] [--device I] [--threads N] [--untracked 1]
 *               [--no-vmm 1] [--zero-segments 1]
 *
 * A pool under random operations, watched by a model that knows nothing of how the pool works: live ranges never
 * overlap, contents stay as they were written (work on other streams, still running when a block is freed, must not
 * reach its next owner), alignment is kept, limits hold, and at every quiet moment the accounts are exact to the byte.
 * Blocks wander between threads and streams. The seed is printed; the same seed and one thread repeat a run. */
#include "model/model.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gm/debug.h"

#include "gm/config.h"
#include "support/named_libraries.h"

static gm_stream *any_stream(worker *w) { return w->m->streams[below(w, w->m->stream_count)]; }

static void add_range(model *m, const gm_block *block) {
  pthread_mutex_lock(&m->lock);
  bool clear = true;
  for (uint32_t i = 0; i < m->range_count; i++) {
    const gm_block *other = &m->ranges[i];
    if (block->address < other->address + other->bytes && other->address < block->address + block->bytes) clear = false;
  }
  m->ranges[m->range_count++] = *block;
  pthread_mutex_unlock(&m->lock);
  CHECK(m, clear, "block at 0x%" PRIx64 " of %" PRIu64 " bytes overlaps a live one", block->address, block->bytes);
}

static void remove_range(model *m, const gm_block *block) {
  pthread_mutex_lock(&m->lock);
  uint32_t at = 0;
  while (at < m->range_count && m->ranges[at].address != block->address) at++;
  if (at < m->range_count) m->ranges[at] = m->ranges[--m->range_count];
  pthread_mutex_unlock(&m->lock);
}

static bool put(model *m, const owned *o) {
  pthread_mutex_lock(&m->lock);
  bool room = m->table_count < MAX_LIVE;
  if (room) m->table[m->table_count++] = *o;
  pthread_mutex_unlock(&m->lock);
  return room;
}

static bool pick(worker *w, owned *out) {
  model *m = w->m;
  pthread_mutex_lock(&m->lock);
  bool any = m->table_count > 0;
  if (any) {
    uint64_t at = below(w, m->table_count);
    *out = m->table[at];
    m->table[at] = m->table[--m->table_count];
  }
  pthread_mutex_unlock(&m->lock);
  return any;
}

/* Make `to` follow the block's last work. */
static void order_after(model *m, const owned *o, gm_stream *to) {
  if (!o->stream) return;
  if (o->stream == to) {
    CHECK_OK(m, gm_stream_barrier(to, &err));
    return;
  }
  gm_point point = {0};
  CHECK_OK(m, gm_stream_record(o->stream, &point, &err));
  CHECK_OK(m, gm_stream_wait(to, &point, &err));
  gm_point_release(m->device, &point);
}

/* Submitted and not waited for: it may well still be running when the block is freed. */
static void fill(worker *w, owned *o, gm_stream *stream) {
  model *m = w->m;
  order_after(m, o, stream);
  o->pattern = roll(w);
  o->stream = stream;
  o->filled = true;
  gm_point point = {0};
  CHECK_OK(m, gm_block_fill(m->pool, &o->block, 0, o->block.bytes, &o->pattern, 8, stream, &point, &err));
  gm_point_release(m->device, &point);
}

/* Keep a stream busy for a while, so that what is submitted next runs late. Each has scratch memory of its own. */
static void delay(model *m, gm_stream *stream) {
  uint32_t at = 0;
  while (at + 1 < m->stream_count && m->streams[at] != stream) at++;
  for (int i = 0; m->has_memory && i < 4; i++) {
    gm_point point = {0};
    CHECK_OK(m, gm_stream_barrier(stream, &err));
    CHECK_OK(m, gm_block_fill(m->scratch_pool, &m->scratch, (uint64_t)at * SCRATCH, SCRATCH, "late", 4, stream, &point,
                              &err));
    gm_point_release(m->device, &point);
  }
}

static void write_by_host(worker *w, owned *o, gm_stream *stream) {
  model *m = w->m;
  unsigned char bytes[WINDOW];
  order_after(m, o, stream);
  uint64_t at = o->block.bytes > WINDOW ? below(w, o->block.bytes - WINDOW) : 0;
  uint64_t count = o->block.bytes - at < WINDOW ? o->block.bytes - at : WINDOW;
  for (uint64_t i = 0; i < count; i++) bytes[i] = ((unsigned char *)&o->pattern)[(at + i) % 8];
  CHECK_OK(m, gm_block_write(m->pool, &o->block, at, bytes, count, stream, NULL, &err));
  o->stream = stream;
}

static bool window_is_right(model *m, const owned *o, uint64_t at, gm_stream *stream) {
  unsigned char bytes[WINDOW];
  uint64_t count = o->block.bytes - at < WINDOW ? o->block.bytes - at : WINDOW;
  gm_error err = {.status = GM_OK};
  gm_status status = gm_block_read(m->pool, &o->block, at, bytes, count, stream, NULL, &err);
  if (status) {
    complain(m, "gm_block_read: %s", err.message);
    return false;
  }
  for (uint64_t i = 0; i < count; i++) {
    if (bytes[i] != ((const unsigned char *)&o->pattern)[(at + i) % 8]) return false;
  }
  return true;
}

static void verify(worker *w, owned *o, gm_stream *stream) {
  model *m = w->m;
  if (!m->has_memory || !o->filled) return;
  order_after(m, o, stream);
  uint64_t last = o->block.bytes > WINDOW ? o->block.bytes - WINDOW : 0;
  bool right = window_is_right(m, o, 0, stream) && window_is_right(m, o, last, stream) &&
               window_is_right(m, o, last ? below(w, last) : 0, stream);
  CHECK(m, right, "contents of the block at 0x%" PRIx64 " of %" PRIu64 " bytes changed", o->block.address,
        o->block.bytes);
  o->stream = stream;
}

/* What the answer asks of the owner of the stream. */
static bool obey(model *m, gm_acquire answer, const owned *o, gm_stream *stream) {
  if (answer == GM_ACQUIRE_NEEDS_BARRIER) CHECK_OK(m, gm_stream_barrier(stream, &err));
  if (answer == GM_ACQUIRE_NEEDS_WAIT) {
    gm_point point = gm_block_point(m->pool, &o->block);
    CHECK_OK(m, gm_stream_wait(stream, &point, &err));
  }
  return answer <= GM_ACQUIRE_NEEDS_BARRIER;
}

static void check_zero(worker *w, owned *o) {
  o->pattern = 0;
  o->filled = true;
  verify(w, o, o->stream ? o->stream : any_stream(w));
}

static bool take_block(worker *w, owned *o) {
  model *m = w->m;
  gm_request request = {.bytes = o->asked, .stream = chance(w, 80) ? any_stream(w) : NULL, .tag = m->tags[below(w, 4)]};
  if (chance(w, 30)) request.align = 1u << below(w, 13);
  if (chance(w, 50)) request.flags |= GM_INSERT_WAIT;
  if (chance(w, 5)) request.flags |= GM_ZERO;
  if (chance(w, 10)) request.must_be = GM_ANYWHERE;
  if (m->has_memory && chance(w, 10)) {
    request.flags |= GM_HOST_VISIBLE;
    request.must_be = GM_ANYWHERE; /* few devices' own memory can be mapped */
  }
  if (m->has_memory && chance(w, 2)) request.flags |= GM_COMMIT;
  gm_acquire answer = gm_alloc(m->pool, &request, &o->block);
  CHECK(m, answer <= GM_ACQUIRE_OVER_LIMIT, "gm_alloc of %" PRIu64 " bytes answered %d", o->asked, (int)answer);
  if (!obey(m, answer, o, request.stream)) return false;
  o->stream = request.stream;
  CHECK(m, request.align == 0 || o->block.address % request.align == 0, "0x%" PRIx64 " is not aligned to %u",
        o->block.address, request.align);
  if (request.flags & GM_ZERO) check_zero(w, o);
  return true;
}

static bool take_pointer(worker *w, owned *o) {
  model *m = w->m;
  gm_stream *stream = chance(w, 50) ? any_stream(w) : NULL;
  const char *pointer = gm_malloc(m->pool, o->asked, stream);
  if (!pointer) return false;
  gm_status status = gm_block_of(m->pool, pointer + below(w, o->asked), &o->block);
  CHECK(m, status == GM_OK, "gm_block_of: %s", gm_status_name(status));
  CHECK(m, o->block.address == (uintptr_t)pointer, "gm_block_of found another block");
  o->stream = stream;
  o->by_pointer = true;
  return true;
}

static void give(worker *w, const owned *o);

static void take(worker *w, uint64_t bytes) {
  model *m = w->m;
  owned o = {.asked = bytes};
  if (!(chance(w, 20) ? take_pointer(w, &o) : take_block(w, &o))) {
    atomic_fetch_add(&m->refused, 1);
    return;
  }
  atomic_fetch_add(&m->allocs, 1);
  CHECK(m, o.block.bytes >= o.asked, "%" PRIu64 " bytes for %" PRIu64, o.block.bytes, o.asked);
  add_range(m, &o.block);
  if (chance(w, 90)) fill(w, &o, o.stream ? o.stream : any_stream(w));
  if (!put(m, &o)) give(w, &o);
}

/* Free by one of the ways that the contract allows when work of o->stream may still run. */
static gm_stream *prepare_free(worker *w, const owned *o) {
  model *m = w->m;
  if (!o->stream) return chance(w, 50) ? any_stream(w) : NULL;
  switch (below(w, 4)) {
    case 0: CHECK_OK(m, gm_stream_sync(o->stream, &err)); return NULL;
    case 1: {
      gm_stream *other = any_stream(w);
      if (other != o->stream) order_after(m, o, other);
      return other;
    }
    case 2: {
      gm_status status = gm_use_on(m->pool, &o->block, o->stream);
      CHECK(m, status == GM_OK, "gm_use_on: %s", gm_status_name(status));
      return any_stream(w);
    }
    default: return o->stream;
  }
}

static void give(worker *w, const owned *o) {
  model *m = w->m;
  gm_stream *stream = prepare_free(w, o);
  remove_range(m, &o->block);
  void *pointer = (void *)(uintptr_t)o->block.address;
  gm_status status = o->by_pointer ? gm_free_ptr(m->pool, pointer, chance(w, 50) ? o->asked : 0, stream)
                                   : gm_free(m->pool, &o->block, stream);
  CHECK(m, status == GM_OK, "gm_free: %s", gm_status_name(status));
  if (!chance(w, 10)) return;
  status = gm_free(m->pool, &o->block, NULL);
  CHECK(m, status == GM_ERR_INVALID_ARGUMENT, "a second gm_free answered %s", gm_status_name(status));
}

static void step_give(worker *w) {
  owned o;
  if (!pick(w, &o)) return;
  if (chance(w, 50)) verify(w, &o, o.stream ? o.stream : any_stream(w));
  bool late = chance(w, 10);
  if (late) { /* work that still runs when the next owner begins, and that it must not see */
    gm_stream *stream = any_stream(w);
    delay(w->m, stream);
    fill(w, &o, stream);
  }
  give(w, &o);
  if (late) take(w, o.asked);
}

static void step_use(worker *w) {
  owned o;
  if (!pick(w, &o)) return;
  gm_stream *stream = any_stream(w);
  if (stream != o.stream) { /* its owner frees it without a word about this stream */
    gm_status status = gm_use_on(w->m->pool, &o.block, stream);
    CHECK(w->m, status == GM_OK, "gm_use_on: %s", gm_status_name(status));
  }
  switch (o.filled ? below(w, 3) : 0) {
    case 0: fill(w, &o, stream); break;
    case 1: write_by_host(w, &o, stream); break;
    default: verify(w, &o, stream); break;
  }
  if (!put(w->m, &o)) give(w, &o);
}

static void step_trim(worker *w) {
  model *m = w->m;
  gm_pool_trim(m->pool, below(w, m->cap));
  gm_stats stats;
  gm_pool_stats(m->pool, &stats);
  CHECK(m, stats.reserved_bytes <= m->cap, "%" PRIu64 " bytes reserved, the cap is %" PRIu64, stats.reserved_bytes,
        m->cap);
  CHECK(m, stats.requested_bytes <= stats.in_use_bytes && stats.in_use_bytes <= stats.reserved_bytes,
        "statistics contradict each other");
}

static void *work(void *argument) {
  worker *w = argument;
  for (uint64_t i = 0; i < w->ops; i++) {
    uint64_t what = below(w, 100);
    if (what < 44) {
      take(w, test_log_uniform(&w->random, w->m->largest));
    } else if (what < 84) {
      step_give(w);
    } else if (what < 99) {
      step_use(w);
    } else {
      step_trim(w);
    }
  }
  return NULL;
}

/* Nobody works now: every account is exact. */
static void check_accounts(model *m) {
  if (m->guarded) CHECK_OK(m, gm_pool_check(m->pool, NULL, &err)); /* freed blocks are in use until they are checked */
  uint64_t asked = 0, bytes = 0;
  for (uint32_t i = 0; i < m->table_count; i++) {
    asked += m->table[i].asked;
    bytes += m->table[i].block.bytes;
  }
  gm_stats s;
  gm_pool_stats(m->pool, &s);
  gm_tracker *tracker = gm_pool_tracker(m->pool);
  CHECK(m, s.requested_bytes == asked, "requested_bytes %" PRIu64 ", model %" PRIu64, s.requested_bytes, asked);
  CHECK(m, m->guarded ? s.in_use_bytes >= bytes : s.in_use_bytes == bytes, "in_use_bytes %" PRIu64 ", model %" PRIu64,
        s.in_use_bytes, bytes);
  CHECK(m, s.active == m->table_count, "active %" PRIu64 ", model %u", s.active, m->table_count);
  CHECK(m, s.allocs == atomic_load(&m->allocs), "allocs %" PRIu64, s.allocs);
  CHECK(m, s.reserved_bytes == s.in_use_bytes + s.pooled_bytes, "reserved_bytes is not in use and pooled");
  CHECK(m, s.allocs == s.stream_hits + s.global_hits + s.misses, "hits and misses do not add up");
  CHECK(m, s.peak_reserved_bytes <= m->cap, "peak_reserved_bytes %" PRIu64 " beyond the cap", s.peak_reserved_bytes);
  CHECK(m, s.peak_in_use_bytes <= s.peak_reserved_bytes, "peaks contradict each other");
  if (!tracker) return;
  CHECK(m, gm_tracker_count(tracker) == m->table_count, "tracker: %" PRIu64 " alive", gm_tracker_count(tracker));
  CHECK(m, gm_tracker_total_bytes(tracker) == asked, "tracker: %" PRIu64 " bytes", gm_tracker_total_bytes(tracker));
}

/* Close one stream and open another in its place: its work is done then. */
static void renew_stream(model *m, worker *w) {
  uint64_t at = below(w, m->stream_count);
  for (uint32_t i = 0; i < m->table_count; i++) {
    if (m->table[i].stream == m->streams[at]) m->table[i].stream = NULL;
  }
  CHECK_OK(m, gm_stream_close(m->streams[at], &err));
  CHECK_OK(m, gm_stream_create(m->device, &m->streams[at], &err));
}

static void run_round(model *m, worker *workers) {
  pthread_t threads[MAX_THREADS];
  bool started[MAX_THREADS] = {false};
  for (uint32_t i = 1; i < m->threads; i++) started[i] = !pthread_create(&threads[i], NULL, work, &workers[i]);
  work(&workers[0]);
  for (uint32_t i = 1; i < m->threads; i++) {
    if (started[i]) pthread_join(threads[i], NULL);
  }
}

static void run(model *m) {
  worker workers[MAX_THREADS];
  for (uint32_t i = 0; i < m->threads; i++) {
    workers[i] = (worker){m, m->seed + i * UINT64_C(0xa0761d6478bd642f), m->ops / ROUNDS / m->threads + 1};
  }
  for (int round = 0; round < ROUNDS && !atomic_load(&m->failed); round++) {
    run_round(m, workers);
    check_accounts(m);
    renew_stream(m, &workers[0]);
  }
  while (m->table_count) step_give(&workers[0]);
  for (uint32_t i = 0; i < m->stream_count; i++) CHECK_OK(m, gm_stream_sync(m->streams[i], &err));
  if (m->guarded) CHECK_OK(m, gm_pool_check(m->pool, NULL, &err));
  gm_pool_trim(m->pool, 0);
  check_accounts(m);
  gm_stats stats;
  gm_pool_stats(m->pool, &stats);
  CHECK(m, stats.reserved_bytes == 0, "%" PRIu64 " bytes are left after a trim", stats.reserved_bytes);
  CHECK(m, stats.driver_allocs >= stats.driver_frees, "more freed than allocated at the driver");
  printf("%" PRIu64 " allocations, %" PRIu64 " refused, hit rate %.2f, %" PRIu64 " waits, %" PRIu64 " driver calls\n",
         stats.allocs, (uint64_t)atomic_load(&m->refused), gm_stats_hit_rate(&stats), stats.waits,
         stats.driver_allocs + stats.driver_frees);
}

static bool open_all(model *m, const char *backend, uint32_t index, gm_strategy strategy) {
  gm_error err = {.status = GM_OK};
  counted_services_init(&m->host);
  gm_context_params context = {.struct_size = sizeof context,
                               .services = &m->host.services,
                               .backend_options = named_options("null:capacity=1G,latency=2000"),
                               .libraries = named_libraries(),
                               .ignore_environment = true};
  gm_pool_params params = {.struct_size = sizeof params,
                           .strategy = strategy,
                           .name = "model",
                           .max_bytes = m->cap,
                           .checked = true,
                           .track = !m->untracked,
                           .no_vmm = m->no_vmm,
                           .debug = m->guarded ? GM_DEBUG_CHECK_FREED : 0,
                           .red_zone_bytes = m->guarded ? 48 : 0};
  gm_status status = gm_context_create(&context, &m->ctx, &err);
  if (!status && m->untracked) status = gm_config_set(m->ctx, "track_allocations", "false", &err);
  if (!status && m->zero_segments) status = gm_config_set(m->ctx, "zero_segments", "true", &err);
  if (!status) status = gm_device_open_index(m->ctx, backend, index, &m->device, &err);
  if (!status) status = gm_pool_create(m->device, &params, &m->pool, &err);
  params = (gm_pool_params){.struct_size = sizeof params, .name = "scratch"};
  gm_request request = {.bytes = (uint64_t)SCRATCH * m->stream_count};
  if (!status) status = gm_pool_create(m->device, &params, &m->scratch_pool, &err);
  if (!status) CHECK(m, gm_alloc(m->scratch_pool, &request, &m->scratch) == GM_ACQUIRE_FRESH, "no scratch memory");
  for (uint32_t i = 0; !status && i < m->stream_count; i++) {
    status = gm_stream_create(m->device, &m->streams[i], &err);
  }
  if (status) complain(m, "%s: %s", gm_status_name(status), err.message);
  for (int i = 1; !status && i < 4; i++) m->tags[i] = gm_tag(m->ctx, i == 1 ? "weights" : i == 2 ? "kv" : "scratch");
  return status == GM_OK;
}

static void close_all(model *m) {
  for (uint32_t i = 0; i < m->stream_count; i++) CHECK_OK(m, gm_stream_close(m->streams[i], &err));
  CHECK(m, gm_free(m->scratch_pool, &m->scratch, NULL) == GM_OK, "gm_free of the scratch memory");
  CHECK_OK(m, gm_pool_destroy(m->scratch_pool, &err));
  CHECK_OK(m, gm_pool_destroy(m->pool, &err));
  CHECK_OK(m, gm_device_close(m->device, &err));
  CHECK_OK(m, gm_context_destroy(m->ctx, &err));
  CHECK(m, atomic_load(&m->host.live_bytes) == 0, "%zu bytes of host memory are left",
        atomic_load(&m->host.live_bytes));
}

static int usage(void) {
  fputs(
      "usage: gm_model_test [--seed N] [--ops N] [--strategy auto|bucket|best_fit] [--backend B] [--device I] "
      "[--threads N] [--guard 1] [--untracked 1] [--no-vmm 1] [--zero-segments 1]\n",
      stderr);
  return 2;
}

static bool parse_number(const char *text, uint64_t *out) {
  char *end;
  *out = strtoull(text, &end, 10);
  return *text >= '0' && *text <= '9' && !*end;
}

int main(int argc, char **argv) {
  static model m;
  const char *backend = "cpu", *strategy = "auto";
  uint64_t device = 0, threads = 1, guard = 0;
  m.ops = 20000;
  m.seed = (uint64_t)time(NULL) * 1000003 + (uint64_t)clock();
  for (int i = 1; i < argc; i += 2) {
    const char *value = i + 1 < argc ? argv[i + 1] : "";
    if (!strcmp(argv[i], "--backend") && *value) {
      backend = value;
    } else if (!strcmp(argv[i], "--strategy") && *value) {
      strategy = value;
    } else {
      uint64_t *number = !strcmp(argv[i], "--seed")            ? &m.seed
                         : !strcmp(argv[i], "--ops")           ? &m.ops
                         : !strcmp(argv[i], "--threads")       ? &threads
                         : !strcmp(argv[i], "--device")        ? &device
                         : !strcmp(argv[i], "--untracked")     ? &m.untracked
                         : !strcmp(argv[i], "--no-vmm")        ? &m.no_vmm
                         : !strcmp(argv[i], "--zero-segments") ? &m.zero_segments
                         : !strcmp(argv[i], "--guard")         ? &guard
                                                               : NULL;
      if (!number || !parse_number(value, number)) return usage();
    }
  }
  bool known = !strcmp(strategy, "auto") || !strcmp(strategy, "bucket") || !strcmp(strategy, "best_fit");
  if (!known || threads == 0 || threads > MAX_THREADS || device > UINT32_MAX) return usage();
  bool is_null = !strcmp(backend, "null");
  m.has_memory = !is_null;
  m.guarded = guard != 0;
  m.threads = (uint32_t)threads;
  m.stream_count = m.threads + 2 < MAX_STREAMS ? m.threads + 2 : MAX_STREAMS;
  m.cap = UINT64_C(32) << 20;
  m.largest = UINT64_C(2) << 20;
  pthread_mutex_init(&m.lock, NULL);
  printf("backend %s, strategy %s, %" PRIu64 " operations, %u threads, seed %" PRIu64 "\n", backend, strategy, m.ops,
         m.threads, m.seed);
  gm_strategy number = !strcmp(strategy, "bucket")     ? GM_STRATEGY_BUCKET
                       : !strcmp(strategy, "best_fit") ? GM_STRATEGY_BEST_FIT
                                                       : GM_STRATEGY_AUTO;
  if (open_all(&m, backend, (uint32_t)device, number)) {
    run(&m);
    close_all(&m);
  }
  pthread_mutex_destroy(&m.lock);
  printf("%" PRIu64 " passed, %" PRIu64 " failed\n", (uint64_t)m.passed, (uint64_t)m.failed);
  return m.failed || !m.passed;
}
