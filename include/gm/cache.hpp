/* gm for C++17: a cache of objects of one class (gm/cache.h). An object that leaves the cache is deleted. Nothing here
 * throws, and a destructor of T must not throw. */
#ifndef GM_CACHE_HPP
#define GM_CACHE_HPP

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "gm/cache.h"
#include "gm/gm.hpp"

namespace gm {

/* One use of an object in a cache. The object is neither evicted nor deleted meanwhile. It can be moved, and ends in
 * its destructor. It owns its cache. */
template <class T>
class lease {
 public:
  lease() noexcept = default;
  lease(std::shared_ptr<gm_cache> owner, gm_cache_lease *value) noexcept : owner_(std::move(owner)), self_(value) {}
  lease(lease &&other) noexcept : owner_(std::move(other.owner_)), self_(std::exchange(other.self_, nullptr)) {}
  lease &operator=(lease other) noexcept {
    std::swap(owner_, other.owner_);
    std::swap(self_, other.self_);
    return *this;
  }
  ~lease() { gm_cache_return(self_); }

  explicit operator bool() const noexcept { return self_ != nullptr; }
  T *get() const { return self_ ? static_cast<T *>(gm_cache_lease_object(self_)) : nullptr; }
  T &operator*() const { return *get(); }
  T *operator->() const { return get(); }

 private:
  std::shared_ptr<gm_cache> owner_; /* it ends after the lease is given back */
  gm_cache_lease *self_ = nullptr;
};

/* A cache. A copy is another owner, and the last owner ends it. It owns its context, or its pool. No object in it may
 * own the cache, which would never end. It is as thread-safe as a std::shared_ptr; its calls are thread-safe. */
template <class T>
class cache {
 public:
  cache() noexcept = default;

  /* Creates a cache. Its own function deletes the objects, so `release`, `user` and `pool` of `params` do not count.
   * Empty: it failed. */
  static cache create(const context &ctx, const gm_cache_params *params = nullptr, gm_error *err = nullptr) {
    return make(ctx, pool(), params, err);
  }
  /* Creates a cache whose objects hold memory of `pool`, and give way when it is short. Empty: it failed. */
  static cache create(const pool &pool, const gm_cache_params *params = nullptr, gm_error *err = nullptr) {
    return make(pool.parent().parent(), pool, params, err);
  }

  gm_cache *get() const noexcept { return self_.get(); }
  explicit operator bool() const noexcept { return self_ != nullptr; }

  /* Puts an object of `bytes` under a key (gm_cache_put). On GM_OK the cache owns it; after a failure `object` still
   * does. With `out` the caller uses it at once. */
  gm_status put(std::string_view key, std::unique_ptr<T> &&object, std::uint64_t bytes, lease<T> *out = nullptr,
                gm_error *err = nullptr) const {
    gm_cache_lease *made = nullptr;
    const gm_status status =
        gm_cache_put(get(), key.data(), key.size(), object.get(), bytes, out ? &made : nullptr, err);
    if (status != GM_OK) return status;
    object.release();
    if (out) *out = lease<T>(self_, made);
    return status;
  }
  /* Finds the object of a key. Empty: there is none (gm_cache_get). */
  lease<T> find(std::string_view key, gm_error *err = nullptr) const {
    gm_cache_lease *made = nullptr;
    const gm_status status = gm_cache_get(get(), key.data(), key.size(), &made, nullptr, err);
    return status == GM_OK ? lease<T>(self_, made) : lease<T>();
  }
  gm_status keep(std::string_view key, bool yes = true, gm_error *err = nullptr) const {
    return gm_cache_keep(get(), key.data(), key.size(), yes, err);
  }
  gm_status remove(std::string_view key, gm_error *err = nullptr) const {
    return gm_cache_remove(get(), key.data(), key.size(), err);
  }
  gm_status clear(gm_error *err = nullptr) const { return gm_cache_clear(get(), err); }
  gm_status stats(gm_cache_stats &out, gm_error *err = nullptr) const {
    out.struct_size = sizeof out;
    return gm_cache_get_stats(get(), &out, err);
  }

 private:
  static cache make(const context &ctx, const pool &pool, const gm_cache_params *params, gm_error *err) {
    cache out;
    gm_cache *made = nullptr;
    gm_cache_params all = {};
    if (params) all = *params;
    all.struct_size = sizeof all;
    all.release = [](void *, void *object, std::uint64_t) { delete static_cast<T *>(object); };
    all.user = nullptr;
    all.pool = pool.get();
    if (gm_cache_create(ctx.get(), &all, &made, err) != GM_OK) return out;
    out.self_ = {made, [ctx, pool](gm_cache *self) {
                   end_or_tell(ctx.get(), "gm::cache", [self](gm_error *why) { return gm_cache_destroy(self, why); });
                 }};
    return out;
  }
  std::shared_ptr<gm_cache> self_;
};

}  // namespace gm

#endif
