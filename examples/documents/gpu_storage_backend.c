/* GPUStorageBackend: save and load under paths; lists, numbers and dictionaries become tensors on the device.
 * register_gpu_backend: the program's own registry has it under the name "gpu". */
#include "example.h"
#include "gm/store_all.h"

typedef struct storage {
  const char *name;
  gm_status (*save)(gm_store *self, const char *path, gm_value *data, gm_error *why);
  gm_status (*load)(gm_store *self, const char *path, gm_value **out, gm_error *why);
} storage;

static const storage registry[] = {{"gpu", gm_store_put, gm_store_get}};

static gm_value *to_tensor(gm_pool *pool, uint32_t rank, const float *data, uint64_t count) {
  const gm_tensor_desc desc = {.struct_size = sizeof desc, .dtype = GM_DTYPE_F32, .rank = rank, .shape = {count}};
  gm_value *value;
  DO(gm_value_tensor(pool, &desc, data, GM_FALLBACK_REFUSE, NULL, &value, &err));
  return value;
}

int main(int argc, char **argv) {
  const example e = example_open(argc > 1 ? argv[1] : "cpu", NULL);
  const gm_store_params params = {.struct_size = sizeof params, .pool = e.pool};
  const float list[] = {1, 2, 3}, number = 4;
  const char *const names[] = {"weights", "bias"};
  gm_value *items[] = {to_tensor(e.pool, 1, list, 3), to_tensor(e.pool, 0, &number, 0)}, *dict, *loaded, *bias;
  gm_store *store;
  float back = 0;
  DO(gm_store_create(&params, &store, &err));
  DO(gm_value_dict(e.ctx, names, items, 2, &dict, &err));
  DO(registry[0].save(store, "/models//ast/./v1/", dict, &err));
  DO(registry[0].load(store, "models/ast/v1", &loaded, &err)); /* _normalize: it is one key */
  DO(gm_value_find(loaded, "bias", &bias, &err));
  DO(gm_value_read(bias, 0, &back, sizeof back, NULL, &err));
  CLAIM(back == 4);
  gm_value *missing;
  CLAIM(registry[0].load(store, "models/none", &missing, &err) == GM_ERR_NOT_FOUND); /* FileNotFoundError */
  CLAIM(strstr(err.message, "models/none"));
  gm_value_release(loaded, NULL);
  gm_value_release(dict, NULL);
  for (int i = 0; i < 2; i++) gm_value_release(items[i], NULL);
  DO(gm_store_destroy(store, &err));
  puts("a dictionary of tensors was saved and loaded under its path");
  return example_close(e);
}
