# kota: see `make help`. One Makefile, not recursive; objects go to build/$(config).
#
# config=release (default) | debug | asan | tsan | fuzz | cov
# V=1 shows the commands, T="name ..." runs only these test programs, WORLD=DIR serves your own terrain.

config ?= release
PREFIX ?= /usr/local
DESTDIR ?=
B := build/$(config)

ifeq ($(filter $(config),release debug asan tsan fuzz cov),)
$(error config=$(config) is not one of release, debug, asan, tsan, fuzz, cov)
endif

ifeq ($(config),fuzz)
CC := clang
endif
CC ?= cc
PKG_CONFIG ?= pkg-config
Q := $(if $(V),,@)

# ---- components of the distribution ---------------------------------------------------------
PACKAGES := libuv libcjson libpng libtiff-4 assimp sqlite3 zlib libzstd epoxy egl libpq libcrypto
SERVER_PC_CFLAGS := $(shell $(PKG_CONFIG) --cflags $(PACKAGES) 2>/dev/null)
SERVER_PC_LIBS := $(shell $(PKG_CONFIG) --libs $(PACKAGES) 2>/dev/null)

# llhttp is a library with a .pc file on newer systems; Debian 12 ships its sources in node-llhttp.
LLHTTP_SRC :=
ifeq ($(shell $(PKG_CONFIG) --exists libllhttp 2>/dev/null && echo yes),yes)
LLHTTP_CFLAGS := $(shell $(PKG_CONFIG) --cflags libllhttp)
LLHTTP_LIBS := $(shell $(PKG_CONFIG) --libs libllhttp)
else
LLHTTP_DIR ?= /usr/share/llhttp
LLHTTP_CFLAGS := -isystem /usr/share/include/llhttp -DLLHTTP_STRICT_MODE=1
LLHTTP_SRC := api http llhttp
LLHTTP_LIBS :=
endif

# ---- flags ----------------------------------------------------------------------------------
WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wvla -Wmissing-prototypes -Wstrict-prototypes -Wno-psabi
ifdef CI
WARNINGS += -Werror
endif
# The one place of the version is client/lib/kota.h.
VERSION := $(shell awk '/define KOTA_VERSION_/ {printf "%s%s", dot, $$3; dot = "."}' client/lib/kota.h)
CPPFLAGS += -DKOTA_VERSION='"$(VERSION)"' -Iserver -Iproto -Itests -I. -D_GNU_SOURCE $(SERVER_PC_CFLAGS) $(LLHTTP_CFLAGS)
CFLAGS_COMMON := -std=c17 -g -ffp-contract=off -fno-math-errno -pthread $(WARNINGS)
# What this compiler and this processor have of it; tests/api/test_hardening.py looks at the result.
has_flag = $(shell $(CC) -Werror $(1) -O2 -c -x c /dev/null -o /dev/null 2>/dev/null && echo $(1))
FORTIFY := $(if $(call has_flag,-D_FORTIFY_SOURCE=3 -include features.h),3,2)
HARDENING := -fstack-protector-strong -fPIE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$(FORTIFY) \
	$(call has_flag,-fstack-clash-protection) $(call has_flag,-fcf-protection)
LDFLAGS_COMMON := -pthread -Wl,--as-needed
LDLIBS := $(SERVER_PC_LIBS) $(LLHTTP_LIBS) -lm

# Clearing and copying some hundred bytes takes gcc a `rep stosq`, which begins for 10 ns before it
# does anything; a loop over vectors has ended by then.
comma := ,
INLINE_BYTES := vector_loop:512:noalign$(comma)libcall:-1:noalign
INLINING := $(call has_flag,-mmemset-strategy=$(INLINE_BYTES) -mmemcpy-strategy=$(INLINE_BYTES))

CFLAGS_release := -O2 $(HARDENING) $(INLINING)
LDFLAGS_release := -pie -Wl,-z,relro,-z,now,-z,noexecstack,-z,separate-code
CFLAGS_debug := -O0 -DKOTA_VALIDATE
CFLAGS_asan := -O1 -fno-omit-frame-pointer -fsanitize=address,undefined \
	-fno-sanitize-recover=undefined -DKOTA_VALIDATE
LDFLAGS_asan := -fsanitize=address,undefined
CFLAGS_tsan := -O1 -fsanitize=thread
# also in a program that does not call it: libuv does (base/tsan_close.c)
LDFLAGS_tsan := -fsanitize=thread -Wl,--undefined=syscall
# lines are enough of debug information for a report, and a fifth less to compile
CFLAGS_fuzz := -O1 -gline-tables-only -fno-omit-frame-pointer \
	-fsanitize=fuzzer-no-link,address,undefined \
	-fno-sanitize-recover=undefined -Wno-gnu-variable-sized-type-not-at-end
LDFLAGS_fuzz := -fsanitize=address,undefined
CFLAGS_cov := -O0 --coverage
LDFLAGS_cov := --coverage

ALL_CFLAGS = $(CFLAGS_COMMON) $(CFLAGS_$(config)) $(CFLAGS)
ALL_LDFLAGS = $(LDFLAGS_COMMON) $(LDFLAGS_$(config)) $(LDFLAGS)

# ---- what is built --------------------------------------------------------------------------
MAIN := server/daemon/main.c
SERVER_SRC := $(filter-out $(MAIN),$(sort $(shell find server -name '*.c')))
WORLDGEN_SRC := $(sort $(wildcard deploy/demo/*.c))
SANDSCENE_SRC := $(sort $(wildcard tests/bench/sandscene/*.c))
CLIENT_SRC := $(sort $(wildcard client/*.c client/bench/*.c client/commands/*.c))
LIBKOTA_SRC := $(sort $(wildcard client/lib/*.c))
GROUND_SRC := $(sort $(wildcard client/ground/*.c))
EXAMPLE_SRC := $(sort $(wildcard client/examples/*.c))
UNIT_SRC := $(sort $(wildcard tests/unit/test_*.c))
SUPPORT_SRC := $(sort $(wildcard tests/support/*.c))
FUZZ_SRC := $(sort $(wildcard tests/fuzz/fuzz_*.c))
BENCH_SRC := $(sort $(filter-out %/bench_map.c,$(wildcard tests/bench/bench_*.c)))

obj = $(patsubst %.c,$(B)/%.o,$(1))
LLHTTP_OBJ := $(LLHTTP_SRC:%=$(B)/llhttp/%.o)
# Kernels that are compiled once per instruction set: for every processor, and for AVX2 (simd.h).
IS_X86_64 := $(findstring x86_64,$(shell $(CC) -dumpmachine))
KERNELS_AVX2 := $(if $(IS_X86_64),$(patsubst %,$(B)/server/%.avx2.o, \
	$(addprefix terrain/kernels/,floor_query ray_tree_query shadow_query) \
	$(addprefix sand/engine_c/,solver_forces solver_list)))
SERVER_OBJ := $(call obj,$(SERVER_SRC)) $(KERNELS_AVX2) $(LLHTTP_OBJ)
CORE := $(B)/libkotacore.a

PROGRAMS := $(B)/kotad $(B)/kota $(B)/kota-worldgen $(B)/kota-sand
UNIT_TESTS := $(UNIT_SRC:tests/unit/%.c=$(B)/tests/%)
MANUALS := $(addprefix $(B)/man/,kota.1 kotad.8)
# What tests/unit/test_client_*.c may link: the client without its commands and main().
CLIENT_PARTS := $(filter-out client/kota.c client/batch.c client/commands/%.c, $(CLIENT_SRC))
# Each fuzz target also builds as a plain program that replays its corpus.
FUZZ_REPLAYS := $(FUZZ_SRC:tests/fuzz/%.c=$(B)/tests/replay_%)
FUZZERS := $(FUZZ_SRC:tests/fuzz/%.c=$(B)/fuzz/%)
BENCHES := $(BENCH_SRC:tests/bench/%.c=$(B)/bench/%)

# The client library: shared, static, and how others find it. Nothing but kota_* leaves either.
LIB_SONAME := libkota.so.$(firstword $(subst ., ,$(VERSION)))
LIB_SHARED := $(B)/lib/libkota.so.$(VERSION)
LIBKOTA := $(B)/lib/libkota.a
GROUND_SONAME := libkota-ground.so.$(firstword $(subst ., ,$(VERSION)))
GROUND_SHARED := $(B)/lib/libkota-ground.so.$(VERSION)
LIBGROUND := $(B)/lib/libkota-ground.a
LIB_FILES := $(LIB_SHARED) $(LIBKOTA) $(B)/lib/pkgconfig/libkota.pc $(B)/include/kota.h \
	$(B)/include/kota-sand.h \
	$(GROUND_SHARED) $(LIBGROUND) $(B)/lib/pkgconfig/libkota-ground.pc $(B)/include/kota-ground.h
EXAMPLES := $(EXAMPLE_SRC:client/examples/%.c=$(B)/examples/%)
EXAMPLE_LIBS := $(shell $(PKG_CONFIG) --cflags --libs libuv 2>/dev/null)
# What it takes of the server, compiled again for a shared library.
LIB_OBJ := $(patsubst %.c,$(B)/pic/%.o,$(LIBKOTA_SRC) server/base/text/json_number.c \
	server/base/text/power_of_ten.c server/formats/feed_frames.c)
# libkota-ground: questions about ground without a daemon. What is listed here is all that may be in
# it: no socket, no library but libc and libm.
GROUND_PARTS := $(sort $(wildcard $(addprefix server/terrain/,bvh/*.c field/*.c field_ray/*.c \
	instances/*.c kernels/*.c mesh/*.c radial/*.c sweep/*.c))) $(addprefix server/terrain/,motion.c pick.c sight.c trig.c) \
	$(addprefix server/base/,content_hash.c err.c huge.c slab.c text/nearest_word.c text/number_read.c \
	text/power_of_ten.c) \
	$(addprefix server/formats/,feed_frames.c float_layout.c polygon/polygon_edit.c polygon/polygon_set.c) \
	$(addprefix server/json/,json_check.c json_value.c) \
	$(addprefix server/world/ask/,across.c layer_ask.c locate.c query.c sweep.c) \
	$(addprefix server/world/values/,bounding_sphere.c layer.c locale.c locale_index.c models.c pins.c placement.c \
	snapshot.c threads.c)
GROUND_OBJ := $(patsubst %.c,$(B)/pic/%.o,$(GROUND_SRC) $(GROUND_PARTS)) \
	$(patsubst $(B)/%,$(B)/pic/%,$(filter %terrain/kernels/floor_query.avx2.o \
	%terrain/kernels/ray_tree_query.avx2.o %terrain/kernels/shadow_query.avx2.o,$(KERNELS_AVX2)))
LIB_PC_LIBS := $(shell $(PKG_CONFIG) --libs libuv libcjson libcurl libzstd 2>/dev/null)

# Makes chosen calls of a daemon fail; tests/faults/run.py preloads it.
FAULTS := $(B)/faults/inject.so

.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:
.PHONY: all run test bench bench-sand fuzz tidy format cover install uninstall help clean

all: $(PROGRAMS) $(MANUALS) $(LIB_FILES)

$(CORE): $(SERVER_OBJ)
	@rm -f $@
	$(Q)$(AR) rcs $@ $^

$(B)/kotad: $(call obj,$(MAIN)) $(CORE)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS)

$(B)/kota-worldgen: $(call obj,$(WORLDGEN_SRC)) $(CORE)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS)

$(B)/kota-sand: $(call obj,$(SANDSCENE_SRC)) $(CORE)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS)

$(B)/kota: $(call obj,$(CLIENT_SRC)) $(LIBKOTA) $(CORE)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS) $(LIB_PC_LIBS)

# libkota.so finds libkota-ground.so beside itself; in Debian's folder both are found anyway.
LIB_RPATH ?= -Wl,-rpath,'$$ORIGIN'

# lib_shared SONAME,MAP: of the objects among the prerequisites
lib_shared = -shared -pthread -Wl,--as-needed -Wl,-z,nodelete,-z,noexecstack -Wl,-soname,$(1) \
	-Wl,--version-script=$(2) $(filter-out -pie,$(LDFLAGS_$(config))) $(LDFLAGS)
lib_links = ln -sf $(@F) $(@D)/$(1) && ln -sf $(1) $(@D)/$(firstword $(subst .so., ,$(1))).so

$(LIB_SHARED): $(LIB_OBJ) client/lib/libkota.map $(GROUND_SHARED)
	@mkdir -p $(@D)
	$(Q)$(CC) $(call lib_shared,$(LIB_SONAME),client/lib/libkota.map) -o $@ $(LIB_OBJ) \
		$(LIB_RPATH) -L$(B)/lib -lkota-ground $(LIB_PC_LIBS) -lm
	@$(call lib_links,$(LIB_SONAME))

$(GROUND_SHARED): $(GROUND_OBJ) client/ground/libkota-ground.map
	@mkdir -p $(@D)
	$(Q)$(CC) $(call lib_shared,$(GROUND_SONAME),client/ground/libkota-ground.map) -o $@ $(GROUND_OBJ) \
		$(if $(filter release debug,$(config)),-Wl$(comma)-z$(comma)defs) -lm
	@$(call lib_links,$(GROUND_SONAME))

# Objects whose other names are their own. A program without a replica takes one of libkota.a's three.
$(B)/lib/libkota.o: $(filter-out %/replica.o,$(LIB_OBJ))
$(B)/lib/libkota-ground.o: $(GROUND_OBJ)
$(B)/lib/libkota.o $(B)/lib/libkota-ground.o:
	@mkdir -p $(@D)
	$(Q)$(LD) -r -o $@ $^
	$(Q)$(OBJCOPY) --wildcard --keep-global-symbol='$(subst -,_,$(patsubst lib%.o,%,$(@F)))_*' $@

$(LIBKOTA): $(B)/lib/libkota.o $(B)/pic/client/lib/replica.o $(B)/lib/libkota-ground.o
$(LIBGROUND): $(B)/lib/libkota-ground.o
$(LIBKOTA) $(LIBGROUND):
	@rm -f $@
	$(Q)$(AR) rcs $@ $^
OBJCOPY ?= objcopy

# pc PREFIX INCLUDEDIR LIBDIR: of the first prerequisite
pc = sed -e 's|@PREFIX@|$(1)|' -e 's|@INCLUDEDIR@|$(2)|' -e 's|@LIBDIR@|$(3)|' \
	-e 's|@VERSION@|$(VERSION)|' $<

# For programs that are built beside this tree, and for the tests.
$(B)/lib/pkgconfig/libkota.pc: client/lib/libkota.pc.in client/lib/kota.h Makefile
$(B)/lib/pkgconfig/libkota-ground.pc: client/ground/libkota-ground.pc.in client/lib/kota.h Makefile
$(B)/lib/pkgconfig/%.pc:
	@mkdir -p $(@D)
	$(Q)$(call pc,$(CURDIR)/$(B),$(CURDIR)/$(B)/include,$(CURDIR)/$(B)/lib) >$@

$(B)/include/kota.h: client/lib/kota.h
$(B)/include/kota-sand.h: client/lib/kota-sand.h
$(B)/include/kota-ground.h: client/ground/kota-ground.h
$(B)/include/%.h:
	@mkdir -p $(@D)
	$(Q)cp $< $@

# As another program would be built: by the installed header's name, against the shared library.
$(B)/examples/%: client/examples/%.c $(LIB_FILES) Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c17 -D_GNU_SOURCE $(filter-out -fPIE,$(CFLAGS_$(config))) -g $(WARNINGS) \
		-I$(B)/include -o $@ $< -L$(B)/lib -lkota -lkota-ground -Wl,-rpath,'$$ORIGIN/../lib' \
		$(filter-out -pie,$(LDFLAGS_$(config))) $(CFLAGS) $(EXAMPLE_LIBS) -pthread -lm

# The tests of the libraries have the static ones, whose inside they cannot see, and nothing of the
# server.
LIBKOTA_SUPPORT := tests/support/fake_http.c tests/support/kotad_process.c tests/support/tcp_proxy.c
LIBKOTA_TESTS := $(filter $(B)/tests/test_libkota_% $(B)/tests/test_replica,$(UNIT_TESTS))
$(LIBKOTA_TESTS): $(B)/tests/%: $(B)/tests/unit/%.o $(call obj,$(LIBKOTA_SUPPORT)) $(LIBKOTA)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LIB_PC_LIBS) -lm \
		$(shell $(PKG_CONFIG) --libs cmocka)

$(B)/tests/test_replica: $(call obj,$(wildcard tests/support/replica/*.c))

$(B)/tests/%: $(B)/tests/unit/%.o $(call obj,$(SUPPORT_SRC)) $(CORE)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(CORE) $(LDLIBS) $(shell $(PKG_CONFIG) --libs cmocka)

# Of kota-sand.
$(B)/tests/test_sand_packing $(B)/tests/test_sand_gl_heap: \
	$(call obj,tests/bench/sandscene/packing_bake.c)

# A shared log in memory replaces the one of the library.
$(addprefix $(B)/tests/,test_world_follow test_world_follow_doubt): \
	$(call obj,$(wildcard tests/support/follow/*.c))

$(addprefix $(B)/tests/,$(notdir $(basename $(wildcard tests/unit/test_ground*.c)))): \
	$(call obj,$(GROUND_SRC))

# Of the library's inside, which libkota.a hides.
$(B)/tests/test_client_sse: $(call obj,client/lib/sse.c client/lib/text.c)

$(B)/tests/test_client_%: $(B)/tests/unit/test_client_%.o $(call obj,$(CLIENT_PARTS)) \
		$(call obj,$(SUPPORT_SRC)) $(LIBKOTA) $(CORE)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LDLIBS) $(shell $(PKG_CONFIG) --libs cmocka) $(LIB_PC_LIBS)

# The generator too: its tests link everything of it but main.
WORLDGEN_PARTS := $(filter-out deploy/demo/main.c,$(WORLDGEN_SRC))
$(B)/tests/test_worldgen_%: $(B)/tests/unit/test_worldgen_%.o $(call obj,$(WORLDGEN_PARTS)) \
		$(call obj,$(SUPPORT_SRC)) $(CORE)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS) $(shell $(PKG_CONFIG) --libs cmocka)

$(B)/tests/replay_%: $(B)/tests/fuzz/%.o $(B)/tests/fuzz/replay.o $(CORE)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter-out $(CORE),$^) $(CORE) $(LDLIBS)

$(B)/fuzz/%: $(B)/tests/fuzz/%.o $(CORE)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -fsanitize=fuzzer -o $@ $(filter-out $(CORE),$^) $(CORE) $(LDLIBS)

$(B)/fuzz/fuzz_follow $(B)/tests/replay_fuzz_follow: $(call obj,$(GROUND_SRC))

$(FAULTS): tests/faults/inject.c Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) -D_GNU_SOURCE -std=c17 -O2 -fPIC -shared $(WARNINGS) -o $@ $<

# Fixtures among the support files fail tests through cmocka.
$(B)/bench/%: $(B)/tests/bench/%.o $(call obj,$(SUPPORT_SRC)) $(CORE)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LDLIBS) \
		$(shell $(PKG_CONFIG) --libs cmocka)

$(B)/bench/bench_replica: $(LIBKOTA)
$(B)/bench/bench_replica: LDLIBS += $(LIB_PC_LIBS)

# What contact is compared with is there when its package is (deploy/install-deps.sh bench); only
# the benchmark asks. Bullet is the only C++, and with it g++ links. Peers are weak symbols.
CONTACT_PEERS := $(B)/bench/bench_contact_peers $(B)/bench/bench_lit_peers \
	$(B)/bench/bench_frames_peers $(B)/bench/bench_mesh_ray_peers $(B)/bench/bench_sweep_peers
FIELD_PEERS := $(filter $(B)/bench/bench_ray_peers $(B)/bench/bench_height_peers,$(BENCHES))
ifneq ($(filter bench bench-all $(CONTACT_PEERS) $(FIELD_PEERS),$(MAKECMDGOALS)),)
has_header = $(shell $(CC) -E -include $(1) -x c /dev/null >/dev/null 2>&1 && echo yes)
EMBREE := $(firstword $(foreach version,4 3,$(if $(call has_header,embree$(version)/rtcore.h),\
	embree$(version))))
BULLET := $(shell $(PKG_CONFIG) --exists bullet && command -v $(firstword $(CXX)) >/dev/null && \
	echo bullet)
PEER_OBJ := $(if $(EMBREE),$(B)/tests/bench/peer_embree.o) \
	$(if $(BULLET),$(B)/tests/bench/peer_bullet.o)
FIELD_PEER_OBJ := $(PEER_OBJ:%.o=%_field.o)
PEER_LIBS := $(EMBREE:%=-l%) $(if $(BULLET),-lBulletCollision -lLinearMath)
# links again when a package has come or gone
ifneq ($(strip $(file <$(B)/bench/peers)),$(strip $(EMBREE) $(BULLET)))
$(shell mkdir -p $(B)/bench && echo $(EMBREE) $(BULLET) >$(B)/bench/peers)
endif
endif

$(CONTACT_PEERS): $(B)/bench/%: $(B)/tests/bench/%.o $(PEER_OBJ) \
		$(call obj,$(SUPPORT_SRC)) $(CORE) $(wildcard $(B)/bench/peers)
	@mkdir -p $(@D)
	$(Q)$(if $(BULLET),$(CXX),$(CC)) $(ALL_LDFLAGS) -o $@ $(filter %.o %.a,$^) $(LDLIBS) \
		$(PEER_LIBS) $(shell $(PKG_CONFIG) --libs cmocka)

# On real terrain that the generator enlarges.
$(FIELD_PEERS): $(B)/bench/%: $(B)/tests/bench/%.o $(B)/tests/bench/bench_map.o $(FIELD_PEER_OBJ) \
		$(call obj,$(WORLDGEN_PARTS) $(SUPPORT_SRC)) $(CORE) $(wildcard $(B)/bench/peers)
	@mkdir -p $(@D)
	$(Q)$(if $(BULLET),$(CXX),$(CC)) $(ALL_LDFLAGS) -o $@ $(filter %.o %.a,$^) $(LDLIBS) \
		$(PEER_LIBS) $(shell $(PKG_CONFIG) --libs cmocka)

# The bounds of bench_serve.py and bench_cluster.py: programs by themselves.
$(B)/bench/peer_epoll: $(B)/tests/bench/peer_epoll.o
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^

$(B)/bench/peer_postgres: $(B)/tests/bench/peer_postgres.o
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(shell $(PKG_CONFIG) --libs libpq)

$(B)/tests/bench/peer_%.o: tests/bench/peer_%.cc Makefile
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CXX     $<")
	$(Q)$(CXX) -std=c++17 -g -pthread $(CFLAGS_$(config)) $(CXXFLAGS) -Wall -Wextra -I. \
		$(patsubst -I%,-isystem %,$(shell $(PKG_CONFIG) --cflags bullet)) -MMD -MP -c -o $@ $<

# Opened at run time, by the name that belongs to the headers it is built with.
ASSIMP_MAJOR := $(firstword $(subst ., ,$(shell $(PKG_CONFIG) --modversion assimp 2>/dev/null)))
$(B)/client/convert.o: CPPFLAGS += -DKOTA_ASSIMP_SONAME='"libassimp.so.$(ASSIMP_MAJOR)"'

$(addprefix $(B)/,$(addsuffix .o,server/api/calls/metrics server/api/calls/service \
	server/daemon/main client/help client/lib/error client/ground/copy) pic/client/lib/error.o \
	pic/client/ground/copy.o): client/lib/kota.h

$(B)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CC      $<")
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/pic/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CC      $< (library)")
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -fPIC -MMD -MP -c -o $@ $<

# Its own functions call each other directly; only what a header exports can be replaced.
$(B)/pic/server/%.o $(B)/pic/client/ground/%.o: CFLAGS += -fvisibility=hidden

AVX2 := -mavx2 -mfma -mbmi -mbmi2
$(B)/%.avx2.o: %.c Makefile
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CC      $< (AVX2)")
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(AVX2) -DKOTA_KERNELS_AVX2 -MMD -MP -c -o $@ $<

$(B)/pic/%.avx2.o: %.c Makefile
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CC      $< (AVX2, library)")
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -fPIC $(AVX2) -DKOTA_KERNELS_AVX2 -MMD -MP -c -o $@ $<

# Of the server, and compiled again for a shared library.
both = $(foreach name,$(1),$(B)/server/$(name).o $(B)/pic/server/$(name).o)

# Kernels for AVX2 only, each in a file of its own; which level runs is chosen at run time (simd.h).
ifneq ($(IS_X86_64),)
$(call both,$(addprefix terrain/kernels/,ray_single ray_stream height_batch mesh_ray_avx2)): \
	CFLAGS += $(AVX2) -fno-tree-slp-vectorize
# Loops over four lanes are all unrolled.
$(call both,$(addprefix terrain/kernels/,ray_single ray_stream)): CFLAGS += -O3
endif

# A ray stores its numbers one by one and reads them right away: as pairs they would have to wait.
$(call both,$(addprefix terrain/,mesh/mesh_ray radial/radial_line bvh/ray_tree \
	kernels/ray_tree_query kernels/ray_tree_query.avx2)): CFLAGS += -fno-tree-slp-vectorize

# The contract is written in YAML and served as JSON, embedded in server/api/answer/openapi.c.
$(B)/openapi.json: proto/openapi.yaml Makefile
	@mkdir -p $(@D)
	$(Q)python3 -c 'import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)' <$< >$@

$(B)/server/api/answer/openapi.o: $(B)/openapi.json
$(B)/server/api/answer/openapi.o: CPPFLAGS += -DKOTA_OPENAPI_JSON='"$(B)/openapi.json"'

# The page of errors is made of docs/errors.md; web.c embeds it beside the inspector.
$(B)/errors.html: docs/errors.md server/base/err.h client/web/errors_page.py
	@mkdir -p $(@D)
	$(Q)python3 client/web/errors_page.py docs/errors.md server/base/err.h >$@

# The ground for JavaScript (client/ground/wasm/module.c). It needs a clang with lld and wasi-libc;
# without them it is left out, and pages and programs ask the daemon.
WASM_CC ?= clang
WASM_FLAGS := --target=wasm32-wasi
WASM := $(if $(shell echo 'int main(void) {return 0;}' | $(WASM_CC) --target=wasm32-wasi -x c - \
	-o /dev/null 2>/dev/null && echo yes),$(B)/kota_ground.wasm)
WASM_OBJ := $(patsubst %.c,$(B)/wasm/%.o,$(GROUND_SRC) $(GROUND_PARTS) client/ground/wasm/module.c)

# Without the superword vectorizer: clang 14 with -msimd128 loses the x of vectors that are turned
# by a matrix (touch_turn_back in mesh_sweep.c).
$(B)/wasm/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CC      $< (wasm)")
	$(Q)$(WASM_CC) $(WASM_FLAGS) -DKOTA_VERSION='"$(VERSION)"' -Iclient/ground/wasm -Iserver -I. \
		-D_GNU_SOURCE -std=c17 -O2 -fno-slp-vectorize -msimd128 -mnontrapping-fptoint -msign-ext \
		-mbulk-memory -ffp-contract=off -fno-math-errno $(WARNINGS) \
		-Wno-gnu-variable-sized-type-not-at-end -Wno-shorten-64-to-32 $(WASM_INLINED) -MMD -MP -c -o $@ $<

# A height is one function then: half of the time.
$(addprefix $(B)/wasm/,client/ground/ask.o client/ground/wasm/module.o server/terrain/field/height.o \
	server/terrain/kernels/simd.o): WASM_INLINED := -flto

# A megabyte of stack, which ends the module where it is exceeded.
$(B)/kota_ground.wasm: $(WASM_OBJ)
	$(Q)$(WASM_CC) $(WASM_FLAGS) -mexec-model=reactor -Wl,--strip-all,--stack-first,-z,stack-size=1048576 -o $@ $^

all: $(if $(WASM),,wasm-left-out)
.PHONY: wasm-left-out
wasm-left-out:
	@echo "kota_ground.wasm is left out: $(WASM_CC) cannot build for wasm32-wasi (sh deploy/install-deps.sh wasm)"

# The inspector is served from memory: server/api/calls/web.c embeds client/web/.
WEB_FILES := $(sort $(wildcard $(addprefix client/web/,* map/* scene/* types/*)))
# again when the module has come or gone
ifneq ($(strip $(file <$(B)/web_made)),$(WASM))
$(shell mkdir -p $(B) && echo $(WASM) >$(B)/web_made)
endif
$(B)/web_assets.inc: $(WEB_FILES) $(B)/errors.html $(WASM) $(B)/web_made Makefile
	@mkdir -p $(@D)
	$(Q)python3 client/web/list.py $(B)/errors.html $(WASM) >$@

$(B)/server/api/calls/web.o: $(B)/web_assets.inc
$(B)/server/api/calls/web.o: CPPFLAGS += -DKOTA_WEB_ASSETS='"$(B)/web_assets.inc"'

# The scripts of the database are embedded in server/store/store_schema.c.
$(B)/server/store/store_schema.o: $(wildcard server/store/schema/*.sql)
$(B)/server/store/store_schema.o: CPPFLAGS += -DKOTA_STORE_SCHEMA='"server/store/schema"'

# So are those of the shared log, in server/replica/schema.c.
$(B)/server/replica/schema.o: $(wildcard server/replica/schema/*.sql)
$(B)/server/replica/schema.o: CPPFLAGS += -DKOTA_CLUSTER_SCHEMA='"server/replica/schema"'

# The shaders of the sand are embedded in server/sand/engine_gl/gl_program.c.
$(B)/server/sand/engine_gl/gl_program.o: $(wildcard server/sand/engine_gl/shaders/*.glsl)
$(B)/server/sand/engine_gl/gl_program.o: CPPFLAGS += -DKOTA_SAND_SHADERS='"server/sand/engine_gl/shaders"'

# Those of the daemon's own view, in server/view/draw_program.c.
$(B)/server/view/draw_program.o: $(wildcard server/view/shaders/*.glsl)
$(B)/server/view/draw_program.o: CPPFLAGS += -DKOTA_VIEW_SHADERS='"server/view/shaders"'

$(B)/llhttp/%.o: $(LLHTTP_DIR)/%.c Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -w -MMD -MP -c -o $@ $<

# Pages are written by their programs: `kota manual`, or the table of settings put into docs/man/.
$(B)/man/kota.1: $(B)/kota
	@mkdir -p $(@D)
	$(Q)$< manual >$@

$(filter-out $(B)/man/kota.1,$(MANUALS)): $(B)/man/%: docs/man/% docs/man/page.py $(PROGRAMS)
	@mkdir -p $(@D)
	$(Q)python3 docs/man/page.py $< $(B)/$(basename $(@F)) >$@

# ---- what people type -----------------------------------------------------------------------
help: ## this list
	@awk -F':.*## ' '/^[a-z_.-]+:.*## /{printf "  make %-22s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# ---- run ------------------------------------------------------------------------------------
# The demo world is made once, and again when its generator changes. LISTEN, PORT, DATA and ARGS
# reach the script by the environment.
DEMO := build/demo
WORLD ?= $(DEMO)
ifeq ($(wildcard $(DEMO)),)
.PHONY: $(DEMO).made
endif

$(DEMO).made: $(WORLDGEN_SRC) | $(B)/kota-worldgen
	@echo "making the demo world in $(DEMO)"
	@rm -rf $(DEMO) $(DEMO).part
	$(Q)$(B)/kota-worldgen demo $(DEMO).part
	@mv $(DEMO).part $(DEMO) && touch $@

run: export WORLD := $(WORLD)
run: all $(if $(filter $(DEMO),$(WORLD)),$(DEMO).made) ## kotad on the demo world, or WORLD=DIR
	@deploy/serve.sh $(B)

# ---- fuzz and cover -------------------------------------------------------------------------
FUZZ_SECONDS ?= 10
.PHONY: fuzzers
fuzzers: $(FUZZERS)

ifeq ($(config),fuzz)
fuzz: fuzzers
	@sh tests/fuzz.sh $(B) $(FUZZ_SECONDS)
else
fuzz: ## each fuzzer for FUZZ_SECONDS (10), by clang
	@$(MAKE) --no-print-directory config=fuzz fuzz
endif

cover: ## line coverage of each room under all tests
	@rm -rf build/cov/coverage && find build/cov -name '*.gcda' -delete 2>/dev/null || true
	@$(MAKE) --no-print-directory config=cov test
	@sh tests/cover.sh build/cov

# ---- install --------------------------------------------------------------------------------
# What goes where is deploy/install.list; what was put there is written down for uninstall.
INSTALL ?= install
LIBDIR ?= $(PREFIX)/lib
COMPLETIONS := $(addprefix $(B)/completion/kota.,bash zsh fish)
install uninstall: export DESTDIR := $(DESTDIR)
install uninstall: export PREFIX := $(PREFIX)
install uninstall: export LIBDIR := $(LIBDIR)
install uninstall: export INSTALL := $(INSTALL)
install uninstall: export LIB_VERSION := $(VERSION)

$(B)/completion/kota.%: $(B)/kota
	@mkdir -p $(@D)
	$(Q)$< completion $* >$@

.PHONY: settings
settings: $(B)/kotad ## deploy/kotad.conf and docs/configuration.md, from the program's table
	$(Q)python3 deploy/settings.py conf $< >deploy/kotad.conf
	$(Q)python3 deploy/settings.py page $< >docs/configuration.md

# Of the committed tree; deploy/release.py says of what parts.
RELEASE := build/dist
.PHONY: release
release: ## packages, source, image, npm package, wheel of the committed tree, into RELEASE (build/dist)
	$(Q)python3 deploy/release.py $(RELEASE)

install: all $(COMPLETIONS) $(DEMO).made ## programs, library, demo world and documents below DESTDIR and PREFIX (/usr/local)
	$(Q)deploy/install.sh install $(B)

uninstall: ## exactly what install has put there
	$(Q)deploy/install.sh uninstall $(B)

# ---- compile_commands.json ------------------------------------------------------------------
ALL_SRC = $(SERVER_SRC) $(MAIN) $(WORLDGEN_SRC) $(SANDSCENE_SRC) \
	$(CLIENT_SRC) $(LIBKOTA_SRC) $(GROUND_SRC) $(EXAMPLE_SRC) $(UNIT_SRC) $(SUPPORT_SRC) \
	$(wildcard tests/support/follow/*.c tests/support/replica/*.c tests/fuzz/*.c tests/faults/*.c) $(BENCH_SRC)
json_text = "$(subst ",\",$(subst \,\\,$(1)))"
compile_entry = {"directory": $(call json_text,$(CURDIR)), "file": "$(1)", "command": \
	$(call json_text,$(CC) $(CPPFLAGS) $(filter-out -mmem%,$(ALL_CFLAGS)) -c $(1))}

compile_commands.json: Makefile $(ALL_SRC) ## for editors and clangd
	$(file >$@,[)
	$(foreach file,$(ALL_SRC),$(file >>$@,$(call compile_entry,$(file))$(if $(filter \
		$(lastword $(ALL_SRC)),$(file)),,$(comma))))
	$(file >>$@,])
	@:

COUNTED := $(if $(filter-out instructions,$(T))$(filter-out release,$(config)),,$(B)/bench/counted)
# What drives the browser and checks contract and types. Without npm or a network there is none, and
# the tests say that they skip.
WEB_MODULES := tests/web/node_modules/.package-lock.json
$(WEB_MODULES): tests/web/package-lock.json
	@! command -v npm >/dev/null || (cd tests/web && npm ci --silent --ignore-scripts --no-audit \
		--no-fund --fetch-retries=0 --fetch-timeout=20000 && touch node_modules/.package-lock.json) || \
		echo "npm ci in tests/web did not work: the tests in a browser, and what checks the contract, are skipped"

.PHONY: types
types: $(WEB_MODULES) ## client/web/types, of the JSDoc of kota.js; tests/api/test_kota_js.py compares them
	$(Q)node tests/web/node_modules/typescript/bin/tsc -p tests/web/types.json --outDir client/web/types

WEB_NEEDS := $(if $(filter-out web test_web web_3d test_web_3d kota_js test_kota_js openapi test_openapi map_pages test_map_pages,$(T))$(filter-out release,$(config)),,$(WEB_MODULES))
# Map libraries and physics engines, for make test-all only.
LIBRARIES := tests/libraries/node_modules/.complete
$(LIBRARIES): tests/libraries/fetch.py
	@! command -v npm >/dev/null || python3 $< || \
		echo "tests/libraries/fetch.py did not work: what loads those libraries is skipped"
LIBRARY_NEEDS := $(if $(filter test-all,$(MAKECMDGOALS)),$(if \
	$(filter-out colliders test_colliders map_pages test_map_pages,$(T:%.py=%))$(filter-out release,$(config)),,$(LIBRARIES)))
# The fuzzers run some seconds each, with the release build, where there is a clang that links them.
ifneq ($(filter test test-all,$(MAKECMDGOALS)),)
FUZZ_NEEDS := $(if $(filter-out fuzz test_fuzz,$(T))$(filter-out release,$(config)),,$(shell \
	echo 'int LLVMFuzzerTestOneInput(void); int LLVMFuzzerTestOneInput(void) {return 0;}' | \
	clang -fsanitize=fuzzer,address -x c - -o /dev/null 2>/dev/null && echo fuzzers-by-clang))
endif
.PHONY: fuzzers-by-clang
fuzzers-by-clang:
	@$(MAKE) --no-print-directory config=fuzz fuzzers

# With T="name ..." only the programs of these names, or of these families, are built.
of_name = $(if $(T),$(filter $(foreach t,$(T),%/$(t) %/test_$(t) %/replay_$(t) %/replay_fuzz_$(t) \
	$(B)/tests/test_$(t)_%),$(1)),$(1))
TEST_NEEDS := all $(EXAMPLES) $(call of_name,$(UNIT_TESTS)) $(call of_name,$(FUZZ_REPLAYS)) \
	$(COUNTED) $(FAULTS) $(WEB_NEEDS) $(LIBRARY_NEEDS) $(FUZZ_NEEDS)
ALL_ONLY := $(if $(T),,$(COUNTED) $(addprefix $(B)/tests/,$(shell \
	awk '$$2 == "all" {print $$1}' tests/programs.list)))
test: $(filter-out $(ALL_ONLY),$(TEST_NEEDS)) ## the tests before each commit, a few minutes (T="name ...": only these)
	@tests/run $(B) $(T)

.PHONY: test-all
test-all: $(TEST_NEEDS) ## what make test leaves out: packaging, long forms (tests/programs.list)
	@tests/run --all $(B) $(T)

PHYSICS := $(filter $(B)/tests/test_sand_%,$(UNIT_TESTS))
.PHONY: physics
physics: $(PHYSICS) $(B)/kota-sand ## the tests of granular ground in their long form
	$(Q)set -e; for program in $(PHYSICS); do KOTA_LONG=1 $$program; done
	$(Q)KOTA_LONG=1 KOTA_BIN_DIR=$(B) python3 tests/api/test_sand_compare.py

.PHONY: proxies
proxies: export KOTA_BIN_DIR := $(B)
proxies: all ## tests of the API through nginx and HAProxy, all that can
	$(Q)KOTA_LONG=1 python3 tests/api/test_proxies.py

.PHONY: torture
torture: export KOTA_BIN_DIR := $(B)
torture: all $(DEMO).made $(FAULTS) $(filter %/test_cluster_race,$(UNIT_TESTS)) ## attacks and faults at full length, hours (P="http slow flood kill soak storm faults fuzz sanitizers cluster")
	@python3 tests/torture/run.py $(P)

tidy: ## the shape of the source: arrows between rooms, lengths, format
	@sh tests/tidy.sh

# A program whose peer is missing costs its rows only; one that fails ends the benchmark. `make bench`
# runs what the rows of tests/bench/short.tsv need.
.PHONY: bench-all
bench bench-all: export KOTA_BENCH_ROWS := $(abspath $(B)/bench/rows.tsv)
bench bench-all: export KOTA_BIN_DIR := $(B)
bench bench-all: $(BENCHES) $(B)/bench/peer_epoll $(B)/bench/peer_postgres $(B)/kotad $(B)/kota
bench: ## the two dozen ratios of docs/performance.md, measured here in one run, into that page
	@rm -f $(KOTA_BENCH_ROWS)
	$(Q)$(B)/bench/bench_contact_peers "open map"
	$(Q)$(B)/bench/bench_height_peers 4096
	$(Q)$(B)/bench/bench_ray_peers 4096
	$(Q)set -e; for bench in mesh_ray_peers sweep_peers lit_peers edit json store; do $(B)/bench/bench_$$bench; done
	$(Q)set -e; for bench in serve library sand_readers; do python3 tests/bench/bench_$$bench.py; done
	$(Q)python3 tests/bench/report.py $(KOTA_BENCH_ROWS) docs/performance.md

bench-all: ## every ratio, the tables of the papers, and ground drawn by a seed from the clock
	@rm -f $(KOTA_BENCH_ROWS)
	$(Q)set -e; for bench in $(filter-out %/bench_sand %/bench_impacts,$(BENCHES)); do $$bench; done
	$(Q)set -e; for bench in $(sort $(wildcard tests/bench/bench_*.py)); do python3 $$bench; done
	$(Q)[ ! -d tests/web/node_modules ] || node tests/bench/bench_flight.mjs
	$(Q)set -e; export KOTA_BENCH_SEED=$$(date +%s); for bench in contact height ray; do \
		$(B)/bench/bench_$${bench}_peers; done
	$(Q)python3 tests/bench/report.py $(KOTA_BENCH_ROWS)

.PHONY: bench-check
bench-check: export KOTA_BIN_DIR := $(B)
bench-check: $(B)/bench/counted ## instructions of fixed queries against tests/bench/instructions.tsv
	@python3 tests/bench/instructions.py $(if $(WRITE),--write)

bench-sand: $(B)/bench/bench_sand ## spheres the sand steps in a second (GPU=auto|0|software)
	$(Q)$(B)/bench/bench_sand --gpu $(or $(GPU),auto)

format: ## clang-format over every C file
	clang-format -i $$(git ls-files '*.c' '*.h')

clean: ## remove build/
	rm -rf build compile_commands.json

-include $(shell find $(B) -name '*.d' 2>/dev/null)
