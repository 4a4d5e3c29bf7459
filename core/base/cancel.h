/* Whether pthread_cancel may end the calling thread. A thread that ends inside of gm would keep gm's locks and
 * descriptors for ever. So no call of gm is a cancellation point: the thread ends after it. */
#ifndef GM_CORE_BASE_CANCEL_H
#define GM_CORE_BASE_CANCEL_H

#include "core/base/inner.h"

/* Forbid it; returns what was before, for gm__cancel_restore. Both keep errno. */
GM__INNER int gm__cancel_forbid(void);
GM__INNER void gm__cancel_restore(const int *before);

/* Forbid it until the enclosing block ends. Public calls that reach a file, a socket, a driver, a wait or a callback
 * begin with this. The fast paths reach none, and do not pay for it. */
#define GM__UNCANCELLED() \
  __attribute__((cleanup(gm__cancel_restore), unused)) const int gm__cancel_before = gm__cancel_forbid()

#endif
