/* local.c - the translator: turns operations into `burst local-cloud` children, and their output
 * into results. */
#include "local.h"

#include <stdlib.h>

#include "base/gpus.h"
#include "base/incbin.h"
#include "base/jsonx.h"
#include "translator.h"

static const struct option_spec options[] = {
	{"price_per_hour", OPTION_MONEY, 0, "0", "pretended price of an hour of a pod"},
	{"spot_price_per_hour", OPTION_MONEY, 0, NULL,
	 "the same for a spot pod; without it none are offered"},
	{"boot_delay", OPTION_DURATION, 0, "0", "how long a pod takes to boot"},
	{"round_trip", OPTION_DURATION, 0, "0",
	 "round-trip time to a pod with its own network, as in \"80ms\""},
	{"storage", OPTION_BOOL, 0, "false",
	 "read and write volumes without a pod: code is uploaded first, and pods are released "
	 "before their files are fetched"},
	{"capacity", OPTION_INT, 0, "16", "largest number of pods at a time; more are refused"},
	{"gpu", OPTION_TEXT, 0, "none",
	 "GPU that pods have or pretend to have; unless \"none\", they see this machine's own"},
	{"vram_gb", OPTION_INT, 0, "0", "memory of that GPU; 0: as it is sold"},
	{"gpu_prices", OPTION_TEXTS, 0, NULL,
	 "several GPUs that pods pretend to have, with dollars an hour, as in [\"T4=0.59\", "
	 "\"L4=0.80\"]"},
	{"egress_price", OPTION_MONEY, 0, "0",
	 "pretended price of a GB fetched from a pod, in plans"},
	{"region", OPTION_TEXT, 0, "here", "region that offers show"},
	{"preempt_after", OPTION_DURATION, 0, "0",
	 "a spot pod is taken away after this time; 0: never"},
	{"preempt", OPTION_TEXT, 0, "spot", "which pods preempt_after takes: \"spot\" or \"all\""},
	{"fail_rents", OPTION_INT, 0, "0",
	 "how many rents fail for lack of capacity before one succeeds"},
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
	local_read_conf(s, &(*out)->conf);
	local_read_cards(s, *out);
	(*out)->storage = section_bool(s, "storage");
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

static json_t *request_rent(const struct rent_request *rent)
{
	struct pod_view wanted = {.marker = rent->marker, .spot = rent->offer.spot};
	json_t *to, *env = json_object();

	COPY_TEXT(wanted.name, rent->name);
	to = local_wire_view(&wanted);
	json_object_set_new(to, "volume", json_string(rent->volume.id));
	json_object_set_new(to, "mount", json_string(rent->mount ? rent->mount : ""));
	json_object_set_new(to, "script", json_string(rent->start_script));
	for (size_t i = 0; i < rent->env_count; i++)
		json_object_set_new(env, rent->env[i].name, json_string(rent->env[i].value));
	json_object_set_new(to, "env", env);
	return to;
}

/* Prices a pod by its card if there are several. */
static struct local_conf conf_of(const struct op *op)
{
	const struct provider *p = op->provider;
	struct local_conf conf = p->conf;

	if (op->kind == OP_RENT && op->want->rent.fetches_packages && !conf.private_network)
		conf.shared_network = true;
	for (size_t i = 0; op->kind == OP_RENT && i < p->card_count; i++)
		if (!strcmp(p->cards[i].gpu, op->want->rent.offer.gpu)) {
			COPY_TEXT(conf.gpu, p->cards[i].gpu);
			conf.vram_gb = p->cards[i].vram_gb;
			conf.price_microusd_h = p->cards[i].price_microusd_h;
		}
	return conf;
}

static json_t *make_request(const struct op *op)
{
	struct local_conf conf = conf_of(op);
	const struct op_want *want = op->want;
	json_t *to = op->kind == OP_RENT ? request_rent(&want->rent) : json_object();

	if (op->kind == OP_RENT || op->kind == OP_OFFERS || op->kind == OP_CHECK)
		json_object_set_new(to, "conf", local_wire_conf(&conf));
	if (op->kind == OP_OFFERS)
		json_object_set_new(to, "spot", json_boolean(want->offers.spot));
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

static void request_file(const struct op *op, struct call *call)
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
	const struct local_verb *verb = &local_verbs[op->kind];

	*call = (struct call){
		.kind = CALL_CHILD,
		.class = verb->class,
		.may_repeat = verb->may_repeat,
		.timeout_ms = verb->timeout_ms,
		.max_bytes = 16u << 20,
	};
	call_arg(call, "burst");
	call_arg(call, "local-cloud");
	call_arg(call, verb->word);
	call_arg(call, op->provider->state_dir);
	if (op->kind == OP_STAGE || op->kind == OP_FETCH) {
		request_file(op, call);
		return OP_CALL;
	}
	CLEANUP(json_decref) json_t *request = make_request(op);
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
	if (op->kind == OP_OFFERS && local_judge_wishes(op->provider, op->want, NULL, err) < 0)
		return OP_FAILED;
	if (!reply)
		return make_call(op, call, err);
	if (local_read_reply(op, reply, &got, err) < 0) {
		op_result_free(&got);
		if (err->kind != ERR_NOT_FOUND ||
		    (op->kind != OP_RELEASE && op->kind != OP_INSPECT))
			return OP_FAILED;
		if (op->kind == OP_INSPECT)
			local_forgotten(op, &got);
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
	return !p->storage;
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
