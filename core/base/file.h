/* Small text files of the kernel. gm reads them below a root, so that tests can use their own directory. gm reads only
 * regular files: a pipe or a device in a file's place neither blocks nor floods. */
#ifndef GM_CORE_BASE_FILE_H
#define GM_CORE_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/inner.h"

enum {
  GM__FILE_PATH_SIZE = 4096,
  GM__FILE_LINE_SIZE = 1024,      /* of the kernel's tables: it lies on the stack, which may be small */
  GM__FILE_LONG_LINE_SIZE = 8192, /* of files with names in them: the caller has it elsewhere */
  GM__FILE_BYTES_MAX = 16 << 20
};

typedef enum gm__file_answer {
  GM__FILE_OK,
  GM__FILE_ABSENT,     /* there is no such file */
  GM__FILE_UNREADABLE, /* the file exists and cannot be read, or is no regular file, or no text */
  GM__FILE_TOO_LARGE   /* more than the caller's buffer, or more than GM__FILE_BYTES_MAX in lines */
} gm__file_answer;

/* Visit one line, without its newline. The visitor may change it. False: no more lines. */
typedef bool (*gm__line_visit)(void *user, char *line);

/* Visit one name of a directory, but not "." and "..". False: no more names. */
typedef bool (*gm__name_visit)(void *user, const char *name);

/* Read the whole file into `buffer`, and end it with NUL. NULs at the end of the file are left out. A NUL before the
 * end makes the file unreadable. `root` NULL means "". After any answer but OK the buffer holds "". */
GM__INNER gm__file_answer gm__file_text(const char *root, const char *path, char *buffer, size_t capacity);

/* Visit every line; the last one needs no newline. Lines with a NUL, or longer than GM__FILE_LINE_SIZE, are left out.
 */
gm__file_answer gm__file_lines(const char *root, const char *path, gm__line_visit visit, void *user);

/* Visit every line as gm__file_lines does, also those up to GM__FILE_LONG_LINE_SIZE, which is the size of `room`. */
gm__file_answer gm__file_long_lines(const char *root, const char *path, char *room, gm__line_visit visit, void *user);

/* The inode of what is there, behind links; 0: nothing is. */
uint64_t gm__file_inode(const char *root, const char *path);

/* Visit every name in a directory, in any order. */
gm__file_answer gm__file_names(const char *root, const char *directory, gm__name_visit visit, void *user);

#endif
