/* account.c - names the user that a pod runs as. */
#include "account.h"

#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/path.h"

const char *account_in_pod(void)
{
	return geteuid() == 0 ? "root" : "pod";
}

const char *account_home_in_pod(void)
{
	return geteuid() == 0 ? "/root" : "/home/pod";
}

const char *account_name(void)
{
	static char made_up[32];
	const struct passwd *pw = getpwuid(geteuid());

	if (pw)
		return pw->pw_name;
	snprintf(made_up, sizeof(made_up), "%ld", (long)geteuid());
	return made_up;
}

bool account_has_shell(void)
{
	static const char *const none[] = {"nologin", "false", "true", "sync"};
	const struct passwd *pw = getpwuid(geteuid());
	const char *shell = pw && pw->pw_shell[0] ? pw->pw_shell : "/bin/sh";

	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		if (!strcmp(path_base(shell), none[i]))
			return false;
	return pw && access(shell, X_OK) == 0;
}
