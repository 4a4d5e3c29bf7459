#include "view/view_device_input.h"

typedef struct device_answer {
  gm_memory_info info;
  gm__fdinfo_use fdinfo;
} device_answer;

static void device_total_value(view_case *view, const char *key, json_object *want, const void *got) {
  view_value(view, key, want, ((const device_answer *)got)->info.total_bytes);
}

static void device_free(view_case *view, const char *key, json_object *want, const void *got) {
  view_value(view, key, want, ((const device_answer *)got)->info.free_bytes);
}

static void device_state(view_case *view, const char *key, json_object *want, const void *got) {
  view_word(view, key, want, gm_figure_state_name(((const device_answer *)got)->info.free_state));
}

static void device_unified(view_case *view, const char *key, json_object *want, const void *got) {
  bool unified = ((const device_answer *)got)->info.unified;
  if (json_object_get_boolean(want) != unified) view_differ(view, "%s: got %s", key, unified ? "true" : "false");
}

static void device_used_others(view_case *view, const char *key, json_object *want, const void *got) {
  view_value(view, key, want, ((const device_answer *)got)->info.used_by_others_bytes);
}

static void device_nvml_used_others(view_case *view, const char *key, json_object *want, const void *got) {
  view_value(view, key, want, ((const device_answer *)got)->info.nvml_used_by_others_bytes);
}

static void part_total(view_case *view, const char *key, json_object *want, const void *got) {
  view_value(view, key, want, ((const gm_memory_part *)got)->total_bytes);
}

static void part_free(view_case *view, const char *key, json_object *want, const void *got) {
  view_value(view, key, want, ((const gm_memory_part *)got)->free_bytes);
}

static const view_check part_checks[] = {{"total", part_total}, {"free", part_free}};

static void part_vram(view_case *view, const char *key, json_object *want, const void *got) {
  (void)key;
  view_compare(view, want, part_checks, 2, &((const device_answer *)got)->info.vram);
}

static void part_gtt(view_case *view, const char *key, json_object *want, const void *got) {
  (void)key;
  view_compare(view, want, part_checks, 2, &((const device_answer *)got)->info.gtt);
}

static const view_check pools_checks[] = {{"vram", part_vram}, {"gtt", part_gtt}};

static void device_pools(view_case *view, const char *key, json_object *want, const void *got) {
  (void)key;
  view_compare(view, want, pools_checks, 2, got);
}

static void used_vram(view_case *view, const char *key, json_object *want, const void *got) {
  view_value(view, key, want, ((const device_answer *)got)->fdinfo.vram_bytes);
}

static void used_gtt(view_case *view, const char *key, json_object *want, const void *got) {
  view_value(view, key, want, ((const device_answer *)got)->fdinfo.gtt_bytes);
}

static void others_vram(view_case *view, const char *key, json_object *want, const void *got) {
  view_value(view, key, want, ((const device_answer *)got)->fdinfo.vram_others);
}

static void others_gtt(view_case *view, const char *key, json_object *want, const void *got) {
  view_value(view, key, want, ((const device_answer *)got)->fdinfo.gtt_others);
}

static const view_check used_checks[] = {{"vram", used_vram}, {"gtt", used_gtt}};
static const view_check others_checks[] = {{"vram", others_vram}, {"gtt", others_gtt}};

static void device_fdinfo_used(view_case *view, const char *key, json_object *want, const void *got) {
  (void)key;
  view_compare(view, want, used_checks, 2, got);
}

static void device_fdinfo_others(view_case *view, const char *key, json_object *want, const void *got) {
  (void)key;
  view_compare(view, want, others_checks, 2, got);
}

static const view_check device_checks[] = {
    {"total", device_total_value},
    {"free", device_free},
    {"free_state", device_state},
    {"unified", device_unified},
    {"used_others", device_used_others},
    {"pools", device_pools},
    {"fdinfo_used", device_fdinfo_used},
    {"fdinfo_others", device_fdinfo_others},
    {"nvml_used_others", device_nvml_used_others},
};

void view_run_device(view_case *view) {
  view_device_input input;
  view_device_input_read(view, &input);
  device_answer answer = {gm__memory_info_resolve(&input.figures), input.figures.fdinfo};
  view_invariants(view, answer.info.total_bytes, answer.info.free_bytes, answer.info.free_state);
  view_compare(view, view->expected, device_checks, sizeof device_checks / sizeof *device_checks, &answer);
}
