/* Which memory types may serve a request: the part of a gm_request that names properties and types. */
#ifndef GM_CORE_DEVICE_TYPE_WISH_H
#define GM_CORE_DEVICE_TYPE_WISH_H

#include "core/device/device.h"
#include "gm/request.h"

/* Plain data. Ordinary requests have 0 in both members. Memory of different wishes is kept apart. */
typedef struct gm__type_wish {
  uint32_t types;  /* bit 1 << index for each type that may serve; 0: no type is excluded */
  uint32_t prefer; /* gm_memory_flags that not all of these types have; 0: they are alike */
} gm__type_wish;

static inline bool gm__type_wish_is_same(const gm__type_wish *a, const gm__type_wish *b) {
  return a->types == b->types && a->prefer == b->prefer;
}

static inline bool gm__type_wish_allows(const gm__type_wish *wish, uint32_t type) {
  return !wish->types || (type < 32 && wish->types >> type & 1);
}

/* How many of the preferred flags the type has. */
static inline uint32_t gm__type_wish_count(const gm__type_wish *wish, const gm_memory_type *type) {
  return (uint32_t)__builtin_popcount(wish->prefer & type->flags);
}

/* Checks the members `require`, `prefer` and `memory_types`. INVALID_ARGUMENT names what is wrong. */
gm_status gm__type_wish_check(const gm_device *device, const gm_request *request, gm_error *err);

/* The wish of a checked request. `may`: bits of the types that `memory_types` names and that serve by must_be, flags
 * and sharing. `ordinary`: as if it named all. A wish that makes no difference is left out. False: no type serves. */
bool gm__type_wish_read(const gm_device *device, const gm_request *request, uint32_t ordinary, uint32_t may,
                        gm__type_wish *out);

/* Writes the names of flags, such as "GM_MEMORY_SYSTEM and GM_MEMORY_HOST_CACHED". It ends the text, and cuts it. */
void gm__memory_flags_text(uint32_t flags, char *text, size_t capacity);

/* The preferred flags that no type has which serves. `may` as above. */
uint32_t gm__type_wish_missing(const gm_device *device, const gm_request *request, uint32_t may);

#endif
