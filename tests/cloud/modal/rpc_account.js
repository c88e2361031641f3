'use strict';
// rpc_account.js - the calls about tokens, environments, apps, secrets, images and money. Each takes { world, message, does,
// reply } and gives the answer; those that stream are generators.

const clock = require('../common/clock');
const { HOW, check_tag, invalid } = require('./account');
const { RESULT, Status } = require('./status');

const LENGTHS_MS = { h: 3600e3, d: 24 * 3600e3 };

// Resolves when something changed in the set of watchers' owner, when the call is over, or after ms of real time.
function next_change(watchers, reply, ms) {
	return new Promise((resolve) => {
		const done = () => {
			clearTimeout(timer);
			watchers.delete(done);
			reply.stream.off('close', done);
			resolve();
		};
		const timer = setTimeout(done, ms);
		watchers.add(done);
		reply.stream.once('close', done);
	});
}

function metadata(image) {
	return { workdir: image.workdir, imageBuilderVersion: image.builder_version };
}

function finished(image) {
	return image.result ? { result: image.result, metadata: metadata(image) } : {};
}

const calls = {
	AuthTokenGet({ world, does }) {
		return { token: world.account.new_token(does.token_s || world.settings.auth_token_s) };
	},

	ClientHello({ world }) {
		return { serverWarnings: world.settings.warnings.map((message) => ({ type: 1, message })) };
	},

	TokenInfoGet({ world }) {
		return { tokenId: world.token.id, workspaceId: 'ac-0123456789abcdefghijkl', workspaceName: 'workspace', tokenName: 'for tests' };
	},

	EnvironmentGetOrCreate({ world, message }) {
		const { environments } = world.settings;
		const name = message.deploymentName || environments[0];
		if (!environments.includes(name) && message.objectCreationType === HOW.LOOK_UP) throw new Status('NOT_FOUND', `Environment '${name}' not found.`);
		if (!environments.includes(name)) environments.push(name);
		return {
			environmentId: world.environment,
			metadata: { name, settings: { imageBuilderVersion: world.settings.builder_version, webhookSuffix: '', maxConcurrentGpus: world.settings.max_gpus } },
		};
	},

	AppGetOrCreate({ world, message }) {
		return { appId: world.account.get_app(message.appName, message.objectCreationType).id };
	},

	AppSetTags({ world, message }) {
		for (const [name, value] of Object.entries(message.tags)) check_tag(name, value);
		world.account.app(message.appId).tags = message.tags;
		return {};
	},

	AppGetTags({ world, message }) {
		return { tags: world.account.app(message.appId).tags };
	},

	async AppStop({ world, message }) {
		const app = world.account.app(message.appId);
		app.gone = true;
		await Promise.all(world.sandboxes.live().filter((sb) => sb.app === app).map((sb) => world.sandboxes.end(sb, 'TERMINATED')));
		return {};
	},

	SecretGetOrCreate({ world, message }) {
		const how = message.objectCreationType;
		if (how === HOW.OF_APP) world.account.app(message.appId);
		const named = how !== HOW.OF_APP && how !== HOW.EPHEMERAL;
		return { secretId: world.account.get_secret(named ? message.deploymentName : undefined, how, message.envDict, message.requiredKeys).id };
	},

	SecretDelete({ world, message }) {
		world.account.secret(message.secretId);
		world.account.secrets.delete(message.secretId);
		return {};
	},

	// ---- images ----

	ImageGetOrCreate({ world, message, does }) {
		world.account.app(message.appId);
		if (!message.image) throw invalid('image is missing');
		if (!world.settings.builder_versions.includes(message.builderVersion)) throw invalid(`Unsupported image builder version: '${message.builderVersion}'`);
		const image = world.account.get_image(message.image, message.builderVersion, message.forceBuild || message.ignoreCache);
		if (!image.building) {
			image.building = true;
			world.account.build(image, does.image);
		}
		return { imageId: image.id, ...finished(image) };
	},

	ImageFromId({ world, message }) {
		const image = world.account.image(message.imageId);
		return { imageId: image.id, metadata: metadata(image) };
	},

	// The log first, then the result; a line may come after it.
	async *ImageJoinStreaming({ world, message, reply }) {
		const image = world.account.image(message.imageId);
		const until = Date.now() + message.timeout * 1000;
		let at = Number((/-(\d+)$/.exec(message.lastEntryId) || [0, 0])[1]);
		if (image.result && !message.includeLogsForFinished) at = Infinity;
		while (!reply.over) {
			for (; at < image.log.length; at++) {
				const { ms, data } = image.log[at];
				yield { taskLogs: [{ data, timestamp: ms / 1000, fileDescriptor: 1 }, { taskProgress: { len: 10, pos: at, description: 'pulling' } }], entryId: `${ms}-${at + 1}` };
			}
			if (image.result) return yield* late_lines(image);
			if (Date.now() >= until) return undefined;
			await next_change(image.watchers, reply, until - Date.now());
		}
		return undefined;
	},

	// ---- money ----

	WorkspaceBillingRates({ world }) {
		const rates = Object.fromEntries(Object.entries(world.settings.gpus).map(([type, gpu]) => [`GPU ${type}`, (gpu.usd_per_s * 3600).toFixed(6)]));
		for (const [name, usd] of Object.entries(world.settings.rates)) rates[name] = usd.toFixed(8);
		const formatted = Object.entries(rates).map(([name, usd]) => `${name}: $${usd}`).join('\n');
		return { rates, formatted };
	},

	*WorkspaceBillingReport({ world, message }) {
		const { resolution, startTimestamp, endTimestamp, appIds, tagNames } = message;
		const length = LENGTHS_MS[resolution];
		if (!length) throw invalid(`Invalid resolution: '${resolution}'. Must be 'd' or 'h'.`);
		if (!startTimestamp) throw invalid('start_timestamp is missing');
		if (!world.settings.billing.allowed) throw new Status('PERMISSION_DENIED', 'Billing reports are not available for this workspace.');
		const edge = Math.min(clock.now() - world.settings.billing.lag_s * 1000, endTimestamp ? endTimestamp.getTime() : Infinity);
		for (let at = Math.floor(startTimestamp.getTime() / length) * length; at + length <= edge; at += length)
			for (const app of world.account.apps.values()) {
				if (appIds.length && !appIds.includes(app.id)) continue;
				const item = bill(world, app, at, at + length);
				if (!item) continue;
				const tags = Object.fromEntries(Object.entries(app.tags).filter(([name]) => tagNames.includes('*') || tagNames.includes(name)));
				yield { objectId: app.id, description: app.name, environmentName: 'main', interval: new Date(at), tags, ...item };
			}
	},
};

function* late_lines(image) {
	yield { ...finished(image), entryId: `${clock.now()}-${image.log.length}` };
	yield { taskLogs: [{ data: 'cleaning up\n', timestamp: clock.now() / 1000, fileDescriptor: 1 }], entryId: `${clock.now()}-${image.log.length}`, eof: true };
}

// What one app cost in an interval: by resource and together, as decimal text.
function bill(world, app, from, to) {
	const sums = {};
	for (const sb of world.sandboxes.all.values())
		if (sb.app === app)
			for (const [name, usd] of Object.entries(world.sandboxes.cost(sb, from, to))) sums[name] = (sums[name] || 0) + usd;
	const cost = Object.values(sums).reduce((a, b) => a + b, 0);
	if (!(cost > 0)) return null;
	return { cost: cost.toFixed(10), costByResource: Object.fromEntries(Object.entries(sums).map(([name, usd]) => [name, usd.toFixed(10)])) };
}

module.exports = { calls, next_change, bill };
