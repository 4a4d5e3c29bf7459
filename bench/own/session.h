/* A pool on the null device for what only gm can be asked, over host memory that is counted unless asked otherwise. */
#ifndef GM_BENCH_SESSION_H
#define GM_BENCH_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>

#include "gm/tools.h"

typedef struct own_session {
  atomic_size_t host_bytes; /* that gm holds */
  gm_context *ctx;
  gm_device *device;
  gm_pool *pool;
  gm_stream *stream;
  uint32_t tag;
  gm_error err;
} own_session;

typedef struct own_wish {
  bool track, no_vmm;
  bool future;     /* by gm_alloc_async */
  bool fixed;      /* a pool of fixed sizes */
  bool own_memory; /* host memory is gm's own affair, and is not counted */
} own_wish;

/* 0, or -1: own_end says why. */
int own_begin(own_session *self, own_wish wish);

/* A session that was not begun is not closed. -1 where that or `result` is one. */
int own_end(own_session *self, int result);

/* On the session's stream. */
bool own_take(own_session *self, uint64_t bytes, gm_block *out);

#endif
