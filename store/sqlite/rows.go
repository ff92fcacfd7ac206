package sqlite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"memgpt"
)

// The types of this file are the file format of what is kept as JSON: they give each field of the vocabulary the name
// that it has on disk, "-" where it has a column of its own. The conversions do not compile when a field is added there,
// so that none is forgotten here.

type agentRow struct {
	ID     string `json:"-"`
	Tenant string `json:"-"`
	Name   string `json:"-"`

	System    string          `json:"system,omitempty"`
	Protocol  memgpt.Protocol `json:"protocol,omitempty"`
	Model     string          `json:"model,omitempty"`
	Window    int             `json:"window,omitempty"`
	Zone      string          `json:"zone,omitempty"`
	Blocks    []string        `json:"blocks,omitempty"`
	Tools     []string        `json:"tools"`
	Archives  []string        `json:"archives,omitempty"`
	Policy    memgpt.Policy   `json:"policy,omitzero"`
	Heartbeat time.Duration   `json:"heartbeat,omitempty"`
	Prefetch  memgpt.Prefetch `json:"prefetch,omitzero"`
	Budget    memgpt.Budget   `json:"budget,omitzero"`
	Timers    memgpt.Timers   `json:"timers,omitzero"`
	Reach     memgpt.Reach    `json:"reach,omitzero"`
	Tidy      memgpt.Tidy     `json:"tidy,omitzero"`

	Created time.Time `json:"created,omitzero"`
	Version int64     `json:"-"`
}

type threadRow struct {
	ID     string `json:"-"`
	Tenant string `json:"-"`
	Agent  string `json:"-"`
	Name   string `json:"-"`

	Next   int64 `json:"next,omitempty"`
	Head   int64 `json:"-"`
	Folded int64 `json:"folded,omitempty"`
	Asked  int64 `json:"asked,omitempty"`

	Summary memgpt.Summary    `json:"-"`
	Alerted bool              `json:"alerted,omitempty"`
	Open    []memgpt.OpenCall `json:"open,omitempty"`
	Paused  time.Time         `json:"paused,omitzero"`
	Seen    time.Time         `json:"seen,omitzero"`

	Created time.Time `json:"created,omitzero"`
	Version int64     `json:"-"`
}

type blockRow struct {
	ID          string `json:"-"`
	Tenant      string `json:"-"`
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
	Value       string `json:"value"`
	Limit       int    `json:"limit,omitempty"`
	ReadOnly    bool   `json:"read_only,omitempty"`
	Version     int64  `json:"-"`
}

type editRow struct {
	Block   string       `json:"-"`
	Version int64        `json:"version"`
	Value   string       `json:"value"`
	Time    time.Time    `json:"time,omitzero"`
	Cause   memgpt.Cause `json:"cause,omitzero"`
}

type passageRow struct {
	ID           string       `json:"id"`
	Tenant       string       `json:"-"`
	Owner        string       `json:"-"`
	Text         string       `json:"text"`
	Tags         []string     `json:"tags,omitempty"`
	Seq          int64        `json:"-"`
	Source       string       `json:"source,omitempty"`
	Heading      string       `json:"heading,omitempty"`
	Position     int64        `json:"position,omitempty"`
	Time         time.Time    `json:"time,omitzero"`
	About        time.Time    `json:"about,omitzero"`
	Ended        time.Time    `json:"ended,omitzero"`
	Learned      time.Time    `json:"learned,omitzero"`
	From         []string     `json:"from,omitempty"`
	Key          string       `json:"-"`
	SupersededBy string       `json:"superseded_by,omitempty"`
	Superseded   time.Time    `json:"superseded,omitzero"`
	Replaced     time.Time    `json:"replaced,omitzero"`
	WasEnded     time.Time    `json:"was_ended,omitzero"`
	Deleted      time.Time    `json:"deleted,omitzero"`
	Cause        memgpt.Cause `json:"cause,omitzero"`
}

type eventRow struct {
	ID      string           `json:"-"`
	Tenant  string           `json:"-"`
	Agent   string           `json:"-"`
	Thread  string           `json:"-"`
	Type    memgpt.EventType `json:"type,omitempty"`
	Key     string           `json:"-"`
	Due     time.Time        `json:"due,omitzero"`
	Created time.Time        `json:"created,omitzero"`
	Message memgpt.Message   `json:"-"` // see encoders.event
	Turn    string           `json:"turn,omitempty"`
	Step    int              `json:"step,omitempty"`
	Begun   bool             `json:"begun,omitempty"`

	Delivery memgpt.Delivery `json:"delivery,omitempty"`
	Timer    *memgpt.Timer   `json:"timer,omitempty"`
	Mail     *memgpt.Mail    `json:"mail,omitempty"`
	Order    int64           `json:"-"`
}

type turnRow struct {
	ID      string            `json:"-"`
	Tenant  string            `json:"-"`
	Agent   string            `json:"-"`
	Thread  string            `json:"-"`
	Event   string            `json:"event,omitempty"`
	Type    memgpt.EventType  `json:"type,omitempty"`
	State   memgpt.TurnState  `json:"state,omitempty"`
	Stop    memgpt.StopReason `json:"stop,omitempty"`
	Into    string            `json:"into,omitempty"`
	Error   string            `json:"error,omitempty"`
	Steps   int               `json:"steps,omitempty"`
	Spoke   int               `json:"spoke,omitempty"`
	Usage   memgpt.Usage      `json:"usage,omitzero"`
	Flags   []string          `json:"flags,omitempty"`
	Started time.Time         `json:"started,omitzero"`
	Ended   time.Time         `json:"ended,omitzero"`

	Searches int                `json:"searches,omitempty"`
	Prefetch *memgpt.Prefetched `json:"prefetch,omitempty"`
}

// encoder writes JSON with text as it is.
type encoder struct {
	buf bytes.Buffer
	enc *json.Encoder
}

// encoders are kept for reuse by a Store.
type encoders struct{ pool sync.Pool }

func newEncoders() *encoders {
	return &encoders{pool: sync.Pool{New: func() any {
		e := &encoder{}
		e.enc = json.NewEncoder(&e.buf)
		e.enc.SetEscapeHTML(false)
		return e
	}}}
}

func (es *encoders) json(v any, what, id string) (string, error) {
	e := es.pool.Get().(*encoder)
	defer es.pool.Put(e)
	e.buf.Reset()
	if err := e.enc.Encode(v); err != nil {
		return "", memgpt.Errorf(memgpt.CodeInvalid, "encode %s %s: %w", what, id, err)
	}
	return string(bytes.TrimSuffix(e.buf.Bytes(), []byte{'\n'})), nil
}

func decode(data string, v any, what string) error {
	if err := json.Unmarshal([]byte(data), v); err != nil {
		return fmt.Errorf("decode %s: %w", what, err)
	}
	return nil
}
