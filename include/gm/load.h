/* Loading a model's tensors into memory of a pool. */
#ifndef GM_LOAD_H
#define GM_LOAD_H

#include <stdbool.h>

#include "gm/model.h"
#include "gm/pool.h"

GM_BEGIN_DECLS

/* How bytes get from the file to the device. The page cache belongs to the system, and counts in no figure of gm. */
typedef enum gm_load_path {
  /* READ for parts of files that lie in the page cache, DIRECT for others. Nothing that happens to a file on this path
   * can end the process. */
  GM_LOAD_PATH_AUTO = 0,
  /* gm maps the file, and the device's copy reads from the mapping. That saves a copy where the memory is not host
   * memory. Before each piece gm checks whether the file has shrunk, and answers IO. If another process cuts the file
   * while a piece is being copied, the process ends (SIGBUS). gm does not catch that. */
  GM_LOAD_PATH_MMAP = 1,
  /* Through the page cache. gm reads the file straight into memory that the host can address. Other memory is filled
   * from page-locked slots, while further pieces are read. */
  GM_LOAD_PATH_READ = 2,
  /* Past the page cache (O_DIRECT), as READ else. gm reads through the page cache where the file system has no such
   * reads; gm_load_result.why says so. */
  GM_LOAD_PATH_DIRECT = 3,
  /* From the drive straight into a CUDA device (GPUDirect Storage, by cuFile). It is for whole pages of tensors from
   * 1 MiB on that lie to a page in memory as in their file. The rest goes as by AUTO. So does all where something is
   * missing, or after a read that failed; gm_load_result.why says what. The helper process tries cuFile first. */
  GM_LOAD_PATH_GDS = 4,
  /* gm copies nothing: a block is the tensor's part of the file, mapped. An OpenCL driver may keep a copy of the
   * pages. Writes into a block stay in the process. That is for tensors that begin at multiples of 8 bytes, or of
   * request.align, on the backend cpu. On OpenCL devices whose memory is the host's they begin at multiples of the
   * device's alignment. gm reads others, and slices, as AUTO does, and all of a load with `keep`; gm_load_result.why
   * says so. The file's pages stay in the page cache. While blocks live, the file must not get shorter: a touch of
   * what it has lost ends the process (SIGBUS). gm_loaded_model_release unmaps them: no work may use them any more. */
  GM_LOAD_PATH_IN_PLACE = 5
} gm_load_path;

/* Progress of a load. gm alone makes one: later versions add members at its end. */
typedef struct gm_load_progress {
  const char *tensor;   /* the tensor at work; borrowed from the model */
  uint64_t done_bytes;  /* done in this step */
  uint64_t total_bytes; /* of this step: the bytes of all tensors that are loaded */
  bool verifying;       /* true in the second step; false while loading */
} gm_load_progress;

/* A part of a tensor: some of the places along one dimension, and all along the others. A rank of a model that is split
 * over several devices loads its part alone. `count` 0: the whole tensor. Never grows. */
typedef struct gm_tensor_slice {
  uint64_t first, count; /* of the places along the dimension */
  uint32_t dim;          /* 0 is the outermost one */
  uint32_t reserved;     /* 0 */
} gm_tensor_slice;

/* Where one tensor goes. gm alone makes one: later versions add members at its end. */
typedef struct gm_load_place {
  gm_pool *pool;      /* of any device of any context; NULL: the tensor is not loaded */
  gm_request request; /* how to ask the pool; gm sets `bytes` and GM_INSERT_WAIT. Its stream is one of the pool's
                         device, and orders the copies into the block */
  /* The part that is loaded. Its elements lie side by side in the block, as in a tensor whose shape has `count` at
   * `dim`. Where the type has blocks, the part begins and ends at blocks. gm reads the bytes of the part, and what lies
   * between them where that is below 64 KiB and past the page cache. */
  gm_tensor_slice slice;
} gm_load_place;

/* A tensor whose bytes have all arrived, while its load goes on. gm alone makes one: later versions add members at its
 * end. */
typedef struct gm_load_arrival {
  uint64_t index; /* of the tensor */
  gm_pool *pool;
  gm_block block;
  gm_stream *stream; /* copies into the block may still run there: what uses the block follows them in that stream, or
                        waits for it. NULL: the bytes are there */
} gm_load_arrival;

/* How to load. Zero-initialised with struct_size set, it is valid. */
typedef struct gm_load_params {
  uint32_t struct_size;
  gm_load_path path;
  bool verify;          /* compare every byte with the file's checksum file (gm_save_params.checksums), where it lies in
                           its block, and the file's header. Without one: after loading, read every byte back, and compare it
                           with what was          read. Slices, and what a resumed load reads, are compared so, too */
  uint64_t chunk_bytes; /* most host memory for data of each device, in bytes; 0: 16 MiB; at least 4096. gm reads and
                           copies a sixteenth of it at once, at least 4096 bytes and at most 4 MiB */
  gm_request request;   /* for every tensor; `bytes` must be 0; GM_INSERT_WAIT is implied */
  /* Called for each tensor before gm reads the first. Then gm calls it whenever bytes have arrived, in any order of the
   * tensors, and some fifty times a second while none arrive. It runs on the calling thread. gm holds no lock. false
   * cancels the load; reads that the disk has in hand end first: what it brings in 40 ms, or one. It must not use
   * blocks of this load, and must not throw. NULL: none. */
  bool (*progress)(void *user, const gm_load_progress *progress);
  void *user; /* of `progress`, `place` and `arrived` */
  /* Chooses where each tensor goes, or leaves it out. *place has the pool of gm_model_load and `request`, and the call
   * may change both. gm calls it once for each tensor, in the order of gm_model_tensor, before it loads the first. gm
   * holds no lock. It must not throw. NULL: every tensor goes to the pool of gm_model_load. */
  void (*place)(void *user, uint64_t index, const gm_tensor_info *tensor, gm_load_place *place);
  uint64_t threads; /* that read, at most 16; 1: the calling thread alone; 0: eight of gm's own, and none of them for
                       less than 1 MiB. They end with the call */
  /* Called once for each tensor that has bytes, as soon as all of them have arrived. The tensors come in the order in
   * which the disk completes them. It runs on the calling thread; gm holds no lock. The block may be used at once;
   * bytes are compared later (`verify`). If the load fails afterwards, the block goes back to its pool before the load
   * returns, but for `keep`. It must not throw. NULL: none. */
  void (*arrived)(void *user, const gm_load_arrival *arrival);
  uint64_t keep; /* not 0: a load that is cancelled, or fails, while it reads keeps what has arrived;
                    gm_loaded_model_resume goes on */
} gm_load_params;

typedef struct gm_load_result {
  uint32_t struct_size;     /* set by the caller */
  gm_load_path path;        /* the path of most bytes; never AUTO */
  bool verified;            /* everything was read back and is equal */
  uint64_t tensors;         /* tensors that were loaded, also those of zero bytes */
  uint64_t bytes;           /* their bytes; of slices those of the parts */
  uint64_t fallback_bytes;  /* the part of `bytes` that is not in the device's own memory */
  uint64_t peak_host_bytes; /* most host memory that gm took for this load */
  uint64_t driver_allocs;   /* driver calls of the pools for the tensors' blocks */
  double seconds;           /* time of loading */
  double verify_seconds;    /* time of reading back and comparing; 0 without verify */
  uint64_t left_out;        /* tensors that `place` left out */
  uint64_t direct_bytes;    /* the part of `bytes` that was read past the page cache */
  char why[192];            /* why some bytes did not go the way that was wanted; "": nothing to say */
  uint64_t summed_bytes;    /* the part of `bytes` that was compared with checksum files */
  uint64_t mapped_bytes;    /* the part of `bytes` that lies in mapped files (GM_LOAD_PATH_IN_PLACE) */
  uint64_t files;           /* of which something was loaded */
  uint64_t summed_files;    /* of these, those that are as their checksum files say, where they were loaded, and in
                               their headers */
  uint64_t gds_bytes;       /* the part of `bytes` that went straight into a device (GM_LOAD_PATH_GDS) */
} gm_load_result;

/* The blocks of one load. It needs their pools; the model may be closed before it. Thread-safe, except
 * gm_loaded_model_release. */
typedef struct gm_loaded_model gm_loaded_model;

/* Loads every tensor of `model` into a block of its own from `pool`, or those that gm_load_params.place chooses into
 * blocks of several pools. gm takes all blocks first, then reads in the order of the files. `params` and `out_result`
 * may be NULL. gm looks relative paths up again, and opens no file of which it loads nothing. The caller releases
 * *out. After a failure every block is back in its pool, and the message names tensor and file. With
 * gm_load_params.keep a load that fails after gm began to read sets *out, too: to a model that is not whole. Otherwise
 * *out stays as it is. Thread-safe.
 *
 * Errors: INVALID_ARGUMENT: also a slice that the tensor has not. OUT_OF_HOST_MEMORY, and those of gm_explain and
 * gm_block_write. NOT_FOUND, IO: a file is gone, shrank or changed since gm_model_open. IO also: a tensor that was read
 * back differs, or is not as a checksum file says. FORMAT: a checksum file is damaged, with `verify`. CANCELLED:
 * `progress` returned false. */
GM_API gm_status gm_model_load(const gm_model *model, gm_pool *pool, const gm_load_params *params,
                               gm_loaded_model **out, gm_load_result *out_result, gm_error *err);

/* Goes on with a load that was cancelled or failed, and kept what it had (gm_load_params.keep): gm reads what has not
 * arrived. `model` is the one that was loaded, or its files opened again. Blocks, slices and streams are those of the
 * first load: of `params` gm ignores `request`, `place` and `keep`. Progress counts what this call reads, and `verify`
 * compares that. After another failure it can be called again. gm reads each tensor from its first
 * missing byte on. No other thread may use `loaded`.
 *
 * Errors: those of gm_model_load. INVALID_ARGUMENT also: `loaded` is whole, or of another model. IO also: the files
 * have changed since the first load. */
GM_API gm_status gm_loaded_model_resume(gm_loaded_model *loaded, const gm_model *model, const gm_load_params *params,
                                        gm_load_result *out_result, gm_error *err);

/* Returns the bytes that have not arrived. 0: it is whole, or `loaded` is NULL. */
GM_API uint64_t gm_loaded_model_left(const gm_loaded_model *loaded);

/* Returns the block of tensor `index` (gm_model_tensor). It is all zero for a tensor of zero bytes, and for one that
 * was left out. INVALID_ARGUMENT. */
GM_API gm_status gm_loaded_model_block(const gm_loaded_model *loaded, uint64_t index, gm_block *out, gm_error *err);

/* Returns the pool of that block. NULL: the tensor was left out, or there is no tensor `index`. */
GM_API gm_pool *gm_loaded_model_pool(const gm_loaded_model *loaded, uint64_t index);

/* Frees every block in the order of `stream`, as gm_free does, and frees the handle in any case. Where the blocks are
 * on several devices, those of other devices are freed in host order: nothing may use them any more. It answers the
 * first failure of gm_free. NULL is GM_OK. */
GM_API gm_status gm_loaded_model_release(gm_loaded_model *loaded, gm_stream *stream);

GM_END_DECLS

#endif
