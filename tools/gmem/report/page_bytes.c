#include "tools/gmem/report/page_bytes.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES_FIRST = 4096, BYTES_NUMBER = 10 };

static bool bytes_room(page_bytes *bytes, size_t count) {
  size_t room = bytes->room ? bytes->room : BYTES_FIRST;
  if (bytes->failed || count > SIZE_MAX / 2 - bytes->used) {
    bytes->failed = true;
    return false;
  }
  while (room < bytes->used + count) room *= 2;
  if (room == bytes->room) return true;
  unsigned char *data = realloc(bytes->data, room);
  bytes->failed = data == NULL;
  if (!data) return false;
  bytes->data = data;
  bytes->room = room;
  return true;
}

void page_bytes_add(page_bytes *bytes, const void *data, size_t count) {
  if (count == 0 || !bytes_room(bytes, count)) return;
  memcpy(bytes->data + bytes->used, data, count);
  bytes->used += count;
}

void page_bytes_number(page_bytes *bytes, uint64_t number) {
  if (!bytes_room(bytes, BYTES_NUMBER)) return;
  for (; number > 0x7f; number >>= 7) bytes->data[bytes->used++] = (unsigned char)(number | 0x80);
  bytes->data[bytes->used++] = (unsigned char)number;
}

void page_bytes_free(page_bytes *bytes) {
  free(bytes->data);
  *bytes = (page_bytes){.data = NULL};
}
