#include "model/model.h"

void complain(model *m, const char *format, ...) {
  va_list args;
  if (atomic_fetch_add(&m->failed, 1) >= 20) return;
  va_start(args, format);
  fputs("failed: ", stderr);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
}

void add_range(model *m, const gm_block *block) {
  pthread_mutex_lock(&m->lock);
  bool clear = true;
  for (uint32_t i = 0; i < m->range_count; i++) {
    const gm_block *other = &m->ranges[i];
    if (block->address < other->address + other->bytes && other->address < block->address + block->bytes) clear = false;
  }
  m->ranges[m->range_count++] = *block;
  pthread_mutex_unlock(&m->lock);
  CHECK(m, clear, "block at 0x%" PRIx64 " of %" PRIu64 " bytes overlaps a live one", block->address, block->bytes);
}

void remove_range(model *m, const gm_block *block) {
  pthread_mutex_lock(&m->lock);
  uint32_t at = 0;
  while (at < m->range_count && m->ranges[at].address != block->address) at++;
  if (at < m->range_count) m->ranges[at] = m->ranges[--m->range_count];
  pthread_mutex_unlock(&m->lock);
}

bool put(model *m, const owned *o) {
  pthread_mutex_lock(&m->lock);
  bool room = m->table_count < MAX_LIVE;
  if (room) m->table[m->table_count++] = *o;
  pthread_mutex_unlock(&m->lock);
  return room;
}

bool pick(worker *w, owned *out) {
  model *m = w->m;
  pthread_mutex_lock(&m->lock);
  bool any = m->table_count > 0;
  if (any) {
    uint64_t at = below(w, m->table_count);
    for (int again = 0; again < 4 && m->table[at].long_lived; again++) at = below(w, m->table_count);
    *out = m->table[at];
    m->table[at] = m->table[--m->table_count];
  }
  pthread_mutex_unlock(&m->lock);
  return any;
}
