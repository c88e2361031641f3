'use strict';
// light.js - machines for very many pods at once: one process (light.py) has an SSH server and an agent's half for each. The
// same face as machine.js, as far as a pod that nothing happens to needs it.

const { spawn } = require('child_process');
const path = require('path');

class Light {
	constructor() {
		this.machines = new Map();
		this.waiting = []; // who asked for statistics
		this.process = spawn('/usr/bin/python3', ['-W', 'ignore', path.join(__dirname, 'light.py')], { stdio: ['pipe', 'pipe', 'inherit'] });
		this.process.stdin.on('error', () => {});
		let rest = '';
		this.process.stdout.setEncoding('utf8').on('data', (part) => {
			const lines = (rest + part).split('\n');
			rest = lines.pop();
			lines.forEach((line) => this.hear(JSON.parse(line)));
		});
	}

	hear(event) {
		if (event.event === 'stats') return this.waiting.shift()(event);
		const machine = this.machines.get(event.id);
		if (!machine || machine.over) return undefined;
		machine.ports = { 22: event.port };
		machine.pid = this.process.pid;
		return machine.on.started(machine.pid);
	}

	order(line) {
		this.process.stdin.write(JSON.stringify(line) + '\n');
	}

	stats() {
		this.order({ op: 'stats' });
		return new Promise((resolve) => this.waiting.push(resolve));
	}

	end() {
		this.process.stdin.end();
	}
}

class LightMachine {
	constructor(light, id, on) {
		Object.assign(this, { light, id, on, ports: {}, pid: 0, over: false });
		light.machines.set(id, this);
		setImmediate(() => on.ready());
	}

	start(argv, env) {
		this.light.order({ op: 'start', id: this.id, env });
	}

	signal() {}

	async destroy() {
		this.over = true;
		this.pid = 0;
		this.light.order({ op: 'end', id: this.id });
	}
}

module.exports = { Light, LightMachine };
