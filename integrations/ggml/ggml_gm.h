/* Inside of libggml-gm.so, a backend of ggml whose buffers come from a gm pool. Kernels are those of ggml's CPU
 * backend.
 *
 * ggml's buffer functions return nothing, so a copy that fails aborts the process, as in ggml's own backends. */
#ifndef GGML_GM_H
#define GGML_GM_H

#include <stdbool.h>

#include <ggml-backend-impl.h>
#include "gm/gm.h"

/* The settings from the environment; read once, when ggml loads the library. */
typedef struct gm_ggml_settings {
  const char *device;  /* GGML_GM_DEVICE: "cpu" (default), "opencl" or another backend of gm, but not "null" */
  bool host;           /* GGML_GM_HOST: 1: kernels of ggml and the program use the memory in place; default 1 */
  bool fall_back;      /* GGML_GM_FALLBACK: "host" (default) or "none" */
  uint64_t max_buffer; /* GGML_GM_MAX_BUFFER: bytes, such as "8M"; 0: the device's own bound */
  bool report;         /* GGML_GM_REPORT: 1: statistics at the end of the process */
  const char *plan;    /* GGML_GM_PLAN: a file that gmem fit --json printed; NULL: nothing is compared with it */
} gm_ggml_settings;

/* All there is of the library. Written while ggml loads it. */
typedef struct gm_ggml {
  gm_ggml_settings settings;
  gm_context *ctx;
  gm_device *device;
  gm_pool *pool;
  gm_stream *stream; /* for mappings */
  bool in_host;      /* blocks have host addresses */
  size_t alignment;  /* of buffers and tensors in them */
  size_t buffers;    /* made so far, for the report */
  size_t fallbacks;  /* of those, in host memory because gm had none */
  size_t wrapped;    /* of those, memory of the program's */
  ggml_backend_dev_t dev;
} gm_ggml;

extern gm_ggml gm_ggml_self;

/* Reads the environment. False: a word is not understood, and the log says which. */
bool gm_ggml_settings_read(gm_ggml_settings *out);

/* Opens the device and makes the pool. False: the log has the reason. */
bool gm_ggml_open(void);

/* Logs a failure, then aborts: for functions of ggml that cannot fail. */
void gm_ggml_check(gm_status status, const gm_error *err);

typedef enum gm_ggml_place {
  GM_GGML_BLOCK,    /* a block that kernels use at its own address */
  GM_GGML_SHADOW,   /* a block that they cannot reach; `base` is a copy of it in host memory */
  GM_GGML_MAPPED,   /* a block that is mapped as long as it lives */
  GM_GGML_FALLBACK, /* no block: host memory of this library's */
  GM_GGML_LENT      /* no block: the program's memory, which gm would not count */
} gm_ggml_place;

typedef struct gm_ggml_buffer {
  gm_ggml_place place;
  gm_block block;
  uint8_t *base;              /* where ggml thinks that the buffer lies */
  uint64_t bytes;             /* those that ggml asked for */
  bool stale;                 /* a shadow that is older than its block */
  bool written;               /* a shadow that is newer than its block */
  ggml_backend_buffer_t lent; /* ggml's buffer, and the next one in the list, of those that are compared with a plan */
  struct gm_ggml_buffer *next;
} gm_ggml_buffer;

/* Returns the buffer of a tensor that is one of ours, else NULL. */
gm_ggml_buffer *gm_ggml_buffer_of(const struct ggml_tensor *tensor);

/* Copies into and out of a buffer. With `stream` NULL they wait, else they are done in its order. */
void gm_ggml_buffer_write(gm_ggml_buffer *buffer, uint64_t at, const void *src, uint64_t bytes, gm_stream *stream);
void gm_ggml_buffer_read(gm_ggml_buffer *buffer, uint64_t at, void *dst, uint64_t bytes, gm_stream *stream);

/* Strided copies of one slice: the offset and the pitch on the block's side are those of `rect`. */
void gm_ggml_buffer_write_2d(gm_ggml_buffer *buffer, const gm_rect *rect, const void *src, gm_stream *stream);
void gm_ggml_buffer_read_2d(gm_ggml_buffer *buffer, const gm_rect *rect, void *dst, gm_stream *stream);

/* Brings what a graph reads to where kernels find it, and what they wrote back. Nothing to do without shadows. */
void gm_ggml_graph_pull(struct ggml_cgraph *graph, gm_stream *stream);
void gm_ggml_graph_push(struct ggml_cgraph *graph, gm_stream *stream);

/* Offset of a tensor in its buffer. */
uint64_t gm_ggml_offset(const gm_ggml_buffer *buffer, const struct ggml_tensor *tensor);

/* Makes an own buffer into a buffer of ggml, which owns it. */
ggml_backend_buffer_t gm_ggml_buffer_lend(ggml_backend_buffer_type_t type, gm_ggml_buffer *buffer);

/* The two types of buffers: of the device, and of pinned host memory. */
ggml_backend_buffer_type_t gm_ggml_device_type(void);
ggml_backend_buffer_type_t gm_ggml_pinned_type(void);

/* Makes a buffer of the program's own memory. NULL: gm cannot wrap it. */
ggml_backend_buffer_t gm_ggml_wrap(void *pointer, size_t bytes);

/* ggml's "backend", which is a queue: a stream of gm beside a queue of ggml's CPU backend. */
ggml_backend_t gm_ggml_queue_create(ggml_backend_dev_t dev);
void gm_ggml_queue_set_threads(ggml_backend_t queue, int threads);
ggml_backend_event_t gm_ggml_event_create(ggml_backend_dev_t dev);
void gm_ggml_event_destroy(ggml_backend_dev_t dev, ggml_backend_event_t event);
void gm_ggml_event_wait_host(ggml_backend_dev_t dev, ggml_backend_event_t event);

/* The memory that a program takes of the device, beside a plan. Buffers come and go on one thread, as programs of
 * llama.cpp do it. False: `path` is no plan. Without a path nothing is compared. */
bool gm_ggml_check_begin(const char *path);
void gm_ggml_check_add(ggml_backend_buffer_t lent, gm_ggml_buffer *buffer);
void gm_ggml_check_remove(const gm_ggml_buffer *buffer);
void gm_ggml_check_graph(void);
void gm_ggml_check_print(void);

/* ggml's CPU device. */
ggml_backend_dev_t gm_ggml_cpu(void);

#endif
