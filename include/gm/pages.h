/* Pages: equal pieces of memory that have numbers, such as the pages of a KV cache. A page set hands pages out, counts
 * who holds each, and finds pages again by their keys. It keeps pages that a prepared step still reads from being
 * reused. It knows counts and order, never tokens. The memory of the pages is the program's, or the set takes it from a
 * pool (gm/page_memory.h).
 *
 * An owner is what holds pages: a sequence, a cache, a transfer. The set knows what each owner holds. A release of what
 * an owner does not hold is refused, and the message has the owner's tag.
 *
 * Every call is thread-safe, but for gm_pages_destroy. Calls of one set wait for each other. Each takes time by the
 * number of pages that it names, never by the number of pages of the set. */
#ifndef GM_PAGES_H
#define GM_PAGES_H

#include <stdint.h>

#include "gm/pool.h"

GM_BEGIN_DECLS

typedef uint32_t gm_page;
#define GM_NO_PAGE UINT32_MAX

enum {
  GM_PAGES_MOST = 1 << 28,       /* pages of a set */
  GM_PAGE_OWNERS_MOST = 1 << 20, /* open owners of a set */
  GM_PAGE_HOLDS_MOST = 65535,    /* holds of one page */
  GM_PAGE_PRIORITIES = 64,       /* priorities of keys: 0 to 63 */
  GM_PAGE_STEPS_MOST = 64,       /* steps from the oldest open one to the newest */
  GM_PAGE_PLANES_MOST = 65536,   /* planes of a set */
  GM_PAGE_TAG_SIZE = 32          /* bytes of an owner's tag, its end included */
};

/* Flags of a page set. */
enum { GM_PAGES_KEEP_FIRST = 1 /* page 0 is never handed out: tables are padded with it */ };
/* Flags of gm_pages_take. */
enum { GM_PAGES_URGENT = 1 /* may take the reserve */ };

typedef struct gm_pages gm_pages; /* a page set; it keeps its context from being destroyed */

/* Zero-initialised with struct_size and max_pages set, it is a set without a reserve. */
typedef struct gm_pages_params {
  uint32_t struct_size;
  uint32_t max_pages; /* numbers from 0 to max_pages - 1; 1 to GM_PAGES_MOST */
  uint32_t reserve;   /* pages that only takes with GM_PAGES_URGENT may have: decoding goes before new prompts */
  uint32_t flags;     /* GM_PAGES_KEEP_FIRST */
  /* The rest is for a set with memory (gm/page_memory.h). Without `pool` all of it is 0. */
  gm_pool *pool;               /* where the memory comes from; it outlives the set */
  const uint64_t *plane_bytes; /* bytes of a page in each plane, such as the keys of a layer; copied */
  const gm_request *request;   /* how the pool is asked, without `bytes` and `stream`; copied. NULL: no wishes */
  uint32_t planes;             /* entries of `plane_bytes`; 1 to GM_PAGE_PLANES_MOST */
  uint32_t granule_pages;      /* pages whose memory comes and goes at once; 0: all */
  uint32_t backed_pages;       /* pages that have memory from the begin, rounded up to granules */
  uint32_t reserved;           /* 0 */
} gm_pages_params;

/* The key of a page's contents, such as a hash of the tokens up to its end. gm compares all 128 bits and makes none of
 * them: salts and collisions are the program's. {0, 0} is no key. Never grows. */
typedef struct gm_page_key {
  uint64_t lo, hi;
} gm_page_key;

/* Figures of a set, now and since it was made. backed = held + idle + free, and one more with GM_PAGES_KEEP_FIRST. */
typedef struct gm_pages_stats {
  uint32_t struct_size;
  uint32_t pages;    /* max_pages */
  uint32_t held;     /* pages that an owner holds, now */
  uint32_t idle;     /* pages that nobody holds and that keep their contents for a key, now */
  uint32_t free;     /* all others that have memory, now */
  uint32_t waiting;  /* of idle and free: pages that a step still reads, now */
  uint32_t owners;   /* open owners, now */
  uint32_t steps;    /* open steps, now: also those whose point has not passed */
  uint64_t holds;    /* now: a page that three owners hold counts three times */
  uint64_t taken;    /* pages that gm_pages_take gave */
  uint64_t refused;  /* calls of gm_pages_take that answered OVER_LIMIT */
  uint64_t found;    /* pages that gm_pages_find gave */
  uint64_t evicted;  /* idle pages that were taken for other contents, or whose memory was given back */
  uint32_t backed;   /* pages that have memory, now; of a set without a pool: all */
  uint32_t reserved; /* 0 */
  uint64_t copied;   /* pages that gm_pages_write and gm_pages_copy filled: by gm, or by the program */
} gm_pages_stats;

/* Makes a page set. The caller destroys *out. Errors: INVALID_ARGUMENT: also for a reserve larger than the set, and for
 * an unknown flag. OUT_OF_HOST_MEMORY, FORKED. With `pool` also those of gm_pages_grow. A page takes 64 to 68 bytes of
 * host memory, and each hold beyond the first of a page 28. */
GM_API gm_status gm_pages_create(gm_context *ctx, const gm_pages_params *params, gm_pages **out, gm_error *err);

/* Ends a set. NULL is GM_OK. Meanwhile no other thread may use it. BUSY: an owner or a step is open, and nothing has
 * changed; the message names one with its tag. BUSY, too: a block of a plane is mapped, or a table is
 * not destroyed. In a forked child the call
 * gives back gm's host memory, whatever is open, and is GM_OK. INVALID_ARGUMENT: debug builds know that it was
 * destroyed. */
GM_API gm_status gm_pages_destroy(gm_pages *pages, gm_error *err);

/* ---- owners ---- */

/* Opens an owner, and gives its number in *out, which is never 0. `tag` is copied, and cut to GM_PAGE_TAG_SIZE. It
 * stands in the messages about the owner. The numbers of closed owners come again late, after 4094 others at the least.
 * Sets begin with different numbers: that of another set's owner is refused, as a rule.
 * Errors: INVALID_ARGUMENT: `tag` or `out` is NULL. OVER_LIMIT: GM_PAGE_OWNERS_MOST are open. OUT_OF_HOST_MEMORY,
 * FORKED. */
GM_API gm_status gm_page_owner_open(gm_pages *pages, const char *tag, uint32_t *out, gm_error *err);
/* Closes an owner, and releases all that it holds, the page that it got last first. Errors: INVALID_ARGUMENT: there is
 * no such owner, or it is closed. FORKED. */
GM_API gm_status gm_page_owner_close(gm_pages *pages, uint32_t owner, gm_error *err);
/* Lists the pages that an owner holds, in the order in which it got them. A page that it holds several times stands
 * there once. *out_count is how many there are, also where `out` has room for only `capacity` of them. `out` may be
 * NULL if `capacity` is 0. Errors as for gm_page_owner_close. */
GM_API gm_status gm_page_owner_list(gm_pages *pages, uint32_t owner, gm_page *out, uint32_t capacity,
                                    uint32_t *out_count, gm_error *err);

/* ---- holds ---- */

/* Takes `count` pages that nobody holds, and gives the owner one hold of each: all of them or none. First come pages
 * without a key, then idle pages by priority and age, whose keys are gone then. Pages that an open step may read are
 * left out. Nothing is zeroed. Errors: OVER_LIMIT: there are not so many pages beside the reserve; an ordinary answer.
 * It may come early while another thread asks a device whether steps have ended. INVALID_ARGUMENT: the owner, an
 * unknown flag, or `out` is NULL. FORKED. */
GM_API gm_status gm_pages_take(gm_pages *pages, uint32_t owner, uint32_t count, uint32_t flags, gm_page *out,
                               gm_error *err);

/* Gives the owner one hold more of each page, or of none after a failure. It may hold a page several times. Errors:
 * INVALID_ARGUMENT: the owner, or a page that nobody holds (an idle page comes back by gm_pages_find alone).
 * OVER_LIMIT: a page has GM_PAGE_HOLDS_MOST holds. OUT_OF_HOST_MEMORY, FORKED. */
GM_API gm_status gm_pages_share(gm_pages *pages, uint32_t owner, const gm_page *which, uint32_t count, gm_error *err);

/* Gives `to` one hold of each page that `from` holds, in the same order, or of none after a failure. So a second
 * sequence goes on from where the first is. Errors as for gm_pages_share. INVALID_ARGUMENT also where both are the same
 * owner. */
GM_API gm_status gm_pages_fork(gm_pages *pages, uint32_t from, uint32_t to, gm_error *err);

/* Takes one hold of each page away from the owner, in the order of `which`. A page without holds is idle if it has a
 * key, and free otherwise. Release a sequence's last page first: what is released first is evicted first. Errors:
 * INVALID_ARGUMENT: the owner, or a page that it does not hold, as at a double release. The pages before that one are
 * released, it and those after it are not. FORKED. */
GM_API gm_status gm_pages_release(gm_pages *pages, uint32_t owner, const gm_page *which, uint32_t count, gm_error *err);

/* ---- keys ---- */

/* Says which contents a page of the owner has, so that gm_pages_find finds it, also while it is idle. Idle pages of the
 * least priority are evicted first, and of one priority the page first that is idle for the longest time. If another
 * page has the key, that page keeps it, and this one stays without: *out (NULL is allowed) is the page that has it. An
 * earlier key of the page is gone. The key {0, 0} takes the key away. Errors: INVALID_ARGUMENT: the owner, a page that
 * it does not hold, a priority from GM_PAGE_PRIORITIES on. FORKED. */
GM_API gm_status gm_pages_set_key(gm_pages *pages, uint32_t owner, gm_page page, gm_page_key key, uint32_t priority,
                                  gm_page *out, gm_error *err);
/* Finds the pages of the first keys, until one is missing, and gives the owner one hold of each. *out_count is how many
 * there are. A page with GM_PAGE_HOLDS_MOST holds counts as missing. `out` has room for `count`. Idle
 * pages that are found may be those of the reserve. Errors:
 * INVALID_ARGUMENT: the owner. OUT_OF_HOST_MEMORY: the owner got none. FORKED. */
GM_API gm_status gm_pages_find(gm_pages *pages, uint32_t owner, const gm_page_key *keys, uint32_t count, gm_page *out,
                               uint32_t *out_count, gm_error *err);
/* Takes all keys away, as new weights of a model ask for. Idle pages stay idle in the figures until they are taken: in
 * their order, and before all pages with a key. FORKED. */
GM_API gm_status gm_pages_drop_keys(gm_pages *pages, gm_error *err);

/* ---- steps ---- */

/* Begins a step, whose number is *out. A step is work that reads pages by numbers which the program has copied. It
 * begins before the program reads its tables, and ends when the device has done the work. A page that is released
 * meanwhile is taken again only after this step and all steps before it have ended. Errors: OVER_LIMIT: the oldest open
 * step is GM_PAGE_STEPS_MOST steps old. INVALID_ARGUMENT, FORKED. */
GM_API gm_status gm_pages_step_begin(gm_pages *pages, uint64_t *out, gm_error *err);
/* Ends a step, in any order. INVALID_ARGUMENT: it is not open, or ends at a point. FORKED. */
GM_API gm_status gm_pages_step_end(gm_pages *pages, uint64_t step, gm_error *err);
/* Ends a step when a point of `device` has passed: gm_stream_record after the step's work makes one. The call does not
 * wait. Later calls look whether the point has passed: a take that needs pages, a step that begins late, the figures
 * and gm_pages_destroy. Until then the step is open. The point stays the caller's, and may be released at once. A NULL
 * point, or a zero one, has passed. The device stays open until the set's steps have ended; after its loss they have.
 * INVALID_ARGUMENT: the step is not open, or ends at a point already. It is the answer, too, where the device is of
 * another context, or the point of another device. NOT_SUPPORTED: the backend cannot keep a point, and the step is
 * open. OUT_OF_HOST_MEMORY, FORKED, and what the driver said. */
GM_API gm_status gm_pages_step_end_at(gm_pages *pages, uint64_t step, gm_device *device, const gm_point *point,
                                      gm_error *err);

/* Fills `out` with the figures of a set. The caller sets out->struct_size. INVALID_ARGUMENT, FORKED. */
GM_API gm_status gm_pages_get_stats(gm_pages *pages, gm_pages_stats *out, gm_error *err);

GM_END_DECLS

#endif
