'use strict';
// server.js - a stand-in for a Kubernetes API server and its nodes, whose pods are real. For Debian's own Node, nothing from npm. Its
// client is the real kubectl. What it says, and in which words, was seen at Kubernetes 1.37.2.
//
//   node tests/cloud/kubernetes/server.js --state DIR [--port 0] [--seed N] [--podbox PROGRAM] [--tied]
//
// prints one line, its base URL, once it serves. In DIR it leaves kubeconfig (context "bed"), requests.jsonl and claims/NAME (files of
// volumes). Ends with SIGTERM or when its stdin is a pipe that closes (--tied), and takes every pod with it.
//
// Control, as JSON:
//   GET  /_control/state                   pods (also those that are gone), claims, faults
//   GET  /_control/requests
//   POST /_control/fault RULE              a rule as in common/rules.js; `when` may name op, name, path, page ("first", "next");
//                                          `do` may say
//        status, reason, message           refuse so                 after:true      ... once it has been carried out
//        retry_after:SECONDS               ... with this header      cut:true        break the reply off half way
//        reset:true                        drop the connection       delay_ms        wait first
//        body:TEXT                         answer this               hide:true       a list without pods
//        page:N                            a list in pages of at most N
//        pod:{..}                          a pod created so: queue_ms, pull_ms, unschedulable:TEXT, waiting:[REASON,MESSAGE],
//                                          node_lost, ends_after_ms + disrupted:{..}
//        exec:{..}                         an exec so: no_status, no_eof, no_end, cut_after_bytes, idle_cut_ms, mute
//   DELETE /_control/faults
//   POST /_control/pods/NAME {"disrupt":{..},"delete":true,"kill":9,"confirm":true}     confirm: its node, which was lost, ends it
//   POST /_control/nodes [NODE..]          GET /_control/nodes
//   POST /_control/nodes/NAME {"lost":true,"unknown_after_ms":N,"evict_after_ms":N}     its kubelet answers no more
//   POST /_control/away {"ms":N}           the server is killed, and comes back so much later
//   POST /_control/clock {"ahead_ms":N}    its clock is so far ahead of this machine's
//   POST /_control/kueue {"admit_after_ms":N}           Kueue takes in pods with its label; without admit_after_ms it admits none
//   POST /_control/rights {"pods/exec":["get"],..}      what the user may do; absent resources: everything

const fs = require('fs');
const http = require('http');
const path = require('path');
const clock = require('../common/clock');
const { options, make_random, record, listen, keep_file } = require('../common/server');
const { Faults } = require('../common/rules');
const { Pods } = require('./pods');
const websocket = require('./websocket');

function node(name, labels, gpus) {
	const amount = { cpu: '32', memory: '131072Mi', pods: '110', ...(gpus ? { 'nvidia.com/gpu': String(gpus) } : {}) };
	return { metadata: { name, labels: { 'kubernetes.io/hostname': name, ...labels } }, spec: {}, status: { capacity: amount, allocatable: amount } };
}

function make_world(opt) {
	const dir = path.resolve(opt.state);
	const world = {
		dir,
		podbox: opt.podbox,
		random_id: make_random(opt.seed, 'abcdefghijklmnopqrstuvwxyz0123456789'),
		faults: new Faults(),
		requests: [],
		rights: {},
		claims: new Map(),
		time: () => clock.now() + world.ahead_ms,
		stamp: (ms) => clock.iso(ms + world.ahead_ms), // as its objects have a time
		ahead_ms: 0,
		kueue: null,
		nodes: [
			node('node-a', { 'nvidia.com/gpu.product': 'NVIDIA-L40S', 'nvidia.com/gpu.memory': '46068' }, 2),
			node('node-b', { 'nvidia.com/gpu.product': 'NVIDIA-GeForce-RTX-4090', 'nvidia.com/gpu.memory': '24564' }, 2),
			node('node-c', {}, 0),
		],
		claim_folder: (name) => {
			const folder = path.join(dir, 'claims', name);
			fs.mkdirSync(folder, { recursive: true });
			return folder;
		},
	};
	world.pods = new Pods(world);
	return world;
}

// ---- answers ----

function answer(c, code, body) {
	c.status = code;
	const text = typeof body === 'string' ? body : JSON.stringify(body);
	const head = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text), Date: new Date(c.world.time()).toUTCString() };
	if (c.does.retry_after && code >= 400) head['Retry-After'] = String(c.does.retry_after);
	c.res.writeHead(code, head);
	if (c.does.cut) c.res.write(text.slice(0, text.length / 2), () => c.res.socket.destroy());
	else c.res.end(text);
}
function refuse(c, code, reason, message) {
	answer(c, code, { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, code });
}
const missing = (c, kind, name) => refuse(c, 404, 'NotFound', `${kind} "${name}" not found`);

function misbehave(c) {
	const { does } = c;
	if (does.reset) c.res.socket.destroy();
	else if (does.body !== undefined) answer(c, 200, does.body);
	else if (does.status) refuse(c, does.status, does.reason || 'InternalError', does.message || 'etcdserver: leader changed');
	else return false;
	return true;
}

// ---- what is asked for ----

// "pods/NAME/log" of a path; { resource, name, sub }, or null.
function route(pathname) {
	const parts = pathname.split('/').filter(Boolean).map(decodeURIComponent);
	if (parts[0] === 'api' && parts[1] === 'v1' && parts[2] === 'namespaces' && parts[3] === 'default' && parts.length > 4)
		return { resource: parts[4], name: parts[5], sub: parts[6] };
	if (parts[0] === 'api' && parts[1] === 'v1' && parts[2] === 'nodes') return { resource: 'nodes', name: parts[3] };
	return null;
}

const VERBS = { GET: 'get', POST: 'create', DELETE: 'delete' };
function may(world, verb, resource) {
	const rights = world.rights[resource];
	return !rights || rights.includes(verb);
}
function forbid(c, verb, resource) {
	refuse(c, 403, 'Forbidden', `${resource} is forbidden: User "weak" cannot ${verb} resource "${resource}" in API group "" in the namespace "default"`);
}

// One page of a list, in the order of names, after the one that `continue` names.
function page_of(c, all) {
	const after = Buffer.from(c.url.searchParams.get('continue') || '', 'base64url').toString();
	const most = Math.min(Number(c.url.searchParams.get('limit')) || Infinity, c.does.page || Infinity);
	const rest = all.filter((o) => o.metadata.name > after).sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
	const items = rest.slice(0, most);
	const more = rest.length > items.length;
	return {
		metadata: { resourceVersion: '1', ...(more ? { continue: Buffer.from(items.at(-1).metadata.name).toString('base64url'), remainingItemCount: rest.length - most } : {}) },
		items,
	};
}

function serve_pods(c, { name, sub }) {
	const { world } = c;
	const pod = name && world.pods.all.get(name);
	switch (c.op) {
	case 'create pods': {
		const object = c.body;
		const env = object.spec.containers[0].env || [];
		if (env.some((pair) => /PRIVATE|KEY_B64/.test(pair.name))) c.world.leaked = true;
		if (c.url.searchParams.get('dryRun')) return answer(c, 201, { ...object, metadata: { ...object.metadata, creationTimestamp: world.stamp(clock.now()) } });
		if (world.pods.all.has(object.metadata.name)) return refuse(c, 409, 'AlreadyExists', `pods "${object.metadata.name}" already exists`);
		const claim = (object.spec.volumes || []).find((v) => v.persistentVolumeClaim);
		if (claim && !world.claims.has(claim.persistentVolumeClaim.claimName))
			c.does.pod = { ...c.does.pod, unschedulable: `0/3 nodes are available: persistentvolumeclaim "${claim.persistentVolumeClaim.claimName}" not found.` };
		const made = world.pods.create(object, c.does.pod || {});
		if (c.does.after && misbehave(c)) return undefined;
		return answer(c, 201, made.object);
	}
	case 'list pods': {
		const all = c.does.hide ? [] : [...world.pods.all.values()].map((p) => p.object).filter((o) => (o.metadata.labels || {})['burst.dev/machine']);
		return answer(c, 200, { kind: 'PodList', apiVersion: 'v1', ...page_of(c, all) });
	}
	case 'get pods':
		return pod ? answer(c, 200, pod.object) : missing(c, 'pods', name);
	case 'delete pods':
		if (!pod) return missing(c, 'pods', name);
		world.pods.delete(pod, Number(c.url.searchParams.get('gracePeriodSeconds') || 30));
		if (c.does.after && misbehave(c)) return undefined;
		return answer(c, 200, pod.object);
	case 'get pods/log':
		if (!pod) return missing(c, 'pods', name);
		if (!pod.machine) return refuse(c, 400, 'BadRequest', `container "main" in pod "${name}" is waiting to start: ContainerCreating`);
		return answer(c, 200, pod.log.map((line) => `${line}\n`).join(''));
	default:
		return refuse(c, 404, 'NotFound', `the server could not find ${name}/${sub}`);
	}
}

function serve_claims(c, { name }) {
	const { claims } = c.world;
	switch (c.op) {
	case 'create persistentvolumeclaims':
		if (claims.has(c.body.metadata.name)) return refuse(c, 409, 'AlreadyExists', `persistentvolumeclaims "${c.body.metadata.name}" already exists`);
		claims.set(c.body.metadata.name, c.body);
		return answer(c, 201, c.body);
	case 'list persistentvolumeclaims':
		return answer(c, 200, { kind: 'PersistentVolumeClaimList', items: [...claims.values()].filter((o) => (o.metadata.labels || {})['burst.dev/volume']) });
	case 'get persistentvolumeclaims':
		return claims.has(name) ? answer(c, 200, claims.get(name)) : missing(c, 'persistentvolumeclaims', name);
	case 'delete persistentvolumeclaims':
		return claims.delete(name) ? answer(c, 200, { kind: 'Status', status: 'Success' }) : missing(c, 'persistentvolumeclaims', name);
	default:
		return refuse(c, 404, 'NotFound', c.op);
	}
}

function serve(c) {
	const { world, url } = c;
	if (url.pathname === '/version') return answer(c, 200, { major: '1', minor: '37', gitVersion: 'v1.37.2' });
	if (url.pathname === '/api') return answer(c, 200, { kind: 'APIVersions', versions: ['v1'] });
	if (url.pathname === '/apis') return answer(c, 200, { kind: 'APIGroupList', apiVersion: 'v1', groups: [] });
	if (url.pathname === '/api/v1')
		return answer(c, 200, { kind: 'APIResourceList', groupVersion: 'v1', resources: [
			{ name: 'pods', singularName: 'pod', namespaced: true, kind: 'Pod', verbs: ['get', 'list', 'create', 'delete'], shortNames: ['po'] },
			{ name: 'pods/exec', namespaced: true, kind: 'PodExecOptions', verbs: ['create', 'get'] }] });
	if (url.pathname === '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews') {
		const { verb, resource, subresource } = c.body.spec.resourceAttributes;
		return answer(c, 201, { ...c.body, status: { allowed: may(world, verb, subresource ? `${resource}/${subresource}` : resource) } });
	}
	const to = route(url.pathname);
	if (!to) return refuse(c, 404, 'NotFound', 'the server could not find the requested resource');
	const resource = to.sub ? `${to.resource}/${to.sub}` : to.resource;
	const verb = c.req.method === 'GET' && !to.name ? 'list' : VERBS[c.req.method];
	c.op = `${verb} ${resource}`;
	c.name = to.name || ((c.body || {}).metadata || {}).name;
	c.does = world.faults.match({ op: c.op, name: c.name, path: url.pathname, page: url.searchParams.get('continue') ? 'next' : 'first' });
	const go = () => {
		if (!may(world, verb, resource)) return forbid(c, verb, resource);
		if (!c.does.after && misbehave(c)) return undefined;
		if (to.resource === 'pods') return serve_pods(c, to);
		if (to.resource === 'persistentvolumeclaims') return serve_claims(c, to);
		const [, one] = /^metadata\.name=(.*)$/.exec(url.searchParams.get('fieldSelector') || '') || [];
		return answer(c, 200, { kind: 'NodeList', apiVersion: 'v1', ...page_of(c, world.nodes.filter((n) => !one || n.metadata.name === one)) });
	};
	return c.does.delay_ms ? void setTimeout(go, c.does.delay_ms) : go();
}

// ---- exec ----

function upgrade(world, req, socket, head) {
	const url = new URL(req.url, 'http://stand-in');
	const to = route(url.pathname);
	const pod = to && to.resource === 'pods' && to.sub === 'exec' && world.pods.all.get(to.name);
	const does = world.faults.match({ op: 'exec', name: to && to.name, path: url.pathname });
	const command = url.searchParams.getAll('command');
	record(world, { op: 'exec', method: req.method, url: req.url, command });
	const fail = (code, reason, message) => {
		const text = JSON.stringify({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, code });
		socket.end(`HTTP/1.1 ${code} ${reason}\r\nContent-Type: application/json\r\nContent-Length: ${text.length}\r\nConnection: close\r\n\r\n${text}`);
	};
	socket.on('error', () => {});
	if (!may(world, 'create', 'pods/exec')) return fail(403, 'Forbidden', 'pods "x" is forbidden: User "weak" cannot create resource "pods/exec" in API group "" in the namespace "default"');
	if (does.status) return fail(does.status, does.reason || 'InternalError', does.message || 'error dialing backend: EOF');
	if (does.reset) return socket.destroy();
	if (!pod) return fail(404, 'NotFound', `pods "${to ? to.name : ''}" not found`);
	if (pod.ended_ms) return fail(500, 'InternalError', `cannot exec into a container in a completed pod; current phase is ${pod.object.status.phase}`);
	if (!pod.pid) return fail(500, 'InternalError', `pod ${to.name} does not have a host assigned`);
	if (world.pods.is_lost(pod)) return fail(500, 'InternalError', 'error dialing backend: dial tcp 10.0.0.7:10250: connect: connection refused');
	const quirks = does.exec || {};
	const child = world.pods.exec(pod, command);
	pod.streams.add(socket);
	socket.on('close', () => pod.streams.delete(socket));
	// when the container goes, so do the streams
	pod.machine.ended.then(() => child.kill('SIGKILL'));
	return websocket.carry(req, socket, head, child, quirks);
}

// ---- control ----

function pod_state(pod) {
	const { object, pid, created_ms, scheduled_ms, ended_ms, log } = pod;
	return { name: object.metadata.name, phase: object.status.phase, pid, created_ms, scheduled_ms, ended_ms, log, object };
}

function invariants(world) {
	const broken = [...world.pods.all.values()].map((pod) => `pod ${pod.object.metadata.name} is still there, ${pod.object.status.phase}`);
	if (world.leaked) broken.push('a pod was created with a secret in its specification');
	return broken;
}

function control(c) {
	const { world, req, url, body } = c;
	const [head, id] = url.pathname.slice('/_control/'.length).split('/');
	const ok = (value = { ok: true }) => answer(c, 200, value);
	if (req.method === 'GET') {
		if (head === 'state')
			return ok({ now_ms: clock.now(), pods: [...[...world.pods.all.values()].map((p) => ({ ...pod_state(p), here: true })), ...world.pods.gone.map(pod_state)],
				claims: [...world.claims.values()], faults: world.faults.rules });
		if (head === 'requests') return ok(world.requests);
		if (head === 'invariants') return ok({ broken: invariants(world) });
		if (head === 'nodes') return ok(world.nodes);
	}
	if (req.method === 'DELETE' && head === 'faults') return ok(world.faults.clear(0) || {});
	if (head === 'fault') return ok(world.faults.add(body));
	if (head === 'rights') return ok((world.rights = body));
	if (head === 'kueue') return ok((world.kueue = body));
	if (head === 'clock') return ok((world.ahead_ms = body.ahead_ms) || {});
	if (head === 'away') return ok(world.go_away(body.ms) || {});
	if (head === 'nodes' && id) return ok(world.pods.lose_node(id, body) || {});
	if (head === 'nodes') return ok((world.nodes = body));
	const pod = head === 'pods' && world.pods.all.get(id);
	if (!pod) return refuse(c, 404, 'NotFound', 'no such control');
	if (body.disrupt) world.pods.disrupt(pod, body.disrupt);
	if (body.delete) world.pods.delete(pod, 30);
	if (body.confirm) pod.quirks.node_lost = false;
	if (body.confirm) world.pods.delete(pod, 5);
	if (body.kill && pod.machine) pod.machine.signal(body.kill);
	return ok(pod_state(pod));
}

async function handle(req, res, world) {
	const c = { world, req, res, url: new URL(req.url, 'http://stand-in'), does: {}, op: '', status: 0 };
	const quiet = c.url.pathname.startsWith('/_control/');
	try {
		const parts = [];
		for await (const part of req) parts.push(part);
		const text = Buffer.concat(parts).toString('utf8');
		c.body = text ? JSON.parse(text) : undefined;
		if (quiet) control(c);
		else serve(c);
	} catch (e) {
		if (e.code !== 'ECONNRESET') process.stderr.write(`${e.stack}\n`);
		if (!res.headersSent) refuse(c, 500, 'InternalError', e.message);
	}
	if (!quiet) record(world, { at_ms: clock.now(), op: c.op, name: c.name, method: req.method, url: req.url, status: c.status, body: c.body });
}

async function main() {
	const opt = options();
	fs.mkdirSync(opt.state, { recursive: true, mode: 0o700 });
	const world = make_world(opt);
	let ending = false;
	const server = http.createServer((req, res) => handle(req, res, world));
	server.on('upgrade', (req, socket, head) => upgrade(world, req, socket, head));
	const port = await listen(server, Number(opt.port));
	const url = `http://127.0.0.1:${port}`;
	const sockets = new Set();
	server.on('connection', (socket) => {
		sockets.add(socket);
		socket.on('close', () => sockets.delete(socket));
	});
	world.go_away = (ms) => setImmediate(() => {
		server.close();
		for (const socket of sockets) socket.destroy();
		setTimeout(() => ending || server.listen(port, '127.0.0.1'), ms);
	});
	keep_file(world, 'kubeconfig', JSON.stringify({
		apiVersion: 'v1', kind: 'Config', 'current-context': 'other',
		clusters: [{ name: 'bed', cluster: { server: url } }, { name: 'other', cluster: { server: 'http://127.0.0.1:1' } }],
		users: [{ name: 'user', user: {} }],
		contexts: [{ name: 'bed', context: { cluster: 'bed', user: 'user' } }, { name: 'other', context: { cluster: 'other', user: 'user' } }],
	}));
	const end = async () => {
		if (ending) return;
		ending = true;
		server.close();
		await world.pods.end_all();
		clock.stop();
		process.exit(0);
	};
	process.on('SIGTERM', end);
	process.on('SIGINT', end);
	if (opt.tied) {
		process.stdin.on('end', end);
		process.stdin.on('error', end);
		process.stdin.resume();
	}
	process.stdout.write(`${url}\n`);
}

main();
