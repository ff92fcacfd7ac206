package main

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"memgpt"
	"memgpt/retrieve"
	"memgpt/store"
)

// verdictKind is the kind of the records that keep how models call functions.
const verdictKind = "calling"

// verdictRecord is the record of one model at one place.
type verdictRecord struct {
	Verdict string    `json:"verdict"`
	Time    time.Time `json:"time"`
}

// verdicts keeps in the store how the models of a place call functions, so that the next process knows. It implements
// prompted.Verdicts.
type verdicts struct {
	records       retrieve.Records // nil keeps them in memory
	tenant, place string
	say           func(format string, args ...any)

	mu    sync.Mutex
	known map[string]string // by model, "" where there is none
}

// verdictTimeout bounds what is asked of the store. A store that is busy costs one more trial of the model.
const verdictTimeout = 5 * time.Second

// verdictID names the record of a model at a place.
func verdictID(place, model string) string { return place + " " + model }

// Get implements prompted.Verdicts.
func (v *verdicts) Get(model string) (string, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	verdict, ok := v.known[model]
	if !ok && v.records != nil {
		ctx, cancel := context.WithTimeout(context.Background(), verdictTimeout)
		defer cancel()
		_, rec, err := v.read(ctx, model)
		if err != nil {
			return "", false
		}
		verdict = rec.Verdict
		v.known[model] = verdict
	}
	return verdict, verdict != ""
}

// Put implements prompted.Verdicts. What another process has put meanwhile is replaced, since this one has just tried.
func (v *verdicts) Put(model, verdict string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known[model] == verdict {
		return
	}
	v.known[model] = verdict
	if v.records == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), verdictTimeout)
	defer cancel()
	var err error
	for range 2 { // somebody else may write it at the same time
		if err = v.write(ctx, model, verdict); memgpt.CodeOf(err) != memgpt.CodeConflict && memgpt.CodeOf(err) != memgpt.CodeExists {
			break
		}
	}
	if err != nil {
		v.say("how %s calls functions is not kept, and will be tried again: %v", model, err)
	}
}

func (v *verdicts) write(ctx context.Context, model, verdict string) error {
	found, _, err := v.read(ctx, model)
	if err != nil {
		return err
	}
	now := time.Now()
	if found.Data, err = json.Marshal(verdictRecord{verdict, now.UTC()}); err != nil {
		return err
	}
	_, err = v.records.Commit(ctx, &store.Commit{Now: now, Records: []store.Record{found}})
	return err
}

// read returns the record of a model, as a new one where there is none. One that can't be read counts as empty.
func (v *verdicts) read(ctx context.Context, model string) (store.Record, verdictRecord, error) {
	var rec verdictRecord
	found, err := v.records.Record(ctx, v.tenant, verdictKind, verdictID(v.place, model))
	if memgpt.CodeOf(err) == memgpt.CodeNotFound {
		return store.Record{Tenant: v.tenant, Kind: verdictKind, ID: verdictID(v.place, model)}, rec, nil
	}
	if err == nil && json.Unmarshal(found.Data, &rec) != nil {
		rec = verdictRecord{}
	}
	return found, rec, err
}
