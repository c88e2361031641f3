/* copy.c - copies a config for another run of the same process, which changes the copy. */
#include <stdlib.h>

#include "base/path.h"
#include "state.h"

static char *copy_text_of(const char *text)
{
	return text ? xstrdup(text) : NULL;
}

static void copy_accounts(struct config *to, const struct config *from)
{
	to->accounts = xcalloc(from->account_count + 1, sizeof(*to->accounts));
	for (size_t i = 0; i < from->account_count; i++) {
		to->accounts[i] = from->accounts[i];
		to->accounts[i].section = section_copy(from->accounts[i].section);
	}
}

struct config *config_copy(const struct config *c)
{
	struct config *copy = xcalloc(1, sizeof(*copy));

	*copy = *c;
	copy->mistakes = NULL;
	copy->top = section_copy(c->top);
	copy->job = c->job ? section_copy(c->job) : NULL;
	copy->path = copy_text_of(c->path);
	copy->dir = copy_text_of(c->dir);
	copy->read_path = copy_text_of(c->read_path);
	copy->read_dir = copy_text_of(c->read_dir);
	copy->job_name = copy_text_of(c->job_name);
	copy->user_shown = copy_text_of(c->user_shown);
	copy->project_shown = copy_text_of(c->project_shown);
	copy_accounts(copy, c);
	for (size_t i = 0; i < CONFIG_RUN_CAPS; i++)
		copy->user_caps[i].where = copy_text_of(c->user_caps[i].where);
	return copy;
}

struct section *config_change(struct config *c)
{
	return c->top;
}

struct section *config_change_job(struct config *c)
{
	return c->job;
}

static void set_text(char **to, char *text)
{
	free(*to);
	*to = text;
}

struct section *config_make_own(struct config *c, const char *path, const struct job_ops *ops,
				const char *job_name)
{
	set_text(&c->path, xstrdup(path));
	set_text(&c->dir, path_dir(path));
	set_text(&c->read_path, NULL);
	set_text(&c->read_dir, NULL);
	set_text(&c->project_shown, NULL);
	set_text(&c->job_name, xstrdup(job_name));
	c->tree = NULL;
	section_free(c->job);
	c->job_ops = ops;
	c->job = section_new(ops->options, path);
	return c->job;
}
