/* The order in which gm takes its locks, and the places where it holds none (docs/design.md, "Locks"). Debug builds
 * check both with an assertion. Release builds have none of this. */
#ifndef GM_CORE_BASE_RANK_H
#define GM_CORE_BASE_RANK_H

/* A thread takes a lock only while all that it holds have lower ranks. */
typedef enum gm__rank {
  GM__RANK_GATE = 1,
  GM__RANK_MANAGED,
  GM__RANK_TRIM,
  GM__RANK_PAGES,
  GM__RANK_GROW,
  GM__RANK_TURNS = GM__RANK_GROW, /* up to here: turns, which may be held where the driver is called to submit */
  GM__RANK_SHARE,
  GM__RANK_ADOPT,
  GM__RANK_SCOPE,
  GM__RANK_GUARD,
  GM__RANK_KEEP,
  GM__RANK_REGISTRY,
  GM__RANK_DRIVER,
  GM__RANK_WAY,
  GM__RANK_DEVICE,
  GM__RANK_CONTEXT,
  GM__RANK_TRACKER,
  GM__RANK_ARENA,
  GM__RANK_PROVIDER,
  GM__RANK_QUOTAS,
  GM__RANK_RECORDER,
  GM__RANK_CONFIG,
  GM__RANK_STAGING,
  GM__RANK_BACKEND,
  GM__RANK_CARD,
  GM__RANK_QUEUE,
  GM__RANK_STREAM,
  GM__RANK_TIER,
  GM__RANK_LEAF
} gm__rank;

#ifdef NDEBUG
static inline void gm__rank_expect(gm__rank rank) { (void)rank; }
static inline void gm__rank_enter(gm__rank rank) { (void)rank; }
static inline void gm__rank_leave(gm__rank rank) { (void)rank; }
static inline void gm__rank_check_submit(void) {}
#else
/* Check that the calling thread may wait for a lock of that rank. It may try a lock of any rank. */
void gm__rank_expect(gm__rank rank);

/* Note that the thread has taken, or released, a lock of that rank. */
void gm__rank_enter(gm__rank rank);
void gm__rank_leave(gm__rank rank);

/* Check that the thread holds only turns: its next call may wait for an engine's lock, or call gm. */
void gm__rank_check_submit(void);
#endif

#endif
