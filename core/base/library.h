/* The system's shared libraries. Backends use core/base/dynlib.h. Thread-safe. */
#ifndef GM_CORE_BASE_LIBRARY_H
#define GM_CORE_BASE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* Load `name`, a bare name or an absolute path. All symbols are bound now, and are visible to nobody else. NULL: not
 * loaded. `why` then has the system's words, or is "" when there is no such file. */
void *gm__library_open(const char *name, char *why, size_t capacity);

void gm__library_close(void *handle);

/* The address of a symbol; NULL: the library has none. */
void *gm__library_symbol(void *handle, const char *name);

/* The loaded file, "" when the system does not tell. Valid until gm__library_close. */
const char *gm__library_path(void *handle);

/* Keep every library of the process that exports `symbol` loaded until the process ends, whoever loaded it. This is for
 * drivers that another library loads and unloads (Vulkan's loader): each unloading would lose their memory. */
void gm__library_keep_exporting(const char *symbol);

/* Does gm__library_open take `name`? It must be a bare name or an absolute path. */
bool gm__library_name_ok(const char *name);

/* The file that gm__library_open would probably load for `name`. Nothing is loaded. It searches LD_LIBRARY_PATH, the
 * directories of /etc/ld.so.conf and its includes, and the system's own. A file counts when it is a shared object of
 * this program's word size. `root` ("" for the real one) goes before the system's directories. False: not found, or
 * longer than `capacity`; `out` is untouched. */
bool gm__library_find(const char *root, const char *name, char *out, size_t capacity);

#endif
