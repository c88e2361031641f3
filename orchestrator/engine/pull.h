/* pull.h - reads the progress of an image pull from a pod's log. */
#ifndef BURST_ENGINE_PULL_H
#define BURST_ENGINE_PULL_H

/* In percent, from a log as OP_LOGS returns it: of the bytes of all layers ("3f4a: Downloading [==>
 * ] 12MB/30MB"), else the percentage of its last line that has one. -1: the log shows none, or the
 * image is there. */
int pull_percent(const char *log);

#endif
