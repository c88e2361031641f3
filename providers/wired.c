/* wired.c - requests to burst's own vendor, and its answers */
#include "wired.h"

#include "base/clock.h"
#include "base/jsonx.h"

/* ---- keys ---- */

int wired_check_isolation(const struct section *s, const char *group, const char *key,
			  struct err *err)
{
	enum isolation isolation;

	return wire_read_isolation(section_text(s, key), &isolation) < 0
		       ? provider_bad_value(s, group, key,
					    "\"auto\", \"namespaces\" or \"process\"", err)
		       : 0;
}

int wired_check_network(const struct section *s, const char *group, const char *key,
			struct err *err)
{
	const char *network = section_text(s, key);

	return strcmp(network, "private") && strcmp(network, "host")
		       ? provider_bad_value(s, group, key, "\"private\" or \"host\"", err)
		       : 0;
}

/* ---- requests ---- */

static json_t *rent_request_json(const struct rent_request *rent)
{
	struct pod_view wanted = {.marker = rent->marker,
				  .spot = rent->offer.spot,
				  .price_microusd_h = rent->offer.price_microusd_h};
	json_t *to, *env = json_object();

	COPY_TEXT(wanted.name, rent->name);
	COPY_TEXT(wanted.gpu, rent->offer.gpu);
	COPY_TEXT(wanted.region, rent->offer.region);
	to = wire_view_json(&wanted);
	json_object_set_new(to, "volume", json_string(rent->volume.id));
	json_object_set_new(to, "mount", json_string(rent->mount ? rent->mount : ""));
	json_object_set_new(to, "script", json_string(rent->start_script));
	for (size_t i = 0; i < rent->env_count; i++)
		json_object_set_new(env, rent->env[i].name, json_string(rent->env[i].value));
	json_object_set_new(to, "env", env);
	return to;
}

static json_t *request_json(const struct op *op, const struct wire_conf *conf)
{
	const struct op_want *want = op->want;
	json_t *to = op->kind == OP_RENT ? rent_request_json(&want->rent) : json_object();

	if (op->kind == OP_RENT || op->kind == OP_OFFERS || op->kind == OP_CHECK)
		json_object_set_new(to, "conf", wire_conf_json(conf));
	if (op->kind == OP_VOLUME) {
		json_object_set_new(to, "name", json_string(want->volume.name));
		json_object_set_new(to, "create", json_boolean(want->volume.create));
	}
	if (op->kind == OP_VOLUME_LS || op->kind == OP_VOLUME_DELETE) {
		json_object_set_new(to, "id", json_string(want->file.volume.id));
		json_object_set_new(to, "path", json_string(want->file.path));
	} else if (want && op->kind != OP_RENT && want->id[0])
		json_object_set_new(to, "id", json_string(want->id));
	return to;
}

/* Adds the arguments of stage and fetch, which have no JSON request. */
static void add_file_arguments(const struct op *op, struct call *call)
{
	const struct op_want *want = op->want;
	char number[24];

	call_arg(call, want->file.volume.id);
	call_arg(call, want->file.path);
	if (op->kind == OP_FETCH) {
		snprintf(number, sizeof(number), "%lld", (long long)want->file.offset);
		call_arg(call, number);
		call->body_to = xstrdup(want->file.local);
		call->max_bytes =
			want->file.max_bytes > 0 ? (size_t)want->file.max_bytes : SIZE_MAX;
	} else {
		call->body_from = xstrdup(want->file.local);
	}
	if (want->file.max_bytes > 0) {
		snprintf(number, sizeof(number), "%lld", (long long)want->file.max_bytes);
		call_arg(call, number);
	}
}

int wired_ask(const struct op *op, const struct wire_conf *conf, const char *dir, struct call *call,
	      struct err *err)
{
	call_arg(call, child_verb(op->kind));
	call_arg(call, dir);
	if (op->kind == OP_STAGE || op->kind == OP_FETCH) {
		add_file_arguments(op, call);
		return 0;
	}
	CLEANUP(json_decref) json_t *request = request_json(op, conf);
	CLEANUP(free_text) char *line = jsonx_line(request);
	if (!line)
		return err_set(err, ERR_BUG, "the request cannot be written as JSON");
	str_add(&call->body, line);
	return 0;
}

/* ---- answers ---- */

static int read_volume(const struct op *op, const json_t *from, struct volume *volume,
		       struct err *err)
{
	const char *name = jsonx_text(from, "name", "");

	if (!name[0] || strlen(name) >= sizeof(volume->name))
		return err_set(err, ERR_BUG, "a volume without a usable name");
	COPY_TEXT(volume->provider, op->provider->vendor->name);
	COPY_TEXT(volume->id, name);
	COPY_TEXT(volume->name, name);
	volume->size_gb = op->kind == OP_VOLUME ? op->want->volume.size_gb : 0;
	volume->used_bytes = jsonx_int(from, "used_bytes", -1);
	return 0;
}

static int read_volumes(const struct op *op, const json_t *from, struct op_result *result,
			struct err *err)
{
	const json_t *list = json_object_get(from, "volumes"), *item;
	size_t i;

	if (!json_is_array(list) || (op->kind == OP_VOLUME && json_array_size(list) != 1))
		return err_set(err, ERR_BUG, "volumes: not the list that was requested");
	result->volumes = xcalloc(json_array_size(list), sizeof(*result->volumes));
	json_array_foreach (list, i, item) {
		if (read_volume(op, item, &result->volumes[result->volume_count++], err) < 0)
			return -1;
	}
	return 0;
}

static int read_entries(const json_t *from, struct op_result *result, struct err *err)
{
	const json_t *list = json_object_get(from, "entries"), *item;
	size_t i;

	if (!json_is_array(list))
		return err_set(err, ERR_BUG, "a folder without a list");
	result->entries = xcalloc(json_array_size(list), sizeof(*result->entries));
	json_array_foreach (list, i, item) {
		struct volume_entry *entry = &result->entries[result->entry_count];
		const char *name = jsonx_text(item, "name", "");
		if (!name[0] || strlen(name) >= sizeof(entry->name))
			continue; /* a truncated name would be another file's */
		COPY_TEXT(entry->name, name);
		entry->folder = jsonx_bool(item, "folder", false);
		entry->bytes = jsonx_int(item, "bytes", 0);
		entry->files = jsonx_int(item, "files", 0);
		entry->changed_s = jsonx_int(item, "changed_s", 0);
		result->entry_count++;
	}
	return 0;
}

static int read_pod(const json_t *from, struct pod_view *view, struct err *err)
{
	if (wire_read_view(from, view, err) < 0)
		return -1;
	view->created_at_s = jsonx_bounded(from, "created_ms", 0, EPOCH_MOST_S * 1000) / 1000;
	view->started_at_s = jsonx_bounded(from, "started_ms", 0, EPOCH_MOST_S * 1000) / 1000;
	view->ended_at_s = jsonx_bounded(from, "ended_ms", 0, EPOCH_MOST_S * 1000) / 1000;
	return 0;
}

static int read_pods(const struct op *op, const json_t *from, struct op_result *result,
		     struct err *err)
{
	const json_t *list = json_object_get(from, "pods"), *item;
	size_t i;

	if (!json_is_array(list) || (op->kind != OP_LIST && json_array_size(list) != 1))
		return err_set(err, ERR_BUG, "pods: not the list that was requested");
	result->pods = xcalloc(json_array_size(list), sizeof(*result->pods));
	json_array_foreach (list, i, item) {
		if (read_pod(item, &result->pods[result->pod_count++], err) < 0)
			return -1;
	}
	return 0;
}

static int read_billing(const json_t *from, struct op_result *result, struct err *err)
{
	result->billing.billed_ms = jsonx_int(from, "billed_ms", -1);
	result->billing.cost_microusd = jsonx_int(from, "cost", -1);
	result->billing.reported = true;
	if (result->billing.billed_ms < 0 || result->billing.cost_microusd < 0)
		return err_set(err, ERR_BUG, "billing: no figures");
	return 0;
}

static int read_answer(const struct op *op, const json_t *from, wired_offers *read_offers,
		       struct op_result *result, struct err *err)
{
	switch (op->kind) {
	case OP_OFFERS: return read_offers(op, from, result, err);
	case OP_VOLUME:
	case OP_VOLUMES: return read_volumes(op, from, result, err);
	case OP_RENT:
	case OP_INSPECT:
	case OP_LIST: return read_pods(op, from, result, err);
	case OP_BILLING: return read_billing(from, result, err);
	case OP_CHECK:
	case OP_LOGS: str_add(&result->text, jsonx_text(from, "text", "")); return 0;
	case OP_STAGE:
	case OP_FETCH:
		result->bytes = jsonx_int(from, "bytes", -1);
		return result->bytes < 0 ? err_set(err, ERR_BUG, "no count of bytes") : 0;
	case OP_VOLUME_LS: return read_entries(from, result, err);
	case OP_VOLUME_DELETE:
	case OP_VOLUME_REMOVE:
	case OP_RELEASE: return 0;
	case OP_VOLUME_SIZE: /* sizes stand in lists */
	case OP_IMAGE:
	case OP_BALANCE: break;
	}
	return err_set(err, ERR_BUG, "no such operation");
}

/* Parses the last line: a sanitizer or the loader may have printed before it. NULL: no JSON. */
static json_t *parse_last_line(const struct str *text, struct err *err)
{
	size_t len;
	const char *line = str_last_line(text, &len);

	return jsonx_parse(line, len, err);
}

enum op_next wired_take(const struct op *op, const struct reply *reply, wired_offers *read_offers,
			struct op_result *result, struct err *err)
{
	struct err why = {0};

	if (reply->status != 0) {
		CLEANUP(json_decref) json_t *said = parse_last_line(&reply->head, &why);
		return said && reply->status == 1 && wire_read_error(said, err)
			       ? OP_FAILED
			       : child_failed(op, reply, err);
	}
	CLEANUP(json_decref)
	json_t *said = op->kind == OP_FETCH
			       ? parse_last_line(&reply->head, &why)
			       : jsonx_parse(str_text(&reply->body), reply->body.len, &why);
	if (said && read_answer(op, said, read_offers, result, &why) == 0)
		return OP_DONE;
	if (op->kind == OP_RENT)
		return child_no_answer(op, why.msg, err);
	*err = why;
	err_wrap(err, "%s %s", op->provider->vendor->name, child_verb(op->kind));
	return OP_FAILED;
}
