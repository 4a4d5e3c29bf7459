/* The head of every object of a context. In debug builds a destroyed object keeps its memory until its context goes:
 * a use after its end finds a mark there and is answered. Release builds give the memory back at once and check
 * nothing. */
#ifndef GM_CORE_CONTEXT_OBJECT_H
#define GM_CORE_CONTEXT_OBJECT_H

#include "core/base/inner.h"
#include "core/context/context.h"

typedef enum gm__kind { /* numbers that other memory is not likely to hold */
                        GM__KIND_DEAD = 0x676d0d00,
                        GM__KIND_DEVICE = 0x676d0d01,
                        GM__KIND_STREAM = 0x676d0d02,
                        GM__KIND_POOL = 0x676d0d03,
                        GM__KIND_BUFFER = 0x676d0d04,
                        GM__KIND_TRACKER = 0x676d0d05,
                        GM__KIND_MANAGED = 0x676d0d06,
                        GM__KIND_TIER = 0x676d0d07,
                        GM__KIND_WATCH = 0x676d0d08,
                        GM__KIND_VALUE = 0x676d0d09,
                        GM__KIND_STORE = 0x676d0d0a,
                        GM__KIND_CACHE = 0x676d0d0c,
                        GM__KIND_TENSOR_SETS = 0x676d0d0d,
                        GM__KIND_EVICTOR = 0x676d0d0e,
                        GM__KIND_RESERVATION = 0x676d0d0f,
                        GM__KIND_SCOPE = 0x676d0d10,
                        GM__KIND_VALUE_WATCH = 0x676d0d11,
                        GM__KIND_PIPELINE = 0x676d0d12,
                        GM__KIND_TRANSFER = 0x676d0d13,
                        GM__KIND_PAGES = 0x676d0d15,
                        GM__KIND_SLOTS = 0x676d0d16
} gm__kind;

/* First member of the object's struct, named `head`. */
typedef struct gm__object {
  uint32_t kind;
  uint32_t bytes;
  struct gm__object *next; /* of those that wait for the context's end */
} gm__object;

/* Zeroed memory for an object of that kind. NULL: no host memory. */
GM__INNER void *gm__object_new(gm_context *ctx, gm__kind kind, size_t bytes);

/* Zeroed memory of gm__alloc_plain, for an object that lives for a moment. */
void *gm__object_new_plain(gm_context *ctx, gm__kind kind, size_t bytes);

/* The end of an object. In a forked child this takes no lock. */
GM__INNER void gm__object_end(gm_context *ctx, gm__object *object);

/* The end of an object whose name stays known as dead, in release builds, too. Its memory goes with the context. */
GM__INNER void gm__object_keep(gm_context *ctx, gm__object *object);

/* False in debug builds when `object` is of another kind or was destroyed. `object` is not NULL. */
static inline bool gm__object_is(const gm__object *object, gm__kind kind) {
#ifdef NDEBUG
  (void)object, (void)kind;
  return true;
#else
  return object->kind == (uint32_t)kind;
#endif
}

/* At the context's end: give back the objects that wait. */
void gm__objects_release(gm_context *ctx);

#endif
