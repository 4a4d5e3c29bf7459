/* The host memory of a device's rings: page-locked chunks, cut into slots of several sizes, up to one bound. A chunk is
 * memory of the driver's where the backend has such, else memory of the process that is registered. One that no ring
 * uses stays for the next ring, with slots of any size. It goes when nobody has used it for a while.
 *
 * Rings share the stock's lock. It is given away while the system or a driver is called. */
#ifndef GM_CORE_STAGING_STOCK_H
#define GM_CORE_STAGING_STOCK_H

#include "core/base/thread.h"
#include "core/staging/ring.h"
#include "gm/memory.h"

enum { GM__STOCK_SLOTS = 64 /* of a chunk, at most */ };

/* The uses of the device's own memory beside the slots. */
typedef enum gm__beside { GM__BESIDE_SCATTER, GM__BESIDE_EXPAND, GM__BESIDES } gm__beside;

typedef struct gm__stock_chunk {
  unsigned char *host;
  uint64_t bytes;
  bool pinned;
  bool lent;           /* the driver's memory, which goes with its registration */
  uint64_t slot_bytes; /* of its slots, in whole pages */
  uint64_t used;       /* a bit for each slot */
  uint64_t since;      /* when the last slot came back */
  struct gm__stock_chunk *next;
} gm__stock_chunk;

typedef struct gm__stock {
  gm_device *device;
  uint32_t users; /* rings, and opens of staging.h. Under the device's lock */
  struct {
    gm__ring *ring; /* NULL: nobody needed it yet */
    uint32_t opens; /* that were not closed */
    bool measured;
    uint64_t small;  /* of `measured` */
    double up, down; /* 0: not measured */
    struct {
      bool known;
      uint64_t most;    /* of `known` */
      gm_memory memory; /* of the device; handle 0: none. It goes with the ring */
    } beside[GM__BESIDES];
  } own;          /* of staging.h. Under the device's lock */
  gm__mutex lock; /* guards the members below, and all rings */
  uint64_t most;  /* bytes that it may have; a ring's only slot may lie beyond */
  uint64_t bytes; /* of its chunks, and of those being made */
  gm__stock_chunk *chunks;
  gm__ring *rings;
  gm_error unable; /* why the device can use no memory of the host's; GM_OK: it can, or was not asked */
  bool scarce;     /* the last chunk was refused: for the next one, the system is asked for one slot */
} gm__stock;

/* The stock of a device, made if there is none. It stays until gm__stock_leave. OUT_OF_HOST_MEMORY. */
gm_status gm__stock_join(gm_device *device, gm__stock **out, gm_error *err);
void gm__stock_leave(gm__stock *stock, bool forked);

/* Gives all memory of the device's stock back, unless it has a user. */
gm_status gm__stock_end(gm_device *device, gm_error *err);

/* Bytes that a slot takes. */
uint64_t gm__stock_pitch(uint64_t slot_bytes);

/* Memory for a slot from a chunk that is there. False: there is none. REQUIRES: lock. */
bool gm__stock_cut(gm__stock *stock, uint64_t slot_bytes, bool pinned, gm__ring_slot *slot);

/* A slot's memory comes back. REQUIRES: lock, unless the process is a forked child. */
void gm__stock_put(gm__ring_slot *slot);

/* How many slots the next chunk has. The ring wants `wanted` slots now, and at most `most` in all. 0: none fits below
 * the bound. REQUIRES: lock. */
uint32_t gm__stock_room(const gm__stock *stock, uint64_t slot_bytes, uint32_t wanted, uint32_t most);

/* A chunk for `slots` slots, or for fewer where the system refuses as many. `pinned`: it is page-locked, else it is
 * not. OUT_OF_HOST_MEMORY; the answers of gm_host_register. REQUIRES: lock, which is given away meanwhile. */
gm_status gm__stock_add(gm__stock *stock, uint64_t slot_bytes, uint32_t slots, bool pinned, gm_error *err);

/* Gives a chunk without slots in use back to the system, if it came to rest before `since`. `pinned`: only a
 * page-locked one. False: there is none. REQUIRES: lock, which is given away meanwhile. */
bool gm__stock_drop(gm__stock *stock, uint64_t since, bool pinned);

/* Drops chunks that nobody has used for a while. */
void gm__stock_tidy(gm__stock *stock);

#endif
