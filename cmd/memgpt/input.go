package main

import (
	"context"
	"io"
	"os"
)

// stoppable reads what r reads until ctx ends. A read from a terminal or a pipe can't be called off: it is left to a
// goroutine that ends with the input, or the process.
func stoppable(ctx context.Context, r io.Reader) io.Reader {
	out, in := io.Pipe()
	go func() {
		_, err := io.Copy(in, r)
		_ = in.CloseWithError(err)
	}()
	context.AfterFunc(ctx, func() { _ = in.CloseWithError(context.Cause(ctx)) })
	return out
}

// openInput opens a file to be read until ctx ends. To open a named pipe waits for who writes to it.
func openInput(ctx context.Context, path string) (io.ReadCloser, os.FileInfo, error) {
	type opened struct {
		f   *os.File
		err error
	}
	done := make(chan opened, 1)
	go func() {
		f, err := os.Open(path)
		done <- opened{f, err}
	}()
	select {
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	case o := <-done:
		if o.err != nil {
			return nil, nil, o.err
		}
		info, err := o.f.Stat()
		if err != nil || info.Mode().IsRegular() {
			return o.f, info, err
		}
		return struct {
			io.Reader
			io.Closer
		}{stoppable(ctx, o.f), o.f}, info, nil
	}
}
