#include "graph_pools.h"

#include <stddef.h>

typedef struct graph_pool {
  gm_pool *pool; /* NULL: the entry is free */
  gm_torch_pool_id id;
  int ordinal;
  unsigned users; /* graphs and pools of torch that name it */
  bool open;      /* allocations go here */
} graph_pool;

static graph_pool entries[GM_GRAPH_POOLS_MOST];

static graph_pool *find(int ordinal, gm_torch_pool_id id) {
  for (size_t i = 0; i < GM_GRAPH_POOLS_MOST; i++)
    if (entries[i].pool && entries[i].ordinal == ordinal && entries[i].id.first == id.first &&
        entries[i].id.second == id.second)
      return &entries[i];
  return NULL;
}

static graph_pool *free_entry(void) {
  for (size_t i = 0; i < GM_GRAPH_POOLS_MOST; i++)
    if (!entries[i].pool) return &entries[i];
  return NULL;
}

/* Takes memory and gives it back in host order: then any stream may have it without a wait. Without it the capture may
 * still do with what the pool has. */
static void make_ready(gm_pool *pool, uint64_t bytes) {
  const gm_request request = {.bytes = bytes};
  gm_block block;
  if (bytes && gm_acquired(gm_alloc(pool, &request, &block))) (void)gm_free(pool, &block, NULL);
}

gm_status gm_graph_pools_begin(int ordinal, gm_torch_pool_id id, gm_device *device, uint64_t bytes, gm_error *err) {
  const gm_pool_params params = {.struct_size = sizeof params, .name = "graph", .no_vmm = true};
  graph_pool *entry = find(ordinal, id);
  gm_status status = GM_OK;
  if (!entry) {
    entry = free_entry();
    if (!entry) return *err = (gm_error){.status = GM_ERR_NOT_SUPPORTED, .op = "graph pools"}, err->status;
    status = gm_pool_create(device, &params, &entry->pool, err);
    if (status) return status;
    entry->ordinal = ordinal;
    entry->id = id;
    entry->users = 0;
  }
  entry->users++;
  entry->open = true;
  make_ready(entry->pool, bytes);
  return GM_OK;
}

void gm_graph_pools_end(int ordinal, gm_torch_pool_id id) {
  graph_pool *entry = find(ordinal, id);
  if (entry) entry->open = false;
}

/* A pool that nobody names goes with its last block: destroying it answers BUSY until then. */
static void drop_unused(graph_pool *entry) {
  if (entry->users == 0 && gm_pool_destroy(entry->pool, NULL) == GM_OK) entry->pool = NULL;
}

void gm_graph_pools_release(int ordinal, gm_torch_pool_id id) {
  graph_pool *entry = find(ordinal, id);
  if (!entry || entry->users == 0) return;
  entry->users--;
  entry->open = entry->open && entry->users;
  drop_unused(entry);
}

gm_pool *gm_graph_pools_current(int ordinal) {
  for (size_t i = 0; i < GM_GRAPH_POOLS_MOST; i++)
    if (entries[i].pool && entries[i].open && entries[i].ordinal == ordinal) return entries[i].pool;
  return NULL;
}

gm_status gm_graph_pools_free(int ordinal, void *pointer, gm_stream *stream) {
  gm_block block;
  for (size_t i = 0; i < GM_GRAPH_POOLS_MOST; i++) {
    if (!entries[i].pool || entries[i].ordinal != ordinal || gm_block_of(entries[i].pool, pointer, &block)) continue;
    const gm_status status = gm_free_ptr(entries[i].pool, pointer, 0, stream);
    drop_unused(&entries[i]);
    return status;
  }
  return GM_ERR_NOT_FOUND;
}
