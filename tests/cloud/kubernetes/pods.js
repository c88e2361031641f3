'use strict';
// pods.js - the pods of the stand-in: objects as an API server shows them, and under each that has a node a podbox container.

const fs = require('fs');
const path = require('path');
const { spawn } = require('child_process');
const clock = require('../common/clock');
const { Machine } = require('../common/machine');
const { HOST_KEYS, host_files } = require('../common/host_root');

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

// What a kubelet makes of a command or a value: $(NAME) is replaced where NAME is known, $$ becomes $.
function expanded(text, env) {
	return text.replace(/\$\$|\$\(([A-Za-z_][\w.-]*)\)/g, (all, name) => (all === '$$' ? '$' : name in env ? env[name] : all));
}

// What a pod wants of its node's devices: which, and how many.
function wish_of(pod) {
	const wishes = Object.entries((pod.object.spec.containers[0].resources || {}).limits || {}).filter(([name]) => name.startsWith('nvidia.com/'));
	return wishes.length ? [wishes[0][0], Number(wishes[0][1])] : ['nvidia.com/gpu', 0];
}

class Pods {
	constructor(world) {
		this.world = world;
		this.all = new Map(); // by name; those that are gone are in `gone`
		this.gone = [];
	}

	create(object, quirks) {
		const pod = {
			object: {
				...object,
				metadata: { ...object.metadata, namespace: 'default', uid: this.world.random_id(12), resourceVersion: '1', creationTimestamp: this.world.stamp(clock.now()) },
				status: { phase: 'Pending', qosClass: 'BestEffort' },
			},
			quirks,
			machine: null,
			pid: 0,
			log: [],
			execs: new Set(),
			streams: new Set(), // connections of its execs
			created_ms: clock.now(),
			scheduled_ms: 0,
			ended_ms: 0,
		};
		this.all.set(object.metadata.name, pod);
		if (this.world.kueue && (object.metadata.labels || {})['kueue.x-k8s.io/queue-name']) this.take_in(pod, this.world.kueue);
		clock.after(quirks.queue_ms || 0, () => this.schedule(pod));
		return pod;
	}

	// What Kueue's webhook adds to a pod (its page "Run Plain Pods"), until it admits the pod.
	take_in(pod, { admit_after_ms }) {
		const { metadata, spec } = pod.object;
		metadata.labels = { ...metadata.labels, 'kueue.x-k8s.io/managed': 'true' };
		metadata.finalizers = ['kueue.x-k8s.io/managed'];
		spec.schedulingGates = [{ name: 'kueue.x-k8s.io/admission' }];
		if (admit_after_ms === undefined) return;
		clock.after(admit_after_ms, () => {
			delete spec.schedulingGates;
			this.schedule(pod);
		});
	}

	say(pod, type, status, reason, message) {
		const list = (pod.object.status.conditions || []).filter((c) => c.type !== type);
		const one = { type, status, lastTransitionTime: this.world.stamp(clock.now()), ...(reason ? { reason } : {}), ...(message ? { message } : {}) };
		pod.object.status.conditions = [...list, one];
	}

	// ---- a node is chosen ----

	schedule(pod) {
		if (!this.all.has(pod.object.metadata.name) || pod.scheduled_ms) return;
		if (pod.object.spec.schedulingGates) return this.say(pod, 'PodScheduled', 'False', 'SchedulingGated', 'Scheduling is blocked due to non-empty scheduling gates');
		const why = pod.quirks.unschedulable || this.misfit(pod);
		if (why) {
			this.say(pod, 'PodScheduled', 'False', 'Unschedulable', why);
			return void clock.after(300, () => this.schedule(pod));
		}
		pod.scheduled_ms = clock.now();
		pod.object.spec.nodeName = pod.node;
		pod.object.status.startTime = this.world.stamp(clock.now());
		this.say(pod, 'PodScheduled', 'True');
		const seconds = pod.object.spec.activeDeadlineSeconds;
		if (seconds) clock.after(seconds * 1000, () => this.end(pod, 'SIGTERM', { phase: 'Failed', reason: 'DeadlineExceeded', message: 'Pod was active on the node longer than the specified deadline' }));
		this.wait(pod, 'ContainerCreating');
		clock.after(pod.quirks.pull_ms || 0, () => this.boot(pod));
	}

	// What a scheduler says if no node has what the pod asks for; sets pod.node.
	misfit(pod) {
		const { spec } = pod.object;
		const [resource, wanted] = wish_of(pod);
		const terms = (((spec.affinity || {}).nodeAffinity || {}).requiredDuringSchedulingIgnoredDuringExecution || {}).nodeSelectorTerms;
		const labelled = this.world.nodes.filter(({ metadata: { labels } }) =>
			Object.entries(spec.nodeSelector || {}).every(([key, value]) => labels[key] === value) &&
			(!terms || terms.some((term) => term.matchExpressions.every((e) => (e.operator === 'In' ? e.values.includes(labels[e.key]) : !(e.key in labels))))));
		const fits = labelled.find((node) => !node.lost && Number(node.status.allocatable[resource] || 0) - this.used(node, resource) >= wanted);
		const all = this.world.nodes.length;
		if (!labelled.length) return `0/${all} nodes are available: ${all} node(s) didn't match Pod's node affinity/selector.`;
		if (!fits) return `0/${all} nodes are available: ${labelled.length} Insufficient ${resource}.`;
		pod.node = fits.metadata.name;
		return '';
	}

	used(node, resource) {
		let sum = 0;
		for (const pod of this.all.values())
			if (pod.scheduled_ms && !pod.ended_ms && pod.node === node.metadata.name && wish_of(pod)[0] === resource) sum += wish_of(pod)[1];
		return sum;
	}

	// ---- its container ----

	is_now(pod, ready, state) {
		const { image } = pod.object.spec.containers[0];
		pod.object.status.containerStatuses = [{ name: 'main', image, imageID: '', restartCount: 0, ready, state }];
	}

	wait(pod, reason, message) {
		this.is_now(pod, false, { waiting: { reason, ...(message ? { message } : {}) } });
	}

	boot(pod) {
		if (pod.ended_ms || !this.all.has(pod.object.metadata.name)) return;
		const image = pod.object.spec.containers[0].image;
		if (pod.quirks.waiting) return this.wait(pod, ...pod.quirks.waiting);
		if (/^nowhere\//.test(image)) return this.wait(pod, 'ErrImagePull', `failed to pull and unpack image "${image}": failed to resolve reference "${image}": ${image}: not found`);
		pod.machine = new Machine(
			this.world.podbox,
			{
				dir: path.join(this.world.dir, 'pods', pod.object.metadata.uid),
				root: '/',
				hide: true,
				hostname: pod.object.metadata.name,
				disk_mb: 2048,
				tcp: [],
				api: [],
				mounts: this.mounts(pod),
				files: [...host_files(), ...this.smi(pod)],
				remove: HOST_KEYS,
			},
			{
				ready: () => {
					const env = this.environment(pod);
					pod.machine.start(pod.object.spec.containers[0].command.map((word) => expanded(word, env)), env, true);
				},
				started: (pid) => this.running(pod, pid),
				failed: (text) => pod.log.push(`podbox: ${text}`),
				exit: (code, signal) => this.exited(pod, code, signal),
				line: (text) => pod.log.push(text),
				gone: () => {},
			},
		);
	}

	mounts(pod) {
		const claim = (pod.object.spec.volumes || []).find((v) => v.persistentVolumeClaim);
		const mount = claim && pod.object.spec.containers[0].volumeMounts.find((m) => m.name === claim.name);
		return mount ? [{ from: this.world.claim_folder(claim.persistentVolumeClaim.claimName), to: mount.mountPath, how: 'rw' }] : [];
	}

	// In a pod with a slice nvidia-smi names the whole card.
	smi(pod) {
		const { labels } = this.world.nodes.find((n) => n.metadata.name === pod.node).metadata;
		const [, count] = wish_of(pod);
		const name = labels['nvidia.com/gpu.product'] || labels['cloud.google.com/gke-accelerator'] || '';
		if (!count) return [];
		const text = fs
			.readFileSync(path.join(__dirname, '../common/nvidia_smi.sh'), 'utf8')
			.replace('@GPU@', `${count}|${name.replace(/-MIG-.*/, '').replace(/-/g, ' ')}|${labels['nvidia.com/gpu.memory'] || 46068}`);
		return [{ path: '/usr/bin/nvidia-smi', text, mode: 0o755 }];
	}

	environment(pod) {
		const own = {};
		for (const { name, value } of pod.object.spec.containers[0].env || []) own[name] = expanded(value, own);
		return { PATH, HOME: '/root', HOSTNAME: pod.object.metadata.name, KUBERNETES_SERVICE_HOST: '10.0.0.1', ...own };
	}

	running(pod, pid) {
		pod.pid = pid;
		pod.object.status.phase = 'Running';
		this.say(pod, 'Ready', 'True');
		this.is_now(pod, true, { running: { startedAt: this.world.stamp(clock.now()) } });
		if (pod.quirks.ends_after_ms) clock.after(pod.quirks.ends_after_ms, () => this.disrupt(pod, pod.quirks.disrupted || {}));
	}

	exited(pod, code, signal) {
		pod.pid = 0;
		this.over(pod, { code: signal ? 128 + signal : code });
	}

	// Its container has ended, or never was.
	over(pod, { code = 137, ...how }) {
		if (pod.ended_ms) return;
		const { phase, reason, message, why } = { ...how, ...pod.verdict };
		pod.ended_ms = clock.now();
		if (this.is_lost(pod)) return void (pod.machine && pod.machine.destroy()); // and nobody says so
		pod.object.status.phase = phase || (code === 0 ? 'Succeeded' : 'Failed');
		if (reason) Object.assign(pod.object.status, { reason, message });
		if (pod.scheduled_ms)
			this.is_now(pod, false, { terminated: { exitCode: code, reason: why || (code === 0 ? 'Completed' : 'Error'), finishedAt: this.world.stamp(clock.now()) } });
		if (pod.machine) pod.machine.destroy();
		if (pod.object.metadata.deletionTimestamp) this.remove(pod);
	}

	// ---- its end ----

	// SIGTERM now, SIGKILL after its grace. verdict: what its status says then.
	end(pod, signal, verdict, grace_s) {
		if (pod.ended_ms || this.is_lost(pod)) return;
		pod.verdict = { ...pod.verdict, ...verdict };
		if (!pod.pid) return void this.over(pod, {});
		pod.machine.signal(signal === 'SIGKILL' ? 9 : 15);
		clock.after((grace_s || pod.object.spec.terminationGracePeriodSeconds || 30) * 1000, () => pod.pid && pod.machine.signal(9));
	}

	// {"reason":"PreemptionByScheduler"} as the cluster takes it back; {"why":"OOMKilled","phase":"Succeeded"}; hard: without SIGTERM
	disrupt(pod, { reason, hard, stays, ...verdict }) {
		if (reason) this.say(pod, 'DisruptionTarget', 'True', reason, `${reason}: taken back`);
		this.end(pod, hard ? 'SIGKILL' : 'SIGTERM', verdict);
		if (reason && !stays) this.delete(pod, pod.object.spec.terminationGracePeriodSeconds || 30);
	}

	delete(pod, grace_s) {
		const { metadata } = pod.object;
		pod.deleted_ms = pod.deleted_ms || clock.now();
		if (!(metadata.deletionGracePeriodSeconds <= grace_s)) { // the shortest one counts, from the first request on
			metadata.deletionGracePeriodSeconds = grace_s;
			metadata.deletionTimestamp = this.world.stamp(pod.deleted_ms + grace_s * 1000);
		}
		if (grace_s === 0) return void this.remove(pod); // its container is forgotten
		if (this.is_lost(pod)) return; // nobody confirms it
		if (pod.ended_ms || !pod.pid) {
			this.over(pod, {});
			return void this.remove(pod);
		}
		this.end(pod, 'SIGTERM', {}, grace_s);
	}

	remove(pod) {
		if ((pod.object.metadata.finalizers || []).length) {
			clock.after(500, () => { // whose it is sees that it is over
				delete pod.object.metadata.finalizers;
				this.remove(pod);
			});
			return;
		}
		if (!this.all.delete(pod.object.metadata.name)) return;
		this.gone.push(pod);
	}

	// ---- a node that does not answer ----

	is_lost(pod) {
		const node = this.world.nodes.find((n) => n.metadata.name === pod.node);
		return Boolean(pod.quirks.node_lost || (node && node.lost));
	}

	// Its kubelet dies, its containers run on. The cluster knows after a while, and then evicts its pods, which nobody carries out.
	lose_node(name, { unknown_after_ms = 0, evict_after_ms = 0 }) {
		const node = this.world.nodes.find((n) => n.metadata.name === name);
		node.lost = true;
		const here = () => [...this.all.values()].filter((pod) => pod.node === name && !pod.ended_ms);
		for (const pod of here()) for (const socket of pod.streams) socket.destroy();
		clock.after(unknown_after_ms, () => {
			node.status.conditions = [{ type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown', message: 'Kubelet stopped posting node status.' }];
			node.spec.taints = [{ key: 'node.kubernetes.io/unreachable', effect: 'NoSchedule' }, { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' }];
			for (const pod of here()) this.say(pod, 'Ready', 'False');
			if (evict_after_ms) clock.after(evict_after_ms, () => {
				for (const pod of here()) {
					this.say(pod, 'DisruptionTarget', 'True', 'DeletionByTaintManager', 'Taint manager: deleting due to NoExecute taint');
					this.delete(pod, pod.object.spec.terminationGracePeriodSeconds);
				}
			});
		});
	}

	exec(pod, command) {
		const child = spawn('nsenter', ['-t', String(pod.pid), '-m', '-u', '-i', '-n', '-p', '-r', '-w', '--', ...command],
			{ stdio: 'pipe', env: this.environment(pod) });
		pod.execs.add(child);
		child.on('close', () => pod.execs.delete(child));
		return child;
	}

	async end_all() {
		await Promise.all([...this.all.values(), ...this.gone].map((pod) => {
			for (const child of pod.execs) child.kill('SIGKILL');
			return pod.machine && pod.machine.destroy();
		}));
	}
}

module.exports = { Pods };
