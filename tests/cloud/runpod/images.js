'use strict';
// images.js - what an image's name stands for here:
//   runpod/...                  "official": this machine's own root (shared, under an overlay) with /start.sh as its command
//   debian:..., ubuntu:...      "minimal": a debootstrap root without curl, certificates or sshd, built and cached in
//                               RP_IMAGE_CACHE by minimal_root.sh; its apt finds them in a mirror of their packages
//   host/...                    this machine's own root, command "bash"
//   nowhere/...                 "nowhere": no registry has it; its pods stay STARTING, and the system log says so again and again
//   entered/...                 the same, with an entrypoint of its own that never comes to the command
// A test may say more: settings.images = { "regular expression": "official|minimal|host|entered|missing|unpullable|nowhere" }.

const fs = require('fs');
const path = require('path');
const { HOST_KEYS, host_files } = require('../common/host_root');

const DEFAULTS = [
	['runpod/.*', 'official'],
	['(docker.io/(library/)?)?(debian|ubuntu)(:.*)?', 'minimal'],
	['host/.*', 'host'],
	['entered/.*', 'entered'],
	['nowhere/.*', 'nowhere'],
];

function kind_of(name, settings) {
	for (const [pattern, kind] of [...Object.entries(settings.images), ...DEFAULTS])
		if (new RegExp(`^(?:${pattern})$`).test(name)) return kind;
	return 'missing';
}

function minimal(cache) {
	const root = cache && path.join(cache, 'root');
	const there = root && fs.existsSync(path.join(root, '.complete'));
	return {
		entrypoint: [],
		cmd: ['bash'],
		env: {},
		root: () => (there ? root : null),
		why: 'the minimal image is not built (RP_IMAGE_CACHE, tests/cloud/minimal_root.sh)',
		files: () => [
			{ path: '/etc/apt/sources.list', text: 'deb [trusted=yes] file:/srv/mirror ./\n', mode: 0o644 },
			{ path: '/etc/hosts', text: '127.0.0.1 localhost\n', mode: 0o644 },
		],
		remove: () => [],
		mounts: () => [{ from: path.join(cache, 'mirror'), to: '/srv/mirror', how: 'ro' }],
	};
}

function make_image(name, settings, cache) {
	const kind = kind_of(name, settings);
	const base = { kind, entrypoint: [], env: {}, files: host_files, remove: () => HOST_KEYS, mounts: () => [], root: () => '/' };
	if (kind === 'minimal') return { ...minimal(cache), kind };
	if (kind === 'entered') return { ...base, entrypoint: ['/bin/sh', '-c', 'echo serving; sleep 1', 'serve'], cmd: ['--model', 'm'] };
	if (kind === 'host') return { ...base, cmd: ['bash'] };
	if (kind === 'nowhere') return { ...base, cmd: [], root: () => null, again_ms: 3000, why: `manifest for ${name} not found: manifest unknown: manifest unknown` };
	if (kind === 'unpullable') return { ...base, cmd: [], root: () => null, why: 'toomanyrequests: You have reached your pull rate limit' };
	return {
		...base,
		cmd: ['/start.sh'],
		env: { SHELL: '/bin/bash', PYTHONUNBUFFERED: 'True', DEBIAN_FRONTEND: 'noninteractive', PYTORCH_VERSION: '2.8.0' },
		files: () => [
			...host_files(),
			{ path: '/start.sh', text: fs.readFileSync(path.join(__dirname, 'start.sh'), 'utf8'), mode: 0o755 },
		],
	};
}

module.exports = { make_image, kind_of };
