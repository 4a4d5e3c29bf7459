#include "core/tier/remote/remote_slot.h"

#include <string.h>

static uint16_t slot_crc16(const unsigned char *bytes, size_t count) {
  uint32_t crc = 0;
  for (size_t i = 0; i < count; i++) {
    crc ^= (uint32_t)bytes[i] << 8;
    for (int bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1;
  }
  return (uint16_t)crc;
}

uint16_t gm__remote_slot(const void *key, size_t bytes) {
  const unsigned char *from = key, *open = memchr(key, '{', bytes);
  if (open) {
    const unsigned char *tag = open + 1, *close = memchr(tag, '}', bytes - (size_t)(tag - from));
    if (close && close > tag) return slot_crc16(tag, (size_t)(close - tag)) % GM__REMOTE_SLOTS;
  }
  return slot_crc16(from, bytes) % GM__REMOTE_SLOTS;
}
