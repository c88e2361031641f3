/* gpu.c - reads the cards and their use from nvidia-smi. */
#include "gpu.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "events.h"
#include "files.h"
#include "json.h"
#include "machine.h"
#include "process.h"

static pid_t gpu_spawn(struct agent *a, const char *script, int *out)
{
	int write_end = -1;
	if (make_pipe(out, &write_end) < 0)
		return 0;
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct spawn s = {
		.script = script, .env = &a->place.env, .in = -1, .out = write_end, .err = null};
	pid_t pid = spawn(a, &s);
	close_fd(&write_end);
	close_fd(&null);
	nonblocking(*out);
	return pid;
}

void gpu_query(struct agent *a)
{
	a->gpu_out = a->usage_out = -1;
	if (!have_program("nvidia-smi"))
		return;
	a->gpu_pid = gpu_spawn(
		a, "exec nvidia-smi --query-gpu=name,memory.total --format=csv,noheader,nounits",
		&a->gpu_out);
	a->gpu_until_ms = now_ms(a) + 15000;
}

void gpu_line(struct agent *a, const char *line)
{
	const char *comma = strrchr(line, ',');
	if (!comma || a->gpu_count == ARRAY_LEN(a->gpus))
		return;
	struct gpu *g = &a->gpus[a->gpu_count++];
	snprintf(g->name, sizeof(g->name), "%.*s", (int)MIN(comma - line, 79), line);
	g->memory_mb = atoll(comma + 1);
}

void usage_line(struct agent *a, const char *line)
{
	const char *comma = strchr(line, ',');
	if (!comma || !isdigit((unsigned char)*line))
		return;
	a->usage_percent += (int)MIN(atoll(line), (long long)100);
	a->usage_mb += MIN(MAX(atoll(comma + 1), (long long)0), (long long)1 << 32);
	if (++a->usage_cards < MAX(a->gpu_count, 1))
		return;
	struct str *b = notice_begin(a, "usage");
	js_int(b, "gpu", a->usage_percent / a->usage_cards);
	js_int(b, "memory_mb", a->usage_mb);
	notice_end(a);
	a->usage_cards = a->usage_percent = 0;
	a->usage_mb = 0;
}

void gpu_read(struct agent *a, int *fd, struct str *b, void (*take)(struct agent *, const char *))
{
	char part[4096], *nl;
	ssize_t n = *fd < 0 ? -1 : read(*fd, part, sizeof(part));
	if (n > 0)
		str_addn(b, part, (size_t)n);
	while (b->len && (nl = memchr(b->s, '\n', b->len))) {
		*nl = 0;
		take(a, b->s);
		str_drop(b, (size_t)(nl - b->s) + 1);
	}
	if (b->len > sizeof(part))
		b->len = 0;
	if (n == 0)
		close_fd(fd);
}

void usage_follow_workers(struct agent *a)
{
	bool wanted = a->gpu_count && a->worker_count && attached_client(a);
	if (wanted && !a->usage_pid)
		a->usage_pid = gpu_spawn(a,
					 "exec nvidia-smi --query-gpu=utilization.gpu,memory.used "
					 "--format=csv,noheader,nounits -l 2",
					 &a->usage_out);
	else if (!wanted && a->usage_pid)
		kill_group(a->usage_pid);
}
