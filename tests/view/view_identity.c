#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/discovery/identity.h"
#include "view/view_case.h"

enum { VIEW_ENTRIES_MAX = 512 };

typedef struct identity_answer {
  json_object *devices;
  uint32_t count;
  gm__identity entries[VIEW_ENTRIES_MAX];
} identity_answer;

static const char *identity_id(const identity_answer *answer, uint32_t i) {
  return view_text(json_object_array_get_idx(answer->devices, i), "id");
}

/* Index of the entry, or its count when there is none. */
static uint32_t identity_find(const identity_answer *answer, json_object *id) {
  const char *text = id ? json_object_get_string(id) : "";
  uint32_t i = 0;
  while (i < answer->count && strcmp(identity_id(answer, i), text) != 0) i++;
  return i;
}

static bool identity_holds(json_object *list, const char *id) {
  for (size_t i = 0; i < json_object_array_length(list); i++) {
    if (strcmp(json_object_get_string(json_object_array_get_idx(list, i)), id) == 0) return true;
  }
  return false;
}

/* Whether exactly the entries of group `group` are in `list`. */
static bool identity_is_group(const identity_answer *answer, json_object *list, uint32_t group) {
  size_t members = 0;
  for (uint32_t i = 0; i < answer->count; i++) {
    if (answer->entries[i].group != group) continue;
    members++;
    if (!identity_holds(list, identity_id(answer, i))) return false;
  }
  return members == json_object_array_length(list);
}

static void identity_check_group(view_case *view, const char *key, json_object *list, const identity_answer *answer) {
  uint32_t first = identity_find(answer, json_object_array_get_idx(list, 0));
  if (first < answer->count && identity_is_group(answer, list, answer->entries[first].group)) return;
  view_differ(view, "%s: %s is no group", key, json_object_to_json_string(list));
}

static void identity_groups(view_case *view, const char *key, json_object *want, const void *got) {
  const identity_answer *answer = got;
  uint32_t groups = 0;
  for (uint32_t i = 0; i < answer->count; i++) {
    if (answer->entries[i].group >= groups) groups = answer->entries[i].group + 1;
  }
  size_t count = json_object_array_length(want);
  if (groups != count) view_differ(view, "%s: expected %zu, got %u", key, count, groups);
  for (size_t i = 0; i < count; i++) identity_check_group(view, key, json_object_array_get_idx(want, i), answer);
}

static void identity_pairs(view_case *view, json_object *want, const identity_answer *answer, bool same) {
  for (size_t i = 0; i < json_object_array_length(want); i++) {
    json_object *pair = json_object_array_get_idx(want, i);
    uint32_t a = identity_find(answer, json_object_array_get_idx(pair, 0));
    uint32_t b = identity_find(answer, json_object_array_get_idx(pair, 1));
    bool known = a < answer->count && b < answer->count;
    if (known && (answer->entries[a].group == answer->entries[b].group) == same) continue;
    view_differ(view, "%s: %s", same ? "not the same" : "not different", json_object_to_json_string(pair));
  }
}

static void identity_same(view_case *view, const char *key, json_object *want, const void *got) {
  (void)key;
  identity_pairs(view, want, got, true);
}

static void identity_different(view_case *view, const char *key, json_object *want, const void *got) {
  (void)key;
  identity_pairs(view, want, got, false);
}

/* The entries for which `has` holds must be those of the list. */
static void identity_set(view_case *view, const char *key, json_object *want, const identity_answer *answer,
                         bool (*has)(const gm__identity *entry)) {
  size_t found = 0;
  for (uint32_t i = 0; i < answer->count; i++) {
    if (!has(&answer->entries[i])) continue;
    found++;
    if (!identity_holds(want, identity_id(answer, i))) view_differ(view, "%s: also %s", key, identity_id(answer, i));
  }
  size_t count = json_object_array_length(want);
  if (found != count) view_differ(view, "%s: expected %zu, got %zu", key, count, found);
}

static bool identity_in_host_pool(const gm__identity *entry) { return entry->host_pool; }

static bool identity_is_not_counted(const gm__identity *entry) { return !entry->counted; }

static void identity_host_pool(view_case *view, const char *key, json_object *want, const void *got) {
  identity_set(view, key, want, got, identity_in_host_pool);
}

static void identity_not_counted(view_case *view, const char *key, json_object *want, const void *got) {
  identity_set(view, key, want, got, identity_is_not_counted);
}

static void identity_device_pools(view_case *view, const char *key, json_object *want, const void *got) {
  const identity_answer *answer = got;
  size_t members = 0, own = 0;
  for (size_t i = 0; i < json_object_array_length(want); i++) {
    json_object *list = json_object_array_get_idx(want, i);
    identity_check_group(view, key, list, answer);
    members += json_object_array_length(list);
  }
  for (uint32_t i = 0; i < answer->count; i++) own += !answer->entries[i].host_pool && answer->entries[i].counted;
  if (members != own) view_differ(view, "%s: expected %zu entries, got %zu", key, members, own);
}

static void identity_memory(view_case *view, const char *key, json_object *want, const void *got) {
  const identity_answer *answer = got;
  view_value(view, key, want, gm__identity_device_memory(answer->entries, answer->count));
}

static const view_check identity_checks[] = {
    {"groups", identity_groups},
    {"same", identity_same},
    {"different", identity_different},
    {"host_pool", identity_host_pool},
    {"device_pools", identity_device_pools},
    {"not_counted", identity_not_counted},
    {"device_memory_total", identity_memory},
};

static gm_device_type identity_type(const char *word) {
  static const gm_device_type types[] = {GM_DEVICE_TYPE_DISCRETE, GM_DEVICE_TYPE_INTEGRATED, GM_DEVICE_TYPE_CPU};
  static const char *const words[] = {"discrete", "integrated", "cpu"};
  for (size_t i = 0; i < 3; i++) {
    if (strcmp(word, words[i]) == 0) return types[i];
  }
  return GM_DEVICE_TYPE_UNKNOWN;
}

static void identity_entry(view_case *view, const identity_answer *answer, json_object *device, gm__identity *out) {
  static const char *const keys[] = {"id",   "api",  "type",      "name",   "vendor", "driver", "pci",
                                     "uuid", "luid", "partition", "parent", "total",  NULL};
  view_known_keys(view, device, keys);
  *out = (gm__identity){.api = view_text(device, "api"),
                        .vendor = view_text(device, "vendor"),
                        .driver = view_text(device, "driver"),
                        .pci = view_text(device, "pci"),
                        .partition = view_text(device, "partition"),
                        .type = identity_type(view_text(device, "type")),
                        .parent = GM__IDENTITY_NO_PARENT,
                        .total_bytes = view_bytes(device, "total")};
  snprintf(out->uuid, sizeof out->uuid, "%s", view_text(device, "uuid"));
  snprintf(out->luid, sizeof out->luid, "%s", view_text(device, "luid"));
  json_object *parent = view_member(device, "parent");
  if (parent) out->parent = (int32_t)identity_find(answer, parent);
}

void view_run_identity(view_case *view) {
  static const char *const keys[] = {"devices", NULL};
  view_known_keys(view, view->input, keys);
  json_object *devices = view_member(view->input, "devices");
  size_t count = devices ? json_object_array_length(devices) : 0;
  identity_answer *answer = calloc(1, sizeof *answer);
  if (!answer || count == 0 || count > VIEW_ENTRIES_MAX) {
    view_differ(view, "%zu devices cannot be checked", count);
    free(answer);
    return;
  }
  answer->devices = devices;
  answer->count = (uint32_t)count;
  for (uint32_t i = 0; i < count; i++) {
    identity_entry(view, answer, json_object_array_get_idx(devices, i), &answer->entries[i]);
  }
  gm__identity_group(answer->entries, answer->count);
  view_compare(view, view->expected, identity_checks, sizeof identity_checks / sizeof *identity_checks, answer);
  free(answer);
}
