/* tree.h - `tree`: a tar stream becomes a folder of the volume. */
#ifndef BURST_JOBS_AGENT_TREE_H
#define BURST_JOBS_AGENT_TREE_H

int agent_tree(int argc, char **argv);

#endif
