/* Ranges of pages, whatever is behind them, and what the system says when it gives none. */
#ifndef GM_BACKENDS_CPU_CPU_PAGES_H
#define GM_BACKENDS_CPU_CPU_PAGES_H

#include "backends/cpu/cpu_syms.h"

/* Memory begins on a huge page from this size on, and virtual memory comes in pieces of it: transparent huge pages of
 * x86-64 and of arm64 with 4 KiB pages. */
#define GM__CPU_HUGE_PAGE (UINT64_C(2) << 20)

/* More than any process can map; what is below is for the system to decide. */
#define GM__CPU_TOO_LARGE (UINT64_C(1) << 62)

typedef enum gm__cpu_pages_kind {
  GM__CPU_PAGES_MEMORY,   /* zeroed, private, taken at first use */
  GM__CPU_PAGES_ADDRESSES /* nothing behind them: touching one is a fault */
} gm__cpu_pages_kind;

uint64_t gm__cpu_page(void);
uint64_t gm__cpu_page_up(uint64_t bytes); /* to whole pages; `bytes` at most GM__CPU_TOO_LARGE */

/* `align` as asked for (power of two or 0), at least a page, and a huge page where `bytes` is one or more. */
uint64_t gm__cpu_pages_align(uint64_t bytes, uint64_t align);

/* `bytes` (whole pages) at a multiple of `align` (at least a page); NULL: errno says why. */
unsigned char *gm__cpu_pages_map(const gm__cpu_syms *sys, gm__cpu_pages_kind kind, uint64_t bytes, uint64_t align);

/* Bytes of `fd` from `offset` on in the place of what is at `at`. False: errno says why, and `at` is as it was. */
bool gm__cpu_pages_place(const gm__cpu_syms *sys, void *at, uint64_t bytes, int fd, uint64_t offset);

/* Zeroed private memory, taken at first use, in the place of what is at `at`. False as above. */
bool gm__cpu_pages_renew(const gm__cpu_syms *sys, void *at, uint64_t bytes);

/* Addresses with nothing behind them again, unless they are taken. */
void gm__cpu_pages_retake(const gm__cpu_syms *sys, void *at, uint64_t bytes);

/* Nothing behind [at, at + bytes) any more; the addresses stay taken. False as above. */
bool gm__cpu_pages_empty(const gm__cpu_syms *sys, void *at, uint64_t bytes);

/* The status for `code` of `op`: OUT_OF_DEVICE_MEMORY where memory, addresses, mappings or descriptors have run out,
 * with the limit that did it where that can be told, else SYSTEM. */
gm_status gm__cpu_pages_refused(gm_error *err, const char *op, int code, uint64_t bytes);

/* Static analysis reads one file at a time and must know that it is never GM_OK. */
#ifdef __clang_analyzer__
#define gm__cpu_pages_refused(...) ((void)gm__cpu_pages_refused(__VA_ARGS__), GM_ERR_SYSTEM)
#endif

#endif
