/* places.h - finds this user's home and XDG folders, and shortens paths for messages. */
#ifndef BURST_CONFIG_PLACES_H
#define BURST_CONFIG_PLACES_H

/* $HOME, else the home of the password file, else NULL. The caller frees it. */
char *places_home(void);
/* The home of the password file, which differs from $HOME under `sudo -E`. NULL: none. The caller
 * frees it. */
char *places_account_home(void);
/* $name if it is an absolute path, else home + "/" + below. NULL: no home. The caller frees it. */
char *places_xdg(const char *name, const char *below);
/* The folder of burst's state, absolute; it may be missing. NULL: no home, or BURST_STATE_DIR is
 * relative. The caller frees it. */
char *places_state(void);
/* The path with the home folder written as "~". The caller frees it. */
char *places_show(const char *path);

#endif
