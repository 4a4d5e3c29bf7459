/* gm for C++17: parameters, one word after another. Each class is the struct of its name in C, with struct_size set;
 * what is not said keeps its default.
 *
 *   gm::pool kv = gm::pool::create(device, gm::pool_options().name("kv").max_bytes(std::uint64_t{8} << 30), &err);
 *
 * Strings are borrowed until the call that takes the options returns. Nothing here throws. */
#ifndef GM_OPTIONS_HPP
#define GM_OPTIONS_HPP

#include <cstdint>

#include "gm/gm.hpp"

namespace gm {

/* gm_context_params (gm/context.h). */
class context_options {
 public:
  context_options() noexcept { params_.struct_size = sizeof params_; }
  context_options &ignore_environment(bool yes = true) noexcept { return params_.ignore_environment = yes, *this; }
  context_options &services(const gm_services &hooks) noexcept { return params_.services = &hooks, *this; }
  context_options &preset(const char *name) noexcept { return params_.preset = name, *this; }
  context_options &backends(const char *names) noexcept { return params_.backends = names, *this; }
  context_options &backend_options(const char *words) noexcept { return params_.backend_options = words, *this; }
  context_options &libraries(const char *files) noexcept { return params_.libraries = files, *this; }
  context_options &left_open(gm_left_open_hook hook, void *user = nullptr) noexcept {
    return params_.left_open = hook, params_.left_open_user = user, *this;
  }
  gm_context_params &raw() noexcept { return params_; } /* the other members */
  operator const gm_context_params *() const noexcept { return &params_; }

 private:
  gm_context_params params_ = {};
};

/* gm_pool_params (gm/pool.h). */
class pool_options {
 public:
  pool_options() noexcept { params_.struct_size = sizeof params_; }
  pool_options &strategy(gm_strategy kind) noexcept { return params_.strategy = kind, *this; }
  pool_options &name(const char *text) noexcept { return params_.name = text, *this; }
  pool_options &max_bytes(std::uint64_t bytes) noexcept { return params_.max_bytes = bytes, *this; }
  pool_options &memory_fraction(double share) noexcept { return params_.memory_fraction = share, *this; }
  pool_options &min_free_bytes(std::uint64_t bytes) noexcept { return params_.min_free_bytes = bytes, *this; }
  pool_options &keep_bytes(std::uint64_t bytes) noexcept { return params_.keep_bytes = bytes, *this; }
  pool_options &track(bool yes = true) noexcept { return params_.track = yes, *this; }
  pool_options &checked(bool yes = true) noexcept { return params_.checked = yes, *this; }
  pool_options &flags(std::uint64_t bits) noexcept { return params_.flags |= bits, *this; } /* adds gm_pool_flags */
  pool_options &usage(std::uint32_t bits) noexcept { return params_.usage |= bits, *this; } /* adds gm_usage */
  pool_options &must_be(gm_must_be place) noexcept { return params_.must_be = place, *this; }
  pool_options &upstream(const gm_upstream &from) noexcept { return params_.upstream = &from, *this; }
  gm_pool_params &raw() noexcept { return params_; } /* the other members */
  operator const gm_pool_params *() const noexcept { return &params_; }

 private:
  gm_pool_params params_ = {};
};

/* gm_request (gm/request.h). */
class request {
 public:
  explicit request(std::uint64_t bytes) noexcept { value_.bytes = bytes; }
  request &align(std::uint32_t bytes) noexcept { return value_.align = bytes, *this; }
  request &tag(std::uint32_t number) noexcept { return value_.tag = number, *this; }
  request &on(gm_stream *stream) noexcept { return value_.stream = stream, *this; }
  request &flags(std::uint32_t bits) noexcept { return value_.flags |= bits, *this; } /* adds gm_request_flags */
  request &usage(std::uint32_t bits) noexcept { return value_.usage |= bits, *this; } /* adds gm_usage */
  request &must_be(gm_must_be place) noexcept { return value_.must_be = place, *this; }
  request &require(std::uint32_t bits) noexcept { return value_.require |= bits, *this; } /* adds gm_memory_flags */
  request &prefer(std::uint32_t bits) noexcept { return value_.prefer |= bits, *this; }   /* adds gm_memory_flags */
  request &deadline_ns(std::uint64_t wait) noexcept { return value_.deadline_ns = wait, *this; }
  gm_request &raw() noexcept { return value_; }
  operator const gm_request &() const noexcept { return value_; }

 private:
  gm_request value_ = {};
};

}  // namespace gm

#endif
