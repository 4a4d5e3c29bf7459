/* A file that takes the place of another one, whole or not at all. One thread. `path` outlives it. */
#ifndef GM_CORE_LOAD_SAVE_FILE_H
#define GM_CORE_LOAD_SAVE_FILE_H

#include "core/base/data_place.h"

typedef struct gm__save_file {
  const char *path;
  gm__data_place place;
  gm__data_file old; /* -1: no file had the name */
  gm__data_file side;
  char side_name[GM__DATA_NAME_SIZE];
} gm__save_file;

/* Opens the side file, which is empty. A side file that an ended process left is removed. BUSY: another thread or
 * process saves to the path, or has locked the file there. NOT_FOUND: no such folder. IO: as for data_place.h. */
gm_status gm__save_file_open(const char *path, gm__save_file *out, gm_error *err);

/* The side file is on the disk and gets the name of the path, which is on the disk, too. */
gm_status gm__save_file_give(gm__save_file *file, gm_error *err);

/* Closes all. A side file that did not get the name goes. */
void gm__save_file_close(gm__save_file *file);

#endif
