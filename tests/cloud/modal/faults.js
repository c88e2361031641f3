'use strict';
// faults.js - how the stand-in misbehaves. A rule is
//   {"when":{op,gpu,name,app,sandbox,task,attempt}, "skip":0, "times":1, "do":{..}}      times -1: always
// op is the call's name ("SandboxCreate"); the texts of `when` are regular expressions over the whole text. What `do` may say:
//   status (a name or a number), message, retry_after_s    answer this error         after:true   ... once it has been carried out
//   wire:{..}           how the reply travels (grpc.js)     delay_ms   wait first     strange:true   fields that nobody knows
//   sandbox:{..}        a sandbox created by this call behaves so (sandboxes.js: quirks)
//   image:{..}          an image built by this call ends so (account.js: build)
//   token_s             AuthTokenGet's token is good for so long                      dead_urls:true   URLs that have expired
//   hide:true           a list is empty
// The faults of the reference have names, made of these by named().

const { Faults } = require('../common/rules');

const ALL = '.*';

// The rules behind a name; `o` may hold when (added), op, times, skip and the fault's own figures.
function named(name, o) {
	const on = (op, what) => ({ when: { op: o.op || op }, do: what });
	const sandbox = (quirk) => on('SandboxCreate', { sandbox: quirk });
	const table = {
		unavailable: () => on(ALL, { status: o.status || 'UNAVAILABLE', message: o.message || 'connection to the backend was lost: 50% of it' }),
		throttled: () => on(ALL, { status: o.status || 'RESOURCE_EXHAUSTED', message: 'rate limited', retry_after_s: o.retry_after_s || 0.5 }),
		exhausted: () => on('SandboxCreate', { status: 'RESOURCE_EXHAUSTED', message: o.message || 'Sandbox creation rate limit (5/s) exceeded' }),
		refused: () => on('SandboxCreate', { status: o.status || 'NOT_FOUND', message: o.message || 'Workspace budget limit reached' }),
		lost_reply: () => on('SandboxCreate', { after: true, wire: { reset: true } }),
		error_after: () => on('SandboxCreate', { after: true, status: o.status || 'INTERNAL', message: 'internal error' }),
		rst_stream: () => on(ALL, { wire: { rst_after: o.messages || 0 } }),
		cut_stream: () => on(ALL, { wire: { cut_after: o.bytes || 3 } }),
		late_error: () => on(ALL, { status: o.status || 'UNAVAILABLE', message: 'too late', wire: { late_error: true } }),
		split_frames: () => on(ALL, { wire: { split: true } }),
		two_in_one: () => on(ALL, { wire: { merge: true } }),
		compressed: () => on(ALL, { wire: { flag: true } }),
		no_status: () => on(ALL, { wire: { no_status: true } }),
		goaway: () => on(ALL, { wire: { goaway: true } }),
		http: () => on(ALL, { wire: { http: o.status || 503 } }),
		strange_fields: () => ({ ...on(ALL, { strange: true }), times: -1 }),
		short_token: () => on('AuthTokenGet', { token_s: o.seconds || 3 }),
		never_scheduled: () => sandbox({ stuck: 'QUEUED' }),
		never_starts: () => sandbox({ stuck: 'SCHEDULED' }),
		late_schedule: () => sandbox({ schedule_ms: o.ms || 5000 }),
		late_sshd: () => sandbox({ deaf_ms: o.ms || 3000 }),
		reset_conns: () => sandbox({ reset_conns: o.count || 2 }),
		no_tunnel: () => sandbox({ no_tunnel: true }),
		tls_only: () => sandbox({ tls_only: true }),
		wrong_key: () => sandbox({ door: 'wrong-key' }),
		drops: () => sandbox({ drop_after_bytes: o.bytes || 200000, drop_times: o.drops || 1 }),
		slow_end: () => sandbox({ term_ms: o.ms || 20000 }),
		preempted: () => sandbox({ preempt_after_ms: o.ms || 3000 }),
		evicted: () => sandbox({ evict_after_ms: o.ms || 3000 }),
		init_failure: () => sandbox({ init_failure: o.message || 'failed to mount the image' }),
		unlisted: () => sandbox({ unlisted_ms: o.ms || 30000 }),
		no_gpu: () => sandbox({ no_gpu: true }),
		other_gpu: () => sandbox({ gpu_got: o.gpu || 'H200' }),
		lose_unsynced: () => sandbox({ lose_unsynced: true }),
		sync_fails: () => sandbox({ fail_sync: true }),
		lists_refused: () => on(o.v2 ? 'SandboxListV2' : 'SandboxList(V2)?', { status: o.status || 'FAILED_PRECONDITION', message: o.message || 'Listing Sandboxes is not supported for this client' }),
		hangs: () => on('SandboxCreate', { wire: { hang_ms: o.ms || 60000 } }),
		empty_list: () => on('SandboxList(V2)?', { hide: true }),
		dead_urls: () => on('Volume(Get|Put)Files?2', { dead_urls: true }),
		image_result: () => on('ImageGetOrCreate', { image: { result: o.result || 'FAILURE', exception: o.message } }),
		slow_image: () => on('ImageGetOrCreate', { image: { build_ms: o.ms || 5000 } }),
	};
	if (!table[name]) throw new Error(`no fault is called ${name}; there are ${Object.keys(table).join(', ')}`);
	const rule = table[name]();
	return { ...rule, name, when: { ...rule.when, ...(o.when || {}) }, times: o.times !== undefined ? o.times : rule.times === undefined ? 1 : rule.times, skip: o.skip || 0 };
}

module.exports = { Faults, named };
