/* Stream order: which streams may still use freed memory, since when, and what it takes to use the memory elsewhere.
 * The caller synchronises: an order has the lock of the arena or provider that it is part of. While a thread holds that
 * lock, no stream of the order goes away.
 *
 * The functions below that say "Steps out of the lock" leave it while they submit to a stream, and take it again.
 * Afterwards all that the caller knew of the blocks is old, except for blocks in state AWAY. The streams that such a
 * call works on stay in their slots. */
#ifndef GM_CORE_ORDER_ORDER_H
#define GM_CORE_ORDER_ORDER_H

#include "core/base/error.h"
#include "core/device/stream.h"
#include "core/order/last_use.h"

enum {
  GM__ORDER_SLOTS = 64,
  GM__ORDER_CROWD = GM__ORDER_SLOTS - 1, /* the slot, and the bit, that all further streams share */
  GM__ORDER_HOST = -1
};

/* The engine's word about its stream (gm_stream_passed): work on blocks freed up to `at` is done at the point. */
typedef struct gm__order_told {
  gm_backend_point point;
  uint64_t at, of; /* of: as gm__order_slot.point_of */
  bool there;
} gm__order_told;

typedef struct gm__order_slot {
  gm_stream *stream;
  uint64_t passed;                /* the stream has no work left on blocks that were freed up to this time */
  uint64_t last_free, last_given; /* the last free that named the stream: in its order, at a point of the engine */
  uint64_t last_use;              /* the last gm_use_on that named the stream */
  uint64_t point_at;              /* `point` comes after all work on blocks that were freed up to this time */
  gm_backend_point point;
  uint64_t point_of; /* the engine may give a point of another stream: that stream's id; 0: it is a point of this one */
  gm__order_told later;  /* the newest word of the engine, which comes after `point` */
  bool has_point, asked; /* asked: a thread outside the lock records or holds the slot's point */
  uint32_t pins;         /* threads outside the lock that use the stream: it must not close */
  uint32_t given;        /* last uses that keep a point of the engine for this stream */
} gm__order_slot;

/* The crowd: streams without a slot of their own. Memory that was freed on one of them waits for all of them that had
 * work then. */
typedef struct gm__crowd {
  gm__map numbers;          /* from the address of a stream to its place in `members` */
  gm__order_slot **members; /* each has its own host memory, and never moves */
  uint32_t count, capacity;
} gm__crowd;

/* How an order leaves and takes its owner's lock. */
typedef struct gm__order_lock {
  void (*take)(void *user);
  void (*leave)(void *user);
  void *user;
} gm__order_lock;

typedef struct gm__order {
  gm_device *device; /* its order_clock is the time */
  gm__order_lock lock;
  uint64_t used;       /* bits of the slots that have a stream */
  uint64_t host_freed; /* the last free in the order of the host; nobody reads it */
  uint64_t owed;       /* bits of slots that need a point, because a free looked at them and could not record one */
  uint64_t given;      /* bits of slots whose `given` is not 0 */
  uint64_t ended;      /* bits of slots whose streams have done all their work and close: no last use names them anew */
  gm__order_slot slots[GM__ORDER_SLOTS];
  gm__crowd crowd;
} gm__order;

typedef enum gm__order_verdict {
  GM__ORDER_READY,    /* the request may use the block now */
  GM__ORDER_BARRIER,  /* only work of the request's own stream is left: a barrier suffices */
  GM__ORDER_OWN_WAIT, /* only work of the request's own stream is left, and that stream is unordered: a wait suffices */
  GM__ORDER_OTHERS_WAIT, /* work of other streams is left: waits suffice */
  GM__ORDER_BUSY /* work of other streams is left, and the request cannot wait: it is the host's, or the work is on
                    several streams */
} gm__order_verdict;

void gm__order_init(gm__order *order, gm_device *device, const gm__order_lock *lock);

/* The time now. The clock moves on when a thread asks a stream how far it is. Blocks freed at the same time are settled
 * together. A free only reads the clock. */
static inline uint64_t gm__order_now(const gm__order *order) {
  return atomic_load_explicit(&order->device->order_clock, memory_order_acquire);
}

/* True when memory that was freed at `freed_at` was free at `time` already. Memory that was never used (0) was not.
 * UINT64_MAX: always true. */
static inline bool gm__freed_by(uint64_t freed_at, uint64_t time) {
  return time == UINT64_MAX || (freed_at && freed_at <= time);
}

/* The slot of a stream, made when the stream is new. GM__ORDER_HOST for NULL, and when all slots are taken: then
 * requests of the stream are served as the host's. */
int gm__order_slot_of(gm__order *order, gm_stream *stream);

/* The slot for a free or gm_use_on. A member of the crowd has a number from GM__ORDER_SLOTS on, which is good as long
 * as the lock is held. GM__ORDER_HOST for NULL, and without host memory. */
int gm__order_free_slot(gm__order *order, gm_stream *stream);

/* True when every slot but the crowd's has a stream. */
static inline bool gm__order_is_full(const gm__order *order) {
  return (order->used | UINT64_C(1) << GM__ORDER_CROWD) == UINT64_MAX;
}

/* The slot whose bit stands for `slot`: the crowd's for a member of the crowd. */
static inline int gm__order_place(int slot) { return slot >= GM__ORDER_SLOTS ? GM__ORDER_CROWD : slot; }

/* The id of the slot's stream; 0: the host's. */
uint64_t gm__order_stream_id(const gm__order *order, int slot);

/* True when the stream has a slot or is a member of the crowd. */
bool gm__order_knows(const gm__order *order, const gm_stream *stream);

/* A stream that has done its work leaves the crowd. False: a thread outside the lock uses the stream. */
bool gm__order_leave_crowd(gm__order *order, const gm_stream *stream);

/* Notes that the block is freed in the order of `slot`'s stream. `slot` is of gm__order_free_slot. */
void gm__order_note_free(gm__order *order, gm__last_use *use, int slot);

/* Forgets the streams that are known to be done with the block. Returns the bits that are left. It asks the driver of
 * the block's own point only. */
uint64_t gm__order_settle(gm__order *order, gm__last_use *use);

/* Returns those streams of `pending` whose progress decides what a request in the order of `slot` may use. A FIFO
 * stream need not ask about itself: its own work comes first anyway. */
uint64_t gm__order_doubtful(const gm__order *order, uint64_t pending, int slot);

/* Asks the driver how far the streams in `mask` are. Records a point where none is under way. Steps out of the lock. */
void gm__order_refresh(gm__order *order, uint64_t mask);

/* Like gm__order_refresh, but submits nothing: streams that need a point are owed one. */
void gm__order_look(gm__order *order, uint64_t mask);

/* Records the points that are owed, unless `stream` is being captured. Steps out of the lock. */
void gm__order_settle_up(gm__order *order, const gm_stream *stream);

/* True when no stream is known to have work left on memory that was freed up to `time`. UINT64_MAX: on any. */
bool gm__order_has_passed(const gm__order *order, uint64_t time);

/* Tells the driver to begin with the work of such streams. Steps out of the lock. */
void gm__order_flush(gm__order *order);

/* Says what a request of that slot needs to use the settled block. `insert`: gm may put waits into its stream. */
gm__order_verdict gm__order_judge(const gm__order *order, const gm__last_use *use, int slot, bool insert);

/* Puts waits into the stream of `slot`, for all work on the block from before its `freed_at`. Afterwards the block is
 * as if it were freed there. Steps out of the lock: the block must be AWAY. */
gm_status gm__order_insert(gm__order *order, gm__last_use *use, int slot, gm_error *err);

/* A request in the order of `slot` must wait for one stream. Gives the block a point at which that stream is done with
 * it. Steps out of the lock: the block must be AWAY. */
gm_status gm__order_attach_point(gm__order *order, gm__last_use *use, int slot, gm_error *err);
void gm__order_drop_point(gm__order *order, gm__last_use *use);

/* The slot of the stream; GM__ORDER_HOST: it has none. */
int gm__order_find(const gm__order *order, const gm_stream *stream);

/* Notes that the stream of `slot` uses the live block, too. `slot` is of gm__order_free_slot. */
void gm__order_note_use(gm__order *order, gm__last_use *use, int slot);

/* True when its work may still use memory that was freed or that gm_use_on named. It asks of points under way only. */
bool gm__order_is_unsettled(gm__order *order, const gm_stream *stream);

/* Waits until `stream` has done all that was submitted to it. The stream of a lost device has. BUSY: gm can neither
 * record a point nor wait, so work may still run; `err` names the stream and `op`. Takes no lock. */
GM__MUST_USE gm_status gm__order_drain(gm_stream *stream, const char *op, gm_error *err);

/* Waits for the streams of the slots in `mask`. BUSY: the engine captures one of them, or nothing can wait for it;
 * `err` names the stream. Steps out of the lock. */
GM__MUST_USE gm_status gm__order_drain_slots(gm__order *order, uint64_t mask, const char *op, gm_error *err);

/* Waits for every stream that may still use freed memory, as gm__order_drain_slots does. */
GM__MUST_USE gm_status gm__order_drain_all(gm__order *order, const char *op, gm_error *err);

/* True when a thread outside the lock uses the stream of the slot. */
bool gm__order_is_pinned(const gm__order *order, int slot);

/* The slot's stream is done, not pinned, and closes. No last use names it from then on, but those that do already. They
 * forget it one by one, and the lock may be left in between. gm__order_forget_use: the last use no longer names it.
 * gm__order_forget: the slot is free; call it after all with points or users have forgotten the stream. The others name
 * one that has passed all times until then. gm__order_resume: the stream stays open after all. */
void gm__order_end(gm__order *order, int slot);
void gm__order_resume(gm__order *order, const gm_stream *stream);
void gm__order_forget_use(gm__order *order, gm__last_use *use, int slot);
void gm__order_forget(gm__order *order, int slot);

/* The number of a member of the crowd, as gm__order_free_slot gives it. GM__ORDER_HOST: the stream is no member. */
int gm__order_member(const gm__order *order, const gm_stream *stream);

/* A slot's bit in a mask of slots. The lowest slot of a mask that is not 0. */
static inline uint64_t gm__order_bit(int slot) { return UINT64_C(1) << slot; }
static inline int gm__order_lowest(uint64_t mask) { return __builtin_ctzll(mask); }

/* Releases the point of a last use, or the points of a slot or of all slots. `mode` goes to the backend. */
void gm__order_clear_use(const gm__order *order, gm__last_use *use, gm_close_mode mode);
void gm__order_clear(gm__order *order, gm_close_mode mode);

/* True when the engine captures the stream (NULL: none). Then gm may ask nothing of it, and `err` says so. */
bool gm__order_is_captured(const gm_stream *stream, gm_error *err);

#endif
