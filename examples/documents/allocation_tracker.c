/* BufferId, BufferMetadata, BufferLocation and AllocationTracker: what is alive, where, since when, under which tag. */
#include "example.h"
#include "gm/tracker.h"

int main(void) {
  gm_context *ctx;
  gm_tracker *tracker;
  DO(gm_context_create(NULL, &ctx, &err));
  DO(gm_tracker_create(ctx, &tracker, &err));
  const gm_track_entry entry = {.bytes = 1024 * 1024,
                                .elements = 256 * 1024,
                                .location = GM_LOCATION_DEVICE, /* or PINNED, HOST: for those that fell back */
                                .tag = gm_tag(ctx, "attention_scores")};
  const uint64_t first = gm_tracker_track(tracker, &entry), second = gm_tracker_track(tracker, &entry);
  CLAIM(first != 0 && second > first); /* test_buffer_id_uniqueness */
  CLAIM(gm_tracker_count(tracker) == 2 && gm_tracker_total_bytes(tracker) == 2 << 20);

  gm_track_entry old[4];
  CLAIM(gm_tracker_find_old(tracker, UINT64_C(60000000000), old, 4) == 0); /* older than 60 s */
  CLAIM(gm_tracker_find_old(tracker, 0, old, 4) == 2);
  CLAIM(old[0].id == first && strcmp(gm_tag_name(ctx, old[0].tag), "attention_scores") == 0);
  CLAIM(gm_tracker_untrack(tracker, first) == GM_OK && gm_tracker_untrack(tracker, first) == GM_ERR_NOT_FOUND);
  CLAIM(gm_tracker_total_bytes(tracker) == 1 << 20 && gm_tracker_peak_bytes(tracker) == 2 << 20);
  gm_tracker_destroy(tracker);
  DO(gm_context_destroy(ctx, &err));
  puts("two buffers were tracked");
  return 0;
}
