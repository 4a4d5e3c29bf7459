/* Tiers keep values that are not in use. A tier may be host memory, a file on disk, a server, or a place of the host
 * program's own. A tier keeps values, which are plain bytes, under keys, which are plain bytes too. It knows nothing
 * of tensors.
 *
 * A tier is made from a table of functions, which a context knows by name. gm brings "host", and where it was built
 * with them, "disk" and "remote". Every call is thread-safe. */
#ifndef GM_TIER_H
#define GM_TIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gm/context.h"

GM_BEGIN_DECLS

enum { GM_TIER_ABI = 0, GM_TIER_KEY_MOST = 4096 };

/* One piece of a value that is written: a value may lie in several places of memory. Never grows. */
typedef struct gm_tier_part {
  const void *data; /* NULL only where bytes is 0 */
  uint64_t bytes;
} gm_tier_part;

/* When a value that was put survives a crash of the process or of the system. */
typedef enum gm_tier_durability {
  GM_TIER_DURABLE_AT_FLUSH = 0, /* after gm_tier_flush, or after the tier was closed without a failure */
  GM_TIER_DURABLE_AT_PUT = 1,   /* as soon as gm_tier_put answers GM_OK */
  GM_TIER_DURABLE_NEVER = 2     /* after a crash of the process only, as far as the system writes what it has */
} gm_tier_durability;

typedef enum gm_tier_codec {
  GM_TIER_CODEC_AUTO = 0, /* compress where a sample shows that it is worth it */
  GM_TIER_CODEC_NONE = 1,
  GM_TIER_CODEC_LZ4 = 2,
  GM_TIER_CODEC_ZSTD = 3
} gm_tier_codec;

/* Zero-initialised with struct_size set, these are the defaults. A tier ignores members that mean nothing to it. */
typedef struct gm_tier_params {
  uint32_t struct_size;
  gm_tier_durability durability;
  gm_tier_codec codec;
  bool read_only;       /* put and remove answer NOT_SUPPORTED; what is not there is not made */
  uint64_t max_bytes;   /* bytes of values that the tier takes; 0: no bound of gm's */
  uint64_t timeout_ns;  /* a tier that waits for others, such as a server, gives up after this; 0: the tier's own */
  const char *password; /* for a server that wants one; borrowed during gm_tier_open; NULL: none */
  const void *own;      /* parameters of a tier of the host program; borrowed during gm_tier_open */
} gm_tier_params;

typedef struct gm_tier_stats {
  uint32_t struct_size;
  uint64_t values;       /* that the tier has now */
  uint64_t value_bytes;  /* their bytes, as they were put */
  uint64_t stored_bytes; /* bytes that they take in the tier, with all that the tier keeps beside them */
  uint64_t puts, gets, misses, removes;
  uint64_t read_bytes, written_bytes; /* through the tier's file or connection, in all */
  uint64_t damaged;                   /* values that failed their checksum, in all */
  uint64_t retries;                   /* calls that were tried again, such as after a lost connection */
} gm_tier_stats;

/* Sees one value of a listing. The key is borrowed during the call. It may not call the tier, and must not throw.
 * False: no more. */
typedef bool (*gm_tier_visit)(void *user, const void *key, size_t key_bytes, uint64_t value_bytes);

/* How a tier keeps one value. */
typedef struct gm_tier_value_info {
  uint32_t struct_size;
  gm_tier_codec codec;   /* NONE: as it was put. Other codecs: a part of it, or all of it, is packed so. Never AUTO */
  uint64_t bytes;        /* as it was put */
  uint64_t stored_bytes; /* in the tier, without what the tier keeps beside them */
} gm_tier_value_info;

/* The abilities of a tier. gm checks arguments before it calls: keys have 1 to GM_TIER_KEY_MOST bytes, sums do not
 * overflow, ranges lie inside a value. Calls may come from several threads at once. No call may end the process, or
 * throw.
 *
 * Numbers and meanings are those of the calls below, which have the same names. */
typedef struct gm_tier_ops {
  uint32_t struct_size;
  uint32_t abi;     /* GM_TIER_ABI */
  const char *name; /* 1 to 31 characters: a-z, 0-9, '_', '-'; copied */
  gm_status (*open)(gm_context *ctx, const char *where, const gm_tier_params *params, void **out_tier, gm_error *err);
  void (*close)(void *tier);
  gm_status (*put)(void *tier, const void *key, size_t key_bytes, const gm_tier_part *parts, size_t count,
                   gm_error *err);
  gm_status (*value_open)(void *tier, const void *key, size_t key_bytes, void **out_value, uint64_t *out_bytes,
                          gm_error *err);
  gm_status (*value_read)(void *tier, void *value, uint64_t offset, void *dst, uint64_t bytes, gm_error *err);
  void (*value_close)(void *tier, void *value);
  gm_status (*remove)(void *tier, const void *key, size_t key_bytes, gm_error *err);
  gm_status (*list)(void *tier, const void *prefix, size_t prefix_bytes, gm_tier_visit visit, void *user,
                    gm_error *err);
  gm_status (*flush)(void *tier, gm_error *err);
  void (*stats)(void *tier, gm_tier_stats *out);                        /* gm has filled it with zeros */
  void (*value_info)(void *tier, void *value, gm_tier_value_info *out); /* gm has filled it for a value that is not
                                                                           packed. NULL: none is */
  void (*reserved[3])(void);                                            /* NULL */
} gm_tier_ops;

/* Makes a kind of tier known to a context. gm copies the table. Errors: BUSY: the context has one of that name.
 * INVALID_ARGUMENT: a function or the name is missing or wrong, or `reserved` is set. ABI_MISMATCH, OUT_OF_HOST_MEMORY,
 * FORKED. */
GM_API gm_status gm_tier_register(gm_context *ctx, const gm_tier_ops *ops, gm_error *err);

typedef struct gm_tier gm_tier; /* an open tier; it keeps its context from being destroyed */

/* Opens a tier of a kind that the context knows. `where` says which one: a path for "disk", an address for "remote",
 * a name for reports for "host". `params` may be NULL. The caller closes *out. Errors: NOT_FOUND: no such kind; the
 * message lists those there are. Other errors are the tier's. */
GM_API gm_status gm_tier_open(gm_context *ctx, const char *kind, const char *where, const gm_tier_params *params,
                              gm_tier **out, gm_error *err);

/* Flushes and closes a tier. NULL is GM_OK. BUSY: values are open, and nothing has changed. Any other failure is the
 * flush's, and the tier is closed. In a forked child the call gives back host memory, writes nothing, and is GM_OK. */
GM_API gm_status gm_tier_close(gm_tier *tier, gm_error *err);

/* Puts a value, which replaces an earlier one of the key. On GM_OK the tier has all of it. After a failure the tier
 * has the earlier value or none, never a part. A server that did not answer may have the new one. Errors: OVER_LIMIT:
 * max_bytes. NOT_SUPPORTED: read_only. IO: the disk is full, or the server. TIMEOUT, INVALID_ARGUMENT,
 * OUT_OF_HOST_MEMORY, FORKED. */
GM_API gm_status gm_tier_put(gm_tier *tier, const void *key, size_t key_bytes, const gm_tier_part *parts, size_t count,
                             gm_error *err);

typedef struct gm_tier_value gm_tier_value; /* a value that is being read: it stays as it was when it was opened */

/* Opens the value of a key, and says how many bytes it has. The caller closes *out. NOT_FOUND: there is none.
 * DAMAGED: there is one, and it is not whole. Other errors as for gm_tier_put. */
GM_API gm_status gm_tier_value_open(gm_tier *tier, const void *key, size_t key_bytes, gm_tier_value **out,
                                    uint64_t *out_bytes, gm_error *err);
/* Reads bytes of a value, and checks them against their checksum. After a failure `dst` may hold anything. DAMAGED:
 * the bytes are not those that were put. INVALID_ARGUMENT: the range reaches beyond the value. */
GM_API gm_status gm_tier_value_read(gm_tier_value *value, uint64_t offset, void *dst, uint64_t bytes, gm_error *err);
/* Fills `out` with how the tier keeps an open value. The caller sets out->struct_size. INVALID_ARGUMENT, FORKED. */
GM_API gm_status gm_tier_value_describe(const gm_tier_value *value, gm_tier_value_info *out, gm_error *err);
/* Closes a value. NULL is allowed. */
GM_API void gm_tier_value_close(gm_tier_value *value);

/* Removes a value. NOT_FOUND: there is none. Values that are open can still be read. */
GM_API gm_status gm_tier_remove(gm_tier *tier, const void *key, size_t key_bytes, gm_error *err);

/* Visits the values whose keys begin with `prefix`, in any order; NULL and 0 bytes: all. Values that come or go
 * meanwhile may or may not be visited. */
GM_API gm_status gm_tier_list(gm_tier *tier, const void *prefix, size_t prefix_bytes, gm_tier_visit visit, void *user,
                              gm_error *err);

/* On GM_OK all values that were put before survive a crash, unless the tier is GM_TIER_DURABLE_NEVER. IO: the disk did
 * not take what was written. Then nobody knows what it has. A disk tier answers IO to every later put, remove and flush
 * until it was closed and opened; it can be read meanwhile. Other errors as for gm_tier_put. */
GM_API gm_status gm_tier_flush(gm_tier *tier, gm_error *err);

/* Fills `out` with the figures of a tier. The caller sets out->struct_size. */
GM_API gm_status gm_tier_get_stats(gm_tier *tier, gm_tier_stats *out, gm_error *err);
/* Returns the kind of a tier, such as "disk". Borrowed from the tier. */
GM_API const char *gm_tier_kind(const gm_tier *tier);

GM_END_DECLS

#endif
