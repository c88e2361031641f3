/* main.h - the interface of main.c. */
#ifndef BURST_JOBS_AGENT_MAIN_H
#define BURST_JOBS_AGENT_MAIN_H

int main(int argc, char **argv);

#endif
