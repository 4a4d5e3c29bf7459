/* Layers over devices: every split tried on small cases, every split proven on many. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "gm/fit.h"
#include "support/counted_services.h"
#include "support/great_many.h"
#include "support/random.h"

enum { DEVICES = 3, LAYERS = 6, SMALL_SETS = 3000, MANY_SETS = 10000, MANY_DEVICES = 8, MANY_LAYERS = 40 };

typedef struct scene {
  gm_fit_device devices[GM_FIT_DEVICES_MAX];
  gm_fit_layer layers[GM_FIT_LAYERS_MAX];
  gm_fit_request request;
} scene;

/* Figures of small sets are below the first of these. */
#define NOTHING_USED (INT64_C(1) << 30)
#define FEWER (INT64_C(1) << 31)

static uint64_t below(uint64_t *random, uint64_t limit) { return test_random(random) % limit; }

static void scene_make(scene *s, uint64_t *random, uint32_t devices, uint32_t layers, uint64_t unit) {
  uint64_t free_bytes = layers * unit * 2 / devices;
  for (uint32_t i = 0; i < devices; i++) {
    s->devices[i] = (gm_fit_device){.free_bytes = below(random, free_bytes + 1),
                                    .margin_bytes = below(random, unit + 1),
                                    .overhead_bytes = below(random, unit + 1)};
  }
  for (uint32_t i = 0; i < layers; i++) {
    s->layers[i] = (gm_fit_layer){.weight_bytes = below(random, unit),
                                  .kv_bytes = below(random, unit / 2),
                                  .compute_bytes = below(random, unit / 2)};
    if (below(random, 3)) s->layers[i].expert_bytes = below(random, unit);
  }
  s->request =
      (gm_fit_request){.struct_size = sizeof s->request,
                       .devices = s->devices,
                       .device_count = devices,
                       .layers = s->layers,
                       .layer_count = layers,
                       .least_share_percent = below(random, 2) ? (uint32_t)below(random, 60) : 0,
                       .all_on_devices = below(random, 8) == 0,
                       .experts_on_host = below(random, 2),
                       .spread = below(random, 2),
                       .host_free_bytes = below(random, 2) ? below(random, layers * unit * 2) : GM_UNKNOWN_BYTES,
                       .host_fixed_bytes = below(random, unit),
                       .partial_bytes = below(random, 2) ? below(random, unit) : 0};
}

/* The bytes that layers first..end take, with experts only of those from `experts` on. */
static uint64_t plain_need(const scene *s, uint32_t first, uint32_t end, uint32_t experts) {
  uint64_t sum = 0, compute = 0;
  for (uint32_t i = first; i < end; i++) {
    const gm_fit_layer *layer = &s->layers[i];
    sum += layer->weight_bytes + layer->kv_bytes + (i >= experts ? layer->expert_bytes : 0);
    if (layer->compute_bytes > compute) compute = layer->compute_bytes;
  }
  return sum + compute;
}

/* -1: it does not fit; else what is left on the tightest device, `most` when none is used. */
static int64_t plain_headroom(const scene *s, uint32_t on_host, uint32_t experts, const uint32_t *ends, int64_t most) {
  const gm_fit_request *r = &s->request;
  uint64_t host = r->host_fixed_bytes + plain_need(s, 0, on_host, LAYERS * 100);
  for (uint32_t i = 0; i < (experts > on_host ? experts : on_host); i++) host += s->layers[i].expert_bytes;
  if (r->host_free_bytes != GM_UNKNOWN_BYTES && host > r->host_free_bytes) return -1;
  for (uint32_t d = 0, first = on_host; d < r->device_count; first = ends[d++]) {
    const gm_fit_device *device = &s->devices[d];
    if (first == ends[d]) continue;
    if ((ends[d] - first) * 100 < r->least_share_percent * r->layer_count) return -1;
    uint64_t need = plain_need(s, first, ends[d], experts) + device->overhead_bytes + device->margin_bytes;
    if (on_host || experts) need += r->partial_bytes;
    if (need > device->free_bytes) return -1;
    if ((int64_t)(device->free_bytes - need) < most) most = (int64_t)(device->free_bytes - need);
  }
  return most;
}

/* The lack is the need of all layers beyond the devices' room. */
static void check_lack(const scene *s, const gm_fit_plan *plan) {
  const gm_fit_request *r = &s->request;
  uint64_t room = 0, need = plain_need(s, 0, r->layer_count, 0);
  for (uint32_t d = 0; d < r->device_count; d++) {
    const gm_fit_device *device = &s->devices[d];
    const uint64_t taken = device->margin_bytes + device->overhead_bytes;
    if (device->free_bytes > taken) room += device->free_bytes - taken;
  }
  assert_int_equal(plan->lack_bytes, need > room ? need - room : 0);
  if (plan->fits && plan->device_layers == r->layer_count && !plan->host_expert_layers) {
    assert_int_equal(plan->lack_bytes, 0);
  }
}

/* A split's worth: its headroom; where devices are to be few, above that how many are left alone. -1: impossible. */
static int64_t plain_worth(const scene *s, uint32_t on_host, uint32_t experts, const uint32_t *ends) {
  int64_t headroom = plain_headroom(s, on_host, experts, ends, NOTHING_USED);
  if (headroom < 0 || s->request.spread) return headroom;
  int64_t worth = headroom;
  for (uint32_t d = 0, first = on_host; d < s->request.device_count; first = ends[d++]) {
    if (first == ends[d]) worth += FEWER;
  }
  return worth;
}

/* The best worth over all ways to end the layers of each device; -1: there is none. */
static int64_t every_split(const scene *s, uint32_t on_host, uint32_t experts, uint32_t device, uint32_t *ends) {
  uint32_t devices = s->request.device_count, layers = s->request.layer_count;
  uint32_t from = device ? ends[device - 1] : on_host;
  int64_t best = -1;
  if (device >= devices || device >= DEVICES) return from == layers ? plain_worth(s, on_host, experts, ends) : -1;
  for (ends[device] = from; ends[device] <= layers; ends[device]++) {
    uint32_t end = ends[device];
    int64_t found = every_split(s, on_host, experts, device + 1, ends);
    if (found > best) best = found;
    ends[device] = end;
  }
  return best;
}

static bool every_plan(const scene *s, uint32_t *on_host, uint32_t *experts, int64_t *worth) {
  uint32_t ends[DEVICES], layers = s->request.layer_count;
  for (*on_host = 0; *on_host <= (s->request.all_on_devices ? 0 : layers); ++*on_host) {
    for (*experts = *on_host; *experts <= (s->request.experts_on_host ? layers : *on_host); ++*experts) {
      *worth = every_split(s, *on_host, *experts, 0, ends);
      if (*worth >= 0) return true;
    }
  }
  return false;
}

static void test_small_cases_against_every_split(void **state) {
  (void)state;
  uint64_t random = 31;
  uint32_t fits = 0, split = 0, with_experts = 0, few = 0;
  scene *s = test_malloc(sizeof *s);
  const size_t sets = great_many(SMALL_SETS);
  for (size_t set = 0; set < sets; set++) {
    gm_fit_part parts[DEVICES];
    gm_fit_plan plan = {.struct_size = sizeof plan};
    uint32_t on_host, experts;
    int64_t worth;
    scene_make(s, &random, 1 + (uint32_t)below(&random, DEVICES), 1 + (uint32_t)below(&random, LAYERS), 10);
    bool expected = every_plan(s, &on_host, &experts, &worth);
    assert_int_equal(gm_place_layers(NULL, &s->request, parts, &plan, NULL), GM_OK);
    assert_int_equal(plan.fits, expected);
    check_lack(s, &plan);
    if (!expected) continue;
    fits++;
    split += plan.devices_used > 1;
    with_experts += plan.host_expert_layers > 0;
    assert_int_equal(plan.device_layers, s->request.layer_count - on_host);
    while (experts > on_host && !s->layers[experts - 1].expert_bytes) experts--; /* nothing of theirs is there */
    assert_int_equal(plan.host_expert_layers, experts - on_host);
    int64_t headroom = worth % FEWER;
    assert_true(plan.least_headroom_bytes == (headroom == NOTHING_USED ? GM_UNKNOWN_BYTES : (uint64_t)headroom));
    if (s->request.spread) continue;
    assert_int_equal(plan.devices_used, s->request.device_count - worth / FEWER);
    few += plan.devices_used > 0 && plan.devices_used < s->request.device_count;
  }
  print_message("%zu sets: %u fit, %u on several devices, %u with a device left alone, %u with experts on the host\n",
                sets, fits, split, few, with_experts);
  const size_t rare = sets < SMALL_SETS ? 60 : 20; /* of few sets it is chance how often each kind comes */
  assert_true(fits > sets / 3 && split > sets / rare && with_experts > sets / 50 && few > sets / rare);
  test_free(s);
}

/* The bytes that the host has: its layers, and experts of layers that lie on devices. */
static void prove_host(const scene *s, uint32_t on_host, uint32_t experts, const gm_fit_part *host) {
  const gm_fit_request *r = &s->request;
  uint64_t bytes = r->host_fixed_bytes + plain_need(s, 0, on_host, 0), weights = 0, kv = 0;
  for (uint32_t i = on_host; i < experts; i++) bytes += s->layers[i].expert_bytes;
  for (uint32_t i = 0; i < experts; i++) weights += s->layers[i].expert_bytes;
  for (uint32_t i = 0; i < on_host; i++) {
    weights += s->layers[i].weight_bytes;
    kv += s->layers[i].kv_bytes;
  }
  assert_true(host->first_layer == 0 && host->layer_count == on_host);
  assert_int_equal(host->bytes, bytes);
  assert_int_equal(host->weight_bytes, weights);
  assert_int_equal(host->kv_bytes, kv);
  assert_int_equal(host->weight_bytes + host->kv_bytes + host->compute_bytes, bytes - r->host_fixed_bytes);
  if (r->host_free_bytes == GM_UNKNOWN_BYTES) {
    assert_true(host->headroom_bytes == GM_UNKNOWN_BYTES);
  } else {
    assert_int_equal(host->headroom_bytes, r->host_free_bytes > bytes ? r->host_free_bytes - bytes : 0);
  }
}

/* The parts say the same as a plain sum, lie side by side, and have room. */
static void prove(const scene *s, const gm_fit_part *parts, const gm_fit_plan *plan) {
  const gm_fit_request *r = &s->request;
  uint32_t on_host = r->layer_count - plan->device_layers, experts = on_host + plan->host_expert_layers, at = on_host;
  uint32_t ends[GM_FIT_DEVICES_MAX], used = 0;
  uint64_t bytes = 0;
  for (uint32_t d = 0; d < r->device_count; d++) {
    const gm_fit_part *part = &parts[d];
    if (part->layer_count) assert_int_equal(part->first_layer, at);
    ends[d] = at + part->layer_count;
    if (part->layer_count) {
      uint64_t need = plain_need(s, at, ends[d], experts) + s->devices[d].overhead_bytes;
      if (on_host || experts) need += r->partial_bytes;
      assert_int_equal(part->bytes, need);
      assert_int_equal(part->headroom_bytes, s->devices[d].free_bytes - s->devices[d].margin_bytes - need);
      assert_int_equal(part->why[0], 0);
      used++;
      bytes += need;
    } else {
      assert_true(part->bytes == 0 && part->compute_bytes == 0 && part->first_layer == 0 && part->why[0] != 0);
      assert_int_equal(part->headroom_bytes, s->devices[d].free_bytes > s->devices[d].margin_bytes
                                                 ? s->devices[d].free_bytes - s->devices[d].margin_bytes
                                                 : 0);
    }
    at = ends[d];
  }
  assert_int_equal(at, r->layer_count);
  assert_int_equal(used, plan->devices_used);
  assert_int_equal(bytes, plan->device_bytes);
  prove_host(s, on_host, experts, &plan->host);
  if (plan->fits) assert_true(plain_headroom(s, on_host, experts, ends, INT64_MAX) >= 0);
  assert_int_equal(plan->reason[0] == 0, plan->fits && !plan->host.layer_count && !plan->host_expert_layers);
}

static void test_no_plan_is_infeasible(void **state) {
  (void)state;
  uint64_t random = 37;
  uint32_t fits = 0;
  scene *s = test_malloc(sizeof *s);
  const size_t sets = great_many(MANY_SETS);
  for (size_t set = 0; set < sets; set++) {
    gm_fit_part parts[MANY_DEVICES];
    gm_fit_plan plan = {.struct_size = sizeof plan};
    uint32_t devices = 1 + (uint32_t)below(&random, MANY_DEVICES), layers = 1 + (uint32_t)below(&random, MANY_LAYERS);
    scene_make(s, &random, devices, layers, test_log_uniform(&random, UINT64_C(1) << 34) + 4);
    assert_int_equal(gm_place_layers(NULL, &s->request, parts, &plan, NULL), GM_OK);
    prove(s, parts, &plan);
    fits += plan.fits;
  }
  assert_true(fits > sets / 4 && fits < sets);
  test_free(s);
}

static gm_fit_plan place(const scene *s, gm_fit_part *parts) {
  gm_fit_plan plan = {.struct_size = sizeof plan};
  assert_int_equal(gm_place_layers(NULL, &s->request, parts, &plan, NULL), GM_OK);
  prove(s, parts, &plan);
  return plan;
}

static scene *scene_even(uint32_t devices, uint64_t free_bytes, uint32_t layers, uint64_t weight) {
  scene *s = test_calloc(1, sizeof *s);
  for (uint32_t i = 0; i < devices; i++) s->devices[i].free_bytes = free_bytes;
  for (uint32_t i = 0; i < layers; i++) s->layers[i].weight_bytes = weight;
  s->request = (gm_fit_request){.struct_size = sizeof s->request,
                                .devices = s->devices,
                                .device_count = devices,
                                .layers = s->layers,
                                .layer_count = layers,
                                .host_free_bytes = GM_UNKNOWN_BYTES};
  return s;
}

static void test_margin_and_overhead_are_each_devices_own(void **state) {
  (void)state;
  gm_fit_part parts[2];
  scene *s = scene_even(2, 100, 16, 10);
  s->devices[1].margin_bytes = 15;
  s->devices[1].overhead_bytes = 20;
  gm_fit_plan plan = place(s, parts);
  assert_true(plan.fits && plan.device_layers == 16);
  assert_int_equal(parts[0].layer_count, 10); /* 65 bytes are left on the other */
  assert_int_equal(parts[1].layer_count, 6);
  assert_int_equal(parts[1].bytes, 80);
  assert_int_equal(parts[1].headroom_bytes, 5);
  s->devices[1].overhead_bytes = 86; /* more than there is */
  s->layers[0].weight_bytes = 0;
  plan = place(s, parts);
  assert_int_equal(plan.device_layers, 10);
  assert_string_equal(parts[1].why, "nothing is left after margin and overhead");
  assert_non_null(strstr(plan.reason, "no room for 6 of 16 layers"));
  test_free(s);
}

/* Margin and overhead may take the last byte of a device. */
static void test_nothing_left_takes_what_needs_nothing(void **state) {
  (void)state;
  gm_fit_part part;
  scene *s = scene_even(1, 100, 2, 0);
  s->devices[0].margin_bytes = 40;
  s->devices[0].overhead_bytes = 60;
  gm_fit_plan plan = place(s, &part);
  assert_true(plan.fits && plan.device_layers == 2);
  assert_int_equal(part.headroom_bytes, 0);
  s->devices[0].overhead_bytes = 61;
  assert_int_equal(place(s, &part).device_layers, 0);
  test_free(s);
}

static void test_a_device_of_little_use_is_left_out(void **state) {
  (void)state;
  gm_fit_part parts[2];
  scene *s = scene_even(2, 80, 10, 10);
  s->devices[1].free_bytes = 20;
  assert_int_equal(place(s, parts).device_layers, 10);
  s->request.least_share_percent = 30;
  assert_int_equal(place(s, parts).device_layers, 8);
  assert_string_equal(parts[1].why, "3 layer(s) at least need 30 B, 20 B is left after margin and overhead");
  s->request.least_share_percent = 0; /* a layer is the least there is */
  s->devices[1].free_bytes = 9;
  place(s, parts);
  assert_string_equal(parts[1].why, "1 layer(s) at least need 10 B, 9 B is left after margin and overhead");
  test_free(s);
}

static void test_compute_is_that_of_the_largest_layer(void **state) {
  (void)state;
  gm_fit_part part;
  scene *s = scene_even(1, 100, 8, 10);
  for (uint32_t i = 0; i < 8; i++) s->layers[i].compute_bytes = 20 - i;
  gm_fit_plan plan = place(s, &part);
  assert_true(plan.fits && plan.device_layers == 8 && part.headroom_bytes == 0 && part.compute_bytes == 20);
  s->layers[7].compute_bytes = 21;
  plan = place(s, &part);
  assert_true(plan.fits && plan.device_layers == 7 && part.first_layer == 1);
  s->request.all_on_devices = true;
  plan = place(s, &part);
  assert_false(plan.fits);
  assert_string_equal(plan.reason, "7 of 8 layers find room on the devices; the others, 30 B, do not");
  assert_int_equal(plan.lack_bytes, 1);
  s->devices[0].free_bytes += plan.lack_bytes; /* for one device it is exact */
  plan = place(s, &part);
  assert_true(plan.fits && plan.lack_bytes == 0);
  test_free(s);
}

/* Each reason at its border. */
static void test_why_a_device_has_no_layers(void **state) {
  (void)state;
  gm_fit_part parts[2];
  scene *s = scene_even(2, 100, 4, 10);
  s->devices[1].free_bytes = 10; /* room for one layer */
  place(s, parts);
  assert_string_equal(parts[1].why, "the other devices have room for all");
  s->devices[1].free_bytes = 9;
  place(s, parts);
  assert_string_equal(parts[1].why, "1 layer(s) at least need 10 B, 9 B is left after margin and overhead");
  s->devices[1].margin_bytes = 4;
  s->devices[1].overhead_bytes = 5;
  place(s, parts);
  assert_string_equal(parts[1].why, "nothing is left after margin and overhead");
  s->devices[1] = s->devices[0];
  s->request.layer_count = 1;
  s->request.spread = true; /* to more devices than there are layers */
  place(s, parts);
  assert_string_equal(parts[parts[0].layer_count].why, "the split is better without it");
  test_free(s);
}

/* One card where one will do, the roomiest; all of them when asked for, or when one will not do. */
static void test_few_devices_or_all(void **state) {
  (void)state;
  gm_fit_part parts[3];
  scene *s = scene_even(3, 100, 8, 10);
  s->devices[1].free_bytes = 110;
  gm_fit_plan plan = place(s, parts);
  assert_true(plan.fits && plan.devices_used == 1 && parts[1].layer_count == 8);
  assert_string_equal(parts[0].why, "the other devices have room for all");
  s->request.spread = true;
  plan = place(s, parts);
  assert_true(plan.fits && plan.devices_used == 3 && plan.least_headroom_bytes == 70);
  s->request.spread = false;
  for (uint32_t i = 0; i < 8; i++) s->layers[i].weight_bytes = 20;
  plan = place(s, parts);
  assert_true(plan.fits && plan.devices_used == 2 && plan.least_headroom_bytes == 20);
  test_free(s);
}

static void test_experts_go_to_the_host_before_layers_do(void **state) {
  (void)state;
  gm_fit_part part;
  scene *s = scene_even(1, 100, 4, 10);
  for (uint32_t i = 0; i < 4; i++) s->layers[i].expert_bytes = 30;
  gm_fit_plan plan = place(s, &part);
  assert_true(plan.fits && plan.device_layers == 2 && plan.host_expert_layers == 0);
  s->request.experts_on_host = true;
  plan = place(s, &part);
  assert_true(plan.fits && plan.device_layers == 4 && plan.host_expert_layers == 2);
  assert_int_equal(plan.host.bytes, 60);
  s->request.host_free_bytes = 59;
  plan = place(s, &part);
  assert_false(plan.fits);
  assert_non_null(strstr(plan.reason, "the host needs 60 B and has 59 B"));
  test_free(s);
}

static void test_the_host_may_be_all_there_is(void **state) {
  (void)state;
  scene *s = scene_even(0, 0, 4, 10);
  gm_fit_plan plan = place(s, NULL);
  assert_true(plan.fits && plan.device_layers == 0 && plan.host.bytes == 40);
  assert_true(plan.least_headroom_bytes == GM_UNKNOWN_BYTES && plan.host.headroom_bytes == GM_UNKNOWN_BYTES);
  s->request.host_fixed_bytes = 7;
  s->request.host_free_bytes = 46;
  assert_false(place(s, NULL).fits);
  s->request.host_free_bytes = 47;
  assert_true(place(s, NULL).fits);
  test_free(s);
}

/* Sums that do not fit into 64 bits are larger than anything that is free. */
static void test_huge_figures(void **state) {
  (void)state;
  gm_fit_part parts[2];
  gm_fit_plan plan = {.struct_size = sizeof plan};
  scene *s = scene_even(2, UINT64_MAX - 1, 4, UINT64_MAX / 2);
  assert_int_equal(gm_place_layers(NULL, &s->request, parts, &plan, NULL), GM_OK);
  assert_true(plan.fits && parts[0].layer_count == 2 && parts[1].layer_count == 2);
  for (int i = 0; i < 4; i++)
    s->layers[i] = (gm_fit_layer){
        .weight_bytes = UINT64_MAX, .expert_bytes = UINT64_MAX, .kv_bytes = UINT64_MAX, .compute_bytes = UINT64_MAX};
  s->devices[0].margin_bytes = s->devices[0].overhead_bytes = UINT64_MAX;
  s->request.partial_bytes = s->request.host_fixed_bytes = UINT64_MAX;
  s->request.experts_on_host = true;
  assert_int_equal(gm_place_layers(NULL, &s->request, parts, &plan, NULL), GM_OK);
  assert_true(plan.fits && plan.device_layers == 0 && plan.host.bytes == UINT64_MAX);
  s->request.host_free_bytes = UINT64_MAX - 1;
  assert_int_equal(gm_place_layers(NULL, &s->request, parts, &plan, NULL), GM_OK);
  assert_false(plan.fits);
  test_free(s);
}

static void test_bad_arguments(void **state) {
  (void)state;
  scene *s = scene_even(2, 100, 4, 10);
  gm_fit_plan plan = {.struct_size = sizeof plan}, old = {.struct_size = 8};
  gm_error err;
  assert_int_equal(gm_place_layers(NULL, NULL, NULL, &plan, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_place_layers(NULL, &s->request, NULL, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_place_layers(NULL, &s->request, NULL, &old, &err), GM_ERR_INVALID_ARGUMENT);
  gm_fit_request wrong[7];
  for (int i = 0; i < 7; i++) wrong[i] = s->request;
  wrong[0].struct_size = 0;
  wrong[1].layer_count = 0;
  wrong[2].layer_count = GM_FIT_LAYERS_MAX + 1;
  wrong[3].layers = NULL;
  wrong[4].device_count = GM_FIT_DEVICES_MAX + 1;
  wrong[5].devices = NULL;
  wrong[6].least_share_percent = 101;
  for (int i = 0; i < 7; i++) {
    assert_int_equal(gm_place_layers(NULL, &wrong[i], NULL, &plan, &err), GM_ERR_INVALID_ARGUMENT);
  }
  s->devices[1].free_bytes = GM_UNKNOWN_BYTES;
  assert_int_equal(gm_place_layers(NULL, &s->request, NULL, &plan, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "device 1"));
  test_free(s);
}

static void test_without_host_memory(void **state) {
  (void)state;
  scene *s = scene_even(2, 100, 4, 10);
  gm_fit_plan plan = {.struct_size = sizeof plan};
  counted_services host;
  counted_services_init(&host);
  host.fail_at = 1;
  assert_int_equal(gm_place_layers(&host.services, &s->request, NULL, &plan, NULL), GM_ERR_OUT_OF_HOST_MEMORY);
  counted_services_check(&host);
  counted_services_init(&host);
  assert_int_equal(gm_place_layers(&host.services, &s->request, NULL, &plan, NULL), GM_OK);
  assert_int_equal(host.calls, 1);
  counted_services_check(&host);
  test_free(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small_cases_against_every_split),
      cmocka_unit_test(test_no_plan_is_infeasible),
      cmocka_unit_test(test_margin_and_overhead_are_each_devices_own),
      cmocka_unit_test(test_nothing_left_takes_what_needs_nothing),
      cmocka_unit_test(test_a_device_of_little_use_is_left_out),
      cmocka_unit_test(test_compute_is_that_of_the_largest_layer),
      cmocka_unit_test(test_why_a_device_has_no_layers),
      cmocka_unit_test(test_few_devices_or_all),
      cmocka_unit_test(test_experts_go_to_the_host_before_layers_do),
      cmocka_unit_test(test_the_host_may_be_all_there_is),
      cmocka_unit_test(test_huge_figures),
      cmocka_unit_test(test_bad_arguments),
      cmocka_unit_test(test_without_host_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
