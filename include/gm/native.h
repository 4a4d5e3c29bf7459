/* Native objects that an engine and gm hand to each other, as plain handles: no vendor header is needed.
 *
 * Each API has its own header, such as gm/native_opencl.h. The first member of its structs is one of the heads below,
 * and gm's calls take a pointer to the head. Handles are uintptr_t or uint64_t, so that no cast loses a function
 * pointer or a 64-bit non-dispatchable handle. Plain data. */
#ifndef GM_NATIVE_H
#define GM_NATIVE_H

#include <stdint.h>

#include "gm/export.h"

GM_BEGIN_DECLS

/* The GPU API of a backend. The numbers never change. */
typedef enum gm_api {
  GM_API_CPU = 0,
  GM_API_CUDA = 1,
  GM_API_HIP = 2,
  GM_API_OPENCL = 3,
  GM_API_VULKAN = 4,
  GM_API_NULL = 5,
  GM_API_METAL = 6,
  GM_API_OTHER = 7 /* a third-party backend, known by its name */
} gm_api;

/* Returns the name of an API: "cpu", "cuda", "hip", "opencl", "vulkan", "null", "metal" or "other". The string is
 * static and never NULL. Thread-safe. */
GM_API const char *gm_api_name(gm_api api);

/* Heads: each is the first member of native structs. struct_size is the size of the whole struct, and `api` says which
 * struct it is. */
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

/* Head of the native objects behind memory. To receive such objects, the caller sets struct_size and `api` of the
 * struct that it has. */
typedef struct gm_native_memory {
  uint32_t struct_size;
  gm_api api;
} gm_native_memory;

GM_END_DECLS

#endif
