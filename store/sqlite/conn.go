package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"time"

	"modernc.org/sqlite"
)

// conn is one connection with its prepared statements. It works on the driver itself: database/sql would add about a
// third to the cost of a statement. One goroutine uses it at a time.
type conn struct {
	raw   driver.Conn
	stmts map[string]stmt
	args  []driver.NamedValue
}

type stmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

func dial(dsn string) (*conn, error) {
	raw, err := (&sqlite.Driver{}).Open(dsn)
	if err != nil {
		return nil, err
	}
	return &conn{raw: raw, stmts: map[string]stmt{}}, nil
}

func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.raw.Close())...)
}

func (c *conn) prepare(query string) (stmt, error) {
	if s, ok := c.stmts[query]; ok {
		return s, nil
	}
	raw, err := c.raw.Prepare(query)
	if err != nil {
		return nil, fmt.Errorf("prepare %.60q: %w", query, err)
	}
	s, ok := raw.(stmt)
	if !ok {
		return nil, errors.Join(fmt.Errorf("prepare %.60q: the driver's statements take no context", query), raw.Close())
	}
	c.stmts[query] = s
	return s, nil
}

func (c *conn) bind(args []any) []driver.NamedValue {
	c.args = c.args[:0]
	for i, a := range args {
		switch v := a.(type) {
		case int:
			a = int64(v)
		case bool:
			a = int64(0)
			if v {
				a = int64(1)
			}
		case time.Time:
			a = timeValue(v)
		}
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return c.args
}

// exec runs a statement and returns how many rows it changed.
func (c *conn) exec(query string, args ...any) (int64, error) {
	s, err := c.prepare(query)
	if err != nil {
		return 0, err
	}
	res, err := s.ExecContext(context.Background(), c.bind(args))
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// insert runs an INSERT and returns the rowid.
func (c *conn) insert(query string, args ...any) (int64, error) {
	s, err := c.prepare(query)
	if err != nil {
		return 0, err
	}
	res, err := s.ExecContext(context.Background(), c.bind(args))
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// script runs statements that are not kept.
func (c *conn) script(text string) error { return c.scriptUntil(context.Background(), text) }

// scriptUntil is script that ends early when ctx does; a statement that has not ended then has done nothing.
func (c *conn) scriptUntil(ctx context.Context, text string) error {
	s, err := c.raw.Prepare(text)
	if err != nil {
		return err
	}
	_, err = s.(stmt).ExecContext(ctx, nil)
	return errors.Join(err, s.Close())
}

// row is one row of a result. It is valid until the next one is read.
type row []driver.Value

func (r row) int(i int) int64 {
	n, _ := r[i].(int64)
	return n
}

func (r row) text(i int) string {
	switch v := r[i].(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return ""
}

func (r row) blob(i int) []byte {
	switch v := r[i].(type) {
	case []byte:
		return v
	case string:
		return []byte(v)
	}
	return nil
}

func (r row) time(i int) time.Time { return timeOf(r[i]) }

// errStop ends each without an error.
var errStop = errors.New("stop")

// each calls f with every row of the result.
func (c *conn) each(f func(r row) error, query string, args ...any) (err error) {
	s, err := c.prepare(query)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(context.Background(), c.bind(args))
	if err != nil {
		return err
	}
	defer func() {
		if e := rows.Close(); err == nil {
			err = e
		}
	}()
	r := make(row, len(rows.Columns()))
	for {
		if err := rows.Next(r); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := f(r); err != nil {
			if errors.Is(err, errStop) {
				return nil
			}
			return err
		}
	}
}

// one returns the first row of the result, nil when there is none.
func (c *conn) one(query string, args ...any) (row, error) {
	var found row
	err := c.each(func(r row) error {
		found = r
		return errStop
	}, query, args...)
	return found, err
}
