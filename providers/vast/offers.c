/* offers.c - which machines of Vast.ai's market a pod can run on, and why none of them fits */
#include <math.h>
#include <stdlib.h>

#include "base/gpus.h"
#include "base/jsonx.h"
#include "impl.h"

enum {
	MONTH_H = 720, /* of 30 days: the dearer reading of a price for a month */
	OFFERS_ASKED = 500,
	OFFERS_OF_A_WISH = 40,
	GPUS_MOST = 64,
	MB_PER_GB = 1000,
	MIB_PER_GIB = 1024,
	WISHES_SHOWN = 6
};
/* Vast's bounds of a bid (OpenAPI file, x-input-validation of create_instance) */
#define BID_LEAST INT64_C(1000)
#define BID_MOST  INT64_C(128000000)
#define DATE_MOST 4e9

/* ---- names ---- */

/* Vast's names of cards for which the catalogue has other names, or several by their memory. */
static const struct {
	const char *vast, *name;
	int least_gb;
} cards[] = {
	{"A100 SXM4", "A100 80GB SXM", 60},
	{"A100 SXM4", "A100 40GB", 0},
	{"A100 PCIE", "A100 80GB PCIe", 60},
	{"A100 PCIE", "A100 40GB", 0},
	{"Tesla V100", "V100 32GB", 24},
	{"Tesla V100", "V100 16GB", 0},
	{"Tesla T4", "T4", 0},
	{"H100 PCIE", "H100 PCIe", 0},
	{"RTX PRO 6000 WS", "RTX PRO 6000", 0},
	{"RTX PRO 6000 S", "RTX PRO 6000", 0},
	{"RTX 6000Ada", "RTX 6000 Ada", 0},
	{"RTX 5000Ada", "RTX 5000 Ada", 0},
	{"RTX 4000Ada", "RTX 4000 Ada", 0},
	{"RTX 2000Ada", "RTX 2000 Ada", 0},
	{"H200", "H200 SXM", 0},
};

void vast_set_gpu_name(char to[GPU_MAX], const char *vast_name, int vram_gb)
{
	const struct gpu *known;

	for (size_t i = 0; i < ARRAY_LEN(cards); i++)
		if (!strcmp(cards[i].vast, vast_name) && vram_gb >= cards[i].least_gb) {
			copy_text(to, GPU_MAX, cards[i].name);
			return;
		}
	known = gpu_find(vast_name);
	copy_text(to, GPU_MAX, known ? known->name : vast_name);
}

void vast_set_region(char to[REGION_MAX], const char *geolocation)
{
	const char *comma = strrchr(geolocation, ',');

	copy_text(to, REGION_MAX, comma ? comma + 1 + strspn(comma + 1, " ") : geolocation);
}

int64_t vast_disk_gb(int64_t wanted_gb)
{
	return MAX(wanted_gb ? wanted_gb : VAST_DISK_GB, (int64_t)VAST_DISK_LEAST_GB);
}

int vast_vram_gb(const json_t *from)
{
	int64_t mb = jsonx_bounded(from, "gpu_ram", 0, INT64_C(10000000));
	int gb = (int)((mb + MIB_PER_GIB / 2) / MIB_PER_GIB);
	char name[GPU_MAX];

	vast_set_gpu_name(name, jsonx_text(from, "gpu_name", ""), gb);
	const struct gpu *known = gpu_find(name);
	return known ? known->vram_gb : gb;
}

/* Splits a wish into name and count. -1: it is not the name of a GPU. */
static int count_of_wish(const char *wish)
{
	char name[GPU_MAX];
	int count = 1;

	return gpu_parse(wish, name, sizeof(name), &count) ? count : -1;
}

static bool has_wishes(const struct op_want *want)
{
	return want->offers.gpus && want->offers.gpus[0];
}

static bool wants_gpu(const char *wish)
{
	return strcasecmp(wish, GPU_NONE) != 0;
}

/* ---- offer ids ---- */

/* Writes what vast_ask_read() reads. -1: it does not fit. */
static int ask_write(const struct ask *ask, char *to, size_t room)
{
	int n = snprintf(to, room, "%lld/%lld/%lld", ask->id, (long long)ask->bid_microusd_h,
			 (long long)ask->end_s);

	return n > 0 && (size_t)n < room ? 0 : -1;
}

int vast_ask_read(const char *id, struct ask *out)
{
	long long ask, bid, end;
	int used = 0;

	if (sscanf(id, "%18lld/%18lld/%18lld%n", &ask, &bid, &end, &used) != 3 || id[used] ||
	    ask <= 0 || bid < 0 || end < 0)
		return -1;
	*out = (struct ask){ask, bid, end};
	return 0;
}

/* ---- what is searched for ---- */

static void add_filter(json_t *body, const char *key, const char *operator, json_t * value)
{
	json_object_set_new(body, key, json_pack("{s:o}", operator, value));
}

static bool has_text(const json_t *list, const char *text)
{
	const json_t *item;
	size_t i;

	json_array_foreach (list, i, item)
		if (!strcmp(json_string_value(item), text))
			return true;
	return false;
}

static void add_name(json_t *names, const char *name)
{
	if (!has_text(names, name))
		json_array_append_new(names, json_string(name));
}

/* Adds Vast's names of this card of the catalogue. */
static void add_names_of_card(json_t *names, const struct gpu *card)
{
	bool named = false;

	for (size_t i = 0; i < ARRAY_LEN(cards); i++)
		if (!strcmp(cards[i].name, card->name)) {
			add_name(names, cards[i].vast);
			named = true;
		}
	if (!named)
		add_name(names, card->name);
}

/* Adds Vast's names of all cards that satisfy the wish. A card that the catalogue lacks may still
 * be on the market, under the name that the user gives. */
static void add_names_of_wish(json_t *names, const char *wish)
{
	size_t count;
	const struct gpu *catalog = gpu_catalog(&count);
	char name[GPU_MAX];
	int gpus;

	for (size_t i = 0; i < count; i++)
		if (gpu_satisfies(wish, catalog[i].name))
			add_names_of_card(names, &catalog[i]);
	if (!gpu_find(wish) && gpu_parse(wish, name, sizeof(name), &gpus))
		add_name(names, name);
}

/* Filters by the wanted cards and their number. */
static void add_gpu_filters(json_t *body, const struct op_want *want)
{
	json_t *names = json_array(), *counts = json_array();

	for (size_t i = 0; has_wishes(want) && want->offers.gpus[i]; i++) {
		if (!wants_gpu(want->offers.gpus[i]))
			continue;
		add_names_of_wish(names, want->offers.gpus[i]);
		json_array_append_new(counts, json_integer(count_of_wish(want->offers.gpus[i])));
	}
	if (json_array_size(names)) {
		add_filter(body, "gpu_name", "in", names);
		add_filter(body, "num_gpus", "in", counts);
		return;
	}
	json_decref(names);
	json_decref(counts);
	add_filter(body, "num_gpus", "eq", json_integer(1));
	/* burst's images are built for CUDA: another maker's GPU must be requested by name */
	add_filter(body, "gpu_arch", "eq", json_string("nvidia"));
}

/* The least CUDA version that the host must support; NULL: any. */
static const char *least_cuda_version(const struct op *op)
{
	const char *image = op->want->offers.image;

	return web_least_cuda(op->provider->conf,
			      !image || !strcmp(image, VAST_IMAGE) ? VAST_IMAGE_CUDA : NULL,
			      op->want->least_cuda);
}

/* Filters by what a host must have and be. */
static void add_host_filters(json_t *body, const struct op *op)
{
	const struct section *conf = op->provider->conf;
	const struct op_want *want = op->want;
	const char *cuda = least_cuda_version(op);
	int64_t mbps = section_int(conf, "min_inet_mbps");

	if (section_bool(conf, "verified"))
		add_filter(body, "verified", "eq", json_true());
	add_filter(body, "rentable", "eq", json_true());
	add_filter(body, "reliability", "gte", json_real(section_decimal(conf, "min_reliability")));
	add_filter(body, "direct_port_count", "gte", json_integer(1)); /* for sshd */
	add_filter(body, "disk_space", "gte", json_integer(vast_disk_gb(want->offers.disk_gb)));
	if (mbps) {
		add_filter(body, "inet_down", "gte", json_integer(mbps));
		add_filter(body, "inet_up", "gte", json_integer(mbps));
	}
	if (cuda)
		add_filter(body, "cuda_max_good", "gte", json_real(strtod(cuda, NULL)));
	if (want->offers.cpu)
		add_filter(body, "cpu_cores_effective", "gte", json_integer(want->offers.cpu));
	if (want->offers.memory_gb)
		add_filter(body, "cpu_ram", "gte",
			   json_integer(want->offers.memory_gb * MB_PER_GB));
	if (section_count(conf, "countries")) {
		json_t *list = json_array();
		for (size_t i = 0; i < section_count(conf, "countries"); i++)
			json_array_append_new(list,
					      json_string(section_item(conf, "countries", i)));
		add_filter(body, "geolocation", "in", list);
	}
}

static enum op_next request_offers(struct turn *t, bool bid)
{
	json_t *body = json_object();

	json_object_set_new(body, "type", json_string(bid ? "bid" : "on-demand"));
	json_object_set_new(body, "limit", json_integer(OFFERS_ASKED));
	json_object_set_new(body, "order", json_pack("[[s,s]]", "dph_total", "asc"));
	json_object_set_new(body, "allocated_storage",
			    json_integer(vast_disk_gb(t->op->want->offers.disk_gb)));
	add_gpu_filters(body, t->op->want);
	add_host_filters(body, t->op);
	return vast_request(t, CALL_POLL, "POST", body, "/v0/bundles/");
}

/* ---- what is found ---- */

/* The first wish that this card satisfies, 0 without wishes; -1: none. */
static int index_of_wish(const struct op_want *want, const struct offer *offer)
{
	if (!has_wishes(want))
		return 0;
	for (int i = 0; want->offers.gpus[i]; i++)
		if (count_of_wish(want->offers.gpus[i]) == offer->gpus &&
		    wants_gpu(want->offers.gpus[i]) &&
		    gpu_satisfies(want->offers.gpus[i], offer->gpu))
			return i;
	return -1;
}

static int offers_of_wish(const struct op *op, int wish, bool spot)
{
	int count = 0;

	for (size_t i = 0; i < op->got.offer_count; i++)
		count += op->got.offers[i].wish == wish && op->got.offers[i].spot == spot;
	return count;
}

/* A GB's price, with the bounds of dollars. */
static double usd_of(const json_t *ask, const char *key)
{
	return (double)web_microusd(ask, key) / 1e6;
}

/* What disk and traffic cost an hour. Traffic is an estimate: providers.vast.traffic_gb_h. */
static int64_t extras_microusd_h(const struct op *op, const json_t *ask)
{
	double gb = (double)vast_disk_gb(op->want->offers.disk_gb),
	       traffic_gb = section_decimal(op->provider->conf, "traffic_gb_h");
	double usd = usd_of(ask, "storage_cost") * gb / MONTH_H +
		     (usd_of(ask, "inet_up_cost") + usd_of(ask, "inet_down_cost")) * traffic_gb;

	return (int64_t)ceil(MIN(usd * 1e6, (double)VENDOR_MOST_MICROUSD));
}

/* The bid for an interruptible machine; 0: the config's bid is too low for it. */
static int64_t bid_for(const struct op *op, const json_t *ask, int gpus)
{
	const struct section *conf = op->provider->conf;
	int64_t floor = MAX(web_microusd(ask, "min_bid"), BID_LEAST);
	int64_t bid =
		section_has(conf, "bid") ? section_int(conf, "bid") * gpus : floor + floor / 10;

	return bid >= floor && bid <= BID_MOST ? bid : 0;
}

/* The machine's price without disk and traffic; 0: it has none, or the bid is too low. */
static int64_t machine_microusd_h(const struct op *op, const json_t *ask, int gpus, bool bid)
{
	int64_t total = web_microusd(ask, "dph_total"), base = web_microusd(ask, "dph_base");

	if (bid)
		return bid_for(op, ask, gpus);
	return base ? base : total;
}

static void note_lowest_price(struct op *op, int64_t price_microusd_h)
{
	int64_t *least = &op->got.floor_microusd_h;

	*least = *least ? MIN(*least, price_microusd_h) : price_microusd_h;
}

/* "16 cores, 64 GB, disk, traffic" */
static void set_with(struct offer *offer, const json_t *ask)
{
	long long cores = jsonx_bounded(ask, "cpu_cores_effective", 0, 10000),
		  gb = jsonx_bounded(ask, "cpu_ram", 0, INT64_C(100000000)) / MB_PER_GB;

	snprintf(offer->with, sizeof(offer->with), "%lld cores, %lld GB, disk, traffic", cores, gb);
}

/* Adds the offer of this machine if it is wanted. One with an absurd price is left out. */
static void add_ask(struct op *op, const json_t *from, bool bid)
{
	struct offer offer = {.provider = "vast", .spot = bid};
	struct ask ask = {.id = jsonx_int(from, "id", 0)};
	double end_s = jsonx_number(from, "end_date", 0);

	offer.gpus = (int)jsonx_bounded(from, "num_gpus", 0, GPUS_MOST + 1);
	offer.vram_gb = vast_vram_gb(from);
	vast_set_gpu_name(offer.gpu, jsonx_text(from, "gpu_name", ""), offer.vram_gb);
	offer.wish = index_of_wish(op->want, &offer);
	if (ask.id <= 0 || !offer.gpu[0] || offer.gpus < 1 || offer.gpus > GPUS_MOST ||
	    offer.wish < 0 || offer.vram_gb < op->want->offers.vram_gb)
		return;
	int64_t machine = machine_microusd_h(op, from, offer.gpus, bid);
	if (!machine)
		return;
	offer.price_microusd_h = machine + extras_microusd_h(op, from);
	if (offer.price_microusd_h > VENDOR_MOST_MICROUSD)
		return;
	note_lowest_price(op, offer.price_microusd_h);
	if (!jsonx_bool(from, "rentable", true) ||
	    offers_of_wish(op, offer.wish, bid) >= OFFERS_OF_A_WISH)
		return;
	ask.bid_microusd_h = bid ? machine : 0;
	ask.end_s = end_s > 0 && end_s < DATE_MOST ? (int64_t)end_s : 0;
	vast_set_region(offer.region, jsonx_text(from, "geolocation", ""));
	set_with(&offer, from);
	if (ask_write(&ask, offer.id, sizeof(offer.id)) == 0)
		*op_result_add_offer(&op->got) = offer;
}

static int read_offers(struct turn *t, bool bid)
{
	CLEANUP(json_decref) json_t *answer = vast_read_object(t, "offers");
	const json_t *list = json_object_get(answer, "offers"), *item;
	size_t i;

	if (!answer)
		return -1;
	if (!json_is_array(list))
		return err_set(t->err, ERR_TRANSIENT, "offers: the answer has no list");
	json_array_foreach (list, i, item)
		add_ask(t->op, item, bid);
	return 0;
}

/* ---- without offers ---- */

/* The largest memory among the wanted cards; INT64_MAX: one of them is unknown, or any will do. */
static int64_t most_vram_gb(const struct op_want *want)
{
	int64_t most = 0;

	for (size_t i = 0; has_wishes(want) && want->offers.gpus[i]; i++) {
		const struct gpu *known = gpu_find(want->offers.gpus[i]);
		if (!known && wants_gpu(want->offers.gpus[i]))
			return INT64_MAX;
		most = MAX(most, (int64_t)(known ? known->vram_gb : 0));
	}
	return has_wishes(want) ? most : INT64_MAX;
}

/* Appends "RTX 5091 (did you mean RTX 5090?), L40S". */
static void append_wishes(struct str *to, const char *const *wishes)
{
	for (size_t i = 0; wishes && wishes[i] && i < WISHES_SHOWN; i++) {
		const char *near = gpu_find(wishes[i]) ? NULL : gpu_nearest(wishes[i]);
		if (!wants_gpu(wishes[i]))
			continue;
		str_addf(to, "%s%.40s", to->len ? ", " : "", wishes[i]);
		if (near)
			str_addf(to, " (did you mean \"%s\"?)", near);
	}
}

/* Always OP_FAILED, with the reason. */
static enum op_next fail_without_offers(struct turn *t)
{
	const struct op_want *want = t->op->want;
	int64_t most_gb = most_vram_gb(want);
	CLEANUP(str_free) struct str wished = STR_INIT;

	if (most_gb < want->offers.vram_gb) {
		err_set(t->err, ERR_CONFIG,
			"this job needs a GPU with %d GB of memory; those in gpu have %lld at most",
			want->offers.vram_gb, (long long)most_gb);
		err_about(t->err, "gpu");
		return OP_FAILED;
	}
	append_wishes(&wished, want->offers.gpus);
	return turn_fail(t, ERR_NO_CAPACITY,
			 "no %s is available at Vast.ai now on a machine that providers.vast "
			 "admits (verified, min_reliability, min_cuda, min_inet_mbps, countries)",
			 wished.len ? str_text(&wished) : "GPU");
}

/* Adds lines to result.text about wishes that are misspelt. */
static void add_remarks(struct op *op)
{
	const char *const *wishes = op->want->offers.gpus;

	for (int i = 0; wishes && wishes[i]; i++) {
		const char *near = gpu_find(wishes[i]) ? NULL : gpu_nearest(wishes[i]);
		if (near && wants_gpu(wishes[i]) && !offers_of_wish(op, i, false) &&
		    !offers_of_wish(op, i, true))
			str_addf(&op->got.text, "no \"%.60s\" at Vast.ai: did you mean \"%s\"?\n",
				 wishes[i], near);
	}
}

/* ---- wishes that can never be met ---- */

static int check_gpu_names(const struct section *conf, const struct op_want *want, struct err *err)
{
	bool none = false, some = false;

	(void)conf;
	for (size_t i = 0; has_wishes(want) && want->offers.gpus[i]; i++) {
		const char *wish = want->offers.gpus[i];
		none = none || !wants_gpu(wish);
		some = some || wants_gpu(wish);
		if (count_of_wish(wish) < 0) {
			err_set(err, ERR_CONFIG,
				"gpu \"%s\": a name, or a name and how many as in \"L40S:2\"",
				wish);
			return err_about(err, "gpu");
		}
	}
	if (none && !some) {
		err_set(err, ERR_CONFIG,
			"gpu = [\"none\"]: Vast.ai rents no pods without a GPU: name one in gpu");
		return err_about(err, "gpu");
	}
	return 0;
}

static int check_volume(const struct section *conf, const struct op_want *want, struct err *err)
{
	(void)conf;
	if (!want->offers.volume.name[0])
		return 0;
	err_set(err, ERR_CONFIG,
		"volume \"%s\": a volume at Vast.ai is tied to one machine, so burst uses none "
		"there: remove volume",
		want->offers.volume.name);
	return err_about(err, "volume");
}

/* The hosts are strangers with root on their machines. */
static int check_secrets(const struct section *conf, const struct op_want *want, struct err *err)
{
	if (!want->secrets || !want->secrets[0] || section_bool(conf, "allow_secrets"))
		return 0;
	err_set(err, ERR_CONFIG,
		"job.env: %s is a secret, which the owner of a machine at Vast.ai can read: remove "
		"it, or set providers.vast.allow_secrets = true in your own file",
		want->secrets[0]);
	return err_about(err, "job.env");
}

/* Secrets may be missing yet: the token is checked with the first request. */
static int check_login(const struct section *conf, const struct op_want *want, struct err *err)
{
	CLEANUP(str_wipe) struct str login = STR_INIT;

	if (section_bool(conf, "allow_secrets") ||
	    vast_add_login(&login, conf, vast_image(conf, want->offers.image), err) == 0)
		return 0;
	return err_about(err, "pod.image");
}

int vast_check_wishes(const struct section *conf, const struct op_want *want, struct mistakes *m,
		      struct err *err)
{
	static want_check *const checks[] = {check_gpu_names, check_volume, check_secrets,
					     check_login, NULL};

	return provider_judge_wishes(checks, conf, want, m, err);
}

/* Steps: machines on demand, then, for spot, the same with their lowest bids. */
enum op_next vast_offers_next(struct turn *t)
{
	struct op *op = t->op;
	const struct section *conf = op->provider->conf;
	CLEANUP(str_wipe) struct str login = STR_INIT;

	switch (op->step++) {
	case 0:
		if (vast_check_wishes(conf, op->want, NULL, t->err) < 0 ||
		    vast_add_login(&login, conf, vast_image(conf, op->want->offers.image), t->err) <
			    0)
			return OP_FAILED;
		return request_offers(t, false);
	case 1:
		if (read_offers(t, false) < 0)
			return OP_FAILED;
		if (op->want->offers.spot)
			return request_offers(t, true);
		break;
	default:
		if (read_offers(t, true) < 0)
			return OP_FAILED;
	}
	if (!op->got.offer_count)
		return fail_without_offers(t);
	add_remarks(op);
	return vast_done(t);
}
