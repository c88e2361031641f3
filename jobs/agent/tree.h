/* tree.h - `tree`: makes a folder of the volume from a tar stream. */
#ifndef BURST_JOBS_AGENT_TREE_H
#define BURST_JOBS_AGENT_TREE_H

int agent_tree(int argc, char **argv);

#endif
