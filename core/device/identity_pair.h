/* What two entries alone prove about each other (rules I2 to I6). */
#ifndef GM_CORE_DEVICE_IDENTITY_PAIR_H
#define GM_CORE_DEVICE_IDENTITY_PAIR_H

#include "core/device/identity.h"

/* Whether two strings are both there and equal, and whether they are equal or both missing. */
bool gm__identity_text_equal(const char *a, const char *b);
bool gm__identity_text_same(const char *a, const char *b);

bool gm__identity_is_gpu_of(const gm__identity *entry, const char *vendor);

/* Fills `address` and brings `uuid` into its normal form (I1); again changes nothing. */
void gm__identity_normalise(gm__identity *entry);

/* Proof that they are two devices; it outweighs every proof of the contrary. Symmetric. */
bool gm__identity_differ(const gm__identity *a, const gm__identity *b);

/* Proof that they are one device. Symmetric. */
bool gm__identity_equal(const gm__identity *a, const gm__identity *b);

#endif
