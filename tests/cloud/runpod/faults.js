'use strict';
// faults.js - how the stand-in misbehaves. A rule is
//   {"when":{op,pod,name,gpu,dc,cloud,spot,key,path}, "skip":0, "times":1, "do":{..}}      times -1: always
// op is as in server.js ("createPod", "listPods", "graphql:podTerminate", "s3:PutObject", ...); the texts of `when` are
// regular expressions over the whole text. What `do` may say:
//   status, detail, headers, body   answer this              after:true   ... once the request has been carried out
//   reset:true                      drop the connection      delay_ms     wait first
//   hang_ms:N                       answer so late what was carried out at once
//   cut:N                           send N bytes of the reply, then drop the connection
//   set:{..}                        put these members into the reply's object (and into each pod of a list)
//   extreme:NAME                    answer so (common/extremes.js)
//   hide:true                       leave the pods that `when` names out of the reply, or answer 404 for one
//   pod:{..}                        a pod created by this request behaves so (see pods.js: quirks)
// Named ones, F1 to F30, are made of these by named().

const { Faults } = require('../common/rules');

const CAPACITY =
	'There are no longer any instances available with the requested specifications. Please refresh and try again.';

function list(op, extra) {
	return { when: { op, ...extra } };
}

// The rules behind the name of a fault of the reference; `o` may hold when (added), times, skip and the fault's own figures.
function named(name, o) {
	const create = (what) => ({ ...list('createPod|graphql:pod(RentInterruptable|FindAndDeployOnDemand)'), do: what });
	const quirk = (pod) => create({ pod });
	const ssh = (pod) => quirk(pod);
	const table = {
		F1: () => [create({ status: 500, detail: 'Something went wrong. Please try again later or contact support.', after: true })],
		F2: () => [create({ reset: true, after: true })],
		F3: () => [quirk({ hidden_ms: o.ms || 30000, unlisted_ms: o.list ? o.ms || 30000 : 0 })],
		F4: () => [quirk({ unlisted_ms: o.ms || 1e9 })],
		F5: () => [create({ status: 400, detail: CAPACITY })],
		F6: () => [
			{ ...list(o.op || '.*'), do: { status: 429, detail: 'rate limit exceeded for the minute window',
				headers: { 'Retry-After': '2', RateLimit: '"minute";r=0;t=12, "hour";r=2800;t=1812, "day";r=49500;t=45012' } } },
		],
		F7: () => [create({ status: 402, detail: 'insufficient balance' })],
		F8: () => [create({ status: 403, detail: 'access denied' })],
		F9: () => [quirk({ stuck: 'PROVISIONING' })],
		F10: () => [quirk({ runtime: o.runtime === undefined ? null : o.runtime, no_ssh: true })],
		F11: () => [ssh({ door: o.door || 'reset' })],
		F12: () => [ssh({ door: 'wrong-key' })],
		F13: () => [ssh({ drop_after_bytes: o.bytes || 200000, drop_times: o.drops || 1 })],
		F14: () => [quirk({ stuck: 'ERROR' })],
		F15: () => [quirk({ preempt_after_ms: o.ms || 3000, preempt_to: o.to || 'EXITED' })],
		F16: () => [
			o.way === 'lingers' ? quirk({ lingers_ms: o.ms || 20000 })
			: o.way === 'outlives' ? quirk({ outlives_ms: o.ms || 20000 })
			: o.way === 'appears' ? quirk({ delete_404_ms: o.ms || 5000 })
			: o.way === 'denied' ? quirk({ denied_ms: o.ms || 20000 })
			: { ...list('deletePod'), do: { status: 500, detail: 'internal error' } },
		],
		F17: () => [{ ...list('listPods'), do: { hide: true } }],
		F18: () => [{ ...list('getPod|listPods'), do: { set: { status: o.status || 'RESTARTING' } } }],
		F19: () => [quirk({ stale_port_ms: o.ms || 90000 })],
		F20: () => [
			{ ...list('podLogs'), do: { sse: { quiet_ms: o.quiet_ms || 0, cut: o.cut || 0, multiline: !!o.multiline, plain_id: !!o.plain_id } } },
		],
		F21: () => [
			{ ...list(o.op || 'getPod|listPods'), do:
				o.way === 'html' ? { status: 502, html: true }
				: o.way === 'big' ? { big: 65 << 20 }
				: o.way === 'invalid' ? { body: '{"pods": [nonsense' }
				: { cut: o.bytes || 40 } },
		],
		F22: () => [quirk({ cost: o.cost || 99.5 })],
		F23: () => [
			o.way === 'loop' ? { ...list('s3:ListObjectsV2'), do: { same_token: true } }
			: o.way === 'lost' ? { ...list('s3:CompleteMultipartUpload'), do: { lose: true } }
			: o.way === 'full' ? { ...list('s3:(PutObject|UploadPart)'), do: { s3: 'InsufficientStorage', status: 507 } }
			: { ...list('s3:.*'), times: o.times || 9, do: { s3: 'BadGateway', status: 502 } },
		],
		F25: () => [quirk({ no_gpu: true })],
		F26: () => [quirk({ volume: o.how || 'ro' })],
		F27: () => [quirk({ locked: true })],
		F28: () => [create({ twin: true })],
		F29: () => [
			{ ...list('getPod|listPods|createPod|listGpus|listVolumes'), do: { set: { zebra: { stripes: [1, 2] } }, set_top: { nextCursor: o.cursor === undefined ? 'b3BhcXVl' : o.cursor, zebra: true } } },
		],
	};
	if (!table[name]) throw new Error(`no fault is called ${name} (F24 is a setting: s3_clock_ms; F30 is always so)`);
	return table[name]().map((rule) => ({
		...rule,
		name,
		when: { ...rule.when, ...(o.when || {}) },
		times: o.times !== undefined ? o.times : rule.times === undefined ? 1 : rule.times,
		skip: o.skip || 0,
	}));
}

module.exports = { Faults, named, CAPACITY };
