/* queue.c - the lock of a queue, and the note in the ledger why it waits. */
#include "queue.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/jsonx.h"
#include "base/path.h"
#include "store/facts.h"

char *queue_path(const char *state_dir, const char *config, const char *ending)
{
	char key[SHA256_NAME];

	sha256_name(config, key);
	return xasprintf("%s/jobs/%s.queue%s", state_dir, key, ending);
}

/* ---- the lock ---- fcntl() can test a lock without taking it. A test by flock() would take it for
 * a moment, and a runner that starts then would see another runner. */

int queue_take(const char *state_dir, const char *config, int *fd, struct err *err)
{
	CLEANUP(free_text) char *path = queue_path(state_dir, config, "");
	CLEANUP(free_text) char *dir = path_dir(path);
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	if (path_mkdirs(dir, 0700, err) < 0)
		return -1;
	int lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (lock_fd < 0)
		return err_set(err, ERR_LOCAL, "%s: %m", path);
	if (fcntl(lock_fd, F_SETLK, &lock) < 0) {
		bool busy = errno == EACCES || errno == EAGAIN;
		err_set(err, busy ? ERR_BUSY : ERR_LOCAL,
			busy ? "%s: another process works on this queue" : "%s: %m", config);
		close(lock_fd);
		return -1;
	}
	*fd = lock_fd;
	return 0;
}

bool queue_has_runner(const char *state_dir, const char *config)
{
	CLEANUP(free_text) char *path = queue_path(state_dir, config, "");
	CLEANUP(fd_close) int fd = open(path, O_RDWR | O_CLOEXEC);
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

int queue_count_open(struct store *store, const char *state_dir, struct queue_open *out,
		     struct err *err)
{
	struct request_row *rows = NULL;
	size_t count = 0;
	bool runner = false;

	*out = (struct queue_open){0};
	if (store_requests(store, NULL, true, &rows, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		runner = i && !strcmp(rows[i].config, rows[i - 1].config)
				 ? runner
				 : queue_has_runner(state_dir, rows[i].config);
		out->requests++;
		out->without_client += !runner;
	}
	free(rows);
	return 0;
}

/* ---- why it waits ---- */

void queue_explain(const struct when_answer *a, const struct when_work *work, char *to, size_t room)
{
	char price[32], time[32];

	switch (a->why) {
	case WHEN_QUIET:
		snprintf(to, room, "starts at %s unless another request follows",
			 clock_local(time, sizeof(time), "%H:%M:%S", a->until_ms));
		return;
	case WHEN_RETRY:
		snprintf(to, room, "the last start failed; next try at %s",
			 clock_rfc3339(time, sizeof(time), a->until_ms));
		return;
	case WHEN_PRICE:
		snprintf(to, room, "the price is %s/h",
			 money_show(price, sizeof(price), work->price_microusd_h));
		return;
	case WHEN_NO_PRICE: snprintf(to, room, "the price is unknown now"); return;
	case WHEN_SEGMENTS:
		if (work->segments < 0)
			snprintf(to, room, "the number of segments to render is unknown now");
		else
			snprintf(to, room, "%lld segment%s to render so far",
				 (long long)work->segments, work->segments == 1 ? "" : "s");
		return;
	case WHEN_WORK:
		snprintf(to, room, "%s of work so far; it starts with %s",
			 duration_show(price, sizeof(price), work->work_ms),
			 duration_show(time, sizeof(time), when_least_work_ms(work->cold_ms)));
		return;
	case WHEN_READY:
	case WHEN_WAITED:
	case WHEN_DEADLINE:
	case WHEN_EMPTY: break;
	}
	snprintf(to, room, "%s", when_name(a->why));
}

int queue_note(struct store *store, const char *config, const char *why, const char *text,
	       int64_t until_ms, struct err *err)
{
	char key[SHA256_NAME];

	sha256_name(config, key);
	if (!why)
		return fact_put(store, FACT_QUEUE, key, NULL, "", err);
	CLEANUP(json_decref)
	json_t *note = json_pack("{s:s, s:s, s:I}", "why", why, "text", text, "until_ms",
				 (json_int_t)until_ms);
	CLEANUP(free_text) char *line = jsonx_line(note);
	return fact_put(store, FACT_QUEUE, key, NULL, line, err);
}

json_t *queue_noted(struct store *store, const char *config)
{
	char key[SHA256_NAME], line[1024];

	sha256_name(config, key);
	if (!fact_get(store, FACT_QUEUE, key, NULL, line, sizeof(line)) || !line[0])
		return NULL;
	return jsonx_parse(line, strlen(line), NULL);
}
