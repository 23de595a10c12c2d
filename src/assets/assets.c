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
static const unsigned char sample_deputy_agent_memory_customer_service_memory[] = {
#embed "sample/deputy/agent-memory/customer-service/MEMORY.md"
};
static const unsigned char sample_deputy_agents_customer_service[] = {
#embed "sample/deputy/agents/customer-service.yaml"
};
static const unsigned char sample_deputy_config[] = {
#embed "sample/deputy/config.yaml"
};
static const unsigned char sample_deputy_skills_refund_policy_skill[] = {
#embed "sample/deputy/skills/refund-policy/SKILL.md"
};
static const unsigned char sample_deputy_skills_refund_policy_references_decision_table[] = {
#embed "sample/deputy/skills/refund-policy/references/decision-table.md"
};
static const unsigned char sample_deputy_skills_tone_guide_skill[] = {
#embed "sample/deputy/skills/tone-guide/SKILL.md"
};
static const unsigned char sample_readme[] = {
#embed "sample/README.md"
};
static const unsigned char sample_docs_app_and_wifi[] = {
#embed "sample/docs/app-and-wifi.md"
};
static const unsigned char sample_docs_cleaning_and_maintenance[] = {
#embed "sample/docs/cleaning-and-maintenance.md"
};
static const unsigned char sample_docs_daily_use[] = {
#embed "sample/docs/daily-use.md"
};
static const unsigned char sample_docs_error_codes[] = {
#embed "sample/docs/error-codes.md"
};
static const unsigned char sample_docs_faq[] = {
#embed "sample/docs/faq.md"
};
static const unsigned char sample_docs_glossary[] = {
#embed "sample/docs/glossary.md"
};
static const unsigned char sample_docs_installation[] = {
#embed "sample/docs/installation.md"
};
static const unsigned char sample_docs_overview[] = {
#embed "sample/docs/overview.md"
};
static const unsigned char sample_docs_policies_privacy[] = {
#embed "sample/docs/policies/privacy.md"
};
static const unsigned char sample_docs_policies_returns_and_refunds[] = {
#embed "sample/docs/policies/returns-and-refunds.md"
};
static const unsigned char sample_docs_policies_shipping[] = {
#embed "sample/docs/policies/shipping.md"
};
static const unsigned char sample_docs_policies_warranty[] = {
#embed "sample/docs/policies/warranty.md"
};
static const unsigned char sample_docs_quick_start[] = {
#embed "sample/docs/quick-start.md"
};
static const unsigned char sample_docs_settings[] = {
#embed "sample/docs/settings.md"
};
static const unsigned char sample_docs_spare_parts[] = {
#embed "sample/docs/spare-parts.md"
};
static const unsigned char sample_docs_troubleshooting[] = {
#embed "sample/docs/troubleshooting.md"
};
static const unsigned char sample_docs_what_goes_in[] = {
#embed "sample/docs/what-goes-in.md"
};
static const unsigned char sample_docs_zh_faq[] = {
#embed "sample/docs/zh/faq.md"
};

static const asset sample[] = {
    ROW(".deputy/.gitignore", sample_deputy_gitignore),
    ROW(".deputy/agent-memory/customer-service/MEMORY.md", sample_deputy_agent_memory_customer_service_memory),
    ROW(".deputy/agents/customer-service.yaml", sample_deputy_agents_customer_service),
    ROW(".deputy/config.yaml", sample_deputy_config),
    ROW(".deputy/skills/refund-policy/SKILL.md", sample_deputy_skills_refund_policy_skill),
    ROW(".deputy/skills/refund-policy/references/decision-table.md", sample_deputy_skills_refund_policy_references_decision_table),
    ROW(".deputy/skills/tone-guide/SKILL.md", sample_deputy_skills_tone_guide_skill),
    ROW("README.md", sample_readme),
    ROW("docs/app-and-wifi.md", sample_docs_app_and_wifi),
    ROW("docs/cleaning-and-maintenance.md", sample_docs_cleaning_and_maintenance),
    ROW("docs/daily-use.md", sample_docs_daily_use),
    ROW("docs/error-codes.md", sample_docs_error_codes),
    ROW("docs/faq.md", sample_docs_faq),
    ROW("docs/glossary.md", sample_docs_glossary),
    ROW("docs/installation.md", sample_docs_installation),
    ROW("docs/overview.md", sample_docs_overview),
    ROW("docs/policies/privacy.md", sample_docs_policies_privacy),
    ROW("docs/policies/returns-and-refunds.md", sample_docs_policies_returns_and_refunds),
    ROW("docs/policies/shipping.md", sample_docs_policies_shipping),
    ROW("docs/policies/warranty.md", sample_docs_policies_warranty),
    ROW("docs/quick-start.md", sample_docs_quick_start),
    ROW("docs/settings.md", sample_docs_settings),
    ROW("docs/spare-parts.md", sample_docs_spare_parts),
    ROW("docs/troubleshooting.md", sample_docs_troubleshooting),
    ROW("docs/what-goes-in.md", sample_docs_what_goes_in),
    ROW("docs/zh/faq.md", sample_docs_zh_faq),
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
