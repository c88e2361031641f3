/* lease.c - the lease: how long this pod may live. */
#include "lease.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "env.h"
#include "events.h"
#include "files.h"
#include "json.h"
#include "machine.h"

int64_t lease_left_s(const struct agent *a)
{
	return a->lease_end_up_s - uptime_s();
}

void lease_renew(struct agent *a, int64_t lease_s)
{
	int64_t wall = time(NULL), up = uptime_s(),
		left = MIN(MAX(lease_s, (int64_t)1), (int64_t)7 * 86400);
	if (a->over)
		return;
	a->lease_asked_s = left;
	if (a->hard_end_s > 0)
		left = MAX(MIN(left, a->hard_end_s - wall), -up);
	char text[120];
	snprintf(text, sizeof(text), "%s %lld %lld\n", a->attempt, (long long)(wall + left),
		 (long long)(up + left));
	char *file = xasprintf("%s/lease", a->place.home);
	if (write_beside(file, text, 0600) == 0)
		a->lease_end_up_s = up + left;
	free(file);
	a->renewed_ms = now_ms(a);
}

/* The lease of a container that started late (allow_late_start in start.sh). */
static int64_t first_lease_end(const struct agent *a, int64_t end)
{
	int64_t late = atoll(env_get(&a->place.env, "BURST_LATE_START_S", "0")),
		lease = atoll(env_get(&a->place.env, "BURST_LEASE_S", "0"));
	char *file = xasprintf("%s/born", a->place.home);
	struct str text = {0};
	if (late > 0 && read_file(file, 40, &text) == 0 && text.len)
		end = MAX(end, MIN((int64_t)atoll(text.s) + late, end + lease));
	str_free(&text);
	free(file);
	return end;
}

void lease_find(struct agent *a)
{
	a->hard_end_s = atoll(env_get(&a->place.env, "BURST_HARD_END", "0"));
	int64_t first = atoll(env_get(&a->place.env, "BURST_FIRST_LEASE_END", "0"));
	if (!first)
		first = a->hard_end_s ? a->hard_end_s : time(NULL) + 600;
	a->lease_end_up_s = uptime_s() + first_lease_end(a, first) - time(NULL);
	char *file = xasprintf("%s/lease", a->place.home), who[64];
	struct str text = {0};
	long long wall, up;
	if (read_file(file, 200, &text) == 0 && text.len &&
	    sscanf(text.s, "%63s %lld %lld", who, &wall, &up) == 3 && !strcmp(who, a->attempt) &&
	    wall > 0 && wall < 1ll << 40)
		a->lease_end_up_s = MIN((int64_t)up, uptime_s() + (int64_t)wall - time(NULL));
	str_free(&text);
	free(file);
}

void lease_say(struct agent *a)
{
	js_int(notice_begin(a, "lease"), "left_s", lease_left_s(a));
	notice_end(a);
}
