# make [O=dir] [V=1] [DEBUG=1] [SAN=address,undefined] [WERROR=1] [CC=clang]
# make demo | check | check-random [N= SEED=] | check-ulp | golden | bench | lint
# make install [DESTDIR= PREFIX=] | uninstall | clean
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
        -Wimplicit-fallthrough
KL_CPPFLAGS := -Iinclude -Isrc -I$(O)/gen -D_POSIX_C_SOURCE=200809L $(CPPFLAGS)
# The user's CFLAGS come first: contraction, strict aliasing and signed overflow are part of
# what the interpreter means, and fast-math would break it (checked in src/base/elem.c).
KL_CFLAGS   := -std=c11 $(WARN) $(if $(WERROR),-Werror) -fPIC -fvisibility=hidden \
               $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer) \
               $(if $(DEBUG),-O1 -g3 -DKL_DEBUG) $(CFLAGS) -ffp-contract=off -fwrapv
KL_LDFLAGS  := $(if $(SAN),-fsanitize=$(SAN)) $(LDFLAGS)
LDLIBS      := -ldl -lpthread -lm
Q := $(if $(V),,@)

LIBSRC := $(sort $(wildcard src/base/*.c src/ir/*.c src/lang/*.c src/opt/*.c src/gen/*/*.c src/rt/*.c src/lib/*.c))
CLISRC := $(sort $(wildcard src/cli/*.c))
obj     = $(patsubst %.c,$(O)/%.o,$(1))
SO     := libkiln.so

all: $(O)/libkiln.a $(O)/$(SO) $(O)/kiln

$(O)/libkiln.a: $(call obj,$(LIBSRC)) $(O)/gen/embedded.o
	@echo "  AR   $@"
	$(Q)rm -f $@ && $(AR) rcs $@ $^
$(O)/$(SO): $(call obj,$(LIBSRC)) $(O)/gen/embedded.o
	@echo "  LD   $@"
	$(Q)$(CC) $(KL_LDFLAGS) -shared -Wl,-soname,$(SO).$(SOVER) -o $@ $^ $(LDLIBS)
	$(Q)ln -sf $(@F) $(O)/$(SO).$(SOVER)
$(O)/kiln: $(call obj,$(CLISRC)) $(O)/libkiln.a
	@echo "  LD   $@"
	$(Q)$(CC) $(KL_LDFLAGS) -o $@ $^ $(LDLIBS) -ljansson
$(O)/%.o: %.c
	@echo "  CC   $<"
	@mkdir -p $(@D)
	$(Q)$(CC) $(KL_CPPFLAGS) $(KL_CFLAGS) -MMD -MP -c -o $@ $<

# Kiln sources that #include <...> finds
EMBED := $(sort $(wildcard src/lang/include/*.kiln))
$(O)/gen/embedded.c: tools/embed.awk $(EMBED)
	@mkdir -p $(@D)
	$(Q)awk -f tools/embed.awk $(EMBED) > $@
$(O)/gen/embedded.o: $(O)/gen/embedded.c
	$(Q)$(CC) $(KL_CPPFLAGS) $(KL_CFLAGS) -MMD -MP -c -o $@ $<

clean:
	rm -rf $(O) $(O)-clang $(O)-san

.PHONY: all clean tests check check-random check-ulp golden lint demo bench install uninstall $(O)/kiln.pc
.SECONDARY:
-include $(shell find $(O) -name '*.d' 2>/dev/null)
