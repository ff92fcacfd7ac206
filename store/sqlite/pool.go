package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// pool is the connections for reading. They are opened when they are first needed.
type pool struct {
	dsn   string
	slots chan struct{} // one token for each connection that may be in use

	mu     sync.Mutex
	free   []*conn
	closed bool
}

func newPool(size int, dsn string) *pool {
	return &pool{dsn: dsn, slots: make(chan struct{}, size)}
}

func (p *pool) get(ctx context.Context) (*conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c, err := p.pop()
	if c == nil && err == nil {
		c, err = dial(p.dsn)
	}
	if err != nil {
		<-p.slots
		return nil, err
	}
	return c, nil
}

// pop returns a free connection, nil when one must be opened.
func (p *pool) pop() (*conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, closedError()
	}
	if n := len(p.free); n > 0 {
		c := p.free[n-1]
		p.free = p.free[:n-1]
		return c, nil
	}
	return nil, nil
}

func (p *pool) put(c *conn) {
	p.mu.Lock()
	p.free = append(p.free, c)
	p.mu.Unlock()
	<-p.slots
}

// close waits for the reads that are under way and closes the connections.
func (p *pool) close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	for range cap(p.slots) {
		p.slots <- struct{}{}
	}
	var errs []error
	for _, c := range p.free {
		errs = append(errs, c.close())
	}
	for range cap(p.slots) {
		<-p.slots // who comes later is told that the pool is closed
	}
	return errors.Join(errs...)
}

// read runs f on a connection for reading. Every statement sees all that was committed before it; snapshot makes several
// see the same.
func (s *Store) read(ctx context.Context, what string, f func(c *conn) error) error {
	c, err := s.readers.get(ctx)
	if err == nil {
		err = f(c)
		s.readers.put(c)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", what, err)
	}
	return nil
}

// snapshot is read with all statements of f on one state of the store.
func (s *Store) snapshot(ctx context.Context, what string, f func(c *conn) error) error {
	return s.read(ctx, what, func(c *conn) error { return c.within(func() error { return f(c) }) })
}

// within runs f in a transaction that only reads.
func (c *conn) within(f func() error) error {
	if _, err := c.exec("BEGIN"); err != nil {
		return err
	}
	err := f()
	_, e := c.exec("COMMIT")
	return errors.Join(err, e)
}
