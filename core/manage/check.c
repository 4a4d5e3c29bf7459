#include <inttypes.h>

#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/sized.h"
#include "core/pool/pool.h"

gm_status gm_pool_check(gm_pool *pool, gm_check_report *out, gm_error *err) {
  GM__UNCANCELLED();
  gm_status status = gm__pool_alive(pool, "gm_pool_check", err);
  if (!status && out) status = gm__sized_check(out, sizeof *out, "gm_pool_check", "out", err);
  if (status) return status;
  gm_check_report report = {.struct_size = sizeof report};
  status = gm__guard_check(pool->guard, &report);
  if (out) gm__sized_out(out, &report, sizeof report);
  if (!status) return GM_OK;
  return gm__fail(err, status, "gm_pool_check", "%" PRIu64 " blocks are damaged; the latest: %s", report.damaged,
                  report.text);
}
