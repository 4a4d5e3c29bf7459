/* gm for C++17: objects that close themselves in the right order, and a std::pmr::memory_resource.
 *
 * gm throws nothing: a call that fails returns an empty object or a status, and fills in `err` (may be NULL). Only
 * must() and pool_resource throw, and a compiler without exceptions leaves them out. A shared object, and a function
 * that a scope defers, need a few bytes of host memory from operator new.
 *
 * context, device, stream and pool are shared: a copy is another owner, and the last owner closes the object. Each also
 * owns its parents, so a pool never outlives its device. block, mapping, point and buffer must end before their pool or
 * device does. The classes are as thread-safe as std::shared_ptr. The calls behind them are as
 * thread-safe as gm's. gm/scope.hpp
 * has locks of buffers, and scopes.
 *
 * No destructor can answer a status. An object that cannot end stays as it is. That is a block that is mapped, a pool
 * whose blocks are out, or a device whose children are alive. The context's log and its hook
 * gm_context_params.left_open are told (gm_tell_left_open). */
#ifndef GM_GM_HPP
#define GM_GM_HPP

#if __cplusplus < 201703L
#error "gm/gm.hpp needs C++17: compile with -std=c++17 or newer"
#endif

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <memory_resource>
#include <utility>

#include "gm/gm.h"

#if defined(__cpp_exceptions) && __cpp_exceptions
#define GM_HPP_EXCEPTIONS 1
#include <exception>
#include <new>
#endif

namespace gm {

/* Ends an object of that class, and tells its context where it cannot end. */
template <class End>
void end_or_tell(gm_context *ctx, const char *what, End end) noexcept {
  gm_error why = {};
  const gm_status status = end(&why);
  if (status != GM_OK && status != GM_ERR_DAMAGED) gm_tell_left_open(ctx, what, status, &why);
}

#ifdef GM_HPP_EXCEPTIONS
/* The exception of must(): a gm_error. */
class failure : public std::exception {
 public:
  explicit failure(const gm_error &error) noexcept : error_(error) {}
  const char *what() const noexcept override { return error_.message; }
  gm_status status() const noexcept { return error_.status; }
  const gm_error &error() const noexcept { return error_; }

 private:
  gm_error error_;
};

/* Returns `object`, or throws `err` as a failure where the object is empty:
 * gm::pool pool = gm::must(gm::pool::create(device, params, &err), err). */
template <class T>
T must(T &&object, const gm_error &err) {
  if (!object) throw failure(err);
  return std::forward<T>(object);
}
#endif

/* A context (gm/context.h). */
class context {
 public:
  context() noexcept = default;

  /* Creates a context. Empty: it failed. */
  static context create(const gm_context_params *params = nullptr, gm_error *err = nullptr) {
    gm_context *made = nullptr;
    context out;
    if (gm_context_create(params, &made, err) == GM_OK) {
      out.self_ = {made, [](gm_context *self) {
                     end_or_tell(self, "gm::context", [self](gm_error *why) { return gm_context_destroy(self, why); });
                   }};
    }
    return out;
  }

  gm_context *get() const noexcept { return self_.get(); }
  explicit operator bool() const noexcept { return self_ != nullptr; }
  /* Returns the number of a tag (gm_tag). */
  std::uint32_t tag(const char *name) const { return gm_tag(get(), name); }

 private:
  std::shared_ptr<gm_context> self_;
};

/* A device (gm/device.h). It owns its context. */
class device {
 public:
  device() noexcept = default;

  /* Selects and opens a device on which `bytes` fit (gm_open_for_bytes). Empty: it failed. */
  static device open_for_bytes(const context &ctx, std::uint64_t bytes, const char *prefer = nullptr,
                               gm_error *err = nullptr) {
    gm_device *made = nullptr;
    const gm_status status = gm_open_for_bytes(ctx.get(), prefer, bytes, &made, err);
    return own(ctx, status, made);
  }
  /* Opens a device by the name of its backend and its index there. Empty: it failed. */
  static device open(const context &ctx, const char *backend, std::uint32_t index = 0, gm_error *err = nullptr) {
    gm_device *made = nullptr;
    const gm_status status = gm_device_open_index(ctx.get(), backend, index, &made, err);
    return own(ctx, status, made);
  }
  /* Adopts the engine's own device (gm_device_adopt), which must outlive this one. Empty: it failed. */
  static device adopt(const context &ctx, const gm_native_device &native, gm_error *err = nullptr) {
    gm_device *made = nullptr;
    const gm_status status = gm_device_adopt(ctx.get(), &native, &made, err);
    return own(ctx, status, made);
  }

  gm_device *get() const noexcept { return self_.get(); }
  explicit operator bool() const noexcept { return self_ != nullptr; }
  const context &parent() const noexcept { return parent_; }
  const gm_device_info &info() const { return *gm_device_get_info(get()); }
  /* Reads the memory figures now (gm_device_memory_info). */
  gm_status memory_info(gm_memory_info &out, gm_error *err = nullptr) const {
    out.struct_size = sizeof out;
    return gm_device_memory_info(get(), &out, err);
  }

 private:
  static device own(const context &ctx, gm_status status, gm_device *made) {
    device out;
    if (status != GM_OK) return out;
    out.parent_ = ctx;
    out.self_ = {made, [parent = ctx](gm_device *self) {
                   end_or_tell(parent.get(), "gm::device",
                               [self](gm_error *why) { return gm_device_close(self, why); });
                 }};
    return out;
  }
  context parent_;
  std::shared_ptr<gm_device> self_;
};

/* A place in a stream's order (gm_point). It ends before its device. */
class point {
 public:
  point() noexcept = default;
  point(gm_device *device, const gm_point &value) noexcept : device_(device), value_(value) {}
  point(point &&other) noexcept
      : device_(std::exchange(other.device_, nullptr)), value_(std::exchange(other.value_, {})) {}
  point &operator=(point other) noexcept {
    std::swap(device_, other.device_);
    std::swap(value_, other.value_);
    return *this;
  }
  ~point() {
    if (device_) gm_point_release(device_, &value_);
  }

  const gm_point &get() const noexcept { return value_; }
  explicit operator bool() const noexcept { return device_ != nullptr; }
  /* Waits on the host until the point has passed (gm_point_wait). */
  gm_status wait(std::uint64_t timeout_ns = UINT64_MAX, gm_error *err = nullptr) const {
    return gm_point_wait(device_, &value_, timeout_ns, err);
  }

 private:
  gm_device *device_ = nullptr;
  gm_point value_ = {};
};

/* A stream (gm/stream.h). It owns its device. */
class stream {
 public:
  stream() noexcept = default;

  /* Creates a stream that gm owns. Empty: it failed. */
  static stream create(const device &device, gm_error *err = nullptr) {
    gm_stream *made = nullptr;
    const gm_status status = gm_stream_create(device.get(), &made, err);
    return own(device, status, made);
  }
  /* Adopts a queue or stream of the engine (gm_stream_adopt), which must outlive this one. Empty: it failed. */
  static stream adopt(const device &device, const gm_native_stream &native, gm_error *err = nullptr) {
    gm_stream *made = nullptr;
    const gm_status status = gm_stream_adopt(device.get(), &native, &made, err);
    return own(device, status, made);
  }

  gm_stream *get() const noexcept { return self_.get(); }
  explicit operator bool() const noexcept { return self_ != nullptr; }
  gm_status sync(gm_error *err = nullptr) const { return gm_stream_sync(get(), err); }
  gm_status wait(const point &point, gm_error *err = nullptr) const { return gm_stream_wait(get(), &point.get(), err); }
  /* Records a point after all work so far. Empty: it failed. */
  point record(gm_error *err = nullptr) const {
    gm_point made = {};
    const bool recorded = gm_stream_record(get(), &made, err) == GM_OK;
    return recorded ? point(parent_.get(), made) : point();
  }

 private:
  static stream own(const device &device, gm_status status, gm_stream *made) {
    stream out;
    if (status != GM_OK) return out;
    out.parent_ = device;
    out.self_ = {made, [parent = device](gm_stream *self) {
                   end_or_tell(gm_device_context(parent.get()), "gm::stream",
                               [self](gm_error *why) { return gm_stream_close(self, why); });
                 }};
    return out;
  }
  device parent_;
  std::shared_ptr<gm_stream> self_;
};

/* A host mapping of a block. It ends in the order of its stream, and before its block. */
class mapping {
 public:
  mapping() noexcept = default;
  mapping(gm_pool *pool, const gm_block &block, void *data, gm_stream *stream) noexcept
      : pool_(pool), block_(block), data_(data), stream_(stream) {}
  mapping(mapping &&other) noexcept
      : pool_(other.pool_), block_(other.block_), data_(std::exchange(other.data_, nullptr)), stream_(other.stream_) {}
  mapping &operator=(mapping other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(block_, other.block_);
    std::swap(data_, other.data_);
    std::swap(stream_, other.stream_);
    return *this;
  }
  ~mapping() {
    if (!data_) return;
    end_or_tell(gm_device_context(gm_pool_device(pool_)), "gm::mapping",
                [this](gm_error *why) { return gm_block_unmap(pool_, &block_, data_, stream_, why); });
  }

  void *data() const noexcept { return data_; }
  explicit operator bool() const noexcept { return data_ != nullptr; }

 private:
  gm_pool *pool_ = nullptr;
  gm_block block_ = {};
  void *data_ = nullptr;
  gm_stream *stream_ = nullptr;
};

/* A block (gm_block). It frees itself in the order of its stream, which is that of its request until set_stream. */
class block {
 public:
  block() noexcept = default;
  block(gm_pool *pool, const gm_request &request) noexcept : stream_(request.stream) {
    acquire_ = gm_alloc(pool, &request, &value_);
    if (gm_acquired(acquire_)) pool_ = pool;
  }
  block(block &&other) noexcept
      : pool_(std::exchange(other.pool_, nullptr)),
        value_(other.value_),
        stream_(other.stream_),
        acquire_(std::exchange(other.acquire_, GM_ACQUIRE_INVALID)) {}
  block &operator=(block other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(value_, other.value_);
    std::swap(stream_, other.stream_);
    std::swap(acquire_, other.acquire_);
    return *this;
  }
  /* A block that is mapped, or whose stream is being captured, stays out. free() tells that. */
  ~block() {
    if (pool_)
      end_or_tell(gm_device_context(gm_pool_device(pool_)), "gm::block", [this](gm_error *) { return free(); });
  }

  const gm_block &get() const noexcept { return value_; }
  explicit operator bool() const noexcept { return pool_ != nullptr; }
  /* Returns what gm_alloc answered; with a block in hand it may say that the block needs a wait. */
  gm_acquire acquire() const noexcept { return acquire_; }
  std::uint64_t address() const noexcept { return value_.address; }
  std::uint64_t bytes() const noexcept { return value_.bytes; }
  /* Names the stream in whose order the block frees itself. NULL: nothing uses it any more by then. */
  void set_stream(gm_stream *stream) noexcept { stream_ = stream; }

  /* Frees the block now, in the order of its stream. An empty block is GM_OK. After a failure the block is still there,
   * but for DAMAGED, which means that it is freed. */
  gm_status free() noexcept {
    if (!pool_) return GM_OK;
    const gm_status status = gm_free(pool_, &value_, stream_);
    if (status == GM_OK || status == GM_ERR_DAMAGED) pool_ = nullptr;
    return status;
  }
  /* Gives the block up to the caller, who frees it by gm_free. */
  gm_block release() noexcept {
    pool_ = nullptr;
    return value_;
  }

  /* Copy `bytes` between the host and the block, and wait until they have arrived. */
  gm_status write(const void *src, std::uint64_t bytes, std::uint64_t offset = 0, gm_error *err = nullptr) const {
    return gm_block_write(pool_, &value_, offset, src, bytes, stream_, nullptr, err);
  }
  gm_status read(void *dst, std::uint64_t bytes, std::uint64_t offset = 0, gm_error *err = nullptr) const {
    return gm_block_read(pool_, &value_, offset, dst, bytes, stream_, nullptr, err);
  }
  /* Maps a range for the host (gm_block_map). Empty: it failed. */
  mapping map(std::uint64_t offset, std::uint64_t bytes, std::uint32_t mode, gm_error *err = nullptr) const {
    void *data = nullptr;
    const gm_status status = gm_block_map(pool_, &value_, offset, bytes, mode, stream_, &data, err);
    return status == GM_OK ? mapping(pool_, value_, data, stream_) : mapping();
  }

 private:
  gm_pool *pool_ = nullptr;
  gm_block value_ = {};
  gm_stream *stream_ = nullptr;
  gm_acquire acquire_ = GM_ACQUIRE_INVALID;
};

/* A pool (gm/pool.h). It owns its device. Its blocks end before it does. A pool that ends with blocks out stays, with
 * its device, until the process ends. */
class pool {
 public:
  pool() noexcept = default;

  /* Creates a pool. Empty: it failed. */
  static pool create(const device &device, const gm_pool_params *params = nullptr, gm_error *err = nullptr) {
    gm_pool *made = nullptr;
    pool out;
    if (gm_pool_create(device.get(), params, &made, err) != GM_OK) return out;
    out.parent_ = device;
    out.self_ = {made, [parent = device](gm_pool *self) {
                   end_or_tell(gm_device_context(parent.get()), "gm::pool",
                               [self](gm_error *why) { return gm_pool_destroy(self, why); });
                 }};
    return out;
  }

  gm_pool *get() const noexcept { return self_.get(); }
  explicit operator bool() const noexcept { return self_ != nullptr; }
  const device &parent() const noexcept { return parent_; }

  /* Allocates a block. Empty: acquire() of the block and gm_explain say why. */
  block alloc(const gm_request &request) const { return {get(), request}; }
  /* Allocates `bytes` for use on `stream` at once: gm inserts waits. */
  block alloc(std::uint64_t bytes, gm_stream *stream = nullptr) const {
    gm_request request = {};
    request.bytes = bytes;
    request.stream = stream;
    request.flags = GM_INSERT_WAIT;
    return alloc(request);
  }
  std::uint64_t trim(std::uint64_t keep_bytes = 0) const { return gm_pool_trim(get(), keep_bytes); }
  gm_status stats(gm_stats &out) const {
    out.struct_size = sizeof out;
    return gm_pool_stats(get(), &out);
  }
  /* Sets the cap on reserved bytes (gm_pool_set_max_bytes). */
  gm_status set_max_bytes(std::uint64_t bytes, gm_error *err = nullptr) const {
    return gm_pool_set_max_bytes(get(), bytes, err);
  }

 private:
  device parent_;
  std::shared_ptr<gm_pool> self_;
};

/* A reservation (gm/reserve.h): it can be moved, and is cancelled when it ends. It owns its device. A pool that it is
 * committed to must end after it. */
class reservation {
 public:
  reservation() noexcept = default;

  /* Holds bytes of a device. Empty: they are not there. */
  static reservation create(const device &device, std::uint64_t bytes, const char *name = nullptr,
                            gm_error *err = nullptr) {
    gm_reserve_params params = {};
    gm_reservation *made = nullptr;
    reservation out;
    params.struct_size = sizeof params;
    params.bytes = bytes;
    params.name = name;
    if (gm_reserve(device.get(), &params, &made, err) != GM_OK) return out;
    out.self_ = {made, ender{device}};
    return out;
  }

  gm_reservation *get() const noexcept { return self_.get(); }
  explicit operator bool() const noexcept { return self_ != nullptr; }
  gm_status commit(const pool &pool, gm_error *err = nullptr) const {
    return gm_reservation_commit(get(), pool.get(), err);
  }
  gm_status read(gm_reservation_info &out) const {
    out.struct_size = sizeof out;
    return gm_reservation_read(get(), &out, nullptr);
  }
  void cancel() noexcept { self_.reset(); }

 private:
  struct ender {
    device parent;
    void operator()(gm_reservation *self) const noexcept { gm_reservation_cancel(self); }
  };
  std::unique_ptr<gm_reservation, ender> self_;
};

/* A reference-counted buffer (gm/buffer.h). A copy is one reference more. */
class buffer {
 public:
  buffer() noexcept = default;

  /* Creates a buffer (gm_buffer_create). Empty: it failed. */
  static buffer create(const pool &pool, const gm_buffer_params &params, gm_error *err = nullptr) {
    buffer out;
    if (gm_buffer_create(pool.get(), &params, &out.self_, err) == GM_OK) out.stream_ = params.request.stream;
    return out;
  }
  buffer(const buffer &other) noexcept : self_(other.self_), stream_(other.stream_) { gm_buffer_retain(self_); }
  buffer(buffer &&other) noexcept : self_(std::exchange(other.self_, nullptr)), stream_(other.stream_) {}
  buffer &operator=(buffer other) noexcept {
    std::swap(self_, other.self_);
    std::swap(stream_, other.stream_);
    return *this;
  }
  ~buffer() { gm_buffer_release(self_, stream_); }

  gm_buffer *get() const noexcept { return self_; }
  explicit operator bool() const noexcept { return self_ != nullptr; }
  gm_location location() const { return gm_buffer_location(self_); }

 private:
  friend class scope;
  gm_buffer *self_ = nullptr;
  gm_stream *stream_ = nullptr;
};

#ifdef GM_HPP_EXCEPTIONS
/* Gives memory of a pool to standard containers, in the order of a stream. The addresses are the device's. So
 * containers that read and write their memory need a pool of the CPU backend, or one whose memory the host can address.
 * It owns its pool; everything that was allocated is deallocated before it ends. Thread-safe. allocate throws
 * std::bad_alloc. deallocate never throws: memory that gm_free_ptr refuses stays in the pool, and gm_tell_left_open
 * tells that. */
class pool_resource : public std::pmr::memory_resource {
 public:
  explicit pool_resource(pool pool, gm_stream *stream = nullptr) noexcept : pool_(std::move(pool)), stream_(stream) {}
  const pool &get_pool() const noexcept { return pool_; }

 private:
  void *do_allocate(std::size_t bytes, std::size_t align) override {
    gm_request request = {};
    request.bytes = bytes ? bytes : 1;
    request.stream = stream_;
    request.flags = GM_INSERT_WAIT;
    if (align > UINT32_MAX) throw std::bad_alloc();
    request.align = static_cast<std::uint32_t>(align);
    gm_block block = {};
    if (!gm_acquired(gm_alloc(pool_.get(), &request, &block))) throw std::bad_alloc();
    return reinterpret_cast<void *>(static_cast<std::uintptr_t>(block.address));
  }
  void do_deallocate(void *pointer, std::size_t bytes, std::size_t) override {
    end_or_tell(gm_device_context(pool_.parent().get()), "memory of gm::pool_resource",
                [&](gm_error *) { return gm_free_ptr(pool_.get(), pointer, bytes, stream_); });
  }
  bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override { return this == &other; }

  pool pool_;
  gm_stream *stream_;
};
#endif

}  // namespace gm

#endif
