package memtool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"memgpt/calendar"
	"strings"

	"memgpt"
	"memgpt/tool"
)

type storeArgs struct {
	Content string   `json:"content"`
	Tags    []string `json:"tags,omitempty"`
}

type updateArgs struct {
	ID      string `json:"id"`
	Content string `json:"content"`
}

type mergeArgs struct {
	IDs     []string `json:"ids"`
	Content string   `json:"content"`
}

type deleteArgs struct {
	ID string `json:"id"`
}

func archiveFunctions() []definition {
	text := map[string]string{"text": "content", "new_content": "content", "new_text": "content", "memory": "content", "value": "content"}
	id := map[string]string{"memory_id": "id", "passage_id": "id"}
	updated := maps.Clone(text)
	maps.Copy(updated, id)
	merged := maps.Clone(text)
	maps.Copy(merged, map[string]string{"id": "ids", "memory_ids": "ids", "passage_ids": "ids"})
	inserted := maps.Clone(text)
	inserted["tag"] = "tags"
	found := maps.Clone(dateAliases)
	found["tag"] = "tags"
	return []definition{
		define(definition{
			name: "archival_memory_insert", effect: memgpt.EffectMemory, aliases: inserted,
			full: "Store a passage in archival memory.",
		}, store),
		define(definition{
			name: "archival_memory_search", effect: memgpt.EffectRead, search: true, aliases: found,
			full: "Search archival memory and loaded documents.",
		}, searchArchive),
		define(definition{
			name: "archival_memory_update", effect: memgpt.EffectMemory, aliases: updated,
			full: "Replace a passage by a corrected one.",
		}, update),
		define(definition{
			name: "archival_memory_merge", effect: memgpt.EffectMemory, aliases: merged,
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
	p, added, err := c.Insert(ctx, args.Content, clean(args.Tags))
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
	return c.stored(p.ID, args.Content, alike)
}

// stored tells of a new passage, and of those that it resembles, so that the model can update or merge.
func (c call) stored(id, text string, alike []tool.Alike) (string, error) {
	out := []string{"Stored as " + id + "."}
	for _, a := range alike {
		l := c.hit(a.Hit, text)
		for _, d := range a.Differs {
			l.Differs = append(l.Differs, difference{d.Kind, d.Here, d.There})
		}
		line, err := marshal(l)
		if err != nil {
			return "", err
		}
		if len(out) == 1 {
			out = append(out, "Much the same is stored already, what differs is named, the newest counts. Merge or update what is outdated:")
		}
		out = append(out, string(line))
	}
	return strings.Join(out, "\n"), nil
}

func update(ctx context.Context, c call, args updateArgs) (string, error) {
	if strings.TrimSpace(args.Content) == "" {
		return "", emptyContent(", or call archival_memory_delete to take the passage out")
	}
	id, err := passageID(args.ID)
	if err != nil {
		return "", err
	}
	p, err := c.Supersede(ctx, []string{id}, args.Content)
	if err != nil {
		return "", err
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
	p, err := c.Supersede(ctx, ids, args.Content)
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
