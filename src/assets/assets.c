// Embedded files: the bundled definitions and the sample workspace. The only place where #embed is used. In
// the repository the sample's `.deputy` folder is stored as `deputy` and its `.gitignore` as `gitignore`, so
// that neither acts on this repository; the tables give the names under which they are written. A new file
// takes a constant and a row here; tables stay in byte order.
#include <deputy/assets.h>

// clang-format off
#define ROW(target, array) {S_INIT(target), {(const char *)(array), sizeof(array)}}

// Bundled definitions
static const unsigned char agent_code_reviewer[] = {
#embed "../../agents/code-reviewer.yaml"
};
static const unsigned char agent_explorer[] = {
#embed "../../agents/explorer.yaml"
};
static const unsigned char agent_fixer[] = {
#embed "../../agents/fixer.yaml"
};
static const unsigned char agent_librarian[] = {
#embed "../../agents/librarian.yaml"
};
static const unsigned char agent_main[] = {
#embed "../../agents/main.yaml"
};
static const unsigned char agent_test_runner[] = {
#embed "../../agents/test-runner.yaml"
};

static const asset agents[] = {
    ROW("code-reviewer.yaml", agent_code_reviewer),
    ROW("explorer.yaml", agent_explorer),
    ROW("fixer.yaml", agent_fixer),
    ROW("librarian.yaml", agent_librarian),
    ROW("main.yaml", agent_main),
    ROW("test-runner.yaml", agent_test_runner),
};

// Sample workspace
static const unsigned char sample_deputy_gitignore[] = {
#embed "sample/deputy/gitignore"
};

static const asset sample[] = {
    ROW(".deputy/.gitignore", sample_deputy_gitignore),
};
// clang-format on

const asset *assets_agents(size_t *n) {
    *n = sizeof(agents) / sizeof(agents[0]);
    return agents;
}

const asset *assets_sample(size_t *n) {
    *n = sizeof(sample) / sizeof(sample[0]);
    return sample;
}
