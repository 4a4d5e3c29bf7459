/* Known pitfalls of OpenCL's drivers, each played by the simulated driver and met through gm's public interface. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gm/copy.h"
#include "gm/device.h"
#include "gm/native_opencl.h"
#include "simulated/shim/pitfall.h"

static const pitfall_driver opencl = {"opencl", "SIMCL", "opencl=" SIM_LIBRARY, NULL};

static uint32_t discover(const char *script, gm_device_entry entries[PITFALL_ENTRIES]) {
  pool_bench bench;
  pitfall_context(&bench, &opencl, script);
  const uint32_t count = pitfall_discover(&bench, entries);
  pitfall_close(&bench);
  return count;
}

static void test_every_output_says_simulated(void **state) {
  (void)state;
  gm_device_entry entries[PITFALL_ENTRIES] = {{.struct_size = sizeof *entries}};
  assert_int_equal(discover("", entries), 1);
  assert_non_null(strstr(entries[0].info.name, "(simulated)"));
}

/* ---- sizes ---- */

static void test_largest_allocation_is_a_quarter(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block, more;
  pitfall_open(&bench, &opencl, "type=gpu,total=1G,maxalloc=quarter");
  assert_int_equal(gm_device_get_info(bench.device)->max_alloc_bytes, 256 * MIB);
  assert_int_equal(pitfall_take(&bench, 256 * MIB + 1, 0, GM_DEVICE_LOCAL, &more), GM_ACQUIRE_EXHAUSTED);
  assert_int_equal(pitfall_why(&bench, 256 * MIB + 1).status, GM_ERR_ALLOCATION_TOO_LARGE);
  block = pitfall_block(&bench, 256 * MIB, 0, GM_DEVICE_LOCAL);
  more = pitfall_block(&bench, 200 * MIB, 0, GM_DEVICE_LOCAL); /* not the bucket of 256 MiB only */
  pitfall_free(&bench, &more);
  pitfall_free(&bench, &block);
  pitfall_close(&bench);
}

static void test_larger_than_the_largest_allocation(void **state) {
  (void)state;
  pool_bench bench;
  pitfall_open(&bench, &opencl, "type=gpu,total=1G,maxalloc=32M");
  pitfall_in_several(&bench, 100 * MIB, 4);
  pitfall_close(&bench);
}

static void test_card_fuller_than_its_size_says(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  pitfall_open(&bench, &opencl, "type=gpu,total=1G,others=768M");
  assert_int_equal(pitfall_take(&bench, 512 * MIB, 0, GM_DEVICE_LOCAL, &block), GM_ACQUIRE_EXHAUSTED);
  const gm_error why = pitfall_why(&bench, 512 * MIB);
  assert_int_equal(why.status, GM_ERR_OUT_OF_DEVICE_MEMORY);
  assert_int_equal(why.native_code, -4);
  block = pitfall_block(&bench, 200 * MIB, 0, GM_DEVICE_LOCAL);
  pitfall_free(&bench, &block);
  pitfall_close(&bench);
}

/* The driver would promise any number of buffers. */
static void test_over_commitment_is_refused_by_gm(void **state) {
  (void)state;
  pool_bench bench;
  gm_block blocks[4], more;
  pitfall_open(&bench, &opencl, "type=gpu,total=1G,maxalloc=quarter,lazy");
  for (int i = 0; i < 4; i++) blocks[i] = pitfall_block(&bench, 256 * MIB, 0, GM_DEVICE_LOCAL);
  assert_in_range(pitfall_take(&bench, 64 * MIB, 0, GM_DEVICE_LOCAL, &more), GM_ACQUIRE_EXHAUSTED,
                  GM_ACQUIRE_OVER_LIMIT);
  for (int i = 0; i < 4; i++) pitfall_free(&bench, &blocks[i]);
  pitfall_close(&bench);
}

static void test_lazy_memory_is_touched_when_that_is_asked(void **state) {
  (void)state;
  pool_bench bench;
  gm_block promised, block;
  pitfall_open(&bench, &opencl, "type=gpu,total=1G,lazy,others=768M");
  promised = pitfall_block(&bench, 512 * MIB, 0, GM_DEVICE_LOCAL);
  assert_int_equal(pitfall_take(&bench, 512 * MIB, GM_COMMIT, GM_DEVICE_LOCAL, &block), GM_ACQUIRE_EXHAUSTED);
  assert_int_equal(pitfall_why(&bench, 512 * MIB).status, GM_ERR_OUT_OF_DEVICE_MEMORY);
  block = pitfall_block(&bench, 64 * MIB, GM_COMMIT, GM_DEVICE_LOCAL);
  pitfall_free(&bench, &block);
  pitfall_free(&bench, &promised);
  pitfall_close(&bench);
}

/* ---- what is free ---- */

static gm_memory_info figures_of(const char *script) {
  gm_device_entry entries[PITFALL_ENTRIES] = {{.struct_size = sizeof *entries}};
  assert_int_equal(discover(script, entries), 1);
  return entries[0].memory;
}

static void test_amd_free_memory_is_in_kibibytes(void **state) {
  (void)state;
  const gm_memory_info one = figures_of("type=gpu,total=8G,amd_free=1048576");
  assert_int_equal(one.free_bytes, GIB);
  assert_int_equal(one.free_source, GM_SOURCE_DRIVER);
  assert_int_equal(one.free_state, GM_FIGURE_ESTIMATED);
  assert_int_equal(figures_of("type=gpu,total=8G,amd_free=524288,amd_block=1024").free_bytes, GIB / 2);
}

static void test_amd_free_memory_above_the_total(void **state) {
  (void)state;
  assert_int_equal(figures_of("type=gpu,total=1G,amd_free=99999999").free_bytes, GIB);
  assert_int_equal(figures_of("type=gpu,total=1G,amd_free=-1").free_bytes, GIB);
  assert_int_equal(figures_of("type=gpu,total=1G,amd_free=0").free_bytes, 0); /* full, not unknown */
}

static void test_free_without_a_query_is_estimated(void **state) {
  (void)state;
  const gm_memory_info memory = figures_of("type=gpu,total=4G");
  assert_int_equal(memory.free_state, GM_FIGURE_ESTIMATED);
  assert_int_equal(memory.free_source, GM_SOURCE_OWN_ACCOUNTING);
}

static void test_total_of_zero_is_unknown(void **state) {
  (void)state;
  const gm_memory_info memory = figures_of("type=gpu,total=0,maxalloc=0");
  assert_true(memory.total_bytes == GM_UNKNOWN_BYTES && memory.free_bytes == GM_UNKNOWN_BYTES);
  assert_int_equal(memory.free_state, GM_FIGURE_UNKNOWN);
}

static void test_integrated_part_has_the_hosts_memory(void **state) {
  (void)state;
  gm_device_entry entries[PITFALL_ENTRIES] = {{.struct_size = sizeof *entries}};
  assert_int_equal(discover("type=gpu,unified,total=1024G", entries), 1);
  assert_int_equal(entries[0].info.type, GM_DEVICE_TYPE_INTEGRATED);
  assert_true(entries[0].info.unified && entries[0].host_pool);
  assert_true(entries[0].memory.free_bytes < 1024 * GIB);
}

/* ---- alignment ---- */

static uint64_t alignment_of(const char *script) {
  gm_device_entry entries[PITFALL_ENTRIES] = {{.struct_size = sizeof *entries}};
  assert_int_equal(discover(script, entries), 1);
  return entries[0].info.alignment;
}

static void test_base_address_alignment_is_in_bits(void **state) {
  (void)state;
  assert_int_equal(alignment_of("align_bits=1024"), 128);
  assert_int_equal(alignment_of("align_bits=32768"), 4096);
  assert_int_equal(alignment_of("align_bits=0"), 4096);
  assert_int_equal(alignment_of("align_bits=1000"), 4096); /* no power of two */
  assert_int_equal(alignment_of("align_bits=4"), 4096);    /* less than a byte */
}

static void test_sub_buffer_origin(void **state) {
  (void)state;
  pool_bench bench;
  gm_error failure = {.status = GM_OK};
  uint64_t view = 0;
  pitfall_open(&bench, &opencl, "align_bits=32768");
  gm_block block = pitfall_block(&bench, MIB, 0, GM_DEVICE_LOCAL);
  assert_int_equal(gm_block_view_create(bench.pool, &block, 128, 4096, &view, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(failure.message, "multiple of 4096"));
  pool_bench_ok(gm_block_view_create(bench.pool, &block, 8192, 4096, &view, err));
  pool_bench_ok(gm_block_view_destroy(bench.pool, view, err));
  pitfall_free(&bench, &block);
  pitfall_close(&bench);
}

/* A sub-buffer of a sub-buffer is not allowed: gm makes its own of the parent. */
static void test_sub_buffer_of_a_sub_buffer(void **state) {
  (void)state;
  pool_bench bench;
  uint64_t outer = 0, inner = 0;
  gm_block lent;
  pitfall_open(&bench, &opencl, "align_bits=1024");
  gm_block block = pitfall_block(&bench, MIB, 0, GM_DEVICE_LOCAL);
  pool_bench_ok(gm_block_view_create(bench.pool, &block, 4096, 65536, &outer, err));
  const gm_opencl_memory native = {.head = {sizeof native, GM_API_OPENCL}, .memory = (uintptr_t)outer, .bytes = 65536};
  pool_bench_ok(gm_block_wrap(bench.pool, &native.head, &lent, err));
  pool_bench_ok(gm_block_view_create(bench.pool, &lent, 4096, 4096, &inner, err));
  pool_bench_ok(gm_block_view_destroy(bench.pool, inner, err));
  assert_int_equal(gm_free(bench.pool, &lent, NULL), GM_OK);
  pool_bench_ok(gm_block_view_destroy(bench.pool, outer, err));
  pitfall_free(&bench, &block);
  pitfall_close(&bench);
}

/* ---- identity ---- */

static void check_pci(const char *script, const char *want) {
  gm_device_entry entries[PITFALL_ENTRIES] = {{.struct_size = sizeof *entries}};
  assert_int_equal(discover(script, entries), 1);
  assert_string_equal(entries[0].info.pci, want);
}

static void test_pci_addresses_of_each_vendor(void **state) {
  (void)state;
  check_pci("type=gpu,pci=0x65", "0000:65:00.0");
  check_pci("type=gpu,nv_bus=0x41,nv_domain=2", "0002:41:01.2"); /* the slot holds device and function */
  check_pci("type=gpu,nv_bus=0x41", "41:01.2");                  /* an older driver tells no domain */
  check_pci("type=gpu,amd_bus=0x0b", "0b:00.0");                 /* AMD's topology has none */
  check_pci("type=gpu,pci=4711", "");                            /* no bus has this number */
}

static void test_sixteen_devices(void **state) {
  (void)state;
  gm_device_entry entries[PITFALL_ENTRIES] = {{.struct_size = sizeof *entries}};
  assert_int_equal(discover("devices=16,type=gpu,pci=1", entries), 16);
  for (uint32_t i = 0; i < 16; i++) {
    for (uint32_t j = 0; j < i; j++) {
      assert_int_not_equal(entries[i].physical, entries[j].physical);
      assert_memory_not_equal(entries[i].id.uuid, entries[j].id.uuid, GM_UUID_BYTES);
    }
  }
}

/* One platform is empty; the third has the card of the first. */
static void test_one_card_through_two_platforms(void **state) {
  (void)state;
  gm_device_entry entries[PITFALL_ENTRIES] = {{.struct_size = sizeof *entries}};
  assert_int_equal(discover("platforms=3,type=gpu,uuid=7,pci=3", entries), 2);
  assert_int_equal(entries[0].physical, entries[1].physical);
}

/* Memory belongs to a context, so each device has its own, and counts for itself. */
static void test_one_context_for_each_device(void **state) {
  (void)state;
  pool_bench bench;
  gm_device *second = NULL;
  gm_opencl_device a = {.head = {sizeof a, GM_API_OPENCL}}, b = a;
  gm_memory_info other = {.struct_size = sizeof other};
  pitfall_open(&bench, &opencl, "devices=2,type=gpu,total=1G,uuid=9");
  pool_bench_ok(gm_device_open_index(bench.ctx, "opencl", 1, &second, err));
  gm_block block = pitfall_block(&bench, 64 * MIB, 0, GM_DEVICE_LOCAL);
  pool_bench_ok(gm_device_native(bench.device, &a.head, err));
  pool_bench_ok(gm_device_native(second, &b.head, err));
  assert_true(a.context != b.context);
  pool_bench_ok(gm_device_memory_info(second, &other, err));
  assert_int_equal(other.used_by_us_bytes, 0);
  assert_int_equal(pitfall_figures(&bench).used_by_us_bytes, 64 * MIB);
  pitfall_free(&bench, &block);
  pool_bench_ok(gm_device_close(second, err));
  pitfall_close(&bench);
}

/* ---- nonsense ---- */

static gm_status use(const char *script, gm_error *out) {
  static const unsigned char want[5000] = {1, 2, 3, 4};
  unsigned char got[5000] = {0};
  pool_bench bench;
  gm_block block;
  uint64_t view = 0;
  void *host = NULL;
  *out = (gm_error){.status = GM_OK};
  pitfall_context(&bench, &opencl, script);
  gm_status status = gm_device_open_index(bench.ctx, "opencl", 0, &bench.device, out);
  if (status == GM_OK) {
    pool_bench_ok(gm_pool_create(bench.device, NULL, &bench.pool, err));
    if (pitfall_take(&bench, 8192, 0, GM_ANYWHERE, &block) <= GM_ACQUIRE_FRESH) {
      status = gm_block_write(bench.pool, &block, 0, want, sizeof want, NULL, NULL, out);
      if (!status) status = gm_block_read(bench.pool, &block, 0, got, sizeof got, NULL, NULL, out);
      if (!status) assert_memory_equal(got, want, sizeof want);
      if (!status) status = gm_block_map(bench.pool, &block, 0, 100, GM_MAP_READ, NULL, &host, out);
      if (!status) status = pitfall_unmap(&bench, &block, host, out);
      if (!status) status = gm_block_view_create(bench.pool, &block, 0, 4096, &view, out);
      if (!status) status = gm_block_view_destroy(bench.pool, view, out);
      pitfall_free(&bench, &block);
    } else {
      *out = pitfall_why(&bench, 8192);
      status = out->status;
    }
  }
  pitfall_close(&bench);
  return status;
}

static void works(const char *script) {
  gm_error failure;
  if (use(script, &failure) != GM_OK) fail_msg("%s: %s", script, failure.message);
}

static void test_names_without_an_end(void **state) {
  (void)state;
  gm_device_entry entries[PITFALL_ENTRIES] = {{.struct_size = sizeof *entries}};
  works("hostile=names,pci=1,uuid=2");
  assert_int_equal(discover("hostile=names", entries), 1);
  assert_int_equal(strlen(entries[0].info.name), sizeof entries[0].info.name - 1);
}

static void test_answers_of_absurd_size(void **state) {
  (void)state;
  works("hostile=sizes,type=gpu,amd_free=5,uuid=3,pci=3");
}

static void test_counts_beyond_the_arrays(void **state) {
  (void)state;
  works("hostile=platforms");
  works("hostile=devices");
}

static void test_type_that_does_not_exist(void **state) {
  (void)state;
  gm_device_entry entries[PITFALL_ENTRIES] = {{.struct_size = sizeof *entries}};
  works("type=nonsense");
  assert_int_equal(discover("type=nonsense", entries), 1);
  assert_int_equal(entries[0].info.type, GM_DEVICE_TYPE_UNKNOWN);
}

static void test_sizes_without_bound(void **state) {
  (void)state;
  works("type=gpu,total=-1,maxalloc=-1");
  works("type=gpu,total=0,maxalloc=256M");
  works("type=gpu,total=1G,maxalloc=2G"); /* more than there is */
}

static void test_success_with_a_null_handle(void **state) {
  (void)state;
  static const char *const names[] = {"clCreateContext", "clCreateCommandQueue", "clCreateBuffer", "clEnqueueMapBuffer",
                                      "clCreateSubBuffer"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    char script[100];
    gm_error failure;
    snprintf(script, sizeof script, "type=gpu,total=1G,null=%s", names[i]);
    const gm_status status = use(script, &failure);
    if (status != GM_ERR_DRIVER || !strstr(failure.message, names[i])) {
      fail_msg("%s: %s: %s", names[i], gm_status_name(status), failure.message);
    }
  }
}

/* ---- every call can fail ---- */

static const char *const entries_that_fail[] = {
#define X(need, fault, result, name, parameters, arguments) fault(#name)
#define CODE(name) name,
#define HANDLE(name) name,
#define POINTER(name) name,
#define NONE(name)
#include "backends/opencl/opencl_syms.def"
#undef X
#undef CODE
#undef HANDLE
#undef POINTER
#undef NONE
};

/* Fails or gets along without it; what it had is given back, and the reason names a call. */
static void fails_at(const char *name, const char *nth, int code) {
  const bool stays_mapped = *nth == '*' && strcmp(name, "clEnqueueUnmapMemObject") == 0 && code != -2;
  if (stays_mapped) return; /* for ever, as the contract says */
  char script[128];
  gm_error failure;
  snprintf(script, sizeof script, "type=gpu,total=1G,uuid=5,fail=%s:%s:%d", name, nth, code);
  const gm_status status = use(script, &failure);
  if (status != GM_OK && (!failure.message[0] || failure.status != status)) fail_msg("%s: no reason", script);
}

static void test_each_call_fails(void **state) {
  (void)state;
  static const char *const nth[] = {"1", "2", "3", "*"};
  for (size_t i = 0; i < sizeof entries_that_fail / sizeof entries_that_fail[0]; i++) {
    if (strstr(entries_that_fail[i], "Release")) continue; /* the real object would stay: a leak of the test's making */
    for (size_t j = 0; j < sizeof nth / sizeof nth[0]; j++) {
      fails_at(entries_that_fail[i], nth[j], -6);    /* CL_OUT_OF_HOST_MEMORY */
      fails_at(entries_that_fail[i], nth[j], -2);    /* CL_DEVICE_NOT_AVAILABLE */
      fails_at(entries_that_fail[i], nth[j], -7777); /* none of OpenCL's */
    }
  }
}

/* ---- a lost device ---- */

/* The answers of writes after a few of them, and the device's answer then. */
static gm_status lost_by(const char *script, int32_t *out_code, gm_status *out_state) {
  static const unsigned char bytes[100];
  pool_bench bench;
  gm_error failure = {.status = GM_OK};
  pitfall_open(&bench, &opencl, script);
  gm_block block = pitfall_block(&bench, MIB, 0, GM_DEVICE_LOCAL);
  gm_status status = GM_OK;
  for (int i = 0; i < 30 && status == GM_OK; i++) {
    status = gm_block_write(bench.pool, &block, 0, bytes, sizeof bytes, NULL, NULL, &failure);
  }
  *out_code = failure.native_code;
  *out_state = gm_device_state(bench.device, NULL);
  gm_free(bench.pool, &block, NULL); /* what was there can be given back */
  gm_pool_trim(bench.pool, 0);
  pitfall_close(&bench);
  return status;
}

static void test_lost_device(void **state) {
  (void)state;
  int32_t code;
  gm_status then;
  assert_int_equal(lost_by("type=gpu,lost=5", &code, &then), GM_ERR_DEVICE_LOST);
  assert_int_equal(code, -2);
  assert_int_equal(then, GM_ERR_DEVICE_LOST);
  assert_int_equal(lost_by("type=gpu,lost=5:-9999", &code, &then), GM_ERR_DEVICE_LOST);
  assert_int_equal(code, -9999);
  works("type=gpu"); /* and the next one works */
}

/* CL_OUT_OF_RESOURCES is a lack of memory; from NVIDIA's driver, when waiting, it is the end of the context. */
static void test_out_of_resources(void **state) {
  (void)state;
  int32_t code;
  gm_status then;
  assert_int_equal(lost_by("type=gpu,lost=5:-5", &code, &then), GM_ERR_OUT_OF_DEVICE_MEMORY);
  assert_int_equal(then, GM_OK);
  pool_bench bench;
  gm_stream *stream = NULL;
  pitfall_open(&bench, &opencl, "type=gpu,platform=NVIDIA CUDA,lost=0:-5");
  pool_bench_ok(gm_stream_create(bench.device, &stream, err));
  gm_block block = pitfall_block(&bench, MIB, 0, GM_DEVICE_LOCAL);
  assert_int_equal(gm_block_write(bench.pool, &block, 0, "x", 1, NULL, NULL, NULL), GM_ERR_OUT_OF_DEVICE_MEMORY);
  assert_int_equal(gm_stream_sync(stream, NULL), GM_ERR_DEVICE_LOST);
  assert_int_equal(gm_device_state(bench.device, NULL), GM_ERR_DEVICE_LOST);
  pitfall_free(&bench, &block);
  gm_stream_close(stream, NULL);
  pitfall_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_output_says_simulated),
      cmocka_unit_test(test_largest_allocation_is_a_quarter),
      cmocka_unit_test(test_larger_than_the_largest_allocation),
      cmocka_unit_test(test_card_fuller_than_its_size_says),
      cmocka_unit_test(test_over_commitment_is_refused_by_gm),
      cmocka_unit_test(test_lazy_memory_is_touched_when_that_is_asked),
      cmocka_unit_test(test_amd_free_memory_is_in_kibibytes),
      cmocka_unit_test(test_amd_free_memory_above_the_total),
      cmocka_unit_test(test_free_without_a_query_is_estimated),
      cmocka_unit_test(test_total_of_zero_is_unknown),
      cmocka_unit_test(test_integrated_part_has_the_hosts_memory),
      cmocka_unit_test(test_base_address_alignment_is_in_bits),
      cmocka_unit_test(test_sub_buffer_origin),
      cmocka_unit_test(test_sub_buffer_of_a_sub_buffer),
      cmocka_unit_test(test_pci_addresses_of_each_vendor),
      cmocka_unit_test(test_sixteen_devices),
      cmocka_unit_test(test_one_card_through_two_platforms),
      cmocka_unit_test(test_one_context_for_each_device),
      cmocka_unit_test(test_names_without_an_end),
      cmocka_unit_test(test_answers_of_absurd_size),
      cmocka_unit_test(test_counts_beyond_the_arrays),
      cmocka_unit_test(test_type_that_does_not_exist),
      cmocka_unit_test(test_sizes_without_bound),
      cmocka_unit_test(test_success_with_a_null_handle),
      cmocka_unit_test(test_each_call_fails),
      cmocka_unit_test(test_lost_device),
      cmocka_unit_test(test_out_of_resources),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
