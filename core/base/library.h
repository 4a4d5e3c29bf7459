/* Shared libraries as the system has them; core/base/dynlib.h is the face that backends use. Thread-safe. */
#ifndef GM_CORE_BASE_LIBRARY_H
#define GM_CORE_BASE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* Load `name` (a bare name or an absolute path), all symbols bound now and visible to nobody else. NULL: not loaded;
 * then `why` has the system's words, or is "" when there simply is no such file. */
void *gm__library_open(const char *name, char *why, size_t capacity);

void gm__library_close(void *handle);

/* NULL when it has none. */
void *gm__library_symbol(void *handle, const char *name);

/* The file that was loaded, "" when the system does not say; valid until gm__library_close. */
const char *gm__library_path(void *handle);

/* Every library of the process that exports `symbol` stays loaded until the process ends, whoever loaded it and closes
 * it: for drivers that another library loads and unloads (Vulkan's loader), whose memory is lost when they go. */
void gm__library_keep_exporting(const char *symbol);

/* May `name` be given to gm__library_open: a bare name or an absolute path, not empty? */
bool gm__library_name_ok(const char *name);

/* Where gm__library_open would probably find `name`, without loading anything: LD_LIBRARY_PATH, the directories of
 * /etc/ld.so.conf and what it includes, the system's own. A file counts when it is a shared object of this program's
 * word size. `root` ("" for the real one) is put before the system's directories. False: not found, or longer than
 * `capacity`; then `out` is untouched. */
bool gm__library_find(const char *root, const char *name, char *out, size_t capacity);

#endif
