/* gm for C++17: a pool's pressure, fragmentation and clean-up, performance scopes, managed memory, and trackers. Only
 * what returns a std::vector or a std::string throws: std::bad_alloc. A class is as thread-safe as a std::unique_ptr.
 */
#ifndef GM_MANAGE_HPP
#define GM_MANAGE_HPP

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gm/cleanup.h"
#include "gm/fragmentation.h"
#include "gm/gm.hpp"
#include "gm/idle.h"
#include "gm/managed.h"
#include "gm/perf.h"
#include "gm/pressure.h"
#include "gm/profile.h"
#include "gm/tracker.h"

namespace gm {

/* Reads the pressure on a pool (gm_pool_pressure). */
inline gm_status pressure_of(const pool &pool, gm_pressure &out, gm_error *err = nullptr) {
  out.struct_size = sizeof out;
  return gm_pool_pressure(pool.get(), &out, err);
}
/* Tells how much of a pool's free memory lies in holes between blocks (gm_pool_fragmentation). */
inline gm_status fragmentation_of(const pool &pool, gm_fragmentation &out, gm_error *err = nullptr) {
  out.struct_size = sizeof out;
  return gm_pool_fragmentation(pool.get(), &out, err);
}
/* Tells which sizes a pool is asked for, and how long its blocks live (gm_pool_profile_read). */
inline gm_status profile_of(const pool &pool, gm_trace_profile &out, gm_error *err = nullptr) {
  out.struct_size = sizeof out;
  return gm_pool_profile_read(pool.get(), &out, err);
}
/* Gives back old and surplus memory of a pool (gm_pool_cleanup). */
inline gm_status cleanup(const pool &pool, double threshold = GM_CLEANUP_THRESHOLD_CONFIG, bool force = false,
                         std::uint64_t *bytes = nullptr, gm_error *err = nullptr) {
  return gm_pool_cleanup(pool.get(), threshold, force, bytes, err);
}
/* Gives back all memory of a pool that nobody uses, and returns the bytes (gm_pool_clear). */
inline std::uint64_t clear(const pool &pool) { return gm_pool_clear(pool.get()); }
/* Joins neighbouring free memory of a pool, and returns the bytes that a trim would give back, or, if aggressive, that
 * went back (gm_pool_coalesce). */
inline std::uint64_t coalesce(const pool &pool, bool aggressive = false) {
  return gm_pool_coalesce(pool.get(), aggressive);
}
/* Gives a key of the configuration another value for a pool that is in use (gm_pool_configure). */
inline gm_status configure(const pool &pool, const char *key, const char *value, gm_error *err = nullptr) {
  return gm_pool_configure(pool.get(), key, value, err);
}
/* The value that such a key has for a pool now (gm_pool_get_config). Empty: it failed. */
inline std::string configured(const pool &pool, const char *key, gm_error *err = nullptr) {
  char text[64] = "";
  return gm_pool_get_config(pool.get(), key, text, sizeof text, err) == GM_OK ? text : "";
}

/* Has polls trim a pool that nobody uses, and put it to sleep (gm_pool_idle_on_poll). */
inline gm_status idle_on_poll(const pool &pool, gm_idle_params params, gm_error *err = nullptr) {
  params.struct_size = sizeof params;
  return gm_pool_idle_on_poll(pool.get(), &params, err);
}

/* A performance scope (gm/perf.h). It owns its pool or context, and ends in its destructor if nobody has ended it. */
class perf_scope {
 public:
  perf_scope() noexcept = default;

  /* Begins a scope of a pool. Empty: it failed. */
  static perf_scope begin(const pool &pool, const char *name = nullptr, gm_error *err = nullptr) {
    perf_scope out;
    if (gm_perf_begin(pool.get(), name, &out.self_, err) == GM_OK) out.pool_ = pool;
    return out;
  }
  /* Begins a scope of all pools of a context. Empty: it failed. */
  static perf_scope begin(const context &ctx, const char *name = nullptr, gm_error *err = nullptr) {
    perf_scope out;
    if (gm_perf_begin_context(ctx.get(), name, &out.self_, err) == GM_OK) out.ctx_ = ctx;
    return out;
  }
  perf_scope(perf_scope &&other) noexcept
      : ctx_(std::move(other.ctx_)),
        pool_(std::move(other.pool_)),
        self_(std::exchange(other.self_, gm_perf_scope{})) {}
  perf_scope &operator=(perf_scope other) noexcept {
    std::swap(ctx_, other.ctx_);
    std::swap(pool_, other.pool_);
    std::swap(self_, other.self_);
    return *this;
  }
  ~perf_scope() { gm_perf_end(&self_, nullptr, nullptr); }

  explicit operator bool() const noexcept { return self_.number != 0; }
  /* Ends the scope, and tells what happened within it (gm_perf_end). */
  gm_status end(gm_perf_report &out, gm_error *err = nullptr) {
    out.struct_size = sizeof out;
    return gm_perf_end(&self_, &out, err);
  }

 private:
  context ctx_;
  pool pool_;
  gm_perf_scope self_ = {};
};

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
  gm_status info(gm_managed_info &out, gm_error *err = nullptr) const {
    out.struct_size = sizeof out;
    return gm_managed_get_info(self_, &out, err);
  }
  /* Brings a range to a place, and waits until it is there (gm_managed_prefetch). */
  gm_status prefetch(gm_managed_place place, std::uint64_t offset, std::uint64_t bytes, gm_error *err = nullptr) const {
    return gm_managed_prefetch(self_, place, offset, bytes, nullptr, nullptr, err);
  }
  /* Brings a range to a place in the order of `stream`. Empty: it failed. */
  point prefetch(gm_managed_place place, std::uint64_t offset, std::uint64_t bytes, const stream &stream,
                 gm_error *err = nullptr) const {
    gm_point made = {};
    const gm_status status = gm_managed_prefetch(self_, place, offset, bytes, stream.get(), &made, err);
    return status == GM_OK ? point(gm_pool_device(pool_.get()), made) : point();
  }
  gm_status advise(gm_managed_advice advice, gm_managed_place place, std::uint64_t offset, std::uint64_t bytes,
                   bool give = true, gm_error *err = nullptr) const {
    return gm_managed_advise(self_, advice, place, offset, bytes, give, err);
  }
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

/* The calls of a tracker that somebody else owns, such as a pool's (gm/tracker.h). */
class tracker_view {
 public:
  tracker_view() noexcept = default;
  explicit tracker_view(gm_tracker *tracker) noexcept : self_(tracker) {}

  gm_tracker *get() const noexcept { return self_; }
  explicit operator bool() const noexcept { return self_ != nullptr; }
  /* Records memory of any origin, and returns its id. 0: nothing is recorded. */
  std::uint64_t track(std::uint64_t address, std::uint64_t bytes, std::uint32_t tag = 0) const {
    gm_track_entry entry = {};
    entry.address = address;
    entry.bytes = bytes;
    entry.tag = tag;
    return gm_tracker_track(self_, &entry);
  }
  std::uint64_t track(const gm_track_entry &entry) const { return gm_tracker_track(self_, &entry); }
  gm_status untrack(std::uint64_t id) const { return gm_tracker_untrack(self_, id); }
  std::uint64_t count() const { return gm_tracker_count(self_); }
  std::uint64_t total_bytes() const { return gm_tracker_total_bytes(self_); }
  std::uint64_t peak_bytes() const { return gm_tracker_peak_bytes(self_); }
  std::uint64_t mark() const { return gm_tracker_mark(self_); }
  /* Returns entries that are at least `age_ns` old, the oldest first. */
  std::vector<gm_track_entry> find_old(std::uint64_t age_ns) const {
    return all<gm_track_entry>(
        [=](gm_track_entry *out, std::size_t capacity) { return gm_tracker_find_old(self_, age_ns, out, capacity); });
  }
  /* Returns live entries that were born before mark `mark` and after mark `since`. */
  std::vector<gm_track_entry> find_between(std::uint64_t since, std::uint64_t mark) const {
    return all<gm_track_entry>([=](gm_track_entry *out, std::size_t capacity) {
      return gm_tracker_find_between(self_, since, mark, out, capacity);
    });
  }
  /* Returns totals by tag, the largest first. */
  std::vector<gm_tag_total> by_tag() const {
    return all<gm_tag_total>(
        [=](gm_tag_total *out, std::size_t capacity) { return gm_tracker_by_tag(self_, out, capacity); });
  }
  /* Returns a text of the live entries, by tag and oldest first. */
  std::string report() const {
    std::string text;
    std::size_t needed = gm_tracker_report(self_, nullptr, 0);
    do {
      text.resize(needed + 1); /* one more for the terminator */
      needed = gm_tracker_report(self_, &text[0], text.size());
    } while (needed >= text.size());
    text.resize(needed);
    return text;
  }

 protected:
  gm_tracker *self_ = nullptr;

 private:
  /* All that `fill` can write: asks again while other threads add to it. */
  template <class Entry, class Fill>
  static std::vector<Entry> all(Fill fill) {
    std::vector<Entry> out;
    std::size_t found = fill(nullptr, 0);
    do {
      out.resize(found);
      found = fill(out.data(), out.size());
    } while (found > out.size());
    out.resize(found);
    return out;
  }
};

/* Returns the tracker of a pool, borrowed from it. Empty: the pool does not track (gm_pool_tracker). */
inline tracker_view tracker_of(const pool &pool) { return tracker_view(gm_pool_tracker(pool.get())); }

/* A tracker that stands alone (gm/tracker.h). It owns its context. */
class tracker : public tracker_view {
 public:
  tracker() noexcept = default;

  /* Creates a tracker. Empty: it failed. */
  static tracker create(const context &ctx, gm_error *err = nullptr) {
    tracker out;
    if (gm_tracker_create(ctx.get(), &out.self_, err) == GM_OK) out.parent_ = ctx;
    return out;
  }
  tracker(tracker &&other) noexcept
      : tracker_view(std::exchange(other.self_, nullptr)), parent_(std::move(other.parent_)) {}
  tracker &operator=(tracker other) noexcept {
    std::swap(parent_, other.parent_);
    std::swap(self_, other.self_);
    return *this;
  }
  ~tracker() { gm_tracker_destroy(self_); }

 private:
  context parent_;
};

}  // namespace gm

#endif
