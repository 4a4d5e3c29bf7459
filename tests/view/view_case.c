#include "view/view_case.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void view_differ(view_case *view, const char *format, ...) {
  size_t used = strlen(view->message);
  int separator = snprintf(view->message + used, sizeof view->message - used, "%s", view->differences ? "; " : "");
  used += separator > 0 ? (size_t)separator : 0;
  view->differences++;
  if (used >= sizeof view->message) return;
  va_list args;
  va_start(args, format);
  vsnprintf(view->message + used, sizeof view->message - used, format, args);
  va_end(args);
}

void view_compare(view_case *view, json_object *want, const view_check *checks, size_t count, const void *got) {
  json_object_object_foreach(want, key, value) {
    size_t i = 0;
    while (i < count && strcmp(checks[i].key, key) != 0) i++;
    if (i == count) {
      view_differ(view, "no check for the expected key %s", key);
    } else {
      checks[i].compare(view, key, value, got);
    }
  }
}

static void view_print(char *out, size_t capacity, uint64_t bytes) {
  if (bytes == GM_UNKNOWN_BYTES) {
    snprintf(out, capacity, "unknown");
  } else {
    snprintf(out, capacity, "%" PRIu64, bytes);
  }
}

void view_value(view_case *view, const char *key, json_object *want, uint64_t got) {
  uint64_t low = GM_UNKNOWN_BYTES, high = GM_UNKNOWN_BYTES;
  if (json_object_is_type(want, json_type_int)) {
    low = high = json_object_get_uint64(want);
  } else if (json_object_is_type(want, json_type_object)) {
    low = view_bytes(want, "min");
    high = view_bytes(want, "max");
  } else if (want) {
    view_differ(view, "%s: expected value is no number, range or null", key);
    return;
  }
  if (got >= low && got <= high && (got == GM_UNKNOWN_BYTES) == (want == NULL)) return;
  char text[32];
  view_print(text, sizeof text, got);
  view_differ(view, "%s: expected %s, got %s", key, json_object_to_json_string(want), text);
}

void view_word(view_case *view, const char *key, json_object *want, const char *got) {
  bool accepted = false;
  if (json_object_is_type(want, json_type_array)) {
    for (size_t i = 0; i < json_object_array_length(want); i++) {
      accepted |= strcmp(json_object_get_string(json_object_array_get_idx(want, i)), got) == 0;
    }
  } else {
    accepted = want && strcmp(json_object_get_string(want), got) == 0;
  }
  if (!accepted) view_differ(view, "%s: expected %s, got %s", key, json_object_to_json_string(want), got);
}

void view_invariants(view_case *view, uint64_t total, uint64_t free_bytes, gm_figure_state state) {
  bool has_free = free_bytes != GM_UNKNOWN_BYTES;
  if (has_free && free_bytes > total) view_differ(view, "free is above total");
  if (has_free != (state != GM_FIGURE_UNKNOWN)) view_differ(view, "state and free do not agree");
}

json_object *view_member(json_object *object, const char *key) {
  json_object *member = NULL;
  json_object_object_get_ex(object, key, &member);
  return member;
}

uint64_t view_bytes(json_object *object, const char *key) {
  json_object *member = view_member(object, key);
  return json_object_is_type(member, json_type_int) ? json_object_get_uint64(member) : GM_UNKNOWN_BYTES;
}

const char *view_text(json_object *object, const char *key) {
  json_object *member = view_member(object, key);
  return member ? json_object_get_string(member) : "";
}

bool view_flag(json_object *object, const char *key) { return json_object_get_boolean(view_member(object, key)); }

void view_known_keys(view_case *view, json_object *object, const char *const *keys) {
  if (!object) return;
  json_object_object_foreach(object, key, value) {
    (void)value;
    size_t i = 0;
    while (keys[i] && strcmp(keys[i], key) != 0) i++;
    if (!keys[i]) view_differ(view, "the input key %s is not read", key);
  }
}
