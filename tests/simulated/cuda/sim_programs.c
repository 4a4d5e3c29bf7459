#include "tests/simulated/cuda/sim_programs.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulated/cuda/sim_module.h"

/* A program works on copies that lie as its memory does, from a multiple of 16 on. So it may reach over several pieces
 * of mapped memory, and a byte that it writes beside shows. */

enum {
  PROGRAM_PIECE = 64 << 10 /* mapped memory lies in granules of no less */,
  PROGRAM_GAP = 32,
  PROGRAM_FREE = 0xee
};

typedef struct program_index {
  unsigned x;
} program_index;

static _Thread_local program_index blockIdx, threadIdx, blockDim, gridDim;

#define GM__PROGRAM_TYPE(...) __VA_ARGS__
#define GM__PROGRAM(...) static __VA_ARGS__
#define items (*program_items) /* by address: else each thread of a launch would copy 4 KB of items */
#include "backends/shared/runtime/program_copy_many.def"
#undef items
#include "backends/shared/runtime/program_expand.def"
#include "backends/shared/runtime/program_fill.def"
#undef GM__PROGRAM_TYPE
#undef GM__PROGRAM

enum { PROGRAM_ITEMS = sizeof((gm_copy_items *)0)->item / sizeof((gm_copy_items *)0)->item[0] };

static uint64_t program_word(const sim_launch *launch, int index) {
  uint64_t word = 0;
  memcpy(&word, launch->arguments[index], sizeof word);
  return word;
}

static uint64_t program_room(uint64_t bytes) { return (bytes + 2 * PROGRAM_GAP) / 16 * 16; }

/* Between the device's memory and a copy of it. */
static int program_move(const sim_launch *launch, uint64_t at, unsigned char *copy, uint64_t bytes, bool out) {
  unsigned char *view = bytes ? launch->view(launch->view_user, at, bytes) : copy;
  const uint64_t most = view ? bytes : PROGRAM_PIECE;
  for (uint64_t done = 0, piece; done < bytes; done += piece) {
    const uint64_t left = most == bytes ? bytes : most - (at + done) % most;
    piece = left < bytes - done ? left : bytes - done;
    if (most != bytes) view = launch->view(launch->view_user, at + done, piece);
    if (!view) return CUDA_ERROR_ILLEGAL_ADDRESS;
    memcpy(out ? view : copy + done, out ? copy + done : view, piece);
  }
  return CUDA_SUCCESS;
}

/* One dimension, as many threads as a driver takes. */
static bool program_begins(const sim_launch *launch) {
  blockDim.x = launch->block[0];
  gridDim.x = launch->grid[0];
  return launch->block[1] == 1 && launch->block[2] == 1 && launch->grid[1] == 1 && launch->grid[2] == 1 &&
         blockDim.x % 32 == 0 && blockDim.x <= 1024 && launch->shared_bytes == 0;
}

#define PROGRAM_THREADS                                      \
  for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++) \
    for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++)

static bool program_is_free(const unsigned char *from, const unsigned char *end) {
  while (from < end && *from == PROGRAM_FREE) from++;
  return from == end;
}

/* ---- fill ---- */

static int program_fill(const sim_launch *launch) {
  const uint64_t at = program_word(launch, 0), bytes = program_word(launch, 1), room = program_room(bytes);
  if (!program_begins(launch)) return CUDA_ERROR_INVALID_VALUE;
  unsigned char *copy = aligned_alloc(16, room), *first = copy + at % 16;
  if (!copy) return CUDA_ERROR_OUT_OF_MEMORY;
  memset(copy, PROGRAM_FREE, room);
  PROGRAM_THREADS gm_fill((uintptr_t)first, bytes, program_word(launch, 2), program_word(launch, 3));
  int code = CUDA_ERROR_ILLEGAL_ADDRESS;
  if (program_is_free(copy, first) && program_is_free(first + bytes, copy + room)) {
    code = program_move(launch, at, first, bytes, true);
  }
  free(copy);
  return code;
}

/* ---- small copies ---- */

typedef struct program_copies {
  gm_copy_items asked, here;
  unsigned char *to, *from; /* copies of all items, with gaps */
  uint64_t to_bytes, from_bytes;
} program_copies;

/* Where the items lie in the copies. */
static void program_place(program_copies *all) {
  const gm_copy_items *asked = &all->asked;
  all->here.count = asked->count;
  for (unsigned i = 0; i < asked->count; i++) {
    all->here.item[i].bytes = asked->item[i].bytes;
    all->here.item[i].to = (unsigned)(all->to_bytes + (asked->to + asked->item[i].to) % 16);
    all->here.item[i].from = (unsigned)(all->from_bytes + (asked->from + asked->item[i].from) % 16);
    all->to_bytes += program_room(asked->item[i].bytes);
    all->from_bytes += program_room(asked->item[i].bytes);
  }
}

static int program_copies_move(const sim_launch *launch, const program_copies *all, bool out) {
  int code = CUDA_SUCCESS;
  for (unsigned i = 0; i < all->asked.count && !code; i++) {
    const uint64_t at = out ? all->asked.to + all->asked.item[i].to : all->asked.from + all->asked.item[i].from;
    unsigned char *copy = out ? all->to + all->here.item[i].to : all->from + all->here.item[i].from;
    code = program_move(launch, at, copy, all->asked.item[i].bytes, out);
  }
  return code;
}

static bool program_copies_are_inside(const program_copies *all) {
  const unsigned char *at = all->to;
  for (unsigned i = 0; i < all->here.count; i++) {
    const unsigned char *first = all->to + all->here.item[i].to;
    if (!program_is_free(at, first)) return false;
    at = first + all->here.item[i].bytes;
  }
  return program_is_free(at, all->to + all->to_bytes);
}

static int program_copies_run(const sim_launch *launch, program_copies *all) {
  all->to = aligned_alloc(16, all->to_bytes);
  all->from = aligned_alloc(16, all->from_bytes);
  if (!all->to || !all->from) return CUDA_ERROR_OUT_OF_MEMORY;
  memset(all->to, PROGRAM_FREE, all->to_bytes);
  int code = program_copies_move(launch, all, false);
  if (code) return code;
  all->here.to = (uintptr_t)all->to;
  all->here.from = (uintptr_t)all->from;
  PROGRAM_THREADS gm_copy_many(&all->here);
  return program_copies_are_inside(all) ? program_copies_move(launch, all, true) : CUDA_ERROR_ILLEGAL_ADDRESS;
}

/* No more groups than items: some would have nothing to do. */
static int program_copy_many(const sim_launch *launch) {
  program_copies all = {.to = NULL};
  memcpy(&all.asked, launch->arguments[0], sizeof all.asked);
  if (!program_begins(launch) || !all.asked.count || all.asked.count > PROGRAM_ITEMS) return CUDA_ERROR_INVALID_VALUE;
  if (gridDim.x > all.asked.count) return CUDA_ERROR_INVALID_VALUE;
  program_place(&all);
  const int code = program_copies_run(launch, &all);
  free(all.to);
  free(all.from);
  return code;
}

/* ---- expansion ---- */

static int program_expand(const sim_launch *launch) {
  const uint64_t to = program_word(launch, 0), from = program_word(launch, 1), count = program_word(launch, 2);
  const uint64_t narrow_room = program_room(2 * count), wide_room = program_room(4 * count);
  unsigned half = 0;
  memcpy(&half, launch->arguments[3], sizeof half);
  if (!program_begins(launch) || to % 4 || from % 2 || half > 1) return CUDA_ERROR_INVALID_VALUE;
  unsigned char *narrow = aligned_alloc(16, narrow_room), *wide = aligned_alloc(16, wide_room);
  int code = narrow && wide ? program_move(launch, from, narrow, 2 * count, false) : CUDA_ERROR_OUT_OF_MEMORY;
  if (!code) {
    memset(wide, PROGRAM_FREE, wide_room);
    PROGRAM_THREADS gm_expand((uintptr_t)wide, (uintptr_t)narrow, count, half);
    if (!program_is_free(wide + 4 * count, wide + wide_room)) code = CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  if (!code) code = program_move(launch, to, wide, 4 * count, true);
  free(narrow);
  free(wide);
  return code;
}

void sim_programs_register(void) {
  static const size_t fill[] = {8, 8, 8, 8}, copy_many[] = {sizeof(gm_copy_items)}, expand[] = {8, 8, 8, 4};
  sim_module_register("gm_fill", program_fill, fill, 4);
  sim_module_register("gm_copy_many", program_copy_many, copy_many, 1);
  sim_module_register("gm_expand", program_expand, expand, 4);
}
