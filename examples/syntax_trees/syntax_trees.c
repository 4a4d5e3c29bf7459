/* Syntax trees of C files as tensors: made by clang, kept for each file, made anew when the content has changed.
 *
 *   syntax_trees FILE...        makes and prints the tree of each file, then finds it again
 *   syntax_trees --change FILE  appends a function to FILE, and shows that its tree goes with the old content */
#include <gm/store_all.h>
#include <gm/tensor_sets.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "syntax_tree.h"

typedef struct parser {
  gm_context *ctx;
  gm_device *device;
  gm_pool *pool;
  gm_store *store;
  gm_tensor_sets *sets;
} parser;

static gm_status tensor_of(gm_pool *pool, const int32_t *numbers, uint64_t count, gm_value **out, gm_error *err) {
  const gm_tensor_desc desc = {.struct_size = sizeof desc, .dtype = GM_DTYPE_I32, .rank = 1, .shape = {count}};
  return gm_value_tensor(pool, &desc, numbers, GM_FALLBACK_HOST, NULL, out, err);
}

/* The set of a file: a dictionary of two tensors. */
static gm_status value_of(parser *p, const syntax_tree *tree, gm_value **out, gm_error *err) {
  static const char *const names[] = {"kinds", "parents"};
  gm_value *items[2] = {NULL, NULL};
  gm_status status = tensor_of(p->pool, tree->kinds, tree->nodes, &items[0], err);
  if (!status) status = tensor_of(p->pool, tree->parents, tree->nodes, &items[1], err);
  if (!status) status = gm_value_dict(p->ctx, names, items, 2, out, err);
  gm_value_release(items[0], NULL);
  gm_value_release(items[1], NULL);
  return status;
}

static gm_status parse(const char *path, syntax_tree *out, gm_error *err) {
  if (!syntax_tree_read(path, out)) return GM_OK;
  if (err) {
    *err = (gm_error){.status = GM_ERR_FORMAT, .op = "clang"};
    snprintf(err->message, sizeof err->message, "%.300s: clang cannot parse it", path);
  }
  return GM_ERR_FORMAT;
}

static gm_status make_set(void *user, const char *path, void **out_set, uint64_t *out_bytes, gm_error *err) {
  parser *p = user;
  syntax_tree tree;
  gm_value *value = NULL;
  gm_status status = parse(path, &tree, err);
  if (!status) status = value_of(p, &tree, &value, err);
  if (!status) status = gm_store_put(p->store, path, value, err); /* other parts of the program find it by its name */
  *out_bytes = tree.nodes * 2 * sizeof(int32_t);
  syntax_tree_free(&tree);
  if (status)
    gm_value_release(value, NULL);
  else
    *out_set = value;
  return status;
}

static void release_set(void *user, void *set, uint64_t bytes) {
  (void)user, (void)bytes;
  gm_value_release(set, NULL);
}

static gm_status parser_open(parser *p, gm_error *err) {
  const gm_tensor_sets_params sets = {
      .struct_size = sizeof sets, .make = make_set, .release = release_set, .user = p, .by_content = true};
  gm_store_params store = {.struct_size = sizeof store};
  gm_status status = gm_context_create(NULL, &p->ctx, err);
  if (!status) status = gm_device_open_index(p->ctx, "cpu", 0, &p->device, err);
  if (!status) status = gm_pool_create(p->device, NULL, &p->pool, err);
  store.pool = p->pool;
  if (!status) status = gm_store_create(&store, &p->store, err);
  return status ? status : gm_tensor_sets_create(p->ctx, &sets, &p->sets, err);
}

static void parser_close(parser *p) {
  gm_tensor_sets_destroy(p->sets, NULL);
  gm_store_destroy(p->store, NULL);
  gm_pool_destroy(p->pool, NULL);
  gm_device_close(p->device, NULL);
  gm_context_destroy(p->ctx, NULL);
}

/* How many nodes the file's tree has. The last one must lie below an earlier one, else the tensors are wrong. */
static gm_status count_nodes(parser *p, const char *path, uint64_t *out, gm_error *err) {
  gm_tensor_set *set = NULL;
  gm_value *parents = NULL;
  gm_value_info info = {.struct_size = sizeof info};
  int32_t last = -1;
  gm_status status = gm_tensor_sets_get(p->sets, path, &set, err);
  if (!status) status = gm_value_find(gm_tensor_set_object(set), "parents", &parents, err);
  if (!status) status = gm_value_describe(parents, &info, err);
  if (!status) status = gm_value_read(parents, info.bytes - sizeof last, &last, sizeof last, NULL, err);
  gm_tensor_set_return(set);
  *out = info.shape[0];
  return status || (last >= 0 && (uint64_t)last < *out) ? status : GM_ERR_FORMAT;
}

static gm_status print_tree(parser *p, const char *path, gm_error *err) {
  uint64_t nodes = 0, again = 0;
  gm_status status = count_nodes(p, path, &nodes, err);
  if (!status) status = count_nodes(p, path, &again, err);
  if (!status) printf("%s: %llu nodes\n", path, (unsigned long long)nodes);
  return status || nodes == again ? status : GM_ERR_FORMAT;
}

static gm_status change_file(parser *p, const char *path, gm_error *err) {
  uint64_t before = 0, after = 0;
  gm_status status = count_nodes(p, path, &before, err);
  FILE *file = status ? NULL : fopen(path, "a");
  if (!file) return status ? status : GM_ERR_IO;
  fprintf(file, "\nint added(int a) { return a + 1; }\n");
  if (fclose(file)) return GM_ERR_IO;
  status = count_nodes(p, path, &after, err);
  if (!status) printf("%llu nodes more\n", (unsigned long long)(after - before));
  return status;
}

int main(int argc, char **argv) {
  parser p = {.ctx = NULL};
  gm_error err = {.status = GM_OK};
  gm_tensor_sets_stats stats = {.struct_size = sizeof stats};
  const bool change = argc == 3 && strcmp(argv[1], "--change") == 0;
  gm_status status = parser_open(&p, &err);
  if (change && !status) status = change_file(&p, argv[2], &err);
  for (int i = 1; i < argc && !change && !status; i++) status = print_tree(&p, argv[i], &err);
  if (!status) status = gm_tensor_sets_get_stats(p.sets, &stats, &err);
  if (status) {
    printf("%s: %s\n", gm_status_text(status), err.message);
  } else {
    printf("%llu made, %llu found again, %llu stale\n", (unsigned long long)stats.makes, (unsigned long long)stats.hits,
           (unsigned long long)stats.stale);
  }
  parser_close(&p);
  return status != GM_OK;
}
