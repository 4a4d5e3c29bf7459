/* - `gm_model_test [--seed N] [--ops N] [--strategy S] [--backend B] [--device I] [--threads N] [--untracked 1]
 *   [--no-vmm 1] [--zero-segments 1] [--streams N] [--quota BYTES] [--spans 1] [--adopted 1]`
 * - gm_model_test --schedules N [--seed N] [--strategy S] [--threads N] [--no-vmm 1]: schedule.h
 *
 * A pool under random operations, watched by a model that knows nothing of how the pool works. Live ranges never
 * overlap, alignment is kept, and limits and quotas hold. Contents stay as they were written: work on other streams
 * that still runs when a block is freed must not reach its next owner. At every quiet moment the accounts are exact to
 * the byte. Blocks wander between threads and streams. The seed is printed; the same seed and one thread repeat a run.
 */
#include "model/model.h"
#include "model/schedule.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gm/cleanup.h"
#include "gm/config.h"
#include "gm/debug.h"
#include "gm/native_cuda.h"
#include "gm/quota.h"
#include "gm/warm_up.h"
#include "support/named_libraries.h"

static void *work(void *argument) {
  worker *w = argument;
  for (uint64_t i = 0; i < w->ops; i++) {
    uint64_t what = below(w, 100);
    if (what < 43) {
      step_take(w);
    } else if (what < 83) {
      step_give(w);
    } else if (what < 97) {
      step_use(w);
    } else if (what < 99) {
      step_tidy(w);
    } else {
      step_pattern(w);
    }
  }
  return NULL;
}

/* Nobody works now: every account is exact. */
static void check_accounts(model *m) {
  if (m->guarded) CHECK_OK(m, gm_pool_check(m->pool, NULL, &err)); /* freed blocks are in use until they are checked */
  uint64_t asked = 0, bytes = 0, blocks = 0;
  for (uint32_t i = 0; i < m->table_count; i++) {
    asked += m->table[i].asked;
    bytes += m->table[i].in_use;
    blocks += m->table[i].spans;
  }
  gm_stats s = {.struct_size = sizeof s};
  gm_pool_stats(m->pool, &s);
  gm_tracker *tracker = gm_pool_tracker(m->pool);
  CHECK(m, s.requested_bytes == asked, "requested_bytes %" PRIu64 ", model %" PRIu64, s.requested_bytes, asked);
  CHECK(m, m->guarded ? s.in_use_bytes >= bytes : s.in_use_bytes == bytes, "in_use_bytes %" PRIu64 ", model %" PRIu64,
        s.in_use_bytes, bytes);
  CHECK(m, s.active == blocks, "active %" PRIu64 ", model %" PRIu64, s.active, blocks);
  const uint64_t allocs = atomic_load(&m->allocs);
  CHECK(m, atomic_load(&m->uncounted) ? s.allocs >= allocs : s.allocs == allocs, "allocs %" PRIu64, s.allocs);
  CHECK(m, s.allocs - s.frees == s.active, "%" PRIu64 " allocs, %" PRIu64 " frees", s.allocs, s.frees);
  CHECK(m, s.reserved_bytes == s.in_use_bytes + s.pooled_bytes, "reserved_bytes is not in use and pooled");
  CHECK(m, s.allocs == s.stream_hits + s.global_hits + s.misses, "hits and misses do not add up");
  CHECK(m, s.peak_reserved_bytes <= m->cap, "peak_reserved_bytes %" PRIu64 " beyond the cap", s.peak_reserved_bytes);
  CHECK(m, s.peak_in_use_bytes <= s.peak_reserved_bytes, "peaks contradict each other");
  if (!tracker) return;
  CHECK(m, gm_tracker_count(tracker) == blocks, "tracker: %" PRIu64 " alive", gm_tracker_count(tracker));
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

/* A performance scope around a round tells what the statistics say of it. Threads open others meanwhile. */
typedef struct round_scope {
  gm_perf_scope scope;
  gm_stats begin;
} round_scope;

static void begin_round(model *m, round_scope *round) {
  CHECK_OK(m, gm_perf_begin(m->pool, "round", &round->scope, &err));
  round->begin = (gm_stats){.struct_size = sizeof round->begin};
  gm_pool_stats(m->pool, &round->begin);
}

static void end_round(model *m, round_scope *round) {
  const gm_stats *begin = &round->begin;
  gm_stats end = {.struct_size = sizeof end};
  gm_perf_report report = {.struct_size = sizeof report};
  gm_pool_stats(m->pool, &end);
  CHECK_OK(m, gm_perf_end(&round->scope, &report, &err));
  CHECK(m, report.allocs == end.allocs - begin->allocs, "scope: %" PRIu64 " allocs", report.allocs);
  CHECK(m, report.frees == end.frees - begin->frees, "scope: %" PRIu64 " frees", report.frees);
  CHECK(m, report.misses == end.misses - begin->misses, "scope: %" PRIu64 " misses", report.misses);
  CHECK(m, report.waits == end.waits - begin->waits, "scope: %" PRIu64 " waits", report.waits);
  CHECK(m, report.driver_allocs == end.driver_allocs - begin->driver_allocs, "scope: driver's calls");
  CHECK(m, report.held_bytes == (int64_t)(end.requested_bytes - begin->requested_bytes), "scope: bytes held");
  CHECK(m, report.in_use_bytes == end.in_use_bytes, "scope: bytes in use");
  CHECK(m,
        report.peak_in_use_bytes >= end.in_use_bytes && report.peak_in_use_bytes >= begin->in_use_bytes &&
            report.peak_in_use_bytes <= end.peak_in_use_bytes,
        "scope: peak %" PRIu64, report.peak_in_use_bytes);
  CHECK(m, report.peak_reserved_bytes <= end.peak_reserved_bytes, "scope: peak of reserved bytes");
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

/* After a trim the pool keeps memory as before: what is freed serves the next request, and the driver is not asked. */
static void check_pooling(model *m) {
  const gm_request request = {.bytes = 4096}, again = {.bytes = 4096, .flags = GM_POOLED_ONLY};
  gm_block block;
  CHECK(m, gm_alloc(m->pool, &request, &block) == GM_ACQUIRE_FRESH, "after a trim the driver is not asked");
  CHECK(m, gm_free(m->pool, &block, NULL) == GM_OK, "gm_free after a trim");
  CHECK(m, gm_alloc(m->pool, &again, &block) == GM_ACQUIRE_OK, "after a trim nothing is pooled");
  CHECK(m, gm_free(m->pool, &block, NULL) == GM_OK, "gm_free of pooled memory");
  atomic_fetch_add(&m->allocs, 2);
  gm_pool_trim(m->pool, 0);
}

/* The bytes that the pool says it could give back are those that a trim gives, once all streams are done. */
static void check_reclaimable(model *m) {
  for (uint32_t i = 0; i < m->stream_count; i++) CHECK_OK(m, gm_stream_sync(m->streams[i], &err));
  const uint64_t said = gm_pool_collect(m->pool), given = gm_pool_trim(m->pool, 0);
  CHECK(m, said == given, "reclaimable_bytes %" PRIu64 ", a trim gave %" PRIu64, said, given);
}

static void run(model *m) {
  round_scope scope;
  worker workers[MAX_THREADS];
  for (uint32_t i = 0; i < m->threads; i++) {
    workers[i] = (worker){m, m->seed + i * UINT64_C(0xa0761d6478bd642f), m->ops / ROUNDS / m->threads + 1};
  }
  for (int round = 0; round < ROUNDS && !atomic_load(&m->failed); round++) {
    begin_round(m, &scope);
    run_round(m, workers);
    end_round(m, &scope);
    check_accounts(m);
    if (round % 4 == 3 && !m->guarded) check_reclaimable(m);
    renew_stream(m, &workers[0]);
  }
  while (m->table_count) step_give(&workers[0]);
  for (uint32_t i = 0; i < m->stream_count; i++) CHECK_OK(m, gm_stream_sync(m->streams[i], &err));
  if (m->guarded) CHECK_OK(m, gm_pool_check(m->pool, NULL, &err));
  gm_pool_trim(m->pool, 0);
  check_accounts(m);
  if (!m->guarded) check_pooling(m); /* a guard holds freed blocks back */
  check_accounts(m);
  gm_stats stats = {.struct_size = sizeof stats};
  gm_pool_stats(m->pool, &stats);
  CHECK(m, stats.reserved_bytes == 0, "%" PRIu64 " bytes are left after a trim", stats.reserved_bytes);
  CHECK(m, stats.driver_allocs >= stats.driver_frees, "more freed than allocated at the driver");
  printf("%" PRIu64 " allocations, %" PRIu64 " refused, hit rate %.2f, %" PRIu64 " waits, %" PRIu64 " driver calls\n",
         stats.allocs, (uint64_t)atomic_load(&m->refused), gm_stats_hit_rate(&stats), stats.waits,
         stats.driver_allocs + stats.driver_frees);
  if (m->spans) printf("%" PRIu64 " blocks of several memories\n", (uint64_t)atomic_load(&m->spanned));
}

static void read_types(model *m) {
  uint32_t count = 0;
  CHECK_OK(m, gm_device_memory_type_count(m->device, &count, &err));
  for (uint32_t i = 0; i < count && i < 32; i++) {
    gm_memory_type type = {.struct_size = sizeof type};
    CHECK_OK(m, gm_device_memory_type(m->device, i, &type, &err));
    const bool visible = type.flags & (GM_MEMORY_HOST_VISIBLE | GM_MEMORY_HOST_POINTER);
    if (type.flags & (GM_MEMORY_MANAGED | GM_MEMORY_APART)) continue;
    m->types |= UINT32_C(1) << i;
    if (visible && type.flags & GM_MEMORY_PERSISTENT_MAP) m->mapped_types |= UINT32_C(1) << i;
  }
}

/* A device of CUDA as an engine lends it: on the context of the opened one, which lives longer. */
static gm_status adopt(model *m, gm_error *err) {
  gm_cuda_device native = {.head = {.struct_size = sizeof native, .api = GM_API_CUDA}};
  m->lender = m->device;
  m->device = NULL;
  const gm_status status = gm_device_native(m->lender, &native.head, err);
  return status == GM_OK ? gm_device_adopt(m->ctx, &native.head, &m->device, err) : status;
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
  static const gm_warm_up sizes[] = {{4 << 10, 32}, {64 << 10, 32}, {1 << 20, 8}, {2 << 20, 2}};
  if (strategy == GM_STRATEGY_FIXED) {
    params.sizes = sizes;
    params.size_count = sizeof sizes / sizeof sizes[0];
    m->uncounted = true; /* the blocks of the list were handed out once */
    params.flags = m->seed % 2 ? GM_POOL_TAKE_LARGER | GM_POOL_PASS_LARGER : 0;
  }
  gm_status status = gm_context_create(&context, &m->ctx, &err);
  const char *promises = getenv("GM_RESERVE_FOLDER"); /* of no other test */
  if (!status && promises) status = gm_config_set(m->ctx, "reserve.folder", promises, &err);
  if (!status && m->untracked) status = gm_config_set(m->ctx, "track_allocations", "false", &err);
  if (!status && m->zero_segments) status = gm_config_set(m->ctx, "zero_segments", "true", &err);
  if (!status) status = gm_device_open_index(m->ctx, backend, index, &m->device, &err);
  if (!status && m->adopted) status = adopt(m, &err);
  if (!status) status = gm_pool_create(m->device, &params, &m->pool, &err);
  if (!status) read_types(m);
  params = (gm_pool_params){.struct_size = sizeof params, .name = "scratch"};
  gm_request request = {.bytes = (uint64_t)SCRATCH * m->stream_count};
  if (!status) status = gm_pool_create(m->device, &params, &m->scratch_pool, &err);
  if (!status) CHECK(m, gm_alloc(m->scratch_pool, &request, &m->scratch) == GM_ACQUIRE_FRESH, "no scratch memory");
  for (uint32_t i = 0; !status && i < m->stream_count; i++) {
    status = gm_stream_create(m->device, &m->streams[i], &err);
  }
  if (status) complain(m, "%s: %s", gm_status_name(status), err.message);
  for (int i = 1; !status && i < 4; i++) {
    m->tags[i] = gm_tag(m->ctx, i == 1 ? "weights" : i == 2 ? "kv" : "scratch");
    if (m->quota) status = gm_pool_set_quota(m->pool, m->tags[i], m->quota, 0, 0, &err);
  }
  return status == GM_OK;
}

static void close_all(model *m) {
  for (uint32_t i = 0; i < m->stream_count; i++) CHECK_OK(m, gm_stream_close(m->streams[i], &err));
  CHECK(m, gm_free(m->scratch_pool, &m->scratch, NULL) == GM_OK, "gm_free of the scratch memory");
  CHECK_OK(m, gm_pool_destroy(m->scratch_pool, &err));
  CHECK_OK(m, gm_pool_destroy(m->pool, &err));
  CHECK_OK(m, gm_device_close(m->device, &err));
  if (m->lender) CHECK_OK(m, gm_device_close(m->lender, &err));
  CHECK_OK(m, gm_context_destroy(m->ctx, &err));
  CHECK(m, atomic_load(&m->host.live_bytes) == 0, "%zu bytes of host memory are left",
        atomic_load(&m->host.live_bytes));
}

static int usage(void) {
  fputs(
      "usage: gm_model_test [--seed N] [--ops N] [--strategy auto|bucket|best_fit|fixed] [--backend B] [--device I] "
      "[--threads N] [--guard 1] [--untracked 1] [--no-vmm 1] [--zero-segments 1] [--streams N] [--quota BYTES] "
      "[--spans 1] [--adopted 1] "
      "[--schedules N [--aloud "
      "1]]\n",
      stderr);
  return 2;
}

static bool parse_number(const char *text, uint64_t *out) {
  char *end;
  *out = strtoull(text, &end, 10);
  return *text >= '0' && *text <= '9' && !*end;
}

typedef struct options {
  const char *backend, *strategy;
  uint64_t device, threads, guard, schedules, aloud;
} options;

static bool read_option(model *m, options *o, const char *name, const char *value) {
  const struct {
    const char *name;
    uint64_t *number;
  } numbers[] = {{"--seed", &m->seed},       {"--ops", &m->ops},
                 {"--threads", &o->threads}, {"--device", &o->device},
                 {"--guard", &o->guard},     {"--untracked", &m->untracked},
                 {"--no-vmm", &m->no_vmm},   {"--zero-segments", &m->zero_segments},
                 {"--quota", &m->quota},     {"--streams", &m->stream_wish},
                 {"--spans", &m->spans},     {"--schedules", &o->schedules},
                 {"--aloud", &o->aloud},     {"--adopted", &m->adopted}};
  if (!strcmp(name, "--backend") && *value) return o->backend = value, true;
  if (!strcmp(name, "--strategy") && *value) return o->strategy = value, true;
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    if (!strcmp(name, numbers[i].name)) return parse_number(value, numbers[i].number);
  }
  return false;
}

static bool is_strategy(const options *o, const char *name) { return !strcmp(o->strategy, name); }

static gm_strategy strategy_of(const options *o) {
  return is_strategy(o, "bucket")     ? GM_STRATEGY_BUCKET
         : is_strategy(o, "best_fit") ? GM_STRATEGY_BEST_FIT
         : is_strategy(o, "fixed")    ? GM_STRATEGY_FIXED
                                      : GM_STRATEGY_AUTO;
}

static bool run_schedules(const model *m, const options *o) {
  const schedule_params params = {.seed = m->seed,
                                  .count = o->schedules,
                                  .threads = (uint32_t)o->threads,
                                  .any_strategy = is_strategy(o, "auto"),
                                  .strategy = strategy_of(o),
                                  .no_vmm = m->no_vmm,
                                  .aloud = o->aloud};
  return schedules_run(&params);
}

static void prepare(model *m, const options *o) {
  m->has_memory = strcmp(o->backend, "null") != 0;
  m->guarded = o->guard != 0;
  m->threads = (uint32_t)o->threads;
  m->stream_count = m->threads + 2 < MAX_STREAMS ? m->threads + 2 : MAX_STREAMS;
  if (m->stream_wish) m->stream_count = (uint32_t)m->stream_wish;
  m->cap = UINT64_C(32) << 20;
  m->largest = UINT64_C(2) << (m->spans ? 22 : 20);
  m->uncounted = m->spans != 0; /* what was tried in vain was handed out and freed, too */
  pthread_mutex_init(&m->lock, NULL);
}

int main(int argc, char **argv) {
  static model m;
  options o = {.backend = "cpu", .strategy = "auto", .threads = 1};
  m.ops = 20000;
  m.seed = (uint64_t)time(NULL) * 1000003 + (uint64_t)clock();
  for (int i = 1; i < argc; i += 2) {
    if (!read_option(&m, &o, argv[i], i + 1 < argc ? argv[i + 1] : "")) return usage();
  }
  const bool known =
      is_strategy(&o, "auto") || is_strategy(&o, "bucket") || is_strategy(&o, "best_fit") || is_strategy(&o, "fixed");
  const bool few = o.threads && o.threads <= MAX_THREADS && m.stream_wish <= MAX_STREAMS && o.device <= UINT32_MAX;
  if (!known || !few) return usage();
  if (o.schedules) return !run_schedules(&m, &o);
  prepare(&m, &o);
  printf("backend %s, strategy %s, %" PRIu64 " operations, %u threads, seed %" PRIu64 "\n", o.backend, o.strategy,
         m.ops, m.threads, m.seed);
  if (open_all(&m, o.backend, (uint32_t)o.device, strategy_of(&o))) {
    run(&m);
    close_all(&m);
  }
  pthread_mutex_destroy(&m.lock);
  printf("%" PRIu64 " passed, %" PRIu64 " failed\n", (uint64_t)m.passed, (uint64_t)m.failed);
  return m.failed || !m.passed;
}
