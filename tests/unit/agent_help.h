/* agent_help.h - what the tests of the agent share: a scratch folder. */
#ifndef BURST_TESTS_AGENT_HELP_H
#define BURST_TESTS_AGENT_HELP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/path.h"
#include "scratch.h"

/* Makes a scratch folder; returns its descriptor. */
int make_root(char path[FOLDER_MAX]);

#endif
