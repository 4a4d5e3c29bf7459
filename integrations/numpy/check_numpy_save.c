/* Saves a store's tensors as files of NumPy into the folder GM_ENGINES_OUT; check_numpy_files.py reads them. */
#include <stdio.h>
#include <stdlib.h>

#include "gm/gm.h"
#include "gm/store_all.h"

static int failed(const char *what, const gm_error *err) {
  fprintf(stderr, "%s: %s\n", what, err->message);
  return 1;
}

static gm_status put(gm_store *store, const char *key, gm_tensor_desc desc, const void *data, gm_error *err) {
  desc.struct_size = sizeof desc;
  return gm_store_put_tensor(store, key, &desc, data, err);
}

static gm_status put_all(gm_store *store, gm_error *err) {
  static const float matrix[] = {1, 2, 3, 4, 5, 6.5F};
  static const unsigned char bytes[] = {7, 8, 9};
  static const int64_t scalar = -5;
  gm_status status =
      put(store, "m/layer/matrix", (gm_tensor_desc){.dtype = GM_DTYPE_F32, .rank = 2, .shape = {2, 3}}, matrix, err);
  if (!status) {
    status = put(store, "m/\xc3\xa4 b", (gm_tensor_desc){.dtype = GM_DTYPE_U8, .rank = 1, .shape = {3}}, bytes, err);
  }
  return status ? status : put(store, "m/scalar", (gm_tensor_desc){.dtype = GM_DTYPE_I64}, &scalar, err);
}

static gm_status save_all(gm_store *store, const char *folder, gm_error *err) {
  char path[4096];
  snprintf(path, sizeof path, "%s/gm.npz", folder);
  gm_status status = gm_store_save(store, "m", path, err);
  snprintf(path, sizeof path, "%s/gm.npy", folder);
  return status ? status : gm_store_save(store, "m/layer", path, err);
}

int main(void) {
  const char *folder = getenv("GM_ENGINES_OUT");
  gm_error err = {0};
  gm_context *context = NULL;
  gm_device *device = NULL;
  gm_pool *pool = NULL;
  gm_store *store = NULL;
  if (!folder) return failed("GM_ENGINES_OUT is not set", &err);
  if (gm_context_create(NULL, &context, &err)) return failed("context", &err);
  if (gm_device_open_index(context, "cpu", 0, &device, &err)) return failed("device", &err);
  if (gm_pool_create(device, NULL, &pool, &err)) return failed("pool", &err);
  const gm_store_params params = {.struct_size = sizeof params, .pool = pool};
  if (gm_store_create(&params, &store, &err)) return failed("store", &err);
  if (put_all(store, &err)) return failed("put", &err);
  if (save_all(store, folder, &err)) return failed("save", &err);
  gm_store_destroy(store, NULL);
  gm_pool_destroy(pool, NULL);
  gm_device_close(device, NULL);
  gm_context_destroy(context, NULL);
  puts("gm files");
  return 0;
}
