#include "core/staging/literals.h"

#include <string.h>

#include "core/base/little.h"
#include "core/base/saturate.h"

/* Names and numbers are those of RFC 8878. Bit streams are read from their last byte to their first. */

enum {
  LITERALS_BITS = GM__LITERALS_BITS,
  LITERALS_LOOKS = 5,   /* between two refills: 7 bits of a byte are over, and 5 times 11 more */
  LITERALS_AT_ONCE = 6, /* of one look */
  LITERALS_BITS_AT = 55,
  LITERALS_MANY_AT = 61,
  LITERALS_STREAMS = 4,
  LITERALS_FSE_BITS = 6, /* of the table of weights */
  LITERALS_WEIGHTS = 12, /* values of a weight: 0 to 11 */
  LITERALS_STORE = 8,    /* bytes that a look writes */
  LITERALS_MARGIN = LITERALS_LOOKS * LITERALS_AT_ONCE + LITERALS_STORE
};

static unsigned literals_log2(uint32_t number) { return 31 - (unsigned)__builtin_clz(number); }

/* --- the frame: which bytes are literals --- */

typedef struct literals_range {
  const unsigned char *at;
  size_t bytes;
} literals_range;

static bool literals_skip(literals_range *range, size_t bytes) {
  if (range->bytes < bytes) return false;
  range->at += bytes;
  range->bytes -= bytes;
  return true;
}

/* The head says how many bytes the frame unpacks to. Behind it is one block, the last one, compressed: what is left. */
static bool literals_open_block(literals_range *frame, size_t count) {
  static const unsigned char magic[4] = {0x28, 0xb5, 0x2f, 0xfd};
  if (frame->bytes < 5 || memcmp(frame->at, magic, sizeof magic) != 0) return false;
  const unsigned head = frame->at[4], size_code = head >> 6, single = head >> 5 & 1;
  if (head & 0x0f) return false; /* a dictionary, a checksum, or a bit that has no meaning */
  const size_t size_bytes = size_code ? (size_t)1 << size_code : single;
  if (!size_bytes || !literals_skip(frame, single ? 5 : 6) || frame->bytes < size_bytes + 3) return false;
  const uint64_t size = gm__le_get(frame->at, (unsigned)size_bytes) + (size_code == 1 ? 256 : 0);
  if (size != count || !literals_skip(frame, size_bytes)) return false;
  const uint32_t block = (uint32_t)gm__le_get(frame->at, 3);
  return (block & 7) == 5 && literals_skip(frame, 3) && block >> 3 == frame->bytes;
}

/* The section of literals: a tree, and four streams. Behind it is a byte that says: no sequences. */
static bool literals_open(literals_range *block, size_t count) {
  if (block->bytes < 5 || (block->at[0] & 3) != 2 || !(block->at[0] & 12)) return false;
  const unsigned form = block->at[0] >> 2 & 3, width = 6 + 4 * form; /* 10, 14 or 18 bits for each size */
  const size_t head = 2 + form;
  const uint64_t sizes = gm__le_get(block->at, (unsigned)head) >> 4;
  const uint64_t mask = ((uint64_t)1 << width) - 1, packed = sizes >> width & mask;
  if ((sizes & mask) != count || packed + 1 + head != block->bytes || block->at[block->bytes - 1] != 0) return false;
  block->bytes--;
  return literals_skip(block, head);
}

/* --- bits of a short stream --- */

/* `bits` bits (at most 16) from bit `at` on. Bits before the first byte, and behind the last one, are 0. */
static uint32_t literals_bits(const literals_range *from, long at, unsigned bits) {
  const long begin = at < 0 ? 0 : at;
  const size_t byte = (size_t)begin / 8, left = byte < from->bytes ? from->bytes - byte : 0;
  uint64_t number = left >= 4 ? gm__le_get(from->at + byte, 4) : gm__le_get(from->at + byte, (unsigned)left);
  number >>= begin % 8;
  number = at < -16 ? 0 : number << (begin - at);
  return (uint32_t)number & ((1u << bits) - 1);
}

/* Where the bits of a stream end: below the highest bit of its last byte. False: that byte is 0. */
static bool literals_end(const literals_range *stream, long *out) {
  if (!stream->bytes || !stream->at[stream->bytes - 1]) return false;
  *out = (long)(stream->bytes - 1) * 8 + (long)literals_log2(stream->at[stream->bytes - 1]);
  return true;
}

/* --- the weights of symbols, packed by FSE --- */

typedef struct literals_state {
  unsigned char symbol, bits;
  uint16_t base;
} literals_state;

typedef struct literals_fse {
  unsigned log;
  int counts[LITERALS_WEIGHTS];
  literals_state states[1 << LITERALS_FSE_BITS];
} literals_fse;

/* How often each weight is there, out of 2^log; -1: less than once. Leaves what is behind. */
static bool literals_read_counts(literals_range *from, literals_fse *fse) {
  long at = 4;
  fse->log = literals_bits(from, 0, 4) + 5;
  if (fse->log > LITERALS_FSE_BITS) return false;
  int left = 1 << fse->log;
  unsigned weight = 0;
  while (left > 0 && weight < LITERALS_WEIGHTS) {
    const unsigned bits = literals_log2((uint32_t)left + 1) + 1;
    const uint32_t half = (1u << (bits - 1)) - 1, spare = (1u << bits) - 2 - (uint32_t)left;
    uint32_t value = literals_bits(from, at, bits);
    const bool is_short = (value & half) < spare;
    if (is_short) value &= half;
    if (!is_short && value > half) value -= spare;
    at += bits - is_short;
    const int count = (int)value - 1;
    left -= count < 0 ? 1 : count;
    fse->counts[weight++] = count;
    for (uint32_t zeros = count ? 0 : 3; zeros == 3;) {
      zeros = literals_bits(from, at, 2);
      at += 2;
      if (zeros > LITERALS_WEIGHTS - weight) return false;
      for (uint32_t i = 0; i < zeros; i++) fse->counts[weight++] = 0;
    }
  }
  return left == 0 && literals_skip(from, (size_t)(at + 7) / 8);
}

static bool literals_make_states(literals_fse *fse) {
  const unsigned size = 1u << fse->log, step = (size >> 1) + (size >> 3) + 3;
  unsigned next[LITERALS_WEIGHTS], high = size, at = 0;
  for (unsigned w = 0; w < LITERALS_WEIGHTS; w++) {
    next[w] = fse->counts[w] < 0 ? 1 : (unsigned)fse->counts[w];
    if (fse->counts[w] < 0) fse->states[--high].symbol = (unsigned char)w;
  }
  for (unsigned w = 0; w < LITERALS_WEIGHTS; w++) {
    for (int i = 0; i < fse->counts[w]; i++) {
      fse->states[at].symbol = (unsigned char)w;
      do {
        at = (at + step) & (size - 1);
      } while (at >= high);
    }
  }
  for (unsigned i = 0; i < size; i++) {
    literals_state *state = &fse->states[i];
    const unsigned value = next[state->symbol]++;
    state->bits = (unsigned char)(fse->log - literals_log2(value));
    state->base = (uint16_t)((value << state->bits) - size);
  }
  return at == 0;
}

/* Two states take turns. The one whose bits are beyond the begin ends it, and the other has the last weight. */
static bool literals_unpack_weights(gm__literals *work, literals_range from, unsigned *out_count) {
  literals_fse fse = {0};
  long at;
  unsigned count = 0, turn = 0;
  if (!literals_read_counts(&from, &fse) || !literals_make_states(&fse) || !literals_end(&from, &at)) return false;
  unsigned state[2];
  for (int i = 0; i < 2; i++) {
    at -= fse.log;
    state[i] = literals_bits(&from, at, fse.log);
  }
  for (; at >= 0 && count < 254; turn ^= 1) {
    const literals_state *now = &fse.states[state[turn]];
    work->weights[count++] = now->symbol;
    at -= now->bits;
    state[turn] = now->base + literals_bits(&from, at, now->bits);
  }
  if (at >= 0) return false;
  work->weights[count++] = fse.states[state[turn]].symbol;
  *out_count = count;
  return true;
}

/* --- the tree --- */

/* Reads the weights of all symbols but the last one. */
static bool literals_read_weights(gm__literals *work, literals_range *from, unsigned *out_count) {
  if (!from->bytes) return false;
  const unsigned head = from->at[0];
  const size_t bytes = head < 128 ? head : (head - 126) / 2;
  const literals_range packed = {from->at + 1, bytes};
  if (!literals_skip(from, 1 + bytes)) return false;
  if (head < 128) return literals_unpack_weights(work, packed, out_count);
  *out_count = head - 127;
  for (unsigned i = 0; i < *out_count; i++) work->weights[i] = packed.at[i / 2] >> (i % 2 ? 0 : 4) & 15;
  return true;
}

/* The weight of the last symbol fills the sum up to a power of two. Codes of the longest bits come in pairs. */
static bool literals_complete(gm__literals *work, unsigned *count, unsigned *out_longest) {
  uint32_t sum = 0;
  for (unsigned i = 0; i < *count; i++) {
    if (work->weights[i] > LITERALS_BITS) return false;
    sum += 1u << work->weights[i] >> 1;
  }
  if (!sum || sum >= 1u << LITERALS_BITS) return false;
  *out_longest = literals_log2(sum) + 1;
  const uint32_t left = (1u << *out_longest) - sum;
  if (left & (left - 1)) return false;
  work->weights[(*count)++] = (unsigned char)(literals_log2(left) + 1);
  return memchr(work->weights, 1, *count) != NULL;
}

static void literals_fill(uint64_t *at, const uint64_t *end, uint64_t entry) {
  while (at < end) *at++ = entry;
}

/* All looks that begin with `entry`; `free` of their bits are left. The longest codes come first in a table, so the
 * shortest lie at its end. */
static void literals_grow(const gm__literals *work, uint64_t *at, unsigned free, uint64_t entry) {
  const unsigned many = (unsigned)(entry >> LITERALS_MANY_AT);
  uint64_t *end = at + ((size_t)1 << free);
  for (unsigned i = 0; i < work->count && work->codes[i].bits <= free; i++) {
    const gm__literals_code *code = &work->codes[i];
    const unsigned rest = free - code->bits;
    uint64_t longer = entry | (uint64_t)code->symbol << 8 * many;
    longer += (UINT64_C(1) << LITERALS_MANY_AT) + code->bits * (UINT64_C(1) << LITERALS_BITS_AT);
    uint64_t *behind = end;
    end -= (size_t)1 << rest;
    if (rest < work->codes[0].bits || many + 1 == LITERALS_AT_ONCE) {
      literals_fill(end, behind, longer);
    } else {
      literals_grow(work, end, rest, longer);
    }
  }
  literals_fill(at, end, entry); /* codes that begin so are longer */
}

static bool literals_make_tree(gm__literals *work, literals_range *from) {
  unsigned count, longest;
  if (!literals_read_weights(work, from, &count) || !literals_complete(work, &count, &longest)) return false;
  work->count = 0;
  for (unsigned weight = longest; weight > 0; weight--) {
    for (unsigned s = count; s-- > 0;) {
      if (work->weights[s] != weight) continue;
      work->lengths[s] = (unsigned char)(longest + 1 - weight);
      work->codes[work->count++] = (gm__literals_code){(unsigned char)s, work->lengths[s]};
    }
  }
  literals_grow(work, work->looks, LITERALS_BITS, 0);
  return work->count > 1;
}

/* --- the streams --- */

/* `window` has the next bits at its top. Below the last of them is a 1, and zeros. Its other bytes begin at `at`. */
typedef struct literals_stream {
  const unsigned char *at, *begin;
  unsigned char *put, *end;
  uint64_t window;
} literals_stream;

#define LITERALS_INLINE static inline __attribute__((always_inline))

LITERALS_INLINE void literals_refill(literals_stream *s) {
  const unsigned used = (unsigned)__builtin_ctzll(s->window);
  s->at -= used / 8;
  memcpy(&s->window, s->at, sizeof s->window);
  s->window = (s->window | 1) << used % 8;
}

LITERALS_INLINE void literals_look(literals_stream *s, const uint64_t *looks) {
  const uint64_t found = looks[s->window >> (64 - LITERALS_BITS)];
  memcpy(s->put, &found, 8);
  s->put += found >> LITERALS_MANY_AT;
  s->window <<= (found >> LITERALS_BITS_AT | found << (64 - LITERALS_BITS_AT)) & 63; /* one instruction less */
}

/* How many turns are safe, whatever the bits are. A turn takes 7 bytes or fewer, and 8 must be there to read. */
LITERALS_INLINE size_t literals_turns(const literals_stream *s, size_t margin) {
  const size_t reads = (size_t)(s->at - s->begin) / 8, writes = (size_t)(s->end - s->put) / margin;
  return reads < writes ? reads : writes;
}

LITERALS_INLINE void literals_run_all(literals_stream *streams, const uint64_t *looks) {
  literals_stream a = streams[0], b = streams[1], c = streams[2], d = streams[3];
  for (;;) {
    size_t turns = literals_turns(&a, LITERALS_MARGIN);
    turns = gm__min(turns, literals_turns(&b, LITERALS_MARGIN));
    turns = gm__min(turns, literals_turns(&c, LITERALS_MARGIN));
    turns = gm__min(turns, literals_turns(&d, LITERALS_MARGIN));
    if (!turns) break;
    for (; turns > 0; turns--) {
      literals_refill(&a), literals_refill(&b), literals_refill(&c), literals_refill(&d);
      for (int i = 0; i < LITERALS_LOOKS; i++) {
        literals_look(&a, looks), literals_look(&b, looks), literals_look(&c, looks), literals_look(&d, looks);
      }
    }
  }
  streams[0] = a, streams[1] = b, streams[2] = c, streams[3] = d;
}

#if defined(__x86_64__)
__attribute__((target("bmi,bmi2"))) static void literals_run_bmi2(literals_stream *streams, const uint64_t *looks) {
  literals_run_all(streams, looks);
}
#endif

static void literals_run(literals_stream *streams, const uint64_t *looks) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2")) {
    literals_run_bmi2(streams, looks);
    return;
  }
#endif
  literals_run_all(streams, looks);
}

/* The end of a stream, one symbol after the other. All bits are used up then. */
static bool literals_end_stream(const gm__literals *work, literals_stream *s) {
  while (literals_turns(s, LITERALS_STORE)) {
    literals_refill(s);
    literals_look(s, work->looks);
  }
  const literals_range all = {s->begin, (size_t)(s->at - s->begin) + 8};
  long left = (long)all.bytes * 8 - __builtin_ctzll(s->window);
  while (s->put < s->end && left > 0) {
    const unsigned char symbol = (unsigned char)work->looks[literals_bits(&all, left - LITERALS_BITS, LITERALS_BITS)];
    *s->put++ = symbol;
    left -= work->lengths[symbol];
  }
  return s->put == s->end && left == 0;
}

static bool literals_begin_stream(literals_range from, unsigned char *to, size_t count, literals_stream *out) {
  long end;
  if (from.bytes < 8 || !literals_end(&from, &end)) return false;
  *out = (literals_stream){.at = from.at + from.bytes - 8, .begin = from.at, .put = to, .end = to + count};
  memcpy(&out->window, out->at, sizeof out->window);
  out->window = (out->window | 1) << ((long)from.bytes * 8 - end);
  return true;
}

/* Three sizes, then the streams. Each of the first three has a quarter of the symbols, rounded up. */
static bool literals_begin_streams(literals_range from, unsigned char *to, size_t count, literals_stream *streams) {
  enum { SIZES = 2 * (LITERALS_STREAMS - 1) };
  const unsigned char *sizes = from.at;
  const size_t each = (count + 3) / 4;
  if (count < 3 * each || !literals_skip(&from, SIZES)) return false;
  for (unsigned i = 0; i < LITERALS_STREAMS; i++) {
    const bool last = i == LITERALS_STREAMS - 1;
    const size_t bytes = last ? from.bytes : (size_t)gm__le_get(sizes + 2 * (size_t)i, 2);
    const literals_range mine = {from.at, bytes};
    if (!literals_skip(&from, bytes)) return false;
    if (!literals_begin_stream(mine, to + i * each, last ? count - i * each : each, &streams[i])) return false;
  }
  return true;
}

bool gm__literals_unpack(gm__literals *work, void *to, size_t count, const void *from, size_t bytes) {
  literals_range block = {from, bytes};
  if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__) return false; /* looks are stored as numbers */
  literals_stream streams[LITERALS_STREAMS];
  bool whole = literals_open_block(&block, count) && literals_open(&block, count) && literals_make_tree(work, &block);
  if (!whole || !literals_begin_streams(block, to, count, streams)) return false;
  literals_run(streams, work->looks);
  for (unsigned i = 0; i < LITERALS_STREAMS; i++) whole = literals_end_stream(work, &streams[i]) && whole;
  return whole;
}
