#include "core/base/cancel.h"

#include <pthread.h>

int gm__cancel_forbid(void) {
  int before = PTHREAD_CANCEL_ENABLE;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  return before;
}

void gm__cancel_restore(const int *before) {
  int forbidden;
  pthread_setcancelstate(*before, &forbidden);
}
