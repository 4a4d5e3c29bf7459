/* The one list of configuration keys: it makes the public descriptions, the environment names and the checks. */
#ifndef GM_CORE_CONTEXT_CONFIG_KEYS_H
#define GM_CORE_CONTEXT_CONFIG_KEYS_H

#include "gm/config.h"

/* X(key, environment, type, range, default, effective, meaning). Types: "bool"; "fraction" (range "a..b"); "count" and
 * "bytes" (range "a..b", or with "auto|" before it); "word" (range "a|b|c"); "list" of bytes; "pairs" of
 * bytes:count; "text". Effective false: the feature comes with a later version. */
#define GM__CONFIG_KEYS(X)                                                                                           \
  X("memory_fraction", "GM_MEMORY_FRACTION", "fraction", "0..1", "0.9", true,                                        \
    "share of a device's total memory that gm may take")                                                             \
  X("min_free_bytes", "GM_MIN_FREE_BYTES", "bytes", "auto|0..", "auto", true,                                        \
    "bytes that gm leaves free for others; auto: the smaller of 512 MiB and 5 % of total")                           \
  X("cpu_fallback", "GM_CPU_FALLBACK", "bool", "", "true", true,                                                     \
    "a buffer that finds no device memory may live in host memory, unless its request says otherwise")               \
  X("track_allocations", "GM_TRACK_ALLOCATIONS", "bool", "", GM__CONFIG_TRACK, true,                                 \
    "pools keep a record of each block; on by default in debug builds")                                              \
  X("max_pooled_per_bucket", "GM_MAX_POOLED_PER_BUCKET", "count", "0..1048576", "8", true,                           \
    "free blocks that a power-of-two bucket keeps")                                                                  \
  X("max_pool_bytes", "GM_MAX_POOL_BYTES", "bytes", "0..", "0", true,                                                \
    "cap on the bytes a pool reserves; 0: by memory_fraction")                                                       \
  X("allocation_strategy", "GM_ALLOCATION_STRATEGY", "word", "auto|bucket|best_fit", "auto", true,                   \
    "how pools find memory; auto means best_fit, which reuses small blocks by exact size")                           \
  X("stats_enabled", "GM_STATS_ENABLED", "bool", "", "true", true, "has no effect: statistics are always on today")  \
  X("pressure.medium", "GM_PRESSURE_MEDIUM", "fraction", "0..1", "0.60", true,                                       \
    "used share from which pressure is medium")                                                                      \
  X("pressure.high", "GM_PRESSURE_HIGH", "fraction", "0..1", "0.80", true, "used share from which pressure is high") \
  X("pressure.critical", "GM_PRESSURE_CRITICAL", "fraction", "0..1", "0.95", true,                                   \
    "used share above which pressure is critical")                                                                   \
  X("pressure.hysteresis", "GM_PRESSURE_HYSTERESIS", "fraction", "0..1", "0.02", true,                               \
    "how far below a threshold the share must fall before the level does")                                           \
  X("gpu.backend.enabled", "GM_GPU_BACKEND_ENABLED", "bool", "", "true", true, "false: gm selects the CPU only")     \
  X("gpu.backend.device", "GM_GPU_BACKEND_DEVICE", "text", "", "auto", true,                                         \
    "auto, a backend name, or backend:uuid: the device that gm selects when the caller has no preference")           \
  X("pre_allocate", "GM_PRE_ALLOCATE", "bool", "", "false", true, "new pools take pre_allocate_sizes at once")       \
  X("pre_allocate_sizes", "GM_PRE_ALLOCATE_SIZES", "list", "", "", true, "block sizes that pre_allocate takes")      \
  X("warmup_enabled", "GM_WARMUP_ENABLED", "bool", "", "true", true, "new pools warm up from `warmup`")              \
  X("warmup", "GM_WARMUP", "pairs", "", "", true, "what to warm up: size:count,…")                                   \
  X("small_block_threshold", "GM_SMALL_BLOCK_THRESHOLD", "bytes", "0..", "1M", true,                                 \
    "quick lists of best_fit take blocks up to 16 times this size, or a 64th of it on devices without mapped pages") \
  X("size_class_bits", "GM_SIZE_CLASS_BITS", "count", "0..5", "0", true,                                             \
    "buckets have 2^bits sizes from one power of two to the next; 0: powers of two")                                 \
  X("segment_size", "GM_SEGMENT_SIZE", "bytes", "auto|65536..", "auto", true,                                        \
    "bytes that a best_fit pool takes at a time, if there is room; auto: the size grows with the pool")              \
  X("zero_segments", "GM_ZERO_SEGMENTS", "bool", "", "false", true,                                                  \
    "best_fit pools fill new memory with zeros when they take it, so that requests for zeros need not")              \
  X("coalescing_threshold", "GM_COALESCING_THRESHOLD", "fraction", "0..1", "0.1", true,                              \
    "gm_pool_coalesce joins free memory above this unused share, and polls compact above this share of holes")       \
  X("aggressive_coalescing", "GM_AGGRESSIVE_COALESCING", "bool", "", "false", true,                                  \
    "true: a freed block joins its neighbours at once in best_fit, and unused segments go when the pool grows")      \
  X("cache.stream_local", "GM_CACHE_STREAM_LOCAL", "count", "0..1048576", "100", true,                               \
    "blocks that a stream keeps for itself")                                                                         \
  X("cache.global", "GM_CACHE_GLOBAL", "count", "0..1048576", "500", true,                                           \
    "blocks that a pool of buckets keeps for all streams")                                                           \
  X("cache_size", "GM_CACHE_SIZE", "count", "0..16777216", "1000", true,                                             \
    "blocks that all caches of a pool keep together")                                                                \
  X("cache.max_bytes", "GM_CACHE_MAX_BYTES", "bytes", "auto|0..", "auto", true,                                      \
    "bytes that a pool keeps for reuse when it has grown; auto: no bound")                                           \
  X("cache.max_age", "GM_CACHE_MAX_AGE", "count", "auto|0..", "auto", true,                                          \
    "milliseconds after which unused memory goes back; auto: 60000, and only above scaling.high")                    \
  X("scaling.low", "GM_SCALING_LOW", "fraction", "0..1", "0.3", true,                                                \
    "pressure below which cache.stream_local and cache.global grow when the pool does")                              \
  X("scaling.high", "GM_SCALING_HIGH", "fraction", "0..1", "0.8", true,                                              \
    "pressure above which they shrink, quick lists are emptied, and old memory goes")                                \
  X("scaling.factor", "GM_SCALING_FACTOR", "fraction", "1..16", "1.5", true,                                         \
    "by what they grow and shrink, up to 16 times and down to a 16th; 1: they stay as set")                          \
  X("cleanup.threshold", "GM_CLEANUP_THRESHOLD", "fraction", "0..1", "0.9", true,                                    \
    "used share above which gm_pool_cleanup gives back cached memory")                                               \
  X("gpu.memory.cache_size", "GM_GPU_MEMORY_CACHE_SIZE", "count", "0..16777216", "100", true,                        \
    "objects that a gm_cache keeps where its parameters set no bound; "                                              \
    "if somebody sets it, also values of a gm_store on the device")                                                  \
  X("gpu.memory.keep_in_vram", "GM_GPU_MEMORY_KEEP_IN_VRAM", "bool", "", "true", true,                               \
    "false: a store takes values down from the device at its next call, if nobody refers to them")                   \
  X("gpu.ast.cache_enabled", "GM_GPU_AST_CACHE_ENABLED", "bool", "", "true", true,                                   \
    "false: gm_tensor_sets keep no set, and have one made for each caller")                                          \
  X("gpu.ast.max_cache_size", "GM_GPU_AST_MAX_CACHE_SIZE", "count", "0..1048576", "50", true,                        \
    "sets that gm_tensor_sets keep where their parameters do not say")                                               \
  X("reserve.share", "GM_RESERVE_SHARE", "word", "auto|require|off", "auto", true,                                   \
    "whether processes respect each other's reservations; require: a reservation fails where they cannot; "          \
    "not set: adopted devices do not")                                                                               \
  X("reserve.folder", "GM_RESERVE_FOLDER", "text", "", "", true,                                                     \
    "absolute path of the folder in which they tell each other; empty: /dev/shm, else $XDG_RUNTIME_DIR")             \
  X("staging.max_bytes", "GM_STAGING_MAX_BYTES", "bytes", "0..", "64M", true,                                        \
    "page-locked memory for copies, loads, saves and pipelines of a device; each has one piece in any case")         \
  X("links.folder", "GM_LINKS_FOLDER", "text", "", "", true,                                                         \
    "absolute path of the folder in which gm keeps what it measured of links; off: nowhere; empty: "                 \
    "$XDG_CACHE_HOME, else ~/.cache")                                                                                \
  X("debug.red_zone_bytes", "GM_DEBUG_RED_ZONE_BYTES", "bytes", "0..1048576", "0", true,                             \
    "bytes of the red zones before and behind each block of a pool")                                                 \
  X("debug.poison", "GM_DEBUG_POISON", "bool", "", "false", true,                                                    \
    "pools fill memory with one pattern when they hand it out, and with another when it is freed")                   \
  X("debug.check_freed", "GM_DEBUG_CHECK_FREED", "bool", "", "false", true,                                          \
    "like debug.poison; pools also hold back the last freed blocks, and check them before reuse")                    \
  X("debug.ranges", "GM_DEBUG_RANGES", "word", "off|nvtx|roctx", "off", true,                                        \
    "profiler that gm tells about driver calls, and with nvtx also about each block")

#ifdef NDEBUG
#define GM__CONFIG_TRACK "false"
#else
#define GM__CONFIG_TRACK "true"
#endif

size_t gm__config_key_count(void);

/* Its place in the list, by name or alias; the count when there is none. */
size_t gm__config_key_find(const char *name);

/* The environment variable of a key that a misspelt name is near to; NULL: it is near to none. */
const char *gm__config_variable_near(const char *name, size_t length);

/* The key whose name is nearest to a misspelt one. Never NULL. */
const char *gm__config_key_nearest(const char *name);

/* Is `value` one that the key takes? INVALID_ARGUMENT names key, value and range; `where` ("GM_X", "file:7", "")
 * leads.
 */
gm_status gm__config_key_check(const gm_config_key *key, const char *where, const char *value, gm_error *err);

#endif
