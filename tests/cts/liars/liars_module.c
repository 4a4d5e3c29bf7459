/* The module for `gm_cts --module`: the liar that the environment's GM_LIAR names, or the honest lazy backend. */
#include <stdlib.h>

#include "cts/liars/liars.h"

GM_API const gm_backend_ops *gm_backend_module(void);

const gm_backend_ops *gm_backend_module(void) {
  const char *name = getenv("GM_LIAR");
  return liar_ops(name ? name : "");
}
