#include "cts/liars/liars.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cts/liars/lazy.h"
#include "cts/liars/lies_copy.h"
#include "cts/liars/lies_expand.h"

/* ---- points ---- */

static gm_status liar_done_at_once(void *device, const gm_backend_point *point, bool *out, gm_error *err) {
  (void)device, (void)point, (void)err;
  *out = true;
  return GM_OK;
}

static gm_status liar_record_before_last(void *device, void *stream, gm_backend_point *out, gm_error *err) {
  const gm_status status = lazy_ops.point_record(device, stream, out, err);
  if (status == GM_OK && out->value > 1) out->value--;
  return status;
}

/* It passes only when the stream has nothing left to do. */
static gm_status liar_record_passes_late(void *device, void *stream, gm_backend_point *out, gm_error *err) {
  const gm_status status = lazy_ops.point_record(device, stream, out, err);
  if (status == GM_OK && out->handle) out->value = ((lazy_stream *)stream)->submitted + 2;
  return status;
}

static gm_status liar_many_of_first(void *device, void *stream, const gm_copy_item *items, uint32_t count,
                                    gm_backend_point *out, gm_error *err) {
  gm_backend_point first = {0};
  gm_status status = lazy_ops.copy(device, stream, &items[0], out ? &first : NULL, err);
  if (status == GM_OK && count > 1) status = lazy_ops.copy_many(device, stream, items + 1, count - 1, out, err);
  if (status == GM_OK && out) *out = first;
  return status;
}

/* ---- waits ---- */

static gm_status liar_wait_truncated(void *device, const gm_backend_point *point, uint64_t timeout_ns, gm_error *err) {
  const bool done = !point->handle || ((lazy_stream *)(uintptr_t)point->handle)->done >= point->value;
  if (!done && timeout_ns % 1000000 == 0) return lazy_fail(err, GM_ERR_TIMEOUT, "point_wait", "not reached");
  return lazy_ops.point_wait(device, point, timeout_ns, err);
}

/* A deadline that wraps lies before now. */
static gm_status liar_wait_wraps(void *device, const gm_backend_point *point, uint64_t timeout_ns, gm_error *err) {
  if (timeout_ns > UINT64_MAX / 2 && timeout_ns != UINT64_MAX) {
    return lazy_fail(err, GM_ERR_TIMEOUT, "point_wait", "not reached");
  }
  return lazy_ops.point_wait(device, point, timeout_ns, err);
}

static gm_status liar_wait_gives_up(void *device, const gm_backend_point *point, uint64_t timeout_ns, gm_error *err) {
  return timeout_ns == UINT64_MAX ? lazy_ops.point_wait(device, point, timeout_ns, err) : GM_OK;
}

static gm_status liar_wait_zero_is_never(void *device, const gm_backend_point *point, uint64_t timeout_ns,
                                         gm_error *err) {
  if (point->handle && !timeout_ns) return lazy_fail(err, GM_ERR_TIMEOUT, "point_wait", "not reached");
  return lazy_ops.point_wait(device, point, timeout_ns, err);
}

/* ---- order across streams ---- */

/* A stream remembers one wait: the one before is forgotten where nothing was submitted in between. */
static gm_status liar_wait_on_last_only(void *device, void *stream, const gm_backend_point *point, gm_error *err) {
  lazy_stream *queue = stream;
  if (queue->count) {
    lazy_job *last = &queue->jobs[(queue->first + queue->count - 1) % queue->room];
    if (!last->src && !last->pattern_bytes && point->handle && point->handle != (uintptr_t)stream) {
      last->wait = *point;
      return GM_OK;
    }
  }
  return lazy_ops.point_wait_on(device, stream, point, err);
}

/* ---- outputs, figures, contents ---- */

static gm_status liar_out_on_failure(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err) {
  const gm_status status = lazy_ops.memory_alloc(device, params, out, err);
  if (status == GM_ERR_OUT_OF_DEVICE_MEMORY) memset(out, 0, sizeof *out);
  return status;
}

static gm_status liar_free_never_falls(void *driver, uint32_t index, void *device, gm_raw_figures *out, gm_error *err) {
  const gm_status status = lazy_ops.figures(driver, index, device, out, err);
  if (status == GM_OK) out->driver.free_bytes = out->driver.total_bytes;
  return status;
}

/* Freed memory is kept for the next request of its size. It is wiped when it is read first, not when it is handed
 * out. */
static gm_memory liar_kept;
static uint64_t liar_unwiped;

static gm_status liar_keeps(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err) {
  const gm_memory before = liar_kept;
  if (mode != GM_CLOSE_NORMAL) return lazy_ops.memory_free(device, memory, mode, err);
  liar_kept = *memory;
  return before.handle ? lazy_ops.memory_free(device, &before, mode, err) : GM_OK;
}

static gm_status liar_reuses(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err) {
  if (liar_kept.type != params->type || liar_kept.bytes < params->bytes || liar_kept.bytes > params->bytes + 4096) {
    return lazy_ops.memory_alloc(device, params, out, err);
  }
  *out = liar_kept;
  liar_unwiped = liar_kept.handle;
  liar_kept.handle = liar_kept.bytes = 0;
  return GM_OK;
}

static gm_status liar_wipes_late(void *device, void *stream, const gm_memory *src, uint64_t offset, void *dst,
                                 uint64_t bytes, gm_backend_point *out, gm_error *err) {
  if (liar_unwiped == src->handle) {
    memset((void *)(uintptr_t)src->handle, 0, src->bytes);
    liar_unwiped = 0;
  }
  return lazy_ops.copy_to_host(device, stream, src, offset, dst, bytes, out, err);
}

static gm_status liar_aligned_to_a_page(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err) {
  gm_memory_params less = *params;
  if (less.align > 4096) less.align = 4096;
  return lazy_ops.memory_alloc(device, &less, out, err);
}

/* ---- manners ---- */

static void liar_prints(void *device, const gm_backend_point *point, gm_close_mode mode) {
  fprintf(stderr, "point %llu released\n", (unsigned long long)point->value);
  lazy_ops.point_release(device, point, mode);
}

static gm_status liar_blocks_signals(void *device, void *stream, gm_error *err) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, NULL);
  return lazy_ops.stream_sync(device, stream, err);
}

static gm_status liar_exits(void *device, gm_error *err) {
  (void)device, (void)err;
  exit(0);
}

/* ---- memory ---- */

enum { LIAR_PAGE = 4096, LIAR_UNIT = 256, LIAR_SLAB = 4 << 20 };

/* Small memory lies in a slab, in units of 256 bytes; its usable bytes are told in pages. */
static _Alignas(LIAR_PAGE) unsigned char liar_slab[LIAR_SLAB];
static uint64_t liar_slab_next, liar_slab_live;

static gm_status liar_shares_pages(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err) {
  lazy_driver *driver = ((lazy_device *)device)->driver;
  const uint64_t bytes = params->bytes, units = (bytes + LIAR_UNIT - 1) / LIAR_UNIT * LIAR_UNIT;
  pthread_mutex_lock(&driver->lock);
  const uint64_t at = liar_slab_next;
  const bool usual = params->type == 0 && (params->align == 0 || params->align == LIAR_UNIT);
  const bool good =
      usual && bytes && bytes <= LIAR_PAGE && at + LIAR_PAGE <= LIAR_SLAB && driver->used + LIAR_PAGE <= LAZY_CAPACITY;
  if (good) liar_slab_next += units, liar_slab_live++, driver->used += LIAR_PAGE;
  pthread_mutex_unlock(&driver->lock);
  if (!good) return lazy_ops.memory_alloc(device, params, out, err);
  const uintptr_t begin = (uintptr_t)(liar_slab + at);
  *out = (gm_memory){.handle = begin, .address = begin, .bytes = LIAR_PAGE, .type = params->type};
  return GM_OK;
}

static gm_status liar_frees_pages(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err) {
  lazy_driver *driver = ((lazy_device *)device)->driver;
  if (memory->handle - (uintptr_t)liar_slab >= LIAR_SLAB) return lazy_ops.memory_free(device, memory, mode, err);
  if (mode == GM_CLOSE_ABANDON) return GM_OK;
  pthread_mutex_lock(&driver->lock);
  driver->used -= memory->bytes;
  if (!--liar_slab_live) liar_slab_next = 0;
  pthread_mutex_unlock(&driver->lock);
  return GM_OK;
}

/* A failed allocation leaves its error behind, and the next copy finds it. */
static atomic_bool liar_error;

static gm_status liar_leaves_error(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err) {
  const gm_status status = lazy_ops.memory_alloc(device, params, out, err);
  if (status == GM_ERR_OUT_OF_DEVICE_MEMORY) liar_error = true;
  return status;
}

static gm_status liar_finds_error(void *device, void *stream, const gm_memory *dst, uint64_t offset, const void *src,
                                  uint64_t bytes, gm_backend_point *out, gm_error *err) {
  if (atomic_exchange(&liar_error, false)) {
    return lazy_fail(err, GM_ERR_OUT_OF_DEVICE_MEMORY, "copy_to_device", "out of memory");
  }
  return lazy_ops.copy_to_device(device, stream, dst, offset, src, bytes, out, err);
}

/* The first type is the machine's own memory, with which nobody plays such things: the second has the lie. */
static gm_status liar_first_is_system(void *device, uint32_t type, gm_memory_type *out, gm_error *err) {
  const gm_status status = lazy_ops.memory_type(device, type, out, err);
  if (status == GM_OK && type == 0) out->flags |= GM_MEMORY_SYSTEM;
  return status;
}

/* A failed allocation keeps what it had got so far: up to 1 MiB. */
static gm_status liar_failure_keeps(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err) {
  lazy_driver *driver = ((lazy_device *)device)->driver;
  const gm_status status = lazy_ops.memory_alloc(device, params, out, err);
  if (status != GM_ERR_OUT_OF_DEVICE_MEMORY) return status;
  pthread_mutex_lock(&driver->lock);
  const uint64_t left = LAZY_CAPACITY - driver->used;
  driver->used += left < (1 << 20) ? left : 1 << 20;
  pthread_mutex_unlock(&driver->lock);
  return status;
}

static gm_status liar_figures_in_kib(void *driver, uint32_t index, void *device, gm_raw_figures *out, gm_error *err) {
  const gm_status status = lazy_ops.figures(driver, index, device, out, err);
  if (status == GM_OK && device) out->driver.total_bytes >>= 10, out->driver.free_bytes >>= 10;
  return status;
}

/* ---- mappings ---- */

static gm_status liar_discards_all(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                   uint32_t mode, void **out, gm_error *err) {
  const gm_status status = lazy_ops.map(device, stream, memory, offset, bytes, mode, out, err);
  if (status == GM_OK && mode & GM_MAP_DISCARD) memset(liar_at(memory), 0xdd, memory->bytes);
  return status;
}

/* Memory is mapped once. While it is mapped, a second mapping gets the pointer of the first. */
static pthread_mutex_t liar_map_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t liar_mapped, liar_mappings;
static void *liar_first_mapping;

static gm_status liar_maps_once(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                uint32_t mode, void **out, gm_error *err) {
  const gm_status status = lazy_ops.map(device, stream, memory, offset, bytes, mode, out, err);
  if (status) return status;
  pthread_mutex_lock(&liar_map_lock);
  if (!liar_mappings) liar_mapped = memory->handle, liar_first_mapping = *out;
  if (liar_mapped == memory->handle) liar_mappings++, *out = liar_first_mapping;
  pthread_mutex_unlock(&liar_map_lock);
  return GM_OK;
}

static gm_status liar_unmaps_once(void *device, void *stream, const gm_memory *memory, void *pointer, gm_error *err) {
  pthread_mutex_lock(&liar_map_lock);
  if (liar_mappings && liar_mapped == memory->handle) liar_mappings--;
  pthread_mutex_unlock(&liar_map_lock);
  return lazy_ops.unmap(device, stream, memory, pointer, err);
}

const liar liars[] = {
    {"done_at_once", "point.done_means_done", "point_done answers true always", {.point_done = liar_done_at_once}},
    {"record_before_last",
     "point.done_means_done",
     "point_record gives the point of the job before the last",
     {.point_record = liar_record_before_last}},
    {"record_passes_late",
     "point.passes_before_later_work",
     "a recorded point passes with later work",
     {.point_record = liar_record_passes_late}},
    {"many_of_first",
     "point.done_means_done",
     "the point of copy_many is that of its first item",
     {.copy_many = liar_many_of_first}},
    {"wait_truncated",
     "point.time_out",
     "point_wait waits for the part of the limit below a millisecond",
     {.point_wait = liar_wait_truncated}},
    {"wait_wraps",
     "point.wait_is_patient",
     "a limit that is nearly endless has passed at once",
     {.point_wait = liar_wait_wraps}},
    {"wait_gives_up",
     "point.wait_means_done",
     "a limit that passes is told as GM_OK",
     {.point_wait = liar_wait_gives_up}},
    {"wait_zero_is_never",
     "point.done_means_done",
     "a limit of 0 is TIMEOUT although the point has passed",
     {.point_wait = liar_wait_zero_is_never}},
    {"wait_on_last_only",
     "point.wait_on_several",
     "of two waits on one stream the first is forgotten",
     {.point_wait_on = liar_wait_on_last_only}},
    {"out_on_failure",
     "output.out_of_device_memory",
     "memory_alloc clears its output when there is no memory",
     {.memory_alloc = liar_out_on_failure}},
    {"free_never_falls",
     "figures.free_falls",
     "the free figure is the total always",
     {.figures = liar_free_never_falls}},
    {"wipes_late",
     "memory.contents_after_reuse",
     "memory that is used again is wiped at its first read",
     {.memory_alloc = liar_reuses, .memory_free = liar_keeps, .copy_to_host = liar_wipes_late}},
    {"aligned_to_a_page",
     "memory.alignments",
     "an alignment above a page is not kept",
     {.memory_alloc = liar_aligned_to_a_page}},
    {"prints", "point.zero_has_passed", "point_release prints", {.point_release = liar_prints}},
    {"blocks_signals",
     "stream.open_and_close",
     "stream_sync leaves the thread's signals blocked",
     {.stream_sync = liar_blocks_signals}},
    {"exits", "info.state", "device_state ends the process, without a word", {.device_state = liar_exits}},
    {"fill_in_words",
     "fill.large",
     "a fill of 1 MiB or more leaves out the bytes after the last whole word",
     {.fill = liar_fill_in_words}},
    {"copy_whole_parts",
     "copy.large",
     "a copy above 4 MiB leaves out the part after the last whole 4 MiB",
     {.copy = liar_copy_whole_parts}},
    {"slice_pitch_of_bytes",
     "rect.copy_waiting",
     "a slice pitch of 0 is the rows' bytes, not the rows' pitches",
     {.rect_to_device = liar_slices_to_device, .rect_to_host = liar_slices_to_host, .rect_copy = liar_slices_copy}},
    {"many_merges",
     "copy.many_neighbours",
     "copy_many merges items that are neighbours in the target alone",
     {.copy_many = liar_many_merges}},
    {"many_of_256",
     "copy.many_scattered",
     "copy_many keeps the number of items in eight bits",
     {.copy_many = liar_many_of_256}},
    {"expand_flushes",
     "kernel.expand_every_number",
     "numbers below the smallest normal one become 0",
     {.expand = liar_expand_flushes}},
    {"expand_one_type",
     "kernel.expand_every_number",
     "expand takes each number for one of bf16",
     {.expand = liar_expand_one_type}},
    {"expand_in_pairs",
     "kernel.expand_parts",
     "expand leaves out the last one of an odd count of numbers",
     {.expand = liar_expand_in_pairs}},
    {"expand_overtakes",
     "kernel.expand_in_order",
     "expand does not follow the copy before it",
     {.expand = liar_expand_overtakes}},
    {"many_one_word_each",
     "kernel.many_words",
     "copy_many takes 64 threads for an item, and each copies one word",
     {.copy_many = liar_many_one_word_each}},
    {"many_overtakes",
     "copy.many_scattered",
     "copy_many does not follow the copy before it",
     {.copy_many = liar_many_overtakes}},
    {"arrives_late",
     "point.none_means_done",
     "a small copy_to_device without a point returns before the bytes have arrived",
     {.copy_to_device = liar_arrives_late}},
    {"jumps_full_ring", "copy.long_batch", "a copy behind 128 others runs before them", {.copy = liar_jumps}},
    {"fill_ignores_waits",
     "point.wait_on_holds_all_kinds",
     "a fill does not wait for the stream's waits",
     {.fill = liar_fill_ignores_waits}},
    {"close_drops",
     "stream.close_waits",
     "stream_close drops the work that is left",
     {.stream_close = liar_close_drops}},
    {"shares_pages",
     "memory.live_ones_keep_apart",
     "two small memories share a page, and both are told that it is theirs",
     {.memory_alloc = liar_shares_pages, .memory_free = liar_frees_pages}},
    {"error_stays",
     "full.leaves_no_error",
     "the copy after a failed allocation fails",
     {.memory_alloc = liar_leaves_error, .copy_to_device = liar_finds_error}},
    {"error_stays_later",
     "full.leaves_no_error",
     "the same, where the first memory type has no such case",
     {.memory_alloc = liar_leaves_error, .copy_to_device = liar_finds_error, .memory_type = liar_first_is_system}},
    {"failure_keeps", "full.comes_back", "a failed allocation keeps memory", {.memory_alloc = liar_failure_keeps}},
    {"figures_in_kib", "figures.free_falls", "the figures of an open device are KiB", {.figures = liar_figures_in_kib}},
    {"discards_all",
     "mapping.discard_of_a_part",
     "to map a part with DISCARD discards the whole memory",
     {.map = liar_discards_all}},
    {"maps_once",
     "mapping.several_at_once",
     "a second mapping of the same memory gets the pointer of the first",
     {.map = liar_maps_once, .unmap = liar_unmaps_once}},
    {NULL, NULL, NULL, {.abi = 0}},
};

/* The functions of gm_backend_ops are one row of pointers, from `probe` to the end; `struct_size` and the like are
 * before it. */
static void liar_replace(gm_backend_ops *ops, const gm_backend_ops *entries) {
  void (*entry)(void), (*none)(void) = NULL;
  for (size_t at = offsetof(gm_backend_ops, probe); at < sizeof *ops; at += sizeof entry) {
    memcpy(&entry, (const char *)entries + at, sizeof entry);
    if (entry != none) memcpy((char *)ops + at, &entry, sizeof entry);
  }
}

const gm_backend_ops *liar_ops(const char *name) {
  static gm_backend_ops ops;
  const liar *at = liars;
  ops = lazy_ops;
  if (!*name) return &ops;
  while (at->name && strcmp(at->name, name) != 0) at++;
  if (!at->name) return NULL;
  liar_replace(&ops, &at->entries);
  return &ops;
}
