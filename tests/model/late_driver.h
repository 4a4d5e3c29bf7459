/* A driver that does its work late, for tests of stream order, all in one thread and without real waits. Work is done
 * when somebody waits for it, or now and then, in the order of each stream and at random across streams. The same seed
 * gives the same order. It keeps one word for each 256 bytes of its memory. Kernels of the "engine" are submitted past
 * gm, by address, as an engine's are. It counts as faults what a driver could not survive. That is work on memory that
 * is not there (any more), or a kernel that finds other words than it must. It has two types of memory. The host can
 * map the second one, but nobody may look there.
 *
 * Not thread-safe: one driver, and all that gm does with it, belong to one thread at a time. */
#ifndef GM_TESTS_MODEL_LATE_DRIVER_H
#define GM_TESTS_MODEL_LATE_DRIVER_H

#include "gm/backend.h"

enum {
  LATE_STREAMS = 96,
  LATE_QUEUE = 64, /* pieces of work that a stream holds at most */
  LATE_GRANULE = 256,
  LATE_PAGE = 2 << 20,
  LATE_PAGES = 32, /* of physical memory */
  LATE_TABLE = 4096,
  LATE_ALLOCATIONS = 128
};

enum { LATE_OWN, LATE_WINDOW, LATE_TYPES };

#define LATE_CAPACITY ((uint64_t)LATE_PAGE * LATE_PAGES)
#define LATE_PLAIN (UINT64_C(1) << 40) /* where addresses of plain memory begin, and those of ranges */
#define LATE_RANGES (UINT64_C(1) << 41)

typedef enum late_kind { LATE_WRITE, LATE_CHECK, LATE_WAIT, LATE_BARRIER } late_kind;

typedef struct late_work {
  late_kind kind;
  bool done;
  uint32_t word;
  uint64_t address, bytes;
  gm_backend_point point;
} late_work;

typedef struct late_stream {
  uint64_t id; /* 0: not open; its slot is id % LATE_STREAMS */
  gm_stream_kind kind;
  bool mute, left;            /* gm may not submit there; gm has let go of it, and its work goes on */
  uint64_t submitted, passed; /* pieces of work; all before `passed` are done */
  late_work queue[LATE_QUEUE];
} late_stream;

typedef struct late_piece {
  uint64_t address, bytes;
} late_piece;

typedef struct late_driver {
  uint64_t random;
  uint32_t eagerness;  /* 0: works only when waited for; 16: at once */
  bool high;           /* hands out the highest addresses that are free, not the lowest */
  gm_stream_kind kind; /* of streams that are opened from now on */
  bool mute;           /* the same: gm may neither record nor wait there, only the engine */
  uint32_t newest;     /* slot of the last one */
  uint32_t stream_end; /* all slots that were ever used are below */
  int64_t points;      /* that gm has and has not given back */
  uint64_t used;       /* bytes of memory that is out */
  uint64_t faults;
  uint64_t slept_ns; /* by which its clock is ahead of the system's (late_clock.c) */
  char fault[160];   /* the first */
  late_stream streams[LATE_STREAMS];
  uint64_t next_id;
  late_piece pieces[LATE_ALLOCATIONS]; /* plain memory, by rising address */
  uint32_t piece_count;
  uint64_t reserved_end; /* of the addresses of ranges */
  uint32_t ranges;
  uint8_t table[LATE_TABLE];     /* page of a range to physical page, from 1; 0: nothing is mapped */
  uint8_t handle_of[LATE_PAGES]; /* physical page to the first one of its handle, from 1; 0: free */
  uint8_t mapped[LATE_PAGES];    /* how often */
  uint32_t plain[LATE_CAPACITY / LATE_GRANULE], paged[LATE_CAPACITY / LATE_GRANULE];
  bool seen[LATE_CAPACITY / LATE_GRANULE]; /* plain memory that was mapped into the host since it was taken */
} late_driver;

/* The driver that a context opens next, in this thread, as "late". Its clock is the thread's. */
extern _Thread_local late_driver *late_next;
extern const gm_backend_ops late_ops;

/* All as at the beginning; nothing may be open or out. */
void late_reset(late_driver *driver, uint64_t seed);

void late_fault(late_driver *driver, const char *format, ...);

gm_status late_fail(gm_error *err, gm_status status, const char *why);

/* ---- work (late_work.c) ---- */

/* A kernel over [address, address + bytes): WRITE puts the word everywhere, CHECK must find it everywhere. */
void late_kernel(late_driver *driver, uint32_t slot, late_kind kind, uint64_t address, uint64_t bytes, uint32_t word);
void late_submit(late_driver *driver, late_stream *stream, const late_work *work);
gm_backend_point late_record(const late_stream *stream);
bool late_passed(const late_driver *driver, const gm_backend_point *point);
/* The engine makes later work of stream `to` follow the point, or all that stream `from` was given; past gm. */
void late_wait(late_driver *driver, uint32_t to, const gm_backend_point *point);
void late_follow(late_driver *driver, uint32_t to, uint32_t from);
/* The engine waits for the stream, past gm. */
void late_finish(late_driver *driver, uint32_t slot);
/* Work at random until the point has passed. */
void late_reach(late_driver *driver, const gm_backend_point *point);
/* Work a little, or not, as `eagerness` says. */
void late_drift(late_driver *driver);
/* Is work pending on any of these bytes? */
bool late_is_busy(const late_driver *driver, uint64_t address, uint64_t bytes);

/* ---- memory (late_memory.c) ---- */

/* The words behind an address, for as many of its bytes as *bytes says. It lowers *bytes to those in one piece. NULL:
 * there is no memory. */
uint32_t *late_words(late_driver *driver, uint64_t address, uint64_t *bytes);

gm_status late_memory_alloc(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err);
gm_status late_memory_free(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err);
/* Was all of it mapped into the host? */
bool late_is_seen(const late_driver *driver, uint64_t address, uint64_t bytes);
gm_status late_host_map(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                        uint32_t mode, void **out, gm_error *err);
gm_status late_host_unmap(void *device, void *stream, const gm_memory *memory, void *pointer, gm_error *err);
gm_status late_host_sync(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes, gm_error *err);

gm_status late_granularity(void *device, const gm_vmm_props *props, uint64_t *out, gm_error *err);
gm_status late_reserve(void *device, uint64_t bytes, uint64_t align, uint64_t *out_address, gm_error *err);
gm_status late_unreserve(void *device, uint64_t address, uint64_t bytes, gm_close_mode mode, gm_error *err);
gm_status late_create(void *device, const gm_vmm_props *props, uint64_t bytes, uint64_t *out_handle, gm_error *err);
gm_status late_destroy(void *device, uint64_t handle, uint64_t bytes, gm_close_mode mode, gm_error *err);
gm_status late_map(void *device, uint64_t address, uint64_t bytes, uint64_t handle, uint64_t offset, gm_error *err);
gm_status late_unmap(void *device, uint64_t address, uint64_t bytes, gm_error *err);
gm_status late_access(void *device, uint64_t address, uint64_t bytes, gm_error *err);

#endif
