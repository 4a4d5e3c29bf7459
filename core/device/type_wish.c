#include "core/device/type_wish.h"

#include <stdio.h>
#include <string.h>

#include "core/base/error.h"

static const struct wish_flag {
  uint32_t flag;
  const char *name;
} wish_flags[] = {{GM_MEMORY_DEVICE_LOCAL, "GM_MEMORY_DEVICE_LOCAL"},
                  {GM_MEMORY_HOST_VISIBLE, "GM_MEMORY_HOST_VISIBLE"},
                  {GM_MEMORY_HOST_COHERENT, "GM_MEMORY_HOST_COHERENT"},
                  {GM_MEMORY_HOST_CACHED, "GM_MEMORY_HOST_CACHED"},
                  {GM_MEMORY_HOST_POINTER, "GM_MEMORY_HOST_POINTER"},
                  {GM_MEMORY_PINNED, "GM_MEMORY_PINNED"},
                  {GM_MEMORY_MANAGED, "GM_MEMORY_MANAGED"},
                  {GM_MEMORY_APART, "GM_MEMORY_APART"},
                  {GM_MEMORY_WRITE_COMBINED, "GM_MEMORY_WRITE_COMBINED"},
                  {GM_MEMORY_LAZY, "GM_MEMORY_LAZY"},
                  {GM_MEMORY_SYSTEM, "GM_MEMORY_SYSTEM"},
                  {GM_MEMORY_PERSISTENT_MAP, "GM_MEMORY_PERSISTENT_MAP"}};

enum { WISH_FLAG_COUNT = sizeof wish_flags / sizeof *wish_flags };

static const uint32_t wish_never = GM_MEMORY_MANAGED | GM_MEMORY_APART; /* no request gets such memory by its flags */

void gm__memory_flags_text(uint32_t flags, char *text, size_t capacity) {
  size_t length = 0;
  text[0] = 0;
  for (size_t i = 0; i < WISH_FLAG_COUNT && length < capacity; i++) {
    if (!(flags & wish_flags[i].flag)) continue;
    const int more = snprintf(text + length, capacity - length, "%s%s", length ? " and " : "", wish_flags[i].name);
    if (more > 0) length += (size_t)more;
  }
}

static gm_status wish_check_flags(uint32_t flags, const char *member, gm_error *err) {
  uint32_t known = 0;
  char names[64];
  for (size_t i = 0; i < WISH_FLAG_COUNT; i++) known |= wish_flags[i].flag;
  if (flags & ~known) return gm__bad_argument(err, "gm_alloc", "`%s` has unknown bits: 0x%x", member, flags & ~known);
  if (!(flags & wish_never)) return GM_OK;
  gm__memory_flags_text(flags & wish_never, names, sizeof names);
  return gm__bad_argument(err, "gm_alloc",
                          "`%s`: no request gets %s by it: name types in `memory_types`, or see "
                          "gm/managed.h",
                          member, names);
}

gm_status gm__type_wish_check(const gm_device *device, const gm_request *request, gm_error *err) {
  gm_status status = wish_check_flags(request->require, "require", err);
  if (!status) status = wish_check_flags(request->prefer, "prefer", err);
  if (status) return status;
  if (device->type_count < 32 && request->memory_types >> device->type_count) {
    return gm__bad_argument(err, "gm_alloc", "`memory_types` is 0x%x: %s has %u types", request->memory_types,
                            device->info.name, device->type_count);
  }
  for (uint32_t i = 0; i < device->type_count; i++) {
    if (request->memory_types >> i & 1 && device->types[i].flags & GM_MEMORY_MANAGED) {
      return gm__bad_argument(err, "gm_alloc", "`memory_types`: type %u is GM_MEMORY_MANAGED: see gm/managed.h", i);
    }
  }
  return GM_OK;
}

/* The types of `may` that have all required flags. */
static uint32_t wish_types(const gm_device *device, const gm_request *request, uint32_t may) {
  const uint32_t mapped = request->flags & GM_MAPPED ? GM_MEMORY_PERSISTENT_MAP : 0;
  const uint32_t require = request->require | mapped;
  uint32_t types = 0;
  for (uint32_t i = 0; i < device->type_count; i++) {
    if (!(require & ~device->types[i].flags)) types |= UINT32_C(1) << i;
  }
  return types & may;
}

/* Those of the flags that some of the types have. `all`: those that every one of them has. */
static uint32_t wish_had(const gm_device *device, uint32_t types, uint32_t flags, uint32_t *all) {
  uint32_t some = 0;
  *all = flags;
  for (uint32_t i = 0; i < device->type_count; i++) {
    if (!(types >> i & 1)) continue;
    some |= device->types[i].flags & flags;
    *all &= device->types[i].flags;
  }
  return some;
}

bool gm__type_wish_read(const gm_device *device, const gm_request *request, uint32_t ordinary, uint32_t may,
                        gm__type_wish *out) {
  const uint32_t types = wish_types(device, request, may);
  uint32_t all;
  const uint32_t some = wish_had(device, types, request->prefer, &all);
  out->types = types == ordinary ? 0 : types;
  out->prefer = some & ~all;
  return types != 0;
}

uint32_t gm__type_wish_missing(const gm_device *device, const gm_request *request, uint32_t may) {
  uint32_t all;
  return request->prefer & ~wish_had(device, wish_types(device, request, may), request->prefer, &all);
}
