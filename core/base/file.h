/* Small text files of the kernel, read below a root so that tests can put a directory of their own in its place. Only
 * regular files are read: a pipe or a device in a file's place neither blocks nor floods. */
#ifndef GM_CORE_BASE_FILE_H
#define GM_CORE_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

enum { GM__FILE_PATH_SIZE = 4096, GM__FILE_LINE_SIZE = 8192, GM__FILE_BYTES_MAX = 16 << 20 };

typedef enum gm__file_answer {
  GM__FILE_OK,
  GM__FILE_ABSENT,     /* there is no such file */
  GM__FILE_UNREADABLE, /* it exists and cannot be read, or is no regular file, or no text */
  GM__FILE_TOO_LARGE   /* more than the caller's buffer, or more than GM__FILE_BYTES_MAX in lines */
} gm__file_answer;

/* Called with one line without its newline, which it may change; false: no more lines. */
typedef bool (*gm__line_visit)(void *user, char *line);

/* Called with one name of a directory; "." and ".." are left out. false: no more names. */
typedef bool (*gm__name_visit)(void *user, const char *name);

/* The whole file into `buffer`, ended by NUL. NULs at its end are left out, one before that makes it unreadable. `root`
 * NULL: "". On another answer than OK the buffer holds "". */
gm__file_answer gm__file_text(const char *root, const char *path, char *buffer, size_t capacity);

/* Every line, the last one also without newline. Lines that hold a NUL or do not fit GM__FILE_LINE_SIZE are left out.
 */
gm__file_answer gm__file_lines(const char *root, const char *path, gm__line_visit visit, void *user);

/* Every name in a directory, in no order. */
gm__file_answer gm__file_names(const char *root, const char *directory, gm__name_visit visit, void *user);

#endif
