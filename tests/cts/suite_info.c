/* The words of a backend about itself, its devices, their memory types and figures. */
#include <string.h>

#include "cts/cts.h"

static bool info_power_of_two(uint64_t number) { return number && !(number & (number - 1)); }

static bool info_terminated(const char *text, size_t capacity) { return memchr(text, 0, capacity) != NULL; }

static void info_table(cts *t) {
  const gm_backend_ops *ops = t->mode->ops;
  CTS_CHECK(t, ops->abi == GM_BACKEND_ABI);
  CTS_CHECK(t, ops->struct_size == sizeof(gm_backend_ops));
  CTS_CHECK(t, strlen(ops->name) > 0 && strlen(ops->name) < sizeof t->info.backend);
  for (const char *c = ops->name; *c; c++)
    CTS_CHECK(t, (*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '_');
  for (size_t i = 0; i < sizeof ops->reserved / sizeof ops->reserved[0]; i++) CTS_CHECK(t, !ops->reserved[i]);
}

static void info_identity(cts *t) {
  static const uint8_t none[GM_UUID_BYTES];
  const gm_device_info *info = &t->info;
  CTS_CHECK(t, info->struct_size == sizeof *info);
  CTS_CHECK(t, info->api == t->ops->api);
  CTS_CHECK(t, strcmp(info->backend, t->ops->name) == 0);
  CTS_CHECK(t, info->name[0] && info_terminated(info->name, sizeof info->name));
  CTS_CHECK(t,
            info_terminated(info->vendor, sizeof info->vendor) && info_terminated(info->driver, sizeof info->driver));
  CTS_CHECK(t, info_terminated(info->version, sizeof info->version) && info_terminated(info->pci, sizeof info->pci));
  CTS_CHECK(t, memcmp(info->uuid, none, sizeof none) != 0);
  CTS_CHECK(t, info->type <= GM_DEVICE_TYPE_CPU);
}

static void info_limits(cts *t) {
  const uint64_t most = UINT64_C(1) << 30;
  CTS_CHECK(t, info_power_of_two(t->info.alignment) && t->info.alignment <= most);
  CTS_CHECK(t, info_power_of_two(t->info.map_atom_bytes) && t->info.map_atom_bytes <= most);
  CTS_CHECK(t, t->info.page_bytes == 0 || info_power_of_two(t->info.page_bytes));
  CTS_CHECK(t, t->info.total_bytes == 0 || t->info.max_alloc_bytes <= t->info.total_bytes * 4);
}

/* A capability is claimed exactly when the group behind it is there. The engine may forbid what the table could do. */
static void info_capabilities(cts *t) {
  const gm_backend_ops *ops = t->mode->ops;
  const uint64_t has = t->info.capabilities;
  CTS_CHECK(t, (has & ~ops->capabilities) == 0);
  CTS_CHECK(t, !(has & GM_CAP_STREAMS) || ops->stream_create);
  CTS_CHECK(t, !(has & GM_CAP_POINTS) == !ops->point_record);
  CTS_CHECK(t, !(has & GM_CAP_MAPPING) || ops->map);
  CTS_CHECK(t, !(has & GM_CAP_VMM) || ops->vmm_reserve);
  CTS_CHECK(t, !(has & GM_CAP_REGISTRATION) || ops->host_register);
  CTS_CHECK(t, !(has & GM_CAP_PEER) || ops->peer_info);
  CTS_CHECK(t, !(has & GM_CAP_SHARE) || ops->share_export);
  CTS_CHECK(t, !(has & GM_CAP_MANAGED) || ops->managed_prefetch);
  CTS_CHECK(t, !(has & GM_CAP_ADOPT) == !ops->device_adopt);
  CTS_CHECK(t, !(has & GM_CAP_COMMIT) == !ops->commit);
  CTS_CHECK(t, !(has & GM_CAP_VIEW) || ops->view_create);
}

static void info_before_and_after_opening(cts *t) {
  gm_device_info before = {.struct_size = sizeof before};
  CTS_OK(t, t->ops->device_info(t->driver, t->info.index, NULL, &before, &t->err));
  CTS_CHECK(t, memcmp(before.uuid, t->info.uuid, sizeof before.uuid) == 0);
  CTS_CHECK(t, strcmp(before.name, t->info.name) == 0);
  CTS_CHECK(t, before.index == t->info.index && before.type == t->info.type);
  CTS_CHECK(t, before.total_bytes == t->info.total_bytes);
}

static void info_device_that_is_not_there(cts *t) {
  uint32_t count = 0;
  CTS_OK(t, t->ops->device_count(t->driver, &count, &t->err));
  CTS_CHECK(t, count > t->info.index);
  gm_device_info info, untouched;
  memset(&info, 0x5a, sizeof info);
  info.struct_size = sizeof info;
  untouched = info;
  void *device = &info;
  gm_raw_figures figures = {.struct_size = sizeof figures};
  CTS_IS(t, t->ops->device_info(t->driver, count, NULL, &info, &t->err), GM_ERR_NOT_FOUND);
  CTS_CHECK(t, memcmp(&info, &untouched, sizeof info) == 0);
  CTS_IS(t, t->ops->device_open(t->driver, count, &device, &t->err), GM_ERR_NOT_FOUND);
  CTS_CHECK(t, device == &info);
  CTS_IS(t, t->ops->figures(t->driver, UINT32_MAX, NULL, &figures, &t->err), GM_ERR_NOT_FOUND);
}

static void info_probe(cts *t) {
  const long long before = atomic_load(&t->heap.live_bytes);
  uint32_t count = 0;
  CTS_OK(t, t->ops->device_count(t->driver, &count, &t->err));
  for (int i = 0; i < 2; i++) {
    gm_driver_info info = {.struct_size = sizeof info};
    CTS_OK(t, t->ops->probe(&t->host, GM_PROBE_ACTIVE, &info, &t->err));
    CTS_CHECK(t, info.device_count == count);
    CTS_CHECK(t,
              info_terminated(info.library, sizeof info.library) && info_terminated(info.version, sizeof info.version));
    CTS_OK(t, t->ops->probe(&t->host, GM_PROBE_PASSIVE, &info, &t->err));
  }
  CTS_CHECK(t, atomic_load(&t->heap.live_bytes) == before);
}

static void info_state(cts *t) { CTS_OK(t, t->ops->device_state(t->device, &t->err)); }

static void info_native_head_is_checked(cts *t) {
  gm_native_device head = {.struct_size = sizeof head, .api = GM_API_OTHER};
  const gm_status status = t->ops->device_native(t->device, &head, &t->err);
  CTS_CHECK(t, status == GM_ERR_INVALID_ARGUMENT || status == GM_ERR_NOT_SUPPORTED);
}

static void types_are_sane(cts *t) {
  CTS_CHECK(t, t->type_count > 0 && t->type_count < CTS_TYPES_MAX);
  bool local = false;
  for (uint32_t i = 0; i < t->type_count; i++) {
    const gm_memory_type *type = &t->types[i];
    CTS_CHECK(t, type->struct_size == sizeof *type);
    CTS_CHECK(t, info_power_of_two(type->atom_bytes));
    CTS_CHECK(t, !(type->flags & GM_MEMORY_HOST_COHERENT) || (type->flags & GM_MEMORY_HOST_VISIBLE));
    CTS_CHECK(t, !(type->flags & GM_MEMORY_HOST_COHERENT) || type->atom_bytes == 1);
    CTS_CHECK(t, !(type->flags & GM_MEMORY_HOST_POINTER) || (type->flags & GM_MEMORY_HOST_VISIBLE));
    CTS_CHECK(t, !(type->flags & GM_MEMORY_HOST_VISIBLE) || (t->mode->ops->map != NULL));
    for (uint32_t j = 0; j < i; j++) {
      CTS_CHECK(t, t->types[j].heap != type->heap || t->types[j].heap_bytes == type->heap_bytes);
    }
    local = local || (type->flags & GM_MEMORY_DEVICE_LOCAL);
  }
  CTS_CHECK(t, local);
}

static void types_beyond_the_last(cts *t) {
  gm_memory_type type = {.struct_size = sizeof type}, untouched = {.struct_size = sizeof untouched};
  memset(&type, 0x5a, sizeof type);
  type.struct_size = sizeof type;
  untouched = type;
  CTS_IS(t, t->ops->memory_type(t->device, t->type_count, &type, &t->err), GM_ERR_INVALID_ARGUMENT);
  CTS_CHECK(t, memcmp(&type, &untouched, sizeof type) == 0);
}

static void figures_can_be_read(cts *t) {
  for (int open = 0; open < 2; open++) {
    gm_raw_figures figures = {.struct_size = sizeof figures};
    CTS_OK(t, t->ops->figures(t->driver, t->info.index, open ? t->device : NULL, &figures, &t->err));
    CTS_CHECK(t, figures.rules <= GM_RAW_VULKAN && figures.place <= GM_RAW_CPU_DEVICE);
    CTS_CHECK(t, figures.heap_count <= GM_RAW_HEAPS_MAX && figures.module_count <= GM_RAW_MODULES_MAX);
    CTS_CHECK(t, figures.driver.state <= GM_RAW_ERROR && figures.device_total.state <= GM_RAW_ERROR);
  }
}

static uint64_t figures_own(cts *t) {
  gm_raw_figures figures = {.struct_size = sizeof figures};
  uint64_t own = 0;
  if (t->ops->figures(t->driver, t->info.index, t->device, &figures, &t->err) != GM_OK) return UINT64_MAX;
  for (uint32_t i = 0; i < figures.heap_count && i < GM_RAW_HEAPS_MAX; i++) own += figures.heaps[i].own_bytes;
  if (figures.rules == GM_RAW_DRIVER) own += figures.driver.total_bytes - figures.driver.free_bytes;
  return own;
}

/* Where the backend counts what gm holds, the count follows allocation and release. */
static void figures_follow_allocation(cts *t) {
  const uint64_t before = figures_own(t), bytes = UINT64_C(3) << 20;
  gm_memory memory;
  if (!cts_memory(t, 0, bytes, &memory)) return;
  const uint64_t during = figures_own(t);
  cts_memory_free(t, &memory);
  CTS_CHECK(t, figures_own(t) == before);
  if (t->info.api == GM_API_VULKAN || t->info.api == GM_API_NULL) CTS_CHECK(t, during >= before + bytes);
}

static uint64_t figures_free(cts *t) {
  gm_raw_figures figures = {.struct_size = sizeof figures};
  if (t->ops->figures(t->driver, t->info.index, t->device, &figures, &t->err) != GM_OK) return GM_UNKNOWN_BYTES;
  return figures.driver.state == GM_RAW_OK ? figures.driver.free_bytes : GM_UNKNOWN_BYTES;
}

/* Does the free figure fall by an allocation, and rise when it is given back? Others on a card move it, too. */
static bool figures_fall_once(cts *t, uint64_t bytes) {
  gm_memory memory;
  const uint64_t before = figures_free(t);
  if (!cts_memory(t, 0, bytes, &memory)) return false;
  const uint64_t during = figures_free(t);
  cts_memory_free(t, &memory);
  return during <= before - bytes / 2 && figures_free(t) >= during + bytes / 2;
}

/* A driver's free figure follows allocations, or the backend leaves it out. */
static void figures_free_falls(cts *t) {
  gm_raw_figures figures = {.struct_size = sizeof figures};
  CTS_OK(t, t->ops->figures(t->driver, t->info.index, t->device, &figures, &t->err));
  const gm_raw_reply *driver = &figures.driver;
  if (driver->state != GM_RAW_OK || driver->free_bytes == GM_UNKNOWN_BYTES || figures.place != GM_RAW_OWN_MEMORY) {
    cts_skip(t, "the backend gives no free figure of a card's own memory");
    return;
  }
  CTS_CHECK(t, driver->total_bytes == GM_UNKNOWN_BYTES || driver->free_bytes <= driver->total_bytes);
  bool falls = false;
  for (int i = 0; i < 8 && !falls && !t->failed; i++) falls = figures_fall_once(t, driver->free_bytes / 4);
  CTS_CHECK(t, falls);
}

/* The flags of a type agree with each other. */
static void types_tell_the_truth(cts *t) {
  for (uint32_t i = 0; i < t->type_count && !t->failed; i++) {
    const uint32_t flags = t->types[i].flags, visible = GM_MEMORY_HOST_VISIBLE | GM_MEMORY_HOST_POINTER;
    const bool local = flags & GM_MEMORY_DEVICE_LOCAL, managed = flags & GM_MEMORY_MANAGED;
    if (flags & GM_MEMORY_WRITE_COMBINED) CTS_CHECK(t, flags & visible && !(flags & GM_MEMORY_HOST_CACHED));
    if (flags & GM_MEMORY_PERSISTENT_MAP) CTS_CHECK(t, flags & visible);
    if (flags & GM_MEMORY_HOST_POINTER) CTS_CHECK(t, flags & GM_MEMORY_PERSISTENT_MAP);
    if (flags & GM_MEMORY_PINNED && !local && !managed) CTS_CHECK(t, flags & GM_MEMORY_SYSTEM);
    if (t->info.type == GM_DEVICE_TYPE_DISCRETE) CTS_CHECK(t, !(local && flags & GM_MEMORY_SYSTEM));
    if (t->info.type == GM_DEVICE_TYPE_CPU && !managed && t->info.api != GM_API_NULL)
      CTS_CHECK(t, flags & GM_MEMORY_SYSTEM);
    CTS_CHECK(t, !(managed && flags & GM_MEMORY_SYSTEM));
  }
}

static const cts_case info_cases[] = {
    {"info.table", info_table, 0},
    {"info.identity", info_identity, 0},
    {"info.limits", info_limits, 0},
    {"info.capabilities", info_capabilities, 0},
    {"info.before_and_after_opening", info_before_and_after_opening, 0},
    {"info.device_that_is_not_there", info_device_that_is_not_there, 0},
    {"info.probe", info_probe, 0},
    {"info.state", info_state, 0},
    {"info.native_head_is_checked", info_native_head_is_checked, 0},
    {"types.are_sane", types_are_sane, 0},
    {"types.tell_the_truth", types_tell_the_truth, 0},
    {"types.beyond_the_last", types_beyond_the_last, 0},
    {"figures.can_be_read", figures_can_be_read, 0},
    {"figures.free_falls", figures_free_falls, 0},
    {"figures.follow_allocation", figures_follow_allocation, 0},
};
const cts_suite cts_info_suite = {info_cases, sizeof info_cases / sizeof info_cases[0]};
