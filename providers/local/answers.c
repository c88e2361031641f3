/* answers.c - turns what `burst local-cloud` prints into results. */
#include "local.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "translator.h"
#include "wire.h"

/* Repeats the pod's offer for each requested card. */
static void spread_over_cards(const struct op *op, struct op_result *result)
{
	const struct provider *p = op->provider;
	struct offer *all = xcalloc(p->card_count * result->offer_count + 1, sizeof(*all));
	size_t count = 0;

	for (size_t i = 0; i < result->offer_count; i++)
		for (size_t k = 0; k < p->card_count; k++) {
			const struct card *card = &p->cards[k];
			int wish = local_wish_of(card->gpu, op->want->offers.gpus);
			if (result->offers[i].spot || wish < 0 ||
			    card->vram_gb < op->want->offers.vram_gb)
				continue;
			all[count] = result->offers[i];
			COPY_TEXT(all[count].gpu, card->gpu);
			all[count].gpus = 1;
			all[count].vram_gb = card->vram_gb;
			all[count].price_microusd_h = card->price_microusd_h;
			all[count++].wish = wish;
		}
	result->floor_microusd_h = INT64_MAX;
	for (size_t k = 0; k < p->card_count; k++)
		if (local_wish_of(p->cards[k].gpu, op->want->offers.gpus) >= 0)
			result->floor_microusd_h =
				MIN(result->floor_microusd_h, p->cards[k].price_microusd_h);
	free(result->offers);
	result->offers = all;
	result->offer_count = count;
}

static int read_offers(const struct op *op, const json_t *from, struct op_result *result,
		       struct err *err)
{
	const json_t *list = json_object_get(from, "offers"), *item;
	size_t i;

	if (!json_is_array(list))
		return err_set(err, ERR_BUG, "offers: no list");
	result->offers = xcalloc(json_array_size(list), sizeof(*result->offers));
	struct local_conf *conf = &op->provider->conf;
	conf->sandbox_works = jsonx_bool(from, "sandbox_works", false);
	bool cheap_spot = op->want->offers.spot && conf->spot_price_microusd_h >= 0;
	result->floor_microusd_h =
		cheap_spot ? MIN(conf->price_microusd_h, conf->spot_price_microusd_h)
			   : conf->price_microusd_h;
	json_array_foreach (list, i, item) {
		struct offer *offer = &result->offers[result->offer_count++];
		COPY_TEXT(offer->provider, LOCAL_NAME);
		COPY_TEXT(offer->id, jsonx_text(item, "id", ""));
		COPY_TEXT(offer->gpu, jsonx_text(item, "gpu", "none"));
		COPY_TEXT(offer->region, jsonx_text(item, "region", ""));
		COPY_TEXT(offer->stock, jsonx_text(item, "stock", ""));
		offer->pods_max = (int)jsonx_bounded(item, "pods_max", 0, 1000);
		offer->gpus = (int)jsonx_int(item, "gpus", 0);
		offer->vram_gb = (int)jsonx_int(item, "vram_gb", 0);
		offer->spot = jsonx_bool(item, "spot", false);
		offer->price_microusd_h = jsonx_int(item, "price", 0);
		offer->wish = MAX(local_wish_of(op->provider->conf.gpu, op->want->offers.gpus), 0);
	}
	if (op->provider->card_count)
		spread_over_cards(op, result);
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

/* Reads the last line: a sanitizer or the loader may have printed before it. */
static json_t *last_line(const struct str *text, struct err *err)
{
	size_t end = text->len;

	while (end && text->s[end - 1] == '\n')
		end--;
	const char *newline = end ? memrchr(text->s, '\n', end) : NULL;
	size_t start = newline ? (size_t)(newline - text->s) + 1 : 0;
	return jsonx_parse(end ? text->s + start : "", end - start, err);
}

/* The child ended without an answer. A rent may already have started a pod. */
static int no_answer(const struct op *op, const char *what, struct err *err)
{
	char why[sizeof(err->msg)];

	COPY_TEXT(why, what);
	return err_set(err, op->kind == OP_RENT ? ERR_AMBIGUOUS : ERR_TRANSIENT,
		       "local %s: no answer: %s", local_verbs[op->kind].word, why);
}

static int read_failure(const struct op *op, const struct reply *reply, struct err *err)
{
	struct err unreadable = {0};
	CLEANUP(json_decref) json_t *said = last_line(&reply->head, &unreadable);

	if (said && reply->status == 1 && local_wire_read_error(said, err))
		return -1;
	if (reply->status > 128) {
		CLEANUP(free_text)
		char *what = xasprintf("killed by signal %d", reply->status - 128);
		return no_answer(op, what, err);
	}
	CLEANUP(str_free) struct str shown = STR_INIT;
	str_addf(&shown, "exit code %d: ", reply->status);
	str_add_printable(&shown, str_text(&reply->head), reply->head.len, 200);
	return no_answer(op, str_text(&shown), err);
}

int local_read_reply(const struct op *op, const struct reply *reply, struct op_result *result,
		     struct err *err)
{
	if (reply->failed && op->kind == OP_RENT && reply->was_sent)
		return no_answer(op, reply->err.msg, err);
	if (reply->failed) {
		*err = reply->err;
		return err_wrap(err, "local %s", local_verbs[op->kind].word);
	}
	if (reply->status != 0)
		return read_failure(op, reply, err);

	struct err why = {0};
	CLEANUP(json_decref)
	json_t *said = op->kind == OP_FETCH
			       ? last_line(&reply->head, &why)
			       : jsonx_parse(str_text(&reply->body), reply->body.len, &why);
	if (!said || read_answer(op, said, result, &why) < 0) {
		if (op->kind == OP_RENT)
			return no_answer(op, why.msg, err);
		*err = why;
		return err_wrap(err, "local %s", local_verbs[op->kind].word);
	}
	return 0;
}

void local_forgotten(const struct op *op, struct op_result *result)
{
	result->pods = xcalloc(1, sizeof(*result->pods));
	result->pod_count = 1;
	COPY_TEXT(result->pods[0].id, op->want->id);
	result->pods[0].state = POD_STATE_GONE;
	COPY_TEXT(result->pods[0].detail, "no such pod");
}
