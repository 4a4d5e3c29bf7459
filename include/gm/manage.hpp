/* gm for C++17: a pool's pressure and clean-up, managed memory, and trackers. Nothing here throws. A class is as
 * thread-safe as a std::unique_ptr. */
#ifndef GM_MANAGE_HPP
#define GM_MANAGE_HPP

#include <cstdint>
#include <utility>

#include "gm/cleanup.h"
#include "gm/gm.hpp"
#include "gm/managed.h"
#include "gm/pressure.h"
#include "gm/tracker.h"

namespace gm {

/* Reads the pressure on a pool (gm_pool_pressure). */
inline gm_status pressure_of(const pool &pool, gm_pressure &out, gm_error *err = nullptr) {
  out.struct_size = sizeof out;
  return gm_pool_pressure(pool.get(), &out, err);
}
/* Gives back old and surplus memory of a pool (gm_pool_cleanup). */
inline gm_status cleanup(const pool &pool, double threshold = GM_CLEANUP_THRESHOLD_CONFIG, bool force = false,
                         std::uint64_t *bytes = nullptr, gm_error *err = nullptr) {
  return gm_pool_cleanup(pool.get(), threshold, force, bytes, err);
}
/* Gives back all memory of a pool that nobody uses, and returns the bytes (gm_pool_clear). */
inline std::uint64_t clear(const pool &pool) { return gm_pool_clear(pool.get()); }

/* Managed memory (gm/managed.h). It owns its pool. It is destroyed in the order of its stream: set_stream. */
class managed {
 public:
  managed() noexcept = default;

  /* Creates managed memory. Empty: it failed. */
  static managed create(const pool &pool, const gm_managed_params &params, gm_error *err = nullptr) {
    managed out;
    if (gm_managed_create(pool.get(), &params, &out.self_, err) == GM_OK) out.pool_ = pool;
    return out;
  }
  static managed create(const pool &pool, std::uint64_t bytes, gm_error *err = nullptr) {
    gm_managed_params params = {};
    params.struct_size = sizeof params;
    params.bytes = bytes;
    return create(pool, params, err);
  }
  managed(managed &&other) noexcept
      : pool_(std::move(other.pool_)), self_(std::exchange(other.self_, nullptr)), stream_(other.stream_) {}
  managed &operator=(managed other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(self_, other.self_);
    std::swap(stream_, other.stream_);
    return *this;
  }
  ~managed() {
    if (!self_) return;
    end_or_tell(gm_device_context(gm_pool_device(pool_.get())), "gm::managed",
                [this](gm_error *why) { return destroy(why); });
  }

  gm_managed *get() const noexcept { return self_; }
  explicit operator bool() const noexcept { return self_ != nullptr; }
  void set_stream(gm_stream *stream) noexcept { stream_ = stream; }
  void *host() const { return gm_managed_host(self_); }
  const gm_block *block() const { return gm_managed_block(self_); }
  /* Destroys it now (gm_managed_destroy). Empty memory is GM_OK. After a failure other than DEVICE_LOST it is still
   * there. */
  gm_status destroy(gm_error *err = nullptr) noexcept {
    const gm_status status = gm_managed_destroy(self_, stream_, err);
    if (status == GM_OK || status == GM_ERR_DEVICE_LOST) self_ = nullptr;
    return status;
  }

 private:
  pool pool_;
  gm_managed *self_ = nullptr;
  gm_stream *stream_ = nullptr;
};

/* A tracker that stands alone (gm/tracker.h). It owns its context. */
class tracker {
 public:
  tracker() noexcept = default;

  /* Creates a tracker. Empty: it failed. */
  static tracker create(const context &ctx, gm_error *err = nullptr) {
    tracker out;
    if (gm_tracker_create(ctx.get(), &out.self_, err) == GM_OK) out.parent_ = ctx;
    return out;
  }
  tracker(tracker &&other) noexcept : parent_(std::move(other.parent_)), self_(std::exchange(other.self_, nullptr)) {}
  tracker &operator=(tracker other) noexcept {
    std::swap(parent_, other.parent_);
    std::swap(self_, other.self_);
    return *this;
  }
  ~tracker() { gm_tracker_destroy(self_); }

  gm_tracker *get() const noexcept { return self_; }
  explicit operator bool() const noexcept { return self_ != nullptr; }

 private:
  context parent_;
  gm_tracker *self_ = nullptr;
};

}  // namespace gm

#endif
