/* pull.h - how far a provider is with pulling a pod's image, as the pod's log says. */
#ifndef BURST_ENGINE_PULL_H
#define BURST_ENGINE_PULL_H

/* In percent, of a log as OP_LOGS gives it: of the bytes of all layers ("3f4a: Downloading [==> ]
 * 12MB/30MB"), else as its last line with a percentage says. -1: it does not say, or the image is
 * there. */
int pull_percent(const char *log);

#endif
