#include "core/base/posix/path_error.h"

#include <errno.h>

gm_status gm__path_error_status(int code) { return code == ENOENT || code == ENOTDIR ? GM_ERR_NOT_FOUND : GM_ERR_IO; }

/* strerror is not thread-safe, and strerror_r has two forms. This table has the errors of paths and of writing. */
const char *gm__path_error_text(int code) {
  switch (code) {
    case ENOENT: return "no such file";
    case ENOTDIR: return "a part of the path is not a folder";
    case EISDIR: return "is a folder";
    case EACCES:
    case EPERM: return "permission denied";
    case EROFS: return "the file system is read-only";
    case ENOSPC: return "the disk is full";
    case EDQUOT: return "the user's share of the disk is full";
    case EFBIG: return "larger than a file may be";
    case ELOOP: return "too many symbolic links";
    case ENAMETOOLONG: return "the name is too long";
    case ENXIO: return "is a socket, a device, or a pipe that nobody reads";
    case EMFILE:
    case ENFILE: return "too many open files";
    case EIO: return "input/output error";
    default: return "system error, see native_code";
  }
}
