/* jobs.c - slow work on files: checks what commands and workers wrote and copies it to the volume,
 * one job at a time, one slice a turn. */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "files.h"
#include "json.h"
#include "sha256.h"
#include "trees.h"

enum {
	/* bytes written to the volume before a flush */
	FLUSH_BYTES = 32 << 20,
};

/* In this file, job_*() handle the first job; whatever reports its end also frees it (job_done). */

static uint32_t read_le32(const unsigned char *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

bool wav_measure(int fd, int64_t file_bytes, double *seconds, int *rate)
{
	unsigned char h[24];
	if (pread(fd, h, 12, 0) != 12 || memcmp(h, "RIFF", 4) || memcmp(h + 8, "WAVE", 4))
		return false;
	uint32_t per_second = 0;
	int64_t at = 12;
	ssize_t n;
	for (int chunks = 0; chunks < 64 && (n = pread(fd, h, 24, at)) >= 8; chunks++) {
		int64_t len = read_le32(h + 4);
		if (!memcmp(h, "fmt ", 4) && len >= 16) {
			if (n < 24)
				return false;
			*rate = (int)MIN(read_le32(h + 12), (uint32_t)10000000);
			per_second = read_le32(h + 16);
		} else if (!memcmp(h, "data", 4)) {
			if (!per_second)
				return false;
			*seconds = (double)MIN(len, file_bytes - at - 8) / per_second;
			return true;
		}
		at += 8 + len + (len & 1);
	}
	return false;
}

/* Hashes, and copies if the job does, the next part of the file. Returns false on an error. Sets
 * *end at the end of the file. */
static bool job_read_slice(struct agent *a, struct job *j, bool *end)
{
	char part[64 << 10];
	for (size_t sum = 0; sum < SLICE;) {
		ssize_t n = read(j->fd, part, sizeof(part));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		if (n == 0)
			return *end = true;
		sha_add(&j->sha, part, (size_t)n);
		if (j->to >= 0 && fd_write_all(j->to, part, (size_t)n) < 0) {
			check_volume(a);
			return false;
		}
		sum += (size_t)n;
		j->bytes += n;
	}
	/* flush a large file in steps, so that the final flush does not block the loop */
	if (j->to >= 0 && j->bytes - j->flushed >= FLUSH_BYTES) {
		j->flushed = j->bytes;
		fdatasync(j->to);
	}
	return true;
}

/* Reports that the segment failed; ends the job. */
static void job_segment_failed(struct agent *a, struct job *j, const char *reason,
			       const char *error)
{
	segment_failed(a, j->batch_id, j->id, j->try, reason, error);
	job_done(a);
}

/* Opens a file that a worker wrote, if it belongs to the workers' user. The agent can read files
 * that workers cannot, and a worker can make a hard link to one of them. */
static int open_of_worker(const struct agent *a, int root, const char *path, struct stat *st)
{
	int fd = open_below(root, path, st);
	if (fd >= 0 && a->separate && !a->worker_root && st->st_uid != WORKER_UID) {
		close_fd(&fd);
		errno = EPERM;
	}
	return fd;
}

/* An output in P until it is complete; then it is renamed to P/out/SEGMENT/NAME. One name is
 * enough: outputs are copied one at a time. */
static const char OUTPUT_PART[] = ".output.part";

/* Opens an output to read. ENOENT: the command has removed the file since the scan. */
static int job_output_open(const struct agent *a, struct job *j)
{
	struct stat st;
	int tree = open_at(AT_FDCWD, j->dir);
	if (tree < 0) {
		errno = errno == ENOENT ? ESTALE : errno;
		return -1;
	}
	j->fd = open_of_worker(a, tree, j->name, &st);
	close_fd(&tree);
	if (j->fd >= 0)
		j->was = st;
	return j->fd < 0 ? -1 : 0;
}

static int job_output_begin(struct agent *a, struct job *j)
{
	sha_start(&j->sha);
	j->to = openat(a->dir_fd, OUTPUT_PART,
		       O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (j->to < 0)
		check_volume(a);
	return j->to < 0 ? -1 : 0;
}

/* Gives the complete copy the name `path` below P. A segment's file is not flushed here: `sync`
 * runs before anything relies on it. */
static int job_output_close(struct agent *a, struct job *j, const char *path)
{
	const char *name;
	int dir = open_parent(a->dir_fd, path, true, &name);
	bool flush = j->kind == JOB_OUTPUT || a->detached;
	int failed = dir < 0 || (flush && fsync(j->to) < 0) ||
		     renameat(a->dir_fd, OUTPUT_PART, dir, name) < 0;
	close_fd(&dir);
	if (failed)
		check_volume(a);
	return failed ? -1 : 0;
}

/* The file cannot be copied, by errno; ends the job. */
static void job_segment_lost(struct agent *a, struct job *j)
{
	int saved = errno;
	if (j->to >= 0)
		unlinkat(a->dir_fd, OUTPUT_PART, 0);
	job_segment_failed(a, j, "missing", strerror(saved));
}

/* Appends the path on the volume of what lies below P. */
static void add_path(const struct agent *a, struct str *b, const char *key, const char *name)
{
	CLEANUP(free_text) char *path = xasprintf("runs/%s/%s/%s", a->run, a->attempt, name);
	js_text(b, key, path);
}

/* Handles a segment that the worker reports as written. Checks that the file exists, reads its
 * kind, then copies it from the worker's folder to the volume. */
static void job_segment(struct agent *a, struct job *j)
{
	bool end = false;
	struct stat st;
	if (j->fd < 0) {
		j->fd = open_of_worker(a, a->out_fd, j->name, &st);
		if (j->fd < 0 && errno == ENOENT)
			return job_segment_failed(a, j, "missing",
						  "the file that the worker reported is not there");
		if (j->fd < 0)
			return job_segment_failed(a, j, "mismatch",
						  "what the worker reported is not a regular file");
		if (wav_measure(j->fd, st.st_size, &j->seconds, &j->rate) && !st.st_size)
			j->seconds = 0;
	}
	if (j->to < 0 && job_output_begin(a, j) < 0)
		return job_segment_lost(a, j);
	if (!job_read_slice(a, j, &end))
		return job_segment_lost(a, j);
	if (!end)
		return;
	if (job_output_close(a, j, j->name) < 0)
		return job_segment_lost(a, j);
	const char *name;
	int dir = open_parent(a->out_fd, j->name, false, &name);
	if (dir >= 0)
		unlinkat(dir, name, 0);
	close_fd(&dir);
	char hex[65];
	sha_hex(&j->sha, hex);
	if (j->claimed_bytes >= 0 && j->claimed_bytes != j->bytes)
		return job_segment_failed(a, j, "mismatch",
					  "the file has another size than the worker reported");
	if (j->claimed_sha256[0] && strcmp(j->claimed_sha256, hex))
		return job_segment_failed(a, j, "mismatch",
					  "the file has another hash than the worker reported");
	struct str *b = segment_event(a, j->batch_id, j->id, j->try, true);
	js_text(b, "file", j->name);
	add_path(a, b, "path", j->name);
	js_int(b, "bytes", j->bytes);
	js_text(b, "sha256", hex);
	js_real(b, "seconds", j->seconds);
	js_int(b, "rate", j->rate);
	js_int(b, "ms", j->ms);
	event_end(a);
	a->largest = MAX(a->largest, j->bytes);
	if (a->detached)
		lease_renew(a, a->lease_s);
	job_done(a);
}

/* The command whose output this is, if it still runs; else NULL. */
static struct command *find_running_command(const struct agent *a, const struct job *j)
{
	for (int i = 0; i < a->worker_count; i++) {
		struct command *c = a->workers[i].command;
		if (c && !strcmp(c->id, j->id) && c->try == j->try)
			return c;
	}
	return NULL;
}

/* Reports an output that could not be copied; ends the job. While the command runs, the scan at its
 * exit tries once more. After that the file is lost, and the command has failed unless the file is
 * gone. */
static void job_output_lost(struct agent *a, struct job *j, const char *why, bool gone)
{
	CLEANUP(free_text) char *line = xasprintf("output %s could not be kept: %s", j->name, why);
	struct command *c = find_running_command(a, j);
	struct job *end = j->next;
	event_log(a, 0, j->id, line, strlen(line));
	if (j->to >= 0)
		unlinkat(a->dir_fd, OUTPUT_PART, 0);
	while (end && (end->kind != JOB_COMMAND || strcmp(end->id, j->id) || end->try != j->try))
		end = end->next;
	if (c) {
		output_forget(c, j->name);
		c->output_count--;
	} else if (end) {
		end->outputs--;
		end->lost += !gone;
		if (!gone && !end->name)
			end->name = xstrdup(line);
	}
	job_done(a);
}

static bool has_source_changed(const struct job *j)
{
	struct stat st;
	return fstat(j->fd, &st) < 0 || st.st_size != j->was.st_size ||
	       st.st_mtim.tv_sec != j->was.st_mtim.tv_sec ||
	       st.st_mtim.tv_nsec != j->was.st_mtim.tv_nsec;
}

static void job_output(struct agent *a, struct job *j)
{
	bool end = false;
	if (j->fd < 0 && job_output_open(a, j) < 0)
		return job_output_lost(a, j, strerror(errno), errno == ENOENT);
	if (j->to < 0 && job_output_begin(a, j) < 0)
		return job_output_lost(a, j, strerror(errno), false);
	if (!job_read_slice(a, j, &end))
		return job_output_lost(a, j, strerror(errno), false);
	if (!end)
		return;
	if (has_source_changed(j))
		return job_output_lost(a, j, "it was written while it was copied", false);
	char hex[65], *to = xasprintf("out/%s/%s", j->id, j->name);
	if (job_output_close(a, j, to) < 0) {
		job_output_lost(a, j, strerror(errno), false);
		return free(to);
	}
	sha_hex(&j->sha, hex);
	struct str *b = event_begin(a, "output");
	js_text(b, "id", j->id);
	js_text(b, "name", j->name);
	add_path(a, b, "path", to);
	free(to);
	js_int(b, "bytes", j->bytes);
	js_text(b, "sha256", hex);
	event_end(a);
	job_done(a);
}

/* A halted command may be run again, so its batch is reported as revoked. */
static void report_batch_halted(struct agent *a, const struct job *j)
{
	struct str *b = event_begin(a, "revoked");
	js_key(b, "ids");
	str_addc(b, '[');
	js_text(b, NULL, j->id);
	str_addc(b, ']');
	js_text(b, "segment", j->name);
	event_end(a);
}

static void report_batch_done(struct agent *a, const struct job *j)
{
	js_int(batch_event(a, j->id, "done"), "busy_ms", j->ms);
	event_end(a);
}

static void job_batch(struct agent *a, struct job *j)
{
	if (j->halted)
		report_batch_halted(a, j);
	else
		report_batch_done(a, j);
	events_sync(a);
	if (a->detached && now_ms(a) - a->synced_ms > 10000)
		sync_alone(a);
	job_done(a);
}

/* Reports a command that has exited, once its outputs are copied. */
static void job_command(struct agent *a, struct job *j)
{
	if (j->code && !j->halted && volume_is_to_blame(a, j->name ? j->name : ""))
		return;
	remove_in_background(j->dir);
	if (j->halted)
		return job_done(a);
	struct str *b = segment_event(a, j->batch_id, j->id, j->try, j->code == 0 && !j->lost);
	CLEANUP(free_text) char *log = xasprintf("%s.log", j->id);
	js_int(b, "code", j->code);
	js_int(b, "ms", j->ms);
	js_int(b, "outputs", j->outputs);
	add_path(a, b, "log", log);
	if (j->code || j->lost) {
		js_text(b, "reason", j->code ? "worker" : "missing");
		js_text(b, "error", j->name ? j->name : "");
	}
	event_end(a);
	if (j->code == 0 && !j->lost)
		checkpoint_forget(a, j->id);
	job_done(a);
}

void jobs_step(struct agent *a)
{
	struct job *j = a->jobs;
	if (!j)
		return;
	switch (j->kind) {
	case JOB_SEGMENT: return job_segment(a, j);
	case JOB_OUTPUT: return job_output(a, j);
	case JOB_SAVE: checkpoint_outputs_copied(a); return job_done(a);
	case JOB_BATCH: return job_batch(a, j);
	case JOB_COMMAND: return job_command(a, j);
	}
}
