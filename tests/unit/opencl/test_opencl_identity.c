/* The OpenCL backend reads a driver's answers, good ones and nonsense. A scripted table stands in place of a driver,
 * and files in place of /etc/OpenCL. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backends/opencl/opencl_icd.h"
#include "backends/opencl/opencl_info.h"
#include "backends/opencl/opencl_query.h"
#include "support/counted_services.h"
#include "support/temp_folder.h"

/* The driver's script: what it answers to each question; others it refuses. */
typedef struct answer {
  cl_uint what;
  size_t bytes;   /* of `value` */
  size_t claimed; /* what it says it has; 0: as many */
  const void *value;
} answer;

static const answer *script;
static size_t script_count;

static cl_int CL_API_CALL play(cl_device_id id, cl_device_info what, size_t bytes, void *value, size_t *value_bytes) {
  (void)id;
  for (size_t i = 0; i < script_count; i++) {
    const answer *found = &script[i];
    if (found->what != what) continue;
    if (value && bytes < found->bytes) return CL_INVALID_VALUE;
    if (value) memcpy(value, found->value, found->bytes);
    if (value_bytes) *value_bytes = found->claimed ? found->claimed : found->bytes;
    return CL_SUCCESS;
  }
  return CL_INVALID_VALUE;
}

static cl_int CL_API_CALL play_platform(cl_platform_id id, cl_platform_info what, size_t bytes, void *value,
                                        size_t *value_bytes) {
  (void)id;
  return play(NULL, what, bytes, value, value_bytes);
}

static counted_services host;

static gm__opencl_driver driver_of(const answer *answers, size_t count) {
  counted_services_init(&host);
  script = answers;
  script_count = count;
  return (gm__opencl_driver){.services = &host.services,
                             .cl = {.clGetDeviceInfo = play, .clGetPlatformInfo = play_platform}};
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define TEXT(what, text) \
  { what, sizeof text, 0, text }
#define VALUE(what, value) \
  { what, sizeof value, 0, &value }

static gm_device_info describe(const char *platform, const answer *answers, size_t count) {
  gm_device_info info;
  const gm__opencl_driver driver = driver_of(answers, count);
  assert_int_equal(gm__opencl_describe(&driver, platform, NULL, &info, NULL), GM_OK);
  counted_services_check(&host);
  return info;
}

static void test_platforms_and_vendors_have_short_words(void **state) {
  (void)state;
  static const struct {
    const char *platform, *vendor_text;
    uint32_t vendor_id;
    const char *driver, *vendor;
  } cases[] = {
      {"Portable Computing Language", "GenuineIntel", 0x8086, "pocl", "pocl"},
      {"NVIDIA CUDA", "NVIDIA Corporation", 0x10de, "nvidia", "nvidia"},
      {"AMD Accelerated Parallel Processing", "Advanced Micro Devices, Inc.", 0x1002, "rocm", "amd"},
      {"Intel(R) OpenCL Graphics", "Intel(R) Corporation", 0x8086, "neo", "intel"},
      {"Intel(R) OpenCL HD Graphics", "Intel(R) Corporation", 0x8086, "neo", "intel"},
      {"Intel(R) OpenCL", "Intel(R) Corporation", 0x8086, "intel_cpu", "intel"},
      {"rusticl", "AMD", 0x1002, "rusticl", "amd"},
      {"rusticl", "Mesa/X.org", 0, "rusticl", "mesa"},
      {"Clover", "Advanced Micro Devices", 0, "clover", "amd"},
      {"Oclgrind", "University of Bristol", 0, "oclgrind", "oclgrind"},
      {"New Driver 2", "Somebody Else", 0, "new", "somebody"},
      {"", "", 0, "unknown", "unknown"},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    gm_device_info info = {0};
    gm__opencl_words(cases[i].platform, cases[i].vendor_id, cases[i].vendor_text, &info);
    assert_string_equal(info.driver, cases[i].driver);
    assert_string_equal(info.vendor, cases[i].vendor);
  }
}

static void test_a_driver_that_answers_nothing_is_still_a_device(void **state) {
  (void)state;
  const gm_device_info info = describe("", NULL, 0);
  assert_int_equal(info.type, GM_DEVICE_TYPE_UNKNOWN);
  assert_string_not_equal(info.name, "");
  assert_int_equal(info.total_bytes, 0);
  assert_int_equal(info.max_alloc_bytes, 0);
  assert_int_equal(info.alignment, 4096);
  assert_string_equal(info.pci, "");
  assert_int_equal(gm__opencl_version(&info), 0);
}

static void test_texts_are_cut_cleaned_and_ended(void **state) {
  (void)state;
  static const char unterminated[] = {' ', 'G', 'P', 'U', '\n', '7', (char)0xc3};
  char huge[2000];
  memset(huge, 'x', sizeof huge);
  const answer answers[] = {{CL_DEVICE_NAME, sizeof unterminated, 0, unterminated},
                            {CL_DRIVER_VERSION, sizeof huge, 0, huge},
                            {CL_DEVICE_VENDOR, 4, SIZE_MAX, "ACME"},
                            TEXT(CL_DEVICE_VERSION, "OpenCL 2.1 and more")};
  const gm_device_info info = describe("?", answers, COUNT(answers));
  assert_string_equal(info.name, "GPU?7?");
  assert_int_equal(strlen(info.version), sizeof info.version - 1);
  assert_string_equal(info.vendor, "unknown"); /* a text of 2^64-1 bytes is no text */
  assert_string_equal(info.capability, "OpenCL 2.1");
  assert_int_equal(gm__opencl_version(&info), 21);
}

static void test_alignment_is_in_bits_and_must_be_sane(void **state) {
  (void)state;
  static const struct {
    cl_uint bits;
    uint64_t bytes;
  } cases[] = {{1024, 128}, {32768, 4096}, {8, 1}, {0, 4096}, {7, 4096}, {24, 4096}, {1u << 31, 4096}, {~0u, 4096}};
  for (size_t i = 0; i < COUNT(cases); i++) {
    const answer answers[] = {VALUE(CL_DEVICE_MEM_BASE_ADDR_ALIGN, cases[i].bits)};
    assert_int_equal(describe("", answers, 1).alignment, cases[i].bytes);
  }
}

static void test_sizes_that_contradict_each_other_are_bounded(void **state) {
  (void)state;
  static const cl_ulong none = 0, gib = 1u << 30, all = UINT64_MAX;
  const answer above[] = {VALUE(CL_DEVICE_GLOBAL_MEM_SIZE, gib), VALUE(CL_DEVICE_MAX_MEM_ALLOC_SIZE, all)};
  assert_int_equal(describe("", above, 2).max_alloc_bytes, gib);
  const answer zero[] = {VALUE(CL_DEVICE_GLOBAL_MEM_SIZE, gib), VALUE(CL_DEVICE_MAX_MEM_ALLOC_SIZE, none)};
  assert_int_equal(describe("", zero, 2).max_alloc_bytes, gib);
  const answer half[] = {{CL_DEVICE_GLOBAL_MEM_SIZE, 4, 0, &gib}}; /* four bytes where eight are due */
  assert_int_equal(describe("", half, 1).total_bytes, 0);
}

static void test_type_and_unified_memory(void **state) {
  (void)state;
  static const cl_device_type cpu = CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_DEFAULT, gpu = CL_DEVICE_TYPE_GPU;
  static const cl_bool yes = CL_TRUE;
  const answer on_cpu[] = {VALUE(CL_DEVICE_TYPE, cpu)};
  gm_device_info info = describe("", on_cpu, 1);
  assert_int_equal(info.type, GM_DEVICE_TYPE_CPU);
  assert_true(info.unified);
  const answer card[] = {VALUE(CL_DEVICE_TYPE, gpu)};
  info = describe("", card, 1);
  assert_int_equal(info.type, GM_DEVICE_TYPE_DISCRETE);
  assert_false(info.unified);
  const answer integrated[] = {VALUE(CL_DEVICE_TYPE, gpu), VALUE(CL_DEVICE_HOST_UNIFIED_MEMORY, yes)};
  assert_int_equal(describe("", integrated, 2).type, GM_DEVICE_TYPE_INTEGRATED);
  const answer jetson[] = {VALUE(CL_DEVICE_TYPE, gpu), VALUE(CL_DEVICE_INTEGRATED_MEMORY_NV, yes)};
  assert_int_equal(describe("", jetson, 2).type, GM_DEVICE_TYPE_INTEGRATED);
}

static void expect_pci(const answer *answers, size_t count, const char *pci) {
  assert_string_equal(describe("", answers, count).pci, pci);
}

static void test_pci_addresses_full_partial_and_none(void **state) {
  (void)state;
  static const cl_uint khr[4] = {1, 0x65, 0, 1}, far[4] = {0, 0x165, 0, 0}, zero[4] = {0};
  static const cl_uint bus = 9, slot = 0x0a, domain = 2;
  uint8_t amd[24] = {1}, other[24] = {2};
  amd[21] = 0xc3;
  other[21] = 0xc3;
  const answer full[] = {TEXT(CL_DEVICE_EXTENSIONS, "cl_a cl_khr_pci_bus_info"),
                         VALUE(CL_DEVICE_PCI_BUS_INFO_KHR, khr)};
  expect_pci(full, 2, "0001:65:00.1");
  const answer untold[] = {TEXT(CL_DEVICE_EXTENSIONS, "cl_khr_pci_bus_info2"), VALUE(CL_DEVICE_PCI_BUS_INFO_KHR, khr)};
  expect_pci(untold, 2, "");
  const answer nonsense[] = {TEXT(CL_DEVICE_EXTENSIONS, "cl_khr_pci_bus_info"), VALUE(CL_DEVICE_PCI_BUS_INFO_KHR, far)};
  expect_pci(nonsense, 2, "");
  const answer zeros[] = {TEXT(CL_DEVICE_EXTENSIONS, "cl_khr_pci_bus_info"), VALUE(CL_DEVICE_PCI_BUS_INFO_KHR, zero)};
  expect_pci(zeros, 2, "");
  const answer nvidia[] = {TEXT(CL_DEVICE_EXTENSIONS, "cl_nv_device_attribute_query"), VALUE(0x4008, bus),
                           VALUE(0x4009, slot), VALUE(0x400A, domain)};
  expect_pci(nvidia, 4, "0002:09:01.2");
  expect_pci(nvidia, 3, "09:01.2");
  expect_pci(nvidia, 2, "");
  const answer radeon[] = {TEXT(CL_DEVICE_EXTENSIONS, "cl_amd_device_attribute_query"),
                           VALUE(CL_DEVICE_TOPOLOGY_AMD, amd)};
  expect_pci(radeon, 2, "c3:00.0");
  const answer unknown[] = {TEXT(CL_DEVICE_EXTENSIONS, "cl_amd_device_attribute_query"),
                            VALUE(CL_DEVICE_TOPOLOGY_AMD, other)};
  expect_pci(unknown, 2, "");
}

static void test_uuids_told_and_derived(void **state) {
  (void)state;
  static const uint8_t told[16] = {1, 2, 3}, zero[16] = {0}, luid[8] = {4};
  static const cl_bool yes = CL_TRUE;
  const answer answers[] = {TEXT(CL_DEVICE_EXTENSIONS, "cl_khr_device_uuid cl_b"), VALUE(CL_DEVICE_UUID_KHR, told),
                            VALUE(CL_DEVICE_LUID_VALID_KHR, yes), VALUE(CL_DEVICE_LUID_KHR, luid)};
  gm_device_info info = describe("", answers, COUNT(answers));
  gm__opencl_derive_uuid(&info, 0);
  assert_memory_equal(info.uuid, told, sizeof told);
  assert_memory_equal(info.luid, luid, sizeof luid);
  assert_true(info.has_luid && !info.uuid_derived);
  const answer nothing[] = {TEXT(CL_DEVICE_EXTENSIONS, "cl_khr_device_uuid"), VALUE(CL_DEVICE_UUID_KHR, zero)};
  gm_device_info first = describe("", nothing, 2), second = first;
  gm__opencl_derive_uuid(&first, 0);
  gm__opencl_derive_uuid(&second, 1);
  assert_true(first.uuid_derived && !first.has_luid);
  assert_memory_not_equal(first.uuid, second.uuid, sizeof first.uuid);
}

static gm_raw_figures figures_of(const answer *answers, size_t count) {
  gm_raw_figures figures;
  const gm__opencl_driver driver = driver_of(answers, count);
  const gm_device_info info = {.type = GM_DEVICE_TYPE_DISCRETE};
  gm__opencl_figures(&driver, NULL, &info, &figures);
  return figures;
}

static void test_free_memory_of_amd_is_handed_on_raw(void **state) {
  (void)state;
  static const size_t two[2] = {16760832, 4096}, one[1] = {7}, three[3] = {1, 2, 3};
  static const cl_ulong total = 17163091968u;
  const answer both[] = {VALUE(CL_DEVICE_GLOBAL_FREE_MEMORY_AMD, two), VALUE(CL_DEVICE_GLOBAL_MEM_SIZE, total)};
  gm_raw_figures figures = figures_of(both, 2);
  assert_int_equal(figures.amd.state, GM_RAW_OK);
  assert_int_equal(figures.amd.count, 2);
  assert_int_equal(figures.amd.kib[0], 16760832);
  assert_int_equal(figures.amd.kib[1], 4096);
  assert_int_equal(figures.device_total.total_bytes, total);
  assert_int_equal(figures.place, GM_RAW_OWN_MEMORY);
  const answer single[] = {VALUE(CL_DEVICE_GLOBAL_FREE_MEMORY_AMD, one)};
  figures = figures_of(single, 1);
  assert_int_equal(figures.amd.count, 1);
  assert_int_equal(figures.amd.kib[0], 7);
  assert_int_equal(figures.device_total.state, GM_RAW_ERROR);
  const answer many[] = {VALUE(CL_DEVICE_GLOBAL_FREE_MEMORY_AMD, three)};
  figures = figures_of(many, 1);
  assert_int_equal(figures.amd.state, GM_RAW_ERROR);
  assert_int_equal(figures.amd.code, CL_INVALID_VALUE);
}

/* The platform is asked for that of an engine's sub-device. */
static void test_an_adopted_device_is_described_by_its_own_platform(void **state) {
  (void)state;
  static const cl_platform_id platform = NULL;
  gm_device_info info;
  gm__opencl_kinds kinds;
  const answer answers[] = {VALUE(CL_DEVICE_PLATFORM, platform), TEXT(CL_PLATFORM_NAME, "NVIDIA CUDA"),
                            TEXT(CL_DEVICE_NAME, "Quadro")};
  const gm__opencl_driver driver = driver_of(answers, COUNT(answers));
  assert_int_equal(gm__opencl_describe_adopted(&driver, NULL, &info, &kinds, NULL), GM_OK);
  assert_string_equal(info.driver, "nvidia");
  assert_string_equal(info.name, "Quadro");
  host.fail_at = host.calls + 1;
  assert_int_equal(gm__opencl_describe_adopted(&driver, NULL, &info, &kinds, NULL), GM_ERR_OUT_OF_HOST_MEMORY);
  counted_services_check(&host);
}

static void test_no_host_memory_for_a_text_is_said(void **state) {
  (void)state;
  const answer answers[] = {TEXT(CL_DEVICE_NAME, "GPU"), TEXT(CL_DEVICE_EXTENSIONS, "cl_a")};
  for (size_t n = 1; n <= 2; n++) {
    gm_device_info info = {.index = 7};
    const gm__opencl_driver driver = driver_of(answers, COUNT(answers));
    host.fail_at = n;
    assert_int_equal(gm__opencl_describe(&driver, "", NULL, &info, NULL), GM_ERR_OUT_OF_HOST_MEMORY);
    assert_int_equal(info.index, 7);
    counted_services_check(&host);
  }
}

static void test_registered_drivers_are_counted_from_files(void **state) {
  (void)state;
  temp_folder root;
  gm__opencl_icds icds;
  char *before = getenv("OCL_ICD_VENDORS");
  temp_folder_make(&root);
  setenv("OCL_ICD_VENDORS", root.path, 1);
  gm__opencl_icds_read(&icds);
  assert_int_equal(icds.count, 0);
  temp_folder_write(&root, "nvidia.icd", "libnvidia-opencl.so.1\n", 22);
  temp_folder_write(&root, "empty.icd", "", 0);
  temp_folder_write(&root, "readme.txt", "libpocl.so\n", 11);
  gm__opencl_icds_read(&icds);
  assert_int_equal(icds.count, 1);
  assert_false(icds.pocl);
  temp_folder_write(&root, "pocl.icd", "/usr/lib/libpocl.so.2", 21);
  gm__opencl_icds_read(&icds);
  assert_int_equal(icds.count, 2);
  assert_true(icds.pocl);
  setenv("OCL_ICD_VENDORS", "libpocl.so.2", 1);
  gm__opencl_icds_read(&icds);
  assert_true(icds.count == 1 && icds.pocl);
  if (before) setenv("OCL_ICD_VENDORS", before, 1);
  if (!before) unsetenv("OCL_ICD_VENDORS");
  temp_folder_remove(&root);
}

static void test_pocl_is_not_started_where_it_would_abort(void **state) {
  (void)state;
  temp_folder root;
  gm_error err;
  gm__opencl_icds icds = {.count = 1, .pocl = true, .where = "/etc/OpenCL/vendors"};
  temp_folder_make(&root);
  assert_int_equal(gm__opencl_icds_check(&icds, root.path, &err), GM_ERR_UNAVAILABLE);
  assert_non_null(strstr(err.message, "/sys/devices/system/cpu/cpu0/topology"));
  assert_non_null(strstr(err.message, "abort"));
  temp_folder_dir(&root, "sys/devices/system/cpu/cpu0/topology");
  assert_int_equal(gm__opencl_icds_check(&icds, root.path, &err), GM_OK);
  temp_folder_dir(&root, "sys/devices/system/node");
  assert_int_equal(gm__opencl_icds_check(&icds, root.path, &err), GM_ERR_UNAVAILABLE);
  temp_folder_write(&root, "sys/devices/system/node/online", "0\n", 2);
  assert_int_equal(gm__opencl_icds_check(&icds, root.path, &err), GM_OK);
  icds.pocl = false;
  assert_int_equal(gm__opencl_icds_check(&icds, "/nonexistent", &err), GM_OK);
  temp_folder_remove(&root);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_platforms_and_vendors_have_short_words),
      cmocka_unit_test(test_a_driver_that_answers_nothing_is_still_a_device),
      cmocka_unit_test(test_texts_are_cut_cleaned_and_ended),
      cmocka_unit_test(test_alignment_is_in_bits_and_must_be_sane),
      cmocka_unit_test(test_sizes_that_contradict_each_other_are_bounded),
      cmocka_unit_test(test_type_and_unified_memory),
      cmocka_unit_test(test_pci_addresses_full_partial_and_none),
      cmocka_unit_test(test_uuids_told_and_derived),
      cmocka_unit_test(test_free_memory_of_amd_is_handed_on_raw),
      cmocka_unit_test(test_an_adopted_device_is_described_by_its_own_platform),
      cmocka_unit_test(test_no_host_memory_for_a_text_is_said),
      cmocka_unit_test(test_registered_drivers_are_counted_from_files),
      cmocka_unit_test(test_pocl_is_not_started_where_it_would_abort),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
