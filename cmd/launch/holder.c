/* holder.c - waits for the process that holds a run, and asks its client to stop. */
#include "holder.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/path.h"

/* How long nothing may happen to the pods of a healthy client. */
enum {
	CLIENT_STOP_MS =
		360 * 1000, /* 30 s for files, five minutes until it stops retrying a release */
	/* two minutes for the reply to a create, five until its pod is found or proven absent */
	LOST_MS = 480 * 1000,
	LOOK_MS = 1000,
	SAY_MS = 3000, /* silence before a message about the wait */
};

struct pods_seen {
	struct str text; /* changes when anything happens to them */
	int64_t since;
	bool lost; /* one may be the result of a create without a reply */
};

static void see_pods_of_run(const struct cmd_context *ctx, const char *run, struct pods_seen *seen)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (store_pods(ctx->store, run, true, &pods, &count, NULL) < 0)
		return;
	seen->lost = false;
	for (size_t i = 0; i < count; i++) {
		str_addf(&text, "%s %s %s\n", pods[i].attempt, pod_row_state_word(pods[i].state),
			 pods[i].id);
		seen->lost = seen->lost || pods[i].state == POD_ROW_INTENT ||
			     pods[i].state == POD_ROW_AMBIGUOUS;
	}
	free(pods);
	if (seen->since && !strcmp(str_text(&text), str_text(&seen->text)))
		return;
	str_reset(&seen->text);
	str_add(&seen->text, str_text(&text));
	seen->since = clock_boot_ms();
}

/* The holder of the run's lock: a client's pid, else 0 and the note, which may be empty (on a full
 * disk). */
static long holder_of(const struct cmd_context *ctx, const char *run, char *note, size_t room)
{
	CLEANUP(free_text) char *path = run_path(&ctx->runs, run, "lock");
	CLEANUP(str_free) struct str text = STR_INIT;
	CLEANUP(str_free) struct str shown = STR_INIT;
	long pid = 0;

	path_is_locked(path, &text);
	str_add_printable(&shown, str_text(&text), text.len, 100);
	copy_text(note, room, shown.len ? str_text(&shown) : "another process");
	return sscanf(str_text(&text), RUN_CLIENT " %ld", &pid) == 1 && pid > 1 ? pid : 0;
}

static int still_held(const struct cmd_context *ctx, const char *run, long pid, const char *holder,
		      struct err *err)
{
	if (pid)
		return err_set(err, ERR_UNRELEASED,
			       "run %s: its client (process %ld) does not exit, and its pods "
			       "may still be billing; run `kill -9 %ld`, then cancel again",
			       run, pid, pid);
	return err_set(err, ERR_UNRELEASED,
		       "run %s: its pods may still be billing: %s still holds %s/runs/%s/lock; "
		       "cancel again after it exits",
		       run, holder, ctx->state_dir, run);
}

static void say_waiting(const char *run, const char *place, long pid, const char *holder, bool lost)
{
	if (pid)
		log_line(LOG_NOTE,
			 "run %s: asked its client (process %ld) to stop; waiting for it to %s "
			 "(%s)",
			 run, pid,
			 lost ? "find the pod of a create whose reply was lost, which takes "
				"some minutes"
			      : "release its pods",
			 place);
	else
		log_line(LOG_NOTE, "run %s: waiting for its lock, held by %s (%s)", run, holder,
			 place);
}

int holder_wait(const struct cmd_context *ctx, const char *run, const char *place, struct err *err)
{
	struct pods_seen seen = {.text = STR_INIT};
	int64_t began = clock_boot_ms(), now = began, look_at = began;
	char holder[128] = "";
	long pid = 0;
	int said = 0; /* 2: said that it searches for a pod */

	for (; run_is_alive(&ctx->runs, run) &&
	       now - MAX(seen.since, began) < (seen.lost ? LOST_MS : CLIENT_STOP_MS);
	     now = clock_boot_ms()) {
		if (!pid && (pid = holder_of(ctx, run, holder, sizeof(holder)))) {
			kill((pid_t)pid, SIGTERM);
			kill((pid_t)pid, SIGCONT); /* Ctrl-Z may have stopped it */
		}
		if (now >= look_at) {
			see_pods_of_run(ctx, run, &seen);
			look_at = now + LOOK_MS;
		}
		if (now - began >= SAY_MS && said < 1 + (pid && seen.lost)) {
			say_waiting(run, place, pid, holder, seen.lost);
			said = 1 + (pid && seen.lost);
		}
		poll(NULL, 0, 100);
	}
	str_free(&seen.text);
	return run_is_alive(&ctx->runs, run) ? still_held(ctx, run, pid, holder, err) : 0;
}
