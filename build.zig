//! Build of Deputy: libdeputy.a, the program, the unit suites, the fuzz replays and the helpers of the measurements.
//!
//! Every source file and every unit suite is one line in the lists below; `./dev check` compares the lists with the
//! tree. build() only describes: it starts nothing, reads nothing and writes nothing.
//!
//!   zig build                        debug program in zig-out/bin (UBSan on)
//!   zig build -Drelease              the program as it is installed
//!   zig build test -Dsuite=base_str  one unit suite
const std = @import("std");

/// Relative to src/, grouped by room, rooms by floor, one file a line.
const core_files = [_][]const u8{
    // 1 base
    "base/arena.c",
    "base/buf.c",
    "base/clock.c",
    "base/decode.c",
    "base/diag.c",
    "base/digest.c",
    "base/dirs.c",
    "base/err.c",
    "base/file_io.c",
    "base/file_open.c",
    "base/foreign.c",
    "base/glob.c",
    "base/glob_match.c",
    "base/hands.c",
    "base/invisible.c",
    "base/json_read.c",
    "base/json_write.c",
    "base/lock.c",
    "base/log.c",
    "base/path.c",
    "base/sort.c",
    "base/pool.c",
    "base/spawn.c",
    "base/str.c",
    "base/thread.c",
    "base/utf8.c",
    "base/utf8_fold.c",
    "base/utf8_valid.c",
    // 1 assets
    "assets/assets.c",
    // 2 yaml
    "yaml/decode.c",
    "yaml/edit.c",
    "yaml/edit_emit.c",
    "yaml/edit_plan.c",
    "yaml/edit_set.c",
    "yaml/edit_tree.c",
    "yaml/edit_unset.c",
    "yaml/edit_value.c",
    "yaml/fault.c",
    "yaml/keytab.c",
    "yaml/keytab_names.c",
    "yaml/node.c",
    "yaml/parse.c",
    "yaml/path.c",
    "yaml/place.c",
    "yaml/scalar.c",
    "yaml/schema.c",
    // 2 toolspec
    "toolspec/args.c",
    "toolspec/foreign.c",
    "toolspec/toolspec.c",
    // 2 trust
    "trust/list.c",
    // 2 search
    "search/ahead.c",
    "search/cache.c",
    "search/corpus.c",
    "search/count.c",
    "search/crew.c",
    "search/cut.c",
    "search/direct.c",
    "search/fetch.c",
    "search/headings.c",
    "search/json.c",
    "search/load.c",
    "search/near.c",
    "search/rank.c",
    "search/run.c",
    "search/scan.c",
    "search/scan_common.c",
    "search/scan_kernel.c",
    "search/scan_parts.c",
    "search/score.c",
    "search/slab.c",
    "search/tally.c",
    "search/terms.c",
    "search/text.c",
    "search/walk.c",
    "search/watch.c",
    // 2 store
    "store/activity.c",
    "store/command.c",
    "store/delegation.c",
    "store/message.c",
    "store/migrate.c",
    "store/netfs.c",
    "store/open.c",
    "store/prune.c",
    "store/recover.c",
    "store/run.c",
    "store/settings.c",
    "store/shared.c",
    "store/socket.c",
    "store/sql.c",
    "store/thread.c",
    // 3 policy
    "policy/gate.c",
    "policy/sensitive.c",
    // 3 definition
    "definition/keys.c",
    "definition/layer.c",
    "definition/name.c",
    "definition/parse.c",
    "definition/reach.c",
    "definition/reach_diff.c",
    "definition/reach_path.c",
    "definition/rules.c",
    "definition/text.c",
    // 3 config
    "config/config.c",
    "config/keys.c",
    "config/params.c",
    "config/price.c",
    // 3 model
    "model/anthropic.c",
    "model/anthropic_request.c",
    "model/anthropic_stream.c",
    "model/attempt.c",
    "model/curl_load.c",
    "model/halves.c",
    "model/http.c",
    "model/model.c",
    "model/net.c",
    "model/net_transfer.c",
    "model/openai.c",
    "model/openai_calls.c",
    "model/openai_request.c",
    "model/openai_stream.c",
    "model/openai_window.c",
    "model/quote.c",
    "model/redact.c",
    "model/responses.c",
    "model/responses_items.c",
    "model/responses_request.c",
    "model/responses_stream.c",
    "model/sse.c",
    "model/stream.c",
    "model/url.c",
    // 4 knowledge
    "knowledge/knowledge.c",
    // 4 memory
    "memory/entry.c",
    "memory/files.c",
    "memory/guard.c",
    "memory/resident.c",
    "memory/scope.c",
    "memory/write.c",
    // 4 skills
    "skills/fallback.c",
    "skills/files.c",
    "skills/find.c",
    "skills/keys.c",
    "skills/links.c",
    "skills/parse.c",
    // 4 capability
    "capability/access.c",
    "capability/dimensions.c",
    "capability/emit.c",
    "capability/resolve.c",
    // 5 host
    "host/agents.c",
    "host/fill.c",
    "host/stamp.c",
    "host/untrusted.c",
    "host/workspace.c",
    "host/worktree.c",
    // 5 prompt
    "prompt/assemble.c",
    // 6 tools
    "tools/access.c",
    "tools/glob_tool.c",
    "tools/grep.c",
    "tools/ignore.c",
    "tools/kb_search.c",
    "tools/memory_tools.c",
    "tools/read.c",
    "tools/skill_tool.c",
    "tools/small.c",
    "tools/task_tools.c",
    "tools/tools.c",
    "tools/walk.c",
    // 7 delegate
    "delegate/activity.c",
    "delegate/budget.c",
    "delegate/calls.c",
    "delegate/context.c",
    "delegate/control.c",
    "delegate/engine.c",
    "delegate/messages.c",
    "delegate/order.c",
    "delegate/provider.c",
    "delegate/report.c",
    "delegate/resume.c",
    "delegate/retain.c",
    "delegate/run.c",
    "delegate/snapshot.c",
    "delegate/tasks.c",
    // 10 cli
    "cli/chat.c",
    "cli/chat_commands.c",
    "cli/chat_edit.c",
    "cli/chat_history.c",
    "cli/chat_input.c",
    "cli/chat_tasks.c",
    "cli/chat_threads.c",
    "cli/chat_view.c",
    "cli/check.c",
    "cli/cli.c",
    "cli/config.c",
    "cli/doctor.c",
    "cli/edit.c",
    "cli/feed.c",
    "cli/help.c",
    "cli/init.c",
    "cli/list.c",
    "cli/memory.c",
    "cli/models.c",
    "cli/output.c",
    "cli/prompt.c",
    "cli/replay.c",
    "cli/report.c",
    "cli/run.c",
    "cli/search.c",
    "cli/show.c",
    "cli/signals.c",
    "cli/skills.c",
    "cli/take_agent.c",
    "cli/state.c",
    "cli/tail.c",
    "cli/tasks.c",
    "cli/trust.c",
    "cli/verbs.c",
    "cli/wait.c",
    "cli/worker.c",
    "cli/write.c",
};

/// The program's own part: only `main`, so that suites can link everything else.
const main_files = [_][]const u8{
    "main.c",
};

/// tests/unit/NAME_test.c, one executable each, by name.
const suites = [_][]const u8{
    "assets_assets",
    "base_arena",
    "base_decode",
    "base_diag",
    "base_file_io",
    "base_file_open",
    "base_foreign",
    "base_glob",
    "base_json",
    "base_lock",
    "base_path",
    "base_hands",
    "base_pool",
    "base_sort",
    "base_spawn",
    "base_str",
    "base_sys",
    "base_thread",
    "base_utf8",
    "capability_access",
    "capability_resolve",
    "cli_chat_history",
    "cli_chat_view",
    "config_config",
    "config_price",
    "definition_diagnostics",
    "definition_keys",
    "definition_layer",
    "definition_parse",
    "definition_reach",
    "definition_text",
    "delegate_crash",
    "delegate_engine",
    "delegate_messages",
    "delegate_resume",
    "delegate_retain",
    "delegate_run",
    "delegate_stress",
    "host_agents",
    "host_workspace",
    "knowledge_knowledge",
    "memory_entry",
    "memory_guard",
    "memory_race",
    "memory_resident",
    "memory_scope",
    "memory_write",
    "model_anthropic",
    "model_anthropic_request",
    "model_anthropic_stream",
    "model_net",
    "model_openai",
    "model_openai_calls",
    "model_openai_request",
    "model_openai_stream",
    "model_quote",
    "model_redact",
    "model_responses_items",
    "model_responses_request",
    "model_responses_stream",
    "model_sse",
    "model_url",
    "policy_gate",
    "prompt_assemble",
    "search_cache",
    "search_crew",
    "search_direct",
    "search_headings",
    "search_load",
    "search_near",
    "search_rank",
    "search_run",
    "search_scan",
    "search_terms",
    "search_walk",
    "skills_corpus",
    "skills_find",
    "skills_parse",
    "store_command",
    "store_crash",
    "store_delegation",
    "store_message",
    "store_migrate",
    "store_open",
    "store_prune",
    "store_recover",
    "store_shared",
    "store_thread",
    "tools_access",
    "tools_call",
    "tools_glob",
    "tools_grep",
    "tools_kb_search",
    "tools_read",
    "toolspec_toolspec",
    "trust_list",
    "yaml_edit",
    "yaml_keytab",
    "yaml_node",
    "yaml_parse",
    "yaml_property",
    "yaml_suite",
};

/// tests/fuzz/fuzz_NAME.c, replayed over tests/fuzz/regression/NAME/.
const fuzzers = [_][]const u8{
    "definition",
    "edit",
    "glob",
    "json",
    "openai",
    "responses",
    "search",
    "skill",
    "sse",
    "text",
    "yaml",
};

/// tests/bench/NAME.c, helpers of the measurements that link Deputy's library.
const bench_programs = [_][]const u8{
    "definitions",
    "delegations",
    "floor",
    "measure",
    "search_eval",
    "search_speed",
    "store",
};

/// tests/bench/NAME.c, what Deputy is measured with and beside: without its library.
const bench_peers = [_][]const u8{
    "curl_floor",
    "fts_lines",
    "stub",
};

/// Relative to tests/support/, linked into every unit suite.
const support_files = [_][]const u8{
    "api_fixture.c",
    "dir_fixture.c",
    "grant_fixture.c",
    "http_fixture.c",
    "lossy_vfs.c",
    "request_fixture.c",
    "scan_naive.c",
    "store_fixture.c",
    "stream_fixture.c",
    "support.c",
    "ws_fixture.c",
};

/// pkg-config names. Those with an archive in Debian are linked statically into release builds: start-up then costs a
/// third of the time and half of the memory (-Dshared links all of them dynamically, as debug builds do). libcurl and
/// uchardet are absent on purpose: src/model and src/base load them at the first request and the first file of unknown
/// encoding, so that other verbs pay nothing for them; their headers are found on the default path.
const libraries = [_]Library{
    .{ .name = "yaml-0.1", .archive = true },
    .{ .name = "libcjson", .archive = false },
    .{ .name = "libutf8proc", .archive = true },
    .{ .name = "libpcre2-8", .archive = true },
    .{ .name = "sqlite3", .archive = true },
};

const Library = struct { name: []const u8, archive: bool };

const warnings = [_][]const u8{
    "-std=gnu23",
    "-Wall",
    "-Wextra",
    "-Wshadow",
    "-Wvla",
    "-Wstrict-prototypes",
    "-Wmissing-prototypes",
    "-Wimplicit-fallthrough",
    "-fno-common",
};

const Sanitize = enum { none, undefined, thread };

const Setup = struct {
    target: std.Build.ResolvedTarget,
    optimize: std.builtin.Optimize,
    sanitize: Sanitize,
    flags: []const []const u8,

    fn module(s: Setup, b: *std.Build) *std.Build.Module {
        const release = s.optimize != .debug;
        const m = b.createModule(.{
            .target = s.target,
            .optimize = s.optimize,
            .link_libc = true,
            .sanitize_c = if (s.sanitize == .undefined) .full else .off,
            .sanitize_thread = s.sanitize == .thread,
            .stack_protector = release,
            .omit_frame_pointer = release,
            .pic = true,
            .strip = false,
        });
        m.addIncludePath(b.path("include"));
        m.addIncludePath(b.path("src"));
        m.addCMacro("_GNU_SOURCE", "1");
        return m;
    }
};

pub fn build(b: *std.Build) void {
    const target = b.standardTargetOptions(.{ .default_target = baseline() });
    const optimize = b.standardOptimizeOption(.{ .preferred_optimize_mode = .safe });
    const only = b.option([]const u8, "suite", "Build and run only this unit suite");
    const werror = b.option(bool, "werror", "Warnings are errors") orelse false;
    const shared = b.option(bool, "shared", "Link every library dynamically (default of debug builds)") orelse
        (optimize == .debug);
    const sanitize = b.option(Sanitize, "sanitize", "none, undefined (default of debug builds) or thread; " ++
        "address and leak need clang-19: ./dev asan") orelse if (optimize == .debug) Sanitize.undefined else .none;

    const setup: Setup = .{
        .target = target,
        .optimize = optimize,
        .sanitize = sanitize,
        .flags = if (werror) &(warnings ++ [_][]const u8{"-Werror"}) else &warnings,
    };
    // Release builds are fortified, and glibc's fortified headers define some of the banned functions themselves.
    const product_flags: []const []const u8 = if (optimize == .debug)
        std.mem.concat(b.allocator, []const u8, &.{ setup.flags, &.{ "-include", "src/base/banned.h" } }) catch @panic("OOM")
    else
        setup.flags;

    // The library: everything but main.
    const core_module = setup.module(b);
    core_module.addCSourceFiles(.{ .root = b.path("src"), .files = &core_files, .flags = product_flags });
    core_module.addEmbedPath(b.path("."));
    for (libraries) |library| core_module.linkSystemLibrary(library.name, if (library.archive and !shared)
        .{ .preferred_link_mode = .static, .search_strategy = .mode_first }
    else
        .{});
    const core = b.addLibrary(.{ .name = "deputy", .linkage = .static, .root_module = core_module });
    b.installArtifact(core);

    // The program.
    const main_module = setup.module(b);
    main_module.addCSourceFiles(.{ .root = b.path("src"), .files = &main_files, .flags = product_flags });
    main_module.linkLibrary(core);
    const program = b.addExecutable(.{ .name = "deputy", .root_module = main_module });
    program.pie = true;
    b.installArtifact(program);

    const run = b.addRunArtifact(program);
    run.addPassthruArgs();
    b.step("run", "Run deputy with the arguments after --").dependOn(&run.step);

    // Unit suites and fuzz replays are installed below PREFIX/tests; tests/support/run_tests.py runs them.
    const test_bin = b.step("test-bin", "Build the program, the unit suites and the fuzz replays; run nothing");
    test_bin.dependOn(b.getInstallStep());
    const test_step = b.step("test", "Run the unit suites (./dev test adds end-to-end tests and fuzz replays)");
    for (suites) |name| {
        if (only) |wanted| if (!std.mem.eql(u8, wanted, name)) continue;
        const m = setup.module(b);
        m.addIncludePath(b.path("tests"));
        m.addCSourceFiles(.{ .root = b.path("tests/unit"), .files = &.{b.fmt("{s}_test.c", .{name})}, .flags = setup.flags });
        m.addCSourceFiles(.{ .root = b.path("tests/support"), .files = &support_files, .flags = setup.flags });
        m.linkLibrary(core);
        m.linkSystemLibrary("cmocka", .{});
        const exe = b.addExecutable(.{ .name = name, .root_module = m });
        installTest(b, test_bin, exe, "tests/unit");

        const suite = b.addRunArtifact(exe);
        suite.setCwd(b.path("."));
        suite.stdio = .inherit;
        test_step.dependOn(&suite.step);
    }
    for (fuzzers) |name| {
        const m = setup.module(b);
        m.addIncludePath(b.path("tests"));
        const files: []const []const u8 = &.{ b.fmt("fuzz_{s}.c", .{name}), "standalone_driver.c" };
        m.addCSourceFiles(.{ .root = b.path("tests/fuzz"), .files = files, .flags = setup.flags });
        m.linkLibrary(core);
        installTest(b, test_bin, b.addExecutable(.{ .name = name, .root_module = m }), "tests/fuzz");
    }

    const bench_bin = b.step("bench-bin", "Build the program and the helpers of the measurements");
    bench_bin.dependOn(b.getInstallStep());
    for (bench_programs) |name| {
        const m = setup.module(b);
        m.addCSourceFiles(.{ .root = b.path("tests/bench"), .files = &.{b.fmt("{s}.c", .{name})}, .flags = setup.flags });
        m.linkLibrary(core);
        installTest(b, bench_bin, b.addExecutable(.{ .name = name, .root_module = m }), "tests/bench");
    }
    for (bench_peers) |name| {
        const m = setup.module(b);
        m.addCSourceFiles(.{ .root = b.path("tests/bench"), .files = &.{b.fmt("{s}.c", .{name})}, .flags = setup.flags });
        if (std.mem.eql(u8, name, "curl_floor")) m.linkSystemLibrary("libcurl", .{});
        if (std.mem.eql(u8, name, "fts_lines")) m.linkSystemLibrary("sqlite3", .{});
        installTest(b, bench_bin, b.addExecutable(.{ .name = name, .root_module = m }), "tests/bench");
    }

    // What is a script stays a script; the steps exist so that `zig build check` is no dead end.
    const check = b.addSystemCommand(&.{ "sh", "./dev", "check" });
    check.setCwd(b.path("."));
    check.stdio = .inherit;
    b.step("check", "Format, lint and structure checks (./dev check)").dependOn(&check.step);
    const bench = b.addSystemCommand(&.{ "sh", "./dev", "bench" });
    bench.setCwd(b.path("."));
    bench.stdio = .inherit;
    b.step("bench", "Measure start-up, search and delegation (./dev bench)").dependOn(&bench.step);
}

/// Runs on every x86-64 processor since about 2009; other architectures use their own baseline.
fn baseline() std.Target.Query {
    var query: std.Target.Query = .{ .cpu_model = .baseline };
    if (@import("builtin").target.cpu.arch == .x86_64)
        query.cpu_model = .{ .explicit = &std.Target.x86.cpu.x86_64_v2 };
    return query;
}

fn installTest(b: *std.Build, step: *std.Build.Step, exe: *std.Build.Step.Compile, dir: []const u8) void {
    const install = b.addInstallArtifact(exe, .{ .dest_dir = .{ .override = .{ .custom = dir } } });
    step.dependOn(&install.step);
}
