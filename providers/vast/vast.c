/* vast.c - the Vast.ai provider: its keys, its account, the file for each operation, the checks of
 * `burst doctor` */
#include "vast.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/incbin.h"
#include "base/jsonx.h"
#include "impl.h"

/* ---- the checks of `burst doctor`: the API key, its rights, the credit ---- */

#define DOLLARS_MOST 1e9 /* a larger credit is an error of Vast's */

/* Sets the balance in the result if the account reports one. "balance" is what is owed; "credit" is
 * what can be spent, and some replies lack it. A debt counts as no credit. */
static void read_credit(struct op *op, const json_t *me)
{
	const char *key = json_is_number(json_object_get(me, "credit")) ? "credit" : "balance";
	double dollars = jsonx_number(me, key, 0);

	if (json_is_number(json_object_get(me, key)) && dollars <= DOLLARS_MOST)
		op->got.balance_microusd = dollars > 0 ? (int64_t)(dollars * 1e6) : 0;
}

static enum op_next request_account(struct turn *t)
{
	return vast_request(t, CALL_POLL, "GET", NULL, "/v0/users/current/");
}

static enum op_next balance_next(struct turn *t)
{
	if (!t->reply)
		return request_account(t);
	CLEANUP(json_decref) json_t *me = vast_read_object(t, "balance");
	if (!me)
		return OP_FAILED;
	read_credit(t->op, me);
	return vast_done(t);
}

static void add_account_findings(struct turn *t)
{
	CLEANUP(json_decref) json_t *me = vast_read_object(t, "asking for the account");
	struct op *op = t->op;

	if (!me) {
		str_addf(&op->got.text, "bad: %s\n", t->err->msg);
		return;
	}
	str_addf(&op->got.text, "ok: %s accepts the key\n", op->provider->root);
	read_credit(op, me);
	if (op->got.balance_microusd < 0)
		str_add(&op->got.text, "warn: the credit is not reported\n");
	else if (!op->got.balance_microusd)
		str_add(&op->got.text, "bad: the account has no credit: Vast.ai stops instances "
				       "then\n");
}

/* Steps: the account, then a list: a key may have the right to one of them alone. */
static enum op_next check_next(struct turn *t)
{
	switch (t->op->step++) {
	case 0: return request_account(t);
	case 1:
		add_account_findings(t);
		if (t->err->kind != ERR_NONE)
			break;
		return vast_request(t, CALL_POLL, "GET", NULL, "/v1/instances/?limit=1");
	default:
		if (vast_check(t, "listing pods") < 0)
			str_addf(&t->op->got.text, "bad: %s\n", t->err->msg);
	}
	err_clear(t->err);
	return vast_done(t);
}

/* ---- keys ---- */

static const struct option_spec options[] = {
	{"api_key", OPTION_TEXT, OPTION_SECRET | OPTION_USER_ONLY | OPTION_REQUIRED, NULL,
	 "the account's API key"},
	{"api_key_command", OPTION_TEXT, OPTION_USER_ONLY, NULL,
	 "shell command that prints the API key"},
	{"api_url", OPTION_TEXT, OPTION_USER_ONLY, "https://console.vast.ai", "root of the API"},
	{"image", OPTION_TEXT, 0, VAST_IMAGE, "image of pods if pod.image is absent"},
	{"verified", OPTION_BOOL, 0, "true", "rent only machines that Vast.ai has verified"},
	{"min_reliability", OPTION_DECIMAL, 0, "0.98", "least reliability of a machine, 0 to 1",
	 NULL, 0, 1},
	{"min_cuda", OPTION_TEXT, 0, NULL,
	 "least CUDA version of the host, as in \"12.8\"; \"none\": any (absent: the default "
	 "image's own)"},
	{"min_inet_mbps", OPTION_INT, 0, "200", "least bandwidth of a machine, each way", NULL, 0,
	 100000},
	{"countries", OPTION_TEXTS, 0, NULL,
	 "rent only in these, as in [\"DE\", \"SE\"] (absent: anywhere)"},
	{"traffic_gb_h", OPTION_DECIMAL, 0, "2",
	 "GB that a pod may receive, and send, in an hour; its price in plans and caps includes "
	 "them",
	 NULL, 0, 10000},
	{"bid", OPTION_MONEY, 0, NULL,
	 "most that a spot GPU may cost an hour (absent: a tenth above the least bid)"},
	{"registry", OPTION_TEXTS, OPTION_USER_ONLY, NULL,
	 "who logs in for private images, as in [\"ghcr.io/me=USER\"]; needs registry_token and "
	 "allow_secrets"},
	{"registry_token", OPTION_TEXT, OPTION_SECRET | OPTION_USER_ONLY, NULL,
	 "token of that user; best one that can only read images"},
	{"allow_secrets", OPTION_BOOL, OPTION_USER_ONLY, "false",
	 "send secrets of job.env and the login of registry to machines whose owners can read "
	 "them"},
	{NULL},
};

/* ---- opening ---- */

static int check_countries(const struct section *s, const char *group, const char *key,
			   struct err *err)
{
	for (size_t i = 0; i < section_count(s, key); i++) {
		const char *id = section_item(s, key, i);
		if (!isupper((unsigned char)id[0]) || !isupper((unsigned char)id[1]) || id[2])
			return err_set(err, ERR_CONFIG,
				       "%s: %s.%s: \"%s\" is not a country's code; codes have two "
				       "capitals, like \"DE\"",
				       section_where(s, key), group, key, id);
	}
	return 0;
}

static int vast_check_conf(const struct section *s, struct mistakes *m, struct err *err)
{
	static const struct key_check checks[] = {
		{"api_url", provider_check_url},
		{"image", provider_check_image},
		{"min_cuda", web_check_cuda_version},
		{"countries", check_countries},
		{"registry", vast_check_logins},
		{"bid", web_check_bid},
		{NULL, NULL},
	};

	return provider_check_keys(checks, s, "providers.vast", m, err);
}

static int vast_open(struct provider **out, const struct section *s, const char *state_dir,
		     struct err *err)
{
	(void)state_dir;
	if (web_check_key("vast", s, err) < 0 || vast_check_conf(s, NULL, err) < 0)
		return -1;
	*out = web_open("vast", s);
	return 0;
}

/* ---- operations ---- */

static struct op *vast_begin(struct provider *p, enum op_kind kind, const struct op_want *want)
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
	case OP_OFFERS: return vast_offers_next(t);
	case OP_RENT: return vast_rent_next(t);
	case OP_INSPECT: return vast_inspect_next(t);
	case OP_LIST: return vast_list_next(t);
	case OP_RELEASE: return vast_release_next(t);
	case OP_BILLING: return vast_billing_next(t);
	case OP_BALANCE: return balance_next(t);
	case OP_LOGS: return vast_logs_next(t);
	case OP_VOLUMES: return vast_done(t); /* burst makes none here */
	case OP_VOLUME:
	case OP_VOLUME_REMOVE:
		return turn_fail(t, ERR_CONFIG,
				 "a volume at Vast.ai is tied to one machine, so burst uses none "
				 "there: remove volume");
	case OP_STAGE:
	case OP_FETCH:
	case OP_VOLUME_LS:
	case OP_VOLUME_SIZE:
	case OP_VOLUME_DELETE:
	case OP_IMAGE: break; /* never called: no files without a pod, images run unchanged */
	}
	return turn_fail(t, ERR_BUG, "no such operation");
}

/* Whether want.id, which comes from the ledger or the user, becomes part of a URL. */
static bool wants_id_in_url(const struct op *op)
{
	return op->kind == OP_INSPECT || op->kind == OP_RELEASE || op->kind == OP_LOGS ||
	       op->kind == OP_BILLING;
}

static enum op_next vast_next(struct op *op, const struct reply *reply, struct call *call,
			      int64_t *wait_ms, struct op_result *result, struct err *err)
{
	struct turn t = {op, reply, call, wait_ms, result, err};

	if (wants_id_in_url(op) && !vast_id_is_sound(op->want->id)) {
		err_set(err, ERR_REFUSED, "\"%s\" is not an id of Vast.ai's", op->want->id);
		return OP_FAILED;
	}
	return advance_operation(&t);
}

static void vast_op_free(struct op *op)
{
	if (!op)
		return;
	op_result_free(&op->got);
	free(op->log_url);
	free(op);
}

INCBIN_TWO(vast_end_script, "providers/http.sh", "providers/vast/end.sh");

const struct provider_ops provider_vast = {
	.abi = PROVIDER_ABI,
	.name = "vast",
	.summary = "other people's GPU machines at Vast.ai; needs an API key",
	.setup = "set VAST_API_KEY, or log in with `vastai set api-key KEY`",
	.end_script = vast_end_script,
	.options = options,
	/* Vast asks for ten seconds; one listing serves all pods */
	.poll_ms = 10000,
	.list_gap_ms = 5000,
	/* Vast's limits are least intervals for each endpoint: 1 s for a list, 4.5 s for a create
	 */
	.calls_per_minute = 40,
	.open = vast_open,
	.close = web_close,
	.account = web_account,
	.begin = vast_begin,
	.next = vast_next,
	.op_free = vast_op_free,
	.check_conf = vast_check_conf,
	.check_wishes = vast_check_wishes,
	.caution = "Vast.ai's machines belong to strangers, who can read and change all that a pod "
		   "holds: code, inputs, outputs",
};
