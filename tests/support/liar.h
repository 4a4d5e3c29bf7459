/* How the liar of liar_backend.h lies: one word of one answer, in the calls that are named. */
#ifndef GM_TESTS_SUPPORT_LIAR_H
#define GM_TESTS_SUPPORT_LIAR_H

#include <stdio.h>
#include <string.h>

#include "core/base/error.h"
#include "core/discovery/backend_entries.h"
#include "gm/backend.h"

enum {
#define X(group, name, parameters) LIAR_##name,
  GM__BACKEND_ENTRIES(X)
#undef X
      LIAR_ENTRIES,
  LIAR_OUTPUTS = 2,
  LIAR_CALLS_MOST = 100000, /* of one scenario: more is a core that does not end */
  LIAR_MAP_BYTES = 1 << 16
};

static const struct {
  const char *name, *parameters;
} liar_words[] = {
#define X(group, name, parameters) {#name, #parameters},
    GM__BACKEND_ENTRIES(X)
#undef X
};

/* One word of an answer: `width` bytes (1, 4, 8) at `at` of an output; width 0: the status. */
typedef struct liar_lie {
  uint32_t entry; /* LIAR_ENTRIES: none */
  uint32_t output;
  size_t at, width;
  uint64_t value;
  uint32_t every; /* each such call; 0: each */
} liar_lie;

typedef struct liar_backend {
  liar_lie lie;
  bool honest; /* for now */
  uint64_t calls, lies, made, address;
  uint64_t calls_of[LIAR_ENTRIES];
} liar_backend;

static liar_backend liar;
static size_t liar_sizes[LIAR_ENTRIES][LIAR_OUTPUTS]; /* of what an entry gives, as far as it was called */
static unsigned char liar_mapped[LIAR_MAP_BYTES];
static uint32_t liar_devices[2] = {0, 1};

static inline void liar_reset(void) {
  liar = (liar_backend){.lie = {.entry = LIAR_ENTRIES}, .address = UINT64_C(1) << 33};
}

typedef struct liar_output {
  void *to;
  size_t bytes;
} liar_output;

static gm_status liar_give(uint32_t entry, const liar_output *outputs, uint32_t count, gm_error *err) {
  const liar_lie *lie = &liar.lie;
  liar.calls_of[entry]++;
  for (uint32_t i = 0; i < count; i++) liar_sizes[entry][i] = outputs[i].bytes;
  if (++liar.calls > LIAR_CALLS_MOST) return gm__fail(err, GM_ERR_DEVICE_LOST, "liar", "too many calls");
  if (liar.honest || lie->entry != entry || (lie->every && liar.calls_of[entry] % lie->every)) return GM_OK;
  liar.lies++;
  if (lie->width == 0) return gm__fail(err, (gm_status)lie->value, liar_words[entry].name, "as it was told");
  if (lie->output < count && outputs[lie->output].to) {
    memcpy((unsigned char *)outputs[lie->output].to + lie->at, &lie->value, lie->width); /* little-endian */
  }
  return GM_OK;
}

#define LIAR_GIVES(name, out) liar_give(LIAR_##name, &(liar_output){(out), sizeof *(out)}, 1, err)
#define LIAR_GIVES_NOTHING(name) liar_give(LIAR_##name, NULL, 0, err)

/* How many of an entry's parameters are outputs: pointers to what is not constant, no objects, no `err`. */
static inline uint32_t liar_count_outputs(const char *parameters) {
  uint32_t count = 0;
  for (const char *at = parameters + 1; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
    while (*at == ' ') at++;
    const size_t length = strcspn(at, ",)");
    const char *star = memchr(at, '*', length);
    if (!star || strncmp(at, "const ", 6) == 0 || strncmp(at, "gm_error ", 9) == 0) continue;
    if (strncmp(at, "void *", 6) == 0 && at[6] != '*') continue;
    count++;
  }
  return count;
}

/* NULL: each entry that was called names all its outputs; else the first that does not. */
static inline const char *liar_forgets_an_output(void) {
  for (uint32_t entry = 0; entry < LIAR_ENTRIES; entry++) {
    uint32_t named = 0;
    while (named < LIAR_OUTPUTS && liar_sizes[entry][named]) named++;
    if (liar.calls_of[entry] && named != liar_count_outputs(liar_words[entry].parameters))
      return liar_words[entry].name;
  }
  return NULL;
}

#endif
