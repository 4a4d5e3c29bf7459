// The hook of torch that carries a C++ object: a filter that says which streams a private pool is for.
#include <functional>
#include <new>
#include <utility>

#include "gm_torch.h"

struct CUstream_st;  // on ROCm another name for the same kind of pointer

namespace {

using filter_function = std::function<bool(CUstream_st *)>;

// An exception must not pass through C. A stream that torch cannot ask for is none of a capture.
bool wants(void *user, void *stream) {
  try {
    return (*static_cast<filter_function *>(user))(static_cast<CUstream_st *>(stream));
  } catch (...) {
    return false;
  }
}

void drop(void *user) { delete static_cast<filter_function *>(user); }

}  // namespace

extern "C" GM_API void gm_torch_begin_allocate_to_pool(int ordinal, gm_torch_pool_id id, filter_function meant) {
  filter_function *kept = meant ? new (std::nothrow) filter_function(std::move(meant)) : nullptr;
  const gm_torch_filter filter = {wants, drop, kept};
  gm_torch_pool_begin(ordinal, id, kept ? &filter : nullptr);
}
