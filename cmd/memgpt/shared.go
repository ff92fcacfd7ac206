package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"memgpt"
	"memgpt/memtool"
	"memgpt/store"
)

// archiveFlag lets a command work on a shared archive instead of an agent's own.
func (a *app) archiveFlag(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&a.archiveName, "archive", "", "name of a shared archive, instead of an agent's own")
}

// withOwner opens the store and hands over whose passages a command is about: the agent of the command line, or the shared
// archive, which then stands in for an agent that has passages alone.
func (a *app) withOwner(ctx context.Context, do func(memgpt.Agent) error) error {
	if a.archiveName == "" {
		return a.withAgent(ctx, do)
	}
	defer a.close()
	if err := a.open(ctx); err != nil {
		return err
	}
	archive, err := a.sharedArchive(ctx, a.archiveName)
	if err != nil {
		return err
	}
	return do(a.standIn(archive))
}

// standIn is a shared archive in place of an agent that has passages alone.
func (a *app) standIn(archive store.Archive) memgpt.Agent {
	return memgpt.Agent{ID: archive.ID, Tenant: archive.Tenant, Name: archive.Name, Zone: a.cfg.Zone, Created: archive.Created}
}

// ownerText names whose passages a command is about.
func (a *app) ownerText(agent memgpt.Agent) string {
	if a.archiveName != "" {
		return "archive " + strconv.Quote(agent.Name)
	}
	return "agent " + agent.Name
}

// sharedArchive returns the archive of a name, which must exist.
func (a *app) sharedArchive(ctx context.Context, name string) (store.Archive, error) {
	archive, err := store.ArchiveNamed(ctx, a.store, "", name)
	if memgpt.CodeOf(err) == memgpt.CodeNotFound {
		err = a.unknownArchive(ctx, name)
	}
	return archive, err
}

// unknownArchive is the error for a name that no archive has.
func (a *app) unknownArchive(ctx context.Context, name string) error {
	all, err := store.Archives(ctx, a.store, "")
	if err != nil {
		return err
	}
	var names []string
	for _, archive := range all {
		names = append(names, archive.Name)
	}
	hint := ""
	switch near := memtool.Nearest(name, names, nearSources); {
	case len(near) > 0:
		hint = "; near to it: " + strings.Join(near, ", ")
	case len(names) > 0:
		hint = "; memgpt archive names lists what there is"
	}
	return fmt.Errorf("there is no shared archive %q%s; memgpt load FILE --archive NAME makes one", memgpt.CutText(name, 80), hint)
}

// madeArchive returns the archive of a name, made if there is none.
func (a *app) madeArchive(ctx context.Context, name string) (store.Archive, error) {
	if err := store.CheckArchiveName(name); err != nil {
		return store.Archive{}, err
	}
	archive, err := store.ArchiveNamed(ctx, a.store, "", name)
	if memgpt.CodeOf(err) != memgpt.CodeNotFound {
		return archive, err
	}
	archive = store.Archive{Name: name, ID: newID("archive"), Created: time.Now()}
	record, err := archive.Record()
	if err != nil {
		return archive, err
	}
	_, err = a.store.Commit(ctx, &store.Commit{Now: archive.Created, Records: []store.Record{record}})
	switch code := memgpt.CodeOf(err); {
	case code == memgpt.CodeConflict || code == memgpt.CodeExists: // somebody else made it meanwhile
		return store.ArchiveNamed(ctx, a.store, "", name)
	case err == nil:
		a.say("archive %q is new; memgpt agents set NAME archives=%s lets an agent read it", name, name)
	}
	return archive, err
}

// readArchives returns the owners of the passages that an agent reads beside its own, and their names.
func (a *app) readArchives(ctx context.Context, agent *memgpt.Agent) (ids []string, names map[string]string, err error) {
	list, err := store.ArchivesOf(ctx, a.store, agent)
	names = map[string]string{}
	for _, archive := range list {
		ids, names[archive.ID] = append(ids, archive.ID), archive.Name
	}
	return ids, names, err
}

// checkArchives refuses archives that are not there, but for those that an agent has had.
func (a *app) checkArchives(ctx context.Context, agent, changed *memgpt.Agent) error {
	for _, name := range changed.Archives {
		if slices.Contains(agent.Archives, name) {
			continue
		}
		if _, err := a.sharedArchive(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// archivesSetting is the list of the shared archives that an agent reads.
func archivesSetting() setting {
	return setting{"archives", "names of shared archives that it reads too, as law,manuals", "none", func(a *memgpt.Agent, v string) error {
		var list []string
		for name := range strings.SplitSeq(v, ",") {
			if name = strings.TrimSpace(name); v == "" || slices.Contains(list, name) {
				continue
			}
			if err := store.CheckArchiveName(name); err != nil {
				return err
			}
			list = append(list, name)
		}
		a.Archives = list
		return nil
	}, func(a *memgpt.Agent) string { return strings.Join(a.Archives, ",") }}
}

// archiveLine is one shared archive as archive names --json prints it.
type archiveLine struct {
	Name     string   `json:"name"`
	ID       string   `json:"id"`
	Created  *string  `json:"created"`
	Passages int64    `json:"passages"`
	Readers  []string `json:"readers"` // names of agents
}

func (a *app) archiveNames() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "names", Short: "list the shared archives, with the agents that read them", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			defer a.close()
			if err := a.open(cmd.Context()); err != nil {
				return err
			}
			return a.listArchives(cmd.Context(), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one object a line")
	return cmd
}

func (a *app) listArchives(ctx context.Context, asJSON bool) error {
	list, err := store.Archives(ctx, a.store, "")
	if err != nil {
		return err
	}
	agents, err := a.store.Agents(ctx, "")
	if err != nil {
		return err
	}
	if len(list) == 0 && !asJSON {
		a.say("there are no shared archives in %s; memgpt load FILE --archive NAME makes one", a.cfg.Home)
	}
	for _, archive := range list {
		sizes, err := a.store.Sizes(ctx, archive.Tenant, archive.ID)
		if err != nil {
			return err
		}
		l := archiveLine{Name: archive.Name, ID: archive.ID, Created: timeOf(inZone(archive.Created, a.standIn(archive))), Passages: sizes.Passages,
			Readers: []string{}}
		for i := range agents {
			if slices.Contains(agents[i].Archives, archive.Name) {
				l.Readers = append(l.Readers, agents[i].Name)
			}
		}
		if asJSON {
			err = writeJSON(a.out, l)
		} else {
			_, err = fmt.Fprintf(a.out, "%7d  %s%s\n", l.Passages, l.Name, strings.TrimSuffix("  read by "+strings.Join(l.Readers, ", "), "  read by "))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
