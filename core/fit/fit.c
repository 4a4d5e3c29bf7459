#include "gm/fit.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/sized.h"

/* Everything here is found by asking for figures and splitting them; nothing is known about models. */

gm_status gm_fit_device_read(gm_device *device, gm_fit_device *out, gm_error *err) {
  GM__UNCANCELLED();
  const char *op = "gm_fit_device_read";
  gm_memory_info memory = {.struct_size = sizeof memory};
  if (!out) return gm__bad_argument(err, op, "`out` must not be NULL");
  gm_status status = gm_device_memory_info(device, &memory, err);
  if (status != GM_OK) return status;
  if (memory.free_bytes == GM_UNKNOWN_BYTES) {
    return gm__fail(err, GM_ERR_NOT_FOUND, op, "%s: no figure for its free memory", gm_device_get_info(device)->name);
  }
  out->name = gm_device_get_info(device)->name;
  out->free_bytes = gm__sub_sat(memory.free_bytes, memory.promised_bytes);
  out->free_bytes = gm__sub_sat(out->free_bytes, memory.promised_by_others_bytes);
  return GM_OK;
}

static uint32_t fit_choices(uint32_t count) { return count ? count : 1; }

/* The caller's structs, in gm's own size. */
typedef struct fit_question {
  gm_fit_source source;
  gm_fit_setting setting;
} fit_question;

static gm_status fit_check(const char *op, const fit_question *question, gm_error *err) {
  const gm_fit_source *source = &question->source;
  const gm_fit_setting *setting = &question->setting;
  if (!source->figures) return gm__bad_argument(err, op, "`source->figures` is NULL");
  for (size_t i = 0; i < sizeof setting->reserved / sizeof *setting->reserved; i++) {
    if (setting->reserved[i]) return gm__bad_argument(err, op, "`setting->reserved` must be 0");
  }
  if (setting->kv_choice >= fit_choices(source->kv_count) ||
      setting->weight_choice >= fit_choices(source->weight_count)) {
    return gm__bad_argument(err, op, "choices %u and %u are not below %u and %u", setting->kv_choice,
                            setting->weight_choice, source->kv_count, source->weight_count);
  }
  return GM_OK;
}

static gm_status fit_read(const char *op, const gm_fit_source *source, const gm_fit_setting *setting, fit_question *out,
                          gm_error *err) {
  gm_status status = gm__sized_in(&out->source, sizeof out->source, source, op, "source", err);
  if (status == GM_OK) status = gm__sized_in(&out->setting, sizeof out->setting, setting, op, "setting", err);
  return status == GM_OK ? fit_check(op, out, err) : status;
}

static gm_status fit_try(const gm_fit_source *source, const gm_fit_setting *setting, gm_fit_part *out_parts,
                         gm_fit_plan *out, gm_error *err) {
  gm_fit_request request = {.struct_size = sizeof request};
  gm_status status = source->figures(source->user, setting, &request, err);
  if (status != GM_OK) return status;
  request.all_on_devices = setting->all_on_devices;
  request.experts_on_host = setting->experts_on_host;
  return gm_place_layers(source->services, &request, out_parts, out, err);
}

gm_status gm_fit_try(const gm_fit_source *source, const gm_fit_setting *setting, gm_fit_part *out_parts,
                     gm_fit_plan *out, gm_error *err) {
  fit_question asked;
  gm_status status = fit_read("gm_fit_try", source, setting, &asked, err);
  return status == GM_OK ? fit_try(&asked.source, &asked.setting, out_parts, out, err) : status;
}

gm_status gm_fit_longest_context(const gm_fit_source *source, const gm_fit_setting *setting, uint64_t least,
                                 uint64_t most, uint64_t step, uint64_t *out_context, gm_error *err) {
  const char *op = "gm_fit_longest_context";
  fit_question asked;
  gm_fit_plan plan = {.struct_size = sizeof plan};
  gm_status status = fit_read(op, source, setting, &asked, err);
  if (status != GM_OK) return status;
  if (!out_context || !least || least > most || most > INT64_MAX || !step) {
    return gm__bad_argument(err, op,
                            "%" PRIu64 " to %" PRIu64 " tokens in steps of %" PRIu64 ": no range, or no output", least,
                            most, step);
  }
  gm_fit_setting tried = asked.setting;
  uint64_t low = 0,
           high = (most - least) / step + 2; /* of the contexts, numbered from 1: this one fits, that one not */
  while (high - low > 1) {
    uint64_t middle = low + (high - low) / 2;
    tried.context = least + (middle - 1) * step;
    status = fit_try(&asked.source, &tried, NULL, &plan, err);
    if (status != GM_OK) return status;
    *(plan.fits ? &low : &high) = middle;
  }
  *out_context = low ? least + (low - 1) * step : 0;
  return GM_OK;
}

/* One search for advice. */
typedef struct advice {
  const gm_fit_source *source;
  const gm_fit_setting *asked;
  uint64_t least_context, step;
} advice;

static const char *advice_name(const char *const *names, uint32_t count, uint32_t choice) {
  return names && choice < count && names[choice] ? names[choice] : "?";
}

/* The first of the smaller choices that fits. */
static gm_status advice_choose(const advice *a, uint32_t *choice, uint32_t count, gm_fit_change *change,
                               gm_error *err) {
  gm_status status = GM_OK;
  for (++*choice; *choice < count && status == GM_OK; ++*choice) {
    status = fit_try(a->source, &change->setting, NULL, &change->plan, err);
    if (status != GM_OK || change->plan.fits) return status;
  }
  return status;
}

static gm_status advice_context(const advice *a, gm_fit_change *change, gm_error *err) {
  uint64_t longest = 0, most = a->asked->context;
  if (most <= a->least_context) return GM_OK;
  gm_status status = gm_fit_longest_context(a->source, a->asked, a->least_context, most - 1, a->step, &longest, err);
  if (status != GM_OK || !longest) return status;
  change->setting.context = longest;
  return fit_try(a->source, &change->setting, NULL, &change->plan, err);
}

/* Leaves change->plan.fits false when this kind is of no help. */
static gm_status advice_kind(const advice *a, gm_fit_change *change, gm_error *err) {
  const gm_fit_source *source = a->source;
  gm_fit_setting *setting = &change->setting;
  switch (change->kind) {
    case GM_FIT_SMALLER_KV: return advice_choose(a, &setting->kv_choice, source->kv_count, change, err);
    case GM_FIT_SMALLER_WEIGHTS: return advice_choose(a, &setting->weight_choice, source->weight_count, change, err);
    case GM_FIT_SHORTER_CONTEXT: return advice_context(a, change, err);
    case GM_FIT_EXPERTS_ON_HOST:
      if (setting->experts_on_host) return GM_OK;
      setting->experts_on_host = true;
      break;
    default:
      if (!setting->all_on_devices) return GM_OK;
      setting->all_on_devices = false;
      break;
  }
  return fit_try(source, setting, NULL, &change->plan, err);
}

static void advice_text(const advice *a, gm_fit_change *change) {
  const gm_fit_source *source = a->source;
  const gm_fit_setting *to = &change->setting;
  char *text = change->text;
  const size_t size = sizeof change->text;
  switch (change->kind) {
    case GM_FIT_SMALLER_KV:
      snprintf(text, size, "kv cache %s instead of %s", advice_name(source->kv_names, source->kv_count, to->kv_choice),
               advice_name(source->kv_names, source->kv_count, a->asked->kv_choice));
      break;
    case GM_FIT_SMALLER_WEIGHTS:
      snprintf(text, size, "weights %s instead of %s",
               advice_name(source->weight_names, source->weight_count, to->weight_choice),
               advice_name(source->weight_names, source->weight_count, a->asked->weight_choice));
      break;
    case GM_FIT_SHORTER_CONTEXT:
      snprintf(text, size, "a context of %" PRIu64 " instead of %" PRIu64 " tokens", to->context, a->asked->context);
      break;
    case GM_FIT_EXPERTS_ON_HOST:
      snprintf(text, size, "the experts of %u layers on the host", change->plan.host_expert_layers);
      break;
    default:
      snprintf(text, size, "%u layers on devices, %u on the host", change->plan.device_layers,
               change->plan.host.layer_count);
  }
}

gm_status gm_fit_advise(const gm_fit_source *source, const gm_fit_setting *setting, uint64_t least_context,
                        uint64_t step, gm_fit_change *out, uint32_t *out_count, gm_error *err) {
  const char *op = "gm_fit_advise";
  fit_question asked;
  gm_fit_plan plan = {.struct_size = sizeof plan};
  if (!out || !out_count || !least_context || !step) {
    return gm__bad_argument(err, op, "an output is NULL, or least_context or step is 0");
  }
  gm_status status = fit_read(op, source, setting, &asked, err);
  if (status == GM_OK) status = fit_try(&asked.source, &asked.setting, NULL, &plan, err);
  if (status != GM_OK) return status;
  const advice a = {&asked.source, &asked.setting, least_context, step};
  *out_count = 0;
  for (int kind = 0; kind < GM_FIT_CHANGES && !plan.fits; kind++) {
    gm_fit_change *change = &out[*out_count];
    *change = (gm_fit_change){
        .kind = (gm_fit_change_kind)kind, .setting = asked.setting, .plan = {.struct_size = sizeof plan}};
    status = advice_kind(&a, change, err);
    if (status != GM_OK) return status;
    if (!change->plan.fits) continue;
    advice_text(&a, change);
    ++*out_count;
  }
  return GM_OK;
}
