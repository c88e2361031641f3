/* test_serve.c - who gets the page of `burst report --live`, and who does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "net/serve.h"

#define TOKEN "0123456789abcdef0123456789abcdef"
#define HOST  "Host: 127.0.0.1:4000\r\n"

static bool fails;

static int make(void *ctx, struct str *html, const char *nonce, struct err *err)
{
	(void)ctx;
	if (fails)
		return err_set(err, ERR_LOCAL, "the ledger is damaged");
	str_addf(html, "<p>secret %s</p>", nonce);
	return 0;
}

static char *answer(const char *request)
{
	struct serve s = {.page = make};
	struct str to = STR_INIT;

	serve_answer(&s, 4000, TOKEN, request, &to);
	return str_detach(&to);
}

static void only_the_very_address_is_answered(void **state)
{
	static const struct {
		const char *request, *status;
	} cases[] = {
		{"GET /" TOKEN "/ HTTP/1.1\r\n" HOST "\r\n", "200 OK"},
		{"GET /" TOKEN "/ HTTP/1.0\r\nhost:  localhost:4000\r\nAccept: */*\r\n\r\n",
		 "200 OK"},
		{"HEAD /" TOKEN "/ HTTP/1.1\r\n" HOST "\r\n", "200 OK"},
		{"GET / HTTP/1.1\r\n" HOST "\r\n", "404 Not Found"},
		{"GET /" TOKEN " HTTP/1.1\r\n" HOST "\r\n", "404 Not Found"},
		{"GET /" TOKEN "/x HTTP/1.1\r\n" HOST "\r\n", "404 Not Found"},
		{"GET /" TOKEN "/?q HTTP/1.1\r\n" HOST "\r\n", "404 Not Found"},
		{"GET /0123456789abcdef0123456789abcdee/ HTTP/1.1\r\n" HOST "\r\n",
		 "404 Not Found"},
		{"GET /../" TOKEN "/ HTTP/1.1\r\n" HOST "\r\n", "404 Not Found"},
		/* a page elsewhere whose name was made to lead here */
		{"GET /" TOKEN "/ HTTP/1.1\r\nHost: evil.example:4000\r\n\r\n", "403 Forbidden"},
		{"GET /" TOKEN "/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "403 Forbidden"},
		{"GET /" TOKEN "/ HTTP/1.1\r\nHost: 127.0.0.1:4000.evil\r\n\r\n", "403 Forbidden"},
		{"GET /" TOKEN "/ HTTP/1.1\r\n" HOST "Host: evil\r\n\r\n", "403 Forbidden"},
		{"GET /" TOKEN "/ HTTP/1.1\r\n\r\n", "403 Forbidden"},
		{"POST /" TOKEN "/ HTTP/1.1\r\n" HOST "\r\n", "405 Method Not Allowed"},
		{"\r\n\r\n", "405 Method Not Allowed"},
		{"GET /" TOKEN "/\r\n" HOST "\r\n", "400 Bad Request"},
		{"GET \r\n\r\n", "400 Bad Request"},
		{"GET", "405 Method Not Allowed"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *text = answer(cases[i].request);
		CLEANUP(free_text) char *want = xasprintf("HTTP/1.1 %s\r\n", cases[i].status);
		if (!starts_with(text, want))
			fail_msg("%s: %.60s", cases[i].request, text);
		assert_int_equal(strstr(text, "secret") != NULL,
				 starts_with(cases[i].request, "GET") &&
					 !strcmp(cases[i].status, "200 OK"));
		assert_non_null(strstr(text, "\r\nConnection: close\r\n"));
		free(text);
	}
}

/* Scripts without the nonce do not run, and each answer has another. */
static void the_page_runs_its_own_script_alone(void **state)
{
	char *one = answer("GET /" TOKEN "/ HTTP/1.1\r\n" HOST "\r\n"),
	     *two = answer("GET /" TOKEN "/ HTTP/1.1\r\n" HOST "\r\n");
	char *nonce = strstr(one, "script-src 'nonce-"), *body = strstr(one, "\r\n\r\n<p>secret ");

	(void)state;
	assert_non_null(nonce);
	assert_non_null(body);
	assert_memory_equal(nonce + strlen("script-src 'nonce-"),
			    body + strlen("\r\n\r\n<p>secret "), SERVE_NONCE - 1);
	assert_string_not_equal(one, two);
	assert_non_null(strstr(one, "default-src 'none'"));
	free(one);
	free(two);
}

static void what_fails_is_told(void **state)
{
	(void)state;
	fails = true;
	char *text = answer("GET /" TOKEN "/ HTTP/1.1\r\n" HOST "\r\n");
	fails = false;
	assert_true(starts_with(text, "HTTP/1.1 503 "));
	assert_non_null(strstr(text, "\r\n\r\nthe ledger is damaged\n"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_very_address_is_answered),
		cmocka_unit_test(the_page_runs_its_own_script_alone),
		cmocka_unit_test(what_fails_is_told),
	};

	return cmocka_run_group_tests_name("serve", tests, NULL, NULL);
}
