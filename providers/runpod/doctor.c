/* doctor.c - the checks of `burst doctor`: whether RunPod accepts the key, the balance, whether
 * volumes' files can be reached. */
#include "impl.h"

#include "base/clock.h"
#include "base/jsonx.h"

static const char myself[] = "query{myself{clientBalance currentSpendPerHr spendLimit}}";

static void add_spending(struct str *to, const json_t *me)
{
	int64_t spent = api_microusd(me, "currentSpendPerHr"),
		limit = api_microusd(me, "spendLimit");
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

static void add_purse(struct op *op, const json_t *me)
{
	double balance = jsonx_number(me, "clientBalance", 0);

	if (!json_is_number(json_object_get(me, "clientBalance")) || balance > 1e9) {
		str_add(&op->got.text, "warn: the balance is not reported\n");
		return;
	}
	/* a debt counts as no balance */
	op->got.balance_microusd = balance > 0 ? (int64_t)(balance * 1e6) : 0;
	if (op->got.balance_microusd <= 0)
		str_add(&op->got.text, "bad: the account has no credit\n");
	add_spending(&op->got.text, me);
}

enum op_next balance_next(struct turn *t)
{
	CLEANUP(json_decref) json_t *whole = NULL;

	if (!t->reply)
		return api_request_graphql(t, CALL_POLL, myself, NULL);
	const json_t *data = api_data(t, "balance", &whole);
	if (data)
		add_purse(t->op, json_object_get(data, "myself"));
	else if (t->reply->failed || t->reply->status != 410) /* 410: RunPod has removed GraphQL */
		return OP_FAILED;
	str_free(&t->op->got.text);
	return api_done(t);
}

static void check_key(struct turn *t)
{
	struct str *text = &t->op->got.text;

	if (api_check(t, "asking for the pods") == 0)
		str_addf(text, "ok: %s accepts the key\n", t->op->provider->root);
	else
		str_addf(text, "bad: %s\n", t->err->msg);
}

/* The first volume whose files the keys can reach. */
static const struct volume *volume_to_try(const struct op *op)
{
	for (size_t i = 0; i < op->got.volume_count; i++)
		if (s3_reaches(op->provider, op->got.volumes[i].region))
			return &op->got.volumes[i];
	return NULL;
}

static enum op_next try_files(struct turn *t)
{
	struct op *op = t->op;
	const struct volume *v;

	err_clear(t->err);
	if (volumes_read(t) < 0)
		err_clear(t->err);
	v = volume_to_try(op);
	if (v)
		return s3_try_keys(t, v);
	str_add(&op->got.text, "ok: keys for files of a volume without a pod are set (there is no "
			       "volume to try them on)\n");
	return api_done(t);
}

static void check_files(struct turn *t)
{
	struct op *op = t->op;
	const struct volume *v = volume_to_try(op);

	if (s3_keys_tried(t->reply, v, t->err) < 0)
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

static void no_files(struct op *op)
{
	str_add(&op->got.text, "warn: no RUNPOD_S3_ACCESS_KEY and RUNPOD_S3_SECRET_KEY: a pod "
			       "must run until its last file is fetched\n");
}

/* A refused key is a finding, not a failure. Steps: pods, balance, volumes, files of one volume. */
enum op_next check_next(struct turn *t)
{
	struct op *op = t->op;
	CLEANUP(json_decref) json_t *whole = NULL;

	if (op->step++ == 0)
		return api_request_pods(t);
	if (op->step == 4)
		return try_files(t);
	if (op->step == 5) {
		check_files(t);
		return api_done(t);
	}
	if (op->step == 2) {
		check_key(t);
		if (t->err->kind == ERR_NONE)
			return api_request_graphql(t, CALL_POLL, myself, NULL);
	} else {
		const json_t *data = api_data(t, "balance", &whole);
		if (data)
			add_purse(op, json_object_get(data, "myself"));
		else
			str_addf(&op->got.text, "warn: %s\n", t->err->msg);
	}
	bool refused = op->step == 2; /* the API refused: volumes cannot be listed either */
	err_clear(t->err);
	if (s3_is_configured(op->provider) && !refused) {
		op->step = 3;
		api_first_page(op);
		return api_request_volumes(t);
	}
	if (s3_is_configured(op->provider))
		str_add(&op->got.text, "ok: keys for files of a volume without a pod are set\n");
	else
		no_files(op);
	return api_done(t);
}
