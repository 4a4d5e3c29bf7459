/* Inside of a store: entries, and the places where their values lie.
 *
 * A thread that moves an entry's value makes the entry busy under the lock, works without the lock, and ends it under
 * the lock. Only that thread changes a busy entry. Nobody waits for an entry while an entry of its own is busy. */
#ifndef GM_CORE_STORE_ENTRY_H
#define GM_CORE_STORE_ENTRY_H

#include "core/algo/key_path.h"
#include "core/base/key_map.h"
#include "core/pool/pool.h"
#include "core/store/folder.h"
#include "core/store/image.h"
#include "core/store/victims.h"
#include "gm/evictor.h"
#include "gm/store.h"

enum { GM__STORE_REFUSAL = 160 };

enum {
  GM__PLACE_DEVICE,
  GM__PLACE_PINNED,
  GM__PLACE_HOST,
  GM__PLACE_TIER,
  GM__PLACES = GM__PLACE_TIER + GM_STORE_TIERS_MOST
};

typedef struct gm__store_entry {
  gm__key_entry head;
  gm__folder_item item;
  gm_value *value;        /* NULL: it is below the device */
  gm__image *image;       /* NULL: it is neither in pinned nor in host memory */
  uint32_t copies, fresh; /* bits of tiers: those that have a copy, and those whose copy is the value of now */
  uint32_t maybe; /* bits of tiers that may have the value of now: they did not answer its put, or its removal */
  bool busy;
  bool persistent; /* its value leaves the device after all others */
  bool aside;      /* somebody holds its value: it is in the value's list, and in none of a place */
  bool rises;      /* and its value goes up: whoever wants the value waits */
  bool due;        /* a flush has to give its value to the lowest tier */
  uint64_t uses;   /* count of gm_store_allocate and gm_store_acquire */
  struct gm__store_entry *due_before, *due_after;
  gm__victim links[]; /* one for each place that the store has */
} gm__store_entry;

struct gm_store {
  gm__object head;
  gm_context *ctx;
  gm_pool *pool;
  gm_pool *pinned; /* of the place PINNED; NULL: there is none */
  gm_tier *tiers[GM_STORE_TIERS_MOST];
  uint32_t tier_count;
  uint64_t max_device_bytes, max_pinned_bytes, max_host_bytes;
  bool follows; /* the configuration says max_device_values */
  gm_fallback fallback;
  gm_store_keep keep;
  gm_evictor *evictor;

  gm__value_watch *watch; /* its lock guards all below, and the entries */
  gm__cond changed;
  gm__key_map entries;
  gm__folders folders;
  gm__victims places[GM__PLACES];
  gm__victims persistent;     /* of the device: those that leave it last, beside the place DEVICE */
  _Atomic uint64_t followed;  /* gm__config_changes when the key was read; changes under the lock */
  uint64_t max_device_values; /* UINT64_MAX: no bound */
  uint64_t device_bytes, device_values;
  uint64_t image_bytes[GM__PLACE_TIER]; /* by place: PINNED and HOST */
  uint64_t going_bytes, going_down;     /* of values that leave the device now, and how many they are */
  gm_store_stats stats;
  gm__store_entry *due_first, *due_last; /* entries that are due, in the order in which they became so */
  uint64_t due_count;
  uint64_t changes[GM_STORE_TIERS_MOST], flushed[GM_STORE_TIERS_MOST]; /* of a tier, and those that it flushed */
  char refused[GM_STORE_TIERS_MOST][GM__STORE_REFUSAL]; /* why a tier did not take a value last; "": it did */
};

/* A key in its normal form, with an end mark. */
typedef struct gm__store_name {
  size_t bytes;
  const char *text;
} gm__store_name;

/* A name with room for its text. It may not be copied. */
typedef struct gm__store_key {
  gm__store_name name;
  char text[GM__KEY_PATH_MOST + 1];
} gm__store_key;

/* Names of several keys, as large as their texts. */
typedef struct gm__store_names {
  size_t count, bytes;
  gm__store_name *at;
  char *text;
} gm__store_names;

static inline gm__store_entry *gm__store_entry_of_item(gm__folder_item *item) {
  return (gm__store_entry *)(void *)((char *)item - offsetof(gm__store_entry, item));
}

/* The entry that a link of a place is in. */
static inline gm__store_entry *gm__store_entry_at(gm__victim *link, size_t place) {
  return (gm__store_entry *)(void *)((char *)(link - place) - offsetof(gm__store_entry, links));
}

static inline size_t gm__image_place(const gm__image *image) { return image->pool ? GM__PLACE_PINNED : GM__PLACE_HOST; }

/* The belongings of an entry, to be given back without the lock. */
typedef struct gm__leftover {
  gm_value *value;
  gm__image *image;
} gm__leftover;

/* Check a store and a key. `prefix`: NULL and the root are fine, too. */
gm_status gm__store_check(const gm_store *store, const char *op, gm_error *err);
gm_status gm__store_key_read(const char *text, bool prefix, gm__store_key *out, const char *op, gm_error *err);
/* Reads several keys. The caller ends *out, also after a failure. */
gm_status gm__store_names_read(const gm_store *store, const char *const *texts, size_t count, gm__store_names *out,
                               const char *op, gm_error *err);
void gm__store_names_end(const gm_store *store, gm__store_names *names);

/* A failure that names the key. */
gm_status gm__store_missing(const gm__store_name *key, const char *op, gm_error *err);

/* ---- REQUIRES: store lock ---- */

gm__store_entry *gm__store_find(gm_store *store, const gm__store_name *key);
/* Waits until the entry of a key is not busy. NULL: there is none. */
gm__store_entry *gm__store_find_idle(gm_store *store, const gm__store_name *key);
/* The entry once it is idle, or busy with its value there and not on its way up. */
gm__store_entry *gm__store_find_settled(gm_store *store, const gm__store_name *key);
/* The entry of the key, made where there is none. NULL: no host memory. */
gm__store_entry *gm__store_entry_of(gm_store *store, const gm__store_name *key);

/* Set what lies in a place. The entry takes over the caller's reference, and what was there goes to `out`. */
void gm__store_set_value(gm_store *store, gm__store_entry *entry, gm_value *value, gm__leftover *out);
void gm__store_set_image(gm_store *store, gm__store_entry *entry, gm__image *image, gm__leftover *out);
/* Say whether the value leaves the device after all others. */
void gm__store_set_persistent(gm_store *store, gm__store_entry *entry, bool persistent);
/* Note in which tiers the value of now is. */
void gm__store_set_tiers(gm_store *store, gm__store_entry *entry, uint32_t copies, uint32_t fresh);
void gm__store_touch(gm_store *store, gm__store_entry *entry);
/* The first entry to leave a place of those that nobody moves, and that `may` (NULL: all). From the device none goes
 * whose value somebody holds; it is looked at again when a holder has gone. So a hold costs one look. `persistent`:
 * those are asked, too. The entry is busy from now on, until gm__store_left. NULL: there is none. */
gm__store_entry *gm__store_leave(gm_store *store, size_t place, bool (*may)(const gm__store_entry *entry),
                                 bool persistent);
/* Holders of the value go: its entries may leave the device again. */
void gm__store_wake(void *store, gm_value *value);
/* Replace the value by another one, which makes all copies old. */
void gm__store_replace(gm_store *store, gm__store_entry *entry, gm_value *value, gm__leftover *out);
/* Take an entry out and free it. Its belongings go to `out`. */
void gm__store_entry_end(gm_store *store, gm__store_entry *entry, gm__leftover *out);

/* ---- without the lock ---- */

/* The end of leaving a place, and of being busy. `stays`: the value still lies there. */
void gm__store_left(gm_store *store, gm__store_entry *entry, size_t place, bool stays);
/* The end of being busy. */
void gm__store_idle(gm_store *store, gm__store_entry *entry);
/* The result is the bytes of the device that this freed. */
uint64_t gm__leftover_drop(gm__leftover *leftover);

#endif
