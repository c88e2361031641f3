/* words.c - `burst words`: prints values for completion (ids, names, commands), one a line. */
#include "cmd.h"

#include <stdlib.h>

#include "base/gpus.h"

static int list_runs(const struct cmd_context *ctx, bool living, struct err *err)
{
	struct run_row *rows;
	size_t count;

	if (store_runs(ctx->store, NULL, living, 50, &rows, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		puts(rows[i].id);
	free(rows);
	return 0;
}

static int list_pods(const struct cmd_context *ctx, struct err *err)
{
	struct pod_row *rows;
	size_t count;

	if (store_pods(ctx->store, NULL, true, &rows, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		puts(pod_row_called(&rows[i]));
	free(rows);
	return 0;
}

static int list_volumes(const struct cmd_context *ctx, struct err *err)
{
	struct volume_row *rows;
	size_t count;

	if (store_volumes(ctx->store, &rows, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		puts(rows[i].name);
	free(rows);
	return 0;
}

static int list_schedules(const struct cmd_context *ctx, struct err *err)
{
	struct schedule_row *rows;
	size_t count;

	if (store_schedules(ctx->store, &rows, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		puts(rows[i].name);
	free(rows);
	return 0;
}

static int list_requests(const struct cmd_context *ctx, struct err *err)
{
	struct request_row *rows;
	size_t count;

	if (store_requests(ctx->store, NULL, true, &rows, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		puts(rows[i].id);
	free(rows);
	return 0;
}

static void list_gpus(void)
{
	size_t count;
	const struct gpu *gpus = gpu_catalog(&count);

	for (size_t i = 0; i < count; i++)
		puts(gpus[i].name);
	puts("none");
	puts("auto");
}

static int run_words(struct cmd_context *ctx, struct err *err)
{
	const char *what = ctx->args[0];
	int result = 0;

	if (!strcmp(what, "runs") || !strcmp(what, "living"))
		result = list_runs(ctx, what[0] == 'l', err);
	else if (!strcmp(what, "volumes"))
		result = list_volumes(ctx, err);
	else if (!strcmp(what, "schedules"))
		result = list_schedules(ctx, err);
	else if (!strcmp(what, "requests"))
		result = list_requests(ctx, err);
	else if (!strcmp(what, "pods"))
		result = list_pods(ctx, err);
	else if (!strcmp(what, "gpus"))
		list_gpus();
	else if (!strcmp(what, "providers"))
		for (const struct provider_ops *const *p = provider_registry; *p; p++)
			puts((*p)->name);
	else if (!strcmp(what, "commands"))
		for (const struct cmd *const *c = ctx->commands; *c; c++)
			if (!(*c)->hidden)
				puts((*c)->name);
	return result < 0 ? -1 : cmd_flush(err);
}

const struct cmd cmd_words = {
	.name = "words",
	.args = "runs|living|pods|volumes|schedules|requests|gpus|providers|commands",
	.min_args = 1,
	.max_args = 1,
	.summary = "list what completion may offer",
	.needs = NEED_LEDGER,
	.hidden = true,
	.run = run_words,
};
