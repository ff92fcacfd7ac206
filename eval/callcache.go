package eval

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sync"

	"memgpt"
)

// CallCache keeps what models answered in one file of a directory, so that a run that was stopped goes on with what it has
// paid for. An answer is found by a hash of all that decides it: where the model is, its name, and the whole request. Only
// answers are kept, never failures. It is safe for concurrent use, and equal requests at once are asked once.
//
// The file holds an answer a line, with a checksum, and is only appended to. An answer is on disk before anybody sees it. A
// line that isn't whole and sound is none: what a killed run left half written costs one call. Several processes may use one
// directory of a local disk at once. They don't see each other's new answers before they open it again, so that both may ask
// the same; the first answer in the file is the one that holds.
type CallCache struct {
	path string

	mu      sync.Mutex // guards what follows
	file    *os.File
	kept    map[callKey]json.RawMessage
	flights map[callKey]chan struct{} // closed when the call under way has ended
	stats   CallStats
	broken  error // an answer could not be kept
}

// CallStats counts what became of requests.
type CallStats struct {
	Known   int // answers in the file when it was opened
	Damaged int // lines of the file that were no answer
	Hits    int // requests that were answered from the cache
	Asked   int // requests that a model answered
}

// callsFile is the name of the cache's file.
const callsFile = "calls.cache"

// errNotKept says that an answer could not be kept. The run ends with it, since what it pays for would be lost.
var errNotKept = errors.New("an answer of a model could not be kept")

type callKey [sha256.Size]byte

// OpenCallCache opens the cache in a directory, which is made if missing.
func OpenCallCache(dir string) (*CallCache, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("open the cache of model calls: %w", err)
	}
	c := &CallCache{path: filepath.Join(dir, callsFile), kept: map[callKey]json.RawMessage{}, flights: map[callKey]chan struct{}{}}
	f, err := os.OpenFile(c.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, fmt.Errorf("open the cache of model calls: %w", err)
	}
	c.file = f
	if err := c.read(f); err != nil {
		return nil, errors.Join(fmt.Errorf("read the cache of model calls %s: %w", c.path, err), f.Close())
	}
	c.stats.Known = len(c.kept)
	return c, nil
}

// Close closes the file.
func (c *CallCache) Close() error { return c.file.Close() }

// Stats counts what became of requests so far.
func (c *CallCache) Stats() CallStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Model returns a model that asks m only for what the cache doesn't have. Place says where m is and how it is asked, as far as
// that decides its answers and isn't part of requests: another place is another model.
func (c *CallCache) Model(m memgpt.Model, place string) memgpt.Model {
	return &cachedModel{Model: m, cache: c, place: place}
}

// cachedModel is a model before a cache.
type cachedModel struct {
	memgpt.Model
	cache *CallCache
	place string
	asked map[callKey]int // answers to equal requests in one turn; nil counts none
}

// turnModel returns a model for one turn, in whose calls one comes after the other. Where a turn asks the same again, since it
// could not use the answer, it gets another answer than before, and each repetition of the turn gets the same ones.
func turnModel(m memgpt.Model) memgpt.Model {
	c, ok := m.(*cachedModel)
	if !ok {
		return m
	}
	own := *c
	own.asked = map[callKey]int{}
	return &own
}

// Generate implements memgpt.Model. What comes from the cache is streamed a part at a time.
func (m *cachedModel) Generate(ctx context.Context, req *memgpt.Request, stream func(memgpt.Delta)) (*memgpt.Response, error) {
	req.Restore()
	same, err := requestKey(m.place, m.Capabilities().Name, req)
	if err != nil {
		return nil, err
	}
	key := same
	if n := m.asked[same]; n > 0 {
		key = sha256.Sum256(fmt.Appendf(same[:len(same):len(same)], " again %d", n))
	}
	live := false
	reply, err := m.cache.answer(ctx, key, func() (*memgpt.Response, error) {
		live = true
		return m.Model.Generate(ctx, req, stream)
	})
	if err != nil {
		return nil, err
	}
	if m.asked != nil {
		m.asked[same]++
	}
	if !live && stream != nil {
		streamParts(reply.Message.Parts, stream)
	}
	return reply, nil
}

// requestKey is the hash of all that decides an answer. Request.Session is left out: it is for providers to route by.
func requestKey(place, name string, req *memgpt.Request) (k callKey, err error) {
	h := sha256.New()
	enc := json.NewEncoder(h)
	err = enc.Encode(struct {
		Place, Name, Model string
		Messages           []memgpt.Message
		Tools              []memgpt.ToolSpec
		Choice             memgpt.Choice
		MaxTokens, Window  int
		Purpose            memgpt.Purpose
		Schema             json.RawMessage
	}{place, name, req.Model, req.Messages, req.Tools, req.Choice, req.MaxTokens, req.Window, req.Purpose, req.Schema})
	if err != nil {
		return k, fmt.Errorf("make the key of a model call: %w", err)
	}
	h.Sum(k[:0])
	return k, nil
}

// streamParts gives a whole reply to who listens for pieces.
func streamParts(parts memgpt.Parts, stream func(memgpt.Delta)) {
	calls := 0
	for _, p := range parts {
		switch p := p.(type) {
		case memgpt.Text:
			stream(memgpt.Delta{Text: p.Text})
		case memgpt.Reasoning:
			stream(memgpt.Delta{Reasoning: p.Text})
		case memgpt.Call:
			stream(memgpt.Delta{Call: &memgpt.CallDelta{Index: calls, ID: p.ID, Name: p.Name, Arguments: p.Arguments}})
			calls++
		}
	}
}

// answer returns what is kept under a key, or asks and keeps it. Where somebody asks the same already, it waits for that.
func (c *CallCache) answer(ctx context.Context, key callKey, ask func() (*memgpt.Response, error)) (*memgpt.Response, error) {
	for {
		raw, wait, err := c.look(key)
		switch {
		case err != nil:
			return nil, err
		case raw != nil:
			return readReply(raw)
		case wait == nil:
			return c.fill(key, ask)
		}
		select {
		case <-wait: // whoever asked has the answer now, or failed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// look returns what is kept, or what to wait for. With neither the caller has to ask, and everybody else waits for it.
func (c *CallCache) look(key callKey) (raw json.RawMessage, wait chan struct{}, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if raw = c.kept[key]; raw != nil {
		c.stats.Hits++
		return raw, nil, nil
	}
	if c.broken != nil {
		return nil, nil, c.broken
	}
	if wait = c.flights[key]; wait == nil {
		c.flights[key] = make(chan struct{})
	}
	return nil, wait, nil
}

// fill asks and keeps the answer. What it returns is what was written, so that it is the same in every run.
func (c *CallCache) fill(key callKey, ask func() (*memgpt.Response, error)) (*memgpt.Response, error) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		close(c.flights[key])
		delete(c.flights, key)
	}()
	reply, err := ask()
	if err != nil {
		return nil, err
	}
	raw, err := writeReply(reply)
	if err == nil {
		err = c.keep(key, raw)
	}
	if err != nil {
		return nil, fmt.Errorf("%w in %s: %w", errNotKept, c.path, err)
	}
	return readReply(raw)
}

// keep appends an answer to the file and waits for the disk.
func (c *CallCache) keep(key callKey, raw json.RawMessage) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Asked++
	line := append(callLine(key, raw), '\n')
	if torn, err := tornEnd(c.file); err == nil && torn {
		line = append([]byte{'\n'}, line...)
	}
	_, err := c.file.Write(line)
	if err == nil {
		err = c.file.Sync()
	}
	if err != nil {
		c.broken = fmt.Errorf("%w in %s: %w", errNotKept, c.path, err)
		return err
	}
	c.kept[key] = raw
	return nil
}

// tornEnd reports whether a file ends within a line, as a process leaves it that was killed in the middle of a write.
func tornEnd(f *os.File) (bool, error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false, err
	}
	var last [1]byte
	_, err = f.ReadAt(last[:], info.Size()-1)
	return last[0] != '\n', err
}

// A line is an object of the key, the CRC-32 (IEEE) of key and answer, and the answer.

func callLine(key callKey, raw json.RawMessage) []byte {
	line := fmt.Appendf(nil, `{"key":"%x","crc":"%08x","reply":`, key, callSum(key, raw))
	return append(append(line, raw...), '}')
}

func callSum(key callKey, raw json.RawMessage) uint32 {
	return crc32.Update(crc32.ChecksumIEEE(key[:]), crc32.IEEETable, raw)
}

// readCallLine reads a line; ok is false where it isn't whole and sound.
func readCallLine(line []byte) (key callKey, raw json.RawMessage, ok bool) {
	var l struct {
		Key   string          `json:"key"`
		CRC   string          `json:"crc"`
		Reply json.RawMessage `json:"reply"`
	}
	if json.Unmarshal(line, &l) != nil || len(l.Reply) == 0 {
		return key, nil, false
	}
	n, err := hex.Decode(key[:], []byte(l.Key)[:min(len(l.Key), 2*len(key))])
	if err != nil || n != len(key) || l.CRC != fmt.Sprintf("%08x", callSum(key, l.Reply)) {
		return key, nil, false
	}
	return key, l.Reply, true
}

// read takes in the answers of the file. Of two under one key the first holds.
func (c *CallCache) read(in io.Reader) error {
	r := bufio.NewReaderSize(in, 1<<16)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			key, raw, ok := readCallLine(line)
			if !ok {
				c.stats.Damaged++
			} else if c.kept[key] == nil {
				c.kept[key] = raw
			}
		}
		if err != nil {
			return nil
		}
	}
}

// keptReply is a reply as it is kept.
type keptReply struct {
	Model    string         `json:"model,omitempty"`
	Finish   memgpt.Finish  `json:"finish"`
	Prompted bool           `json:"prompted,omitempty"`
	Usage    memgpt.Usage   `json:"usage"`
	Message  memgpt.Message `json:"message"`
}

func writeReply(r *memgpt.Response) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(keptReply{r.Model, r.Finish, r.Prompted, r.Usage, r.Message})
	return bytes.TrimSpace(b.Bytes()), err
}

func readReply(raw json.RawMessage) (*memgpt.Response, error) {
	var k keptReply
	if err := json.Unmarshal(raw, &k); err != nil {
		return nil, fmt.Errorf("read a kept answer of a model: %w", err)
	}
	return &memgpt.Response{Message: k.Message, Finish: k.Finish, Usage: k.Usage, Model: k.Model, Prompted: k.Prompted}, nil
}
