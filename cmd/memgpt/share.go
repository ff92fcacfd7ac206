package main

import (
	"context"
	"errors"
	"slices"
	"sync"

	"memgpt"
)

// overheard are the updates of a conversation's turns, by turn, in the order in which those began.
type overheard struct {
	stop context.CancelFunc
	work sync.WaitGroup
	list []heardTurn
}

type heardTurn struct {
	id      string
	updates []memgpt.Update
}

// overhear keeps what happens in a conversation from now on.
func (a *app) overhear(th memgpt.Thread) *overheard {
	ctx, stop := context.WithCancel(context.Background())
	o := &overheard{stop: stop}
	updates := a.host.Watch(ctx, th.Tenant, th.ID)
	o.work.Go(func() {
		for u := range updates {
			if begun, ok := u.(memgpt.TurnStarted); ok {
				o.list = append(o.list, heardTurn{id: begun.Turn.ID})
			}
			if n := len(o.list); n > 0 {
				o.list[n-1].updates = append(o.list[n-1].updates, u)
			}
		}
	})
	return o
}

// runShare runs what else is due for the conversation, as reminders, where no daemon does, and prints what the agent says
// in turns other than those that were printed already, and unasked.
func (a *app) runShare(ctx context.Context, agent *memgpt.Agent, th memgpt.Thread, o *overheard, asJSON bool, printed ...string) error {
	err := a.host.RunDue(ctx, th.Tenant, th.Agent, th.ID)
	o.stop()
	o.work.Wait()
	var unasked []string
	for _, t := range o.list {
		if slices.Contains(printed, t.id) {
			continue
		}
		for _, u := range t.updates {
			spoke, ok := u.(memgpt.Spoke)
			if ok && spoke.Saying != "" {
				if unasked = append(unasked, spoke.Saying); !asJSON {
					continue // it is shown as what nobody has seen
				}
			}
			if err := a.print(u, asJSON); err != nil {
				return err
			}
		}
	}
	return errors.Join(err, a.runUnseen(ctx, agent, asJSON, unasked...))
}
