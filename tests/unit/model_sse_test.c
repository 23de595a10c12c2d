// Tests of model/sse.c: every stream is fed whole, byte by byte and in threes, and must give the same events.
#include <deputy/sse.h>
#include <support/support.h>

typedef struct {
    buf out;
    size_t events, stop_after;
} log;

static bool note(void *ctx, const sse_event *e) {
    log *l = ctx;
    buf_addf(&l->out, "%.*s=%.*s;", STR_ARG(e->event), STR_ARG(e->data));
    return ++l->events != l->stop_after;
}

static void feed_all(arena *a, str bytes, size_t piece, str expected, bool pending) {
    sse_reader *r = sse_new(a, 1000);
    log l = {.out = buf_new(a, 0)};
    bool stopped = true;
    for (size_t i = 0; i < bytes.n || i == 0; i += piece)
        assert_int_equal(sse_feed(r, str_sub(bytes, i, i + piece), note, &l, &stopped, NULL), DEP_OK);
    assert_false(stopped);
    str got = buf_str(&l.out);
    if (!str_eq(got, expected))
        fail_msg("pieces of %zu: \"%.*s\" gave \"%.*s\"", piece, STR_ARG(bytes), STR_ARG(got));
    if (sse_pending(r) != pending) fail_msg("\"%.*s\": pending is %d", STR_ARG(bytes), !pending);
}

static void test_model_sse__streams_give_their_events_in_pieces_of_any_size(void **state) {
    (void)state;
    static const struct {
        str bytes, events;
        bool pending;
    } rows[] = {
        {S_INIT(""), S_INIT(""), false},
        {S_INIT("data: x\n\n"), S_INIT("message=x;"), false},
        {S_INIT("data: x\r\n\r\n"), S_INIT("message=x;"), false},
        {S_INIT("data: x\r\r"), S_INIT("message=x;"), false},
        {S_INIT("data: x\r\n\ndata: y\n\r\n"), S_INIT("message=x;message=y;"), false},
        {S_INIT("event: ping\ndata: {}\n\n"), S_INIT("ping={};"), false},
        {S_INIT("data: {}\nevent: ping\n\n"), S_INIT("ping={};"), false},
        {S_INIT("event: a\nevent: b\ndata: x\n\n"), S_INIT("b=x;"), false},
        {S_INIT("event: a\n\ndata: x\n\n"), S_INIT("message=x;"), false},
        {S_INIT("data: a\ndata: b\ndata:\ndata\ndata: c\n\n"), S_INIT("message=a\nb\n\n\nc;"), false},
        {S_INIT("data\n\n"), S_INIT("message=;"), false},
        {S_INIT("data:\n\n"), S_INIT("message=;"), false},
        {S_INIT("data:  two blanks\n\n"), S_INIT("message= two blanks;"), false},
        {S_INIT("data:no blank\n\n"), S_INIT("message=no blank;"), false},
        {S_INIT("data: a:b: c\n\n"), S_INIT("message=a:b: c;"), false},
        {S_INIT(": comment\n\n:\n\n:ping\ndata: x\n\n"), S_INIT("message=x;"), false},
        {S_INIT("id: 1\nretry: 5\nunknown field: v\ndatabase: x\ndat: x\nevents: x\ndata: y\n\n"),
         S_INIT("message=y;"), false},
        {S_INIT(" data: x\n\n"), S_INIT(""), false},
        {S_INIT("DATA: x\n\n"), S_INIT(""), false},
        {S_INIT("\xEF\xBB\xBF"
                "data: x\n\n"),
         S_INIT("message=x;"), false},
        {S_INIT("\xEF\xBB\xBF\xEF\xBB\xBF"
                "data: x\n\n"),
         S_INIT(""), false},
        {S_INIT("\xEF\xBB"
                "data: x\n\ndata: y\n\n"),
         S_INIT("message=y;"), false},
        {S_INIT("data: \xE6\x97\xA5\xE6\x9C\xAC \xF0\x9F\x98\x80\n\n"),
         S_INIT("message=\xE6\x97\xA5\xE6\x9C\xAC \xF0\x9F\x98\x80;"), false},
        {S_INIT("data: \xE2\x80\xA8"
                "x\n\n"),
         S_INIT("message=\xE2\x80\xA8"
                "x;"),
         false},
        {S_INIT("\n\n\n\r\r\ndata: x\n\n"), S_INIT("message=x;"), false},
        {S_INIT("data: x\n"), S_INIT(""), true},
        {S_INIT("data: x"), S_INIT(""), true},
        {S_INIT("da"), S_INIT(""), true},
        {S_INIT("event: x\n"), S_INIT(""), true},
        {S_INIT("\xEF\xBB"), S_INIT(""), true},
        {S_INIT(": only a comment\n"), S_INIT(""), false},
        {S_INIT("data: x\n\ndata: y"), S_INIT("message=x;"), true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        arena *a = arena_new();
        for (size_t piece = 1; piece < 5; piece++)
            feed_all(a, rows[i].bytes, piece, rows[i].events, rows[i].pending);
        feed_all(a, rows[i].bytes, rows[i].bytes.n + 1, rows[i].events, rows[i].pending);
        arena_free(a);
    }
}

static void test_model_sse__nul_bytes_are_data(void **state) {
    (void)state;
    arena *a = arena_new();
    sse_reader *r = sse_new(a, 100);
    log l = {.out = buf_new(a, 0)};
    bool stopped;
    assert_int_equal(sse_feed(r, str_n("data: a\0b\n\n", 11), note, &l, &stopped, NULL), DEP_OK);
    assert_int_equal(l.events, 1);
    arena_free(a);
}

// An event whose kept bytes are `data` of n and an event name of `name` bytes, within a limit of 100.
static dep_status feed_sized(size_t data_lines, size_t line, size_t name, size_t piece, size_t *events,
                             dep_err *err) {
    arena *a = arena_new();
    buf in = buf_new(a, 0);
    if (name) {
        buf_add(&in, S("event: "));
        buf_fill(&in, 'n', name);
        buf_addc(&in, '\n');
    }
    for (size_t i = 0; i < data_lines; i++) {
        buf_add(&in, S("data: "));
        buf_fill(&in, 'x', line);
        buf_addc(&in, '\n');
    }
    buf_addc(&in, '\n');
    sse_reader *r = sse_new(a, 100);
    log l = {.out = buf_new(a, 0)};
    bool stopped;
    dep_status status = DEP_OK;
    str all = buf_str(&in);
    for (size_t i = 0; status == DEP_OK && i < all.n; i += piece)
        status = sse_feed(r, str_sub(all, i, i + piece), note, &l, &stopped, err);
    // A reader that passed its limit stays dead.
    if (status != DEP_OK)
        assert_int_equal(sse_feed(r, S("data: y\n\n"), note, &l, &stopped, NULL), DEP_ERR_LIMIT);
    *events = l.events;
    arena_free(a);
    return status;
}

static void test_model_sse__an_event_may_be_as_large_as_the_limit_and_no_larger(void **state) {
    (void)state;
    static const struct {
        size_t lines, line, name;
        bool fits;
    } rows[] = {
        {1, 100, 0, true}, {1, 101, 0, false}, {2, 49, 0, true},  {2, 50, 0, false},
        {1, 60, 40, true}, {1, 60, 41, false}, {1, 0, 100, true}, {1, 0, 101, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (size_t piece = 1; piece < 300; piece += 149) {
            size_t events;
            dep_err err = {0};
            // With two lines the line feed between them counts too.
            dep_status status = feed_sized(rows[i].lines, rows[i].line, rows[i].name, piece, &events, &err);
            assert_int_equal(status, rows[i].fits ? DEP_OK : DEP_ERR_LIMIT);
            assert_int_equal(events, rows[i].fits);
            if (!rows[i].fits)
                assert_string_equal(err.msg, "an event of the stream is larger than 100 bytes");
        }
    }
}

static void test_model_sse__comments_and_unknown_fields_of_any_length_keep_nothing(void **state) {
    (void)state;
    arena *a = arena_new();
    sse_reader *r = sse_new(a, 10);
    log l = {.out = buf_new(a, 0)};
    bool stopped;
    static char many[100000];
    memset(many, 'x', sizeof many);
    assert_int_equal(sse_feed(r, S(":"), note, &l, &stopped, NULL), DEP_OK);
    size_t before = arena_used(a);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(sse_feed(r, str_n(many, sizeof many), note, &l, &stopped, NULL), DEP_OK);
        if (i == 50) assert_int_equal(sse_feed(r, S("\n"), note, &l, &stopped, NULL), DEP_OK);
    }
    assert_int_equal(arena_used(a), before);
    assert_int_equal(sse_feed(r, S("\ndata: x\n\n"), note, &l, &stopped, NULL), DEP_OK);
    assert_int_equal(l.events, 1);
    arena_free(a);
}

static bool note_size(void *ctx, const sse_event *e) {
    *(size_t *)ctx = e->data.n;
    return true;
}

static void test_model_sse__an_event_of_ten_mebibytes_comes_whole(void **state) {
    (void)state;
    enum { SIZE = 10 << 20 };
    arena *a = arena_new();
    sse_reader *r = sse_new(a, 16 << 20);
    buf line = buf_new(a, 0);
    size_t got = 0;
    bool stopped;
    buf_fill(&line, 'y', 1 << 16);
    assert_int_equal(sse_feed(r, S("data: "), note_size, &got, &stopped, NULL), DEP_OK);
    for (size_t n = 0; n < SIZE; n += line.n)
        assert_int_equal(sse_feed(r, buf_str(&line), note_size, &got, &stopped, NULL), DEP_OK);
    assert_int_equal(sse_feed(r, S("\n\n"), note_size, &got, &stopped, NULL), DEP_OK);
    assert_int_equal(got, SIZE);
    arena_free(a);
}

static void test_model_sse__a_reader_that_was_stopped_drops_the_rest(void **state) {
    (void)state;
    arena *a = arena_new();
    sse_reader *r = sse_new(a, 100);
    log l = {.out = buf_new(a, 0), .stop_after = 2};
    bool stopped = false;
    assert_int_equal(sse_feed(r, S("data: 1\n\ndata: 2\n\ndata: 3\n\n"), note, &l, &stopped, NULL), DEP_OK);
    assert_true(stopped);
    stopped = false;
    assert_int_equal(sse_feed(r, S("data: 4\n\n"), note, &l, &stopped, NULL), DEP_OK);
    assert_true(stopped);
    assert_int_equal(l.events, 2);
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_sse__streams_give_their_events_in_pieces_of_any_size),
        cmocka_unit_test(test_model_sse__nul_bytes_are_data),
        cmocka_unit_test(test_model_sse__an_event_may_be_as_large_as_the_limit_and_no_larger),
        cmocka_unit_test(test_model_sse__comments_and_unknown_fields_of_any_length_keep_nothing),
        cmocka_unit_test(test_model_sse__an_event_of_ten_mebibytes_comes_whole),
        cmocka_unit_test(test_model_sse__a_reader_that_was_stopped_drops_the_rest),
    };
    return cmocka_run_group_tests_name("model_sse", tests, NULL, NULL);
}
