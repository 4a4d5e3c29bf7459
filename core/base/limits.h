/* The system's limits for this process, and how much of each is left. Nothing else of gm asks for a limit. Figures are
 * of the moment of the call. Thread-safe. */
#ifndef GM_CORE_BASE_LIMITS_H
#define GM_CORE_BASE_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum gm__limit {
  GM__LIMIT_FILE,        /* RLIMIT_FSIZE, bytes of a file or memfd. The system sends a signal to who asks for more */
  GM__LIMIT_DATA,        /* RLIMIT_DATA, bytes of private memory that can be written */
  GM__LIMIT_ADDRESSES,   /* RLIMIT_AS, bytes */
  GM__LIMIT_LOCKED,      /* RLIMIT_MEMLOCK, bytes */
  GM__LIMIT_DESCRIPTORS, /* RLIMIT_NOFILE, a number */
  GM__LIMITS
} gm__limit;

/* The limit of this process, or that in /proc/self/limits below `root` where that is not "" or NULL. UINT64_MAX: there
 * is none, or nothing tells. */
uint64_t gm__limit_of(const char *root, gm__limit limit);

/* The name that people know it by, such as "RLIMIT_DATA". */
const char *gm__limit_name(gm__limit limit);

/* May a file of this process grow to so many bytes? Ask before each call that makes one grow. */
bool gm__limit_allows_file(uint64_t bytes);

/* The mappings of the process, and how many it may have (vm.max_map_count). */
typedef struct gm__mappings {
  uint64_t count, most;
} gm__mappings;

/* False: nothing tells. It reads all of /proc/self/maps below `root`: call it after a refusal. */
bool gm__mappings_read(const char *root, gm__mappings *out);

/* A call may need two new mappings. */
static inline bool gm__mappings_are_used_up(const gm__mappings *mappings) {
  return mappings->count + 2 >= mappings->most;
}

#endif
