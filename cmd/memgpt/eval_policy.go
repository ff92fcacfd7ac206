package main

import (
	"errors"
	"fmt"
	"strings"

	"memgpt"
	"memgpt/eval"
)

// policyKeys are what --policy takes, with the agent's setting of the same meaning; summary has none.
var policyKeys = [...][2]string{{"alert", "alert"}, {"flush", "flush"}, {"target", "target"}, {"page", "page_size"}, {"prefetch", "prefetch_budget"},
	{"protocol", "protocol"}, {"summary", ""}}

const policyHelp = "alert, flush and target (shares of the usable window, as .7), page (hits a page of search results), summary (on, off),\n" +
	"protocol (memgpt, native), prefetch (tokens that may be handed over); \"agents set\" has the same settings but summary"

// parsePolicy reads policies written as key=value, with commas between. What is wrong is said as for an agent's settings.
func parsePolicy(text string) (p eval.Policy, err error) {
	if strings.TrimSpace(text) == "" {
		return p, nil
	}
	var pairs []string
	var wrong []error
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(part, "=")
		name, known := policySetting(strings.TrimSpace(key))
		switch value = strings.TrimSpace(value); {
		case !known:
			wrong = append(wrong, fmt.Errorf("there is no policy %q; the policies are %s", strings.TrimSpace(key), policyNames()))
		case !ok || value == "":
			wrong = append(wrong, fmt.Errorf("%q has no value: write it as %s=value", part, strings.TrimSpace(key)))
		case name != "":
			pairs = append(pairs, name+"="+value)
		case p.Summary != "":
			wrong = append(wrong, errors.New("summary is set twice"))
		case value != eval.SummaryOn && value != eval.SummaryOff:
			wrong = append(wrong, fmt.Errorf("summary is %q: it takes %s or %s", value, eval.SummaryOn, eval.SummaryOff))
		default:
			p.Summary = value
		}
	}
	agent, err := apply(memgpt.Agent{}, pairs)
	if err := errors.Join(append(wrong, err)...); err != nil {
		return eval.Policy{}, err
	}
	p.Alert, p.Flush, p.Target, p.PageSize = agent.Policy.Alert, agent.Policy.Flush, agent.Policy.Target, agent.Policy.PageSize
	p.Protocol, p.Prefetch = agent.Protocol, agent.Prefetch.Budget
	return p, nil
}

// policySetting returns the agent's setting of a policy.
func policySetting(key string) (name string, ok bool) {
	for _, k := range policyKeys {
		if k[0] == key {
			return k[1], true
		}
	}
	return "", false
}

func policyNames() string {
	var names []string
	for _, k := range policyKeys {
		names = append(names, k[0])
	}
	return strings.Join(names, ", ")
}
