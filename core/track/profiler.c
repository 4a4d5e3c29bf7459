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

typedef struct marks_plain { /* NVTX 2 and ROCTX */
  int (*push)(const char *message);
  int (*pop)(void);
} marks_plain;

struct gm__marks {
  marks_plain plain;
  void *domain; /* NVTX 3: then the slots below are used where the tool has filled them */
  int (*domain_push)(void *domain, const gm__nvtx_event *event);
  int (*domain_pop)(void *domain);
  void *(*heap)(void *domain, const gm__nvtx_heap *heap);
  void (*heap_end)(void *domain, void *heap);
  void (*regions)(void *domain, const gm__nvtx_regions *regions);
  void (*regions_end)(void *domain, const gm__nvtx_references *references);
};

typedef struct marks_tool {
  gm__marks marks;
  bool there;
  gm_error why; /* not */
} marks_tool;

static marks_tool marks_nvtx, marks_roctx;
static gm__once marks_nvtx_once = GM__ONCE_INIT, marks_roctx_once = GM__ONCE_INIT;

/* ---- the tables of NVTX 3 ---- */

static const unsigned marks_sizes[GM__NVTX_MODULES] = {0, 16, 9, 15, 7, 16, 7};
static gm__nvtx_function marks_slots[GM__NVTX_MODULES][16];
static gm__nvtx_function *marks_tables[GM__NVTX_MODULES][17];
static intptr_t marks_memory_slots[GM__NVTX_MEMORY_SLOTS];

static int marks_module_table(int module, gm__nvtx_function ***out_table, unsigned *out_size) {
  if (module < GM__NVTX_MODULE_CORE || module >= GM__NVTX_MODULES) return 0;
  for (unsigned i = 1; i < marks_sizes[module]; i++) marks_tables[module][i] = &marks_slots[module][i];
  if (out_size) *out_size = marks_sizes[module];
  if (out_table) *out_table = marks_tables[module];
  return 1;
}

static void marks_set_tool_version(uint32_t version) { (void)version; }

static const void *marks_export_table(uint32_t id) {
  static const gm__nvtx_callbacks callbacks = {sizeof callbacks, marks_module_table};
  static const gm__nvtx_version_info version = {sizeof version, GM__NVTX_VERSION, 0, marks_set_tool_version};
  if (id == GM__NVTX_TABLE_CALLBACKS) return &callbacks;
  return id == GM__NVTX_TABLE_VERSION ? &version : NULL;
}

/* A slot as a function of its own type. ISO C has no cast that says so without a warning. */
#define marks_take(to, from)                                                          \
  do {                                                                                \
    _Static_assert(sizeof(to) == sizeof(from), "a slot holds a pointer to function"); \
    memcpy(&(to), &(from), sizeof(to));                                               \
  } while (0)

static void marks_take_core(gm__marks *marks) {
  void *(*create)(const char *name);
  marks_take(marks->plain.push, marks_slots[GM__NVTX_MODULE_CORE][GM__NVTX_RANGE_PUSH_A]);
  marks_take(marks->plain.pop, marks_slots[GM__NVTX_MODULE_CORE][GM__NVTX_RANGE_POP]);
  marks_take(marks->domain_push, marks_slots[GM__NVTX_MODULE_CORE2][GM__NVTX_DOMAIN_RANGE_PUSH]);
  marks_take(marks->domain_pop, marks_slots[GM__NVTX_MODULE_CORE2][GM__NVTX_DOMAIN_RANGE_POP]);
  marks_take(create, marks_slots[GM__NVTX_MODULE_CORE2][GM__NVTX_DOMAIN_CREATE_A]);
  if (create) marks->domain = create("gm");
}

static void marks_take_memory(gm__marks *marks, gm__nvtx_initialize_extension initialize) {
  gm__nvtx_segment segment = {1, GM__NVTX_MEMORY_SLOTS, marks_memory_slots};
  gm__nvtx_module module = {.version = GM__NVTX_VERSION,
                            .size = sizeof module,
                            .module = GM__NVTX_EXTENSION_MEMORY,
                            .compatibility = GM__NVTX_MEMORY_COMPATIBILITY,
                            .segment_count = 1,
                            .segments = &segment};
  if (!initialize || !initialize(&module)) return;
  marks_take(marks->heap, marks_memory_slots[GM__NVTX_HEAP_REGISTER]);
  marks_take(marks->heap_end, marks_memory_slots[GM__NVTX_HEAP_UNREGISTER]);
  marks_take(marks->regions, marks_memory_slots[GM__NVTX_REGIONS_REGISTER]);
  marks_take(marks->regions_end, marks_memory_slots[GM__NVTX_REGIONS_UNREGISTER]);
}

typedef struct marks_entries { /* of a tool's library */
  gm__nvtx_initialize initialize;
  gm__nvtx_initialize_extension initialize_extension;
} marks_entries;

static gm_status marks_inject(marks_tool *tool, const gm__dynlib *lib) {
  static const gm__symbol symbols[] = {
      {"InitializeInjectionNvtx2", offsetof(marks_entries, initialize), true},
      {"InitializeInjectionNvtxExtension", offsetof(marks_entries, initialize_extension), false}};
  marks_entries entries;
  gm_status status = gm__dynlib_resolve(lib, symbols, 2, &entries, NULL, NULL, &tool->why);
  if (status) return status;
  if (!entries.initialize(marks_export_table)) {
    return gm__fail(&tool->why, GM_ERR_UNAVAILABLE, 0, "InitializeInjectionNvtx2", "the tool refused");
  }
  marks_take_core(&tool->marks);
  marks_take_memory(&tool->marks, entries.initialize_extension);
  return GM_OK;
}

/* ---- finding a tool ---- */

static gm_status marks_name(marks_tool *tool, const gm__dynlib *lib, const char *push, const char *pop) {
  const gm__symbol symbols[] = {{push, offsetof(marks_plain, push), true}, {pop, offsetof(marks_plain, pop), true}};
  return gm__dynlib_resolve(lib, symbols, 2, &tool->marks.plain, NULL, NULL, &tool->why);
}

/* The library stays: the tool may call back until the process ends. */
static void marks_settle(marks_tool *tool, gm__dynlib *lib, gm_status status) {
  tool->there = status == GM_OK;
  gm__dynlib_keep(lib);
  gm__dynlib_close(lib);
}

static void marks_load_nvtx(void) {
  static const char *const names[] = {"libnvToolsExt.so.1", NULL};
  const char *path = gm__env("NVTX_INJECTION64_PATH");
  const gm__dynlib_spec spec = {.backend = "nvtx", .names = names, .path = path};
  gm__dynlib *lib;
  if (gm__dynlib_open(NULL, &spec, &lib, &marks_nvtx.why)) return;
  const bool injected = path && *path;
  marks_settle(
      &marks_nvtx, lib,
      injected ? marks_inject(&marks_nvtx, lib) : marks_name(&marks_nvtx, lib, "nvtxRangePushA", "nvtxRangePop"));
}

static void marks_load_roctx(void) {
  static const char *const names[] = {"librocprofiler-sdk-roctx.so.1", "libroctx64.so.4", "libroctx64.so", NULL};
  const gm__dynlib_spec spec = {.backend = "roctx", .names = names, .path = gm__env("GM_ROCTX_LIBRARY")};
  gm__dynlib *lib;
  if (gm__dynlib_open(NULL, &spec, &lib, &marks_roctx.why)) return;
  marks_settle(&marks_roctx, lib, marks_name(&marks_roctx, lib, "roctxRangePushA", "roctxRangePop"));
}

const gm__marks *gm__marks_of(gm_context *ctx) {
  char word[16];
  gm__config_text(ctx, "debug.ranges", word, sizeof word);
  const bool nvtx = strcmp(word, "nvtx") == 0;
  if (!nvtx && strcmp(word, "roctx") != 0) return NULL;
  gm__once_run(nvtx ? &marks_nvtx_once : &marks_roctx_once, nvtx ? marks_load_nvtx : marks_load_roctx);
  const marks_tool *tool = nvtx ? &marks_nvtx : &marks_roctx;
  if (tool->there) return &tool->marks;
  gm__log(gm__context_services(ctx), GM_LOG_WARN, "debug.ranges is %s, and there is no such tool: %s", word,
          tool->why.message);
  return NULL;
}

/* ---- ranges ---- */

void gm__marks_push(const gm__marks *marks, const char *what, const char *name, uint64_t bytes) {
  char text[128];
  if (!marks) return;
  snprintf(text, sizeof text, "gm %s, pool %s, %" PRIu64 " bytes", what, name, bytes);
  if (marks->domain && marks->domain_push && marks->domain_pop) {
    const gm__nvtx_event event = {
        .version = GM__NVTX_VERSION, .size = sizeof event, .message_type = GM__NVTX_MESSAGE_ASCII, .message = text};
    marks->domain_push(marks->domain, &event);
  } else if (marks->plain.push && marks->plain.pop) {
    marks->plain.push(text);
  }
}

void gm__marks_pop(const gm__marks *marks) {
  if (!marks) return;
  if (marks->domain && marks->domain_push && marks->domain_pop) {
    marks->domain_pop(marks->domain);
  } else if (marks->plain.push && marks->plain.pop) {
    marks->plain.pop();
  }
}

/* ---- memory ---- */

bool gm__marks_wants_memory(const gm__marks *marks) {
  return marks && marks->heap && marks->heap_end && marks->regions && marks->regions_end;
}

static gm__nvtx_range marks_range(uint64_t address, uint64_t bytes) {
  gm__nvtx_range range = {.bytes = (size_t)bytes};
  const uintptr_t at = (uintptr_t)address;
  memcpy(&range.address, &at, sizeof at);
  return range;
}

void *gm__marks_heap(const gm__marks *marks, const char *name, uint64_t address, uint64_t bytes) {
  if (!gm__marks_wants_memory(marks) || !address) return NULL;
  const gm__nvtx_range range = marks_range(address, bytes);
  const gm__nvtx_heap heap = {.compatibility = GM__NVTX_MEMORY_COMPATIBILITY,
                              .size = sizeof heap,
                              .usage = GM__NVTX_HEAP_SUB_ALLOCATOR,
                              .type = GM__NVTX_TYPE_VIRTUAL_ADDRESS,
                              .description_size = sizeof range,
                              .description = &range,
                              .message_type = GM__NVTX_MESSAGE_ASCII,
                              .message = name};
  /* cppcheck-suppress returnDanglingLifetime ; what the profiler answers is its own */
  return marks->heap(marks->domain, &heap);
}

void gm__marks_heap_end(const gm__marks *marks, void *heap) {
  if (heap) marks->heap_end(marks->domain, heap);
}

void gm__marks_region(const gm__marks *marks, void *heap, uint64_t address, uint64_t bytes) {
  const gm__nvtx_range range = marks_range(address, bytes);
  const gm__nvtx_regions regions = {.compatibility = GM__NVTX_MEMORY_COMPATIBILITY,
                                    .size = sizeof regions,
                                    .type = GM__NVTX_TYPE_VIRTUAL_ADDRESS,
                                    .heap = heap,
                                    .count = 1,
                                    .element_size = sizeof range,
                                    .elements = &range};
  if (heap) marks->regions(marks->domain, &regions);
}

void gm__marks_region_end(const gm__marks *marks, uint64_t address) {
  const void *at = marks_range(address, 0).address;
  const gm__nvtx_references references = {.compatibility = GM__NVTX_MEMORY_COMPATIBILITY,
                                          .size = sizeof references,
                                          .type = GM__NVTX_REFERENCE_POINTER,
                                          .count = 1,
                                          .element_size = sizeof at,
                                          .elements = &at};
  marks->regions_end(marks->domain, &references);
}
