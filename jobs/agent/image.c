/* image.c - what the pod's image contains: its Python, and environments made when it was built. */
#include "image.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "env.h"
#include "files.h"
#include "json.h"

void python_of_image(const struct agent *a, char *name, size_t room)
{
	const char *path = env_get(&a->place.env, "PATH", "/usr/local/bin:/usr/bin:/bin");
	char file[PATH_MAX], real[PATH_MAX];
	*name = 0;
	while (*path && !*name) {
		size_t len = strcspn(path, ":");
		if (snprintf(file, sizeof(file), "%.*s/python3", (int)len, path) <
			    (int)sizeof(file) &&
		    access(file, X_OK) == 0 && realpath(file, real))
			snprintf(name, room, "%s", strrchr(real, '/') + 1);
		path += len + (path[len] == ':');
	}
}

#define IMAGE_DIR "/usr/local/lib/burst"

enum { IMAGE_ENVS_MOST = 32 };

char *image_path(const struct agent *a, const char *key)
{
	const char *image = env_get(&a->place.env, "BURST_IMAGE", getenv("BURST_IMAGE"));
	return xasprintf("%s/env/%s", image && *image ? image : IMAGE_DIR, key);
}

bool image_has(const struct agent *a, const char *key)
{
	struct str text = {0};
	struct stat st;
	char *path = image_path(a, key), *file = xasprintf("%s/.burst-key", path);
	bool there = sha256_is_hex(key) && stat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
		     (st.st_uid == 0 || st.st_uid == getuid()) &&
		     read_file(file, 100, &text) == 0 && !strncmp(str_text(&text), key, 64);
	str_free(&text);
	free(file);
	free(path);
	return there;
}

void add_image(const struct agent *a, struct str *b)
{
	char *path = image_path(a, "");
	DIR *d = opendir(path);
	struct dirent *e;
	int count = 0;
	js_key(b, "image_envs");
	str_addc(b, '[');
	while (d && count < IMAGE_ENVS_MOST && (e = readdir(d)))
		if (image_has(a, e->d_name)) {
			js_text(b, NULL, e->d_name);
			count++;
		}
	str_addc(b, ']');
	if (d)
		closedir(d);
	free(path);
}
