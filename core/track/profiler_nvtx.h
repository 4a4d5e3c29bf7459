/* NVTX 3 as a library without NVIDIA's headers sees it. A tool fills these tables when it is loaded, and is handed
 * these structs. Names and numbers are those of NVTX version 3, memory extension 1.2. */
#ifndef GM_CORE_TRACK_PROFILER_NVTX_H
#define GM_CORE_TRACK_PROFILER_NVTX_H

#include <stddef.h>
#include <stdint.h>

typedef void (*gm__nvtx_function)(void);

enum {
  GM__NVTX_VERSION = 3,
  GM__NVTX_TABLE_CALLBACKS = 1,
  GM__NVTX_TABLE_VERSION = 3,
  GM__NVTX_MODULE_CORE = 1,
  GM__NVTX_MODULE_CORE2 = 5,
  GM__NVTX_MODULES = 7,
  GM__NVTX_RANGE_PUSH_A = 9, /* of module core */
  GM__NVTX_RANGE_POP = 11,
  GM__NVTX_DOMAIN_RANGE_PUSH = 4, /* of module core 2 */
  GM__NVTX_DOMAIN_RANGE_POP = 5,
  GM__NVTX_DOMAIN_CREATE_A = 12,
  GM__NVTX_MESSAGE_ASCII = 1,
  GM__NVTX_EXTENSION_MEMORY = 1,
  GM__NVTX_MEMORY_COMPATIBILITY = 0x0102,
  GM__NVTX_MEMORY_SLOTS = 63,
  GM__NVTX_HEAP_REGISTER = 1, /* of the memory extension */
  GM__NVTX_HEAP_UNREGISTER = 2,
  GM__NVTX_REGIONS_REGISTER = 4,
  GM__NVTX_REGIONS_UNREGISTER = 6,
  GM__NVTX_HEAP_SUB_ALLOCATOR = 1,
  GM__NVTX_TYPE_VIRTUAL_ADDRESS = 1,
  GM__NVTX_REFERENCE_POINTER = 1
};

typedef struct gm__nvtx_callbacks {
  size_t struct_size;
  int (*module_table)(int module, gm__nvtx_function ***out_table, unsigned *out_size);
} gm__nvtx_callbacks;

typedef struct gm__nvtx_version_info {
  size_t struct_size;
  uint32_t version, reserved;
  void (*set_tool_version)(uint32_t version);
} gm__nvtx_version_info;

typedef struct gm__nvtx_event {
  uint16_t version, size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type, reserved;
  uint64_t payload;
  int32_t message_type;
  const char *message;
} gm__nvtx_event;

typedef struct gm__nvtx_segment {
  size_t id, count;
  intptr_t *slots;
} gm__nvtx_segment;

typedef struct gm__nvtx_module {
  uint16_t version, size, module, compatibility;
  size_t segment_count;
  gm__nvtx_segment *segments;
  intptr_t (*export_function)(uint32_t id);
  const void *info;
} gm__nvtx_module;

typedef struct gm__nvtx_range {
  size_t bytes;
  const void *address;
} gm__nvtx_range;

typedef struct gm__nvtx_heap {
  uint16_t compatibility, size;
  uint32_t reserved, usage, type;
  size_t description_size;
  const void *description;
  uint32_t category, message_type;
  const char *message;
} gm__nvtx_heap;

typedef struct gm__nvtx_regions {
  uint16_t compatibility, size;
  uint32_t type;
  void *heap;
  size_t count, element_size;
  const void *elements;
  void **out_handles;
} gm__nvtx_regions;

typedef struct gm__nvtx_references {
  uint16_t compatibility, size;
  uint32_t type;
  size_t count, element_size;
  const void *const *elements;
} gm__nvtx_references;

typedef int (*gm__nvtx_initialize)(const void *(*export_table)(uint32_t id));
typedef int (*gm__nvtx_initialize_extension)(gm__nvtx_module *module);

#endif
