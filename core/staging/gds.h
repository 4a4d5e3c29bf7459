/* Reads from a drive straight into the memory of a card: GPUDirect Storage, by cuFile. Nothing is read on another way
 * here: who calls has others. Thread-safe, but for open and close of one file. */
#ifndef GM_CORE_STAGING_GDS_H
#define GM_CORE_STAGING_GDS_H

#include <stdint.h>

#include "core/base/inner.h"
#include "core/base/input_file.h"
#include "core/context/context.h"

enum { GM__GDS_ALIGN = 4096 };

typedef struct gm__gds gm__gds;

/* Open a file. The helper process tries cuFile first, so this never hangs for more than a few seconds, and only until
 * it was good once. NOT_SUPPORTED says which need is missing (core/discovery/cufile.h). NOT_FOUND, IO: of the file.
 * OUT_OF_HOST_MEMORY. */
GM__INNER gm_status gm__gds_open(gm_context *ctx, const char *path, gm__gds **out, gm_error *err);

/* Whether it is that file, in the same state. */
GM__INNER bool gm__gds_is(const gm__gds *gds, const gm__input_file *file);

/* NULL does nothing. */
GM__INNER void gm__gds_close(gm__gds *gds);

/* The part of a read that is whole pages of file and memory at once: *out_middle bytes behind *out_front. `bytes`
 * bytes at byte `offset` of a file go to `address`. The bytes before and behind the part go another way. Both 0: there
 * is none.
 */
GM__INNER void gm__gds_middle(uint64_t offset, uint64_t address, uint64_t bytes, uint64_t *out_front,
                              uint64_t *out_middle);

/* Read `bytes` bytes at byte `offset` into device memory at `address`, all of them. REQUIRES: the card's context is
 * current. NOT_SUPPORTED: a number is no multiple of GM__GDS_ALIGN, or cuFile refuses; another way may serve. IO: the
 * file could not be read, or ends before; the message names the byte. */
GM__INNER gm_status gm__gds_read(gm__gds *gds, uint64_t offset, uintptr_t address, uint64_t bytes, gm_error *err);

#endif
