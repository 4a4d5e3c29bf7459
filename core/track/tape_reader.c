#include "core/track/tape_reader.h"

static uint64_t reader_bits(uint64_t word, int at, int bits) { return word >> at & ((UINT64_C(1) << bits) - 1); }

static uint64_t reader_take(gm__tape_reader *reader) { return reader->tape->words[reader->at++]; }

/* The chunk at that place of the scratch file takes the place of the one in memory. */
static gm_status reader_load(gm__tape_reader *reader, uint32_t slot, gm_error *err) {
  gm__tape *tape = reader->tape;
  const gm__recorder *recorder = tape->recorder;
  gm_status status = gm__output_file_read_at(&recorder->scratch, recorder->path, (uint64_t)slot * sizeof tape->words,
                                             tape->words, sizeof tape->words, err);
  if (status) return status;
  tape->used = (uint32_t)tape->words[0];
  reader->next = (uint32_t)(tape->words[0] >> 32);
  reader->at = 1;
  return GM_OK;
}

static void reader_plain(gm__tape_reader *reader, uint64_t word) {
  reader->event = (gm__tape_event){
      .now = reader->event.now + reader_bits(word, GM__TAPE_DELTA_AT, GM__TAPE_DELTA_BITS),
      .bytes = word >> GM__TAPE_BYTES_AT,
      .stream = reader->stream,
      .number = (uint32_t)reader_bits(word, GM__TAPE_NUMBER_AT, GM__TAPE_NUMBER_BITS),
  };
}

static void reader_wide(gm__tape_reader *reader, uint64_t word) {
  const uint64_t what = reader_bits(word, 2, 2);
  reader->event = (gm__tape_event){.now = reader_take(reader), .stream = reader->stream};
  if (what == GM__TAPE_WIDE_MARK) {
    reader->event.label = (const char *)&reader->tape->words[reader->at];
    reader->event.bytes = word >> 4;
    reader->at += (uint32_t)((reader->event.bytes + 7) / 8);
    return;
  }
  reader->event.number = (uint32_t)reader_take(reader);
  if (what == GM__TAPE_WIDE_ALLOC) reader->event.bytes = reader_take(reader);
}

gm_status gm__tape_reader_next(gm__tape_reader *reader, gm_error *err) {
  for (;;) {
    while (reader->at == reader->tape->used) {
      if (reader->chunk++ == reader->tape->spilled) {
        reader->event = (gm__tape_event){.now = 0};
        return GM_OK;
      }
      gm_status status = reader_load(reader, reader->next, err);
      if (status) return status;
    }
    const uint64_t word = reader_take(reader);
    const gm__tape_kind kind = (gm__tape_kind)(word & 3);
    if (kind == GM__TAPE_STREAM) {
      reader->stream = word >> 2;
      continue;
    }
    if (kind == GM__TAPE_WIDE) {
      reader_wide(reader, word);
    } else {
      reader_plain(reader, word);
    }
    return GM_OK;
  }
}

gm_status gm__tape_reader_begin(gm__tape_reader *reader, gm__tape *tape, gm_error *err) {
  *reader = (gm__tape_reader){.tape = tape, .at = 1};
  gm_status status = tape->spilled ? reader_load(reader, tape->first, err) : GM_OK;
  return status ? status : gm__tape_reader_next(reader, err);
}
