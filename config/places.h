/* places.h - finds this user's folders (home, XDG) and shortens paths for people. */
#ifndef BURST_CONFIG_PLACES_H
#define BURST_CONFIG_PLACES_H

/* $HOME, else the home of the password file; NULL if there is neither. To be freed. */
char *places_home(void);
/* The home of the password file alone, which differs from $HOME under `sudo -E`. NULL: it has none.
 * To be freed. */
char *places_account_home(void);
/* $name when it is an absolute path, else home + "/" + below. NULL without a home. To be freed. */
char *places_xdg(const char *name, const char *below);
/* The folder of burst's state, absolute; it need not exist. NULL without a home, or if
 * BURST_STATE_DIR is relative. To be freed. */
char *places_state(void);
/* With the home folder written as "~". To be freed. */
char *places_show(const char *path);

#endif
