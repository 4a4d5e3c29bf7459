// GPUMemoryContext: what is allocated in the context is released at its end, on every way out.
#include "example.hpp"
#include "gm/scope.hpp"
#include "gm/store_all.h"

namespace {

class memory_context {
 public:
  memory_context(const gm::pool &pool, gm_store *manager)
      : pool_(pool), manager_(manager), scope_(gm::scope::create(pool)) {}
  gm_status allocate(const char *key, const float *data, std::uint64_t count) {
    gm_tensor_desc desc = {};
    desc.struct_size = sizeof desc;
    desc.dtype = GM_DTYPE_F32;
    desc.rank = 1;
    desc.shape[0] = count;
    gm_value *value = nullptr;
    gm_status status = gm_value_tensor(pool_.get(), &desc, data, GM_FALLBACK_REFUSE, nullptr, &value, nullptr);
    if (status == GM_OK) status = gm_store_allocate(manager_, key, value, nullptr);
    gm_value_release(value, nullptr);
    if (status != GM_OK) return status;
    return scope_.defer([manager = manager_, key] { return gm_store_release(manager, key, nullptr); });
  }

 private:
  gm::pool pool_;
  gm_store *manager_;
  gm::scope scope_;
};

bool exists(gm_store *manager, const char *key) {
  bool there = false;
  CLAIM(gm_store_exists(manager, key, &there, nullptr) == GM_OK);
  return there;
}

}  // namespace

int main(int argc, char **argv) {
  const gm::pool pool = example_pool(argc > 1 ? argv[1] : "cpu");
  gm_store_params params = {};
  params.struct_size = sizeof params;
  params.pool = pool.get();
  gm_store *manager = nullptr;
  CLAIM(gm_store_create(&params, &manager, nullptr) == GM_OK);
  {
    memory_context context(pool, manager);
    const float data[] = {1, 2, 3};
    CLAIM(context.allocate("scratch/a", data, 3) == GM_OK && context.allocate("scratch/b", data, 3) == GM_OK);
    CLAIM(exists(manager, "scratch/a") && exists(manager, "scratch/b"));
  }
  CLAIM(!exists(manager, "scratch/a") && !exists(manager, "scratch/b"));
  CLAIM(gm_store_destroy(manager, nullptr) == GM_OK);
  CLAIM(example_stats(pool).active == 0);
  std::puts("the context released what it allocated");
  return 0;
}
