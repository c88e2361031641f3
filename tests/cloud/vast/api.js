'use strict';
// api.js - the endpoints of Vast.ai's API. Each operation takes a context { world, caller, id, body, url, does } and gives back
// { status, body }. What the OpenAPI file does not know is refused; its x-input-validation gives the lengths.

const clock = require('../common/clock');
const { OPERATORS } = require('./market');
const { split } = require('../runpod/words');

const ROUTES = [
	['POST', /^\/api\/v0\/bundles\/?$/, 'searchOffers'],
	['PUT', /^\/api\/v0\/asks\/(\d+)\/?$/, 'createInstance'],
	['GET', /^\/api\/v1\/instances\/?$/, 'listInstances'],
	['GET', /^\/api\/v0\/instances\/(\d+)\/?$/, 'showInstance'],
	['PUT', /^\/api\/v0\/instances\/(\d+)\/?$/, 'manageInstance'],
	['DELETE', /^\/api\/v0\/instances\/(\d+)\/?$/, 'destroyInstance'],
	['PUT', /^\/api\/v0\/instances\/request_logs\/(\d+)\/?$/, 'requestLogs'],
	['GET', /^\/api\/v0\/charges\/?$/, 'charges'],
	['GET', /^\/api\/v0\/users\/current\/?$/, 'showUser'],
	['GET', /^\/_logs\/(\d+)$/, 'logFile'],
];

function route(method, pathname) {
	for (const [verb, pattern, op] of ROUTES) {
		const found = verb === method && pattern.exec(pathname);
		if (found) return { op, id: found[1] && Number(found[1]) };
	}
	return null;
}

// An instance's own key may start, stop and destroy that instance.
function may(c) {
	const { one } = c.caller;
	const rights = c.world.settings.instance_key;
	if (!one) return true;
	return c.id === one.id && !!{ manageInstance: rights.start, destroyInstance: rights.destroy, showInstance: rights.show }[c.op];
}

const refuse = (status, error, msg, more) => ({ status, body: { success: false, error, msg, ...more } });
const ok = (body) => ({ status: 200, body });

// ---- offers ----

const FILTERS = ['verified', 'rentable', 'rented', 'gpu_name', 'reliability', 'num_gpus', 'gpu_ram', 'duration', 'geolocation', 'gpu_arch',
	'cuda_max_good', 'inet_down', 'inet_up', 'cpu_cores_effective', 'cpu_ram', 'disk_space', 'direct_port_count', 'dph_total', 'external'];
const SEARCH = { limit: 'number', type: 'string', order: 'object', allocated_storage: 'number' };

function bad_search(body) {
	if (!body || typeof body !== 'object') return 'Invalid json body';
	for (const [key, value] of Object.entries(body)) {
		if (SEARCH[key]) {
			if (typeof value !== SEARCH[key]) return `${key} has the wrong type`;
		} else if (!FILTERS.includes(key)) return `${key} is not a valid search key`;
		else if (typeof value !== 'object' || !Object.keys(value).every((op) => OPERATORS[op])) return `${key}: unknown operator`;
	}
	if (body.type && !['ondemand', 'on-demand', 'bid', 'reserved'].includes(body.type)) return `unknown type ${body.type}`;
	return '';
}

function search(c) {
	const why = bad_search(c.body);
	return why ? refuse(400, 'invalid_request', why) : ok({ offers: c.world.market.search(c.body) });
}

// ---- create ----

// Those of the OpenAPI file, then what Vast's own client sends besides; its null stands for an absent one.
const CREATE = { image: 'string', label: 'string', disk: 'number', runtype: 'string', target_state: 'string', price: 'number', env: /string|object/,
	cancel_unavail: 'boolean', onstart: 'string', args: 'object', args_str: 'string', force: 'boolean', image_login: 'string', python_utf8: 'boolean', lang_utf8: 'boolean',
	client_id: 'string', use_jupyter_lab: 'boolean', extra: 'string', jupyter_dir: 'string', template_hash_id: 'string', user: 'string' };

// "-p 22:22 -e NAME=VALUE", as the OpenAPI file has it, as the pairs of the object that Vast's client sends.
function pairs_of(text) {
	const words = split(text);
	return words.flatMap((word, i) => {
		if (i % 2) return [];
		const value = words[i + 1] || '', at = value.indexOf('=');
		return word === '-e' && at > 0 ? [[value.slice(0, at), value.slice(at + 1)]] : [[`${word} ${value}`, '1']];
	});
}

// { ports, env, extra_env } of the pairs, or { why }.
function docker_options(given) {
	const out = { ports: [], env: {}, extra_env: typeof given === 'string' ? pairs_of(given) : Object.entries(given) };
	let length = 0;
	for (const [name, value] of out.extra_env) {
		const port = /^-p \d+:(\d+)$/.exec(name);
		if (typeof value !== 'string') return { why: `env: ${name} is no text` };
		if (name.length + value.length + 1 > 256) return { why: `env: ${name.slice(0, 20)}... is longer than 256` };
		length += name.length + value.length + 5;
		if (port) out.ports.push(Number(port[1]));
		else if (/^[A-Za-z_]\w*$/.test(name)) out.env[name] = value;
		else return { why: `env: unknown option ${name}` };
	}
	return length > 32768 ? { why: `env: ${length} characters, 32768 is the most` } : out;
}

function bad_create(body) {
	for (const [key, value] of Object.entries(body)) {
		if (!CREATE[key]) return `unknown field ${key}`;
		if (value !== null && !new RegExp(CREATE[key]).test(typeof value)) return `${key} has the wrong type`;
	}
	const args = (body.args || []).join('').length + (body.onstart || '').length + (body.args_str || '').length;
	if (!body.image || body.image.length > 1024) return 'image';
	if ((body.label || '').length > 256) return 'label is longer than 256';
	if (args > 4096) return `args and onstart have ${args} characters, 4096 is the most`;
	if (body.disk && body.disk < 8) return 'disk: 8 GB is the least';
	if (body.target_state && !['running', 'stopped'].includes(body.target_state)) return 'target_state';
	if (body.image_login && !/^-u [^ ]+ -p [^ ]+ [^ ]+$/.test(body.image_login)) return 'image_login: unknown words';
	if (body.runtype !== 'args') return 'this stand-in knows runtype args alone';
	return '';
}

function create(c) {
	const { world, body, id, does } = c;
	if (!body || typeof body !== 'object') return refuse(400, 'invalid_args', 'Invalid json body');
	const why = bad_create(body);
	const docker = why ? {} : docker_options(body.env || '');
	if (why || docker.why) return refuse(400, 'invalid_args', `error 400/3467: Invalid args: ${why || docker.why}`, { ask_id: id });
	if (typeof body.price === 'number' && (body.price < 0.001 || body.price > 128)) return refuse(400, 'invalid_price', 'error 400: invalid price', { ask_id: id });
	const ask = world.market.get(id);
	if (!ask) return refuse(404, 'invalid_args', `error 404/3603: no_such_ask Instance type by id ${id} is not available.`, { ask_id: id });
	if (!ask.rentable) return refuse(410, 'no_such_ask', `error 410/3907: no_such_ask Instance type ${id} is no longer available.`, { ask_id: id });
	if (world.settings.credit <= 0) return refuse(400, 'insufficient_credit', 'Your account lacks credit; see the billing page.', { ask_id: id });
	const spec = { ask, label: body.label || '', image: body.image, login: body.image_login || '', onstart: body.onstart, args: body.args || [], disk: body.disk || 8, bid: body.price || 0, ...docker };
	const too_low = typeof body.price === 'number' && body.price < ask.min_bid;
	const one = world.instances.create(spec, does.instance, does.leaves || too_low);
	if (does.twin) world.instances.create({ ...spec, ask: { ...ask } }, does.instance);
	const names = { new_contract: one.id, instance_api_key: one.key };
	if (does.leaves) return refuse(does.status || 400, does.error || 'invalid_args', does.msg || 'error 400: it could not be started', { ask_id: id, ...names });
	return ok({ success: true, ...names });
}

// ---- instances ----

function tell(one) {
	one.told_ms = one.told_ms || clock.now();
	return one;
}

// Keyset pages by id. A token names the last id of the page before.
function list(c) {
	const { world, url, does } = c;
	const limit = Math.min(Number(url.searchParams.get('limit') || 25), world.settings.page);
	const token = url.searchParams.get('after_token');
	const after = token ? Number(Buffer.from(token, 'base64').toString()) : 0;
	if (Number.isNaN(after)) return refuse(400, 'invalid_token', 'Invalid pagination token');
	const all = does.hide ? [] : [...world.instances.all.values()].filter((one) => world.instances.listed(one));
	const rest = all.filter((one) => one.id > after);
	const page = rest.slice(0, limit).map(tell);
	const next = rest.length > limit ? Buffer.from(String(page[page.length - 1].id)).toString('base64') : null;
	return ok({ success: true, instances_found: page.length, total_instances: all.length, label_counts: {}, next_token: next,
		instances: page.map((one) => world.instances.view(one)) });
}

function show(c) {
	const one = c.world.instances.all.get(c.id);
	if (!one || !c.world.instances.visible(one) || c.does.hide) return ok({ instances: null });
	const view = c.world.instances.view(c.caller.one ? one : tell(one));
	return ok({ instances: { ...view, extra_env: view.extra_env.map((pair) => pair.join('=')) } }); // not as in a list
}

function manage(c) {
	const one = c.world.instances.all.get(c.id);
	if (!one || one.ended_ms) return refuse(404, 'not_found', 'Instance not found');
	if (!c.body || (!c.body.label && !['running', 'stopped'].includes(c.body.state))) return refuse(400, 'invalid_args', 'state');
	if (c.body.label) one.label = c.body.label;
	if (c.body.state === 'stopped') c.world.instances.stop(one);
	return ok({ success: true });
}

function destroy(c) {
	const { world, id } = c;
	const one = world.instances.all.get(id);
	const denied = one && one.quirks.denied_ms && !c.caller.one;
	if (denied && !one.denied_until_ms) one.denied_until_ms = clock.now() + one.quirks.denied_ms;
	if (!one || one.ended_ms || (denied && world.instances.denied(one))) return refuse(404, 'no_such_instance', 'Instance not found');
	world.instances.destroy(one);
	return ok({ success: true, msg: 'Instance destroyed successfully' });
}

function request_logs(c) {
	const one = c.world.instances.all.get(c.id);
	if (!one || one.ended_ms) return { status: 404, body: { error: 'invalid_id', msg: 'Invalid instance id.' } };
	return ok({ success: true, result_url: `${c.world.url}/_logs/${one.id}`, msg: 'the log is on its way' });
}

// The file appears a moment after the request for it.
function log_file(c, answer) {
	const one = c.world.instances.all.get(c.id);
	if (!one) return answer(c, 403, '<Error>AccessDenied</Error>');
	one.log_asked = (one.log_asked || 0) + 1;
	return one.log_asked % 2 ? answer(c, 403, '<Error>AccessDenied</Error>') : answer(c, 200, `${one.log.join('\n')}\n`);
}

// ---- money ----

const round = (x, digits) => Math.round(x * 10 ** digits) / 10 ** digits;

function charge_of(world, one) {
	const { items, hours } = world.instances.so_far(one);
	const start = Math.floor(one.created_ms / 1000), end = Math.floor((one.ended_ms || clock.now()) / 1000);
	const item = ([type, usd]) => ({ start, end, type, source: null, amount: round(usd, 6), metadata: {}, items: [],
		description: type === 'gpu' ? `${hours.toFixed(3)} hours at $${one.bid || one.ask.dph_base}/hour` : type });
	const list = Object.entries(items).map(item);
	return { start, end, type: 'instance', source: `instance-${one.id}`, description: `Instance ${one.id} Charges`,
		amount: round(list.reduce((sum, i) => sum + i.amount, 0), world.settings.charge_digits || 3), metadata: { label: one.label }, items: list };
}

function charges(c) {
	const { world, url } = c;
	const filters = JSON.parse(url.searchParams.get('select_filters') || '{}');
	if (!filters.day || filters.day.gte === undefined || filters.day.lte === undefined)
		return refuse(400, undefined, "Must provide both 'day' gte and lte filters for instance charges");
	const limit = Math.min(Number(url.searchParams.get('limit') || 100), 500);
	const after = Number(Buffer.from(url.searchParams.get('after_token') || '', 'base64').toString() || 0);
	const late = clock.now() - world.settings.billing_lag_s * 1000;
	const all = [...world.instances.all.values()].filter((one) => one.created_ms < late && Math.floor(one.created_ms / 1000) >= filters.day.gte &&
		Math.floor(one.created_ms / 1000) <= filters.day.lte);
	const page = all.slice(after, after + limit);
	const next = after + limit < all.length ? Buffer.from(String(after + limit)).toString('base64') : null;
	return ok({ success: true, count: page.length, total: all.length, next_token: next, results: page.map((one) => charge_of(world, one)) });
}

function show_user(c) {
	return ok({ id: 123456, key_id: 1, email: 'you@example.com', balance: 0, credit: c.world.settings.credit, ssh_key: '', sid: '' });
}

const operations = { searchOffers: search, createInstance: create, listInstances: list, showInstance: show, manageInstance: manage,
	destroyInstance: destroy, requestLogs: request_logs, charges, showUser: show_user };

module.exports = { route, may, operations, log_file };
