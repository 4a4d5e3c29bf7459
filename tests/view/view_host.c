#include "view/view_case.h"

static void host_total(view_case *view, const char *key, json_object *want, const void *got) {
  view_value(view, key, want, ((const gm_host_info *)got)->total_bytes);
}

static void host_free(view_case *view, const char *key, json_object *want, const void *got) {
  view_value(view, key, want, ((const gm_host_info *)got)->free_bytes);
}

static void host_state(view_case *view, const char *key, json_object *want, const void *got) {
  view_word(view, key, want, gm_figure_state_name(((const gm_host_info *)got)->free_state));
}

static void host_limit_source(view_case *view, const char *key, json_object *want, const void *got) {
  view_word(view, key, want, ((const gm_host_info *)got)->limit_source);
}

static void host_total_source(view_case *view, const char *key, json_object *want, const void *got) {
  view_word(view, key, want, ((const gm_host_info *)got)->total_source);
}

static void host_hugetlb(view_case *view, const char *key, json_object *want, const void *got) {
  view_value(view, key, want, ((const gm_host_info *)got)->hugetlb_free_bytes);
}

static void stall_average(view_case *view, const char *key, json_object *want, const void *got) {
  const gm_host_stall *stall = got;
  view_value(view, key, want, stall->valid ? stall->avg10_centi : GM_UNKNOWN_BYTES);
}

static void stall_total(view_case *view, const char *key, json_object *want, const void *got) {
  const gm_host_stall *stall = got;
  view_value(view, key, want, stall->valid ? stall->total_us : GM_UNKNOWN_BYTES);
}

static void stall_some_average(view_case *view, const char *key, json_object *want, const void *got) {
  stall_average(view, key, want, &((const gm_host_info *)got)->stall_some);
}

static void stall_full_average(view_case *view, const char *key, json_object *want, const void *got) {
  stall_average(view, key, want, &((const gm_host_info *)got)->stall_full);
}

static void stall_some_total(view_case *view, const char *key, json_object *want, const void *got) {
  stall_total(view, key, want, &((const gm_host_info *)got)->stall_some);
}

static void stall_full_total(view_case *view, const char *key, json_object *want, const void *got) {
  stall_total(view, key, want, &((const gm_host_info *)got)->stall_full);
}

static const view_check psi_checks[] = {
    {"some_avg10_centi", stall_some_average},
    {"full_avg10_centi", stall_full_average},
    {"some_total_us", stall_some_total},
    {"full_total_us", stall_full_total},
};

static void host_psi(view_case *view, const char *key, json_object *want, const void *got) {
  const gm_host_info *info = got;
  if (want) {
    view_compare(view, want, psi_checks, sizeof psi_checks / sizeof *psi_checks, got);
  } else if (info->stall_some.valid || info->stall_full.valid) {
    view_differ(view, "%s: expected no figure", key);
  }
}

static const view_check host_checks[] = {
    {"total", host_total},
    {"free", host_free},
    {"free_state", host_state},
    {"limit_source", host_limit_source},
    {"total_source", host_total_source},
    {"hugetlb_free", host_hugetlb},
    {"psi", host_psi},
};

void view_run_host(view_case *view) {
  static const char *const keys[] = {"files", "unreadable", NULL};
  view_known_keys(view, view->input, keys);
  gm_host_info info = {.struct_size = sizeof info};
  gm_error err;
  if (gm_host_info_read(view->root, &info, &err) != GM_OK) {
    view_differ(view, "gm_host_info_read: %s", err.message);
    return;
  }
  view_invariants(view, info.total_bytes, info.free_bytes, info.free_state);
  view_compare(view, view->expected, host_checks, sizeof host_checks / sizeof *host_checks, &info);
}
