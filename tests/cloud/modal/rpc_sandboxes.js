'use strict';
// rpc_sandboxes.js - the calls about sandboxes and their tasks, for those of the first kind (only they have GPUs).

const clock = require('../common/clock');
const gpus = require('./gpus');
const { check_name, check_tag, invalid } = require('./account');
const { RESULT, Status } = require('./status');

const DAY_S = 86400;
const ARGS_MAX_BYTES = 131072;
const OPEN = 1;
const ROUTER_MS = 20000;

// ---- what is asked for ----

function tags_of(list) {
	for (const tag of list) check_tag(tag.tagName, tag.tagValue);
	return list.map(({ tagName, tagValue }) => ({ tagName, tagValue }));
}

function gpu_of(config, settings) {
	if (!config || !config.gpuType) return null;
	const type = gpus.kind_of(config.gpuType, settings.gpus);
	if (!type) throw invalid(`Invalid GPU type: '${config.gpuType}'.`);
	if (config.count < 1 || config.count > settings.gpus[type].most) throw invalid(`Invalid GPU count: ${config.count} of ${type}.`);
	return { type, count: config.count };
}

function mounts_of(mounts, world) {
	const seen = new Set();
	return mounts.map((m) => {
		const volume = world.volumes.get(m.volumeId);
		for (const one of [m.mountPath, volume.id]) {
			if (seen.has(one)) throw invalid(`Volume ${volume.id} at '${m.mountPath}': the same volume or path twice`);
			seen.add(one);
		}
		if (!/^\/[^/]/.test(m.mountPath)) throw invalid(`Invalid mount path: '${m.mountPath}'`);
		return { volume, path: m.mountPath.replace(/\/+$/, ''), read_only: m.readOnly, sub_path: m.subPath };
	});
}

// Fields that do nothing for this kind of sandbox, or that nobody sends, are told to the test.
function remark_oddities(message, def, world) {
	if (message.environmentName) world.remark('SandboxCreate: environment_name is deprecated');
	if (def.environmentVariables) world.remark('SandboxCreate: environment_variables is not something to rely on; use a secret');
	if (def.timeoutSecs === DAY_S) world.remark('SandboxCreate: timeout_secs is the longest there is; want the job\'s own');
	for (const m of def.volumeMounts) if (!m.allowBackgroundCommits) world.remark('SandboxCreate: allow_background_commits is not set');
	if (def.schedulerPlacement && def.schedulerPlacement.regions.length) world.remark('SandboxCreate: a region is 1.5 times as dear');
}

function check_definition(def) {
	if (!def) throw invalid('definition is missing');
	if (def.timeoutSecs < 1 || def.timeoutSecs > DAY_S) throw invalid(`timeout_secs must be between 1 and ${DAY_S}, got ${def.timeoutSecs}`);
	if (def.workdir !== undefined && !def.workdir.startsWith('/')) throw invalid(`workdir must be an absolute path, got: ${def.workdir}`);
	if (def.entrypointArgs.reduce((n, arg) => n + Buffer.byteLength(arg) + 1, 0) > ARGS_MAX_BYTES) throw invalid('Total length of entrypoint arguments is too long');
	if (!def.networkAccess || !def.networkAccess.networkAccessType) throw invalid('network_access is missing');
	if (def.resources && def.resources.ephemeralDiskMb) throw invalid('ephemeral_disk is not supported for sandboxes');
	for (const [what, asked, most] of [['memory', 'memoryMb', 'memoryMbMax'], ['CPU', 'milliCpu', 'milliCpuMax']])
		if (def.resources && def.resources[most] && def.resources[most] < def.resources[asked]) throw invalid(`The ${what} limit is below the request`);
	if (def.idleTimeoutSecs === 0) throw invalid('idle_timeout_secs must be positive');
	if (def.readinessProbe && !def.readinessProbe.intervalMs) throw invalid('readiness_probe: interval_ms is missing');
}

function ports_of(def) {
	const list = (def.openPorts ? def.openPorts.ports : []).map((p) => ({ port: p.port, raw: p.unencrypted }));
	for (const { port } of list) if (port < 1 || port > 65535) throw invalid(`Invalid port: ${port}`);
	if (list.length && (def.blockNetwork || def.networkAccess.networkAccessType !== OPEN)) throw invalid('Cannot open ports with the network blocked');
	return list;
}

function check_rate(world) {
	const now = clock.now();
	world.creates = world.creates.filter((ms) => now - ms < 1000);
	if (world.creates.length >= world.settings.creates_per_s)
		throw new Status('RESOURCE_EXHAUSTED', `Sandbox creation rate limit (${world.settings.creates_per_s}/s) exceeded`, world.settings.create_retry_s);
	world.creates.push(now);
}

function create({ world, message, does }) {
	const { definition: def } = message;
	const app = world.account.app(message.appId);
	check_rate(world);
	check_definition(def);
	const image = world.account.image(def.imageId);
	if (!image.result || image.result.status !== RESULT.SUCCESS) throw new Status('FAILED_PRECONDITION', `Image ${image.id} is not built.`);
	if (def.name !== undefined) {
		check_name('Sandbox', def.name);
		if (world.sandboxes.live().some((sb) => sb.app === app && sb.name === def.name)) throw new Status('ALREADY_EXISTS', `Sandbox with name '${def.name}' already exists.`);
	}
	const resources = def.resources || {};
	const spec = {
		app,
		image,
		args: def.entrypointArgs,
		env: Object.assign({}, ...def.secretIds.map((id) => world.account.secret(id).env)),
		gpu: gpu_of(resources.gpuConfig, world.settings),
		cpu: (resources.milliCpu || 125) / 1000,
		memory_gib: (resources.memoryMb || 128) / 1024,
		memory_max_gib: resources.memoryMbMax ? resources.memoryMbMax / 1024 : Infinity,
		timeout_s: def.timeoutSecs,
		idle_s: def.idleTimeoutSecs,
		workdir: def.workdir || image.workdir,
		volumes: mounts_of(def.volumeMounts, world),
		ports: ports_of(def),
		probe: def.readinessProbe,
		name: def.name,
		tags: tags_of(message.tags),
	};
	remark_oddities(message, def, world);
	const sb = world.sandboxes.create(spec, does.sandbox || {});
	return { sandboxId: sb.id, metadata: { appId: app.id } };
}

// ---- what is told ----

function result_of(sb) {
	return sb.result ? { result: sb.result } : {};
}

function task_info(sb) {
	const seconds = (ms) => (ms ? ms / 1000 : 0);
	return {
		id: sb.task || '',
		enqueuedAt: seconds(sb.created_ms),
		startedAt: seconds(sb.started_ms),
		finishedAt: sb.started_ms ? seconds(sb.ended_ms) : 0,
		sandboxId: sb.id,
		gpuType: sb.gpu ? sb.quirks.gpu_got || sb.gpu.type : '',
		...(sb.gpu ? { gpuConfig: { count: sb.gpu.count, gpuType: sb.quirks.gpu_got || sb.gpu.type } } : {}),
		...result_of(sb),
	};
}

function listed_task(sb, how) {
	if (how === 'none') return {};
	return { taskInfo: { ...task_info(sb), ...(how === 'unstarted' ? { startedAt: 0 } : {}) } };
}

// An answer that a client can make use of; whoever gets it knows of what is in it.
function arrives({ status, wire = {} }) {
	return !status && !['flag', 'no_status', 'late_error', 'reset', 'merge', 'goaway'].some((how) => wire[how]);
}

function list({ world, message, does }) {
	const { appId, beforeTimestamp, includeFinished, tags } = message;
	const before_s = beforeTimestamp || Infinity;
	if (appId) world.account.app(appId);
	else if (!world.settings.list_whole) throw new Status('FAILED_PRECONDITION', 'Listing Sandboxes without an app_id is no longer supported');
	const rows = [...world.sandboxes.all.values()].filter(
		(sb) =>
			sb.created_ms / 1000 < before_s && (includeFinished || !sb.result) && (!appId || sb.app.id === appId) && world.sandboxes.listed(sb) &&
			tags.every((t) => sb.tags.some((have) => have.tagName === t.tagName && have.tagValue === t.tagValue)),
	);
	if (does.hide) return { sandboxes: [] };
	rows.sort((a, b) => b.created_ms - a.created_ms);
	const page = rows.slice(0, world.settings.page);
	for (const sb of page) if (arrives(does) && !sb.ended_ms) sb.told_ms = sb.told_ms || clock.now();
	return {
		sandboxes: page.map((sb) => ({
			id: sb.id,
			createdAt: sb.created_ms / 1000,
			...listed_task(sb, world.settings.list_tasks),
			appId: sb.app.id,
			tags: sb.tags,
			name: sb.name || '',
			imageId: sb.image.id,
			timeoutSecs: sb.timeout_s,
			idleTimeoutSecs: sb.idle_s,
			readyAt: sb.ready_ms ? sb.ready_ms / 1000 : undefined,
			resourceInfo: { memoryMb: sb.memory_gib * 1024, milliCpu: sb.cpu * 1000, gpuType: sb.gpu ? sb.gpu.type : '' },
			tunnels: sb.tunnel_up && world.settings.list_tunnels ? world.sandboxes.tunnels(sb) : [],
		})),
	};
}

async function tunnels({ world, message }) {
	const sb = world.sandboxes.get(message.sandboxId);
	if (!sb.ports.length) throw invalid(`Sandbox ${sb.id} has no open ports`);
	await world.sandboxes.until(sb, () => sb.tunnel_up || sb.result, message.timeout * 1000);
	if (sb.result) throw new Status(world.settings.tunnels_of_ended, `Sandbox ${sb.id} has already completed.`);
	if (!sb.tunnel_up) return { result: { status: RESULT.TIMEOUT } };
	return { result: { status: RESULT.SUCCESS }, tunnels: world.sandboxes.tunnels(sb) };
}

// Entries bear a time and their place; a stream that ends without eof is to be opened again where it ended.
async function* logs({ world, message, reply }) {
	const sb = world.sandboxes.get(message.sandboxId);
	const fd = message.fileDescriptor;
	const until = Date.now() + message.timeout * 1000;
	let at = Number((/-(\d+)$/.exec(message.lastEntryId) || [0, 0])[1]);
	while (!reply.over) {
		for (; at < sb.log.length; at++) {
			const entry = sb.log[at];
			if (fd && entry.fd !== fd) continue;
			const item = { data: entry.data, timestamp: entry.ms / 1000, timestampNs: String(Math.round(entry.ms * 1e6)), fileDescriptor: entry.fd };
			yield { taskId: sb.task || '', items: [item], entryId: `${Math.round(entry.ms)}-${at + 1}` };
		}
		if (sb.result) return yield { taskId: sb.task || '', eof: true };
		if (Date.now() >= until) return undefined;
		const seen = at;
		await world.sandboxes.until(sb, () => sb.log.length > seen || sb.result || reply.over, until - Date.now());
	}
	return undefined;
}

function from_name({ world, message }) {
	const app = [...world.account.apps.values()].find((one) => one.name === message.appName && !one.gone);
	const sb = app && world.sandboxes.live().find((one) => one.app === app && one.name === message.sandboxName);
	if (!sb) throw new Status('NOT_FOUND', `Sandbox '${message.sandboxName}' not found.`);
	return { sandboxId: sb.id };
}

const calls = {
	SandboxCreate: create,
	SandboxList: list,
	SandboxListV2: list,
	SandboxGetTunnels: tunnels,
	SandboxGetLogs: logs,

	SandboxCreateV2({ message }) {
		const { resources } = message.definition || {};
		if (resources && resources.gpuConfig && resources.gpuConfig.gpuType) throw invalid('GPUs are not supported');
		throw new Status('UNIMPLEMENTED', 'no sandboxes of the second kind here');
	},

	async SandboxGetTaskId({ world, message }) {
		const sb = world.sandboxes.get(message.sandboxId);
		if (message.timeout) await world.sandboxes.until(sb, () => (message.waitUntilReady ? sb.ready_ms : sb.task) || sb.result, message.timeout * 1000);
		return { ...(sb.task ? { taskId: sb.task } : {}), ...(sb.result ? { taskResult: sb.result } : {}) };
	},

	async SandboxWait({ world, message }) {
		const sb = world.sandboxes.get(message.sandboxId);
		await world.sandboxes.until(sb, () => sb.result, message.timeout * 1000);
		return result_of(sb);
	},

	// Only the promise of an end: what comes of it is to be waited for.
	SandboxTerminate({ world, message }) {
		const sb = world.sandboxes.get(message.sandboxId);
		if (sb.result) return { existingResult: sb.result };
		world.sandboxes.end(sb, 'TERMINATED');
		return {};
	},

	SandboxGetFromName: from_name,
	SandboxGetFromNameV2({ message }) {
		throw new Status('NOT_FOUND', `Sandbox '${message.sandboxName}' not found.`); // there are none of the second kind
	},

	SandboxTagsSet({ world, message }) {
		world.sandboxes.get(message.sandboxId).tags = tags_of(message.tags);
		return {};
	},

	SandboxTagsGet({ world, message }) {
		return { tags: world.sandboxes.get(message.sandboxId).tags };
	},

	SandboxGetResourceUsage({ world, message }) {
		if (!world.settings.billing.usage) throw new Status('UNIMPLEMENTED', 'SandboxGetResourceUsage');
		return world.sandboxes.usage(world.sandboxes.get(message.sandboxId));
	},

	TaskGetInfo({ world, message }) {
		const sb = world.sandboxes.by_task(message.taskId);
		return { appId: sb.app.id, info: task_info(sb) };
	},

	async TaskGetCommandRouterAccess({ world, message }) {
		const sb = world.sandboxes.by_task(message.taskId);
		await world.sandboxes.until(sb, () => sb.state === 'RUNNING' || sb.result, ROUTER_MS);
		if (sb.state !== 'RUNNING') throw new Status('FAILED_PRECONDITION', `Task ${sb.task} has no command router.`);
		return { jwt: world.router.grant(sb), url: `https://127.0.0.1:${world.port}` };
	},
};

module.exports = { calls };
