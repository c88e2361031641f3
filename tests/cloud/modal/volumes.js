'use strict';
// volumes.js - volumes of version 2: what is committed lies in DIR/volumes/ID; a sandbox works on a copy of its own, which is
// committed by `sync` inside it and at its end. Files also come and go in blocks of 8 MiB, through URLs that expire.

const { execFileSync } = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const clock = require('../common/clock');
const { Status } = require('./status');

const BLOCK = 8 << 20;
const TYPES = { file: 1, directory: 2, symlink: 3 };

function sha256(bytes) {
	return crypto.createHash('sha256').update(bytes).digest('hex');
}

// What work() gives, or nothing where a file was there no more: in a sandbox that runs they come and go meanwhile.
function if_there(work) {
	try {
		return work();
	} catch (e) {
		if (e.code === 'ENOENT') return undefined;
		throw e;
	}
}

// All that is below a folder: relative path -> lstat.
function walk(root, under = '', out = new Map()) {
	for (const entry of (if_there(() => fs.readdirSync(path.join(root, under))) || []).sort()) {
		const name = path.join(under, entry);
		const stat = if_there(() => fs.lstatSync(path.join(root, name)));
		if (!stat) continue;
		out.set(name, stat);
		if (stat.isDirectory()) walk(root, name, out);
	}
	return out;
}

function zeros_at_end(bytes) {
	let n = 0;
	while (n < bytes.length && bytes[bytes.length - 1 - n] === 0) n++;
	return n;
}

function mark(stat) {
	return stat.isDirectory() ? 'directory' : `${stat.size} ${stat.mtimeMs} ${stat.ctimeMs} ${stat.mode} ${stat.ino}`;
}

function marks_of(stats) {
	return new Map([...stats].map(([name, stat]) => [name, mark(stat)]));
}

// As `cp -a` would, without a process for each of thousands of files: a sandbox has ended, and is billed, when all are committed.
function copy(from, to, stat) {
	if (stat.isSymbolicLink()) fs.symlinkSync(fs.readlinkSync(from), to);
	else fs.copyFileSync(from, to, fs.constants.COPYFILE_FICLONE);
	if (process.getuid() === 0) fs.lchownSync(to, stat.uid, stat.gid);
	if (!stat.isSymbolicLink()) fs.chmodSync(to, stat.mode & 0o7777);
	fs.lutimesSync(to, stat.atimeMs / 1000, stat.mtimeMs / 1000);
}

class Volumes {
	constructor(world) {
		this.world = world;
		this.all = new Map();
		this.blocks = new Map(); // sha256 -> { response, confirmed }
		this.urls = new Map(); // token -> what it is for
		this.block_dir = path.join(world.dir, 'blocks');
		fs.mkdirSync(this.block_dir, { recursive: true });
	}

	get(id) {
		const volume = this.all.get(id);
		if (!volume) throw new Status('NOT_FOUND', `Volume ${id} not found.`);
		return volume;
	}

	create(name, version) {
		const volume = { id: this.world.id('vo'), name, version, created_ms: clock.now() };
		this.all.set(volume.id, volume);
		fs.mkdirSync(this.folder(volume), { recursive: true });
		return volume;
	}

	remove(id) {
		fs.rmSync(this.folder(this.get(id)), { recursive: true, force: true });
		this.all.delete(id);
	}

	folder(volume) {
		return path.join(this.world.dir, 'volumes', volume.id);
	}

	// A path inside of it, however it was spelt.
	inside(volume, name) {
		const parts = name.split('/').filter((part) => part && part !== '.');
		if (parts.includes('..')) throw new Status('INVALID_ARGUMENT', `Invalid path: ${name}`);
		return path.join(this.folder(volume), ...parts);
	}

	// ---- in a sandbox ----

	mount(volume, dir) {
		fs.mkdirSync(path.dirname(dir), { recursive: true });
		execFileSync('cp', ['-a', '--reflink=auto', this.folder(volume), dir]);
		return { volume, dir, seen: marks_of(walk(dir)) };
	}

	// What changed in the copy since it was last looked at is carried over; the last writer of a file wins.
	commit(mounted) {
		if (!this.all.has(mounted.volume.id)) return;
		const into = this.folder(mounted.volume);
		const now = walk(mounted.dir);
		for (const name of mounted.seen.keys()) if (!now.has(name)) fs.rmSync(path.join(into, name), { recursive: true, force: true });
		for (const [name, stat] of now) {
			if (mounted.seen.get(name) === mark(stat)) continue;
			const [from, to] = [path.join(mounted.dir, name), path.join(into, name)];
			if (stat.isDirectory()) {
				if (fs.existsSync(to) && !fs.lstatSync(to).isDirectory()) fs.rmSync(to);
				fs.mkdirSync(to, { recursive: true, mode: stat.mode & 0o7777 });
			} else if (stat.isFile() || stat.isSymbolicLink()) {
				fs.rmSync(to, { recursive: true, force: true });
				if_there(() => copy(from, to, stat));
			}
		}
		mounted.seen = marks_of(now); // as they were when they were looked at: what changes meanwhile is for the next time
	}

	// ---- from outside ----

	list(volume, name, recursive) {
		const at = this.inside(volume, name);
		if (!fs.existsSync(at)) throw new Status('NOT_FOUND', `No such file or directory: ${name}`);
		const root = this.folder(volume);
		if (!fs.statSync(at).isDirectory()) return [this.entry(root, path.relative(root, at))];
		const names = recursive ? [...walk(at).keys()] : fs.readdirSync(at).sort();
		return names.map((one) => this.entry(root, path.join(path.relative(root, at), one)));
	}

	entry(root, name) {
		const stat = fs.lstatSync(path.join(root, name));
		const type = stat.isDirectory() ? TYPES.directory : stat.isSymbolicLink() ? TYPES.symlink : TYPES.file;
		return { path: name, type, mtime: Math.floor(stat.mtimeMs / 1000), size: stat.isFile() ? stat.size : 0 };
	}

	delete_file(volume, name, recursive) {
		const at = this.inside(volume, name);
		if (!fs.existsSync(at)) throw new Status('NOT_FOUND', `No such file or directory: ${name}`);
		if (fs.lstatSync(at).isDirectory() && !recursive) throw new Status('FAILED_PRECONDITION', `${name} is a directory`);
		fs.rmSync(at, { recursive: true });
	}

	url(way, what, dead) {
		const token = crypto.randomBytes(16).toString('hex');
		this.urls.set(token, { way, until_ms: dead ? 0 : clock.now() + this.world.settings.url_s * 1000, ...what });
		return `${this.world.settings.blocks_at || this.world.blocks_url}/blocks/${token}`;
	}

	// Its size is there for rules of a relay that are about large ones.
	get_url(what, dead) {
		return `${this.url('GET', what, dead)}?${what.to - what.from}`;
	}

	// padded: with the zeros at the end of each block that whoever put it left out; dead: the URLs have expired already.
	get_file(volume, name, start, len, { padded, dead }) {
		const file = this.inside(volume, name);
		if (!fs.existsSync(file) || !fs.statSync(file).isFile()) throw new Status('NOT_FOUND', `File ${name} not found.`);
		const { size } = fs.statSync(file);
		if (start > size) throw new Status('INVALID_ARGUMENT', `start ${start} is past the end of ${name}`);
		const end = len ? Math.min(start + len, size) : size;
		const urls = [];
		for (let at = start; at < end; at = Math.min(end, (Math.floor(at / BLOCK) + 1) * BLOCK))
			urls.push(this.get_url({ file, padded, from: at, to: Math.min(end, (Math.floor(at / BLOCK) + 1) * BLOCK) }, dead));
		return { getUrls: urls, size, start, len: end - start };
	}

	put_files(volume, files, keep, dead) {
		const missing = [];
		for (const [i, file] of files.entries()) {
			const at = this.inside(volume, file.path);
			if (keep && fs.existsSync(at)) throw new Status('ALREADY_EXISTS', `${file.path} already exists.`);
			if (file.blocks.length !== Math.ceil(file.size / BLOCK))
				throw new Status('INVALID_ARGUMENT', `${file.path}: ${file.blocks.length} blocks for ${file.size} bytes`);
			for (const [k, block] of file.blocks.entries()) {
				const hash = Buffer.from(block.contentsSha256).toString('hex');
				if (hash.length !== 64) throw new Status('INVALID_ARGUMENT', `${file.path}: block ${k}: a hash has 32 bytes`);
				if (!this.have(hash, block.putResponse)) missing.push({ fileIndex: i, blockIndex: k, putUrl: this.url('PUT', { hash }, dead) });
			}
		}
		if (!missing.length) for (const file of files) this.write(volume, file);
		return { missingBlocks: missing };
	}

	// A block counts once whoever put it has brought back what the PUT answered.
	have(hash, response) {
		const block = this.blocks.get(hash);
		if (!block) return false;
		if (response && response.length && Buffer.from(response).equals(block.response)) block.confirmed = true;
		return block.confirmed;
	}

	write(volume, file) {
		const at = this.inside(volume, file.path);
		fs.mkdirSync(path.dirname(at), { recursive: true });
		const fd = fs.openSync(`${at}.part`, 'w', 0o644);
		file.blocks.forEach((block, k) => {
			const bytes = fs.readFileSync(path.join(this.block_dir, Buffer.from(block.contentsSha256).toString('hex')));
			fs.writeSync(fd, bytes, 0, bytes.length, k * BLOCK);
		});
		fs.ftruncateSync(fd, file.size);
		fs.fchmodSync(fd, file.mode === undefined ? 0o644 : file.mode & 0o7777);
		fs.closeSync(fd);
		fs.renameSync(`${at}.part`, at);
	}

	// GET and PUT of a block: { status, body }.
	serve(method, token, body) {
		const what = this.urls.get(token);
		if (!what || what.way !== method || clock.now() > what.until_ms) return { status: 403, body: 'Request has expired' };
		if (method === 'GET') {
			if (!fs.existsSync(what.file)) return { status: 404, body: 'no such block' };
			const bytes = Buffer.alloc(what.to - what.from);
			const fd = fs.openSync(what.file, 'r');
			fs.readSync(fd, bytes, 0, bytes.length, what.from);
			fs.closeSync(fd);
			return { status: 200, body: what.padded ? bytes : bytes.subarray(0, bytes.length - zeros_at_end(bytes)) };
		}
		if (body.length > BLOCK || sha256(body) !== what.hash) return { status: 400, body: 'the hash does not fit' };
		fs.writeFileSync(path.join(this.block_dir, what.hash), body);
		const response = crypto.randomBytes(24);
		this.blocks.set(what.hash, { response, confirmed: false });
		return { status: 200, body: response };
	}
}

module.exports = { Volumes };
