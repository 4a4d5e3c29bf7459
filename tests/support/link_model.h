/* Figures that a test reads in the journal of the link model (backends/shared/link_model.h). The test switches the
 * model on: by "set LINK ..." in the script of simulated CUDA and HIP (tests/simulated/README.md), by gm__null_link on
 * the null backend. Needs cmocka.h included before. Every time is in virtual nanoseconds. */
#ifndef GM_TESTS_SUPPORT_LINK_MODEL_H
#define GM_TESTS_SUPPORT_LINK_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "backends/shared/link_model.h"

enum { LINK_JOURNAL_LINES = 1 << 16 };

/* The lines of one run, oldest first; whole: link_journal_take fails a test whose run wrote more than fit. */
typedef struct link_journal {
  gm__link_entry lines[LINK_JOURNAL_LINES];
  size_t count;
} link_journal;

/* Copies the newest lines, up to `capacity`, and returns how many were ever written: simCudaJournal, simHipJournal. */
typedef uint64_t link_journal_copy(gm__link_entry *out, uint64_t capacity);

static inline void link_journal_take(link_journal *out, link_journal_copy *copy) {
  const uint64_t written = copy(out->lines, LINK_JOURNAL_LINES);
  if (written > LINK_JOURNAL_LINES) fail_msg("%llu lines do not fit into the journal", (unsigned long long)written);
  out->count = (size_t)written;
}

/* From the first beginning to the last end of all work that takes time. */
static inline uint64_t link_makespan(const link_journal *journal) {
  uint64_t first = UINT64_MAX, last = 0;
  for (size_t i = 0; i < journal->count; i++) {
    const gm__link_entry *line = &journal->lines[i];
    if (line->kind == GM__LINK_MARK) continue;
    if (line->start < first) first = line->start;
    if (line->end > last) last = line->end;
  }
  return first == UINT64_MAX ? 0 : last - first;
}

static inline uint64_t link_count(const link_journal *journal, gm__link_kind kind) {
  uint64_t count = 0;
  for (size_t i = 0; i < journal->count; i++) count += journal->lines[i].kind == kind;
  return count;
}

static inline uint64_t link_bytes(const link_journal *journal, gm__link_kind kind) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < journal->count; i++)
    if (journal->lines[i].kind == kind) bytes += journal->lines[i].bytes;
  return bytes;
}

/* Sum of the durations. */
static inline uint64_t link_busy(const link_journal *journal, gm__link_kind kind) {
  uint64_t busy = 0;
  for (size_t i = 0; i < journal->count; i++)
    if (journal->lines[i].kind == kind) busy += journal->lines[i].end - journal->lines[i].start;
  return busy;
}

/* How long work of the one kind ran beside work of the other: each pair of pieces counts. With `one` equal to `other`:
 * each two pieces of that kind, once. */
static inline uint64_t link_overlap(const link_journal *journal, gm__link_kind one, gm__link_kind other) {
  uint64_t overlap = 0;
  for (size_t i = 0; i < journal->count; i++) {
    const gm__link_entry *a = &journal->lines[i];
    if (a->kind != one) continue;
    for (size_t j = one == other ? i + 1 : 0; j < journal->count; j++) {
      const gm__link_entry *b = &journal->lines[j];
      const uint64_t start = a->start > b->start ? a->start : b->start, end = a->end < b->end ? a->end : b->end;
      if (b->kind == other && start < end) overlap += end - start;
    }
  }
  return overlap;
}

/* The share of the possible overlap of these kinds: (sum of busy - makespan) / (sum of busy - longest busy).
 * 0 where nothing could. */
static inline double link_overlap_share(const link_journal *journal, const gm__link_kind *kinds, size_t count) {
  double sum = 0, most = 0;
  for (size_t i = 0; i < count; i++) {
    const double busy = (double)link_busy(journal, kinds[i]);
    sum += busy;
    if (busy > most) most = busy;
  }
  const double possible = sum - most, had = sum - (double)link_makespan(journal);
  return possible > 0 && had > 0 ? had / possible : 0;
}

#endif
