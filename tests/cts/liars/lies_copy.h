/* Lies about copies, fills and queues, for the table in liars.c. */
#ifndef GM_TESTS_CTS_LIARS_LIES_COPY_H
#define GM_TESTS_CTS_LIARS_LIES_COPY_H

#include "gm/backend.h"

static inline unsigned char *liar_at(const gm_memory *memory) { return (unsigned char *)(uintptr_t)memory->handle; }

gm_status liar_fill_in_words(void *device, void *stream, const gm_memory *dst, uint64_t offset, uint64_t bytes,
                             const void *pattern, uint32_t pattern_bytes, gm_backend_point *out, gm_error *err);
gm_status liar_copy_whole_parts(void *device, void *stream, const gm_copy_item *item, gm_backend_point *out,
                                gm_error *err);
gm_status liar_slices_to_device(void *device, void *stream, const gm_memory *dst, const void *src, const gm_rect *rect,
                                gm_backend_point *out, gm_error *err);
gm_status liar_slices_to_host(void *device, void *stream, const gm_memory *src, void *dst, const gm_rect *rect,
                              gm_backend_point *out, gm_error *err);
gm_status liar_slices_copy(void *device, void *stream, const gm_memory *dst, const gm_memory *src, const gm_rect *rect,
                           gm_backend_point *out, gm_error *err);
gm_status liar_many_merges(void *device, void *stream, const gm_copy_item *items, uint32_t count, gm_backend_point *out,
                           gm_error *err);
gm_status liar_many_of_256(void *device, void *stream, const gm_copy_item *items, uint32_t count, gm_backend_point *out,
                           gm_error *err);
gm_status liar_many_one_word_each(void *device, void *stream, const gm_copy_item *items, uint32_t count,
                                  gm_backend_point *out, gm_error *err);
gm_status liar_many_overtakes(void *device, void *stream, const gm_copy_item *items, uint32_t count,
                              gm_backend_point *out, gm_error *err);
gm_status liar_arrives_late(void *device, void *stream, const gm_memory *dst, uint64_t offset, const void *src,
                            uint64_t bytes, gm_backend_point *out, gm_error *err);
gm_status liar_jumps(void *device, void *stream, const gm_copy_item *item, gm_backend_point *out, gm_error *err);
gm_status liar_fill_ignores_waits(void *device, void *stream, const gm_memory *dst, uint64_t offset, uint64_t bytes,
                                  const void *pattern, uint32_t pattern_bytes, gm_backend_point *out, gm_error *err);
void liar_close_drops(void *device, void *stream, gm_close_mode mode);

#endif
