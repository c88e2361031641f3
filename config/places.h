/* places.h - finds the folder of burst's state. */
#ifndef BURST_CONFIG_PLACES_H
#define BURST_CONFIG_PLACES_H

/* The folder of burst's state, absolute; it may be missing. NULL: no home, or BURST_STATE_DIR is
 * relative. The caller frees it. */
char *places_state(void);

#endif
