/* home.h - finds this user's home and XDG folders, and shortens paths for messages. */
#ifndef BURST_BASE_HOME_H
#define BURST_BASE_HOME_H

/* $HOME, else the home of the password file, else NULL. The caller frees it. */
char *home_dir(void);
/* The home of the password file, which differs from $HOME under `sudo -E`. NULL: none. The caller
 * frees it. */
char *home_of_account(void);
/* $name if it is an absolute path, else home + "/" + below. NULL: no home. The caller frees it. */
char *home_xdg(const char *name, const char *below);
/* The path with the home folder written as "~". The caller frees it. */
char *home_shorten(const char *path);

#endif
