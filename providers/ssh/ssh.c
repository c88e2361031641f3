/* ssh.c - the translator: the user's hosts, and operations as calls to one of them or to each */
#include "ssh.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "base/incbin.h"
#include "base/jsonx.h"
#include "impl.h"

/* The steps at one host. op->step counts them over all hosts of the operation. */
enum { ASK, INSTALL, INSTALL_OTHER, ASK_AGAIN, STEPS };
enum { INSTALL_MS = 300000, CHECK_MS = 60000, GPUS_IN_POD_MOST = 8, WATTS_MOST = 1000000 };

#define NO_PRICE                                                                                   \
	"no price given, so caps on cost do not count these pods: see "                            \
	"providers.ssh.price_per_hour and host_prices"

#define LOCAL_ID "local-" /* begins burst-host's ids of pods */

/* ---- config ---- */

static int check_hosts(const struct section *s, const char *group, const char *key, struct err *err)
{
	for (size_t i = 0; i < section_count(s, key); i++) {
		const char *host = section_item(s, key, i), *must = host_check(host);
		if (must)
			return err_set(err, ERR_CONFIG, "%s: %s.%s: \"%.60s\": must be %s",
				       section_where(s, key), group, key, host, must);
		for (size_t j = 0; j < i; j++)
			if (!strcasecmp(host, section_item(s, key, j)))
				return err_set(err, ERR_CONFIG, "%s: %s.%s names \"%s\" twice",
					       section_where(s, key), group, key, host);
	}
	return 0;
}

/* An absolute path, or one below the home of the host's user. */
static int check_folder(const struct section *s, const char *group, const char *key,
			struct err *err)
{
	const char *path = section_text(s, key);
	const char *below = starts_with(path, "~/") ? path + 2 : path;

	for (const char *c = below; *c; c++)
		if ((unsigned char)*c < ' ' || *c == '\'')
			below = "";
	return !below[0] || below[0] == '~' || !strcmp(below, "/")
		       ? provider_bad_value(s, group, key,
					    "a folder on the hosts: \"/data/burst\" or "
					    "\"~/.local/share/burst\"",
					    err)
		       : 0;
}

/* What a list of "HOST=NUMBER" says of this host. False: nothing, or no number. */
static bool host_number(const struct section *s, const char *key, const char *host, int64_t *out)
{
	size_t len = strlen(host);

	for (size_t i = 0; i < section_count(s, key); i++) {
		const char *item = section_item(s, key, i);
		if (strncmp(item, host, len) || item[len] != '=')
			continue;
		item += len + 1;
		if (!strcmp(key, "host_prices"))
			return money_parse(item, out, NULL) == 0 && *out >= 0;
		char *end;
		*out = strtoll(item, &end, 10);
		return item[0] >= '0' && item[0] <= '9' && !*end && *out <= WATTS_MOST;
	}
	return false;
}

static int check_host_numbers(const struct section *s, const char *group, const char *key,
			      struct err *err)
{
	for (size_t i = 0; i < section_count(s, key); i++) {
		const char *item = section_item(s, key, i);
		CLEANUP(free_text) char *host = xstrndup(item, strcspn(item, "="));
		int64_t number;
		if (!section_has_item(s, "hosts", host))
			return err_set(err, ERR_CONFIG,
				       "%s: %s.%s: \"%.60s\": providers.ssh.hosts names no host "
				       "\"%.40s\"",
				       section_where(s, key), group, key, item, host);
		if (!host_number(s, key, host, &number))
			return err_set(err, ERR_CONFIG, "%s: %s.%s: \"%.60s\" is not like \"%s\"",
				       section_where(s, key), group, key, item,
				       !strcmp(key, "host_prices") ? "box1=0.30" : "box1=450");
	}
	return 0;
}

/* Power has a price only with that of a kilowatt hour. */
static int check_power(const struct section *s, const char *group, const char *key, struct err *err)
{
	if (section_has(s, "price_per_kwh") ==
	    (section_has(s, "watts") || section_count(s, "host_watts") > 0))
		return 0;
	return err_set(err, ERR_CONFIG,
		       "%s: %s: watts (or host_watts) and price_per_kwh make a price together: "
		       "give both",
		       section_where(s, key), group);
}

/* So does hardware with its life. */
static int check_hardware(const struct section *s, const char *group, const char *key,
			  struct err *err)
{
	const char *other = "hours_of_life";

	if (section_has(s, key) == section_has(s, other) && section_int(s, key) >= 0 &&
	    (!section_has(s, other) || section_int(s, other) > 0))
		return 0;
	return err_set(err, ERR_CONFIG, "%s: %s: %s and %s make a price together: give both",
		       section_where(s, section_has(s, key) ? key : other), group, key, other);
}

static int ssh_check_conf(const struct section *s, struct mistakes *m, struct err *err)
{
	static const struct key_check checks[] = {
		{"hosts", check_hosts},
		{"isolation", wired_check_isolation},
		{"network", wired_check_network},
		{"volume_dir", check_folder},
		{"host_prices", check_host_numbers},
		{"host_watts", check_host_numbers},
		{"price_per_kwh", check_power},
		{"hardware_cost", check_hardware},
		{NULL, NULL},
	};

	return provider_check_keys(checks, s, "providers.ssh", m, err);
}

static int check_spot(const struct section *s, const struct op_want *want, struct err *err)
{
	(void)s;
	if (!want->offers.spot)
		return 0;
	err_set(err, ERR_CONFIG, "spot = true: your own hosts have no spot pods");
	return err_about(err, "spot");
}

static int ssh_check_wishes(const struct section *s, const struct op_want *want, struct mistakes *m,
			    struct err *err)
{
	static want_check *const checks[] = {check_spot, NULL};

	return provider_judge_wishes(checks, s, want, m, err);
}

/* The price of a pod on this host: the user's, or that of its electricity and of the hardware's
 * wear. What is said of the host itself takes precedence. False: none is given, and *price is 0. */
static bool pod_price(const struct section *s, const char *host, int64_t *price)
{
	int64_t watts = section_int(s, "watts"), hours = section_int(s, "hours_of_life");
	bool own_watts;

	if (host_number(s, "host_prices", host, price))
		return true;
	own_watts = host_number(s, "host_watts", host, &watts);
	*price = section_int(s, "price_per_hour");
	if (!own_watts && section_has(s, "price_per_hour"))
		return true;
	*price = watts * section_int(s, "price_per_kwh") / 1000 +
		 (hours > 0 ? section_int(s, "hardware_cost") / hours : 0);
	return *price > 0;
}

/* ---- which host ---- */

/* Operations that each host is asked for; all others are about one pod or one volume. */
static bool asks_all(const struct op *op)
{
	switch (op->kind) {
	case OP_OFFERS: return !op->want->offers.volume.id[0];
	case OP_CHECK:
	case OP_VOLUME:
	case OP_VOLUMES:
	case OP_LIST: return true;
	default: return false;
	}
}

/* The id that says which host an operation is for. */
static const char *id_of(const struct op *op)
{
	switch (op->kind) {
	case OP_RENT: return op->want->rent.offer.id;
	case OP_OFFERS: return op->want->offers.volume.id;
	case OP_STAGE:
	case OP_FETCH:
	case OP_VOLUME_LS:
	case OP_VOLUME_DELETE: return op->want->file.volume.id;
	default: return op->want->id;
	}
}

static const char *host_at(const struct op *op, size_t index)
{
	return section_item(op->provider->section, "hosts", index);
}

static size_t host_count(const struct op *op)
{
	return asks_all(op) ? section_count(op->provider->section, "hosts") : 1;
}

/* Where a new volume is made: on the first host that could also run the pods. */
static const char *host_for_volume(const struct op *op)
{
	const char *const *regions = op->want->regions;

	for (size_t i = 0; regions && i < host_count(op); i++)
		for (size_t j = 0; regions[j]; j++)
			if (!strcmp(regions[j], host_at(op, i)))
				return host_at(op, i);
	return host_at(op, 0);
}

/* The host of this step. *rest: what its id says beside it, "" if each host is asked. */
static int find_host(const struct op *op, char host[HOST_MAX], const char **rest, struct err *err)
{
	const struct section *s = op->provider->section;
	size_t index = (size_t)op->step / STEPS;

	*rest = "";
	if (asks_all(op)) {
		snprintf(host, HOST_MAX, "%s",
			 index < host_count(op) ? host_at(op, index) : host_for_volume(op));
		return 0;
	}
	*rest = host_of_id(id_of(op), host);
	if (!*rest)
		return err_set(err, ERR_NOT_FOUND, "%.80s: no id of a host's pod or volume",
			       id_of(op));
	if (!section_has_item(s, "hosts", host))
		return err_set(err, ERR_CONFIG,
			       "%.80s is on a host that providers.ssh.hosts does not name",
			       id_of(op));
	return 0;
}

/* ---- requests ---- */

/* An offer's id is HOST:COUNT,MODEL: the GPUs of a pod, or 0 and nothing for one without. */
static int read_offer_id(const char *rest, struct wire_conf *conf)
{
	char *end;

	conf->gpus = (int)strtol(rest, &end, 10);
	if (*end != ',')
		return -1;
	COPY_TEXT(conf->model, end + 1);
	return 0;
}

/* The request as burst-host knows it: its own ids have no host. */
static void localize(const struct op *op, const char *rest, struct op_want *want)
{
	char host[HOST_MAX];
	const char *volume;

	*want = op->want ? *op->want : (struct op_want){0};
	switch (op->kind) {
	case OP_INSPECT:
	case OP_RELEASE:
	case OP_BILLING:
	case OP_LOGS: snprintf(want->id, sizeof(want->id), LOCAL_ID "%s", rest); break;
	case OP_VOLUME_REMOVE: COPY_TEXT(want->id, rest); break;
	case OP_STAGE:
	case OP_FETCH:
	case OP_VOLUME_LS:
	case OP_VOLUME_DELETE: COPY_TEXT(want->file.volume.id, rest); break;
	case OP_RENT:
		volume = host_of_id(op->want->rent.volume.id, host);
		COPY_TEXT(want->rent.volume.id, volume ? volume : "");
		break;
	case OP_VOLUME: want->volume.create = (size_t)op->step / STEPS >= host_count(op); break;
	default: break;
	}
}

static int conf_for_op(const struct op *op, const char *rest, struct wire_conf *conf,
		       struct err *err)
{
	const struct section *s = op->provider->section;

	*conf = (struct wire_conf){
		.capacity = section_int(s, "slots"), .is_host = true, .client_ms = clock_wall_ms()};
	COPY_TEXT(conf->gpu, section_text(s, "gpu"));
	(void)wire_read_isolation(section_text(s, "isolation"), &conf->isolation);
	conf->shared_network = !strcmp(section_text(s, "network"), "host") ||
			       (op->kind == OP_RENT && op->want->rent.fetches_packages &&
				!section_has(s, "network"));
	if (op->kind != OP_RENT)
		return 0;
	conf->memory_gb = op->want->rent.memory_gb;
	return read_offer_id(rest, conf) < 0 ? err_set(err, ERR_REFUSED, "no such offer") : 0;
}

/* Adds the call of burst-host for this operation. */
static int ask_host(struct op *op, const char *host, const char *rest, struct call *call,
		    struct err *err)
{
	struct op_want want;
	struct wire_conf conf;
	struct op there = {.provider = op->provider, .kind = op->kind, .want = &want};
	struct call inner = {0};

	localize(op, rest, &want);
	if (conf_for_op(op, rest, &conf, err) < 0 ||
	    wired_ask(&there, &conf, host_folder(op->provider), &inner, err) < 0) {
		call_free(&inner);
		return -1;
	}
	if (op->kind == OP_STAGE && want.file.max_bytes <= 0)
		call_arg(&inner, "0"); /* no limit; the number of bytes follows */
	host_add_command(op->provider, host, &inner, call);
	call_free(&inner);
	return 0;
}

static bool is_install(const struct op *op)
{
	int step = op->step % STEPS;

	return step == INSTALL || step == INSTALL_OTHER;
}

static enum op_next ssh_ask(struct op *op, struct call *call, struct op_result *result,
			    struct err *err)
{
	char host[HOST_MAX];
	const char *rest;
	int added;

	(void)result;
	if (op->kind == OP_BALANCE)
		return OP_DONE; /* hosts have no balance */
	if (op->kind == OP_OFFERS &&
	    ssh_check_wishes(op->provider->section, op->want, NULL, err) < 0)
		return OP_FAILED;
	if (op->kind == OP_VOLUME && strchr(op->want->volume.name, ':')) {
		err_set(err, ERR_CONFIG, "volume %.60s: its name on a host must not have \":\"",
			op->want->volume.name);
		return OP_FAILED;
	}
	if (find_host(op, host, &rest, err) < 0)
		return OP_FAILED;
	if (is_install(op)) {
		call->timeout_ms = INSTALL_MS;
		added = host_add_install(op->provider, host, op->step % STEPS == INSTALL_OTHER,
					 call, err);
	} else {
		call->timeout_ms = MAX(call->timeout_ms, CHECK_MS);
		added = ask_host(op, host, rest, call, err);
	}
	return added < 0 ? OP_FAILED : OP_CALL;
}

/* ---- answers of one host ---- */

/* Adds an offer of pods with so many GPUs, `left` of them, unless the job does not wish for it. */
static void add_offer(const struct op *op, const char *host, const char *model, int gpus,
		      int vram_gb, int left, struct op_result *result)
{
	const struct section *s = op->provider->section;
	const struct gpu *known = gpu_find(model);
	const char *name = known ? known->name : model;
	struct offer *offer;
	int64_t price;

	(void)pod_price(s, host, &price);
	if (left <= 0 ||
	    !(offer = child_offer(op, name, MAX(gpus, 1), vram_gb, price * MAX(gpus, 1), result)))
		return;
	offer->pods_max = left;
	snprintf(offer->id, sizeof(offer->id), "%s:%d,%s", host, gpus, gpus ? model : "");
	COPY_TEXT(offer->region, host);
	COPY_TEXT(offer->stock, left == 1 ? "low" : "high");
}

/* A job that wishes for no GPU takes none that another job could use. */
static bool wishes_for_gpu(const struct op_want *want)
{
	const char *const *wishes = want->offers.gpus;
	bool any = !wishes || !wishes[0];

	for (size_t i = 0; wishes && wishes[i]; i++)
		any |= !gpu_is_none(wishes[i]);
	return any;
}

/* Adds offers for the free GPUs of this model, unless an earlier card of the list had it. */
static void add_model(const struct op *op, const json_t *list, size_t at, struct op_result *result)
{
	const json_t *card = json_array_get(list, at), *other;
	const char *model = jsonx_text(card, "model", "");
	int64_t memory_mib = jsonx_bounded(card, "memory_mib", 0, INT32_MAX);
	int here = 0;
	size_t i;

	json_array_foreach (list, i, other) {
		if (strcmp(jsonx_text(other, "model", ""), model))
			continue;
		if (i < at)
			return;
		here += !strcmp(jsonx_text(other, "state", ""), "free");
	}
	for (int gpus = 1; gpus <= GPUS_IN_POD_MOST && gpus <= here; gpus++)
		if (gpus == 1 || (op->want->offers.gpus && op->want->offers.gpus[0]))
			add_offer(op, str_text(&op->kept), model, gpus,
				  (int)((memory_mib + 512) / 1024), here / gpus, result);
}

/* op->kept: the host. */
static int read_offers(const struct op *op, const json_t *from, struct op_result *result,
		       struct err *err)
{
	const json_t *list = json_object_get(from, "gpus");
	const char *gpu = section_text(op->provider->section, "gpu");
	int64_t left = jsonx_bounded(from, "left", INT64_MIN, 1000);

	if (!json_is_array(list) || !json_is_integer(json_object_get(from, "left")))
		return err_set(err, ERR_BUG, "offers: not what was requested");
	for (size_t i = 0; i < json_array_size(list) && wishes_for_gpu(op->want); i++)
		add_model(op, list, i, result);
	add_offer(op, str_text(&op->kept), json_array_size(list) ? GPU_NONE : gpu, 0, 0,
		  (int)MAX(left, 0), result);
	return 0;
}

/* A pod of this host as burst knows it. */
static void adopt_pod(const char *host, struct pod_view *pod)
{
	CLEANUP(free_text)
	char *id = xasprintf("%s:%s", host,
			     starts_with(pod->id, LOCAL_ID) ? pod->id + strlen(LOCAL_ID) : pod->id);
	const char *at = strchr(host, '@');
	const char *name = at ? at + 1 : host;

	COPY_TEXT(pod->id, id);
	COPY_TEXT(pod->region, host);
	pod->reach = pod->port ? REACH_DIAL : REACH_NONE;
	pod->port = 0;
	snprintf(pod->host, sizeof(pod->host), "%.*s", (int)strcspn(name, ":"), name);
}

static void adopt_volume(const char *host, struct volume *volume)
{
	snprintf(volume->id, sizeof(volume->id), "%s:%s", host, volume->name);
	COPY_TEXT(volume->region, host);
}

/* "ok: 4096 MB free" -> "ok: box1: 4096 MB free" */
static void add_findings(const char *host, const struct str *text, struct str *to)
{
	const char *at = str_text(text), *line;
	size_t len;

	while ((line = str_next_line(&at, &len))) {
		int mark = (int)MIN(strcspn(line, ":"), len);
		str_addf(to, "%.*s: %s%.*s\n", mark, line, host, (int)len - mark, line + mark);
	}
}

/* Moves what one host has answered into what the operation has found. */
static void add_answer(struct op *op, const char *host, const struct op_result *got)
{
	struct op_result *to = &op->found;

	for (size_t i = 0; i < got->offer_count; i++)
		*op_result_add_offer(to) = got->offers[i];
	for (size_t i = 0; i < got->pod_count; i++) {
		struct pod_view *pod = op_result_add_pod(to);
		*pod = got->pods[i];
		adopt_pod(host, pod);
	}
	for (size_t i = 0; i < got->volume_count; i++) {
		struct volume *volume = op_result_add_volume(to);
		*volume = got->volumes[i];
		adopt_volume(host, volume);
	}
	if (op->kind == OP_CHECK)
		add_findings(host, &got->text, &to->text);
	else
		str_add(&to->text, str_text(&got->text));
}

/* A fault of one host is not one of this machine or its config: another host may do. */
static void fail_there(const struct op *op, const char *host, struct err *err)
{
	if (op->kind == OP_RENT && (err->kind == ERR_LOCAL || err->kind == ERR_CONFIG))
		err->kind = ERR_REFUSED;
	err_wrap(err, "%s", host);
}

/* Reads a host's answer. OP_CALL: its program must be installed first. */
static enum op_next read_host(struct op *op, const char *host, const char *rest,
			      const struct reply *reply, struct op_result *got, struct err *err)
{
	struct op_want want;
	struct op there = {.provider = op->provider, .kind = op->kind, .want = &want};
	struct reply answer = {0};
	enum op_next next = OP_FAILED;

	if (is_install(op)) {
		op->step += ASK_AGAIN - op->step % STEPS;
		return host_read_install(op, host, reply, err) < 0 ? OP_FAILED : OP_CALL;
	}
	enum host_answer said = host_read(op, host, reply, &answer, err);
	switch (said) {
	case HOST_LACKS:
	case HOST_LACKS_OTHER:
		if (op->step % STEPS == ASK) {
			op->step += said == HOST_LACKS ? INSTALL : INSTALL_OTHER;
			return OP_CALL;
		}
		err_set(err, ERR_REFUSED, "%s: burst's program cannot be executed there", host);
		break;
	case HOST_ANSWERED:
		localize(op, rest, &want);
		str_add(&there.kept, host);
		next = wired_take(&there, &answer, read_offers, got, err);
		if (next == OP_FAILED)
			fail_there(op, host, err);
		str_free(&there.kept);
		break;
	case HOST_FAILED: break;
	}
	reply_free(&answer);
	return next;
}

/* ---- answers of all ---- */

/* Notes why a host has not answered: a line "HOST: why" in op->kept. */
static void note_failure(struct op *op, const char *host, const struct err *err)
{
	const char *why = err->msg;
	size_t len = strlen(host);

	if (!strncmp(why, host, len) && starts_with(why + len, ": "))
		why += len + 2;
	str_addf(&op->kept, "%s: %s\n", host, why);
	if (op->kind == OP_CHECK)
		str_addf(&op->found.text, "bad: %s: %s\n", host, why);
}

static bool has_failed(const struct op *op, const char *host)
{
	const char *at = str_text(&op->kept), *line;
	size_t len = strlen(host), n;

	while ((line = str_next_line(&at, &n)))
		if (n > len && !strncmp(line, host, len) && starts_with(line + len, ": "))
			return true;
	return false;
}

static size_t failures(const struct op *op)
{
	size_t count = 0;

	for (const char *c = str_text(&op->kept); (c = strchr(c, '\n')); c++)
		count++;
	return count;
}

/* Pods that were looked for by their ids, and are not on the hosts that have answered, are gone. */
static void add_gone_pods(struct op *op)
{
	char *const *ids = op->want ? op->want->ids : NULL;
	char host[HOST_MAX];

	for (size_t i = 0; ids && ids[i]; i++) {
		if (!host_of_id(ids[i], host) ||
		    !section_has_item(op->provider->section, "hosts", host) ||
		    has_failed(op, host) || op_result_has_pod(&op->found, ids[i]))
			continue;
		struct pod_view *pod = op_result_add_pod(&op->found);
		COPY_TEXT(pod->id, ids[i]);
		pod->state = POD_STATE_GONE;
		COPY_TEXT(pod->detail, "no such pod");
	}
}

/* Each offer says how many pods all of them leave. */
static void sum_offers(struct op *op)
{
	int total = 0;

	for (size_t i = 0; i < op->found.offer_count; i++)
		total += op->found.offers[i].gpus <= 1 ? op->found.offers[i].pods_max : 0;
	for (size_t i = 0; i < op->found.offer_count; i++)
		op->found.offers[i].pods_max = MAX(total, op->found.offers[i].pods_max);
}

/* The lowest price of all hosts; 0: of one it is not known. */
static int64_t lowest_price(const struct section *s)
{
	int64_t price, lowest = INT64_MAX;

	for (size_t i = 0; i < section_count(s, "hosts"); i++) {
		(void)pod_price(s, section_item(s, "hosts", i), &price);
		lowest = MIN(lowest, price);
	}
	return lowest;
}

static void add_price_findings(struct op *op)
{
	const struct section *s = op->provider->section;
	char shown[24];
	int64_t price;

	for (size_t i = 0; i < section_count(s, "hosts"); i++) {
		const char *host = section_item(s, "hosts", i);
		if (pod_price(s, host, &price))
			str_addf(&op->found.text, "ok: %s: a pod costs %s/h\n", host,
				 money_show(shown, sizeof(shown), price));
		else
			str_addf(&op->found.text, "warn: %s: " NO_PRICE "\n", host);
	}
}

/* All hosts were asked. *err: the failure of the last that failed. */
static enum op_next finish(struct op *op, struct op_result *result, struct err *err)
{
	size_t failed = failures(op);

	switch (op->kind) {
	case OP_VOLUME:
		if (op->found.volume_count)
			break;
		if (failed)
			err_set(err, ERR_TRANSIENT,
				"volume %.60s may be on a host that has not "
				"answered: %.*s",
				op->want->volume.name, (int)strcspn(str_text(&op->kept), "\n"),
				str_text(&op->kept));
		else
			err_set(err, ERR_NOT_FOUND, "no volume %.60s on any host",
				op->want->volume.name);
		return OP_FAILED;
	case OP_CHECK: add_price_findings(op); break;
	case OP_LIST:
	case OP_OFFERS:
		if (failed == host_count(op))
			return OP_FAILED;
		str_add(&op->found.text, str_text(&op->kept));
		op->found.partial = op->kind == OP_LIST && failed;
		if (op->found.partial)
			add_gone_pods(op);
		if (op->kind == OP_LIST)
			break;
		sum_offers(op);
		op->found.floor_microusd_h = lowest_price(op->provider->section);
		break;
	default:
		if (failed)
			return OP_FAILED;
		break;
	}
	op_result_free(result);
	*result = op->found;
	result->balance_microusd = -1;
	op->found = (struct op_result){0};
	return OP_DONE;
}

/* Goes on to the next host, or ends. A volume is made only after no host has it. */
static enum op_next next_host(struct op *op, struct op_result *result, struct err *err)
{
	size_t next = (size_t)op->step / STEPS + 1, count = host_count(op);

	if (op->kind == OP_VOLUME && op->found.volume_count)
		return finish(op, result, err);
	if (next == count && op->kind == OP_VOLUME && op->want->volume.create && !failures(op))
		count++;
	if (next >= count)
		return finish(op, result, err);
	op->step = (int)next * STEPS;
	return OP_CALL;
}

static enum op_next ssh_take(struct op *op, const struct reply *reply, struct op_result *result,
			     struct err *err)
{
	struct op_result got = {0};
	char host[HOST_MAX];
	const char *rest;

	if (find_host(op, host, &rest, err) < 0)
		return OP_FAILED;
	enum op_next next = read_host(op, host, rest, reply, &got, err);
	if (next == OP_CALL)
		return OP_CALL;
	if (!asks_all(op) && op->kind != OP_OFFERS) {
		if (next == OP_DONE)
			for (size_t i = 0; i < got.pod_count; i++)
				adopt_pod(host, &got.pods[i]);
		*result = got;
		return next;
	}
	bool searched = op->kind == OP_VOLUME && (size_t)op->step / STEPS < host_count(op);
	if (next == OP_FAILED && op->kind == OP_VOLUME && !searched) {
		op_result_free(&got);
		return OP_FAILED; /* the volume cannot be made */
	}
	if (next == OP_DONE)
		add_answer(op, host, &got);
	else if (!(searched && err->kind == ERR_NOT_FOUND))
		note_failure(op, host, err);
	op_result_free(&got);
	return next_host(op, result, err);
}

static const struct child_vendor ssh_vendor = {
	.name = SSH_NAME,
	.words = host_words,
	.ask = ssh_ask,
	.take = ssh_take,
};

/* A host that has hung is one that has not answered. */
static enum op_next ssh_next(struct op *op, const struct reply *reply, struct call *call,
			     int64_t *wait_ms, struct op_result *result, struct err *err)
{
	struct reply hung = {.status = 255};
	enum op_next next;

	(void)wait_ms;
	if (!reply || !reply->failed || !asks_all(op))
		return child_next(op, reply, call, result, err);
	str_add(&hung.head, reply->err.msg);
	next = child_next(op, &hung, call, result, err);
	reply_free(&hung);
	return next;
}

static int ssh_dial(const struct provider *p, const struct pod_view *pod, struct call *call,
		    struct err *err)
{
	char host[HOST_MAX];
	const char *rest = host_of_id(pod->id, host);
	struct call inner = {0};

	if (!rest)
		return err_set(err, ERR_REFUSED, "pod %s: is on no host", pod->id);
	CLEANUP(free_text) char *id = xasprintf(LOCAL_ID "%s", rest);
	call_arg(&inner, "connect");
	call_arg(&inner, host_folder(p));
	call_arg(&inner, id);
	host_add_command(p, host, &inner, call);
	call_free(&inner);
	return 0;
}

/* ---- keys ---- */

static const struct option_spec options[] = {
	{"hosts", OPTION_TEXTS, OPTION_USER_ONLY, NULL,
	 "your machines, as ssh knows them: \"box1\", \"me@box2:2222\""},
	{"volume_dir", OPTION_TEXT, OPTION_USER_ONLY, "~/.local/share/burst",
	 "folder on each host for pods and volumes"},
	{"slots", OPTION_INT, OPTION_USER_ONLY, "1",
	 "pods without a GPU of their own at a time on each host", NULL, 0, 1000},
	{"gpu", OPTION_TEXT, OPTION_USER_ONLY, "none",
	 "GPU of the hosts that have no nvidia-smi; each slot has it"},
	{"network", OPTION_TEXT, OPTION_USER_ONLY, "private",
	 "\"private\": pods reach nothing outside; \"host\": they share the host's network; "
	 "absent: private, except a pod that fetches the packages of an engine of burst's own"},
	{"isolation", OPTION_TEXT, OPTION_USER_ONLY, "auto",
	 "\"namespaces\"; \"process\": pods can reach all that you can there; \"auto\": process "
	 "where namespaces do not work"},
	{"price_per_hour", OPTION_MONEY, OPTION_USER_ONLY, NULL,
	 "price of an hour of a pod, or of each GPU of a pod; absent: from the keys below"},
	{"host_prices", OPTION_TEXTS, OPTION_USER_ONLY, NULL,
	 "the same of single hosts: [\"box1=0.30\"]"},
	{"watts", OPTION_INT, OPTION_USER_ONLY, NULL, "power that a pod draws", NULL, 0,
	 WATTS_MOST},
	{"host_watts", OPTION_TEXTS, OPTION_USER_ONLY, NULL,
	 "the same on single hosts: [\"box1=450\"]"},
	{"price_per_kwh", OPTION_MONEY, OPTION_USER_ONLY, NULL, "price of that power"},
	{"hardware_cost", OPTION_MONEY, OPTION_USER_ONLY, NULL,
	 "price of the hardware that a pod uses"},
	{"hours_of_life", OPTION_INT, OPTION_USER_ONLY, NULL, "hours of use that it pays for", NULL,
	 0, 10000000},
	{NULL},
};

static int ssh_open(struct provider **out, const struct section *s, const char *state_dir,
		    struct err *err)
{
	if (ssh_check_conf(s, NULL, err) < 0)
		return -1;
	if (!section_count(s, "hosts"))
		return err_set(err, ERR_NO_ACCOUNT,
			       "providers.ssh.hosts names no host: list your machines in your own "
			       "burst.cfg, or SSH_HOSTS");
	*out = child_open(&ssh_vendor, s, state_dir, "your hosts");
	return 0;
}

/* Hosts have no price unless the user gives one; only a given 0 says that they cost nothing. */
INCBIN(ssh_end_script, "providers/ssh/end.sh");

const struct provider_ops provider_ssh = {
	.abi = PROVIDER_ABI,
	.name = SSH_NAME,
	.summary = "pods on your own machines, by OpenSSH",
	.setup = "your own file needs the hosts: providers = { ssh = { hosts = [\"box1\"]; "
		 "price_per_hour = 0.30; }; };",
	.end_script = ssh_end_script,
	.shares_machine = true,
	.create_once = true,
	.options = options,
	.can_stage = true,
	.can_fetch = true,
	.can_tidy = true,
	.poll_ms = 500,
	.open = ssh_open,
	.close = child_close,
	.account = child_account,
	.begin = child_begin,
	.next = ssh_next,
	.op_free = child_op_free,
	.check_conf = ssh_check_conf,
	.check_wishes = ssh_check_wishes,
	.dial = ssh_dial,
};
