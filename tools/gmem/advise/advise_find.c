/* Invariants: report->after is the replay with all that report->items set so far. So each setting is judged on top of
 * those before it. A setting that gains nothing in a replay is not kept. */
#include "tools/gmem/advise/advise_find.h"

#include <stdio.h>
#include <string.h>

#include "gm/size.h"
#include "tools/gmem/replay/replay_capacity.h"

enum { FIND_DRIVER_CALLS = 4, FIND_PERCENT = 5, FIND_SHARE = 8, FIND_SEGMENT = 2 * 1024 * 1024 };

typedef struct finder {
  const replay_events *events;
  const advise_target *target;
  advise_report *report;
} finder;

static gm_status find_try(const finder *self, const advise_settings *settings, advise_result *out, gm_error *err) {
  return advise_trial(self->events, self->target, settings, out, err);
}

static const char *find_set(const char *value) { return value[0] ? value : NULL; }

static advise_settings find_settings(const advise_report *report) {
  return (advise_settings){.strategy = find_set(report->strategy),
                           .memory_fraction = find_set(report->memory_fraction),
                           .min_free_bytes = find_set(report->min_free_bytes),
                           .warm_up = find_set(report->warm_up),
                           .max_pool_bytes = find_set(report->max_pool_bytes)};
}

/* Whole MiB, rounded up: what a setting says. */
static unsigned long long find_mib(uint64_t bytes) {
  static const uint64_t unit = UINT64_C(1024) * 1024;
  return bytes / unit + (bytes % unit != 0);
}

/* ---- what is said ---- */

static advise_item *find_add(advise_report *report, const char *what) {
  advise_item *item = &report->items[report->count++];
  *item = (advise_item){.what = what};
  return item;
}

static void find_number(uint64_t number, char *text, size_t capacity) {
  snprintf(text, capacity, "%llu", (unsigned long long)number);
}

static void find_bytes(uint64_t bytes, char *text, size_t capacity) { gm_format_bytes(bytes, text, capacity); }

static void find_change(advise_item *item, const char *what, uint64_t before, uint64_t after,
                        void (*write)(uint64_t value, char *text, size_t capacity)) {
  advise_change *change = &item->changes[item->change_count];
  *change = (advise_change){.what = what, .is_gain = after < before};
  write(before, change->before, sizeof change->before);
  write(after, change->after, sizeof change->after);
  if (strcmp(change->before, change->after) != 0) item->change_count++; /* what nobody can see is no change */
}

/* How the replay with the setting differs from the one without. */
static void find_gain(advise_item *item, const advise_result *before, const advise_result *after) {
  item->measured = true;
  item->before = *before;
  item->after = *after;
  find_change(item, "driver allocations", before->driver_allocs, after->driver_allocs, find_number);
  find_change(item, "warm-up driver allocations", before->warm_up_allocs, after->warm_up_allocs, find_number);
  find_change(item, "peak reserved", before->stats.peak_reserved_bytes, after->stats.peak_reserved_bytes, find_bytes);
  find_change(item, "found no memory", before->failed, after->failed, find_number);
}

void advise_item_line(const advise_item *item, bool gains, char *out, size_t capacity) {
  size_t used = 0;
  out[0] = '\0';
  if (gains && item->note[0]) used = (size_t)snprintf(out, capacity, "%s", item->note);
  for (size_t i = 0; i < item->change_count && used < capacity; i++) {
    const advise_change *change = &item->changes[i];
    if (change->is_gain != gains) continue;
    used += (size_t)snprintf(out + used, capacity - used, "%s%s %s → %s", used ? "; " : "", change->what,
                             change->before, change->after);
  }
}

static const gm_advice *find_rule(const gm_advice *rules, size_t count, gm_advice_kind kind) {
  for (size_t i = 0; i < count; i++) {
    if (rules[i].kind == kind) return &rules[i];
  }
  return NULL;
}

/* ---- strategy ---- */

/* Not at the price of asking the driver more often. */
static bool find_packs_better(const advise_result *one, const advise_result *other) {
  if (one->failed != other->failed) return one->failed < other->failed;
  if (one->driver_allocs > other->driver_allocs) return false;
  uint64_t mine = one->stats.peak_reserved_bytes, theirs = other->stats.peak_reserved_bytes;
  return mine < theirs && theirs - mine > theirs / 100 * FIND_PERCENT;
}

/* The default is best_fit already. */
static gm_status find_strategy(const finder *self, const gm_advice *coalesce, gm_error *err) {
  static const advise_settings settings = {.strategy = "bucket"};
  advise_report *report = self->report;
  advise_result result;
  gm_status status = find_try(self, &settings, &result, err);
  if (status != GM_OK || !find_packs_better(&result, &report->after)) return status;
  report->after = result;
  snprintf(report->strategy, sizeof report->strategy, "%s", settings.strategy);
  advise_item *item = find_add(report, coalesce ? "coalesce" : "strategy");
  snprintf(item->why, sizeof item->why, "%s", coalesce ? coalesce->why : "another strategy packs this run tighter");
  snprintf(item->setting, sizeof item->setting, "allocation_strategy = %s", report->strategy);
  find_gain(item, &report->before, &report->after);
  return GM_OK;
}

/* ---- more of the device ---- */

/* Keep the value if fewer requests find no memory with it. */
static gm_status find_share(const finder *self, const char *key, const char *value, char *kept, size_t capacity,
                            const char *why, gm_error *err) {
  advise_report *report = self->report;
  const advise_result before = report->after;
  advise_result result;
  if (before.failed == 0) return GM_OK;
  snprintf(kept, capacity, "%s", value);
  const advise_settings settings = find_settings(report);
  const gm_status status = find_try(self, &settings, &result, err);
  if (status != GM_OK || result.failed >= before.failed) {
    kept[0] = '\0';
    return status;
  }
  advise_item *item = find_add(report, key);
  snprintf(item->why, sizeof item->why, "%llu requests find no memory, and %s", (unsigned long long)before.failed, why);
  snprintf(item->setting, sizeof item->setting, "%s = %s", key, value);
  find_gain(item, &before, &result);
  report->after = result;
  return GM_OK;
}

static gm_status find_shares(const finder *self, gm_error *err) {
  advise_report *report = self->report;
  const gm_status status =
      find_share(self, "memory_fraction", "1", report->memory_fraction, sizeof report->memory_fraction,
                 "gm takes no more than 0.9 of the device unless told so", err);
  if (status != GM_OK) return status;
  return find_share(self, "min_free_bytes", "0", report->min_free_bytes, sizeof report->min_free_bytes,
                    "gm keeps some of the device free for others unless told not to", err);
}

/* ---- a larger device ---- */

typedef struct find_attempt {
  const finder *finder;
  advise_settings settings;
} find_attempt;

/* On addresses without memory, and with pages or without as on the device that is advised for. */
static gm_status find_try_capacity(void *user, uint64_t capacity, bool *out_enough, gm_error *err) {
  const find_attempt *attempt = user;
  const finder *self = attempt->finder;
  const advise_target target = {.choice = {.backend = "null"}, .capacity = capacity, .no_vmm = !self->report->mapped};
  advise_result result = {.failed = 1};
  const gm_status status = advise_trial(self->events, &target, &attempt->settings, &result, err);
  *out_enough = result.failed == 0;
  return status;
}

static gm_status find_capacity(const finder *self, gm_error *err) {
  static const uint64_t most = UINT64_C(1) << 50; /* of a null device */
  advise_report *report = self->report;
  const uint64_t live = report->profile.peak_live_bytes;
  const uint64_t device = self->target->capacity ? self->target->capacity : report->info.total_bytes;
  const bool too_small = device && device < live;
  find_attempt attempt = {self, find_settings(report)};
  char needed[16], there[16];
  if (report->after.failed == 0) return GM_OK;
  const gm_status status = replay_min_capacity(find_try_capacity, &attempt, live, live + live / FIND_SHARE, most,
                                               &report->least_capacity, err);
  if (status != GM_OK) return status;
  advise_item *item = find_add(report, "capacity");
  gm_format_bytes(live, needed, sizeof needed);
  gm_format_bytes(device, there, sizeof there);
  snprintf(item->why, sizeof item->why, "%llu requests find no memory: %s are live at once%s%s%s",
           (unsigned long long)report->after.failed, needed, too_small ? ", more than the " : "",
           too_small ? there : "", too_small ? " of the device" : "");
  if (report->least_capacity == 0) {
    snprintf(item->note, sizeof item->note, "not known: no device was found on which every request finds memory");
    return GM_OK;
  }
  gm_format_bytes(report->least_capacity, there, sizeof there);
  snprintf(item->note, sizeof item->note, "on a device of %s (%lluM) every request finds memory, in a replay", there,
           find_mib(report->least_capacity));
  return GM_OK;
}

/* ---- warm-up ---- */

/* A warm-up may cost an eighth more memory, and a segment. */
static bool find_is_dear(const advise_result *result, const advise_result *before) {
  uint64_t reserved = before->stats.peak_reserved_bytes;
  return result->stats.peak_reserved_bytes > reserved + reserved / FIND_SHARE + FIND_SEGMENT;
}

/* Keep the list if the driver is asked less often with it, and no request more finds no memory. */
static gm_status find_try_list(const finder *self, const char *list, advise_result *best, gm_error *err) {
  advise_report *report = self->report;
  advise_settings settings = find_settings(report);
  advise_result result;
  settings.warm_up = list;
  if (!list[0]) return GM_OK;
  gm_status status = find_try(self, &settings, &result, err);
  if (status != GM_OK || result.failed > best->failed || result.driver_allocs >= best->driver_allocs) return status;
  if (find_is_dear(&result, &report->after)) return GM_OK;
  *best = result;
  snprintf(report->warm_up, sizeof report->warm_up, "%s", list);
  return GM_OK;
}

/* gm tries three lists. They have as many blocks of each size as lived at once, all that was ever reserved in one
 * piece, and a little more. Which of them serves depends on how the pool finds memory. */
static gm_status find_warm_up(const finder *self, const gm_advice *rule, gm_error *err) {
  advise_report *report = self->report;
  advise_result before = report->after, best = before;
  char list[ADVISE_VALUE];
  if (before.failed || (!rule && before.driver_allocs < FIND_DRIVER_CALLS)) return GM_OK;
  snprintf(list, sizeof list, "%lluM:1", find_mib(before.stats.peak_reserved_bytes));
  gm_status status = find_try_list(self, list, &best, err);
  snprintf(list, sizeof list, "%lluM:1", find_mib(before.stats.peak_reserved_bytes / FIND_SHARE * (FIND_SHARE + 1)));
  if (status == GM_OK) status = find_try_list(self, list, &best, err);
  gm_trace_profile_warm_up(&report->profile, list, sizeof list);
  if (status == GM_OK) status = find_try_list(self, list, &best, err);
  if (status != GM_OK || !report->warm_up[0]) return status;
  advise_item *item = find_add(report, "warm_up");
  snprintf(item->why, sizeof item->why, "the run asks the driver %llu times", (unsigned long long)before.driver_allocs);
  if (rule) memcpy(item->why, rule->why, sizeof item->why);
  snprintf(item->setting, sizeof item->setting, "warmup = %s", report->warm_up);
  find_gain(item, &before, &best);
  report->after = best;
  return GM_OK;
}

/* ---- limit ---- */

/* The time of the replays; where one differs from the next, half as much again. */
static uint64_t find_limit_bytes(const advise_report *report) {
  const uint64_t reserved = report->after.stats.peak_reserved_bytes;
  return report->times > 1 ? reserved + reserved / 2 : reserved;
}

static gm_status find_limit(const finder *self, gm_error *err) {
  advise_report *report = self->report;
  advise_settings settings;
  advise_result result;
  char peak[16], text[16];
  const uint64_t limit = find_limit_bytes(report);
  if (limit == 0 || report->after.failed) return GM_OK;
  snprintf(report->max_pool_bytes, sizeof report->max_pool_bytes, "%lluM", find_mib(limit));
  settings = find_settings(report);
  gm_status status = find_try(self, &settings, &result, err);
  if (status != GM_OK || result.failed) {
    report->max_pool_bytes[0] = '\0';
    return status;
  }
  advise_item *item = find_add(report, "max_pool_bytes");
  gm_format_bytes(report->profile.peak_live_bytes, peak, sizeof peak);
  gm_format_bytes(find_mib(limit) * 1024 * 1024, text, sizeof text);
  snprintf(item->why, sizeof item->why, "at most %s are live at once; without a cap the pool may take the device%s",
           peak, report->times > 1 ? "; half as much again as the replays took, because they differ" : "");
  /* Near its limit a pool serves from what is idle before it takes more, and takes it in small pieces. */
  snprintf(item->note, sizeof item->note, "the run stays within %s and every request finds memory", text);
  find_gain(item, &report->after, &result);
  report->after = result;
  snprintf(item->setting, sizeof item->setting, "max_pool_bytes = %s", report->max_pool_bytes);
  return GM_OK;
}

/* ---- compaction ---- */

/* Buffers that can move would let the pool hold less at the end of the run, beside what a trim gives back anyway. */
static gm_status find_compaction(const finder *self, const gm_advice *rule, gm_error *err) {
  advise_report *report = self->report;
  advise_compaction seen;
  if (!rule) return GM_OK;
  const advise_settings settings = find_settings(report);
  const gm_status status = advise_try_compaction(self->events, self->target, &settings, &seen, err);
  const uint64_t before = seen.before.reserved_bytes, after = seen.after.reserved_bytes;
  if (status != GM_OK || after >= before || before - after <= before / 100 * FIND_PERCENT) return status;
  advise_item *item = find_add(report, "compact");
  memcpy(item->why, rule->why, sizeof item->why);
  snprintf(item->note, sizeof item->note, "%s at the end of the run, with buffers that can move (GM_RELOCATABLE)",
           rule->call);
  find_change(item, "held then, idle memory apart", before, after, find_bytes);
  find_change(item, "moved by copies", 0, seen.report.moved_bytes, find_bytes);
  return GM_OK;
}

/* ---- leak ---- */

static void find_leak(advise_report *report, const gm_advice *rule) {
  char bytes[16];
  if (!rule) return;
  advise_item *item = find_add(report, "leak");
  memcpy(item->why, rule->why, sizeof item->why);
  memcpy(item->setting, rule->setting, sizeof item->setting);
  gm_format_bytes(report->profile.growth_bytes, bytes, sizeof bytes);
  snprintf(item->note, sizeof item->note, "%s less held after the worst stretch, once its owner frees it", bytes);
}

gm_status advise_find(const replay_events *events, const advise_target *target, advise_report *report, gm_error *err) {
  const finder self = {events, target, report};
  const advise_settings defaults = {.strategy = NULL};
  gm_advice rules[3];
  gm_status status = advise_look(target, &report->info, &report->mapped, err);
  report->times = advise_times(target);
  if (status == GM_OK) status = find_try(&self, &defaults, &report->before, err);
  if (status != GM_OK) return status;
  report->after = report->before;
  size_t count = gm_advise(&report->before.stats, &report->profile, rules, sizeof rules / sizeof *rules);
  status = find_strategy(&self, find_rule(rules, count, GM_ADVICE_COALESCE), err);
  if (status == GM_OK) status = find_compaction(&self, find_rule(rules, count, GM_ADVICE_COALESCE), err);
  if (status == GM_OK) status = find_shares(&self, err);
  if (status == GM_OK) status = find_warm_up(&self, find_rule(rules, count, GM_ADVICE_WARM_UP), err);
  if (status == GM_OK) status = find_limit(&self, err);
  if (status == GM_OK) status = find_capacity(&self, err);
  if (status == GM_OK) find_leak(report, find_rule(rules, count, GM_ADVICE_LEAK));
  return status;
}
