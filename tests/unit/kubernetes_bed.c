/* kubernetes_bed.c - opens a Kubernetes translator for tests. */
#include "kubernetes_bed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "providers/kubernetes/kubernetes.h"

struct section *conf;
struct provider *provider;

int open_provider(void **state)
{
	struct err err;

	(void)state;
	conf = section_new(provider_kubernetes.options, "burst.cfg:1");
	section_set_text(conf, "context", "bed", "burst.cfg:2");
	section_add_item(conf, "prices", "L40S=1.10", "burst.cfg:3");
	section_add_item(conf, "prices", "B200=5", "burst.cfg:3");
	if (provider_kubernetes.open(&provider, conf, "/nowhere", &err) < 0)
		fail_msg("%s", err.msg);
	return 0;
}

int close_provider(void **state)
{
	(void)state;
	provider_kubernetes.close(provider);
	section_free(conf);
	return 0;
}
