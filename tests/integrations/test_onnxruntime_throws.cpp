// ONNX Runtime does not look whether an allocation returned NULL, and crashes. So a refusal is an exception, as it is
// from its own allocators. It passes through functions in C.
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

extern "C" {
#include <cmocka.h>
}

#include "integrations/onnxruntime/gm_onnxruntime.h"
#include "integrations/shared/engines.h"
#include "tests/integrations/played_ort.h"

namespace {

std::string reason_of(OrtAllocator *it, void *(*alloc)(OrtAllocator *, size_t)) {
  try {
    alloc(it, SIZE_MAX / 2);
  } catch (const std::exception &error) {
    return error.what();
  }
  return "it returned";
}

void test_a_refusal_is_an_exception_with_the_reason(void **) {
  OrtAllocator *it = gm_ort_allocator_create(played_base(), nullptr);
  assert_non_null(it);
  for (auto *alloc : {played_alloc, played_reserve}) {
    const std::string reason = reason_of(it, alloc);
    assert_string_equal(reason.c_str(), gm_engines_why());
    assert_non_null(std::strstr(reason.c_str(), "refused"));
  }
  void *block = played_alloc(it, 1000);  // nothing is locked
  assert_non_null(block);
  played_free(it, block);
  gm_ort_allocator_destroy(it);
}

void test_threads_get_their_own_reasons(void **) {
  OrtAllocator *it = gm_ort_allocator_create(played_base(), nullptr);
  std::vector<std::string> reasons(8);
  std::vector<std::thread> threads;
  for (auto &reason : reasons) threads.emplace_back([&reason, it] { reason = reason_of(it, played_alloc); });
  for (auto &thread : threads) thread.join();
  for (const auto &reason : reasons) assert_non_null(std::strstr(reason.c_str(), "refused"));
  assert_int_equal(gm_engines_host_figure("active"), 0);
  gm_ort_allocator_destroy(it);
}

}  // namespace

int main() {
  played_reset();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_refusal_is_an_exception_with_the_reason),
      cmocka_unit_test(test_threads_get_their_own_reasons),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
