'use strict';
// rpc_volumes.js - the calls about volumes and their files, with no sandbox running.

const { HOW, by_name, invalid } = require('./account');
const { Status } = require('./status');

const VERSION = 2;
const BATCH = 50;

function answer(volume) {
	return { volumeId: volume.id, version: volume.version, metadata: { version: volume.version, name: volume.name || '' } };
}

function* list({ world, message }) {
	const entries = world.volumes.list(world.volumes.get(message.volumeId), message.path, message.recursive);
	const some = message.maxEntries ? entries.slice(0, message.maxEntries) : entries;
	for (let at = 0; at < some.length; at += BATCH) yield { entries: some.slice(at, at + BATCH) };
}

function from_outside(c) {
	if (c.world.volumes.get(c.message.volumeId)) throw new Status('FAILED_PRECONDITION', 'Volume is not mounted in the calling container.');
}

const calls = {
	VolumeGetOrCreate({ world, message }) {
		const how = message.objectCreationType;
		const make = () => world.volumes.create(message.deploymentName || undefined, message.version || 1);
		if (message.version > VERSION) throw invalid(`Unknown volume version ${message.version}`);
		if (how === HOW.EPHEMERAL || how === HOW.OF_APP) return answer(make());
		return answer(by_name('Volume', world.volumes.all, message.deploymentName, how, make));
	},

	VolumeList({ world }) {
		const items = [...world.volumes.all.values()].map((v) => ({ label: v.name, volumeId: v.id, createdAt: v.created_ms / 1000, metadata: { version: v.version, name: v.name } }));
		return { items, environmentName: 'main' };
	},

	VolumeDelete({ world, message }) {
		world.volumes.remove(message.volumeId);
		return {};
	},

	VolumeHeartbeat: () => ({}),
	VolumeListFiles: list,
	VolumeListFiles2: list,

	VolumeGetFile2({ world, message, does }) {
		const { volumeId, path, start, len, clientPadsBlocks } = message;
		return world.volumes.get_file(world.volumes.get(volumeId), path, start, len, { padded: !clientPadsBlocks, dead: does.dead_urls });
	},

	VolumePutFiles2({ world, message, does }) {
		const volume = world.volumes.get(message.volumeId);
		if (volume.version !== VERSION) throw new Status('FAILED_PRECONDITION', `Volume ${volume.id} is of version ${volume.version}.`);
		return world.volumes.put_files(volume, message.files, message.disallowOverwriteExistingFiles, does.dead_urls);
	},

	VolumeRemoveFile2({ world, message }) {
		world.volumes.delete_file(world.volumes.get(message.volumeId), message.path, message.recursive);
		return {};
	},

	VolumeCommit: from_outside,
	VolumeReload: from_outside,
};

module.exports = { calls };
