/* Driver allocations: which memory type, and what is charged to whom. */
#include "core/device/device_alloc.h"

#include "core/base/error.h"
#include "core/device/memory_answer.h"

/* The host reads a card's memory slowly, and host memory that it does not cache, too. */
static bool alloc_reads_slowly(const gm_memory_type *type, const gm__device_request *request) {
  return request->usage & GM_USAGE_READBACK && request->must_be != GM_DEVICE_LOCAL &&
         !(type->flags & (GM_MEMORY_HOST_CACHED | GM_MEMORY_HOST_POINTER));
}

/* May memory of this type serve the request? */
static bool alloc_type_fits(const gm_device *device, uint32_t index, const gm__device_request *request) {
  const gm_memory_type *type = &device->types[index];
  if (((type->flags & GM_MEMORY_MANAGED) != 0) != request->managed) return false;
  if (request->managed) return true;
  if (!gm__type_wish_allows(&request->wish, index)) return false;
  if (type->flags & GM_MEMORY_APART && !request->wish.types) return false;
  if ((request->flags & GM_HOST_VISIBLE) && !(type->flags & (GM_MEMORY_HOST_VISIBLE | GM_MEMORY_HOST_POINTER))) {
    return false;
  }
  if (request->share && !(type->share_kinds >> request->share & 1)) return false;
  bool local = (type->flags & GM_MEMORY_DEVICE_LOCAL) != 0;
  if (request->beside_device) return !local;
  return request->must_be != GM_DEVICE_LOCAL || device->info.unified || local;
}

uint32_t gm__device_types(const gm_device *device, const gm__device_request *request) {
  uint32_t types = 0;
  for (uint32_t i = 0; i < device->type_count; i++) {
    if (alloc_type_fits(device, i, request)) types |= UINT32_C(1) << i;
  }
  return types;
}

bool gm__device_has_host_types_only(const gm_device *device, const gm__device_request *request) {
  for (uint32_t i = 0; i < device->type_count; i++) {
    const bool host = (device->types[i].flags & GM_MEMORY_HOST_POINTER) != 0;
    if (!host && alloc_type_fits(device, i, request)) return false;
  }
  return true;
}

static bool alloc_type_is_own(const gm_device *device, uint32_t index) {
  return device->info.unified || device->types[index].flags & (GM_MEMORY_DEVICE_LOCAL | GM_MEMORY_MANAGED);
}

bool gm__device_takes_own(const gm_device *device, const gm__device_request *request) {
  for (uint32_t i = 0; i < device->type_count; i++) {
    if (alloc_type_is_own(device, i) && alloc_type_fits(device, i, request)) return true;
  }
  return false;
}

bool gm__device_is_charged(const gm_device *device, const gm_memory *memory) {
  if (memory->wrapped) return false;
  return memory->type >= device->type_count || alloc_type_is_own(device, memory->type);
}

static gm_status alloc_too_large(const gm__device_request *request, uint64_t most, gm_error *err) {
  return gm__fail(err, GM_ERR_ALLOCATION_TOO_LARGE, "memory_alloc",
                  "%llu bytes are more than the %llu that the driver allows for one allocation: ask for smaller pieces "
                  "(GM_ALLOW_SPANS makes one block of several)",
                  (unsigned long long)request->bytes, (unsigned long long)most);
}

static uint32_t alloc_flags(uint32_t flags) {
  return (flags & GM_COMMIT ? GM_ALLOC_COMMIT : 0u) | (flags & GM_DEDICATED ? GM_ALLOC_DEDICATED : 0u);
}

static gm_status alloc_of_type(gm_device *device, uint32_t index, const gm__device_request *request, gm_memory *out,
                               gm_error *err) {
  uint64_t most =
      device->types[index].max_alloc_bytes ? device->types[index].max_alloc_bytes : device->info.max_alloc_bytes;
  if (most > 0 && request->bytes > most) return alloc_too_large(request, most, err);
  gm_memory_params params = {.struct_size = sizeof params,
                             .type = index,
                             .bytes = request->bytes,
                             .align = request->align,
                             .usage = request->usage ? request->usage : GM_USAGE_TRANSFER | GM_USAGE_STORAGE,
                             .flags = alloc_flags(request->flags),
                             .share = request->share,
                             .priority = request->priority};
  const gm_status status = device->ops->memory_alloc(device->handle, &params, out, err);
  const gm__answer_asked asked = {"memory_alloc", request->bytes, index, .align = request->align};
  return status == GM_OK ? gm__answer_check_memory(device, &asked, out, err) : status;
}

/* A failure that another type of memory might not have. */
static bool alloc_falls_through(gm_status status) {
  return status == GM_ERR_OUT_OF_DEVICE_MEMORY || status == GM_ERR_ALLOCATION_TOO_LARGE ||
         status == GM_ERR_PINNED_LIMIT || status == GM_ERR_NOT_SUPPORTED;
}

/* The memory of that type is there, or is about to go. */
static void alloc_hold(gm_device *device, uint32_t type, uint64_t bytes) {
  if (type >= device->type_count) return;
  atomic_fetch_add_explicit(&device->held[type].bytes, bytes, memory_order_relaxed);
  atomic_fetch_add_explicit(&device->held[type].count, 1, memory_order_relaxed);
}

static void alloc_drop(gm_device *device, uint32_t type, uint64_t bytes) {
  if (type >= device->type_count) return;
  atomic_fetch_sub_explicit(&device->held[type].bytes, bytes, memory_order_relaxed);
  atomic_fetch_sub_explicit(&device->held[type].count, 1, memory_order_relaxed);
}

static void alloc_charge(gm_device *device, uint64_t bytes) {
  gm__card_add(device->room.card, bytes, false);
  atomic_fetch_add_explicit(&device->own_bytes, bytes, memory_order_relaxed);
  atomic_fetch_add_explicit(&device->moves, 1, memory_order_relaxed);
}

/* The failure that says most so far: being out of memory now says more than a bound. */
typedef struct alloc_failure {
  gm_status status;
  gm_error error;
} alloc_failure;

static void alloc_note(alloc_failure *told, gm_status status, const gm_error *error) {
  if (told->status == GM_OK || told->status == GM_ERR_ALLOCATION_TOO_LARGE) *told = (alloc_failure){status, *error};
}

/* The types that one round tries. */
typedef struct alloc_round {
  uint32_t preferred; /* they have so many of the preferred flags */
  bool slow;          /* the host reads them slowly */
} alloc_round;

/* Tries the types of a round. True: that is the end of it, with memory or without. */
static bool alloc_try(gm_device *device, alloc_round round, const gm__device_request *request, gm_memory *memory,
                      alloc_failure *told) {
  for (uint32_t i = 0; i < device->type_count; i++) {
    const gm_memory_type *type = &device->types[i];
    if (gm__type_wish_count(&request->wish, type) != round.preferred) continue;
    if (alloc_reads_slowly(type, request) != round.slow || !alloc_type_fits(device, i, request)) continue;
    gm_error attempt = {.status = GM_OK};
    gm_status answer = alloc_of_type(device, i, request, memory, &attempt);
    if (answer == GM_OK) {
      told->status = GM_OK;
      return true;
    }
    alloc_note(told, answer, &attempt);
    if (!alloc_falls_through(answer)) return true;
  }
  return false;
}

static bool alloc_try_all(gm_device *device, const gm__device_request *request, gm_memory *memory,
                          alloc_failure *told) {
  for (uint32_t preferred = (uint32_t)__builtin_popcount(request->wish.prefer) + 1; preferred-- > 0;) {
    for (int slow = 0; slow < 2; slow++) {
      if (alloc_try(device, (alloc_round){preferred, slow}, request, memory, told)) return true;
    }
  }
  return false;
}

gm_status gm__device_alloc(gm_device *device, const gm__device_request *request, gm_memory *out, gm_error *err) {
  gm_memory memory = {.handle = 0};
  alloc_failure told = {.status = GM_OK};
  const bool ended = alloc_try_all(device, request, &memory, &told);
  if (ended && told.status == GM_OK) {
    if (gm__device_is_charged(device, &memory)) alloc_charge(device, memory.bytes);
    if (!memory.wrapped) alloc_hold(device, memory.type, memory.bytes);
    *out = memory;
    return GM_OK;
  }
  if (told.status == GM_OK) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "memory_alloc", "%s has no memory of the kind that was asked for",
                    device->info.name);
  }
  if (told.status == GM_ERR_DEVICE_LOST) atomic_store(&device->lost, true);
  if (err) *err = told.error;
  return told.status;
}

/* Charged bytes are about to go back to the driver. The device object holds them no more; others may take them after
 * gm__card_left. */
static void alloc_leave(gm_device *device, uint64_t bytes) {
  gm__card_leave(device->room.card, bytes);
  atomic_fetch_sub_explicit(&device->own_bytes, bytes, memory_order_relaxed);
  atomic_fetch_add_explicit(&device->moves, 1, memory_order_relaxed);
}

gm_status gm__device_free(gm_device *device, const gm_memory *memory, gm_error *err) {
  if (gm__context_forked(device->ctx)) return device->ops->memory_free(device->handle, memory, GM_CLOSE_ABANDON, err);
  const bool charged = gm__device_is_charged(device, memory);
  const uint64_t bytes = memory->bytes;
  if (charged) alloc_leave(device, bytes);
  if (!memory->wrapped) alloc_drop(device, memory->type, bytes);
  const gm_status status = device->ops->memory_free(device->handle, memory, GM_CLOSE_NORMAL, err);
  if (charged) gm__card_left(device->room.card, bytes);
  return status;
}

gm_status gm__device_create_physical(gm_device *device, uint32_t type, uint64_t bytes, uint64_t *out_handle,
                                     gm_error *err) {
  const gm_vmm_props props = {.type = type, .exclusive = true};
  uint64_t handle = 0;
  gm_status status = device->ops->vmm_create(device->handle, &props, bytes, &handle, err);
  if (status == GM_OK && handle == 0) {
    status = gm__fail(err, GM_ERR_DRIVER, "vmm_create", "backend %s answered success without the memory",
                      device->info.backend);
  }
  if (status == GM_ERR_DEVICE_LOST) atomic_store(&device->lost, true);
  if (status != GM_OK) return status;
  alloc_charge(device, bytes);
  alloc_hold(device, type, bytes);
  *out_handle = handle;
  return GM_OK;
}

void gm__device_destroy_physical(gm_device *device, uint32_t type, uint64_t handle, uint64_t bytes) {
  if (gm__context_forked(device->ctx)) {
    device->ops->vmm_destroy(device->handle, handle, bytes, GM_CLOSE_ABANDON, NULL);
    return;
  }
  alloc_leave(device, bytes);
  alloc_drop(device, type, bytes);
  device->ops->vmm_destroy(device->handle, handle, bytes, GM_CLOSE_NORMAL, NULL);
  gm__card_left(device->room.card, bytes);
}

void gm__device_note_pooled(gm_device *device, int64_t bytes) {
  if (bytes >= 0) {
    gm__card_add(device->room.card, (uint64_t)bytes, true);
    atomic_fetch_add_explicit(&device->pooled_bytes, (uint64_t)bytes, memory_order_relaxed);
  } else {
    gm__card_sub(device->room.card, (uint64_t)-bytes, true);
    atomic_fetch_sub_explicit(&device->pooled_bytes, (uint64_t)-bytes, memory_order_relaxed);
  }
}
