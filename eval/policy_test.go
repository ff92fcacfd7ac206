package eval

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/model/script"
)

// policyPlain is what a report says where no policy was given and nothing is handed over.
func policyPlain() *Policy {
	p := DefaultPolicy()
	p.Prefetch = 0
	return &p
}

// The defaults that eval states are those that agents have: spelled out they change nothing.
func TestDefaultPolicyIsThatOfAgents(t *testing.T) {
	plain := run(t, Config{Model: standIn(t), Live: true, Mode: ModeBoth, Parallel: 1}, liveTalk(60))
	spelled := run(t, Config{Model: standIn(t), Live: true, Mode: ModeBoth, Parallel: 1, Policy: DefaultPolicy()}, liveTalk(60))
	plain.Prefetch.Budget = spelled.Prefetch.Budget // 0 where it wasn't given
	if diff := cmp.Diff(plain, spelled); diff != "" {
		t.Error(diff)
	}
	if plain.Records[0].Policy != "live" || plain.Policy.Prefetch != 1000 || plain.Pressure.Live.Alerts == 0 {
		t.Errorf("%q, %+v, %+v", plain.Records[0].Policy, plain.Policy, plain.Pressure.Live)
	}
}

// policyRun holds a live conversation with a model that does nothing about alerts, and tells how many messages stood in the
// request that raised the first.
func policyRun(t *testing.T, p Policy) (rep *Report, first int) {
	t.Helper()
	m := script.New(script.Config{CountOnly: true, Func: func(_ int, req *memgpt.Request) script.Reply {
		last := &req.Messages[len(req.Messages)-1]
		switch {
		case pressed(req) && first == 0:
			first = len(req.Messages)
		case last.Role != memgpt.RoleTool && !pressed(req):
			return script.Call("conversation_search", "query", "weather tide rope harbour", "request_heartbeat", true)
		}
		return script.Say("so it is")
	}, Summary: func(*memgpt.Request) script.Reply { return script.Text("They spoke of rope.\nSearch for: rope") }})
	return run(t, Config{Model: m, Live: true, Parallel: 1, Policy: p}, liveTalk(90)), first
}

// Each policy does what it says in a conversation that fills the window.
func TestPoliciesAct(t *testing.T) {
	rep, first := policyRun(t, Policy{}) // page is in TestSweepVerdicts, protocol in TestLiveConversation
	base := rep.Pressure.Live
	if _, early := policyRun(t, Policy{Alert: .6}); early >= first {
		t.Errorf("the first alert at .6 came with %d messages, at .7 with %d", early, first)
	}
	if _, late := policyRun(t, Policy{Alert: .9}); late <= first {
		t.Errorf("the first alert at .9 came with %d messages, at .7 with %d", late, first)
	}
	if r, _ := policyRun(t, Policy{Flush: .8}); r.Pressure.Live.Flushes <= base.Flushes {
		t.Errorf("flushes at .8: %+v; at 1: %+v", r.Pressure.Live, base)
	}
	deep, _ := policyRun(t, Policy{Target: .2})
	if d := deep.Pressure.Live; d.Evicted*base.Flushes <= base.Evicted*d.Flushes {
		t.Errorf("down to .2: %+v; down to .5: %+v", d, base)
	}
	off, _ := policyRun(t, Policy{Summary: SummaryOff})
	if l := off.Pressure.Live; l.Evicted == 0 || l.Calls != l.Alerts || base.Calls <= base.Alerts || off.Policy.Summary != SummaryOff {
		t.Errorf("without summaries: %+v; with them: %+v", l, base)
	}
}

func TestPolicyRefuses(t *testing.T) {
	for want, cfg := range map[string]Config{
		"no memory to manage":      {Mode: ModeFull, Policy: Policy{Alert: .9}},
		`summary is "maybe"`:       {Policy: Policy{Summary: "maybe"}},
		"nothing is handed over":   {Policy: Policy{Prefetch: 500}},
		"given twice, 400 and 500": {Mode: ModeBoth, Budget: 400, Policy: Policy{Prefetch: 500}},
	} {
		cfg.Open, cfg.Model = newOpener(t).make, standIn(t)
		if _, err := Run(t.Context(), cfg, talkSuite(t)); err == nil || memgpt.CodeOf(err) != memgpt.CodeInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
