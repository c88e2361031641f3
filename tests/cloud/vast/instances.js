'use strict';
// instances.js - the life of an instance: provisioned, loading, running, exited, stopped, destroyed; what the API says of it at each
// moment, and the container behind it.
//
// An instance's quirks (given by a fault at creation, or by a test later) make it misbehave:
//   hidden_ms GET says 404 so long   unlisted_ms the list lacks it so long   stuck "provisioning"|"loading"|"error"
//   no_ssh no public port ever   door, drop_after_bytes, drop_times machine.js   outbid_after_ms   outlives_ms it runs, bills and is
//   listed so long after its end was accepted   denied_ms from its first DELETE on, DELETE and GET say 404 and the list lacks it so
//   long, though it runs and bills   no_gpu nvidia-smi finds none   status actual_status says so   pull_ms this instance's own

const fs = require('fs');
const path = require('path');
const clock = require('../common/clock');
const { Machine, Door, make_decoy } = require('../common/machine');

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const HOUR_MS = 3600e3;

class Instances {
	// world: { dir, settings, market, random_id(n), podbox, api_ports, image(name, login) }
	constructor(world) {
		this.world = world;
		this.all = new Map(); // also those that are gone: billing and tests ask for them
		this.decoy = make_decoy(world.dir);
		this.next_id = 30000000;
	}

	live() {
		return [...this.all.values()].filter((one) => !one.ended_ms);
	}

	by_key(key) {
		return [...this.all.values()].find((one) => one.key === key);
	}

	// spec: { ask, label, image, login, argv, env, extra_env, ports, disk, bid (0: on demand) }. stopped: it never starts.
	create(spec, quirks = {}, stopped = false) {
		const one = {
			...spec,
			id: this.next_id++,
			key: this.world.random_id(64),
			quirks: { ...quirks },
			actual: null,
			target: stopped ? 'stopped' : 'running',
			created_ms: clock.now(),
			ended_ms: null,
			runs: [], // [from, to or null]: while it is in the state running
			log: [],
			timers: new Set(),
			door: null,
			machine: null,
			message: null,
			told_ms: 0,
		};
		this.all.set(one.id, one);
		one.ask.rentable = stopped;
		const { provision_ms } = this.world.settings.boot;
		if (stopped) one.actual = 'created';
		else if (quirks.stuck !== 'provisioning') this.later(one, provision_ms, () => this.pull(one));
		if (quirks.outbid_after_ms) this.later(one, quirks.outbid_after_ms, () => this.stop(one));
		return one;
	}

	later(one, ms, run) {
		const timer = clock.after(ms, () => {
			one.timers.delete(timer);
			run();
		});
		one.timers.add(timer);
	}

	forget_timers(one) {
		for (const timer of one.timers) clock.cancel(timer);
		one.timers.clear();
	}

	// ---- up ----

	pull(one) {
		one.actual = 'loading';
		one.message = `pulling ${one.image}`;
		if (one.quirks.stuck === 'loading') return;
		const ms = one.quirks.pull_ms !== undefined ? one.quirks.pull_ms : this.world.settings.boot.pull_ms;
		this.later(one, ms, () => {
			if (one.quirks.stuck === 'error') one.message = 'Error response from daemon: failed to create task for container: OCI runtime create failed';
			else this.boot(one);
		});
	}

	async boot(one) {
		await one.halted;
		if (one.ended_ms || one.actual !== 'loading') return;
		const { dir, podbox, api_ports } = this.world;
		const image = this.world.image(one.image, one.login);
		const lower = image.root();
		if (!lower) {
			one.message = `Error response from daemon: ${image.why}`;
			return;
		}
		const on = {
			ready: () => this.start(one, image),
			started: () => this.running(one),
			failed: (text) => one.log.push(`error: ${text}`),
			exit: (code) => this.exited(one, code),
			line: (text) => one.log.push(text),
			gone: () => {},
		};
		one.machine = new Machine(podbox, {
			dir: path.join(dir, 'pods', String(one.id)),
			root: lower,
			hide: lower === '/',
			hostname: `C.${one.id}`,
			disk_mb: Math.min(one.disk * 1024, this.world.settings.disk_mb),
			tcp: one.ports,
			api: api_ports(),
			mounts: image.mounts(),
			files: [...image.files(), ...this.files(one)],
			remove: image.remove(),
		}, on);
	}

	files(one) {
		const count = one.quirks.no_gpu ? 0 : one.ask.num_gpus;
		const text = fs
			.readFileSync(path.join(__dirname, '../common/nvidia_smi.sh'), 'utf8')
			.replace('@GPU@', `${count}|NVIDIA GeForce ${one.ask.gpu_name}|${one.ask.gpu_ram}`);
		return [{ path: '/usr/bin/nvidia-smi', text, mode: 0o755 }];
	}

	async start(one, image) {
		if (one.machine && one.ports.includes(22) && !one.quirks.no_ssh) await this.open_door(one);
		if (!one.machine) return;
		const argv = this.world.settings.onstart_is_entrypoint && one.onstart ? [one.onstart, ...one.args] : [...image.entrypoint, ...one.args];
		one.machine.start(argv, {
			PATH, HOME: '/root', HOSTNAME: `C.${one.id}`, ...image.env, ...one.env,
			CONTAINER_ID: String(one.id), CONTAINER_API_KEY: one.key, VAST_CONTAINERLABEL: `C.${one.id}`, GPU_COUNT: String(one.ask.num_gpus),
			PUBLIC_IPADDR: '127.0.0.1', ...(one.door ? { VAST_TCP_PORT_22: String(one.door.port) } : {}),
		}, true);
	}

	running(one) {
		if (one.stopping) return;
		one.actual = 'running';
		one.message = `success, running ${one.image}/args`;
		one.runs.push([clock.now(), null]);
		this.later(one, this.world.settings.boot.port_ms, () => (one.shown_port = one.door && one.door.port));
	}

	// Vast leaves a container that ended as it is.
	exited(one, code) {
		one.log.push(`exit ${code}`);
		if (one.stopping || one.actual !== 'running') return;
		one.actual = 'exited';
		one.message = `container exited with code ${code}`;
		this.end_run(one);
	}

	async open_door(one) {
		let dropped = 0;
		const door = new Door(() => {
			const q = one.quirks;
			return {
				target: one.actual === 'running' && one.machine && one.machine.ports[22],
				door: q.door,
				delay_ms: 0,
				drop_after_bytes: dropped < (q.drop_times || 1) ? q.drop_after_bytes : 0,
				used: () => dropped++ < (q.drop_times || 1),
			};
		}, this.decoy);
		one.door = door;
		await door.listen();
	}

	// ---- down ----

	end_run(one) {
		const last = one.runs[one.runs.length - 1];
		if (last && last[1] === null) last[1] = clock.now();
	}

	async halt(one) {
		const { machine } = one;
		one.stopping = true;
		if (one.door) one.door.close();
		one.door = one.shown_port = one.machine = null;
		if (!machine) return;
		machine.signal(15);
		await new Promise((resolve) => setTimeout(resolve, machine.pid ? this.world.settings.stop_grace_ms : 0));
		await machine.destroy();
		fs.rmSync(path.join(this.world.dir, 'pods', String(one.id)), { recursive: true, force: true });
	}

	// Outbid, or out of credit: its disk stays and bills.
	stop(one) {
		if (one.ended_ms) return;
		this.forget_timers(one);
		this.end_run(one);
		one.actual = one.actual === null ? null : 'exited';
		one.target = 'stopped';
		one.ask.rentable = true;
		one.halted = this.halt(one);
	}

	destroy(one) {
		if (one.ended_ms) return;
		if (one.quirks.outlives_ms) {
			if (!one.outlives) clock.after(one.quirks.outlives_ms, () => {
				one.quirks.outlives_ms = 0;
				this.destroy(one);
			});
			one.outlives = true;
			return;
		}
		this.forget_timers(one);
		this.end_run(one);
		one.ask.rentable = true;
		one.ended_ms = clock.now();
		one.halted = this.halt(one);
	}

	async end_all() {
		for (const one of this.all.values()) this.forget_timers(one);
		await Promise.all([...this.all.values()].map((one) => this.halt(one)));
		await Promise.all([...this.all.values()].map((one) => one.halted));
	}

	// ---- money ----

	// What it has cost until now: { seconds, usd, items }: the machine while it runs, its disk while it exists, both ways of traffic.
	so_far(one) {
		const now = clock.now();
		const until = one.ended_ms || now;
		const ran_ms = one.runs.reduce((sum, [a, b]) => sum + (b === null ? now : b) - a, 0) + (one.billed_longer_s || 0) * 1000;
		const gpu = (((one.bid || one.ask.dph_base) * ran_ms) / HOUR_MS);
		const disk = (((one.ask.storage_cost / 720) * one.disk * (until - one.created_ms)) / HOUR_MS);
		const gb = this.world.settings.traffic_gb;
		const traffic = { bwd: gb * one.ask.inet_down_cost, bwu: gb * one.ask.inet_up_cost };
		return { seconds: ran_ms / 1000, usd: gpu + disk + traffic.bwd + traffic.bwu, items: { gpu, disk, ...traffic }, hours: ran_ms / HOUR_MS };
	}

	// ---- what the API says ----

	denied(one) {
		return clock.now() < (one.denied_until_ms || 0);
	}

	visible(one) {
		return !one.ended_ms && !this.denied(one) && !(one.quirks.hidden_ms && clock.now() < one.created_ms + one.quirks.hidden_ms);
	}

	listed(one) {
		return !one.ended_ms && !this.denied(one) && !(one.quirks.unlisted_ms && clock.now() < one.created_ms + one.quirks.unlisted_ms);
	}

	view(one) {
		const { ask } = one;
		const storage_total_cost = (ask.storage_cost / 720) * one.disk;
		const base = one.bid || ask.dph_base;
		const ports = one.actual === 'running' && one.shown_port ? { '22/tcp': [{ HostIp: '0.0.0.0', HostPort: String(one.shown_port) }] } : undefined;
		return {
			id: one.id, actual_status: one.quirks.status || one.actual, intended_status: one.target, cur_state: one.target, next_state: one.target,
			label: one.label, template_id: null, image_uuid: one.image, image_args: one.args, image_runtype: 'args', extra_env: one.extra_env,
			onstart: one.onstart || '', status_msg: one.message, public_ipaddr: '127.0.0.1', local_ipaddrs: '10.0.0.5', ssh_host: 'ssh5.vast.ai', ssh_idx: '5',
			ssh_port: 10600, machine_id: ask.machine_id, host_id: ask.host_id, start_date: one.created_ms / 1000, end_date: clock.now() / 1000 + ask.days * 86400,
			duration: ask.days * 86400, gpu_name: ask.gpu_name, gpu_ram: ask.gpu_ram, gpu_totalram: ask.gpu_total_ram, num_gpus: ask.num_gpus,
			cpu_cores: ask.cpu_cores, cpu_cores_effective: ask.cpu_cores_effective, cpu_ram: ask.cpu_ram, disk_space: one.disk,
			geolocation: ask.geolocation, verification: ask.verification, rentable: ask.rentable, min_bid: ask.min_bid, is_bid: one.bid > 0,
			dph_base: base, dph_total: base + storage_total_cost, storage_cost: ask.storage_cost, storage_total_cost, reliability2: ask.reliability,
			...(ports ? { ports } : {}),
		};
	}
}

module.exports = { Instances };
