// take_agent: the definition that a verb is about to run.
#pragma once
#include "cli/cli_int.h"

// One that is not trusted, or what it rests on and lost its trust, is shown on a terminal and asked about
// with `question`; elsewhere it is refused with what to type. EXIT_FINE or the exit code.
int take_agent(cli *c, str name, str question, agent_entry **ret);
// A changed definition whose reach did not grow is recorded anew when it runs.
int renew_trust(cli *c, const agent_entry *e);
