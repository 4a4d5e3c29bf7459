/* Invariants: an address is handed out once at a time, and again only for the same size. Nothing is behind any address.
 * All are above what a process can have mapped, so no host memory is there either. */
#include "bench/peers/fake/fake_device.h"

#include <pthread.h>
#include <stdlib.h>

enum { FAKE_HEADS = 1 << 16, FAKE_SMALL = 1 << 20 };

#define FAKE_PAGE (UINT64_C(2) << 20)
#define FAKE_RANGE_ALIGN (UINT64_C(1) << 30)
#define FAKE_BEGIN (UINT64_C(1) << 47)
#define FAKE_SPACE (UINT64_C(32) << 40)

/* A piece of the address space: in the list of its address while it is out, in that of its size while it is not. */
typedef struct fake_piece {
  uintptr_t address;
  uint64_t bytes;
  struct fake_piece *next;
} fake_piece;

static struct {
  pthread_mutex_t lock;
  uint64_t capacity, used, peak, allocations;
  uintptr_t next, end;
  fake_piece *live[FAKE_HEADS], *idle[FAKE_HEADS];
} fake = {.lock = PTHREAD_MUTEX_INITIALIZER};

static unsigned fake_head(uint64_t key) { return (unsigned)((key >> 9) * UINT64_C(0x9e3779b97f4a7c15) >> 48); }

static uint64_t fake_round(uint64_t bytes, uint64_t step) { return (bytes + step - 1) / step * step; }

static void fake_start(void) {
  const char *mib = getenv("FAKECUDA_CAP_MIB"), *gib = getenv("FAKECUDA_CAP_GIB");
  fake.capacity = mib ? strtoull(mib, NULL, 10) << 20 : (gib ? strtoull(gib, NULL, 10) : 80) << 30;
  fake.next = FAKE_BEGIN;
  fake.end = FAKE_BEGIN + FAKE_SPACE;
}

static void fake_enter(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, fake_start);
  pthread_mutex_lock(&fake.lock);
}

static void fake_leave(void) { pthread_mutex_unlock(&fake.lock); }

static fake_piece *fake_new_piece(uint64_t bytes, uint64_t align) {
  uintptr_t address = fake_round(fake.next, align);
  fake_piece *piece = address + bytes <= fake.end ? malloc(sizeof *piece) : NULL;
  if (!piece) return NULL;
  *piece = (fake_piece){.address = address, .bytes = bytes};
  fake.next = address + bytes;
  return piece;
}

static uintptr_t fake_map(uint64_t bytes, uint64_t align) {
  fake_piece **at = &fake.idle[fake_head(bytes)];
  while (*at && ((*at)->bytes != bytes || (*at)->address % align != 0)) at = &(*at)->next;
  fake_piece *piece = *at;
  if (piece) *at = piece->next;
  if (!piece) piece = fake_new_piece(bytes, align);
  if (!piece) return 0;
  fake_piece **head = &fake.live[fake_head(piece->address)];
  piece->next = *head;
  *head = piece;
  return piece->address;
}

/* The bytes that were there; 0: nothing. */
static uint64_t fake_unmap(uintptr_t address) {
  fake_piece **at = &fake.live[fake_head(address)];
  while (*at && (*at)->address != address) at = &(*at)->next;
  fake_piece *piece = *at;
  if (!piece) return 0;
  *at = piece->next;
  fake_piece **head = &fake.idle[fake_head(piece->bytes)];
  piece->next = *head;
  *head = piece;
  return piece->bytes;
}

static int fake_charge(uint64_t bytes) {
  if (bytes > fake.capacity - fake.used) return -1;
  fake.used += bytes;
  if (fake.used > fake.peak) fake.peak = fake.used;
  fake.allocations++;
  return 0;
}

uintptr_t fake_device_alloc(uint64_t bytes) {
  uint64_t step = bytes < FAKE_SMALL ? 512 : FAKE_PAGE, rounded = fake_round(bytes ? bytes : 1, step);
  uintptr_t address = 0;
  fake_enter();
  if (fake_charge(rounded) == 0) address = fake_map(rounded, step);
  fake_leave();
  return address;
}

int fake_device_free(uintptr_t address) {
  fake_enter();
  uint64_t bytes = fake_unmap(address);
  fake.used -= bytes;
  fake_leave();
  return bytes ? 0 : -1;
}

uintptr_t fake_device_reserve(uint64_t bytes) {
  fake_enter();
  uintptr_t address = fake_map(fake_round(bytes, FAKE_RANGE_ALIGN), FAKE_RANGE_ALIGN);
  fake_leave();
  return address;
}

int fake_device_unreserve(uintptr_t address) {
  fake_enter();
  uint64_t bytes = fake_unmap(address);
  fake_leave();
  return bytes ? 0 : -1;
}

int fake_device_take(uint64_t bytes) {
  fake_enter();
  int result = fake_charge(bytes);
  fake_leave();
  return result;
}

void fake_device_give(uint64_t bytes) {
  fake_enter();
  fake.used -= bytes;
  fake_leave();
}

static uint64_t fake_read(const uint64_t *field) {
  fake_enter();
  uint64_t value = *field;
  fake_leave();
  return value;
}

uint64_t fake_device_capacity(void) { return fake_read(&fake.capacity); }

uint64_t fake_device_used(void) { return fake_read(&fake.used); }

uint64_t fake_device_peak(void) { return fake_read(&fake.peak); }

void fake_device_reset_peak(void) {
  fake_enter();
  fake.peak = fake.used;
  fake_leave();
}

uint64_t fake_device_allocations(void) { return fake_read(&fake.allocations); }
