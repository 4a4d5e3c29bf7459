/* The figures of a peer that takes its memory from the fake device. Included once, at the end of an adapter. */
#ifndef GM_BENCH_FAKE_FIGURES_H
#define GM_BENCH_FAKE_FIGURES_H

#include "bench/peers/fake/fake_device.h"
#include "bench/peers/peer.h"

PEER_API uint64_t peer_reserved(void) { return fake_device_used(); }

PEER_API uint64_t peer_reserved_peak(void) { return fake_device_peak(); }

PEER_API void peer_reset_peak(void) { fake_device_reset_peak(); }

PEER_API uint64_t peer_upstream_calls(void) { return fake_device_allocations(); }

PEER_API int peer_threads(void) { return 1; }

#endif
