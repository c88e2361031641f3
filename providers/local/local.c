/* local.c - the translator: its config, wishes of a job, operations as `burst local-cloud`
 * children, and results from their output */
#include "local.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "base/incbin.h"
#include "base/jsonx.h"
#include "wire.h"

struct provider {
	const struct section *section; /* borrowed */
	struct local_conf conf;
	char *state_dir;
};

struct op {
	struct provider *provider;
	enum op_kind kind;
	const struct op_want *want;
};

/* ---- config ---- */

static int check_capacity(const struct section *s, const char *group, const char *key,
			  struct err *err)
{
	(void)group;
	if (section_int(s, key) >= 0)
		return 0;
	return err_set(err, ERR_CONFIG, "%s: %s must not be negative", section_where(s, key), key);
}

static int check_isolation(const struct section *s, const char *group, const char *key,
			   struct err *err)
{
	enum isolation isolation;

	return local_read_isolation(section_text(s, key), &isolation) < 0
		       ? provider_bad_value(s, group, key,
					    "\"auto\", \"namespaces\" or \"process\"", err)
		       : 0;
}

static int check_network(const struct section *s, const char *group, const char *key,
			 struct err *err)
{
	const char *network = section_text(s, key);

	return strcmp(network, "private") && strcmp(network, "host")
		       ? provider_bad_value(s, group, key, "\"private\" or \"host\"", err)
		       : 0;
}

static int local_check_conf(const struct section *s, struct mistakes *m, struct err *err)
{
	static const struct key_check checks[] = {
		{"capacity", check_capacity},
		{"isolation", check_isolation},
		{"network", check_network},
		{NULL, NULL},
	};

	return provider_check_keys(checks, s, "providers.local", m, err);
}

static void local_read_conf(const struct section *s, struct local_conf *conf)
{
	*conf = (struct local_conf){.capacity = section_int(s, "capacity")};
	COPY_TEXT(conf->gpu, section_text(s, "gpu"));
	(void)local_read_isolation(section_text(s, "isolation"), &conf->isolation);
	conf->shared_network = !strcmp(section_text(s, "network"), "host");
}

/* ---- whether pods of this machine can fulfil a job's wishes ---- */

enum { WISHES_SHOWN = 4 };

static bool is_no_gpu(const char *wish)
{
	return !strcasecmp(wish, "none");
}

/* A local pod has no GPU, or that of providers.local.gpu. */
static bool can_fulfil_wish(const char *gpu, const char *wish)
{
	char name[GPU_MAX];
	int count;

	if (is_no_gpu(wish))
		return true;
	return gpu_parse(wish, name, sizeof(name), &count) && count == 1 &&
	       (gpu_satisfies(name, gpu) || !strcmp(name, gpu));
}

/* Index of the first wish that can be fulfilled, 0 without wishes; -1: none. */
static int index_of_wish(const char *gpu, const char *const *wishes)
{
	for (int i = 0; wishes && wishes[i]; i++)
		if (can_fulfil_wish(gpu, wishes[i]))
			return i;
	return wishes && wishes[0] ? -1 : 0;
}

static int check_gpu(const struct section *s, const struct op_want *want, struct err *err)
{
	CLEANUP(str_free) struct str shown = STR_INIT;
	const char *gpu = section_text(s, "gpu");
	const char *const *wishes = want->offers.gpus;

	if (index_of_wish(gpu, wishes) >= 0)
		return 0;
	for (size_t i = 0; wishes[i] && i < WISHES_SHOWN; i++)
		str_addf(&shown, "%s\"%.40s\"", i ? ", " : "", wishes[i]);
	err_set(err, ERR_CONFIG,
		"gpu = [%s]: pods on this machine have %s%s: name the GPU in providers.local.gpu "
		"(if the machine has none, pods "
		"run without it), or run without a GPU: --gpu none",
		str_text(&shown), is_no_gpu(gpu) ? "no GPU" : "the GPU ",
		is_no_gpu(gpu) ? "" : gpu);
	return err_about(err, "gpu");
}

static int check_vram(const struct section *s, const struct op_want *want, struct err *err)
{
	const char *gpu = section_text(s, "gpu");
	const struct gpu *known = gpu_find(gpu);
	int64_t has_gb = section_int(s, "vram_gb");
	int wanted_gb = want->offers.vram_gb;

	if (!has_gb && known)
		has_gb = known->vram_gb;
	if (!wanted_gb || has_gb >= wanted_gb || (!has_gb && !is_no_gpu(gpu)))
		return 0;
	CLEANUP(free_text) char *less = xasprintf("%lld GB on %s", (long long)has_gb, gpu);
	err_set(err, ERR_CONFIG,
		"the job needs a GPU with %d GB of memory, and pods on this machine have %s: see "
		"providers.local.gpu and providers.local.vram_gb",
		wanted_gb, is_no_gpu(gpu) ? "no GPU" : less);
	return err_about(err, "job.vram_gb");
}

static int check_spot(const struct section *s, const struct op_want *want, struct err *err)
{
	(void)s;
	if (!want->offers.spot)
		return 0;
	err_set(err, ERR_CONFIG, "spot = true: this machine has no spot pods");
	return err_about(err, "spot");
}

/* Pods share this machine, so no pod has more than the machine. */
static int check_cpu(const struct section *s, const struct op_want *want, struct err *err)
{
	int64_t cpus = sysconf(_SC_NPROCESSORS_ONLN);

	(void)s;
	if (cpus <= 0 || want->offers.cpu <= cpus)
		return 0;
	err_set(err, ERR_CONFIG, "pod.cpu = %lld: this machine has %lld cores",
		(long long)want->offers.cpu, (long long)cpus);
	return err_about(err, "pod.cpu");
}

/* Allows for memory that the kernel keeps: machines are sold with round numbers. */
static int check_memory(const struct section *s, const struct op_want *want, struct err *err)
{
	int64_t bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE),
		has_gb = (bytes + 999999999) / 1000000000;

	(void)s;
	if (bytes <= 0 || want->offers.memory_gb <= has_gb)
		return 0;
	err_set(err, ERR_CONFIG, "pod.memory_gb = %lld: this machine has %lld GB",
		(long long)want->offers.memory_gb, (long long)has_gb);
	return err_about(err, "pod.memory_gb");
}

/* A wish that this machine cannot fulfil is a mistake: waiting for capacity would not help. */
static int local_check_wishes(const struct section *s, const struct op_want *want,
			      struct mistakes *m, struct err *err)
{
	static want_check *const checks[] = {check_gpu, check_vram,   check_spot,
					     check_cpu, check_memory, NULL};

	return provider_judge_wishes(checks, s, want, m, err);
}

/* ---- the verbs of `burst local-cloud` ---- */

/* A child that hangs must not hang burst, so each has a limit. Release, removal and listing have
 * long ones: they may delete a full disk's worth of files. */
static const struct verb {
	const char *word;
	enum call_class class;
	bool may_repeat;
	int64_t timeout_ms;
} verbs[] = {
	[OP_CHECK] = {"check", CALL_POLL, true, 20000},
	[OP_OFFERS] = {"offers", CALL_POLL, true, 60000},
	[OP_VOLUME] = {"volume", CALL_CREATE, true, 20000},
	[OP_VOLUMES] = {"volumes", CALL_POLL, true, 120000},
	[OP_VOLUME_REMOVE] = {"volume-remove", CALL_POLL, true, 600000},
	[OP_RENT] = {"rent", CALL_CREATE, false, 60000},
	[OP_INSPECT] = {"inspect", CALL_POLL, true, 60000},
	[OP_LIST] = {"list", CALL_POLL, true, 60000},
	[OP_RELEASE] = {"release", CALL_RELEASE, true, 120000},
	[OP_BILLING] = {"billing", CALL_POLL, true, 60000},
	[OP_LOGS] = {"logs", CALL_POLL, true, 20000},
	[OP_STAGE] = {"stage", CALL_POLL, true, 3600000},
	[OP_FETCH] = {"fetch", CALL_POLL, false, 3600000},
	[OP_VOLUME_LS] = {"volume-ls", CALL_POLL, true, 600000},
	[OP_VOLUME_DELETE] = {"volume-delete", CALL_POLL, true, 600000},
};

/* ---- answers of `burst local-cloud` ---- */

enum { KILLED_BY = 128, STDERR_SHOWN = 200, ANSWER_MOST_BYTES = 16 << 20 };

/* Adds one offer while the machine has room for pods, and keeps whether a sandbox was built. */
static int read_offers(const struct op *op, const json_t *from, struct op_result *result,
		       struct err *err)
{
	const struct section *s = op->provider->section;
	const char *gpu = section_text(s, "gpu");
	int64_t left = jsonx_bounded(from, "left", INT64_MIN, 1000);

	if (!json_is_integer(json_object_get(from, "left")))
		return err_set(err, ERR_BUG, "offers: no count");
	op->provider->conf.sandbox_works = jsonx_bool(from, "sandbox_works", false);
	result->floor_microusd_h = section_int(s, "price_per_hour");
	if (left <= 0)
		return 0;
	struct offer *offer = op_result_add_offer(result);
	*offer = (struct offer){
		.gpus = !gpu_is_none(gpu),
		.vram_gb = (int)section_int(s, "vram_gb"),
		.price_microusd_h = section_int(s, "price_per_hour"),
		.wish = MAX(index_of_wish(gpu, op->want->offers.gpus), 0),
		.pods_max = (int)left,
	};
	COPY_TEXT(offer->provider, LOCAL_NAME);
	COPY_TEXT(offer->id, "on-demand");
	COPY_TEXT(offer->gpu, gpu);
	COPY_TEXT(offer->region, "here");
	COPY_TEXT(offer->stock, left == 1 ? "low" : "high");
	return 0;
}

static int read_volume(const struct op *op, const json_t *from, struct volume *volume,
		       struct err *err)
{
	const char *name = jsonx_text(from, "name", "");

	if (!name[0] || strlen(name) >= sizeof(volume->name))
		return err_set(err, ERR_BUG, "a volume without a usable name");
	COPY_TEXT(volume->provider, LOCAL_NAME);
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
	if (local_wire_read_view(from, view, err) < 0)
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

static int read_answer(const struct op *op, const json_t *from, struct op_result *result,
		       struct err *err)
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
	case OP_VOLUME_SIZE: /* LS reports it already; never called */
	case OP_VOLUME_DELETE:
	case OP_VOLUME_REMOVE:
	case OP_IMAGE: /* there are no images here; never called */
	case OP_RELEASE:
	case OP_BALANCE: return 0;
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

/* Always -1: no answer came. A rent may have started a pod, so it is ambiguous. */
static int fail_without_answer(const struct op *op, const char *what, struct err *err)
{
	char why[sizeof(err->msg)];

	COPY_TEXT(why, what);
	return err_set(err, op->kind == OP_RENT ? ERR_AMBIGUOUS : ERR_TRANSIENT,
		       "local %s: no answer: %s", verbs[op->kind].word, why);
}

/* Always -1: *err is the error that the child printed, or says how it ended. */
static int read_failure(const struct op *op, const struct reply *reply, struct err *err)
{
	struct err unreadable = {0};
	CLEANUP(json_decref) json_t *said = parse_last_line(&reply->head, &unreadable);

	if (said && reply->status == 1 && local_wire_read_error(said, err))
		return -1;
	if (reply->status > KILLED_BY) {
		CLEANUP(free_text)
		char *what = xasprintf("killed by signal %d", reply->status - KILLED_BY);
		return fail_without_answer(op, what, err);
	}
	CLEANUP(str_free) struct str shown = STR_INIT;
	str_addf(&shown, "exit code %d: ", reply->status);
	str_add_printable(&shown, str_text(&reply->head), reply->head.len, STDERR_SHOWN);
	return fail_without_answer(op, str_text(&shown), err);
}

static int local_read_reply(const struct op *op, const struct reply *reply,
			    struct op_result *result, struct err *err)
{
	if (reply->failed && op->kind == OP_RENT && reply->was_sent)
		return fail_without_answer(op, reply->err.msg, err);
	if (reply->failed) {
		*err = reply->err;
		return err_wrap(err, "local %s", verbs[op->kind].word);
	}
	if (reply->status != 0)
		return read_failure(op, reply, err);

	struct err why = {0};
	CLEANUP(json_decref)
	json_t *said = op->kind == OP_FETCH
			       ? parse_last_line(&reply->head, &why)
			       : jsonx_parse(str_text(&reply->body), reply->body.len, &why);
	if (!said || read_answer(op, said, result, &why) < 0) {
		if (op->kind == OP_RENT)
			return fail_without_answer(op, why.msg, err);
		*err = why;
		return err_wrap(err, "local %s", verbs[op->kind].word);
	}
	return 0;
}

/* The result for a pod that the vendor no longer knows: gone. */
static void set_forgotten_pod(const struct op *op, struct op_result *result)
{
	result->pods = xcalloc(1, sizeof(*result->pods));
	result->pod_count = 1;
	COPY_TEXT(result->pods[0].id, op->want->id);
	result->pods[0].state = POD_STATE_GONE;
	COPY_TEXT(result->pods[0].detail, "no such pod");
}

/* ---- keys ---- */

static const struct option_spec options[] = {
	{"price_per_hour", OPTION_MONEY, 0, "0", "pretended price of an hour of a pod"},
	{"capacity", OPTION_INT, 0, "16", "largest number of pods at a time; more are refused"},
	{"gpu", OPTION_TEXT, 0, "none",
	 "GPU that pods have or pretend to have; unless \"none\", they see this machine's own"},
	{"vram_gb", OPTION_INT, 0, "0", "memory of that GPU; 0: as it is sold"},
	{"network", OPTION_TEXT, OPTION_USER_ONLY, "private",
	 "\"private\": pods reach nothing outside; \"host\": they share this machine's network; "
	 "absent: private, except a pod that fetches the packages of an engine of burst's own"},
	{"isolation", OPTION_TEXT, OPTION_USER_ONLY, "namespaces",
	 "\"namespaces\"; \"process\": pods can reach all that you can; \"auto\": process where "
	 "namespaces do not work"},
	{NULL},
};

static int local_open(struct provider **out, const struct section *s, const char *state_dir,
		      struct err *err)
{
	if (local_check_conf(s, NULL, err) < 0)
		return -1;
	*out = xcalloc(1, sizeof(**out));
	(*out)->section = s;
	local_read_conf(s, &(*out)->conf);
	(*out)->state_dir = xstrdup(state_dir);
	return 0;
}

static void local_close(struct provider *p)
{
	if (!p)
		return;
	free(p->state_dir);
	free(p);
}

static const char *local_account(const struct provider *p)
{
	(void)p;
	return "this machine";
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
	to = local_wire_view(&wanted);
	json_object_set_new(to, "volume", json_string(rent->volume.id));
	json_object_set_new(to, "mount", json_string(rent->mount ? rent->mount : ""));
	json_object_set_new(to, "script", json_string(rent->start_script));
	for (size_t i = 0; i < rent->env_count; i++)
		json_object_set_new(env, rent->env[i].name, json_string(rent->env[i].value));
	json_object_set_new(to, "env", env);
	return to;
}

/* A pod that fetches packages has this machine's network, unless the user closes it to all pods. */
static struct local_conf conf_for_op(const struct op *op)
{
	struct local_conf conf = op->provider->conf;

	if (op->kind == OP_RENT && op->want->rent.fetches_packages &&
	    !section_has(op->provider->section, "network"))
		conf.shared_network = true;
	return conf;
}

static json_t *request_json(const struct op *op)
{
	struct local_conf conf = conf_for_op(op);
	const struct op_want *want = op->want;
	json_t *to = op->kind == OP_RENT ? rent_request_json(&want->rent) : json_object();

	if (op->kind == OP_RENT || op->kind == OP_OFFERS || op->kind == OP_CHECK)
		json_object_set_new(to, "conf", local_wire_conf(&conf));
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

static enum op_next make_call(const struct op *op, struct call *call, struct err *err)
{
	const struct verb *verb = &verbs[op->kind];

	*call = (struct call){
		.kind = CALL_CHILD,
		.class = verb->class,
		.may_repeat = verb->may_repeat,
		.timeout_ms = verb->timeout_ms,
		.max_bytes = ANSWER_MOST_BYTES,
	};
	call_arg(call, "burst");
	call_arg(call, "local-cloud");
	call_arg(call, verb->word);
	call_arg(call, op->provider->state_dir);
	if (op->kind == OP_STAGE || op->kind == OP_FETCH) {
		add_file_arguments(op, call);
		return OP_CALL;
	}
	CLEANUP(json_decref) json_t *request = request_json(op);
	CLEANUP(free_text) char *line = jsonx_line(request);
	if (!line) {
		call_free(call);
		err_set(err, ERR_BUG, "the request cannot be written as JSON");
		return OP_FAILED;
	}
	str_add(&call->body, line);
	return OP_CALL;
}

/* ---- replies ---- */

static struct op *local_begin(struct provider *p, enum op_kind kind, const struct op_want *want)
{
	struct op *op = xcalloc(1, sizeof(*op));

	*op = (struct op){.provider = p, .kind = kind, .want = want};
	return op;
}

static enum op_next local_next(struct op *op, const struct reply *reply, struct call *call,
			       int64_t *wait_ms, struct op_result *result, struct err *err)
{
	struct op_result got = {.balance_microusd = -1};

	(void)wait_ms;
	if (op->kind == OP_VOLUME_SIZE) {
		err_set(err, ERR_BUG, "report sizes in lists of local volumes");
		return OP_FAILED;
	}
	if (op->kind == OP_IMAGE) {
		err_set(err, ERR_BUG, "local pods have no image");
		return OP_FAILED;
	}
	if (op->kind == OP_BALANCE) {
		*result = got; /* this machine has no balance */
		return OP_DONE;
	}
	if (op->kind == OP_OFFERS &&
	    local_check_wishes(op->provider->section, op->want, NULL, err) < 0)
		return OP_FAILED;
	if (!reply)
		return make_call(op, call, err);
	if (local_read_reply(op, reply, &got, err) < 0) {
		op_result_free(&got);
		if (err->kind != ERR_NOT_FOUND ||
		    (op->kind != OP_RELEASE && op->kind != OP_INSPECT))
			return OP_FAILED;
		if (op->kind == OP_INSPECT)
			set_forgotten_pod(op, &got);
	}
	*result = got;
	return OP_DONE;
}

static void local_op_free(struct op *op)
{
	free(op);
}

static bool local_pods_are_free(const struct provider *p)
{
	(void)p;
	return true;
}

INCBIN(local_end_script, "providers/local/end.sh");

const struct provider_ops provider_local = {
	.abi = PROVIDER_ABI,
	.name = LOCAL_NAME,
	.summary = "pods on this machine; needs no account",
	.end_script = local_end_script,
	.shares_machine = true,
	.options = options,
	.can_stage = true,
	.can_fetch = true,
	.can_tidy = true,
	.open = local_open,
	.close = local_close,
	.account = local_account,
	.begin = local_begin,
	.next = local_next,
	.op_free = local_op_free,
	.pods_are_free = local_pods_are_free,
	.check_conf = local_check_conf,
	.check_wishes = local_check_wishes,
};
