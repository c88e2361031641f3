'use strict';
// account.js - what a workspace holds beside volumes and sandboxes: tokens, environments, apps, secrets, images.

const { spawnSync } = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const clock = require('../common/clock');
const { Status, RESULT } = require('./status');

const HOW = { LOOK_UP: 0, IF_MISSING: 1, FAIL_IF_EXISTS: 2, OVERWRITE: 3, OF_APP: 4, EPHEMERAL: 5 };
const NAME = /^[a-zA-Z0-9_.-]{1,64}$/;
const TAG_TEXT = /^[a-zA-Z0-9._-]{1,63}$/;
const MADE = '/usr/local/lib/burst/';
const INSTRUCTION = /^(FROM|RUN|ENV|WORKDIR|ENTRYPOINT|CMD|COPY|ADD|USER|ARG|LABEL|SHELL|EXPOSE|STOPSIGNAL|HEALTHCHECK|VOLUME)\s+(.*)$/is;

function invalid(text) {
	return new Status('INVALID_ARGUMENT', text);
}

function check_name(kind, name) {
	if (!NAME.test(name)) throw invalid(`Invalid ${kind} name: '${name}'. Names may contain only alphanumeric characters, dashes, periods, and underscores, and must be at most 64 characters.`);
	if (/^[a-z]{2}-[0-9A-Za-z]{22}$/.test(name)) throw invalid(`Invalid ${kind} name: '${name}' looks like an id.`);
}

function check_tag(name, value) {
	if (!TAG_TEXT.test(name) || !TAG_TEXT.test(value)) throw invalid(`Invalid tag '${name}': want 1 to 63 of letters, digits, '.', '_', '-' on both sides, got '${value}'`);
}

// By name: found, made, or refused.
function by_name(kind, all, name, how, make) {
	const old = [...all.values()].find((one) => one.name === name && !one.gone);
	if (how === HOW.FAIL_IF_EXISTS && old) throw new Status('ALREADY_EXISTS', `${kind} '${name}' already exists.`);
	if (old && how !== HOW.OVERWRITE) return old;
	if (!old && how === HOW.LOOK_UP) throw new Status('NOT_FOUND', `${kind} '${name}' not found in environment 'main'.`);
	check_name(kind, name);
	if (old) old.gone = true;
	return make();
}

class Account {
	constructor(world) {
		this.world = world;
		this.tokens = new Map(); // JWT -> when it ends
		this.apps = new Map();
		this.secrets = new Map();
		this.images = new Map();
	}

	// ---- tokens ----

	new_token(ttl_s) {
		const part = (x) => Buffer.from(typeof x === 'string' ? x : JSON.stringify(x)).toString('base64url');
		const until_s = Math.floor(clock.now() / 1000 + ttl_s);
		const token = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ iat: Math.floor(clock.now() / 1000), exp: until_s })}.${part(crypto.randomBytes(16).toString('hex'))}`;
		this.tokens.set(token, clock.now() + ttl_s * 1000);
		return token;
	}

	token_is_good(token) {
		return this.tokens.has(token) && clock.now() < this.tokens.get(token);
	}

	// ---- apps and secrets ----

	app(id) {
		if (!this.apps.has(id)) throw new Status('NOT_FOUND', `App ${id} not found.`);
		return this.apps.get(id);
	}

	get_app(name, how) {
		return by_name('App', this.apps, name, how, () => {
			const app = { id: this.world.id('ap'), name, tags: {}, created_ms: clock.now() };
			this.apps.set(app.id, app);
			return app;
		});
	}

	secret(id) {
		if (!this.secrets.has(id)) throw new Status('NOT_FOUND', `Secret ${id} not found.`);
		return this.secrets.get(id);
	}

	get_secret(name, how, env, required) {
		for (const [key, value] of Object.entries(env)) {
			if (!/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(key)) throw invalid(`Invalid environment variable name: '${key}'`);
			if (/[\r\n]/.test(value)) this.world.remark(`the secret's ${key} has several lines, which nobody promises to keep`);
		}
		const make = () => {
			const secret = { id: this.world.id('st'), name, env, how, created_ms: clock.now() };
			this.secrets.set(secret.id, secret);
			return secret;
		};
		if (how === HOW.EPHEMERAL || how === HOW.OF_APP) return make();
		const secret = by_name('Secret', this.secrets, name, how, make);
		const lacks = required.filter((key) => !(key in secret.env));
		if (lacks.length) throw new Status('FAILED_PRECONDITION', `Secret '${name}' is missing key(s): ${lacks.join(', ')}`);
		return secret;
	}

	// ---- images ----

	image(id) {
		if (!this.images.has(id)) throw new Status('NOT_FOUND', `Image ${id} not found.`);
		return this.images.get(id);
	}

	// One layer: the same recipe is the same image.
	get_image(spec, builder_version, force) {
		const bases = spec.baseImages.map((base) => ({ tag: base.dockerTag, image: this.image(base.imageId) }));
		for (const base of bases) if (!base.image.result || base.image.result.status !== RESULT.SUCCESS) throw new Status('FAILED_PRECONDITION', `Image ${base.image.id} is not built.`);
		const recipe = { commands: spec.dockerfileCommands, bases: bases.map((b) => [b.tag, b.image.id]), builder_version, args: spec.buildArgs, secrets: spec.secretIds,
			files: spec.contextFiles.map((f) => [f.filename, crypto.createHash('sha256').update(f.data).digest('hex')]) };
		const id = `im-${BigInt(`0x${crypto.createHash('sha256').update(JSON.stringify(recipe)).digest('hex')}`).toString(36).padStart(22, '0').slice(0, 22)}`;
		const old = this.images.get(id);
		if (old && !force && (!old.result || old.result.status === RESULT.SUCCESS)) return old;
		spec.secretIds.forEach((one) => this.secret(one));
		if (spec.imageRegistryConfig) this.check_registry(spec.imageRegistryConfig);
		const image = { id, commands: spec.dockerfileCommands, bases, context: this.keep_context(id, spec.contextFiles), copies: bases.flatMap((b) => b.image.copies), made: null, said: [], builder_version, recipe: '', env: {}, cmd: [], log: [], result: null, watchers: new Set(), created_ms: clock.now() };
		this.images.set(id, image);
		return image;
	}

	// Of a private registry: the name and the password are in a secret.
	check_registry({ registryAuthType, secretId }) {
		if (registryAuthType !== 4) return;
		const lacks = ['REGISTRY_USERNAME', 'REGISTRY_PASSWORD'].filter((key) => !(key in this.secret(secretId).env));
		if (lacks.length) throw invalid(`Secret ${secretId} is missing key(s): ${lacks.join(', ')}`);
	}

	// The files of a build's context, on disk: name -> where.
	keep_context(id, files) {
		const dir = path.join(this.world.dir, 'images', id);
		fs.mkdirSync(dir, { recursive: true });
		return new Map(files.map(({ filename, data }, i) => {
			const at = path.join(dir, String(i));
			fs.writeFileSync(at, data);
			return [filename, at];
		}));
	}

	// quirk: { result: name of a status, exception, build_ms }
	build(image, quirk = {}) {
		image.recipe = [...image.bases.map((b) => b.image.recipe), ...image.commands].join('\n');
		const error = this.read_recipe(image);
		const ms = quirk.build_ms !== undefined ? quirk.build_ms : this.world.settings.boot.build_ms;
		const lines = image.said.map((line) => `${line}\n`);
		lines.forEach((line, i) => clock.after((ms * i) / lines.length, () => this.tell(image, line)));
		clock.after(ms, () => {
			const status = quirk.result || (error ? 'FAILURE' : 'SUCCESS');
			if (status === 'SUCCESS') this.tell(image, `Built image ${image.id} in ${(ms / 1000).toFixed(2)}s\n`);
			image.result = { status: RESULT[status], exception: status === 'SUCCESS' ? '' : quirk.exception || error || `Image build for ${image.id} ${status.toLowerCase()}` };
			this.tell(image);
		});
	}

	tell(image, line) {
		if (line) image.log.push({ ms: clock.now(), data: line });
		for (const look of image.watchers) look();
	}

	// A RUN line that settings.carry_out matches is run on this machine, with a folder of its own as /usr/local/lib, whose `burst` the
	// sandboxes of this image have in its place.
	carry_out(image, line) {
		image.made = image.made || path.join(this.world.dir, 'images', image.id, 'lib');
		this.put_made(image);
		const done = spawnSync('unshare', ['--mount', 'sh', '-c', 'mount --bind "$0" /usr/local/lib && exec /bin/sh -c "$1"', image.made, line], { encoding: 'utf8' });
		image.said.push(...`${done.stdout}${done.stderr}`.split('\n').filter((one) => one));
		return done.status === 0 ? null : `The command '/bin/sh -c ${line.slice(0, 60)}' returned a non-zero code: ${done.status}`;
	}

	put_made(image) {
		for (const copy of image.copies.filter((one) => one.path.startsWith(MADE))) {
			const to = path.join(image.made, path.relative('/usr/local/lib', copy.path));
			fs.mkdirSync(path.dirname(to), { recursive: true });
			fs.copyFileSync(copy.from, to);
			fs.chmodSync(to, copy.mode);
		}
	}

	// Instructions are read, and RUN lines are held against a shell's grammar: what they would install, see sandboxes.js. Files
	// that are copied are there with the mode that a chmod of them gave.
	read_recipe(image) {
		const base = image.bases[0] && image.bases[0].image;
		if (base) Object.assign(image, { env: { ...base.env }, cmd: base.cmd, workdir: base.workdir });
		let first = true;
		for (const command of image.commands) {
			if (/^\s*(#|$)/.test(command)) continue;
			const found = INSTRUCTION.exec(command.replace(/\\\n/g, ' ').trim());
			if (!found) return `dockerfile parse error: unknown instruction: ${command.split(/\s/)[0]}`;
			image.said.push(`Step ${image.commands.indexOf(command)}: ${command}`);
			const [word, rest] = [found[1].toUpperCase(), found[2]];
			if (first !== (word === 'FROM')) return first ? 'dockerfile parse error: no FROM' : 'dockerfile parse error: a second FROM';
			first = false;
			const error = this.obey(image, word, rest);
			if (error) return error;
		}
		return first ? 'dockerfile parse error: no FROM' : null;
	}

	obey(image, word, rest) {
		if (word === 'FROM') {
			const tag = rest.replace(/^--platform=\S+\s+/, '');
			if (image.bases.some((b) => b.tag === tag)) return null;
			const refused = Object.entries(this.world.settings.images).find(([pattern]) => new RegExp(`^(?:${pattern})$`).test(tag));
			if (refused) return refused[1];
			return /^[a-z0-9][a-z0-9._\/:-]*(:[\w.-]+)?(@sha256:[0-9a-f]{64})?$/.test(tag) ? null : `invalid reference format: ${tag}`;
		}
		if (word === 'RUN') {
			const shell = spawnSync('/bin/sh', ['-n', '-c', rest], { encoding: 'utf8' });
			if (shell.status !== 0) return `RUN: ${shell.stderr.trim()}`;
			for (const [, mode, file] of rest.matchAll(/\bchmod ([0-7]{3,4}) (\S+)/g)) for (const copy of image.copies) if (copy.path === file) copy.mode = parseInt(mode, 8);
			const { carry_out } = this.world.settings;
			return carry_out && new RegExp(carry_out).test(rest) ? this.carry_out(image, rest) : null;
		}
		if (word === 'COPY' || word === 'ADD') {
			const names = rest.split(/\s+/).filter((name) => !name.startsWith('--'));
			const to = names.pop();
			const missing = names.find((name) => !image.context.has(name));
			if (missing) return `${word} failed: ${missing}: not found`;
			if (!names.length || !to.startsWith('/')) return `${word}: wants files and an absolute path`;
			if (names.length > 1 && !to.endsWith('/')) return `${word}: several files, and ${to} is no folder`;
			for (const name of names) image.copies.push({ from: image.context.get(name), path: to.endsWith('/') ? to + path.basename(name) : to, mode: 0o644 });
			return null;
		}
		if (word === 'ENV') for (const [, key, quoted, plain] of rest.matchAll(/([A-Za-z_]\w*)=(?:"([^"]*)"|(\S*))/g)) image.env[key] = quoted === undefined ? plain : quoted;
		if (word === 'WORKDIR') image.workdir = rest;
		if (word === 'CMD') image.cmd = rest.startsWith('[') ? JSON.parse(rest) : ['/bin/sh', '-c', rest];
		return null;
	}
}

module.exports = { Account, HOW, MADE, by_name, check_name, check_tag, invalid };
