package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"unicode/utf8"

	"memgpt"
)

// File is a file of a directory that can be read.
type File struct {
	Path string // within the directory, with slashes
	Size int64  // bytes
}

// Skip is a file of a directory that is left out.
type Skip struct {
	Path   string
	Reason string
}

// Walk lists the files of a directory in the order of their paths, and those that are left out, with the reason: what is
// hidden, no text, empty, no regular file or not readable. Links are not followed: their targets are listed where they lie, or lie
// outside. Hand it [os.Root.FS], which keeps every access inside. It fails when the directory itself can't be
// read, or the context ends.
func Walk(ctx context.Context, dir fs.FS) ([]File, []Skip, error) {
	var files []File
	var skips []Skip
	err := fs.WalkDir(dir, ".", func(path string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if path == "." {
			return err
		}
		f, reason := look(dir, path, d, err)
		if reason != "" {
			skips = append(skips, Skip{path, reason})
			if d.IsDir() {
				return fs.SkipDir
			}
		} else if !d.IsDir() {
			files = append(files, f)
		}
		return nil
	})
	if err != nil {
		return nil, nil, memgpt.Errorf(memgpt.CodeOf(err), "list the files of the directory: %w", err)
	}
	return files, skips, nil
}

func look(dir fs.FS, path string, d fs.DirEntry, err error) (f File, reason string) {
	name := d.Name()
	switch {
	case !utf8.ValidString(name):
		return f, "its name is not UTF-8; load it by itself"
	case err != nil:
		return f, because(err)
	case strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~"):
		return f, "it is hidden"
	case d.Type()&fs.ModeSymlink != 0:
		return f, "it is a symbolic link"
	case d.IsDir():
		return f, ""
	case !d.Type().IsRegular():
		return f, "it is no regular file"
	}
	return lookInto(dir, path)
}

func lookInto(dir fs.FS, path string) (f File, reason string) {
	in, err := dir.Open(path)
	if err != nil {
		return f, because(err)
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return f, because(err)
	}
	if info.Size() == 0 {
		return f, "it is empty"
	}
	head := make([]byte, windowBytes)
	n, err := io.ReadFull(in, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return f, because(err)
	}
	if what := kindOf(path, head[:n], false); what != "" {
		return f, "it is " + what
	}
	return File{Path: path, Size: info.Size()}, ""
}

func because(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Sprintf("it can't be read: %v", err)
}
