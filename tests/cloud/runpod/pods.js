'use strict';
// pods.js - the life of a pod: allocated, pulled, running, stopped, gone; what the API says of it at each moment, and the
// container behind it.
//
// A pod's quirks (given by a fault at creation, or by a test later) make it misbehave:
//   hidden_ms GET answers 404 so long   unlisted_ms the list lacks it so long   stuck "PROVISIONING"|"STARTING"|"ERROR"
//   runtime what `runtime` says when RUNNING   no_ssh no public port ever   door, drop_after_bytes, drop_times machine.js
//   preempt_after_ms, preempt_to   lingers_ms still RUNNING so long after its end was accepted   outlives_ms the same, and it
//   bills   delete_404_ms DELETE says
//   404 so long after creation   denied_ms from its first DELETE on, DELETE and GET say 404 and the list lacks it so long, though it
//   runs and bills   stale_port_ms the API shows the old port so long after a restart   cost what it says it costs
//   no_gpu nvidia-smi finds none   volume "ro"|"full"   locked   pull_ms this pod's own
//   pull_says_ms while it is pulled, its system log has another line so often
//   pull_percent those lines say how much of it there is

const fs = require('fs');
const path = require('path');
const clock = require('../common/clock');
const words = require('./words');
const { LightMachine } = require('../common/light');
const { Machine, Door, make_decoy } = require('../common/machine');

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const ACTIONS = {
	PROVISIONING: ['stop', 'terminate'],
	STARTING: ['stop', 'terminate'],
	RUNNING: ['stop', 'restart', 'terminate'],
	EXITED: ['start', 'terminate'],
	ERROR: ['start', 'terminate'],
	TERMINATED: [],
};
const LOG_MAX = 20000;

class Pods {
	// world: { dir, settings, catalog, volumes, random_id(n), podbox, api_ports, env_of_api }
	constructor(world) {
		this.world = world;
		this.all = new Map(); // also those that are gone: billing and tests ask for them
		this.decoy = make_decoy(world.dir);
	}

	live() {
		return [...this.all.values()].filter((pod) => !pod.ended_ms);
	}

	live_and_lingering() {
		return [...this.all.values()].filter((pod) => !pod.ended_ms || clock.now() < pod.listed_until_ms);
	}

	// Edited: the same host, a new container with nothing kept but volumes.
	async reset(pod) {
		const machine = pod.machine;
		pod.status = 'STARTING';
		pod.door_set = false;
		pod.halted = this.halt_machine(pod);
		await pod.halted;
		pod.stopping = false;
		if (machine && !pod.ended_ms) this.boot(pod);
	}

	by_key(key) {
		return [...this.all.values()].find((pod) => pod.key === key);
	}

	// spec: { name, image, args, env, disk, ports, registry, mounts, gpu, cpu, cloud, dataCenterId, cudaVersion, cell, count,
	// spot, bid, rate, globalNetworking, kind }; quirks as above.
	create(spec, quirks) {
		const pod = {
			...spec,
			id: this.world.random_id(14),
			key: `rpa_pod_${this.world.random_id(32)}`,
			host: this.world.random_id(8),
			quirks: { ...quirks },
			status: 'PROVISIONING',
			locked: !!quirks.locked,
			created_ms: clock.now(),
			started_ms: null,
			running_ms: null,
			ended_ms: null,
			spans: [], // [from, to or null, 'compute' or 'disk']
			log: [],
			watchers: new Set(),
			timers: new Set(),
			starts: 0,
			last_change: 'Rented by User',
			door: null,
			shown_port: null,
			machine: null,
		};
		this.all.set(pod.id, pod);
		this.begin_span(pod, 'created');
		this.say(pod, `create pod ${pod.id}: allocated in ${pod.dataCenterId}`);
		const boot = this.world.settings.boot;
		if (quirks.stuck !== 'PROVISIONING') this.later(pod, boot.provision_ms, () => this.pull(pod));
		if (quirks.preempt_after_ms)
			this.later(pod, quirks.preempt_after_ms, () => this.preempt(pod, quirks.preempt_to || 'EXITED'));
		return pod;
	}

	later(pod, ms, run) {
		const timer = clock.after(ms, () => {
			pod.timers.delete(timer);
			run();
		});
		pod.timers.add(timer);
	}

	forget_timers(pod) {
		for (const timer of pod.timers) clock.cancel(timer);
		pod.timers.clear();
	}

	// ---- logs ----

	say(pod, line, source = 'system') {
		const ms = clock.now();
		const entry = { ms, ts: clock.iso(ms), source, line, seq: pod.log.length ? pod.log[pod.log.length - 1].seq + 1 : 1 };
		pod.log.push(entry);
		if (pod.log.length > LOG_MAX) pod.log.shift();
		for (const watch of pod.watchers) watch(entry);
	}

	// ---- up ----

	pull(pod) {
		const boot = this.world.settings.boot;
		pod.status = 'STARTING';
		this.say(pod, `pulling image ${pod.image}`);
		if (pod.quirks.stuck === 'STARTING') return;
		const ms = pod.quirks.pull_ms !== undefined ? pod.quirks.pull_ms : boot.pull_ms;
		for (let n = 1, every = pod.quirks.pull_says_ms; every && n * every < ms; n++)
			this.later(pod, n * every, () => this.say(pod, pod.quirks.pull_percent ? `pulling image ${pod.image}: ${Math.floor(100 * n * every / ms)}%` : `layer ${n} of ${pod.image} downloaded`));
		if (pod.quirks.stuck === 'ERROR')
			return this.later(pod, ms, () => {
				this.say(pod, 'error creating container: failed to create task for container: OCI runtime create failed');
				this.fail(pod);
			});
		this.later(pod, ms, () => {
			this.say(pod, `image ${pod.image} pulled`);
			this.say(pod, 'create container');
			this.boot(pod);
		});
	}

	fail(pod) {
		pod.status = 'ERROR';
		this.end_span(pod);
		this.close_door(pod);
	}

	async boot(pod) {
		await pod.halted; // a stopped one's container may still be on its way out
		if (pod.ended_ms || pod.status !== 'STARTING') return;
		const { dir, podbox, api_ports } = this.world;
		const image = this.world.image(pod.image);
		const lower = image.root();
		if (!lower) {
			this.say(pod, `error pulling image: ${image.why}`);
			if (!image.again_ms) return this.fail(pod);
			return this.later(pod, image.again_ms, () => {
				this.say(pod, `pulling image ${pod.image}`);
				this.boot(pod);
			});
		}
		pod.fresh = true;
		pod.argv_error = null;
		try {
			pod.argv = words.command(pod.args, image);
		} catch (e) {
			this.say(pod, `error creating container: args: ${e.message}`);
			return this.fail(pod);
		}
		const on = {
			ready: () => this.start(pod),
			started: () => this.running(pod),
			failed: (text) => this.say(pod, `error starting container: ${text}`),
			exit: (code, signal) => this.exited(pod, code, signal),
			line: (text) => this.say(pod, text, 'container'),
			gone: () => {},
		};
		if (this.world.light) {
			pod.machine = new LightMachine(this.world.light, pod.id, on);
			return;
		}
		pod.machine = new Machine(
			podbox,
			{
				dir: path.join(dir, 'pods', pod.id),
				root: lower,
				hide: lower === '/',
				hostname: pod.id,
				disk_mb: Math.min(pod.disk * 1024, this.world.settings.disk_mb),
				tcp: tcp_ports(pod),
				api: api_ports(),
				mounts: this.mounts(pod, image),
				files: [...image.files(), ...this.files(pod)],
				remove: image.remove(),
			},
			on,
		);
	}

	mounts(pod, image) {
		const list = image.mounts();
		const how = pod.quirks.volume || 'rw';
		const { network, persistent } = pod.mounts;
		if (network && network.length)
			list.push({ from: this.world.volumes.folder(network[0].volumeId), to: network[0].path, how });
		if (persistent) {
			const from = path.join(this.world.dir, 'persistent', pod.id);
			fs.mkdirSync(from, { recursive: true });
			list.push({ from, to: persistent.path, how });
		}
		return list;
	}

	files(pod) {
		if (!pod.gpu) return [];
		const type = this.world.catalog.gpu(pod.gpu.id);
		const count = pod.quirks.no_gpu || pod.no_gpu_now ? 0 : pod.gpu.count;
		const text = fs
			.readFileSync(path.join(__dirname, '../common/nvidia_smi.sh'), 'utf8')
			.replace('@GPU@', `${count}|${type.id}|${type.memory * 1024}`);
		return [{ path: '/usr/bin/nvidia-smi', text, mode: 0o755 }];
	}

	environment(pod) {
		const { network } = pod.mounts;
		const secrets = this.world.settings.secrets;
		const own = Object.fromEntries(
			Object.entries(pod.env).map(([name, value]) => [
				name,
				value.replace(/\{\{\s*RUNPOD_SECRET_(\w+)\s*\}\}/g, (all, key) => (key in secrets ? secrets[key] : all)),
			]),
		);
		return {
			PATH,
			HOME: '/root',
			HOSTNAME: pod.id,
			...this.world.image(pod.image).env,
			...own,
			RUNPOD_POD_ID: pod.id,
			RUNPOD_API_KEY: pod.key,
			RUNPOD_DC_ID: pod.dataCenterId,
			RUNPOD_POD_HOSTNAME: `${pod.id}-${pod.host}`,
			RUNPOD_CPU_COUNT: String(pod.cpu ? pod.cpu.vcpuCount : 8 * pod.gpu.count),
			...(pod.gpu ? { RUNPOD_GPU_COUNT: String(pod.gpu.count), RUNPOD_GPU_NAME: pod.gpu.id, CUDA_VERSION: pod.cudaVersion || '' } : {}),
			...(network && network.length ? { RUNPOD_VOLUME_ID: network[0].volumeId } : {}),
			...(pod.door ? { RUNPOD_PUBLIC_IP: '127.0.0.1', RUNPOD_TCP_PORT_22: String(pod.door.port) } : {}),
		};
	}

	async start(pod) {
		if (!pod.machine) return;
		if (!pod.door && !this.world.light && tcp_ports(pod).includes(22) && !pod.quirks.no_ssh) await this.open_door(pod);
		if (!pod.machine) return;
		this.say(pod, 'start container');
		pod.machine.start(pod.argv, this.environment(pod), pod.fresh);
		pod.fresh = true;
	}

	running(pod) {
		if (pod.stopping) return; // its end was asked for while it came up
		const boot = this.world.settings.boot;
		if (this.world.light) pod.door = { port: pod.machine.ports[22], close() {}, drop() {} };
		pod.starts++;
		pod.status = 'RUNNING';
		pod.container_ms = clock.now();
		if (!pod.started_ms) {
			pod.started_ms = clock.now();
			this.begin_span(pod, 'running');
		}
		if (pod.door_set) return;
		pod.door_set = true;
		if (pod.door)
			this.later(pod, boot.direct_ms, () => {
				pod.shown_port = pod.door && pod.door.port;
				this.later(pod, boot.banner_ms, () => (pod.banner = true));
			});
	}

	// The vendor starts a container that ended again, for ever, and goes on billing.
	exited(pod, code, signal) {
		this.say(pod, `container exited with ${signal ? `signal ${signal}` : `code ${code}`}`);
		if (pod.stopping || pod.status !== 'RUNNING') return;
		const ran_ms = clock.now() - pod.container_ms;
		pod.crashes = ran_ms > 10000 ? 0 : (pod.crashes || 0) + 1;
		this.restart_soon(pod, Math.min(this.world.settings.restart_pause_ms * 2 ** Math.min(pod.crashes, 8), 60000),
			!this.world.settings.crash_keeps_disk);
	}

	restart_soon(pod, ms, fresh) {
		pod.status = 'STARTING';
		pod.fresh = fresh;
		this.later(pod, ms, () => this.start(pod));
	}

	// ---- ports ----

	async open_door(pod) {
		let dropped = 0;
		const door = new Door(() => {
			const q = pod.quirks;
			return {
				target: pod.banner && pod.status === 'RUNNING' && pod.machine && pod.machine.ports[22],
				door: q.door,
				delay_ms: this.world.settings.rtt_ms,
				drop_after_bytes: dropped < (q.drop_times || 1) ? q.drop_after_bytes : 0,
				used: () => dropped++ < (q.drop_times || 1),
			};
		}, this.decoy);
		pod.door = door;
		await door.listen();
	}

	close_door(pod) {
		if (pod.door) pod.door.close();
		pod.door = null;
		pod.door_set = false;
		pod.banner = false;
		pod.shown_port = null;
	}

	// A restart gives another public port; the API may go on showing the old one.
	async move_door(pod) {
		const old = pod.shown_port;
		this.close_door(pod);
		if (!tcp_ports(pod).includes(22) || pod.quirks.no_ssh) return;
		await this.open_door(pod);
		pod.door_set = true;
		pod.banner = true;
		const ms = pod.quirks.stale_port_ms || 0;
		pod.shown_port = ms ? old : pod.door.port;
		if (ms) this.later(pod, ms, () => (pod.shown_port = pod.door && pod.door.port));
	}

	// ---- money ----

	begin_span(pod, when) {
		const mode = this.world.settings.billing.from;
		if (pod.ended_ms) return;
		if (pod.spans.length && pod.spans[pod.spans.length - 1][1] === null) return;
		if (when === 'created' && mode !== 'created') return;
		pod.spans.push([clock.now(), null]);
	}

	end_span(pod) {
		const last = pod.spans[pod.spans.length - 1];
		if (last && last[1] === null) last[1] = clock.now();
	}

	disk_rate(pod) {
		return (pod.disk * 0.1) / 730;
	}

	cost(pod) {
		if (pod.status === 'EXITED' || pod.status === 'TERMINATED' || pod.ended_ms) return 0;
		if (pod.quirks.cost !== undefined) return pod.quirks.cost;
		const disk = this.world.settings.billing.cost_with_disk ? this.disk_rate(pod) : 0;
		return Math.round((pod.rate + disk) * 1e6) / 1e6;
	}

	// ---- down ----

	async halt_machine(pod) {
		const machine = pod.machine;
		pod.stopping = true;
		this.close_door(pod);
		pod.machine = null;
		if (!machine) return;
		this.say(pod, 'stop container');
		machine.signal(15);
		await new Promise((resolve) => setTimeout(resolve, machine.pid ? this.world.settings.stop_grace_ms : 0));
		await machine.destroy();
		fs.rmSync(path.join(this.world.dir, 'pods', pod.id), { recursive: true, force: true });
	}

	give_back(pod) {
		if (pod.cell && !pod.given_back) this.world.catalog.give(pod.cell, pod.count, pod.spot);
		pod.given_back = true;
	}

	stop(pod, why) {
		this.forget_timers(pod);
		this.end_span(pod);
		this.give_back(pod);
		pod.stale_runtime = pod.status === 'RUNNING' && this.runtime(pod);
		pod.status = 'EXITED';
		pod.last_change = why || `Exited by user: ${new Date(clock.now()).toString()}`;
		pod.halted = this.halt_machine(pod);
		this.later(pod, this.world.settings.stale_runtime_ms, () => (pod.stale_runtime = null));
	}

	// Back to the same host. Returns a refusal's text, or undefined.
	resume(pod) {
		const free = pod.cell ? pod.cell[pod.spot ? 'spot' : 'free'] : Infinity;
		pod.no_gpu_now = false;
		if (free < pod.count) {
			if (!this.world.settings.start_without_gpu || !pod.gpu)
				return 'There are not enough free GPUs on the host machine to start this pod.';
			pod.no_gpu_now = true;
			pod.gpu = { ...pod.gpu, count: 0 };
		} else if (pod.cell) {
			this.world.catalog.take(pod.cell, pod.count, pod.spot);
			pod.given_back = false;
		}
		pod.stopping = false;
		pod.status = 'STARTING';
		pod.spans.push([clock.now(), null]);
		this.later(pod, this.world.settings.boot.provision_ms, () => this.boot(pod));
		return undefined;
	}

	async restart(pod, fresh = true) {
		if (!pod.machine) return;
		pod.status = 'STARTING';
		this.say(pod, 'stop container');
		pod.machine.signal(15);
		const machine = pod.machine;
		setTimeout(() => machine.signal(9), this.world.settings.stop_grace_ms);
		const until = Date.now() + 10000;
		while (machine.pid && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 10));
		if (pod.machine !== machine) return;
		await this.move_door(pod);
		this.restart_soon(pod, this.world.settings.restart_pause_ms, fresh);
	}

	preempt(pod, to) {
		if (pod.ended_ms || pod.status === 'EXITED') return;
		this.say(pod, 'outbid');
		pod.taken_back = to === 'TERMINATED';
		const why = `Outbid: ${new Date(clock.now()).toString()}`;
		if (to === 'TERMINATED') this.terminate(pod, why);
		else this.stop(pod, why);
	}

	// Billing ends now; the container goes after lingers_ms (it may still answer so long).
	terminate(pod, why) {
		if (pod.ended_ms) return;
		if (pod.quirks.outlives_ms) {
			if (pod.outlives) return;
			pod.outlives = true;
			clock.after(pod.quirks.outlives_ms, () => {
				pod.quirks.outlives_ms = 0;
				this.terminate(pod, why);
			});
			return;
		}
		const linger = pod.quirks.lingers_ms || 0;
		if (!linger) this.forget_timers(pod);
		this.end_span(pod);
		this.give_back(pod);
		pod.ended_ms = clock.now();
		pod.visible_until_ms = clock.now() + Math.max(linger, this.world.settings.terminated_ms);
		pod.listed_until_ms = clock.now() + linger;
		pod.last_change = why || `Terminated by User: ${new Date(clock.now()).toString()}`;
		const go = () => {
			pod.status = 'TERMINATED';
			pod.watchers.clear();
			pod.halted = this.halt_machine(pod);
			fs.rmSync(path.join(this.world.dir, 'persistent', pod.id), { recursive: true, force: true });
		};
		if (linger) clock.after(linger, go);
		else go();
	}

	async end_all() {
		for (const pod of this.all.values()) this.forget_timers(pod);
		await Promise.all([...this.all.values()].map((pod) => this.halt_machine(pod)));
		await Promise.all([...this.all.values()].map((pod) => pod.halted));
	}

	// ---- what the API says ----

	denied(pod) {
		return clock.now() < (pod.denied_until_ms || 0);
	}

	visible(pod) {
		const now = clock.now();
		if (this.denied(pod)) return false;
		if (pod.quirks.hidden_ms && now < pod.created_ms + pod.quirks.hidden_ms) return false;
		return !pod.ended_ms || now < pod.visible_until_ms;
	}

	listed(pod) {
		const now = clock.now();
		if (this.denied(pod)) return false;
		if (pod.quirks.unlisted_ms && now < pod.created_ms + pod.quirks.unlisted_ms) return false;
		return !pod.ended_ms || now < pod.listed_until_ms;
	}

	runtime(pod) {
		if (pod.status === 'EXITED') return pod.stale_runtime || null;
		if (pod.status === 'PROVISIONING') return pod.starts ? null : {};
		if (pod.status !== 'RUNNING') return null;
		if ('runtime' in pod.quirks) return pod.quirks.runtime;
		const ports = [];
		if (pod.shown_port) ports.push({ private: 22, public: pod.shown_port, type: 'tcp', ip: '127.0.0.1' });
		for (const port of pod.ports.filter((p) => p.endsWith('/http')))
			ports.push({ private: parseInt(port, 10), public: 60000 + (parseInt(port, 10) % 5000), type: 'http', ip: '100.65.0.9' });
		return {
			uptime: Math.floor((clock.now() - pod.container_ms) / 1000),
			...(pod.gpu ? { gpus: Array.from({ length: pod.gpu.count }, () => ({ util: 0, memoryUtil: 0 })) } : {}),
			cpu: { util: 3 },
			memory: { util: 5 },
			ports,
		};
	}

	ssh(pod) {
		const user = `${pod.id}-${pod.host}`;
		const direct = pod.status === 'RUNNING' && pod.shown_port;
		return {
			proxy:
				pod.status === 'PROVISIONING' && !pod.starts
					? null
					: { host: 'ssh.runpod.io', port: 22, username: user, command: `ssh ${user}@ssh.runpod.io` },
			direct: direct
				? { host: '127.0.0.1', port: direct, username: 'root', command: `ssh root@127.0.0.1 -p ${direct}` }
				: null,
		};
	}

	view(pod) {
		const allowed = ACTIONS[pod.status].filter((a) => !pod.locked || a === 'start');
		return {
			id: pod.id,
			name: pod.name,
			status: pod.status,
			actions: allowed,
			image: pod.image,
			args: pod.args || '',
			disk: pod.disk,
			ports: pod.ports,
			env: pod.env,
			registry: pod.registry || null,
			mounts: pod.mounts,
			...(pod.gpu ? { gpu: pod.gpu } : { cpu: pod.cpu }),
			cloud: pod.cloud,
			dataCenterId: pod.dataCenterId,
			cudaVersion: pod.cudaVersion,
			ssh: this.ssh(pod),
			template: null,
			cost: this.cost(pod),
			locked: pod.locked,
			globalNetworking: pod.globalNetworking ? { enabled: true, ip: '10.1.0.2', internalDns: `${pod.id}.runpod.internal` } : { enabled: false },
			runtime: this.runtime(pod),
			createdAt: clock.iso(pod.created_ms),
			startedAt: pod.started_ms ? clock.iso(pod.started_ms) : null,
		};
	}
}

function tcp_ports(pod) {
	return pod.ports.filter((p) => p.endsWith('/tcp')).map((p) => parseInt(p, 10)).slice(0, 8);
}

module.exports = { Pods, ACTIONS };
