/* Where a file of gm's own lies: its folder and its name there. The folder is looked up once, and so is a symbolic link
 * at the end of the path. So the file stays where it was opened, whatever folder the process goes to. A place that is
 * open does not change, so its calls are thread-safe. `path` is for messages.
 *
 * One process owns a name: the one that has locked the file that has the name now. A file that lost its name to another
 * one says nothing about the name. */
#ifndef GM_CORE_BASE_DATA_PLACE_H
#define GM_CORE_BASE_DATA_PLACE_H

#include <stdbool.h>

#include "core/base/data_file.h"
#include "core/base/inner.h"

enum { GM__DATA_NAME_SIZE = 256 };

typedef struct gm__data_place {
  int folder;                    /* -1: not open */
  char name[GM__DATA_NAME_SIZE]; /* in the folder; no symbolic link when the place was opened */
} gm__data_place;

/* Looks up a path, whose file need not exist. NOT_FOUND: no such folder. IO: a part of the path is too long, or may not
 * be passed. */
GM__INNER gm_status gm__data_place_open(const char *path, gm__data_place *out, gm_error *err);
GM__INNER void gm__data_place_close(gm__data_place *place);

/* Opens and locks the file that has the name. BUSY: another process, or this one, has it open in a way that excludes
 * this one. NOT_FOUND: no file has the name. IO: not permitted, or no regular file. Readers exclude writers only. */
GM__INNER gm_status gm__data_place_file(const gm__data_place *place, const char *path, bool writes, gm__data_file *out,
                                        gm_error *err);

/* Whether the name is that of this file now. */
bool gm__data_place_has(const gm__data_place *place, const gm__data_file *file);

/* Makes a side file `side` in the folder, for the user alone, locked. IO: also where a file has that name, or a link.
 */
GM__INNER gm_status gm__data_place_side(const gm__data_place *place, const char *path, const char *side,
                                        gm__data_file *out, gm_error *err);

/* Opens the side file, which `file` is, a second time: for writes past the page cache. False: its file system has none.
 * The second one has no lock. */
bool gm__data_place_side_direct(const gm__data_place *place, const char *side, const gm__data_file *file,
                                gm__data_file *out);

/* Gives the side file the place's name, which `old` has: a locked file that loses its name. Where `old` is NULL, no
 * file may have the name. BUSY: another process was there first. After a failure the names are as they were. The name
 * is not on the disk yet. */
GM__INNER gm_status gm__data_place_give(const gm__data_place *place, const char *path, const char *side,
                                        const gm__data_file *file, const gm__data_file *old, gm_error *err);

/* Removes the name of a side file, if there is one. */
GM__INNER void gm__data_place_remove(const gm__data_place *place, const char *side);

/* Waits until the names in the folder are on the disk. `file` is one that lies there. */
GM__INNER gm_status gm__data_place_sync(const gm__data_place *place, const gm__data_file *file, const char *path,
                                        gm_error *err);

/* Visits the names in the folder, in any order. A folder that cannot be read shows none. */
typedef void (*gm__data_place_visit)(void *user, const char *name);
GM__INNER void gm__data_place_names(const gm__data_place *place, gm__data_place_visit visit, void *user);

#endif
