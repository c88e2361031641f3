/* wire.c - the JSON between a translator and burst's own vendor */
#include "wire.h"

#include <limits.h>

#include "base/clock.h"
#include "base/jsonx.h"

enum { PORT_MOST = 65535 };
static const char *const isolation_names[] = {"auto", "namespaces", "process"};

int wire_read_isolation(const char *word, enum isolation *out)
{
	for (size_t i = 0; i < ARRAY_LEN(isolation_names); i++)
		if (!strcmp(word, isolation_names[i])) {
			*out = (enum isolation)i;
			return 0;
		}
	return -1;
}

json_t *wire_conf_json(const struct wire_conf *conf)
{
	json_t *to = json_object();

	json_object_set_new(to, "capacity", json_integer(conf->capacity));
	json_object_set_new(to, "gpu", json_string(conf->gpu));
	json_object_set_new(to, "shared_network", json_boolean(conf->shared_network));
	json_object_set_new(to, "isolation", json_string(isolation_names[conf->isolation]));
	json_object_set_new(to, "sandbox_works", json_boolean(conf->sandbox_works));
	json_object_set_new(to, "is_host", json_boolean(conf->is_host));
	json_object_set_new(to, "client_ms", json_integer(conf->client_ms));
	json_object_set_new(to, "model", json_string(conf->model));
	json_object_set_new(to, "gpus", json_integer(conf->gpus));
	json_object_set_new(to, "memory_gb", json_integer(conf->memory_gb));
	return to;
}

void wire_read_conf(const json_t *from, struct wire_conf *conf)
{
	*conf = (struct wire_conf){
		.capacity = jsonx_int(from, "capacity", 16),
		.shared_network = jsonx_bool(from, "shared_network", false),
		.sandbox_works = jsonx_bool(from, "sandbox_works", false),
		.is_host = jsonx_bool(from, "is_host", false),
		.client_ms = jsonx_int(from, "client_ms", 0),
		.gpus = (int)jsonx_bounded(from, "gpus", 0, INT_MAX),
		.memory_gb = jsonx_bounded(from, "memory_gb", 0, INT_MAX),
	};
	COPY_TEXT(conf->model, jsonx_text(from, "model", ""));
	COPY_TEXT(conf->gpu, jsonx_text(from, "gpu", "none"));
	(void)wire_read_isolation(jsonx_text(from, "isolation", "namespaces"), &conf->isolation);
}

static json_t *marker_json(const struct marker *marker)
{
	return json_pack("{s:s, s:s, s:s, s:I}", "machine", marker->machine, "run", marker->run,
			 "attempt", marker->attempt, "hard_end_s", (json_int_t)marker->hard_end_s);
}

json_t *wire_view_json(const struct pod_view *view)
{
	json_t *to = json_object();

	json_object_set_new(to, "id", json_string(view->id));
	json_object_set_new(to, "name", json_string(view->name));
	json_object_set_new(to, "marker", marker_json(&view->marker));
	json_object_set_new(to, "state", json_string(pod_state_name(view->state)));
	json_object_set_new(to, "preempted", json_boolean(view->preempted));
	json_object_set_new(to, "host", json_string(view->host));
	json_object_set_new(to, "port", json_integer(view->port));
	json_object_set_new(to, "user", json_string(view->user));
	json_object_set_new(to, "gpu", json_string(view->gpu));
	json_object_set_new(to, "region", json_string(view->region));
	json_object_set_new(to, "spot", json_boolean(view->spot));
	json_object_set_new(to, "price", json_integer(view->price_microusd_h));
	json_object_set_new(to, "detail", json_string(view->detail));
	return to;
}

/* POD_STATE_UNKNOWN for any other word. */
static enum pod_state read_state(const char *word)
{
	for (enum pod_state s = POD_STATE_UNKNOWN; s <= POD_STATE_GONE; s++)
		if (!strcmp(word, pod_state_name(s)))
			return s;
	return POD_STATE_UNKNOWN;
}

/* Copies a name. Fails if it does not fit: a truncated name would be another's. */
static int copy_whole(char *to, size_t room, const json_t *from, const char *key, struct err *err)
{
	const char *text = jsonx_text(from, key, "");

	if (strlen(text) >= room)
		return err_set(err, ERR_BUG, "%s is too long", key);
	copy_text(to, room, text);
	return 0;
}

static int read_marker(const json_t *from, struct marker *marker, struct err *err)
{
	if (copy_whole(marker->machine, sizeof(marker->machine), from, "machine", err) < 0 ||
	    copy_whole(marker->run, sizeof(marker->run), from, "run", err) < 0 ||
	    copy_whole(marker->attempt, sizeof(marker->attempt), from, "attempt", err) < 0)
		return err_wrap(err, "marker");
	marker->hard_end_s = jsonx_bounded(from, "hard_end_s", 0, EPOCH_MOST_S);
	return 0;
}

int wire_read_view(const json_t *from, struct pod_view *out, struct err *err)
{
	struct pod_view view = {
		.state = read_state(jsonx_text(from, "state", "")),
		.preempted = jsonx_bool(from, "preempted", false),
		.spot = jsonx_bool(from, "spot", false),
		.price_microusd_h = jsonx_bounded(from, "price", 0, MONEY_MOST),
	};
	int64_t port = jsonx_int(from, "port", 0);

	if (copy_whole(view.id, sizeof(view.id), from, "id", err) < 0 ||
	    copy_whole(view.name, sizeof(view.name), from, "name", err) < 0 ||
	    copy_whole(view.host, sizeof(view.host), from, "host", err) < 0 ||
	    copy_whole(view.user, sizeof(view.user), from, "user", err) < 0 ||
	    read_marker(json_object_get(from, "marker"), &view.marker, err) < 0)
		return err_wrap(err, "pod");
	if (!view.id[0])
		return err_set(err, ERR_BUG, "pod without an id");
	if (port < 0 || port > PORT_MOST)
		return err_set(err, ERR_BUG, "pod %s: no such port: %lld", view.id,
			       (long long)port);
	view.port = (int)port;
	COPY_TEXT(view.gpu, jsonx_text(from, "gpu", ""));
	COPY_TEXT(view.region, jsonx_text(from, "region", ""));
	COPY_TEXT(view.detail, jsonx_text(from, "detail", ""));
	*out = view;
	return 0;
}

json_t *wire_error_json(const struct err *err)
{
	/* the message may quote a file name that is not UTF-8, which JSON cannot hold */
	CLEANUP(str_free) struct str message = STR_INIT;

	str_add_printable(&message, err->msg, strlen(err->msg), 0);
	return json_pack("{s:{s:s, s:s}}", "error", "kind", err_kind_name(err->kind), "message",
			 str_text(&message));
}

bool wire_read_error(const json_t *from, struct err *err)
{
	const json_t *error = json_object_get(from, "error");
	const char *word = jsonx_text(error, "kind", NULL);

	if (!word)
		return false;
	enum err_kind kind = ERR_BUG;
	for (enum err_kind k = ERR_USAGE; k <= ERR_BUG; k++)
		if (!strcmp(word, err_kind_name(k)))
			kind = k;
	err_set(err, kind, "%s", jsonx_text(error, "message", "no reason given"));
	return true;
}
