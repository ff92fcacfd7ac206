package main

import (
	"context"
	"errors"

	"memgpt/bench"
	"memgpt/config"
	"memgpt/retrieve"
	"memgpt/store/sqlite"
	"memgpt/tool"
)

// benchVectors gives all texts of an owner made-up vectors through the indexer, many in a commit.
func benchVectors(ctx context.Context, s *bench.Site, owner string) error {
	x, err := retrieve.NewIndexer(retrieve.IndexerConfig{Store: s.Store, Embedder: bench.MadeUp(nil), Texts: 4096, Size: 1 << 20})
	for more := true; more && err == nil; {
		_, more, err = x.Some(ctx, "", owner)
	}
	return err
}

// benchMeaning opens a site's store anew, for searches by words and made-up vectors. The encoder is loaded before.
func benchMeaning(ctx context.Context, s *bench.Site) (*bench.Meaning, error) {
	builtin, err := openEmbedders(embedBuiltin, "")
	if err != nil {
		return nil, err
	}
	made := bench.MadeUp(builtin[0])
	if _, err := made.Embed(ctx, []string{"a first text"}, true); err != nil {
		return nil, err
	}
	st, err := sqlite.Open(ctx, sqlite.Config{Path: config.Config{Home: s.Home}.Database()})
	if err != nil {
		return nil, err
	}
	search, err := retrieve.New(retrieve.Config{Index: st, Store: st, Embedders: []tool.Embedder{made}})
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	return &bench.Meaning{Search: search, Close: st.Close}, nil
}
