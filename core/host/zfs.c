/* ZFS keeps a cache of its own, which the kernel's figures count as used (rule H12). It shrinks to `c_min` when others
 * need memory, as the page cache does. */
#include "core/host/host_readers.h"

#include <string.h>

#include "core/base/decimal.h"
#include "core/base/file.h"
#include "core/base/saturate.h"

/* The inode of the machine's first namespace of processes, in every kernel. */
#define ZFS_FIRST_NAMESPACE UINT64_C(0xEFFFFFFC)

typedef struct zfs_arc {
  uint64_t size, least;
} zfs_arc;

/* "size                            4    51539607552" */
static bool zfs_line(void *user, char *line) {
  zfs_arc *arc = user;
  const size_t length = strcspn(line, " \t");
  uint64_t kind, value;
  const char *end;
  if (!gm__decimal(gm__skip_blanks(line + length), &end, &kind) || !gm__decimal(gm__skip_blanks(end), &end, &value)) {
    return true;
  }
  if (length == 4 && memcmp(line, "size", 4) == 0) arc->size = value;
  if (length == 5 && memcmp(line, "c_min", 5) == 0) arc->least = value;
  return true;
}

/* In a container the machine's cache is not that of the figures that the process sees. */
static bool zfs_is_ours(const char *root) {
  const uint64_t own = gm__file_inode(root, "/proc/self/ns/pid");
  return own == 0 || own == ZFS_FIRST_NAMESPACE;
}

bool gm__zfs_read(const char *root, uint64_t used_bytes, uint64_t *out) {
  zfs_arc arc = {GM_UNKNOWN_BYTES, GM_UNKNOWN_BYTES};
  *out = 0;
  if (gm__file_lines(root, "/proc/spl/kstat/zfs/arcstats", zfs_line, &arc) == GM__FILE_ABSENT) return false;
  if (arc.size == GM_UNKNOWN_BYTES || arc.least == GM_UNKNOWN_BYTES || !zfs_is_ours(root)) return true;
  const uint64_t spare = gm__sub_sat(arc.size, arc.least);
  if (spare <= used_bytes) *out = spare; /* else it is not within what these figures call used */
  return true;
}
