#include "core/base/sized.h"

#include <string.h>

#include "core/base/error.h"
#include "gm/version.h"

/* Invariant: struct_size is the first member of each such struct. So gm can read and write it before it knows anything
 * else of the struct. */

static uint32_t sized_read(const void *from) {
  uint32_t size;
  memcpy(&size, from, sizeof size);
  return size;
}

gm_status gm__sized_check(const void *theirs, size_t bytes, const char *op, const char *name, gm_error *err) {
  if (!theirs) return gm__bad_argument(err, op, "`%s` is NULL", name);
  const uint32_t size = sized_read(theirs);
  if (size >= GM__SIZED_LEAST && size <= GM__SIZED_MOST) return GM_OK;
  return gm__bad_argument(err, op, "`%s->struct_size` is %u, must be %zu", name, size, bytes);
}

/* From `at`, of `theirs` bytes. */
static gm_status sized_take(void *to, size_t bytes, const unsigned char *at, uint32_t theirs, const char *op,
                            const char *name, gm_error *err) {
  const uint32_t ours = (uint32_t)bytes;
  for (size_t i = bytes; i < theirs; i++) {
    if (!at[i]) continue;
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, op,
                    "`%s` has a member behind byte %zu set, which gm %s does not know: it is of a newer header", name,
                    bytes, gm_version_string());
  }
  memset(to, 0, bytes);
  memcpy(to, at, theirs < bytes ? theirs : bytes);
  memcpy(to, &ours, sizeof ours);
  return GM_OK;
}

gm_status gm__sized_in(void *to, size_t bytes, const void *from, const char *op, const char *name, gm_error *err) {
  return gm__sized_in_at(to, bytes, from, 0, op, name, err);
}

gm_status gm__sized_in_at(void *to, size_t bytes, const void *first, size_t index, const char *op, const char *name,
                          gm_error *err) {
  const gm_status status = gm__sized_check(first, bytes, op, name, err);
  if (status) return status;
  const uint32_t theirs = sized_read(first);
  return sized_take(to, bytes, (const unsigned char *)first + index * theirs, theirs, op, name, err);
}

void gm__sized_out(void *to, const void *from, size_t bytes) {
  const uint32_t theirs = sized_read(to);
  memcpy(to, from, theirs < bytes ? theirs : bytes);
  if (theirs > bytes) memset((unsigned char *)to + bytes, 0, theirs - bytes);
  memcpy(to, &theirs, sizeof theirs);
}

void *gm__sized_at(void *first, size_t index) { return (unsigned char *)first + index * sized_read(first); }
