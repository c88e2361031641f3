/* task.c - the setup, install or start that is running; there is at most one. */
#include "task.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/str.h"
#include "files.h"
#include "lines.h"
#include "process.h"

void task_forget(struct task *t)
{
	close_fd(&t->out);
	str_free(&t->line);
	str_free(&t->result);
	free(t->hash);
	free(t->build);
	free(t->op);
	*t = (struct task){.out = -1};
}

/* Returns whether a child of the agent does the work: what it prints is its result. The output of
 * scripts is logged. */
static bool task_is_own(const struct task *t)
{
	return t->op || t->keeping;
}

bool task_read(struct agent *a, int rounds)
{
	struct task *t = &a->task;
	char part[16 << 10];
	ssize_t n = -1;
	while (rounds-- > 0 && (n = read(t->out, part, sizeof(part))) > 0) {
		if (task_is_own(t)) {
			str_addn(&t->result, part, (size_t)n);
			continue;
		}
		keep_tail(t->tail, sizeof(t->tail), part, (size_t)n);
		str_addn(&t->line, part, (size_t)n);
		log_lines(a, &t->line, &t->skipping, 0, t->kind);
	}
	return n != 0;
}

bool task_begin_own(struct agent *a, int (*work)(struct agent *))
{
	struct task *t = &a->task;
	int out = -1;
	close_fd(&t->out);
	t->pid = make_pipe(&t->out, &out) < 0 ? -1 : spawn_own(a, work, out);
	if (t->out >= 0)
		nonblocking(t->out);
	close_fd(&out);
	return t->pid > 0;
}
