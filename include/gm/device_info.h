/* The description of a device, and of its abilities. A backend, discovery and an open device all use this structure.
 * Plain data. */
#ifndef GM_DEVICE_INFO_H
#define GM_DEVICE_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include "gm/native.h"

GM_BEGIN_DECLS

#define GM_UUID_BYTES 16
#define GM_LUID_BYTES 8

/* How far discovery goes. */
typedef enum gm_probe_level {
  GM_PROBE_PASSIVE = 0, /* reads files only; runs no vendor code; safe before a fork */
  GM_PROBE_ACTIVE = 1,  /* loads the driver and asks it; leaves no device or context behind */
  GM_PROBE_ISOLATED = 2 /* ACTIVE in a helper process; backends never see this level */
} gm_probe_level;

typedef enum gm_device_type {
  GM_DEVICE_TYPE_UNKNOWN = 0,
  GM_DEVICE_TYPE_DISCRETE,
  GM_DEVICE_TYPE_INTEGRATED, /* a GPU whose memory is host memory */
  GM_DEVICE_TYPE_CPU         /* a software device, or the host itself */
} gm_device_type;

/* This list feeds the enum and the words of `gmem info`. */
#define GM_CAPABILITY_MAP(X)                                                          \
  X(GM_CAP_STREAMS, 0, "streams", "has streams of its own making")                    \
  X(GM_CAP_POINTS, 1, "points", "can record, test and wait for points")               \
  X(GM_CAP_MAPPING, 2, "mapping", "memory can be mapped into the host")               \
  X(GM_CAP_VMM, 3, "vmm", "address ranges and physical memory are separate")          \
  X(GM_CAP_PEER, 4, "peer", "direct access between devices")                          \
  X(GM_CAP_SHARE, 5, "share", "memory can be exported to other processes")            \
  X(GM_CAP_MANAGED, 6, "managed", "unified memory that migrates")                     \
  X(GM_CAP_FILES, 7, "files", "files can be read into the device directly")           \
  X(GM_CAP_KERNELS, 8, "kernels", "gm's small kernels run on it")                     \
  X(GM_CAP_REGISTRATION, 9, "registration", "host memory can be registered (pinned)") \
  X(GM_CAP_ADOPT, 10, "adopt", "an engine's device and queue can be adopted")         \
  X(GM_CAP_COMMIT, 11, "commit", "memory can be committed on request")                \
  X(GM_CAP_ADDRESS, 12, "address", "blocks have device addresses")                    \
  X(GM_CAP_VIEW, 13, "view", "a native sub-object can be made of a block")            \
  X(GM_CAP_COMMIT_QUEUE, 14, "commit-queue", "committing takes a queue: gm's own, or the request's stream")

typedef enum gm_capability {
#define X(name, bit, word, text) name = 1 << (bit),
  GM_CAPABILITY_MAP(X)
#undef X
} gm_capability;

typedef struct gm_device_info {
  uint32_t struct_size;
  uint32_t index; /* position in its backend's list; for people, not for configuration */
  gm_api api;
  gm_device_type type;
  char backend[16]; /* name of the backend, "opencl" */
  char name[128];
  char vendor[32];     /* a short lower-case word, such as "nvidia", "amd", "intel", "mesa" or "pocl"; else the
                          driver's own word */
  char driver[32];     /* a short word, such as "pocl", "llvmpipe", "radv" or "rocm" */
  char version[64];    /* of the driver, for people */
  char capability[32]; /* "sm_90", "gfx90a", "OpenCL 3.0", "Vulkan 1.3.230" */
  char pci[24];        /* "0000:65:00.0"; "" if the API does not say */
  char partition[64];  /* MIG UUID or XCP number; "" if there is none */
  uint8_t uuid[GM_UUID_BYTES];
  uint8_t luid[GM_LUID_BYTES];
  bool uuid_derived; /* the API has no UUID: gm made one from backend, driver, name and ordinal */
  bool has_luid;
  bool unified;                  /* its memory is host memory */
  bool simulated;                /* the driver is simulated, or the memory does not exist (null) */
  int32_t numa_node;             /* -1: unknown */
  uint64_t total_bytes;          /* 0: unknown */
  uint64_t max_alloc_bytes;      /* largest single allocation; 0: no known limit */
  uint64_t alignment;            /* alignment that every allocation and block view needs; a power of two */
  uint64_t map_atom_bytes;       /* unit of flush and invalidate; 1: coherent */
  uint64_t max_allocation_count; /* live driver allocations at a time; 0: no known limit */
  uint64_t page_bytes;           /* unit in which the driver really takes memory; 0: unknown */
  uint64_t capabilities;         /* gm_capability bits */
  uint64_t reserved[8];          /* 0 */
} gm_device_info;

/* Calls `each` with the word of every set bit of `capabilities`, from the lowest bit up. `each` must not throw.
 * Thread-safe. */
GM_API void gm_capability_words(uint64_t capabilities, void (*each)(void *user, const char *word), void *user);

/* Returns the word of a device type: "discrete", "integrated", "cpu" or "unknown". The string is static and never NULL.
 * Thread-safe. */
GM_API const char *gm_device_type_name(gm_device_type type);

GM_END_DECLS

#endif
