/* glob.h - patterns of output files: `*` and `?` stay within a folder, `**` crosses folders, [..]
 * is a set. Pure. */
#ifndef BURST_JOBS_COMMAND_GLOB_H
#define BURST_JOBS_COMMAND_GLOB_H

#include <stdbool.h>

/* "out/" + "**" + ".mp4" matches out/a.mp4 and out/deep/b.mp4. */
bool output_glob_match(const char *pattern, const char *path);

#endif
