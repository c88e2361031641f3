/* todo.c - the queue of slow work on files. */
#include "todo.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "files.h"

struct job *job_add(struct agent *a, enum job_kind kind, const char *id)
{
	struct job *j = xcalloc(1, sizeof(*j));
	j->kind = kind;
	j->id = xstrdup(id);
	j->fd = j->to = -1;
	if (a->jobs_last)
		a->jobs_last->next = j;
	else
		a->jobs = j;
	a->jobs_last = j;
	return j;
}

static void job_free(struct job *j)
{
	close_fd(&j->fd);
	close_fd(&j->to);
	free(j->id);
	free(j->batch_id);
	free(j->name);
	free(j->dir);
	free(j);
}

void job_done(struct agent *a)
{
	struct job *j = a->jobs;
	a->jobs = j->next;
	if (!a->jobs)
		a->jobs_last = NULL;
	job_free(j);
}
