package offline

import (
	"strings"
	"testing"

	"memgpt"
)

func TestNamesWithSlips(t *testing.T) {
	for name, want := range map[string]Config{
		"offline":                                               {},
		"offline:seed=18446744073709551615":                     {Seed: 1<<64 - 1},
		"offline:forget_search=.3, seed = 2":                    {ForgetSearch: .3, Seed: 2},
		"offline:bad_query=1,forget_save=0.25,stop_paging=5e-1": {BadQuery: 1, ForgetSave: .25, StopPaging: .5},
	} {
		got, ok, err := Parse(name)
		if err != nil || !ok || got != want {
			t.Errorf("%s: got %+v, %v, %v", name, got, ok, err)
		}
		if again, ok, err := Parse(got.String()); again != want || !ok || err != nil {
			t.Errorf("%s came back as %+v", got, again)
		}
	}
	for _, name := range []string{"", "gpt-4", "offline2", "Offline", "offline-large"} {
		if got, ok, err := Parse(name); ok || err != nil || got != (Config{}) {
			t.Errorf("%q: got %+v, %v, %v", name, got, ok, err)
		}
	}
	for name, want := range map[string]string{
		"offline:": "there is no slip", "offline:forget=.1": `"forget"`, "offline:bad_query": "no share", "offline:bad_query=1.1": "within 0 and 1",
		"offline:bad_query=NaN": "within 0 and 1", "offline:seed=-1": "whole number", "offline:seed=1,": "there is no slip", "offline:bad_query=.1;seed=1": "no share",
	} {
		if got, ok, err := Parse(name); !ok || memgpt.CodeOf(err) != memgpt.CodeInvalid || !strings.Contains(err.Error(), want) || got != (Config{}) {
			t.Errorf("%s: got %+v, %v, %v; want %s", name, got, ok, err, want)
		}
	}
	m, err := New(Config{ForgetSearch: .3})
	if err != nil || m.Capabilities().Name != "offline:forget_search=0.3" || !m.Capabilities().StandIn {
		t.Errorf("it calls itself %q, %v", m.Capabilities().Name, err)
	}
}
