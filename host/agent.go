package host

import (
	"context"
	"time"

	"memgpt"
	"memgpt/store"
)

// MainThread is the name of an agent's first conversation.
const MainThread = "main"

// BlockLimit is the default limit of a block in characters (first implementation).
const BlockLimit = 2000

// AgentTemplate is what a new agent is made from. ID, Tenant, Name, Blocks, Created and Version of Agent are not read.
type AgentTemplate struct {
	Agent memgpt.Agent
	// Blocks are its working context; nil is DefaultBlocks("", ""). A Limit of 0 is BlockLimit.
	Blocks []memgpt.Block
}

// DefaultBlocks returns the two blocks that an agent begins with (paper, section 2.1: a persona and key facts about the
// user).
func DefaultBlocks(persona, human string) []memgpt.Block {
	return []memgpt.Block{
		{Label: "persona", Value: persona, Limit: BlockLimit,
			Description: "Who you are: your name, character, manner of speaking and what you have set yourself to do. Keep it in the first person."},
		{Label: "human", Value: human, Limit: BlockLimit,
			Description: "Key facts about the person you talk with: name, preferences, people, plans. Correct what is no longer true."},
	}
}

// Agent returns the tenant's agent of that name. If there is none, it is made from the template, with its blocks and the
// conversation MainThread, in one commit; of two makers at once both get the one agent.
func (h *Host) Agent(ctx context.Context, tenant, name string, template AgentTemplate) (memgpt.Agent, error) {
	agent, err := h.cfg.Store.AgentNamed(ctx, tenant, name)
	if memgpt.CodeOf(err) != memgpt.CodeNotFound {
		return agent, err
	}
	commit, err := h.newAgent(tenant, name, template)
	if err != nil {
		return memgpt.Agent{}, err
	}
	if _, err = h.cfg.Store.Commit(ctx, commit); err != nil && !isTaken(err) {
		return memgpt.Agent{}, memgpt.Errorf(memgpt.CodeOf(err), "make agent %q: %w", name, err)
	}
	return h.cfg.Store.AgentNamed(ctx, tenant, name)
}

// isTaken reports whether a commit failed because somebody else made the same thing first.
func isTaken(err error) bool {
	code := memgpt.CodeOf(err)
	return code == memgpt.CodeExists || code == memgpt.CodeConflict
}

// newAgent returns the commit that makes an agent.
func (h *Host) newAgent(tenant, name string, template AgentTemplate) (*store.Commit, error) {
	agent, now := template.Agent, h.cfg.Now()
	if name == "" || name != memgpt.CleanText(name) {
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "make an agent: %q is no name", name)
	}
	if _, err := time.LoadLocation(agent.Zone); err != nil {
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "make agent %q: %q is no IANA time zone: %w", name, agent.Zone, err)
	}
	agent.ID, agent.Tenant, agent.Name = h.cfg.NewID("agent"), tenant, name
	agent.System = memgpt.CleanText(agent.System)
	agent.Blocks, agent.Created, agent.Version = nil, now, 0
	if template.Blocks == nil {
		template.Blocks = DefaultBlocks("", "")
	}
	commit := &store.Commit{Now: now}
	for _, b := range template.Blocks {
		b, err := h.newBlock(tenant, b)
		if err != nil {
			return nil, err
		}
		agent.Blocks = append(agent.Blocks, b.ID)
		commit.Blocks = append(commit.Blocks, b)
		commit.Edits = append(commit.Edits, store.BlockEdit{Block: b.ID, Version: 1, Value: b.Value, Time: now,
			Cause: memgpt.Cause{Origin: memgpt.OriginOwner, Agent: agent.ID}})
	}
	commit.Agents = []memgpt.Agent{agent}
	commit.Threads = []memgpt.Thread{h.newThread(agent, MainThread, now)}
	return commit, nil
}

func (h *Host) newBlock(tenant string, b memgpt.Block) (memgpt.Block, error) {
	b.ID, b.Tenant, b.Version = h.cfg.NewID("block"), tenant, 0
	b.Label, b.Description, b.Value = memgpt.CleanText(b.Label), memgpt.CleanText(b.Description), memgpt.CleanText(b.Value)
	b.Limit = orDefault(b.Limit, BlockLimit)
	if b.Label == "" {
		return b, memgpt.Errorf(memgpt.CodeInvalid, "make a block: it has no label")
	}
	if n := memgpt.Runes(b.Value); n > b.Limit {
		return b, memgpt.Errorf(memgpt.CodeInvalid, "make block %q: its value has %d characters and its limit is %d", b.Label, n, b.Limit)
	}
	return b, nil
}

func (h *Host) newThread(agent memgpt.Agent, name string, now time.Time) memgpt.Thread {
	return memgpt.Thread{ID: h.cfg.NewID("conv"), Tenant: agent.Tenant, Agent: agent.ID, Name: name, Next: 1, Created: now}
}

// Thread returns the agent's conversation of that name, and makes it if there is none. A new one states from the start
// what memory the agent has outside of it (Thread.Summary.Outside).
func (h *Host) Thread(ctx context.Context, agent memgpt.Agent, name string) (memgpt.Thread, error) {
	found, err := h.threadNamed(ctx, agent, name)
	if memgpt.CodeOf(err) != memgpt.CodeNotFound {
		return found, err
	}
	if name == "" || name != memgpt.CleanText(name) {
		return memgpt.Thread{}, memgpt.Errorf(memgpt.CodeInvalid, "make a conversation: %q is no name", name)
	}
	t := h.newThread(agent, name, h.cfg.Now())
	_, err = h.cfg.Store.Commit(ctx, &store.Commit{Now: t.Created, Threads: []memgpt.Thread{t}})
	if err != nil && !isTaken(err) {
		return memgpt.Thread{}, memgpt.Errorf(memgpt.CodeOf(err), "make conversation %q: %w", name, err)
	}
	if err == nil {
		t.Version = 1
		if err := h.stateOutside(ctx, t); err != nil {
			return memgpt.Thread{}, memgpt.Errorf(memgpt.CodeOf(err), "make conversation %q: state what lies outside: %w", name, err)
		}
	}
	return h.threadNamed(ctx, agent, name)
}

// stateOutside notes in a new conversation what the agent has outside of it. Who changes it first has done so too.
func (h *Host) stateOutside(ctx context.Context, t memgpt.Thread) error {
	out, err := h.cfg.Store.Outside(ctx, t.Tenant, t.Agent, t.ID)
	if err != nil || out.Hidden+out.Elsewhere+out.Passages == 0 {
		return err
	}
	t.Summary.Outside, t.Summary.Time = out, t.Created
	_, err = h.cfg.Store.Commit(ctx, &store.Commit{Now: t.Created, Threads: []memgpt.Thread{t}})
	if memgpt.CodeOf(err) == memgpt.CodeConflict {
		return nil
	}
	return err
}

func (h *Host) threadNamed(ctx context.Context, agent memgpt.Agent, name string) (memgpt.Thread, error) {
	threads, err := h.cfg.Store.Threads(ctx, agent.Tenant, agent.ID)
	if err != nil {
		return memgpt.Thread{}, err
	}
	for _, t := range threads {
		if t.Name == name {
			return t, nil
		}
	}
	return memgpt.Thread{}, memgpt.Errorf(memgpt.CodeNotFound, "find conversation %q of agent %q", name, agent.Name)
}
