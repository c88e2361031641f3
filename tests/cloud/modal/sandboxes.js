'use strict';
// sandboxes.js - the life of a sandbox: QUEUED, SCHEDULED (it has a task), RUNNING, ENDED (it has a result); one id never
// runs twice. Behind a running one is a container whose first process is the entrypoint that the client sent.
//
// A sandbox's quirks (given by a fault at creation, or by a test later):
//   stuck "QUEUED"|"SCHEDULED"   unlisted_ms the list lacks it so long   schedule_ms   no_tunnel   tls_only no raw tunnel
//   door, drop_after_bytes, drop_times   deaf_ms the tunnel's connections are reset so long   reset_conns N the first N are
//   preempt_after_ms   evict_after_ms   init_failure TEXT   term_ms the end takes so long   lose_unsynced its end commits no
//   volume   fail_sync   gpu_got the GPU that it really gets   no_gpu   used_gib wants more memory than was asked for

const { EventEmitter } = require('events');
const fs = require('fs');
const path = require('path');
const clock = require('../common/clock');
const { HOST_KEYS, host_files } = require('../common/host_root');
const { Machine, Door, make_decoy } = require('../common/machine');
const { Exec } = require('./router');
const { MADE } = require('./account');
const { RESULT, Status } = require('./status');

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const SYNC_DIR = '/run/volume-sync';
// sync of a sandbox: what is on the volumes (those it is given, or all) is committed once this comes back with 0
const SYNC = `#!/bin/sh
for path; do
	case $path in -*) continue ;; esac
	[ -e "$path" ] || { echo "sync: error opening '$path': No such file or directory" >&2; exit 1; }
done
sync_request=$(mktemp ${SYNC_DIR}/request-XXXXXXXX) || exit 1
for path; do case $path in -*) ;; *) realpath "$path" ;; esac; done >"$sync_request"
mv "$sync_request" "$sync_request.go" || exit 1
while [ -e "$sync_request.go" ]; do sleep 0.02; done
rm "$sync_request.done" 2>/dev/null || { echo "sync: input/output error" >&2; exit 1; }
`;
// What an image holds only if its recipe installs it, of what this machine's own root has.
const PACKAGES = {
	'openssh-server': ['/usr/sbin/sshd'],
	rsync: ['/usr/bin/rsync'],
	'espeak-ng': ['/usr/bin/espeak-ng', '/usr/bin/speak-ng', '/usr/lib/x86_64-linux-gnu/libespeak-ng.so.1', '/usr/lib/aarch64-linux-gnu/libespeak-ng.so.1'],
};

// Does somebody listen on this port in the network of this process?
function listens(pid, port) {
	const want = new RegExp(`^\\s*\\d+: [0-9A-F]+:${port.toString(16).toUpperCase().padStart(4, '0')} [0-9A-F:]+ 0A `, 'm');
	return ['tcp', 'tcp6'].some((name) => {
		try {
			return want.test(fs.readFileSync(`/proc/${pid}/net/${name}`, 'utf8'));
		} catch (e) {
			return false;
		}
	});
}

class Sandboxes {
	constructor(world) {
		this.world = world;
		this.all = new Map();
		this.decoy = make_decoy(world.dir);
	}

	live() {
		return [...this.all.values()].filter((sb) => !sb.result);
	}

	get(id) {
		if (!this.all.has(id)) throw new Status('NOT_FOUND', `Sandbox ${id} not found.`);
		return this.all.get(id);
	}

	by_task(id) {
		const sb = [...this.all.values()].find((one) => one.task && one.task === id);
		if (!sb) throw new Status('NOT_FOUND', `Task ${id} not found.`);
		return sb;
	}

	listed(sb) {
		return !sb.quirks.unlisted_ms || clock.now() >= sb.created_ms + sb.quirks.unlisted_ms;
	}

	// Lists are turned over by it: no two are of the same moment.
	moment() {
		this.last_ms = Math.max(clock.now(), (this.last_ms || 0) + 1);
		return this.last_ms;
	}

	create(spec, quirks) {
		const sb = {
			...spec,
			id: this.world.id('sb'),
			task: null,
			state: 'QUEUED',
			quirks: { ...quirks },
			created_ms: this.moment(),
			started_ms: null,
			ended_ms: null,
			result: null,
			ending: null,
			log: [],
			events: new EventEmitter().setMaxListeners(0),
			timers: new Set(),
			mounted: [],
			doors: new Map(),
			machine: null,
			gpu_held: null,
		};
		this.all.set(sb.id, sb);
		this.say(sb, 'waiting to be scheduled', 3);
		if (this.world.settings.timeout_from === 'created') this.limit(sb);
		const wait = sb.quirks.schedule_ms !== undefined ? sb.quirks.schedule_ms : this.world.settings.boot.schedule_ms;
		if (sb.quirks.stuck !== 'QUEUED') this.later(sb, wait, () => ((sb.may_start = true), this.schedule()));
		for (const [name, status] of [['preempt_after_ms', 'TERMINATED'], ['evict_after_ms', 'MEMORY_MANAGER_EVICTION']])
			if (sb.quirks[name]) this.later(sb, sb.quirks[name], () => this.end(sb, status, { hard: true }));
		return sb;
	}

	later(sb, ms, run) {
		sb.timers.add(clock.after(ms, () => sb.result || run()));
	}

	limit(sb) {
		this.later(sb, sb.timeout_s * 1000, () => this.end(sb, 'TIMEOUT'));
	}

	change(sb, state) {
		sb.state = state;
		sb.events.emit('change');
	}

	say(sb, line, fd) {
		sb.log.push({ ms: clock.now(), data: `${line}\n`, fd });
		sb.events.emit('change');
	}

	// Resolves when it is so, or after ms of real time.
	until(sb, so, ms) {
		return new Promise((resolve) => {
			const done = () => {
				clearTimeout(timer);
				sb.events.off('change', look);
				resolve();
			};
			const look = () => so() && done();
			const timer = setTimeout(done, ms);
			sb.events.on('change', look);
			look();
		});
	}

	// ---- up ----

	// Whoever waits longest for a kind of GPU gets it first.
	schedule() {
		for (const sb of this.all.values()) {
			if (sb.state !== 'QUEUED' || !sb.may_start || sb.ending) continue;
			if (sb.gpu && !this.take_gpu(sb)) continue;
			sb.task = this.world.id('ta');
			sb.scheduled_ms = clock.now();
			this.change(sb, 'SCHEDULED');
			if (sb.quirks.stuck !== 'SCHEDULED') this.later(sb, this.world.settings.boot.start_ms, () => this.boot(sb));
		}
	}

	take_gpu(sb) {
		const kind = this.world.settings.gpus[sb.gpu.type];
		if (kind.free < sb.gpu.count) return false;
		kind.free -= sb.gpu.count;
		sb.gpu_held = kind;
		return true;
	}

	give_gpu(sb) {
		if (sb.gpu_held) sb.gpu_held.free += sb.gpu.count;
		sb.gpu_held = null;
	}

	async boot(sb) {
		const { dir, podbox, api_ports } = this.world;
		const home = path.join(dir, 'sandboxes', sb.id);
		if (sb.quirks.init_failure) return void this.end(sb, 'INIT_FAILURE', { exception: String(sb.quirks.init_failure) });
		try {
			sb.mounted = sb.volumes.map((v, i) => ({ ...v, ...this.world.volumes.mount(v.volume, path.join(home, `volume${i}`)) }));
			this.watch_sync(sb, path.join(home, 'sync'));
			for (const { port } of sb.ports) await this.open_door(sb, port);
		} catch (e) {
			return void this.end(sb, 'INIT_FAILURE', { exception: e.message });
		}
		if (sb.ending) return;
		const { files, remove } = this.furniture(sb);
		if (sb.image.made) this.world.account.put_made(sb.image);
		sb.machine = new Machine(
			podbox,
			{
				dir: path.join(home, 'box'),
				root: '/',
				hide: true,
				hostname: 'modal',
				disk_mb: this.world.settings.disk_mb,
				tcp: sb.ports.map(({ port }) => port).slice(0, 8),
				api: api_ports(),
				apart: true,
				mounts: [
					{ from: path.join(home, 'sync'), to: SYNC_DIR, how: 'rw' },
					...(sb.image.made ? [{ from: path.join(sb.image.made, 'burst'), to: MADE.slice(0, -1), how: 'ro' }] : []),
					...sb.mounted.map((m) => ({ from: path.join(m.dir, m.sub_path || ''), to: m.path, how: m.read_only ? 'ro' : 'rw' })),
				],
				files,
				remove,
			},
			{
				ready: () => sb.machine && sb.machine.start(this.argv(sb), this.environment(sb), true),
				started: () => this.running(sb),
				failed: (text) => this.end(sb, 'INIT_FAILURE', { exception: text }),
				exit: (code, signal) => this.exited(sb, code, signal),
				line: (text, fd) => this.say(sb, text, fd),
				gone: () => {},
			},
		);
	}

	// An image has an sshd only if its recipe installs one.
	furniture(sb) {
		const { recipe } = sb.image;
		const got = this.gpu_got(sb);
		const files = [...host_files(), ...sb.image.copies.filter((copy) => !sb.image.made || !copy.path.startsWith(MADE)), { path: '/usr/bin/sync', text: SYNC, mode: 0o755 }];
		if (/\/run\/sshd/.test(recipe)) files.push({ path: '/run/sshd/.made', text: '', mode: 0o644 });
		if (sb.gpu) {
			const count = sb.quirks.no_gpu ? 0 : sb.gpu.count;
			const text = fs.readFileSync(path.join(__dirname, '../common/nvidia_smi.sh'), 'utf8');
			files.push({ path: '/usr/bin/nvidia-smi', text: text.replace('@GPU@', `${count}|${got.name}|${got.memory_gb * 1024}`), mode: 0o755 });
		}
		const lacks = Object.keys(PACKAGES).filter((name) => !new RegExp(`(^|\\s)${name}(\\s|$)`, 'm').test(recipe));
		return { files, remove: [...HOST_KEYS, ...lacks.flatMap((name) => PACKAGES[name])] };
	}

	gpu_got(sb) {
		return sb.gpu && this.world.settings.gpus[sb.quirks.gpu_got || sb.gpu.type];
	}

	argv(sb) {
		const args = sb.args.length ? sb.args : sb.image.cmd.length ? sb.image.cmd : ['sleep', 'infinity'];
		return sb.workdir ? ['/bin/sh', '-c', 'mkdir -p "$0" && cd "$0" && exec "$@"', sb.workdir, ...args] : args;
	}

	environment(sb) {
		return { PATH, HOME: '/root', ...sb.image.env, ...sb.env, MODAL_TASK_ID: sb.task, MODAL_SANDBOX_ID: sb.id, MODAL_IS_REMOTE: '1' };
	}

	watch_sync(sb, dir) {
		fs.mkdirSync(dir, { recursive: true, mode: 0o777 });
		sb.sync_watch = fs.watch(dir, (event, name) => {
			const at = path.join(dir, String(name));
			if (!/^request-\w+\.go$/.test(String(name)) || !fs.existsSync(at)) return;
			const paths = fs.readFileSync(at, 'utf8').split('\n').filter(Boolean);
			const { fail_sync } = sb.quirks;
			if (!fail_sync) {
				this.commit_synced(sb, paths);
				fs.writeFileSync(at.replace(/go$/, 'done'), '');
			}
			fs.rmSync(at, { force: true });
		});
	}

	// At a sync: the volumes that hold these paths, all when there are none; those of version 1 know only the end.
	commit_synced(sb, paths) {
		const meant = (m) => !paths.length || paths.some((at) => at === m.path || at.startsWith(`${m.path}/`));
		for (const m of sb.mounted) if (!m.read_only && m.volume.version === 2 && meant(m)) this.world.volumes.commit(m);
	}

	commit(sb) {
		for (const m of sb.mounted) if (!m.read_only) this.world.volumes.commit(m);
	}

	running(sb) {
		if (sb.ending) return;
		sb.started_ms = clock.now();
		if (this.world.settings.timeout_from === 'running') this.limit(sb);
		if (sb.idle_s) this.watch_idle(sb);
		if (sb.probe) this.watch_ready(sb);
		this.change(sb, 'RUNNING');
		if (!sb.quirks.no_tunnel) this.later(sb, this.world.settings.boot.tunnel_ms, () => ((sb.tunnel_up = true), (sb.tunnel_ms = clock.now()), sb.events.emit('change')));
	}

	// Only open connections of a tunnel and running commands count as activity.
	watch_idle(sb) {
		let since = clock.now();
		const look = () => {
			if (this.world.router.running_in(sb) || [...sb.doors.values()].some((door) => door.conns.size)) since = clock.now();
			if (clock.now() - since >= sb.idle_s * 1000) this.end(sb, 'IDLE_TIMEOUT');
			else this.later(sb, 200, look);
		};
		this.later(sb, 200, look);
	}

	exited(sb, code, signal) {
		const exitcode = signal ? 128 + signal : code;
		this.end(sb, exitcode ? 'FAILURE' : 'SUCCESS', { exitcode, exited: true });
	}

	// ---- the tunnel ----

	async open_door(sb, port) {
		let dropped = 0;
		let conns = 0;
		const door = new Door(() => {
			const q = sb.quirks;
			const deaf = conns++ < (q.reset_conns || 0) || (q.deaf_ms && clock.now() < sb.started_ms + q.deaf_ms);
			return {
				target: sb.machine && sb.machine.ports[port],
				door: deaf ? 'reset' : q.door,
				delay_ms: this.world.settings.rtt_ms,
				drop_after_bytes: dropped < (q.drop_times || 1) ? q.drop_after_bytes : 0,
				used: () => dropped++ < (q.drop_times || 1),
			};
		}, this.decoy);
		sb.doors.set(port, door);
		await door.listen();
	}

	tunnels(sb) {
		return sb.ports
			.filter(({ port }) => sb.doors.has(port))
			.map(({ port, raw }) => ({
				host: `${sb.id.slice(3).toLowerCase()}-${port}.r5.modal.host`,
				port: 443,
				...(raw && !sb.quirks.tls_only ? { unencryptedHost: '127.0.0.1', unencryptedPort: sb.doors.get(port).port } : {}),
				containerPort: port,
			}));
	}

	// ---- ready ----

	watch_ready(sb) {
		const { tcpPort, execCommand, intervalMs } = sb.probe;
		const again = () => this.later(sb, Math.max(intervalMs, 20), look);
		const good = () => {
			sb.ready_ms = clock.now();
			sb.events.emit('change');
		};
		const look = () => {
			if (!sb.machine || !sb.machine.pid) return again();
			if (tcpPort) return listens(sb.machine.pid, tcpPort) ? good() : again();
			const probe = new Exec(sb, execCommand.argv, { env: this.environment(sb), workdir: sb.workdir });
			return probe.until(() => probe.exit, 10000, probe.child).then(() => (probe.exit && probe.exit.code === 0 ? good() : again()));
		};
		look();
	}

	// ---- down ----

	end(sb, status, { exitcode = 0, exception = '', hard = false, exited = false } = {}) {
		sb.ending_ms = sb.ending_ms || clock.now();
		if (!sb.ending) sb.ending = this.wind_down(sb, status, exitcode, exception, hard, exited);
		return sb.ending;
	}

	async wind_down(sb, status, exitcode, exception, hard, exited) {
		const { machine } = sb;
		const { settings } = this.world;
		if (machine && !exited) {
			if (!hard) {
				machine.signal(15);
				await new Promise((resolve) => setTimeout(resolve, settings.stop_grace_ms));
			}
			await new Promise((resolve) => setTimeout(resolve, sb.quirks.term_ms || 0));
		}
		if (machine) await machine.destroy();
		if (sb.sync_watch) sb.sync_watch.close();
		if (settings.commit_at_end && !sb.quirks.lose_unsynced && !hard) this.commit(sb);
		for (const door of sb.doors.values()) door.close();
		for (const timer of sb.timers) clock.cancel(timer);
		sb.machine = null;
		sb.doors.clear();
		const ended_ms = clock.now(); // what is tidied up here bills nobody
		fs.rmSync(path.join(this.world.dir, 'sandboxes', sb.id), { recursive: true, force: true });
		this.give_gpu(sb);
		sb.ended_ms = ended_ms;
		sb.result = { status: RESULT[status], exitcode, exception };
		this.change(sb, 'ENDED');
		this.schedule();
	}

	async end_all() {
		await Promise.all([...this.all.values()].map((sb) => (sb.result ? undefined : this.end(sb, 'TERMINATED', { hard: true }))));
	}

	// ---- money ----

	shift(sb, from_s, to_s) {
		for (const key of ['created_ms', 'scheduled_ms', 'started_ms', 'ready_ms']) if (sb[key]) sb[key] += from_s * 1000;
		if (sb.ended_ms) sb.ended_ms += to_s * 1000;
	}

	// What was used counts where it is more than what was asked for; what would use more than it may is killed.
	memory_gib(sb) {
		return Math.max(sb.memory_gib, Math.min(sb.quirks.used_gib || 0, sb.memory_max_gib));
	}

	usage(sb) {
		const ms = sb.started_ms === null ? 0 : (sb.ended_ms || clock.now()) - sb.started_ms;
		const ns = (count) => Math.round(ms * count * 1e6);
		const gpu = sb.gpu ? { gpuNanosecs: ns(sb.gpu.count), gpuType: sb.quirks.gpu_got || sb.gpu.type } : { gpuNanosecs: 0 };
		return { cpuCoreNanosecs: ns(sb.cpu), memGibNanosecs: ns(this.memory_gib(sb)), ...gpu };
	}

	// Dollars of each resource between two moments.
	cost(sb, from, to) {
		if (sb.started_ms === null) return {};
		const hours = Math.max(0, Math.min(to, sb.ended_ms || clock.now()) - Math.max(from, sb.started_ms)) / 3600e3;
		const { rates } = this.world.settings;
		const out = { CPU: hours * sb.cpu * rates.CPU, Memory: hours * this.memory_gib(sb) * rates.Memory };
		if (sb.gpu) out[`GPU ${sb.gpu.type}`] = hours * sb.gpu.count * this.world.settings.gpus[sb.gpu.type].usd_per_s * 3600;
		return out;
	}
}

module.exports = { Sandboxes };
