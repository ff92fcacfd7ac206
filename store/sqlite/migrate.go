package sqlite

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"memgpt"
)

//go:embed migrations/*.sql
var migrations embed.FS

// applicationID marks the file as ours in its header ("mgpt").
const applicationID = 0x6d677074

// migration is one step of the schema. Its number is the schema's after it.
type migration struct {
	number int64
	name   string
	text   string
}

// loadMigrations reads files named NNNN_name.sql, numbered from 1 without a gap.
func loadMigrations(files fs.FS) ([]migration, error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var ms []migration
	for i, name := range names {
		base := strings.TrimPrefix(name, "migrations/")
		number, err := strconv.Atoi(base[:min(4, len(base))])
		if err != nil || number != i+1 {
			return nil, fmt.Errorf("migration %s: want number %04d", base, i+1)
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		ms = append(ms, migration{int64(number), base, string(text)})
	}
	return ms, nil
}

// migrate brings the schema up to the newest migration. Each runs in a transaction of its own that also sets the
// schema's number, which it reads again under the lock: of two processes the second finds the work done.
func migrate(c *conn, ms []migration) error {
	for {
		done, err := migrateNext(c, ms)
		if err != nil || done {
			return err
		}
	}
}

func migrateNext(c *conn, ms []migration) (done bool, err error) {
	at, err := schemaNumber(c)
	if err != nil || at == int64(len(ms)) {
		return true, err
	}
	if err := c.script("BEGIN IMMEDIATE"); err != nil {
		return false, err
	}
	if err := migrateLocked(c, ms); err != nil {
		return false, errors.Join(err, c.script("ROLLBACK"))
	}
	return false, c.script("COMMIT")
}

func migrateLocked(c *conn, ms []migration) error {
	at, err := schemaNumber(c)
	if err != nil || at == int64(len(ms)) {
		return err
	}
	if err := checkSchema(c, ms); err != nil {
		return err
	}
	m := ms[at]
	if err := c.script(m.text); err != nil {
		return fmt.Errorf("migration %s: %w", m.name, err)
	}
	return c.script(fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, m.number))
}

func schemaNumber(c *conn) (int64, error) {
	r, err := c.one("PRAGMA user_version")
	if err != nil || r == nil {
		return 0, err
	}
	return r.int(0), nil
}

// checkSchema refuses a file that a newer version wrote, or that isn't ours.
func checkSchema(c *conn, ms []migration) error {
	at, err := schemaNumber(c)
	if err != nil {
		return err
	}
	app, err := c.one("PRAGMA application_id")
	if err != nil {
		return err
	}
	tables, err := c.one("SELECT count(*) FROM sqlite_schema")
	if err != nil {
		return err
	}
	switch {
	case app.int(0) != applicationID && (app.int(0) != 0 || at != 0 || tables.int(0) != 0):
		return memgpt.Errorf(memgpt.CodeInvalid, "it is another program's SQLite database: give another path")
	case at > int64(len(ms)):
		return memgpt.Errorf(memgpt.CodeNewer, "its schema has version %d, and this program knows versions up to %d: "+
			"use the newer program that wrote it, or another path", at, len(ms))
	}
	return nil
}
