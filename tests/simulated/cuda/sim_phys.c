#include "tests/simulated/cuda/sim_phys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/simulated/cuda/sim_device.h"
#include "tests/simulated/cuda/sim_script.h"
#include "tests/simulated/cuda/sim_span.h"

enum { PHYS_PAGE = 4096 };

typedef struct phys_arena {
  int file;
  unsigned char *host;
  sim_span_list used;
} phys_arena;

static const uint64_t phys_arena_bytes = (uint64_t)2 << 30;
static phys_arena phys_arenas[SIM_MAX_DEVICES];
static uint64_t phys_live;

static unsigned char *phys_map(int file, uint64_t at, uint64_t bytes) {
  void *host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, (off_t)at);
  return host == MAP_FAILED ? NULL : host;
}

static int phys_file(int device, uint64_t bytes) {
  char name[64];
  snprintf(name, sizeof name, "simcuda:%d:%llu", device, (unsigned long long)bytes);
  int file = memfd_create(name, MFD_CLOEXEC);
  if (file >= 0 && ftruncate(file, (off_t)bytes) != 0) {
    close(file);
    file = -1;
  }
  return file;
}

static bool phys_from_arena(sim_phys *phys) {
  phys_arena *arena = &phys_arenas[phys->device];
  if (!arena->host) {
    arena->file = phys_file(phys->device, phys_arena_bytes);
    arena->host = arena->file < 0 ? NULL : phys_map(arena->file, 0, phys_arena_bytes);
    if (!arena->host) return false;
    arena->used = (sim_span_list){.begin = 0, .end = phys_arena_bytes};
  }
  if (!sim_span_take(&arena->used, phys->bytes, PHYS_PAGE, &phys->at)) return false;
  phys->host = arena->host + phys->at;
  phys->file = arena->file;
  phys->in_arena = true;
  return true;
}

static bool phys_from_file(sim_phys *phys) {
  phys->file = phys_file(phys->device, phys->bytes);
  if (phys->file < 0) return false;
  phys->host = phys_map(phys->file, 0, phys->bytes);
  if (!phys->host) close(phys->file);
  return phys->host != NULL;
}

CUresult sim_phys_create(int device, uint64_t bytes, bool own_file, sim_phys **out) {
  if (bytes > (uint64_t)1 << 44) return CUDA_ERROR_OUT_OF_MEMORY;
  if (device >= 0 && !sim_device_charge(device, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  sim_phys *phys = calloc(1, sizeof *phys);
  if (phys) {
    *phys = (sim_phys){.references = 1, .device = device, .charged = device >= 0 ? bytes : 0};
    phys->bytes = (bytes + PHYS_PAGE - 1) / PHYS_PAGE * PHYS_PAGE;
    if ((device >= 0 && !own_file && phys_from_arena(phys)) || phys_from_file(phys)) {
      phys_live++;
      sim_phys_poison(phys, 0xcd);
      *out = phys;
      return CUDA_SUCCESS;
    }
    free(phys);
  }
  if (device >= 0) sim_device_refund(device, bytes);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_phys_open(int device, int file, uint64_t at, uint64_t bytes, sim_phys **out) {
  sim_phys *phys = calloc(1, sizeof *phys);
  unsigned char *host = phys ? phys_map(file, at, bytes) : NULL;
  if (!host) {
    free(phys);
    close(file);
    return CUDA_ERROR_MAP_FAILED;
  }
  *phys = (sim_phys){.references = 1, .device = device, .bytes = bytes, .host = host, .file = file, .at = at};
  phys_live++;
  *out = phys;
  return CUDA_SUCCESS;
}

void sim_phys_retain(sim_phys *phys) { phys->references++; }

void sim_phys_release(sim_phys *phys) {
  if (--phys->references) return;
  if (phys->device >= 0) sim_device_refund(phys->device, phys->charged);
  if (phys->in_arena) sim_span_give(&phys_arenas[phys->device].used, phys->at);
  if (!phys->in_arena) {
    munmap(phys->host, phys->bytes);
    close(phys->file);
  }
  phys_live--;
  free(phys);
}

void sim_phys_poison(sim_phys *phys, unsigned char byte) {
  uint64_t most = 4 << 20;
  memset(phys->host, byte, phys->bytes < most ? phys->bytes : most);
}

bool sim_phys_describe(int file, int *device_out, uint64_t *bytes_out) {
  char path[64], name[128];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  ssize_t length = readlink(path, name, sizeof name - 1);
  if (length < 0) return false;
  name[length] = '\0';
  unsigned long long bytes = 0;
  if (sscanf(name, "/memfd:simcuda:%d:%llu", device_out, &bytes) != 2) return false;
  struct stat status;
  *bytes_out = bytes;
  return fstat(file, &status) == 0 && (uint64_t)status.st_size == bytes;
}

uint64_t sim_phys_count(void) { return phys_live; }
