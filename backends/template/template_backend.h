/* The border of a small backend: copy the folder, then replace the insides. */
#ifndef TEMPLATE_BACKEND_H
#define TEMPLATE_BACKEND_H

#include "gm/backend.h"

/* The table for gm_backend_register, in static storage. */
const gm_backend_ops *template_backend(void);

/* `gm_cts --module` looks this function up in a shared object. */
GM_API const gm_backend_ops *gm_backend_module(void);

#endif
