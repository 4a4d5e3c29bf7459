/* Where a cluster keeps a key: its slot. Pure. */
#ifndef GM_CORE_TIER_REMOTE_SLOT_H
#define GM_CORE_TIER_REMOTE_SLOT_H

#include <stddef.h>
#include <stdint.h>

enum { GM__REMOTE_SLOTS = 16384 };

/* CRC16 (XMODEM) of the key, or of what stands between its first '{' and the next '}' if that is not empty. */
uint16_t gm__remote_slot(const void *key, size_t bytes);

#endif
