package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"memgpt"
)

// Archive is a shared archive: passages of their own owner, which the agents that name it read (memgpt.Agent.Archives) and
// none of them changes. It is kept as a Record under its name, so that there is one of a name.
type Archive struct {
	Tenant  string    `json:"-"`
	Name    string    `json:"-"`
	ID      string    `json:"id"` // owner of the passages: "archive-" and a UUID
	Created time.Time `json:"created"`
}

// archiveKind is the kind of the records of archives.
const archiveKind = "archive"

// maxArchiveName is the longest name in characters: names stand in prompts.
const maxArchiveName = 60

// CheckArchiveName returns an error for what is no name of an archive: names stand in lists with commas, on one line.
func CheckArchiveName(name string) error {
	switch {
	case name == "" || name != strings.TrimSpace(name) || name != memgpt.CleanText(name):
		return memgpt.Errorf(memgpt.CodeInvalid, "%q is no name of an archive: write it without spaces at its ends", name)
	case strings.ContainsAny(name, ",\n\r\t"):
		return memgpt.Errorf(memgpt.CodeInvalid, "%q is no name of an archive: it may have no commas, tabs or line ends", name)
	case memgpt.Runes(name) > maxArchiveName:
		return memgpt.Errorf(memgpt.CodeInvalid, "the name of an archive may have %d characters, and %q has %d", maxArchiveName,
			memgpt.CutText(name, 2*maxArchiveName), memgpt.Runes(name))
	}
	return nil
}

// Record returns the archive as a commit makes it. A second one of the name fails with CodeConflict.
func (a *Archive) Record() (Record, error) {
	data, err := json.Marshal(a)
	return Record{Tenant: a.Tenant, Kind: archiveKind, ID: a.Name, Data: data}, err
}

// ArchiveNamed returns the archive of a name; CodeNotFound says that there is none.
func ArchiveNamed(ctx context.Context, s Store, tenant, name string) (Archive, error) {
	r, err := s.Record(ctx, tenant, archiveKind, name)
	if err != nil {
		return Archive{}, err
	}
	return r.archive()
}

// Archives returns all archives of a tenant, by name.
func Archives(ctx context.Context, s Store, tenant string) ([]Archive, error) {
	records, err := s.Records(ctx, tenant, archiveKind)
	if err != nil {
		return nil, err
	}
	list := make([]Archive, len(records))
	for i := range records {
		if list[i], err = records[i].archive(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// ArchivesOf returns the archives that an agent reads, in its order. One that is there no more is left out.
func ArchivesOf(ctx context.Context, s Store, a *memgpt.Agent) ([]Archive, error) {
	var list []Archive
	for _, name := range a.Archives {
		archive, err := ArchiveNamed(ctx, s, a.Tenant, name)
		if memgpt.CodeOf(err) == memgpt.CodeNotFound {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the shared archive %q: %w", name, err)
		}
		list = append(list, archive)
	}
	return list, nil
}

func (r *Record) archive() (Archive, error) {
	a := Archive{Tenant: r.Tenant, Name: r.ID}
	if err := json.Unmarshal(r.Data, &a); err != nil || a.ID == "" {
		return a, fmt.Errorf("the record of archive %q can't be read: %v", r.ID, err)
	}
	return a, nil
}
