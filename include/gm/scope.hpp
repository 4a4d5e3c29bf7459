/* gm for C++17: locks of buffers, and scopes, that end by themselves. They must end before their pool does. A class
 * here is as thread-safe as a std::unique_ptr. */
#ifndef GM_SCOPE_HPP
#define GM_SCOPE_HPP

#include <cstdint>
#include <cstdio>
#include <new>
#include <type_traits>
#include <utility>

#include "gm/gm.hpp"
#include "gm/scope.h"
#include "gm/value.h"

namespace gm {

/* A lock of a buffer (gm_buffer_lock): the buffer stays where it is, and alive, until the lock ends. Work on it is
 * submitted to the lock's stream before. NULL: the work is done by then. */
class buffer_lock {
 public:
  buffer_lock() noexcept = default;
  /* Empty: it failed. */
  explicit buffer_lock(buffer target, gm_stream *stream = nullptr, gm_error *err = nullptr) noexcept : stream_(stream) {
    if (gm_buffer_lock(target.get(), &block_, err) == GM_OK) target_ = std::move(target);
  }
  buffer_lock(buffer_lock &&other) noexcept
      : target_(std::move(other.target_)), block_(other.block_), stream_(other.stream_) {}
  buffer_lock &operator=(buffer_lock other) noexcept {
    std::swap(target_, other.target_);
    std::swap(block_, other.block_);
    std::swap(stream_, other.stream_);
    return *this;
  }
  /* Where gm cannot note the stream, it waits for the stream's work. Where it can do neither, the lock stays for ever,
   * because the work may still use the buffer. unlock() tells that; here gm_tell_left_open does. */
  ~buffer_lock() {
    if (target_) {
      end_or_tell(gm_device_context(gm_stream_device(stream_)), "gm::buffer_lock", [this](gm_error *why) {
        const gm_status status = unlock(why);
        if (status == GM_OK || gm_stream_sync(stream_, nullptr) != GM_OK) return status;
        return gm_buffer_unlock(target_.get(), nullptr, why);
      });
    }
  }

  explicit operator bool() const noexcept { return bool(target_); }
  /* Returns the buffer's block, which is valid as long as the lock. */
  const gm_block &block() const noexcept { return block_; }
  std::uint64_t address() const noexcept { return block_.address; }
  /* Ends the lock now (gm_buffer_unlock). An empty lock is GM_OK. After a failure the lock is still there. */
  gm_status unlock(gm_error *err = nullptr) noexcept {
    const gm_status status = target_ ? gm_buffer_unlock(target_.get(), stream_, err) : GM_OK;
    if (status == GM_OK) target_ = buffer();
    return status;
  }

 private:
  buffer target_;
  gm_block block_ = {};
  gm_stream *stream_ = nullptr;
};

/* A lock of a buffer that the host can reach, and its bytes (gm_buffer_host). The buffer stays where it is, and alive,
 * until the lock ends. A pointer that is kept longer is of no use. */
class host_lock {
 public:
  host_lock() noexcept = default;
  /* Empty: it failed. */
  explicit host_lock(buffer target, gm_error *err = nullptr) noexcept {
    if (gm_buffer_lock(target.get(), nullptr, err) != GM_OK) return;
    if (gm_buffer_host(target.get(), &data_, err) == GM_OK) {
      target_ = std::move(target);
    } else {
      gm_buffer_unlock(target.get(), nullptr, nullptr);
    }
  }
  host_lock(host_lock &&other) noexcept
      : target_(std::move(other.target_)), data_(std::exchange(other.data_, nullptr)) {}
  host_lock &operator=(host_lock other) noexcept {
    std::swap(target_, other.target_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~host_lock() {
    end_or_tell(nullptr, "gm::host_lock", [this](gm_error *why) { return unlock(why); });
  }

  explicit operator bool() const noexcept { return bool(target_); }
  /* Returns the first byte, as an element of type T. nullptr: the lock is empty. */
  template <class T = void>
  T *data() const noexcept {
    return static_cast<T *>(data_);
  }
  std::uint64_t bytes() const noexcept { return gm_buffer_bytes(target_.get()); }
  /* Ends the lock now (gm_buffer_unlock). An empty lock is GM_OK. After a failure the lock is still there. */
  gm_status unlock(gm_error *err = nullptr) noexcept {
    const gm_status status = target_ ? gm_buffer_unlock(target_.get(), nullptr, err) : GM_OK;
    if (status != GM_OK) return status;
    target_ = buffer();
    data_ = nullptr;
    return GM_OK;
  }

 private:
  buffer target_;
  void *data_ = nullptr;
};

/* A lock of a tensor that the host can reach, and its bytes (gm_value_lock). The value stays alive until it ends. */
class value_lock {
 public:
  value_lock() noexcept = default;
  /* Empty: it failed. */
  explicit value_lock(gm_value *value, gm_error *err = nullptr) noexcept {
    if (gm_value_lock(value, &data_, err) != GM_OK) return;
    gm_value_retain(value);
    value_ = value;
  }
  value_lock(value_lock &&other) noexcept
      : value_(std::exchange(other.value_, nullptr)), data_(std::exchange(other.data_, nullptr)) {}
  value_lock &operator=(value_lock other) noexcept {
    std::swap(value_, other.value_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~value_lock() {
    end_or_tell(nullptr, "gm::value_lock", [this](gm_error *why) { return unlock(why); });
  }

  explicit operator bool() const noexcept { return value_ != nullptr; }
  /* Returns the first byte, as an element of type T. nullptr: the lock is empty, or the tensor has no bytes. */
  template <class T = void>
  const T *data() const noexcept {
    return static_cast<const T *>(data_);
  }
  /* Ends the lock now (gm_value_unlock). An empty lock is GM_OK. After a failure the lock is still there. */
  gm_status unlock(gm_error *err = nullptr) noexcept {
    const gm_status status = value_ ? gm_value_unlock(value_, err) : GM_OK;
    if (status != GM_OK) return status;
    gm_value_release(std::exchange(value_, nullptr), nullptr);
    data_ = nullptr;
    return GM_OK;
  }

 private:
  gm_value *value_ = nullptr;
  const void *data_ = nullptr;
};

/* A scope (gm/scope.h). It ends in its destructor, in the order of its stream, which is that of each request until
 * set_stream. It ends before its pool, and before a scope around it. */
class scope {
 public:
  scope() noexcept = default;

  /* Begins a scope. Empty: it failed. */
  static scope create(const pool &pool, gm_error *err = nullptr) {
    scope out;
    gm_scope_create(pool.get(), &out.self_, err);
    return out;
  }
  scope(scope &&other) noexcept : self_(std::exchange(other.self_, nullptr)), stream_(other.stream_) {}
  scope &operator=(scope other) noexcept {
    std::swap(self_, other.self_);
    std::swap(stream_, other.stream_);
    return *this;
  }
  ~scope() { gm_scope_end(self_, stream_); }

  gm_scope *get() const noexcept { return self_; }
  explicit operator bool() const noexcept { return self_ != nullptr; }
  /* Names the stream in whose order the scope releases. */
  void set_stream(gm_stream *stream) noexcept { stream_ = stream; }

  /* Begins a scope within this one (gm_scope_nest). Empty: it failed. */
  scope nest(gm_error *err = nullptr) const {
    scope out;
    out.stream_ = stream_;
    gm_scope_nest(self_, &out.self_, err);
    return out;
  }
  /* Creates a buffer that the scope owns, too (gm_scope_buffer). Empty: it failed. */
  gm::buffer buffer(const gm_buffer_params &params, gm_error *err = nullptr) const {
    gm::buffer out;
    if (gm_scope_buffer(self_, &params, &out.self_, err) == GM_OK) {
      gm_buffer_retain(out.self_);
      out.stream_ = params.request.stream;
    }
    return out;
  }
  /* Allocates a block that the scope frees (gm_scope_alloc). `from` empty: of the scope's pool. */
  gm_status alloc(const gm_request &request, gm_block &out, const pool &from = {}, gm_error *err = nullptr) const {
    return gm_scope_alloc(self_, from.get(), &request, &out, err);
  }
  /* Has the scope call `release()` once it releases (gm_scope_defer). Its gm_status counts; no result is GM_OK, and an
   * exception CANCELLED. After a failure of defer it is not called. OUT_OF_HOST_MEMORY: also of operator new. */
  template <class Release>
  gm_status defer(Release release, gm_error *err = nullptr) const {
    Release *kept = new (std::nothrow) Release(std::move(release));
    const gm_status status = kept ? gm_scope_defer(self_, call<Release>, kept, err) : refuse(err);
    if (status != GM_OK) delete kept;
    return status;
  }
  /* Releases all now (gm_scope_clear). Each scope that nest() returned has ended before. */
  gm_status clear(gm_error *err = nullptr) const { return gm_scope_clear(self_, stream_, err); }

 private:
  static gm_status refuse(gm_error *err) noexcept {
    if (err) {
      *err = {};
      err->status = GM_ERR_OUT_OF_HOST_MEMORY;
      std::snprintf(err->op, sizeof err->op, "gm::scope::defer");
      std::snprintf(err->message, sizeof err->message, "no host memory for the function");
    }
    return GM_ERR_OUT_OF_HOST_MEMORY;
  }
  template <class Release>
  static gm_status run(Release &release) {
    if constexpr (std::is_void_v<decltype(release())>) {
      release();
      return GM_OK;
    } else {
      return release();
    }
  }
  template <class Release>
  static gm_status call(void *object, gm_stream *) noexcept {
    Release *release = static_cast<Release *>(object);
    gm_status status = GM_OK;
#ifdef GM_HPP_EXCEPTIONS
    try {
      status = run(*release);
    } catch (...) {
      status = GM_ERR_CANCELLED;
    }
#else
    status = run(*release);
#endif
    if (status != GM_ERR_BUSY && status != GM_ERR_OUT_OF_HOST_MEMORY) delete release;
    return status;
  }

  gm_scope *self_ = nullptr;
  gm_stream *stream_ = nullptr;
};

}  // namespace gm

#endif
