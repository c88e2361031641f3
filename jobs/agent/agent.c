/* agent.c - the state of `serve`. */
#include "agent.h"

#include "base/clock.h"
#include "base/mem.h"
#include "machine.h"

int64_t now_ms(const struct agent *a)
{
	return clock_boot_ms() - a->began_ms;
}

char *work_path(const struct agent *a, const char *name)
{
	return xasprintf("%s/work/%s", a->disk, name);
}

char *env_path(const struct agent *a, const char *name)
{
	return a->env_root ? xasprintf("%s/%s", a->env_root, name)
			   : xasprintf("%s/env/%s", a->place.volume, name);
}
