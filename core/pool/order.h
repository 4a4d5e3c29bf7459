/* Stream order of freed blocks: who may still use a block, since when, and what it takes to use it elsewhere.
 * Externally synchronised by the lock of what it orders. While that is held no stream known here goes away.
 *
 * What submits to a stream steps out of the lock for that time, and back in: gm__order_refresh, gm__order_flush,
 * gm__order_insert, gm__order_attach_point, gm__order_drain_all. Whatever the caller knew of the blocks is old then,
 * but for what it has taken AWAY. The slots that such a call works on keep their streams meanwhile. */
#ifndef GM_CORE_POOL_ORDER_H
#define GM_CORE_POOL_ORDER_H

#include "core/base/error.h"
#include "core/device/device.h"
#include "core/pool/mark.h"

enum {
  GM__ORDER_SLOTS = 64,
  GM__ORDER_CROWD = GM__ORDER_SLOTS - 1, /* the slot, and bit, of all streams that come when the others are taken */
  GM__ORDER_HOST = -1
};

/* The engine says that work on blocks freed up to `at` is done at the point (gm_stream_passed). */
typedef struct gm__order_told {
  gm_backend_point point;
  uint64_t at, of; /* of: see gm__order_slot.point_of */
  bool there;
} gm__order_told;

typedef struct gm__order_slot {
  gm_stream *stream;
  uint64_t passed;    /* of blocks freed up to this time, no work is left on the stream */
  uint64_t last_free; /* the last free that named the stream */
  uint64_t last_use;  /* the last gm_use_on that did */
  uint64_t point_at;  /* `point` comes after all work on blocks freed up to this time */
  gm_backend_point point;
  uint64_t point_of;    /* id of the stream that an engine's point is of; 0: this one */
  gm__order_told later; /* the engine's last word, behind the point */
  bool has_point;
  bool asked;    /* a thread outside the lock has its point, or asks for one */
  uint32_t pins; /* threads outside the lock that use the stream: it must not close */
} gm__order_slot;

/* Streams without a slot of their own. What was freed on any of them waits for all of them that had work then. */
typedef struct gm__crowd {
  gm__map numbers;          /* address of a stream to its number among the members, and one */
  gm__order_slot **members; /* each in memory of its own, which stays where it is */
  uint32_t count, capacity;
} gm__crowd;

/* The lock of what is ordered. */
typedef struct gm__order_lock {
  void (*take)(void *user);
  void (*leave)(void *user);
  void *user;
} gm__order_lock;

typedef struct gm__order {
  gm_device *device; /* its order_clock is the time */
  gm__order_lock lock;
  uint64_t used;       /* bits of slots in use */
  uint64_t host_freed; /* like a slot's last_free; nobody asks for it */
  uint64_t owed;       /* slots that a free would have asked, which submits nothing */
  uint64_t given;      /* slots of streams on which blocks were freed at points of the engine */
  gm__order_slot slots[GM__ORDER_SLOTS];
  gm__crowd crowd;
} gm__order;

typedef enum gm__order_verdict {
  GM__ORDER_READY,       /* nothing to do */
  GM__ORDER_BARRIER,     /* only work of the same stream is left, and a barrier there suffices */
  GM__ORDER_OWN_WAIT,    /* only work of the same, unordered stream is left */
  GM__ORDER_OTHERS_WAIT, /* work of other streams is left */
  GM__ORDER_BUSY         /* the same, and no wait can be had for it: for the host, or on several streams */
} gm__order_verdict;

void gm__order_init(gm__order *order, gm_device *device, const gm__order_lock *lock);

/* The time now. It moves on when somebody asks a stream how far it is: what is freed at one time is settled together,
 * and a free only reads it. */
static inline uint64_t gm__order_now(const gm__order *order) {
  return atomic_load_explicit(&order->device->order_clock, memory_order_acquire);
}

/* Was what was freed at `freed_at` (0: never used) old at that time? What was never used is as new as ever. UINT64_MAX:
 * whatever it is. */
static inline bool gm__freed_by(uint64_t freed_at, uint64_t time) {
  return time == UINT64_MAX || (freed_at && freed_at <= time);
}

/* The slot of a stream, made when it is new; GM__ORDER_HOST for NULL, and when all slots are taken: requests of such a
 * stream are served as the host's. */
int gm__order_slot_of(gm__order *order, gm_stream *stream);

/* For a free, or gm_use_on: the slot; or that of the crowd and more, which says which member it is, as long as the lock
 * is held. GM__ORDER_HOST for NULL, and without host memory. */
int gm__order_free_slot(gm__order *order, gm_stream *stream);

/* Have all slots but the crowd's a stream? */
static inline bool gm__order_is_full(const gm__order *order) {
  return (order->used | UINT64_C(1) << GM__ORDER_CROWD) == UINT64_MAX;
}

/* The one whose bit stands for it. */
static inline int gm__order_place(int slot) { return slot >= GM__ORDER_SLOTS ? GM__ORDER_CROWD : slot; }

/* The id of its stream; 0: the host's. */
uint64_t gm__order_stream_id(const gm__order *order, int slot);

/* Does it know the stream, as one of its slots or of the crowd? */
bool gm__order_knows(const gm__order *order, const gm_stream *stream);

/* The stream is done and leaves the crowd, if it is in it. False: a thread outside the lock uses it. */
bool gm__order_leave_crowd(gm__order *order, const gm_stream *stream);

/* The block is freed in the order of `slot`'s stream (GM__ORDER_HOST: of the host). `slot`: for a free. */
void gm__order_note_free(gm__order *order, gm__mark *mark, int slot);

/* Forget streams of the block whose work is known to be done; the bits that are left. Asks no driver, except for the
 * block's own point. */
uint64_t gm__order_settle(gm__order *order, gm__mark *mark);

/* Of the streams in `pending` those of which a request in the order of `slot` needs to know how far they are. Its own
 * is among them, unless that is FIFO: there work that is done and work that is not are the same to the request. */
uint64_t gm__order_doubtful(const gm__order *order, uint64_t pending, int slot);

/* Ask the driver how far the streams in `mask` are, recording a point where none is under way. Steps out of the lock.
 */
void gm__order_refresh(gm__order *order, uint64_t mask);

/* The same without a submission: streams that need a point are owed one. */
void gm__order_look(gm__order *order, uint64_t mask);

/* Record what is owed, unless `stream` is being captured. Steps out of the lock. */
void gm__order_settle_up(gm__order *order, const gm_stream *stream);

/* Is no stream known to have work left on what was freed? */
bool gm__order_is_done(const gm__order *order);

/* The driver is to begin with what such streams were given. Steps out of the lock. */
void gm__order_flush(gm__order *order);

/* The host has waited for all work of the stream on blocks freed up to `clock`. */
void gm__order_note_synced(gm__order *order, const gm_stream *stream, uint64_t clock);

/* The engine says that all work of the stream on blocks freed up to `clock` is done at the point (NULL: it is), which
 * is copied. OUT_OF_HOST_MEMORY, NOT_SUPPORTED. */
gm_status gm__order_note_passed(gm__order *order, const gm_stream *stream, uint64_t clock, const gm_point *point,
                                gm_error *err);

/* The stream goes: its points that other streams' slots have, too, have passed. */
void gm__order_forget_points(gm__order *order, const gm_stream *stream);

/* The live block is about to be freed on the stream of `slot`, and work there is done with it at the point, which is
 * the mark's from then on. */
void gm__order_give_point(gm__order *order, gm__mark *mark, int slot, const gm_backend_point *point);

/* What a request in the order of `slot` needs to use the settled block. `insert`: gm may put waits into that stream. */
gm__order_verdict gm__order_judge(const gm__order *order, const gm__mark *mark, int slot, bool insert);

/* The same for a request in the order of `stream`, which gets no slot by it if it has none. */
gm__order_verdict gm__order_forecast(const gm__order *order, const gm__mark *mark, const gm_stream *stream,
                                     bool insert);

/* Put the waits into the stream of `slot`, for the work on the block before its `freed_at`; afterwards the block is as
 * if freed there. Steps out of the lock: nobody else may know of the block. */
gm_status gm__order_insert(gm__order *order, gm__mark *mark, int slot, gm_error *err);

/* Give the block a point of its own: where the one stream that a request in the order of `slot` must wait for is done
 * with it. Steps out of the lock: nobody else may know of the block. */
gm_status gm__order_attach_point(gm__order *order, gm__mark *mark, int slot, gm_error *err);
void gm__order_drop_point(gm__order *order, gm__mark *mark);

/* Its slot if it has one; else GM__ORDER_HOST. */
int gm__order_find(const gm__order *order, const gm_stream *stream);

/* Wait until `stream` has done what was submitted to it, by a point or by a wait; a lost device has. BUSY where neither
 * can be had: the work may still run, and `err` names the stream, for the call `op`. Takes no lock. */
GM__MUST_USE gm_status gm__order_drain(gm_stream *stream, const char *op, gm_error *err);

/* The block is used on the stream of `slot`, too. `slot`: for a free. */
void gm__order_note_use(gm__order *order, gm__mark *mark, int slot);

/* May work of the stream still use something that was freed, or that gm_use_on named? Asks no driver, but for a point
 * that is under way. */
bool gm__order_is_unsettled(gm__order *order, const gm_stream *stream);

/* Wait for the streams of the slots in `mask`. BUSY, naming the stream: it is being captured, or nothing can wait for
 * it. Steps out of the lock. */
GM__MUST_USE gm_status gm__order_drain_slots(gm__order *order, uint64_t mask, const char *op, gm_error *err);

/* The same for every stream that may still use something freed. */
GM__MUST_USE gm_status gm__order_drain_all(gm__order *order, const char *op, gm_error *err);

/* Does a thread outside the lock use the stream of the slot? */
bool gm__order_is_pinned(const gm__order *order, int slot);

/* The stream is done and goes, and is not pinned: the mark remembers it no more. */
void gm__order_forget_mark(gm__order *order, gm__mark *mark, int slot);
/* The same for the slot itself, after all marks. */
void gm__order_forget(gm__order *order, int slot);

/* Where the number of the stream among the crowd is for a free; GM__ORDER_HOST: it is not in it. */
int gm__order_member(const gm__order *order, const gm_stream *stream);

/* The slot of the stream, or its place in the crowd; NULL: neither. */
gm__order_slot *gm__order_named(gm__order *order, const gm_stream *stream);

/* A slot's bit in a mask of slots, and the lowest slot of a mask that has one. */
static inline uint64_t gm__order_bit(int slot) { return UINT64_C(1) << slot; }
static inline int gm__order_lowest(uint64_t mask) { return __builtin_ctzll(mask); }

/* May work of the stream still use something that was freed? */
static inline bool gm__order_is_behind(const gm__order_slot *slot) { return slot->passed < slot->last_free; }

/* Out of the lock and back in, for a call that may submit to the stream of the slot, which keeps it meanwhile. */
void gm__order_step_from(gm__order *order, gm__order_slot *slot);
void gm__order_step_to(gm__order *order, gm__order_slot *slot);

/* Settle what the crowd is known to have passed. */
void gm__order_update_crowd(gm__order *order);

void gm__order_clear_slot(const gm__order *order, gm__order_slot *slot, gm_close_mode mode);
void gm__order_clear_crowd(gm__order *order, gm_close_mode mode);

/* Give back a mark's point, and those of the slots, telling the backend how. */
void gm__order_clear_mark(const gm__order *order, gm__mark *mark, gm_close_mode mode);
void gm__order_clear(gm__order *order, gm_close_mode mode);

#endif
