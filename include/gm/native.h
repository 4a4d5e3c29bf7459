/* Native objects that pass between an engine and gm: plain handles, no vendor header needed.
 *
 * Each API has its own header (gm/native_opencl.h, gm/native_vulkan.h, ...) with structs whose first member is one of
 * the heads below; a pointer to the head is what gm's calls take. Handles are carried as uintptr_t or uint64_t, so that
 * no cast of a function-like or 64-bit non-dispatchable handle is lost. Plain data. */
#ifndef GM_NATIVE_H
#define GM_NATIVE_H

#include <stdint.h>

#include "gm/export.h"

GM_BEGIN_DECLS

/* The GPU API of a backend. Numbers are pinned. */
typedef enum gm_api {
  GM_API_CPU = 0,
  GM_API_CUDA = 1,
  GM_API_HIP = 2,
  GM_API_OPENCL = 3,
  GM_API_VULKAN = 4,
  GM_API_NULL = 5,
  GM_API_METAL = 6,
  GM_API_OTHER = 7 /* a backend from outside; its name tells */
} gm_api;

/* "cpu", "cuda", "hip", "opencl", "vulkan", "null", "metal", "other". Static storage, never NULL. */
GM_API const char *gm_api_name(gm_api api);

/* Heads: first member of every native struct; struct_size is that of the whole struct, api says which it is. */
typedef struct gm_native_device {
  uint32_t struct_size;
  gm_api api;
} gm_native_device;

typedef struct gm_native_stream {
  uint32_t struct_size;
  gm_api api;
} gm_native_stream;

typedef struct gm_native_point {
  uint32_t struct_size;
  gm_api api;
} gm_native_point;

/* Native objects behind a piece of memory. On output the caller sets struct_size and api to say what it can take. */
typedef struct gm_native_memory {
  uint32_t struct_size;
  gm_api api;
} gm_native_memory;

GM_END_DECLS

#endif
