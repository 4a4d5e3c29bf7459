/* A device that is addresses, a capacity and counters: what the fake runtime hands out and peers' figures come from. */
#ifndef GM_BENCH_FAKE_DEVICE_H
#define GM_BENCH_FAKE_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Thread-safe, each call by itself. Capacity: FAKECUDA_CAP_MIB, else FAKECUDA_CAP_GIB, else 80 GiB. */

/* Memory at an address, in the driver's steps: 2 MiB from 1 MiB on, 512 bytes below. 0: over the capacity. */
uintptr_t fake_device_alloc(uint64_t bytes);
int fake_device_free(uintptr_t address); /* 0; -1: there is nothing */

/* Addresses without memory, at a multiple of 1 GiB. */
uintptr_t fake_device_reserve(uint64_t bytes);
int fake_device_unreserve(uintptr_t address);

/* Memory without an address. 0, or -1: over the capacity. */
int fake_device_take(uint64_t bytes);
void fake_device_give(uint64_t bytes);

uint64_t fake_device_capacity(void);
uint64_t fake_device_used(void);
uint64_t fake_device_peak(void);
void fake_device_reset_peak(void);
uint64_t fake_device_allocations(void); /* calls that took memory so far */

#ifdef __cplusplus
}
#endif

#endif
