/* Every component lies on one device; they compute one after the other. So the largest compute buffer counts. */
#include "tools/gmem/fit/fit_components.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "gm/model_value.h"
#include "gm/size.h"
#include "tools/gmem/fit/fit.h"
#include "tools/gmem/output/style.h"
#include "tools/gmem/output/table.h"

enum { COMPONENTS_TILE = 256, COMPONENTS_PATH = 4096 };

/* ---- reading ---- */

bool fit_components_is_pipeline(const char *path) {
  char index[COMPONENTS_PATH];
  struct stat info;
  const int length = snprintf(index, sizeof index, "%s/model_index.json", path);
  return length > 0 && (size_t)length < sizeof index && stat(index, &info) == 0 && S_ISREG(info.st_mode);
}

static gm_status components_refuse(gm_error *err, const char *why) {
  err->status = GM_ERR_INVALID_ARGUMENT;
  snprintf(err->message, sizeof err->message, "%s", why);
  return err->status;
}

/* Options of models that write text change nothing here. */
static gm_status components_check(const fit_question *self, gm_error *err) {
  const gm_estimate_settings *settings = &self->settings;
  const struct {
    bool is_set;
    const char *why;
  } options[] = {{settings->context > 0, "--ctx"},
                 {settings->key_type != GM_DTYPE_F64, "--kv-type"},
                 {settings->weight_type != GM_DTYPE_F64, "--dtype"},
                 {settings->separate_sequences, "--separate"},
                 {settings->full_windows, "--full-windows"},
                 {self->experts_on_host > 0, "--n-cpu-moe"},
                 {self->overrides != NULL, "--override-tensor"},
                 {self->beside_count > 0, "a file beside the model"}};
  for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
    char why[128];
    if (!options[i].is_set) continue;
    snprintf(why, sizeof why, "%s does not go with a model of images or sound", options[i].why);
    return components_refuse(err, why);
  }
  return GM_OK;
}

static gm_status components_estimate(const fit_question *self, uint32_t width, uint32_t height, gm_component *out,
                                     uint32_t *count, gm_error *err) {
  const gm_estimate_settings *settings = &self->settings;
  const gm_component_settings run = {.struct_size = sizeof run,
                                     .plain_attention = settings->plain_attention,
                                     .width = width,
                                     .height = height,
                                     .images = (uint32_t)(settings->batch < UINT32_MAX ? settings->batch : UINT32_MAX),
                                     .beams = settings->sequences};
  return self->model ? gm_estimate_components(self->model, &run, out, GM_COMPONENTS_MAX, count, err)
                     : gm_estimate_pipeline(NULL, self->path, &run, out, GM_COMPONENTS_MAX, count, err);
}

gm_status fit_components_read(fit_question *self, gm_error *err) {
  fit_components *found = &self->components;
  gm_status status = components_estimate(self, found->width, found->height, found->items, &found->count, err);
  if (status != GM_OK) return status;
  if (!found->count) return found->asks_image ? components_refuse(err, "--image: the model makes no images") : GM_OK;
  status = components_estimate(self, COMPONENTS_TILE, COMPONENTS_TILE, found->tiled, &found->tiled_count, err);
  return status == GM_OK ? components_check(self, err) : status;
}

/* ---- sums ---- */

typedef struct components_sums {
  uint64_t parameters, weights, overhead;
  gm_memory_range cache, compute, total; /* of all; with the overhead */
  uint64_t tiled, alone;                 /* at most, with an image decoded in tiles, and with one component at a time */
  bool is_known;
  gm_standing cache_standing, compute_standing;
  const char *why;
} components_sums;

static uint64_t components_most(uint64_t a, uint64_t b) { return a > b ? a : b; }

static void components_add(components_sums *sums, const gm_component *it, const gm_component *tiled) {
  const gm_memory_range *compute = &it->compute.range, *cache = &it->cache.range;
  const bool is_decoder = it->kind == GM_COMPONENT_IMAGE_DECODER;
  const uint64_t alone = fit_add(it->weight_bytes, fit_add(cache->high, compute->high));
  sums->parameters = fit_add(sums->parameters, it->parameters);
  sums->weights = fit_add(sums->weights, it->weight_bytes);
  sums->cache.bytes = fit_add(sums->cache.bytes, cache->bytes);
  sums->cache.low = fit_add(sums->cache.low, cache->low);
  sums->cache.high = fit_add(sums->cache.high, cache->high);
  sums->compute.bytes = components_most(sums->compute.bytes, compute->bytes);
  sums->compute.low = components_most(sums->compute.low, compute->low);
  sums->compute.high = components_most(sums->compute.high, compute->high);
  sums->tiled = components_most(sums->tiled, is_decoder ? tiled->compute.range.high : compute->high);
  sums->alone = components_most(sums->alone, alone);
  if (it->cache.standing > sums->cache_standing) sums->cache_standing = it->cache.standing;
  const bool is_worse = it->compute.standing > sums->compute_standing;
  if (is_worse || (it->compute.standing == sums->compute_standing && compute->high == sums->compute.high)) {
    sums->compute_standing = it->compute.standing;
    sums->why = it->compute.reason;
  }
}

static components_sums components_sum(const fit_question *self) {
  components_sums sums = {.overhead = self->device_count ? fit_overhead(&self->config, 0) : 0};
  const fit_components *found = &self->components;
  for (uint32_t i = 0; i < found->count; i++) components_add(&sums, &found->items[i], &found->tiled[i]);
  const uint64_t kept = fit_add(sums.weights, sums.overhead);
  sums.is_known = sums.compute_standing != GM_STANDING_UNKNOWN;
  sums.total.low = fit_add(kept, fit_add(sums.cache.low, sums.compute.low));
  sums.total.high = fit_add(kept, fit_add(sums.cache.high, sums.compute.high));
  sums.total.bytes = fit_add(sums.weights, fit_add(sums.cache.bytes, sums.compute.bytes));
  sums.tiled = fit_add(kept, fit_add(sums.cache.high, sums.tiled));
  sums.alone = fit_add(sums.overhead, sums.alone);
  return sums;
}

/* ---- the answer ---- */

typedef struct components_answer {
  fit_verdict verdict;
  uint32_t device; /* the one with the most room */
  uint64_t room;   /* GM_UNKNOWN_BYTES: no limit */
  uint64_t lack;
  char text[FIT_VERDICT];
} components_answer;

static uint64_t components_room(const fit_question *self, uint32_t device) {
  const uint64_t all = self->devices[device].free_bytes, keep = self->keep_free_bytes[device];
  const uint64_t free = self->shares_host && self->host_free_bytes < all ? self->host_free_bytes : all;
  return free > keep ? free - keep : 0;
}

static void components_place(const fit_question *self, const components_answer *answer, char *out, size_t size) {
  if (self->device_count) {
    const fit_device *device = &self->devices[answer->device];
    snprintf(out, size, "%s %" PRIu32, device->backend, device->index);
  } else {
    snprintf(out, size, "the host");
  }
}

static void components_text(const fit_question *self, const components_sums *sums, components_answer *answer) {
  char place[FIT_NAME + 32], bytes[24];
  components_place(self, answer, place, sizeof place);
  gm_format_bytes(answer->lack, bytes, sizeof bytes);
  if (answer->verdict == FIT_NO) {
    snprintf(answer->text, sizeof answer->text, "It does not fit: %s lacks %s%s.", place,
             sums->is_known ? "" : "at least ", bytes);
  } else if (answer->verdict == FIT_UNKNOWN && sums->is_known) {
    snprintf(answer->text, sizeof answer->text, "Unknown: the estimate is an interval, and %s may lack %s.", place,
             bytes);
  } else if (answer->verdict == FIT_UNKNOWN) {
    snprintf(answer->text, sizeof answer->text, "Unknown: %s.", sums->why);
  } else if (answer->room == GM_UNKNOWN_BYTES) {
    snprintf(answer->text, sizeof answer->text, "It fits: in host memory, for which no limit was given.");
  } else {
    gm_format_bytes(answer->room - sums->total.high, bytes, sizeof bytes);
    snprintf(answer->text, sizeof answer->text, "It fits: on %s, with %s to spare.", place, bytes);
  }
}

/* It fits when it does at worst, and does not when it does not at best. */
static components_answer components_judge(const fit_question *self, const components_sums *sums) {
  components_answer answer = {.room = self->device_count ? 0 : self->host_free_bytes};
  for (uint32_t i = 0; i < self->device_count; i++) {
    const uint64_t room = components_room(self, i);
    if (room > answer.room) answer.device = i;
    answer.room = components_most(answer.room, room);
  }
  const bool has_limit = answer.room != GM_UNKNOWN_BYTES;
  if (has_limit && sums->total.low > answer.room) {
    answer.verdict = FIT_NO;
  } else if (!sums->is_known || (has_limit && sums->total.high > answer.room)) {
    answer.verdict = FIT_UNKNOWN;
  } else {
    answer.verdict = FIT_YES;
  }
  const uint64_t needed = sums->is_known ? sums->total.high : sums->total.low;
  answer.lack = has_limit && needed > answer.room ? needed - answer.room : 0;
  components_text(self, sums, &answer);
  return answer;
}

/* Two changes that engines offer, where each by itself makes it fit. */
static uint32_t components_changes(const fit_question *self, const components_sums *sums,
                                   const components_answer *answer, char out[2][128]) {
  uint32_t count = 0;
  char bytes[24];
  if (answer->verdict == FIT_YES || !sums->is_known) return 0;
  if (sums->tiled < sums->total.high && sums->tiled <= answer->room) {
    gm_format_bytes(sums->tiled, bytes, sizeof bytes);
    snprintf(out[count++], 128, "decode the image in tiles (--vae-tiling): at most %s", bytes);
  }
  if (self->components.count > 1 && sums->alone <= answer->room) {
    gm_format_bytes(sums->alone, bytes, sizeof bytes);
    snprintf(out[count++], 128, "one component on the device at a time: at most %s", bytes);
  }
  return count;
}

/* A family that gm does not know has the name that the file gives it. */
static const char *components_unknown(const fit_question *self) {
  gm_model_value value = {.struct_size = sizeof value};
  const bool is_named = self->model &&
                        gm_model_find_value(self->model, "general.architecture", &value, NULL) == GM_OK &&
                        value.kind == GM_VALUE_STRING;
  return is_named ? value.string : "unknown";
}

/* That of what makes the image or the text. */
static const char *components_family(const fit_question *self) {
  const fit_components *found = &self->components;
  const gm_component *it = &found->items[0];
  for (uint32_t i = found->count; i-- > 0;) {
    const gm_component_kind kind = found->items[i].kind;
    if (kind == GM_COMPONENT_DENOISER || kind == GM_COMPONENT_SPEECH) it = &found->items[i];
  }
  return it->family[0] ? it->family : components_unknown(self);
}

static bool components_hears(const fit_question *self) { return self->components.items[0].kind == GM_COMPONENT_SPEECH; }

static gm_standing components_standing(const components_sums *sums) {
  return sums->cache_standing > sums->compute_standing ? sums->cache_standing : sums->compute_standing;
}

static const char *const components_standings[] = {"exact", "interval", "unknown"};
static const char *const components_kinds[] = {"denoiser", "text encoder", "image decoder", "speech", "other"};

/* ---- text ---- */

static const char *components_bytes(uint64_t bytes, char *text, size_t size) {
  if (bytes == GM_UNKNOWN_BYTES) return "unknown";
  gm_format_bytes(bytes, text, size);
  return text;
}

static void components_head(FILE *file, const fit_question *self, const components_sums *sums) {
  char weights[24], low[24], high[24];
  const fit_components *found = &self->components;
  const uint64_t images = self->settings.batch ? self->settings.batch : 1;
  const char *attention = self->settings.plain_attention ? "without flash attention" : "with flash attention";
  const uint64_t most = sums->is_known ? sums->total.high : GM_UNKNOWN_BYTES;
  fprintf(file, "%s, %" PRIu32 " component%s, %.2f billion parameters, %s\n", components_family(self), found->count,
          found->count == 1 ? "" : "s", (double)sums->parameters / 1e9,
          components_bytes(sums->weights, weights, sizeof weights));
  if (components_hears(self)) {
    fprintf(file, "30 seconds of sound at once, %s\n", attention);
  } else {
    fprintf(file, "image %" PRIu32 "x%" PRIu32 ", %" PRIu64 " at once, %s\n", found->width, found->height, images,
            attention);
  }
  fprintf(file, "process total %s to %s\n", components_bytes(sums->total.low, low, sizeof low),
          components_bytes(most, high, sizeof high));
  fprintf(file, "how sure: %s (weights exact, cache %s, compute %s)%s%s\n",
          components_standings[components_standing(sums)], components_standings[sums->cache_standing],
          components_standings[sums->compute_standing], sums->why && sums->why[0] ? ": " : "",
          sums->why ? sums->why : "");
}

static void components_range_cell(table *rows, const gm_estimate_part *part) {
  char low[24], high[24];
  gm_format_bytes(part->range.low, low, sizeof low);
  gm_format_bytes(part->range.high, high, sizeof high);
  if (part->standing == GM_STANDING_UNKNOWN) {
    table_cell(rows, "unknown");
  } else if (part->standing == GM_STANDING_EXACT) {
    table_cell(rows, "%s", low);
  } else {
    table_cell(rows, "%s to %s", low, high);
  }
}

static void components_table(FILE *file, const fit_question *self) {
  static const char *const heads[] = {"component", "what", "family", "parameters", "weights", "cache", "compute"};
  static table rows;
  rows = (table){.rows = 0};
  table_row(&rows);
  for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) table_cell(&rows, "%s", heads[i]);
  for (uint32_t i = 0; i < self->components.count; i++) {
    const gm_component *it = &self->components.items[i];
    table_row(&rows);
    table_cell(&rows, "%s", it->name[0] ? it->name : "all");
    table_cell(&rows, "%s", components_kinds[it->kind]);
    table_cell(&rows, "%s", it->family[0] ? it->family : "unknown");
    table_cell(&rows, "%" PRIu64, it->parameters);
    table_bytes(&rows, it->weight_bytes);
    components_range_cell(&rows, &it->cache);
    components_range_cell(&rows, &it->compute);
  }
  fputc('\n', file);
  table_print(&rows, file);
}

void fit_components_print(FILE *file, const fit_question *self) {
  static const style_colour colours[] = {STYLE_RED, STYLE_GREEN, STYLE_YELLOW};
  const components_sums sums = components_sum(self);
  const components_answer answer = components_judge(self, &sums);
  const int begin = (int)strcspn(answer.text, ":");
  char changes[2][128];
  const uint32_t count = components_changes(self, &sums, &answer, changes);
  fprintf(file, "%s%.*s%s%s\n", style_begin(file, colours[answer.verdict]), begin, answer.text, style_end(file),
          answer.text + begin);
  components_head(file, self, &sums);
  components_table(file, self);
  if (count) fprintf(file, "\nWhat would help, one of:\n");
  for (uint32_t i = 0; i < count; i++) fprintf(file, "  %s\n", changes[i]);
}

/* ---- JSON ---- */

static void components_json_one(json_writer *out, const gm_component *it) {
  const bool is_known = it->compute.standing != GM_STANDING_UNKNOWN;
  writer_open(out, NULL, '{');
  writer_text(out, "component", it->name[0] ? it->name : "all");
  writer_text(out, "kind", components_kinds[it->kind]);
  writer_text_or_null(out, "family", it->family);
  writer_u64(out, "parameters", it->parameters);
  writer_bytes(out, "weight_bytes", it->weight_bytes);
  writer_bytes(out, "cache_low_bytes", it->cache.range.low);
  writer_bytes(out, "cache_high_bytes", it->cache.range.high);
  writer_bytes(out, "compute_low_bytes", is_known ? it->compute.range.low : GM_UNKNOWN_BYTES);
  writer_bytes(out, "compute_high_bytes", is_known ? it->compute.range.high : GM_UNKNOWN_BYTES);
  writer_text(out, "standing", components_standings[it->compute.standing]);
  writer_text_or_null(out, "reason", it->compute.reason);
  writer_close(out);
}

static void components_json_standing(json_writer *out, const components_sums *sums) {
  writer_text(out, "standing", components_standings[components_standing(sums)]);
  writer_open(out, "standing_of", '{');
  writer_text(out, "weights", components_standings[GM_STANDING_EXACT]);
  writer_text(out, "cache", components_standings[sums->cache_standing]);
  writer_text(out, "compute", components_standings[sums->compute_standing]);
  writer_close(out);
  writer_text_or_null(out, "standing_reason", sums->why);
}

static void components_json_sums(json_writer *out, const fit_question *self, const components_sums *sums) {
  const bool is_known = sums->is_known;
  writer_text(out, "architecture", components_family(self));
  writer_bool(out, "weights_exact", true);
  writer_u64(out, "parameters", sums->parameters);
  writer_bytes(out, "model_bytes", sums->weights);
  writer_bytes(out, "kv_cache_bytes", sums->cache.bytes);
  writer_bytes(out, "activation_bytes", is_known ? sums->compute.bytes : GM_UNKNOWN_BYTES);
  writer_bytes(out, "overhead_bytes", sums->overhead);
  writer_bytes(out, "total_bytes", is_known ? sums->total.bytes : GM_UNKNOWN_BYTES);
  writer_bytes(out, "low_bytes", sums->total.low);
  writer_bytes(out, "high_bytes", is_known ? sums->total.high : GM_UNKNOWN_BYTES);
}

void fit_components_json(json_writer *out, const fit_question *self) {
  const fit_components *found = &self->components;
  const components_sums sums = components_sum(self);
  const components_answer answer = components_judge(self, &sums);
  char changes[2][128], place[FIT_NAME + 32];
  const uint32_t count = components_changes(self, &sums, &answer, changes);
  components_place(self, &answer, place, sizeof place);
  components_json_sums(out, self, &sums);
  components_json_standing(out, &sums);
  if (answer.verdict == FIT_UNKNOWN) {
    writer_null(out, "fits");
  } else {
    writer_bool(out, "fits", answer.verdict == FIT_YES);
  }
  writer_text(out, "verdict", answer.text);
  writer_bytes(out, "lack_bytes", answer.lack);
  writer_text(out, "place", place);
  writer_bytes(out, "room_bytes", answer.room);
  writer_u64(out, "image_width", components_hears(self) ? 0 : found->width);
  writer_u64(out, "image_height", components_hears(self) ? 0 : found->height);
  writer_open(out, "components", '[');
  for (uint32_t i = 0; i < found->count; i++) components_json_one(out, &found->items[i]);
  writer_close(out);
  writer_open(out, "changes", '[');
  for (uint32_t i = 0; i < count; i++) writer_text(out, NULL, changes[i]);
  writer_close(out);
}
