'use strict';
// server.js - a stand-in for Vast.ai's API whose instances are real. For Debian's own Node, nothing from npm. Shapes and limits are
// those of Vast's published OpenAPI file; fields that it does not know are refused.
//
//   node tests/cloud/vast/server.js --state DIR [--port 0] [--seed N] [--podbox PROGRAM] [--fast] [--tied]
//
// prints one line, its base URL, once it serves. In DIR it leaves url, account.key and requests.jsonl (every request, with what was
// answered). Ends with SIGTERM or when its stdin closes (--tied), and takes every instance with it.
//
// Control, as JSON, without a key:
//   GET  /_control/state                    instances (also those that are gone), settings, market, faults
//   POST /_control/settings {..}            merged into settings (below)
//   POST /_control/market {gpu,id,..}       see market.js: {"gpu":"RTX 4090","rentable":false}
//   POST /_control/fault {..}               a rule as in faults.js;  DELETE /_control/faults
//   POST /_control/pods/ID {"outbid":true,"destroy":true,"quirks":{..},"label":"x","drop_ssh":true,"kill":9,"billed_longer_s":N}
//   POST /_control/clock {"advance_s":N}    the stand-in's time; what falls due happens
//   POST /_control/unheard {"ms":N}         whoever it told died at once: what it told first so lately may be unknown
//   GET  /_control/requests[?from=N]        GET /_control/billing        GET /_control/invariants

const fs = require('fs');
const http = require('http');
const path = require('path');
const clock = require('../common/clock');
const { options, merge, make_random, record, listen, keep_file } = require('../common/server');
const extremes = require('../common/extremes');
const api = require('./api');
const { Faults } = require('./faults');
const { Market } = require('./market');
const { Instances } = require('./instances');
const { make_image } = require('../runpod/images');

const BODY_MAX = 4 << 20;
const SETTINGS = {
	boot: { provision_ms: 1000, pull_ms: 20000, port_ms: 3000 },
	stop_grace_ms: 300,
	// least seconds between two requests to one endpoint with one key (x-rate-limit of the OpenAPI file); 0: no limit
	intervals: { createInstance: 4.5, listInstances: 1, showInstance: 2, destroyInstance: 3, charges: 1 },
	credit: 25.5,
	billing_lag_s: 0,
	traffic_gb: 0.5, // of each instance, each way
	instance_key: { start: true, destroy: true, show: true },
	onstart_is_entrypoint: true,
	page: 25,
	disk_mb: 2048, // the most of a container's disk that is really there
	images: {},
	logins: {}, // "image": "-u USER -p TOKEN REGISTRY": its registry shows it to nobody else
};
const FAST = { boot: { provision_ms: 50, pull_ms: 100, port_ms: 50 },
	intervals: { createInstance: 0, listInstances: 0, showInstance: 0, destroyInstance: 0, charges: 0 } };

// What Docker makes of an image whose registry wants a login.
function image_for(name, login, settings) {
	const image = make_image(name, settings, process.env.RP_IMAGE_CACHE);
	const want = settings.logins[name];
	if (!want || want === login) return image;
	const why = login ? 'unauthorized: incorrect username or password'
		: `pull access denied for ${name}, repository does not exist or may require 'docker login': denied: requested access to the resource is denied`;
	return { ...image, root: () => null, why };
}

function make_world(opt) {
	const settings = JSON.parse(JSON.stringify(SETTINGS));
	if (opt.fast) merge(settings, FAST);
	const random_id = make_random(opt.seed, 'abcdef0123456789');
	const world = {
		dir: path.resolve(opt.state),
		settings,
		random_id,
		podbox: opt.podbox,
		market: new Market(),
		faults: new Faults(),
		account_key: random_id(64),
		requests: [],
		last: {}, // when each key used each endpoint
		image: (name, login) => image_for(name, login, settings),
		api_ports: () => [world.port],
	};
	world.instances = new Instances(world);
	return world;
}

function caller_of(req, world) {
	const found = /^Bearer ([^\s]+)$/.exec(req.headers.authorization || '');
	if (!found) return { kind: 'none' };
	if (found[1] === world.account_key) return { kind: 'account', key: found[1] };
	const one = world.instances.by_key(found[1]);
	return one && !one.ended_ms ? { kind: 'instance', one, key: found[1] } : { kind: 'wrong' };
}

// ---- answering ----

function answer(c, status, body) {
	const text = typeof body === 'string' ? body : JSON.stringify(body);
	c.status = status;
	if (c.does.reset) {
		c.status = 0;
		return void c.res.socket.resetAndDestroy();
	}
	c.res.writeHead(status, { 'Content-Type': typeof body === 'string' ? 'text/plain' : 'application/json', 'Content-Length': Buffer.byteLength(text) });
	if (c.does.cut !== undefined) {
		c.res.write(text.slice(0, c.does.cut));
		return void setTimeout(() => c.res.socket && c.res.socket.destroy(), 20);
	}
	c.res.end(text);
}

// The reply that a fault gives in place of the real one, or false.
function misbehave(c) {
	const { does } = c;
	if (does.extreme) {
		c.status = 0;
		extremes.http(does.extreme, c.res.socket);
	} else if (does.text !== undefined) {
		answer(c, does.status || 200, does.text);
	} else if (does.status) {
		answer(c, does.status, { success: false, error: does.error || 'invalid_args', msg: does.msg || 'error' });
	} else if (does.reset) {
		answer(c, 0);
	} else {
		return false;
	}
	return true;
}

function dress(body, does) {
	if (!does.set) return body;
	if (Array.isArray(body.instances)) return { ...body, ...does.set, instances: body.instances.map((one) => ({ ...one, ...does.set })) };
	return { ...body, ...does.set, ...(body.instances ? { instances: { ...body.instances, ...does.set } } : {}) };
}

// The limit is a least interval for each endpoint and key. The answer is plain text without Retry-After.
function too_frequent(c) {
	const least_s = c.world.settings.intervals[c.op];
	const id = `${c.op} ${c.caller.key}`;
	const since_s = (clock.now() - (c.world.last[id] || 0)) / 1000;
	if (!least_s) return false;
	if (since_s < least_s) {
		answer(c, 429, `API requests too frequent: endpoint threshold=${least_s}`);
		return true;
	}
	c.world.last[id] = clock.now();
	return false;
}

async function serve(c) {
	const { world, url } = c;
	const body = c.body && typeof c.body === 'object' ? c.body : {};
	const ask = c.op === 'createInstance' && world.market.get(c.id);
	c.does = world.faults.match({ op: c.op, id: String(c.id || ''), label: body.label, gpu: ask ? ask.gpu_name : undefined,
		ask: ask ? String(ask.id) : undefined, key: c.caller.kind, path: url.pathname });
	if (c.does.delay_ms) await new Promise((resolve) => setTimeout(resolve, c.does.delay_ms));
	if (c.op === 'logFile') return api.log_file(c, answer);
	if (c.caller.kind === 'none') return answer(c, 401, { success: false, error: 'auth_error', msg: 'This action requires login.' });
	if (c.caller.kind === 'wrong') return answer(c, 404, { success: false, error: 'auth_error', msg: 'Invalid user key' });
	if (c.op === 'unknown') return answer(c, 404, { success: false, error: 'not_found', msg: 'no such endpoint' });
	if (too_frequent(c)) return undefined;
	if (!api.may(c)) return answer(c, 403, { success: false, error: 'not_authorized', msg: 'This key has no right to this' });
	if (!c.does.after && !c.does.leaves && misbehave(c)) return undefined;
	const result = api.operations[c.op](c);
	if (c.does.after && misbehave(c)) return undefined;
	if (c.does.hang_ms) return void setTimeout(() => answer(c, result.status, dress(result.body, c.does)), c.does.hang_ms);
	return answer(c, result.status, dress(result.body, c.does));
}

// ---- control ----

function state_of(world, one) {
	const { id, label, actual, quirks, created_ms, ended_ms, key, runs, log, bid } = one;
	return { id: String(id), name: label.split('/')[0], label, actual, quirks, created_ms, ended_ms, key, runs, log, bid, gpu: one.ask.gpu_name,
		told: !!one.told_ms, view: world.instances.view(one), port: one.door ? one.door.port : null, pid: one.machine ? one.machine.pid : 0,
		env: one.env, billed: world.instances.so_far(one) };
}

// What must be true at the end of a test; each broken one as a line of text.
function invariants(world) {
	const broken = world.instances.live().map((one) => `instance ${one.id} (${one.label}) is still there, ${one.actual}`);
	const asked = new Map();
	world.requests.forEach((r, i) => {
		if (r.key_in_url) broken.push(`request ${i} carries a key in its URL: ${r.method}`);
		if (r.op === 'unknown') broken.push(`request ${i} is to no endpoint: ${r.method} ${r.url}`);
		if (r.op === 'manageInstance' && r.key === 'account') broken.push(`request ${i} starts or stops an instance: ${JSON.stringify(r.body)}`);
		if (r.pod && !(r.op === 'destroyInstance' || (r.op === 'manageInstance' && JSON.stringify(r.body) === '{"state":"running"}')))
			broken.push(`request ${i} is by the key of instance ${r.pod} and not its switch's: ${r.method} ${r.url}`);
		if (r.op !== 'createInstance' || !r.body || !/^burst-/.test(r.body.label)) return;
		const name = String(r.body.label).split('/')[0];
		if (asked.has(name) && !world.requests.slice(asked.get(name) + 1, i).some((x) => x.op === 'listInstances' && x.status === 200))
			broken.push(`${name} was asked for twice without a look in between`);
		asked.set(name, i);
	});
	return broken;
}

function strike(world, one, body) {
	if (body.quirks) Object.assign(one.quirks, body.quirks);
	if (body.label) one.label = body.label;
	if (body.outbid) world.instances.stop(one);
	if (body.destroy) world.instances.destroy(one);
	if (body.drop_ssh && one.door) one.door.drop();
	if (body.kill && one.machine) one.machine.signal(body.kill);
	if (body.billed_longer_s) one.billed_longer_s = body.billed_longer_s;
}

function control(c) {
	const { world, req, url } = c;
	const what = url.pathname.slice('/_control/'.length), body = c.body || {};
	const ok = (value = { ok: true }) => answer(c, 200, value);
	const all = [...world.instances.all.values()];
	if (req.method === 'DELETE' && what === 'faults') return ok(world.faults.clear());
	if (req.method === 'GET')
		switch (what) {
		case 'state': return ok({ now_ms: clock.now(), settings: world.settings, pods: all.map((one) => state_of(world, one)), market: world.market.asks, faults: world.faults.rules });
		case 'requests': return ok(world.requests.slice(Number(url.searchParams.get('from') || 0)));
		case 'billing': return ok(all.map((one) => ({ id: String(one.id), name: one.label.split('/')[0], told: !!one.told_ms, ...world.instances.so_far(one) })));
		case 'invariants': return ok({ broken: invariants(world) });
		default: return answer(c, 404, 'no such control');
		}
	switch (what) {
	case 'settings': return ok(merge(world.settings, body, ['images', 'logins']));
	case 'market': return ok(world.market.set(body));
	case 'fault': return ok(world.faults.add(body));
	case 'clock': return ok(clock.advance(Number(body.advance_s || 0) * 1000));
	case 'unheard':
		for (const one of all) if (one.told_ms >= clock.now() - body.ms) one.told_ms = 0;
		return ok();
	default: {
		const one = what.startsWith('pods/') && world.instances.all.get(Number(what.slice(5)));
		if (!one) return answer(c, 404, 'no such control');
		strike(world, one, body);
		return ok(state_of(world, one));
	}
	}
}

// ---- HTTP ----

async function read_body(req) {
	const parts = [];
	let bytes = 0;
	for await (const part of req) {
		bytes += part.length;
		if (bytes > BODY_MAX) throw new Error('request body is too large');
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
	const url = new URL(req.url, 'http://stand-in');
	const found = api.route(req.method, url.pathname) || { op: 'unknown' };
	const c = { world, req, res, url, does: {}, ...found, status: 0, caller: caller_of(req, world) };
	const quiet = url.pathname.startsWith('/_control/');
	const entry = { n: world.requests.length, at_ms: clock.now(), key: c.caller.kind, pod: c.caller.one && c.caller.one.id, method: req.method, url: req.url,
		key_in_url: /api_key=/.test(req.url) || req.url.includes(world.account_key) };
	try {
		c.body = await read_body(req);
		if (quiet) control(c);
		else await serve(c);
	} catch (e) {
		if (e.code !== 'ECONNRESET') process.stderr.write(`${e.stack}\n`); // its client has gone in the middle of it
		if (!res.headersSent) answer(c, 500, { success: false, error: 'internal', msg: quiet ? e.message : 'internal error' });
	}
	if (!quiet) record(world, { ...entry, op: c.op, status: c.status, reply: c.reply, body: c.body });
}

let ending = false;
async function shutdown(world) {
	if (ending) return;
	ending = true;
	world.server.close();
	await world.instances.end_all();
	clock.stop();
	process.exit(0);
}

async function main() {
	const opt = options();
	fs.mkdirSync(opt.state, { recursive: true, mode: 0o700 });
	const world = make_world(opt);
	world.server = http.createServer((req, res) => handle(req, res, world));
	world.server.keepAliveTimeout = 60000;
	world.server.requestTimeout = 0;
	world.port = await listen(world.server, Number(opt.port));
	world.url = `http://127.0.0.1:${world.port}`;
	keep_file(world, 'account.key', world.account_key);
	keep_file(world, 'url', world.url);
	process.on('SIGTERM', () => shutdown(world));
	process.on('SIGINT', () => shutdown(world));
	if (opt.tied) process.stdin.on('end', () => shutdown(world)).resume();
	process.stdout.write(`${world.url}\n`);
}

main().catch((e) => {
	process.stderr.write(`vast stand-in: ${e.message}\n`);
	process.exit(2);
});
