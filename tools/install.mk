# install.mk - make install [DESTDIR= PREFIX= BINDIR= LIBDIR= INCLUDEDIR= DATADIR= MANDIR=],
# make uninstall with the same variables, and what they need: man, completions, pkg-config and
# CMake files.  Nothing is written outside $(O) but by install and uninstall.
DATADIR     ?= $(PREFIX)/share
BASHCOMPDIR ?= $(DATADIR)/bash-completion/completions
ZSHCOMPDIR  ?= $(DATADIR)/zsh/site-functions
FISHCOMPDIR ?= $(DATADIR)/fish/vendor_completions.d
PCDIR       := $(LIBDIR)/pkgconfig
CMAKEDIR    := $(LIBDIR)/cmake/Kiln

# A command that runs on this machine, for manual pages and completions.
KILN_RUN ?= $(O)/kiln
HEADERS  := $(sort $(wildcard include/*.h))
# What a program that links libkiln.a needs besides: one list for pkg-config and CMake.
PRIVLIBS := -lm -ldl -lpthread

# ---- pkg-config and CMake: relative to where they lie as far as the folders allow it ----
under = $(patsubst $(PREFIX)/%,$${prefix}/%,$(1))
relative = $(shell realpath -m --relative-to=$(CMAKEDIR) $(1))
subst_files = sed -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@LIBDIR@|$(call under,$(LIBDIR))|g' \
    -e 's|@INCLUDEDIR@|$(call under,$(INCLUDEDIR))|g' -e 's|@VERSION@|$(VER)|g' \
    -e 's|@PRIVLIBS@|$(PRIVLIBS)|g' -e 's|@PRIVLIST@|$(patsubst -l%,%,$(PRIVLIBS))|g' \
    -e 's|@SOVERSION@|$(SOVER)|g' -e 's|@MINOR@|$(word 2,$(subst ., ,$(VER)))|g' \
    -e 's|@RELLIB@|$(call relative,$(LIBDIR))|g' -e 's|@RELINCLUDE@|$(call relative,$(INCLUDEDIR))|g'

# ---- manual pages ----
# kiln(1), (3) and (7) are written by hand with lists put in; a command's page is made of what the
# option table says and of docs/man/kiln-COMMAND.1.scd.
.PHONY: man completions install uninstall
man: $(O)/man/.made
$(O)/man/.made: $(O)/kiln tools/man.sh $(wildcard docs/man/*.scd) $(HEADERS)
	@mkdir -p $(@D) && rm -f $(@D)/* $@
	@if command -v scdoc >/dev/null; then KILN=$(KILN_RUN) sh tools/man.sh $(@D) && touch $@; \
	 else echo "scdoc is missing: no manual pages are made"; fi

completions: $(O)/completion/.made
$(O)/completion/.made: $(O)/kiln
	@mkdir -p $(@D)
	@for s in bash zsh fish; do $(KILN_RUN) completion $$s > $(@D)/kiln.$$s || exit 1; done
	@touch $@

# ---- install ----
install: all man completions
	$(INSTALL) -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(LIBDIR) $(DESTDIR)$(PCDIR) $(DESTDIR)$(CMAKEDIR) \
	    $(DESTDIR)$(INCLUDEDIR) $(DESTDIR)$(BASHCOMPDIR) $(DESTDIR)$(ZSHCOMPDIR) \
	    $(DESTDIR)$(FISHCOMPDIR)
	$(INSTALL) -m 755 $(O)/kiln $(DESTDIR)$(BINDIR)/kiln
	$(INSTALL) -m 644 $(HEADERS) $(DESTDIR)$(INCLUDEDIR)/
	$(INSTALL) -m 644 $(O)/libkiln.a $(DESTDIR)$(LIBDIR)/libkiln.a
	$(INSTALL) -m 755 $(O)/$(SO) $(DESTDIR)$(LIBDIR)/$(SO).$(VER)
	ln -sf $(SO).$(VER) $(DESTDIR)$(LIBDIR)/$(SO).$(SOVER)
	ln -sf $(SO).$(SOVER) $(DESTDIR)$(LIBDIR)/$(SO)
	$(subst_files) tools/kiln.pc.in > $(DESTDIR)$(PCDIR)/kiln.pc
	$(subst_files) tools/KilnConfig.cmake.in > $(DESTDIR)$(CMAKEDIR)/KilnConfig.cmake
	$(subst_files) tools/KilnConfigVersion.cmake.in > $(DESTDIR)$(CMAKEDIR)/KilnConfigVersion.cmake
	$(INSTALL) -m 644 $(O)/completion/kiln.bash $(DESTDIR)$(BASHCOMPDIR)/kiln
	$(INSTALL) -m 644 $(O)/completion/kiln.zsh $(DESTDIR)$(ZSHCOMPDIR)/_kiln
	$(INSTALL) -m 644 $(O)/completion/kiln.fish $(DESTDIR)$(FISHCOMPDIR)/kiln.fish
	@for p in $(O)/man/*; do [ -f "$$p" ] || continue; d=$(DESTDIR)$(MANDIR)/man$${p##*.}; \
	    $(INSTALL) -d "$$d" && $(INSTALL) -m 644 "$$p" "$$d/" || exit 1; done

# Removes what install writes, by name, and the folders that are Kiln's own.
uninstall:
	rm -f $(DESTDIR)$(BINDIR)/kiln $(addprefix $(DESTDIR)$(INCLUDEDIR)/,$(notdir $(HEADERS))) \
	    $(DESTDIR)$(LIBDIR)/libkiln.a $(DESTDIR)$(LIBDIR)/$(SO) $(DESTDIR)$(LIBDIR)/$(SO).$(SOVER) \
	    $(DESTDIR)$(LIBDIR)/$(SO).$(VER) $(DESTDIR)$(PCDIR)/kiln.pc \
	    $(DESTDIR)$(CMAKEDIR)/KilnConfig.cmake $(DESTDIR)$(CMAKEDIR)/KilnConfigVersion.cmake \
	    $(DESTDIR)$(BASHCOMPDIR)/kiln $(DESTDIR)$(ZSHCOMPDIR)/_kiln $(DESTDIR)$(FISHCOMPDIR)/kiln.fish \
	    $(foreach p,$(shell sh tools/man.sh --list),$(DESTDIR)$(MANDIR)/man$(lastword $(subst ., ,$(p)))/$(p))
	@rmdir $(DESTDIR)$(CMAKEDIR) 2>/dev/null || true
