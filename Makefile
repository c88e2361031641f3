# burst - make (build), make demo, make check, make bench, make lint, make install PREFIX=, make clean
#
# Everything that is made is under build/. BUILD=build/asan SANITIZE=1 makes the variant that the tests run.

CC      ?= cc
PREFIX  ?= /usr/local
BUILD   ?= build
VERSION := 0.1.0

PKGS    := libcurl libssh2 jansson libconfig sqlite3 libcrypto libarchive libgit2
ifneq ($(filter-out deps clean help,$(or $(MAKECMDGOALS),all)),)
PKG_CFLAGS := $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
PKG_LIBS   := $(shell pkg-config --libs $(PKGS) 2>/dev/null)
endif

WARN    := -Wall -Wextra -Werror -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes \
           -Wundef -Wvla -Wwrite-strings -Wno-missing-field-initializers
HARDEN  := -fstack-protector-strong -fPIE
ifdef SANITIZE
OPT     := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
else
OPT     := -O2 -g -D_FORTIFY_SOURCE=2
endif
CFLAGS  ?=
ALL_CFLAGS := -std=gnu17 -D_GNU_SOURCE -DBURST_VERSION='"$(VERSION)"' $(WARN) $(HARDEN) $(OPT) -I. -Iorchestrator $(PKG_CFLAGS) $(CFLAGS)
LDFLAGS ?= -pie -Wl,-z,relro,-z,now
LIBS    := $(PKG_LIBS) -lpthread -lm

LIB_SRC := $(wildcard orchestrator/*.c orchestrator/*/*.c config/*.c jobs/*.c jobs/tts/*.c jobs/command/*.c \
             jobs/agent/kit.c jobs/workers/embed.c providers/*.c providers/*/*.c)
CMD_SRC := $(wildcard cmd/*.c)
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/obj/%.o)
CMD_OBJ := $(CMD_SRC:%.c=$(BUILD)/obj/%.o)
UNIT    := $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(wildcard tests/unit/test_*.c))

.PHONY: all deps demo check lint bench soak fuzz install clean unit
all: $(BUILD)/burst

# ---- what the pod gets: the agent (static) and the workers that burst carries inside ----
# musl gives a static agent of some 100 kB; glibc one of about 1 MB. Both have no dependencies.
AGENT_CC     ?= $(shell command -v musl-gcc 2>/dev/null || echo $(CC))
AGENT_CFLAGS := -std=gnu17 -D_GNU_SOURCE -DBURST_VERSION='"$(VERSION)"' -O2 -static -s $(WARN)
KIT          := build/kit/burst-agent build/kit/espeak-worker

build/kit/burst-agent: jobs/agent/agent.c $(wildcard jobs/agent/*.h)
	@mkdir -p $(@D)
	$(AGENT_CC) $(AGENT_CFLAGS) -o $@ jobs/agent/agent.c
build/kit/espeak-worker: jobs/workers/espeak.c
	@mkdir -p $(@D)
	$(CC) -std=gnu17 -D_GNU_SOURCE -O2 -s $(WARN) -o $@ jobs/workers/espeak.c -ldl
build/kit/kit_sizes.h: $(KIT)
	@printf '#define KIT_BURST_AGENT_BYTES %d\n#define KIT_ESPEAK_WORKER_BYTES %d\n' \
		$$(wc -c <build/kit/burst-agent) $$(wc -c <build/kit/espeak-worker) >$@
$(BUILD)/obj/jobs/agent/kit.o: $(KIT) build/kit/kit_sizes.h jobs/agent/start.sh
$(BUILD)/obj/jobs/workers/embed.o: $(KIT) build/kit/kit_sizes.h
$(BUILD)/obj/jobs/agent/kit.o $(BUILD)/obj/jobs/workers/embed.o: ALL_CFLAGS += -Ibuild/kit

# ---- the ledger's schema, as one C string ----
$(BUILD)/gen/schema.sql.h: orchestrator/store/schema.sql
	@mkdir -p $(@D)
	sed -e 's/[\\"]/\\&/g' -e 's/^/"/' -e 's/$$/\\n"/' $< > $@
$(BUILD)/obj/orchestrator/store/sqlite.o: $(BUILD)/gen/schema.sql.h
$(BUILD)/obj/orchestrator/store/sqlite.o: ALL_CFLAGS += -I$(BUILD)/gen

# ---- the library of everything, and the program ----
$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/libburst.a: $(LIB_OBJ)
	@rm -f $@
	ar rcs $@ $(LIB_OBJ)
$(BUILD)/burst: $(CMD_OBJ) $(BUILD)/libburst.a
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $(CMD_OBJ) $(BUILD)/libburst.a $(LIBS)

# ---- tests ----
$(BUILD)/unit/%: tests/unit/%.c $(BUILD)/libburst.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -o $@ $< $(BUILD)/libburst.a $(LIBS) -lcmocka
unit: $(UNIT)
	@for t in $(UNIT); do echo "== $$t"; $$t || exit 1; done

# The agent with sanitizers for its own tests; what the kit prints, for shell tests; the pod's side end to end.
build/asan/burst-agent: jobs/agent/agent.c
	@mkdir -p $(@D)
	$(CC) -std=gnu17 -D_GNU_SOURCE -DBURST_VERSION='"$(VERSION)"' $(WARN) -O1 -g -fsanitize=address,undefined \
		-fno-sanitize-recover=undefined -fno-omit-frame-pointer -o $@ jobs/agent/agent.c
$(BUILD)/e2e/kit_print: tests/e2e/kit_print.c $(BUILD)/libburst.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -o $@ $< $(BUILD)/libburst.a $(LIBS)
.PHONY: check-agent
check-agent: build/asan/burst-agent $(KIT) $(BUILD)/e2e/kit_print
	AGENT=$(CURDIR)/build/asan/burst-agent tests/e2e/agent.sh
	BOOTSTRAP=$(CURDIR)/$(BUILD)/e2e/kit_print tests/e2e/agent_files.sh
	tests/e2e/espeak_worker.sh
	@for s in dash busybox bash; do SHELLS=$$s tests/e2e/start_script.sh & pids="$$pids $$!"; done; \
		for p in $$pids; do wait $$p || failed=1; done; [ -z "$$failed" ]

clean:
	rm -rf build

-include $(LIB_OBJ:.o=.d) $(CMD_OBJ:.o=.d) $(UNIT:=.d)
