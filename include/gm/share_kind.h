/* How memory travels between processes. Backends and engines share these words. */
#ifndef GM_SHARE_KIND_H
#define GM_SHARE_KIND_H

#include <stdint.h>

#include "gm/device_info.h"

GM_BEGIN_DECLS

/* How memory can leave for another process. */
typedef enum gm_share_kind {
  GM_SHARE_NONE = 0,
  GM_SHARE_IPC = 1,   /* bytes that another process of the machine understands */
  GM_SHARE_FD = 2,    /* a file descriptor, for the same driver and device */
  GM_SHARE_DMABUF = 3 /* a file descriptor that other drivers understand, too */
} gm_share_kind;

enum { GM_SHARE_IPC_BYTES = 64, GM_SHARE_BACKEND_BYTES = 16 };

/* Memory on its way to another process. It is plain data except for `fd`, which belongs to whoever has the struct. The
 * receiver checks every word of it. */
typedef struct gm_shared {
  uint32_t struct_size;
  gm_share_kind kind;
  uint64_t bytes;
  uint64_t offset;                      /* of the memory, in the allocation that the driver shares */
  uint64_t whole_bytes;                 /* of the allocation that the driver shares */
  uint32_t type;                        /* the exporter's memory type */
  int32_t fd;                           /* GM_SHARE_FD, GM_SHARE_DMABUF; else -1 */
  uint8_t device_uuid[GM_UUID_BYTES];   /* of the exporter's device; gm fills it in for IPC and FD; zero: any device */
  char backend[GM_SHARE_BACKEND_BYTES]; /* name of the exporter's backend; gm fills it in for IPC and FD; "": any */
  uint8_t ipc[GM_SHARE_IPC_BYTES];
} gm_shared;

GM_END_DECLS

#endif
