/* Ranges of pages, and the reason when the system refuses one. */
#ifndef GM_BACKENDS_CPU_CPU_PAGES_H
#define GM_BACKENDS_CPU_CPU_PAGES_H

#include "backends/cpu/cpu_syms.h"

/* The transparent huge page of x86-64, and of arm64 with 4 KiB pages. Memory of this size or more begins on one, and
 * virtual memory comes in pieces of it. */
#define GM__CPU_HUGE_PAGE (UINT64_C(2) << 20)

/* More than any process can map. Below this size the system decides. */
#define GM__CPU_TOO_LARGE (UINT64_C(1) << 62)

typedef enum gm__cpu_pages_kind {
  GM__CPU_PAGES_MEMORY,   /* zeroed, private, taken at first use */
  GM__CPU_PAGES_ADDRESSES /* addresses without memory: touching one is a fault */
} gm__cpu_pages_kind;

uint64_t gm__cpu_page(void);
uint64_t gm__cpu_page_up(uint64_t bytes); /* rounds up to whole pages; `bytes` is at most GM__CPU_TOO_LARGE */

/* The alignment for a request of `bytes` with `align` (a power of two or 0). It is at least a page, and at least a huge
 * page where `bytes` has one. */
uint64_t gm__cpu_pages_align(uint64_t bytes, uint64_t align);

/* Map `bytes` (whole pages) at a multiple of `align` (at least a page). NULL: errno says why. */
unsigned char *gm__cpu_pages_map(const gm__cpu_syms *sys, gm__cpu_pages_kind kind, uint64_t bytes, uint64_t align);

/* The next three functions replace the mapping at `at`. False: errno says why, and the old mapping is still there. */

/* Map `bytes` of `fd` from `offset` on. */
bool gm__cpu_pages_place(const gm__cpu_syms *sys, void *at, uint64_t bytes, int fd, uint64_t offset);

/* Map zeroed private memory, which is taken at first use. */
bool gm__cpu_pages_renew(const gm__cpu_syms *sys, void *at, uint64_t bytes);

/* Map addresses without memory: they stay reserved. */
bool gm__cpu_pages_empty(const gm__cpu_syms *sys, void *at, uint64_t bytes);

/* Reserve addresses without memory again, unless another mapping is there. */
void gm__cpu_pages_retake(const gm__cpu_syms *sys, void *at, uint64_t bytes);

/* Fill `err` for the error number `code` of `op`, and return its status. OUT_OF_DEVICE_MEMORY where memory, addresses,
 * mappings or descriptors have run out, with the name of the limit where it is known. Otherwise SYSTEM. */
gm_status gm__cpu_pages_refused(gm_error *err, const char *op, int code, uint64_t bytes);

/* Static analysis reads one file at a time and must know that the status is never GM_OK. */
#ifdef __clang_analyzer__
#define gm__cpu_pages_refused(...) ((void)gm__cpu_pages_refused(__VA_ARGS__), GM_ERR_SYSTEM)
#endif

#endif
