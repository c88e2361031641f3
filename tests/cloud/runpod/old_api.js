'use strict';
// old_api.js - what the old GraphQL API of the vendor is still used for: spot, the balance, ending and stopping pods.

const { CAPACITY } = require('./faults');
const { Problem, make_pod } = require('./rest');

const INPUT = ['name', 'imageName', 'gpuTypeId', 'gpuCount', 'cloudType', 'containerDiskInGb', 'volumeInGb', 'volumeMountPath',
	'networkVolumeId', 'dataCenterId', 'countryCode', 'ports', 'env', 'dockerArgs', 'startSsh', 'startJupyter', 'supportPublicIp',
	'minVcpuCount', 'minMemoryInGb', 'minDownload', 'minUpload', 'allowedCudaVersions', 'templateId', 'terminateAfter', 'stopAfter',
	'containerRegistryAuthId', 'globalNetwork'];

function fail(message, code) {
	throw Object.assign(new Error(message), { code });
}

function check_input(input, names, type) {
	if (!input || typeof input !== 'object') fail(`Field argument "input" of type "${type}!" is required, but it was not provided.`, 'GRAPHQL_VALIDATION_FAILED');
	const strange = Object.keys(input).find((k) => !names.includes(k));
	if (strange) fail(`Variable "$input" got invalid value; Field "${strange}" is not defined by type "${type}".`, 'BAD_USER_INPUT');
}

function as_v2(input) {
	const network = input.networkVolumeId ? [{ volumeId: input.networkVolumeId, path: input.volumeMountPath || '/workspace' }] : null;
	const mounts = network ? { network } : input.volumeInGb ? { persistent: { size: input.volumeInGb, path: input.volumeMountPath || '/workspace' } } : {};
	return {
		name: input.name || 'pod',
		image: input.imageName,
		cloud: input.cloudType || 'ALL',
		gpu: { id: input.gpuTypeId, count: input.gpuCount || 1, ...(input.allowedCudaVersions ? { allowedCudaVersions: input.allowedCudaVersions } : {}) },
		...(input.dataCenterId ? { dataCenterIds: [input.dataCenterId] } : {}),
		disk: input.containerDiskInGb,
		ports: (input.ports || '').split(',').map((p) => p.trim()).filter(Boolean),
		env: Object.fromEntries((input.env || []).map(({ key, value }) => [key, String(value)])),
		...(input.dockerArgs === undefined || input.dockerArgs === null ? {} : { args: input.dockerArgs }),
		...(input.startSsh ? { startSsh: true } : {}),
		mounts,
	};
}

function create(world, does, input, spot) {
	const type = spot ? 'PodRentInterruptableInput' : 'PodFindAndDeployOnDemandInput';
	check_input(input, spot ? [...INPUT, 'bidPerGpu'] : INPUT, type);
	if (!input.imageName || world.image_kind(input.imageName) === 'missing') fail('imageName: not found on its registry');
	const gpu = world.catalog.gpu(input.gpuTypeId);
	if (spot && typeof input.bidPerGpu !== 'number') fail('bidPerGpu is required', 'BAD_USER_INPUT');
	if (!gpu || (spot && input.bidPerGpu < gpu.bid)) fail(CAPACITY);
	const body = as_v2(input);
	if (body.mounts.network && body.cloud === 'ALL') body.cloud = 'SECURE';
	const quirks = { ...does.pod };
	// hosts there need not have a public address: only who asks for one has it
	if (body.cloud === 'COMMUNITY' && !input.supportPublicIp) quirks.no_ssh = true;
	const pod = make_pod(world, body, quirks, { spot, bid: input.bidPerGpu, country: input.countryCode });
	return view(world, pod);
}

function view(world, pod) {
	const runtime = world.pods.runtime(pod);
	const shown = world.pods.view(pod);
	return {
		id: pod.id,
		name: pod.name,
		desiredStatus: pod.status === 'EXITED' || pod.status === 'TERMINATED' ? pod.status : 'RUNNING',
		lastStatusChange: pod.last_change,
		imageName: pod.image,
		machineId: pod.host,
		machine: { podHostId: `${pod.id}-${pod.host}`, gpuTypeId: pod.gpu ? pod.gpu.id : null, dataCenterId: pod.dataCenterId },
		gpuCount: pod.gpu ? pod.gpu.count : 0,
		costPerHr: shown.cost,
		containerDiskInGb: pod.disk,
		podType: pod.spot ? 'INTERRUPTABLE' : 'RESERVED',
		ports: pod.ports.join(','),
		env: Object.entries(pod.env).map(([k, v]) => `${k}=${v}`),
		uptimeSeconds: 0,
		runtime: runtime && {
			uptimeInSeconds: runtime.uptime || 0,
			ports: (runtime.ports || []).map((p) => ({ ip: p.ip, isIpPublic: p.type === 'tcp', privatePort: p.private, publicPort: p.public, type: p.type })),
			gpus: [],
		},
	};
}

function resolvers(world, caller, does) {
	const rights = (what) => {
		if (caller.kind === 'readonly' || (caller.kind === 'pod' && !world.settings.pod_key[what])) fail('access denied', 'FORBIDDEN');
	};
	const mine = (id, missing) => {
		const pod = world.pods.all.get(id);
		if (!pod || pod.ended_ms || (caller.kind === 'pod' && caller.pod !== pod)) fail(missing);
		return pod;
	};
	const owner = () => caller.kind === 'pod' && fail('access denied', 'FORBIDDEN');
	const rent = (args, spot) => {
		rights('create');
		owner();
		try {
			return create(world, does, args.input, spot);
		} catch (e) {
			if (e instanceof Problem) fail(e.message);
			throw e;
		}
	};
	return {
		query: {
			myself: () => {
				owner();
				const live = world.pods.live();
				return {
					id: 'user_standin',
					email: 'somebody@example.org',
					clientBalance: world.settings.balance,
					currentSpendPerHr: live.reduce((sum, pod) => sum + world.pods.cost(pod), 0),
					spendLimit: world.settings.spend_limit,
					pods: live.map((pod) => view(world, pod)),
				};
			},
			pod: (args) => view(world, mine((args.input || {}).podId, 'pod not found')),
			gpuTypes: (args) =>
				world.catalog.gpus
					.filter((g) => !args.input || !args.input.id || g.id === args.input.id)
					.map((g) => ({
						id: g.id,
						displayName: g.name,
						memoryInGb: g.memory,
						secureCloud: g.secure,
						communityCloud: g.community,
						securePrice: g.price.secure,
						communityPrice: g.price.community,
						lowestPrice: ({ input = {} }) => lowest_price(world, g, input),
					})),
		},
		mutation: {
			podFindAndDeployOnDemand: (args) => rent(args, false),
			podRentInterruptable: (args) => rent(args, true),
			podTerminate: (args) => {
				rights('graphql');
				const pod = mine((args.input || {}).podId, 'pod not found to terminate');
				if (pod.locked) fail('pod is locked');
				world.pods.terminate(pod);
				return null;
			},
			podStop: (args) => {
				rights('graphql');
				const pod = mine((args.input || {}).podId, 'pod not found');
				if (pod.locked) fail('pod is locked');
				if (pod.status !== 'EXITED') world.pods.stop(pod);
				return view(world, pod);
			},
			podBidResume: (args) => {
				rights('graphql');
				owner();
				const pod = mine((args.input || {}).podId, 'pod not found');
				if (pod.status !== 'EXITED') fail('pod is not stopped');
				pod.rate = args.input.bidPerGpu * pod.count;
				const why = world.pods.resume(pod);
				if (why) fail(why);
				return view(world, pod);
			},
		},
	};
}

function lowest_price(world, gpu, input) {
	const cloud = input.secureCloud === false ? 'COMMUNITY' : 'SECURE';
	const count = input.gpuCount || 1;
	const cells = world.catalog.cells.filter((c) => c.gpu === gpu.id && c.cloud === cloud && (!input.dataCenterId || c.dc === input.dataCenterId));
	const most = Math.max(0, ...cells.map((c) => c.spot));
	const level = world.catalog.level(Math.max(0, ...cells.map((c) => c.free)), count);
	return {
		minimumBidPrice: most >= count ? gpu.bid : null,
		uninterruptablePrice: cloud === 'SECURE' ? gpu.price.secure : gpu.price.community,
		stockStatus: level[0] + level.slice(1).toLowerCase(),
		minVcpu: 8,
		minMemory: 32,
	};
}

module.exports = { resolvers };
