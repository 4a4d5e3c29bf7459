#include "core/trace/event_reader.h"

static uint64_t reader_bits(uint64_t word, int at, int bits) { return word >> at & ((UINT64_C(1) << bits) - 1); }

static uint64_t reader_take(gm__event_reader *reader) { return reader->events->words[reader->at++]; }

/* Loads the chunk at that place of the scratch file over the one in memory. */
static gm_status reader_load(gm__event_reader *reader, uint32_t slot, gm_error *err) {
  gm__event_buffer *events = reader->events;
  const gm__recorder *recorder = events->recorder;
  gm_status status = gm__output_file_read_at(&recorder->scratch, recorder->path, (uint64_t)slot * sizeof events->words,
                                             events->words, sizeof events->words, err);
  if (status) return status;
  events->used = (uint32_t)events->words[0];
  reader->next = (uint32_t)(events->words[0] >> 32);
  reader->at = 1;
  return GM_OK;
}

static void reader_plain(gm__event_reader *reader, uint64_t word) {
  reader->event = (gm__event){
      .now = reader->event.now + reader_bits(word, GM__EVENT_DELTA_AT, GM__EVENT_DELTA_BITS),
      .bytes = word >> GM__EVENT_BYTES_AT,
      .stream = reader->stream,
      .number = (uint32_t)reader_bits(word, GM__EVENT_NUMBER_AT, GM__EVENT_NUMBER_BITS),
  };
}

static void reader_wide(gm__event_reader *reader, uint64_t word) {
  const uint64_t what = reader_bits(word, 2, 2);
  reader->event = (gm__event){.now = reader_take(reader), .stream = reader->stream};
  if (what == GM__EVENT_WIDE_MARK) {
    reader->event.label = (const char *)&reader->events->words[reader->at];
    reader->event.bytes = word >> 4;
    reader->at += (uint32_t)((reader->event.bytes + 7) / 8);
    return;
  }
  reader->event.number = (uint32_t)reader_take(reader);
  if (what == GM__EVENT_WIDE_ALLOC) reader->event.bytes = reader_take(reader);
}

gm_status gm__event_reader_next(gm__event_reader *reader, gm_error *err) {
  for (;;) {
    while (reader->at == reader->events->used) {
      if (reader->chunk++ == reader->events->spilled) {
        reader->event = (gm__event){.now = 0};
        return GM_OK;
      }
      gm_status status = reader_load(reader, reader->next, err);
      if (status) return status;
    }
    const uint64_t word = reader_take(reader);
    const gm__event_kind kind = (gm__event_kind)(word & 3);
    if (kind == GM__EVENT_STREAM) {
      reader->stream = word >> 2;
      continue;
    }
    if (kind == GM__EVENT_WIDE) {
      reader_wide(reader, word);
    } else {
      reader_plain(reader, word);
    }
    return GM_OK;
  }
}

gm_status gm__event_reader_begin(gm__event_reader *reader, gm__event_buffer *events, gm_error *err) {
  *reader = (gm__event_reader){.events = events, .at = 1};
  gm_status status = events->spilled ? reader_load(reader, events->first, err) : GM_OK;
  return status ? status : gm__event_reader_next(reader, err);
}
