/* A file that is not complete yet. SIGINT, SIGTERM and SIGHUP remove it, and end the program as if they were not
 * caught. One at a time in a process. */
#ifndef GM_TOOLS_GMEM_OUTPUT_UNFINISHED_H
#define GM_TOOLS_GMEM_OUTPUT_UNFINISHED_H

#include <limits.h>
#include <sys/types.h>

/* Makes a file of this mode with a name of its own. The last XXXXXX in front of `ending` signs are replaced in `path`,
 * which has room for PATH_MAX. It answers the file, open for writing. -1: errno has the reason, and no file is there.
 */
int unfinished_make(char *path, int ending, mode_t mode);

/* The file is complete, or removed: signals do what they did before. */
void unfinished_end(void);

#endif
