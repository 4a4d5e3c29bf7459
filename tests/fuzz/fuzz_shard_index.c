/* Any bytes as the index of a sharded model. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/model/shard_index.h"
#include "fuzz/fuzz.h"
#include "support/counted_services.h"

static void check_index(const gm__shard_index *index) {
  fuzz_require(index->count > 0 && index->shard_count > 0 && index->shard_count <= index->count);
  for (uint64_t i = 0; i < index->count; i++) {
    const gm__shard_entry *entry = &index->entries[i];
    fuzz_require(entry->shard < index->shard_count);
    fuzz_require(entry->file.length > 0 && !strchr(entry->file.text, '/') && strcmp(entry->file.text, "..") != 0);
    fuzz_require(strlen(entry->file.text) == entry->file.length && strlen(entry->tensor.text) == entry->tensor.length);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  counted_services counted;
  counted_services_init(&counted);
  gm__shard_index index;
  gm_error err = {0};
  gm_status status = gm__shard_index_parse(&counted.services, bytes, length, "fuzz", &index, &err);
  fuzz_require(status == GM_OK || (err.status == status && err.message[0]));
  if (status == GM_OK) check_index(&index);
  gm__shard_index_free(&counted.services, &index);
  fuzz_require(counted.live_bytes == 0 && counted.wrong_releases == 0);
  return 0;
}
