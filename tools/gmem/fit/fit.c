/* A model's figures, devices' figures, and the library's answer. Margins: what the caller wants free, and how far the
 * compute buffer may be larger than expected. */
#include "tools/gmem/fit/fit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "gm/model_value.h"
#include "tools/gmem/fit/fit_standing.h"

enum {
  FIT_STEP = 256,         /* cells come in steps of so many */
  FIT_LONGEST = 131072,   /* where the file does not say what it was trained for */
  FIT_CONTEXT_MIB = 320,  /* a driver's context and kernels, per process: 200 to 600 MiB on CUDA */
  FIT_WORKSPACE_MIB = 64, /* matrix products, at least */
  FIT_ENTRIES = 64,
  FIT_ROUNDS = 8 /* of placing with a draft */
};

#define FIT_MIB (UINT64_C(1) << 20)

/* ---- the model ---- */

static bool fit_ends_with(const char *text, const char *end) {
  size_t length = strlen(text), end_length = strlen(end);
  return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static bool fit_is_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static gm_status fit_load_config(fit_question *self, gm_error *err) {
  char path[4096];
  const char *rest = fit_is_folder(self->path) ? "/config.json" : "";
  if ((size_t)snprintf(path, sizeof path, "%s%s", self->path, rest) >= sizeof path) {
    err->status = GM_ERR_INVALID_ARGUMENT;
    snprintf(err->message, sizeof err->message, "the path is too long");
    return err->status;
  }
  return gm_model_config_load(NULL, path, &self->config, err);
}

/* The engine of GGUF files keeps caches in nine types, and ends at others. */
static gm_status fit_check_cache(const fit_question *self, gm_error *err) {
  static const gm_dtype known[] = {GM_DTYPE_F32,    GM_DTYPE_F16,  GM_DTYPE_BF16, GM_DTYPE_Q8_0, GM_DTYPE_Q4_0,
                                   GM_DTYPE_IQ4_NL, GM_DTYPE_Q4_1, GM_DTYPE_Q5_0, GM_DTYPE_Q5_1, GM_DTYPE_F64};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (self->settings.key_type == known[i]) return GM_OK; /* f64 is 0: f16, since none was asked for */
  }
  err->status = GM_ERR_INVALID_ARGUMENT;
  snprintf(err->message, sizeof err->message,
           "--kv-type: llama.cpp has no cache of %s; it has f32, f16, bf16, q8_0, q4_0, q4_1, iq4_nl, q5_0 and q5_1",
           gm_dtype_name(self->settings.key_type));
  return err->status;
}

static gm_status fit_read_model(fit_question *self, gm_error *err) {
  const bool is_gguf = gm_model_value_count(self->model, 0) > 0;
  if (fit_components_read(self, err) != GM_OK || self->components.count) return err->status;
  if (is_gguf && fit_check_cache(self, err)) return err->status;
  const gm_status status = gm_model_read_config(self->model, &self->config, err);
  self->has_no_config = status == GM_ERR_NOT_FOUND;
  return status;
}

/* A folder without one model's weights may have a config.json. One with weights that cannot be read is in error. */
static bool fit_may_be_config(const char *path, const gm_error *err) {
  const bool has_none = err->status == GM_ERR_NOT_FOUND && !err->native_code;
  if (fit_is_folder(path)) return has_none || err->status == GM_ERR_INVALID_ARGUMENT;
  return fit_ends_with(path, ".json");
}

gm_status fit_open(fit_question *self, gm_error *err) {
  self->config.struct_size = sizeof self->config;
  if (fit_ends_with(self->path, "config.json")) return fit_load_config(self, err);
  if (fit_components_is_pipeline(self->path)) return fit_components_read(self, err);
  gm_status status = gm_model_open_header(NULL, self->path, &self->model, err);
  if (status == GM_OK) return fit_read_model(self, err);
  gm_error other = {.status = GM_OK};
  if (fit_may_be_config(self->path, err) && fit_load_config(self, &other) == GM_OK) return GM_OK;
  return status;
}

void fit_close(fit_question *self) {
  fit_beside_close(self);
  gm_model_close(self->model);
  self->model = NULL;
}

/* ---- devices ---- */

static bool fit_is_card(const gm_device_entry *entry) {
  return entry->info.type != GM_DEVICE_TYPE_CPU && strcmp(entry->id.backend, "null") != 0 &&
         entry->memory.free_bytes != GM_UNKNOWN_BYTES;
}

static bool fit_is_wanted(const gm_device_entry *entry) {
  return entry->counted && !entry->host_pool && fit_is_card(entry);
}

static void fit_add_device(fit_question *self, const gm_device_entry *entry) {
  fit_device *device = &self->devices[self->device_count];
  snprintf(device->backend, sizeof device->backend, "%s", entry->id.backend);
  snprintf(device->name, sizeof device->name, "%s", entry->info.name);
  device->index = entry->info.index;
  device->total_bytes = entry->memory.total_bytes;
  device->free_bytes = entry->memory.free_bytes;
  self->room[self->device_count++] = (gm_fit_device){.name = device->name};
}

/* Where no card has memory of its own, an integrated one computes in the host's. */
static void fit_add_integrated(fit_question *self, const gm_device_entry *entries, size_t count) {
  for (size_t i = 0; i < count && i < FIT_ENTRIES && !self->device_count; i++) {
    if (entries[i].info.type != GM_DEVICE_TYPE_INTEGRATED || !fit_is_card(&entries[i])) continue;
    fit_add_device(self, &entries[i]);
    self->shares_host = true;
  }
}

gm_status fit_find_devices(fit_question *self, gm_context *ctx, gm_error *err) {
  static gm_device_entry entries[FIT_ENTRIES] = {{.struct_size = sizeof *entries}};
  gm_host_info host = {.struct_size = sizeof host};
  size_t count = 0;
  gm_status status = gm_host_info_read(NULL, &host, err);
  if (status == GM_OK) status = gm_discover_backends(ctx, GM_PROBE_ISOLATED, NULL, 0, &count, err);
  for (size_t i = 0; i < FIT_ENTRIES; i++) entries[i].struct_size = sizeof *entries;
  if (status == GM_OK) status = gm_discover_devices(ctx, entries, FIT_ENTRIES, &count, err);
  if (status != GM_OK) return status;
  if (self->host_free_bytes == GM_UNKNOWN_BYTES) self->host_free_bytes = host.free_bytes;
  for (size_t i = 0; i < count && i < FIT_ENTRIES && self->device_count < FIT_DEVICES; i++) {
    if (fit_is_wanted(&entries[i])) fit_add_device(self, &entries[i]);
  }
  fit_add_integrated(self, entries, count);
  return GM_OK;
}

/* ---- figures ---- */

uint32_t fit_layer_count(const fit_question *self) { return (uint32_t)self->config.layers + 1; }

static gm_status fit_estimate(fit_question *self, const gm_estimate_settings *settings, gm_error *err) {
  self->estimate = (gm_memory_estimate){.struct_size = sizeof self->estimate};
  return gm_estimate_memory(NULL, &self->config, self->model, settings, &self->estimate, err);
}

/* The memory that a device holds beside the buffers that are estimated. */
uint64_t fit_overhead(const gm_model_config *config, uint64_t micro_batch) {
  const gm_layer_kind layer = gm_model_widest_layer(config);
  const uint64_t inner =
      layer.intermediate > layer.expert_intermediate ? layer.intermediate : layer.expert_intermediate;
  const uint64_t widest = inner > config->hidden ? inner : config->hidden;
  const uint64_t workspace = 8 * micro_batch * widest, least = FIT_WORKSPACE_MIB * FIT_MIB;
  return FIT_CONTEXT_MIB * FIT_MIB + (workspace > least ? workspace : least);
}

static uint64_t fit_scaled(uint64_t bytes, double share) { return (uint64_t)((double)bytes * share); }

/* Layers at an end of their intervals. How far the total can be off beside its compute buffers is the weights'. */
static void fit_move(fit_question *self, const gm_fit_request *request) {
  const gm_memory_estimate *e = &self->estimate;
  const gm_memory_range *host = &e->host_compute, *device = &e->device_compute;
  const bool worst = self->outlook == FIT_AT_WORST;
  const uint64_t weights = e->host_weights + e->device_weights;
  const uint64_t total = worst ? e->total.high - e->total.bytes : e->total.bytes - e->total.low;
  const uint64_t compute = worst ? host->high - host->bytes + device->high - device->bytes
                                 : host->bytes - host->low + device->bytes - device->low;
  const double off = weights && total > compute ? (double)(total - compute) / (double)weights : 0;
  for (uint32_t i = 0; i < request->layer_count; i++) {
    gm_fit_layer *layer = &self->layers[i];
    if (off > 0) layer->weight_bytes = fit_scaled(layer->weight_bytes, worst ? 1 + off : 1 - off);
    if (off > 0) layer->expert_bytes = fit_scaled(layer->expert_bytes, worst ? 1 + off : 1 - off);
    if (!worst && layer->compute_bytes > device->low) layer->compute_bytes = device->low;
  }
}

/* At best the buffer is as small as it can be; else the margin has what it may be larger. */
static uint64_t fit_margin(const fit_question *self, uint32_t device) {
  const gm_memory_range *compute = &self->estimate.device_compute;
  const uint64_t more = self->outlook == FIT_AT_BEST ? 0 : compute->high - compute->bytes;
  return self->keep_free_bytes[device] + more;
}

/* The free bytes of a device; for an integrated one, those that are free on the host beside what lies there in any
 * case. */
static uint64_t fit_free(const fit_question *self, uint32_t device, uint64_t host_fixed) {
  const uint64_t all = self->devices[device].free_bytes, host = self->host_free_bytes;
  if (!self->shares_host) return all;
  const uint64_t left = host > host_fixed ? host - host_fixed : 0;
  return all < left ? all : left;
}

/* The bytes that are free for layers, when what is beside the model has its room. Where that has none, nothing fits.
 * Host and integrated card take from one memory. */
static void fit_bound(fit_question *self, gm_fit_request *out) {
  self->excess_bytes = 0;
  for (uint32_t i = 0; i < self->device_count; i++) {
    const uint64_t all = fit_free(self, i, out->host_fixed_bytes);
    const uint64_t taken = self->taken[i], beside = taken ? fit_add(taken, self->room[i].margin_bytes) : 0;
    if (beside > all && beside - all > self->excess_bytes) self->excess_bytes = beside - all;
    self->whole[i] = all;
    self->room[i].free_bytes = all > taken ? all - taken : 0;
    if (self->shares_host) out->host_free_bytes -= self->room[i].free_bytes;
  }
  if (self->excess_bytes) out->host_free_bytes = 0;
}

static gm_status fit_figures(void *user, const gm_fit_setting *setting, gm_fit_request *out, gm_error *err) {
  fit_question *self = user;
  gm_estimate_settings settings = self->settings;
  settings.context = setting->context;
  settings.place = self->device_count ? GM_ESTIMATE_DEVICE : GM_ESTIMATE_HOST;
  if (setting->kv_choice) settings.key_type = settings.value_type = self->kv_types[setting->kv_choice];
  gm_status status = fit_estimate(self, &settings, err);
  if (status != GM_OK) return status;
  status = gm_estimate_layers(NULL, &self->config, self->model, &settings, self->layers, GM_FIT_LAYERS_MAX, out, err);
  if (status == GM_OK && self->outlook != FIT_EXPECTED) fit_move(self, out);
  for (uint32_t i = 0; i < self->device_count; i++) {
    self->room[i].margin_bytes = fit_margin(self, i);
    self->room[i].overhead_bytes = fit_overhead(&self->config, self->estimate.micro_batch);
  }
  out->host_free_bytes = self->host_free_bytes;
  if (status == GM_OK) status = fit_move_to_host(self, &settings, out, err);
  if (status == GM_OK) status = fit_beside_figures(self, &settings, out, err);
  if (status == GM_OK) fit_bound(self, out);
  out->devices = self->room;
  out->device_count = self->device_count;
  out->spread = self->spread;
  return status;
}

/* ---- the answer ---- */

static void fit_list_kv_types(fit_question *self) {
  static const gm_dtype smaller[] = {GM_DTYPE_Q8_0, GM_DTYPE_Q4_0};
  gm_dtype asked = self->settings.key_type == GM_DTYPE_F64 ? GM_DTYPE_F16 : self->settings.key_type;
  uint64_t bytes = 0, least = 0;
  self->kv_types[0] = asked;
  self->kv_count = 1;
  gm_dtype_bytes(asked, 256, &least);
  const uint32_t head = gm_model_widest_layer(&self->config).key_size;
  for (size_t i = 0; i < sizeof smaller / sizeof *smaller; i++) {
    bool suits = !self->settings.plain_attention && head % 32 == 0 && head != 0;
    if (gm_dtype_bytes(smaller[i], 256, &bytes) != GM_OK || bytes >= least || !suits) continue;
    self->kv_types[self->kv_count++] = smaller[i];
  }
  for (uint32_t i = 0; i < self->kv_count; i++) self->kv_names[i] = gm_dtype_name(self->kv_types[i]);
}

/* Files beside the model count as taken of their devices. */
static void fit_settle_beside(fit_question *self) {
  for (uint32_t i = 0; i < self->device_count; i++) {
    self->parts[i].bytes = fit_add(self->parts[i].bytes, self->taken[i]);
    self->room[i].free_bytes = self->whole[i];
  }
}

/* The figures of what was placed, in place of those of the last try. */
static gm_status fit_settle(fit_question *self, const gm_fit_setting *setting, gm_error *err) {
  gm_estimate_settings settings = self->settings;
  gm_fit_request request = {.struct_size = sizeof request};
  fit_beside_share(self, false); /* what it has now, without room for more */
  gm_status status = fit_figures(self, setting, &request, err);
  if (status != GM_OK) return status;
  settings.place = GM_ESTIMATE_HOST;
  if (self->plan.device_layers) settings.place = GM_ESTIMATE_SPLIT;
  if (self->plan.device_layers == fit_layer_count(self)) settings.place = GM_ESTIMATE_DEVICE;
  settings.device_layers = self->plan.device_layers;
  status = fit_estimate(self, &settings, err);
  if (status == GM_OK) fit_settle_host(self);
  fit_settle_beside(self);
  self->overhead_bytes = self->plan.devices_used * fit_overhead(&self->config, self->estimate.micro_batch);
  return status;
}

/* A change that the placement shows already is no further help. */
static void fit_drop_known_change(fit_question *self) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < self->change_count; i++) {
    const gm_fit_change *change = &self->changes[i];
    const bool is_known = change->kind == GM_FIT_FEWER_LAYERS && change->plan.device_layers == self->plan.device_layers;
    if (!is_known) self->changes[kept++] = *change;
  }
  self->change_count = kept;
}

/* The longest context and the changes hold at worst, too. */
static gm_status fit_look_around(fit_question *self, const gm_fit_source *source, gm_fit_setting *setting,
                                 gm_error *err) {
  const uint64_t trained = self->config.context > FIT_STEP ? self->config.context : FIT_LONGEST;
  const uint64_t most = trained / FIT_STEP * FIT_STEP;
  self->outlook = FIT_AT_WORST;
  gm_status status =
      gm_fit_longest_context(source, setting, FIT_STEP, FIT_FARTHEST, FIT_STEP, &self->max_context_fits, err);
  self->max_context = self->max_context_fits < most ? self->max_context_fits : most;
  if (status == GM_OK && self->verdict != FIT_YES && self->estimate.standing != GM_STANDING_UNKNOWN) {
    status = gm_fit_advise(source, setting, FIT_STEP, FIT_STEP, self->changes, &self->change_count, err);
    fit_drop_known_change(self);
  }
  self->outlook = FIT_EXPECTED;
  return status;
}

static gm_status fit_try_at(fit_question *self, const gm_fit_source *source, const gm_fit_setting *setting,
                            fit_outlook outlook, gm_fit_plan *plan, gm_error *err) {
  self->outlook = outlook;
  const gm_status status = gm_fit_try(source, setting, NULL, plan, err);
  self->outlook = FIT_EXPECTED;
  return status;
}

/* Why some bytes are unknown; NULL: none are. */
const char *fit_unknown(const fit_question *self) {
  for (uint32_t i = 0; i < self->beside_count; i++) {
    if (self->beside[i].why[0]) return self->beside[i].why;
  }
  return self->is_unsettled ? "the layers and the draft find no split in which both stay where they are" : NULL;
}

/* It fits when it does at worst. It does not fit when it does not at best. */
static gm_status fit_judge(fit_question *self, const gm_fit_source *source, const gm_fit_setting *setting,
                           gm_error *err) {
  gm_fit_plan worst = {.struct_size = sizeof worst}, best = worst;
  gm_status status = fit_try_at(self, source, setting, FIT_AT_WORST, &worst, err);
  if (status == GM_OK) status = fit_try_at(self, source, setting, FIT_AT_BEST, &best, err);
  if (status != GM_OK) return status;
  self->verdict = worst.fits ? FIT_YES : best.fits ? FIT_UNKNOWN : FIT_NO;
  if (self->verdict == FIT_YES && fit_unknown(self)) self->verdict = FIT_UNKNOWN;
  if (self->estimate.standing == GM_STANDING_UNKNOWN) self->verdict = FIT_UNKNOWN;
  self->lack_bytes = worst.lack_bytes;
  return GM_OK;
}

/* A draft lies where the layers do, and they get the room that it leaves: again until neither moves. If they go back
 * and forth, each device keeps room for the largest share that it had. */
static gm_status fit_place(fit_question *self, const gm_fit_source *source, const gm_fit_setting *setting,
                           gm_error *err) {
  gm_status status = GM_OK;
  for (int i = 0; i < FIT_ROUNDS && status == GM_OK; i++) {
    status = gm_fit_try(source, setting, self->parts, &self->plan, err);
    self->is_unsettled = self->beside_count && !fit_beside_share(self, i >= FIT_ROUNDS / 2);
    if (!self->is_unsettled) break;
  }
  return status;
}

gm_status fit_answer(fit_question *self, gm_error *err) {
  gm_status status = fit_estimate(self, &self->settings, err);
  if (status != GM_OK) return status;
  fit_list_kv_types(self);
  gm_fit_source source = {.struct_size = sizeof source,
                          .figures = fit_figures,
                          .user = self,
                          .kv_names = self->kv_names,
                          .kv_count = self->kv_count};
  gm_fit_setting setting = {.struct_size = sizeof setting,
                            .context = self->settings.context ? self->settings.context : self->estimate.context,
                            .all_on_devices = self->device_count > 0};
  self->settings.context = setting.context;
  self->plan = (gm_fit_plan){.struct_size = sizeof self->plan};
  status = fit_place(self, &source, &setting, err);
  if (status == GM_OK) status = fit_judge(self, &source, &setting, err);
  if (status == GM_OK) status = fit_look_around(self, &source, &setting, err);
  return status == GM_OK ? fit_settle(self, &setting, err) : status;
}

/* Files beside the model in its own process. */
static void fit_sum_beside(const fit_question *self, fit_sums *sums) {
  for (uint32_t i = 0; i < self->beside_count; i++) {
    const fit_beside *it = &self->beside[i];
    if (it->kind == FIT_OTHER) continue;
    const uint64_t all = fit_add(it->device_bytes, it->host_bytes);
    sums->host_bytes = fit_add(sums->host_bytes, it->host_bytes);
    sums->low_bytes = fit_add(sums->low_bytes, all - it->less_bytes);
    sums->high_bytes = fit_add(sums->high_bytes, fit_add(all, it->spare_bytes));
  }
  if (fit_unknown(self)) sums->high_bytes = GM_UNKNOWN_BYTES;
}

/* A part that gm does not know is no figure, and neither is a sum with it. */
static void fit_forget(const fit_question *self, fit_sums *sums) {
  if (self->estimate.standing != GM_STANDING_UNKNOWN) return;
  if (fit_is_unknown(self, GM_ESTIMATE_WEIGHTS)) sums->model_bytes = GM_UNKNOWN_BYTES;
  if (fit_is_unknown(self, GM_ESTIMATE_CACHE)) sums->kv_bytes = GM_UNKNOWN_BYTES;
  if (fit_is_unknown(self, GM_ESTIMATE_COMPUTE)) sums->activation_bytes = GM_UNKNOWN_BYTES;
  sums->host_bytes = sums->total_bytes = sums->low_bytes = sums->high_bytes = GM_UNKNOWN_BYTES;
}

fit_sums fit_sum(const fit_question *self) {
  const gm_memory_estimate *estimate = &self->estimate;
  fit_sums sums = {.model_bytes = estimate->host_weights + estimate->device_weights - estimate->tied_weights,
                   .kv_bytes = estimate->host_kv + estimate->device_kv,
                   .activation_bytes = estimate->host_compute.bytes + estimate->device_compute.bytes,
                   .host_bytes = estimate->host_weights + estimate->host_kv + estimate->host_compute.bytes,
                   .total_bytes = estimate->total.bytes,
                   .low_bytes = estimate->total.low};
  uint64_t buffers = 0; /* each device has a compute buffer of its own */
  for (uint32_t i = 0; i < self->device_count; i++) buffers += self->parts[i].compute_bytes;
  uint64_t more = self->plan.devices_used > 1 && buffers > estimate->device_compute.bytes
                      ? buffers - estimate->device_compute.bytes
                      : 0;
  sums.activation_bytes += more;
  sums.total_bytes += more;
  sums.host_bytes += estimate->output;
  sums.high_bytes = estimate->total.high + more + estimate->output + self->overhead_bytes;
  fit_sum_beside(self, &sums);
  fit_forget(self, &sums);
  return sums;
}
