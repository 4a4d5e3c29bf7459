/* Native objects for ranges of a driver allocation: sub-buffers, VkBuffers at an offset. They stay with the allocation,
 * so the next block at the same place finds them. When the allocation goes back, they go first. */
#ifndef GM_CORE_PROVIDER_NATIVE_OBJECTS_H
#define GM_CORE_PROVIDER_NATIVE_OBJECTS_H

#include "core/provider/provider.h"

typedef struct gm__native_object {
  uint64_t offset, bytes; /* in the allocation's memory */
  uint64_t view;          /* the backend's; owned */
  uint64_t owner;         /* gm__native_owner of the block that asked for it last */
  uint64_t gone_at;       /* a time at which that block was gone already; 0: none is known (gm__order_now) */
  bool again;             /* a block asked for it again since the last sweep, or since it was made */
  bool live, busy;        /* for a sweep: that block is still there; the object must stay */
} gm__native_object;

struct gm__native_objects {
  gm__native_object *list; /* by offset, then by bytes */
  uint32_t count, capacity;
};

/* Views on their way to the driver. */
typedef struct gm__native_leaving {
  gm__native_object *list;
  uint32_t count, capacity;
} gm__native_leaving;

static inline uint64_t gm__native_owner(uint32_t number, uint32_t check) { return (uint64_t)number << 32 | check; }

/* The object of exactly that range, which becomes the owner's; NULL: there is none. REQUIRES: provider lock. */
gm__native_object *gm__native_objects_find(const gm__allocation *allocation, uint64_t offset, uint64_t bytes,
                                           uint64_t owner);

/* Adds an object, which the allocation owns from then on. False without host memory. REQUIRES: provider lock. */
bool gm__native_objects_add(gm__provider *provider, gm__allocation *allocation, const gm__native_object *object);

/* Moves the objects that are not `busy` to *leaving, as far as host memory suffices. REQUIRES: provider lock. */
void gm__native_objects_take(gm__provider *provider, gm__allocation *allocation, gm__native_leaving *leaving);

/* Destroys the objects on the list. REQUIRES: no lock. */
void gm__native_objects_return(const gm__provider *provider, gm__native_leaving *leaving);

/* Destroys a view. */
void gm__native_view_destroy(const gm__provider *provider, uint64_t view);

/* Destroys all objects of an allocation that nobody uses any more. REQUIRES: no other thread knows the allocation. */
void gm__native_objects_end(gm__provider *provider, gm__allocation *allocation);

#endif
