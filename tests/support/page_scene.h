/* A page set for tests, and owners of it. Needs cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_PAGE_SCENE_H
#define GM_TESTS_SUPPORT_PAGE_SCENE_H

#include <string.h>

#include "gm/pages.h"

typedef struct page_scene {
  gm_context *ctx;
  gm_pages *pages;
  gm_error err;
} page_scene;

static inline void page_scene_open(page_scene *s, uint32_t max_pages, uint32_t reserve, uint32_t flags,
                                   const gm_services *services) {
  const gm_pages_params params = {
      .struct_size = sizeof params, .max_pages = max_pages, .reserve = reserve, .flags = flags};
  const gm_context_params context = {.struct_size = sizeof context, .services = services};
  memset(s, 0, sizeof *s);
  assert_int_equal(gm_context_create(&context, &s->ctx, NULL), GM_OK);
  assert_int_equal(gm_pages_create(s->ctx, &params, &s->pages, NULL), GM_OK);
}

static inline void page_scene_close(page_scene *s) {
  assert_int_equal(gm_pages_destroy(s->pages, &s->err), GM_OK);
  assert_int_equal(gm_context_destroy(s->ctx, NULL), GM_OK);
}

static inline uint32_t page_owner(page_scene *s, const char *tag) {
  uint32_t owner = 0;
  assert_int_equal(gm_page_owner_open(s->pages, tag, &owner, NULL), GM_OK);
  assert_int_not_equal(owner, 0);
  return owner;
}

static inline gm_pages_stats page_stats(page_scene *s) {
  gm_pages_stats stats = {.struct_size = sizeof stats};
  assert_int_equal(gm_pages_get_stats(s->pages, &stats, NULL), GM_OK);
  return stats;
}

/* Refused with that status, and the message says so. */
#define assert_refused(s, call, wanted, text)                                           \
  do {                                                                                  \
    (s)->err = (gm_error){.message = ""};                                               \
    assert_int_equal((call), (wanted));                                                 \
    if (!strstr((s)->err.message, (text))) assert_string_equal((s)->err.message, text); \
  } while (0)

static const gm_page_key key_a = {1, 2}, key_b = {2, 1}, no_key = {0, 0};

static inline gm_page take_one(page_scene *s, uint32_t owner) {
  gm_page page = GM_NO_PAGE;
  assert_int_equal(gm_pages_take(s->pages, owner, 1, 0, &page, NULL), GM_OK);
  return page;
}

static inline gm_status release_one(page_scene *s, uint32_t owner, gm_page page) {
  return gm_pages_release(s->pages, owner, &page, 1, &s->err);
}

/* GM_NO_PAGE: the key is not found. */
static inline gm_page find_one(page_scene *s, uint32_t owner, gm_page_key key) {
  gm_page page = GM_NO_PAGE;
  uint32_t count = 7;
  assert_int_equal(gm_pages_find(s->pages, owner, &key, 1, &page, &count, NULL), GM_OK);
  assert_int_equal(count, page != GM_NO_PAGE);
  return page;
}

#endif
