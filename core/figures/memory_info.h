/* The one place where "free" is made: raw figures of a device come in, a gm_memory_info goes out (rules D1 to D17).
 * Pure: no file, no driver, no lock, no allocation. The same input gives the same answer. Thread-safe. */
#ifndef GM_CORE_FIGURES_MEMORY_INFO_H
#define GM_CORE_FIGURES_MEMORY_INFO_H

#include "core/host/dmem.h"
#include "core/host/fdinfo.h"
#include "core/host/sysfs.h"
#include "gm/raw_figures.h"

typedef struct gm__figures_input {
  const gm_raw_figures *raw;
  const gm_host_info *host;   /* NULL: the host's figures are not known */
  const gm_memory_info *peer; /* of another API for the same physical device, or NULL */
  gm__sysfs_memory sysfs;     /* all unknown where there is none */
  gm__fdinfo_use fdinfo;      /* not valid where it was not read */
  uint64_t own_bytes;         /* held on the device by all gm contexts of the process */
  const gm__dmem *dmem;       /* groups that bound a card's own memory; NULL: there is none */
  gm_memory_part process;     /* what the process's own limits leave of host memory; unknown: no limit is set */
  gm_memory_part carve_out;   /* memory of an APU that is no part of host RAM; unknown: `sysfs` is asked */
  bool managed;               /* the question is about managed allocations */
  bool listed;                /* of a device in a list: what no source tells is estimated by the total (D17) */
  uint64_t now_ns;
} gm__figures_input;

/* An input of which only the raw figures are known. */
gm__figures_input gm__figures_input_of(const gm_raw_figures *raw);

gm_memory_info gm__memory_info_resolve(const gm__figures_input *input);

/* The heaps of a device, where its API gives figures of them. */
typedef struct gm__heap_figures {
  uint32_t count;
  gm_heap_info heaps[GM_RAW_HEAPS_MAX];
} gm__heap_figures;

/* Fills in all but what gm holds. `count` is 0 for APIs without such figures. */
void gm__heaps_resolve(const gm_raw_figures *raw, gm__heap_figures *out);

/* Free bytes, and those that gm's own pools would give back. 0 where nothing is known. */
uint64_t gm__effective_free(const gm_memory_info *memory);

/* The bytes that gm may still take: min(fraction * total - used by us, effective free - keep_free - promised by
 * others) - promised. Reclaimable bytes do not count as used. 0 where nothing is known. */
uint64_t gm__headroom(const gm_memory_info *memory, double fraction, uint64_t keep_free_bytes);

/* The bytes that stay free on a device with that total where min_free_bytes is "auto": the smaller of 512 MiB and 5 %.
 */
uint64_t gm__margin_auto(uint64_t total_bytes);

#endif
