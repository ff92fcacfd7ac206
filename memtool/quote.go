package memtool

import (
	"time"

	"memgpt"
	"memgpt/calendar"
	"memgpt/tool"
)

// line is a stored text as it is quoted: one JSON object on one line, so that nothing in a text can pass for another
// line. Fields stand in the order in which they are shown.
type line struct {
	ID           string         `json:"id"`
	Kind         memgpt.DocKind `json:"kind"`
	Asked        bool           `json:"asked,omitempty"`
	Time         string         `json:"time"`
	About        string         `json:"about,omitempty"`
	Ended        string         `json:"ended,omitempty"`
	Learned      string         `json:"learned,omitempty"`
	Conversation string         `json:"conversation,omitempty"`
	Archive      string         `json:"archive,omitempty"` // shared; none for the agent's own
	Role         memgpt.Role    `json:"role,omitempty"`
	Type         string         `json:"type,omitempty"`
	Name         string         `json:"name,omitempty"`
	Tags         []string       `json:"tags,omitempty"`
	Source       string         `json:"source,omitempty"`
	Heading      string         `json:"heading,omitempty"`
	SupersededBy string         `json:"superseded_by,omitempty"`
	Superseded   string         `json:"superseded,omitempty"`
	Newest       string         `json:"newest,omitempty"` // at the end of the chain of replacements
	Replaces     []string       `json:"replaces,omitempty"`
	From         []string       `json:"from,omitempty"`
	Calls        []madeCall     `json:"calls,omitempty"`
	Differs      []difference   `json:"differs,omitempty"`
	Newer        string         `json:"newer,omitempty"` // which of the two: new or stored
	Before       []neighbour    `json:"before,omitempty"`
	Text         string         `json:"text"`
	Cut          bool           `json:"cut,omitempty"`
	Offset       *int           `json:"offset,omitempty"`
	Length       int            `json:"length,omitempty"` // of the whole text, in characters
	After        []neighbour    `json:"after,omitempty"`
}

// neighbour is what stands before or after a hit, cut to a line.
type neighbour struct {
	ID   string      `json:"id"`
	Role memgpt.Role `json:"role,omitempty"`
	Name string      `json:"name,omitempty"`
	Text string      `json:"text"`
}

// maxNeighbour is how many characters of a neighbour are shown.
const maxNeighbour = 120

func neighbours(hits []tool.Hit) (list []neighbour) {
	for _, h := range hits {
		list = append(list, neighbour{h.ID, h.Role, h.Author, shorten(oneLine(h.Text), maxNeighbour)})
	}
	return list
}

// difference is a fact in which a passage differs from the one that was just stored.
type difference struct {
	Kind  string `json:"kind"`
	Here  string `json:"new"`
	There string `json:"stored"`
}

// madeCall is a call in an assistant's message.
type madeCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments,omitempty"`
}

// hit quotes a text found, cut to where it meets the query.
func (c call) hit(h tool.Hit, query string) line {
	l := line{ID: h.ID, Kind: h.Kind, Time: calendar.Format(h.Time, c.Now().Location())}
	if h.Kind == memgpt.KindPassage {
		l.Archive, l.Tags, l.Source = h.Archive, h.Tags, h.Source
		c.times(&l, h.Time, h.About, h.Ended, h.Learned)
		if l.SupersededBy = h.SupersededBy; l.SupersededBy != "" {
			l.Superseded = tool.DateText(h.Superseded, c.Now().Location())
		}
	} else {
		l.Conversation, l.Role, l.Name = h.Thread, h.Role, h.Author
		l.Before, l.After = neighbours(h.Before), neighbours(h.After)
	}
	l.cut(h.Text, query, c.excerpt)
	return l
}

// times sets what a passage says of time. When it was learned is told where that isn't when it was stored.
func (c call) times(l *line, stored, about, ended, learned time.Time) {
	zone := c.Now().Location()
	l.About, l.Ended = tool.DateText(about, zone), tool.DateText(ended, zone)
	if !learned.IsZero() && !learned.Equal(stored) {
		l.Learned = calendar.Format(learned, zone)
	}
}

// briefly quotes no more than memory_read needs, and what tells whether that is worth it.
func (c call) briefly(h tool.Hit, query string) line {
	l := line{ID: h.ID, Kind: h.Kind, Time: calendar.Format(h.Time, c.Now().Location())}
	l.cut(h.Text, query, min(c.excerpt, briefExcerpt))
	return l
}

// cut sets the text: whole if it has at most max characters, else those around the best place for the query.
func (l *line) cut(text, query string, max int) {
	l.Text = text
	if len(text) <= max {
		return
	}
	length := memgpt.Runes(text)
	if length <= max {
		return
	}
	at := tool.ExcerptAt(text, query, max)
	l.Text, l.Cut, l.Length = substring(text, at, at+max), true, length
	if at > 0 {
		l.Offset = &at
	}
}
