/* Reservations: bytes of a device that are held before they are taken. A program asks first, is told yes or no, and
 * allocates later. Two askers are never both told that the last bytes are theirs: see docs/reserve.md.
 *
 * The bytes that a reservation holds and nobody has taken are a promise. gm refuses each request of this process that
 * would need promised bytes, with OVER_LIMIT, also where no limit is configured. On an adopted device promises of
 * other processes bind requests only if the key reserve.share is set. gm cannot hold back a program without gm. Memory
 * of an upstream, managed memory and pinned host memory neither take promises nor respect them. Every function is
 * thread-safe. */
#ifndef GM_RESERVE_H
#define GM_RESERVE_H

#include "gm/device.h"
#include "gm/pool.h"

GM_BEGIN_DECLS

struct gm_fit_part; /* gm/fit.h */

typedef struct gm_reservation gm_reservation;

enum { GM_RESERVATION_NAME_SIZE = 32, GM_RESERVATION_POOL_SIZE = 48 };

typedef struct gm_reserve_params {
  uint32_t struct_size; /* set by the caller: sizeof(gm_reserve_params) */
  uint32_t flags;       /* 0 */
  uint64_t bytes;       /* to hold; not 0 */
  const char *name;     /* for people, cut to 31 bytes; copied; NULL: "reservation" */
} gm_reserve_params;

/* The state of a reservation at one moment. */
typedef struct gm_reservation_info {
  uint32_t struct_size; /* set by the caller: sizeof(gm_reservation_info) */
  bool shared;          /* other processes that use gm hold back, too, now; false: it holds in this process. gm tells
                           them at its next chance, and tells the log why it could not */
  uint64_t bytes;       /* held at the beginning */
  uint64_t taken_bytes; /* of them: the pool has taken them */
  uint64_t left_bytes;  /* of them: still promised */
  char name[GM_RESERVATION_NAME_SIZE];
  char pool[GM_RESERVATION_POOL_SIZE]; /* name of the pool that takes them; "": none yet */
} gm_reservation_info;

/* Holds params->bytes of a device's memory. The answer is yes only if so much is free beside the bytes that must stay
 * free (keys memory_fraction and min_free_bytes) and beside all other promises. Idle memory of the device's pools goes
 * back for it, if it has to. Nothing is allocated.
 *
 * Contexts and APIs of the process that share a card share its promises. The caller owns *out until
 * gm_reservation_cancel. The device answers BUSY to gm_device_close until then.
 *
 * Errors: OVER_LIMIT: there is not so much. The text says how much there is, and which process promises most. Where
 * reserve.share is "require": TIMEOUT, IO, FORMAT or BUSY, if other processes cannot be told. NOT_FOUND: the device has
 * no figure of its memory. INVALID_ARGUMENT: a pointer is NULL, or no bytes or unknown flags are asked for.
 * NOT_SUPPORTED (a newer caller's member), OUT_OF_HOST_MEMORY, FORKED. */
GM_API gm_status gm_reserve(gm_device *device, const gm_reserve_params *params, gm_reservation **out, gm_error *err);

/* Holds bytes for a pool, within that pool's own memory_fraction and min_free_bytes: as gm_reserve and
 * gm_reservation_commit in one call. Errors: those of both. */
GM_API gm_status gm_pool_reserve(gm_pool *pool, uint64_t bytes, gm_reservation **out, gm_error *err);

/* Gives the promise to a pool of the reservation's device or card. From now on memory that the pool takes of the
 * device comes from the promise first, and then from what is free for all. Memory that it has taken leaves the promise
 * for good: if the pool gives it back, it is free for all. Memory that the system would give at its first use is
 * touched at once, so the pool grows as slowly as with GM_COMMIT. The pool's cap and limits hold as ever. The call
 * takes no memory; gm_pool_warm_up takes it at once. The pool answers BUSY to gm_pool_destroy until
 * gm_reservation_cancel.
 *
 * Errors: INVALID_ARGUMENT: an argument is NULL, the pool is of another context or card, or the reservation has a pool
 * already. NOT_SUPPORTED: the pool has an upstream. FORKED. */
GM_API gm_status gm_reservation_commit(gm_reservation *reservation, gm_pool *pool, gm_error *err);

/* Ends a reservation, committed or not. The rest of its promise is free for all; memory that a pool has taken stays in
 * the pool. NULL does nothing. Call it at most once for each reservation. In a forked child it only gives host memory
 * back. */
GM_API void gm_reservation_cancel(gm_reservation *reservation);

/* Reads what a reservation holds. Errors: INVALID_ARGUMENT: a pointer is NULL, or gm does not know struct_size. FORKED.
 */
GM_API gm_status gm_reservation_read(const gm_reservation *reservation, gm_reservation_info *out, gm_error *err);

/* Holds on each device what a plan of gm_place_layers takes there: parts[i].bytes on devices[i]. Either all are held or
 * none. `out` has room for `count` reservations, each with a name like "fit 0". out[i] is NULL where the part has no
 * bytes; after an error all are NULL. Commit each to the pool that loads the part, and cancel each.
 *
 * Errors: those of gm_reserve, of the first device that says no. INVALID_ARGUMENT: also more than GM_FIT_DEVICES_MAX
 * devices. */
GM_API gm_status gm_fit_commit(gm_device *const *devices, const struct gm_fit_part *parts, uint32_t count,
                               gm_reservation **out, gm_error *err);

GM_END_DECLS

#endif
