/* Insides of gm_file: a file that is open for reading, or a new one, and the ways to its bytes. Thread-safe, but for
 * open, commit and close. */
#ifndef GM_CORE_FILE_FILE_H
#define GM_CORE_FILE_FILE_H

#include <stdatomic.h>

#include "core/base/inner.h"
#include "core/base/input_file.h"
#include "core/base/thread.h"
#include "core/file/new_file.h"
#include "gm/file.h"
#include "gm/services.h"

struct gm_file {
  const gm_services *services; /* they outlive the file */
  char *path;
  gm_way way;
  gm__input_file input; /* through the page cache */
  const void *mapping;  /* GM_WAY_MAP, of a file with bytes */
  gm__mutex lock;       /* guards the opening of `direct` */
  gm__input_file direct;
  _Atomic(int) direct_is; /* gm__file_direct */
  char why[192];          /* complete before direct_is says so */
  gm__new_file *fresh;    /* NULL: it is open for reading */
};

/* A file that nothing is open of. `services` NULL: the C library's. gm_file_close ends it. OUT_OF_HOST_MEMORY. */
gm_status gm__file_make(const gm_services *services, const char *path, gm_way way, gm_file **out, gm_error *err);

/* Does what gm_file_open does. `services` NULL: the C library's. */
GM__INNER gm_status gm__file_open(const gm_services *services, const char *path, gm_way way, gm_file **out,
                                  gm_error *err);

/* Reads past the page cache; NULL: there are none, and `why` says so. The first call opens them. IO, NOT_FOUND: the
 * path is another file's now, or this one has changed. */
gm_status gm__file_direct(gm_file *file, const gm__input_file **out, gm_error *err);

/* The way for the bytes [at, at + bytes): CACHE, DIRECT or MAP. `bytes` is above 0. */
GM__INNER gm_way gm__file_way(gm_file *file, uint64_t at, uint64_t bytes);

#endif
