/* runpod_offers_bed.h - a catalog of RunPod's, and what is wanted of it. */
#ifndef BURST_TESTS_RUNPOD_OFFERS_BED_H
#define BURST_TESTS_RUNPOD_OFFERS_BED_H

#include "runpod_play.h"

#define DC(id, stock) "{\"id\":\"" id "\",\"name\":\"" id "\",\"availability\":\"" stock "\"}"

#define GPU(id, name, memory, secure, community, stock, dcs)                                       \
	"{\"id\":\"" id "\",\"name\":\"" name                                                      \
	"\",\"pool\":null,\"manufacturer\":\"NVIDIA\",\"memory\":" memory                          \
	",\"secure\":true,\"community\":true,\"price\":{\"secure\":" secure                        \
	",\"community\":" community                                                                \
	"},\"maxCount\":{\"secure\":8,\"community\":1},\"availability\":\"" stock                  \
	"\",\"dataCenters\":[" dcs "]}"

#define CATALOG                                                                                    \
	"{\"gpus\":[" GPU(                                                                         \
		"NVIDIA GeForce RTX 4090", "RTX 4090", "24", "0.69", "0.34", "HIGH",               \
		DC("EU-RO-1", "LOW") "," DC("US-KS-2", "HIGH") "," DC(                             \
			"US-TX-3",                                                                 \
			"NONE")) "," GPU("NVIDIA GeForce RTX 5090", "RTX 5090", "32", "0.99",      \
					 "0.69", "MEDIUM",                                         \
					 DC("US-KS-2",                                             \
					    "MEDIUM")) "," GPU("NVIDIA L40S", "L40S", "48",        \
							       "0.86", "0.79", "NONE",             \
							       "") "," GPU("NVIDIA GeForce RTX "   \
									   "3090 Ti",              \
									   "RTX 3090 Ti", "24",    \
									   "0.46", "0.27", "LOW",  \
									   DC("EU-RO-1",           \
									      "LOW")) "]}"

static inline struct op_want wanting(const char *const *gpus)
{
	return (struct op_want){.offers.gpus = gpus};
}

#define FLOORS                                                                                     \
	"{\"data\":{\"gpuTypes\":[{\"id\":\"NVIDIA GeForce RTX "                                   \
	"4090\",\"lowestPrice\":{\"minimumBidPrice\":0.2,"                                         \
	"\"uninterruptablePrice\":0.69,\"stockStatus\":\"High\"}},{\"id\":\"NVIDIA "               \
	"L40S\",\"lowestPrice\":null}]}}"

#endif
