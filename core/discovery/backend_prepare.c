/* Invariant: a prepared table has no NULL entry, so call sites test none. */
#include "core/discovery/backend_prepare.h"

#include <string.h>

#include "core/base/error.h"
#include "core/base/sized.h"
#include "core/discovery/backend_entries.h"

typedef enum backend_group {
  GROUP_DRIVER,
  GROUP_INFO,
  GROUP_DEVICE,
  GROUP_ADOPT,
  GROUP_WRAP,
  GROUP_EXPORT,
  GROUP_FIGURES,
  GROUP_TYPES,
  GROUP_MEMORY,
  GROUP_VIEW,
  GROUP_MAP,
  GROUP_COMMIT,
  GROUP_STREAM,
  GROUP_POINT,
  GROUP_CAPTURE,
  GROUP_POINT_COPY,
  GROUP_STREAM_SAME,
  GROUP_STREAM_NAME,
  GROUP_DEVICE_SYNC,
  GROUP_COPY,
  GROUP_COPY_MORE,
  GROUP_EXPAND,
  GROUP_REGISTER,
  GROUP_HOST_ALLOC,
  GROUP_VMM,
  GROUP_RANGE,
  GROUP_VIEW_NATIVE,
  GROUP_DEVICE_CALL,
  GROUP_PEER,
  GROUP_SHARE,
  GROUP_MANAGED,
  GROUP_ALONE,
  GROUP_COUNT
} backend_group;

typedef enum backend_rule { RULE_REQUIRED, RULE_ALL_OR_NONE, RULE_OPTIONAL } backend_rule;

static const struct {
  backend_rule rule;
  uint64_t capability; /* what having the group means */
} backend_groups[GROUP_COUNT] = {
    [GROUP_DRIVER] = {RULE_REQUIRED, 0},
    [GROUP_INFO] = {RULE_REQUIRED, 0},
    [GROUP_DEVICE] = {RULE_REQUIRED, 0},
    [GROUP_ADOPT] = {RULE_ALL_OR_NONE, GM_CAP_ADOPT},
    [GROUP_WRAP] = {RULE_OPTIONAL, 0},
    [GROUP_EXPORT] = {RULE_OPTIONAL, 0},
    [GROUP_FIGURES] = {RULE_REQUIRED, 0},
    [GROUP_TYPES] = {RULE_REQUIRED, 0},
    [GROUP_MEMORY] = {RULE_REQUIRED, 0},
    [GROUP_VIEW] = {RULE_ALL_OR_NONE, GM_CAP_VIEW},
    [GROUP_MAP] = {RULE_ALL_OR_NONE, GM_CAP_MAPPING},
    [GROUP_COMMIT] = {RULE_OPTIONAL, GM_CAP_COMMIT},
    [GROUP_STREAM] = {RULE_ALL_OR_NONE, GM_CAP_STREAMS},
    [GROUP_POINT] = {RULE_ALL_OR_NONE, GM_CAP_POINTS},
    [GROUP_CAPTURE] = {RULE_OPTIONAL, 0},
    [GROUP_POINT_COPY] = {RULE_OPTIONAL, 0},
    [GROUP_STREAM_SAME] = {RULE_OPTIONAL, 0},
    [GROUP_STREAM_NAME] = {RULE_OPTIONAL, 0},
    [GROUP_DEVICE_SYNC] = {RULE_OPTIONAL, 0},
    [GROUP_COPY] = {RULE_REQUIRED, 0},
    [GROUP_COPY_MORE] = {RULE_OPTIONAL, 0},
    [GROUP_EXPAND] = {RULE_OPTIONAL, 0},
    [GROUP_REGISTER] = {RULE_ALL_OR_NONE, GM_CAP_REGISTRATION},
    [GROUP_HOST_ALLOC] = {RULE_OPTIONAL, 0},
    [GROUP_VMM] = {RULE_ALL_OR_NONE, GM_CAP_VMM},
    [GROUP_RANGE] = {RULE_OPTIONAL, 0},
    [GROUP_VIEW_NATIVE] = {RULE_OPTIONAL, 0},
    [GROUP_DEVICE_CALL] = {RULE_OPTIONAL, 0},
    [GROUP_PEER] = {RULE_ALL_OR_NONE, GM_CAP_PEER},
    [GROUP_SHARE] = {RULE_ALL_OR_NONE, GM_CAP_SHARE},
    [GROUP_MANAGED] = {RULE_ALL_OR_NONE, GM_CAP_MANAGED},
    [GROUP_ALONE] = {RULE_OPTIONAL, 0},
};

/* Each stub has its entry's own type: calling through another one would be undefined. None reads its parameters. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define X(group, name, params)                                                               \
  static gm_status backend_stub_##name params {                                              \
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, #name, "this backend does not implement it"); \
  }
GM__BACKEND_ENTRIES(X)
#undef X
#define X(group, name, params) \
  static void backend_stub_##name params {}
GM__BACKEND_VOID_ENTRIES(X)
#undef X
#pragma GCC diagnostic pop

typedef struct backend_census {
  uint32_t present[GROUP_COUNT];
  const char *missing[GROUP_COUNT]; /* first one of the group, NULL: none */
} backend_census;

static void backend_count(backend_census *census, backend_group group, const char *name, bool present) {
  if (present) {
    census->present[group]++;
  } else if (!census->missing[group]) {
    census->missing[group] = name;
  }
}

static void backend_take_census(const gm_backend_ops *ops, backend_census *out) {
  *out = (backend_census){.present = {0}};
#define X(group, name, params) backend_count(out, GROUP_##group, #name, ops->name != NULL);
  GM__BACKEND_ENTRIES(X)
  GM__BACKEND_VOID_ENTRIES(X)
#undef X
}

static gm_status backend_check_groups(const gm_backend_ops *ops, gm_error *err) {
  backend_census census;
  backend_take_census(ops, &census);
  for (int group = 0; group < GROUP_COUNT; group++) {
    const char *missing = census.missing[group];
    backend_rule rule = backend_groups[group].rule;
    if (!missing || rule == RULE_OPTIONAL || (rule == RULE_ALL_OR_NONE && census.present[group] == 0)) continue;
    return gm__bad_argument(err, "gm_backend_register", "backend \"%s\" lacks `%s`, %s", ops->name, missing,
                            rule == RULE_REQUIRED ? "which is required" : "but has other entries of its group");
  }
  for (size_t i = 0; i < sizeof ops->reserved / sizeof *ops->reserved; i++) {
    if (ops->reserved[i]) {
      return gm__bad_argument(err, "gm_backend_register", "backend \"%s\" sets reserved entry %zu", ops->name, i);
    }
  }
  return GM_OK;
}

static bool backend_name_ok(const char *name) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
  return name && name[0] && strlen(name) <= 15 && strspn(name, letters) == strlen(name);
}

/* The table in gm's own size: what an older backend lacks is NULL, and what only a newer one has stays unused. */
static gm_status backend_copy(const gm_backend_ops *ops, gm_backend_ops *out, gm_error *err) {
  const size_t head = offsetof(gm_backend_ops, probe), entry = sizeof ops->probe;
  const uint32_t size = ops->struct_size;
  if (ops->abi != GM_BACKEND_ABI || size < head || size > GM__SIZED_MOST || size % entry != 0) {
    return gm__fail(err, GM_ERR_ABI_MISMATCH, "gm_backend_register",
                    "the backend has ABI %u and a table of %u bytes; this gm has ABI %u and %zu: rebuild the backend",
                    ops->abi, size, GM_BACKEND_ABI, sizeof *out);
  }
  *out = (gm_backend_ops){.struct_size = sizeof *out};
  memcpy(out, ops, size < sizeof *out ? size : sizeof *out);
  out->struct_size = sizeof *out;
  return GM_OK;
}

gm_status gm__backend_prepare(const gm_backend_ops *ops, gm_backend_ops *out, gm_error *err) {
  gm_backend_ops copy;
  if (!ops) return gm__bad_argument(err, "gm_backend_register", "`ops` is NULL");
  gm_status status = backend_copy(ops, &copy, err);
  if (status != GM_OK) return status;
  if (!backend_name_ok(copy.name)) {
    return gm__bad_argument(err, "gm_backend_register", "a name must be 1 to 15 of a-z, 0-9 and _");
  }
  status = backend_check_groups(&copy, err);
  if (status != GM_OK) return status;
#define X(group, name, params) \
  if (!copy.name) copy.name = backend_stub_##name;
  GM__BACKEND_ENTRIES(X)
  GM__BACKEND_VOID_ENTRIES(X)
#undef X
  *out = copy;
  return GM_OK;
}

uint64_t gm__backend_group_capabilities(const gm_backend_ops *prepared) {
  bool has[GROUP_COUNT] = {false};
  uint64_t capabilities = 0;
#define X(group, name, params) has[GROUP_##group] = has[GROUP_##group] || prepared->name != backend_stub_##name;
  GM__BACKEND_ENTRIES(X)
#undef X
  for (int group = 0; group < GROUP_COUNT; group++) {
    if (has[group]) capabilities |= backend_groups[group].capability;
  }
  return capabilities;
}
