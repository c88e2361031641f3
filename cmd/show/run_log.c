/* run_log.c - prints the log of a run with the phases of its pods, and follows it. */
#include "run_log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "cmd/cmd.h"
#include "output.h"
#include "report.h"
#include "timeline.h"

#define LOOK_AGAIN_MS  200
#define LINE_MAX_BYTES 65536

struct reader {
	int fd;
	off_t at;
	struct str line; /* the unfinished line */
	struct timeline *phases;
};

/* Whether the line begins with a time; lines of a cut output do not. */
static bool has_time(const struct str *line)
{
	return line->len >= sizeof("2026-11-25T17:05:48Z") - 1 && line->s[10] == 'T' &&
	       line->s[19] == 'Z';
}

static void print_line(struct reader *r)
{
	if (has_time(&r->line))
		timeline_print(r->phases, str_text(&r->line));
	output_safe_line(stdout, str_text(&r->line), r->line.len);
	str_reset(&r->line);
}

static void take(struct reader *r, const char *bytes, size_t len)
{
	while (len) {
		const char *newline = memchr(bytes, '\n', len);
		size_t n = newline ? (size_t)(newline - bytes) : len;
		str_addn(&r->line, bytes, n);
		if (newline || r->line.len > LINE_MAX_BYTES)
			print_line(r);
		n += newline != NULL;
		bytes += n;
		len -= n;
	}
}

/* Prints everything available now. */
static int read_more(struct cmd_context *ctx, struct reader *r, const char *run, const char *path,
		     struct err *err)
{
	char buf[65536];

	if (timeline_read(r->phases, ctx->store, run, err) < 0)
		return -1;
	for (;;) {
		ssize_t n = pread(r->fd, buf, sizeof(buf), r->at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(err, ERR_LOCAL, "%s: %s", path, strerror(errno));
		if (n == 0)
			return cmd_flush(err);
		r->at += n;
		take(r, buf, (size_t)n);
	}
}

static void say_client_gone(struct cmd_context *ctx, const struct run_row *run)
{
	CLEANUP(free_text) char *place = run_place(&ctx->runs, run);

	log_line(LOG_NOTE,
		 "run %s: client exited; end of log (`burst resume %s` continues the run, "
		 "`burst reap` releases its pods) (%s)",
		 run->id, run->id, place);
}

static int is_running(struct cmd_context *ctx, const char *id, bool *running, struct err *err)
{
	struct run_row run;

	if (store_run(ctx->store, id, &run, err) < 0)
		return -1;
	*running = run.status == RUN_RUNNING;
	if (*running && !run_is_alive(&ctx->runs, run.id)) {
		/* it may have ended since its row was read */
		if (store_run(ctx->store, id, &run, err) < 0)
			return -1;
		if (run.status == RUN_RUNNING)
			say_client_gone(ctx, &run);
		*running = false;
	}
	return 0;
}

static int follow(struct cmd_context *ctx, struct reader *r, const char *id, const char *path,
		  struct err *err)
{
	for (bool running = true; running;) {
		poll(NULL, 0, LOOK_AGAIN_MS);
		if (is_running(ctx, id, &running, err) < 0 || read_more(ctx, r, id, path, err) < 0)
			return -1;
	}
	return 0;
}

/* Prints the sums of the log's phases, pod by pod. */
static int print_total(struct cmd_context *ctx, const char *id, struct err *err)
{
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (store_pods(ctx->store, id, false, &pods, &count, err) < 0)
		return -1;
	if (count)
		output_line(stdout, "%s", "");
	report_print_phases(stdout, pods, count, clock_wall_ms());
	free(pods);
	return 0;
}

int run_log_show(struct cmd_context *ctx, const char *id, const char *path, struct err *err)
{
	CLEANUP(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct reader r = {.fd = fd};

	if (fd < 0 && errno == ENOENT)
		return err_set(err, ERR_USAGE, "run %s has no log", id);
	if (fd < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", path, strerror(errno));
	r.phases = timeline_new();
	int result = read_more(ctx, &r, id, path, err);
	if (result == 0 && opt_has(ctx, "follow"))
		result = follow(ctx, &r, id, path, err);
	if (r.line.len)
		print_line(&r);
	timeline_print(r.phases, NULL);
	timeline_free(r.phases);
	str_free(&r.line);
	return result < 0 ? -1 : print_total(ctx, id, err);
}
