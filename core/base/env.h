/* The environment, read only where it can be trusted. Thread-safe while nobody changes the environment. */
#ifndef GM_CORE_BASE_ENV_H
#define GM_CORE_BASE_ENV_H

/* The value of `name` ("" when set and empty); NULL when not set, or when the process runs with more rights than its
 * user (setuid, setgid, file capabilities): then nobody outside may steer it. Owned by the environment. */
const char *gm__env(const char *name);

#endif
