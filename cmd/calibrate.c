/* calibrate.c - `burst calibrate`: rents each GPU briefly and measures how fast the job's engine is
 * on it. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/folders.h"
#include "base/gpus.h"
#include "base/path.h"
#include "cmd/launch/launch.h"
#include "cmd/launch/volume.h"
#include "cmd/show/output.h"
#include "cmd/show/report.h"
#include "jobs/excerpt/excerpt.h"
#include "store/pod_cost.h"

enum { SIZES_MOST = 16, CARDS_MOST = 16 };

struct calibrate_point {
	int size, count; /* number of segments, and of batches of this size */
	/* of one batch: the median, and the mean of the predictions before; 0: unknown */
	double seconds, predicted_s;
};

/* What the ledger's measurements let us expect of a card, before or after its calibration. */
struct calibrate_view {
	struct plan_machine machine;
	char from[ESTIMATE_FROM];
	bool known;      /* the speed is, so that usd_each is, too */
	double usd_each; /* dollars per segment, if one pod renders the whole job */
};

struct calibrate_card {
	struct offer offer;
	char gpu[GPU_MAX + 8]; /* as in the config: "L40S:2" */
	int sizes[SIZES_MOST];
	size_t size_count;
	double about_usd; /* 0: unknown */
	char run[24];     /* "": none began */
	int status;       /* of its run */
	bool run_began;
	char why[160]; /* why there is no measurement; "": there is one */
	int64_t cost_microusd;
	double cold_s; /* from the create call to the first batch; 0: it did not get that far */
	struct calibrate_view before, after;
	struct calibrate_point points[SIZES_MOST];
	size_t point_count;
};

/* ---- calibrate cards ----
 * Chooses the GPUs to measure and their expected results. */

enum {
	CHEAPEST = 3,       /* GPUs to measure if the user names none */
	UNKNOWN_BATCH = 32, /* largest batch for an engine without known limits */
};

static int compare_price(const void *a, const void *b)
{
	const struct offer *x = a, *y = b;

	return (x->price_microusd_h > y->price_microusd_h) -
	       (x->price_microusd_h < y->price_microusd_h);
}

static void name_card(struct calibrate_card *c, const struct offer *o)
{
	c->offer = *o;
	snprintf(c->gpu, sizeof(c->gpu), o->gpus > 1 ? "%s:%d" : "%s", o->gpu, o->gpus);
}

/* Fills cards with the cheapest offer for each GPU that the user names, in that order; a GPU
 * without an offer gets .why. offers: cheapest first. Returns the number of cards. */
static size_t choose_named_cards(struct calibrate_card *cards, const char *const *gpus,
				 const struct offer *offers, size_t count)
{
	size_t n = 0;

	for (int wish = 0; gpus[wish] && n < CARDS_MOST; wish++) {
		struct calibrate_card *c = &cards[n++];
		COPY_TEXT(c->gpu, gpus[wish]);
		COPY_TEXT(c->why, "no provider offers it now");
		c->status = err_exit_status(&(struct err){.kind = ERR_NO_CAPACITY});
		for (size_t i = 0; i < count && c->why[0]; i++)
			if (offers[i].wish == wish) {
				name_card(c, &offers[i]);
				c->why[0] = '\0';
				c->status = 0;
			}
	}
	return n;
}

/* Fills cards with the cheapest GPUs that fit the job, or one offer if the job needs no GPU.
 * offers: cheapest first. Returns the number of cards. */
static size_t choose_cheapest_cards(struct calibrate_card *cards, const struct job_needs *needs,
				    const struct offer *offers, size_t count)
{
	size_t n = 0, most = needs->gpu ? CHEAPEST : 1;

	for (size_t i = 0; i < count && n < most; i++) {
		bool skip = needs->gpu && gpu_is_none(offers[i].gpu);
		for (size_t k = 0; k < n; k++)
			skip |= !strcmp(cards[k].offer.gpu, offers[i].gpu);
		if (!skip)
			name_card(&cards[n++], &offers[i]);
	}
	return n;
}

/* Sets *out to what the ledger's measurements let us expect of the offer's card now. */
static int view_card(struct launch *l, const struct offer *offer, struct calibrate_view *out,
		     struct err *err)
{
	struct estimate e;
	struct plan pick;
	int status = estimate_make(&e, l, offer, 1, err);

	*out = (struct calibrate_view){0};
	if (status == 0) {
		const struct plan_wish wish = {.goal = PLAN_COST,
					       .pods = 1,
					       .canary = e.wish.canary,
					       .failing_share = e.wish.failing_share};
		out->machine = e.machines[0];
		copy_text(out->from, sizeof(out->from), e.speed_from[0]);
		out->known = e.known && e.open &&
			     plan_choose(&pick, &e.work, e.machines, 1, &wish) != PLAN_NOTHING_FITS;
		out->usd_each = out->known ? pick.cost_usd / (double)e.open : 0;
	}
	estimate_free(&e);
	return status;
}

/* Sets the card's batch sizes: 1 to warm up, then 1, 2, 4 ... up to the largest. */
static void choose_sizes(struct calibrate_card *c, const struct job_needs *needs)
{
	int most = c->before.known
			   ? c->before.machine.batch_max
			   : MAX(needs->max_batch, needs->max_batch_is_cap ? 1 : UNKNOWN_BATCH);

	c->sizes[c->size_count++] = 1;
	for (int size = 1; c->size_count < SIZES_MOST; size = MIN(size * 2, most)) {
		c->sizes[c->size_count++] = size;
		if (size >= most)
			break;
	}
}

/* The number of segments in the card's batches, of all its workers. */
static size_t segments_of(const struct calibrate_card *c, const struct job_needs *needs)
{
	size_t sum = 0;

	for (size_t i = 0; i < c->size_count; i++)
		sum += (size_t)c->sizes[i];
	return sum * (size_t)MAX(needs->workers, 1);
}

/* Dollars of a median cold start of the card. */
static double cold_usd(const struct calibrate_card *c)
{
	return cold_p50_s(&c->before.machine.cold) * (double)c->offer.price_microusd_h / 1e6 / 3600;
}

/* Sets what the card is expected to do, its batch sizes, and about what measuring it will cost. */
static int predict_card(struct launch *l, struct calibrate_card *c, struct err *err)
{
	const struct job_needs *needs = l->run.setup.job_ops->needs(l->run.setup.job);
	size_t count = 0;
	const struct segment *list = l->run.setup.job_ops->segments(l->run.setup.job, &count);
	double length = 0, seconds = 0;

	if (view_card(l, &c->offer, &c->before, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		length += list[i].weight / (double)count;
	choose_sizes(c, needs);
	if (!c->before.known)
		return 0;
	for (size_t i = 0; i < c->size_count; i++)
		seconds += speed_batch_s(&c->before.machine.speed, length, length * c->sizes[i]);
	seconds += c->before.machine.tail_s + MAX(c->before.machine.release_s, 0.0);
	c->about_usd = cold_usd(c) + seconds * c->before.machine.price_h / 3600;
	return 0;
}

/* Chooses the cards to measure among the live offers, with their predictions. ERR_NO_CAPACITY:
 * there is none. */
static int choose_cards(struct launch *l, struct calibrate_card *cards, size_t *count,
			struct err *err)
{
	const struct job_needs *needs = l->run.setup.job_ops->needs(l->run.setup.job);
	struct wanted wanted = {.order = &l->order, .store = l->ctx->store};
	struct known_offer *known = NULL;
	size_t known_count = 0;
	int status =
		offer_list_fetch(&l->order, &l->run, OFFERS_AT_VOLUME, &known, &known_count, err);
	const char *const *gpus = l->order.gpus;

	wanted_add_known(&wanted, known, known_count);
	wanted_end(&wanted);
	free(known);
	if (status == 0 && wanted.count)
		qsort(wanted.list, wanted.count, sizeof(*wanted.list), compare_price);
	if (status == 0)
		*count = gpus ? choose_named_cards(cards, gpus, wanted.list, wanted.count)
			      : choose_cheapest_cards(cards, needs, wanted.list, wanted.count);
	for (size_t i = 0; i < *count && status == 0; i++)
		status = cards[i].why[0] ? 0 : predict_card(l, &cards[i], err);
	wanted_free(&wanted);
	if (status == 0 && !*count)
		return err_set(err, ERR_NO_CAPACITY,
			       "no provider offers what the job needs now (see gpu, "
			       "caps.max_price_per_hour; `burst offers`)");
	return status;
}

/* ---- calibrate rent ----
 * Rents one GPU and renders a measurement on it. */

enum {
	WAIT_MS = 30000, /* wait for capacity before the next GPU's turn */
};

/* Makes a temporary folder for the measurement's outputs, which the caller removes; *fd holds its
 * lock. Returns its path, or NULL with *err. */
static char *make_output_folder(const char *state_dir, int *fd, struct err *err)
{
	CLEANUP(free_text) char *dir = path_join(state_dir, CALIBRATE);
	char *folder = held_folder_new(dir, fd, err);

	if (folder)
		path_hold_dir(folder, *fd);
	return folder;
}

/* Changes the order to one pod of this GPU, within the rest of the budget. */
static void narrow_order(struct order *o, const struct calibrate_card *c, int64_t left_microusd,
			 const char *folder)
{
	o->wait_ms = MIN(o->wait_ms, WAIT_MS);
	order_providers(o, (const char *const[]){c->offer.provider, NULL});
	order_gpus(o, (const char *const[]){c->gpu, NULL});
	o->pods = 1;
	o->max_cost_microusd = left_microusd;
	o->output = folder;
}

/* Replaces the config's job by one that renders its texts in batches of the card's sizes. */
static int load_measurement_job(struct launch *l, const struct calibrate_card *c, struct err *err)
{
	struct job *real, *job;

	if (launch_read_job(l, err) < 0)
		return -1;
	real = TAKE(l->run.setup.job);
	const struct job_ops *ops = l->run.setup.job_ops;
	size_t count = segments_of(c, ops->needs(real));
	if (calibrate_job(&job, ops, real, count, err) < 0)
		return -1;
	launch_replace_job(l, &calibrate_ops, job);
	return 0;
}

/* Fills the volume from a pod without a GPU, as a run does. */
static int warm_volume(struct launch *l, struct calibrate_card *c, struct err *err)
{
	struct estimate e;
	const struct plan pick = {.machine = 0};
	int status = estimate_make(&e, l, &c->offer, 1, err);

	if (status == 0)
		status = warm_first(l, &e, &pick, &c->cost_microusd, err);
	estimate_free(&e);
	return status < 0 ? -1 : 0;
}

/* Returns the run's exit status, or -1 if no run began. */
static int run_card(struct launch *l, struct calibrate_card *c, struct err *err)
{
	if (launch_check_width(l, err) < 0 || launch_open_providers(&l->order, &l->run, err) < 0 ||
	    load_measurement_job(l, c, err) < 0 ||
	    volume_trust(l->ctx, &l->order, &l->run, NULL, err) < 0 ||
	    launch_check_can_rent(l, err) < 0 || warm_volume(l, c, err) < 0 ||
	    launch_begin(l, false, err) < 0)
		return -1;
	struct core_conf *conf = &l->run.setup.conf;
	conf->canary = conf->at_once = false;
	conf->batch_sizes = c->sizes;
	conf->batch_size_count = c->size_count;
	COPY_TEXT(c->run, l->run.row.id);
	c->run_began = true;
	return launch_run(l);
}

/* Rents the card within what is left to be spent, renders there, and discards the outputs. Adds to
 * c->cost_microusd. Returns the run's exit status, or -1 if no run began. */
static int rent_and_render(const struct launch *outer, struct calibrate_card *c,
			   int64_t left_microusd, struct err *err)
{
	struct launch l;
	int fd = -1;
	CLEANUP(free_text) char *folder = make_output_folder(outer->ctx->state_dir, &fd, err);

	if (!folder)
		return -1;
	launch_within(&l, outer);
	narrow_order(&l.order, c, left_microusd, folder);
	int status = run_card(&l, c, err);
	c->cost_microusd += l.run.row.cost_microusd;
	if (status > 0)
		copy_text(c->why, sizeof(c->why),
			  l.run.err.msg[0] ? l.run.err.msg : l.run.row.error);
	engine_unblock_signals();
	launch_free(&l);
	path_remove_tree(folder, NULL);
	fd_close(fd);
	return status;
}

/* ---- calibrate measure ----
 * Measures GPUs one after the other, and reads the results from the ledger. */

static int compare_size_then_time(const void *a, const void *b)
{
	const struct batch_row *x = a, *y = b;

	if (x->segments != y->segments)
		return x->segments - y->segments;
	return (x->took_ms > y->took_ms) - (x->took_ms < y->took_ms);
}

/* Fills c->points from the ledger: for each batch size the median time. The first batch is left
 * out, since it warms up the worker. */
static void read_batch_times(struct store *store, struct calibrate_card *c)
{
	struct batch_row *rows = NULL;
	size_t count = 0, first = 0;

	if (store_batches(store, c->run, &rows, &count, NULL) < 0)
		return;
	first = count > 1 && rows[0].segments == 1 && rows[1].segments == 1;
	if (count > first)
		qsort(rows + first, count - first, sizeof(*rows), compare_size_then_time);
	for (size_t at = first, n; at < count && c->point_count < SIZES_MOST; at += n) {
		struct calibrate_point *p = &c->points[c->point_count++];
		double predicted = 0;
		for (n = 0; at + n < count && rows[at + n].segments == rows[at].segments; n++)
			predicted += speed_batch_s(&c->before.machine.speed, rows[at + n].longest,
						   rows[at + n].sum);
		*p = (struct calibrate_point){.size = rows[at].segments,
					      .count = (int)n,
					      .seconds = (double)rows[at + n / 2].took_ms / 1000,
					      .predicted_s =
						      c->before.known ? predicted / (double)n : 0};
	}
	free(rows);
}

static void read_cold_start(struct store *store, struct calibrate_card *c)
{
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (store_pods(store, c->run, false, &pods, &count, NULL) < 0)
		return;
	for (size_t i = 0; i < count; i++)
		if (pods[i].ready_ms > pod_row_bills_from(&pods[i]))
			c->cold_s =
				(double)(pods[i].ready_ms - pod_row_bills_from(&pods[i])) / 1000;
	free(pods);
}

/* Whether money is left for more than a boot; if not, sets c->why and c->status. */
static bool is_affordable(struct calibrate_card *c, int64_t left_microusd)
{
	char left[32], need[32];

	if ((double)left_microusd > cold_usd(c) * 1e6)
		return true;
	c->status = err_exit_status(&(struct err){.kind = ERR_CAP});
	snprintf(c->why, sizeof(c->why),
		 "%s of --max-cost is left, but booting alone costs about %s",
		 money_show(left, sizeof(left), left_microusd),
		 money_show(need, sizeof(need), (int64_t)(cold_usd(c) * 1e6)));
	return false;
}

/* Updates the prediction, rents the card and sets c->status to the run's exit status. Returns -1
 * with *err if no run began. */
static int measure_card(struct launch *l, struct calibrate_card *c, int64_t left_microusd,
			struct err *err)
{
	if (!l->ctx->quiet)
		output_line(stderr, "calibrate: %s at %s", c->gpu, c->offer.provider);
	/* predict again: the card before may have been measured */
	view_card(l, &c->offer, &c->before, err);
	c->status = rent_and_render(l, c, left_microusd, err);
	return c->status < 0 ? -1 : 0;
}

static void read_result(struct launch *l, struct calibrate_card *c)
{
	struct err ignored = {0};

	read_batch_times(l->ctx->store, c);
	read_cold_start(l->ctx->store, c);
	view_card(l, &c->offer, &c->after, &ignored);
}

/* Whether a pod of this card may still bill , or the user interrupted. */
static bool must_stop_after(const struct calibrate_card *c)
{
	return c->status > SIGNAL_STATUS || c->status == UNRELEASED_STATUS;
}

/* Measures the cards in order while money is left. Returns the exit status that ranks highest, or
 * -1 with *err if the only card failed before its run. */
static int measure_all(struct launch *l, struct calibrate_card *cards, size_t count,
		       int64_t most_microusd, struct err *err)
{
	int64_t left = most_microusd;
	int status = 0;

	for (size_t i = 0; i < count; i++) {
		struct calibrate_card *c = &cards[i];
		struct err why = {0};
		if (!c->why[0] && is_affordable(c, left) && measure_card(l, c, left, &why) < 0) {
			if (count == 1) {
				*err = why;
				return -1;
			}
			c->status = err_exit_status(&why);
			COPY_TEXT(c->why, why.msg);
		}
		status = err_status_rank(c->status) > err_status_rank(status) ? c->status : status;
		left = MAX(left - c->cost_microusd, 0);
		if (c->run_began)
			read_result(l, c);
		if (c->why[0])
			log_line(LOG_WARN, "%s: %s%s", c->gpu, c->why,
				 i + 1 < count && !must_stop_after(c) ? "; continuing with the next"
								      : "");
		if (must_stop_after(c))
			break;
	}
	return status;
}

/* ---- measured beside predicted ---- */

enum { BAR = 24 }; /* characters of the longest bar */

/* Dollars per segment of a batch of this size. */
static double usd_each(const struct calibrate_card *c, double seconds, int size)
{
	return seconds * c->before.machine.price_h / 3600 / size;
}

/* "$0.000123", with three significant digits, since a segment costs little; "-" for 0. Returns
 * `to`. */
static const char *format_usd(char to[32], double usd)
{
	char number[32];

	snprintf(to, 32, "%s%s", usd > 0 ? "$" : "-", usd > 0 ? number_show(number, usd, 3) : "");
	return to;
}

/* Prints what will be rented and measured, before the user is asked. */
static void show_plan(FILE *to, const struct calibrate_card *cards, size_t count,
		      int64_t most_microusd)
{
	CLEANUP(table_free) struct table *t = table_new();
	char text[32];

	table_column(t, "GPU", TABLE_LEFT, TABLE_SHRINKS);
	table_column(t, "PROVIDER", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "$/H", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "BATCHES", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "ABOUT", TABLE_RIGHT, TABLE_WHOLE);
	for (size_t i = 0; i < count; i++) {
		const struct calibrate_card *c = &cards[i];
		table_cell(t, "%s", c->gpu);
		if (c->why[0]) {
			table_cell(t, "-");
			table_cell(t, "-");
			table_cell(t, "%s", c->why);
			table_cell(t, "-");
			continue;
		}
		table_cell(t, "%s", c->offer.provider);
		table_cell(t, "%s", money_show(text, sizeof(text), c->offer.price_microusd_h));
		table_cell(t, "%zu of 1 to %d", c->size_count, c->sizes[c->size_count - 1]);
		table_cell(t, "%s", format_usd(text, c->about_usd));
	}
	table_print(t, to, terminal_width(to));
	fprintf(to, "one pod each, one after the other; at most %s in all\n",
		money_show(text, sizeof(text), most_microusd));
}

/* Prints the card's measured time and cost for each batch size beside the predictions. */
static void show_curve(FILE *to, const struct calibrate_card *c)
{
	CLEANUP(table_free) struct table *t = table_new();
	char text[32], bar[BAR + 1];
	double most = 0;

	table_column(t, "BATCH", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "SECONDS", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "PREDICTED", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "$/SEGMENT", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "PREDICTED", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "", TABLE_LEFT, 1);
	for (size_t i = 0; i < c->point_count; i++)
		most = MAX(most, usd_each(c, c->points[i].seconds, c->points[i].size));
	for (size_t i = 0; i < c->point_count; i++) {
		const struct calibrate_point *p = &c->points[i];
		double each = usd_each(c, p->seconds, p->size);
		int width = most > 0 ? (int)(each / most * BAR + 0.5) : 0;
		memset(bar, '#', sizeof(bar));
		bar[MAX(MIN(width, BAR), 1)] = '\0';
		table_cell(t, "%d", p->size);
		table_cell(t, "%.3f", p->seconds);
		table_cell(t, p->predicted_s > 0 ? "%.3f" : "-", p->predicted_s);
		table_cell(t, "%s", format_usd(text, each));
		table_cell(t, "%s", format_usd(text, usd_each(c, p->predicted_s, p->size)));
		table_cell(t, "%s", bar);
	}
	fprintf(to, "\n%s at %s, run %s:\n", c->gpu, c->offer.provider, c->run);
	table_print(t, to, terminal_width(to));
	if (!c->after.known)
		return;
	const struct speed *s = &c->after.machine.speed;
	char once[32], longest[32], each[32];
	fprintf(to,
		"batch time: o = %s s, a = %s s x longest, c = %s s x sum of lengths; largest "
		"batch %d\n",
		number_show(once, s->once_s, 4), number_show(longest, s->longest_s, 4),
		number_show(each, s->each_s, 4), c->after.machine.batch_max);
	if (c->after.machine.batch_max > c->sizes[c->size_count - 1])
		fprintf(to,
			"the worker accepts larger batches than were measured: the next "
			"calibration goes up to %d\n",
			c->after.machine.batch_max);
}

/* Prints measured and predicted curves of each card, then compares the cards. */
static void show_measured(FILE *to, const struct calibrate_card *cards, size_t count)
{
	CLEANUP(table_free) struct table *t = table_new();
	char text[32], seconds[24];

	for (size_t i = 0; i < count; i++)
		if (cards[i].point_count)
			show_curve(to, &cards[i]);
	table_column(t, "GPU", TABLE_LEFT, TABLE_SHRINKS);
	table_column(t, "$/H", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "COLD START", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "BATCH MAX", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "JOB $/SEGMENT", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "PREDICTED", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "SPENT", TABLE_RIGHT, TABLE_WHOLE);
	for (size_t i = 0; i < count; i++) {
		const struct calibrate_card *c = &cards[i];
		bool measured = c->point_count && c->after.known;
		table_cell(t, "%s", c->gpu);
		table_cell(t, "%s",
			   c->offer.price_microusd_h
				   ? money_show(text, sizeof(text), c->offer.price_microusd_h)
				   : "-");
		table_cell(t, "%s",
			   c->cold_s > 0 ? duration_show(seconds, sizeof(seconds),
							 (int64_t)(c->cold_s * 1000))
					 : "-");
		table_cell(t, measured ? "%d" : "-", c->after.machine.batch_max);
		table_cell(t, "%s", format_usd(text, measured ? c->after.usd_each : 0));
		table_cell(t, "%s", format_usd(text, c->before.known ? c->before.usd_each : 0));
		table_cell(t, "%s", money_show(text, sizeof(text), c->cost_microusd));
	}
	fputc('\n', to);
	table_print(t, to, terminal_width(to));
	for (size_t i = 0; i < count; i++)
		if (cards[i].why[0])
			fprintf(to, "%s: not measured: %s\n", cards[i].gpu, cards[i].why);
}

/* ---- JSON ---- */

static json_t *speed_json(const struct calibrate_view *v)
{
	if (!v->known)
		return json_null();
	return json_pack("{s:f,s:f,s:f,s:i,s:s,s:f}", "once_s", v->machine.speed.once_s,
			 "longest_s", v->machine.speed.longest_s, "each_s", v->machine.speed.each_s,
			 "batch_max", v->machine.batch_max, "source",
			 plan_source_name(v->machine.speed_source), "usd_per_segment", v->usd_each);
}

static json_t *point_json(const struct calibrate_card *c, const struct calibrate_point *p)
{
	bool known = p->predicted_s > 0;

	return json_pack("{s:i,s:i,s:f,s:o,s:f,s:o}", "size", p->size, "count", p->count, "seconds",
			 p->seconds, "predicted_s", known ? json_real(p->predicted_s) : json_null(),
			 "usd_per_segment", usd_each(c, p->seconds, p->size),
			 "predicted_usd_per_segment",
			 known ? json_real(usd_each(c, p->predicted_s, p->size)) : json_null());
}

static json_t *card_json(const struct calibrate_card *c)
{
	json_t *points = json_array();

	for (size_t i = 0; i < c->point_count; i++)
		json_array_append_new(points, point_json(c, &c->points[i]));
	return json_pack(
		"{s:o,s:o,s:o,s:i,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "gpu", report_text(c->gpu),
		"provider", c->offer.provider[0] ? report_text(c->offer.provider) : json_null(),
		"run", c->run[0] ? report_text(c->run) : json_null(), "exit_status", c->status,
		"error", c->why[0] ? report_text(c->why) : json_null(), "price_usd_hour",
		c->offer.price_microusd_h ? report_dollars(c->offer.price_microusd_h) : json_null(),
		"cost_usd", report_dollars(c->cost_microusd), "cold_start_s",
		c->cold_s > 0 ? json_real(c->cold_s) : json_null(), "predicted",
		speed_json(&c->before), "measured",
		c->point_count ? speed_json(&c->after) : json_null(), "batches", points);
}

/* New reference; tests/schema/calibrate.json. */
static json_t *measured_json(const struct calibrate_card *cards, size_t count, int status)
{
	json_t *list = json_array();
	int64_t cost = 0;

	for (size_t i = 0; i < count; i++) {
		cost += cards[i].cost_microusd;
		json_array_append_new(list, card_json(&cards[i]));
	}
	return json_pack("{s:i,s:i,s:o,s:o}", "schema", 1, "exit_status", status, "cost_usd",
			 report_dollars(cost), "gpus", list);
}

/* ---- the command ---- */

#define MOST_USD "0.50"

/* The lower of --max-cost and caps.max_cost, in micro-dollars. */
static int read_max_cost(struct cmd_context *ctx, int64_t *out, struct err *err)
{
	const char *text = opt_has(ctx, "max-cost") ? opt_text(ctx, "max-cost") : MOST_USD;
	int64_t cap = section_int(section_group(config_top(ctx->config), "caps"), "max_cost");

	if (money_parse(text, out, NULL) < 0 || *out <= 0)
		return err_set(err, ERR_USAGE,
			       "--max-cost: \"%s\" is not an amount in dollars, like 1.50", text);
	if (cap > 0)
		*out = MIN(*out, cap);
	return 0;
}

static int calibrate(struct launch *l, struct err *err)
{
	struct cmd_context *ctx = l->ctx;
	struct calibrate_card *cards = xcalloc(CARDS_MOST, sizeof(*cards));
	size_t count = 0;
	int64_t most = 0;
	int status = launch_read_job(l, err);

	if (status == 0 && l->run.setup.job_ops->needs(l->run.setup.job)->command)
		status = err_set(err, ERR_CONFIG,
				 "job \"%s\" is a command: only engines that render segments can "
				 "be calibrated",
				 config_job_name(ctx->config));
	if (status == 0 && (status = read_max_cost(ctx, &most, err)) == 0 &&
	    (status = launch_open_providers(&l->order, &l->run, err)) == 0)
		status = choose_cards(l, cards, &count, err);
	if (status == 0) {
		show_plan(stderr, cards, count, most);
		if (!cmd_confirm(ctx, "Rent and measure?"))
			status = err_set(err, ERR_USAGE,
					 "nothing was rented: answer y on a terminal, or give -y");
	}
	if (status == 0) {
		status = measure_all(l, cards, count, most, err);
		if (status >= 0 && ctx->json)
			output_json(measured_json(cards, count, status));
		else if (status >= 0)
			show_measured(stdout, cards, count);
	}
	free(cards);
	return status < 0 || cmd_flush(err) < 0 ? -1 : status;
}

static int run(struct cmd_context *ctx, struct err *err)
{
	struct launch l;

	launch_init(&l, ctx);
	int status = calibrate(&l, err);
	launch_free(&l);
	return status;
}

static const struct opt opts[] = {
	{'p', "provider", "PROVIDER", "rent from these providers", "provider"},
	{0, "gpu", "GPU",
	 "GPUs to measure, in order (default: the config's, else the three cheapest that fit)",
	 "gpu"},
	{0, "engine", "ENGINE", "what speaks", "job.engine"},
	{0, "max-cost", "USD", "cap on the total cost (default " MOST_USD ")"},
	{0, "spot", NULL, "rent spot pods", "spot"},
	{0, "allow-path", "DIR", "let the project read this folder, too", "allow_paths"},
	{0, "allow-volume", "NAME", "let the project use this volume, which is not its own",
	 "volumes"},
	{0, "max-volume-gb", "GB", "let the project create a volume of up to this size",
	 "max_volume_gb"},
	{0},
};

const struct cmd cmd_calibrate = {
	.name = "calibrate",
	.args = "[CONFIG]",
	.max_args = 1,
	.summary = "measure the job's engine on each GPU, briefly",
	.details =
		"Shows the maximum cost, asks, and rents one pod of each GPU, one after the other, "
		"as a run does. Each pod renders batches of 1, 2, 4 and so on, up to the largest "
		"that its worker accepts, from the job's own texts; burst discards the files. If "
		"the job's volume lacks its setup, a pod without a GPU fills it first. Cold starts "
		"and batch times go to the ledger, where plans find them. Prints the time and the "
		"cost of each batch size beside the prediction.\n\nAn unavailable GPU is skipped. "
		"Exit status 0: all GPUs measured; 4: one was unavailable; 5: --max-cost or "
		"another cap was reached; otherwise as for `burst run`.",
	.opts = opts,
	.json = true,
	.needs = NEED_JOB | NEED_LEDGER | CONFIG_ARG,
	.group = CMD_GROUP_RENDER,
	.run = run,
};
