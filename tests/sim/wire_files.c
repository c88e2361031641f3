/* wire_files.c - files of a volume without a pod, and bills, of vendors behind real translators:
 * what engine/vendor.c and engine/volume.c ask for, where the local files are texts in memory; and
 * what servers hold on their volumes. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/path.h"
#include "engine/caller.h"
#include "wire.h"

enum { CODE_TAIL = 5, CODE_BLOCKS = 3 };
static const char code_words[] = "code";

/* ---- what is on a volume ---- */

static void add_segment(struct str *to, const char *attempt, unsigned segment)
{
	str_addf(to, "%s/%u:%.*s", attempt, segment, (int)(segment % 7), "spoken.");
}

static bool add_log(const struct machine *m, struct str *to)
{
	for (size_t i = 0; i < m->log_count; i++)
		str_addf(to, "%d %u %lld %lld %d\n", (int)m->log[i].type, m->log[i].segment,
			 (long long)m->log[i].t, (long long)m->log[i].elapsed_ms, m->log[i].number);
	return m->log_count > 0;
}

/* A create that was answered twice made two pods of one name, so either may have written the file.
 */
static bool file_of_run(struct sim *s, const struct server *v, const char *path, struct str *to)
{
	char attempt[ATTEMPT_MAX] = "", name[32] = "";
	const struct machine *of = NULL;
	unsigned segment = 0;

	if (sscanf(path, "%*[^/]/%19[^/]/%31s", attempt, name) != 2)
		return false;
	bool log = !strcmp(name, "events.jsonl");
	if (!log && sscanf(name, "%u", &segment) != 1)
		return false;
	for (size_t i = 0; i < s->machine_count; i++) {
		const struct machine *m = &s->machines[i];
		if (m->vendor == v->vendor && !strcmp(m->attempt, attempt) &&
		    (log ? !of || m->log_count > of->log_count : m->files[segment]))
			of = m;
	}
	if (log)
		return of && add_log(of, to);
	if (of)
		add_segment(to, attempt, segment);
	else
		broke(s, "a fetch of a file that never was: %s", path);
	return of;
}

bool wire_file(struct sim *s, const struct server *v, const char *path, struct str *to)
{
	const json_t *staged = json_object_get(v->files, path);

	if (starts_with(path, "runs/"))
		return file_of_run(s, v, path + 5, to);
	if (!json_is_string(staged))
		return false;
	str_add(to, json_string_value(staged));
	return true;
}

/* ---- local files: line.c reads and writes them ---- */

static struct asked *asked_with(struct client *cl, const char *local)
{
	struct asked *a = wire_request_first(cl);

	while (a && strcmp(a->local, local))
		a = a->next;
	if (!a)
		broke(cl->sim, "a local file that nobody has: %s", local);
	return a;
}

/* The code: blocks of a few bytes, and zeros to their end, where the vendor takes blocks; else
 * those bytes alone. */
void wire_read_local(struct client *cl, const char *local, int64_t offset, int64_t bytes,
		     struct str *to)
{
	const struct asked *a = asked_with(cl, local);

	if (!a)
		return;
	int64_t block = rules_ops(cl->sim, a->provider)->stage_block_bytes;
	if (block && (offset % block || offset / block >= CODE_BLOCKS ||
		      bytes != a->want.file.blocks.list[offset / block].bytes))
		broke(cl->sim, "a block that is none: %lld bytes from %lld on", (long long)bytes,
		      (long long)offset);
	str_addn(to, code_words, block ? (size_t)bytes : strlen(code_words));
}

void wire_write_local(struct client *cl, const char *local, const void *bytes, size_t len)
{
	struct asked *a = asked_with(cl, local);

	if (a)
		str_addn(&a->got, bytes, len);
}

static struct asked *request_file(struct client *cl, int pod, char *path)
{
	const struct core_pod *p = core_pod_at(cl->core, pod);
	struct asked *a = wire_request_new(cl, p->rental.provider, pod);

	snprintf(a->local, sizeof(a->local), "/local/%p", (void *)a);
	a->path = path;
	a->want.file.volume = p->rental.volume;
	a->want.file.path = a->path;
	a->want.file.local = a->local;
	return a;
}

/* ---- fetching ---- */

static void fetch_done(struct asked *a, struct op_result *result, const struct err *err)
{
	CLEANUP(str_free) struct str right = STR_INIT;
	struct event ev = {.type = EV_FETCH_FAILED, .pod = a->pod, .segment = a->segment};
	struct err other = {0};
	(void)result;

	if (err) {
		client_told(a->cl, &ev, err);
		return;
	}
	add_segment(&right, core_pod_at(a->cl->core, a->pod)->rental.attempt, a->segment);
	if (strcmp(str_text(&right), str_text(&a->got))) { /* as its hash says */
		if (!a->cl->sim->hit[F_CALL_GARBAGE])
			broke(a->cl->sim, "%s came home as \"%s\"", a->path, str_text(&a->got));
		err_set(&other, ERR_UNTRUSTED, "it is another");
		client_told(a->cl, &ev, &other);
		return;
	}
	client_home(a->cl, a->pod, a->segment);
}

bool wire_fetch(struct client *cl, int pod, uint32_t segment)
{
	const struct core_pod *p = core_pod_at(cl->core, pod);

	if (!wire_is(cl->sim, p->rental.provider))
		return false;
	struct asked *a = request_file(
		cl, pod, xasprintf("runs/%s/%s/%u", cl->job->conf.run, p->rental.attempt, segment));
	a->segment = segment;
	a->want.file.max_bytes = 64;
	wire_begin(a, OP_FETCH, fetch_done);
	return true;
}

static void salvage_done(struct asked *a, struct op_result *result, const struct err *err)
{
	struct event over = {.type = EV_SALVAGED, .pod = a->pod};
	struct client *cl = a->cl;
	int life = cl->life;
	(void)result;

	for (const char *line = str_text(&a->got);
	     !err && *line && strchr(line, '\n') && cl->life == life && cl->up;
	     line = strchr(line, '\n') + 1) {
		struct entry e = {0};
		long long t, elapsed;
		int type;
		if (sscanf(line, "%d %u %lld %lld %d", &type, &e.segment, &t, &elapsed,
			   &e.number) != 5)
			continue;
		e.type = (enum event_type)type;
		e.t = t;
		e.elapsed_ms = elapsed;
		client_salvages(cl, a->pod, &e);
	}
	if (cl->life == life && cl->up)
		client_told(cl, &over, err && err->kind != ERR_NOT_FOUND ? err : NULL);
}

bool wire_salvage(struct client *cl, int pod)
{
	const struct core_pod *p = core_pod_at(cl->core, pod);

	if (!wire_is(cl->sim, p->rental.provider))
		return false;
	struct asked *a = request_file(
		cl, pod,
		xasprintf("runs/%s/%s/events.jsonl", cl->job->conf.run, p->rental.attempt));
	a->want.file.max_bytes = 512 << 20;
	wire_begin(a, OP_FETCH, salvage_done);
	return true;
}

/* ---- staging ---- */

static void stage_done(struct asked *a, struct op_result *result, const struct err *err)
{
	struct sim *s = a->cl->sim;
	struct stage *stage = wire_stage(a->cl, a->provider);
	const json_t *file = wire_staged(s, a->provider, a->path);

	stage->op = NULL;
	stage->there = !err;
	if (result && result->bytes != a->want.file.max_bytes)
		broke(s, "%s: %lld bytes were put there, and %lld were to be", a->path,
		      (long long)result->bytes, (long long)a->want.file.max_bytes);
	if (result && (json_is_string(file) ? strcmp(json_string_value(file), code_words) != 0
					    : json_integer_value(file) != a->want.file.max_bytes))
		broke(s, "%s was put on the volume, and is not there", a->path);
	if (stage->holds)
		wire_tell_volume(a->cl, a->provider);
}

/* Two equal blocks and a short one. */
static void make_blocks(struct asked *a, int64_t block)
{
	struct file_blocks *b = &a->want.file.blocks;

	b->count = CODE_BLOCKS;
	b->bytes = (CODE_BLOCKS - 1) * block + CODE_TAIL;
	b->list = a->blocks;
	for (int i = 0; i < CODE_BLOCKS; i++) {
		b->list[i].bytes = i < CODE_BLOCKS - 1 ? 4 : 2;
		sha256_raw(code_words, (size_t)b->list[i].bytes, b->list[i].sha256);
	}
	a->want.file.max_bytes = b->bytes;
}

/* Stages the code on the volume before there is a pod. Returns true if the caller must wait for it,
 * since a pod would not see it otherwise. */
bool wire_stage_begin(struct client *cl, int provider, const struct volume *v)
{
	const struct provider_ops *ops = rules_ops(cl->sim, provider);
	struct stage *stage = wire_stage(cl, provider);

	if (cl->reaping || stage->op || stage->there ||
	    !provider_can_stage(ops, wire_line(cl)->handles[provider], v))
		return false;
	struct asked *a = wire_request_new(cl, provider, -1);
	snprintf(a->local, sizeof(a->local), "/local/%p", (void *)a);
	a->path = xasprintf("staged/%s.0", cl->job->conf.run);
	a->want.file.volume = *v;
	a->want.file.path = a->path;
	a->want.file.local = a->local;
	a->want.file.max_bytes = (int64_t)strlen(code_words);
	if (ops->stage_block_bytes)
		make_blocks(a, ops->stage_block_bytes);
	stage->holds = ops->volume_lags;
	stage->asked = a;
	stage->op = wire_begin(a, OP_STAGE, stage_done);
	return stage->holds;
}

/* What is not there by now is not waited for: the pod bills. */
void wire_stage_stop(struct client *cl, int provider)
{
	struct stage *stage =
		cl->sim->wire && wire_is(cl->sim, provider) ? wire_stage(cl, provider) : NULL;

	if (!stage || !stage->op || stage->holds)
		return;
	struct caller_op *op = stage->op;
	stage->op = NULL;
	wire_cancel(stage->asked, op);
}

/* ---- bills ---- */

/* Compares the vendor's report with the truth. */
static void check_bill(struct asked *a, const struct op_bill *bill)
{
	struct sim *s = a->cl->sim;
	const struct machine *m = wire_find(s, a->provider, a->want.id);
	bool modal = s->plan->vendors[a->provider].wire == WIRE_MODAL;
	int64_t from = modal ? m->runs_at : m->created, ms = m->ended - from,
		cost = money_for(m->price, ms);

	if (!m->is_over || (modal && (m->never_runs || m->failed || m->runs_at >= m->ended)))
		return;
	if (modal && llabs(bill->billed_ms - ms) > 2)
		broke(s, "sandbox %s ran for %lld ms, and its bill says %lld", m->id, (long long)ms,
		      (long long)bill->billed_ms);
	if (!modal && llabs(bill->cost_microusd - cost) > 2 + (int64_t)bill->hour_count)
		broke(s, "pod %s cost %lld, and its bill says %lld", m->id, (long long)cost,
		      (long long)bill->cost_microusd);
	if (!modal && a->want.bill.price_microusd_h == m->price &&
	    llabs(bill->billed_ms - ms) > 1000)
		broke(s, "pod %s was there for %lld ms, and its bill says %lld", m->id,
		      (long long)ms, (long long)bill->billed_ms);
}

static void bill_done(struct asked *a, struct op_result *result, const struct err *err)
{
	(void)err;
	if (result)
		check_bill(a, &result->billing);
	if (!--a->cl->bills_open)
		client_leaves(a->cl);
}

void wire_bill(struct client *cl)
{
	for (int i = 0; i < core_pod_count(cl->core) && cl->bills_open < 16; i++) {
		const struct core_pod *p = core_pod_at(cl->core, i);
		if (p->phase != POD_GONE || !p->rental.create_at || !p->rental.id[0] ||
		    !wire_is(cl->sim, p->rental.provider))
			continue;
		struct asked *a = wire_request_new(cl, p->rental.provider, i);
		COPY_TEXT(a->want.id, p->rental.id);
		a->want.since_s = (wall_now(cl) - (boot_now(cl) - p->rental.create_at)) / 1000;
		a->want.bill.price_microusd_h = p->rental.price_microusd_h;
		a->want.bill.list_microusd_h = p->rental.offer.price_microusd_h;
		COPY_TEXT(a->want.bill.gpu, p->rental.offer.gpu);
		cl->bills_open++;
		wire_begin(a, OP_BILLING, bill_done);
	}
}
