/* Statistics as OpenMetrics text. Invariants: everything is looked at before the first line is written, so a failure
 * leaves no half a page. No two samples of a family have the same labels: a pool's and a device's number is among
 * them. A figure that is unknown has no sample. Only figures that never go down are counters. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/utf8.h"
#include "core/context/context.h"
#include "core/manage/pool_rows.h"
#include "gm/memory_info.h"
#include "gm/report.h"
#include "gm/version.h"

enum { METRICS_LABELS = 512, METRICS_LINE = 1024, METRICS_TAG = 64 /* a tag's name, each byte of it escaped */ };

typedef enum metrics_kind {
  METRICS_GAUGE,
  METRICS_COUNTER,
  METRICS_NANOSECONDS, /* a counter, shown in seconds */
  METRICS_LEFT_OUT
} metrics_kind;

/* One figure of a row. */
typedef struct metrics_figure {
  const char *name, *text;
  metrics_kind kind;
  size_t at; /* of the uint64_t in the row */
} metrics_figure;

/* A row's name of a tag, which no other row of its pool has. */
typedef struct metrics_tag {
  char name[METRICS_TAG];
} metrics_tag;

typedef struct metrics_page {
  gm_context *ctx;
  gm__pool_rows rows;
  metrics_tag *tag_names;
  void (*write_text)(void *user, const char *text, size_t bytes);
  void *user;
} metrics_page;

/* ---- what there is ---- */

/* A new field of the statistics needs its kind here. */
enum {
  metrics_kind_requested_bytes = METRICS_GAUGE,
  metrics_kind_in_use_bytes = METRICS_GAUGE,
  metrics_kind_reserved_bytes = METRICS_GAUGE,
  metrics_kind_pooled_bytes = METRICS_GAUGE,
  metrics_kind_reclaimable_bytes = METRICS_GAUGE,
  metrics_kind_peak_requested_bytes = METRICS_GAUGE,
  metrics_kind_peak_in_use_bytes = METRICS_GAUGE,
  metrics_kind_peak_reserved_bytes = METRICS_GAUGE,
  metrics_kind_allocs = METRICS_COUNTER,
  metrics_kind_frees = METRICS_COUNTER,
  metrics_kind_active = METRICS_GAUGE,
  metrics_kind_stream_hits = METRICS_COUNTER,
  metrics_kind_global_hits = METRICS_COUNTER,
  metrics_kind_misses = METRICS_COUNTER,
  metrics_kind_local_cache_hits = METRICS_LEFT_OUT, /* a difference, which may go down beside other threads */
  metrics_kind_global_cache_hits = METRICS_COUNTER,
  metrics_kind_failures = METRICS_COUNTER,
  metrics_kind_over_limit = METRICS_COUNTER,
  metrics_kind_waits = METRICS_COUNTER,
  metrics_kind_fallbacks = METRICS_COUNTER,
  metrics_kind_fallback_bytes = METRICS_GAUGE,
  metrics_kind_peer_copies = METRICS_COUNTER,
  metrics_kind_peer_staged_copies = METRICS_COUNTER,
  metrics_kind_peer_staged_bytes = METRICS_COUNTER,
  metrics_kind_driver_allocs = METRICS_COUNTER,
  metrics_kind_driver_frees = METRICS_COUNTER,
  metrics_kind_driver_ns = METRICS_NANOSECONDS,
  metrics_kind_aged_bytes = METRICS_COUNTER,
  metrics_kind_evictions = METRICS_COUNTER,
  metrics_kind_evicted_bytes = METRICS_COUNTER,
  metrics_kind_hole_bytes = METRICS_GAUGE,
  metrics_kind_scattered_bytes = METRICS_GAUGE,
  metrics_kind_largest_hole_bytes = METRICS_GAUGE
};

static const metrics_figure metrics_of_pool[] = {
#define X(name, text) {#name, text, (metrics_kind)metrics_kind_##name, offsetof(gm_stats, name)},
    GM_STATS_FIELDS(X)
#undef X
};

static const metrics_figure metrics_of_tag[] = {
    {"bytes", "bytes of the tag's blocks, as callers asked for them", METRICS_GAUGE, offsetof(gm_tag_total, bytes)},
    {"peak_bytes", "highest bytes; of several threads an upper bound", METRICS_GAUGE,
     offsetof(gm_tag_total, peak_bytes)},
    {"active", "blocks of the tag", METRICS_GAUGE, offsetof(gm_tag_total, count)},
};

#define METRICS_TRAFFIC(name, text) \
  { #name, text, METRICS_COUNTER, offsetof(gm__device_row, name) }

static const metrics_figure metrics_of_device[] = {
    {"memory_bytes", "bytes that the device has", METRICS_GAUGE, offsetof(gm__device_row, memory_bytes)},
    METRICS_TRAFFIC(up_bytes, "bytes that gm moved from the host to the device"),
    METRICS_TRAFFIC(down_bytes, "bytes that gm moved from the device to the host"),
    METRICS_TRAFFIC(up_copies, "submissions of copies to the device"),
    METRICS_TRAFFIC(down_copies, "submissions of copies to the host"),
    METRICS_TRAFFIC(useful_bytes, "bytes moved that somebody asked for"),
};

/* ---- text ---- */

static void metrics_write(const metrics_page *page, const char *format, ...) GM_PRINTF(2, 3);

static void metrics_write(const metrics_page *page, const char *format, ...) {
  char line[METRICS_LINE];
  va_list arguments;
  va_start(arguments, format);
  const int wrote = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (wrote > 0 && (size_t)wrote < sizeof line) page->write_text(page->user, line, (size_t)wrote);
}

/* The text of a label, as it stands between quotes. Control characters and bytes that are not UTF-8 become '?'. `out`
 * has room for twice the text. */
static void metrics_escape(const char *text, char *out) {
  for (uint32_t length; *text; text += length) {
    length = gm__utf8_length(text, strnlen(text, 4));
    const bool dirty = !length || (unsigned char)*text < 0x20 || *text == 0x7f;
    if (dirty) length = 1;
    if (*text == '"' || *text == '\\') *out++ = '\\';
    memcpy(out, dirty ? "?" : text, length);
    out += length;
  }
  *out = '\0';
}

static bool metrics_ends(const char *name, const char *end) {
  const size_t bytes = strlen(name), tail = strlen(end);
  return bytes >= tail && strcmp(name + bytes - tail, end) == 0;
}

/* The figure's name and unit, as OpenMetrics has them: gm_pool_driver_ns becomes gm_pool_driver_seconds. */
static const char *metrics_name(const char *of, const metrics_figure *figure, char name[static METRICS_LINE / 4]) {
  const char *unit = metrics_ends(figure->name, "bytes") ? "bytes" : "";
  int bytes = (int)strlen(figure->name);
  if (figure->kind == METRICS_NANOSECONDS) {
    unit = "seconds";
    bytes -= 2;
  }
  snprintf(name, METRICS_LINE / 4, "gm_%s_%.*s%s", of, bytes, figure->name,
           figure->kind == METRICS_NANOSECONDS ? unit : "");
  return unit;
}

static void metrics_head(const metrics_page *page, const char *name, const char *unit, const metrics_figure *figure) {
  metrics_write(page, "# TYPE %s %s\n", name, figure->kind == METRICS_GAUGE ? "gauge" : "counter");
  if (*unit) metrics_write(page, "# UNIT %s %s\n", name, unit);
  metrics_write(page, "# HELP %s %s\n", name, figure->text);
}

static void metrics_sample(const metrics_page *page, const char *name, const char *labels, const metrics_figure *figure,
                           const void *row) {
  uint64_t value;
  memcpy(&value, (const char *)row + figure->at, sizeof value);
  if (value == GM_UNKNOWN_BYTES) return;
  if (figure->kind == METRICS_NANOSECONDS) {
    metrics_write(page, "%s_total{%s} %" PRIu64 ".%09" PRIu64 "\n", name, labels, value / 1000000000,
                  value % 1000000000);
  } else {
    metrics_write(page, "%s%s{%s} %" PRIu64 "\n", name, figure->kind == METRICS_COUNTER ? "_total" : "", labels, value);
  }
}

/* ---- pools and tags ---- */

static void metrics_pool_labels(const gm__pool_row *pool, char labels[static METRICS_LABELS]) {
  char name[2 * GM__ROW_NAME], device[2 * GM__ROW_DEVICE];
  metrics_escape(pool->name, name);
  metrics_escape(pool->device, device);
  snprintf(labels, METRICS_LABELS, "pool=\"%s\",id=\"%" PRIu64 "\",device=\"%s\"", name, pool->id, device);
}

static void metrics_pools(const metrics_page *page, const metrics_figure *figure) {
  char name[METRICS_LINE / 4], labels[METRICS_LABELS];
  if (figure->kind == METRICS_LEFT_OUT) return;
  metrics_head(page, name, metrics_name("pool", figure, name), figure);
  for (size_t i = 0; i < page->rows.pool_count; i++) {
    metrics_pool_labels(&page->rows.pools[i], labels);
    metrics_sample(page, name, labels, figure, &page->rows.pools[i].stats);
  }
}

/* Names that look alike once they are clean are one: OpenMetrics forbids two samples with the same labels. */
static void metrics_join_tags(metrics_page *page, gm__pool_row *pool) {
  gm_tag_total *totals = page->rows.tags + pool->first_tag;
  metrics_tag *names = page->tag_names + pool->first_tag;
  size_t kept = 0, at;
  for (size_t i = 0; i < pool->tag_count; i++) {
    metrics_escape(gm_tag_name(page->ctx, totals[i].tag), names[kept].name);
    for (at = 0; at < kept && strcmp(names[at].name, names[kept].name) != 0;) at++;
    if (at == kept) {
      totals[kept++] = totals[i];
      continue;
    }
    totals[at].bytes = gm__add_sat(totals[at].bytes, totals[i].bytes);
    totals[at].peak_bytes = gm__add_sat(totals[at].peak_bytes, totals[i].peak_bytes);
    totals[at].count += totals[i].count;
  }
  pool->tag_count = kept;
}

static bool metrics_name_tags(metrics_page *page) {
  page->tag_names = gm__alloc_array(page->rows.services, page->rows.tag_count, sizeof *page->tag_names);
  if (!page->tag_names) return false;
  for (size_t i = 0; i < page->rows.pool_count; i++) metrics_join_tags(page, &page->rows.pools[i]);
  return true;
}

static void metrics_tags(const metrics_page *page, const metrics_figure *figure) {
  char name[METRICS_LINE / 4], labels[METRICS_LABELS], with_tag[METRICS_LABELS + METRICS_TAG];
  metrics_head(page, name, metrics_name("pool_tag", figure, name), figure);
  for (size_t i = 0; i < page->rows.pool_count; i++) {
    const gm__pool_row *pool = &page->rows.pools[i];
    metrics_pool_labels(pool, labels);
    for (size_t at = pool->first_tag; at < pool->first_tag + pool->tag_count; at++) {
      snprintf(with_tag, sizeof with_tag, "%.*s,tag=\"%s\"", METRICS_LABELS - 1, labels, page->tag_names[at].name);
      metrics_sample(page, name, with_tag, figure, &page->rows.tags[at]);
    }
  }
}

/* ---- devices ---- */

static void metrics_device_labels(const gm__device_row *row, char labels[static METRICS_LABELS]) {
  char device[2 * GM__ROW_DEVICE];
  metrics_escape(row->device, device);
  snprintf(labels, METRICS_LABELS, "device=\"%s\",id=\"%" PRIu64 "\"", device, row->id);
}

static void metrics_devices(const metrics_page *page, const metrics_figure *figure) {
  char name[METRICS_LINE / 4], labels[METRICS_LABELS];
  metrics_head(page, name, metrics_name("device", figure, name), figure);
  for (size_t i = 0; i < page->rows.device_count; i++) {
    metrics_device_labels(&page->rows.devices[i], labels);
    metrics_sample(page, name, labels, figure, &page->rows.devices[i]);
  }
}

/* Labels of samples whose value is always 1. */
static void metrics_info(const metrics_page *page) {
  char labels[METRICS_LABELS], name[2 * sizeof page->rows.devices->name], driver[2 * sizeof page->rows.devices->driver];
  metrics_write(page, "# TYPE gm_build info\n# HELP gm_build the version of gm\n");
  metrics_write(page, "gm_build_info{version=\"%s\"} 1\n", gm_version_string());
  metrics_write(page, "# TYPE gm_device info\n# HELP gm_device devices that have a pool\n");
  for (size_t i = 0; i < page->rows.device_count; i++) {
    const gm__device_row *row = &page->rows.devices[i];
    metrics_device_labels(row, labels);
    metrics_escape(row->name, name);
    metrics_escape(row->driver, driver);
    metrics_write(page, "gm_device_info{%s,name=\"%s\",driver=\"%s\"} 1\n", labels, name, driver);
  }
}

/* ---- the page ---- */

#define METRICS_EACH(page, write, figures) \
  for (size_t i = 0; i < sizeof(figures) / sizeof *(figures); i++) write(page, &(figures)[i])

static gm_status metrics_make(metrics_page *page, gm_error *err) {
  gm_status status = gm__pool_rows_read(page->ctx, &page->rows);
  if (!status && !metrics_name_tags(page)) status = GM_ERR_OUT_OF_HOST_MEMORY;
  if (status) return gm__fail(err, status, "gm_report_open_metrics", "no host memory for the figures of all pools");
  metrics_info(page);
  METRICS_EACH(page, metrics_devices, metrics_of_device);
  METRICS_EACH(page, metrics_pools, metrics_of_pool);
  METRICS_EACH(page, metrics_tags, metrics_of_tag);
  metrics_write(page, "# EOF\n");
  return GM_OK;
}

gm_status gm_report_open_metrics(gm_context *ctx, void (*write_text)(void *user, const char *text, size_t bytes),
                                 void *user, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_report_open_metrics";
  const gm_status bad = gm__context_check(ctx, op, err);
  if (bad) return bad;
  if (!write_text) return gm__bad_argument(err, op, "`write_text` is NULL");
  metrics_page page = {.ctx = ctx, .write_text = write_text, .user = user};
  const gm_status status = metrics_make(&page, err);
  gm__release(page.rows.services, page.tag_names, page.rows.tag_count * sizeof *page.tag_names);
  gm__pool_rows_clear(&page.rows);
  return status;
}
