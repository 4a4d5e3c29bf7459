/* One case of the memory view: what it expects, and the differences found. Keys and forms: tests/data/view/SCHEMA.md.
 */
#ifndef GM_TESTS_VIEW_CASE_H
#define GM_TESTS_VIEW_CASE_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gm/memory_info.h"

typedef struct view_case {
  json_object *input;
  json_object *expected;
  const char *root;   /* of the tree that holds the case's files */
  size_t differences; /* 0: passed */
  char message[2048]; /* what differs, cut when it is long */
} view_case;

/* How one key of `expected` is compared with what gm answered. */
typedef struct view_check {
  const char *key;
  void (*compare)(view_case *view, const char *key, json_object *want, const void *got);
} view_check;

void view_differ(view_case *view, const char *format, ...) GM_PRINTF(2, 3);

/* Compare every key of `want` by the check of its name; a key without one is a difference, so nothing goes unchecked.
 */
void view_compare(view_case *view, json_object *want, const view_check *checks, size_t count, const void *got);

/* An integer, {"min", "max"}, or null for unknown. */
void view_value(view_case *view, const char *key, json_object *want, uint64_t got);

/* One string or a list of accepted ones. */
void view_word(view_case *view, const char *key, json_object *want, const char *got);

/* The figures of every case: free <= total, and unknown exactly without a figure. */
void view_invariants(view_case *view, uint64_t total, uint64_t free_bytes, gm_figure_state state);

/* A member, NULL where it is missing; its number, GM_UNKNOWN_BYTES where it is missing or null; its text, "". */
json_object *view_member(json_object *object, const char *key);
uint64_t view_bytes(json_object *object, const char *key);
const char *view_text(json_object *object, const char *key);
bool view_flag(json_object *object, const char *key);

/* Report members of `object` that are not in `keys` (ended by NULL): an input that nobody reads proves nothing. */
void view_known_keys(view_case *view, json_object *object, const char *const *keys);

/* Run the case and record what differs. */
void view_run_host(view_case *view);
void view_run_device(view_case *view);
void view_run_identity(view_case *view);

#endif
