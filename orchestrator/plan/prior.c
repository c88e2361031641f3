/* prior.c - figures of providers from their documents, price pages and other people's reports. */
#include "prior.h"

#include <string.h>

#include "base/mem.h"

/* Cold starts: seconds, median and slow tenth. RunPod and Modal bill by the second and charge
 * nothing for what is fetched. No vendor publishes how often spot pods are reclaimed: eight hours
 * is our guess, until this ledger has seen some. */
#define SPOT_GUESS_S (8 * 3600.0)
static const struct prior_provider providers[] = {
	{"local",
	 {{0.1, 0.5, 0},
	  {0.5, 2, 0},
	  {0.3, 1, 0},
	  {0.5, 2, 0},
	  {0, 0, 0},
	  [COLD_LOAD] = {0.5, 2, 0}},
	 1,
	 0,
	 0,
	 SPOT_GUESS_S,
	 "2026-11"},
	{"modal",
	 {{5, 60, 0}, {5, 15, 0}, {2, 5, 0}, {3, 10, 0}, {0, 0, 0}, [COLD_LOAD] = {5, 15, 0}},
	 1,
	 0,
	 0.09,
	 SPOT_GUESS_S,
	 "2026-09"},
	{NULL,
	 {{10, 60, 0}, {60, 180, 0}, {2, 5, 0}, {3, 10, 0}, {0, 0, 0}, [COLD_LOAD] = {5, 15, 0}},
	 1,
	 0,
	 0.07,
	 SPOT_GUESS_S,
	 "2026-08"},
};
#define GPU_LOAD_S      20.0 /* beside that, where weights go to a GPU */
#define GPU_LOAD_SLOW_S 60.0

const struct prior_provider *prior_of_provider(const char *name)
{
	size_t i = 0;

	while (providers[i].name && strcmp(providers[i].name, name) != 0)
		i++;
	return &providers[i];
}

struct cold prior_cold(const char *provider, bool gpu)
{
	struct cold c = {0};

	memcpy(c.phase, prior_of_provider(provider)->phase, sizeof(c.phase));
	if (gpu) {
		c.phase[COLD_LOAD].p50_s += GPU_LOAD_S;
		c.phase[COLD_LOAD].p90_s += GPU_LOAD_SLOW_S;
	}
	return c;
}

/* List prices of one GPU on demand, in dollars an hour, as price pages and price trackers showed
 * them last (the month, of RunPod's secure cloud). They move: a run goes by live offers alone. 0:
 * not offered, or no price was found. */
static const struct {
	const char *gpu;
	double secure, community, modal;
	const char *seen;
} prices[] = {
	{"T4", 0, 0, 0.59, "2026-09"},
	{"L4", 0.39, 0, 0.80, "2026-01"},
	{"A10", 0, 0, 1.10, "2026-09"},
	{"RTX A4000", 0.29, 0.17, 0, "2025-07"},
	{"RTX A4500", 0.34, 0.19, 0, "2025-07"},
	{"RTX A5000", 0.26, 0.16, 0, "2025-07"},
	{"RTX A6000", 0.49, 0.33, 0, "2025-07"},
	{"RTX 2000 Ada", 0.24, 0, 0, "2026-01"},
	{"RTX 4000 Ada", 0.26, 0.20, 0, "2026-01"},
	{"RTX 3080", 0, 0.17, 0, "2025-07"},
	{"RTX 3090", 0.43, 0.22, 0, "2025-07"},
	{"RTX 4090", 0.59, 0.34, 0, "2026-01"},
	{"RTX 5090", 0.99, 0.69, 0, "2026-08"},
	{"L40", 0.99, 0.69, 0, "2026-01"},
	{"L40S", 0.86, 0.79, 1.95, "2026-01"},
	{"RTX 6000 Ada", 0.77, 0.74, 0, "2026-01"},
	{"RTX PRO 6000", 1.69, 0, 3.03, "2026-08"},
	{"A40", 0.44, 0, 0, "2026-08"},
	{"A100 40GB", 0, 1.00, 2.10, "2026-08"},
	{"A100 80GB PCIe", 1.79, 1.19, 0, "2026-11"},
	{"A100 80GB SXM", 1.79, 1.39, 2.50, "2026-11"},
	{"H100 PCIe", 2.89, 1.99, 0, "2026-11"},
	{"H100 SXM", 3.99, 2.69, 3.95, "2026-11"},
	{"H100 NVL", 3.19, 2.59, 0, "2026-11"},
	{"H200 SXM", 4.59, 3.59, 4.54, "2026-10"},
	{"B200", 6.79, 5.98, 6.25, "2026-10"},
	{"B300", 7.89, 6.94, 7.10, "2026-10"},
};
#define MODAL_SEEN "2026-09"

const char *const market_names[MARKETS] = {"cheapest", "runpod", "runpod-community", "modal"};

static double price_in(size_t row, enum market market)
{
	switch (market) {
	case MARKET_SECURE: return prices[row].secure;
	case MARKET_COMMUNITY: return prices[row].community;
	case MARKET_MODAL: return prices[row].modal;
	case MARKET_CHEAPEST:
	case MARKETS: break;
	}
	return 0;
}

double prior_list_price(const char *gpu, enum market market, const char **seen)
{
	for (size_t i = 0; i < ARRAY_LEN(prices); i++) {
		if (strcmp(prices[i].gpu, gpu) != 0)
			continue;
		if (seen)
			*seen = market == MARKET_MODAL ? MODAL_SEEN : prices[i].seen;
		return price_in(i, market);
	}
	return 0;
}
