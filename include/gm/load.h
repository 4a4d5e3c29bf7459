/* Loading a model's tensors into memory of a pool (F45). */
#ifndef GM_LOAD_H
#define GM_LOAD_H

#include <stdbool.h>

#include "gm/model.h"
#include "gm/pool.h"

GM_BEGIN_DECLS

/* How bytes get from the file to the device. The page cache is the system's and counts in no figure of gm. */
typedef enum gm_load_path {
  /* Today READ: it is the path on which nothing that happens to the file can end the process. */
  GM_LOAD_PATH_AUTO = 0,
  /* The file is mapped and the device's copy reads from the mapping: one copy less where the memory is not the host's.
   * A file that has shrunk is found before each chunk is touched and answered with GM_ERR_IO; one that another process
   * cuts short while a chunk is being copied ends the process (SIGBUS), which gm does not catch. */
  GM_LOAD_PATH_MMAP = 1,
  /* The file is read straight into memory that the host can address, otherwise through one buffer of chunk_bytes. */
  GM_LOAD_PATH_READ = 2,
  GM_LOAD_PATH_DIRECT = 3, /* past the page cache: comes with a later version */
  GM_LOAD_PATH_GDS = 4     /* from the drive to the device: comes with a later version */
} gm_load_path;

/* How far a load is. gm alone makes one: later versions add members at its end. */
typedef struct gm_load_progress {
  const char *tensor;   /* the one at work; borrowed from the model */
  uint64_t done_bytes;  /* of the step */
  uint64_t total_bytes; /* of the step: gm_model_tensor_bytes */
  bool verifying;       /* the second step; false while loading */
} gm_load_progress;

/* Zero-initialised with struct_size set, it is a good set of parameters. */
typedef struct gm_load_params {
  uint32_t struct_size;
  gm_load_path path;
  bool verify;          /* read every byte back and compare checksums with those of the file's bytes when loaded */
  uint64_t chunk_bytes; /* most bytes of host memory for data, and of one copy; 0: 16 MiB; at least 4096 */
  gm_request request;   /* for every tensor; `bytes` must be 0, GM_INSERT_WAIT is implied */
  /* Called before each tensor and after each chunk, on the calling thread with no lock held; false cancels. It must not
   * use the pool's blocks of this load. NULL: none. */
  bool (*progress)(void *user, const gm_load_progress *progress);
  void *user;
} gm_load_params;

typedef struct gm_load_result {
  uint32_t struct_size; /* set by the caller */
  gm_load_path path;    /* the one used: never AUTO */
  bool verified;        /* everything was read back and is equal */
  uint64_t tensors;     /* all of them, those of zero bytes included */
  uint64_t bytes;
  uint64_t fallback_bytes;  /* of `bytes`, in memory that is not the device's own */
  uint64_t peak_host_bytes; /* host memory gm took for this load, at its highest */
  uint64_t driver_allocs;   /* of the pool meanwhile */
  double seconds;           /* loading */
  double verify_seconds;    /* reading back and comparing; 0 without verify */
} gm_load_result;

/* The blocks of one load. Thread-safe but for release. It needs its pool; the model may be closed before it. */
typedef struct gm_loaded_model gm_loaded_model;

/* Put every tensor of `model` into a block of its own from `pool`. `params` and `out_result` may be NULL. On failure
 * every block is back in the pool, and the message names tensor and file. Errors: INVALID_ARGUMENT; NOT_SUPPORTED (the
 * path, with the reason); NOT_FOUND, IO (a file is gone, changed since gm_model_open, or shrank; read back, a tensor
 * differs); CANCELLED; OUT_OF_HOST_MEMORY; those of gm_explain and of gm_block_write. Relative paths are looked up
 * again. Thread-safe. The caller releases *out. */
GM_API gm_status gm_model_load(const gm_model *model, gm_pool *pool, const gm_load_params *params,
                               gm_loaded_model **out, gm_load_result *out_result, gm_error *err);

/* The block of tensor `index` (gm_model_tensor); all zero for a tensor of zero bytes. INVALID_ARGUMENT. */
GM_API gm_status gm_loaded_model_block(const gm_loaded_model *loaded, uint64_t index, gm_block *out, gm_error *err);

/* Give every block back in the order of `stream` (see gm_free), and free the handle whatever the answer, which is the
 * first one of gm_free that is not GM_OK. NULL is GM_OK. */
GM_API gm_status gm_loaded_model_release(gm_loaded_model *loaded, gm_stream *stream);

GM_END_DECLS

#endif
