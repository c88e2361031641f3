/* late.c - loads a library when it is needed. */
#include "late.h"

#include <dlfcn.h>

int late_load(const char *file, const char *package, const struct late_function *list, size_t count,
	      struct err *err)
{
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return err_set(err, ERR_LOCAL, "%s cannot be loaded: %s (Debian: apt install %s)",
			       file, dlerror(), package);
	for (size_t i = 0; i < count; i++)
		if (!(*(void **)list[i].to = dlsym(library, list[i].name)))
			return err_set(err, ERR_LOCAL, "this %s has no %s: a newer one is needed",
				       file, list[i].name);
	return 0;
}
