package retry

import (
	"context"
	"errors"

	"memgpt"
)

// askAll asks the model and then its fallbacks, until one answers.
func (c *call) askAll(ctx context.Context) (*memgpt.Response, error) {
	var errs []error
	chain := c.m.chain
	for i := range chain {
		l := &chain[i]
		resp, err := c.askOne(ctx, i)
		if err == nil && resp.Model == "" {
			named := *resp
			named.Model = l.Model.Capabilities().Name
			resp = &named
		}
		if err == nil || c.passed || ctx.Err() != nil || i == 0 && !passes(err) || memgpt.CodeOf(err) == memgpt.CodeModelOverflow {
			return resp, err
		}
		errs = append(errs, err)
		if i == len(chain)-1 || !c.affords(c.req, nil, err) {
			return resp, c.allFailed(errs)
		}
		if c.m.cfg.Fell != nil {
			c.m.cfg.Fell(ctx, l.Model.Capabilities(), chain[i+1].Model.Capabilities(), err)
		}
	}
	return nil, c.allFailed(errs)
}

// askOne asks one model of the chain, or says why it is not asked.
func (c *call) askOne(ctx context.Context, i int) (*memgpt.Response, error) {
	l, next := &c.m.chain[i], i < len(c.m.chain)-1
	if i == 0 {
		return c.ask(ctx, l, c.req, next)
	}
	window := l.Model.Capabilities().Window
	if window > 0 && c.req.Window > window { // the caller counts with a larger one than the capabilities say
		if n := c.sizeOf(c.req) + c.req.MaxTokens; n > window {
			return nil, memgpt.Errorf(memgpt.CodeModelRequest, "not asked: the request has about %d tokens with its reply,"+
				" and its window is %d; set the agent's window to that", n, window)
		}
	}
	req := *c.req
	req.Model = ""
	c.req.Release() // so that the copy alone holds the messages
	resp, err := c.ask(ctx, l, &req, next)
	return resp, err
}

// passes reports whether a failure is the provider's own, so that another one may do better.
func passes(err error) bool {
	switch memgpt.CodeOf(err) {
	case memgpt.CodeModelDown, memgpt.CodeModelTimeout, memgpt.CodeModelLimit, memgpt.CodeModelQuota:
		return true
	}
	return false
}

// allFailed returns the first model's failure with the words of those that were to answer in its place.
func (c *call) allFailed(errs []error) error {
	var first *memgpt.Error
	if len(errs) == 1 || !errors.As(errs[0], &first) {
		return errs[0]
	}
	all := &memgpt.Error{Code: first.Code, RetryAfter: first.RetryAfter, Err: errs[0]}
	for i, err := range errs[1:] {
		if i > 0 {
			all.Text += "; "
		}
		all.Text += "fallback " + c.m.chain[i+1].Model.Capabilities().Name + ": " + err.Error()
	}
	all.Text = "no model could answer (" + all.Text + ")"
	return all
}
