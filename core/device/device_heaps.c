#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/sized.h"
#include "core/device/device.h"
#include "core/discovery/device_figures.h"
#include "core/figures/memory_info.h"
#include "core/host/host_info.h"

/* The heaps of a device. Where the API has heaps with figures (Vulkan) they are listed as it has them. Elsewhere the
 * memory types say which heaps there are. One heap of the device's own memory then has the device's figures. Several
 * such heaps share them, so each one's part is unknown. */

typedef struct heap_list {
  gm__heap_figures figures;
  gm_host_info host;
} heap_list;

static void heaps_set_free(gm_heap_info *heap, uint64_t free_bytes, gm_figure_state state, gm_figure_source source) {
  heap->free_bytes = free_bytes;
  heap->free_state = state;
  heap->free_source = source;
  if (free_bytes != GM_UNKNOWN_BYTES) {
    heap->budget_bytes = gm__min(gm__add_sat(free_bytes, heap->used_bytes), heap->total_bytes);
  }
}

static bool heaps_is_local(const gm_device *device, const gm_memory_type *type) {
  return device->info.unified || type->flags & (GM_MEMORY_DEVICE_LOCAL | GM_MEMORY_MANAGED);
}

/* A heap that only its types tell of. */
static gm_heap_info heaps_begin(const gm_device *device, const gm_memory_type *type) {
  return (gm_heap_info){.struct_size = sizeof(gm_heap_info),
                        .flags = heaps_is_local(device, type) ? GM_HEAP_DEVICE_LOCAL : GM_HEAP_HOST,
                        .number = type->heap,
                        .total_bytes = type->heap_bytes ? type->heap_bytes : GM_UNKNOWN_BYTES,
                        .budget_bytes = GM_UNKNOWN_BYTES,
                        .free_bytes = GM_UNKNOWN_BYTES};
}

static gm_heap_info *heaps_find(heap_list *list, uint32_t number) {
  for (uint32_t i = 0; i < list->figures.count; i++) {
    if (list->figures.heaps[i].number == number) return &list->figures.heaps[i];
  }
  return NULL;
}

static void heaps_fill_local(heap_list *list, const gm_memory_info *memory) {
  gm_heap_info *only = NULL;
  for (uint32_t i = 0; i < list->figures.count; i++) {
    if (!(list->figures.heaps[i].flags & GM_HEAP_DEVICE_LOCAL)) continue;
    if (only) return;
    only = &list->figures.heaps[i];
  }
  if (!only) return;
  only->total_bytes = memory->total_bytes;
  only->used_bytes = memory->used_by_us_bytes;
  heaps_set_free(only, memory->free_bytes, memory->free_state, memory->free_source);
}

/* Memory beside the device's own is the host's, of which gm knows what it took itself. */
static void heaps_fill_host(const gm_device *device, heap_list *list) {
  bool read = false;
  for (uint32_t i = 0; i < list->figures.count; i++) {
    gm_heap_info *heap = &list->figures.heaps[i];
    if (!(heap->flags & GM_HEAP_HOST)) continue;
    if (!read) gm__host_memory_read(gm__context_services(device->ctx), device->ctx->host_root, &list->host);
    read = true;
    heap->total_bytes = gm__min(heap->total_bytes, list->host.total_bytes);
    heap->used_bytes = heap->reserved_bytes;
    heaps_set_free(heap, gm__min(list->host.free_bytes, heap->total_bytes), list->host.free_state, GM_SOURCE_OS);
  }
}

static void heaps_by_types(const gm_device *device, heap_list *list) {
  for (uint32_t i = 0; i < device->type_count && list->figures.count < GM_RAW_HEAPS_MAX; i++) {
    if (heaps_find(list, device->types[i].heap) || device->types[i].flags & GM_MEMORY_MANAGED) continue;
    list->figures.heaps[list->figures.count++] = heaps_begin(device, &device->types[i]);
  }
}

static void heaps_count_held(const gm_device *device, heap_list *list) {
  for (uint32_t i = 0; i < device->type_count; i++) {
    const struct gm__held *held = &device->held[i];
    const bool managed = (device->types[i].flags & GM_MEMORY_MANAGED) != 0;
    gm_heap_info *heap = heaps_find(list, device->types[i].heap);
    if (!heap && managed && list->figures.count) heap = &list->figures.heaps[0]; /* it belongs to the device */
    if (!heap) continue;
    heap->reserved_bytes += atomic_load_explicit(&held->bytes, memory_order_relaxed);
    heap->allocation_count += atomic_load_explicit(&held->count, memory_order_relaxed);
  }
}

static gm_status heaps_read(gm_device *device, heap_list *list, gm_error *err) {
  gm_memory_info memory = {.struct_size = sizeof memory};
  const gm__figures_subject subject = {.driver = device->driver,
                                       .info = &device->info,
                                       .device = device->handle,
                                       .adopted = device->adopted,
                                       .heaps = &list->figures};
  const gm_status status = gm__device_figures(&subject, &memory, err);
  if (status != GM_OK) return status;
  const bool by_types = !list->figures.count;
  if (by_types) heaps_by_types(device, list);
  heaps_count_held(device, list);
  if (!by_types) return GM_OK;
  heaps_fill_local(list, &memory);
  heaps_fill_host(device, list);
  return GM_OK;
}

/* All heaps, in memory of its own: host figures are large. The caller releases *out. */
static gm_status heaps_open(gm_device *device, const char *op, heap_list **out, gm_error *err) {
  const gm_services *services = gm__context_services(device->ctx);
  heap_list *list = gm__alloc(services, sizeof *list);
  if (!list) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory to read the figures");
  const gm_status status = heaps_read(device, list, err);
  if (status == GM_OK) {
    *out = list;
  } else {
    gm__release(services, list, sizeof *list);
  }
  return status;
}

gm_status gm_device_heap_count(gm_device *device, uint32_t *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_device_heap_count";
  heap_list *list = NULL;
  gm_status status = gm__device_check(device, op, err);
  if (status != GM_OK) return status;
  if (!out) return gm__bad_argument(err, op, "`out` is NULL");
  status = heaps_open(device, op, &list, err);
  if (status != GM_OK) return status;
  *out = list->figures.count;
  gm__release(gm__context_services(device->ctx), list, sizeof *list);
  return GM_OK;
}

gm_status gm_device_heap(gm_device *device, uint32_t index, gm_heap_info *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_device_heap";
  heap_list *list = NULL;
  gm_status status = gm__device_check(device, op, err);
  if (status == GM_OK) status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status == GM_OK) status = heaps_open(device, op, &list, err);
  if (status != GM_OK) return status;
  const uint32_t count = list->figures.count;
  if (index < count) {
    gm__sized_out(out, &list->figures.heaps[index], sizeof *out);
  } else {
    status = gm__bad_argument(err, op, "`index` is %u, there are %u heaps", index, count);
  }
  gm__release(gm__context_services(device->ctx), list, sizeof *list);
  return status;
}
