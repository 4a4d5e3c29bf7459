/* Copies with codecs on the devices that are there, and on the simulated drivers. The codecs are gm's own and a
 * program's. There are both directions, pieces smaller and larger than a slot, a device without streams, and no host
 * memory. The first argument names the only backend to try. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include "backends/cpu/cpu_backend.h"
#include "gm/transfer.h"
#include "support/codec_scene.h"
#include "support/random.h"
#include "transfer/transfer_world.h"

enum { PLAIN = WORLD_BYTES / 4 * 4, LARGE = 9 << 19, HALF = 2 * WORLD_BYTES, MOST = 200 };

static const char *only;
static const char *const backends[] = {"cpu", "opencl", "vulkan"};
static gm_copy copies[MOST];
static unsigned char piece[2 * HALF];

/* Floats that 16 bits can hold. */
static void fill_floats(unsigned seed) {
  for (uint64_t i = 0; i < PLAIN / 4; i++) {
    const float number = (float)((i * 7 + i / 251 + seed) % 200);
    memcpy(world_sent + 4 * i, &number, sizeof number);
  }
  memset(world_got, 0, WORLD_BYTES);
}

/* --- a program's codec: each chunk of 3 bytes becomes 4; it may also refuse to be cut --- */

static uint64_t own_most(void *user, uint64_t bytes) {
  (void)user;
  return bytes / 3 * 4;
}

static gm_status own_encode(void *user, const void *from, uint64_t bytes, void *to, uint64_t capacity,
                            uint64_t *out_bytes, gm_error *err) {
  (void)user, (void)err;
  if (bytes / 3 * 4 > capacity) return GM_ERR_OVER_LIMIT;
  for (uint64_t i = 0; i < bytes / 3; i++) {
    memcpy((unsigned char *)to + 4 * i, (const unsigned char *)from + 3 * i, 3);
    ((unsigned char *)to)[4 * i + 3] = 0x5a;
  }
  *out_bytes = bytes / 3 * 4;
  return GM_OK;
}

static gm_status own_decode(void *user, const void *from, uint64_t bytes, void *to, uint64_t capacity,
                            uint64_t *out_bytes, gm_error *err) {
  (void)user, (void)err;
  if (bytes % 4 || bytes / 4 * 3 > capacity) return GM_ERR_FORMAT;
  for (uint64_t i = 0; i < bytes / 4; i++) {
    if (((const unsigned char *)from)[4 * i + 3] != 0x5a) return GM_ERR_FORMAT;
    memcpy((unsigned char *)to + 3 * i, (const unsigned char *)from + 4 * i, 3);
  }
  *out_bytes = bytes / 4 * 3;
  return GM_OK;
}

static const gm_codec cut_codec = {sizeof cut_codec, 3, "own", NULL, own_most, own_encode, own_decode, 3};
static const gm_codec whole_codec = {sizeof whole_codec, 3, "own", NULL, own_most, own_encode, own_decode, 0};

/* --- copies --- */

static gm_copy coded(const world_end *end, bool up, uint64_t at, uint64_t bytes, void *host, uint64_t host_bytes,
                     const gm_codec *codec, gm_codec_way way) {
  const gm_end block = {.pool = end->pool, .block = &end->block, .offset = at}, mine = {.host = host};
  return (gm_copy){.struct_size = sizeof(gm_copy),
                   .to = up ? block : mine,
                   .from = up ? mine : block,
                   .bytes = bytes,
                   .codec = codec,
                   .host_bytes = host_bytes,
                   .codec_way = way};
}

static void run(const world_end *end, uint64_t count, gm_stream *stream) {
  gm_transfer_stats stats = {.struct_size = sizeof stats};
  const gm_transfer_params params = {.struct_size = sizeof params, .stream = stream};
  gm_transfer *t = NULL;
  world_ok(gm_transfer_start(end->device, copies, count, &params, &t, err));
  world_ok(gm_transfer_wait(t, UINT64_MAX, &stats, err));
  world_ok(gm_transfer_release(t, err));
  assert_int_equal(stats.useful_bytes, stats.total_bytes);
}

/* Encoded on the way up and decoded on the way down, in copies of any size. The device has what the codec makes. */
static void check_encoded_up(const world_end *end, gm_stream *stream, const gm_codec *codec, uint64_t plain_unit,
                             uint64_t coded_unit, uint64_t seed) {
  const uint64_t units = LARGE / (plain_unit > coded_unit ? plain_unit : coded_unit);
  uint64_t made;
  for (int up = 1; up >= 0; up--) {
    uint64_t count = 0, random = seed;
    for (uint64_t at = 0; at < units; count++) {
      uint64_t some = test_log_uniform(&random, 1 << 18);
      if (some > units - at || count == MOST - 1) some = units - at;
      copies[count] =
          coded(end, up, at * coded_unit, some * coded_unit, (up ? world_sent : world_got) + at * plain_unit,
                some * plain_unit, codec, up ? GM_CODEC_ENCODE : GM_CODEC_DECODE);
      at += some;
    }
    run(end, count, stream);
    if (!up) continue;
    world_read(end);
    world_ok(gm_codec_encode(codec, world_sent, units * plain_unit, piece, sizeof piece, &made, err));
    assert_int_equal(made, units * coded_unit);
    assert_memory_equal(world_got, piece, made);
    memset(world_got, 0, WORLD_BYTES);
  }
  assert_memory_equal(world_sent, world_got, units * plain_unit);
}

/* Decoded on the way up and encoded on the way down, as pieces that are whole: a small one and a large one. */
static void check_decoded_up(const world_end *end, gm_stream *stream, const gm_codec *codec) {
  const uint64_t small = 99999, bytes[2] = {small, LARGE - small};
  uint64_t made[2] = {0, 0}, at = 0;
  unsigned char *put = piece;
  for (int i = 0; i < 2; i++, at = small) {
    world_ok(gm_codec_encode(codec, world_sent + at, bytes[i], put, HALF, &made[i], err));
    copies[i] = coded(end, true, at, bytes[i], put, made[i], codec, GM_CODEC_DECODE);
    put += made[i];
  }
  run(end, 2, stream);
  world_read(end);
  assert_memory_equal(world_sent, world_got, LARGE);
  memset(world_got, 0, WORLD_BYTES);
  memset(piece, 0, sizeof piece);
  for (int i = 0; i < 2; i++) {
    unsigned char *room = piece + (i ? HALF : 0);
    copies[i] = coded(end, false, i ? small : 0, bytes[i], room, HALF, codec, GM_CODEC_ENCODE);
    copies[i].out_host_bytes = &made[i];
  }
  run(end, 2, stream);
  for (int i = 0; i < 2; i++) {
    uint64_t plain = 0;
    world_ok(
        gm_codec_decode(codec, piece + (i ? HALF : 0), made[i], world_got + (i ? small : 0), bytes[i], &plain, err));
    assert_int_equal(plain, bytes[i]);
  }
  assert_memory_equal(world_sent, world_got, LARGE);
}

static void check_end(const world_end *end, gm_stream *stream) {
  uint64_t most;
  fill_floats(1);
  check_encoded_up(end, stream, codec("bf16"), 4, 2, 1);
  check_encoded_up(end, stream, codec("fp16"), 4, 2, 2);
  check_encoded_up(end, stream, &cut_codec, 3, 4, 3);
  check_encoded_up(end, stream, &whole_codec, 3, 4, 4);
  check_decoded_up(end, stream, &whole_codec);
  world_ok(gm_codec_most(codec("planes"), LARGE, &most, err));
  const gm_status has_zstd = gm_codec_encode(codec("planes"), world_sent, 4096, piece, sizeof piece, &most, NULL);
  if (has_zstd == GM_OK) check_decoded_up(end, stream, codec("planes"));
}

static bool open_world(transfer_world *w, const char *backend) {
  world_begin(w);
  if (world_add(w, backend, 0)) return true;
  world_finish(w);
  return false;
}

static void bytes_change_on_their_way_on_every_device(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++) {
    transfer_world w;
    if (only && i) return;
    if (!open_world(&w, only ? only : backends[i])) continue;
    check_end(&w.ends[0], NULL);
    check_end(&w.ends[0], w.ends[0].stream);
    world_finish(&w);
  }
}

static gm_status info_without_streams(void *driver, uint32_t index, void *device, gm_device_info *out, gm_error *err) {
  const gm_status status = gm__cpu_backend.device_info(driver, index, device, out, err);
  out->capabilities &= ~(uint64_t)GM_CAP_STREAMS;
  return status;
}

static void they_change_where_there_is_no_stream(void **state) {
  (void)state;
  transfer_world w;
  gm_backend_ops ops = gm__cpu_backend;
  world_end *end = &w.ends[0];
  if (only) return;
  world_begin(&w);
  ops.name = "streamless";
  ops.api = GM_API_OTHER;
  ops.device_info = info_without_streams;
  world_ok(gm_backend_register(w.ctx, &ops, err));
  world_ok(gm_device_open_index(w.ctx, "streamless", 0, &end->device, err));
  world_ok(gm_pool_create(end->device, NULL, &end->pool, err));
  const gm_request request = {.bytes = WORLD_BYTES};
  assert_true(gm_acquired(gm_alloc(end->pool, &request, &end->block)));
  check_end(end, NULL);
  assert_int_equal(gm_free(end->pool, &end->block, NULL), GM_OK);
  world_ok(gm_pool_destroy(end->pool, err));
  world_ok(gm_device_close(end->device, err));
  world_finish(&w);
}

static void each_request_for_host_memory_may_fail(void **state) {
  (void)state;
  const uint64_t large = LARGE / 3 * 3;
  for (size_t n = 1; n < 1000; n++) {
    transfer_world w;
    gm_error failure = {.message = ""};
    gm_transfer *t = NULL;
    if (!open_world(&w, only ? only : "cpu")) return;
    copies[0] = coded(&w.ends[0], true, 0, 400, world_sent, 300, &whole_codec, GM_CODEC_ENCODE);
    copies[1] = coded(&w.ends[0], true, 0, large, piece, large / 3 * 4, &whole_codec, GM_CODEC_DECODE);
    world_ok(gm_codec_encode(&whole_codec, world_sent, large, piece, sizeof piece, &copies[1].host_bytes, err));
    w.host.fail_at = atomic_load(&w.host.calls) + n;
    const gm_status status = gm_transfer_start(w.ends[0].device, copies, 2, NULL, &t, &failure);
    const bool reached = atomic_load(&w.host.calls) >= w.host.fail_at;
    w.host.fail_at = 0;
    assert_int_equal(status == GM_OK, t != NULL);
    if (status) assert_int_equal(status, GM_ERR_OUT_OF_HOST_MEMORY);
    world_ok(gm_transfer_release(t, err));
    world_finish(&w);
    if (!reached) return;
  }
  fail_msg("it never ends");
}

/* A piece of `planes` is larger than all memory that a transfer takes for it, up and down, but for the ring. */
static void large_planes_need_no_room(void **state) {
  transfer_world w;
  uint64_t made;
  bool fits = false;
  (void)state;
  if (!open_world(&w, only ? only : "cpu")) return;
  const world_end *end = &w.ends[0];
  fill_floats(5);
  if (gm_codec_encode(codec("planes"), world_sent, LARGE, piece, sizeof piece, &made, NULL) == GM_OK) {
    /* The first round makes the ring, and on a busy machine a later one a slot of it. */
    for (int round = 0; !fits; round++) {
      const uint64_t live = atomic_load(&w.host.live_bytes);
      atomic_store(&w.host.peak_bytes, live);
      copies[0] = coded(end, true, 0, LARGE, piece, made, codec("planes"), GM_CODEC_DECODE);
      run(end, 1, NULL);
      copies[0] = coded(end, false, 0, LARGE, piece, sizeof piece, codec("planes"), GM_CODEC_ENCODE);
      copies[0].out_host_bytes = &made;
      run(end, 1, NULL);
      fits = round && atomic_load(&w.host.peak_bytes) - live < LARGE / 16;
      assert_in_range(round, 0, 16);
    }
    world_read(end);
    assert_memory_equal(world_sent, world_got, LARGE);
  }
  world_finish(&w);
}

int main(int argc, char **argv) {
  only = argc > 1 ? argv[1] : NULL;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bytes_change_on_their_way_on_every_device),
      cmocka_unit_test(they_change_where_there_is_no_stream),
      cmocka_unit_test(large_planes_need_no_room),
      cmocka_unit_test(each_request_for_host_memory_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
