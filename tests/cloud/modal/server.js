'use strict';
// server.js - a stand-in for Modal's API whose sandboxes are real. Its messages are the vendor's own (messages.js).
//
//   node tests/cloud/modal/server.js --state DIR [--port 0] [--seed N] [--podbox PROGRAM] [--fast] [--tied] [--tls]
//
// prints one line, its URL (HTTP/2; without TLS, or with it by cert.pem), once it serves. In DIR it leaves url, side.url, token.id, token.secret (for
// the client), requests.jsonl (every call, with what was answered) and volumes/ID (what of the volumes is committed).
// Ends with SIGTERM or when its stdin is a pipe that closes (--tied), and takes every sandbox with it.
//
// At side.url, HTTP/1.1 (the blocks, with --tls, at blocks.url): /blocks/TOKEN, where the blocks of volumes' files are put and got, and the control, as JSON:
//   GET  /_control/state                    sandboxes (also those that are over), apps, images, secrets' names, volumes, settings
//   POST /_control/settings {..}            merged into settings (below)
//   POST /_control/fault {"fault":"late_sshd","times":1,"skip":0,"when":{..},...}, or a rule as in faults.js;
//   DELETE /_control/faults
//   POST /_control/sandboxes/ID {"end":"TERMINATED","hard":true,"exception":TEXT,"quirks":{..},"drop":true,"kill":9,
//                                           "shift_s":[FROM,TO]}   what is known of its start and of its end moves so far
//   POST /_control/images/ID {}             it is gone
//   POST /_control/unheard {"ms":N}         whoever it told died at once: what it told first so lately may be unknown
//   POST /_control/clock {"advance_s":N}    the stand-in's time; what falls due happens
//   POST /_control/call {"method":M,"message":{..},"headers":{..},"bytes":BASE64}   one call of it over its own wire, told
//                                           whole; a header that is null is left out; bytes in place of a message
//   GET  /_control/requests[?from=N]        GET /_control/billing        GET /_control/invariants

const { execFileSync } = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');
const https = require('https');
const path = require('path');
const clock = require('../common/clock');
const { options, merge, make_random, record, listen, keep_file } = require('../common/server');
const grpc = require('./grpc');
const gpus = require('./gpus');
const messages = require('./messages');
const { Account } = require('./account');
const { Faults, named } = require('./faults');
const { Router } = require('./router');
const { Sandboxes } = require('./sandboxes');
const { Status, CODES, RESULT } = require('./status');
const { Volumes } = require('./volumes');

const CLIENT_TYPES = [1, 2, 3, 5, 6, 7, 8, 9];
const PYTHON = 1;
const BODY_MAX = 16 << 20;
const HOUR_S = 3600;
const SECRET = /KEY|TOKEN|SECRET|PASSWORD/;

const SETTINGS = {
	boot: { schedule_ms: 3000, start_ms: 5000, tunnel_ms: 1000, build_ms: 20000 },
	timeout_from: 'created', // or 'running': when timeout_secs begins to count
	tunnels_of_ended: 'NOT_FOUND', // or FAILED_PRECONDITION
	list_whole: true, // may a whole environment be listed, without an app?
	list_tunnels: true, // do the rows of a list bear them?
	list_tasks: 'whole', // and the task's info? 'unstarted': without started_at; 'none'
	auth_token_s: 1200,
	auth_token_everywhere: false, // also calls of the first kind need the auth token
	router_token_s: 600,
	carry_out: '', // RUN lines that this matches are run when an image is built, for what they leave in /usr/local/lib/burst
	dedupe: true, // an idempotency key that comes again gets the first answer
	commit_at_end: true,
	stop_grace_ms: 300,
	disk_mb: 2048,
	rtt_ms: 0,
	url_s: 300,
	page: 10,
	creates_per_s: 5,
	create_retry_s: 0, // more than 0: with such a RPCRetryPolicy
	max_gpus: 10,
	builder_version: '2025.06',
	builder_versions: ['2023.12', '2024.04', '2024.10', '2025.06', 'PREVIEW'],
	environments: ['main'], // the first is the default; what is in them is not kept apart
	blocks_at: '', // or the root of another server that blocks' URLs name
	warnings: [],
	images: {}, // regular expression of a tag -> why it cannot be had
	billing: { allowed: true, lag_s: 300, usage: true },
	rates: { CPU: 0.0000131 * 3 * HOUR_S, Memory: 0.00000222 * 3 * HOUR_S }, // dollars an hour of a core, of a GiB
};
const FAST = { schedule_ms: 20, start_ms: 50, tunnel_ms: 0, build_ms: 50 };
const LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';

function make_world(opt) {
	const random_id = make_random(opt.seed, LETTERS);
	const dir = path.resolve(opt.state);
	const settings = { ...JSON.parse(JSON.stringify(SETTINGS)), gpus: gpus.stock() };
	if (opt.fast) Object.assign(settings.boot, FAST);
	const world = {
		dir,
		settings,
		podbox: opt.podbox,
		id: (kind) => `${kind}-${random_id(22)}`,
		token: { id: `ak-${random_id(22)}`, secret: `as-${random_id(22)}` },
		faults: new Faults(),
		requests: [],
		remarks: [],
		keys_seen: new Map(), // idempotency key -> its call
		answers: new Map(), // call and idempotency key -> what was answered
		creates: [],
		api_ports: () => [world.port, world.side_port],
		remark: (text) => world.remarks.includes(text) || world.remarks.push(text),
	};
	world.environment = world.id('en');
	world.account = new Account(world);
	world.volumes = new Volumes(world);
	world.sandboxes = new Sandboxes(world);
	world.router = new Router(world);
	world.calls = {
		ModalClient: { ...require('./rpc_account').calls, ...require('./rpc_volumes').calls, ...require('./rpc_sandboxes').calls },
		TaskCommandRouter: world.router.calls(),
	};
	return world;
}

// ---- who asks ----

function check_client(world, headers) {
	const type = Number(headers['x-modal-client-type']);
	const version = headers['x-modal-client-version'];
	if (!headers['x-modal-client-type']) throw new Status('FAILED_PRECONDITION', 'Missing x-modal-client-type header');
	if (!version) throw new Status('FAILED_PRECONDITION', 'Missing x-modal-client-version header');
	if (!CLIENT_TYPES.includes(type)) throw new Status('FAILED_PRECONDITION', 'Unknown client type');
	if (type === PYTHON && !headers['x-modal-python-version']) throw new Status('FAILED_PRECONDITION', 'Missing x-modal-python-version header');
	if (!/^[1-9]\d*\.\d+\.\d+/.test(version)) throw new Status('FAILED_PRECONDITION', 'Old client');
}

function check_tokens(world, method, headers) {
	if (headers['x-modal-token-id'] !== world.token.id || headers['x-modal-token-secret'] !== world.token.secret)
		throw new Status('UNAUTHENTICATED', 'Token missing or invalid. Could not authenticate client.');
	if (method.name === 'AuthTokenGet') return;
	const token = headers['x-modal-auth-token'];
	const needed = world.settings.auth_token_everywhere || method.name.endsWith('V2') || method.name === 'SandboxGetCommandRouterAccess';
	if (needed && !token) throw new Status('UNAUTHENTICATED', `${method.name} needs x-modal-auth-token`);
	if (token && !world.account.token_is_good(token)) throw new Status('UNAUTHENTICATED', 'Auth token is invalid or has expired');
}

// What every client does and no server insists on.
function look_at_manners(world, method, headers, body) {
	const odd = (text) => world.remark(`${method.name}: ${text}`);
	if (headers.te !== 'trailers') odd('te: trailers is missing');
	if (headers['grpc-encoding'] && headers['grpc-encoding'] !== 'identity') odd('the request is compressed');
	// headers by which a server may tell the vendor's clients (or a gRPC library) from others
	if (!/^(grpc-node-js|modal-client)\//.test(headers['user-agent'] || '')) odd(`user-agent is ${headers['user-agent']}`);
	if (headers['accept-encoding'] !== 'identity') odd(`accept-encoding is ${headers['accept-encoding']}`);
	for (const name of ['accept', 'content-length', 'expect']) if (name in headers) odd(`no client of the vendor sends ${name}: ${headers[name]}`);
	const key = headers['x-idempotency-key'];
	if (method.responseStream || method.service !== 'ModalClient') return;
	if (!key) return void odd('x-idempotency-key is missing');
	const before = world.keys_seen.get(key);
	if (before && before !== method.name) odd(`the idempotency key of ${before} is used again`);
	const { messages: parts, error: cut } = grpc.unframe(body);
	if (cut || !parts.length) return; // a library may send again, as it was, what it has not sent whole
	if (before === method.name && headers['x-retry-attempt'] === '0' && !Number(headers['x-throttle-retry-attempt'] || 0)) odd('an idempotency key comes again as a first attempt');
	world.keys_seen.set(key, method.name);
}

// ---- one call ----

function facts_of(method, headers, message) {
	const def = message.definition || {};
	return {
		op: method.name,
		gpu: def.resources && def.resources.gpuConfig ? def.resources.gpuConfig.gpuType : undefined,
		name: def.name || message.appName || message.deploymentName || undefined,
		app: message.appId,
		sandbox: message.sandboxId,
		task: message.taskId,
		attempt: headers['x-retry-attempt'],
	};
}

function read_request(world, method, body) {
	const { messages: list, error } = grpc.unframe(body);
	if (error || list.length !== 1) throw new Status('INTERNAL', error || `${list.length} messages in a request of one`);
	let found;
	try {
		found = messages.decode(method.requestType, list[0]);
	} catch (e) {
		throw new Status('INTERNAL', `request message of ${method.name} cannot be read: ${e.message}`);
	}
	for (const what of found.strange) world.remark(`${method.name}: the vendor knows no such field: ${what}`);
	return found.message;
}

function refuse(does) {
	const status = new Status(does.status, does.message || 'error', does.retry_after_s);
	if (status.code) throw status;
}

// The answers that go out, one or many.
async function* carry_out(c, handler) {
	const { world, method, headers, message, does } = c;
	const key = world.settings.dedupe && !method.responseStream && headers['x-idempotency-key'] && `${method.name} ${headers['x-idempotency-key']}`;
	if (key && world.answers.has(key)) {
		yield world.answers.get(key);
		return;
	}
	if (does.status && !does.after) refuse(does);
	const answer = handler(c);
	if (method.responseStream) {
		yield* answer;
		return;
	}
	const one = await answer;
	if (key && /Create|Put|Terminate/.test(method.name)) world.answers.set(key, one);
	c.answer = one;
	if (does.status && does.after) refuse(does);
	yield one;
}

async function serve(world, c) {
	const { method, headers, reply } = c;
	look_at_manners(world, method, headers, c.body);
	if (method.service === 'ModalClient') {
		check_client(world, headers);
		check_tokens(world, method, headers);
	} else if (headers['x-modal-token-secret']) {
		world.remark(`${method.name}: the router is given the account's token`);
	}
	c.message = read_request(world, method, c.body);
	c.does = world.faults.match(facts_of(method, headers, c.message));
	reply.wire = c.does.wire || {};
	const handler = world.calls[method.service][method.name];
	if (!handler) throw new Status('UNIMPLEMENTED', `${method.name} is not implemented`);
	const { environmentName: environment } = c.message;
	if (environment && !world.settings.environments.includes(environment)) throw new Status('NOT_FOUND', `Environment '${environment}' not found.`);
	await grpc.pause((c.does.delay_ms || 0) + world.settings.rtt_ms);
	if (reply.wire.http) return void reply.http(reply.wire.http);
	for await (const answer of carry_out(c, handler)) {
		if (reply.over) return;
		if (reply.wire.hang_ms) await grpc.pause(reply.wire.hang_ms);
		if (reply.wire.reset) return void reply.cut();
		if (reply.wire.extreme) return void reply.extreme(reply.wire.extreme);
		reply.send(messages.encode(method.responseType, answer, c.does.strange));
	}
}

async function handle(world, at, headers, body, reply) {
	const method = messages.methods.get(at) || { name: at, service: '', unknown: true };
	const c = { world, method, headers, body, reply, does: {}, message: {} };
	const { 'x-modal-token-secret': secret, 'x-modal-auth-token': token, authorization, ...rest } = headers;
	const entry = { n: world.requests.length, at_ms: clock.now(), op: method.name, headers: { ...rest }, authed: !!token };
	world.requests.push(entry);
	let status = { code: 0 };
	try {
		if (!/^application\/grpc(\+proto)?$/.test(headers['content-type'] || '')) return void reply.http(415);
		if (method.unknown) throw new Status('UNIMPLEMENTED', `unknown method ${at}`);
		await serve(world, c);
	} catch (e) {
		const known = e instanceof Status;
		if (!known) process.stderr.write(`${method.name}: ${e.stack}\n`);
		status = { code: known ? e.code : CODES.UNKNOWN, message: e.message };
		if (e.retry_after_s) status.details = messages.retry_details(status.code, e.message, e.retry_after_s);
	}
	Object.assign(entry, { status: status.code, error: status.message, message: without_secrets(c.message), answer: c.answer });
	fs.appendFileSync(path.join(world.dir, 'requests.jsonl'), `${JSON.stringify(entry)}\n`);
	await reply.end(status);
	return undefined;
}

function without_secrets(message) {
	const files = message.image && message.image.contextFiles;
	if (files) return { ...message, image: { ...message.image, contextFiles: files.map(({ filename, data }) => ({ filename, bytes: data.length })) } };
	return message.envDict ? { ...message, envDict: Object.fromEntries(Object.keys(message.envDict).map((key) => [key, '...'])) } : message;
}

// ---- control ----

function sandbox_state(world, sb) {
	const { id, task, state, name, tags, created_ms, scheduled_ms, started_ms, tunnel_ms, ready_ms, ending_ms, ended_ms, result, quirks, gpu, timeout_s, idle_s, args, cpu, memory_gib } = sb;
	const word = sb.result && Object.keys(RESULT).find((key) => RESULT[key] === sb.result.status);
	return {
		id, task, state, name, tags, created_ms, scheduled_ms, started_ms, tunnel_ms, ready_ms, ending_ms, ended_ms, result, quirks, gpu, timeout_s, idle_s, args, cpu, memory_gib,
		ended: word || null,
		unasked: !!sb.ended_ms && !world.requests.some((r) => r.at_ms > sb.created_ms && r.at_ms < sb.ended_ms), // nobody could learn of it
		told: !sb.ended_ms || !!sb.told_ms, // by a list, while it lived
		app: sb.app.id,
		image: sb.image.id,
		env: Object.keys(sb.env),
		tunnels: world.sandboxes.tunnels(sb),
		volumes: sb.volumes.map((v) => ({ id: v.volume.id, name: v.volume.name, path: v.path })),
		pid: sb.machine ? sb.machine.pid : 0,
		usage: world.sandboxes.usage(sb),
		usd: Object.values(world.sandboxes.cost(sb, 0, clock.now())).reduce((a, b) => a + b, 0),
		log: sb.log.map((e) => e.data.replace(/\n$/, '')),
	};
}

function state(world) {
	const { account } = world;
	return {
		now_ms: clock.now(),
		settings: world.settings,
		sandboxes: [...world.sandboxes.all.values()].map((sb) => sandbox_state(world, sb)),
		apps: [...account.apps.values()],
		images: [...account.images.values()].map(({ id, commands, result, recipe }) => ({ id, commands, result, recipe })),
		secrets: [...account.secrets.values()].map(({ id, name, env, how }) => ({ id, name, how, keys: Object.keys(env), host_key: env.BURST_HOST_KEY_B64 })),
		volumes: [...world.volumes.all.values()],
		faults: world.faults.rules,
	};
}

// What must be true at the end of a test; each broken one as a line of text.
function invariants(world) {
	const broken = world.sandboxes.live().map((sb) => `sandbox ${sb.id} (${sb.name}) is still there, ${sb.state}`);
	const names = new Map();
	for (const sb of world.sandboxes.all.values()) {
		if (!sb.name) broken.push(`sandbox ${sb.id} has no name`);
		else if (names.has(sb.name)) broken.push(`two sandboxes are called ${sb.name}: ${names.get(sb.name)}, ${sb.id}`);
		names.set(sb.name, sb.id);
	}
	return [...broken, ...told_secrets(world), ...world.remarks];
}

// Secrets have their own call; in what any other says they have no place.
function told_secrets(world) {
	const values = [...world.account.secrets.values()].flatMap(({ env }) => Object.entries(env)).filter(([key, value]) => SECRET.test(key) && value.length >= 16);
	values.push(['MODAL_TOKEN_SECRET', world.token.secret]);
	const broken = new Set();
	for (const { op, message } of world.requests) {
		const text = JSON.stringify(message || {});
		for (const [key, value] of values) if (text.includes(value)) broken.add(`${op} tells the secret's ${key}`);
	}
	return broken;
}

async function call_ourselves(world, { method: name, message, headers, bytes, timeout_ms }) {
	const at = name.startsWith('/') ? name : `/modal.client.ModalClient/${name}`;
	const method = messages.methods.get(at);
	const own = {
		'content-type': 'application/grpc', te: 'trailers', 'user-agent': 'grpc-node-js/1.14.7', 'accept-encoding': 'identity',
		'x-modal-client-type': '8', 'x-modal-client-version': '1.0.0', 'x-modal-token-id': world.token.id, 'x-modal-token-secret': world.token.secret,
		'x-idempotency-key': crypto.randomUUID(), 'x-retry-attempt': '0',
	};
	const all = Object.fromEntries(Object.entries({ ...own, ...headers }).filter(([, value]) => value !== null));
	const body = bytes !== undefined ? Buffer.from(bytes, 'base64') : messages.encode(method.requestType, method.requestType.fromJSON(message || {}));
	const out = await grpc.call(world.url, at, all, body, { timeout_ms, ca: world.tls && world.tls.cert });
	const read = out.messages.map((one) => messages.decode(method.responseType, one));
	return { ...out, messages: read.map((one) => method.responseType.toJSON(one.message)), strange: read.flatMap((one) => one.strange).length };
}

async function control(world, method, url, body) {
	const what = url.pathname.slice('/_control/'.length);
	const [head, id] = what.split('/');
	if (method === 'GET' && what === 'state') return state(world);
	if (method === 'GET' && what === 'requests') return world.requests.slice(Number(url.searchParams.get('from') || 0));
	if (method === 'GET' && what === 'billing') return [...world.sandboxes.all.values()].map((sb) => ({ id: sb.id, ...sandbox_state(world, sb).usage }));
	if (method === 'GET' && what === 'invariants') return { broken: invariants(world) };
	if (method === 'DELETE' && head === 'faults') {
		world.faults.clear(id ? Number(id) : 0);
		return { ok: true };
	}
	if (method !== 'POST') throw new Error(`no such control: ${method} ${what}`);
	if (what === 'settings') return merge(world.settings, body, ['images']);
	if (what === 'fault') return world.faults.add(body.fault ? named(body.fault, body) : body);
	if (what === 'call') return call_ourselves(world, body);
	if (what === 'clock') {
		clock.advance(Number(body.advance_s || 0) * 1000);
		return { now_ms: clock.now() };
	}
	if (what === 'unheard') {
		for (const sb of world.sandboxes.all.values()) if (sb.told_ms >= clock.now() - body.ms) sb.told_ms = 0;
		return { ok: true };
	}
	if (head === 'images') {
		if (!world.account.images.delete(id)) throw new Error(`no such image: ${id}`);
		return { ok: true };
	}
	if (head !== 'sandboxes') throw new Error(`no such control: ${what}`);
	const sb = world.sandboxes.get(id);
	if (body.quirks) Object.assign(sb.quirks, body.quirks);
	if (body.drop) for (const door of sb.doors.values()) door.drop();
	if (body.kill && sb.machine) sb.machine.signal(body.kill);
	if (body.shift_s) world.sandboxes.shift(sb, ...body.shift_s);
	if (body.end) world.sandboxes.end(sb, body.end, { hard: !!body.hard, exception: body.exception });
	return sandbox_state(world, sb);
}

async function read_body(req) {
	const parts = [];
	let bytes = 0;
	for await (const part of req) {
		bytes += part.length;
		if (bytes > BODY_MAX) throw new Error('too large');
		parts.push(part);
	}
	return Buffer.concat(parts);
}

async function handle_side(world, req, res) {
	const url = new URL(req.url, 'http://stand-in');
	try {
		const body = await read_body(req);
		const found = /^\/blocks\/(\w+)$/.exec(url.pathname);
		if (found) {
			for (const name of Object.keys(req.headers)) if (/^x-modal|^authorization$/.test(name)) world.remark(`a block's URL is given the header ${name}`);
			const { status, body: text } = world.volumes.serve(req.method, found[1], body);
			record(world, { n: world.requests.length, at_ms: clock.now(), op: `block:${req.method}`, headers: req.headers, status, bytes: req.method === 'GET' ? text.length : body.length });
			res.writeHead(status, { 'Content-Length': Buffer.byteLength(text) });
			return void res.end(text);
		}
		if (!url.pathname.startsWith('/_control/')) {
			res.writeHead(404);
			return void res.end();
		}
		const text = JSON.stringify(await control(world, req.method, url, body.length ? JSON.parse(body.toString('utf8')) : {}));
		res.writeHead(200, { 'Content-Type': 'application/json' });
		res.end(text);
	} catch (e) {
		res.writeHead(500, { 'Content-Type': 'text/plain' });
		res.end(`${e.message}\n`);
	}
	return undefined;
}

// ---- begin and end ----

let ending = false;
async function shutdown(world) {
	if (ending) return;
	ending = true;
	world.server.end_all();
	world.side.close();
	if (world.blocks) world.blocks.close();
	await world.sandboxes.end_all();
	clock.stop();
	process.exit(0);
}

// For localhost and modal.test, by nobody but itself.
function make_certificate(dir) {
	const [key, cert] = [path.join(dir, 'key.pem'), path.join(dir, 'cert.pem')];
	const how = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,DNS:modal.test,IP:127.0.0.1'];
	execFileSync('openssl', ['req', ...how, '-keyout', key, '-out', cert], { stdio: 'ignore' });
	return { key: fs.readFileSync(key), cert: fs.readFileSync(cert) };
}

async function main() {
	const opt = options(['tls']);
	fs.mkdirSync(opt.state, { recursive: true, mode: 0o700 });
	const world = make_world(opt);
	if (opt.tls) world.tls = make_certificate(world.dir);
	world.server = grpc.make_server((...call) => handle(world, ...call), world.tls);
	world.side = http.createServer((req, res) => handle_side(world, req, res));
	world.port = await listen(world.server, Number(opt.port));
	world.side_port = await listen(world.side, 0);
	world.blocks_url = `http://127.0.0.1:${world.side_port}`;
	if (opt.tls) {
		world.blocks = https.createServer(world.tls, (req, res) => handle_side(world, req, res));
		world.blocks_url = `https://127.0.0.1:${await listen(world.blocks, 0)}`;
	}
	keep_file(world, 'blocks.url', world.blocks_url);
	world.url = opt.tls ? `https://localhost:${world.port}` : `http://127.0.0.1:${world.port}`;
	keep_file(world, 'token.id', world.token.id);
	keep_file(world, 'token.secret', world.token.secret);
	keep_file(world, 'side.url', `http://127.0.0.1:${world.side_port}`);
	keep_file(world, 'url', world.url);
	process.on('SIGTERM', () => shutdown(world));
	process.on('SIGINT', () => shutdown(world));
	if (opt.tied) process.stdin.on('end', () => shutdown(world)).resume();
	process.stdout.write(`${world.url}\n`);
}

main().catch((e) => {
	process.stderr.write(`modal stand-in: ${e.message}\n`);
	process.exit(2);
});
