/* Files of bytes that tell where they lie. Needs cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_FILE_BYTES_H
#define GM_TESTS_SUPPORT_FILE_BYTES_H

#include "support/temp_folder.h"

/* The byte `at` of file number `file`. Neighbours of it, blocks, and files differ. */
static inline unsigned char file_byte(uint64_t file, uint64_t at) {
  const uint64_t mixed = (at + 1 + (file << 40)) * UINT64_C(0x9e3779b97f4a7c15);
  return (unsigned char)(mixed >> 56);
}

static inline const char *file_bytes_write(temp_folder *folder, const char *name, uint64_t file, uint64_t bytes) {
  unsigned char *memory = malloc(bytes + 1);
  assert_non_null(memory);
  for (uint64_t i = 0; i < bytes; i++) memory[i] = file_byte(file, i);
  const char *path = temp_folder_write(folder, name, memory, bytes);
  free(memory);
  return path;
}

#endif
