/* The tier "remote" of a gm that was built without hiredis. */
#include "core/base/error.h"
#include "core/tier/tier_kinds.h"

static gm_status remote_open(gm_context *ctx, const char *where, const gm_tier_params *params, void **out_tier,
                             gm_error *err) {
  (void)ctx, (void)where, (void)params, (void)out_tier;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, "gm_tier_open",
                  "this gm was built without hiredis: GM_WITH_HIREDIS=ON builds the tier \"remote\"");
}

/* Nothing but `open` is ever called: it opens no tier. */
const gm_tier_ops gm__remote_tier_ops = {
    .struct_size = sizeof gm__remote_tier_ops, .abi = GM_TIER_ABI, .name = "remote", .open = remote_open};
