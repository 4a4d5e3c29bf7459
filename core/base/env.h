/* The environment, which gm reads only where it can trust it. Thread-safe while nobody changes the environment. */
#ifndef GM_CORE_BASE_ENV_H
#define GM_CORE_BASE_ENV_H

/* The value of `name`, "" when it is set and empty. NULL when it is not set. NULL also when the process has more rights
 * than its user (setuid, setgid, file capabilities): then nobody outside may steer it. The environment owns the text.
 */
const char *gm__env(const char *name);

#endif
