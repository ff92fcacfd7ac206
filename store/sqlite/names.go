package sqlite

import "sync"

// name is a tenant with the id of an owner or of a thread.
type name struct{ tenant, id string }

// threadName is what the rows of a thread need to know of it.
type threadName struct{ no, agent int64 }

// names remembers the numbers of committed owners and threads. They never change.
type names struct {
	mu      sync.RWMutex
	owners  map[name]int64
	threads map[name]threadName
}

// maxNames bounds each map; a full one starts anew.
const maxNames = 100_000

func newNames() *names {
	return &names{owners: map[name]int64{}, threads: map[name]threadName{}}
}

func (n *names) owner(of name) (int64, bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	no, ok := n.owners[of]
	return no, ok
}

func (n *names) thread(of name) (threadName, bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	t, ok := n.threads[of]
	return t, ok
}

func (n *names) addOwner(of name, no int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.owners) >= maxNames {
		clear(n.owners)
	}
	n.owners[of] = no
}

func (n *names) addThread(of name, t threadName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.threads) >= maxNames {
		clear(n.threads)
	}
	n.threads[of] = t
}

const (
	sqlOwnerNo  = "SELECT no FROM owners WHERE tenant = ? AND id = ?"
	sqlThreadNo = "SELECT no, agent FROM threads WHERE tenant = ? AND id = ?"
)

// ownerNo looks up an owner; 0 when it has no rows yet.
func (s *Store) ownerNo(c *conn, of name) (int64, error) {
	if no, ok := s.names.owner(of); ok {
		return no, nil
	}
	r, err := c.one(sqlOwnerNo, of.tenant, of.id)
	if err != nil || r == nil {
		return 0, err
	}
	s.names.addOwner(of, r.int(0))
	return r.int(0), nil
}

// threadNo looks up a thread; its number is 0 when there is none.
func (s *Store) threadNo(c *conn, of name) (threadName, error) {
	if t, ok := s.names.thread(of); ok {
		return t, nil
	}
	r, err := c.one(sqlThreadNo, of.tenant, of.id)
	if err != nil || r == nil {
		return threadName{}, err
	}
	t := threadName{r.int(0), r.int(1)}
	s.names.addThread(of, t)
	return t, nil
}

// hints remembers where pending events are, so that one of which only the id is known is found without an index, which
// would cost each event two pages. A hint may be wrong and is checked.
type hints struct {
	mu sync.Mutex
	no map[string]int64
}

type eventHint struct {
	id string
	no int64
}

func (h *hints) get(id string) (int64, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	no, ok := h.no[id]
	return no, ok
}

func (h *hints) set(id string, no int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.no) >= maxNames {
		clear(h.no)
	}
	h.no[id] = no
}

func (h *hints) drop(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.no, id)
}
