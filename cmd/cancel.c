/* cancel.c - `burst cancel`: asks the client of a run to stop, or releases its pods where no client
 * lives. */
#include <signal.h>
#include <stdlib.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "cmd/show/output.h"
#include "cmd/launch/find_run.h"

/* How long nothing happens to the pods of a client that is well. */
enum {
	CLIENT_STOP_MS = 360 * 1000, /* 30 s for files, five minutes until it gives a pod up */
	/* two minutes for the answer to a create, five until its pod turns up or never does */
	LOST_MS = 480 * 1000,
	LOOK_MS = 1000,
	SAY_MS = 3000, /* so long nothing is said of the waiting */
};

struct pods_seen {
	struct str text; /* other than before when anything has happened to them */
	int64_t since;
	bool lost; /* one of them may be what a create has made whose answer has not come */
};

static void look_at_pods(const struct cmd_context *ctx, const char *run, struct pods_seen *seen)
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

/* Who holds the run's lock: a client's number, else 0 and the note, if there is one (on a full disk
 * it may be empty). */
static long holder_of(const struct cmd_context *ctx, const char *run, char *note, size_t room)
{
	CLEANUP(free_text) char *path = run_path(&ctx->runs, run, "lock");
	CLEANUP(str_free) struct str text = STR_INIT;
	CLEANUP(str_free) struct str shown = STR_INIT;
	long pid = 0;

	if (path_read(path, 256, &text, NULL) < 0)
		str_reset(&text);
	str_add_printable(&shown, str_text(&text), strcspn(str_text(&text), "\n"), 100);
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

/* Its client is asked to stop (it releases its pods itself); if it does not, we do it. Who holds
 * the lock for another reason (another run that settles this one) is no client of its, and is
 * waited for. */
static int wait_for_holder(const struct cmd_context *ctx, const char *run, const char *place,
			   struct err *err)
{
	struct pods_seen seen = {.text = STR_INIT};
	int64_t began = clock_boot_ms(), now = began, look_at = began;
	char holder[128] = "";
	long pid = 0;
	int said = 0; /* 2: that it looks for a pod */

	for (; run_is_alive(&ctx->runs, run) &&
	       now - MAX(seen.since, began) < (seen.lost ? LOST_MS : CLIENT_STOP_MS);
	     now = clock_boot_ms()) {
		if (!pid && (pid = holder_of(ctx, run, holder, sizeof(holder)))) {
			kill((pid_t)pid, SIGTERM);
			kill((pid_t)pid, SIGCONT); /* Ctrl-Z may have put it to sleep */
		}
		if (now >= look_at) {
			look_at_pods(ctx, run, &seen);
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

static bool has_ended(const struct run_row *run)
{
	return run->status != RUN_RUNNING && run->status != RUN_UNRELEASED;
}

/* delivers: something of it goes on that is not among its own pods. */
static int cancel(struct cmd_context *ctx, struct run_row *row, bool delivers, struct err *err)
{
	CLEANUP(free_text) char *place = run_place(ctx, row);
	size_t count = 0;

	if (run_open_pods(&ctx->runs, row->id, &count, err) < 0)
		return -1;
	if ((count || !has_ended(row)) && run_is_alive(&ctx->runs, row->id)) {
		if (wait_for_holder(ctx, row->id, place, err) < 0 ||
		    store_run(ctx->store, row->id, row, err) < 0 ||
		    run_open_pods(&ctx->runs, row->id, &count, err) < 0)
			return -1;
	}
	if (!count) {
		if (row->status == RUN_RUNNING) {
			run_end(row, RUN_INTERRUPTED);
			store_put_run(ctx->store, row, NULL);
		}
		output_line(stderr, "run %s: %s; %s (%s)", row->id, run_status_word(row->status),
			    delivers ? "ending its delivery now" : "all pods gone", place);
		return 0;
	}
	if (run_release(&ctx->runs, row, RUN_INTERRUPTED, err) < 0)
		return -1;
	output_line(stderr, "run %s: its %zu pod%s gone (%s)", row->id, count,
		    count == 1 ? " is" : "s are", place);
	return 0;
}

/* A client ends its delivery with itself. Where it was killed, that one goes on, or has left a pod:
 * it is what the run waits for. */
static int run_cancel(struct cmd_context *ctx, struct err *err)
{
	struct run_row row, delivery;
	struct err second;

	if (run_find(ctx, ctx->arg_count ? ctx->args[0] : NULL, &row, err) < 0)
		return -1;
	bool delivers =
		delivery_of(&ctx->runs, &row, &delivery, &second) > 0 && !has_ended(&delivery);
	int status = cancel(ctx, &row, delivers, err);
	struct err *also = status < 0 ? &second : err; /* the first one's words are told */
	/* it may have begun, or ended, meanwhile */
	int found = delivery_of(&ctx->runs, &row, &delivery, also);
	if (found > 0 && !has_ended(&delivery))
		found = cancel(ctx, &delivery, false, also);
	return found < 0 || status < 0 ? run_name_in(ctx, &row, err) : status;
}

const struct cmd cmd_cancel = {
	.name = "cancel",
	.args = "[RUN]",
	.max_args = 1,
	.summary = "stop a run and release its pods",
	.details = "Without RUN: the active run of this folder's burst.cfg, else the one whose "
		   "pods may still be billing, else the newest. Runs of other folders need "
		   "their id. Cancelling a run also ends its delivery. Exit status 0: all its "
		   "pods are gone. 9: a pod could not be confirmed gone.",
	.needs = NEED_LEDGER | NEED_ACCOUNTS,
	.group = CMD_GROUP_RUNS,
	.run = run_cancel,
};
