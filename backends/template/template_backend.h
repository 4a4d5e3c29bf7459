/* A backend in small: copy it, then replace the insides. */
#ifndef TEMPLATE_BACKEND_H
#define TEMPLATE_BACKEND_H

#include "gm/backend.h"

/* Static storage. For gm_backend_register. */
const gm_backend_ops *template_backend(void);

/* What `gm_cts --module` looks for in a shared object. */
GM_API const gm_backend_ops *gm_backend_module(void);

#endif
