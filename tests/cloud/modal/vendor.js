'use strict';
// vendor.js SCENARIO - the vendor's own client against the stand-in (MODAL_SERVER_URL, MODAL_TOKEN_ID, MODAL_TOKEN_SECRET,
// MD_SIDE_URL). What it gets is asserted here; a failed one ends with status 1 and says so. Prints what a caller may want.

const assert = require('assert').strict;
const { execFileSync } = require('child_process');
const { createRequire } = require('module');
const path = require('path');

const PACKAGE = process.env.MD_PACKAGE || path.join(__dirname, '../../../build/modal');
const { ModalClient, Probe } = createRequire(path.join(PACKAGE, 'package.json'))('modal');

const SSHD = [
	'set -e; umask 077',
	'mkdir -p /root/.ssh; echo "$HOST_KEY" | base64 -d >/etc/ssh/ssh_host_ed25519_key; echo "$AUTH_KEY" | base64 -d >/root/.ssh/authorized_keys',
	'env >/root/environment; echo ready; exec /usr/sbin/sshd -D -e -o HostKey=/etc/ssh/ssh_host_ed25519_key -o UsePAM=no',
].join('; ');
const LAYERS = ['RUN apt-get update && apt-get install -y openssh-server rsync', 'RUN mkdir -p /run/sshd /root/.ssh', 'ENV LAYER="of two"'];

const quiet = () => {};
const loud = { debug: quiet, info: quiet, warn: (text) => warnings.push(text), error: quiet };
const warnings = [];

async function control(what, body) {
	const res = await fetch(`${process.env.MD_SIDE_URL}/_control/${what}`, body ? { method: 'POST', body: JSON.stringify(body) } : {});
	return res.json();
}

async function calls() {
	return (await control('requests')).map((r) => r.op);
}

async function set_up(client) {
	const app = await client.apps.fromName('burst-check', { createIfMissing: true });
	const volume = await client.volumes.fromName('cache', { createIfMissing: true, version: 2 });
	const image = client.images.fromRegistry('debian:12-slim').dockerfileCommands(LAYERS);
	return { app, volume, image };
}

function env() {
	const read = (name) => execFileSync('base64', ['-w0', name], { encoding: 'utf8' });
	return { HOST_KEY: read('host'), AUTH_KEY: read('id.pub'), GREETING: 'a b' };
}

function spec(volume, more = {}) {
	return { gpu: 'L40S', cpu: 2, memoryMiB: 4096, timeoutMs: 600e3, idleTimeoutMs: 300e3, unencryptedPorts: [22], volumes: { '/cache': volume }, env: env(),
		command: ['/bin/sh', '-c', SSHD], name: 'one', tags: { burst: 'check' }, ...more };
}

// ssh through the tunnel, as often as it takes: the tunnel is up before sshd.
function ssh([host, port], command) {
	const options = ['BatchMode=yes', 'StrictHostKeyChecking=yes', 'UserKnownHostsFile=known', 'LogLevel=ERROR', 'ConnectTimeout=5', 'HostKeyAlias=pod'];
	const argv = ['-F', 'none', '-i', 'id', '-p', String(port), ...options.flatMap((o) => ['-o', o]), `root@${host}`, command];
	for (let left = 40; ; left--) {
		try {
			return execFileSync('ssh', argv, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
		} catch (e) {
			if (!left || e.status !== 255) throw e;
			execFileSync('sleep', ['0.1']);
		}
	}
}

const scenarios = {
	// The whole of it, and in the order that the vendor's client calls.
	async life(client) {
		const { app, volume, image } = await set_up(client);
		const sb = await client.sandboxes.create(app, image, spec(volume));
		assert.match(sb.sandboxId, /^sb-[0-9A-Za-z]{22}$/);
		const tunnel = (await sb.tunnels())[22];
		assert.equal(await sb.poll(), null);
		assert.equal(ssh(tunnel.tcpSocket, 'grep -c "^GREETING=a b$\\|^LAYER=of two$" environment; cat /proc/1/comm; hostname'), '2\nsshd\nmodal\n');
		assert.equal(ssh(tunnel.tcpSocket, `nvidia-smi --query-gpu=name --format=csv,noheader; echo here >/cache/file; cat '${__filename}' 2>&1 | grep -c "No such file"`), 'NVIDIA L40S\n1\n');
		const found = [];
		for await (const one of client.sandboxes.list({ appId: app.appId })) found.push(one.sandboxId);
		assert.deepEqual(found, [sb.sandboxId]);
		assert.equal(await sb.terminate({ wait: true }), 137);
		assert.equal(await sb.poll(), 137);
		assert.equal(await sb.wait(), 137);
		const order = (await calls()).filter((op, i, all) => op !== all[i - 1]);
		const until = order.indexOf('SandboxTerminate');
		assert.deepEqual(order.slice(0, 12), ['AuthTokenGet', 'AppGetOrCreate', 'VolumeGetOrCreate', 'EnvironmentGetOrCreate', 'ImageGetOrCreate', 'ImageJoinStreaming',
			'ImageGetOrCreate', 'ImageJoinStreaming', 'SecretGetOrCreate', 'SandboxCreate', 'SandboxGetTaskId', 'SandboxGetTunnels']);
		assert.equal(order[until + 1], 'SandboxWait');
	},

	async logs_and_tags(client) {
		const { app, volume, image } = await set_up(client);
		const talk = ['/bin/sh', '-c', 'echo one; echo two; echo wrong >&2; sleep 0.5; echo three; exit 3'];
		const sb = await client.sandboxes.create(app, image, spec(volume, { command: talk, unencryptedPorts: undefined }));
		assert.equal(await sb.stdout.readText(), 'one\ntwo\nthree\n');
		assert.equal(await sb.stderr.readText(), 'wrong\n');
		assert.equal(await sb.wait(), 3);
		const next = await client.sandboxes.create(app, image, spec(volume, { command: undefined, unencryptedPorts: undefined, name: 'two' }));
		assert.deepEqual(await next.getTags(), { burst: 'check' });
		await next.setTags({ run: '7', pod: '1' });
		assert.deepEqual(await next.getTags(), { run: '7', pod: '1' });
		const same = await client.sandboxes.fromName('burst-check', 'two');
		assert.equal(same.sandboxId, next.sandboxId);
		await assert.rejects(client.sandboxes.create(app, image, spec(volume, { name: 'two' })), /AlreadyExists|already exists/i);
		const tagged = [];
		for await (const one of client.sandboxes.list({ appId: app.appId, tags: { run: '7' } })) tagged.push(one.sandboxId);
		assert.deepEqual(tagged, [next.sandboxId]);
		await next.terminate({ wait: true });
	},

	async exec(client) {
		const { app, volume, image } = await set_up(client);
		const probe = Probe.withTcp(22);
		const sb = await client.sandboxes.create(app, image, spec(volume, { readinessProbe: probe }));
		await sb.waitUntilReady(20e3);
		const run = await sb.exec(['sh', '-c', 'read line; echo "got $line"; echo wrong >&2; echo $$ >/cache/pid; exit 5']);
		const writer = run.stdin.getWriter();
		await writer.write('words\n');
		await writer.close();
		assert.equal(await run.stdout.readText(), 'got words\n');
		assert.equal(await run.stderr.readText(), 'wrong\n');
		assert.equal(await run.wait(), 5);
		const sync = await sb.exec(['sync', '/cache']);
		assert.equal(await sync.wait(), 0);
		process.stdout.write(volume.volumeId);
		await sb.terminate({ wait: true });
	},

	// Failures as its client knows them.
	async troubles(client) {
		const { app, volume, image } = await set_up(client);
		await control('fault', { fault: 'unavailable', when: { op: 'SandboxCreate' } });
		await control('fault', { fault: 'throttled', when: { op: 'SandboxTerminate' } });
		await control('fault', { fault: 'strange_fields' });
		await control('fault', { fault: 'split_frames', times: -1 });
		const sb = await client.sandboxes.create(app, image, spec(volume));
		await sb.terminate({ wait: true });
		const all = await control('requests');
		const twice = (op) => all.filter((r) => r.op === op).map((r) => r.headers);
		const [first, second] = twice('SandboxCreate');
		assert.equal(first['x-idempotency-key'], second['x-idempotency-key']);
		assert.equal(second['x-retry-attempt'], '1');
		const throttled = twice('SandboxTerminate')[1];
		assert.equal(throttled['x-throttle-retry-attempt'], '1');
		assert.ok(Number(throttled['x-throttle-retry-delay']) >= 0.5);
		await control('fault', { fault: 'lost_reply' });
		const kept = await client.sandboxes.create(app, image, spec(volume, { name: 'kept' }));
		assert.deepEqual((await control('state')).sandboxes.filter((s) => s.name === 'kept').map((s) => s.id), [kept.sandboxId]);
		await kept.terminate({ wait: true });
		await control('fault', { fault: 'image_result', message: 'apt-get: exit code 100' });
		await assert.rejects(client.images.fromRegistry('debian:13').build(app), /exit code 100/);
		// ended before it had a task
		await control('fault', { fault: 'never_scheduled' });
		const never = client.sandboxes.create(app, image, spec(volume, { name: 'never' }));
		let queued;
		while (!(queued = (await control('state')).sandboxes.find((s) => s.name === 'never'))) await new Promise((resolve) => setTimeout(resolve, 20));
		await control(`sandboxes/${queued.id}`, { end: 'INTERNAL_FAILURE', exception: 'no worker would take it' });
		await assert.rejects(never, /no worker would take it/);
		await control('settings', { tunnels_of_ended: 'FAILED_PRECONDITION' });
		const brief = await client.sandboxes.create(app, image, spec(volume, { name: 'brief', command: ['true'] }));
		assert.equal(await brief.wait(), 0);
		await assert.rejects(brief.tunnels(), /already completed/);
		await assert.rejects(client.sandboxes.create(app, image, spec(volume, { gpu: 'Q9' })), /Invalid GPU type/);
	},

	async wrong_token() {
		const client = new ModalClient({ tokenId: 'ak-wrong', tokenSecret: 'as-wrong', logger: loud });
		await assert.rejects(client.apps.fromName('x', { createIfMissing: true }), /Token missing or invalid/);
		assert.deepEqual(await calls(), ['AuthTokenGet']);
		client.close();
	},
};

async function main() {
	const client = new ModalClient({ logger: loud });
	await scenarios[process.argv[2]](client);
	client.close();
}

main().then(
	() => process.exit(0),
	(e) => {
		process.stderr.write(`${process.argv[2]}: ${e.stack}\n`);
		process.exit(1);
	},
);
