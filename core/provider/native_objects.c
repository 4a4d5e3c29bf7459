#include "core/provider/native_objects.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"

static const gm_services *objects_services(const gm__provider *provider) {
  return gm__context_services(provider->device->ctx);
}

/* The place of the first object that is not before the range. */
static uint32_t objects_place(const struct gm__native_objects *objects, uint64_t offset, uint64_t bytes) {
  uint32_t low = 0, high = objects->count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    const gm__native_object *at = &objects->list[middle];
    const bool before = at->offset < offset || (at->offset == offset && at->bytes < bytes);
    low = before ? middle + 1 : low;
    high = before ? high : middle;
  }
  return low;
}

gm__native_object *gm__native_objects_find(const gm__allocation *allocation, uint64_t offset, uint64_t bytes,
                                           uint64_t owner) {
  const struct gm__native_objects *objects = allocation->objects;
  const uint32_t place = objects ? objects_place(objects, offset, bytes) : 0;
  if (!objects || place == objects->count) return NULL;
  gm__native_object *found = &objects->list[place];
  if (found->offset != offset || found->bytes != bytes) return NULL;
  found->owner = owner;
  found->gone_at = 0;
  found->again = true;
  return found;
}

/* Makes room for one more. */
static bool objects_reserve(const gm_services *services, gm__native_object **list, uint32_t count, uint32_t *capacity) {
  if (count < *capacity) return true;
  const uint32_t more = *capacity ? *capacity * 2 : 8;
  if (!gm__grow(services, list, *capacity * sizeof **list, more * sizeof **list)) return false;
  *capacity = more;
  return true;
}

bool gm__native_objects_add(gm__provider *provider, gm__allocation *allocation, const gm__native_object *object) {
  const gm_services *services = objects_services(provider);
  if (!allocation->objects) allocation->objects = gm__alloc(services, sizeof *allocation->objects);
  struct gm__native_objects *objects = allocation->objects;
  if (!objects || !objects_reserve(services, &objects->list, objects->count, &objects->capacity)) return false;
  const uint32_t place = objects_place(objects, object->offset, object->bytes);
  memmove(&objects->list[place + 1], &objects->list[place], (objects->count - place) * sizeof *objects->list);
  objects->list[place] = *object;
  objects->count++;
  provider->object_count++;
  return true;
}

void gm__native_objects_take(gm__provider *provider, gm__allocation *allocation, gm__native_leaving *leaving) {
  const gm_services *services = objects_services(provider);
  struct gm__native_objects *objects = allocation->objects;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < objects->count; i++) {
    const gm__native_object *object = &objects->list[i];
    if (!object->busy && objects_reserve(services, &leaving->list, leaving->count, &leaving->capacity)) {
      leaving->list[leaving->count++] = *object;
    } else {
      objects->list[kept++] = *object;
    }
  }
  provider->object_count -= objects->count - kept;
  objects->count = kept;
}

void gm__native_view_destroy(const gm__provider *provider, uint64_t view) {
  GM__UNCANCELLED();
  const gm_device *device = provider->device;
  const bool abandon = gm__context_forked(device->ctx) || atomic_load(&device->lost);
  device->ops->view_destroy(device->handle, view, abandon ? GM_CLOSE_ABANDON : GM_CLOSE_NORMAL, NULL);
}

void gm__native_objects_return(const gm__provider *provider, gm__native_leaving *leaving) {
  for (uint32_t i = 0; i < leaving->count; i++) gm__native_view_destroy(provider, leaving->list[i].view);
  gm__release(objects_services(provider), leaving->list, leaving->capacity * sizeof *leaving->list);
}

void gm__native_objects_end(gm__provider *provider, gm__allocation *allocation) {
  const gm_services *services = objects_services(provider);
  struct gm__native_objects *objects = allocation->objects;
  if (!objects) return;
  for (uint32_t i = 0; i < objects->count; i++) gm__native_view_destroy(provider, objects->list[i].view);
  atomic_fetch_sub(&provider->object_count, objects->count);
  gm__release(services, objects->list, objects->capacity * sizeof *objects->list);
  gm__release(services, objects, sizeof *objects);
  allocation->objects = NULL;
}
