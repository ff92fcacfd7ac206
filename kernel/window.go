package kernel

import (
	"fmt"

	"memgpt"
)

// Figures of the window's arithmetic (DESIGN, section 1). Shares of caps are of the room that the fixed part leaves.
const (
	replyShare    = 8    // the reply reserve is the window divided by this
	replyMax      = 4096 // tokens of the reply reserve at most
	fixedShare    = 0.4  // of usable; with a larger fixed part the marks are taken of the room
	minRoom       = 512  // tokens that the fixed part must leave
	compactBelow  = 8192 // windows below this get the compact form of instructions and functions
	summaryShare  = 0.1  // of the window, and of the room twice that: the recursive summary at most
	capUser       = 0.5  // of the room: one message of a user or the system as shown
	capAssistant  = 0.25 // one message of the model
	capResult     = 0.35 // one result
	capResults    = 0.4  // the results of one step together
	defaultAlert  = 0.7  // paper, section 2.2
	defaultFlush  = 1.0  // paper, section 2.2
	defaultTarget = 0.5  // paper, section 2.2
)

// window is the arithmetic of one agent's context window, in tokens as the provider counts them.
type window struct {
	size    int // the whole window
	reserve int // kept for the reply
	usable  int // what a request may fill
	fixed   int // tools, system text and blocks
	alert   int // raise the pressure alert above this
	flush   int // flush above this
	target  int // flush down to this
}

// room is what the fixed part leaves to the queue.
func (w window) room() int { return w.usable - w.fixed }

func newWindow(size, fixed int, p memgpt.Policy) window {
	w := window{size: size, fixed: fixed, reserve: min(size/replyShare, replyMax)}
	w.usable = size - w.reserve
	base, of := 0, w.usable
	if float64(fixed) > fixedShare*float64(w.usable) {
		base, of = fixed, w.room()
	}
	at := func(share, standard float64) int {
		if share <= 0 || share > 1 {
			share = standard
		}
		return base + int(share*float64(of))
	}
	w.alert = at(p.Alert, defaultAlert)
	w.flush = at(p.Flush, defaultFlush)
	w.target = min(at(p.Target, defaultTarget), w.alert)
	return w
}

// refuse says why a window won't do whose fixed part leaves less than minRoom.
func (w window) refuse(tools, system, blocks int) error {
	need := (w.fixed + minRoom) * replyShare / (replyShare - 1)
	return memgpt.Errorf(memgpt.CodeWindow, "%s", fmt.Sprintf("the window of %d tokens is too small: functions %d + instructions %d + blocks %d = %d tokens,"+
		" which with %d for the reply leaves %d of at least %d for messages; shorten the blocks, offer fewer functions"+
		" or set a window of at least %d", w.size, tools, system, blocks, w.fixed, w.reserve, w.room(), minRoom, need+1))
}

// summaryCap is how many tokens the recursive summary may take.
func (w window) summaryCap() int {
	return min(int(summaryShare*float64(w.size)), int(2*summaryShare*float64(w.room())))
}
