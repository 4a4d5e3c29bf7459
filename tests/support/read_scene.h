/* Ranges of three files, and what becomes of them when they are read. Needs cmocka.h included before, and the link
 * options of played_reads.h. */
#ifndef GM_TESTS_SUPPORT_READ_SCENE_H
#define GM_TESTS_SUPPORT_READ_SCENE_H

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/file/read.h"
#include "support/counted_services.h"
#include "support/file_bytes.h"
#include "support/played_reads.h"
#include "support/random.h"
#include "support/test_folder.h"

enum { FILES = 3, RANGES = 40, SPACE = 1 << 20, GUARD = 16, ROOMS = 64, PIECE = 16384, SECOND = 1000000000 };

static const uint64_t sizes[FILES] = {300001, 70000, 4096};

/* Memory for pieces without a place. */
typedef struct scene_room {
  gm__read_room room;
  atomic_int taken, given, refused; /* given: back by the read */
  int refuse_at;                    /* the call that answers IO; 0: none */
  int late;                         /* so many calls answer TIMEOUT first */
} scene_room;

static struct {
  gm_file *files[FILES];
  gm__read_range ranges[RANGES];
  uint64_t count, seen[RANGES]; /* bytes of each range that arrived */
  unsigned char *space;
  counted_services host;
} f;

static scene_room room;

static inline gm_status room_take(void *user, gm__read_memory *out, gm_error *err) {
  scene_room *mine = user;
  const int call = atomic_fetch_add(&mine->taken, 1) + 1;
  if (call <= mine->late || call == mine->refuse_at) {
    atomic_fetch_add(&mine->refused, 1);
    return gm__fail(err, call == mine->refuse_at ? GM_ERR_DRIVER : GM_ERR_TIMEOUT, "room", "there is none");
  }
  void *memory = NULL;
  if (posix_memalign(&memory, GM__INPUT_BLOCK, PIECE)) return GM_ERR_OUT_OF_HOST_MEMORY;
  *out = (gm__read_memory){.host = memory, .token = mine};
  return GM_OK;
}

static inline void room_give(void *user, const gm__read_memory *memory) {
  atomic_fetch_add(&((scene_room *)user)->given, 1);
  free(memory->host);
}

static inline int setup(void **state) {
  static const char *const names[FILES] = {"0", "1", "2"};
  counted_services_init(&f.host);
  folder_setup(state);
  for (uint64_t i = 0; i < FILES; i++) file_bytes_write(&folder, names[i], i, sizes[i]);
  f.space = malloc(SPACE);
  assert_non_null(f.space);
  memset(&room, 0, sizeof room);
  room.room = (gm__read_room){.bytes = PIECE, .take = room_take, .give = room_give, .user = &room};
  played_reads_begin();
  return 0;
}

static inline void close_files(void) {
  for (uint64_t i = 0; i < FILES; i++) gm_file_close(f.files[i]);
  memset(f.files, 0, sizeof f.files);
}

static inline int teardown(void **state) {
  played_reads_end();
  close_files();
  free(f.space);
  counted_services_check(&f.host);
  return folder_teardown(state);
}

static inline void open_files(gm_way way) {
  static const char *const names[FILES] = {"0", "1", "2"};
  close_files();
  for (uint64_t i = 0; i < FILES; i++) {
    assert_int_equal(gm__file_open(&f.host.services, temp_folder_join(&folder, names[i]), way, &f.files[i], NULL),
                     GM_OK);
  }
}

/* ---- ranges and what became of them ---- */

static inline void no_ranges(void) {
  f.count = 0;
  memset(f.seen, 0, sizeof f.seen);
  memset(f.space, 0x5a, SPACE);
}

static inline void add_range(uint64_t file, uint64_t at, uint64_t bytes, unsigned char *to) {
  f.ranges[f.count++] = (gm__read_range){.file = f.files[file],
                                         .order = (uint32_t)file,
                                         .at = at,
                                         .bytes = bytes,
                                         .to = to,
                                         .room = to ? NULL : &room.room};
}

/* `runs` runs of `run` bytes, each `step` bytes behind the one before. */
static inline void add_runs(uint64_t file, uint64_t at, const uint64_t run_step_runs[3], unsigned char *to) {
  add_range(file, at, run_step_runs[0] * run_step_runs[2], to);
  f.ranges[f.count - 1].run = run_step_runs[0];
  f.ranges[f.count - 1].step = run_step_runs[1];
}

static inline uint64_t file_of(const gm_file *file) {
  uint64_t i = 0;
  while (f.files[i] != file) i++;
  return i;
}

/* Some of the ranges are runs, as a part of a matrix is. */
static inline void random_range(uint64_t *seed, uint64_t file, unsigned char *to) {
  const uint64_t at = test_random(seed) % (sizes[file] + 1), most = sizes[file] - at;
  const uint64_t bytes = most ? test_log_uniform(seed, most < 20000 ? most : 20000) : 0;
  const uint64_t runs = test_random(seed) % 40 + 1, run = bytes / runs,
                 most_step = runs > 1 ? (most - run) / (runs - 1) : run;
  if (test_random(seed) % 3 || !run) {
    add_range(file, at, bytes, to);
  } else {
    const uint64_t spread = most_step - run + 1, more = test_random(seed) % 4 ? spread < 3000 ? spread : 3000 : spread;
    add_runs(file, at, (const uint64_t[]){run, run + test_random(seed) % more, runs}, to);
  }
}

/* Ranges anywhere, with places anywhere, each with a guard around it. */
static inline void random_ranges(uint64_t *seed) {
  uint64_t place = GUARD;
  no_ranges();
  for (uint64_t i = 0; i < RANGES; i++) {
    const bool placed = test_random(seed) % 4 != 0;
    random_range(seed, test_random(seed) % FILES, placed ? f.space : NULL);
    gm__read_range *range = &f.ranges[i];
    if (test_random(seed) % 3 == 0) place = (place + 4095) / 4096 * 4096 + range->at % 4096; /* as in the file */
    if (placed) range->to += place;
    if (placed) place += range->bytes + GUARD;
  }
  assert_true(place <= SPACE);
}

static inline void check_piece(const gm__read *read, const gm__read_piece *piece) {
  assert_true(piece->count > 0 && piece->bytes > 0);
  for (uint64_t i = 0; i < piece->count; i++) {
    const gm__read_part part = gm__read_part_of(read, piece, i);
    const gm__read_range *range = &f.ranges[part.range];
    assert_ptr_equal(range->file, piece->file);
    assert_true(part.bytes > 0 && part.from + part.bytes <= range->bytes);
    assert_true(gm__read_range_at(range, part.from) >= piece->at);
    assert_true(gm__read_range_at(range, part.from + part.bytes - 1) < piece->at + piece->bytes);
    f.seen[part.range] += part.bytes;
    if (range->to) assert_null(piece->data);
    for (uint64_t j = 0; j < part.bytes && !range->to; j++) {
      const uint64_t at = gm__read_range_at(range, part.from + j);
      const unsigned char byte = gm__read_part_data(read, piece, i)[j];
      if (byte != file_byte(file_of(piece->file), at)) fail_msg("byte %d", (int)at);
    }
  }
}

/* All pieces until the end; the last answer. */
static inline gm_status run(gm__read *read, gm_error *err) {
  for (;;) {
    gm__read_piece *piece = NULL;
    const gm_status status = gm__read_next(read, GM__NEVER, &piece, err);
    if (status != GM_OK || !piece) return status;
    check_piece(read, piece);
    free(piece->memory.host);
    gm__read_done(read, piece);
  }
}

/* Every byte of every range is in its place, and nothing else was touched. */
static inline void check_places(void) {
  static unsigned char untouched[SPACE];
  uint64_t inside = 0;
  for (uint64_t i = 0; i < f.count; i++) {
    const gm__read_range *range = &f.ranges[i];
    assert_int_equal(f.seen[i], range->bytes);
    for (uint64_t j = 0; j < range->bytes && range->to; j++) {
      if (range->to[j] != file_byte(file_of(range->file), gm__read_range_at(range, j)))
        fail_msg("byte %d of range %d", (int)j, (int)i);
      range->to[j] = 0x5a;
    }
    inside += range->to ? range->bytes : 0;
  }
  memset(untouched, 0x5a, sizeof untouched);
  assert_int_equal(memcmp(f.space, untouched, sizeof untouched), 0);
  assert_true(inside > 0);
}

static inline gm__read *start(uint32_t workers) {
  const gm__read_params params = {.services = &f.host.services, .piece_bytes = PIECE, .workers = workers};
  gm__read *read = NULL;
  gm_error err;
  if (gm__read_start(f.ranges, f.count, &params, &read, &err) != GM_OK) fail_msg("%s", err.message);
  return read;
}

static inline gm__read_figures read_all(uint32_t workers) {
  gm_error err = {0};
  gm__read_figures figures;
  gm__read *read = start(workers);
  if (run(read, &err) != GM_OK) fail_msg("%s", err.message);
  check_places();
  gm__read_get_figures(read, &figures);
  gm__read_end(read);
  return figures;
}

static inline void whole_files(void) {
  no_ranges();
  for (uint64_t i = 0; i < FILES; i++) add_range(i, 0, sizes[i], f.space + GUARD + i * 310000);
}

#endif
