/* test_ssh_keys.c - whom an SSH connection trusts, and the methods that it accepts. */
#include "net_test.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/path.h"
#include "base/str.h"
#include "net/ssh.h"
#include "ssh_bed.h"

static void test_wrong_host_key(void **state)
{
	(void)state;
	need_sshd();
	struct session s;
	char *other = read_ssh_file("other.pub"), *shown = read_ssh_file("host.pub");

	open_with(&s, sshd_port, other, private_key, 60000, 0);
	TURN_UNTIL(ssh_loop, s.ups);
	assert_int_equal(s.err.kind, ERR_UNTRUSTED);
	*strrchr(shown, ' ') = '\0';
	*strrchr(other, ' ') = '\0';
	assert_non_null(strstr(s.err.msg, "host key"));
	assert_non_null(strstr(s.err.msg, shown + strlen(shown) - 10));
	assert_non_null(strstr(s.err.msg, other + strlen(other) - 10));
	ssh_close(s.ssh);
	free(other);
	free(shown);
}

/* A server that offers nothing else: taken, or refused with words that say why. */
static void test_methods(void **state)
{
	static const struct {
		const char *offer;
		bool taken;
	} cases[] = {
		{"KexAlgorithms curve25519-sha256", true},
		{"KexAlgorithms curve25519-sha256@libssh.org", true},
		{"KexAlgorithms ecdh-sha2-nistp256", true},
		{"KexAlgorithms diffie-hellman-group14-sha256", true},
		{"KexAlgorithms diffie-hellman-group14-sha1", false},
		{"KexAlgorithms diffie-hellman-group1-sha1", false},
		{"KexAlgorithms diffie-hellman-group-exchange-sha1", false},
		{"Ciphers aes256-ctr", true},
		{"Ciphers aes128-ctr,aes128-cbc", true},
		{"Ciphers aes128-cbc", false},
		{"Ciphers 3des-cbc", false},
		{"MACs hmac-sha2-512", true},
		{"MACs hmac-sha2-256-etm@openssh.com,hmac-sha2-256", true},
		{"MACs hmac-sha1", false},
		{"MACs hmac-md5", false},
	};

	(void)state;
	need_sshd();
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct session s;
		int port;
		pid_t pid = start_sshd(cases[i].offer, &port);
		open_with(&s, port, host_key, private_key, 60000, 0);
		TURN_UNTIL(ssh_loop, s.ups);
		bool why = strstr(s.err.msg, "no method in common") != NULL;
		if (cases[i].taken ? s.err.kind != ERR_NONE : s.err.kind != ERR_NETWORK || !why)
			fail_msg("%s: %s", cases[i].offer, s.err.msg);
		ssh_close(s.ssh);
		kill(pid, SIGTERM);
		waitpid(pid, NULL, 0);
	}
}

static void test_bad_keys(void **state)
{
	(void)state;
	need_sshd();
	struct session s;

	open_with(&s, sshd_port, host_key, wrong_key, 60000, 0);
	TURN_UNTIL(ssh_loop, s.ups);
	assert_int_equal(s.err.kind, ERR_REFUSED);
	assert_int_equal(s.losses, 0);
	ssh_close(s.ssh);

	open_with(&s, sshd_port, host_key, "not a key", 60000, 0);
	TURN_UNTIL(ssh_loop, s.ups);
	assert_int_equal(s.err.kind, ERR_CONFIG);
	ssh_close(s.ssh);

	open_with(&s, sshd_port, "ssh-rsa AAAAB3", private_key, 60000, 0);
	TURN_UNTIL(ssh_loop, s.ups);
	assert_int_equal(s.err.kind, ERR_CONFIG);
	ssh_close(s.ssh);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wrong_host_key),
		cmocka_unit_test(test_methods),
		cmocka_unit_test(test_bad_keys),
	};
	return cmocka_run_group_tests(tests, start_ssh_bed, end_ssh_bed);
}
