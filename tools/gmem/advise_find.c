/* Invariants: report->after is the replay with all that report->items set so far, so that each setting is judged on top
 * of those before it; a setting that gains nothing in a replay is not kept. */
#include "tools/gmem/advise_find.h"

#include <stdio.h>
#include <string.h>

#include "gm/size.h"

enum { FIND_DRIVER_CALLS = 4, FIND_PERCENT = 5, FIND_SHARE = 8, FIND_SEGMENT = 2 * 1024 * 1024 };

typedef struct finder {
  const replay_events *events;
  uint64_t capacity;
  advise_report *report;
} finder;

static gm_status find_try(const finder *self, const advise_settings *settings, advise_result *out, gm_error *err) {
  return advise_trial(self->events, self->capacity, settings, out, err);
}

static const char *find_set(const char *value) { return value[0] ? value : NULL; }

static advise_settings find_settings(const advise_report *report) {
  return (advise_settings){find_set(report->strategy), find_set(report->warm_up), find_set(report->max_pool_bytes)};
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

/* How the replay with the setting differs from the one without. */
static void find_gain(advise_item *item, const advise_result *before, const advise_result *after) {
  char from[16], to[16];
  gm_format_bytes(before->stats.peak_reserved_bytes, from, sizeof from);
  gm_format_bytes(after->stats.peak_reserved_bytes, to, sizeof to);
  int length = snprintf(item->gain, sizeof item->gain, "driver allocations %llu, were %llu; peak reserved %s, was %s",
                        (unsigned long long)after->driver_allocs, (unsigned long long)before->driver_allocs, to, from);
  if (!before->failed || length < 0) return;
  snprintf(item->gain + length, sizeof item->gain - (size_t)length, "; found no memory %llu, were %llu",
           (unsigned long long)after->failed, (unsigned long long)before->failed);
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

static gm_status find_strategy(const finder *self, const gm_advice *coalesce, gm_error *err) {
  static const char *const names[] = {"best_fit", "bucket"};
  advise_report *report = self->report;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const advise_settings settings = {.strategy = names[i]};
    advise_result result;
    gm_status status = find_try(self, &settings, &result, err);
    if (status != GM_OK) return status;
    if (!find_packs_better(&result, &report->after)) continue;
    report->after = result;
    snprintf(report->strategy, sizeof report->strategy, "%s", names[i]);
  }
  if (!coalesce && !report->strategy[0]) return GM_OK;
  advise_item *item = find_add(report, coalesce ? "coalesce" : "strategy");
  snprintf(item->why, sizeof item->why, "%s", coalesce ? coalesce->why : "another strategy packs this run tighter");
  snprintf(item->gain, sizeof item->gain, "none: no strategy packs this run tighter in a replay");
  if (!report->strategy[0]) return GM_OK;
  snprintf(item->setting, sizeof item->setting, "allocation_strategy = %s", report->strategy);
  find_gain(item, &report->before, &report->after);
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

/* Either as many blocks of each size as lived at once, or all that was ever reserved in one piece, or a little more:
 * which of them serves depends on how the pool finds memory. */
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
  if (status != GM_OK || (!rule && !report->warm_up[0])) return status;
  advise_item *item = find_add(report, "warm_up");
  snprintf(item->why, sizeof item->why, "the run asks the driver %llu times", (unsigned long long)before.driver_allocs);
  if (rule) memcpy(item->why, rule->why, sizeof item->why);
  snprintf(item->gain, sizeof item->gain, "none: no list spares driver calls in a replay");
  if (!report->warm_up[0]) return GM_OK;
  snprintf(item->setting, sizeof item->setting, "warmup = %s", report->warm_up);
  find_gain(item, &before, &best);
  report->after = best;
  return GM_OK;
}

/* ---- limit ---- */

static gm_status find_limit(const finder *self, gm_error *err) {
  advise_report *report = self->report;
  advise_settings settings;
  advise_result result;
  char peak[16], text[16];
  uint64_t reserved = report->after.stats.peak_reserved_bytes;
  if (reserved == 0 || report->after.failed) return GM_OK;
  snprintf(report->max_pool_bytes, sizeof report->max_pool_bytes, "%lluM", find_mib(reserved));
  settings = find_settings(report);
  gm_status status = find_try(self, &settings, &result, err);
  if (status != GM_OK || result.failed) {
    report->max_pool_bytes[0] = '\0';
    return status;
  }
  report->after = result;
  advise_item *item = find_add(report, "max_pool_bytes");
  gm_format_bytes(report->profile.peak_live_bytes, peak, sizeof peak);
  gm_format_bytes(find_mib(reserved) * 1024 * 1024, text, sizeof text);
  snprintf(item->why, sizeof item->why, "at most %s are live at once; without a cap the pool may take the device",
           peak);
  snprintf(item->gain, sizeof item->gain, "the run stays within %s and every request finds memory", text);
  snprintf(item->setting, sizeof item->setting, "max_pool_bytes = %s", report->max_pool_bytes);
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
  snprintf(item->gain, sizeof item->gain, "%s less held after the worst stretch, once its owner frees it", bytes);
}

gm_status advise_find(const replay_events *events, uint64_t capacity, advise_report *report, gm_error *err) {
  const finder self = {events, capacity, report};
  const advise_settings defaults = {.strategy = NULL};
  gm_advice rules[3];
  gm_status status = find_try(&self, &defaults, &report->before, err);
  if (status != GM_OK) return status;
  report->after = report->before;
  size_t count = gm_advise(&report->before.stats, &report->profile, rules, sizeof rules / sizeof *rules);
  status = find_strategy(&self, find_rule(rules, count, GM_ADVICE_COALESCE), err);
  if (status == GM_OK) status = find_warm_up(&self, find_rule(rules, count, GM_ADVICE_WARM_UP), err);
  if (status == GM_OK) status = find_limit(&self, err);
  if (status == GM_OK) find_leak(report, find_rule(rules, count, GM_ADVICE_LEAK));
  return status;
}
