/* plugins.c - loads providers outside the tree: shared objects that the user named. They run with
 * all of the user's rights, so an object that other users can write to is refused, and the current
 * folder is never searched. */
#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "provider.h"

/* Sets *st to what exists at the path. -1: nothing, or other users can change it. */
static int check_only_user_can_change(const char *path, struct stat *st, struct err *err)
{
	if (path[0] != '/')
		return err_set(err, ERR_CONFIG, "%s: not an absolute path", path);
	if (stat(path, st) < 0)
		return err_set(err, ERR_CONFIG, "%s: %s", path, strerror(errno));
	if ((st->st_uid != geteuid() && st->st_uid != 0) || st->st_mode & (S_IWGRP | S_IWOTH))
		return err_set(err, ERR_CONFIG,
			       "%s: other users can change it (it must belong to you or root, "
			       "and be writable only by its owner)",
			       path);
	return 0;
}

static bool is_provider_name(const char *name)
{
	for (const char *p = name; *p; p++)
		if (!islower((unsigned char)*p) &&
		    (p == name || (!isdigit((unsigned char)*p) && *p != '_')))
			return false;
	return *name && strlen(name) < PROVIDER_NAME_MAX;
}

/* Refuses a provider that this program cannot use. */
static int check_provider(const struct provider_ops *ops, const char *path, struct err *err)
{
	if (ops->abi != PROVIDER_ABI)
		return err_set(err, ERR_CONFIG,
			       "%s: made for version %u of the provider contract, this burst has "
			       "%u: build it again",
			       path, (unsigned)ops->abi, PROVIDER_ABI);
	if (!ops->name || !is_provider_name(ops->name))
		return err_set(err, ERR_CONFIG,
			       "%s: its name may have only a-z, 0-9 and _, at "
			       "most %d",
			       path, PROVIDER_NAME_MAX - 1);
	if (!ops->options || !ops->open || !ops->close || !ops->account || !ops->begin ||
	    !ops->next || !ops->op_free)
		return err_set(err, ERR_CONFIG,
			       "%s: provider \"%s\" lacks options or a function that the "
			       "contract requires",
			       path, ops->name);
	if (provider_find(ops->name))
		return err_set(err, ERR_CONFIG, "%s: provider \"%s\" already exists", path,
			       ops->name);
	return 0;
}

/* Loads the object and adds its provider to the registry, which has room. */
static int load_object(const char *path, struct err *err)
{
	size_t count = 0;
	void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!object) {
		const char *why = dlerror(); /* dlerror() usually names the path */
		return err_set(err, ERR_CONFIG, "%s: %s", path,
			       starts_with(why, path) ? why + strlen(path) + 2 : why);
	}
	const struct provider_ops *ops = dlsym(object, PROVIDER_SYMBOL);
	if (!ops)
		err_set(err, ERR_CONFIG, "%s: contains no provider (no symbol %s)", path,
			PROVIDER_SYMBOL);
	if (!ops || check_provider(ops, path, err) < 0) {
		dlclose(object);
		return -1;
	}
	while (provider_registry[count])
		count++;
	provider_registry[count] = ops;
	return 0;
}

/* Loads a plug-in file. *room: how many more may be loaded. */
static int load_if_room(const char *path, int *room, struct err *err)
{
	struct stat st;

	if (check_only_user_can_change(path, &st, err) < 0)
		return -1;
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_CONFIG, "%s: neither a file nor a folder", path);
	if (*room == 0)
		return err_set(err, ERR_CONFIG, "%s: more than %d", path, PLUGINS_MAX);
	if (load_object(path, err) < 0)
		return -1;
	--*room;
	return 0;
}

static void add_error_line(struct str *bad, const struct err *err)
{
	str_addf(bad, "%s\n", err->msg);
}

static int is_visible_object(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && ends_with(entry->d_name, ".so");
}

/* Loads each NAME.so in a folder. Appends a line to bad for each that cannot be used. */
static void load_folder(const char *dir, int *room, struct str *bad)
{
	struct dirent **entries = NULL;
	struct err err;
	int count = scandir(dir, &entries, is_visible_object, alphasort);

	if (count < 0) {
		err_set(&err, ERR_CONFIG, "%s: %s", dir, strerror(errno));
		add_error_line(bad, &err);
	}
	for (int i = 0; i < count; i++) {
		CLEANUP(free_text) char *path = xasprintf("%s/%s", dir, entries[i]->d_name);
		if (load_if_room(path, room, &err) < 0)
			add_error_line(bad, &err);
		free(entries[i]);
	}
	free(entries);
}

void providers_load(const char *path, struct str *bad)
{
	int room = PLUGINS_MAX;
	struct stat st;
	struct err err;

	for (size_t n; path && *path; path += n + (path[n] == ':')) {
		n = strcspn(path, ":");
		CLEANUP(free_text) char *one = xstrndup(path, n);
		if (n && check_only_user_can_change(one, &st, &err) == 0 && S_ISDIR(st.st_mode))
			load_folder(one, &room, bad);
		else if (n && load_if_room(one, &room, &err) < 0)
			add_error_line(bad, &err);
	}
}
