'use strict';
// router.js - the second service, which runs commands in a sandbox: the same namespaces as its first process, real pipes.

const { spawn } = require('child_process');
const { EventEmitter } = require('events');
const os = require('os');
const clock = require('../common/clock');
const { Status } = require('./status');

const [PIPE, TO_STDOUT] = [1, 2];
const STDERR = 1;
const WAIT_MS = 60000;

class Exec {
	constructor(sb, argv, { env, workdir, timeout_s, stdout, stderr }) {
		const words = Object.entries(env).map(([name, value]) => `${name}=${value}`);
		const wall = ['--target', String(sb.machine.pid), '--mount', '--uts', '--ipc', '--net', '--pid'];
		this.out = [[], []];
		this.exit = null;
		this.stdin_bytes = 0;
		this.events = new EventEmitter().setMaxListeners(0);
		this.child = spawn('nsenter', [...wall, '/usr/bin/env', '-i', '-C', workdir || '/', ...words, ...argv], { stdio: 'pipe' });
		this.child.stdin.on('error', () => {});
		this.keep(this.child.stdout, stdout === PIPE ? 0 : null);
		this.keep(this.child.stderr, stderr === TO_STDOUT ? 0 : stderr === PIPE ? 1 : null);
		this.child.on('error', (e) => this.over(127, null, e));
		this.child.on('close', (code, signal) => this.over(code, signal));
		if (timeout_s) this.timer = clock.after(timeout_s * 1000, () => this.child.kill('SIGKILL'));
	}

	keep(stream, index) {
		stream.on('data', (part) => {
			if (index !== null) this.out[index].push(part);
			this.events.emit('change');
		});
	}

	over(code, signal) {
		if (this.exit) return;
		clock.cancel(this.timer);
		this.exit = signal ? { signal: os.constants.signals[signal] } : { code };
		this.events.emit('change');
	}

	bytes(index) {
		return Buffer.concat(this.out[index]);
	}

	until(so, ms, stream) {
		return new Promise((resolve) => {
			const done = () => {
				clearTimeout(timer);
				this.events.off('change', look);
				stream.off('close', done);
				resolve();
			};
			const look = () => so() && done();
			const timer = setTimeout(done, ms);
			this.events.on('change', look);
			stream.on('close', done);
			look();
		});
	}
}

class Router {
	constructor(world) {
		this.world = world;
		this.grants = new Map(); // JWT -> sandbox
		this.execs = new Map();
	}

	grant(sb) {
		const token = this.world.account.new_token(this.world.settings.router_token_s);
		this.grants.set(token, sb);
		return token;
	}

	// Whose commands this call may run.
	sandbox_of(headers, task) {
		const token = (/^Bearer (\S+)$/.exec(headers.authorization || '') || [])[1];
		const sb = this.grants.get(token);
		if (!sb || !this.world.account.token_is_good(token)) throw new Status('UNAUTHENTICATED', 'Invalid or expired token');
		if (sb.task !== task) throw new Status('PERMISSION_DENIED', `not the token of task ${task}`);
		if (!sb.machine || sb.state !== 'RUNNING') throw new Status('NOT_FOUND', `Task ${task} is not running`);
		return sb;
	}

	exec_of({ headers, message }) {
		this.sandbox_of(headers, message.taskId);
		const exec = this.execs.get(`${message.taskId} ${message.execId}`);
		if (!exec) throw new Status('NOT_FOUND', `Exec ${message.execId} not found`);
		return exec;
	}

	running_in(sb) {
		return [...this.execs].some(([key, exec]) => key.startsWith(`${sb.task} `) && !exec.exit);
	}

	start({ headers, message }) {
		const sb = this.sandbox_of(headers, message.taskId);
		const key = `${message.taskId} ${message.execId}`;
		if (!message.commandArgs.length) throw new Status('INVALID_ARGUMENT', 'command_args is empty');
		if (this.execs.has(key)) return {};
		const secrets = message.secretIds.map((id) => this.world.account.secret(id).env);
		const env = Object.assign(this.world.sandboxes.environment(sb), ...secrets, message.env);
		const how = { env, workdir: message.workdir || sb.workdir, timeout_s: message.timeoutSecs, stdout: message.stdoutConfig, stderr: message.stderrConfig };
		this.execs.set(key, new Exec(sb, message.commandArgs, how));
		return {};
	}

	async *read(c) {
		const exec = this.exec_of(c);
		const index = c.message.fileDescriptor === STDERR ? 1 : 0;
		for (let at = c.message.offset; !c.reply.over; ) {
			const data = exec.bytes(index).subarray(at);
			if (data.length) yield { data };
			else if (exec.exit) return;
			else await exec.until(() => exec.exit || exec.bytes(index).length > at, WAIT_MS, c.reply.stream);
			at += data.length;
		}
	}

	async wait(c) {
		const exec = this.exec_of(c);
		await exec.until(() => exec.exit, WAIT_MS, c.reply.stream);
		if (!exec.exit) throw new Status('DEADLINE_EXCEEDED', 'still running');
		return exec.exit;
	}

	write(c) {
		const exec = this.exec_of(c);
		const { offset, data, eof } = c.message;
		if (offset > exec.stdin_bytes) throw new Status('INVALID_ARGUMENT', `offset ${offset} is past ${exec.stdin_bytes}`);
		const fresh = data.subarray(exec.stdin_bytes - offset);
		exec.stdin_bytes += fresh.length;
		if (fresh.length) exec.child.stdin.write(fresh);
		if (eof) exec.child.stdin.end();
		return {};
	}

	async ready({ headers, message, world, reply }) {
		const sb = this.sandbox_of(headers, message.taskId);
		if (!sb.probe) throw new Status('FAILED_PRECONDITION', 'Sandbox has no readiness probe');
		await world.sandboxes.until(sb, () => sb.ready_ms || sb.result || reply.over, message.timeout * 1000);
		if (!sb.ready_ms) throw new Status('DEADLINE_EXCEEDED', 'not ready yet');
		return { readyAt: sb.ready_ms / 1000 };
	}

	calls() {
		return {
			TaskExecStart: (c) => this.start(c),
			TaskExecStdioRead: (c) => this.read(c),
			TaskExecWait: (c) => this.wait(c),
			TaskExecPoll: (c) => this.exec_of(c).exit || {},
			TaskExecStdinWrite: (c) => this.write(c),
			SandboxWaitUntilReady: (c) => this.ready(c),
		};
	}
}

module.exports = { Router, Exec };
