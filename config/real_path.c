/* real_path.c - finds where a path leads, also if what it names is missing. */
#include "real_path.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/path.h"

bool real_path_up(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash || (slash == path && !path[1]))
		return false;
	slash[slash == path] = '\0';
	return true;
}

char *real_path_plain(const char *path)
{
	char *out = xstrdup("/");

	for (const char *part = path; *part;) {
		size_t len = strcspn(part, "/");
		bool stay = !len || (len == 1 && part[0] == '.'),
		     up = len == 2 && part[0] == '.' && part[1] == '.';
		if (up)
			real_path_up(out);
		if (!stay && !up) {
			char *longer =
				xasprintf("%s%s%.*s", out, out[1] ? "/" : "", (int)len, part);
			free(out);
			out = longer;
		}
		part += len + (part[len] == '/');
	}
	return out;
}

enum { LINKS_MAX = 64 };

/* The target of a link, with the rest appended; NULL: it is no link. */
static char *behind_link(const char *link, const char *rest)
{
	char target[PATH_MAX];
	ssize_t n = readlink(link, target, sizeof(target));

	return n > 0 && n < (ssize_t)sizeof(target) ? xasprintf("%.*s/%s", (int)n, target, rest)
						    : NULL;
}

/* Follows links part by part: ".." behind a missing folder can lead to existing links, and a link
 * can lead to nothing yet. */
char *real_path(const char *path)
{
	CLEANUP(free_text) char *rest = xstrdup(path);
	char *out = xstrdup("/");

	for (int links = 0; *rest;) {
		size_t len = strcspn(rest, "/");
		CLEANUP(free_text) char *part = xstrndup(rest, len);
		CLEANUP(free_text) char *behind = xstrdup(rest + len + (rest[len] == '/'));
		CLEANUP(free_text) char *next = xasprintf("%s%s%s", out, out[1] ? "/" : "", part);
		bool up = !strcmp(part, ".."), name = len && !up && strcmp(part, ".");
		char *led = name && links < LINKS_MAX ? behind_link(next, behind) : NULL;
		if (led) {
			links++;
			out[led[0] != '/' ? strlen(out) : 1] = '\0';
		} else if (up) {
			real_path_up(out);
		} else if (name) {
			free(out);
			out = TAKE(next);
		}
		free(rest);
		rest = led ? led : TAKE(behind);
	}
	return out;
}

char *real_path_move(const char *path, const char *from, const char *to)
{
	return path_is_below(path, from) ? xasprintf("%s%s", to, path + strlen(from))
					 : xstrdup(path);
}
