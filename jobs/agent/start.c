/* start.c - `start`: copies what workers need, then starts them. */
#include "start.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "bounds.h"
#include "bring.h"
#include "checkpoint.h"
#include "env.h"
#include "events.h"
#include "image.h"
#include "lines.h"
#include "probe.h"
#include "process.h"
#include "room.h"
#include "stop.h"
#include "task.h"
#include "worker.h"

enum {
	HANG_DEFAULT_MS = 60 * 1000,
};

char *put_text(const struct json *op, const char *key)
{
	const char *text = json_text(op, key, NULL);
	return text && *text ? xstrdup(text) : NULL;
}

void start_forget(struct agent *a)
{
	env_free(&a->start_env);
	free(a->worker_command);
	free(a->code);
	for (char **p = a->outputs; p && *p; p++)
		free(*p);
	free(a->outputs);
	free(a->started);
	a->worker_command = a->code = a->started = NULL;
	a->outputs = NULL;
}

static void start_folder(struct agent *a, const char *variable, const char *path)
{
	if (path)
		env_set(&a->start_env, variable, path);
}

/* The path of a copied tree on the container's disk. NULL: the request names none. */
static char *start_tree(const struct agent *a, const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? xasprintf("%s/tree/%d/%s", a->disk, a->starts, slash + 1) : NULL;
}

static void start_read_env(struct agent *a, const struct json *op)
{
	const char *hash = json_text(op, "env_hash", ""), *image = json_text(op, "env_image", "");
	env_add_object(&a->start_env, json_get(op, "env"));
	char *kit = start_tree(a, json_text(op, "kit", ""));
	char *prepared = *image ? image_path(a, image) : *hash ? env_path(a, hash) : NULL;
	a->code = start_tree(a, json_text(op, "code", ""));
	start_folder(a, "BURST_KIT", kit);
	start_folder(a, "BURST_CODE", a->code);
	start_folder(a, "BURST_ENV", prepared);
	free(kit);
	free(prepared);
}

static void start_read_outputs(struct agent *a, const struct json *op)
{
	const struct json *list = json_get(op, "outputs");
	size_t count = 0;
	a->outputs = xcalloc(1, sizeof(char *));
	for (const struct json *m = list && list->type == J_LIST ? list->first : NULL; m;
	     m = m->next) {
		if (m->type != J_TEXT || !m->len)
			continue;
		a->outputs = xrealloc(a->outputs, (count + 2) * sizeof(char *));
		a->outputs[count++] = xstrndup(m->text, m->len);
		a->outputs[count] = NULL;
	}
}

static void command_slot_ready(struct agent *a, struct worker *w)
{
	w->state = WORKER_IDLE;
	struct str *b = event_begin(a, "worker");
	js_int(b, "w", w->w);
	js_text(b, "state", "ready");
	js_text(b, "engine", "command");
	js_text(b, "version", BURST_VERSION);
	js_int(b, "sample_rate", 0);
	js_int(b, "max_batch", 1);
	js_bool(b, "gpu", a->gpu_count > 0);
	js_int(b, "load_ms", 0);
	event_end(a);
}

static void start_lacks(struct agent *a, const char *result)
{
	const char *space = strchr(result, ' ');
	struct str *b = event_begin(a, "start");
	js_bool(b, "ok", false);
	js_textn(b, "lacks", result, space ? (size_t)(space - result) : 0);
	js_text(b, "error", space ? space + 1 : "the check of its files ended early");
	event_end(a);
}

static void trees_remove(struct agent *a, int number)
{
	char *dir = xasprintf("%s/tree/%d", a->disk, number);
	if (number > 0 && access(dir, F_OK) == 0)
		remove_in_background(dir);
	free(dir);
}

/* Returns whether idle workers with the same settings exist: they serve like new ones. */
static bool start_matches(const struct agent *a, const struct json *op)
{
	bool same = a->started && strlen(a->started) == op->raw_len &&
		    !memcmp(a->started, op->raw, op->raw_len);
	for (int i = 0; same && i < a->worker_count; i++)
		same = a->workers[i].state == WORKER_IDLE && a->workers[i].hello;
	return same && a->worker_count && !a->queue && !a->fatal && !a->setup_failed &&
	       !a->install_failed;
}

static void start_again(struct agent *a)
{
	a->draining = a->drained = false;
	for (int i = 0; i < a->worker_count; i++) {
		struct str *b = event_begin(a, "worker");
		js_int(b, "w", a->workers[i].w);
		js_text(b, "state", "ready");
		str_add(b, a->workers[i].hello);
		js_int(b, "load_ms", 0);
		event_end(a);
	}
}

static void start_begin(struct agent *a, const struct json *op)
{
	stop_workers_only(a);
	start_forget(a);
	a->started = json_yes(op, "command") ? NULL : xstrndup(op->raw, op->raw_len);
	trees_remove(a, a->starts++);
	a->draining = a->drained = false;
	a->part_limit = MIN(MAX(json_int(op, "max_batch", 0), (int64_t)0), (int64_t)1 << 20);
	a->worker_command = put_text(op, "worker");
	a->command = json_yes(op, "command");
	a->stream = json_yes(op, "stream");
	a->worker_root = json_yes(op, "root");
	a->hang_ms = json_int(op, "hang_s", a->command ? 0 : HANG_DEFAULT_MS / 1000) * 1000;
	start_read_env(a, op);
	probe_bring(a);
	start_read_outputs(a, op);
	checkpoint_read_start(a, op);
	if (!a->command && !a->worker_command)
		return notice_error(a, "start needs a worker");
	int count = (int)MIN(MAX(json_int(op, "workers", 1), (int64_t)1), (int64_t)WORKERS_MAX);
	a->workers = xcalloc(1, (size_t)count * sizeof(struct worker));
	a->worker_count = count;
	for (int i = 0; i < count; i++)
		a->workers[i] =
			(struct worker){.w = i, .in = -1, .out = -1, .err = -1, .max_batch = 1};
	for (int i = 0; i < count && !a->fatal; i++) {
		if (a->setup_failed || a->install_failed)
			worker_failed(a, &a->workers[i], "what it needs could not be set up", NULL);
		else if (a->command)
			command_slot_ready(a, &a->workers[i]);
		else
			worker_start(a, &a->workers[i]);
	}
}

/* Handles the result for an environment. */
static void start_unpacked(struct agent *a, const char *text, char *result)
{
	struct json_doc doc;
	const struct json *op = json_read(&doc, text, strlen(text));
	long long ms, bytes;
	char line[160];
	if (sscanf(result, "unpacked %lld %lld", &ms, &bytes) == 2) {
		free(a->unpacked);
		a->unpacked = xasprintf("%s %s", json_text(op, "env_hash", ""),
					json_text(op, "env_tree", ""));
		a->unpack_ms = ms;
		a->unpack_bytes = bytes;
		snprintf(line, sizeof(line), "unpacked the environment: %lld MB in %.1f s",
			 (bytes + 500000) / 1000000, (double)ms / 1000);
		event_log(a, -1, NULL, line, strlen(line));
	} else if (strncmp(result, "unpacked", 8) != 0) {
		a->unpack_ms = a->unpack_bytes = 0;
		note_line(a, result);
	}
	json_free(&doc);
}

void start_checked(struct agent *a, bool fine)
{
	struct task done = a->task;
	struct json_doc doc;
	a->task = (struct task){.out = -1};
	if (done.cancelled) {
		trees_remove(a, a->starts + 1);
	} else if (fine) {
		str_addc(&done.result, 0);
		start_unpacked(a, done.op, done.result.s);
		start_begin(a, json_read(&doc, done.op, strlen(done.op)));
		json_free(&doc);
	} else {
		trees_remove(a, a->starts + 1);
		start_lacks(a, str_text(&done.result));
		check_volume_for(a, str_text(&done.result));
	}
	task_forget(&done);
}

void op_start(struct agent *a, const struct json *op)
{
	struct task *t = &a->task;
	if (start_matches(a, op))
		return start_again(a);
	if (!*json_text(op, "kit", "") && !*json_text(op, "code", "") &&
	    !*json_text(op, "env_hash", "") && !*json_text(op, "env_image", ""))
		return start_begin(a, op);
	if (a->setup_failed || a->install_failed)
		return start_begin(a, op); /* start_begin() reports the error */
	char python[32], words[160];
	const char *wanted = json_text(op, "env_python", "");
	python_of_image(a, python, sizeof(python));
	if (*wanted && strcmp(wanted, python) != 0) {
		snprintf(words, sizeof(words), "env was made with %.40s, and this image has %s",
			 wanted, *python ? python : "no Python");
		return start_lacks(a, words);
	}
	trees_remove(a, a->starts + 1);
	*t = (struct task){.kind = "start",
			   .out = -1,
			   .began_ms = now_ms(a),
			   .op = xstrndup(op->raw, op->raw_len)};
	t->until_ms = now_ms(a) + START_CHECK_S * 1000;
	if (!task_begin_own(a, start_check)) {
		task_forget(t);
		notice_error(a, "the files of start cannot be checked");
	}
}
