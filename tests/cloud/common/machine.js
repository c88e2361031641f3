'use strict';
// machine.js - the host under one pod: a podbox process with its container, and the public ports in front of it, which
// misbehave when told to.

const { spawn } = require('child_process');
const fs = require('fs');
const net = require('net');
const path = require('path');
const extremes = require('./extremes');

const OUTPUT_LINE_MAX = 16384;

// conf: what podbox reads first. on: { ready, started(pid), failed(text), exit(code, signal), line(text, 1 or 2), gone }.
class Machine {
	constructor(program, conf, on) {
		this.on = on;
		this.ports = {};
		this.pid = 0;
		fs.mkdirSync(conf.dir, { recursive: true });
		this.box = spawn(program, [conf.dir], { stdio: ['pipe', 'pipe', 'pipe', 'pipe', 'pipe'] });
		this.box.stdin.on('error', () => {});
		this.box.stdin.write(JSON.stringify(conf) + '\n');
		this.ended = new Promise((resolve) => this.box.on('close', resolve));
		this.ended.then(() => on.gone());
		this.box.on('error', (e) => on.failed(String(e)));
		by_line(this.box.stdout, (line) => this.hear(JSON.parse(line)));
		by_line(this.box.stderr, (line) => on.failed(line));
		by_line(this.box.stdio[3], (line) => on.line(line, 1));
		by_line(this.box.stdio[4], (line) => on.line(line, 2));
	}

	hear(event) {
		if (event.event === 'ready') {
			this.ports = event.ports;
			this.on.ready();
		} else if (event.event === 'started') {
			this.pid = event.pid;
			this.on.started(event.pid);
		} else if (event.event === 'failed') {
			this.on.failed(event.error);
		} else if (event.event === 'exit') {
			this.pid = 0;
			this.on.exit(event.code, event.signal);
		}
	}

	order(op) {
		if (this.box.exitCode === null) this.box.stdin.write(JSON.stringify(op) + '\n');
	}

	start(argv, env, fresh) {
		this.order({ op: 'start', argv, env, fresh });
	}

	signal(signal) {
		this.order({ op: 'signal', signal });
	}

	// Everything of it is gone once this resolves.
	destroy() {
		this.box.stdin.end();
		const kill = setTimeout(() => this.box.kill('SIGKILL'), 3000);
		return this.ended.then(() => clearTimeout(kill));
	}
}

function by_line(stream, take) {
	let rest = '';
	stream.setEncoding('utf8');
	stream.on('error', () => {});
	stream.on('data', (part) => {
		rest += part;
		let end;
		while ((end = rest.indexOf('\n')) >= 0) {
			take(rest.slice(0, end));
			rest = rest.slice(end + 1);
		}
		if (rest.length > OUTPUT_LINE_MAX) {
			take(rest);
			rest = '';
		}
	});
	stream.on('end', () => rest && take(rest));
}

// A public port in front of a pod's port. look() gives, at each connection: { target, door, delay_ms, drop_after_bytes }.
// door: undefined (through), "reset", "silent" (accepts, says nothing), "wrong-key" (another sshd answers),
// or one of extremes.js: "ssh_packet_4g".
class Door {
	constructor(look, decoy) {
		this.look = look;
		this.decoy = decoy;
		this.conns = new Set();
		this.bytes = 0;
		this.server = net.createServer((client) => this.serve(client));
	}

	listen() {
		return new Promise((resolve) =>
			this.server.listen(0, '127.0.0.1', () => resolve((this.port = this.server.address().port))),
		);
	}

	serve(client) {
		const { target, door, delay_ms, drop_after_bytes, used } = this.look();
		this.conns.add(client);
		client.setNoDelay(true);
		client.on('error', () => {});
		client.on('close', () => this.conns.delete(client));
		if (door === 'silent') return;
		if (door === 'wrong-key') return this.decoy(client);
		if (/^ssh_/.test(door || '')) return extremes.ssh(door, client);
		if (door === 'reset' || !target) return reset(client);
		const pod = net.connect({ host: '127.0.0.1', port: target });
		pod.setNoDelay(true);
		let carried = 0;
		const count = (part) => {
			carried += part.length;
			this.bytes += part.length;
			if (drop_after_bytes && carried > drop_after_bytes && used()) {
				reset(client);
				pod.destroy();
			}
		};
		client.on('data', count);
		pod.on('data', count);
		carry(client, pod, delay_ms / 2);
		carry(pod, client, delay_ms / 2);
		pod.on('error', () => reset(client));
		client.on('close', () => pod.destroy());
		pod.on('close', () => client.end());
	}

	drop() {
		for (const client of this.conns) reset(client);
	}

	close() {
		this.drop();
		this.server.close();
	}
}

function reset(socket) {
	if (socket.destroyed) return;
	if (socket.resetAndDestroy) socket.resetAndDestroy();
	else socket.destroy();
}

// One direction, with a delay like a long wire's: the order is kept, the wire holds at most a few MB.
function carry(from, to, delay_ms) {
	if (!delay_ms) return void from.pipe(to);
	let inside = 0;
	from.on('data', (part) => {
		inside += part.length;
		if (inside > 4 << 20) from.pause();
		setTimeout(() => {
			inside -= part.length;
			if (!to.destroyed) to.write(part);
			from.resume();
		}, delay_ms);
	});
	from.on('end', () => setTimeout(() => to.end(), delay_ms));
}

// An sshd with a host key of its own, for one connection at a time: what somebody in the middle would be.
function make_decoy(dir) {
	const key = path.join(dir, 'decoy_key');
	const conf = path.join(dir, 'decoy_conf');
	return (client) => {
		const run = () => {
			const sshd = spawn('/usr/sbin/sshd', ['-i', '-f', conf, '-h', key], { stdio: ['pipe', 'pipe', 'ignore'] });
			sshd.on('error', () => client.destroy());
			sshd.stdin.on('error', () => {});
			client.pipe(sshd.stdin);
			sshd.stdout.pipe(client);
			client.on('close', () => sshd.kill());
		};
		if (fs.existsSync(key)) return run();
		fs.mkdirSync('/run/sshd', { recursive: true, mode: 0o755 });
		fs.writeFileSync(conf, 'UsePAM no\nPidFile none\n');
		spawn('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key], { stdio: 'ignore' }).on('close', run);
	};
}

module.exports = { Machine, Door, make_decoy };
