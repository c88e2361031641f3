/* runpod.c - the RunPod provider: its keys, its account, the file for each operation, the checks
 * of `burst doctor` */
#include "runpod.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/incbin.h"
#include "base/jsonx.h"
#include "impl.h"

/* ---- the checks of `burst doctor`: the API key, the balance, the keys for files ---- */

enum { GONE = 410 };
#define DOLLARS_MOST 1e9 /* a larger balance is an error of RunPod's */

static const char balance_query[] = "query{myself{clientBalance currentSpendPerHr spendLimit}}";

/* Appends a finding about the spending per hour and its limit. */
static void add_spending(struct str *to, const json_t *me)
{
	int64_t spent = web_microusd(me, "currentSpendPerHr"),
		limit = web_microusd(me, "spendLimit");
	char spend[32], most[32];

	money_show(most, sizeof(most), limit);
	if (!json_is_number(json_object_get(me, "currentSpendPerHr")))
		str_add(to, "warn: the spending per hour is not reported,");
	else if (limit && spent >= limit)
		str_addf(to, "bad: spending %s an hour now, no more can be rented:",
			 money_show(spend, sizeof(spend), spent));
	else
		str_addf(to, "ok: spending %s an hour now,",
			 money_show(spend, sizeof(spend), spent));
	if (limit)
		str_addf(to, " the account's limit is %s an hour\n", most);
	else
		str_add(to, " the account's limit is not reported\n");
}

/* Sets the balance in the result and appends findings about it. me: the answer's "myself". */
static void add_balance_and_spending(struct op *op, const json_t *me)
{
	double balance = jsonx_number(me, "clientBalance", 0);

	if (!json_is_number(json_object_get(me, "clientBalance")) || balance > DOLLARS_MOST) {
		str_add(&op->got.text, "warn: the balance is not reported\n");
		return;
	}
	/* a debt counts as no balance */
	op->got.balance_microusd = balance > 0 ? (int64_t)(balance * 1e6) : 0;
	if (op->got.balance_microusd <= 0)
		str_add(&op->got.text, "bad: the account has no credit\n");
	add_spending(&op->got.text, me);
}

static enum op_next balance_next(struct turn *t)
{
	CLEANUP(json_decref) json_t *whole = NULL;

	if (!t->reply)
		return api_request_graphql(t, CALL_POLL, balance_query, NULL);
	const json_t *data = api_read_data(t, "balance", &whole);
	if (data)
		add_balance_and_spending(t->op, json_object_get(data, "myself"));
	else if (t->reply->failed || t->reply->status != GONE) /* RunPod has removed GraphQL */
		return OP_FAILED;
	str_free(&t->op->got.text);
	return api_done(t);
}

/* If the key is not accepted, t->err stays set. */
static void add_key_finding(struct turn *t)
{
	struct str *text = &t->op->got.text;

	if (api_check(t, "asking for the pods") == 0)
		str_addf(text, "ok: %s accepts the key\n", t->op->provider->root);
	else
		str_addf(text, "bad: %s\n", t->err->msg);
}

/* The first volume in a data centre that the S3-compatible API reaches; NULL: none. */
static const struct volume *volume_to_try_keys_on(const struct op *op)
{
	for (size_t i = 0; i < op->got.volume_count; i++)
		if (s3_reaches(op->provider, op->got.volumes[i].region))
			return &op->got.volumes[i];
	return NULL;
}

/* Reads the volumes' list and requests one of them with the S3 keys. */
static enum op_next try_file_keys(struct turn *t)
{
	struct op *op = t->op;
	const struct volume *v;

	err_clear(t->err);
	if (volumes_read_page(t) < 0)
		err_clear(t->err);
	v = volume_to_try_keys_on(op);
	if (v)
		return s3_try_keys(t, v);
	str_add(&op->got.text, "ok: keys for files of a volume without a pod are set (there is no "
			       "volume to try them on)\n");
	return api_done(t);
}

static void add_file_keys_finding(struct turn *t)
{
	struct op *op = t->op;
	const struct volume *v = volume_to_try_keys_on(op);

	if (s3_check_keys_reply(t->reply, v, t->err) < 0)
		str_addf(&op->got.text, "bad: %s\n", t->err->msg);
	else if (t->reply->failed || t->reply->status < 200 || t->reply->status > 299)
		str_addf(&op->got.text,
			 "warn: keys for files of a volume without a pod are set, but could not be "
			 "tried on volume \"%s\"\n",
			 v->name);
	else
		str_addf(&op->got.text,
			 "ok: keys for files of a volume without a pod are accepted (volume "
			 "\"%s\")\n",
			 v->name);
	err_clear(t->err);
}

/* Ends the check with a finding on whether S3 keys are set. */
static enum op_next finish_without_trying_keys(struct turn *t)
{
	str_add(&t->op->got.text,
		s3_is_configured(t->op->provider)
			? "ok: keys for files of a volume without a pod are set\n"
			: "warn: no RUNPOD_S3_ACCESS_KEY and RUNPOD_S3_SECRET_KEY: a pod "
			  "must run until its last file is fetched\n");
	return api_done(t);
}

static void add_balance_finding(struct turn *t)
{
	CLEANUP(json_decref) json_t *whole = NULL;
	const json_t *data = api_read_data(t, "balance", &whole);

	if (data)
		add_balance_and_spending(t->op, json_object_get(data, "myself"));
	else
		str_addf(&t->op->got.text, "warn: %s\n", t->err->msg);
	err_clear(t->err);
}

/* Steps: pods (API key), balance, volumes, one of them (S3 keys). A refused key is a finding. */
static enum op_next check_next(struct turn *t)
{
	switch (t->op->step++) {
	case 0: return api_request_pods(t);
	case 1:
		add_key_finding(t);
		if (t->err->kind == ERR_NONE)
			return api_request_graphql(t, CALL_POLL, balance_query, NULL);
		err_clear(t->err);
		return finish_without_trying_keys(t); /* volumes cannot be listed either */
	case 2:
		add_balance_finding(t);
		if (!s3_is_configured(t->op->provider))
			return finish_without_trying_keys(t);
		api_first_page(t->op);
		return api_request_volumes(t);
	case 3: return try_file_keys(t);
	}
	add_file_keys_finding(t);
	return api_done(t);
}

/* ---- keys ---- */

static const struct option_spec options[] = {
	{"api_key", OPTION_TEXT, OPTION_SECRET | OPTION_USER_ONLY | OPTION_REQUIRED, NULL,
	 "the account's API key"},
	{"api_key_command", OPTION_TEXT, OPTION_USER_ONLY, NULL,
	 "shell command that prints the API key"},
	{"api_url", OPTION_TEXT, OPTION_USER_ONLY, "https://api.runpod.io", "root of the API"},
	{"cloud", OPTION_TEXT, 0, "SECURE", "\"SECURE\", \"COMMUNITY\" or \"ANY\""},
	{"datacenters", OPTION_TEXTS, 0, NULL,
	 "rent only in these, as in [\"EU-RO-1\"] (absent: anywhere)"},
	{"image", OPTION_TEXT, 0, RUNPOD_IMAGE, "image of pods if pod.image is absent"},
	{"min_cuda", OPTION_TEXT, 0, NULL,
	 "least CUDA version of the host, as in \"12.8\"; \"none\": any (absent: the default "
	 "image's own)"},
	{"registry", OPTION_TEXTS, OPTION_USER_ONLY, NULL,
	 "credentials of private images, as in [\"ghcr.io/me=ID\"]: ID pulls the images below "
	 "ghcr.io/me"},
	{"bid", OPTION_MONEY, 0, NULL,
	 "most that a spot GPU may cost an hour (absent: a tenth above the floor)"},
	{"placement_filters", OPTION_BOOL, 0, "false",
	 "require pod.cpu and pod.memory_gb of the host for each GPU"},
	{"s3_access_key", OPTION_TEXT, OPTION_SECRET | OPTION_USER_ONLY, NULL,
	 "key of the S3-compatible API, which reads and writes volumes without a pod"},
	{"s3_secret_key", OPTION_TEXT, OPTION_SECRET | OPTION_USER_ONLY, NULL,
	 "the secret of that key"},
	{"s3_secret_key_command", OPTION_TEXT, OPTION_USER_ONLY, NULL,
	 "shell command that prints the secret"},
	{"s3_url", OPTION_TEXT, OPTION_USER_ONLY, NULL,
	 "root of the S3-compatible API (absent: the data centre's own)"},
	{NULL},
};

/* ---- opening ---- */

static int check_datacenters(const struct section *s, const char *group, const char *key,
			     struct err *err)
{
	for (size_t i = 0; i < section_count(s, key); i++) {
		const char *id = section_item(s, key, i);
		/* the server accepts lower case, with odd results */
		for (const char *p = id; *p; p++)
			if ((!isalnum((unsigned char)*p) && *p != '-') ||
			    islower((unsigned char)*p))
				return err_set(err, ERR_CONFIG,
					       "%s: %s.%s: \"%s\" is not "
					       "the id of a data centre; ids look like "
					       "\"EU-RO-1\", in capitals",
					       section_where(s, key), group, key, id);
		if (!*id || strlen(id) >= REGION_MAX)
			return err_set(err, ERR_CONFIG,
				       "%s: %s.%s: \"%s\" is not the id of a data centre",
				       section_where(s, key), group, key, id);
	}
	return 0;
}

static int check_cloud(const struct section *s, const char *group, const char *key, struct err *err)
{
	const char *cloud = section_text(s, key);

	if (strcmp(cloud, "SECURE") && strcmp(cloud, "COMMUNITY") && strcmp(cloud, "ANY"))
		return provider_bad_value(s, group, key, "\"SECURE\", \"COMMUNITY\" or \"ANY\"",
					  err);
	return 0;
}

static int runpod_check_conf(const struct section *s, struct mistakes *m, struct err *err)
{
	static const struct key_check checks[] = {
		{"api_url", provider_check_url},
		{"s3_url", provider_check_url},
		{"datacenters", check_datacenters},
		{"registry", provider_check_registries},
		{"image", provider_check_image},
		{"cloud", check_cloud},
		{"min_cuda", web_check_cuda_version},
		{"bid", web_check_bid},
		{NULL, NULL},
	};

	return provider_check_keys(checks, s, "providers.runpod", m, err);
}

/* Needs the secrets, so check_conf cannot do this. */
static int check_s3_keys(const struct section *s, struct err *err)
{
	if (!section_text(s, "s3_access_key") != !section_text(s, "s3_secret_key"))
		return err_set(err, ERR_CONFIG,
			       "runpod: only one of s3_access_key and s3_secret_key is set "
			       "(RUNPOD_S3_ACCESS_KEY, RUNPOD_S3_SECRET_KEY)");
	return 0;
}

static int runpod_open(struct provider **out, const struct section *s, const char *state_dir,
		       struct err *err)
{
	(void)state_dir;
	if (web_check_key("runpod", s, err) < 0 || runpod_check_conf(s, NULL, err) < 0 ||
	    check_s3_keys(s, err) < 0)
		return -1;
	*out = web_open("runpod", s);
	return 0;
}

/* ---- operations ---- */

static struct op *runpod_begin(struct provider *p, enum op_kind kind, const struct op_want *want)
{
	struct op *op = xcalloc(1, sizeof(*op));

	*op = (struct op){.provider = p, .kind = kind, .want = want, .got.balance_microusd = -1};
	return op;
}

/* Lets the file of this kind of operation read the reply and make the next call. */
static enum op_next advance_operation(struct turn *t)
{
	switch (t->op->kind) {
	case OP_CHECK: return check_next(t);
	case OP_OFFERS: return offers_next(t);
	case OP_VOLUME: return volume_next(t);
	case OP_VOLUMES: return volumes_next(t);
	case OP_VOLUME_REMOVE: return volume_remove_next(t);
	case OP_RENT: return rent_next(t);
	case OP_INSPECT: return inspect_next(t);
	case OP_LIST: return list_next(t);
	case OP_RELEASE: return release_next(t);
	case OP_BILLING: return billing_next(t);
	case OP_BALANCE: return balance_next(t);
	case OP_LOGS: return logs_next(t);
	case OP_STAGE: return stage_next(t);
	case OP_FETCH: return fetch_next(t);
	case OP_VOLUME_LS: return volume_ls_next(t);
	case OP_VOLUME_SIZE: return volume_size_next(t);
	case OP_VOLUME_DELETE: return volume_delete_next(t);
	case OP_IMAGE: break; /* pods run images unchanged; never called */
	}
	return turn_fail(t, ERR_BUG, "no such operation");
}

/* Whether want.id, which comes from the ledger or the user, becomes part of a URL. */
static bool wants_id_in_url(const struct op *op)
{
	switch (op->kind) {
	case OP_INSPECT:
	case OP_RELEASE:
	case OP_LOGS:
	case OP_BILLING:
	case OP_VOLUME_REMOVE: return true;
	default: return false;
	}
}

static enum op_next runpod_next(struct op *op, const struct reply *reply, struct call *call,
				int64_t *wait_ms, struct op_result *result, struct err *err)
{
	struct turn t = {op, reply, call, wait_ms, result, err};

	if (wants_id_in_url(op) && !api_id_is_sound(op->want->id)) {
		err_set(err, ERR_REFUSED, "\"%s\" is not an id of RunPod's", op->want->id);
		return OP_FAILED;
	}
	return advance_operation(&t);
}

static void runpod_op_free(struct op *op)
{
	if (!op)
		return;
	op_result_free(&op->got);
	json_decref(op->kept);
	free(op);
}

INCBIN_TWO(runpod_end_script, "providers/http.sh", "providers/runpod/end.sh");

const struct provider_ops provider_runpod = {
	.abi = PROVIDER_ABI,
	.name = "runpod",
	.summary = "GPU pods at RunPod; needs an API key",
	.setup = "set RUNPOD_API_KEY, or log in with `runpodctl config`",
	.end_script = runpod_end_script,
	.options = options,
	.can_stage = true,
	.can_fetch = true,
	.can_tidy = true,
	/* one listing serves all pods; a pod that is up bills until a listing shows it */
	.poll_ms = 2500,
	.list_gap_ms = 5000,
	.calls_per_minute = 60, /* from the published example; each reply reports its own limits */
	.open = runpod_open,
	.close = web_close,
	.account = web_account,
	.begin = runpod_begin,
	.next = runpod_next,
	.op_free = runpod_op_free,
	.files_ready = s3_files_ready,
	.check_conf = runpod_check_conf,
	.check_wishes = offers_check_wishes,
};
