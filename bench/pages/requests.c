#include "requests.h"

#include <gm/pages_all.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* Running sequences make a token first. Then prompts come in the order of their arrival, each whole as soon as it fits.
 * A sequence without room for its next token waits a step. Nothing is preempted. */

enum {
  TOKENS = 65536,
  PAGE_TOKENS = 16,
  LONGEST = 8192,
  PAGES = TOKENS / PAGE_TOKENS,
  SPARE = 96, /* pages that prompts leave to those that run */
  REQUESTS_MOST = 10000,
  PREFIXES = 1000
};

typedef enum way { RANGES, PAGED, SHARED, BOUND, WAYS } way;

typedef struct request {
  uint32_t arrives, prefix_tokens, prompt, output;
  int prefix;      /* -1: none */
  uint32_t tokens; /* that live now, its prefix included */
  uint32_t made;   /* of its output */
  uint32_t owner;
} request;

typedef struct play {
  way way;
  request *requests, **running;
  uint32_t count, next, runs, most;
  uint64_t live, prefix_users[PREFIXES]; /* live: tokens, prefixes once */
  double most_live;
  gm_pages *pages;
} play;

static uint32_t pages_of(uint32_t tokens) { return (tokens + PAGE_TOKENS - 1) / PAGE_TOKENS; }

/* The tokens of a prompt that are not there yet. */
static uint32_t new_tokens(const play *p, const request *r) {
  const bool there = r->prefix >= 0 && p->prefix_users[r->prefix];
  return r->prompt + (r->prefix < 0 || there ? 0 : r->prefix_tokens);
}

/* ---- pages ---- */

static void keys_of(const request *r, gm_page_key *keys, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) keys[i] = (gm_page_key){(uint64_t)r->prefix + 1, i + UINT64_C(1)};
}

/* All pages of a prompt, its prefix found where it can be. False: it does not fit. */
static bool pages_begin(play *p, request *r) {
  static gm_page_key keys[PAGES];
  static gm_page row[PAGES];
  const uint32_t all = pages_of(r->prefix_tokens + r->prompt);
  const uint32_t full = p->way == SHARED && r->prefix >= 0 ? r->prefix_tokens / PAGE_TOKENS : 0;
  uint32_t found = 0;
  if (gm_page_owner_open(p->pages, "request", &r->owner, NULL)) return false;
  keys_of(r, keys, full);
  gm_status status = gm_pages_find(p->pages, r->owner, keys, full, row, &found, NULL);
  if (!status) status = gm_pages_take(p->pages, r->owner, all - found, 0, row + found, NULL);
  for (uint32_t i = found; i < full && !status; i++)
    status = gm_pages_set_key(p->pages, r->owner, row[i], keys[i], 0, NULL, NULL);
  if (status) gm_page_owner_close(p->pages, r->owner, NULL);
  return status == GM_OK;
}

static bool pages_grow(play *p, const request *r) {
  gm_page page;
  return r->tokens % PAGE_TOKENS || gm_pages_take(p->pages, r->owner, 1, GM_PAGES_URGENT, &page, NULL) == GM_OK;
}

/* ---- a play ---- */

static bool begins(play *p, request *r) {
  if (p->way == RANGES) return p->runs < TOKENS / LONGEST;
  if (p->way == BOUND) return p->live + new_tokens(p, r) + SPARE * PAGE_TOKENS <= TOKENS;
  return pages_begin(p, r);
}

static void begin(play *p, request *r) {
  p->live += new_tokens(p, r);
  if (r->prefix >= 0) p->prefix_users[r->prefix]++;
  r->tokens = r->prefix_tokens + r->prompt;
  r->made = 0;
  p->running[p->runs++] = r;
}

static bool grows(play *p, const request *r) {
  return p->way == RANGES || (p->way == BOUND ? p->live < TOKENS : pages_grow(p, r));
}

static void end(play *p, uint32_t at) {
  const request *r = p->running[at];
  const bool last = r->prefix >= 0 && --p->prefix_users[r->prefix] == 0;
  p->live -= r->prompt + r->made + (last ? r->prefix_tokens : 0);
  if (p->pages) gm_page_owner_close(p->pages, r->owner, NULL);
  p->runs--;
  for (uint32_t i = at; i < p->runs; i++) p->running[i] = p->running[i + 1]; /* the oldest stay first */
}

/* True: something moved, or waits for its arrival. */
static bool play_step(play *p, uint32_t step) {
  bool moved = p->next < p->count && p->requests[p->next].arrives > step;
  for (uint32_t i = 0; i < p->runs;) {
    request *r = p->running[i];
    const bool grown = grows(p, r);
    moved = moved || grown;
    r->tokens += grown;
    r->made += grown;
    p->live += grown;
    if (r->made == r->output)
      end(p, i);
    else
      i++;
  }
  while (p->next < p->count && p->requests[p->next].arrives <= step && begins(p, &p->requests[p->next])) {
    begin(p, &p->requests[p->next++]);
    moved = true;
  }
  if (p->runs > p->most) p->most = p->runs;
  if ((double)p->live > p->most_live) p->most_live = (double)p->live;
  return moved;
}

/* The steps until all are done; 0: nothing moves any more. */
static uint32_t play_all(play *p) {
  uint32_t step = 0;
  for (; p->next < p->count || p->runs; step++) {
    if (!play_step(p, step)) return 0;
  }
  return step;
}

static gm_status play_way(gm_context *ctx, way kind, request *requests, uint32_t count, gm_error *err) {
  static const char *const names[] = {"ranges of 8192 tokens", "pages", "pages, prefixes shared", "bound"};
  static request *running[REQUESTS_MOST];
  static play p;
  const gm_pages_params params = {.struct_size = sizeof params, .max_pages = PAGES, .reserve = SPARE};
  p = (play){.way = kind, .requests = requests, .running = running, .count = count};
  gm_status status = kind == PAGED || kind == SHARED ? gm_pages_create(ctx, &params, &p.pages, err) : GM_OK;
  if (status) return status;
  const uint32_t steps = play_all(&p);
  printf("| %s | %u | %u | %.3f |\n", names[kind], p.most, steps, p.most_live / TOKENS);
  return gm_pages_destroy(p.pages, err);
}

static uint32_t read_requests(const char *path, request *out) {
  FILE *file = fopen(path, "r");
  char line[256];
  uint32_t count = 0, id;
  if (!file) return 0;
  while (fgets(line, sizeof line, file) && count < REQUESTS_MOST) {
    request r = {.prefix = -1};
    if (sscanf(line, "%u,%u,%d,%u,%u,%u", &id, &r.arrives, &r.prefix, &r.prefix_tokens, &r.prompt, &r.output) != 6)
      continue; /* the names of the columns */
    if (r.prefix >= PREFIXES || !r.output || r.prefix_tokens + r.prompt + r.output > LONGEST) continue;
    out[count++] = r;
  }
  fclose(file);
  return count;
}

int requests_play(const char *path) {
  static request requests[REQUESTS_MOST];
  gm_error err;
  gm_context *ctx;
  const uint32_t count = read_requests(path, requests);
  if (!count || gm_context_create(NULL, &ctx, &err)) {
    fprintf(stderr, "%s: no requests\n", path);
    return 1;
  }
  printf("%u requests, %d tokens of memory, pages of %d\n\n", count, TOKENS, PAGE_TOKENS);
  printf("| way | most at once | steps | most live tokens / memory |\n|---|---|---|---|\n");
  gm_status status = GM_OK;
  for (way kind = RANGES; kind < WAYS && !status; kind++) status = play_way(ctx, kind, requests, count, &err);
  if (status) fprintf(stderr, "%s\n", err.message);
  gm_context_destroy(ctx, NULL);
  return status != GM_OK;
}
