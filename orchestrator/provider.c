#include "provider.h"

#include "base/clock.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <strings.h>

enum { OVERDUE_S = 300 };

static bool take_whole(char *to, size_t room, const char *text)
{
	if (!*text || strlen(text) >= room)
		return false;
	copy_text(to, room, text);
	return true;
}

bool marker_read(struct marker *out, const char *machine, const char *run, const char *attempt, const char *hard_end_s)
{
	struct marker m = {0};
	char *end;
	long long at_s = strtoll(hard_end_s, &end, 10);

	if (!isdigit((unsigned char)hard_end_s[0]) || *end || at_s <= 0 || !take_whole(m.machine, sizeof(m.machine), machine) ||
	    !take_whole(m.run, sizeof(m.run), run) || !take_whole(m.attempt, sizeof(m.attempt), attempt))
		return false;
	m.hard_end_s = MIN(at_s, EPOCH_MOST_S);
	*out = m;
	return true;
}

bool pod_is_overdue(int64_t hard_end_s, int64_t wall_ms)
{
	return hard_end_s + OVERDUE_S < wall_ms / 1000;
}

const char *pod_state_name(enum pod_state state)
{
	switch (state) {
	case POD_STATE_UNKNOWN: return "unknown";
	case POD_STATE_CREATING: return "creating";
	case POD_STATE_RUNNING: return "running";
	case POD_STATE_STOPPED: return "stopped";
	case POD_STATE_FAILED: return "failed";
	case POD_STATE_GONE: return "gone";
	}
	return "unknown";
}

const char *provider_registry_name(const struct section *conf, const char *key, const char *image)
{
	for (size_t i = 0; i < section_count(conf, key); i++) {
		const char *item = section_item(conf, key, i);
		size_t len = strcspn(item, "=");
		if (!strncmp(image, item, len) && (!image[len] || strchr("/:@", image[len]) || item[len - 1] == '/'))
			return item + len + 1;
	}
	return NULL;
}

int provider_check_registries(const struct section *conf, const char *vendor, const char *key, struct err *err)
{
	for (size_t i = 0; i < section_count(conf, key); i++) {
		const char *item = section_item(conf, key, i), *equals = strchr(item, '=');
		if (!equals || equals == item || !equals[1] || item[strcspn(item, " \t")])
			return err_set(err, ERR_CONFIG,
				       "%s: providers.%s.%s: \"%s\" is not like \"ghcr.io/me=NAME\": the images it is for, and what reads them",
				       section_where(conf, key), vendor, key, item);
	}
	return 0;
}

bool provider_can_fetch(const struct provider_ops *ops, const struct provider *p, const struct volume *v)
{
	return ops->can_fetch && (!ops->files_ready || ops->files_ready(p, v));
}

bool provider_can_stage(const struct provider_ops *ops, const struct provider *p, const struct volume *v)
{
	return ops->can_stage && (!ops->files_ready || ops->files_ready(p, v));
}

bool provider_pods_are_free(const struct provider_ops *ops, const struct provider *p)
{
	return ops->pods_are_free && ops->pods_are_free(p);
}

bool provider_can_tidy(const struct provider_ops *ops, const struct provider *p, const struct volume *v)
{
	return ops->can_tidy && (!ops->files_ready || ops->files_ready(p, v));
}

void op_result_free(struct op_result *r)
{
	free(r->offers);
	free(r->pods);
	free(r->volumes);
	free(r->entries);
	free(r->billing.hours);
	str_free(&r->text);
	memset(r, 0, sizeof(*r));
}

void call_free(struct call *c)
{
	str_wipe(&c->body); /* a new pod's keys are in it, and tokens in the headers */
	free(c->url);
	for (size_t i = 0; i < c->header_count; i++)
		text_wipe(c->headers[i]);
	free(c->headers);
	free(c->sigv4);
	free(c->user);
	text_wipe(c->password);
	for (size_t i = 0; i < c->argc; i++)
		free(c->argv[i]);
	free(c->argv);
	free(c->body_to);
	free(c->body_from);
	memset(c, 0, sizeof(*c));
}

void call_header(struct call *c, const char *fmt, ...)
{
	char *line = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&line, fmt, ap) < 0)
		abort();
	va_end(ap);
	GROW(c->headers, c->header_count, c->header_cap);
	c->headers[c->header_count++] = line;
}

void call_arg(struct call *c, const char *word)
{
	GROW(c->argv, c->argc + 1, c->argv_cap);
	c->argv[c->argc++] = xstrdup(word);
	c->argv[c->argc] = NULL;
}

void reply_free(struct reply *r)
{
	str_free(&r->body);
	str_free(&r->head);
	str_free(&r->details);
	memset(r, 0, sizeof(*r));
}

bool reply_header(const struct reply *r, const char *name, char *out, size_t room)
{
	const char *line = str_text(&r->head);
	size_t len = strlen(name);
	bool found = false;

	while (*line) {
		size_t end = strcspn(line, "\r\n");
		if (end > len && line[len] == ':' && !strncasecmp(line, name, len)) {
			const char *value = line + len + 1;
			size_t left = end - len - 1;
			while (left && (*value == ' ' || *value == '\t')) {
				value++;
				left--;
			}
			size_t n = MIN(left, room - 1);
			memcpy(out, value, n);
			out[n] = '\0';
			found = true;
		}
		line += end;
		line += strspn(line, "\r\n");
	}
	return found;
}

bool reply_clock_off(const struct reply *r, int64_t sent_wall_ms, int64_t now_wall_ms, int64_t *off_ms)
{
	char text[64];
	int64_t dated_s;

	if (!reply_header(r, "Date", text, sizeof(text)) || !clock_http_date(text, &dated_s))
		return false;
	if (reply_header(r, "Age", text, sizeof(text))) /* how long a cache has had it */
		dated_s += MIN(MAX(strtoll(text, NULL, 10), 0), INT32_MAX);
	int64_t from_ms = dated_s * 1000, to_ms = from_ms + 999;
	*off_ms = now_wall_ms < from_ms ? now_wall_ms - from_ms : sent_wall_ms > to_ms ? sent_wall_ms - to_ms : 0;
	return true;
}
