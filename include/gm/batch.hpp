/* gm for C++17: many blocks at once, all or none, and the pools of several devices. Nothing here throws. Both classes
 * own what they are made from, can be moved, and are as thread-safe as a std::unique_ptr. */
#ifndef GM_BATCH_HPP
#define GM_BATCH_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "gm/batch.h"
#include "gm/gm.hpp"
#include "gm/pool_set.h"

namespace gm {

/* A batch of blocks (gm/batch.h). It owns its pool. It frees itself in the order of its stream, which is that of the
 * first request until set_stream. */
class batch {
 public:
  batch() noexcept = default;

  /* Allocates all requests or none (gm_alloc_batch). Empty: it failed; *failed is then the index of the request that
   * was refused, or the number of requests. A batch of no requests is empty, too. */
  static batch create(const pool &pool, const gm_batch_params &params, gm_error *err = nullptr,
                      std::size_t *failed = nullptr) {
    batch out;
    if (failed) *failed = params.count;
    out.parts_.reset(new (std::nothrow) gm_part[params.count ? params.count : 1]());
    if (!out.parts_) {
      if (err) err->status = GM_ERR_OUT_OF_HOST_MEMORY;
      return out;
    }
    if (gm_alloc_batch(pool.get(), &params, out.parts_.get(), failed, err) != GM_OK || params.count == 0) return {};
    out.pool_ = pool;
    out.count_ = params.count;
    out.stream_ = params.requests[0].stream;
    return out;
  }
  static batch create(const pool &pool, const gm_request *requests, std::size_t count, std::uint32_t flags = 0,
                      gm_error *err = nullptr, std::size_t *failed = nullptr) {
    gm_batch_params params = {};
    params.struct_size = sizeof params;
    params.flags = flags;
    params.requests = requests;
    params.count = count;
    return create(pool, params, err, failed);
  }
  batch(batch &&other) noexcept
      : pool_(std::move(other.pool_)),
        parts_(std::move(other.parts_)),
        count_(std::exchange(other.count_, 0)),
        stream_(other.stream_) {}
  batch &operator=(batch other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(parts_, other.parts_);
    std::swap(count_, other.count_);
    std::swap(stream_, other.stream_);
    return *this;
  }
  ~batch() {
    if (count_ == 0) return;
    end_or_tell(gm_device_context(gm_pool_device(pool_.get())), "gm::batch",
                [this](gm_error *why) { return free(why); });
  }

  explicit operator bool() const noexcept { return count_ > 0; }
  std::size_t size() const noexcept { return count_; }
  const gm_part &operator[](std::size_t index) const noexcept { return parts_[index]; }
  const gm_part *begin() const noexcept { return parts_.get(); }
  const gm_part *end() const noexcept { return parts_.get() + count_; }
  void set_stream(gm_stream *stream) noexcept { stream_ = stream; }
  /* Frees all parts now (gm_free_batch), and returns the first failure. The batch is empty afterwards: it does not try
   * again what was refused. An empty batch is GM_OK. */
  gm_status free(gm_error *err = nullptr) noexcept {
    const std::size_t count = std::exchange(count_, 0);
    return count ? gm_free_batch(pool_.get(), parts_.get(), count, stream_, err) : GM_OK;
  }

 private:
  pool pool_;
  std::unique_ptr<gm_part[]> parts_;
  std::size_t count_ = 0;
  gm_stream *stream_ = nullptr;
};

/* A pool on each of several devices (gm/pool_set.h). It owns the devices. */
class pool_set {
 public:
  pool_set() noexcept = default;

  /* Creates a pool on each device, all with `params`. Empty: it failed. */
  static pool_set create(const device *devices, std::size_t count, const gm_pool_params *params = nullptr,
                         gm_error *err = nullptr) {
    pool_set out;
    std::unique_ptr<gm_device *[]> raw(new (std::nothrow) gm_device *[count ? count : 1]());
    out.devices_.reset(new (std::nothrow) device[count ? count : 1]);
    if (!raw || !out.devices_) {
      if (err) err->status = GM_ERR_OUT_OF_HOST_MEMORY;
      return {};
    }
    for (std::size_t i = 0; i < count; i++) {
      out.devices_[i] = devices[i];
      raw[i] = devices[i].get();
    }
    gm_pool_set_create(raw.get(), count, params, &out.self_, err);
    return out;
  }
  pool_set(pool_set &&other) noexcept
      : devices_(std::move(other.devices_)), self_(std::exchange(other.self_, nullptr)) {}
  pool_set &operator=(pool_set other) noexcept {
    std::swap(devices_, other.devices_);
    std::swap(self_, other.self_);
    return *this;
  }
  ~pool_set() {
    if (!self_) return;
    end_or_tell(devices_[0].parent().get(), "gm::pool_set", [this](gm_error *why) { return destroy(why); });
  }

  gm_pool_set *get() const noexcept { return self_; }
  explicit operator bool() const noexcept { return self_ != nullptr; }
  std::size_t size() const { return gm_pool_set_count(self_); }
  /* Returns pool number `index`, borrowed from the set. NULL: there is none. */
  gm_pool *operator[](std::size_t index) const { return gm_pool_set_pool(self_, index); }
  gm_pool *find(const device &device) const { return gm_pool_set_find(self_, device.get()); }
  /* Reads what all pools hold together (gm_total_memory_usage). */
  gm_status total(gm_memory_usage &out, gm_error *err = nullptr) const {
    return gm_total_memory_usage(self_, &out, err);
  }
  /* Fills at most `capacity` entries, one for each device, and returns the number of devices (gm_pool_set_usage). */
  std::size_t usage(gm_memory_usage *out, std::size_t capacity) const {
    return gm_pool_set_usage(self_, out, capacity);
  }
  gm_status stats(gm_stats &out, gm_error *err = nullptr) const {
    out.struct_size = sizeof out;
    return gm_pool_set_stats(self_, &out, err);
  }
  std::uint64_t trim(std::uint64_t keep_bytes = 0) const { return gm_pool_set_trim(self_, keep_bytes); }
  /* Destroys it now (gm_pool_set_destroy). An empty set is GM_OK. After a failure it is still there. */
  gm_status destroy(gm_error *err = nullptr) noexcept {
    const gm_status status = gm_pool_set_destroy(self_, err);
    if (status == GM_OK) self_ = nullptr;
    return status;
  }

 private:
  std::unique_ptr<device[]> devices_;
  gm_pool_set *self_ = nullptr;
};

}  // namespace gm

#endif
