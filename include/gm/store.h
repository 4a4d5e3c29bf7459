/* A store keeps values under keys that look like paths. Values that are in use lie on a device. When its memory runs
 * short, those that nobody uses go down: to host memory, then to tiers, one after the other. A get brings them back.
 * Nothing is dropped above until the place below has it. A store is an evictor of its device: values go down also for
 * requests that are not the store's.
 *
 * A key is a C string of 1 to GM_STORE_KEY_MOST bytes. "/a//b/./c/" and "a/b/x/../c" are the key "a/b/c". A key that
 * leads above the root by "..", or that is the root itself, is INVALID_ARGUMENT. Every call is thread-safe. */
#ifndef GM_STORE_H
#define GM_STORE_H

#include "gm/tier.h"
#include "gm/value.h"

GM_BEGIN_DECLS

enum { GM_STORE_KEY_MOST = 4096, GM_STORE_TIERS_MOST = 8 };

typedef struct gm_store gm_store;

/* When values leave the device. */
typedef enum gm_store_keep {
  GM_STORE_KEEP_CONFIG = 0, /* the key gpu.memory.keep_in_vram: true means LONG, false SHORT */
  GM_STORE_KEEP_LONG = 1,   /* when memory runs short or a bound of the store is reached */
  GM_STORE_KEEP_SHORT = 2   /* at the next call that puts or gets, if nobody refers to them; not
                               persistent ones */
} gm_store_keep;

/* Zero-initialised with struct_size and pool set, it is a store without tiers. */
typedef struct gm_store_params {
  uint32_t struct_size;
  int32_t priority;      /* of the store among the evictors of the device (gm/evictor.h) */
  gm_pool *pool;         /* of the device; it is not destroyed before the store */
  gm_tier *const *tiers; /* nearest first. The array is copied. The tiers must live as long as the store, and hold
                            nothing but values of stores */
  size_t tier_count;
  uint64_t max_device_bytes; /* of values on the device; 0 or GM_NO_LIMIT: what the pool gives */
  uint64_t max_host_bytes;   /* of values in host memory; 0 or GM_NO_LIMIT: no bound. GM_NO_BYTES: none */
  gm_fallback fallback;      /* for a value that finds no room although all others went down */
  gm_store_keep keep;
  uint64_t max_pinned_bytes;  /* of values in pinned host memory, between device and host; 0 or GM_NO_BYTES: none. A
                                 device that has no such memory leaves it out. The store has a pool of its own for it,
                                 which keeps up to as many idle bytes until the store ends */
  uint64_t max_device_values; /* how many values lie on the device, those of 0 bytes apart. 0: the key
                                 gpu.memory.cache_size, as it is at each call, where somebody set it; else no bound.
                                 GM_NO_LIMIT: no bound. GM_NO_BYTES: none */
} gm_store_params;

/* The figures of a store. Values that lie in several places count in each, and values of several keys count for each
 * key. */
typedef struct gm_store_stats {
  uint32_t struct_size;
  uint64_t keys;
  uint64_t device_bytes, host_bytes; /* of values in these places */
  uint64_t puts, gets, misses;
  uint64_t went_down, came_back; /* values that left the device, and that returned to it */
  uint64_t tier_failures;        /* of tiers that were to take a value, which therefore stayed where it was */
  uint64_t allocated_bytes;      /* of the pool: handed out now */
  uint64_t reserved_bytes;       /* of the pool: taken from the driver now */
  uint64_t peak_reserved_bytes;  /* of the pool: at most */
  uint64_t pinned_bytes;         /* of values in pinned host memory */
  uint64_t device_values;        /* values on the device, those of 0 bytes apart */
} gm_store_stats;

/* Makes a store. Keys that its tiers already have are there at once. The caller destroys *out. Errors:
 * INVALID_ARGUMENT, OUT_OF_HOST_MEMORY, FORKED, and those of gm_tier_list. */
GM_API gm_status gm_store_create(const gm_store_params *params, gm_store **out, gm_error *err);
/* Destroys a store. NULL is GM_OK. Values in the tiers stay there; gm_store_flush before writes the rest. Values that
 * the caller holds live on. No other thread may use the store. In a forked child it gives back host memory. */
GM_API gm_status gm_store_destroy(gm_store *store, gm_error *err);

/* Puts a value, which replaces an earlier one of the key. The store retains it. If a tensor of it lies in plain host
 * memory, the store makes a copy on the device instead. Errors: INVALID_ARGUMENT: the key, or a value of another
 * context; those of gm_value_tensor, after values of other keys went down; OUT_OF_HOST_MEMORY, FORKED. The message of
 * OVER_LIMIT and OUT_OF_DEVICE_MEMORY names the places below that are full. */
GM_API gm_status gm_store_put(gm_store *store, const char *key, gm_value *value, gm_error *err);
/* Puts a tensor from host memory, which is copied to the device. Errors as for gm_value_tensor and gm_store_put. */
GM_API gm_status gm_store_put_tensor(gm_store *store, const char *key, const gm_tensor_desc *desc, const void *data,
                                     gm_error *err);
/* Gets the value of a key, on the device if there is room. The caller releases *out. The value stays as it is while it
 * is held, also where the key is replaced or deleted. One thread brings a value back; others that want it wait. A
 * value that fell back to host memory goes to the device now if there is room. Tensors stay that are locked, and those
 * whose block a holder of the value got without a lock. NOT_FOUND: there is no such key, which the message names.
 * DAMAGED, FORMAT: the bytes of a tier are not those of a value. Other errors are those of gm_value_tensor and of the
 * tiers. */
GM_API gm_status gm_store_get(gm_store *store, const char *key, gm_value **out, gm_error *err);
/* Tells in *out whether the store has a key. It moves nothing. Errors: INVALID_ARGUMENT, FORKED. */
GM_API gm_status gm_store_exists(gm_store *store, const char *key, bool *out, gm_error *err);

/* Deletes a key, in the tiers too. NOT_FOUND: there is none. After a failure of a tier the key is still there. A tier
 * that did not answer (TIMEOUT, IO) may have removed the value all the same. If no other place has it, the next call
 * that wants the value answers NOT_FOUND, and the key is gone. */
GM_API gm_status gm_store_delete(gm_store *store, const char *key, gm_error *err);
/* Gives the value of one key to another key, too, whose earlier value is replaced. Errors as for get and put. */
GM_API gm_status gm_store_copy(gm_store *store, const char *from, const char *to, gm_error *err);
/* Gives `to` the value that `from` has in one moment, and deletes `from`. A value that is put to `from` later stays
 * there. Others may see both keys meanwhile, and after a failure of a tier. A crash in the middle loses nothing that
 * was flushed: the lowest tier gets the value under `to` before it removes that under `from`. A tier without room for
 * both removes it at once. Errors as for get, put and delete. */
GM_API gm_status gm_store_move(gm_store *store, const char *from, const char *to, gm_error *err);

/* Puts all values or, after a failure, none. A key that comes twice gets its last value. Errors as for gm_store_put. */
GM_API gm_status gm_store_put_many(gm_store *store, const char *const *keys, gm_value *const *values, size_t count,
                                   gm_error *err);
/* Gets all values or, after a failure, none. The caller releases each of out[0, count). Errors as for gm_store_get. */
GM_API gm_status gm_store_get_many(gm_store *store, const char *const *keys, size_t count, gm_value **out,
                                   gm_error *err);
/* Deletes all keys, or none if one is missing: NOT_FOUND. After a failure of a tier, keys before the one that failed
 * are deleted. */
GM_API gm_status gm_store_delete_many(gm_store *store, const char *const *keys, size_t count, gm_error *err);

/* Sees one key, borrowed during the call. It may call the store, and must not throw. False: no more. */
typedef bool (*gm_store_visit)(void *user, const char *key);

/* Visits the keys at and below `prefix`, as they were when the call began, in the order of their bytes. NULL, "" and
 * "/": all. The prefix "a" has "a" and "a/b", but not "ab". Errors: INVALID_ARGUMENT, OUT_OF_HOST_MEMORY, FORKED. */
GM_API gm_status gm_store_list(gm_store *store, const char *prefix, gm_store_visit visit, void *user, gm_error *err);
/* Declares a prefix, which may be without keys. It lives as long as the store. Again: GM_OK. Errors as for
 * gm_store_exists, OUT_OF_HOST_MEMORY. */
GM_API gm_status gm_store_declare_prefix(gm_store *store, const char *prefix, gm_error *err);
/* Visits the prefixes that were declared, at and below `prefix`, as gm_store_list does with keys. */
GM_API gm_status gm_store_list_prefixes(gm_store *store, const char *prefix, gm_store_visit visit, void *user,
                                        gm_error *err);
/* Deletes the keys and declared prefixes at and below `prefix`; NULL, "" and "/": all. It goes on after a failure of a
 * tier, and answers the first. */
GM_API gm_status gm_store_clear(gm_store *store, const char *prefix, gm_error *err);

/* Takes values that nobody uses down from the device, until `bytes` are free there or there are no more. *out_bytes
 * (NULL is allowed) is what was freed: a value of several keys is free when the last of them went down. Errors:
 * INVALID_ARGUMENT, FORKED. */
GM_API gm_status gm_store_demote(gm_store *store, uint64_t bytes, uint64_t *out_bytes, gm_error *err);
/* Takes the value of one key down from the device. GM_OK also where it is not there. BUSY: somebody holds it.
 * NOT_FOUND: there is no such key. Other errors are those of the tiers, and the value stays. */
GM_API gm_status gm_store_demote_key(gm_store *store, const char *key, gm_error *err);
/* Says whether the value of a key is persistent: it leaves the device after all others of the store, and not because
 * of GM_STORE_KEEP_SHORT. A key stays so when its value is replaced. A new key is not, a copy and the target of a move
 * included. It moves nothing. Errors: NOT_FOUND: there is no such key; INVALID_ARGUMENT, FORKED. */
GM_API gm_status gm_store_set_persistent(gm_store *store, const char *key, bool persistent, gm_error *err);
/* On GM_OK the lowest tier has all values that were put before, and each tier that the store changed has flushed. So
 * after a crash no older value and no deleted key comes back. Values stay where they are. The call takes as long as
 * there are values that the lowest tier has not got. NOT_SUPPORTED: the store has no tier. Other errors are those of
 * the tiers. */
GM_API gm_status gm_store_flush(gm_store *store, gm_error *err);

/* ---- by count of users ---- */

/* Puts a value and sets the count of the key to 1, also where it was more. Errors as for gm_store_put. */
GM_API gm_status gm_store_allocate(gm_store *store, const char *key, gm_value *value, gm_error *err);
/* Adds one to the count of a key, and gets its value as gm_store_get does. Errors as for gm_store_get. */
GM_API gm_status gm_store_acquire(gm_store *store, const char *key, gm_value **out, gm_error *err);
/* Takes one from the count of a key. At 0 the key is deleted. GM_OK also where there is no such key, or its count is 0
 * because it was only put. Errors: INVALID_ARGUMENT, FORKED, and those of the tiers. */
GM_API gm_status gm_store_release(gm_store *store, const char *key, gm_error *err);

/* Fills `out` with the figures of a store. The caller sets out->struct_size. */
GM_API gm_status gm_store_get_stats(gm_store *store, gm_store_stats *out, gm_error *err);

GM_END_DECLS

#endif
