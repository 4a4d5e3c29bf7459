/* Keys that look like paths of POSIX, in one normal form: no empty part, no ".", no "..", no slash at either end. Pure;
 * memory is the caller's. */
#ifndef GM_CORE_ALGO_KEY_PATH_H
#define GM_CORE_ALGO_KEY_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/inner.h"

enum { GM__KEY_PATH_MOST = 4096 };

typedef enum gm__key_path_fault {
  GM__KEY_PATH_FINE = 0,
  GM__KEY_PATH_EMPTY,  /* no bytes at all */
  GM__KEY_PATH_LONG,   /* more than GM__KEY_PATH_MOST bytes */
  GM__KEY_PATH_NUL,    /* a zero byte inside */
  GM__KEY_PATH_ESCAPES /* ".." above the root */
} gm__key_path_fault;

/* Write the normal form of `bytes` bytes at `key` to `out`, which has room for `bytes`, and its length to *out_bytes.
 * The length is 0 where the key names the root: "/", ".", "a/..". `out` may be `key`. After a fault both outputs may
 * hold anything. */
GM__INNER gm__key_path_fault gm__key_path_normalise(const char *key, size_t bytes, char *out, size_t *out_bytes);

/* Is `key` the prefix itself, or below it? Both are normal. A prefix of 0 bytes is the root, and has all keys. */
bool gm__key_path_is_below(const char *key, size_t key_bytes, const char *prefix, size_t prefix_bytes);

/* The meaning of a fault, for the end of a sentence that begins with the key. */
GM__INNER const char *gm__key_path_fault_text(gm__key_path_fault fault);

#endif
