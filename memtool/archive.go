package memtool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"memgpt"
	"memgpt/calendar"
	"memgpt/tool"
)

type storeArgs struct {
	Content string   `json:"content"`
	Tags    []string `json:"tags,omitempty"`
	About   string   `json:"about,omitempty" jsonschema:"date it holds from"`
	From    []string `json:"from,omitempty" jsonschema:"ids of messages"`
}

type updateArgs struct {
	ID      string   `json:"id"`
	Content string   `json:"content"`
	Ended   string   `json:"ended,omitempty" jsonschema:"date the old was true until"`
	About   string   `json:"about,omitempty"`
	From    []string `json:"from,omitempty"`
}

type mergeArgs struct {
	IDs     []string `json:"ids"`
	Content string   `json:"content"`
	Ended   string   `json:"ended,omitempty"`
	About   string   `json:"about,omitempty"`
	From    []string `json:"from,omitempty"`
}

type deleteArgs struct {
	ID string `json:"id"`
}

// factArgs are the arguments that say when a fact holds; windows for which the compact form is made have no room for them.
var factArgs = []string{"about", "from", "ended"}

// factAliases are older or likely spellings of them.
var factAliases = map[string]string{"date": "about", "when": "about", "valid_from": "about", "message_ids": "from", "messages": "from"}

func archiveFunctions() []definition {
	text := map[string]string{"text": "content", "new_content": "content", "new_text": "content", "memory": "content", "value": "content"}
	id := map[string]string{"memory_id": "id", "passage_id": "id"}
	updated := maps.Clone(text)
	maps.Copy(updated, id)
	merged := maps.Clone(text)
	maps.Copy(merged, map[string]string{"id": "ids", "memory_ids": "ids", "passage_ids": "ids"})
	inserted := both(map[string]string{"tag": "tags"}, text)
	for _, m := range []map[string]string{inserted, updated, merged} {
		maps.Copy(m, factAliases)
	}
	for _, m := range []map[string]string{updated, merged} {
		maps.Copy(m, map[string]string{"valid_until": "ended", "until": "ended"})
	}
	found := maps.Clone(dateAliases)
	maps.Copy(found, map[string]string{"tag": "tags", "known_at": "as_of"})
	return []definition{
		define(definition{
			name: "archival_memory_insert", effect: memgpt.EffectMemory, aliases: inserted, fullOnly: factArgs,
			full: "Store a passage in archival memory.",
		}, store),
		define(definition{
			name: "archival_memory_search", effect: memgpt.EffectRead, search: true, aliases: found, fullOnly: []string{"as_of"},
			full: "Search archival memory and loaded documents.",
		}, searchArchive),
		define(definition{
			name: "archival_memory_update", effect: memgpt.EffectMemory, aliases: updated, fullOnly: factArgs,
			full: "Replace a passage by a corrected one.",
		}, update),
		define(definition{
			name: "archival_memory_merge", effect: memgpt.EffectMemory, aliases: merged, fullOnly: factArgs,
			full: "Replace several passages by one.",
		}, merge),
		define(definition{
			name: "archival_memory_delete", effect: memgpt.EffectMemory, aliases: id,
			full: "Take a passage out of archival memory.",
		}, remove),
	}
}

func store(ctx context.Context, c call, args storeArgs) (string, error) {
	if strings.TrimSpace(args.Content) == "" {
		return "", emptyContent("")
	}
	fact, err := c.fact(args.Content, args.About, args.From)
	if err != nil {
		return "", err
	}
	fact.Tags = clean(args.Tags)
	p, added, err := c.Insert(ctx, fact)
	if err != nil {
		return "", err
	}
	if !added {
		return fmt.Sprintf("Already stored as %s since %s; nothing was added.", p.ID, calendar.Format(p.Time, c.Now().Location())), nil
	}
	alike, err := c.Alike(ctx, args.Content)
	if err != nil {
		return "", err
	}
	return c.stored(p, args.Content, alike)
}

// fact reads what the functions that store a passage have in common.
func (c call) fact(text, about string, from []string) (tool.NewPassage, error) {
	at, err := factDate("about", about, c.Now())
	return tool.NewPassage{Text: text, About: at, From: clean(from)}, err
}

// stored tells of a new passage, and of those that it resembles, so that the model can update or merge. Both dates stand where facts
// differ.
func (c call) stored(p memgpt.Passage, text string, alike []tool.Alike) (string, error) {
	out := []string{"Stored as " + p.ID + c.datesOf(p) + "."}
	for _, a := range alike {
		l := c.hit(a.Hit, text)
		for _, d := range a.Differs {
			l.Differs = append(l.Differs, difference{d.Kind, d.Here, d.There})
		}
		if len(a.Differs) > 0 {
			l.Newer = newerText(p, a.Hit)
		}
		line, err := marshal(l)
		if err != nil {
			return "", err
		}
		if len(out) == 1 {
			out = append(out, "Much the same is stored already, what differs is named, with which of the two is newer. Merge or update what is outdated;"+
				" what was true and is no more: archival_memory_update with ended:")
		}
		out = append(out, string(line))
	}
	return strings.Join(out, "\n"), nil
}

// datesOf shows what time a new passage is about and when it was learned, where the model said so.
func (c call) datesOf(p memgpt.Passage) string {
	var parts []string
	if !p.About.IsZero() {
		parts = append(parts, "about "+tool.DateText(p.About, c.Now().Location()))
	}
	if !p.Learned.IsZero() {
		parts = append(parts, "learned "+calendar.Format(p.Learned, c.Now().Location()))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// newerText says which of a new passage and a stored one counts: "new", "stored", or "" where they are of one time.
func newerText(p memgpt.Passage, stored tool.Hit) string {
	switch cmp.Or(dateOf(p.About, tool.Learned(&p)).Compare(dateOf(stored.About, stored.Learned)), tool.Learned(&p).Compare(stored.Learned)) {
	case 1:
		return "new"
	case -1:
		return "stored"
	}
	return ""
}

func dateOf(about, learned time.Time) time.Time {
	if about.IsZero() {
		return learned
	}
	return about
}

func update(ctx context.Context, c call, args updateArgs) (string, error) {
	id, err := passageID(args.ID)
	if err != nil {
		return "", err
	}
	ended, err := factDate("ended", args.Ended, c.Now())
	switch {
	case err != nil:
		return "", err
	case strings.TrimSpace(args.Content) == "" && ended.IsZero():
		return "", emptyContent(", give ended alone to say since when it is true no more, or call archival_memory_delete to take the passage out")
	case strings.TrimSpace(args.Content) == "":
		if _, err = c.End(ctx, id, ended); err != nil {
			return "", err
		}
		return fmt.Sprintf("%s is marked as true until %s.", id, tool.DateText(ended, c.Now().Location())), nil
	}
	fact, err := c.fact(args.Content, args.About, args.From)
	if err != nil {
		return "", err
	}
	p, err := c.Supersede(ctx, []string{id}, ended, fact)
	switch {
	case err != nil:
		return "", err
	case p.ID == id && !ended.IsZero():
		return fmt.Sprintf("%s has this text already; it is marked as true until %s.", id, tool.DateText(ended, c.Now().Location())), nil
	case p.ID == id:
		return fmt.Sprintf("%s has this text already; nothing was changed.", id), nil
	}
	return fmt.Sprintf("Stored as %s; it replaces %s.", p.ID, id), nil
}

func merge(ctx context.Context, c call, args mergeArgs) (string, error) {
	if strings.TrimSpace(args.Content) == "" {
		return "", emptyContent("")
	}
	ids := clean(args.IDs)
	if len(ids) < 2 {
		return "", fmt.Errorf("ids names %s: give at least two different ones, or call archival_memory_update to replace one",
			count(len(ids), "passage"))
	}
	ended, err := factDate("ended", args.Ended, c.Now())
	if err != nil {
		return "", err
	}
	fact, err := c.fact(args.Content, args.About, args.From)
	if err != nil {
		return "", err
	}
	p, err := c.Supersede(ctx, ids, ended, fact)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Stored as %s; it replaces %s.", p.ID, strings.Join(ids, ", ")), nil
}

func remove(ctx context.Context, c call, args deleteArgs) (string, error) {
	id, err := passageID(args.ID)
	if err != nil {
		return "", err
	}
	if _, err := c.Delete(ctx, id); err != nil {
		return "", err
	}
	return fmt.Sprintf("Deleted %s: no search finds it any more.", id), nil
}

func emptyContent(or string) error {
	return fmt.Errorf("content is empty: write the text of the passage%s", or)
}

func passageID(id string) (string, error) {
	if id = strings.TrimSpace(id); id == "" {
		return "", errors.New("id is empty: give the id of a passage, as archival_memory_search shows it")
	}
	return id, nil
}
