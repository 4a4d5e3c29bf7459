#include "core/device/stream_table.h"

#include "core/base/alloc.h"

/* Open addressing with linear probes, at most half full. Invariants: a slot with a stream never changes, except while
 * `turn` is odd. A look-up during which `turn` did not change has seen a table as it was. Older slots stay until the
 * end, because a thread may still read them; together they are as large as the newest. Each store is a release and each
 * load an acquire, so that the order of the stores is the order that readers see. */

enum { TABLE_FIRST = 32 };

typedef struct table_slot {
  _Atomic uint64_t words[2];
  _Atomic(gm_stream *) stream; /* NULL: the slot is empty */
} table_slot;

struct gm__stream_slots {
  gm__stream_slots *older;
  uint32_t capacity; /* a power of two */
  table_slot at[];
};

static size_t slots_bytes(uint32_t capacity) { return sizeof(gm__stream_slots) + capacity * sizeof(table_slot); }

static inline uint32_t slots_home(const gm__stream_slots *slots, uint64_t first, uint64_t second) {
  const uint64_t mixed = (first ^ second * UINT64_C(0xC2B2AE3D27D4EB4F)) * UINT64_C(0x9E3779B97F4A7C15);
  return (uint32_t)(mixed >> 32) & (slots->capacity - 1);
}

static inline uint64_t slot_word(const table_slot *slot, int which) {
  return atomic_load_explicit(&slot->words[which], memory_order_acquire);
}

static inline gm_stream *slot_stream(const table_slot *slot) {
  return atomic_load_explicit(&slot->stream, memory_order_acquire);
}

static void slot_set(table_slot *slot, uint64_t first, uint64_t second, gm_stream *stream) {
  atomic_store_explicit(&slot->words[0], first, memory_order_release);
  atomic_store_explicit(&slot->words[1], second, memory_order_release);
  atomic_store_explicit(&slot->stream, stream, memory_order_release);
}

static inline bool slot_is(const table_slot *slot, const gm_stream_name *name) {
  return slot_word(slot, 0) == name->words[0] && slot_word(slot, 1) == name->words[1];
}

/* The slot of the name, or the empty one where it would be. Bounded: a reader may see a table that changes. */
static inline const table_slot *slots_seek(const gm__stream_slots *slots, const gm_stream_name *name) {
  uint32_t at = slots_home(slots, name->words[0], name->words[1]);
  for (uint32_t i = 0; i < slots->capacity; i++, at = (at + 1) & (slots->capacity - 1)) {
    const table_slot *slot = &slots->at[at];
    if (!slot_stream(slot)) return slot;
    if (slot_is(slot, name)) return slot;
  }
  return NULL;
}

gm_stream *gm__stream_table_find(const gm__stream_table *table, const gm_stream_name *name) {
  const uint64_t turn = atomic_load_explicit(&table->turn, memory_order_acquire);
  const gm__stream_slots *slots = atomic_load_explicit(&table->slots, memory_order_acquire);
  const table_slot *slot = slots && !(turn & 1) ? slots_seek(slots, name) : NULL;
  gm_stream *stream = slot ? slot_stream(slot) : NULL;
  if (!stream || !slot_is(slot, name)) return NULL; /* the empty slot has become another name's */
  return atomic_load_explicit(&table->turn, memory_order_relaxed) == turn ? stream : NULL;
}

/* ---- writers ---- */

static gm__stream_slots *table_slots(const gm__stream_table *table) {
  return atomic_load_explicit(&table->slots, memory_order_relaxed);
}

static void slots_insert(gm__stream_slots *slots, const gm_stream_name *name, gm_stream *stream) {
  table_slot *slot = (table_slot *)slots_seek(slots, name);
  slot_set(slot, name->words[0], name->words[1], stream);
}

static gm_stream_name slot_name(const table_slot *slot) {
  return (gm_stream_name){{slot_word(slot, 0), slot_word(slot, 1)}};
}

static gm_status table_grow(gm__stream_table *table, const gm_services *services) {
  gm__stream_slots *old = table_slots(table);
  const uint32_t capacity = old ? old->capacity * 2 : TABLE_FIRST;
  gm__stream_slots *slots = gm__alloc(services, slots_bytes(capacity));
  if (!slots) return GM_ERR_OUT_OF_HOST_MEMORY;
  slots->older = old;
  slots->capacity = capacity;
  for (uint32_t i = 0; old && i < old->capacity; i++) {
    gm_stream *stream = slot_stream(&old->at[i]);
    const gm_stream_name name = slot_name(&old->at[i]);
    if (stream) slots_insert(slots, &name, stream);
  }
  atomic_store_explicit(&table->slots, slots, memory_order_release);
  return GM_OK;
}

gm_status gm__stream_table_add(gm__stream_table *table, const gm_services *services, const gm_stream_name *name,
                               gm_stream *stream) {
  const gm__stream_slots *slots = table_slots(table);
  const bool full = !slots || table->count >= slots->capacity / 2;
  const gm_status status = full ? table_grow(table, services) : GM_OK;
  if (status) return status;
  slots_insert(table_slots(table), name, stream);
  table->count++;
  return GM_OK;
}

/* Moves back what was put behind the hole because its own place was taken, so that no search ends at the hole. */
static void slots_close_hole(gm__stream_slots *slots, uint32_t hole) {
  const uint32_t mask = slots->capacity - 1;
  for (uint32_t at = (hole + 1) & mask; slot_stream(&slots->at[at]); at = (at + 1) & mask) {
    const gm_stream_name name = slot_name(&slots->at[at]);
    const uint32_t home = slots_home(slots, name.words[0], name.words[1]);
    if (((at - home) & mask) < ((at - hole) & mask)) continue; /* its own place is behind the hole */
    slot_set(&slots->at[hole], name.words[0], name.words[1], slot_stream(&slots->at[at]));
    hole = at;
  }
  slot_set(&slots->at[hole], 0, 0, NULL);
}

void gm__stream_table_remove(gm__stream_table *table, const gm_stream_name *name) {
  gm__stream_slots *slots = table_slots(table);
  const uint64_t turn = atomic_load_explicit(&table->turn, memory_order_relaxed);
  atomic_store_explicit(&table->turn, turn + 1, memory_order_relaxed);
  slots_close_hole(slots, (uint32_t)(slots_seek(slots, name) - slots->at));
  atomic_store_explicit(&table->turn, turn + 2, memory_order_release);
  table->count--;
}

/* `like` NULL: any name. Otherwise it is one with its first word, and another second word. */
static gm_stream *table_walk(const gm__stream_table *table, const gm_stream_name *like, gm_stream_name *out) {
  const gm__stream_slots *slots = table_slots(table);
  for (uint32_t i = 0; slots && i < slots->capacity; i++) {
    gm_stream *stream = slot_stream(&slots->at[i]);
    const gm_stream_name name = slot_name(&slots->at[i]);
    if (!stream || (like && (name.words[0] != like->words[0] || name.words[1] == like->words[1]))) continue;
    *out = name;
    return stream;
  }
  return NULL;
}

gm_stream *gm__stream_table_older(const gm__stream_table *table, const gm_stream_name *name, gm_stream_name *out) {
  return table_walk(table, name, out);
}

gm_stream *gm__stream_table_any(const gm__stream_table *table, gm_stream_name *out) {
  return table_walk(table, NULL, out);
}

void gm__stream_table_clear(gm__stream_table *table, const gm_services *services) {
  for (gm__stream_slots *slots = table_slots(table), *older; slots; slots = older) {
    older = slots->older;
    gm__release(services, slots, slots_bytes(slots->capacity));
  }
  atomic_store_explicit(&table->slots, NULL, memory_order_relaxed);
  table->count = 0;
}
