// Tests of model/openai_stream.c and openai_calls.c: chunks in, blocks out, without a network. Every stream
// is fed whole, in pieces of seven bytes and byte by byte.
#include "model/openai_int.h"
#include <support/support.h>

#define DATA(json) "data: " json "\n\n"
#define CHOICE(delta, finish)                                                                                \
    DATA("{\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"gpt-x\",\"choices\":[{\"index\":0," \
         "\"delta\":" delta ",\"finish_reason\":" finish "}]}")
#define START CHOICE("{\"role\":\"assistant\",\"content\":\"\"}", "null")
#define TEXT(s) CHOICE("{\"content\":\"" s "\"}", "null")
#define CALLS(pieces) CHOICE("{\"tool_calls\":[" pieces "]}", "null")
#define AT(i) "\"index\":" i ","
#define NO_AT ""
// One piece of a call.
#define HEAD(at, id, name, args)                                                                             \
    "{" at "\"id\":\"" id "\",\"type\":\"function\",\"function\":{\"name\":\"" name                          \
    "\",\"arguments\":\"" args "\"}}"
#define ARGS(at, args) "{" at "\"function\":{\"arguments\":\"" args "\"}}"
#define NAME(at, name) "{" at "\"function\":{\"name\":\"" name "\"}}"
#define WITH_ID(at, id, args) "{" at "\"id\":\"" id "\",\"function\":{\"arguments\":\"" args "\"}}"
#define FINISH(reason) CHOICE("{}", "\"" reason "\"")
#define USAGE(usage) DATA("{\"choices\":[],\"usage\":" usage "}")
#define DONE DATA("[DONE]")
#define END FINISH("tool_calls") DONE
#define A1 "{\\\"p\\\":\\\"a\\\"}"
#define B1 "{\\\"q\\\":2}"

typedef struct {
    arena *a;
    model_reply reply;
    dep_status status;
    dep_err err;
    openai_stream *s;
    bool done;
    buf heard;
} outcome;

static void hear_text(void *ctx, str delta) {
    buf_addf(&((outcome *)ctx)->heard, "[%.*s]", STR_ARG(delta));
}

static void hear_thinking(void *ctx, str delta) {
    buf_addf(&((outcome *)ctx)->heard, "{%.*s}", STR_ARG(delta));
}

static void hear_tool(void *ctx, str id, str name) {
    buf_addf(&((outcome *)ctx)->heard, "<%.*s %.*s>", STR_ARG(id), STR_ARG(name));
}

static outcome *run(str bytes, size_t piece) {
    arena *a = arena_new();
    outcome *o = NEW(a, outcome);
    *o = (outcome){.a = a, .heard = buf_new(a, 0)};
    model_sink sink = {.text = hear_text, .thinking = hear_thinking, .tool = hear_tool, .ctx = o};
    o->s = openai_stream_new(a, NULL, &sink);
    for (size_t i = 0; o->status == DEP_OK && !o->done && i < bytes.n; i += piece)
        o->status = openai_stream_feed(o->s, str_sub(bytes, i, i + piece), &o->done, &o->err);
    dep_status ended = openai_stream_end(o->s, o->status == DEP_OK, &o->reply, &o->err);
    if (o->status == DEP_OK) o->status = ended;
    return o;
}

static void end(outcome *o) {
    arena_free(o->a);
}

// Blocks, then the reason: T(text) H(thinking) C(id name input), bad input with a '!'.
static str shown(outcome *o) {
    static const char *const stops[] = {"end", "tool_use", "max_tokens", "refusal", "pause", "other"};
    buf b = buf_new(o->a, 0);
    for (vec_each(const model_block, it, &o->reply.blocks)) {
        if (it->kind == BLOCK_TEXT) buf_addf(&b, "T(%.*s) ", STR_ARG(it->text));
        if (it->kind == BLOCK_THINKING) buf_addf(&b, "H(%.*s) ", STR_ARG(it->text));
        if (it->kind == BLOCK_TOOL_USE)
            buf_addf(&b, "C(%.*s %.*s %.*s%s) ", STR_ARG(it->id), STR_ARG(it->name), STR_ARG(it->input),
                     it->bad_input ? "!" : "");
    }
    if (o->status == DEP_OK)
        buf_addf(&b, "%s", stops[o->reply.stop]);
    else
        buf_addf(&b, "%s: %s", err_name(o->status), o->err.msg);
    return buf_str(&b);
}

#define assert_str(got, expected)                                                                            \
    do {                                                                                                     \
        str got_ = (got), expected_ = (expected);                                                            \
        if (!str_eq(got_, expected_))                                                                        \
            fail_msg("\"%.*s\" is not \"%.*s\"", STR_ARG(got_), STR_ARG(expected_));                         \
    } while (0)

static const size_t sizes[] = {1, 7, 1 << 20};

static void check(const char *what, str bytes, const char *expected) {
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        outcome *o = run(bytes, sizes[i]);
        str got = shown(o);
        // An expectation that ends in "…" is a beginning.
        str wanted = str_z(expected);
        bool open = str_ends(wanted, S("…"));
        if (open) wanted.n -= sizeof "…" - 1;
        if (open ? !str_starts(got, wanted) : !str_eq(got, wanted))
            fail_msg("%s, %zu bytes a piece:\n%.*s\nis not\n%.*s", what, sizes[i], STR_ARG(got),
                     STR_ARG(wanted));
        end(o);
    }
}

static void test_model_openai_stream__a_whole_reply_is_assembled_from_pieces_of_any_size(void **state) {
    (void)state;
    static const str bytes = S_INIT(
        START CHOICE("{\"reasoning_content\":\"Let me \"}", "null")
            CHOICE("{\"reasoning_content\":\"see \\\"日本\\\"\"}", "null")
                TEXT("Hé") ": keep-alive\n\n" TEXT("llo\\n😀") CALLS(HEAD(AT("0"), "call_1", "read", ""))
                    CALLS(ARGS(AT("0"), "{\\\"p\\\":")) CALLS(ARGS(AT("0"), "\\\"é\\\"}"))
                        CALLS(HEAD(AT("1"), "call_2", "todo", "")) FINISH("tool_calls")
                            USAGE("{\"prompt_tokens\":12,\"completion_tokens\":25,\"prompt_tokens_details\":{"
                                  "\"cached_tokens\":4}}") DONE);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        outcome *o = run(bytes, sizes[i]);
        assert_str(
            shown(o),
            S("H(Let me see \"日本\") T(Héllo\n😀) C(call_1 read {\"p\":\"é\"}) C(call_2 todo {}) tool_use"));
        const model_reply *r = &o->reply;
        assert_true(o->done);
        assert_str(r->blocks.p[0].raw, S("{\"reasoning_content\":\"Let me see \\\"日本\\\"\"}"));
        assert_str(r->blocks.p[2].raw, S("{\"id\":\"call_1\",\"type\":\"function\",\"function\":{\"name\":"
                                         "\"read\",\"arguments\":\"{\\\"p\\\":\\\"é\\\"}\"}}"));
        assert_str(r->blocks.p[3].raw, S("{\"id\":\"call_2\",\"type\":\"function\",\"function\":{\"name\":"
                                         "\"todo\",\"arguments\":\"\"}}"));
        assert_str(r->stop_text, S("tool_calls"));
        assert_str(r->model, S("gpt-x"));
        assert_int_equal(r->usage.input, 8);
        assert_int_equal(r->usage.cache_read, 4);
        assert_int_equal(r->usage.output, 25);
        assert_true(openai_stream_facts(o->s).has_usage);
        assert_str(buf_str(&o->heard), S("{Let me }{see \"日本\"}[Hé][llo\n😀]<call_1 read><call_2 todo>"));
        end(o);
    }
}

static str with_line_ends(arena *a, str text, const char *line_end) {
    buf out = buf_new(a, 0);
    str line;
    while (str_cut(text, '\n', &line, &text)) {
        buf_add(&out, line);
        buf_add(&out, str_z(line_end));
    }
    return buf_str(&out);
}

static void test_model_openai_stream__line_ends_marks_and_comments_make_no_difference(void **state) {
    (void)state;
    static const char *const ends[] = {"\n", "\r", "\r\n"};
    for (size_t i = 0; i < 3; i++) {
        arena *a = arena_new();
        str body = with_line_ends(
            a,
            S(": OPENROUTER PROCESSING\n\nretry: 5\n" START TEXT("日") ":\n" TEXT("本") FINISH("stop") DONE),
            ends[i]);
        check("plain", body, "T(日本) end");
        check("with a mark", str_fmt(a, "\xEF\xBB\xBF" STR_FMT, STR_ARG(body)), "T(日本) end");
        check("blank lines first", str_fmt(a, "%s%s" STR_FMT, ends[i], ends[i], STR_ARG(body)),
              "T(日本) end");
        arena_free(a);
    }
}

// --- Ends ------------------------------------------------------------------------------------------------

static void test_model_openai_stream__a_reason_or_the_end_mark_completes_a_stream(void **state) {
    (void)state;
#define EARLY "network: the reply ended early: the stream stopped before its last event"
    static const struct {
        str bytes;
        const char *shown;
    } rows[] = {
        {S_INIT(TEXT("a") FINISH("stop") DONE), "T(a) end"},
        {S_INIT(TEXT("a") FINISH("stop")), "T(a) end"},
        {S_INIT(TEXT("a") FINISH("stop") "data: {\"choi"), "T(a) end"},
        {S_INIT(TEXT("a") DONE), "T(a) other"},
        {S_INIT(DONE), "other"},
        {S_INIT("data:[DONE]\n\n"), "other"},
        {S_INIT(CALLS(HEAD(AT("0"), "i", "read", A1)) DONE), "C(i read {\"p\":\"a\"}) tool_use"},
        {S_INIT(TEXT("a") FINISH("stop") DONE TEXT("after the end")), "T(a) end"},
        // The usage may come before, with, or after the reason; after it there is nothing more.
        {S_INIT(TEXT("a") FINISH("stop") USAGE("{\"prompt_tokens\":1,\"completion_tokens\":1}") TEXT("b")),
         "T(a) end"},
        {S_INIT(""), EARLY},
        {S_INIT(START), EARLY},
        {S_INIT(TEXT("half an ans")), "T(half an ans) " EARLY},
        {S_INIT(TEXT("a") "data: {\"choices\":"), "T(a) " EARLY},
        {S_INIT(TEXT("a") "data: [DONE]"), "T(a) " EARLY},
        {S_INIT(TEXT("a") USAGE("{\"prompt_tokens\":1,\"completion_tokens\":1}")), "T(a) " EARLY},
        // Half a call never counts; a whole one had come.
        {S_INIT(CALLS(HEAD(AT("0"), "i", "read", "{"))), EARLY},
        {S_INIT(CALLS(HEAD(AT("0"), "i", "read", ""))), EARLY},
        {S_INIT(CALLS(HEAD(AT("0"), "i", "read", A1))), "C(i read {\"p\":\"a\"}) " EARLY},
        {S_INIT("<html>\nno stream\n</html>\n"), EARLY},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(rows[i].bytes.p, rows[i].bytes, rows[i].shown);
}

static void test_model_openai_stream__reasons(void **state) {
    (void)state;
    static const struct {
        const char *reason, *plain, *with_call;
    } rows[] = {
        {"\"stop\"", "T(x) end", "T(x) C(i read {\"p\":\"a\"}) tool_use"},
        {"\"tool_calls\"", "T(x) end", "T(x) C(i read {\"p\":\"a\"}) tool_use"},
        {"\"function_call\"", "T(x) end", "T(x) C(i read {\"p\":\"a\"}) tool_use"},
        {"\"eos\"", "T(x) end", "T(x) C(i read {\"p\":\"a\"}) tool_use"},
        {"\"length\"", "T(x) max_tokens", "T(x) C(i read {\"p\":\"a\"}) max_tokens"},
        {"\"model_length\"", "T(x) max_tokens", "T(x) C(i read {\"p\":\"a\"}) max_tokens"},
        {"\"content_filter\"", "T(x) refusal", "T(x) C(i read {\"p\":\"a\"}) refusal"},
        {"\"something_new\"", "T(x) other", "T(x) C(i read {\"p\":\"a\"}) tool_use"},
        {"null", "T(x) other", "T(x) C(i read {\"p\":\"a\"}) tool_use"},
        {"\"error\"", "T(x) provider: the server broke…",
         "T(x) C(i read {\"p\":\"a\"}) provider: the server broke…"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        arena *a = arena_new();
        str last =
            str_fmt(a, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":%s}]}\n\n" DONE, rows[i].reason);
        check(rows[i].reason, str_fmt(a, TEXT("x") STR_FMT, STR_ARG(last)), rows[i].plain);
        check(rows[i].reason,
              str_fmt(a, TEXT("x") CALLS(HEAD(AT("0"), "i", "read", A1)) STR_FMT, STR_ARG(last)),
              rows[i].with_call);
        arena_free(a);
    }
}

static void test_model_openai_stream__a_call_that_was_cut_off_is_dropped(void **state) {
    (void)state;
    check("length",
          S(CALLS(HEAD(AT("0"), "i", "read", A1)) CALLS(HEAD(AT("1"), "k", "read", "{\\\"p")) FINISH("length")
                DONE),
          "C(i read {\"p\":\"a\"}) max_tokens");
    check("length before the arguments", S(CALLS(HEAD(AT("0"), "i", "read", "")) FINISH("length") DONE),
          "max_tokens");
    check("filter", S(CALLS(HEAD(AT("0"), "i", "read", "{\\\"p")) FINISH("content_filter") DONE), "refusal");
}

static void test_model_openai_stream__a_refusal_is_its_text(void **state) {
    (void)state;
    check("refusal",
          S(CHOICE("{\"refusal\":\"I can\"}", "null") CHOICE("{\"refusal\":\"not.\"}", "null") FINISH("stop")
                DONE),
          "T(I cannot.) refusal");
    check("null", S(CHOICE("{\"content\":\"a\",\"refusal\":null}", "\"stop\"") DONE), "T(a) end");
}

static void test_model_openai_stream__errors_in_a_stream_end_it_and_keep_what_was_there(void **state) {
    (void)state;
    static const struct {
        str bytes;
        const char *message;
        bool passes, too_long;
    } rows[] = {
        {S_INIT(DATA("{\"error\":{\"message\":\"boom\",\"type\":\"server_error\",\"code\":null}}")),
         "server_error: boom", true, false},
        {S_INIT(DATA("{\"error\":{\"message\":\"busy\",\"code\":429}}")), "error: busy", true, false},
        {S_INIT(DATA("{\"error\":{\"message\":\"bad\",\"code\":502}}")), "error: bad", true, false},
        {S_INIT(DATA(
             "{\"error\":{\"message\":\"two\\nlines\",\"type\":\"invalid_request_error\",\"code\":400}}")),
         "invalid_request_error: two lines", false, false},
        {S_INIT(DATA("{\"error\":{\"message\":\"too "
                     "much\",\"type\":\"invalid_request_error\",\"code\":\"context_length_exceeded\"}}")),
         "context_length_exceeded: too much", false, true},
        {S_INIT(DATA("{\"error\":\"model not loaded\"}")), "error: model not loaded", false, false},
        {S_INIT(DATA("{\"error\":{}}")), "error: no message", false, false},
        {S_INIT(DATA("{\"object\":\"error\",\"message\":\"no\",\"type\":\"BadRequestError\",\"code\":400}")),
         "BadRequestError: no", false, false},
        {S_INIT("event: error\n" DATA("{\"message\":\"alone\"}")), "error: alone", false, false},
        {S_INIT("event: error\n" DATA("{\"error\":{\"message\":\"m\",\"type\":\"overloaded_error\"}}")),
         "overloaded_error: m", true, false},
        {S_INIT("event: error\n" DATA("plain words")), "error: plain words", false, false},
        {S_INIT("event: error\ndata:\n\n"), "error: no message", false, false},
        {S_INIT(DATA("{\"choices\":[{\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\",\"error\":{"
                     "\"message\":\"upstream\",\"code\":502}}]}")),
         "error: upstream", true, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            arena *a = arena_new();
            buf in = buf_new(a, 0);
            buf_add(&in, S(TEXT("so far")));
            buf_add(&in, rows[i].bytes);
            buf_add(&in, S(TEXT(" and more") FINISH("stop") DONE));
            outcome *o = run(buf_str(&in), sizes[k]);
            assert_int_equal(o->status, DEP_ERR_PROVIDER);
            if (!str_starts(str_z(o->err.msg), str_z(rows[i].message))) fail_msg("%s", o->err.msg);
            assert_int_equal(openai_stream_facts(o->s).passes, rows[i].passes);
            assert_int_equal(model_says_too_long(a, str_z(o->err.msg)), rows[i].too_long);
            assert_int_equal(o->reply.blocks.n, 1);
            assert_str(o->reply.blocks.p[0].text, S("so far"));
            end(o);
            arena_free(a);
        }
    }
}

static void test_model_openai_stream__usage(void **state) {
    (void)state;
    static const struct {
        str usage;
        int64_t input, output, cached;
        bool has;
    } rows[] = {
        {S_INIT("{\"prompt_tokens\":10,\"completion_tokens\":2}"), 10, 2, 0, true},
        {S_INIT("{\"prompt_tokens\":10,\"completion_tokens\":2,\"prompt_cache_hit_tokens\":9}"), 1, 2, 9,
         true},
        {S_INIT("{\"prompt_tokens\":10,\"completion_tokens\":2,\"prompt_tokens_details\":{\"cached_tokens\":"
                "11}}"),
         0, 2, 10, true},
        {S_INIT("{\"prompt_tokens\":10,\"completion_tokens\":2,\"prompt_tokens_details\":null}"), 10, 2, 0,
         true},
        {S_INIT("{\"prompt_tokens\":0,\"completion_tokens\":0}"), 0, 0, 0, false},
        {S_INIT("{\"prompt_tokens\":-1,\"completion_tokens\":1e12}"), 0, 0, 0, false},
        {S_INIT("null"), 0, 0, 0, false},
        {S_INIT("[]"), 0, 0, 0, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        arena *a = arena_new();
        outcome *o = run(str_fmt(a, TEXT("x") FINISH("stop") "data: {\"choices\":[],\"usage\":%s}\n\n" DONE,
                                 rows[i].usage.p),
                         7);
        assert_int_equal(o->status, DEP_OK);
        assert_int_equal(openai_stream_facts(o->s).has_usage, rows[i].has);
        assert_int_equal(o->reply.usage.input, rows[i].input);
        assert_int_equal(o->reply.usage.output, rows[i].output);
        assert_int_equal(o->reply.usage.cache_read, rows[i].cached);
        end(o);
        arena_free(a);
    }
}

static void test_model_openai_stream__what_is_no_such_stream_is_a_provider_error(void **state) {
    (void)state;
    static const struct {
        str bytes;
        const char *shown;
    } rows[] = {
        {S_INIT("data: not json\n\n"), "provider: the stream holds an event that is not JSON…"},
        {S_INIT("data: {\"a\":\"\xff\"}\n\n"), "provider: the stream holds an event that is not JSON…"},
        {S_INIT("{}"), "provider: the answer is JSON, but neither a reply nor an error"},
        {S_INIT("{\"a\":}"), "provider: the answer is not JSON…"},
        {S_INIT("{\"choices\":[{\"message\":{\"content\":\"x\"}"),
         "provider: the answer ended in the middle…"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(rows[i].bytes.p, rows[i].bytes, rows[i].shown);
}

static void test_model_openai_stream__odd_but_harmless_events_are_passed_over(void **state) {
    (void)state;
    check("odd",
          S(DATA("{}") DATA("[]") DATA("1") DATA(
              "null") "data:\n\n"
                      "event: ping\ndata: now\n\n" DATA("{\"choices\":null}")
                          DATA("{\"choices\":[1,null,{},{\"delta\":null},{\"delta\":[]}]}") DATA(
                              "{\"choices\":[{\"index\":1,\"delta\":{\"content\":\"another reply\"}}]}")
                              TEXT("a") CHOICE("{\"content\":null,\"tool_calls\":null}", "null")
                                  CHOICE("{\"content\":5,\"tool_calls\":{},\"reasoning\":7}", "null") CALLS(
                                      "1,null,{},{\"index\":0},{\"index\":3,\"id\":null,\"function\":null}")
                                      DATA("{\"error\":null,\"choices\":[]}") FINISH("stop") DONE),
          "T(a) end");
}

static void test_model_openai_stream__thinking_is_taken_under_the_name_that_came_first(void **state) {
    (void)state;
    check("both",
          S(CHOICE("{\"reasoning_content\":\"a\",\"reasoning\":\"a\"}", "null") CHOICE(
              "{\"reasoning\":\"b\",\"reasoning_content\":\"b\"}", "null") TEXT("x") FINISH("stop") DONE),
          "H(ab) T(x) end");
    check("parts",
          S(CHOICE("{\"content\":[{\"type\":\"thinking\",\"thinking\":[{\"type\":\"text\",\"text\":\"hm\"}]},"
                   "{\"type\":\"text\",\"text\":\"x\"}]}",
                   "null") FINISH("stop") DONE),
          "H(hm) T(x) end");
    outcome *o = run(S(CHOICE("{\"reasoning\":\"hm\"}", "null") FINISH("stop") DONE), 9);
    assert_str(shown(o), S("H(hm) end"));
    assert_str(o->reply.blocks.p[0].raw, S("{\"reasoning\":\"hm\"}"));
    assert_true(openai_stream_facts(o->s).has_content);
    end(o);
}

// --- One JSON document -----------------------------------------------------------------------------------

static void test_model_openai_stream__one_json_document_is_read_as_a_reply(void **state) {
    (void)state;
#define DOCUMENT(message, finish)                                                                            \
    "{\"id\":\"c\",\"object\":\"chat.completion\",\"model\":\"gpt-x\",\"choices\":[{\"index\":0,"            \
    "\"message\":" message ",\"finish_reason\":\"" finish                                                    \
    "\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}"
    check("text", S(DOCUMENT("{\"role\":\"assistant\",\"content\":\"a } \\\" {\"}", "stop")),
          "T(a } \" {) end");
    check("blanks around", S("\xEF\xBB\xBF\r\n " DOCUMENT("{\"content\":\"a\"}", "stop") "\n\ndata: x"),
          "T(a) end");
    check("calls",
          S(DOCUMENT("{\"content\":null,\"reasoning_content\":\"hm\",\"tool_calls\":[" HEAD(
                         NO_AT, "i", "read", A1) "," HEAD(AT("0"), "k", "read", A1) "]}",
                     "stop")),
          "H(hm) C(i read {\"p\":\"a\"}) C(k read {\"p\":\"a\"}) tool_use");
    check("error", S("{\"error\":{\"message\":\"boom\",\"type\":\"server_error\"}}"),
          "provider: server_error: boom");
    check("nothing", S(DOCUMENT("{\"content\":\"\"}", "stop")), "end");
    outcome *o = run(S(DOCUMENT("{\"content\":\"a\"}", "stop")), 5);
    assert_true(o->done);
    assert_int_equal(o->reply.usage.input, 3);
    assert_str(o->reply.model, S("gpt-x"));
    assert_str(buf_str(&o->heard), S("[a]"));
    end(o);
}

static void test_model_openai_stream__a_whole_message_after_its_deltas_is_not_taken_twice(void **state) {
    (void)state;
    check("repeated",
          S(TEXT("a") DATA("{\"choices\":[{\"message\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}")
                DONE),
          "T(a) end");
    check("alone",
          S(DATA("{\"choices\":[{\"message\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}") DONE),
          "T(a) end");
}

// --- Calls (C59) -----------------------------------------------------------------------------------------

#define TWO "C(i read {\"p\":\"a\"}) C(k todo {\"q\":2}) tool_use"

static void test_model_openai_calls__two_calls_stay_two_however_their_pieces_are_marked(void **state) {
    (void)state;
    static const struct {
        const char *what;
        str bytes;
    } rows[] = {
        {"as the API sends them", S_INIT(CALLS(HEAD(AT("0"), "i", "read", "")) CALLS(ARGS(AT("0"), A1))
                                             CALLS(HEAD(AT("1"), "k", "todo", "")) CALLS(ARGS(AT("1"), B1)))},
        {"interleaved by index",
         S_INIT(CALLS(HEAD(AT("0"), "i", "read", "") "," HEAD(AT("1"), "k", "todo", ""))
                    CALLS(ARGS(AT("1"), "{\\\"q\\\"")) CALLS(ARGS(AT("0"), A1) "," ARGS(AT("1"), ":2}")))},
        {"from one, with gaps",
         S_INIT(CALLS(HEAD(AT("3"), "i", "read", "")) CALLS(HEAD(AT("7"), "k", "todo", ""))
                    CALLS(ARGS(AT("7"), B1)) CALLS(ARGS(AT("3"), A1)))},
        {"no index, whole calls",
         S_INIT(CALLS(HEAD(NO_AT, "i", "read", A1)) CALLS(HEAD(NO_AT, "k", "todo", B1)))},
        {"no index, whole calls in one delta",
         S_INIT(CALLS(HEAD(NO_AT, "i", "read", A1) "," HEAD(NO_AT, "k", "todo", B1)))},
        {"no index, in pieces",
         S_INIT(CALLS(HEAD(NO_AT, "i", "read", "")) CALLS(ARGS(NO_AT, A1)) CALLS(HEAD(NO_AT, "k", "todo", ""))
                    CALLS(ARGS(NO_AT, "{\\\"q")) CALLS(ARGS(NO_AT, "\\\":2}")))},
        {"no index, by id", S_INIT(CALLS(HEAD(NO_AT, "i", "read", "") "," HEAD(NO_AT, "k", "todo", ""))
                                       CALLS(WITH_ID(NO_AT, "k", B1)) CALLS(WITH_ID(NO_AT, "i", A1)))},
        {"0 for both, whole calls",
         S_INIT(CALLS(HEAD(AT("0"), "i", "read", A1)) CALLS(HEAD(AT("0"), "k", "todo", B1)))},
        {"0 for both, in one delta",
         S_INIT(CALLS(HEAD(AT("0"), "i", "read", A1) "," HEAD(AT("0"), "k", "todo", B1)))},
        {"0 for both, in pieces", S_INIT(CALLS(HEAD(AT("0"), "i", "read", "")) CALLS(ARGS(AT("0"), A1))
                                             CALLS(HEAD(AT("0"), "k", "todo", "")) CALLS(ARGS(AT("0"), B1)))},
        {"0 for both, by id", S_INIT(CALLS(HEAD(AT("0"), "i", "read", "") "," HEAD(AT("0"), "k", "todo", ""))
                                         CALLS(WITH_ID(AT("0"), "k", B1)) CALLS(WITH_ID(AT("0"), "i", A1)))},
        {"id again with each piece",
         S_INIT(CALLS(HEAD(AT("0"), "i", "read", "")) CALLS(WITH_ID(AT("0"), "i", A1))
                    CALLS(HEAD(AT("1"), "k", "todo", "")) CALLS(WITH_ID(AT("1"), "k", B1)))},
        {"id and name again with each piece",
         S_INIT(CALLS(HEAD(AT("0"), "i", "read", "{\\\"p\\\":"))
                    CALLS(HEAD(AT("0"), "i", "read", "\\\"a\\\"}")) CALLS(HEAD(AT("1"), "k", "todo", "{"))
                        CALLS(HEAD(AT("1"), "k", "todo", "\\\"q\\\":2}")))},
        {"name again with each piece",
         S_INIT(CALLS(HEAD(AT("0"), "i", "read", "")) CALLS(HEAD(AT("0"), "", "read", "{\\\"p\\\":"))
                    CALLS(HEAD(AT("0"), "", "read", "\\\"a\\\"}")) CALLS(HEAD(AT("1"), "k", "todo", B1)))},
        {"empty id later",
         S_INIT(CALLS(HEAD(AT("0"), "i", "read", "")) CALLS(HEAD(AT("0"), "", "", A1))
                    CALLS(HEAD(AT("1"), "k", "todo", "")) CALLS(HEAD(AT("1"), "", "", B1)))},
        {"a new id with each piece",
         S_INIT(CALLS(HEAD(AT("0"), "i", "read", "")) CALLS(WITH_ID(AT("0"), "x1", A1))
                    CALLS(HEAD(AT("1"), "k", "todo", "")) CALLS(WITH_ID(AT("1"), "x2", B1)))},
        {"name in pieces",
         S_INIT(CALLS(HEAD(AT("0"), "i", "re", "")) CALLS(NAME(AT("0"), "ad")) CALLS(ARGS(AT("0"), A1))
                    CALLS(HEAD(AT("1"), "k", "to", "")) CALLS(NAME(AT("1"), "do")) CALLS(ARGS(AT("1"), B1)))},
        {"name in pieces, no index", S_INIT(CALLS(HEAD(NO_AT, "i", "re", "")) CALLS(NAME(NO_AT, "ad"))
                                                CALLS(ARGS(NO_AT, A1)) CALLS(HEAD(NO_AT, "k", "todo", B1)))},
        {"name in pieces, with the id",
         S_INIT(CALLS(HEAD(NO_AT, "i", "re", "")) CALLS(HEAD(NO_AT, "i", "ad", ""))
                    CALLS(HEAD(NO_AT, "i", "", A1)) CALLS(HEAD(NO_AT, "k", "todo", B1)))},
        {"id before the name", S_INIT(CALLS(WITH_ID(AT("0"), "i", "")) CALLS(NAME(AT("0"), "read"))
                                          CALLS(ARGS(AT("0"), A1)) CALLS(HEAD(AT("1"), "k", "todo", B1)))},
        {"id after the name", S_INIT(CALLS(NAME(AT("0"), "read")) CALLS(WITH_ID(AT("0"), "i", A1))
                                         CALLS(NAME(AT("1"), "todo")) CALLS(WITH_ID(AT("1"), "k", B1)))},
        {"index in the head alone", S_INIT(CALLS(HEAD(AT("0"), "i", "read", "")) CALLS(ARGS(NO_AT, A1))
                                               CALLS(HEAD(AT("1"), "k", "todo", "")) CALLS(ARGS(NO_AT, B1)))},
        {"no index in the heads, the wrong one later",
         S_INIT(CALLS(HEAD(NO_AT, "i", "read", "")) CALLS(ARGS(AT("0"), A1))
                    CALLS(HEAD(AT("1"), "k", "todo", "")) CALLS(ARGS(AT("1"), B1)))},
        {"an object for arguments",
         S_INIT(
             CALLS("{\"index\":0,\"id\":\"i\",\"function\":{\"name\":\"read\",\"arguments\":{\"p\":\"a\"}}}")
                 CALLS("{\"id\":\"k\",\"function\":{\"name\":\"todo\",\"arguments\":{\"q\":2}}}"))},
        {"an object, sent twice",
         S_INIT(
             CALLS("{\"index\":0,\"id\":\"i\",\"function\":{\"name\":\"read\",\"arguments\":{\"p\":\"a\"}}}")
                 CALLS("{\"index\":0,\"id\":\"i\",\"function\":{\"name\":\"read\",\"arguments\":{\"p\":\"a\"}"
                       "}}") CALLS(HEAD(AT("1"), "k", "todo", B1)))},
        {"arguments first null",
         S_INIT(CALLS("{\"index\":0,\"id\":\"i\",\"function\":{\"name\":\"read\",\"arguments\":null}}")
                    CALLS(ARGS(AT("0"), A1)) CALLS(HEAD(AT("1"), "k", "todo", B1)))},
        {"empty pieces between",
         S_INIT(CALLS(HEAD(NO_AT, "i", "read", A1)) CALLS(HEAD(NO_AT, "", "", "")) CALLS(ARGS(NO_AT, ""))
                    CALLS(HEAD(NO_AT, "k", "todo", B1)) CALLS(ARGS(AT("9"), "")))},
        {"index as a null", S_INIT(CALLS(HEAD("\"index\":null,", "i", "read", A1))
                                       CALLS(HEAD("\"index\":null,", "k", "todo", B1)))},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        arena *a = arena_new();
        static const char *const ends[] = {END, FINISH("stop") DONE, FINISH("stop"), DONE};
        for (size_t k = 0; k < sizeof ends / sizeof *ends; k++)
            check(rows[i].what, str_fmt(a, STR_FMT "%s", STR_ARG(rows[i].bytes), ends[k]), TWO);
        arena_free(a);
    }
}

static void test_model_openai_calls__arguments_in_single_bytes(void **state) {
    (void)state;
    static const char *const ats[] = {"\"index\":0,", ""};
    for (size_t i = 0; i < 2; i++) {
        arena *a = arena_new();
        buf in = buf_new(a, 0);
        str args = S("{\"p\": \"a } ] \\\\ \\\" {\", \"q\": [{}, {\"r\": 1}]}");
        buf_addf(&in, CALLS("{%s\"id\":\"i\",\"function\":{\"name\":\"read\",\"arguments\":\"\"}}"), ats[i]);
        for (size_t k = 0; k < args.n; k++) {
            buf one = buf_new(a, 0);
            json_quote(&one, str_sub(args, k, k + 1));
            buf_addf(&in, CALLS("{%s\"function\":{\"arguments\":%.*s}}"), ats[i], STR_ARG(buf_str(&one)));
        }
        buf_add(&in, S(CALLS(HEAD(AT("1"), "k", "todo", B1)) END));
        str expected = str_fmt(a, "C(i read " STR_FMT ") C(k todo {\"q\":2}) tool_use", STR_ARG(args));
        check("single bytes", buf_str(&in), expected.p);
        arena_free(a);
    }
}

static void test_model_openai_calls__a_piece_that_fits_two_calls_is_an_error_that_names_it(void **state) {
    (void)state;
    static const struct {
        const char *what;
        str bytes;
    } rows[] = {
        {"two heads, no index", S_INIT(CALLS(HEAD(NO_AT, "i", "read", "") "," HEAD(NO_AT, "k", "todo", ""))
                                           CALLS(ARGS(NO_AT, "{\\\"lost\\\":1}")))},
        {"two heads of index 0", S_INIT(CALLS(HEAD(AT("0"), "i", "read", "") "," HEAD(
                                     AT("0"), "k", "todo", "")) CALLS(ARGS(AT("0"), "{\\\"lost\\\":1}")))},
        {"two heads after each other",
         S_INIT(CALLS(HEAD(AT("0"), "i", "read", "")) CALLS(HEAD(AT("0"), "k", "todo", ""))
                    CALLS(ARGS(AT("0"), "{\\\"lost\\\":1}")))},
        {"an index without a head",
         S_INIT(CALLS(HEAD(AT("0"), "i", "read", A1)) CALLS(ARGS(AT("1"), "{\\\"lost\\\":1}")))},
        {"no head at all", S_INIT(CALLS(ARGS(AT("0"), "{\\\"lost\\\":1}")))},
        {"no head and no index", S_INIT(CALLS(ARGS(NO_AT, "{\\\"lost\\\":1}")))},
        {"after both are whole", S_INIT(CALLS(HEAD(NO_AT, "i", "read", A1)) CALLS(
                                     HEAD(NO_AT, "k", "todo", B1)) CALLS(ARGS(NO_AT, "{\\\"lost\\\":1}")))},
        {"index and id at odds",
         S_INIT(CALLS(HEAD(AT("0"), "i", "read", "")) CALLS(HEAD(AT("1"), "k", "todo", ""))
                    CALLS(WITH_ID(AT("1"), "i", "{\\\"lost\\\":1}")))},
        {"an unknown id at an index of two",
         S_INIT(CALLS(HEAD(AT("0"), "i", "read", A1) "," HEAD(AT("0"), "k", "todo", ""))
                    CALLS(WITH_ID(AT("0"), "x", "{\\\"lost\\\":1}")))},
        {"names alone", S_INIT(CALLS(NAME(NO_AT, "read")) CALLS(NAME(NO_AT, "lost")))},
        {"the same name within arguments", S_INIT(CALLS(NAME(NO_AT, "read")) CALLS(ARGS(NO_AT, "{")) CALLS(
                                               "{\"function\":{\"name\":\"read\",\"arguments\":\"lost\"}}"))},
        {"the name again, then more arguments",
         S_INIT(CALLS(HEAD(AT("0"), "", "read", A1)) CALLS(NAME(AT("0"), "read"))
                    CALLS(ARGS(AT("0"), "{\\\"lost\\\":1}")))},
        {"two objects",
         S_INIT(CALLS("{\"index\":0,\"id\":\"i\",\"function\":{\"name\":\"read\",\"arguments\":{\"p\":1}}}")
                    CALLS("{\"index\":0,\"function\":{\"arguments\":{\"lost\":1}}}"))},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            arena *a = arena_new();
            outcome *o = run(str_fmt(a, STR_FMT "%s", STR_ARG(rows[i].bytes), END), sizes[k]);
            if (o->status != DEP_ERR_PROVIDER || !strstr(o->err.msg, "belongs to no one call") ||
                !strstr(o->err.msg, "lost"))
                fail_msg("%s: %.*s", rows[i].what, STR_ARG(shown(o)));
            for (vec_each(const model_block, b, &o->reply.blocks))
                assert_true(str_find(b->input, S("lost")) == SIZE_MAX);
            assert_true(openai_stream_facts(o->s).has_content);
            end(o);
            arena_free(a);
        }
    }
}

static void test_model_openai_calls__a_missing_id_is_made_and_an_id_of_two_calls_is_given_to_one(
    void **state) {
    (void)state;
    static const struct {
        str bytes, first; // first: the id that stays; empty: made
    } rows[] = {
        {S_INIT(CALLS(HEAD(AT("0"), "", "read", A1)) CALLS(HEAD(AT("1"), "", "todo", B1))), S_INIT("")},
        {S_INIT(CALLS(HEAD(AT("0"), "", "read", A1)) CALLS(HEAD(AT("0"), "", "todo", B1))), S_INIT("")},
        {S_INIT(CALLS(HEAD(NO_AT, "", "read", A1)) CALLS(HEAD(NO_AT, "", "todo", B1))), S_INIT("")},
        {S_INIT(CALLS(HEAD(NO_AT, "", "read", A1) "," HEAD(NO_AT, "", "todo", B1))), S_INIT("")},
        {S_INIT(CALLS(NAME(NO_AT, "read")) CALLS(ARGS(NO_AT, A1)) CALLS(NAME(NO_AT, "todo"))
                    CALLS(ARGS(NO_AT, B1))),
         S_INIT("")},
        {S_INIT(CALLS(HEAD(AT("0"), "i", "read", A1)) CALLS(HEAD(AT("1"), "i", "todo", B1))), S_INIT("i")},
        {S_INIT(CALLS(HEAD(NO_AT, "i", "read", A1)) CALLS(HEAD(NO_AT, "i", "todo", B1))), S_INIT("i")},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        arena *a = arena_new();
        outcome *o = run(str_fmt(a, STR_FMT END, STR_ARG(rows[i].bytes)), 11);
        if (o->status != DEP_OK || o->reply.blocks.n != 2) fail_msg("%zu: %.*s", i, STR_ARG(shown(o)));
        str ids[] = {o->reply.blocks.p[0].id, o->reply.blocks.p[1].id};
        assert_false(str_eq(ids[0], ids[1]));
        if (rows[i].first.n) assert_str(ids[0], rows[i].first);
        for (size_t k = rows[i].first.n ? 1 : 0; k < 2; k++) {
            assert_int_equal(ids[k].n, OPENAI_ID_CHARS);
            for (size_t c = 0; c < ids[k].n; c++)
                assert_true((ids[k].p[c] >= '0' && ids[k].p[c] <= '9') ||
                            (ids[k].p[c] >= 'a' && ids[k].p[c] <= 'z') ||
                            (ids[k].p[c] >= 'A' && ids[k].p[c] <= 'Z'));
            assert_true(str_find(o->reply.blocks.p[k].raw, ids[k]) != SIZE_MAX);
        }
        assert_str(o->reply.blocks.p[0].input, S("{\"p\":\"a\"}"));
        assert_str(o->reply.blocks.p[1].input, S("{\"q\":2}"));
        end(o);
        arena_free(a);
    }
}

static void test_model_openai_calls__faulty_arguments_stay_a_call_with_bad_input(void **state) {
    (void)state;
    static const struct {
        str args; // within a JSON string
        const char *shown;
    } rows[] = {
        {S_INIT("{\\\"a\\\":"), "C(i read {\"a\":!) tool_use"},
        {S_INIT("[1]"), "C(i read [1]!) tool_use"},
        {S_INIT("\\\"text\\\""), "C(i read \"text\"!) tool_use"},
        {S_INIT("{\\\"a\\\":1,\\\"a\\\":2}"), "C(i read {\"a\":1,\"a\":2}!) tool_use"},
        {S_INIT("{} {}"), "C(i read {} {}!) tool_use"},
        {S_INIT("{}}"), "C(i read {}}!) tool_use"},
        {S_INIT("{]"), "C(i read {]!) tool_use"},
        {S_INIT("null"), "C(i read null!) tool_use"},
        {S_INIT("  "), "C(i read {}) tool_use"},
        {S_INIT(" {\\\"a\\\":1}\\n"), "C(i read {\"a\":1}) tool_use"},
        {S_INIT(""), "C(i read {}) tool_use"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        arena *a = arena_new();
        check(
            rows[i].args.p,
            str_fmt(a,
                    CALLS("{\"index\":0,\"id\":\"i\",\"function\":{\"name\":\"read\",\"arguments\":\"%s\"}}")
                        END,
                    rows[i].args.p),
            rows[i].shown);
        arena_free(a);
    }
    check("an array for arguments",
          S(CALLS("{\"index\":0,\"id\":\"i\",\"function\":{\"name\":\"read\",\"arguments\":[1]}}") END),
          "C(i read [1]!) tool_use");
}

static void test_model_openai_calls__a_call_without_a_name_is_an_error(void **state) {
    (void)state;
    check("no name", S(CALLS(HEAD(AT("0"), "i", "", A1)) END),
          "provider: the reply holds a tool call without a name (id i)");
}

static void test_model_openai_calls__unknown_members_go_back(void **state) {
    (void)state;
    outcome *o = run(S(CALLS("{\"index\":0,\"id\":\"i\",\"type\":\"function\",\"function\":{\"name\":"
                             "\"read\",\"arguments\":\"{}\"},"
                             "\"extra_content\":{ \"google\":1.50},\"none\":null}") END),
                     9);
    assert_str(o->reply.blocks.p[0].raw,
               S("{\"id\":\"i\",\"type\":\"function\",\"function\":{\"name\":\"read\",\"arguments\":\"{}\"},"
                 "\"extra_content\":{ \"google\":1.50}}"));
    end(o);
}

// --- Limits ----------------------------------------------------------------------------------------------

static void test_model_openai_calls__a_reply_may_have_a_thousand_calls_and_no_more(void **state) {
    (void)state;
    for (int n = OPENAI_CALLS_MAX; n <= OPENAI_CALLS_MAX + 1; n++) {
        arena *a = arena_new();
        buf in = buf_new(a, 0);
        for (int i = 0; i < n; i++)
            buf_addf(
                &in,
                CALLS("{\"index\":%d,\"id\":\"c%d\",\"function\":{\"name\":\"read\",\"arguments\":\"{}\"}}"),
                i, i);
        buf_add(&in, S(END));
        outcome *o = run(buf_str(&in), 4096);
        assert_int_equal(o->status, n == OPENAI_CALLS_MAX ? DEP_OK : DEP_ERR_LIMIT);
        assert_int_equal(o->reply.blocks.n, OPENAI_CALLS_MAX);
        end(o);
        arena_free(a);
    }
}

static void test_model_openai_calls__eight_unknown_members_are_kept_and_no_more(void **state) {
    (void)state;
    for (int n = OPENAI_CALL_EXTRA_MAX; n <= OPENAI_CALL_EXTRA_MAX + 1; n++) {
        arena *a = arena_new();
        buf in = buf_new(a, 0);
        buf_add(
            &in,
            S("data: "
              "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"i\",\"function\":{\"name\":\"read\"}"));
        for (int i = 0; i < n; i++) buf_addf(&in, ",\"x%d\":1", i);
        buf_add(&in, S("}]}}]}\n\n" END));
        outcome *o = run(buf_str(&in), 4096);
        assert_true(str_find(o->reply.blocks.p[0].raw, S("\"x7\":1")) != SIZE_MAX);
        assert_true(str_find(o->reply.blocks.p[0].raw, S("\"x8\":1")) == SIZE_MAX);
        end(o);
        arena_free(a);
    }
}

static void test_model_openai_stream__an_event_of_ten_megabytes_is_taken_and_one_over_the_limit_is_not(
    void **state) {
    (void)state;
    arena *a = arena_new();
    buf in = buf_new(a, 0);
    buf_add(&in, S("data: {\"choices\":[{\"delta\":{\"content\":\""));
    buf_fill(&in, 'x', 10 << 20);
    buf_add(&in, S("\"}}]}\n\n" FINISH("stop") DONE));
    outcome *o = run(buf_str(&in), 16384);
    assert_int_equal(o->status, DEP_OK);
    assert_int_equal(o->reply.blocks.p[0].text.n, 10 << 20);
    end(o);

    openai_stream *s = openai_stream_new(a, NULL, NULL);
    buf line = buf_new(a, 0);
    bool done;
    dep_err err;
    buf_fill(&line, 'x', 1 << 20);
    assert_int_equal(openai_stream_feed(s, S(TEXT("so far") "data: "), &done, &err), DEP_OK);
    for (int i = 0; i < MODEL_EVENT_MAX >> 20; i++)
        assert_int_equal(openai_stream_feed(s, buf_str(&line), &done, &err), DEP_OK);
    assert_int_equal(openai_stream_feed(s, S("y"), &done, &err), DEP_ERR_LIMIT);
    model_reply r;
    assert_int_equal(openai_stream_end(s, false, &r, &err), DEP_OK);
    assert_str(r.blocks.p[0].text, S("so far"));
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_openai_stream__a_whole_reply_is_assembled_from_pieces_of_any_size),
        cmocka_unit_test(test_model_openai_stream__line_ends_marks_and_comments_make_no_difference),
        cmocka_unit_test(test_model_openai_stream__a_reason_or_the_end_mark_completes_a_stream),
        cmocka_unit_test(test_model_openai_stream__reasons),
        cmocka_unit_test(test_model_openai_stream__a_call_that_was_cut_off_is_dropped),
        cmocka_unit_test(test_model_openai_stream__a_refusal_is_its_text),
        cmocka_unit_test(test_model_openai_stream__errors_in_a_stream_end_it_and_keep_what_was_there),
        cmocka_unit_test(test_model_openai_stream__usage),
        cmocka_unit_test(test_model_openai_stream__what_is_no_such_stream_is_a_provider_error),
        cmocka_unit_test(test_model_openai_stream__odd_but_harmless_events_are_passed_over),
        cmocka_unit_test(test_model_openai_stream__thinking_is_taken_under_the_name_that_came_first),
        cmocka_unit_test(test_model_openai_stream__one_json_document_is_read_as_a_reply),
        cmocka_unit_test(test_model_openai_stream__a_whole_message_after_its_deltas_is_not_taken_twice),
        cmocka_unit_test(test_model_openai_calls__two_calls_stay_two_however_their_pieces_are_marked),
        cmocka_unit_test(test_model_openai_calls__arguments_in_single_bytes),
        cmocka_unit_test(test_model_openai_calls__a_piece_that_fits_two_calls_is_an_error_that_names_it),
        cmocka_unit_test(
            test_model_openai_calls__a_missing_id_is_made_and_an_id_of_two_calls_is_given_to_one),
        cmocka_unit_test(test_model_openai_calls__faulty_arguments_stay_a_call_with_bad_input),
        cmocka_unit_test(test_model_openai_calls__a_call_without_a_name_is_an_error),
        cmocka_unit_test(test_model_openai_calls__unknown_members_go_back),
        cmocka_unit_test(test_model_openai_calls__a_reply_may_have_a_thousand_calls_and_no_more),
        cmocka_unit_test(test_model_openai_calls__eight_unknown_members_are_kept_and_no_more),
        cmocka_unit_test(
            test_model_openai_stream__an_event_of_ten_megabytes_is_taken_and_one_over_the_limit_is_not),
    };
    return cmocka_run_group_tests_name("model_openai_stream", tests, NULL, NULL);
}
