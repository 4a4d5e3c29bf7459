#include "core/algo/key_path.h"

#include <string.h>

/* Invariant: out[0, length) is normal after each part. A part is written no further right than it was read, so a key
 * may be normalised in place. */

/* Drops the last part. False: there is none. */
static bool key_path_up(const char *out, size_t *length) {
  if (!*length) return false;
  while (*length && out[*length - 1] != '/') --*length;
  if (*length) --*length;
  return true;
}

static void key_path_append(char *out, size_t *length, const char *part, size_t bytes) {
  if (*length) out[(*length)++] = '/';
  memmove(out + *length, part, bytes);
  *length += bytes;
}

gm__key_path_fault gm__key_path_normalise(const char *key, size_t bytes, char *out, size_t *out_bytes) {
  size_t length = 0;
  if (!bytes) return GM__KEY_PATH_EMPTY;
  if (bytes > GM__KEY_PATH_MOST) return GM__KEY_PATH_LONG;
  if (memchr(key, '\0', bytes)) return GM__KEY_PATH_NUL;
  for (size_t at = 0, end; at < bytes; at = end + 1) {
    const char *slash = memchr(key + at, '/', bytes - at);
    end = slash ? (size_t)(slash - key) : bytes;
    const size_t part = end - at;
    if (part == 0 || (part == 1 && key[at] == '.')) continue;
    if (part == 2 && key[at] == '.' && key[at + 1] == '.') {
      if (!key_path_up(out, &length)) return GM__KEY_PATH_ESCAPES;
    } else {
      key_path_append(out, &length, key + at, part);
    }
  }
  *out_bytes = length;
  return GM__KEY_PATH_FINE;
}

bool gm__key_path_is_below(const char *key, size_t key_bytes, const char *prefix, size_t prefix_bytes) {
  if (!prefix_bytes) return true;
  if (key_bytes < prefix_bytes || memcmp(key, prefix, prefix_bytes) != 0) return false;
  return key_bytes == prefix_bytes || key[prefix_bytes] == '/';
}

const char *gm__key_path_fault_text(gm__key_path_fault fault) {
  switch (fault) {
    case GM__KEY_PATH_FINE: return "is fine";
    case GM__KEY_PATH_EMPTY: return "is empty";
    case GM__KEY_PATH_LONG: return "has more than 4096 bytes";
    case GM__KEY_PATH_NUL: return "has a zero byte inside";
    case GM__KEY_PATH_ESCAPES: return "leads above the root by \"..\"";
  }
  return "is wrong";
}
