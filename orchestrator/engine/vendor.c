/* vendor.c - the core's wishes that are operations of a provider: what is asked, and what the
 * answer means as an event. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "base/log.h"
#include "base/path.h"
#include "impl.h"
#include "past.h"
#include "pull.h"

enum {
	VOLUME_LOCK_MS = 300,
	LOG_FRESH_MS = 5000,
	WATCH_LOG_MS = 10 * 1000, /* for the display: from the create on, and between two looks */
	LAST_LOG_MS = 4000 /* less than the proof that it is gone takes */,
	FILES_AT_ONCE = 16,
	REGIONS_MOST = 64
};

struct asked { /* one operation under way, with what its want points to */
	struct engine *e;
	struct asked *next, **link;
	struct asked *next_file; /* in e->file_first's row */
	void (*file_done)(void *ctx, struct op_result *result, const struct err *err);
	int provider, pod;
	uint32_t segment;
	unsigned turn; /* of its file, when that was asked for */
	int64_t asked_at;
	struct op_want want;
	struct env_pair env[24];
	size_t env_count;
	char *local, *path, **ids;
	char **regions; /* NULL-terminated, or NULL */
	char image[IMAGE_MAX];
	int lock; /* while a volume may be made; 0: none */
	/* of a lock; of a log before a release: when that is not waited for any longer */
	struct timer *timer;
	bool released; /* of a log: the release does not wait for it any more */
	bool told;     /* of an image: the log has reported that it is built */
	struct caller_op *op;
};

static struct asked *asked_new(struct engine *e, int provider, int pod)
{
	struct asked *a = xcalloc(1, sizeof(*a));

	a->e = e;
	a->provider = provider;
	a->pod = pod;
	a->asked_at = clock_boot_ms();
	a->next = e->asked;
	a->link = &e->asked;
	if (a->next)
		a->next->link = &a->next;
	e->asked = a;
	return a;
}

static void asked_free(struct asked *a)
{
	*a->link = a->next;
	if (a->next)
		a->next->link = a->link;
	for (size_t i = 0; i < a->env_count; i++) {
		if (a->env[i].secret)
			explicit_bzero(a->env[i].value, strlen(a->env[i].value));
		free(a->env[i].name);
		free(a->env[i].value);
	}
	free(a->local);
	free(a->path);
	core_ids_free(a->ids);
	for (char **r = a->regions; r && *r; r++)
		free(*r);
	free(a->regions);
	if (a->lock)
		close(a->lock);
	loop_untimer(a->timer);
	free(a);
}

void vendor_forget(struct engine *e)
{
	memset(e->looks, 0, sizeof(e->looks));
	while (e->asked)
		asked_free(e->asked);
}

static struct caller_op *begin(struct asked *a, enum op_kind kind,
			       void (*done)(void *ctx, struct op_result *result,
					    const struct err *err))
{
	const struct engine_provider *v = &a->e->setup->providers[a->provider];

	return caller_begin(a->e->caller, v, kind, &a->want, done, a);
}

/* ---- offers and the volume ---- */

/* Once: offers are asked for again and again. */
static void tell_remarks(struct engine *e, int provider, const char *text)
{
	if (!*text || e->remarked[provider])
		return;
	e->remarked[provider] = true;
	while (*text) {
		size_t n = strcspn(text, "\n");
		engine_log(e, LOG_WARN, "%s: %.*s", e->setup->providers[provider].ops->name, (int)n,
			   text);
		text += n + (text[n] == '\n');
	}
}

static void offers_done(void *ctx, struct op_result *result, const struct err *err)
{
	struct asked *a = ctx;
	struct event ev = {.type = EV_OFFERS, .provider = a->provider};
	struct offer_past *past = NULL;
	const struct past_image of = {a->e->setup->image, a->e->needs ? a->e->needs->setup : NULL};
	const struct provider_ops *ops = a->e->setup->providers[a->provider].ops;
	struct err off = {0};

	if (result && caller_check_clock(a->e->caller, ops, &off) < 0) {
		err = &off;
	} else if (result) {
		tell_remarks(a->e, a->provider, str_text(&result->text));
		ev.offers = result->offers;
		ev.count = result->offer_count;
		ev.floor_microusd_h = result->floor_microusd_h;
		ev.past = past = past_of_offers(a->e->setup->store, &of, ev.offers, ev.count,
						clock_wall_ms());
	}
	post(a->e, &ev, err);
	free(past);
	asked_free(a);
}

void vendor_offers(struct engine *e, int provider)
{
	struct asked *a = asked_new(e, provider, -1);

	a->want.offers.gpus = e->setup->gpus;
	a->want.offers.spot = e->setup->conf.reap ? false : e->setup->want_spot;
	a->want.offers.vram_gb = e->needs ? e->needs->vram_gb : 0;
	a->want.offers.cpu = e->setup->cpu;
	a->want.offers.memory_gb = e->setup->memory_gb;
	a->want.offers.disk_gb = e->setup->disk_gb;
	a->want.offers.image = e->setup->image;
	a->want.offers.volume = e->volumes[provider]; /* looked for first, where one is wanted */
	if (e->setup->volume_name && e->setup->volume_create && !e->volumes[provider].id[0])
		COPY_TEXT(a->want.offers.volume.name, e->setup->volume_name);
	begin(a, OP_OFFERS, offers_done);
}

void vendor_volume_ready(struct engine *e, int provider)
{
	struct event ev = {
		.type = EV_VOLUME, .provider = provider, .volume = &e->volumes[provider]};

	post(e, &ev, NULL);
}

void vendor_volume_fills(struct engine *e, int provider)
{
	struct event ev = {.type = EV_VOLUME_FILLS, .provider = provider};

	post(e, &ev, NULL);
}

static void volume_done(void *ctx, struct op_result *result, const struct err *err)
{
	struct asked *a = ctx;
	struct engine *e = a->e;
	char price[32];

	if (result && result->volume_count) {
		const struct volume *v = &result->volumes[0];
		e->volumes[a->provider] = *v;
		e->volumes[a->provider].apart =
			provider_can_fetch(e->setup->providers[a->provider].ops,
					   e->setup->providers[a->provider].handle, v);
		struct volume_row row = {.size_gb = v->size_gb,
					 .price_microusd_month = v->price_microusd_month,
					 .seen_ms = clock_wall_ms()};
		COPY_TEXT(row.provider, e->setup->providers[a->provider].ops->name);
		COPY_TEXT(row.id, v->id);
		COPY_TEXT(row.name, v->name);
		COPY_TEXT(row.region, v->region);
		store_put_volume(e->setup->store, &row, NULL);
		if (v->price_microusd_month)
			engine_log(e, LOG_NOTE,
				   "volume %s: %lld GB, %s a month until it is removed", v->name,
				   (long long)v->size_gb,
				   money_show(price, sizeof(price), v->price_microusd_month));
		stage_volume(e, a->provider);
	} else {
		struct event ev = {.type = EV_VOLUME, .provider = a->provider};
		struct err none;
		if (!err)
			err_set(&none, ERR_TRANSIENT, "%s named no volume",
				e->setup->providers[a->provider].ops->name);
		post(e, &ev, err ? err : &none);
	}
	asked_free(a);
}

int engine_lock_volumes(const char *state_dir, int *lock, struct err *err)
{
	CLEANUP(free_text) char *path = path_join(state_dir, "volume.lock");

	return path_lock(path, "makes a volume\n", lock, err);
}

static void ask_volume(void *ctx)
{
	struct asked *a = ctx;
	const char *run_dir = a->e->setup->run_dir;
	CLEANUP(free_text) char *state_dir = run_dir ? xasprintf("%s/../..", run_dir) : NULL;
	struct err err;

	a->timer = NULL;
	if (state_dir && a->want.volume.create &&
	    engine_lock_volumes(state_dir, &a->lock, &err) < 0 && err.kind == ERR_BUSY) {
		a->timer = loop_timer(a->e->loop, VOLUME_LOCK_MS, ask_volume, a);
		return;
	}
	begin(a, OP_VOLUME, volume_done);
}

/* Kept until it is made: the offers may be other ones by then. */
static void add_regions(struct asked *a)
{
	const char *names[REGIONS_MOST];
	size_t count = core_offer_regions(a->e->core, a->provider, names, ARRAY_LEN(names));

	if (!count)
		return;
	a->regions = xcalloc(count + 1, sizeof(*a->regions));
	for (size_t i = 0; i < count; i++)
		a->regions[i] = xstrdup(names[i]);
	a->want.regions = (const char *const *)a->regions;
}

void vendor_volume(struct engine *e, int provider, bool create)
{
	struct asked *a = asked_new(e, provider, -1);

	if (create)
		add_regions(a);

	a->want.volume.name = e->setup->volume_name;
	a->want.volume.size_gb = e->setup->volume_gb;
	a->want.volume.create = create;
	a->want.volume.gpus = e->setup->gpus;
	ask_volume(a);
}

/* ---- looking ---- */

static void list_done(void *ctx, struct op_result *result, const struct err *err)
{
	struct asked *a = ctx;
	struct event ev = {.type = EV_LISTED, .provider = a->provider, .asked_at = a->asked_at};

	a->e->looks[a->provider] = NULL;
	ev.ahead_ms = clock_wall_ms() -
		      caller_time_there(a->e->caller, a->e->setup->providers[a->provider].ops);
	ev.clock_known =
		caller_knows_time_there(a->e->caller, a->e->setup->providers[a->provider].ops);
	if (result) {
		ev.views = result->pods;
		ev.count = keep_without_handed(a->e, result->pods, result->pod_count);
		ev.partial = result->partial;
		if (result->partial && !a->e->list_refused[a->provider])
			engine_log(a->e, LOG_WARN, "%s", str_text(&result->text));
		a->e->list_refused[a->provider] = result->partial;
	}
	post(a->e, &ev, err);
	asked_free(a);
}

/* By what is there, something is to be found, or proven gone. Before a release is answered there is
 * nothing to prove. */
static bool ends_pods(const struct engine *e, int provider)
{
	bool ends = e->setup->conf.reap;

	for (int i = 0; i < e->pod_count && !ends; i++) {
		const struct core_pod *p = core_pod_at(e->core, i);
		ends = p->provider == provider &&
		       (p->phase == POD_AMBIGUOUS || p->phase == POD_CONFIRMING);
	}
	return ends;
}

void vendor_list(struct engine *e, int provider)
{
	struct asked *a = asked_new(e, provider, -1);

	a->want.ids = a->ids = core_pod_ids(e->core, provider);
	a->op = begin(a, OP_LIST, list_done);
	e->looks[provider] = a;
	vendor_press(e);
}

void vendor_press(struct engine *e)
{
	for (int i = 0; i < e->setup->provider_count; i++) {
		struct asked *a = e->looks[i];
		if (!a || !ends_pods(e, i))
			continue;
		e->looks[i] = NULL;
		if (caller_press(a->op))
			a->asked_at = clock_boot_ms(); /* none of it is older */
	}
}

static void inspected(void *ctx, struct op_result *result, const struct err *err)
{
	struct asked *a = ctx;
	struct event ev = {.type = EV_INSPECTED,
			   .pod = a->pod,
			   .provider = a->provider,
			   .asked_at = a->asked_at};
	struct err none;

	if (result && result->pod_count) {
		ev.views = result->pods;
		ev.count = 1;
	} else if (!err) {
		err_set(&none, ERR_TRANSIENT, "it reports nothing about the pod");
		err = &none;
	}
	post(a->e, &ev, err);
	asked_free(a);
}

void vendor_inspect(struct engine *e, int pod)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	struct asked *a = asked_new(e, p->provider, pod);

	COPY_TEXT(a->want.id, p->id);
	begin(a, OP_INSPECT, inspected);
}

/* ---- renting ---- */

static void add_env(struct asked *a, const char *name, char *value, bool secret)
{
	if (a->env_count < ARRAY_LEN(a->env))
		a->env[a->env_count++] = (struct env_pair){xstrdup(name), value, secret};
	else
		free(value);
}

/* The start script's contract: jobs/agent/CONTROL.md, part 1. */
static void start_env(struct asked *a, const struct core_pod *p, int64_t ahead_s)
{
	struct engine *e = a->e;
	CLEANUP(str_free) struct str host_key = STR_INIT;

	base64_add(&host_key, e->pods[a->pod].host.private_pem,
		   strlen(e->pods[a->pod].host.private_pem));
	log_secret(str_text(&host_key));
	add_env(a, "BURST_VENDOR", xstrdup(e->setup->providers[a->provider].ops->name), false);
	add_env(a, "BURST_RUN", xstrdup(e->setup->run->id), false);
	add_env(a, "BURST_ATTEMPT", xstrdup(p->attempt), false);
	add_env(a, "BURST_MACHINE", xstrdup(e->setup->conf.machine), false);
	add_env(a, "BURST_HARD_END", xasprintf("%lld", (long long)(p->hard_end_s - ahead_s)),
		false);
	add_env(a, "BURST_FIRST_LEASE_END",
		xasprintf("%lld", (long long)(p->first_lease_end_s - ahead_s)), false);
	add_env(a, "BURST_LATE_START_S",
		xasprintf("%lld", (long long)(core_late_start_ms(&e->setup->conf) / 1000)), false);
	add_env(a, "BURST_LEASE_S", xasprintf("%lld", (long long)(e->setup->conf.lease_ms / 1000)),
		false);
	add_env(a, "BURST_HOST_KEY_B64", str_detach(&host_key), true);
	add_env(a, "BURST_AUTHORIZED_KEY", xstrdup(e->pods[a->pod].client.public_line), false);
	add_env(a, "BURST_VOLUME", xstrdup("/workspace"), false);
}

/* What the pod's image is made of, where the vendor builds one. */
static void add_recipe(struct engine *e, int provider, struct rent_request *r)
{
	struct image_steps *steps = &e->image_steps[provider];

	if (!steps->count && e->needs)
		image_steps_make(steps, e->needs,
				 image_wanted(e->setup, &e->setup->providers[provider], e->needs));
	image_recipe(r, e->setup, e->needs, steps);
}

/* What was said of this image the last time is kept in the ledger, by account and by all that we
 * put into it. */
static void image_fact(struct engine *e, int provider, char name[IMAGE_FACT_MAX])
{
	struct rent_request r = {0};

	add_recipe(e, provider, &r);
	image_known_name(&e->setup->providers[provider], &r, name);
}

static void keep_image(struct engine *e, int provider, const char *image)
{
	char name[IMAGE_FACT_MAX];

	if (!image[0] || !strcmp(image, e->images[provider]))
		return;
	COPY_TEXT(e->images[provider], image);
	image_fact(e, provider, name);
	store_put_fact(e->setup->store, name, image, NULL);
}

static void hand_image(struct asked *a)
{
	COPY_TEXT(a->image, a->e->images[a->provider]);
	a->want.rent.known_image = a->image[0] ? a->image : NULL;
}

static void image_said(void *ctx, const char *lines)
{
	struct asked *a = ctx;
	struct engine *e = a->e;
	const char *name = e->setup->providers[a->provider].ops->name;

	if (!a->told)
		engine_log(e, LOG_NOTE,
			   "%s: building the pods' image; it is kept there for later runs", name);
	a->told = true;
	for (const char *line = lines; *line;) {
		size_t len = strcspn(line, "\n");
		CLEANUP(str_free) struct str shown = STR_INIT;
		str_add_printable(&shown, line, len, 300);
		if (shown.len) {
			engine_log(e, LOG_INFO, "%s: image: %s", name, str_text(&shown));
			format_text(e->doing, sizeof(e->doing), "%s: image: %s", name,
				    str_text(&shown));
		}
		line += len + (line[len] == '\n');
	}
}

static void image_done(void *ctx, struct op_result *result, const struct err *err)
{
	struct asked *a = ctx;
	struct engine *e = a->e;
	struct event ev = {.type = EV_IMAGE, .provider = a->provider};
	char took[24];

	if (result) {
		if (a->told || result->text.len) {
			image_said(a, str_text(&result->text));
			engine_log(
				e, LOG_NOTE, "%s: the image was built in %s",
				e->setup->providers[a->provider].ops->name,
				duration_show(took, sizeof(took), clock_boot_ms() - a->asked_at));
		}
		keep_image(e, a->provider, result->image);
	}
	e->doing[0] = '\0';
	post(e, &ev, err);
	asked_free(a);
}

void vendor_image(struct engine *e, int provider)
{
	struct asked *a = asked_new(e, provider, -1);
	char name[IMAGE_FACT_MAX];

	image_fact(e, provider, name);
	if (!store_fact(e->setup->store, name, e->images[provider], sizeof(e->images[provider])))
		e->images[provider][0] = '\0';
	add_recipe(e, provider, &a->want.rent);
	hand_image(a);
	caller_listen(begin(a, OP_IMAGE, image_done), image_said);
}

static void rent_done(void *ctx, struct op_result *result, const struct err *err)
{
	struct asked *a = ctx;
	struct event ev = {
		.type = err ? EV_RENT_FAILED : EV_RENTED, .pod = a->pod, .provider = a->provider};

	if (result) {
		ev.views = result->pods;
		ev.count = 1;
		keep_image(a->e, a->provider, result->image);
	}
	/* the private half of the pod's own key has done its work */
	ssh_key_free(&a->e->pods[a->pod].host);
	post(a->e, &ev, err);
	asked_free(a);
}

void vendor_rent(struct engine *e, int pod)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	struct err err = {0};

	if (e->pods[pod].save_failed) {
		err_set(&err, ERR_LOCAL, "cannot write the ledger: nothing is rented without it");
		post_pod(e, EV_RENT_FAILED, pod, &err);
		return;
	}
	if (caller_check_clock(e->caller, e->setup->providers[p->provider].ops, &err) < 0) {
		post_pod(e, EV_RENT_FAILED, pod, &err); /* of providers whose offers are no call */
		return;
	}
	if (keys_make(e, pod, &err) < 0) {
		err.kind = ERR_LOCAL;
		post_pod(e, EV_RENT_FAILED, pod, &err);
		return;
	}
	struct asked *a = asked_new(e, p->provider, pod);
	struct rent_request *r = &a->want.rent;
	/* it ends itself by a clock that goes with its vendor's: not later than ours would have it
	 */
	int64_t ahead_s =
		(caller_clock_ahead_ms(e->caller, e->setup->providers[p->provider].ops) + 999) /
		1000;
	r->offer = p->offer;
	snprintf(r->name, sizeof(r->name), "burst-%s", p->attempt);
	COPY_TEXT(r->marker.machine, e->setup->conf.machine);
	COPY_TEXT(r->marker.run, e->setup->run->id);
	COPY_TEXT(r->marker.attempt, p->attempt);
	r->marker.hard_end_s = p->hard_end_s - ahead_s;
	r->volume = p->volume;
	r->mount = "/workspace";
	r->disk_gb = e->setup->disk_gb;
	r->cpu = e->setup->cpu;
	r->memory_gb = e->setup->memory_gb;
	add_recipe(e, a->provider, r);
	hand_image(a);
	r->start_script = e->setup->kit->start_script;
	start_env(a, p, ahead_s);
	r->env = a->env;
	r->env_count = a->env_count;
	begin(a, OP_RENT, rent_done);
}

/* ---- what the vendor has to say about a pod ---- */

static void send_release(struct engine *e, int pod);

/* Its last line may say that the image cannot be pulled. */
static void tell_unpulled(struct engine *e, int pod, const char *text)
{
	CLEANUP(str_free) struct str shown = STR_INIT;
	const char *line = text;
	struct err err;

	for (const char *next = text; *next; next += strcspn(next, "\n"), next += *next == '\n')
		line = next;
	if (!starts_with(line, "image: "))
		return;
	line += strlen("image: ");
	str_add_printable(&shown, line, strcspn(line, "\n"), 120);
	/* a registry's limit passes; an image that is not there does not come */
	err_set(&err, strcasestr(line, "toomanyrequests") ? ERR_TRANSIENT : ERR_CONFIG, "%s",
		str_text(&shown));
	post_pod(e, EV_UNPULLED, pod, &err);
}

static void show_log(struct engine *e, int pod, const char *text)
{
	tell_unpulled(e, pod, text);
	for (const char *line = text; *line;) {
		size_t len = strcspn(line, "\n");
		CLEANUP(str_free) struct str shown = STR_INIT;
		str_add_printable(&shown, line, len, 300);
		if (shown.len && !starts_with(line, "image: "))
			engine_log(e, LOG_INFO, "pod %s: its provider's log: %s",
				   pod_called(e, pod), str_text(&shown));
		line += len + (line[len] == '\n');
	}
}

static void logs_done(void *ctx, struct op_result *result, const struct err *err)
{
	struct asked *a = ctx;

	show_log(a->e, a->pod, !err && result ? str_text(&result->text) : "");
	if (!a->released)
		send_release(a->e, a->pod);
	asked_free(a);
}

/* The pod bills: what has come of its log by now will do, and what comes later is shown as well. */
static void logs_waited_for(void *ctx)
{
	struct asked *a = ctx;

	a->timer = NULL;
	a->released = true;
	send_release(a->e, a->pod);
}

/* Has the provider written this line before? A container that ends and is started again, for ever,
 * makes no progress. */
static bool is_new_line(struct epod *p, const char *line, size_t len)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)line[i]) * 16777619u;
	for (size_t i = 0; i < p->log_line_count; i++)
		if (p->log_lines[i] == hash)
			return false;
	GROW(p->log_lines, p->log_line_count, p->log_line_cap);
	p->log_lines[p->log_line_count++] = hash;
	return true;
}

static int count_new_lines(struct epod *p, const char *text)
{
	int fresh = 0;

	for (const char *line = text; *line;) {
		size_t len = strcspn(line, "\n");
		if (len && !starts_with(line, "container: "))
			fresh += is_new_line(p, line, len);
		line += len + (line[len] == '\n');
	}
	return fresh;
}

static void log_done(void *ctx, struct op_result *result, const struct err *err)
{
	struct asked *a = ctx;
	struct epod *p = &a->e->pods[a->pod];
	struct event ev = {.type = EV_LOG, .pod = a->pod, .provider = a->provider};

	if (!err) {
		str_reset(&p->log);
		str_addn(&p->log, str_text(&result->text), result->text.len);
		p->log_read_at = clock_boot_ms();
		ev.number = count_new_lines(p, str_text(&p->log));
		p->image_percent = pull_percent(str_text(&p->log));
		tell_unpulled(a->e, a->pod, str_text(&p->log));
	}
	post(a->e, &ev, err);
	asked_free(a);
}

/* What the core decides by the log is left alone: lines that are new to it stay new. */
static void watch_done(void *ctx, struct op_result *result, const struct err *err)
{
	struct asked *a = ctx;
	struct epod *p = &a->e->pods[a->pod];

	if (!err)
		p->image_percent = pull_percent(str_text(&result->text));
	a->e->watching_log[a->provider] = false;
	a->e->watch_log_at[a->provider] = clock_boot_ms() + WATCH_LOG_MS;
	asked_free(a);
}

static bool pulls_long(const struct engine *e, int pod, int provider, int64_t now)
{
	const struct core_pod *p = core_pod_at(e->core, pod);

	return p->provider == provider && p->phase == POD_BOOTING && p->id[0] && !p->queued &&
	       now - p->create_at > WATCH_LOG_MS;
}

void vendor_watch_images(struct engine *e)
{
	int64_t now = clock_boot_ms();

	for (int v = 0; v < e->setup->provider_count; v++) {
		int pod = 0;
		if (e->watching_log[v] || now < e->watch_log_at[v] ||
		    e->setup->providers[v].ops->makes_image)
			continue;
		while (pod < e->pod_count && !pulls_long(e, pod, v, now))
			pod++;
		if (pod == e->pod_count)
			continue;
		struct asked *a = asked_new(e, v, pod);
		e->watching_log[v] = true;
		COPY_TEXT(a->want.id, core_pod_at(e->core, pod)->id);
		begin(a, OP_LOGS, watch_done);
	}
}

void vendor_log(struct engine *e, int pod)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	struct asked *a = asked_new(e, p->provider, pod);

	COPY_TEXT(a->want.id, p->id);
	begin(a, OP_LOGS, log_done);
}

static void billing_done(void *ctx, struct op_result *result, const struct err *err)
{
	struct asked *a = ctx;

	struct epod *p = &a->e->pods[a->pod];
	if (!err) {
		p->bill = result->billing;
		p->bill.hours = NULL;
		p->bill.hour_count = 0;
	}
	if (!err || err->kind == ERR_NOT_FOUND)
		p->bill_asked_ms = clock_wall_ms();
	a->e->billing_open--;
	asked_free(a);
}

void vendor_billing(struct engine *e, int pod)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	struct asked *a = asked_new(e, p->provider, pod);

	COPY_TEXT(a->want.id, p->id);
	a->want.since_s = (clock_wall_ms() - (clock_boot_ms() - p->create_at)) / 1000;
	a->want.bill.price_microusd_h = p->price_microusd_h;
	a->want.bill.list_microusd_h = p->offer.price_microusd_h;
	COPY_TEXT(a->want.bill.gpu, p->offer.gpu);
	e->billing_open++;
	begin(a, OP_BILLING, billing_done);
}

/* ---- giving back ---- */

static void release_done(void *ctx, struct op_result *result, const struct err *err)
{
	struct asked *a = ctx;
	struct event ev = {.type = EV_RELEASED,
			   .pod = a->pod,
			   .provider = a->provider,
			   .number = err ? RELEASE_TAKEN : (int)result->release};

	post(a->e, &ev, err);
	asked_free(a);
}

static void send_release(struct engine *e, int pod)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	struct asked *a = asked_new(e, p->provider, pod);

	COPY_TEXT(a->want.id, p->id);
	begin(a, OP_RELEASE, release_done);
}

/* Why a pod never came up stands, if anywhere, in its provider's log. Where that ends with the pod
 * it is asked for first. */
void vendor_release(struct engine *e, int pod)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	struct asked *a;

	if (keep_is_taken(e, pod))
		return;
	if (e->pods[pod].logs_asked || !core_log_first(p, clock_boot_ms())) {
		send_release(e, pod);
		return;
	}
	e->pods[pod].logs_asked = true;
	if (e->pods[pod].log_read_at && clock_boot_ms() - e->pods[pod].log_read_at < LOG_FRESH_MS) {
		show_log(e, pod, str_text(&e->pods[pod].log));
		send_release(e, pod);
		return;
	}
	bool outlives = e->setup->providers[p->provider].ops->logs_outlive;
	if (outlives)
		send_release(e, pod);
	a = asked_new(e, p->provider, pod);
	COPY_TEXT(a->want.id, p->id);
	a->want.log_ms = LAST_LOG_MS;
	a->released = outlives;
	if (!outlives)
		a->timer = loop_timer(e->loop, CORE_LOG_LOOK_MS, logs_waited_for, a);
	begin(a, OP_LOGS, logs_done);
}

/* ---- the volume of a pod that is gone ---- */

static void read_events(struct engine *e, int pod, const char *path)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	const char *line;

	if (path_read(path, 512u << 20, &text, NULL) < 0 || !text.s)
		return;
	for (line = text.s; *line;) {
		size_t len = strcspn(line, "\n");
		if (!line[len])
			break; /* the last line was cut when the pod died */
		json_t *event = jsonx_parse(line, len, NULL);
		if (event)
			podlink_event(e, pod, event);
		json_decref(event);
		line += len + 1;
	}
}

/* There may be very many, each with a connection of its own: a few at a time. */
static void begin_files(struct engine *e)
{
	while (e->file_first && e->files_asked < FILES_AT_ONCE) {
		struct asked *a = e->file_first;
		e->file_first = a->next_file;
		e->files_asked++;
		begin(a, OP_FETCH, a->file_done);
	}
}

static void begin_file(struct asked *a,
		       void (*done)(void *ctx, struct op_result *result, const struct err *err))
{
	struct engine *e = a->e;

	a->file_done = done;
	if (!e->file_first)
		e->file_last = &e->file_first;
	*e->file_last = a;
	e->file_last = &a->next_file;
	begin_files(e);
}

static void file_over(struct asked *a)
{
	struct engine *e = a->e;

	asked_free(a);
	e->files_asked--;
	begin_files(e);
}

static void salvage_done(void *ctx, struct op_result *result, const struct err *err)
{
	struct asked *a = ctx;
	(void)result;

	if (!err) {
		a->e->pods[a->pod].counted_to = a->e->pods[a->pod].last_event;
		/* read again from the start: what is known already is passed over */
		a->e->pods[a->pod].last_event = 0;
		read_events(a->e, a->pod, a->local);
	}
	/* no event log: the pod never came so far as to finish anything */
	post_pod(a->e, EV_SALVAGED, a->pod, err && err->kind != ERR_NOT_FOUND ? err : NULL);
	path_remove_tree(a->local, NULL);
	file_over(a);
}

static struct asked *ask_file(struct engine *e, int pod, const char *path, const char *local_name)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	struct asked *a = asked_new(e, p->provider, pod);
	CLEANUP(free_text) char *dir = path_join(e->setup->run_dir, "volume");

	path_mkdirs(dir, 0700, NULL);
	a->local = path_join(dir, local_name);
	a->path = xstrdup(path);
	path_remove_tree(a->local, NULL);
	a->want.file.volume = p->volume;
	a->want.file.path = a->path;
	a->want.file.local = a->local;
	return a;
}

void vendor_salvage(struct engine *e, int pod)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	CLEANUP(free_text)
	char *path = xasprintf("runs/%s/%s/events.jsonl", e->setup->run->id, p->attempt);
	CLEANUP(free_text) char *name = xasprintf("%s.events", p->attempt);
	struct asked *a = ask_file(e, pod, path, name);

	a->want.file.max_bytes = 512 << 20;
	begin_file(a, salvage_done);
}

static void fetched(void *ctx, struct op_result *result, const struct err *err)
{
	struct asked *a = ctx;
	struct engine *e = a->e;
	struct seg_state *s = &e->segs[a->segment];
	size_t file = (size_t)a->want.since_s;
	struct outfile *f = s->pod == a->pod && file < s->count ? &s->files[file] : NULL;
	(void)result;

	if (!f || !f->under_way || f->turn != a->turn) {
		/* the segment went elsewhere meanwhile, or the file is another one now */
		path_remove_tree(a->local, NULL);
		outfiles_stale(e, a->pod, a->segment, f);
	} else if (err) {
		struct segment_result *r = &e->setup->results[a->segment];
		f->under_way = false;
		format_text(r->reason, sizeof(r->reason),
			    "finished, but not fetched from the volume (`burst %s %s` retries): %s",
			    e->needs && e->needs->command ? "resume" : "fetch", e->setup->run->id,
			    err->msg);
		struct event ev = {.type = EV_HOME_FAILED, .pod = a->pod, .segment = a->segment};
		post(e, &ev, err);
	} else {
		struct fetch_want want;
		outfiles_want(e, a->segment, file, &want);
		fetch_local(e->pool, e->loop, a->local, &want);
	}
	file_over(a);
}

void vendor_fetch(struct engine *e, int pod, uint32_t segment)
{
	struct seg_state *s = &e->segs[segment];

	for (size_t i = 0; i < s->count; i++) {
		if (s->files[i].under_way || s->files[i].r)
			continue;
		CLEANUP(free_text)
		char *name = xasprintf("%s-%u-%zu", core_pod_at(e->core, pod)->attempt, segment, i);
		struct asked *a = ask_file(e, pod, s->files[i].path, name);
		a->segment = segment;
		a->want.since_s = (int64_t)i; /* not used by FETCH: remembers which file it is */
		a->want.file.max_bytes = s->files[i].bytes + 1;
		s->files[i].under_way = true;
		a->turn = s->files[i].turn = ++e->fetch_turns;
		begin_file(a, fetched);
	}
}
