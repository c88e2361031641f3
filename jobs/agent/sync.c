/* sync.c - makes written files durable, and ends the pod. */
#include "sync.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "events.h"
#include "files.h"
#include "json.h"
#include "place.h"
#include "process.h"

enum {
	SYNC_AGAIN_MS = 3 * 1000,
	SYNC_PATIENCE_MS = 60 * 1000,
};

static int volume_sync(struct agent *a)
{
	events_sync(a);
	int failed = volume_flush(&a->place);
	a->synced_ms = now_ms(a);
	return failed;
}

bool sync_alone(struct agent *a)
{
	if (a->unsynced_ms && now_ms(a) - a->synced_ms < SYNC_AGAIN_MS)
		return false;
	if (volume_sync(a) == 0) {
		a->unsynced_ms = 0;
		return true;
	}
	int saved = errno;
	if (!a->unsynced_ms)
		a->unsynced_ms = a->synced_ms;
	else if (a->synced_ms - a->unsynced_ms > SYNC_PATIENCE_MS)
		fatal(a, "the volume does not keep what is written: %s", strerror(saved));
	return false;
}

void end_pod(struct agent *a, const char *reason)
{
	if (a->over)
		return;
	a->over = true;
	a->over_ms = now_ms(a);
	volume_sync(a);
	char *file = xasprintf("%s/end", a->place.home), *text = xasprintf("%s\n", reason);
	write_beside(file, text, 0600);
	free(text);
	free(file);
}

static int sync_work(struct agent *a)
{
	return volume_flush(&a->place) < 0;
}

static void sync_say(struct agent *a, bool ok)
{
	struct str *b = notice_begin(a, "synced");
	js_int(b, "turn", a->sync_turn);
	js_bool(b, "ok", ok);
	notice_end(a);
}

void sync_start(struct agent *a, int turn)
{
	events_sync(a);
	a->sync_turn = turn;
	a->sync_next_turn = -1;
	a->sync_pid = spawn_own(a, sync_work, -1);
	if (a->sync_pid <= 0) {
		a->sync_pid = 0;
		sync_say(a, false);
	}
}

void sync_ended(struct agent *a, int status)
{
	a->sync_pid = 0;
	sync_say(a, status == 0);
	if (a->sync_next_turn >= 0)
		sync_start(a, a->sync_next_turn);
}
