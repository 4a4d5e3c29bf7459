/* Where the relocatable buffers of a pool lie on the device: by driver allocation, then by address. Each call takes
 * steps by the logarithm of their number. The caller synchronises. A buffer's block stays as it is while it is in. */
#ifndef GM_CORE_BUFFER_LAYOUT_H
#define GM_CORE_BUFFER_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

struct gm_buffer;

/* A place in the tree of a layout. Zeroed, it is in none. */
typedef struct gm__layout_node {
  struct gm_buffer *lower, *higher;
  uint64_t bytes; /* of the blocks from here down */
  bool in;
} gm__layout_node;

/* *top is the whole tree; NULL: it is empty. Taking out a buffer that is not in does nothing. */
void gm__layout_add(struct gm_buffer **top, struct gm_buffer *buffer);
void gm__layout_take(struct gm_buffer **top, struct gm_buffer *buffer);

/* The bytes of the blocks in that driver allocation. */
uint64_t gm__layout_bytes(const struct gm_buffer *top, uint64_t memory);

/* The buffer of the highest address below `below` in that driver allocation. NULL: there is none. */
struct gm_buffer *gm__layout_below(struct gm_buffer *top, uint64_t memory, uint64_t below);

/* The buffer at that address. NULL: there is none. */
struct gm_buffer *gm__layout_at(struct gm_buffer *top, uint64_t memory, uint64_t address);

#endif
