/* GPUASTManager: tensorize a file once, get what is there, clear one file or all. */
#include "example.h"
#include "gm/tensor_sets.h"

static int made; /* how often the tensorizer ran */

/* ASTTensorizer: here the tensors of a file are the kinds of its nodes, one on the device. */
static gm_status tensorize(void *user, const char *path, void **out_set, uint64_t *out_bytes, gm_error *why) {
  (void)path;
  const gm_buffer_params params = {.struct_size = sizeof params, .request = {.bytes = 4096}};
  gm_buffer *kinds;
  made++;
  const gm_status status = gm_buffer_create(user, &params, &kinds, why);
  if (status == GM_OK) *out_set = kinds, *out_bytes = 4096;
  return status;
}

static void release(void *user, void *kinds, uint64_t bytes) {
  (void)user, (void)bytes;
  gm_buffer_release(kinds, NULL);
}

int main(int argc, char **argv) {
  const example e = example_open(argc > 1 ? argv[1] : "cpu", NULL);
  const gm_tensor_sets_params params = {
      .struct_size = sizeof params, .make = tensorize, .release = release, .user = e.pool, .pool = e.pool};
  const char *file = argv[0]; /* any file serves */
  gm_tensor_sets *manager;
  gm_tensor_set *set;
  DO(gm_tensor_sets_create(e.ctx, &params, &manager, &err));
  CLAIM(gm_tensor_sets_find(manager, file, &set, &err) == GM_ERR_NOT_FOUND); /* get: None, and nothing is made */
  for (int i = 0; i < 2; i++) {
    DO(gm_tensor_sets_get(manager, file, &set, &err));
    CLAIM(gm_buffer_location(gm_tensor_set_object(set)) == GM_LOCATION_DEVICE);
    gm_tensor_set_return(set);
  }
  CLAIM(made == 1);
  DO(gm_tensor_sets_find(manager, file, &set, &err));
  gm_tensor_set_return(set);
  DO(gm_tensor_sets_clear(manager, file, &err));
  CLAIM(gm_tensor_sets_find(manager, file, &set, &err) == GM_ERR_NOT_FOUND);
  DO(gm_tensor_sets_clear(manager, NULL, &err));
  DO(gm_tensor_sets_destroy(manager, &err));
  puts("a file was tensorized once");
  return example_close(e);
}
