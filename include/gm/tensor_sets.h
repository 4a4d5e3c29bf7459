/* Tensor sets: what a host program makes of source files, such as tensors of a syntax tree. gm keeps the latest sets,
 * and has one made anew when its file has changed. A set is an object of the host program. Every call is thread-safe.
 */
#ifndef GM_TENSOR_SETS_H
#define GM_TENSOR_SETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gm/context.h"

GM_BEGIN_DECLS

struct gm_pool;

/* Makes the set of a file, under no lock. On GM_OK it has set *out_set, and may set *out_bytes, which is 0. It may call
 * gm, but may not get the set of the same file. It must not throw. */
typedef gm_status (*gm_tensor_set_make)(void *user, const char *path, void **out_set, uint64_t *out_bytes,
                                        gm_error *err);

/* Gives a set back to the host program, once for each that was made, under no lock. It may call gm, but not
 * gm_tensor_sets_destroy for these sets. It must not throw. */
typedef void (*gm_tensor_set_release)(void *user, void *set, uint64_t bytes);

typedef struct gm_tensor_sets_params {
  uint32_t struct_size;
  bool by_content;               /* a file has changed if a checksum of its bytes has; each get reads the file */
  uint64_t max_sets;             /* that are kept; 0: the key gpu.ast.max_cache_size. The key gpu.ast.cache_enabled may
                                    say that none is */
  uint64_t max_bytes;            /* 0: no bound */
  gm_tensor_set_make make;       /* not NULL */
  gm_tensor_set_release release; /* NULL: sets need none */
  void *user;                    /* handed to both; borrowed until gm_tensor_sets_destroy returns */
  struct gm_pool *pool; /* whose memory the sets hold: those that nobody uses go when it is short, as objects of
                           a gm_cache do (gm/cache.h). NULL: none */
} gm_tensor_sets_params;

/* Counts are since the sets were created, unless they say "now". */
typedef struct gm_tensor_sets_stats {
  uint32_t struct_size;
  uint64_t kept, kept_bytes; /* now */
  uint64_t hits;             /* calls that got a set that was there */
  uint64_t makes, failures;  /* calls of `make`; those of them that failed */
  uint64_t waits;            /* calls that waited for another thread's `make` */
  uint64_t stale;            /* sets that went because their file had changed, or was gone */
  uint64_t evictions;        /* sets that went for want of room */
} gm_tensor_sets_stats;

typedef struct gm_tensor_sets gm_tensor_sets; /* it keeps its context from being destroyed */
typedef struct gm_tensor_set gm_tensor_set;   /* one use of a set */

/* Makes room for tensor sets. Each gm_tensor_sets_get follows both keys. The caller destroys *out. Errors:
 * INVALID_ARGUMENT, OUT_OF_HOST_MEMORY, FORKED. */
GM_API gm_status gm_tensor_sets_create(gm_context *ctx, const gm_tensor_sets_params *params, gm_tensor_sets **out,
                                       gm_error *err);

/* Releases all sets. NULL is GM_OK. Meanwhile no other thread, and no `release`, may use them. BUSY: a set is in use,
 * and nothing has changed. In a forked child the call gives back gm's host memory, releases no set, and is GM_OK. */
GM_API gm_status gm_tensor_sets_destroy(gm_tensor_sets *sets, gm_error *err);

/* Gets the set of a file. It is the one that is kept, if the file's device, inode, size and time of change are as they
 * were. With `by_content` it is kept if the file's size and a checksum of 64 bits of its bytes are as they were.
 * Otherwise it is a new one. The caller gives *out back by gm_tensor_set_return. While one thread makes a set, others
 * that want it wait, and get it, or get its failure. Where a set cannot be kept, each caller has its own made.
 *
 * `path` names a set as it is written: other spellings are other sets. Errors: NOT_FOUND, IO: the file cannot be opened
 * or, with `by_content`, read; its set goes. INVALID_ARGUMENT: `path` has not 1 to 4096 bytes. Those of `make`.
 * OUT_OF_HOST_MEMORY, FORKED. */
GM_API gm_status gm_tensor_sets_get(gm_tensor_sets *sets, const char *path, gm_tensor_set **out, gm_error *err);

/* Gets the set of a file where one is kept of the file as it is now. It makes none and waits for none. The caller gives
 * *out back by gm_tensor_set_return. NOT_FOUND: there is none, or the file is gone. Other errors are those of
 * gm_tensor_sets_get but for those of `make`. */
GM_API gm_status gm_tensor_sets_find(gm_tensor_sets *sets, const char *path, gm_tensor_set **out, gm_error *err);

/* Returns what `make` made. It stays valid until gm_tensor_set_return. */
GM_API void *gm_tensor_set_object(const gm_tensor_set *set);

/* Gives a set back that gm_tensor_sets_get or gm_tensor_sets_find gave. NULL is allowed. */
GM_API void gm_tensor_set_return(gm_tensor_set *set);

/* Lets go the set of a file, or all sets with `path` NULL. Those in use are released with their last use. NOT_FOUND: no
 * set of that file is kept. INVALID_ARGUMENT, FORKED. */
GM_API gm_status gm_tensor_sets_clear(gm_tensor_sets *sets, const char *path, gm_error *err);

/* Fills `out` with the figures. The caller sets out->struct_size. INVALID_ARGUMENT, FORKED. */
GM_API gm_status gm_tensor_sets_get_stats(gm_tensor_sets *sets, gm_tensor_sets_stats *out, gm_error *err);

GM_END_DECLS

#endif
