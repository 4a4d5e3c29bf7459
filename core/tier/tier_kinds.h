/* The kinds of tier that a context knows: gm's own, and those of the host program. */
#ifndef GM_CORE_TIER_TIER_KINDS_H
#define GM_CORE_TIER_TIER_KINDS_H

#include "gm/tier.h"

enum { GM__TIER_NAME = 32 };

typedef struct gm__tier_kind {
  struct gm__tier_kind *next;
  char name[GM__TIER_NAME];
  gm_tier_ops ops; /* its `name` is the one above */
} gm__tier_kind;

/* Finds a kind by its name, one of gm's own or one that was registered. It lives as long as the context. NOT_FOUND: the
 * message lists the kinds there are. */
gm_status gm__tier_kind_find(gm_context *ctx, const char *name, const gm__tier_kind **out, gm_error *err);

extern const gm_tier_ops gm__host_tier_ops, gm__disk_tier_ops, gm__remote_tier_ops;

#endif
