/* The life of a pool on record, under failures: what was recorded is what happened, or nothing is left of it. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "fault/fault.h"
#include "fault/scenario.h"
#include "gm/advice.h"
#include "gm/record.h"

enum { RECORD_MARKS = 2 /* those that gm_pool_record_begin leaves */ };

static gm_status record_wrong(const char *what, gm_error *err) {
  snprintf(err->message, sizeof err->message, "%s", what);
  return GM_ERR_FORMAT;
}

/* Blocks of both streams and of the host, freed where they were taken and elsewhere; two are left. */
static gm_status record_life(session *s, uint64_t *marks, gm_error *err) {
  gm_status status = session_take_on(s, 100000, s->streams[0], err);
  if (status == GM_OK) status = session_give(s, s->streams[0], err);
  if (status == GM_OK) status = session_take_on(s, 3000, s->streams[1], err);
  if (status == GM_OK) status = session_take_on(s, 3000, NULL, err);
  if (status == GM_OK) status = gm_pool_record_mark(s->pool, "half", err);
  *marks += status == GM_OK;
  if (status == GM_OK) status = session_take_on(s, 70000, s->streams[0], err);
  if (status == GM_OK) status = session_give(s, s->streams[1], err);
  if (status) return status;
  *marks += gm_tracker_mark(gm_pool_tracker(s->pool)) != 0;
  gm_pool_trim(s->pool, 0);
  return GM_OK;
}

/* Reading it fails, or tells the same. */
static gm_status record_read(const session *s, const char *path, const gm_recording *recording, gm_error *err) {
  gm_trace_profile profile = {.struct_size = sizeof profile};
  const gm_status status = gm_trace_profile_read(&fault_services, path, &profile, err);
  if (status) return status;
  const bool same = profile.allocs == recording->allocs && profile.frees == recording->frees &&
                    profile.marks == recording->marks && profile.end_live_blocks == s->block_count;
  return same ? GM_OK : record_wrong("the trace is not what was recorded", err);
}

static gm_status record_check(session *s, const gm_stats *before, uint64_t marks, const gm_recording *recording,
                              gm_error *err) {
  gm_stats after = {.struct_size = sizeof after};
  gm_pool_stats(s->pool, &after);
  const bool same = recording->already_alive == before->active && recording->marks == marks &&
                    recording->allocs == before->active + after.allocs - before->allocs &&
                    recording->frees == after.frees - before->frees;
  return same ? GM_OK : record_wrong("the recording's counts are not those of the pool", err);
}

/* A recording that has begun ends, whatever happened meanwhile. */
static gm_status record_once(session *s, const char *path, gm_error *err) {
  gm_recording recording = {.struct_size = sizeof recording};
  gm_stats before = {.struct_size = sizeof before};
  gm_error failure;
  struct stat file;
  uint64_t marks = RECORD_MARKS;
  gm_pool_stats(s->pool, &before);
  gm_status status = gm_pool_record_begin(s->pool, path, err);
  if (status) return status == GM_ERR_NOT_SUPPORTED ? GM_OK : status; /* packed, without zlib */
  status = record_life(s, &marks, err);
  const gm_status ended = gm_pool_record_end(s->pool, &recording, &failure);
  if (stat(path, &file) != 0) return record_wrong("there is no file", err);
  if (ended && file.st_size) return record_wrong("half a trace is left", err);
  if (ended && status == GM_OK) *err = failure;
  if (ended) return status ? status : ended;
  gm_status right = record_check(s, &before, marks, &recording, err);
  if (right == GM_OK && (uint64_t)file.st_size != recording.file_bytes) right = record_wrong("another length", err);
  if (right || status) return right ? right : status;
  return record_read(s, path, &recording, err);
}

/* The first recording begins before the first block, the second has what the first left. */
static gm_status record_pool(session *s, gm_strategy strategy, gm_error *err) {
  const gm_pool_params params = {.struct_size = sizeof params, .name = "record", .strategy = strategy, .track = true};
  char packed[4200];
  snprintf(packed, sizeof packed, "%s.gz", s->trace);
  gm_status status = gm_pool_create(s->device, &params, &s->pool, err);
  if (status == GM_OK) status = record_once(s, s->trace, err);
  if (status == GM_OK) status = record_once(s, packed, err);
  while (status == GM_OK && s->block_count) status = session_give(s, s->streams[0], err);
  if (status == GM_OK) status = gm_pool_destroy(s->pool, err);
  if (status == GM_OK) s->pool = NULL;
  return status;
}

gm_status scenario_record(session *s, gm_error *err) {
  gm_status status = session_open_device(s, err);
  for (int i = 0; i < 2 && status == GM_OK; i++) status = gm_stream_create(s->device, &s->streams[i], err);
  if (status == GM_OK) status = record_pool(s, GM_STRATEGY_BUCKET, err);
  if (status == GM_OK) status = record_pool(s, GM_STRATEGY_BEST_FIT, err);
  return status;
}
