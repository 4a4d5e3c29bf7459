/* Saving a model: its tensors, from the device's memory or from its own files, in one new file. */
#ifndef GM_SAVE_H
#define GM_SAVE_H

#include <stdbool.h>

#include "gm/load.h"

GM_BEGIN_DECLS

/* Progress of a save. gm alone makes one: later versions add members at its end. */
typedef struct gm_save_progress {
  const char *tensor;   /* the tensor at work; borrowed from the model */
  uint64_t done_bytes;  /* handed on for writing */
  uint64_t total_bytes; /* the bytes of all tensors */
} gm_save_progress;

/* How to save. Zero-initialised with struct_size set, it is valid. */
typedef struct gm_save_params {
  uint32_t struct_size;
  bool checksums;       /* write a checksum file beside it, too: `path` with ".gmsum" behind it */
  uint64_t chunk_bytes; /* of one write, and of one read from a block; 0: 4 MiB; else a multiple of 4096 */
  /* Called before each tensor and after each chunk, on the calling thread. gm holds no lock. false cancels the save.
   * It must not free blocks of the model, and must not throw. NULL: none. */
  bool (*progress)(void *user, const gm_save_progress *progress);
  void *user;
} gm_save_params;

typedef struct gm_save_result {
  uint32_t struct_size;     /* set by the caller */
  uint64_t tensors;         /* tensors in the file, also those of zero bytes */
  uint64_t bytes;           /* their bytes */
  uint64_t values;          /* what the model's files state about themselves, and is in the file, too */
  uint64_t values_left_out; /* what they state, and the format cannot hold */
  uint64_t file_bytes;      /* of the file */
  uint64_t direct_bytes;    /* of it, what went past the page cache */
  uint64_t peak_host_bytes; /* host memory through which the data went: at most six chunks */
  double seconds;           /* until file and name were on the disk */
  char why[128];            /* why data went through the page cache; "": whole pages went past it */
  double write_seconds;     /* the part of `seconds` in which data was being written; in the rest gm read, or waited for
                               the disk's last word */
} gm_save_result;

/* Saves all tensors of `model` to one file at `path`, bit by bit as they are. With `loaded` (of this model) they come
 * from its blocks. A tensor without a block there, or `loaded` NULL: it comes from the model's own files. `params` and
 * `out_result` may be NULL. No other work may change the blocks during the call, nor may earlier work still run.
 *
 * The format is that of gm_store_save: GGUF, NumPy or safetensors, by the end of `path`. The old files' own values go
 * into the new one, too. If several files have one key, the first counts. safetensors holds strings alone, and NumPy
 * none. The alignment and the parts of the old files are not copied. The data begins at a multiple of 4096 bytes, in
 * GGUF the data of each tensor.
 *
 * gm writes a side file, as gm_store_save does: `path` has the earlier file or the whole new one, also after a crash.
 * So a model may be saved to its own path. Before the first byte the disk reserves room for all of them. Data is read
 * back and written at once, in up to six threads of gm. It goes past the page cache where the file system lets.
 * Thread-safe.
 *
 * A checksum file that is there already goes, since it is of another file. A new one comes after the file has its name.
 *
 * Errors: INVALID_ARGUMENT: an argument is NULL or empty, `loaded` is of another model, or has parts of
 * tensors. INVALID_ARGUMENT also: `model` is from gm_model_open_header. NOT_SUPPORTED: the format cannot hold a tensor,
 * which the message names. NOT_FOUND, IO, BUSY: those of gm_store_save; also: a file of the model is gone or has
 * changed. CANCELLED: `progress` returned false. OUT_OF_HOST_MEMORY, FORKED, and those of gm_block_read. After a
 * failure the earlier file is there; its checksum file may be gone. Where only a step after the renaming fails, the new
 * file is there. Such steps tell the disk of the name, and write the checksum file. */
GM_API gm_status gm_model_save(const gm_model *model, const gm_loaded_model *loaded, const char *path,
                               const gm_save_params *params, gm_save_result *out_result, gm_error *err);

/* The figures of a comparison. */
typedef struct gm_sums_result {
  uint32_t struct_size;   /* set by the caller */
  uint32_t files;         /* of the model that have a checksum file, and are as it says */
  uint32_t files_without; /* files that have none */
  uint32_t reserved;      /* 0 */
  uint64_t bytes;         /* that were compared */
  double seconds;
} gm_sums_result;

/* Compares the files of a model with their checksum files, where there are any. It reads every byte. `progress` is
 * called after each MiB, on the calling thread; NULL: none. `out_result` may be NULL. Thread-safe.
 *
 * Errors: INVALID_ARGUMENT. IO: a file differs, and the message names the bytes; also: it is gone or has changed since
 * gm_model_open. FORMAT: a checksum file is none, or is damaged. NOT_SUPPORTED: this build has no checksums of that
 * kind; builds with xxHash and without have different ones. CANCELLED: `progress` returned false. OUT_OF_HOST_MEMORY.
 */
GM_API gm_status gm_model_check_sums(const gm_model *model,
                                     bool (*progress)(void *user, uint64_t done_bytes, uint64_t total_bytes),
                                     void *user, gm_sums_result *out_result, gm_error *err);

GM_END_DECLS

#endif
