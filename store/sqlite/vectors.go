package sqlite

import (
	"context"

	"memgpt"
	"memgpt/store"
)

// Embedded implements store.Index.
func (s *Store) Embedded(ctx context.Context, tenant, owner string) (map[string]int64, error) {
	return nil, nil
}

// Vectors implements store.Index.
func (s *Store) Vectors(ctx context.Context, tenant, owner, model string, after int64, yield func(store.Vector) bool) error {
	return memgpt.Errorf(memgpt.CodeInvalid, "vectors are not kept yet")
}

// VectorsOf implements store.Index.
func (s *Store) VectorsOf(ctx context.Context, tenant, owner, model string, docs []int64, yield func(store.Vector) bool) error {
	return memgpt.Errorf(memgpt.CodeInvalid, "vectors are not kept yet")
}

// Backlog implements store.Index.
func (s *Store) Backlog(ctx context.Context, model string) ([]store.Backlog, error) { return nil, nil }
