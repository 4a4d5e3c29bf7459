/* Status codes, and the detail of a failure, which the caller owns. Comments in gm's headers name a status without its
 * prefix: BUSY is GM_ERR_BUSY. Every function here is thread-safe. */
#ifndef GM_STATUS_H
#define GM_STATUS_H

#include <stdint.h>

#include "gm/export.h"

GM_BEGIN_DECLS

/* This list feeds the enum, the names and the texts. The numbers never change. New ones go last. */
#define GM_STATUS_MAP(X)                                                                \
  X(GM_OK, 0, "success")                                                                \
  X(GM_ERR_INVALID_ARGUMENT, 1, "argument outside its documented range")                \
  X(GM_ERR_OUT_OF_HOST_MEMORY, 2, "host allocator returned NULL")                       \
  X(GM_ERR_OUT_OF_DEVICE_MEMORY, 3, "device cannot provide the bytes now")              \
  X(GM_ERR_OVER_LIMIT, 4, "a gm limit refused the bytes; the device was not asked")     \
  X(GM_ERR_ALLOCATION_TOO_LARGE, 5, "larger than the driver allows for one allocation") \
  X(GM_ERR_PINNED_LIMIT, 6, "the system refuses more page-locked memory")               \
  X(GM_ERR_UNAVAILABLE, 7, "driver or device is not present on this machine")           \
  X(GM_ERR_NOT_SUPPORTED, 8, "this backend or build does not implement the operation")  \
  X(GM_ERR_NOT_FOUND, 9, "no such key, backend, device or file")                        \
  X(GM_ERR_BUSY, 10, "object still has users")                                          \
  X(GM_ERR_ABI_MISMATCH, 11, "backend compiled against another gm_backend_ops")         \
  X(GM_ERR_DEVICE_LOST, 12, "device failed; close and reopen it")                       \
  X(GM_ERR_DRIVER, 13, "vendor call failed; see gm_error.native_code")                  \
  X(GM_ERR_IO, 14, "reading or writing failed")                                         \
  X(GM_ERR_FORMAT, 15, "file or message is not what it claims to be")                   \
  X(GM_ERR_FORKED, 16, "context was made before fork; only destroy works here")         \
  X(GM_ERR_CANCELLED, 17, "the caller cancelled")                                       \
  X(GM_ERR_TIMEOUT, 18, "deadline passed")                                              \
  X(GM_ERR_SYSTEM, 19, "an operating system call failed; see gm_error.native_code")     \
  X(GM_ERR_DAMAGED, 20, "memory that gm guards was overwritten")

typedef enum gm_status {
#define X(name, value, text) name = value,
  GM_STATUS_MAP(X)
#undef X
} gm_status;

/* Detail of a failure. It is the last argument of every call that can reach a driver or a file, and it may be NULL. The
 * caller owns it. gm writes it only when the call does not return GM_OK. It is then complete, and both strings are
 * terminated. Never grows. */
typedef struct gm_error {
  gm_status status;
  int32_t native_code; /* CUresult, cl_int, hipError_t, VkResult or errno; 0 if there is none */
  char op[48];         /* the call that failed: "clCreateBuffer", "open", "gm_pool_create" */
  char message[464];   /* one line: what the caller asked for, what is wrong, what to do next */
} gm_error;

/* Returns the name of a status, such as "GM_ERR_BUSY". An unknown number gives "GM_ERR_?". The string is static and
 * never NULL. */
GM_API const char *gm_status_name(gm_status status);

/* Returns the sentence that GM_STATUS_MAP has for a status. The string is static and never NULL. */
GM_API const char *gm_status_text(gm_status status);

GM_END_DECLS

#endif
