#include "backends/vulkan/vulkan_table.h"

#include "backends/vulkan/vulkan_host.h"
#include "backends/vulkan/vulkan_map.h"
#include "backends/vulkan/vulkan_mem_open.h"

enum { TABLE_BYTES = 256 };

static gm_status table_make(gm__vulkan_device *device, gm__vulkan_memory **out, gm_error *err) {
  gm__vulkan_memory *table;
  unsigned char *host;
  gm_status status = gm__vulkan_host_make(device, TABLE_BYTES, false, "gm_backend_ops.fill", &table, &host, err);
  if (status) return status;
  for (uint32_t i = 0; i < TABLE_BYTES; i++) host[i] = (unsigned char)i;
  status = gm__vulkan_flush(device, table, 0, TABLE_BYTES, err);
  if (status) {
    gm__vulkan_memory_unmake(device, table, GM_CLOSE_NORMAL);
    return status;
  }
  *out = table;
  return GM_OK;
}

gm_status gm__vulkan_table(gm__vulkan_device *device, const gm__vulkan_memory **out, gm_error *err) {
  gm__vulkan_memory *first = atomic_load(&device->table), *made = NULL;
  if (!first) {
    const gm_status status = table_make(device, &made, err);
    if (status) return status;
    if (atomic_compare_exchange_strong(&device->table, &first, made)) {
      first = made;
    } else {
      gm__vulkan_memory_unmake(device, made, GM_CLOSE_NORMAL); /* another thread was first */
    }
  }
  *out = first;
  return GM_OK;
}

void gm__vulkan_table_clear(gm__vulkan_device *device, gm_close_mode mode) {
  gm__vulkan_memory_unmake(device, atomic_exchange(&device->table, NULL), mode);
}
