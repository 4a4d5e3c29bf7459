/* Devices as scripted, and how much of each is in use. Wants the lock. */
#ifndef GM_TESTS_SIMULATED_CUDA_SIM_DEVICE_H
#define GM_TESTS_SIMULATED_CUDA_SIM_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

bool sim_device_exists(int device);
bool sim_device_reaches(int from, int to); /* peer access is possible */

/* Bytes used by this process, contexts included. */
uint64_t sim_device_used(int device);
uint64_t sim_device_left(int device);
bool sim_device_has_room(int device, uint64_t bytes);

/* Account for memory: false when the device, the largest piece or the script's count says no. */
bool sim_device_charge(int device, uint64_t bytes);
void sim_device_refund(int device, uint64_t bytes);

#endif
