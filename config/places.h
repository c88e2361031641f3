/* places.h - where things of this user are: the home folder, folders of the XDG kind, and paths as
 * people like to see them. */
#ifndef BURST_CONFIG_PLACES_H
#define BURST_CONFIG_PLACES_H

/* $HOME, else what the password file says; NULL when there is neither. To be freed. */
char *places_home(void);
/* By the password file alone, which differs from $HOME under `sudo -E`. NULL: it has none. To be
 * freed. */
char *places_account_home(void);
/* $name when it is an absolute path, else home + "/" + below. NULL without a home. To be freed. */
char *places_xdg(const char *name, const char *below);
/* The folder of our own state, absolute; it need not be there. NULL without a home, or where
 * BURST_STATE_DIR is relative. To be freed. */
char *places_state(void);
/* With the home folder written as "~". To be freed. */
char *places_show(const char *path);

#endif
