/* Inside of a value: one node of its tree. */
#ifndef GM_CORE_STORE_VALUE_H
#define GM_CORE_STORE_VALUE_H

#include <stdatomic.h>

#include "core/base/error.h"
#include "core/base/thread.h"
#include "core/context/object.h"
#include "core/staging/range.h"
#include "gm/value.h"

typedef struct gm__value_name {
  const char *text;
  size_t index;
} gm__value_name;

/* A store that waits until nobody else holds some values, and its lock. It lives until the context ends, since a holder
 * may come to it late. */
typedef struct gm__value_watch {
  gm__object head;
  gm__mutex lock;
  bool used;
  void (*wake)(void *store, gm_value *value); /* a holder goes: it ends the watch. REQUIRES: lock */
  void *store;
} gm__value_watch;

#define GM__VALUE_WATCHED (UINT64_C(1) << 63) /* a bit of `references`: each release goes by the watch */

struct gm_value {
  gm__object head;
  gm_context *ctx;
  _Atomic uint64_t references; /* gm__value_references */
  _Atomic uint64_t stored;     /* of these: of stores */
  gm__value_watch *_Atomic watch;
  void *aside; /* the store's, which watches. Under its lock */
  gm_value_form form;
  uint32_t depth, nodes;
  uint64_t bytes;    /* of all tensors */
  _Atomic bool fell; /* a tensor that the store made may lie off the device, because that was full */

  /* a tensor */
  gm_dtype dtype;
  uint32_t rank;
  gm_buffer *buffer; /* NULL: `host`, or no bytes */
  uint64_t offset;
  unsigned char *host;

  /* a list or dictionary */
  size_t count;
  gm_value **items;
  char **names;            /* of a dictionary, in its order */
  gm__value_name *by_name; /* sorted */

  uint64_t shape[]; /* of a tensor: `rank` dimensions */
};

/* INVALID_ARGUMENT for NULL or a released value, FORKED, or GM_OK. Fills `err`. */
gm_status gm__value_check(const gm_value *value, const char *op, gm_error *err);

/* gm_value_release. The result is the bytes of devices that this freed: none while others hold the value, its parts or
 * their buffers. */
uint64_t gm__value_release(gm_value *value, gm_stream *stream);

static inline uint64_t gm__value_references(const gm_value *value) {
  return atomic_load(&value->references) & ~GM__VALUE_WATCHED;
}

static inline bool gm__value_is_held(const gm_value *value) {
  return gm__value_references(value) > atomic_load(&value->stored);
}

/* Watch a value until a holder goes. False: nobody but stores holds it, or another store watches it. REQUIRES: the
 * watch's lock, for both. */
bool gm__value_watch_begin(gm_value *value, gm__value_watch *watch);
void gm__value_watch_end(gm_value *value);

/* A node with one reference, room for `rank` dimensions, and nothing in it. NULL: no host memory. */
gm_value *gm__value_new(gm_context *ctx, gm_value_form form, uint32_t rank);

/* The description of a tensor. */
gm_tensor_desc gm__value_desc(const gm_value *value);

/* Check a caller's description, and copy it in gm's size. Members beyond the rank are 0 then. */
gm_status gm__tensor_read(const gm_tensor_desc *desc, gm_tensor_desc *out, uint64_t *out_bytes, const char *op,
                          gm_error *err);

/* A tensor of a checked description with memory for its bytes, which the caller fills, in *out_bytes. */
gm_status gm__value_host_tensor(gm_context *ctx, const gm_tensor_desc *desc, uint64_t bytes, gm_value **out,
                                gm_error *err);

/* A tensor of a checked description in memory of `pool`, written from host memory. */
gm_status gm__value_pool_tensor(gm_pool *pool, const gm_tensor_desc *desc, uint64_t bytes, const gm__transfer *from,
                                gm_fallback fallback, gm_stream *stream, gm_value **out, gm_error *err);

#endif
