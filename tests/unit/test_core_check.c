/* test_core_check.c - each invariant of a run's state can fail, and is named. */
#include "core_bench.h"

static void todo(struct core *c)
{
	c->todo++;
}
static void local(struct core *c)
{
	c->local++;
}
static void weight(struct core *c)
{
	c->weight_todo += 1;
}
static void group(struct core *c)
{
	c->heaps[0].weight += 1;
}
static void spent(struct core *c)
{
	c->spent_microusd++;
}
static void unfetched(struct core *c)
{
	c->pods[0].workload.unfetched++;
}
static void batches(struct core *c)
{
	c->pods[0].workload.batches--;
}
static void held(struct core *c)
{
	c->pods[0].workload.held++;
}
static void files(struct core *c)
{
	c->pods[0].workload.files = -1;
}
static void saves(struct core *c)
{
	c->pods[1].workload.saves = 1;
}
static void busy(struct core *c)
{
	c->pods[0].workload.busy = -1;
}
static void wasted(struct core *c)
{
	c->pods[0].workload.wasted_ms = 1000000;
}
static void inherited(struct core *c)
{
	c->pods[0].workload.inherited = 99;
}
static void connected_late(struct core *c)
{
	c->pods[1].presence.link = LINK_UP;
}
static void due(struct core *c)
{
	c->pods[0].due = true;
}
static void no_phase(struct core *c)
{
	c->pods[0].phase = 0;
}
static void untimed(struct core *c)
{
	c->pods[1].rental.gone_at = 0;
}
static void bills_on(struct core *c)
{
	c->pods[1].rental.released_at = c->now + 1;
}
static void nobodys(struct core *c)
{
	c->segs[c->batches[0].segments[0]].pod = 7;
}
static void unowned(struct core *c)
{
	c->batches[0].pod = -1;
}
static void elsewhere(struct core *c)
{
	c->segs[c->batches[0].segments[0]].batch = 99;
}
static void over(struct core *c)
{
	c->batches[0].over = true;
}
static void unlisted(struct core *c)
{
	c->batches[0].segments[0] = 7;
}
static void early(struct core *c)
{
	c->first_open = 1;
}
static void cached(struct core *c)
{
	c->segs[7].cached = true;
}
static void owner(struct core *c)
{
	c->vendors[0].owner = 1;
}
static void no_owner(struct core *c)
{
	c->vendors[0].owner = 9;
}
static void no_reason(struct core *c)
{
	c->vendors[0].dead = true;
}
static void ended(struct core *c)
{
	c->ended = true;
}

static const struct {
	void (*corrupt)(struct core *c);
	const char *line;
} cases[] = {
	{todo, "open segments are counted"},
	{local, "settled segments are counted"},
	{weight, "the weight of open segments is their sum"},
	{group, "the groups' weights are its parts"},
	{spent, "what is spent is what the gone pods cost"},
	{unfetched, "a pod's unfetched segments are counted"},
	{batches, "a pod's batches are counted"},
	{held, "a pod's segments in hand are counted"},
	{files, "no pod has fewer than no files on their way"},
	{saves, "no checkpoint is awaited of a released pod"},
	{busy, "no pod has fewer than no busy workers"},
	{wasted, "wasted <= computed"},
	{inherited, "an inherited batch exists"},
	{connected_late, "only a living pod is connected"},
	{due, "every pod that is due was decided"},
	{no_phase, "a pod has a phase"},
	{untimed, "a gone pod has its time"},
	{bills_on, "no pod is gone and bills"},
	{nobodys, "a segment that is held or rendered has a pod"},
	{unowned, "a batch has an owner"},
	{elsewhere, "a segment in hand belongs to a batch"},
	{over, "the batch of a segment in hand is not over"},
	{unlisted, "the batch of a segment in hand lists it"},
	{early, "all batches before first_open are over"},
	{cached, "a cached segment stays local"},
	{owner, "the pod that prepares a volume is there"},
	{no_owner, "the pod that prepares a volume exists"},
	{no_reason, "a provider that is given up has a reason"},
	{ended, "a run ends when its work is over or it stops"},
};

/* A run with a pod at work and one that is gone. */
static void set_up_both(struct bench *b)
{
	set_up(b, 8);
	b->conf.pods = 2;
	b->conf.max_batch = 2;
	b->conf.at_once = true;
	start_simply(b);
	bring_up(b, 0);
	rented(b, 1);
	struct pod_view views[] = {view_of(b, 0, POD_STATE_RUNNING), view_of(b, 1, POD_STATE_GONE)};
	tell(b,
	     (struct event){.type = EV_LISTED, .views = views, .count = 2, .requested_at = b->now});
	began(b, 0, 0);
	check_phase(b, "at work", 0, POD_WORKING);
	check_phase(b, "lost", 1, POD_GONE);
}

static void test_each_line(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct bench b;
		set_up_both(&b);
		assert_null(core_check(b.core));
		cases[i].corrupt(b.core);
		const char *broken = core_check(b.core);
		if (!broken || strcmp(broken, cases[i].line) != 0)
			fail_msg("\"%s\" was to fail, not \"%s\"", cases[i].line,
				 broken ? broken : "none");
		tear_down(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_line),
	};

	return cmocka_run_group_tests_name("core check", tests, NULL, NULL);
}
