package memtool

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"memgpt"
	"memgpt/calendar"
	"memgpt/tool"
)

// maxAround is how many neighbours on each side memory_read shows at most.
const maxAround = 10

// maxArguments is how many characters of a call's arguments are shown.
const maxArguments = 300

type readArgs struct {
	ID     string `json:"id" jsonschema:"of a message or passage"`
	Offset int    `json:"offset,omitempty" jsonschema:"first character"`
	Around int    `json:"around,omitempty" jsonschema:"neighbours each side, up to 10"`
}

func readFunctions() []definition {
	return []definition{
		define(definition{
			name: "memory_read", effect: memgpt.EffectRead, search: true,
			full:    "Read the original of a message, passage or cut result.",
			aliases: map[string]string{"memory_id": "id", "message_id": "id", "passage_id": "id", "start": "offset", "context": "around"},
		}, read),
	}
}

func read(ctx context.Context, c call, args readArgs) (string, error) {
	id := strings.TrimSpace(args.ID)
	switch {
	case id == "":
		return "", errors.New("id is empty: give the id of a message or passage, as the search functions show it")
	case args.Offset < 0:
		return "", fmt.Errorf("offset is %d: characters count from 0", args.Offset)
	case args.Around < 0:
		return "", fmt.Errorf("around is %d: give 0 to %d", args.Around, maxAround)
	}
	originals, err := c.Read(ctx, id, min(args.Around, maxAround))
	if err != nil {
		return "", err
	}
	return c.fitted(func(c call) (string, error) { return c.readOn(id, args, originals) })
}

// readOn renders the page of the original that begins at the offset, with its neighbours.
func (c call) readOn(id string, args readArgs, originals []tool.Original) (string, error) {
	out, found, next := []string{}, false, 0
	for _, o := range originals {
		l := c.original(o)
		if o.Asked {
			found = true
			var err error
			if next, err = l.turn(o.Text, args.Offset, c.page); err != nil {
				return "", err
			}
		}
		text, err := marshal(l)
		if err != nil {
			return "", err
		}
		out = append(out, string(text))
	}
	if !found {
		return "", fmt.Errorf("nothing with the id %s is stored: copy the id from a search result", quote(shorten(id, 80)))
	}
	if args.Around > maxAround {
		out = append(out, fmt.Sprintf("Neighbours: %d each side are the most.", maxAround))
	}
	if next > 0 {
		out = append(out, fmt.Sprintf("Read on: offset=%d", next))
	}
	return strings.Join(out, "\n"), nil
}

// original quotes a stored text; a long one is cut to its beginning.
func (c call) original(o tool.Original) line {
	l := line{ID: o.ID, Kind: o.Kind, Asked: o.Asked, Time: calendar.Format(o.Time, c.Now().Location()),
		Conversation: o.Thread, Role: o.Role, Name: o.Author, Archive: o.Archive, Tags: o.Tags, Source: o.Source, Heading: o.Heading, SupersededBy: o.Replaced}
	c.times(&l, o.Time, o.About, o.Ended, o.Learned)
	l.Superseded, l.Newest, l.Replaces, l.From = tool.DateText(o.Superseded, c.Now().Location()), o.Newest, o.Replaces, o.From
	if o.Type != memgpt.EventUser {
		l.Type = string(o.Type)
	}
	for _, made := range o.Calls {
		shown := madeCall{Name: made.Name}
		if _, spoken := made.Spoken(); !spoken { // what was said is the text
			shown.Arguments = shorten(made.Arguments, maxArguments)
		}
		l.Calls = append(l.Calls, shown)
	}
	if !o.Asked {
		l.cut(o.Text, "", c.excerpt)
	}
	return l
}

// turn shows the page of the text that begins at an offset. It returns where the next one begins, 0 after the last.
func (l *line) turn(text string, offset, size int) (int, error) {
	length := memgpt.Runes(text)
	if offset > 0 && offset >= length {
		return 0, fmt.Errorf("offset %s is beyond the end: the text has %s characters, the last page begins at offset=%d",
			thousands(offset), thousands(length), max(0, length-1)/size*size)
	}
	end := min(offset+size, length)
	l.Text, l.Offset, l.Length = substring(text, offset, end), &offset, length
	if end == length {
		return 0, nil
	}
	return end, nil
}
