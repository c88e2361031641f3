/* page_now.c - the part of the report about current activity: running runs with their progress, and
 * their pods. */
#include "page.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "phase.h"
#include "report.h"
#include "store/pod_cost.h"

/* Fetches the page again, replaces its parts, and shows a notice once the server no longer answers.
 * Fetches a slow page, of many runs, less often. */
static const char script[] =
	"const again=async()=>{const t=performance.now();try{const r=await "
	"fetch(location.href,{cache:'no-store'});if(!r.ok)throw 0;"
	"const d=new DOMParser().parseFromString(await r.text(),'text/html');"
	"document.querySelector('main').replaceWith(d.querySelector('main'));document.title=d."
	"title;document.getElementById('lost').hidden=true}"
	"catch(e){document.getElementById('lost').hidden=false}setTimeout(again,Math.max(2000,10*("
	"performance.now()-t)))};setTimeout(again,2000)";

void page_add_live(struct page *p, const char *nonce)
{
	str_addf(&p->html,
		 "<p id=\"lost\" data-loaded=\"%lld\" hidden><b>The server has stopped. This page "
		 "shows the last known state; run `burst report --live` again.</b></p>\n"
		 "<script nonce=\"%s\">%s</script>\n",
		 (long long)p->now_ms, nonce, script);
}

static void add_run(struct page *p, struct run_row *run)
{
	char text[32], most[32];
	int64_t done;

	run_so_far(&p->ctx->runs, run, p->now_ms, NULL);
	done = run->rendered + run->cached;
	html_row_begin(&p->html);
	html_cell(&p->html, "%s", run->id);
	html_cell(&p->html, "%s", run->job);
	html_cell(&p->html, "%s",
		  run_is_alive(&p->ctx->runs, run->id) ? "this machine"
		  : run->detached                      ? "its pods"
				  : "no client: `burst resume` or `burst cancel`");
	html_cell(&p->html, "%lld/%lld (%lld%%)", (long long)done, (long long)run->total,
		  (long long)(run->total ? 100 * done / run->total : 0));
	html_cell(&p->html, "%s",
		  duration_show(text, sizeof(text), MAX(p->now_ms - run->started_ms, 0)));
	html_cell(&p->html, "%s of %s", money_show(text, sizeof(text), run->cost_microusd),
		  money_show(most, sizeof(most), run->max_cost_microusd));
	html_row_end(&p->html);
}

static void add_pod(struct page *p, const struct pod_row *pod)
{
	char text[32];

	html_row_begin(&p->html);
	html_cell(&p->html, "%s", pod_row_called(pod));
	html_cell(&p->html, "%s", pod->run);
	html_cell(&p->html, "%s", gpu_called(pod->gpu));
	html_cell(&p->html, "%s%s%s", pod->provider, pod->region[0] ? ", " : "", pod->region);
	html_cell(&p->html, "%s/h", money_show(text, sizeof(text), pod->price_microusd_h));
	html_cell(&p->html, "%s", phase_word(pod));
	html_cell(&p->html, "%s", money_show(text, sizeof(text), pod_row_cost(pod, p->now_ms)));
	html_row_end(&p->html);
}

static void add_pods(struct page *p)
{
	static const char *const heads[] = {"pod",   "run",   "GPU",         "where",
					    "price", "phase", "cost so far", NULL};
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (store_pods(p->ctx->store, NULL, true, &pods, &count, NULL) < 0 || !count) {
		html_note(&p->html, "No pods are billing.");
		free(pods);
		return;
	}
	html_table_begin(&p->html, "now-pods", heads);
	for (size_t i = 0; i < count; i++)
		add_pod(p, &pods[i]);
	html_table_end(&p->html);
	free(pods);
}

void page_add_now(struct page *p)
{
	static const char *const heads[] = {"run", "job", "driven by", "done", "age", "cost", NULL};
	struct run_row *runs = NULL;
	size_t count = 0;
	char at[32];

	html_section(&p->html, "now", "Now");
	str_addf(&p->html, "<p class=\"note\" id=\"made\" data-made=\"%lld\">As of %s.</p>\n",
		 (long long)p->now_ms, clock_rfc3339(at, sizeof(at), p->now_ms));
	if (store_runs(p->ctx->store, NULL, true, 0, &runs, &count, NULL) < 0 || !count) {
		html_note(&p->html, "No active runs.");
	} else {
		html_table_begin(&p->html, "now-runs", heads);
		for (size_t i = 0; i < count; i++)
			add_run(p, &runs[i]);
		html_table_end(&p->html);
	}
	free(runs);
	add_pods(p);
	html_section_end(&p->html);
}
