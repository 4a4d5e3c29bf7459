/* Invariant: each page of a MiB that is compared adds once: by gm__load_sums_add where one range has all of it, else in
 * gm__load_sums_finish. */
#include "core/load/load_sums.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/load/sum_file.h"
#include "core/model/model_memory.h"

enum { SUMS_PAGE = GM__SUM_PAGE };

/* ---- begin and end ---- */

static gm_status sums_open(const gm_model *model, const gm_file *file, gm__load_sum *out, gm_error *err) {
  gm_error refusal = {.status = GM_OK};
  void *found = NULL;
  *out = (gm__load_sum){.bytes = file->input.bytes, .blocks = gm__sums_blocks(file->input.bytes)};
  gm_status status = gm__sums_load(&model->services, file->path, out->bytes, &out->wanted, &refusal);
  if (status == GM_ERR_NOT_SUPPORTED) return GM_OK;
  if (status && err) *err = refusal;
  if (!status && out->wanted) status = gm__model_alloc(&model->services, out->blocks, sizeof *out->found, &found, err);
  out->found = found;
  return status;
}

gm_status gm__load_sums_make(gm__load_sums *sums, const gm__load_files *files, gm_error *err) {
  const gm_model *model = files->model;
  void *each = NULL;
  gm_status status = gm__model_alloc(&model->services, model->shard_count, sizeof *sums->each, &each, err);
  *sums = (gm__load_sums){.model = model, .each = each};
  for (uint32_t i = 0; i < model->shard_count && !status; i++) {
    if (files->each[i]) status = sums_open(model, files->each[i], &sums->each[i], err);
  }
  return status;
}

void gm__load_sums_end(gm__load_sums *sums) {
  if (!sums->each) return;
  const gm_services *services = &sums->model->services;
  for (uint32_t i = 0; i < sums->model->shard_count; i++) {
    gm__load_sum *sum = &sums->each[i];
    gm__release(services, sum->wanted, (size_t)sum->blocks * sizeof *sum->wanted);
    gm__model_release(services, sum->found, sum->blocks, sizeof *sum->found);
  }
  gm__model_release(services, sums->each, sums->model->shard_count, sizeof *sums->each);
  sums->each = NULL;
}

uint64_t gm__load_sums_host_bytes(const gm__load_sums *sums) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; sums->each && i < sums->model->shard_count; i++) {
    const gm__load_sum *sum = &sums->each[i];
    bytes += sizeof *sum + (sum->wanted ? sum->blocks * (sizeof *sum->wanted + sizeof *sum->found) : 0);
  }
  return bytes;
}

/* ---- what arrives ---- */

static gm__load_sum *sums_of(const gm__load_sums *sums, uint64_t index) {
  return &sums->each[sums->model->tensors[index]->shard];
}

bool gm__load_sums_have(const gm__load_sums *sums, uint64_t index, const gm__read_range *range) {
  return sums->each && range->bytes && !range->run && sums_of(sums, index)->wanted;
}

void gm__load_sums_add(const gm__load_sums *sums, uint64_t index, const gm__read_range *range, uint64_t from,
                       const unsigned char *data, uint64_t bytes) {
  const gm__load_sum *sum = sums_of(sums, index);
  const uint64_t begin = range->at + from, end = begin + bytes;
  const uint64_t until = end == sum->bytes ? end : end / SUMS_PAGE * SUMS_PAGE;
  for (uint64_t at = gm__round_up(begin, SUMS_PAGE), count; at < until; at += count) {
    count = gm__min(until - at, GM__SUM_BLOCK - at % GM__SUM_BLOCK);
    atomic_fetch_add(&sum->found[at / GM__SUM_BLOCK], gm__sums_of(data + (at - begin), count, at));
  }
}

/* ---- what one range alone has not ---- */

/* A walk over the pages of one file. */
typedef struct sums_walk {
  const gm__load_sums *sums;
  const gm__load_sum *sum;
  gm_file *file;
  const gm__read_range *ranges;
  uint64_t first, end; /* the tensors of the file that are not behind the walk */
  gm__load_look look;
  void *user;
} sums_walk;

static bool sums_is_in(const sums_walk *walk, uint64_t index) {
  return gm__load_sums_have(walk->sums, index, &walk->ranges[index]);
}

/* Goes on to the first range that reaches behind `at`. */
static void sums_go(sums_walk *walk, uint64_t at) {
  while (walk->first < walk->end) {
    const gm__read_range *range = &walk->ranges[walk->first];
    if (sums_is_in(walk, walk->first) && range->at + range->bytes > at) break;
    walk->first++;
  }
}

/* Whether one range has all of [at, end). */
static bool sums_whole(const sums_walk *walk, uint64_t at, uint64_t end) {
  const gm__read_range *range = &walk->ranges[walk->first];
  return walk->first < walk->end && range->at <= at && end <= range->at + range->bytes;
}

/* Compares what a range has of a page with the file. */
static gm_status sums_compare(const sums_walk *walk, uint64_t index, uint64_t at, const unsigned char *page,
                              uint64_t bytes, gm_error *err) {
  const gm__read_range *range = &walk->ranges[index];
  const uint64_t begin = gm__max(at, range->at), end = gm__min(at + bytes, range->at + range->bytes);
  unsigned char mine[SUMS_PAGE];
  const gm_status status = walk->look(walk->user, index, begin - range->at, mine, end - begin, err);
  if (status || memcmp(mine, page + (begin - at), (size_t)(end - begin)) == 0) return status;
  return gm__fail(err, GM_ERR_IO, "gm_model_load", "tensor \"%.100s\": read back, it differs from its file",
                  walk->sums->model->tensors[index]->name.text);
}

static gm_status sums_page(sums_walk *walk, uint64_t at, uint64_t bytes, gm_error *err) {
  unsigned char page[SUMS_PAGE];
  gm_status status = gm_file_read(walk->file, at, page, bytes, err);
  if (status) return status;
  atomic_fetch_add(&walk->sum->found[at / GM__SUM_BLOCK], gm__sums_of(page, bytes, at));
  for (uint64_t i = walk->first; i < walk->end && !status && walk->ranges[i].at < at + bytes; i++) {
    const bool meets = sums_is_in(walk, i) && walk->ranges[i].at + walk->ranges[i].bytes > at;
    if (meets) status = sums_compare(walk, i, at, page, bytes, err);
  }
  return status;
}

/* One MiB. Missing pages are added, and its checksum is compared. */
static gm_status sums_block(sums_walk *walk, uint64_t begin, gm_error *err) {
  const gm__load_sum *sum = walk->sum;
  const uint64_t end = gm__min(begin + GM__SUM_BLOCK, sum->bytes);
  gm_status status = GM_OK;
  sums_go(walk, begin);
  for (uint64_t at = begin, bytes; at < end && !status && !sums_whole(walk, at, end); at += bytes) {
    bytes = gm__min(end - at, SUMS_PAGE);
    sums_go(walk, at);
    if (!sums_whole(walk, at, at + bytes)) status = sums_page(walk, at, bytes, err);
  }
  const uint64_t block = begin / GM__SUM_BLOCK;
  if (status || atomic_load(&sum->found[block]) == sum->wanted[block]) return status;
  return gm__sums_differ(walk->file->path, sum->bytes, begin, err);
}

/* The first range of the file that is compared; `end`: there is none. */
static uint64_t sums_first(const sums_walk *walk) {
  uint64_t i = walk->first;
  while (i < walk->end && !sums_is_in(walk, i)) i++;
  return i;
}

/* Each MiB in which the header has bytes, and none of the ranges. *next: the one behind them. */
static gm_status sums_header(sums_walk *walk, uint64_t header, uint64_t *next, gm_error *err) {
  const uint64_t first = walk->ranges[sums_first(walk)].at / GM__SUM_BLOCK;
  gm_status status = GM_OK;
  *next = 0;
  while (*next < first && *next * GM__SUM_BLOCK < header && !status) {
    status = sums_block(walk, (*next)++ * GM__SUM_BLOCK, err);
  }
  return status;
}

/* Each MiB in which the header or a range has bytes. REQUIRES: there is a range */
static gm_status sums_file(sums_walk *walk, uint64_t header, gm_error *err) {
  const gm_model *model = walk->sums->model;
  uint64_t next = 0; /* the MiB behind those that are done */
  gm_status status = sums_header(walk, header, &next, err);
  for (uint64_t i = walk->first; i < walk->end && !status; i++) {
    const gm__read_range *range = &walk->ranges[i];
    if (!sums_is_in(walk, i)) continue;
    for (next = gm__max(next, range->at / GM__SUM_BLOCK); next * GM__SUM_BLOCK < range->at + range->bytes && !status;) {
      gm_error inner = {.status = GM_OK};
      status = sums_block(walk, next++ * GM__SUM_BLOCK, &inner);
      if (status) gm__load_fail(model, model->tensors[i], &inner, err);
    }
  }
  return status;
}

gm_status gm__load_sums_finish(const gm__load_sums *sums, const gm__read_range *ranges, gm__load_look look, void *user,
                               uint64_t *out_files, gm_error *err) {
  const gm_model *model = sums->model;
  gm_status status = GM_OK;
  *out_files = 0;
  for (uint64_t i = 0, end; i < model->tensor_count && !status; i = end) {
    const uint32_t shard = model->tensors[i]->shard;
    for (end = i; end < model->tensor_count && model->tensors[end]->shard == shard;) end++;
    sums_walk walk = {.sums = sums, .ranges = ranges, .first = i, .end = end, .look = look, .user = user};
    walk.sum = &sums->each[shard];
    const uint64_t first = sums_first(&walk);
    if (first == end) continue;
    walk.file = ranges[first].file;
    status = sums_file(&walk, model->shards[shard].contents.data_at, err);
    *out_files += 1;
  }
  return status;
}
