/* volume_place.c - `burst volume ls|get|put VOLUME:PATH`: finds the volume of a path. */
#include "volume_place.h"

#include "base/path.h"
#include "cmd/launch/launch.h"
#include "volume_files.h"
#include "volume_find.h"

int volume_place_list(struct launch *l, const char *place, struct err *err)
{
	struct volume_row v;
	const char *path;

	if (volume_find_place(l, place, &v, &path, err) < 0)
		return -1;
	if (!*path) /* no provider can list a whole volume */
		return err_set(err, ERR_USAGE,
			       "volume ls: name a folder, as in %s:runs (burst keeps env, code, "
			       "agent and runs there)",
			       v.name);
	return volume_list_folder(volume_provider(l, v.provider), &v, path, err);
}

int volume_place_get(struct launch *l, const char *place, const char *file, struct err *err)
{
	struct volume_row v;
	const char *path;

	if (volume_find_place(l, place, &v, &path, err) < 0)
		return -1;
	if (!*path)
		return err_set(err, ERR_USAGE, "volume get: %s names no file", place);
	return volume_get_file(volume_provider(l, v.provider), &v, path,
			       file ? file : path_base(path), err);
}

int volume_place_put(struct launch *l, const char *file, const char *place, struct err *err)
{
	bool folder = !place || ends_with(place, ":") || ends_with(place, "/");
	CLEANUP(free_text)
	char *whole =
		folder ? xasprintf("%s%s", place ? place : "", path_base(file)) : xstrdup(place);
	struct volume_row v;
	const char *path;

	if (volume_find_place(l, whole, &v, &path, err) < 0)
		return -1;
	return volume_put_file(volume_provider(l, v.provider), &v, file, path, err);
}
