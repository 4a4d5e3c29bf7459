/* How many bytes of plain data a codec takes in, or gives out, in a second of one processor. Beside it runs what a
 * program would write itself. The pieces of a run use the same memory again, as the slots of a ring do. Each round runs
 * all rows, and begins with another one. A row is the median of its rounds. The time is that of the thread. Other
 * programs still take a share of the caches and of the memory's speed. GM_CONVERT chooses gm's way.
 *
 * usage: gm_codec_bench [--piece N[K|M|G]] [--bytes N[K|M|G]] [--runs N] */
#include <dlfcn.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gm/codec.h"

enum { BENCH_RUNS_MAX = 64, BENCH_ROWS_MAX = 16 };

typedef struct codec_bench {
  uint64_t piece, bytes; /* plain bytes: of a piece, and of a row's run */
  unsigned runs;
  unsigned char *plain, *other;  /* floats of 32 bits; room for any result */
  unsigned char *weights, *back; /* bf16, and what came back */
  unsigned char *half, *packed;  /* bf16 of `plain`; the piece of `weights` */
  uint64_t room, half_bytes, packed_bytes;
} codec_bench;

/* One piece. False: it failed. */
typedef bool (*bench_run)(codec_bench *bench);

typedef struct bench_row {
  const char *name;
  bench_run run;
  double rates[BENCH_RUNS_MAX]; /* bytes a second */
} bench_row;

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- the rows ---- */

static bool encode(const char *name, const unsigned char *from, uint64_t bytes, unsigned char *to, uint64_t room,
                   uint64_t *out) {
  gm_error err;
  if (gm_codec_encode(gm_codec_find(name), from, bytes, to, room, out, &err) == GM_OK) return true;
  return fprintf(stderr, "gm_codec_bench: %s: %s\n", name, err.message), false;
}

static bool decode(const char *name, const unsigned char *from, uint64_t bytes, unsigned char *to, uint64_t room) {
  gm_error err;
  uint64_t got;
  if (gm_codec_decode(gm_codec_find(name), from, bytes, to, room, &got, &err) == GM_OK) return true;
  return fprintf(stderr, "gm_codec_bench: %s: %s\n", name, err.message), false;
}

static bool run_bf16(codec_bench *b) {
  uint64_t got;
  return encode("bf16", b->plain, b->piece, b->other, b->room, &got);
}

static bool run_fp16(codec_bench *b) {
  uint64_t got;
  return encode("fp16", b->plain, b->piece, b->other, b->room, &got);
}

static bool run_from_bf16(codec_bench *b) { return decode("bf16", b->half, b->half_bytes, b->other, b->room); }
static bool run_from_fp16(codec_bench *b) { return decode("fp16", b->half, b->half_bytes, b->other, b->room); }

static bool run_planes(codec_bench *b) {
  uint64_t got;
  return encode("planes", b->weights, b->piece, b->other, b->room, &got);
}

static bool run_from_planes(codec_bench *b) { return decode("planes", b->packed, b->packed_bytes, b->back, b->piece); }

/* ---- zstd alone: the frames of the same piece ---- */

static union bench_call { /* a symbol, as what it is */
  void *symbol;
  void *(*make)(void);
  size_t (*decode)(void *context, void *to, size_t capacity, const void *from, size_t bytes);
} zstd_make, zstd_decode;

/* Without libzstd it is quick. */
static bool run_zstd(codec_bench *b) {
  enum { HEAD = 24, CHUNK_HEAD = 16, CHUNK = 256 << 10 }; /* core/staging/planes.h has the places */
  static void *context;
  const unsigned char *at = b->packed + HEAD;
  if (!zstd_decode.symbol) return true;
  if (!context) context = zstd_make.make();
  for (uint64_t left = b->piece; left;) {
    const uint64_t plain = left < CHUNK ? left : CHUNK;
    const size_t stored = at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16, half = (size_t)plain / 2;
    if (!at[4] || zstd_decode.decode(context, b->other, half, at + CHUNK_HEAD + half, stored - half) != half)
      return false;
    at += CHUNK_HEAD + stored;
    left -= plain;
  }
  return true;
}

static void bench_find_zstd(void) {
  void *library = dlopen("libzstd.so.1", RTLD_NOW);
  if (library) zstd_make.symbol = dlsym(library, "ZSTD_createDCtx");
  if (zstd_make.symbol) zstd_decode.symbol = dlsym(library, "ZSTD_decompressDCtx");
}

/* The code that a program writes itself. It is right but for NaN. */
static bool run_loop_bf16(codec_bench *b) {
  for (uint64_t i = 0; i < b->piece / 4; i++) {
    uint32_t in;
    memcpy(&in, b->plain + 4 * i, sizeof in);
    const uint16_t out = (uint16_t)((in + 0x7fffu + (in >> 16 & 1u)) >> 16);
    memcpy(b->other + 2 * i, &out, sizeof out);
  }
  return true;
}

#ifdef __FLT16_MANT_DIG__
__extension__ typedef _Float16 bench_float16;

static bool run_float16(codec_bench *b) {
  for (uint64_t i = 0; i < b->piece / 4; i++) {
    float in;
    memcpy(&in, b->plain + 4 * i, sizeof in);
    const bench_float16 out = (bench_float16)in;
    memcpy(b->other + 2 * i, &out, sizeof out);
  }
  return true;
}
#endif

/* Reads as many bytes, and writes half of them. */
static bool run_copy(codec_bench *b) {
  memcpy(b->other, b->plain, b->piece / 2);
  volatile unsigned char *end = b->plain + b->piece;
  unsigned char sum = 0;
  for (volatile unsigned char *at = b->plain + b->piece / 2; at < end; at += 64) sum ^= *at;
  b->other[0] ^= sum;
  return true;
}

static bench_row rows[] = {
    {"fp32 -> bf16", run_bf16, {0}},
    {"fp32 -> bf16, a loop", run_loop_bf16, {0}},
    {"fp32 -> fp16", run_fp16, {0}},
#ifdef __FLT16_MANT_DIG__
    {"fp32 -> fp16, _Float16", run_float16, {0}},
#endif
    {"read, write half", run_copy, {0}},
    {"bf16 -> fp32", run_from_bf16, {0}},
    {"fp16 -> fp32", run_from_fp16, {0}},
    {"planes: encode bf16", run_planes, {0}},
    {"planes: decode bf16", run_from_planes, {0}},
    {"zstd alone: exponents", run_zstd, {0}},
};
enum { BENCH_ROWS = sizeof rows / sizeof *rows };

/* ---- the data ---- */

/* Normally distributed, as weights are. */
static float bench_number(uint64_t *state) {
  double uniform[2];
  for (int i = 0; i < 2; i++) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uniform[i] = ((double)(*state >> 33) + 0.5) / 2147483648.0;
  }
  return (float)(0.02 * sqrt(-2 * log(uniform[0])) * cos(6.283185307179586 * uniform[1]));
}

static bool bench_make(codec_bench *b) {
  const gm_codec *planes = gm_codec_find("planes");
  uint64_t state = 1;
  bench_find_zstd();
  if (gm_codec_most(planes, b->piece, &b->room, NULL) != GM_OK) return false;
  unsigned char **const all[] = {&b->plain, &b->other, &b->weights, &b->back, &b->half, &b->packed};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    *all[i] = malloc(b->room);
    if (!*all[i]) return fprintf(stderr, "gm_codec_bench: no memory\n"), false;
    memset(*all[i], 1, b->room);
  }
  for (uint64_t i = 0; i < b->piece / 4; i++) {
    const float number = bench_number(&state);
    memcpy(b->plain + 4 * i, &number, sizeof number);
  }
  for (uint64_t at = 0; at < b->piece; at += 2) { /* by their upper halves, so that both halves are weights */
    const float number = bench_number(&state);
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    const uint16_t weight = (uint16_t)(bits >> 16);
    memcpy(b->weights + at, &weight, sizeof weight);
  }
  return encode("bf16", b->plain, b->piece, b->half, b->room, &b->half_bytes) &&
         encode("planes", b->weights, b->piece, b->packed, b->room, &b->packed_bytes);
}

/* ---- measuring ---- */

static bool bench_round(codec_bench *b, unsigned round) {
  for (unsigned i = 0; i < BENCH_ROWS; i++) {
    bench_row *row = &rows[(i + round) % BENCH_ROWS];
    const uint64_t pieces = (b->bytes + b->piece - 1) / b->piece;
    if (!row->run(b)) return false; /* caches and pages are as in the run */
    const double begin = seconds_now();
    for (uint64_t k = 0; k < pieces; k++) {
      if (!row->run(b)) return false;
    }
    row->rates[round] = (double)(pieces * b->piece) / (seconds_now() - begin);
  }
  return true;
}

static int bench_compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void bench_print(codec_bench *b) {
  printf("GB of plain data per second of one processor, pieces of %" PRIu64 " KiB: median (best)\n", b->piece >> 10);
  for (unsigned i = 0; i < BENCH_ROWS; i++) {
    qsort(rows[i].rates, b->runs, sizeof *rows[i].rates, bench_compare);
    printf("%-24s %6.2f (%.2f)\n", rows[i].name, rows[i].rates[b->runs / 2] / 1e9, rows[i].rates[b->runs - 1] / 1e9);
  }
  printf("planes: bf16 takes %.4f of its bytes\n", (double)b->packed_bytes / (double)b->piece);
}

static uint64_t bench_size(const char *text) {
  char *end;
  const uint64_t number = strtoull(text, &end, 10);
  return *end == 'K' ? number << 10 : *end == 'M' ? number << 20 : *end == 'G' ? number << 30 : number;
}

static bool bench_arguments(codec_bench *b, int argc, char **argv) {
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc) return false;
    if (strcmp(argv[i], "--piece") == 0)
      b->piece = bench_size(argv[i + 1]) / 4 * 4;
    else if (strcmp(argv[i], "--bytes") == 0)
      b->bytes = bench_size(argv[i + 1]);
    else if (strcmp(argv[i], "--runs") == 0)
      b->runs = (unsigned)strtoul(argv[i + 1], NULL, 10);
    else
      return false;
  }
  return b->piece && b->bytes && b->runs && b->runs <= BENCH_RUNS_MAX;
}

int main(int argc, char **argv) {
  codec_bench bench = {.piece = 1u << 20, .bytes = 256u << 20, .runs = 9};
  if (!bench_arguments(&bench, argc, argv)) {
    return fprintf(stderr, "usage: gm_codec_bench [--piece N[K|M|G]] [--bytes N[K|M|G]] [--runs N]\n"), 2;
  }
  if (!bench_make(&bench)) return 1;
  for (unsigned round = 0; round < bench.runs; round++) {
    if (!bench_round(&bench, round)) return 1;
  }
  bench_print(&bench);
  if (memcmp(bench.back, bench.weights, bench.piece) != 0) return fprintf(stderr, "gm_codec_bench: wrong bytes\n"), 1;
  unsigned char *const all[] = {bench.plain, bench.other, bench.weights, bench.back, bench.half, bench.packed};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
  return 0;
}
