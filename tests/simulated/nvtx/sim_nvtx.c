/* A simulated tool: what a profiler or compute-sanitizer is to a program with NVTX 3, and what ROCTX is. It writes down
 * what it is told; simMarks gives the text. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/track/profiler_nvtx.h"

#define SIM_EXPORT __attribute__((visibility("default")))

static pthread_mutex_t sim_lock = PTHREAD_MUTEX_INITIALIZER;
static char sim_text[65536];
static int sim_depth, sim_heaps, sim_regions;

__attribute__((format(printf, 1, 2))) static void sim_note(const char *format, ...) {
  const size_t length = strlen(sim_text);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(sim_text + length, sizeof sim_text - length, format, arguments);
  va_end(arguments);
}

static void *sim_domain_create(const char *name) {
  static int domain;
  sim_note("domain %s\n", name);
  return &domain;
}

static int sim_push(const char *message) {
  pthread_mutex_lock(&sim_lock);
  sim_note("push %s\n", message);
  const int depth = sim_depth++;
  pthread_mutex_unlock(&sim_lock);
  return depth;
}

static int sim_pop(void) {
  pthread_mutex_lock(&sim_lock);
  const int depth = --sim_depth;
  pthread_mutex_unlock(&sim_lock);
  return depth;
}

static int sim_domain_push(void *domain, const gm__nvtx_event *event) {
  if (!domain || event->version != GM__NVTX_VERSION || event->size != 48 || event->message_type != 1) return -1;
  return sim_push(event->message);
}

static int sim_domain_pop(void *domain) { return domain ? sim_pop() : -1; }

static void *sim_heap(void *domain, const gm__nvtx_heap *heap) {
  static char handles[4096];
  const gm__nvtx_range *range = heap->description;
  if (!domain || heap->compatibility != 0x0102 || heap->description_size != sizeof *range) return NULL;
  pthread_mutex_lock(&sim_lock);
  sim_note("heap %s of %zu bytes\n", heap->message, range->bytes);
  void *handle = &handles[sim_heaps++];
  pthread_mutex_unlock(&sim_lock);
  return handle;
}

static void sim_heap_end(void *domain, void *heap) {
  pthread_mutex_lock(&sim_lock);
  if (domain && heap) sim_heaps--;
  pthread_mutex_unlock(&sim_lock);
}

static void sim_region(void *domain, const gm__nvtx_regions *regions) {
  const gm__nvtx_range *range = regions->elements;
  pthread_mutex_lock(&sim_lock);
  if (domain && regions->heap && regions->element_size == sizeof *range) {
    sim_regions += (int)regions->count;
    sim_note("region of %zu bytes\n", range->bytes);
  }
  pthread_mutex_unlock(&sim_lock);
}

static void sim_region_end(void *domain, const gm__nvtx_references *references) {
  pthread_mutex_lock(&sim_lock);
  if (domain && references->type == GM__NVTX_REFERENCE_POINTER) sim_regions -= (int)references->count;
  pthread_mutex_unlock(&sim_lock);
}

#define sim_give(slot, function)                      \
  do {                                                \
    __typeof__(&(function)) sim_pointer = function;   \
    memcpy((slot), &sim_pointer, sizeof sim_pointer); \
  } while (0)

SIM_EXPORT int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t id));
SIM_EXPORT int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t id)) {
  const gm__nvtx_version_info *version = export_table(GM__NVTX_TABLE_VERSION);
  const gm__nvtx_callbacks *callbacks = export_table(GM__NVTX_TABLE_CALLBACKS);
  gm__nvtx_function **table;
  unsigned size;
  if (!version || version->version != 3 || !callbacks || export_table(77)) return 0;
  version->set_tool_version(3);
  if (callbacks->module_table(0, &table, &size) || callbacks->module_table(99, &table, &size)) return 0;
  if (callbacks->module_table(GM__NVTX_MODULES, &table, &size)) return 0;
  for (int module = GM__NVTX_MODULE_CORE; module < GM__NVTX_MODULES; module++) {
    if (!callbacks->module_table(module, &table, &size) || size < 7 || table[0] || table[size]) return 0;
    if (module != GM__NVTX_MODULE_CORE2) continue;
    sim_give(table[GM__NVTX_DOMAIN_CREATE_A], sim_domain_create);
    sim_give(table[GM__NVTX_DOMAIN_RANGE_PUSH], sim_domain_push);
    sim_give(table[GM__NVTX_DOMAIN_RANGE_POP], sim_domain_pop);
  }
  return 1;
}

SIM_EXPORT int InitializeInjectionNvtxExtension(gm__nvtx_module *module);
SIM_EXPORT int InitializeInjectionNvtxExtension(gm__nvtx_module *module) {
  if (module->module != GM__NVTX_EXTENSION_MEMORY || module->segment_count != 1) return 0;
  intptr_t *slots = module->segments[0].slots;
  sim_give(&slots[GM__NVTX_HEAP_REGISTER], sim_heap);
  sim_give(&slots[GM__NVTX_HEAP_UNREGISTER], sim_heap_end);
  sim_give(&slots[GM__NVTX_REGIONS_REGISTER], sim_region);
  sim_give(&slots[GM__NVTX_REGIONS_UNREGISTER], sim_region_end);
  return 1;
}

SIM_EXPORT int roctxRangePushA(const char *message);
SIM_EXPORT int roctxRangePushA(const char *message) { return sim_push(message); }
SIM_EXPORT int roctxRangePop(void);
SIM_EXPORT int roctxRangePop(void) { return sim_pop(); }

/* The counts until now; the three counts are 0 where everything has ended. */
SIM_EXPORT const char *simMarks(int *depth, int *heaps, int *regions);
SIM_EXPORT const char *simMarks(int *depth, int *heaps, int *regions) {
  *depth = sim_depth;
  *heaps = sim_heaps;
  *regions = sim_regions;
  return sim_text;
}
