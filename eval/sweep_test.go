package eval

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// A policy that has nothing to act on makes no difference, one that acts is told, and a loss of all evidence is called less.
func TestSweepVerdicts(t *testing.T) {
	s, cfg := talkSuite(t), Config{Model: seeker("conversation_search", "so it is")}
	base := run(t, cfg, s)
	flush, page := cfg, cfg
	flush.Policy.Flush, page.Policy.PageSize = .9, 1 // a fresh conversation never fills; every question has several hits
	lost := *base
	lost.Records = nil
	for range 3 { // twelve questions, so that a difference can be told from chance
		for _, r := range base.Records {
			r.Question += strings.Repeat("+", len(lost.Records))
			r.Evidence = []Piece{r.Evidence[0]}
			r.Evidence[0].Shown = true
			lost.Records = append(lost.Records, r)
		}
	}
	all := lost
	lost.Records = append([]Record(nil), all.Records...)
	for i := range lost.Records {
		lost.Records[i].Evidence = []Piece{{ID: lost.Records[i].Evidence[0].ID, Stored: true}}
	}
	runs := []SweepRun{{Factor: "flush", Value: ".9", Report: run(t, flush, s)}, {Factor: "page", Value: "1", Report: run(t, page, s)}}
	if err := JudgeSweep(base, runs); err != nil {
		t.Fatal(err)
	}
	if runs[0].Verdict != SweepSame || runs[1].Verdict == SweepSame || runs[1].Report.Tokens >= base.Tokens || runs[1].Diff == nil {
		t.Errorf("flush: %s; page: %s", runs[0].Verdict, runs[1].Verdict)
	}
	planted := []SweepRun{{Factor: "x", Value: "1", Report: &lost}, {Factor: "x", Value: "2", Report: &all}}
	if err := JudgeSweep(&all, planted); err != nil {
		t.Fatal(err)
	}
	if p, _ := McNemar(12, 0); planted[0].Verdict != SweepLess || *planted[0].P != 2*p || planted[1].Verdict != SweepSame {
		t.Errorf("%+v", planted)
	}
	if err := JudgeSweep(&lost, planted[1:]); err != nil || planted[1].Verdict != SweepMore {
		t.Errorf("%v, %+v", err, planted[1])
	}

	var held bytes.Buffer
	if err := WriteSweep(&held, []SweepRun{{Report: run(t, Config{Model: cfg.Model, Live: true}, liveTalk(60))}}); err != nil || !strings.Contains(held.String(), "live: alerts") {
		t.Errorf("%v, %s", err, held.String())
	}
	var text, lines bytes.Buffer
	table := append([]SweepRun{{Report: base}}, runs...)
	if err := WriteSweep(&text, table); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"default ", "(default)", "flush=.9", SweepSame, "page=1", "alert=0.7 flush=1 target=0.5 page=5 summary=on"} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("there is no %q in\n%s", part, text.String())
		}
	}
	if err := WriteSweepJSON(&lines, table); err != nil {
		t.Fatal(err)
	}
	var r SweepRun
	if list := strings.Split(strings.TrimSpace(lines.String()), "\n"); len(list) != 3 || json.Unmarshal([]byte(list[2]), &r) != nil || r.Report.Policy.PageSize != 1 || r.Verdict != runs[1].Verdict {
		t.Errorf("%s", lines.String())
	}
}
