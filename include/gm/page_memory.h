/* Memory of page sets. A set with a pool (gm_pages_params.pool) has planes, such as the keys and the values of each
 * layer. A page has a part in each plane.
 *
 * Memory comes and goes by granules of granule_pages pages. In each plane a granule is one block of the pool. So page p
 * lies in granule p / granule_pages. In plane k it begins at byte p % granule_pages * plane_bytes[k] of that granule's
 * block, and has plane_bytes[k] bytes. The place of a page that somebody holds never changes. With granule_pages 0 each
 * plane is one block: the address is base + p * plane_bytes[k].
 *
 * Pages without memory are never handed out. Every call is thread-safe. Takes and releases go on while another thread
 * is in one of these calls. */
#ifndef GM_PAGE_MEMORY_H
#define GM_PAGE_MEMORY_H

#include "gm/pages.h"

GM_BEGIN_DECLS

/* Gets memory until `backed_pages` pages have some, rounded up to granules: those of the least numbers first. A set
 * that has so many already stays as it is. Call it from a thread that may wait, before takes need the pages. After a
 * failure the granules that are whole stay. Two threads that grow at once may get more than each asked for. One may
 * return before the other's memory has come. Errors: INVALID_ARGUMENT: also where the set has no pool, or not so many
 * pages. OUT_OF_DEVICE_MEMORY, OVER_LIMIT, DRIVER: what the pool said. FORKED. */
GM_API gm_status gm_pages_grow(gm_pages *pages, uint32_t backed_pages, gm_error *err);

/* Gives memory of whole granules back to the pool, while at least `backed_pages` pages keep theirs. Such a granule has
 * no page that is held, and none that a step may read. Granules without idle pages go first, and of those alike the
 * ones of the largest numbers. Idle pages that go lose their keys. *out (NULL is allowed) is the number of pages that
 * lost their memory. It is 0 while another thread trims. The call takes time by the number of pages of the set. Errors:
 * INVALID_ARGUMENT: also where the set has no pool. BUSY: a block is mapped; its granule has no memory until the next
 * gm_pages_grow. FORKED. */
GM_API gm_status gm_pages_trim(gm_pages *pages, uint32_t backed_pages, uint32_t *out, gm_error *err);

/* Tells where a page lies in a plane. *out is the granule's block, borrowed while somebody holds the page. The page
 * begins *out_offset bytes into it. Errors: INVALID_ARGUMENT: no such page or plane, or the page has
 * no memory. FORKED. */
GM_API gm_status gm_pages_place(gm_pages *pages, uint32_t plane, gm_page page, gm_block *out, uint64_t *out_offset,
                                gm_error *err);

/* Makes pages the owner's own before their contents change. A page of which the owner has the only hold stays, and
 * out[i] is which[i]. It loses its key. For every other page the owner gives one hold up, and gets a new page, out[i].
 * Pages are taken as by gm_pages_take with `flags`. `out` is another array than `which`, with room for `count`. `which`
 * names a page once. Meanwhile no other call names the owner.
 *
 * gm copies the pages in all planes, in the order of `stream`: work that is submitted there later sees the copies.
 * Pages of both ends are taken again only after the copies have passed; they count as a step until then. With `stream`
 * NULL the copies have passed when the call returns.
 *
 * In a set without a pool the program copies each page whose out[i] is not which[i]. A step that began before the call
 * keeps both pages for that. INVALID_ARGUMENT: a page needs a copy there, and no step is open.
 *
 * Owners that share pages write on one stream, or order theirs. A copy of one may still read a page that is another's
 * own by then. The stream is not being captured.
 *
 * All or none: after a failure the owner holds what it held, and pages that stay may have lost their keys. Errors:
 * INVALID_ARGUMENT: the owner, a page that it does not hold, an unknown flag, a stream of another device. OVER_LIMIT:
 * too few pages, or the oldest step is GM_PAGE_STEPS_MOST steps old. FORKED, and those of gm_block_copy and
 * gm_stream_record. */
GM_API gm_status gm_pages_write(gm_pages *pages, uint32_t owner, const gm_page *which, uint32_t count, uint32_t flags,
                                gm_stream *stream, gm_page *out, gm_error *err);

/* Copies whole pages, in all planes, between two sets with pools of one device, or in one set. So pages go to a set of
 * pinned memory, and come back. from[i] is held by `from_owner` of `from_set`, and to[i] by `to_owner` of `to_set`
 * alone. In one set no page is at both ends. Order, steps and `stream` are as for gm_pages_write. The pages that are
 * written lose their keys. After a failure their contents are undefined.
 *
 * Errors: INVALID_ARGUMENT: an owner, or a page that it does not hold, or not alone. It is the answer, too, where
 * planes of both sets have different bytes, and where a set has no pool. So it is for pools of two devices, or a stream
 * of another one. A call within one set takes a step of its own. OVER_LIMIT: the oldest step is GM_PAGE_STEPS_MOST
 * steps old. FORKED, and those of gm_block_copy and gm_stream_record. */
GM_API gm_status gm_pages_copy(gm_pages *to_set, uint32_t to_owner, const gm_page *to, gm_pages *from_set,
                               uint32_t from_owner, const gm_page *from, uint32_t count, gm_stream *stream,
                               gm_error *err);

GM_END_DECLS

#endif
