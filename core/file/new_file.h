/* A new file while it is written: what has been written, and whether that went well. Writes are thread-safe. The path
 * outlives it. */
#ifndef GM_CORE_FILE_NEW_FILE_H
#define GM_CORE_FILE_NEW_FILE_H

#include <stdatomic.h>

#include "core/file/side_file.h"
#include "gm/file.h"
#include "gm/services.h"

typedef struct gm__new_file {
  const gm_services *services;
  gm__side_file side;
  bool cached; /* all goes through the page cache */
  bool committed;
  uint64_t reserved;     /* bytes that it has before the first write */
  _Atomic(uint64_t) end; /* behind the last byte that was written */
  atomic_bool failed;    /* a write */
} gm__new_file;

/* Begins a file with room for `bytes`. gm__new_file_end ends it. Errors: those of gm_file_create. */
gm_status gm__new_file_begin(const gm_services *services, const char *path, uint64_t bytes, gm_way way,
                             gm__new_file **out, gm_error *err);

/* Without gm__new_file_commit the file goes. NULL does nothing. */
void gm__new_file_end(gm__new_file *file);

/* Do what gm_file_write and gm_file_commit do. `bytes` is above 0, and the range ends at most at INT64_MAX. */
gm_status gm__new_file_write(gm__new_file *file, uint64_t at, const void *from, uint64_t bytes, gm_error *err);
gm_status gm__new_file_commit(gm__new_file *file, gm_error *err);

/* Why it is not written past the page cache; "": nothing to say. */
const char *gm__new_file_why(const gm__new_file *file);

#endif
