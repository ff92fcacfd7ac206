package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"memgpt/eval"
	"memgpt/store"
)

// meter shows on standard error how far a run is: one line that is written over on a terminal, elsewhere a line now and then.
// What others say meanwhile stands on lines of its own. Its methods may be called at once.
type meter struct {
	purse *eval.Purse // what the run spends; nil shows no cost
	out   io.Writer   // standard error
	width func() int  // columns of the terminal; nil where it is none
	now   func() time.Time

	mu          sync.Mutex // guards what follows
	begun       time.Time  // of the questions
	done, total int
	texts       int       // that got their vectors
	told        time.Time // when a line was written, where it is no terminal
	open        bool      // the line stands there

	quit, ended chan struct{}
}

// meterEvery is how often a line is written where standard error is no terminal, and meterTick how often one on a terminal is
// written anew, since time and cost go on while no question ends.
const (
	meterEvery = 10 * time.Second
	meterTick  = time.Second
)

// meter starts to show progress. Until end is called, what the program says passes through the meter.
func (a *app) meter(purse *eval.Purse) *meter {
	m := &meter{purse: purse, out: a.err, now: time.Now, begun: time.Now(), told: time.Now(), quit: make(chan struct{}), ended: make(chan struct{})}
	if f, ok := a.err.(*os.File); ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		m.width = func() int {
			w, _, err := term.GetSize(int(f.Fd()))
			if err != nil {
				return 80
			}
			return w
		}
	}
	a.err = m
	go m.tick()
	return m
}

// tick draws the line anew until the end.
func (m *meter) tick() {
	defer close(m.ended)
	t := time.NewTicker(meterTick)
	defer t.Stop()
	for {
		select {
		case <-m.quit:
			return
		case <-t.C:
			m.mu.Lock()
			m.draw()
			m.mu.Unlock()
		}
	}
}

// progress takes in how many questions are done.
func (m *meter) progress(done, total int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done, m.total = done, total
	m.tell(done == total)
}

// embedded takes in that so many more texts got their vectors. It is shown before the first question is done, since that can take
// minutes, which tell nothing of how long the questions will take.
func (m *meter) embedded(texts int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.texts += texts; m.total == 0 && m.texts > 0 {
		m.begun = m.now()
		m.tell(false)
	}
}

// tell draws the line on a terminal. Elsewhere it writes one now and then, and at the end.
func (m *meter) tell(end bool) {
	if m.width != nil {
		m.draw()
		return
	}
	if now := m.now(); end || now.Sub(m.told) >= meterEvery {
		m.told = now
		_, _ = io.WriteString(m.out, m.text()+"\n")
	}
}

// draw writes the line over on a terminal.
func (m *meter) draw() {
	if m.width == nil || m.total+m.texts == 0 {
		return
	}
	text := m.text()
	_, _ = io.WriteString(m.out, "\r\x1b[K"+text[:min(len(text), max(m.width()-1, 20))])
	m.open = true
}

// Write implements io.Writer for whoever says something meanwhile.
func (m *meter) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open {
		_, _ = io.WriteString(m.out, "\r\x1b[K")
	}
	n, err := m.out.Write(p)
	if m.open {
		m.draw()
	}
	return n, err
}

// end stops to show progress. The line stays.
func (a *app) endMeter(m *meter) {
	close(m.quit)
	<-m.ended
	if m.open {
		_, _ = io.WriteString(m.out, "\n")
	}
	a.err = m.out
}

// meterBar is the width of the bar in characters.
const meterBar = 20

// text is the line, of ASCII alone: a bar, questions, cost so far and what is to be expected; before the first question, what is loaded.
func (m *meter) text() string {
	if m.total == 0 {
		return "loading: " + plural(m.texts, "text") + " got their vectors"
	}
	share := m.done * 100 / m.total
	filled := share * meterBar / 100
	text := fmt.Sprintf("[%s%s] %3d%%  %d of %d questions", strings.Repeat("#", filled), strings.Repeat(".", meterBar-filled), share, m.done, m.total)
	left := m.total - m.done
	paid := m.done // questions that tell how long the others will take: those that were answered before take no time
	if m.purse != nil {
		u, asked := m.purse.Spent()
		if u.Calls > 0 && u.Nano > 0 {
			text += ", " + store.FormatMoney(u.Nano)
			if asked > 0 && left > 0 {
				text += ", about " + store.FormatMoney(u.Nano/int64(asked)*int64(left)) + " more"
			}
		}
		if asked > 0 {
			paid = asked
		}
	}
	if spent := m.now().Sub(m.begun); left > 0 && paid > 0 && spent >= time.Second {
		text += ", about " + (spent / time.Duration(paid) * time.Duration(left)).Round(time.Second).String() + " left"
	}
	return text
}
