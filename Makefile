# make [O=dir] [V=1] [DEBUG=1] [SAN=address,undefined] [WERROR=1] [CC=clang]
# make demo | check | check-random [N= SEED=] | check-kernels | check-ulp | check-build | check-model
#      | check-occupancy | golden | bench | report-example | lint
# make install [DESTDIR= PREFIX= LIBDIR=] | uninstall | man | completions | clean
O          ?= build
PREFIX     ?= /usr/local
BINDIR     ?= $(PREFIX)/bin
LIBDIR     ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR     ?= $(PREFIX)/share/man
INSTALL    ?= install

CC     ?= cc
CFLAGS ?= -O2 -g
VER    := $(shell awk '/^.define KILN_VERSION_(MAJOR|MINOR|PATCH) /{printf "%s%s",s,$$3; s="."}' include/kiln.h)
SOVER  := $(word 1,$(subst ., ,$(VER)))

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wstrict-prototypes \
        -Wmissing-prototypes -Wdouble-promotion -Wundef -Wvla -Wwrite-strings -Wformat=2 \
        -Wimplicit-fallthrough -Wno-overlength-strings
KL_CPPFLAGS := -Iinclude -Isrc -I$(O)/gen -D_POSIX_C_SOURCE=200809L $(CPPFLAGS)
# The user's CFLAGS come first: contraction, strict aliasing and signed overflow are part of
# what the interpreter means, and fast-math would break it (checked in src/base/elem.c).
KL_CFLAGS   := -std=c11 $(WARN) $(if $(WERROR),-Werror) -fPIC -fvisibility=hidden \
               $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer) \
               $(if $(DEBUG),-O1 -g3 -DKL_DEBUG) $(CFLAGS) -ffp-contract=off -fwrapv
KL_LDFLAGS  := $(if $(SAN),-fsanitize=$(SAN)) $(LDFLAGS)
LDLIBS      := -ldl -lpthread -lm
Q := $(if $(V),,@)

LIBSRC := $(sort $(wildcard src/base/*.c src/ir/*.c src/lang/*.c src/opt/*.c src/layout/*.c src/gen/*/*.c src/sim/*.c src/model/*.c src/rt/*.c src/lib/*.c))
CLISRC := $(sort $(wildcard src/cli/*.c src/cli/*/*.c))
obj     = $(patsubst %.c,$(O)/%.o,$(1))
SO     := libkiln.so

all: $(O)/libkiln.a $(O)/$(SO) $(O)/kiln

$(O)/libkiln.a: $(call obj,$(LIBSRC)) $(O)/gen/embedded.o $(O)/gen/tuned.o $(O)/gen/texts.o
	@echo "  AR   $@"
	$(Q)rm -f $@ && $(AR) rcs $@ $^
$(O)/$(SO): $(call obj,$(LIBSRC)) $(O)/gen/embedded.o $(O)/gen/tuned.o $(O)/gen/texts.o
	@echo "  LD   $@"
	$(Q)$(CC) $(KL_LDFLAGS) -shared -Wl,-soname,$(SO).$(SOVER) -o $@ $^ $(LDLIBS)
	$(Q)ln -sf $(@F) $(O)/$(SO).$(SOVER)
$(O)/kiln: $(call obj,$(CLISRC)) $(O)/gen/report_css.o $(O)/libkiln.a
	@echo "  LD   $@"
	$(Q)$(CC) $(KL_LDFLAGS) -o $@ $^ $(LDLIBS) -ljansson
$(O)/%.o: %.c
	@echo "  CC   $<"
	@mkdir -p $(@D)
	$(Q)$(CC) $(KL_CPPFLAGS) $(KL_CFLAGS) -MMD -MP -c -o $@ $<

# The build id is part of cache keys: version and a checksum of what the library is made of.
IDSRC := $(LIBSRC) $(wildcard kernels/*.kiln src/*/*.def src/*/*.h src/gen/*/*.def src/gen/*/*.h src/gen/*/*.inc src/lib/*.inc include/*.h)
$(O)/src/lib/info.o: $(IDSRC)
$(O)/src/lib/info.o: KL_CPPFLAGS += -DKL_BUILD_ID='"$(VER)-$(shell cat $(IDSRC) | cksum | cut -d" " -f1)"'

# Kiln sources that #include <...> finds: src/lang/include/X as X, kernels/X as kernels/X
EMBED := $(sort $(wildcard src/lang/include/*.kiln kernels/*.kiln))
# and what kiln tune found for them
TUNED := $(sort $(wildcard kernels/*.kiln.tune))
$(O)/gen/embedded.c: tools/embed.awk $(EMBED)
	@mkdir -p $(@D)
	$(Q)awk -f tools/embed.awk $(EMBED) > $@
$(O)/gen/tuned.c: tools/embed.awk $(TUNED) kernels
	@mkdir -p $(@D)
	$(Q)awk -v FN=kl_embedded_tune -f tools/embed.awk $(TUNED) < /dev/null > $@
# C that generated files contain: of the CPU back end, and of kiln build
TEXTS := src/base/place.h $(sort $(wildcard src/gen/c/*.inc src/lib/*.inc))
$(O)/gen/texts.c: tools/ctext.awk $(TEXTS)
	@mkdir -p $(@D)
	$(Q)awk -f tools/ctext.awk $(TEXTS) > $@
# The style of the page of kiln report
$(O)/gen/report_css.c: tools/cssarray.awk src/cli/report/report.css
	@mkdir -p $(@D)
	$(Q)awk -f tools/cssarray.awk src/cli/report/report.css > $@
$(O)/gen/embedded.o $(O)/gen/tuned.o $(O)/gen/texts.o $(O)/gen/report_css.o: %.o: %.c
	$(Q)$(CC) $(KL_CPPFLAGS) $(KL_CFLAGS) -MMD -MP -c -o $@ $<

# ---- tests ----
# Each source in tests/unit, api, oom, fuzz and bench/demo is a program of its own.
$(O)/libcli.a: $(call obj,$(filter-out src/cli/main.c,$(CLISRC))) $(O)/gen/report_css.o
	$(Q)rm -f $@ && $(AR) rcs $@ $^

TESTLIBS  = $(O)/libcli.a $(O)/libkiln.a
unit     := $(patsubst %.c,$(O)/%,$(wildcard tests/unit/*.c tests/api/*.c tests/oom/*.c))
KT       := $(sort $(wildcard tests/kt*.c))
RANDOM   := $(sort $(wildcard tests/random/*.c))
SWEEP    := $(sort $(wildcard tests/sweep/*.c))
AOT      := $(sort $(wildcard tests/aot/*.c))
ERRORS   := $(sort $(wildcard tests/errors/*.c))

$(unit): %: %.o $(TESTLIBS)
	@echo "  LD   $@"
	$(Q)$(CC) $(KL_LDFLAGS) -o $@ $^ -lcmocka -ljansson $(LDLIBS)
$(O)/tests/kt: $(call obj,$(KT)) $(O)/libkiln.a
	@echo "  LD   $@"
	$(Q)$(CC) $(KL_LDFLAGS) -o $@ $^ $(LDLIBS)
# The folder tests/random of objects lies beside: hence the suffix.
$(O)/tests/random-programs: $(call obj,$(RANDOM)) $(O)/libkiln.a
	@echo "  LD   $@"
	$(Q)$(CC) $(KL_LDFLAGS) -o $@ $^ $(LDLIBS)
$(O)/tests/shape-sweep: $(call obj,$(SWEEP)) $(O)/libkiln.a
	@echo "  LD   $@"
	$(Q)$(CC) $(KL_LDFLAGS) -o $@ $^ $(LDLIBS)
$(O)/tests/aot-check: $(call obj,$(AOT)) $(TESTLIBS)
	@echo "  LD   $@"
	$(Q)$(CC) $(KL_LDFLAGS) -o $@ $^ -ljansson $(LDLIBS)
$(O)/tests/model-agree: $(call obj,$(sort $(wildcard tests/explain/*.c)) $(filter-out tests/random/main.c,$(RANDOM))) $(TESTLIBS)
	@echo "  LD   $@"
	$(Q)$(CC) $(KL_LDFLAGS) -o $@ $^ -ljansson $(LDLIBS)
$(O)/tests/kernel-errors: $(call obj,$(ERRORS)) $(O)/libkiln.a
	@echo "  LD   $@"
	$(Q)$(CC) $(KL_LDFLAGS) -o $@ $^ $(LDLIBS)
$(O)/tests/launches: $(O)/tests/launch/launch.o $(TESTLIBS)
	@echo "  LD   $@"
	$(Q)$(CC) $(KL_LDFLAGS) -o $@ $^ -ljansson $(LDLIBS)
$(O)/tests/device-check: $(O)/tests/device/device.o $(O)/tests/device/shared.o
$(O)/tests/compile-times: $(O)/tests/times/compile.o
$(O)/tests/device-check $(O)/tests/compile-times: $(O)/libkiln.a
	@echo "  LD   $@"
	$(Q)$(CC) $(KL_LDFLAGS) -o $@ $(filter %.o,$^) $(O)/libkiln.a $(LDLIBS)
$(O)/tests/ulp-check: $(O)/tests/ulp/ulp.o $(O)/tests/ulp/pow.o $(O)/libkiln.a
	@echo "  LD   $@"
	$(Q)$(CC) $(KL_LDFLAGS) -o $@ $^ -lmpfr $(LDLIBS)

# Each fuzz target with a main that replays files and variants of them.
replay := $(patsubst tests/fuzz/%.c,$(O)/tests/replay/%,$(filter-out tests/fuzz/replay.c,$(wildcard tests/fuzz/*.c)))
$(replay): $(O)/tests/replay/%: $(O)/tests/fuzz/%.o $(O)/tests/fuzz/replay.o $(TESTLIBS)
	@mkdir -p $(@D)
	@echo "  LD   $@"
	$(Q)$(CC) $(KL_LDFLAGS) -o $@ $^ -ljansson $(LDLIBS)

# A CUDA driver that runs PTX in src/sim; under its true name for programs that look for it.
FAKECUDA := $(O)/tests/fakecuda/libcuda-fake.so
$(FAKECUDA): $(call obj,tests/fakecuda/fakecuda.c) $(O)/libkiln.a
	@echo "  LD   $@"
	$(Q)$(CC) $(KL_LDFLAGS) -shared -Wl,--exclude-libs,ALL -o $@ $^ $(LDLIBS)
	$(Q)ln -sf $(@F) $(@D)/libcuda.so.1
$(O)/tests/unit/test_cuda $(O)/tests/unit/test_graph $(O)/tests/unit/test_trace: | $(FAKECUDA)
# The toolkit's own rule, where it is installed.
CUDA_HOME ?= /usr/local/cuda
$(O)/tests/unit/test_occupancy.o: KL_CPPFLAGS += $(if $(wildcard $(CUDA_HOME)/include/cuda_occupancy.h),-isystem $(CUDA_HOME)/include)

# A profiler's library for NVTX that prints the ranges it hears of.
INJECTION := $(O)/tests/nvtx/libinjection.so
$(INJECTION): $(call obj,tests/nvtx/injection.c)
	@echo "  LD   $@"
	$(Q)$(CC) $(KL_LDFLAGS) -shared -o $@ $^

tests: $(FAKECUDA) $(INJECTION) $(unit) $(replay) $(O)/tests/kt $(O)/tests/random-programs \
       $(O)/tests/shape-sweep $(O)/tests/device-check $(O)/tests/compile-times $(O)/tests/ulp-check \
       $(O)/tests/aot-check $(O)/tests/model-agree $(O)/tests/kernel-errors \
       $(O)/tests/launches $(O)/bench/gpu/latency

# deps.sh may install the compiler that the rest needs, so it runs before a make of its own.
check:
	@sh tools/deps.sh check
	@MAKE="$(MAKE)" O=$(O) sh tools/check.sh
check-random: tests
	$(O)/tests/random-programs -n $(or $(N),1000) -s $(or $(SEED),1) -j 2
	$(O)/tests/random-programs --ops -j 2
check-model: $(O)/tests/model-agree
	@for a in 80 86 89 90 100 120; do for s in "" --no-swizzle; do \
	    echo "sm_$$a $$s"; \
	    $(O)/tests/model-agree --arch $$a $$s kernels/*.kiln tests/run/*.kiln tests/explain/bad/*.kiln \
	        --random 1000 1 || exit 1; \
	done; done
# kiln check of every kernel of the library, in the interpreter and as PTX; random racy kernels on both.
check-kernels: all
	@for f in kernels/*.kiln; do for d in interp sim; do \
	    $(O)/kiln check $$f --device $$d > $(O)/check.out || { echo "$$f on $$d"; cat $(O)/check.out; exit 1; }; \
	done; done; echo "all clean"
	@python3 tests/check/random.py $(O)/kiln $(or $(SEED),0)
check-ulp: $(O)/tests/ulp-check $(O)/tests/unit/test_f8
	$(O)/tests/ulp-check --threads 2
	KILN_TEST_EXHAUSTIVE=1 $(O)/tests/unit/test_f8
# Every case of kernels/ built ahead of time, in one and several threads, at each level of the CPU
# and on the stand-in for a driver, and what they refuse.
check-build: all tests
	$(O)/tests/aot-check --launches kernels/*.kiln
	$(O)/tests/aot-check --cc "cc -DKL_CPU_LEVEL=3 -DKL_NO_V4" --every 3 kernels/*.kiln
	LD_LIBRARY_PATH=$(O)/tests/fakecuda $(O)/tests/aot-check --cuda --cc "cc -DKL_NO_V4" kernels/*.kiln
	sh tests/aot/whole.sh $(O)/kiln kernels/*.kiln
check-occupancy: $(O)/tests/unit/test_occupancy
	KILN_TEST_EXHAUSTIVE=1 $(O)/tests/unit/test_occupancy
golden: all tests
	$(O)/tests/kt --update --kiln $(abspath $(O))/kiln
lint: all
	@sh tools/deps.sh lint
	@O=$(O) sh tools/lint.sh

# ---- demo and benchmark ----
demo:
	@sh tools/deps.sh build
	@$(MAKE) --no-print-directory -j2 all $(O)/bench/demo/demo
	@$(O)/bench/demo/demo --data $(O)/demo
$(O)/bench/demo/demo: $(call obj,$(sort $(wildcard bench/demo/*.c))) $(O)/libkiln.a
	@echo "  LD   $@"
	$(Q)$(CC) $(KL_LDFLAGS) -o $@ $^ $(LDLIBS)
# A page of three kernels with times of this CPU: $(O)/report.html
report-example: $(O)/kiln
	$(Q)O=$(O) sh tools/report-example.sh
bench: all $(O)/bench/cpu/kernels
	python3 bench/cpu/peers.py --build $(O)
$(O)/bench/cpu/kernels $(O)/bench/cpu/gdn: %: %.o $(O)/libkiln.a
	@echo "  LD   $@"
	$(Q)$(CC) $(KL_LDFLAGS) -o $@ $^ $(LDLIBS)
$(O)/bench/gpu/kernels $(O)/bench/gpu/launch $(O)/bench/gpu/latency: %: %.o $(O)/libkiln.a
	@echo "  LD   $@"
	$(Q)$(CC) $(KL_LDFLAGS) -o $@ $^ $(LDLIBS)
include tools/install.mk

clean:
	rm -rf $(O) $(O)-san $(O)-tsan

.PHONY: all clean tests check check-random check-kernels check-ulp check-build check-model check-occupancy golden lint demo \
        bench report-example
.SECONDARY:
-include $(shell find $(O) -name '*.d' 2>/dev/null)
