/* The comparisons of a card, as one JSON object on a descriptor. A library that Python opens, too
 * (beside_torch.py). */
#ifndef GM_BENCH_CARD_ROWS_H
#define GM_BENCH_CARD_ROWS_H

#include <stdint.h>

/* torch's allocator, in whose process this is called. `alloc` and `free` return 0 when they did it. */
typedef struct gm_card_torch {
  int (*alloc)(uint64_t bytes, void **out);
  int (*free)(void *pointer);
  void (*empty_cache)(void);
} gm_card_torch;

/* Same size, large blocks, a recorded training of transformers, memory pressure, variable sizes, and the first
 * allocation of a size beside a later one. `torch` may be NULL; `traces` is the folder with the trace; of `rounds` (1
 * to 99) the median counts. 0; 1: failed; 77: there is no such card. The reason is on standard error. */
__attribute__((visibility("default"))) int gm_card_rows(const gm_card_torch *torch, const char *traces, unsigned rounds,
                                                        int descriptor);

/* Free memory before, while and after gm holds some, by gm and by the driver, and the largest allocation that gm
 * predicts. Returns as above. */
__attribute__((visibility("default"))) int gm_card_free(int descriptor);

#endif
