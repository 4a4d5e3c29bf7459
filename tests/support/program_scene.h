/* gm's programs through the seam, on the simulated drivers of CUDA and HIP: many small copies whose bytes are compared.
 * Needs cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_PROGRAM_SCENE_H
#define GM_TESTS_SUPPORT_PROGRAM_SCENE_H

#include <string.h>

#include "gm/backend.h"
#include "support/random.h"

enum { PROGRAM_BYTES = 1 << 20, PROGRAM_MOST = 700 };

typedef struct program_scene {
  const gm_backend_ops *ops;
  void *device, *stream;
  gm_memory from, to;
  gm_copy_item items[PROGRAM_MOST];
  uint8_t source[PROGRAM_BYTES], want[PROGRAM_BYTES], got[PROGRAM_BYTES];
} program_scene;

static program_scene program;

/* REQUIRES: both memories have PROGRAM_BYTES. */
static inline void program_scene_set(const gm_backend_ops *ops, void *device, void *stream, const gm_memory *from,
                                     const gm_memory *to) {
  uint64_t random = 5;
  program.ops = ops;
  program.device = device;
  program.stream = stream;
  program.from = *from;
  program.to = *to;
  for (uint64_t i = 0; i < PROGRAM_BYTES; i++) program.source[i] = (uint8_t)test_random(&random);
  memset(program.want, 0xaa, sizeof program.want);
  assert_int_equal(ops->copy_to_device(device, stream, from, 0, program.source, PROGRAM_BYTES, NULL, NULL), GM_OK);
  assert_int_equal(ops->copy_to_device(device, stream, to, 0, program.want, PROGRAM_BYTES, NULL, NULL), GM_OK);
}

/* Items of all sizes and places from 0 bytes on: their targets in order, with gaps; their sources in any order. */
static inline void program_scene_items(uint32_t count) {
  uint64_t random = count, at = 0;
  for (uint32_t i = 0; i < count; i++) {
    const uint64_t bytes = i == 20 ? 65536 : test_random(&random) % 900, source = PROGRAM_BYTES - bytes;
    at += test_random(&random) % 3 ? test_random(&random) % 20 * 16 : test_random(&random) % 300;
    program.items[i] =
        (gm_copy_item){&program.from, test_random(&random) % source / 4 * 4 + i % 3, &program.to, at, bytes};
    at += bytes;
  }
  assert_true(at <= PROGRAM_BYTES);
}

static inline gm_status program_scene_run(uint32_t count, gm_backend_point *out, gm_error *err) {
  return program.ops->copy_many(program.device, program.stream, program.items, count, out, err);
}

/* Every byte of both memories, as one copy after the other makes them. */
static inline void program_scene_check(uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    const gm_copy_item *item = &program.items[i];
    const uint8_t *from = item->src == &program.from ? program.source : program.want;
    memmove(program.want + item->dst_offset, from + item->src_offset, item->bytes);
  }
  assert_int_equal(
      program.ops->copy_to_host(program.device, program.stream, &program.to, 0, program.got, PROGRAM_BYTES, NULL, NULL),
      GM_OK);
  assert_memory_equal(program.got, program.want, PROGRAM_BYTES);
}

static inline void program_scene_copy(uint32_t count) {
  gm_error err = {0};
  program_scene_items(count);
  if (program_scene_run(count, NULL, &err) != GM_OK) fail_msg("%s", err.message);
  program_scene_check(count);
}

/* The kernel takes none of these: few, a large one, targets that are not in order, a source that is a target. */
static inline void program_scene_odd(void) {
  program_scene_copy(15);
  program_scene_items(40);
  program.items[39].bytes = 65537;
  assert_int_equal(program_scene_run(40, NULL, NULL), GM_OK);
  program_scene_check(40);
  program_scene_items(40);
  const gm_copy_item first = program.items[2];
  program.items[2] = program.items[30];
  program.items[30] = first;
  assert_int_equal(program_scene_run(40, NULL, NULL), GM_OK);
  program_scene_check(40);
  program_scene_items(40);
  for (uint32_t i = 0; i < 40; i++) program.items[i].src = &program.to;
  for (uint32_t i = 0; i < 40; i++) program.items[i].src_offset = program.items[i].dst_offset / 2;
  for (uint32_t i = 0; i < 40; i++) program.items[i].bytes /= 64;
  assert_int_equal(program_scene_run(40, NULL, NULL), GM_OK);
  program_scene_check(40);
}

#endif
