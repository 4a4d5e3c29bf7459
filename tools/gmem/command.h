/* The commands of gmem: a folder each. */
#ifndef GM_TOOLS_GMEM_COMMAND_H
#define GM_TOOLS_GMEM_COMMAND_H

/* The exit codes of gmem. */
enum { GMEM_DONE = 0, GMEM_FAILED = 1, GMEM_USAGE = 2 };

/* argv[0] is "gmem NAME", for messages; what is left is the command's. The answer is the exit code; bad usage does not
 * return. */
typedef int (*command_run)(int argc, char **argv);

int command_info(int argc, char **argv);
int command_select(int argc, char **argv);
int command_load(int argc, char **argv);
int command_save(int argc, char **argv);
int command_fit(int argc, char **argv);
int command_replay(int argc, char **argv);
int command_advise(int argc, char **argv);
int command_report(int argc, char **argv);
int command_bench(int argc, char **argv);
int command_store(int argc, char **argv);
int command_later(int argc, char **argv); /* those that this version does not have yet */

#endif
