/* Readers of recordings share this: lists that grow, and blocks by their ids. */
#ifndef GM_TOOLS_GMEM_SESSION_BLOCK_IDS_H
#define GM_TOOLS_GMEM_SESSION_BLOCK_IDS_H

#include <stddef.h>
#include <stdint.h>

/* Room for one more of `count` items; lists grow by doubling. NULL: no memory, and `list` is as before. */
void *list_room(void *list, size_t count, size_t item_bytes);

/* The place of `id` in `ids`, which rise. It is there: the reader of the file has checked that. */
uint32_t block_ids_find(const uint64_t *ids, uint32_t count, uint64_t id);

#endif
