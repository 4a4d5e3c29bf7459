/* Operations a second of gm_store and gm_cache, beside a plain hash map and LevelDB's LRU cache, in one run and in one
 * thread. Each keeps tensors under keys such as "model/layer/000017"; each takes a copy of the bytes that it is given.
 *
 *   map       std::unordered_map of shared arrays, under a mutex: what an engine writes itself
 *   LevelDB   leveldb::NewLRUCache: a cache with leases, a bound on bytes, and shards with locks
 *   gm_cache  S3-FIFO, with leases and a bound on bytes
 *   gm_store  tensors in blocks of a pool of the CPU; they could go down to tiers
 *
 * A get leases or retains a value, reads its first byte, and gives it back. For the store the first byte is not read:
 * its tensors may be in memory of a device. Nothing is evicted.
 *
 * usage: gm_values_bench [--count N] [--bytes N] [--runs N] */
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#ifdef GM_BENCH_LEVELDB
#include <leveldb/cache.h>
#endif

#include "gm/cache.h"
#include "gm/store_all.h"

namespace {

struct Asked {
  std::size_t count = 20000, bytes = 4096, runs = 5;
};

class Keeper {
 public:
  explicit Keeper(const char *named) : name(named) {}
  Keeper(const Keeper &) = delete;
  Keeper &operator=(const Keeper &) = delete;
  virtual ~Keeper() = default;
  virtual bool put(const std::string &key, const void *data, std::size_t bytes) = 0;
  virtual bool get(const std::string &key) = 0;
  virtual bool drop(const std::string &key) = 0;
  const char *const name;
};

unsigned sum; /* of bytes that were read, so that the reads are not left out */

class Map : public Keeper {
 public:
  Map() : Keeper("map") {}
  bool put(const std::string &key, const void *data, std::size_t bytes) override {
    std::shared_ptr<unsigned char[]> copy(new unsigned char[bytes]);
    std::memcpy(copy.get(), data, bytes);
    const std::lock_guard<std::mutex> held(lock);
    values[key] = std::move(copy);
    return true;
  }
  bool get(const std::string &key) override {
    std::shared_ptr<unsigned char[]> value;
    {
      const std::lock_guard<std::mutex> held(lock);
      const auto found = values.find(key);
      if (found == values.end()) return false;
      value = found->second;
    }
    sum += value[0];
    return true;
  }
  bool drop(const std::string &key) override {
    const std::lock_guard<std::mutex> held(lock);
    return values.erase(key) == 1;
  }

 private:
  std::mutex lock;
  std::unordered_map<std::string, std::shared_ptr<unsigned char[]>> values;
};

#ifdef GM_BENCH_LEVELDB
class LevelDb : public Keeper {
 public:
  explicit LevelDb(std::size_t most) : Keeper("LevelDB's cache"), cache(leveldb::NewLRUCache(most)) {}
  bool put(const std::string &key, const void *data, std::size_t bytes) override {
    void *copy = std::malloc(bytes);
    if (!copy) return false;
    std::memcpy(copy, data, bytes);
    cache->Release(cache->Insert(key, copy, bytes, [](const leveldb::Slice &, void *value) { std::free(value); }));
    return true;
  }
  bool get(const std::string &key) override {
    leveldb::Cache::Handle *found = cache->Lookup(key);
    if (!found) return false;
    sum += *static_cast<unsigned char *>(cache->Value(found));
    cache->Release(found);
    return true;
  }
  bool drop(const std::string &key) override {
    cache->Erase(key);
    return true;
  }

 private:
  std::unique_ptr<leveldb::Cache> cache;
};
#endif

class GmCache : public Keeper {
 public:
  GmCache(gm_context *ctx, std::size_t most) : Keeper("gm_cache") {
    gm_cache_params params = {};
    params.struct_size = sizeof params;
    params.max_entries = UINT64_MAX;
    params.max_bytes = most;
    params.release = [](void *, void *object, uint64_t) { std::free(object); };
    gm_cache_create(ctx, &params, &cache, nullptr);
  }
  ~GmCache() override { gm_cache_destroy(cache, nullptr); }
  bool put(const std::string &key, const void *data, std::size_t bytes) override {
    void *copy = std::malloc(bytes);
    if (!copy) return false;
    std::memcpy(copy, data, bytes);
    if (gm_cache_put(cache, key.data(), key.size(), copy, bytes, nullptr, nullptr) == GM_OK) return true;
    std::free(copy);
    return false;
  }
  bool get(const std::string &key) override {
    gm_cache_lease *lease;
    void *object;
    if (gm_cache_get(cache, key.data(), key.size(), &lease, &object, nullptr)) return false;
    sum += *static_cast<unsigned char *>(object);
    gm_cache_return(lease);
    return true;
  }
  bool drop(const std::string &key) override {
    return gm_cache_remove(cache, key.data(), key.size(), nullptr) == GM_OK;
  }

 private:
  gm_cache *cache = nullptr;
};

class GmStore : public Keeper {
 public:
  explicit GmStore(gm_context *ctx) : Keeper("gm_store") {
    if (gm_device_open_index(ctx, "cpu", 0, &device, nullptr)) return;
    if (gm_pool_create(device, nullptr, &pool, nullptr)) return;
    gm_store_params params = {};
    params.struct_size = sizeof params;
    params.pool = pool;
    gm_store_create(&params, &store, nullptr);
  }
  ~GmStore() override {
    gm_store_destroy(store, nullptr);
    gm_pool_destroy(pool, nullptr);
    gm_device_close(device, nullptr);
  }
  bool put(const std::string &key, const void *data, std::size_t bytes) override {
    gm_tensor_desc desc = {};
    desc.struct_size = sizeof desc;
    desc.dtype = GM_DTYPE_I8;
    desc.rank = 1;
    desc.shape[0] = bytes;
    return gm_store_put_tensor(store, key.c_str(), &desc, data, nullptr) == GM_OK;
  }
  bool get(const std::string &key) override {
    gm_value *value = nullptr;
    if (gm_store_get(store, key.c_str(), &value, nullptr)) return false;
    gm_value_release(value, nullptr);
    return true;
  }
  bool drop(const std::string &key) override { return gm_store_delete(store, key.c_str(), nullptr) == GM_OK; }

 private:
  gm_device *device = nullptr;
  gm_pool *pool = nullptr;
  gm_store *store = nullptr;
};

enum { PUT, GET, DROP, FIGURES };

struct Figures {
  std::vector<double> rates[FIGURES];
  double median(int figure) const {
    std::vector<double> sorted = rates[figure];
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

template <class Work>
bool timed(const std::vector<std::string> &keys, std::vector<double> &rates, Work work) {
  const auto from = std::chrono::steady_clock::now();
  for (const std::string &key : keys) {
    if (!work(key)) return false;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - from;
  rates.push_back(static_cast<double>(keys.size()) / took.count());
  return true;
}

bool run(const Asked &asked, Keeper &keeper, Figures &figures) {
  std::vector<std::string> keys, mixed;
  const std::vector<unsigned char> data(asked.bytes, 1);
  for (std::size_t i = 0; i < asked.count; i++) {
    char key[40];
    std::snprintf(key, sizeof key, "model/layer/%06zu", i);
    keys.emplace_back(key);
  }
  for (std::size_t i = 0; i < asked.count; i++) mixed.push_back(keys[i * 7919 % asked.count]); /* a prime: mixed */
  const bool good =
      timed(keys, figures.rates[PUT], [&](const std::string &k) { return keeper.put(k, data.data(), asked.bytes); }) &&
      timed(mixed, figures.rates[GET], [&](const std::string &k) { return keeper.get(k); }) &&
      timed(keys, figures.rates[DROP], [&](const std::string &k) { return keeper.drop(k); });
  if (!good) std::fprintf(stderr, "gm_values_bench: %s failed\n", keeper.name);
  return good;
}

void print(const std::vector<std::unique_ptr<Keeper>> &keepers, const std::vector<Figures> &figures) {
  std::printf("thousand operations a second; \"/ map\": how many times as fast as the map\n\n");
  std::printf("| | put | / map | get | / map | delete | / map |\n|---|---|---|---|---|---|---|\n");
  for (std::size_t k = 0; k < keepers.size(); k++) {
    std::printf("| %s |", keepers[k]->name);
    for (int f = PUT; f < FIGURES; f++) {
      std::printf(" %.0f | %.2f |", figures[k].median(f) / 1e3, figures[k].median(f) / figures[0].median(f));
    }
    std::printf("\n");
  }
}

bool parse(Asked &asked, int argc, char **argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::size_t number = std::strtoull(argv[i + 1], nullptr, 10);
    if (!std::strcmp(argv[i], "--count"))
      asked.count = number;
    else if (!std::strcmp(argv[i], "--bytes"))
      asked.bytes = number;
    else if (!std::strcmp(argv[i], "--runs"))
      asked.runs = number;
    else
      return false;
  }
  return argc % 2 == 1 && asked.count && asked.bytes && asked.runs;
}

}  // namespace

int main(int argc, char **argv) {
  Asked asked;
  gm_context *ctx = nullptr;
  if (!parse(asked, argc, argv)) {
    std::fprintf(stderr, "usage: gm_values_bench [--count N] [--bytes N] [--runs N]\n");
    return 2;
  }
  if (gm_context_create(nullptr, &ctx, nullptr)) return 1;
  const std::size_t most = asked.count * asked.bytes * 2;
  std::vector<std::unique_ptr<Keeper>> keepers;
  keepers.emplace_back(new Map);
#ifdef GM_BENCH_LEVELDB
  keepers.emplace_back(new LevelDb(most));
#else
  std::printf("SKIPPED PEER: this build lacks LevelDB: scripts/install bench, then configure again\n");
#endif
  keepers.emplace_back(new GmCache(ctx, most));
  keepers.emplace_back(new GmStore(ctx));
  std::vector<Figures> figures(keepers.size());
  bool good = true;
  for (std::size_t i = 0; i < asked.runs && good; i++) {
    for (std::size_t k = 0; k < keepers.size() && good; k++) good = run(asked, *keepers[k], figures[k]);
  }
  if (good) print(keepers, figures);
  keepers.clear();
  gm_context_destroy(ctx, nullptr);
  return good ? 0 : 1;
}
