/* The beginning and the end of all programs of this folder. */
#ifndef EXAMPLES_DOCUMENTS_EXAMPLE_H
#define EXAMPLES_DOCUMENTS_EXAMPLE_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gm/gm.h"

/* Ends the program with status 1, and names the claim, if it does not hold. */
#define CLAIM(claim) ((claim) ? (void)0 : (fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #claim), exit(1)))
/* Ends the program with status 1, and prints gm's reason, if a call failed. */
#define DO(call) ((call) == GM_OK ? (void)0 : (fprintf(stderr, "%s: %s\n", #call, err.message), exit(1)))

static gm_error err;

/* A context with one device of a backend, and a pool. */
typedef struct example {
  gm_context *ctx;
  gm_device *device;
  gm_pool *pool;
} example;

/* Opens a context and the device, for a program that configures them before it makes the pool. */
static inline example example_start(const char *backend) {
  example e = {NULL, NULL, NULL};
  DO(gm_context_create(NULL, &e.ctx, &err));
  DO(gm_device_open_index(e.ctx, backend, 0, &e.device, &err));
  return e;
}

static inline example example_open(const char *backend, const gm_pool_params *params) {
  example e = example_start(backend);
  DO(gm_pool_create(e.device, params, &e.pool, &err));
  return e;
}

/* Ends all of it, and the program with status 1 if something is still out. */
static inline int example_close(example e) {
  DO(gm_pool_destroy(e.pool, &err));
  DO(gm_device_close(e.device, &err));
  DO(gm_context_destroy(e.ctx, &err));
  return 0;
}

static inline gm_stats example_stats(gm_pool *pool) {
  gm_stats stats = {.struct_size = sizeof stats};
  CLAIM(gm_pool_stats(pool, &stats) == GM_OK);
  return stats;
}

/* Allocates a block that can be used at once. */
static inline gm_block example_alloc(gm_pool *pool, uint64_t bytes, gm_stream *stream) {
  const gm_request request = {.bytes = bytes, .stream = stream, .flags = GM_INSERT_WAIT};
  gm_block block;
  CLAIM(gm_acquired(gm_alloc(pool, &request, &block)));
  return block;
}

#endif
