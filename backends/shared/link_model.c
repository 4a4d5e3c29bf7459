#include "backends/shared/link_model.h"

#include <string.h>

/* Invariants: the clock never goes back. Only the first work of a lane runs. An engine is busy until the end of the
 * last work that began on it, and nothing begins on it before. The journal's lines are in order of their ends. */

enum { LINK_NS_PER_US = 1000, LINK_POLL_NS = 1000, LINK_JITTER_MOST = 99 };

static const uint64_t link_mbps_most = UINT64_C(1000000000000); /* sums of a thousand such numbers fit */

uint64_t gm__link_later(uint64_t moment, uint64_t ns) { return ns > UINT64_MAX - moment ? UINT64_MAX : moment + ns; }

/* --- the text --- */

/* A number of decimal digits, with what follows it. */
static bool link_number(const char **at, uint64_t most, uint64_t *out) {
  uint64_t number = 0;
  const char *digit = *at;
  for (; *digit >= '0' && *digit <= '9'; digit++) {
    const uint64_t value = (uint64_t)(*digit - '0');
    if (value > most || number > (most - value) / 10) return false;
    number = number * 10 + value;
  }
  if (digit == *at) return false;
  *at = digit;
  *out = number;
  return true;
}

static bool link_at_end(const char *at) { return *at == 0 || *at == ','; }

static bool link_last_number(const char *at, uint64_t most, uint64_t *out) {
  return link_number(&at, most, out) && link_at_end(at);
}

static bool link_microseconds(const char *at, uint64_t *out) {
  if (!link_last_number(at, UINT64_MAX / LINK_NS_PER_US, out)) return false;
  *out *= LINK_NS_PER_US;
  return true;
}

/* "25000" or "25000:8". */
static bool link_rate(const char *at, gm__link_rate *out) {
  *out = (gm__link_rate){0};
  if (!link_number(&at, link_mbps_most, &out->mbps) || out->mbps == 0) return false;
  return *at == ':' ? link_microseconds(at + 1, &out->latency_ns) : link_at_end(at);
}

/* "0-1:50000:5". */
static bool link_peer(const char *at, gm__link_model *model) {
  gm__link_peer *peer = &model->peers[model->peer_count];
  uint64_t first, second;
  if (model->peer_count == GM__LINK_PEERS) return false;
  if (!link_number(&at, GM__LINK_DEVICES - 1, &first) || *at++ != '-') return false;
  if (!link_number(&at, GM__LINK_DEVICES - 1, &second) || *at++ != ':' || first == second) return false;
  *peer = (gm__link_peer){.devices = {(uint32_t)first, (uint32_t)second}};
  if (!link_rate(at, &peer->rate)) return false;
  model->peer_count++;
  return true;
}

/* "scale:400". */
static bool link_cost(const char *at, gm__link_model *model) {
  const size_t length = strcspn(at, ":,");
  if (model->cost_count == GM__LINK_COSTS || length == 0 || length >= GM__LINK_NAME || at[length] != ':') return false;
  gm__link_cost *cost = &model->costs[model->cost_count];
  *cost = (gm__link_cost){0};
  memcpy(cost->name, at, length);
  if (!link_microseconds(at + length + 1, &cost->ns)) return false;
  model->cost_count++;
  return true;
}

static bool link_word_is(const char *at, const char *word, const char **value) {
  const size_t length = strlen(word);
  if (strncmp(at, word, length) != 0) return false;
  *value = at + length;
  return true;
}

static bool link_engines(const char *at, gm__link_model *model) {
  uint64_t engines;
  if (!link_last_number(at, 2, &engines) || engines == 0) return false;
  model->half_duplex = engines == 1;
  return true;
}

static bool link_word(const char *at, gm__link_model *model) {
  const char *value;
  if (link_word_is(at, "h2d:", &value)) return link_rate(value, &model->rates[GM__LINK_H2D]);
  if (link_word_is(at, "d2h:", &value)) return link_rate(value, &model->rates[GM__LINK_D2H]);
  if (link_word_is(at, "d2d:", &value)) return link_rate(value, &model->rates[GM__LINK_D2D]);
  if (link_word_is(at, "peer:", &value)) return link_peer(value, model);
  if (link_word_is(at, "kernel:", &value)) return link_cost(value, model);
  if (link_word_is(at, "engines:", &value)) return link_engines(value, model);
  if (link_word_is(at, "poll:", &value)) return link_last_number(value, UINT64_MAX, &model->poll_ns);
  if (link_word_is(at, "jitter:", &value)) return link_last_number(value, LINK_JITTER_MOST, &model->jitter);
  if (link_word_is(at, "seed:", &value)) return link_last_number(value, UINT64_MAX, &model->seed) && model->seed;
  if (link_word_is(at, "pageable:", &value)) {
    return link_last_number(value, link_mbps_most, &model->pageable_mbps) && model->pageable_mbps;
  }
  return false;
}

const char *gm__link_read(const char *spec, gm__link_model *out) {
  gm__link_model model = {.poll_ns = LINK_POLL_NS, .seed = UINT64_C(0x9e3779b97f4a7c15)};
  for (const char *at = spec; *at;) {
    const size_t length = strcspn(at, ",");
    if (!link_word(at, &model)) return at;
    if (at[length] == ',' && !at[length + 1]) return at + length;
    at += length + (at[length] == ',');
  }
  *out = model;
  return NULL;
}

/* --- lanes --- */

void gm__link_lane_open(gm__link_model *model, gm__link_lane *lane) {
  *lane = (gm__link_lane){.next = model->lanes, .number = ++model->lanes_made};
  model->lanes = lane;
}

void gm__link_lane_close(gm__link_model *model, gm__link_lane *lane) {
  gm__link_lane **link = &model->lanes;
  while (*link && *link != lane) link = &(*link)->next;
  if (*link) *link = lane->next;
}

uint64_t gm__link_submit(gm__link_model *model, gm__link_lane *lane, gm__link_op *op) {
  op->entry.sequence = ++model->sequence;
  op->entry.lane = lane->number;
  op->lane = lane;
  op->next = NULL;
  op->is_ready = op->runs = false;
  if (lane->tail) lane->tail->next = op;
  if (!lane->tail) lane->head = op;
  lane->tail = op;
  return op->entry.sequence;
}

/* A lane's work is in order of its numbers. */
bool gm__link_ended(const gm__link_model *model, uint64_t sequence) {
  for (const gm__link_lane *lane = model->lanes; lane; lane = lane->next) {
    const gm__link_op *op = lane->head;
    while (op && op->entry.sequence < sequence) op = op->next;
    if (op && op->entry.sequence == sequence) return false;
  }
  return true;
}

/* --- how long, and on which engines --- */

/* Rounded up; a number that does not fit is UINT64_MAX. */
static uint64_t link_bytes_ns(uint64_t bytes, uint64_t mbps) {
  if (!mbps) return 0;
  const uint64_t whole = bytes / mbps, rest = bytes % mbps;
  if (whole > UINT64_MAX / 1000 - 1) return UINT64_MAX;
  return whole * 1000 + (rest * 1000 + mbps - 1) / mbps;
}

static uint64_t link_rate_ns(const gm__link_rate *rate, uint64_t bytes) {
  return gm__link_later(rate->latency_ns, link_bytes_ns(bytes, rate->mbps));
}

static const gm__link_peer *link_peer_of(const gm__link_model *model, uint32_t one, uint32_t other) {
  for (uint32_t i = 0; i < model->peer_count; i++) {
    const gm__link_peer *peer = &model->peers[i];
    if (peer->devices[0] == one && peer->devices[1] == other) return peer;
    if (peer->devices[1] == one && peer->devices[0] == other) return peer;
  }
  return NULL;
}

static uint64_t link_name_ns(const gm__link_model *model, const char *name, bool any) {
  uint64_t other = 0;
  for (uint32_t i = 0; i < model->cost_count; i++) {
    const gm__link_cost *cost = &model->costs[i];
    if (name && strcmp(cost->name, name) == 0) return cost->ns;
    if (any && strcmp(cost->name, "*") == 0) other = cost->ns;
  }
  return other;
}

/* Without a link of their own, two devices copy through the host: both links, at the rate of the narrower one. */
static uint64_t link_peer_ns(const gm__link_model *model, const gm__link_entry *entry) {
  const gm__link_peer *peer = link_peer_of(model, entry->device, entry->peer);
  if (peer) return link_rate_ns(&peer->rate, entry->bytes);
  const gm__link_rate *up = &model->rates[GM__LINK_H2D], *down = &model->rates[GM__LINK_D2H];
  const uint64_t by_up = link_bytes_ns(entry->bytes, up->mbps), by_down = link_bytes_ns(entry->bytes, down->mbps);
  return gm__link_later(gm__link_later(up->latency_ns, down->latency_ns), by_up > by_down ? by_up : by_down);
}

static uint64_t link_plain_ns(const gm__link_model *model, const gm__link_op *op) {
  const gm__link_entry *entry = &op->entry;
  gm__link_rate rate = model->rates[entry->kind];
  switch (entry->kind) {
    case GM__LINK_H2D:
    case GM__LINK_D2H:
      if (entry->pageable && model->pageable_mbps) rate.mbps = model->pageable_mbps;
      return link_rate_ns(&rate, entry->bytes);
    case GM__LINK_D2D: return link_rate_ns(&rate, entry->bytes);
    case GM__LINK_PEER: return link_peer_ns(model, entry);
    case GM__LINK_COMPUTE:
    case GM__LINK_HOST:
      return gm__link_later(op->cost_ns, link_name_ns(model, op->name, entry->kind == GM__LINK_COMPUTE));
    case GM__LINK_MARK:
    case GM__LINK_KINDS: break;
  }
  return 0;
}

static uint64_t link_random(gm__link_model *model) {
  model->seed ^= model->seed << 13;
  model->seed ^= model->seed >> 7;
  model->seed ^= model->seed << 17;
  return model->seed;
}

static uint64_t link_duration(gm__link_model *model, const gm__link_op *op) {
  const uint64_t plain = link_plain_ns(model, op), most = plain / 100 * model->jitter;
  if (!most) return plain;
  return gm__link_later(plain - most, link_random(model) % (2 * most + 1));
}

/* The engines that `op` needs, one or two; none: 0. */
static int link_engines_of(gm__link_model *model, const gm__link_op *op, uint64_t *out[2]) {
  const gm__link_entry *entry = &op->entry;
  uint64_t *own = model->busy_until[entry->device];
  const int down = model->half_duplex ? GM__LINK_H2D : GM__LINK_D2H;
  if (entry->kind == GM__LINK_MARK || entry->kind == GM__LINK_HOST) return 0;
  out[0] = &own[entry->kind == GM__LINK_D2H ? down : (int)entry->kind];
  if (entry->kind != GM__LINK_PEER || link_peer_of(model, entry->device, entry->peer)) return 1;
  out[0] = &own[down];
  out[1] = &model->busy_until[entry->peer][GM__LINK_H2D];
  return 2;
}

/* --- events --- */

static void link_mark_ready(gm__link_model *model) {
  for (gm__link_lane *lane = model->lanes; lane; lane = lane->next) {
    gm__link_op *op = lane->head;
    if (!op || op->is_ready) continue;
    if (op->after && !gm__link_ended(model, op->after)) continue;
    if (model->gate && !model->gate(op)) continue;
    op->is_ready = true;
    op->entry.ready = model->now;
  }
}

/* When the next thing happens to `op`: it ends, or it begins. */
static uint64_t link_moment(gm__link_model *model, const gm__link_op *op) {
  if (op->runs) return op->entry.end;
  uint64_t *engines[2], moment = op->entry.ready;
  const int count = link_engines_of(model, op, engines);
  for (int i = 0; i < count; i++)
    if (*engines[i] > moment) moment = *engines[i];
  return moment;
}

/* At one moment ends come before beginnings; of those that wait for an engine, who was ready first begins. */
static bool link_is_before(const gm__link_op *a, const gm__link_op *b) {
  if (a->runs != b->runs) return a->runs;
  if (!a->runs && a->entry.ready != b->entry.ready) return a->entry.ready < b->entry.ready;
  return a->entry.sequence < b->entry.sequence;
}

static gm__link_op *link_earliest(gm__link_model *model, uint64_t *out_moment) {
  gm__link_op *earliest = NULL;
  for (gm__link_lane *lane = model->lanes; lane; lane = lane->next) {
    gm__link_op *op = lane->head;
    if (!op || !op->is_ready) continue;
    const uint64_t moment = link_moment(model, op);
    if (earliest && (moment > *out_moment || (moment == *out_moment && !link_is_before(op, earliest)))) continue;
    earliest = op;
    *out_moment = moment;
  }
  return earliest;
}

static void link_begin(gm__link_model *model, gm__link_op *op) {
  uint64_t *engines[2];
  const int count = link_engines_of(model, op, engines);
  op->runs = true;
  op->entry.start = model->now;
  op->entry.end = gm__link_later(model->now, link_duration(model, op));
  for (int i = 0; i < count; i++) *engines[i] = op->entry.end;
}

/* --- the journal, and what came early --- */

static bool link_meet(uint64_t one, uint64_t bytes, uint64_t other, uint64_t other_bytes) {
  if (!one || !other || !bytes || !other_bytes) return false;
  return one < other ? other - one < bytes : one - other < other_bytes;
}

/* Does one of them write what the other reads or writes? */
static bool link_clash(const gm__link_entry *a, const gm__link_entry *b) {
  return link_meet(a->to, a->bytes, b->to, b->bytes) || link_meet(a->to, a->bytes, b->from, b->bytes) ||
         link_meet(a->from, a->bytes, b->to, b->bytes);
}

static void link_note_early(gm__link_model *model, const gm__link_entry *work, const gm__link_entry *use) {
  if (model->early++) return;
  model->early_work = *work;
  model->early_use = *use;
}

/* Work of another lane that had not ended when `entry` began. Where two overlap in time, the one that ends last looks:
 * so every pair is seen once. */
static void link_look_back(gm__link_model *model, const gm__link_entry *entry) {
  for (uint64_t n = model->entries; n-- > 0 && model->entries - n <= model->capacity;) {
    const gm__link_entry *older = &model->journal[n % model->capacity];
    if (older->end <= entry->start) break;
    if (older->lane != entry->lane && link_clash(older, entry)) link_note_early(model, older, entry);
  }
}

static void link_write(gm__link_model *model, const gm__link_entry *entry) {
  link_look_back(model, entry);
  model->journal[model->entries++ % model->capacity] = *entry;
}

static void link_end(gm__link_model *model, gm__link_op *op) {
  gm__link_lane *lane = op->lane;
  lane->head = op->next;
  if (!lane->head) lane->tail = NULL;
  op->next = NULL;
  link_write(model, &op->entry);
}

gm__link_op *gm__link_next(gm__link_model *model, uint64_t limit) {
  for (;;) {
    uint64_t moment = 0;
    link_mark_ready(model);
    gm__link_op *op = link_earliest(model, &moment);
    if (!op || moment > limit) return NULL;
    gm__link_reach(model, moment);
    if (!op->runs) {
      link_begin(model, op);
      continue;
    }
    link_end(model, op);
    return op;
  }
}

void gm__link_reach(gm__link_model *model, uint64_t moment) {
  if (model->now < moment) model->now = moment;
}

bool gm__link_use(gm__link_model *model, uint64_t at, uint64_t bytes, bool writes) {
  const gm__link_entry use = {.kind = GM__LINK_HOST,
                              .bytes = bytes,
                              .to = writes ? at : 0,
                              .from = writes ? 0 : at,
                              .start = model->now,
                              .end = model->now};
  for (const gm__link_lane *lane = model->lanes; lane; lane = lane->next) {
    for (const gm__link_op *op = lane->head; op; op = op->next) {
      if (!link_clash(&op->entry, &use)) continue;
      link_note_early(model, &op->entry, &use);
      return false;
    }
  }
  return true;
}

void gm__link_touch(gm__link_model *model, const gm__link_op *op, uint64_t at, uint64_t bytes, bool writes) {
  gm__link_entry entry = op->entry;
  entry.kind = GM__LINK_MARK;
  entry.bytes = bytes;
  entry.to = writes ? at : 0;
  entry.from = writes ? 0 : at;
  link_write(model, &entry);
}

uint64_t gm__link_copy_journal(const gm__link_model *model, gm__link_entry *out, uint64_t capacity) {
  uint64_t lines = model->entries < model->capacity ? model->entries : model->capacity;
  if (lines > capacity) lines = capacity;
  for (uint64_t n = model->entries - lines; n < model->entries; n++) {
    *out++ = model->journal[n % model->capacity];
  }
  return model->entries;
}

void gm__link_clear(gm__link_model *model) {
  model->entries = model->early = 0;
  model->early_work = model->early_use = (gm__link_entry){0};
}
