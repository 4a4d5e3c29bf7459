/* Floats of 16 bits as floats of 32 bits: the lazy backend's honest way, and lies about it for the table in liars.c. */
#ifndef GM_TESTS_CTS_LIARS_LIES_EXPAND_H
#define GM_TESTS_CTS_LIARS_LIES_EXPAND_H

#include "gm/backend.h"

gm_status lazy_expand(void *device, void *stream, const gm_memory *dst, uint64_t dst_offset, const gm_memory *src,
                      uint64_t src_offset, uint64_t count, gm_dtype from, gm_backend_point *out, gm_error *err);
gm_status liar_expand_flushes(void *device, void *stream, const gm_memory *dst, uint64_t dst_offset,
                              const gm_memory *src, uint64_t src_offset, uint64_t count, gm_dtype from,
                              gm_backend_point *out, gm_error *err);
gm_status liar_expand_one_type(void *device, void *stream, const gm_memory *dst, uint64_t dst_offset,
                               const gm_memory *src, uint64_t src_offset, uint64_t count, gm_dtype from,
                               gm_backend_point *out, gm_error *err);
gm_status liar_expand_in_pairs(void *device, void *stream, const gm_memory *dst, uint64_t dst_offset,
                               const gm_memory *src, uint64_t src_offset, uint64_t count, gm_dtype from,
                               gm_backend_point *out, gm_error *err);
gm_status liar_expand_overtakes(void *device, void *stream, const gm_memory *dst, uint64_t dst_offset,
                                const gm_memory *src, uint64_t src_offset, uint64_t count, gm_dtype from,
                                gm_backend_point *out, gm_error *err);

#endif
