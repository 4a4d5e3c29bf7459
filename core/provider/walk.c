#include "core/provider/walk.h"

void gm__provider_breathe(gm__provider *provider) {
  gm__mutex_unlock(&provider->lock);
  gm__mutex_lock(&provider->lock);
}
