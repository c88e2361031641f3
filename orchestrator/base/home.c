/* home.c - finds this user's home and XDG folders, and shortens paths for messages. */
#include "home.h"

#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#include "path.h"

char *home_of_account(void)
{
	const struct passwd *who = getpwuid(geteuid());

	return who && who->pw_dir && who->pw_dir[0] == '/' ? xstrdup(who->pw_dir) : NULL;
}

char *home_dir(void)
{
	const char *home = getenv("HOME");

	return home && home[0] == '/' ? xstrdup(home) : home_of_account();
}

char *home_xdg(const char *name, const char *below)
{
	const char *value = getenv(name);

	if (value && value[0] == '/') /* XDG: a relative path counts as unset */
		return xstrdup(value);
	CLEANUP(free_text) char *home = home_dir();
	return home ? path_join(home, below) : NULL;
}

char *home_shorten(const char *path)
{
	CLEANUP(free_text) char *home = home_dir();
	size_t len = home ? strlen(home) : 0;

	if (len > 1 && !strncmp(path, home, len) && path[len] == '/')
		return xasprintf("~%s", path + len);
	return xstrdup(path);
}
