/* The image of a value: one piece of host memory with all of it. It is what tiers keep, and where values lie that went
 * down from a device. docs/inside/store-image.md has the bytes. An image never changes once it is full. */
#ifndef GM_CORE_STORE_IMAGE_H
#define GM_CORE_STORE_IMAGE_H

#include "core/pool/pool.h"
#include "core/store/value.h"

typedef struct gm__image {
  _Atomic uint64_t references;
  const gm_services *services;
  uint64_t bytes;
  size_t behind;       /* bytes of the data behind this struct */
  unsigned char *data; /* there, or in `pinned` */
  gm_pool *pool;       /* of the pinned memory; NULL: the data is in plain host memory */
  gm_block pinned;
} gm__image;

/* An image of `bytes` zeros with one reference. NULL: no host memory. */
gm__image *gm__image_new(const gm_context *ctx, uint64_t bytes);
/* A copy of an image in plain host memory. NULL: no host memory. */
gm__image *gm__image_copy(const gm_context *ctx, const gm__image *image);
void gm__image_retain(gm__image *image);
/* Releases one reference. NULL is allowed. */
void gm__image_release(gm__image *image);

/* Make the image of a value, in a block of `pinned`; NULL: in plain host memory. Errors: OUT_OF_HOST_MEMORY: also where
 * the pool's device pins no more; and those of gm_value_read. */
gm_status gm__image_write(gm_value *value, gm_pool *pinned, gm__image **out, gm_error *err);

/* Make a pool for images in memory that `device` pins, which may keep so many idle bytes. *out is NULL where the device
 * pins none. */
gm_status gm__image_pool(gm_device *device, uint64_t keep_bytes, gm_pool **out, gm_error *err);

/* Makes the tensors of a value that is read. */
typedef struct gm__image_maker {
  gm_status (*tensor)(void *user, const gm_tensor_desc *desc, uint64_t bytes, const gm__transfer *from, gm_value **out,
                      gm_error *err);
  void *user;
} gm__image_maker;

/* Make a value of an image, whose bytes may be anything. FORMAT: they are no value. Other errors are the maker's. */
gm_status gm__image_read(gm_context *ctx, const gm__image *image, const gm__image_maker *maker, gm_value **out,
                         gm_error *err);

/* ---- the bytes, for image.c and image_read.c ---- */

#define GM__IMAGE_MAGIC "gmvalue"
enum {
  GM__IMAGE_VERSION = 1,
  GM__IMAGE_HEAD = 48, /* magic 8, version 4, zero 4, bytes of the tree 8, bytes of the data 8, checksum 8, zero 8 */
  GM__IMAGE_NODE = 16, /* kind 1, rank 1, zero 2, dtype 4, bytes or count 8; then 8 for each dimension */
  GM__IMAGE_ALIGN = 64 /* of the data, and of each tensor in it */
};

/* The checksum of head and tree, with zeros in its own place. */
uint64_t gm__image_checksum(const unsigned char *data, uint64_t tree_bytes);

#endif
