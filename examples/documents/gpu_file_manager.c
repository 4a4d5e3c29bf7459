/* GPUFileManager: load_file puts a file's tensors on the device, save_file writes them from there.
 *
 *   gpu_file_manager BACKEND FOLDER */
#include "example.h"
#include "gm/store_all.h"

int main(int argc, char **argv) {
  const example e = example_open(argc > 1 ? argv[1] : "cpu", NULL);
  const gm_store_params params = {.struct_size = sizeof params, .pool = e.pool};
  const gm_tensor_desc desc = {.struct_size = sizeof desc, .dtype = GM_DTYPE_F32, .rank = 2, .shape = {2, 3}};
  const float data[] = {1, 2, 3, 4, 5, 6};
  float back[6] = {0};
  char path[1024];
  gm_store *manager;
  gm_value *tensor;
  snprintf(path, sizeof path, "%s/document_file_manager_%s.safetensors", argc > 2 ? argv[2] : ".",
           argc > 1 ? argv[1] : "cpu");
  DO(gm_store_create(&params, &manager, &err));
  DO(gm_store_put_tensor(manager, "model/embedding", &desc, data, &err));
  DO(gm_store_save(manager, "model", path, &err));
  DO(gm_store_clear(manager, NULL, &err));
  DO(gm_store_load_file(manager, "again", path, &err));
  DO(gm_store_get(manager, "again/embedding", &tensor, &err)); /* kept on the device until memory is short */
  DO(gm_value_read(tensor, 0, back, sizeof back, NULL, &err));
  CLAIM(memcmp(back, data, sizeof data) == 0);
  gm_value_release(tensor, NULL);
  DO(gm_store_destroy(manager, &err));
  CLAIM(remove(path) == 0);
  puts("a file was saved and loaded");
  return example_close(e);
}
