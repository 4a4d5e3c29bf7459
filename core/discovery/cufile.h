/* cuFile, NVIDIA's library for reads from a drive into the memory of a card. It is opened at run time, and it may hang
 * or abort when it is opened. So the helper process tries it first: gm__cufile_probe. */
#ifndef GM_CORE_DISCOVERY_CUFILE_H
#define GM_CORE_DISCOVERY_CUFILE_H

#include <stdint.h>
#include <sys/types.h>

#include "core/base/dynlib.h"
#include "core/context/context.h"

enum {
  GM__CUFILE_LIMIT_MS = 2000, /* of the helper, for each step */
  GM__CUFILE_ERRORS = 5000,   /* errors of cuFile are above; a read gives them as negative numbers */
  GM__CUFILE_ALREADY_OPEN = 5026,
  GM__CUFILE_P2P = 1 << 4 /* of gm__cufile_properties.features */
};

/* Structs of cufile.h, as gm needs them. */
typedef struct gm__cufile_answer {
  int error, cuda;
} gm__cufile_answer;

typedef struct gm__cufile_descriptor {
  int type; /* 1: a file descriptor of Linux */
  union {
    int fd;
    void *handle;
  } of;
  const void *operations;
} gm__cufile_descriptor;

typedef struct gm__cufile_properties {
  unsigned major_version, minor_version; /* of nvidia-fs; 0.0: it is not there */
  size_t poll_threshold, max_direct_io;
  unsigned status_flags, control_flags;
  unsigned features, max_cache, per_buffer_cache, max_pinned, max_batch, max_batch_timeout;
  unsigned char later[256]; /* a newer library may write more */
} gm__cufile_properties;

typedef struct gm__cufile_calls {
  gm__cufile_answer (*driver_open)(void);
  gm__cufile_answer (*properties)(gm__cufile_properties *out);
  gm__cufile_answer (*handle_register)(void **out, gm__cufile_descriptor *of);
  void (*handle_deregister)(void *handle);
  ssize_t (*read)(void *handle, void *device, size_t bytes, off_t file_offset, off_t device_offset);
} gm__cufile_calls;

/* The steps, one after another, until a file can be read. */
typedef enum gm__cufile_step {
  GM__CUFILE_LOAD = 0,
  GM__CUFILE_OPEN = 1,
  GM__CUFILE_PROPERTIES = 2,
  GM__CUFILE_FILE = 3,
  GM__CUFILE_DONE = 4
} gm__cufile_step;

/* An open file that cuFile reads. */
typedef struct gm__cufile {
  gm__cufile_calls calls;
  gm__dynlib *lib;
  void *handle;
  int fd;
} gm__cufile;

/* Open `path` for cuFile, in this process. `begin` (NULL: nobody) is told of each step before it is done. `library`
 * (NULL, "": libcufile.so.0) is as in gm__dynlib_spec. NOT_SUPPORTED says what is missing: the
 * library, the CUDA driver, a driver of nvidia-fs or P2PDMA, or the file system's support. Without both drivers cuFile
 * only plays, by copies through host memory. NOT_FOUND, IO: of the file. */
gm_status gm__cufile_open(const gm_services *services, const char *library, const char *path,
                          void (*begin)(void *user, gm__cufile_step step), void *user, gm__cufile *out, gm_error *err);

/* NULL members are fine. cuFile itself stays open until the process ends. */
void gm__cufile_close(gm__cufile *file);

/* Let the helper process open `path` and close it again. Errors are those of gm__cufile_open. NOT_SUPPORTED also where
 * cuFile hung or ended the helper; the message names the call. Others are those of gm__helper_start. */
gm_status gm__cufile_probe(const gm_context *ctx, const char *library, const char *path, gm_error *err);

/* The helper's side: writes what it finds to `fd`. */
gm_status gm__cufile_serve(const char *library, const char *path, int fd, gm_error *err);

#endif
