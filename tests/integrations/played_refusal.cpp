#include <exception>

#include "tests/integrations/played_ort.h"

namespace {

// ONNX Runtime does this at the border of its interface.
template <class call>
int is_refused(call alloc) {
  try {
    alloc();
  } catch (const std::exception &) {
    return 1;
  }
  return 0;
}

}  // namespace

int played_refuses(OrtAllocator *allocator, size_t bytes) {
  return is_refused([=] { played_alloc(allocator, bytes); }) && is_refused([=] { played_reserve(allocator, bytes); });
}

int played_refuses_on(OrtAllocator *allocator, size_t bytes, void *native_stream) {
  return is_refused([=] { played_alloc_on(allocator, bytes, native_stream); });
}

int played_function_refuses(void *(*alloc)(size_t bytes), size_t bytes) {
  return is_refused([=] { alloc(bytes); });
}
