#include "backends/shared/native.h"

#include <string.h>

#include "core/base/error.h"
#include "core/base/sized.h"

/* The four heads have the same members. */
_Static_assert(sizeof(gm_native_device) == sizeof(gm_native_memory), "a head");
_Static_assert(sizeof(gm_native_stream) == sizeof(gm_native_memory), "a head");
_Static_assert(sizeof(gm_native_point) == sizeof(gm_native_memory), "a head");

gm_status gm__native_check(const void *theirs, size_t bytes, gm_api api, const char *op, const char *name,
                           gm_error *err) {
  gm_native_memory head;
  if (!theirs) return gm__bad_argument(err, op, "`%s` is NULL", name);
  memcpy(&head, theirs, sizeof head);
  if (head.api == api) return gm__sized_check(theirs, bytes, op, name, err);
  return gm__bad_argument(err, op, "`%s` must have api %d (%s), is %d", name, (int)api, gm_api_name(api),
                          (int)head.api);
}

gm_status gm__native_in(void *to, size_t bytes, const void *from, gm_api api, const char *op, const char *name,
                        gm_error *err) {
  const gm_status status = gm__native_check(from, bytes, api, op, name, err);
  return status ? status : gm__sized_in(to, bytes, from, op, name, err);
}
