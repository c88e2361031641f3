/* impl.h - what the files of core/ call of each other; private to them. */
#ifndef BURST_CORE_IMPL_H
#define BURST_CORE_IMPL_H

#include "limits.h"
#include "state.h"

#define NEVER INT64_MAX

/* state.c */
struct action *core_act(struct core *c, enum action_type type, int pod);
enum note_level { NOTE_WARN = 1, NOTE_NOTE = 2, NOTE_INFO = 3 }; /* as enum log_level */
void core_note(struct core *c, enum note_level level, const char *fmt, ...) PRINTF(3, 4);
/* No new work from now on; what is finished is fetched, pods are let go. The first reason is kept,
 * a graver one replaces it. */
void core_fault(struct core *c, int pod, const struct err *err);
void core_stop(struct core *c); /* like core_fault(), without an error */
int core_gravity(enum err_kind kind);
uint64_t core_random(struct core *c);
bool core_stopping(const struct core *c);
bool core_reads_past(const struct core *c);
/* Adopted at the start: its log is to be read before its work is dealt out again. */
void pod_await_log(struct core *c, int pod);
bool pod_log_awaited(const struct core *c, const struct core_pod *p);
bool pod_active(const struct core_pod *p); /* rented or being rented, not on its way out */
bool pod_may_bill(const struct core_pod *p);
bool pod_is_omitted(const struct core_pod *p);    /* by lists, though its vendor knows it */
bool pod_files_outlive(const struct core_pod *p); /* they can be read when it is gone */
bool pod_nothing_comes(const struct core *c, const struct core_pod *p); /* no more work for it */
/* It is to be released: at once, or when its finished files are fetched. */
static inline bool pod_is_leaving(const struct core_pod *p)
{
	return p->leave >= LEAVE_DECIDE;
}
struct vendor *pod_vendor(struct core *c, const struct core_pod *p);
/* boot clock: what is so late by its provider's clock */
int64_t core_boot_of(const struct core *c, int provider, int64_t there_s);
int pod_index(const struct core *c, const struct core_pod *p);
void pod_enter(struct core *c, struct core_pod *p, enum pod_phase phase);
void pod_due(struct core *c, int pod); /* pods_decide() examines it at the end of this step */
void pod_save(struct core *c, const struct core_pod *p);
void list_soon(struct core *c, int provider);
void pod_connect(struct core *c, struct core_pod *p);
/* The sync under way does not cover all of its files any more. */
void pod_sync_void(struct core_pod *p);
void pod_close_gone(struct core *c, struct core_pod *p); /* for this run it is gone */
/* Appends one, zeroed. Pointers to other pods are void afterwards. */
struct core_pod *pod_new(struct core *c);
void pod_name_attempt(struct core *c, struct core_pod *p);
int64_t pod_boot_end(const struct core *c, const struct core_pod *p);
/* what a re-plan has changed */
/* while it replaces pods, only the better GPU is of use */
bool core_skips(const struct core *c, const struct candidate *k);
bool core_may_add_pods(const struct core *c); /* money is kept for it */
int core_pods_most(const struct core *c);     /* at a time, with those that are replaced */
int core_outgoing(const struct core *c);      /* pods that work until others take their place */

/* offers.c */
/* past: one for each offer, or NULL: then what was known of them stays. */
void offers_take(struct core *c, int provider, const struct offer *list,
		 const struct offer_past *past, size_t count);
/* The best candidate now, or NULL and why in c->capacity; *again_at: when one may be free again.
 * Those that are avoided only when avoided_too. */
struct candidate *offers_pick(struct core *c, bool avoided_too, int64_t *again_at);
/* Before it is rented: people hear which better ones are avoided for it, or that it is avoided
 * itself. */
void offers_report(struct core *c, const struct candidate *chosen);
struct candidate *offers_of(struct core *c, const struct core_pod *p);
/* An offer other than this pod's could be tried now, or a vendor that was not asked yet may have
 * one. */
bool offers_other_than(const struct core *c, const struct core_pod *p);
void offers_sort(struct core *c); /* after what goes first has changed */
/* it could be rented now, and is not avoided */
bool offers_ready(const struct core *c, const struct candidate *k);
/* too dear for caps.max_price_per_hour, or of a card that is unfit */
bool offers_barred(const struct core *c, const struct candidate *k);
/* from now on nothing with its card is rented */
void offers_unfit(struct core *c, const struct core_pod *p, bool anywhere, const char *why);
/* something may be rented, now or later, or a vendor was not asked yet */
bool offers_any_left(const struct core *c);

/* budget.c */
/* When a pod at this price must be over (boot clock) if rented now, `more` pods still to come with
 * it; -1: no room. */
int64_t budget_hard_end(const struct core *c, int64_t price_microusd_h, int more);
/* a pod rented now and over then could do some work */
bool budget_useful(const struct core *c, int64_t end);
int64_t budget_committed(const struct core *c);
/* By our clock, not later than it was to: its own end is where it was, so a pod that knows nothing
 * of it is ended by us. */
void budget_end_sooner(struct core_pod *p, int64_t at);
/* The caps of this life of the run may be lower than those that its pods were rented by. */
void budget_fit_adopted(struct core *c);
/* The same where another run has handed this pod over. */
void budget_fit_handed(struct core *c, struct core_pod *p);
/* Of an earlier life's pods that should have ended themselves each has been looked for in this
 * life, or cannot be. */
bool budget_is_known(const struct core *c);
int64_t budget_margin(int64_t life_ms);
/* How many pods may share what is left of the cap, if one alone could live on it for left_ms and
 * one takes cold_ms to come up. */
int budget_shares(int64_t left_ms, int most, int64_t cold_ms);
/* what a further pod takes to come up: measured, else by the ledger, else a guess */
int64_t budget_cold(const struct core *c);

/* What was billed until now, of pods that are gone and of those that are there. */
int64_t budget_spent(const struct core *c);
/* Why a pod at its price breaks a cap; NULL: it does not. One that is a little dearer than its
 * offer gets an earlier hard end. */
const char *budget_refuses(const struct core *c, struct core_pod *p);
/* Returns `at` (boot clock) or an earlier time. After a power cut or a sleep, no client may have
 * looked for a day. A pod that no list has shown since its hard end ended itself then, and the time
 * from then on is not billed. */
int64_t budget_billed_until(const struct core_pod *p, int64_t at);

/* forecast.c: what the plan expects, and what comes of it */
void forecast_init(struct core *c);
void forecast_free(struct core *c);
/* NULL: there is none */
struct forecast *forecast_of(const struct core *c, const char *provider, const char *gpu);
/* a batch is done, and it was no worker's first */
void forecast_measured(struct core *c, const struct core_batch *b, int64_t ms);
/* Of a worker that renders several batches side by side: what it finished in a time, about as much
 * as it holds. */
void forecast_measured_beside(struct core *c, const struct core_pod *p, size_t segments,
			      double weight, int64_t ms);
void forecast_listed(struct core *c); /* offers, and their prices */
/* it is far off; false: it holds */
bool forecast_why(const struct core *c, char *to, size_t room);
void forecast_correct(struct core *c); /* by what is known now */

/* replan.c: the rest is planned again */
void replan_advance(struct core *c);
int64_t replan_wake_at(const struct core *c);

/* segments.c */
void segments_init(struct core *c);
bool segments_settled(const struct core *c); /* every segment is safe or failed */
/* The heaviest open segment of a group; -1: there is none. */
int64_t segments_top(struct core *c, struct heap *h);
void segment_reopen(struct core *c, uint32_t i);                                /* -> TODO */
void segment_take(struct core *c, uint32_t i, enum core_seg_state to, int pod); /* TODO -> */
void segment_settle(struct core *c, uint32_t i, enum core_seg_state to); /* -> SAFE or FAILED */
void segment_leave_pod(struct core *c, struct seg *s);
void segment_lost(struct core *c, uint32_t i); /* with its pod */

/* dispatch.c */
void dispatch_free(struct core *c);
void dispatch_fill(struct core *c, int pod); /* gives the pod what it should hold now */
/* all that the pod holds and has not finished goes back */
void dispatch_lost(struct core *c, int pod);
void dispatch_resend(struct core *c, int pod); /* batches that may not have arrived */
/* all that is left, evenly to the pods that work */
void dispatch_deal(struct core *c);
void dispatch_running(struct core *c, const struct event *ev);
void dispatch_started(struct core *c, const struct event *ev);
void dispatch_done(struct core *c, const struct event *ev);
void dispatch_revoked(struct core *c, const struct event *ev);
void dispatch_rendered(struct core *c, const struct event *ev);
void dispatch_failed(struct core *c, const struct event *ev);

/* fetch.c */
void fetch_arrived(struct core *c, const struct event *ev);
void fetch_not_arrived(struct core *c, const struct event *ev);
void fetch_placed(struct core *c, const struct event *ev);
void fetch_begin(struct core *c, int pod, uint32_t i);
void fetch_segment_failed(struct core *c, uint32_t i); /* the segment will not succeed */
/* asks for what is finished on the pod and neither home nor on its way */
void fetch_pending(struct core *c, int pod);
/* the transfers under way ended with their connection */
void fetch_forget(struct core *c, int pod);
/* the pod's finished files that are not home cannot be fetched: they are rendered again */
void fetch_lost(struct core *c, int pod);
/* what is not home of it is asked for again later */
void fetch_later(struct core *c, int pod);
void fetch_reset_delay(struct core *c, int pod);

/* sizes.c */
double size_weight(const struct core *c);                          /* of the next batch, at most */
size_t size_count(const struct core *c, const struct core_pod *p); /* its segments, at most */
bool size_wants_more(const struct core *c, const struct core_pod *p);

/* pace.c */
double pace_rate(const struct core *c); /* weight a second of one worker; 0: unknown */
/* only the first batches are known: it may be several times too low */
bool pace_is_rough(const struct core *c);
double pace_at_best(const struct core *c);     /* as high as the rate may turn out to be */
double pace_weight_held(const struct core *c); /* with pods and not rendered */
/* What a batch costs by itself, as the weight that its time would render; 0: unknown, or next to
 * nothing. */
double pace_fixed_weight(const struct core *c);
void pace_batch(struct core *c, struct core_batch *b, double weight, int64_t t);
void pace_segment(struct core *c, const struct event *ev); /* it is rendered */
void pace_failed(struct core *c, const struct event *ev);
void pace_note_size(struct core *c, const struct core_batch *b, double ms);

/* speed.c */
/* how many segments a batch for this pod may have */
size_t speed_batch_most(const struct core *c, const struct core_pod *p);
/* as pace_rate(), by the measurements of earlier runs; 0: there are none */
double speed_rate(const struct core *c);
/* far too slow: the run stops while it is cheap */
void speed_judge_canary(struct core *c, const struct core_batch *b, int64_t ms);

/* pod.c: one pod, coming up and at work */
void pod_event(struct core *c, const struct event *ev);
/* Where its account's pods may not end themselves, so this run and the ledger know, they would get
 * no work: none is rented. */
void switch_check(struct core *c, int provider);
/* adopted: what it needs at the start of this life, or when another run hands it over */
void pod_take_over(struct core *c, int pod);
void pod_prepare(struct core *c, struct core_pod *p); /* or it waits for the volume */

/* boot.c */
bool boot_is_under_way(const struct core_pod *p);
void boot_timed_out(struct core *c, struct core_pod *p);
void boot_read_log(struct core *c, struct core_pod *p);
/* At its deadline: an image that is still being pulled is no stuck host. */
bool boot_log_may_help(struct core *c, struct core_pod *p);
void boot_log_came(struct core *c, struct core_pod *p, const struct event *ev);

/* pods.c: decisions about the pods that are due, and about all */
void pods_decide(struct core *c);
void pods_decide_all(struct core *c);
/* Whether an agent says that its batches are over or not: when all is safe, it bills for nothing.
 */
void pods_leave_settled(struct core *c);
void pod_tick(struct core *c, int pod); /* what time alone changes */
void pod_keep_up(struct core *c, int pod);
void pods_slept(struct core *c); /* EV_SLEPT */
int64_t pod_wake_at(const struct core *c, const struct core_pod *p);

/* rent.c: from the wish to the answer */
void pod_rent(struct core *c, struct candidate *from, int64_t hard_end_at);
void pod_rented(struct core *c, struct core_pod *p, const struct pod_view *view);
/* False: its answer was lost, but p->view shows the pod: seen_rented() takes that. */
bool pod_rent_failed(struct core *c, struct core_pod *p, const struct err *err);
void pod_never_existed(struct core *c, struct core_pod *p, const struct err *why);
/* resting.c */
/* Its offer is not taken for this long. After trouble the rest grows each time; least_ms is its
 * minimum. */
void resting_for(struct core *c, const struct core_pod *p, int64_t ms);
void resting_after_trouble(struct core *c, const struct core_pod *p, int64_t least_ms);
/* 5 s at first, a minute at most */
void resting_sold_out(struct core *c, const struct core_pod *p, int64_t least_ms);
/* Its host was of no use: its offer is left alone for a moment, and goes last for a while. */
void resting_bad_host(struct core *c, int pod, const char *why);
void resting_spot_refused(struct core *c, const struct core_pod *p);

/* warm.c: pods that pass from run to run */
/* Before `wanted` pods are rented: false while other runs' offers are being looked at. */
bool warm_seek(struct core *c, int wanted);
void warm_seek_done(struct core *c); /* EV_SOUGHT */
int64_t warm_wake_at(const struct core *c);
/* True: it is on offer and not to be released yet. The first call offers it, if it may be. */
bool warm_is_offered(struct core *c, int pod);
int64_t warm_keep_ms(const struct core *c, const struct core_pod *p); /* 0: not at all */
void warm_not_wanted(struct core *c, struct core_pod *p);
void warm_taken(struct core *c, struct core_pod *p, int64_t at);

/* queue.c: a pod that its vendor has accepted and not placed on a machine */
/* a listing says so, or not any more */
void queue_seen(struct core *c, struct core_pod *p, enum pod_state state);
void queue_ended(struct core_pod *p, const struct pod_view *view); /* a listing shows its end */
void queue_listed_again(struct core_pod *p);                       /* after it counted as gone */
/* its deadline has come */
void queue_watch(struct core *c, struct core_pod *p);

/* width.c: how many pods */
struct stint { /* of a pod, in ms from now: when it takes up work, and when it takes no more */
	int64_t from_ms, to_ms;
};
/* Whether a pod that is ready at one.from_ms would then find work for least_ms, beside the others.
 * work_ms: what is left, as the time that one pod would take for it. */
bool width_pays(double work_ms, const struct stint *others, size_t count, struct stint one,
		int64_t least_ms);
int width_count_active(const struct core *c, int *working, int *coming);
/* The rate is not known well enough to tell how wide. */
bool width_is_open(const struct core *c, int active);
/* rents what is worth renting */
void width_advance(struct core *c);
/* One pod that comes up and would find too little work is not wanted any more. */
void width_release_surplus(struct core *c);
/* when it has something to do next, beside what its pods have */
int64_t width_wake_at(const struct core *c);

/* handover.c */
void handover_begin(struct core *c);
/* Sends the order again to agents that got work since. */
void handover_again(struct core *c);

/* lease.c: who renews a pod's lease */
void lease_to_agent(struct core *c, int pod);
/* Orders its agent to renew the lease itself; batches sent before are in its queue by then. */
void lease_order(struct core *c, int pod);
void lease_confirmed(struct core_pod *p, uint32_t turn); /* EV_HANDOVER_DONE */
void lease_work_added(struct core_pod *p); /* the order must be sent again behind it */
void lease_take_back(struct core *c, struct core_pod *p); /* this client renews it from now on */

/* query.c */
/* For its volume or its offers, without an answer until now. */
bool query_is_open(const struct vendor *v);
bool query_is_overdue(const struct core *c, const struct vendor *v);
/* When an answer becomes late; NEVER: none is waited for, or it fills a volume. */
int64_t query_overdue_at(const struct vendor *v);
bool query_fills_volume(const struct core *c); /* some vendor does */
bool query_makes_volume(const struct core *c); /* likewise: the next pod is rented there */
/* Returns true while some provider may still answer in time; overdue ones are skipped. */
bool query_next(struct core *c);
bool query_all_sent(const struct core *c);       /* only overdue answers are left to wait for */
bool query_other_answered(const struct core *c); /* a vendor that fills no volume, or is late */
bool query_any_left(const struct core *c);
bool query_wait_is_over(const struct core *c); /* `wait` is over */
/* False: it is asked for. */
bool query_has_image(struct core *c, int provider);
bool query_has_volume(struct core *c, int provider);
void query_slept(struct core *c);
void query_again(struct core *c);                            /* every vendor, what it has now */
void query_answered(struct core *c, const struct event *ev); /* EV_OFFERS, EV_VOLUME */
void query_volume_fills(struct core *c, const struct event *ev);
void query_image_answered(struct core *c, const struct event *ev);

/* seen.c: what the vendors' listings say */
void seen_views(struct core *c, int provider, const struct pod_view *views, size_t count,
		int64_t asked_at, bool partial);
void seen_inspected(struct core *c, const struct event *ev);
/* its create was answered, or a list shows it */
void seen_rented(struct core *c, struct core_pod *p, const struct pod_view *view);
void pod_take_view(struct core *c, struct core_pod *p, const struct pod_view *view);

/* proof.c */
/* A look at a released pod, at one whose release is refused, or at a create without an answer that
 * no listing shows. */
void proof_confirm(struct core *c, struct core_pod *p, bool there, int64_t asked_at);
void proof_refused(struct core *c, struct core_pod *p, bool there, int64_t asked_at);
void proof_ambiguous(struct core *c, struct core_pod *p, int64_t asked_at);
/* A list shows a pod whose release was accepted or denied: it bills until the next release. */
void proof_refuted(struct core_pod *p);
/* When (boot clock) a listing without it must have been asked for to prove it gone, once
 * p->clean_at is known. */
int64_t proof_at(const struct core *c, const struct core_pod *p);

/* listing.c: when the vendors are asked for their listings */
void listing_send_due(struct core *c);
void listing_came(struct core *c, const struct event *ev);
/* A create whose answer was lost may have made a second pod, and no list has been had since that
 * pod must be in it. */
bool listing_awaits_twin(const struct vendor *v);
/* Every account that was used has been looked at since nothing more can turn up there, or cannot
 * be. */
bool listing_all_final(struct core *c);
/* When its listing is no longer waited for before the exit; NEVER: it can be asked for at once. */
int64_t listing_timeout_at(const struct core *c, const struct vendor *v);

/* leave.c: on its way out */
/* It is not needed, or no good: from now on it is not wanted. fault ERR_NONE: its work is done. */
void pod_dismiss(struct core *c, int pod, enum err_kind fault, const char *fmt, ...) PRINTF(4, 5);
void pod_set_leave(struct core *c, struct core_pod *p, enum pod_leave leave);
/* False: at its price it breaks a cap, and it is dismissed. */
bool pod_fits_caps(struct core *c, struct core_pod *p);
/* For pods_decide() alone: no more work for it, what is finished comes home, within bounds. */
void leave_empty(struct core *c, struct core_pod *p);
void leave_release(struct core *c, struct core_pod *p);       /* likewise */
void leave_release_again(struct core *c, struct core_pod *p); /* it is still there */
/* True: the job failed on it, and it is kept for a look (conf.keep_ms); the first call says so to
 * people. */
bool leave_for_inspection(struct core *c, int pod);
/* It ended without being asked; gone: the vendor itself says so. */
void pod_vanished(struct core *c, struct core_pod *p, const char *how, bool gone);
void pod_unpulled(struct core *c, struct core_pod *p, const struct err *why);
/* its container could not be made; it is gone */
void pod_unmade(struct core *c, struct core_pod *p, const char *how);
void pod_set_gone(struct core *c, struct core_pod *p);
void pod_released(struct core *c, struct core_pod *p, enum release_word word,
		  const struct err *err);

/* durable.c: a pod's files by way of its volume */
/* Its files can be fetched from its volume once they are durable: that is asked for. */
void durable_request(struct core *c, struct core_pod *p);
void durable_synced(struct core *c, struct core_pod *p, const struct event *ev); /* EV_SYNCED */
/* Reads from the volume what the pod finished: its log is there. */
void durable_salvage(struct core *c, struct core_pod *p);
void durable_salvaged(struct core *c, struct core_pod *p, const struct err *err); /* EV_SALVAGED */
/* What it finished and is not fetched: from its volume, if that can be read without the pod; else
 * it is rendered again. */
void durable_rescue(struct core *c, struct core_pod *p);

#endif
