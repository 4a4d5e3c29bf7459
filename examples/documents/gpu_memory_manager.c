/* GPUMemoryManager: allocate, get and release by key and count of users; clear; get_memory_usage in GB. */
#include "example.h"
#include "gm/cleanup.h"
#include "gm/store_all.h"

int main(int argc, char **argv) {
  const example e = example_open(argc > 1 ? argv[1] : "cpu", NULL);
  const gm_store_params params = {.struct_size = sizeof params, .pool = e.pool};
  const gm_tensor_desc desc = {.struct_size = sizeof desc, .dtype = GM_DTYPE_F32, .rank = 1, .shape = {1 << 18}};
  static float data[1 << 18];
  gm_store *manager;
  gm_value *tensor, *again, *missing;
  bool there;
  DO(gm_store_create(&params, &manager, &err));
  DO(gm_value_tensor(e.pool, &desc, data, GM_FALLBACK_REFUSE, NULL, &tensor, &err));
  DO(gm_store_allocate(manager, "activations", tensor, &err)); /* a count of 1 */
  DO(gm_store_acquire(manager, "activations", &again, &err));  /* 2 */
  gm_value_release(again, NULL);
  gm_value_release(tensor, NULL);

  gm_store_stats usage = {.struct_size = sizeof usage};
  DO(gm_store_get_stats(manager, &usage, &err));
  printf("allocated %.4f GB, reserved %.4f GB, at most %.4f GB\n", (double)usage.allocated_bytes / (1 << 30),
         (double)usage.reserved_bytes / (1 << 30), (double)usage.peak_reserved_bytes / (1 << 30));
  CLAIM(usage.allocated_bytes >= sizeof data && usage.reserved_bytes >= usage.allocated_bytes);

  DO(gm_store_release(manager, "activations", &err)); /* 1 */
  DO(gm_store_exists(manager, "activations", &there, &err));
  CLAIM(there);
  DO(gm_store_release(manager, "activations", &err)); /* 0: it goes */
  DO(gm_store_release(manager, "activations", &err)); /* a key that is not there: nothing happens */
  CLAIM(gm_store_acquire(manager, "activations", &missing, &err) == GM_ERR_NOT_FOUND); /* KeyError */
  DO(gm_store_clear(manager, NULL, &err));
  gm_pool_clear(e.pool); /* torch.cuda.empty_cache() */
  CLAIM(example_stats(e.pool).reserved_bytes == 0);
  DO(gm_store_destroy(manager, &err));
  return example_close(e);
}
