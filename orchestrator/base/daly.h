/* daly.h - how often to save work that may be cut off. */
#ifndef BURST_BASE_DALY_H
#define BURST_BASE_DALY_H

/* The time between two saves that wastes the least, by Young (1974) and Daly (2006), from 10 s to
 * 30 minutes: save_s is what a save takes, between_s the mean time between interruptions. 0 if
 * either is not above 0. */
double checkpoint_every_s(double save_s, double between_s);

#endif
