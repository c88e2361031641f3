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
/* No new work from now on: finished files are fetched, pods are released. The first reason is kept
 * unless a graver one replaces it. */
void core_fault(struct core *c, int pod, const struct err *err);
void core_stop(struct core *c); /* like core_fault(), without an error */
/* Its batches that have not begun are taken back, and its commands end within grace_ms. */
void core_take_back(struct core *c, struct core_pod *p, int64_t grace_ms);
int core_gravity(enum err_kind kind);
/* Work of this length is lost. Workers side by side can lose the same seconds, so this never counts
 * more than the pod has computed. */
void core_waste(struct core_pod *p, int64_t ms);
bool core_stopping(const struct core *c);
bool core_reads_past(const struct core *c);
/* Adopted at the start: its log is to be read before its work is dealt out again. */
void pod_await_log(struct core *c, int pod);
bool pod_log_awaited(const struct core *c, const struct core_pod *p);
bool pod_active(const struct core_pod *p); /* rented or being rented, and not to be released */
bool pod_files_outlive(const struct core_pod *p); /* its files can be read when it is gone */
bool pod_nothing_comes(const struct core *c, const struct core_pod *p); /* it gets no more work */
struct vendor *pod_vendor(struct core *c, const struct core_pod *p);
/* boot clock: what is this time on its provider's clock */
int64_t core_boot_of(const struct core *c, int provider, int64_t there_s);
int pod_index(const struct core *c, const struct core_pod *p);
void pod_enter(struct core *c, struct core_pod *p, enum pod_phase phase);
void pod_due(struct core *c, int pod); /* pods_decide() examines it at the end of this step */
void pod_set_leave(struct core *c, struct core_pod *p, enum pod_leave leave);
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
/* while pods are replaced, offers of other GPUs are skipped */
bool core_skips(const struct core *c, const struct candidate *k);
bool core_may_add_pods(const struct core *c); /* part of the budget is reserved for more pods */
int core_pods_most(const struct core *c); /* at a time, including those that are being replaced */
int core_outgoing(const struct core *c);  /* pods that work until others replace them */

/* offers.c */
/* past: one for each offer, or NULL, which keeps what was known of them. */
void offers_take(struct core *c, int provider, const struct offer *list,
		 const struct offer_past *past, size_t count);
/* The best candidate now, or NULL and the reason in c->capacity; *again_at: when one may be
 * available again. Avoided offers count only if avoided_too. */
struct candidate *offers_pick(struct core *c, bool avoided_too, int64_t *again_at);
/* Before the chosen offer is rented: reports which better ones are avoided, or that it is avoided
 * itself. */
void offers_report(struct core *c, const struct candidate *chosen);
struct candidate *offers_of(struct core *c, const struct core_pod *p);
/* An offer other than this pod's could be tried now, or a provider that was not asked yet may have
 * one. */
bool offers_other_than(const struct core *c, const struct core_pod *p);
void offers_sort(struct core *c); /* after the order of preference has changed */
/* it could be rented now, and is not avoided */
bool offers_ready(const struct core *c, const struct candidate *k);
/* above caps.max_price_per_hour, or its card is unfit */
bool offers_barred(const struct core *c, const struct candidate *k);
/* from now on nothing with its card is rented */
void offers_unfit(struct core *c, const struct core_pod *p, bool anywhere, const char *why);
/* something may be rented, now or later, or a provider was not asked yet */
bool offers_any_left(const struct core *c);

/* budget.c */
/* Hard end (boot clock) of a pod at this price if it is rented now and `more` pods are to follow;
 * -1: the caps leave no room. */
int64_t budget_hard_end(const struct core *c, int64_t price_microusd_h, int more);
/* a pod that is rented now and ends then could do some work */
bool budget_useful(const struct core *c, int64_t end);
int64_t budget_committed(const struct core *c);
/* The caps of this client may be lower than those that adopted pods were rented under. */
void budget_fit_adopted(struct core *c);
/* Likewise for a pod that another run has handed over. */
void budget_fit_pod(struct core *c, struct core_pod *p);
/* Each adopted pod past its own hard end has been looked up by this client, or cannot be. */
bool budget_is_known(const struct core *c);
/* Milliseconds before the hard end of a pod of this life that are kept for its release. */
int64_t budget_margin(int64_t life_ms);
/* How many pods may share what is left of the cap, if a single pod could live on it for left_ms and
 * a pod needs cold_ms to boot. */
int budget_shares(int64_t left_ms, int most, int64_t cold_ms);
/* boot time of a further pod: measured, else from the ledger, else a guess */
int64_t budget_cold(const struct core *c);

/* What was billed until now, of pods that are gone and of living ones. */
int64_t budget_spent(const struct core *c);
/* Why a pod at its price breaks a cap; NULL: it does not. A pod slightly above its offer's price
 * gets an earlier hard end. */
const char *budget_refuses(const struct core *c, struct core_pod *p);
int64_t budget_seen_until(const struct core_pod *p,
			  int64_t at); /* or later, if it was seen later */
/* Returns `at` (boot clock) or an earlier time. After a power cut or a sleep, no client may have
 * looked for a day. A pod that no list has shown since its hard end ended itself then, and the time
 * from then on is not billed. */
int64_t budget_billed_until(const struct core_pod *p, int64_t at);

/* forecast.c: what the plan expects, compared with what is measured */
void forecast_init(struct core *c);
void forecast_free(struct core *c);
/* NULL: there is none */
struct forecast *forecast_of(const struct core *c, const char *provider, const char *gpu);
/* a batch is done that was no worker's first */
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
bool segments_settled(const struct core *c); /* every segment is local or failed */
/* The heaviest open segment of a group; -1: there is none. */
int64_t segments_top(struct core *c, struct heap *h);
void segment_reopen(struct core *c, uint32_t i);                                /* -> TODO */
void segment_take(struct core *c, uint32_t i, enum core_seg_state to, int pod); /* TODO -> */
void segment_settle(struct core *c, uint32_t i, enum core_seg_state to); /* -> LOCAL or FAILED */
void segment_leave_pod(struct core *c, struct seg *s);
void segment_lost(struct core *c, uint32_t i); /* with its pod */

/* dispatch.c */
void dispatch_free(struct core *c);
void dispatch_fill(struct core *c, int pod); /* gives the pod the work that it should hold now */
/* the pod's unfinished work becomes open again */
void dispatch_lost(struct core *c, int pod);
void dispatch_resend(struct core *c, int pod); /* sends batches again that may not have arrived */
/* deals all that is left evenly to the pods that work */
void dispatch_deal(struct core *c);
void dispatch_running(struct core *c, const struct event *ev);
void dispatch_started(struct core *c, const struct event *ev);
void dispatch_done(struct core *c, const struct event *ev);
void dispatch_revoked(struct core *c, const struct event *ev);
void dispatch_checkpoint(struct core *c, const struct event *ev);
void dispatch_rendered(struct core *c, const struct event *ev);
void dispatch_failed(struct core *c, const struct event *ev);

/* fetch.c */
void fetch_arrived(struct core *c, const struct event *ev);
void fetch_not_arrived(struct core *c, const struct event *ev);
void fetch_placed(struct core *c, const struct event *ev);
void fetch_begin(struct core *c, int pod, uint32_t i);
void fetch_segment_failed(struct core *c, uint32_t i); /* the segment cannot succeed */
/* requests the pod's finished files that are neither local nor under way */
void fetch_pending(struct core *c, int pod);
/* the transfers under way ended with their connection */
void fetch_forget(struct core *c, int pod);
/* the pod's finished files cannot be fetched: their segments are rendered again */
void fetch_lost(struct core *c, int pod);
void fetch_files(struct core *c, const struct event *ev);
/* The outputs of its commands: fetched again from where its files are, or lost. */
void fetch_outputs(struct core *c, int pod, bool lost);
/* its files that are not local are requested again later */
void fetch_later(struct core *c, int pod);
void fetch_reset_delay(struct core *c, int pod);

/* sizes.c */
double size_weight(const struct core *c);                          /* of the next batch, at most */
size_t size_count(const struct core *c, const struct core_pod *p); /* its segments, at most */
bool size_wants_more(const struct core *c, const struct core_pod *p);

/* pace.c */
double pace_rate(const struct core *c); /* weight a second of one worker; 0: unknown */
/* only first batches are known: the rate may be several times too low */
bool pace_is_rough(const struct core *c);
double pace_at_best(const struct core *c);     /* an upper bound of the rate */
double pace_weight_held(const struct core *c); /* held by pods and not rendered */
/* A batch's own cost, as the weight that its time would render; 0: unknown, or hardly anything. */
double pace_fixed_weight(const struct core *c);
void pace_batch(struct core *c, struct core_batch *b, double weight, int64_t t);
void pace_segment(struct core *c, const struct event *ev); /* it is rendered */
void pace_failed(struct core *c, const struct event *ev);
void pace_note_size(struct core *c, const struct core_batch *b, double ms);

/* speed.c */
/* how many segments a batch for this pod may have */
size_t speed_batch_most(const struct core *c, const struct core_pod *p);
/* as pace_rate(), by measurements of earlier runs; 0: there are none */
double speed_rate(const struct core *c);
/* if it is far too slow, the run stops while it is cheap */
void speed_judge_canary(struct core *c, const struct core_batch *b, int64_t ms);

/* pod.c: events of one pod that boots and works */
void pod_event(struct core *c, const struct event *ev);
/* Rents nothing from a provider whose pods cannot end themselves, as this run or the ledger knows:
 * they would get no work. */
void switch_check(struct core *c, int provider);
/* adopted: prepares it for this run, at the start or when another run hands it over */
void pod_begin_adopted(struct core *c, int pod);
void pod_prepare(struct core *c, struct core_pod *p); /* or it waits for the volume */

/* boot.c */
bool boot_is_under_way(const struct core_pod *p);
void boot_timed_out(struct core *c, struct core_pod *p);
void boot_read_log(struct core *c, struct core_pod *p);
/* At the deadline: a pod that still pulls its image is not on a stuck host. */
bool boot_log_may_help(struct core *c, struct core_pod *p);
void boot_log_came(struct core *c, struct core_pod *p, const struct event *ev);

/* pods.c: decisions about the pods that are due, and about all */
void pods_decide(struct core *c);
void pods_decide_all(struct core *c);
/* When all segments are settled, a pod bills for nothing, even if its agent does not report its
 * batches as over. */
void pods_leave_settled(struct core *c);
void pod_tick(struct core *c, int pod); /* changes that depend on time alone */
void pod_keep_up(struct core *c, int pod);
void pods_slept(struct core *c); /* EV_SLEPT */
int64_t pod_wake_at(const struct core *c, const struct core_pod *p);

/* rent.c: a pod from the create to its answer */
void pod_rent(struct core *c, struct candidate *from, int64_t hard_end_at);
void pod_rented(struct core *c, struct core_pod *p, const struct pod_view *view);
/* Returns false if the reply was lost but p->rental.view shows the pod: call seen_rented(). */
bool pod_rent_failed(struct core *c, struct core_pod *p, const struct err *err);
void pod_never_existed(struct core *c, struct core_pod *p, const struct err *why);
/* resting.c */
/* Its offer is not tried for this long. After trouble the rest grows each time; least_ms is its
 * minimum. */
void resting_for(struct core *c, const struct core_pod *p, int64_t ms);
void resting_after_trouble(struct core *c, const struct core_pod *p, int64_t least_ms);
/* 5 s at first, a minute at most */
void resting_sold_out(struct core *c, const struct core_pod *p, int64_t least_ms);
/* Its host failed: its offer rests for a moment and is avoided for a while. */
void resting_bad_host(struct core *c, int pod, const char *why);
void resting_spot_refused(struct core *c, const struct core_pod *p);

/* warm.c: pods that pass from run to run */
/* Before `wanted` pods are rented: false while a search for pods on offer is under way. */
bool warm_seek(struct core *c, int wanted);
void warm_seek_done(struct core *c); /* EV_SOUGHT */
int64_t warm_wake_at(const struct core *c);
/* Returns true if it is on offer and not to be released yet. The first call offers it, if that is
 * allowed. */
bool warm_is_offered(struct core *c, int pod);
void warm_not_wanted(struct core *c, struct core_pod *p);
void warm_taken(struct core *c, struct core_pod *p, int64_t at);

/* queue.c: a pod that its provider has accepted and not placed on a machine */
/* a listing shows whether it is still queued */
void queue_seen(struct core *c, struct core_pod *p, enum pod_state state);
void queue_ended(struct core_pod *p, const struct pod_view *view); /* a listing shows its end */
void queue_listed_again(struct core_pod *p);                       /* after it counted as gone */
/* its deadline has come */
void queue_watch(struct core *c, struct core_pod *p);

/* width.c: how many pods */
struct stint { /* of a pod, in ms from now: when it starts to work, and when it gets no more work */
	int64_t from_ms, to_ms;
};
/* Whether a pod that is ready at one.from_ms would then find work for least_ms, beside the others.
 * work_ms: what is left, as the time that one pod would take for it. */
bool width_pays(double work_ms, const struct stint *others, size_t count, struct stint one,
		int64_t least_ms);
int width_count_active(const struct core *c, int *working, int *coming);
/* The rate is too uncertain to decide how many pods pay. */
bool width_is_open(const struct core *c, int active);
/* rents what is worth renting */
void width_advance(struct core *c);
/* Releases one booting pod that would find too little work. */
void width_release_surplus(struct core *c);
/* when it has something to do next, apart from its pods */
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
void lease_to_client(struct core *c, struct core_pod *p); /* this client renews it from now on */

/* query.c */
/* Its volume or its offers were requested and not answered yet. */
bool query_is_open(const struct vendor *v);
bool query_is_overdue(const struct core *c, const struct vendor *v);
/* When a reply becomes overdue; NEVER: none is expected, or it fills a volume. */
int64_t query_overdue_at(const struct vendor *v);
bool query_fills_volume(const struct core *c); /* some provider does */
bool query_makes_volume(
	const struct core *c); /* likewise makes one: the next pod is rented there */
/* Returns true while some provider may still answer in time; overdue ones are skipped. */
bool query_next(struct core *c);
bool query_all_sent(const struct core *c); /* only overdue answers are left to wait for */
bool query_other_answered(
	const struct core *c); /* a provider that fills no volume has answered, or is overdue */
bool query_any_left(const struct core *c);
bool query_wait_is_over(const struct core *c); /* `wait` is over */
/* Returns false once it has been requested. */
bool query_has_image(struct core *c, int provider);
bool query_has_volume(struct core *c, int provider);
void query_slept(struct core *c);
void query_again(struct core *c); /* asks every provider again for what it has now */
void query_answered(struct core *c, const struct event *ev); /* EV_OFFERS, EV_VOLUME */
void query_volume_fills(struct core *c, const struct event *ev);
void query_image_answered(struct core *c, const struct event *ev);

/* seen.c: what providers' listings show */
void seen_views(struct core *c, int provider, const struct pod_view *views, size_t count,
		int64_t requested_at, bool partial);
void seen_inspected(struct core *c, const struct event *ev);
/* its create was answered, or a list shows it */
void seen_rented(struct core *c, struct core_pod *p, const struct pod_view *view);

/* proof.c */
/* A list shows, or omits, a released pod, a pod whose release is refused, or the pod of a create
 * without a reply. */
void proof_outlived_until(struct core *c, struct core_pod *p, int64_t requested_at);
void proof_confirm(struct core *c, struct core_pod *p, enum pod_state state, int64_t requested_at);
void proof_refused(struct core *c, struct core_pod *p, bool there, int64_t requested_at);
void proof_ambiguous(struct core *c, struct core_pod *p, int64_t requested_at);
/* A list shows a pod whose release was accepted or denied: it bills until the next release. */
void proof_refuted(struct core_pod *p);
/* When (boot clock) a listing without it must have been sent to prove it gone, once
 * p->rental.clean_at is known. */
int64_t proof_at(const struct core *c, const struct core_pod *p);

/* listing.c: when to request listings of providers */
void listing_send_due(struct core *c);
void listing_came(struct core *c, const struct event *ev);
/* A lost create may have made a second pod, and no list has been read since that pod must be in it.
 */
bool listing_awaits_twin(const struct vendor *v);
/* An answered or lost create may have made a pod that burst does not know: no complete list has
 * been read since. */
bool listing_may_hide_pod(const struct vendor *v);
/* Every account that was used has been listed since nothing more can surface there, or cannot be
 * listed. */
bool listing_all_final(struct core *c);
/* When the exit no longer waits for its listing; NEVER: it can be listed at once. */
int64_t listing_timeout_at(const struct core *c, const struct vendor *v);

/* leave.c: the end of a pod */
/* The pod is to be released: it is not needed, or failed. fault ERR_NONE: its work is done. */
void pod_dismiss(struct core *c, int pod, enum err_kind fault, const char *fmt, ...) PRINTF(4, 5);
/* Returns false, and dismisses the pod, if it breaks a cap at its price. */
bool pod_fits_caps(struct core *c, struct core_pod *p);
/* For pods_decide() alone: gives it no more work and fetches what is finished, within bounds. */
void leave_empty(struct core *c, struct core_pod *p);
void leave_release(struct core *c, struct core_pod *p);       /* likewise */
void leave_release_again(struct core *c, struct core_pod *p); /* it is still there */
/* Returns true if the job failed on it and it is kept for inspection (conf.keep_ms). The first call
 * reports that. */
bool leave_for_inspection(struct core *c, int pod);
/* It ended without a release; gone: its provider reports it gone. */
void pod_vanished(struct core *c, struct core_pod *p, const char *how, bool gone);
void pod_unpulled(struct core *c, struct core_pod *p, const struct err *why);
/* its container could not be made; it is gone */
void pod_unmade(struct core *c, struct core_pod *p, const char *how);
void pod_set_gone(struct core *c, struct core_pod *p);
void pod_released(struct core *c, struct core_pod *p, enum release_word word,
		  const struct err *err);

/* durable.c: a pod's files by way of its volume */
/* Asks for its finished files to become durable, if they can be fetched from its volume. */
void durable_request(struct core *c, struct core_pod *p);
void durable_synced(struct core *c, struct core_pod *p, const struct event *ev); /* EV_SYNCED */
/* Reads its log on the volume for what it finished. */
void durable_salvage(struct core *c, struct core_pod *p);
void durable_salvage_at(struct core *c, struct core_pod *p, int64_t at);
void durable_salvaged(struct core *c, struct core_pod *p, const struct err *err); /* EV_SALVAGED */
/* Fetches its finished files from its volume if that can be read without the pod; else they are
 * rendered again. */
void durable_rescue(struct core *c, struct core_pod *p);

#endif
