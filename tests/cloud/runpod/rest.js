'use strict';
// rest.js - the operations of REST v2. Each takes a context { world, caller, params, query, body, req } and gives back
// { status, body, headers } or throws a Problem.

const billing = require('./billing');
const clock = require('../common/clock');
const { by_version, CPU_DISK_GB } = require('./catalog');
const { CAPACITY } = require('./faults');
const { complaints } = require('./schema');
const { ACTIONS } = require('./pods');
const requests = require('./requests.json');

class Problem extends Error {
	constructor(status, detail, errors) {
		super(detail);
		this.status = status;
		this.errors = errors;
	}
}

function must_fit(name, body) {
	const errors = complaints(requests, name, body);
	if (errors.length) throw new Problem(422, 'Request validation failed.', errors);
}

function cuda_wish(gpu) {
	if (gpu.allowedCudaVersions && gpu.allowedCudaVersions.length) return (v) => gpu.allowedCudaVersions.includes(v);
	if (gpu.minCudaVersion) return (v) => by_version(v, gpu.minCudaVersion) >= 0;
	return null;
}

// ---- pods ----

function check_create(body, world) {
	must_fit('CreatePodRequest', body);
	if (!!body.gpu === !!body.cpu) throw new Problem(400, 'exactly one of gpu or cpu must be set');
	const mounts = body.mounts || {};
	if (mounts.persistent && mounts.network) throw new Problem(400, 'mounts.persistent and mounts.network are mutually exclusive');
	if (body.cpu && mounts.persistent) throw new Problem(400, 'mounts.persistent is not supported on CPU pods');
	if (body.gpu && body.gpu.minCudaVersion && (body.gpu.allowedCudaVersions || []).length)
		throw new Problem(400, 'gpu.allowedCudaVersions and gpu.minCudaVersion are mutually exclusive');
	if (body.cpu && (body.cpu.vcpuCount & (body.cpu.vcpuCount - 1)) !== 0) throw new Problem(400, 'cpu.vcpuCount must be a power of two');
	if (body.templateId) throw new Problem(404, 'template not found');
	for (const port of body.ports || [])
		if (!/^\d{1,5}\/(tcp|http)$/.test(port)) throw new Problem(400, `invalid port '${port}'`);
	if ((body.ports || []).filter((p) => p.endsWith('/http')).length > 10) throw new Problem(400, 'at most 10 HTTP ports can be exposed');
	if (Object.keys(body.env || {}).length > 50) throw new Problem(400, 'at most 50 environment variables can be set');
	for (const [name, value] of Object.entries(body.env || {}))
		if (!name || /[=\0]/.test(name) || value.includes('\0')) throw new Problem(400, `invalid environment variable '${name}'`);
	if (world.image_kind(body.image) === 'missing')
		throw new Problem(422, 'Request validation failed.', [`image: '${body.image}' was not found on its registry`]);
}

function volume_of(body, world) {
	const mount = ((body.mounts || {}).network || [])[0];
	if (!mount) return null;
	const volume = world.volumes.get(mount.volumeId);
	if (!volume) throw new Problem(400, 'network volume not found');
	return volume;
}

function place_gpu(body, world, volume, more) {
	const cloud = body.cloud || 'SECURE';
	const { gpu } = body;
	const type = world.catalog.gpu(gpu.id);
	const no_room = new Problem(400, CAPACITY);
	// without a count it fails as if nothing were free, whatever the documentation says of a default
	if (!type || gpu.count === undefined || (volume && cloud !== 'SECURE')) throw no_room;
	if ((body.disk || world.settings.default_disk_gb) < world.settings.least_disk_gb) throw no_room;
	const dcs = volume
		? (body.dataCenterIds || []).length && !body.dataCenterIds.some((d) => d.toUpperCase() === volume.dataCenter)
			? ['nowhere']
			: [volume.dataCenter]
		: body.dataCenterIds;
	const cuda = cuda_wish(gpu);
	const cell = world.catalog.place({ gpu: gpu.id, count: gpu.count, cloud, dcs, cuda, ...more });
	if (!cell) throw no_room;
	world.catalog.take(cell, gpu.count, more && more.spot);
	const price = cell.cloud === 'SECURE' ? type.price.secure : type.price.community;
	return {
		gpu: { id: gpu.id, count: gpu.count },
		cell,
		count: gpu.count,
		cloud: cell.cloud,
		dataCenterId: cell.dc,
		cudaVersion: cell.cuda.filter((v) => !cuda || cuda(v)).sort(by_version).pop() || null,
		rate: (more && more.spot ? more.bid : price) * gpu.count,
	};
}

function place_cpu(body, world, volume) {
	const flavour = world.catalog.cpus.find((c) => c.id === body.cpu.id);
	const { vcpuCount } = body.cpu;
	const no_room = new Problem(400, CAPACITY);
	const dcs = body.dataCenterIds || [];
	const disk = body.disk || world.settings.default_disk_gb;
	if (!flavour || vcpuCount < flavour.vcpu.min || vcpuCount > flavour.vcpu.max || body.cloud === 'COMMUNITY') throw no_room;
	if (disk < world.settings.least_disk_gb || disk > vcpuCount * CPU_DISK_GB) throw no_room;
	if (volume && dcs.length && !dcs.some((d) => d.toUpperCase() === volume.dataCenter)) throw no_room;
	const cell = world.catalog.place_cpu(vcpuCount, volume ? [volume.dataCenter] : dcs);
	if (!cell) throw no_room;
	world.catalog.take(cell, vcpuCount, false);
	return {
		cpu: { id: body.cpu.id, vcpuCount, memory: Math.max(1, Math.floor(vcpuCount * flavour.ramGbPerVcpu)) },
		cell,
		count: vcpuCount,
		cloud: 'SECURE',
		dataCenterId: cell.dc,
		cudaVersion: null,
		rate: flavour.price.securePerVcpu * vcpuCount,
	};
}

// What create of either API ends in. body is v2's; more: { spot, bid, country } from the old one.
function make_pod(world, body, quirks, more) {
	const volume = volume_of(body, world);
	const where = body.gpu ? place_gpu(body, world, volume, more) : place_cpu(body, world, volume);
	const env = { ...body.env };
	if (body.startSsh && !('PUBLIC_KEY' in env) && world.ssh_keys.length) env.PUBLIC_KEY = world.ssh_keys.join('\n');
	if (body.startJupyter && !('JUPYTER_PASSWORD' in env)) env.JUPYTER_PASSWORD = world.random_id(20);
	return world.pods.create(
		{
			...where,
			name: body.name,
			image: body.image,
			args: body.args,
			env,
			disk: body.disk || world.settings.default_disk_gb,
			ports: body.ports || [],
			registry: body.registry || null,
			mounts: body.mounts || {},
			globalNetworking: !!body.globalNetworking,
			spot: !!(more && more.spot),
			bid: more && more.bid,
		},
		quirks || {},
	);
}

function find_pod(c) {
	const pod = c.world.pods.all.get(c.params.id);
	const mine = pod && (c.caller.kind !== 'pod' || c.caller.pod === pod);
	if (!mine) throw new Problem(404, 'pod not found');
	return pod;
}

function visible_pod(c) {
	const pod = find_pod(c);
	if (!c.world.pods.visible(pod) || c.does.hide) throw new Problem(404, 'pod not found');
	return pod;
}

// A pod that may still be acted upon.
function live_pod(c) {
	const pod = find_pod(c);
	if (pod.quirks.denied_ms && !pod.ended_ms) pod.denied_until_ms = pod.denied_until_ms || clock.now() + pod.quirks.denied_ms;
	const hidden = c.world.pods.denied(pod) || (pod.quirks.delete_404_ms && clock.now() < pod.created_ms + pod.quirks.delete_404_ms);
	if (hidden) pod.told_ms = 0; // as far as anybody was told, it is gone
	if (pod.ended_ms || hidden) throw new Problem(404, 'pod not found');
	return pod;
}

// Whoever asks knows of it from now on; what a pod asks about itself tells nobody else.
function tell(c, pod) {
	if (c.caller.kind !== 'pod') pod.told_ms = pod.told_ms || clock.now();
}

function terminate(c, pod) {
	if (pod.locked) throw new Problem(409, 'pod is locked');
	c.world.pods.terminate(pod);
	return { status: 204 };
}

// A page of a list, where there are any: what the vendor's other clients read.
function paged(c, name, list, view) {
	const { page } = c.world.settings;
	if (!page) return { status: 200, body: { [name]: list.map(view) } };
	const after = c.query.get('cursor');
	const from = after === null ? 0 : list.findIndex((one) => one.id === Buffer.from(after, 'base64url').toString()) + 1;
	if (after !== null && !from) throw new Problem(400, 'invalid cursor');
	const part = list.slice(from, from + page);
	const more = from + page < list.length;
	const nextCursor = more ? Buffer.from(part[part.length - 1].id).toString('base64url') : null;
	return { status: 200, body: { [name]: part.map(view), pagination: { hasNextPage: more, nextCursor } } };
}

const pods = {
	createPod(c) {
		check_create(c.body, c.world);
		const pod = make_pod(c.world, c.body, c.does.pod);
		if (c.does.twin) make_pod(c.world, c.body, c.does.pod);
		return { status: 201, body: c.world.pods.view(pod) };
	},

	listPods(c) {
		const hides = (pod) => c.does.hide && (!c.does.hide.name || new RegExp(c.does.hide.name).test(pod.name));
		let hidden = 0; // without a name: one of them
		const list = c.world.pods.live_and_lingering().filter((pod) => {
			if (!c.world.pods.listed(pod)) return false;
			if (!hides(pod)) return true;
			return c.does.hide === true && hidden++ > 0;
		});
		for (const pod of list) tell(c, pod);
		return paged(c, 'pods', list, (pod) => c.world.pods.view(pod));
	},

	getPod(c) {
		const pod = visible_pod(c);
		tell(c, pod);
		return { status: 200, body: c.world.pods.view(pod) };
	},

	patchPod(c) {
		const pod = visible_pod(c);
		must_fit('UpdatePodRequest', c.body);
		const { mounts, locked, ...rest } = c.body;
		if (pod.locked && locked !== false) throw new Problem(409, 'pod is locked');
		if (rest.templateId) throw new Problem(404, 'template not found');
		if (mounts && mounts.network) {
			const now = (pod.mounts.network || [])[0];
			if (!mounts.network.length || !now || now.volumeId !== mounts.network[0].volumeId)
				throw new Problem(400, 'mounts cannot be changed so');
		}
		if (mounts && mounts.persistent && !pod.mounts.persistent) throw new Problem(400, 'mounts cannot be changed so');
		if (locked !== undefined) pod.locked = locked;
		if (mounts && Object.keys(mounts).length) pod.mounts = mounts;
		Object.assign(pod, rest);
		const resets = ['env', 'image', 'ports', 'args', 'disk', 'registry'].some((k) => k in rest);
		if (resets && pod.status === 'RUNNING') c.world.pods.reset(pod);
		return { status: 200, body: c.world.pods.view(pod) };
	},

	deletePod(c) {
		return terminate(c, live_pod(c));
	},

	podAction(c) {
		const pod = live_pod(c);
		must_fit('PodActionRequest', c.body);
		const { action } = c.body;
		if (!ACTIONS[pod.status].includes(action)) throw new Problem(409, `action '${action}' is not valid for a pod that is ${pod.status}`);
		if (pod.locked && action !== 'start') throw new Problem(409, 'pod is locked');
		if (action === 'terminate') return terminate(c, pod);
		if (action === 'stop') c.world.pods.stop(pod);
		if (action === 'restart') c.world.pods.restart(pod);
		if (action === 'start') {
			const why = c.world.pods.resume(pod);
			if (why) throw new Problem(400, why);
		}
		return { status: 200, body: c.world.pods.view(pod) };
	},

	podLogs(c) {
		const pod = visible_pod(c);
		if (pod.status === 'TERMINATED') throw new Problem(404, 'pod not found');
		const source = c.query.get('source');
		const tail = c.query.get('tail');
		const since = c.query.get('since');
		if (source && source !== 'container' && source !== 'system')
			throw new Problem(422, 'Request validation failed.', ["source: value must be one of 'container', 'system'"]);
		if (tail !== null && (!/^\d+$/.test(tail) || Number(tail) > 5000))
			throw new Problem(422, 'Request validation failed.', ['tail: want an integer from 0 to 5000']);
		if (since !== null && Number.isNaN(Date.parse(since))) throw new Problem(422, 'Request validation failed.', ['since: want a date-time']);
		return { status: 200, stream: { pod, source, tail: tail === null ? 100 : Number(tail), since } };
	},
};

// ---- volumes ----

class Volumes {
	constructor(world) {
		this.world = world;
		this.all = new Map();
	}
	get(id) {
		const volume = this.all.get(id);
		return volume && !volume.deleted_ms ? volume : null;
	}
	folder(id) {
		return `${this.world.dir}/volumes/${id}`;
	}
	view({ id, name, size, dataCenter, type }) {
		return { id, name, size, dataCenter, type };
	}
	create(spec) {
		const volume = { ...spec, id: this.world.random_id(10), created_ms: clock.now(), deleted_ms: null, spans: [[clock.now(), null]] };
		this.all.set(volume.id, volume);
		require('fs').mkdirSync(this.folder(volume.id), { recursive: true });
		return volume;
	}
	remove(volume) {
		volume.deleted_ms = clock.now();
		volume.spans[0][1] = clock.now();
		require('fs').rmSync(this.folder(volume.id), { recursive: true, force: true });
	}
}

function find_volume(c) {
	const volume = c.world.volumes.get(c.params.id);
	if (!volume) throw new Problem(404, 'resource not found');
	return volume;
}

const volumes = {
	listVolumes(c) {
		const list = [...c.world.volumes.all.values()].filter((v) => !v.deleted_ms);
		return paged(c, 'networkVolumes', list, c.world.volumes.view);
	},
	createVolume(c) {
		must_fit('CreateNetworkVolumeRequest', c.body);
		const dc = c.world.catalog.data_center(c.body.dataCenter);
		if (!dc) throw new Problem(400, 'Failed to find data center, please try again.');
		const type = c.body.type || dc.networkVolumeTypes[0];
		if (!dc.networkVolumeTypes.includes(type)) {
			const able = c.world.catalog.data_centers.filter((d) => d.networkVolumeTypes.length).map((d) => d.id);
			throw new Problem(400, `data center ${dc.id} does not support network volumes of that type; those that support network volumes: ${able.join(', ')}`);
		}
		const volume = c.world.volumes.create({ name: c.body.name, size: c.body.size, dataCenter: dc.id, type });
		return { status: 201, body: c.world.volumes.view(volume) };
	},
	getVolume(c) {
		return { status: 200, body: c.world.volumes.view(find_volume(c)) };
	},
	patchVolume(c) {
		const volume = find_volume(c);
		must_fit('UpdateNetworkVolumeRequest', c.body);
		if (c.body.size !== undefined && c.body.size < volume.size) throw new Problem(400, 'network volume size cannot be decreased');
		Object.assign(volume, c.body);
		return { status: 200, body: c.world.volumes.view(volume) };
	},
	deleteVolume(c) {
		const volume = find_volume(c);
		const user = c.world.pods.live().find((p) => ((p.mounts.network || [])[0] || {}).volumeId === volume.id);
		if (user) throw new Problem(400, `network volume is attached to pod ${user.id}`);
		c.world.volumes.remove(volume);
		return { status: 204 };
	},
};

// ---- catalog ----

function list_of(text) {
	return text === null ? null : text.split(',').filter(Boolean);
}

function invalid(text) {
	return new Problem(422, 'Request validation failed.', [text]);
}

// Whether availability is wanted; names: the parameters that need it.
function wants_availability(query, products, names) {
	const include = list_of(query.get('include'));
	const product = list_of(query.get('product'));

	if (include && (include.length > 1 || include[0] !== 'AVAILABILITY')) throw invalid("include: value must be one of 'AVAILABILITY'");
	if (product && product.some((p) => !products.includes(p))) throw invalid(`product: value must be one of ${products.map((p) => `'${p}'`).join(', ')}`);
	if (include && !product) throw new Problem(400, 'product is required with include=AVAILABILITY');
	for (const name of ['product', ...names])
		if (!include && query.has(name)) throw new Problem(400, `${name} is valid only with include=AVAILABILITY`);
	return !!include;
}

function cpu_query(query) {
	const include = wants_availability(query, ['POD', 'SERVERLESS'], ['vcpuCount']);
	const count = query.has('vcpuCount') ? Number(query.get('vcpuCount')) : 2;
	if (!Number.isInteger(count) || count < 2) throw invalid('vcpuCount: want an integer of at least 2');
	if ((count & (count - 1)) !== 0) throw new Problem(400, 'vcpuCount must be a power of two');
	return { include, count };
}

function gpu_query(query) {
	const include = wants_availability(query, ['POD', 'CLUSTER', 'SERVERLESS'], ['count', 'cloud', 'countryCodes', 'cudaVersions', 'minCudaVersion']);
	const count = query.has('count') ? Number(query.get('count')) : 1;
	if (!Number.isInteger(count) || count < 1) throw invalid('count: want a positive integer');
	const cloud = query.get('cloud') || 'SECURE';
	if (cloud !== 'SECURE' && cloud !== 'COMMUNITY') throw invalid("cloud: value must be one of 'SECURE', 'COMMUNITY'");
	const countries = list_of(query.get('countryCodes'));
	if (countries && countries.some((x) => !/^[A-Z]{2}$/.test(x))) throw invalid('countryCodes: want upper-case codes of two letters');
	const versions = list_of(query.get('cudaVersions'));
	const min = query.get('minCudaVersion');
	if (versions && min !== null) throw new Problem(400, 'cudaVersions and minCudaVersion are mutually exclusive');
	if (versions && versions.some((v) => !/^\d+\.\d+$/.test(v))) throw invalid('cudaVersions: want major.minor');
	if (min !== null && !/^\d+(\.\d+)?$/.test(min)) throw invalid('minCudaVersion: want major or major.minor');
	const cuda = versions ? (v) => versions.includes(v) : min !== null ? (v) => by_version(v, min) >= 0 : null;
	return { include, count, cloud, countries, cuda };
}

function view_gpu(gpu) {
	const { id, name, pool, manufacturer, memory, secure, community, price, maxCount } = gpu;
	return { id, name, pool, manufacturer, memory, secure, community, price, maxCount };
}

const catalog = {
	listGpus(c) {
		const query = gpu_query(c.query);
		const gpus = [];
		for (const gpu of c.world.catalog.gpus) {
			const more = query.include ? c.world.catalog.availability(gpu, query) : { out: {}, known: true };
			if (!query.countries || more.known) gpus.push({ ...view_gpu(gpu), ...more.out });
		}
		return { status: 200, body: { gpus } };
	},
	getGpu(c) {
		const query = gpu_query(c.query);
		const gpu = c.world.catalog.gpu(c.params.id);
		if (!gpu) throw new Problem(404, 'resource not found');
		return { status: 200, body: { ...view_gpu(gpu), ...(query.include ? c.world.catalog.availability(gpu, query).out : {}) } };
	},
	listCpus(c) {
		const query = cpu_query(c.query);
		const cpus = c.world.catalog.cpus.map((cpu) => ({ ...cpu, ...(query.include ? c.world.catalog.cpu_availability(cpu, query.count) : {}) }));
		return { status: 200, body: { cpus } };
	},
	listDataCenters(c) {
		const include = list_of(c.query.get('include')) || [];
		const regions = list_of(c.query.get('regions'));
		const types = list_of(c.query.get('networkVolumeTypes')) || [];
		const global = c.query.get('globalNetwork');
		if (include.some((i) => !['GPU_AVAILABILITY', 'CPU_AVAILABILITY'].includes(i)))
			throw new Problem(422, 'Request validation failed.', ["include: value must be one of 'GPU_AVAILABILITY', 'CPU_AVAILABILITY'"]);
		const list = c.world.catalog.data_centers.filter(
			(d) => (!regions || regions.includes(d.region)) && types.every((t) => d.networkVolumeTypes.includes(t)) && (global === null || String(d.globalNetwork) === global),
		);
		const dataCenters = list.map(({ country, ...dc }) => {
			const out = { ...dc };
			const cells = c.world.catalog.cells.filter((cell) => cell.dc === dc.id && cell.cloud === 'SECURE');
			if (include.includes('GPU_AVAILABILITY') && cells.length)
				out.gpuAvailability = cells.map((cell) => ({ id: cell.gpu, name: c.world.catalog.gpu(cell.gpu).name, availability: c.world.catalog.level(cell.free, 1) }));
			if (include.includes('CPU_AVAILABILITY'))
				out.cpuAvailability = c.world.catalog.cpus.map((cpu) => ({ id: cpu.id, name: cpu.name, availability: c.world.catalog.level(c.world.catalog.cpu_free(dc.id), 2) }));
			return out;
		});
		return { status: 200, body: { dataCenters } };
	},
};

// ---- billing, account ----

function window_or_throw(query) {
	const window = billing.window_of(query);
	if (window.error) throw new Problem(...window.error);
	return window;
}

const other = {
	billingPods(c) {
		const lag_ms = c.world.settings.billing.lag_s * 1000;
		const ledger = { all_pods: [...c.world.pods.all.values()], disk_rate: (p) => c.world.pods.disk_rate(p) };
		return { status: 200, body: billing.pod_billing(window_or_throw(c.query), ledger, c.query.get('podId'), lag_ms) };
	},
	billingVolumes(c) {
		const lag_ms = c.world.settings.billing.lag_s * 1000;
		return { status: 200, body: billing.volume_billing(window_or_throw(c.query), [...c.world.volumes.all.values()], c.query.get('networkVolumeId'), lag_ms) };
	},
	getSshKeys(c) {
		return { status: 200, body: { keys: c.world.ssh_keys } };
	},
	putSshKeys(c) {
		must_fit('UpdateSshKeysRequest', c.body);
		c.world.ssh_keys = c.body.keys;
		return { status: 200, body: { keys: c.world.ssh_keys } };
	},
};

const ROUTES = [
	['/v2/pods', { GET: 'listPods', POST: 'createPod' }],
	['/v2/pods/{id}', { GET: 'getPod', PATCH: 'patchPod', DELETE: 'deletePod' }],
	['/v2/pods/{id}/action', { POST: 'podAction' }],
	['/v2/pods/{id}/logs', { GET: 'podLogs' }],
	['/v2/network-volumes', { GET: 'listVolumes', POST: 'createVolume' }],
	['/v2/network-volumes/{id}', { GET: 'getVolume', PATCH: 'patchVolume', DELETE: 'deleteVolume' }],
	['/v2/catalog/gpus', { GET: 'listGpus' }],
	['/v2/catalog/gpus/{id}', { GET: 'getGpu' }],
	['/v2/catalog/cpus', { GET: 'listCpus' }],
	['/v2/catalog/datacenters', { GET: 'listDataCenters' }],
	['/v2/billing/pods', { GET: 'billingPods' }],
	['/v2/billing/network-volumes', { GET: 'billingVolumes' }],
	['/v2/account/ssh-keys', { GET: 'getSshKeys', PUT: 'putSshKeys' }],
].map(([pattern, methods]) => ({ pattern: new RegExp(`^${pattern.replace('{id}', '([^/]+)')}$`), methods }));

// { op, params } or { allow: "GET, POST" } or null.
function route(method, path) {
	for (const { pattern, methods } of ROUTES) {
		const found = pattern.exec(path);
		if (!found) continue;
		if (!methods[method]) return { allow: Object.keys(methods).join(', ') };
		let id;
		try {
			id = found[1] === undefined ? undefined : decodeURIComponent(found[1]);
		} catch (e) {
			return null;
		}
		return { op: methods[method], params: { id } };
	}
	return null;
}

const operations = { ...pods, ...volumes, ...catalog, ...other };
module.exports = { Problem, Volumes, operations, route, make_pod };
