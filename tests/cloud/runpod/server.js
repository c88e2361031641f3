'use strict';
// server.js - a stand-in for RunPod's API whose pods are real. For Debian's own Node, nothing from npm.
//
//   node tests/cloud/runpod/server.js --state DIR [--port 0] [--seed N] [--podbox PROGRAM] [--fast] [--light]
//
// With --light its pods are no containers: one process speaks SSH and the agent's half for all of them (common/light.py), so that
// there can be a thousand.
//
// prints one line, its base URL, once it serves. In DIR it leaves url, s3.url, account.key, readonly.key, s3.access,
// s3.secret (for the client), requests.jsonl (every request, with what was answered) and volumes/ID (the volumes' files).
// Ends with SIGTERM or when its stdin is a pipe that closes (--tied), and takes every pod with it.
//
// Control, as JSON, without a key:
//   GET  /_control/state                    pods (also those that are gone), volumes, settings, stock, faults
//   POST /_control/settings {..}            merged into settings (below)
//   POST /_control/stock {gpu,dc,cloud,free,spot,price,bid,cuda}   see catalog.js
//   POST /_control/fault {"fault":"F1","times":1,"skip":0,"when":{..},...}, or a rule as in faults.js;  DELETE /_control/faults
//   POST /_control/pods/ID {"preempt":"EXITED","quirks":{..},"drop_ssh":true,"kill":9,"move_port":true,"bill_shift_s":[FROM,UNTIL]}
//   POST /_control/clock {"advance_s":N}    the stand-in's time; what falls due happens
//   POST /_control/unheard {"ms":N}         whoever it told died at once: what it told first so lately may be unknown
//   GET  /_control/light                    what the pods of --light count
//   GET  /_control/requests[?from=N]        GET /_control/billing        GET /_control/invariants
//   POST /_control/shutdown

const fs = require('fs');
const http = require('http');
const path = require('path');
const clock = require('../common/clock');
const { options, merge, make_random, record, listen, keep_file } = require('../common/server');
const extremes = require('../common/extremes');
const graphql = require('./graphql');
const rest = require('./rest');
const s3 = require('./s3');
const old_api = require('./old_api');
const { Catalog } = require('./catalog');
const { Faults, named } = require('./faults');
const { Pods } = require('./pods');
const { Light } = require('../common/light');
const { make_image, kind_of } = require('./images');
const { so_far } = require('./billing');

const TITLES = { 400: 'Bad Request', 401: 'Unauthorized', 402: 'Payment Required', 403: 'Forbidden', 404: 'Not Found',
	405: 'Method Not Allowed', 408: 'Request Timeout', 409: 'Conflict', 410: 'Gone', 422: 'Unprocessable Entity',
	429: 'Too Many Requests', 500: 'Internal Server Error', 502: 'Bad Gateway', 503: 'Service Unavailable', 504: 'Gateway Timeout' };
const BODY_MAX = 4 << 20;
const READS = ['listPods', 'getPod', 'podLogs', 'listVolumes', 'getVolume', 'listGpus', 'getGpu', 'listCpus', 'listDataCenters',
	'billingPods', 'billingVolumes', 'getSshKeys'];

const SETTINGS = {
	boot: { provision_ms: 2000, pull_ms: 20000, direct_ms: 8000, banner_ms: 3000 },
	terminated_ms: 0, // so long a GET still shows a pod that is gone, as TERMINATED
	stale_runtime_ms: 2000,
	stop_grace_ms: 300,
	restart_pause_ms: 200, // before a container that ended is started again; doubles
	crash_keeps_disk: true,
	start_without_gpu: false,
	rtt_ms: 0,
	page: 0, // how many pods or volumes a page of their list holds; 0: all
	quotas: { minute: 60, hour: 3000, day: 50000 },
	lengths: { minute: 60, hour: 3600, day: 86400 }, // in seconds: a test may have shorter minutes
	billing: { from: 'created', lag_s: 300, cost_with_disk: false }, // from: created | running
	balance: 25.5,
	spend_limit: 80,
	pod_key: { get: true, delete: true, action: true, graphql: true, create: false },
	s3_clock_ms: 0,
	s3_region_exact: false,
	disk_mb: 2048, // the most of a container's disk that is really there
	least_disk_gb: 1,
	default_disk_gb: 20,
	secrets: {},
	images: {},
};
const FAST = { provision_ms: 50, pull_ms: 100, direct_ms: 50, banner_ms: 0 };

function make_world(opt) {
	const random_id = make_random(opt.seed, 'abcdefghijklmnopqrstuvwxyz0123456789');
	const dir = path.resolve(opt.state);
	const settings = JSON.parse(JSON.stringify(SETTINGS));
	if (opt.fast) Object.assign(settings.boot, FAST);
	const world = {
		dir,
		settings,
		random_id,
		podbox: opt.podbox,
		catalog: new Catalog(),
		faults: new Faults(),
		ssh_keys: [],
		etags: new Map(),
		account_key: `rpa_ACCOUNT${random_id(40).toUpperCase()}`,
		readonly_key: `rpa_READONLY${random_id(40).toUpperCase()}`,
		s3_keys: { access: `user_${random_id(27)}`, secret: `rps_${random_id(40)}` },
		requests: [],
		windows: {},
		image: (name) => make_image(name, settings, process.env.RP_IMAGE_CACHE),
		image_kind: (name) => kind_of(name, settings),
		api_ports: () => [world.port, world.s3_port],
	};
	world.volumes = new rest.Volumes(world);
	world.pods = new Pods(world);
	return world;
}

// ---- who asks, and how often ----

function caller_of(req, url, world) {
	const found = /^Bearer ([^\s]+)$/.exec(req.headers.authorization || '');
	const key = found ? found[1] : url.pathname === '/graphql' ? url.searchParams.get('api_key') : null;
	if (!key) return { kind: 'none' };
	if (key === world.account_key) return { kind: 'account' };
	if (key === world.readonly_key) return { kind: 'readonly' };
	const pod = world.pods.by_key(key);
	if (pod) return { kind: pod.ended_ms ? 'wrong' : 'pod', pod };
	return { kind: 'wrong' };
}

// One user, one set of windows. Gives the headers, and which window is exceeded.
function count_request(world) {
	const now = clock.now() / 1000;
	const policy = [];
	const state = [];
	let exceeded = null;
	for (const [name, length] of Object.entries(world.settings.lengths)) {
		const quota = world.settings.quotas[name];
		const begin = Math.floor(now / length) * length;
		const window = world.windows[name] && world.windows[name].begin === begin ? world.windows[name] : (world.windows[name] = { begin, used: 0 });
		const left = Math.ceil(begin + length - now);
		if (window.used >= quota) exceeded = exceeded || { name, left };
		else window.used++;
		policy.push(`"${name}";q=${quota};w=${length}`);
		state.push(`"${name}";r=${quota - window.used};t=${left}`);
	}
	return { headers: { 'RateLimit-Policy': policy.join(', '), RateLimit: state.join(', ') }, exceeded };
}

function may(caller, op, world) {
	if (caller.kind === 'account') return true;
	if (caller.kind === 'readonly') return READS.includes(op);
	const rights = world.settings.pod_key;
	return !!{ getPod: rights.get, podLogs: rights.get, deletePod: rights.delete, podAction: rights.action, createPod: rights.create }[op];
}

// ---- answering ----

function answer(c, status, body, headers = {}) {
	const text = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body);
	const does = c.does;
	c.status = status;
	if (does.reset) {
		c.status = 0;
		return void c.res.socket.resetAndDestroy();
	}
	const type = status >= 400 && typeof body !== 'string' ? 'application/problem+json' : 'application/json';
	const head = { 'Content-Type': does.html ? 'text/html' : type, ...c.headers, ...headers, ...(does.headers || {}) };
	if (status === 204) {
		delete head['Content-Type'];
		c.res.writeHead(204, head);
		return void c.res.end();
	}
	head['Content-Length'] = Buffer.byteLength(text);
	c.res.writeHead(status, head);
	if (does.cut !== undefined) {
		c.res.write(text.slice(0, does.cut));
		return void setTimeout(() => c.res.socket && c.res.socket.destroy(), 20);
	}
	c.res.end(text);
}

function problem(c, status, detail, errors, headers) {
	c.errors = errors;
	answer(c, status, { title: TITLES[status] || 'Error', status, detail, ...(errors ? { errors } : {}) }, headers);
}

// The reply that a fault gives in place of the real one, or false.
function misbehave(c) {
	const does = c.does;
	if (does.extreme) {
		c.status = 0;
		extremes.http(does.extreme, c.res.socket);
	} else if (does.big) {
		answer(c, 200, `{"pods":[],"padding":"${'x'.repeat(does.big)}"}`);
	} else if (does.html) {
		answer(c, does.status || 502, '<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>');
	} else if (does.body !== undefined) {
		answer(c, does.status || 200, does.body);
	} else if (does.status) {
		problem(c, does.status, does.detail || TITLES[does.status] || 'error', undefined);
	} else if (does.reset) {
		answer(c, 0);
	} else {
		return false;
	}
	return true;
}

function dress(body, does) {
	if (!body || (!does.set && !does.set_top)) return body;
	const out = { ...body, ...(does.set_top || {}) };
	if (!does.set) return out;
	for (const name of ['pods', 'gpus', 'networkVolumes'])
		if (Array.isArray(out[name])) return { ...out, [name]: out[name].map((one) => ({ ...one, ...does.set })) };
	return { ...out, ...does.set };
}

// ---- REST ----

async function serve_rest(c) {
	const { world, req, url } = c;
	if (url.pathname.startsWith('/v1') || (req.headers.host || '').startsWith('rest.'))
		return problem(c, 410, 'REST API v1 has been retired. Use https://api.runpod.io/v2.');
	const found = rest.route(req.method, url.raw_path);
	c.op = found && found.op ? found.op : 'unknown';
	c.does = world.faults.match(facts_of(c, found));
	if (c.does.delay_ms) await new Promise((resolve) => setTimeout(resolve, c.does.delay_ms));
	if (c.caller.kind === 'none') return problem(c, 401, 'missing bearer token');
	if (c.caller.kind === 'wrong') return problem(c, 401, 'invalid bearer token');
	const { headers, exceeded } = count_request(world);
	c.headers = headers;
	if (exceeded) return problem(c, 429, `rate limit exceeded for the ${exceeded.name} window`, undefined, { 'Retry-After': String(exceeded.left) });
	if (!found) return problem(c, 404, 'resource not found');
	if (found.allow) return problem(c, 405, 'The requested method is not allowed for this path.', undefined, { Allow: found.allow });
	if (!may(c.caller, found.op, world)) return problem(c, 403, 'access denied');
	if (!c.does.after && misbehave(c)) return undefined;
	c.params = found.params;
	c.query = url.searchParams;
	return run_operation(c, found.op);
}

function facts_of(c, found) {
	const body = c.body && typeof c.body === 'object' ? c.body : {};
	const input = (body.variables || {}).input || {};
	return {
		op: c.op,
		path: c.url.pathname,
		key: c.caller.kind,
		pod: found && found.params ? found.params.id : undefined,
		name: body.name || input.name,
		gpu: (body.gpu || {}).id || input.gpuTypeId,
		dc: (body.dataCenterIds || [])[0] || input.dataCenterId,
		cloud: body.cloud || input.cloudType || (body.name ? 'SECURE' : undefined),
		spot: /podRentInterruptable/.test(c.op),
	};
}

function run_operation(c, op) {
	const has_body = ['POST', 'PATCH', 'PUT'].includes(c.req.method);
	let result;
	if (has_body && (c.body === undefined || c.body === null || typeof c.body !== 'object' || Array.isArray(c.body)))
		return problem(c, 400, 'request body must be a JSON object');
	try {
		result = rest.operations[op](c);
	} catch (e) {
		if (!(e instanceof rest.Problem)) throw e;
		return problem(c, e.status, e.message, e.errors);
	}
	if (c.does.after && misbehave(c)) return undefined;
	if (c.does.hang_ms) return void setTimeout(() => answer(c, result.status, dress(result.body, c.does)), c.does.hang_ms);
	if (result.stream) return stream_logs(c, result.stream);
	return answer(c, result.status, dress(result.body, c.does));
}

// Server-sent events; nothing is sent, not even headers, until there is a line.
function stream_logs(c, { pod, source, tail, since }) {
	const { res, req } = c;
	const how = c.does.sse || {};
	const last = req.headers['last-event-id'];
	let begun = false;
	let sent = 0;
	c.status = 200;
	const send = (entry) => {
		if (source && entry.source !== source) return;
		if (!begun) {
			res.writeHead(200, { ...c.headers, 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache', Connection: 'keep-alive', 'X-Accel-Buffering': 'no' });
			begun = true;
		}
		const id = how.plain_id ? entry.ts : `${entry.ts}/${String(entry.seq).padStart(12, '0')}`;
		const data = { ts: entry.ts, source: entry.source, line: entry.line };
		const text = how.multiline ? JSON.stringify(data, null, 1) : JSON.stringify(data);
		const event = `id: ${id}\n${text.split('\n').map((line) => `data: ${line}`).join('\n')}\n\n`;
		if (how.cut && ++sent >= how.cut) {
			res.write(event.slice(0, Math.floor(event.length / 2)));
			return void setTimeout(() => res.socket && res.socket.destroy(), 20);
		}
		res.write(event);
	};
	const begin = () => {
		for (const entry of backlog(pod, { tail, since, last })) send(entry);
		pod.watchers.add(send);
	};
	req.on('close', () => pod.watchers.delete(send));
	res.on('close', () => pod.watchers.delete(send));
	if (how.quiet_ms) setTimeout(begin, how.quiet_ms);
	else begin();
}

function backlog(pod, { tail, since, last }) {
	if (last) {
		const [ts, seq] = last.split('/');
		const ms = Date.parse(ts);
		if (seq) return pod.log.filter((e) => e.seq > Number(seq));
		return pod.log.filter((e) => e.ms >= ms);
	}
	if (since) return pod.log.filter((e) => e.ms >= Date.parse(since));
	const keep = new Set(['container', 'system'].flatMap((s) => (tail ? pod.log.filter((e) => e.source === s).slice(-tail) : [])));
	return pod.log.filter((e) => keep.has(e));
}

// ---- GraphQL ----

async function serve_graphql(c) {
	const { world } = c;
	const fields = graphql.fields_of((c.body || {}).query);
	c.op = `graphql:${fields[0] || 'unknown'}`;
	c.does = world.faults.match(facts_of(c));
	if (c.does.delay_ms) await new Promise((resolve) => setTimeout(resolve, c.does.delay_ms));
	if (c.caller.kind === 'none' || c.caller.kind === 'wrong') return problem(c, 401, 'missing or invalid API key');
	if (c.req.method !== 'POST') return problem(c, 405, 'The requested method is not allowed for this path.', undefined, { Allow: 'POST' });
	if (!c.does.after && misbehave(c)) return undefined;
	const { query, variables } = c.body || {};
	const result = graphql.execute(query, variables, old_api.resolvers(world, c.caller, c.does));
	if (c.does.after && misbehave(c)) return undefined;
	return answer(c, 200, result);
}

// ---- control ----

// It was taken back before anybody was told of it: whose client died in its create cannot know it.
const unasked = (pod) => !!pod.taken_back && !pod.told_ms;

function pod_state(world, pod) {
	const { id, name, status, quirks, spot, bid, rate, created_ms, started_ms, ended_ms, starts, key, spans } = pod;
	return {
		id, name, status, quirks, spot, bid, rate, created_ms, started_ms, ended_ms, starts, key, spans,
		unasked: unasked(pod),
		told: !!pod.told_ms,
		view: world.pods.view(pod),
		port: pod.door ? pod.door.port : null,
		pid: pod.machine ? pod.machine.pid : 0,
		billed: so_far(world.pods, pod),
		log: pod.log.map((e) => `${e.ts} ${e.source} ${e.line}`),
	};
}

// All that a pod's key is for: the switch asks about its own pod, and ends it. Of a request that broke off the body is unknown.
function of_the_switch(r) {
	const own = `/v2/pods/${r.pod}`;
	const body = JSON.stringify(r.body);
	const one_of = (...bodies) => (r.op === 'unknown' && r.body === undefined) || bodies.some((b) => JSON.stringify(b) === body);
	switch (`${r.method} ${r.url}`) {
	case `GET ${own}`:
	case `DELETE ${own}`:
		return r.body === undefined;
	case `POST ${own}/action`:
		return one_of({ action: 'terminate' }, { action: 'stop' });
	case 'POST /graphql':
		return one_of({ query: `mutation{podTerminate(input:{podId:"${r.pod}"})}` }, { query: `mutation{podStop(input:{podId:"${r.pod}"}){id}}` });
	default:
		return false;
	}
}

// What must be true at the end of a test; each broken one as a line of text.
function invariants(world) {
	const broken = world.pods.live().map((pod) => `pod ${pod.id} (${pod.name}) is still there, ${pod.status}`);
	const posted = new Map();
	world.requests.forEach((r, i) => {
		if (r.key_in_url) broken.push(`request ${i} carries a key in its URL: ${r.method}`);
		if (r.pod && !of_the_switch(r)) broken.push(`request ${i} is by the key of pod ${r.pod} and not its switch's: ${r.method} ${r.url} ${JSON.stringify(r.body)}`);
		if (r.op !== 'createPod' && !/^graphql:pod(Rent|Find)/.test(r.op)) return;
		const body = r.body || {};
		const name = body.name || ((body.variables || {}).input || {}).name;
		if (!name) return;
		const before = posted.get(name);
		const looked = before !== undefined && world.requests.slice(before + 1, i).some((x) => x.op === 'listPods' && x.status === 200);
		if (before !== undefined && !looked) broken.push(`the pod name ${name} was asked for twice without a look in between`);
		posted.set(name, i);
	});
	return broken;
}

function control(c) {
	const { world, req, url } = c;
	const what = url.pathname.slice('/_control/'.length);
	const body = c.body || {};
	const ok = (value = { ok: true }) => answer(c, 200, value);
	const [head, id] = what.split('/');
	if (req.method === 'GET' && what === 'state')
		return ok({
			now_ms: clock.now(),
			settings: world.settings,
			pods: [...world.pods.all.values()].map((pod) => pod_state(world, pod)),
			volumes: [...world.volumes.all.values()],
			stock: world.catalog.cells,
			faults: world.faults.rules,
		});
	if (req.method === 'GET' && what === 'requests') return ok(world.requests.slice(Number(url.searchParams.get('from') || 0)));
	if (req.method === 'GET' && what === 'billing')
		return ok([...world.pods.all.values()].map((pod) => ({ id: pod.id, name: pod.name, unasked: unasked(pod), told: !!pod.told_ms, ...so_far(world.pods, pod) })));
	if (req.method === 'GET' && what === 'light') return world.light.stats().then(ok);
	if (req.method === 'GET' && what === 'invariants') return ok({ broken: invariants(world) });
	if (req.method === 'DELETE' && head === 'faults') {
		world.faults.clear(id ? Number(id) : 0);
		return ok();
	}
	if (req.method !== 'POST') return problem(c, 404, 'no such control');
	if (what === 'settings') return ok(merge(world.settings, body, ['images', 'secrets']));
	if (what === 'stock') {
		world.catalog.set(body);
		return ok();
	}
	if (what === 'fault') {
		const rules = body.fault ? named(body.fault, body) : [body];
		return ok(rules.map((rule) => world.faults.add(rule)));
	}
	if (what === 'clock') {
		clock.advance(Number(body.advance_s || 0) * 1000);
		return ok({ now_ms: clock.now() });
	}
	if (what === 'unheard') {
		for (const pod of world.pods.all.values()) if (pod.told_ms >= clock.now() - body.ms) pod.told_ms = 0;
		return ok();
	}
	if (what === 'shutdown') {
		ok();
		setTimeout(() => shutdown(world), 10);
		return undefined;
	}
	const pod = head === 'pods' && world.pods.all.get(id);
	if (!pod) return problem(c, 404, 'no such control');
	if (body.quirks) Object.assign(pod.quirks, body.quirks);
	if ('locked' in body) pod.locked = body.locked;
	if (body.preempt) world.pods.preempt(pod, body.preempt);
	if (body.drop_ssh && pod.door) pod.door.drop();
	if (body.kill && pod.machine) pod.machine.signal(body.kill);
	if (body.move_port) world.pods.move_door(pod);
	if (body.bill_shift_s) pod.spans = pod.spans.map(([a, b]) => [a + body.bill_shift_s[0] * 1000, b === null ? b : b + body.bill_shift_s[1] * 1000]);
	return ok(pod_state(world, pod));
}

// ---- HTTP ----

async function read_body(req) {
	const parts = [];
	let bytes = 0;
	for await (const part of req) {
		bytes += part.length;
		if (bytes > BODY_MAX) throw new rest.Problem(400, 'request body is too large');
		parts.push(part);
	}
	const text = Buffer.concat(parts).toString('utf8');
	if (!text) return undefined;
	try {
		return JSON.parse(text);
	} catch (e) {
		return text;
	}
}

async function handle(req, res, world) {
	const mark = req.url.indexOf('?');
	const url = new URL(req.url, 'http://stand-in');
	url.raw_path = mark < 0 ? req.url : req.url.slice(0, mark);
	const c = { world, req, res, url, headers: {}, does: {}, op: 'unknown', status: 0, caller: caller_of(req, url, world) };
	const quiet = url.pathname.startsWith('/_control/');
	const { authorization, ...headers } = req.headers;
	const entry = { n: world.requests.length, at_ms: clock.now(), key: c.caller.kind, pod: c.caller.pod && c.caller.pod.id, method: req.method, url: req.url, headers,
		key_in_url: /api_key=|rpa_|rps_/.test(req.url) };
	try {
		c.body = await read_body(req);
		if (world.settings.rtt_ms && !quiet) await new Promise((resolve) => setTimeout(resolve, world.settings.rtt_ms));
		if (quiet) await control(c);
		else if (/^Python-urllib/.test(req.headers['user-agent'] || '')) answer(c, 403, 'error code: 1010'); // what guards the API
		else if (url.pathname === '/graphql') await serve_graphql(c);
		else await serve_rest(c);
	} catch (e) {
		if (e instanceof rest.Problem) problem(c, e.status, e.message, e.errors);
		else {
			if (e.code !== 'ECONNRESET') process.stderr.write(`${e.stack}\n`); // whoever asked has gone in the middle of it
			if (!res.headersSent) problem(c, 500, quiet ? e.message : 'internal error');
		}
	}
	if (!quiet) record(world, { ...entry, op: c.op, status: c.status, errors: c.errors, body: c.body });
}

async function handle_s3(req, res, world) {
	const entry = { n: world.requests.length, at_ms: clock.now(), key: 's3', method: req.method, url: req.url, headers: { ...req.headers, authorization: undefined },
		key_in_url: /rps_|X-Amz-Signature/i.test(req.url) };
	const { op } = await s3.serve(req, res, world, (name) => world.faults.match({ op: name, path: req.url, key: 's3' }));
	record(world, { ...entry, op: `s3:${op}`, status: res.statusCode });
}

let ending = false;
async function shutdown(world) {
	if (ending) return;
	ending = true;
	world.servers.forEach((server) => server.close());
	await world.pods.end_all();
	if (world.light) world.light.end();
	clock.stop();
	process.exit(0);
}

async function main() {
	const opt = options(['light']);
	fs.mkdirSync(opt.state, { recursive: true, mode: 0o700 });
	const world = make_world(opt);
	if (opt.light) world.light = new Light();
	const api = http.createServer((req, res) => handle(req, res, world));
	const files = http.createServer((req, res) => handle_s3(req, res, world));
	api.keepAliveTimeout = files.keepAliveTimeout = 60000;
	api.requestTimeout = files.requestTimeout = 0;
	world.servers = [api, files];
	world.port = await listen(api, Number(opt.port));
	world.s3_port = await listen(files, 0);
	const url = `http://127.0.0.1:${world.port}`;
	keep_file(world, 'account.key', world.account_key);
	keep_file(world, 'readonly.key', world.readonly_key);
	keep_file(world, 's3.access', world.s3_keys.access);
	keep_file(world, 's3.secret', world.s3_keys.secret);
	keep_file(world, 's3.url', `http://127.0.0.1:${world.s3_port}`);
	keep_file(world, 'url', url);
	process.on('SIGTERM', () => shutdown(world));
	process.on('SIGINT', () => shutdown(world));
	if (opt.tied) process.stdin.on('end', () => shutdown(world)).resume();
	process.stdout.write(`${url}\n`);
}

main().catch((e) => {
	process.stderr.write(`runpod stand-in: ${e.message}\n`);
	process.exit(2);
});
