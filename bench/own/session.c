#include "bench/own/session.h"

#include <stdio.h>
#include <stdlib.h>

static void *own_alloc(void *user, size_t bytes, size_t align) {
  own_session *self = user;
  void *memory = NULL;
  if (posix_memalign(&memory, align < sizeof(void *) ? sizeof(void *) : align, bytes) != 0) return NULL;
  self->host_bytes += bytes;
  return memory;
}

static void own_release(void *user, void *memory, size_t bytes) {
  own_session *self = user;
  self->host_bytes -= bytes;
  free(memory);
}

int own_begin(own_session *self, own_wish wish) {
  const gm_services services = {.alloc = own_alloc, .release = own_release, .user = self};
  const gm_context_params params = {.struct_size = sizeof params,
                                    .services = wish.own_memory ? NULL : &services,
                                    .backend_options = "null:capacity=1T",
                                    .ignore_environment = true};
  const gm_pool_params pool = {.struct_size = sizeof pool,
                               .name = "bench",
                               .strategy = wish.fixed ? GM_STRATEGY_FIXED : GM_STRATEGY_AUTO,
                               .track = wish.track,
                               .no_vmm = wish.no_vmm};
  *self = (own_session){.err = {.status = GM_OK}};
  gm_status status = gm_context_create(&params, &self->ctx, &self->err);
  if (status == GM_OK) status = gm_config_set(self->ctx, "memory_fraction", "1", &self->err);
  if (status == GM_OK) status = gm_config_set(self->ctx, "min_free_bytes", "0", &self->err);
  if (status == GM_OK) status = gm_device_open_index(self->ctx, "null", 0, &self->device, &self->err);
  if (status == GM_OK) status = gm_pool_create(self->device, &pool, &self->pool, &self->err);
  if (status == GM_OK) status = gm_stream_create(self->device, &self->stream, &self->err);
  if (status == GM_OK && wish.track) self->tag = gm_tag(self->ctx, "bench");
  return status == GM_OK ? 0 : -1;
}

int own_end(own_session *self, int result) {
  gm_error closing = {.status = GM_OK};
  if (result != 0) fprintf(stderr, "gm_bench: %s\n", self->err.message[0] ? self->err.message : "no memory");
  if (self->pool) gm_pool_destroy(self->pool, &closing);
  if (self->stream) gm_stream_close(self->stream, &closing);
  if (self->device) gm_device_close(self->device, &closing);
  if (self->ctx) gm_context_destroy(self->ctx, &closing);
  if (closing.status != GM_OK) fprintf(stderr, "gm_bench: %s\n", closing.message);
  return closing.status == GM_OK ? result : -1;
}

bool own_take(own_session *self, uint64_t bytes, gm_block *out) {
  const gm_request request = {.bytes = bytes, .stream = self->stream, .tag = self->tag};
  return gm_alloc(self->pool, &request, out) <= GM_ACQUIRE_FRESH;
}
