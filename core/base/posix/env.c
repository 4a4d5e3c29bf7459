#include "core/base/env.h"

#include <stdlib.h>

const char *gm__env(const char *name) { return secure_getenv(name); }
