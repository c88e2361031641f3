'use strict';
// host_root.js - what is put over this machine's own root when a container is to have it: an sshd that knows no key of ours,
// no names, no nameserver.

const fs = require('fs');

const HOST_KEYS = ['rsa', 'ecdsa', 'ed25519', 'dsa'].flatMap((type) =>
	['', '.pub'].map((end) => `/etc/ssh/ssh_host_${type}_key${end}`),
);
const SSHD_CONFIG = `Port 22
PermitRootLogin prohibit-password
PubkeyAuthentication yes
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
PrintMotd no
AcceptEnv LANG LC_*
Subsystem sftp internal-sftp
`;
// The machine's accounts with root not locked: sshd turns a locked one away.
function shadow() {
	try {
		const text = fs.readFileSync('/etc/shadow', 'utf8').replace(/^root:[^:]*:/m, 'root:*:');
		return [{ path: '/etc/shadow', text, mode: 0o600 }];
	} catch (e) {
		return [];
	}
}

function host_files() {
	return [
		...shadow(),
		{ path: '/etc/ssh/sshd_config', text: SSHD_CONFIG, mode: 0o644 },
		{ path: '/etc/hosts', text: '127.0.0.1 localhost\n', mode: 0o644 },
		{ path: '/etc/resolv.conf', text: '', mode: 0o644 },
	];
}

module.exports = { HOST_KEYS, host_files };
