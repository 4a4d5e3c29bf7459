#include "core/track/profiler.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/base/dynlib.h"
#include "core/base/env.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/thread.h"
#include "core/context/config.h"
#include "core/track/profiler_nvtx.h"

/* A tool keeps pointers into the tables that it fills. So the tables live as long as the process, and each tool is
 * loaded once. A tool's library is found as NVTX finds it (NVTX_INJECTION64_PATH). Or it is the library of NVTX 2 or
 * ROCTX, whose functions have those names. */

typedef struct profiler_plain { /* NVTX 2 and ROCTX */
  int (*push)(const char *message);
  int (*pop)(void);
} profiler_plain;

struct gm__profiler {
  profiler_plain plain;
  void *domain; /* NVTX 3: then the slots below are used where the tool has filled them */
  int (*domain_push)(void *domain, const gm__nvtx_event *event);
  int (*domain_pop)(void *domain);
  void *(*heap)(void *domain, const gm__nvtx_heap *heap);
  void (*heap_end)(void *domain, void *heap);
  void (*regions)(void *domain, const gm__nvtx_regions *regions);
  void (*regions_end)(void *domain, const gm__nvtx_references *references);
};

typedef struct profiler_tool {
  gm__profiler profiler;
  bool there;
  gm_error why; /* not */
} profiler_tool;

static profiler_tool profiler_nvtx, profiler_roctx;
static gm__once profiler_nvtx_once = GM__ONCE_INIT, profiler_roctx_once = GM__ONCE_INIT;

/* ---- the tables of NVTX 3 ---- */

static const unsigned profiler_sizes[GM__NVTX_MODULES] = {0, 16, 9, 15, 7, 16, 7};
static gm__nvtx_function profiler_slots[GM__NVTX_MODULES][16];
static gm__nvtx_function *profiler_tables[GM__NVTX_MODULES][17];
static intptr_t profiler_memory_slots[GM__NVTX_MEMORY_SLOTS];

static int profiler_module_table(int module, gm__nvtx_function ***out_table, unsigned *out_size) {
  if (module < GM__NVTX_MODULE_CORE || module >= GM__NVTX_MODULES) return 0;
  for (unsigned i = 1; i < profiler_sizes[module]; i++) profiler_tables[module][i] = &profiler_slots[module][i];
  if (out_size) *out_size = profiler_sizes[module];
  if (out_table) *out_table = profiler_tables[module];
  return 1;
}

static void profiler_set_tool_version(uint32_t version) { (void)version; }

static const void *profiler_export_table(uint32_t id) {
  static const gm__nvtx_callbacks callbacks = {sizeof callbacks, profiler_module_table};
  static const gm__nvtx_version_info version = {sizeof version, GM__NVTX_VERSION, 0, profiler_set_tool_version};
  if (id == GM__NVTX_TABLE_CALLBACKS) return &callbacks;
  return id == GM__NVTX_TABLE_VERSION ? &version : NULL;
}

/* A slot as a function of its own type. ISO C has no cast that says so without a warning. */
#define profiler_take(to, from)                                                       \
  do {                                                                                \
    _Static_assert(sizeof(to) == sizeof(from), "a slot holds a pointer to function"); \
    memcpy(&(to), &(from), sizeof(to));                                               \
  } while (0)

static void profiler_take_core(gm__profiler *profiler) {
  void *(*create)(const char *name);
  profiler_take(profiler->plain.push, profiler_slots[GM__NVTX_MODULE_CORE][GM__NVTX_RANGE_PUSH_A]);
  profiler_take(profiler->plain.pop, profiler_slots[GM__NVTX_MODULE_CORE][GM__NVTX_RANGE_POP]);
  profiler_take(profiler->domain_push, profiler_slots[GM__NVTX_MODULE_CORE2][GM__NVTX_DOMAIN_RANGE_PUSH]);
  profiler_take(profiler->domain_pop, profiler_slots[GM__NVTX_MODULE_CORE2][GM__NVTX_DOMAIN_RANGE_POP]);
  profiler_take(create, profiler_slots[GM__NVTX_MODULE_CORE2][GM__NVTX_DOMAIN_CREATE_A]);
  if (create) profiler->domain = create("gm");
}

static void profiler_take_memory(gm__profiler *profiler, gm__nvtx_initialize_extension initialize) {
  gm__nvtx_segment segment = {1, GM__NVTX_MEMORY_SLOTS, profiler_memory_slots};
  gm__nvtx_module module = {.version = GM__NVTX_VERSION,
                            .size = sizeof module,
                            .module = GM__NVTX_EXTENSION_MEMORY,
                            .compatibility = GM__NVTX_MEMORY_COMPATIBILITY,
                            .segment_count = 1,
                            .segments = &segment};
  if (!initialize || !initialize(&module)) return;
  profiler_take(profiler->heap, profiler_memory_slots[GM__NVTX_HEAP_REGISTER]);
  profiler_take(profiler->heap_end, profiler_memory_slots[GM__NVTX_HEAP_UNREGISTER]);
  profiler_take(profiler->regions, profiler_memory_slots[GM__NVTX_REGIONS_REGISTER]);
  profiler_take(profiler->regions_end, profiler_memory_slots[GM__NVTX_REGIONS_UNREGISTER]);
}

typedef struct profiler_entries { /* of a tool's library */
  gm__nvtx_initialize initialize;
  gm__nvtx_initialize_extension initialize_extension;
} profiler_entries;

static gm_status profiler_inject(profiler_tool *tool, const gm__dynlib *lib) {
  static const gm__symbol symbols[] = {
      {"InitializeInjectionNvtx2", offsetof(profiler_entries, initialize), true},
      {"InitializeInjectionNvtxExtension", offsetof(profiler_entries, initialize_extension), false}};
  profiler_entries entries;
  gm_status status = gm__dynlib_resolve(lib, symbols, 2, &entries, NULL, NULL, &tool->why);
  if (status) return status;
  if (!entries.initialize(profiler_export_table)) {
    return gm__fail(&tool->why, GM_ERR_UNAVAILABLE, "InitializeInjectionNvtx2", "the tool refused");
  }
  profiler_take_core(&tool->profiler);
  profiler_take_memory(&tool->profiler, entries.initialize_extension);
  return GM_OK;
}

/* ---- finding a tool ---- */

static gm_status profiler_name(profiler_tool *tool, const gm__dynlib *lib, const char *push, const char *pop) {
  const gm__symbol symbols[] = {{push, offsetof(profiler_plain, push), true},
                                {pop, offsetof(profiler_plain, pop), true}};
  return gm__dynlib_resolve(lib, symbols, 2, &tool->profiler.plain, NULL, NULL, &tool->why);
}

/* The library stays: the tool may call back until the process ends. */
static void profiler_settle(profiler_tool *tool, gm__dynlib *lib, gm_status status) {
  tool->there = status == GM_OK;
  gm__dynlib_keep(lib);
  gm__dynlib_close(lib);
}

static void profiler_load_nvtx(void) {
  static const char *const names[] = {"libnvToolsExt.so.1", NULL};
  const char *path = gm__env("NVTX_INJECTION64_PATH");
  const gm__dynlib_spec spec = {.backend = "nvtx", .names = names, .path = path};
  gm__dynlib *lib;
  if (gm__dynlib_open(NULL, &spec, &lib, &profiler_nvtx.why)) return;
  const bool injected = path && *path;
  profiler_settle(&profiler_nvtx, lib,
                  injected ? profiler_inject(&profiler_nvtx, lib)
                           : profiler_name(&profiler_nvtx, lib, "nvtxRangePushA", "nvtxRangePop"));
}

static void profiler_load_roctx(void) {
  static const char *const names[] = {"librocprofiler-sdk-roctx.so.1", "libroctx64.so.4", "libroctx64.so", NULL};
  const gm__dynlib_spec spec = {.backend = "roctx", .names = names, .path = gm__env("GM_ROCTX_LIBRARY")};
  gm__dynlib *lib;
  if (gm__dynlib_open(NULL, &spec, &lib, &profiler_roctx.why)) return;
  profiler_settle(&profiler_roctx, lib, profiler_name(&profiler_roctx, lib, "roctxRangePushA", "roctxRangePop"));
}

const gm__profiler *gm__profiler_of(gm_context *ctx) {
  char word[16];
  gm__config_text(ctx, "debug.ranges", word, sizeof word);
  const bool nvtx = strcmp(word, "nvtx") == 0;
  if (!nvtx && strcmp(word, "roctx") != 0) return NULL;
  gm__once_run(nvtx ? &profiler_nvtx_once : &profiler_roctx_once, nvtx ? profiler_load_nvtx : profiler_load_roctx);
  const profiler_tool *tool = nvtx ? &profiler_nvtx : &profiler_roctx;
  if (tool->there) return &tool->profiler;
  gm__log(gm__context_services(ctx), GM_LOG_WARN, "debug.ranges is %s, and there is no such tool: %s", word,
          tool->why.message);
  return NULL;
}

/* ---- ranges ---- */

void gm__profiler_push_text(const gm__profiler *profiler, const char *text) {
  if (!profiler) return;
  if (profiler->domain && profiler->domain_push && profiler->domain_pop) {
    const gm__nvtx_event event = {
        .version = GM__NVTX_VERSION, .size = sizeof event, .message_type = GM__NVTX_MESSAGE_ASCII, .message = text};
    profiler->domain_push(profiler->domain, &event);
  } else if (profiler->plain.push && profiler->plain.pop) {
    profiler->plain.push(text);
  }
}

void gm__profiler_push(const gm__profiler *profiler, const char *what, const char *name, uint64_t bytes) {
  char text[128];
  if (!profiler) return;
  snprintf(text, sizeof text, "gm %s, pool %s, %" PRIu64 " bytes", what, name, bytes);
  gm__profiler_push_text(profiler, text);
}

void gm__profiler_pop(const gm__profiler *profiler) {
  if (!profiler) return;
  if (profiler->domain && profiler->domain_push && profiler->domain_pop) {
    profiler->domain_pop(profiler->domain);
  } else if (profiler->plain.push && profiler->plain.pop) {
    profiler->plain.pop();
  }
}

/* ---- memory ---- */

bool gm__profiler_wants_memory(const gm__profiler *profiler) {
  return profiler && profiler->heap && profiler->heap_end && profiler->regions && profiler->regions_end;
}

static gm__nvtx_range profiler_range(uint64_t address, uint64_t bytes) {
  gm__nvtx_range range = {.bytes = (size_t)bytes};
  const uintptr_t at = (uintptr_t)address;
  memcpy(&range.address, &at, sizeof at);
  return range;
}

void *gm__profiler_heap(const gm__profiler *profiler, const char *name, uint64_t address, uint64_t bytes) {
  if (!gm__profiler_wants_memory(profiler) || !address) return NULL;
  const gm__nvtx_range range = profiler_range(address, bytes);
  const gm__nvtx_heap heap = {.compatibility = GM__NVTX_MEMORY_COMPATIBILITY,
                              .size = sizeof heap,
                              .usage = GM__NVTX_HEAP_SUB_ALLOCATOR,
                              .type = GM__NVTX_TYPE_VIRTUAL_ADDRESS,
                              .description_size = sizeof range,
                              .description = &range,
                              .message_type = GM__NVTX_MESSAGE_ASCII,
                              .message = name};
  /* cppcheck-suppress returnDanglingLifetime ; what the profiler answers is its own */
  return profiler->heap(profiler->domain, &heap);
}

void gm__profiler_heap_end(const gm__profiler *profiler, void *heap) {
  if (heap) profiler->heap_end(profiler->domain, heap);
}

void gm__profiler_region(const gm__profiler *profiler, void *heap, uint64_t address, uint64_t bytes) {
  const gm__nvtx_range range = profiler_range(address, bytes);
  const gm__nvtx_regions regions = {.compatibility = GM__NVTX_MEMORY_COMPATIBILITY,
                                    .size = sizeof regions,
                                    .type = GM__NVTX_TYPE_VIRTUAL_ADDRESS,
                                    .heap = heap,
                                    .count = 1,
                                    .element_size = sizeof range,
                                    .elements = &range};
  if (heap) profiler->regions(profiler->domain, &regions);
}

void gm__profiler_region_end(const gm__profiler *profiler, uint64_t address) {
  const void *at = profiler_range(address, 0).address;
  const gm__nvtx_references references = {.compatibility = GM__NVTX_MEMORY_COMPATIBILITY,
                                          .size = sizeof references,
                                          .type = GM__NVTX_REFERENCE_POINTER,
                                          .count = 1,
                                          .element_size = sizeof at,
                                          .elements = &at};
  profiler->regions_end(profiler->domain, &references);
}
