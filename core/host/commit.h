/* Reasons that keep the kernel from promising or locking memory, though some is free. */
#ifndef GM_CORE_HOST_COMMIT_H
#define GM_CORE_HOST_COMMIT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct gm__host_commit {
  bool strict;              /* vm.overcommit_memory is 2: the kernel promises no more than `limit_bytes` */
  uint64_t limit_bytes;     /* CommitLimit; GM_UNKNOWN_BYTES */
  uint64_t committed_bytes; /* Committed_AS; GM_UNKNOWN_BYTES */
  uint64_t address_bytes;   /* VmSize of this process; GM_UNKNOWN_BYTES */
  uint64_t address_limit;   /* RLIMIT_AS; GM_UNKNOWN_BYTES: unlimited or unknown */
  uint64_t data_bytes;      /* VmData of this process; GM_UNKNOWN_BYTES */
  uint64_t data_limit;      /* RLIMIT_DATA; GM_UNKNOWN_BYTES: unlimited or unknown */
  uint64_t locked_bytes;    /* VmLck of this process; GM_UNKNOWN_BYTES */
  uint64_t lock_limit;      /* RLIMIT_MEMLOCK; GM_UNKNOWN_BYTES: unlimited, also for its CAP_IPC_LOCK, or unknown */
} gm__host_commit;

/* Reads /proc below `root` ("" for the real one). A text that does not parse is unknown. */
void gm__host_commit_read(const char *root, gm__host_commit *out);

/* The limit of the process that leaves least, of those of addresses and of private memory. */
typedef struct gm__host_process {
  uint64_t total_bytes, free_bytes; /* GM_UNKNOWN_BYTES: no such limit is set */
} gm__host_process;
gm__host_process gm__host_process_read(const char *root);

/* The limit in the way of `bytes` more, such as "RLIMIT_DATA" or "vm.overcommit_memory"; NULL: nothing that is
 * known. */
const char *gm__host_commit_name(const gm__host_commit *commit, uint64_t bytes);

/* The bytes that the kernel is to promise more before it gives `bytes`. 0: as far as is known it gives them. */
uint64_t gm__host_commit_lack(const gm__host_commit *commit, uint64_t bytes);

/* The bytes by which RLIMIT_MEMLOCK is to rise before the process may lock `bytes` more. 0: it may. */
uint64_t gm__host_lock_lack(const gm__host_commit *commit, uint64_t bytes);

#endif
