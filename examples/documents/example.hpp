/* The beginning of the C++ programs of this folder. */
#ifndef EXAMPLES_DOCUMENTS_EXAMPLE_HPP
#define EXAMPLES_DOCUMENTS_EXAMPLE_HPP

#include <cstdio>
#include <cstdlib>

#include "gm/gm.hpp"
#include "gm/options.hpp"

/* Ends the program with status 1, and names the claim, if it does not hold. */
#define CLAIM(claim) \
  ((claim) ? (void)0 : (std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #claim), std::exit(1)))

/* A pool on the first device of a backend. It owns its device and context. */
inline gm::pool example_pool(const char *backend, const gm_pool_params *params = nullptr) {
  gm_error err = {};
  const gm::pool pool =
      gm::pool::create(gm::device::open(gm::context::create(nullptr, &err), backend, 0, &err), params, &err);
  if (!pool) std::fprintf(stderr, "%s\n", err.message), std::exit(1);
  return pool;
}

inline gm_stats example_stats(const gm::pool &pool) {
  gm_stats stats = {};
  CLAIM(pool.stats(stats) == GM_OK);
  return stats;
}

#endif
