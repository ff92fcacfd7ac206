package main

import (
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"

	"memgpt"
)

// Bounds of the settings of reach.
const (
	mostTags  = 32
	longTag   = 64 // characters
	leastWait = time.Second
)

// reachSettings say whom an agent reaches beside its user.
func reachSettings() []setting {
	return []setting{
		switchSetting("messages", "on or off: whether it may write to other agents, and they to it",
			func(a *memgpt.Agent) *bool { return &a.Reach.Agents }),
		{"tags", "words under which other agents find it, as a,b", "none", func(a *memgpt.Agent, v string) error {
			tags, err := readTags(v)
			if err == nil {
				a.Reach.Tags = tags
			}
			return err
		}, func(a *memgpt.Agent) string { return strings.Join(a.Reach.Tags, ",") }},
		spanSetting("reply_wait", "how long it waits for another agent's answer", "2m",
			func(a *memgpt.Agent) *time.Duration { return &a.Reach.Wait }, leastWait),
		hookSetting(),
	}
}

// switchSetting is one that is on or off; off where it isn't set.
func switchSetting(name, about string, at func(*memgpt.Agent) *bool) setting {
	return setting{name, about, "off", func(a *memgpt.Agent, v string) error {
		if v != "" && v != "on" && v != "off" {
			return errors.New("it takes on or off")
		}
		*at(a) = v == "on"
		return nil
	}, func(a *memgpt.Agent) string {
		if *at(a) {
			return "on"
		}
		return ""
	}}
}

func readTags(v string) ([]string, error) {
	var tags []string
	for tag := range strings.SplitSeq(memgpt.CleanText(v), ",") {
		if tag = strings.TrimSpace(tag); tag == "" || slices.Contains(tags, tag) {
			continue
		}
		if memgpt.Runes(tag) > longTag || strings.ContainsFunc(tag, unicode.IsControl) {
			return nil, errors.New("a tag has up to 64 characters, and no control characters")
		}
		tags = append(tags, tag)
	}
	if len(tags) > mostTags {
		return nil, errors.New("it takes up to 32 tags")
	}
	return tags, nil
}
