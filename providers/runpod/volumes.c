/* volumes.c - network volumes: finds one by name, or makes one if requested, in the data centre
 * with most of the wanted GPUs. */
#include "impl.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "base/err.h"

enum {
	SIZE_LEAST_GB = 10,
	SIZE_MOST_GB = 4096,
	FIRST_TB_GB = 1000,
	LOOK_AGAIN_MS = 3000,
	TWIN_AFTER_MS = 2000, /* two machines that create at once see both volumes then */
	LOOKS_MOST = 5,
	KIND_WORTH = 1000000, /* in a score: one wanted kind more is worth more than any stock */
	STOCK_WORTH = 100,
	WISHES_RANKED = 50,
	REGIONS_SHOWN = 6,
	IDS_SHOWN = 4
};
enum { LOOK_FOR_TWIN = 9, REMOVE_OURS, TRY_KEYS };              /* values of op->step */
enum { GB_FIRST_MICROUSD = 70000, GB_BEYOND_MICROUSD = 50000 }; /* a month, STANDARD */

static int64_t price_microusd_month(int64_t size_gb)
{
	int64_t first = MIN(size_gb, (int64_t)FIRST_TB_GB);

	return first * GB_FIRST_MICROUSD + (size_gb - first) * GB_BEYOND_MICROUSD;
}

static int read_volume(const json_t *from, struct volume *out, struct err *err)
{
	const char *id = jsonx_text(from, "id", ""), *region = jsonx_text(from, "dataCenter", "");
	struct volume v = {.size_gb = jsonx_int(from, "size", 0), .used_bytes = -1};

	if (!api_id_is_sound(id) || strlen(region) >= sizeof(v.region))
		return err_set(err, ERR_TRANSIENT, "a volume without a usable id and data centre");
	COPY_TEXT(v.provider, "runpod");
	COPY_TEXT(v.id, id);
	COPY_TEXT(v.name, jsonx_text(from, "name", ""));
	COPY_TEXT(v.region, region);
	/* the faster tier's price depends on the data centre and is not published */
	if (strcmp(jsonx_text(from, "type", "STANDARD"), "HIGH_PERFORMANCE") && v.size_gb > 0 &&
	    v.size_gb <= SIZE_MOST_GB)
		v.price_microusd_month = price_microusd_month(v.size_gb);
	*out = v;
	return 0;
}

/* Adds a page's volumes of this name (NULL: all). 1: there are more pages; 0: none; -1: error. */
static int read_page(struct turn *t, const char *name)
{
	CLEANUP(json_decref) json_t *answer = api_read_object(t, "listing volumes");
	const json_t *list = json_object_get(answer, "networkVolumes"), *item;
	struct volume v;
	size_t i;

	if (!answer)
		return -1;
	if (!json_is_array(list))
		return err_set(t->err, ERR_TRANSIENT, "listing volumes: the answer has no list");
	json_array_foreach (list, i, item) {
		if (name && strcmp(jsonx_text(item, "name", ""), name))
			continue;
		if (read_volume(item, &v, t->err) < 0)
			return -1;
		if (!t->op->pages || !op_result_has_volume(&t->op->got, v.id))
			*op_result_add_volume(&t->op->got) = v;
		if (op_result_check_counts(&t->op->got, t->err) < 0)
			return -1;
	}
	return api_next_page(t, answer, "volumes");
}

int volumes_read_page(struct turn *t)
{
	return read_page(t, NULL);
}

enum op_next volumes_next(struct turn *t)
{
	if (!t->reply)
		return api_request_volumes(t);
	int more = read_page(t, NULL);
	if (more > 0)
		return api_request_volumes(t);
	return more < 0 ? OP_FAILED : api_done(t);
}

/* A volume that does not exist counts as removed: RunPod says so in two ways. */
enum op_next volume_remove_next(struct turn *t)
{
	if (!t->reply)
		return api_request(t, CALL_POLL, "DELETE", NULL, "/network-volumes/%s",
				   t->op->want->id);
	if (api_check(t, "removing a volume") < 0 && t->err->kind != ERR_NOT_FOUND &&
	    !strcasestr(t->err->msg, "nonexistent network volume"))
		return OP_FAILED;
	err_clear(t->err);
	return api_done(t);
}

/* ---- where to make a new one ---- */

static bool has_standard_volumes(const json_t *datacenter)
{
	const json_t *type;
	size_t i;

	json_array_foreach (json_object_get(datacenter, "networkVolumeTypes"), i, type)
		if (json_is_string(type) && !strcmp(json_string_value(type), "STANDARD"))
			return true;
	return false;
}

/* 3 for "HIGH", 2 for "MEDIUM", 1 for "LOW", else 0. */
static int worth_of_stock(const char *availability)
{
	if (!strcmp(availability, "HIGH"))
		return 3;
	if (!strcmp(availability, "MEDIUM"))
		return 2;
	return !strcmp(availability, "LOW") ? 1 : 0;
}

/* Scores a data centre by the wanted GPUs that it has. A volume stays while stock changes, so each
 * kind counts, available or sold out. Among equals, more available ones win, those of earlier
 * wishes first. The wish "none" means CPU pods. 0: it has none of the wanted kinds. */
static int64_t score_datacenter(const struct op *op, const json_t *datacenter)
{
	const char *const *wishes = op->want->volume.gpus;
	int64_t score = 0, kinds = 0, best;
	const json_t *item;
	size_t i;

	for (int w = 0; wishes ? wishes[w] != NULL : w < 1; w++) {
		bool cpu = wishes && cpu_is_meant(wishes[w]);
		bool has_kind = false;
		best = 0;
		json_array_foreach (
			json_object_get(datacenter, cpu ? "cpuAvailability" : "gpuAvailability"), i,
			item) {
			int64_t worth = worth_of_stock(jsonx_text(item, "availability", ""));
			if (wishes && !cpu &&
			    !gpu_is_meant(wishes[w], jsonx_text(item, "id", ""),
					  jsonx_text(item, "name", "")))
				continue;
			has_kind = true;
			best = wishes ? MAX(best, worth) : best + worth;
		}
		kinds += has_kind;
		score += best * STOCK_WORTH - (wishes && best ? MIN(w, WISHES_RANKED) : 0);
	}
	/* then the one whose files can be fetched without a pod */
	return kinds ? kinds * KIND_WORTH + score * 2 +
			       s3_reaches(op->provider, jsonx_text(datacenter, "id", ""))
		     : 0;
}

static bool is_in_wanted_regions(const struct op *op, const char *id)
{
	const char *const *regions = op->want->regions;

	for (int i = 0; regions && regions[i]; i++)
		if (!strcmp(regions[i], id))
			return true;
	return !regions;
}

/* The best data centre's id for a new volume, borrowed from list. NULL with t->err: none. */
static const char *choose_datacenter(struct turn *t, const json_t *list)
{
	const struct op *op = t->op;
	bool configured = section_count(op->provider->conf, "datacenters"),
	     any_takes_volumes = false;
	CLEANUP(str_free) struct str offered = STR_INIT;
	const char *chosen = NULL;
	int64_t best = -1;
	const json_t *item;
	size_t i;

	json_array_foreach (list, i, item) {
		const char *id = jsonx_text(item, "id", "");
		if (!id[0] || strlen(id) >= REGION_MAX || !has_standard_volumes(item) ||
		    !datacenter_is_wanted(op->provider->conf, id))
			continue;
		any_takes_volumes = true;
		if (!is_in_wanted_regions(op, id))
			continue;
		int64_t score = score_datacenter(op, item);
		if (score > best || (score == best && strcmp(id, chosen) < 0)) {
			best = score;
			chosen = id;
		}
	}
	if (best > 0 || (chosen && (configured || op->want->regions || !op->want->volume.gpus)))
		return chosen;
	for (i = 0; op->want->regions && op->want->regions[i] && i < REGIONS_SHOWN; i++)
		str_addf(&offered, "%s%.40s", i ? ", " : "", op->want->regions[i]);
	if (!any_takes_volumes)
		err_set(t->err, ERR_CONFIG, "no data centre%s takes a volume",
			configured ? " of providers.runpod.datacenters" : "");
	else if (offered.len)
		err_set(t->err, ERR_NO_CAPACITY,
			"the GPUs of the config are available in %s, where no volume can be "
			"created",
			str_text(&offered));
	else
		err_set(t->err, ERR_CONFIG,
			"no data centre that takes a volume is known to have a GPU of gpu in "
			"burst.cfg: correct gpu, or name one in "
			"providers.runpod.datacenters");
	return NULL;
}

static int64_t size_to_make_gb(const struct op *op)
{
	return MAX(op->want->volume.size_gb, (int64_t)SIZE_LEAST_GB);
}

/* Chooses a data centre and creates the volume there, after a log line with its price. */
static enum op_next on_datacenters_reply(struct turn *t)
{
	CLEANUP(json_decref) json_t *answer = api_read_object(t, "looking for a data centre");
	const char *name = t->op->want->volume.name, *where;
	char price[32];

	if (!answer)
		return OP_FAILED;
	where = choose_datacenter(t, json_object_get(answer, "dataCenters"));
	if (!where)
		return OP_FAILED;
	log_line(LOG_NOTE,
		 "runpod: creating volume \"%s\", %lld GB, in %s: %s a month until it is removed",
		 name, (long long)size_to_make_gb(t->op), where,
		 money_show(price, sizeof(price), price_microusd_month(size_to_make_gb(t->op))));
	t->op->kept = json_pack("{s:s,s:I,s:s,s:s}", "name", name, "size",
				(json_int_t)size_to_make_gb(t->op), "dataCenter", where, "type",
				"STANDARD");
	return api_request(t, CALL_CREATE, "POST", json_incref(t->op->kept), "/network-volumes");
}

/* ---- one volume ---- */

/* Always -1: several volumes have the name. */
static int fail_ambiguous_name(struct turn *t)
{
	CLEANUP(str_free) struct str ids = STR_INIT;

	for (size_t i = 0; i < t->op->got.volume_count && i < IDS_SHOWN; i++)
		str_addf(&ids, "%s%s in %s", i ? ", " : "", t->op->got.volumes[i].id,
			 t->op->got.volumes[i].region);
	return err_set(t->err, ERR_CONFIG,
		       "%zu volumes are called \"%s\" (%s): name the data centre in "
		       "providers.runpod.datacenters, or remove "
		       "one (`burst volume rm ID`)",
		       t->op->got.volume_count, t->op->want->volume.name, str_text(&ids));
}

static bool are_in_one_datacenter(const struct op *op)
{
	for (size_t i = 1; i < op->got.volume_count; i++)
		if (strcmp(op->got.volumes[i].region, op->got.volumes[0].region))
			return false;
	return true;
}

/* Keeps the volume with the lowest id and warns about the others, which bill too. Machines that
 * made them at the same moment thus use the same one. */
static void keep_lowest_id(struct op *op)
{
	struct volume *all = op->got.volumes, first = all[0];
	CLEANUP(str_free) struct str spare = STR_INIT;

	for (size_t i = 1; i < op->got.volume_count; i++)
		if (strcmp(all[i].id, first.id) < 0)
			first = all[i];
	for (size_t i = 0; i < op->got.volume_count; i++)
		if (strcmp(all[i].id, first.id))
			str_addf(&spare, " `burst volume rm %s`", all[i].id);
	log_line(LOG_WARN,
		 "runpod: %zu volumes are called \"%s\" in %s, and all of them bill: using %s; "
		 "to remove the rest:%s",
		 op->got.volume_count, first.name, first.region, first.id, str_text(&spare));
	all[0] = first;
	op->got.volume_count = 1;
}

/* Reduces the volumes of one name, of which RunPod allows several, to one: the config's data
 * centres may select it. 0: at most one is left; -1: several. */
static int select_one_volume(struct turn *t)
{
	struct op *op = t->op;
	size_t kept = 0;

	if (op->got.volume_count < 2)
		return 0;
	for (size_t i = 0; i < op->got.volume_count; i++)
		if (datacenter_is_wanted(op->provider->conf, op->got.volumes[i].region))
			op->got.volumes[kept++] = op->got.volumes[i];
	op->got.volume_count = kept ? kept : op->got.volume_count;
	if (op->got.volume_count > 1 && are_in_one_datacenter(op))
		keep_lowest_id(op);
	return op->got.volume_count == 1 ? 0 : fail_ambiguous_name(t);
}

/* Reads the list of volumes. Ends with the one of this name, or asks where one could be made. */
static enum op_next on_list_reply(struct turn *t)
{
	const struct op_want *want = t->op->want;
	int more = read_page(t, want->volume.name);

	if (more > 0)
		return api_request_volumes(t);
	if (more < 0 || select_one_volume(t) < 0)
		return OP_FAILED;
	if (t->op->got.volume_count && want->volume.prove_files &&
	    s3_files_ready(t->op->provider, &t->op->got.volumes[0])) {
		t->op->step = TRY_KEYS;
		return s3_try_keys(t, &t->op->got.volumes[0]);
	}
	if (t->op->got.volume_count)
		return api_done(t);
	if (!want->volume.create)
		return turn_fail(
			t, ERR_NOT_FOUND,
			"no volume \"%s\" at RunPod: `burst volume create %s`, or volume.create "
			"= true, creates it",
			want->volume.name, want->volume.name);
	if (want->volume.size_gb > SIZE_MOST_GB) {
		err_set(t->err, ERR_CONFIG, "volume.size_gb = %lld: a volume has at most %d GB",
			(long long)want->volume.size_gb, SIZE_MOST_GB);
		err_about(t->err, "volume.size_gb");
		return OP_FAILED;
	}
	bool cpu = false;
	for (size_t i = 0; want->volume.gpus && want->volume.gpus[i]; i++)
		cpu |= cpu_is_meant(want->volume.gpus[i]);
	t->op->step++;
	return api_request(t, CALL_POLL, "GET", NULL,
			   "/catalog/datacenters?include=GPU_AVAILABILITY%s",
			   cpu ? ",CPU_AVAILABILITY" : "");
}

/* Waits, then looks whether another machine made one too, or whether a lost create made ours. */
static enum op_next on_create_reply(struct turn *t)
{
	CLEANUP(json_decref) json_t *answer = api_read_object(t, "making a volume");
	struct volume v;

	if (answer && read_volume(answer, &v, t->err) == 0) {
		t->op->made = v;
		t->op->step = LOOK_FOR_TWIN;
		return turn_wait(t, TWIN_AFTER_MS);
	}
	if (t->err->kind != ERR_AMBIGUOUS && !answer)
		return OP_FAILED;
	/* the volume may have been made: a blind retry could pay for two */
	t->op->first = *t->err;
	t->op->first.kind = ERR_AMBIGUOUS;
	err_clear(t->err);
	t->op->step++;
	return turn_wait(t, LOOK_AGAIN_MS);
}

/* Lists until the volume whose create got no clear answer appears, at most LOOKS_MOST times. Then
 * fails with op->first, the create's ERR_AMBIGUOUS. */
static enum op_next look_for_lost_create(struct turn *t)
{
	if (!t->reply)
		return api_request_volumes(t);
	int more = read_page(t, t->op->want->volume.name);
	if (more > 0)
		return api_request_volumes(t);
	if (more == 0 && t->op->got.volume_count)
		return select_one_volume(t) < 0 ? OP_FAILED : api_done(t);
	if (++t->op->tries < LOOKS_MOST) {
		err_clear(t->err);
		api_first_page(t->op);
		t->op->got.volume_count = 0;
		return turn_wait(t, LOOK_AGAIN_MS);
	}
	*t->err = t->op->first;
	return OP_FAILED;
}

/* The volume of lowest id in the config's data centres, which every machine chooses; NULL: none. */
static const struct volume *lowest_id_in_wanted_datacenters(const struct op *op)
{
	const struct volume *first = NULL;

	for (size_t i = 0; i < op->got.volume_count; i++) {
		const struct volume *v = &op->got.volumes[i];
		if (datacenter_is_wanted(op->provider->conf, v->region) &&
		    (!first || strcmp(v->id, first->id) < 0))
			first = v;
	}
	return first;
}

/* Uses another machine's volume, `first`, and removes ours: seconds old, empty, without pods. */
static enum op_next request_removal_of_ours(struct turn *t, struct volume first)
{
	struct op *op = t->op;

	log_line(LOG_NOTE,
		 "runpod: volume \"%s\" was made by another machine at the same moment, too: using "
		 "%s in %s, removing ours, %s, which is empty",
		 first.name, first.id, first.region, op->made.id);
	op->got.volumes[0] = first;
	op->got.volume_count = 1;
	op->step = REMOVE_OURS;
	return api_request(t, CALL_POLL, "DELETE", NULL, "/network-volumes/%s", op->made.id);
}

/* Done either way; a failure only warns. */
static enum op_next on_removal_reply(struct turn *t)
{
	if (api_check(t, "removing a volume") < 0 && t->err->kind != ERR_NOT_FOUND)
		log_line(LOG_WARN,
			 "runpod: volume %s is empty and bills, and could not be removed: %s; "
			 "remove it: `burst volume rm %s`",
			 t->op->made.id, t->err->msg, t->op->made.id);
	err_clear(t->err);
	return api_done(t);
}

/* Lists again after a create: another machine may have made a volume of this name since the last
 * listing. Ours counts even if the list lacks it. */
static enum op_next look_for_twin(struct turn *t)
{
	struct op *op = t->op;

	if (!t->reply)
		return api_request_volumes(t);
	int more = read_page(t, op->want->volume.name);
	if (more > 0)
		return api_request_volumes(t);
	if (more < 0) {
		err_clear(t->err);
		op->got.volume_count = 0;
	}
	if (!op_result_has_volume(&op->got, op->made.id))
		*op_result_add_volume(&op->got) = op->made;
	const struct volume *first = lowest_id_in_wanted_datacenters(op);
	if (first && strcmp(first->id, op->made.id))
		return request_removal_of_ours(t, *first);
	return select_one_volume(t) < 0 ? OP_FAILED : api_done(t);
}

enum op_next volume_next(struct turn *t)
{
	switch (t->op->step) {
	case 0: t->op->step++; return api_request_volumes(t);
	case 1: return on_list_reply(t);
	case 2: t->op->step++; return on_datacenters_reply(t);
	case 3: return on_create_reply(t);
	case LOOK_FOR_TWIN: return look_for_twin(t);
	case REMOVE_OURS: return on_removal_reply(t);
	case TRY_KEYS:
		return s3_check_keys_reply(t->reply, &t->op->got.volumes[0], t->err) < 0
			       ? OP_FAILED
			       : api_done(t);
	default: return look_for_lost_create(t);
	}
}
