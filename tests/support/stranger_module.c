/* A real backend as a stranger's module: a copy of gm's own code under another name. STRANGER_OPS: the table that it
 * copies. STRANGER_NAME: its name. */
#include "gm/backend.h"

extern const gm_backend_ops STRANGER_OPS;

__attribute__((visibility("default"))) const gm_backend_ops *gm_backend_module(void);

const gm_backend_ops *gm_backend_module(void) {
  static gm_backend_ops ops;
  if (ops.name) return &ops;
  ops = STRANGER_OPS;
  ops.name = STRANGER_NAME;
  return &ops;
}
