package kernel

import (
	"context"
	"encoding/json"
	"math"

	"memgpt"
	"memgpt/store"
)

// What a counter learned of a model's counts is kept as a record by tenant and model, so that a new process doesn't begin
// with a count that is too low. It is written with the last commit of a turn, and only where the factor has moved by more
// than calibrationStep since; what is read is raised by that much, so that it errs on the safe side.
const (
	calibrationKind = "calibration"
	calibrationStep = 0.02
	maxCalibration  = 100 // no tokenizer is so far from ours
)

// calibration is the record as it is stored under the model's name.
type calibration struct {
	Factor float64 `json:"factor"`
}

type calibrationKey struct{ tenant, model string }

// calibrated is what a process knows of a record.
type calibrated struct {
	factor  float64 // as stored; 1 where there is no record
	version int64
	claimed bool // a commit under way writes it
}

// calibrate sees to it that the counter knows what earlier processes learned of a model. A record that can't be read is
// looked for again in the next turn. It reports whether the counter was told something.
func (r *run) calibrate(ctx context.Context, model string) bool {
	key := calibrationKey{r.st.Thread.Tenant, model}
	r.k.mu.Lock()
	_, known := r.k.calibrations[key]
	r.k.mu.Unlock()
	if known {
		return false
	}
	own := &calibrated{factor: 1}
	found, err := r.k.cfg.Store.Record(ctx, key.tenant, calibrationKind, model)
	var rec calibration
	switch {
	case memgpt.CodeOf(err) == memgpt.CodeNotFound:
	case err != nil:
		return false
	case json.Unmarshal(found.Data, &rec) != nil, !(rec.Factor > 0 && rec.Factor < maxCalibration),
		!r.roomAt(rec.Factor * (1 + calibrationStep)):
		own.version = found.Version // written anew by whoever learns
	default:
		own.factor, own.version = rec.Factor, found.Version
		r.k.cfg.Counter.Calibrate(model, rec.Factor*(1+calibrationStep))
	}
	r.k.mu.Lock()
	defer r.k.mu.Unlock()
	if _, known := r.k.calibrations[key]; !known {
		r.k.calibrations[key] = own
	}
	return own.factor != 1
}

// roomAt reports whether a factor leaves room for a conversation. One that leaves none is not taken over: it comes from a
// provider that reported nonsense, or from a window that was set wrong then, and no model would be asked any more that
// could show so.
func (r *run) roomAt(factor float64) bool {
	win := newWindow(r.window, tokens(r.ts.tokens()+r.prefix().Tokens+requestTokens, factor), r.st.Agent.Policy)
	return win.room() >= minRoom
}

// addCalibrations puts into the last commit of a turn what was learned in it of the models that were asked. A record that
// another turn's commit is writing is left to that.
func (r *run) addCalibrations(c *store.Commit) {
	if r.uncounted {
		return
	}
	r.k.mu.Lock()
	defer r.k.mu.Unlock()
	for _, model := range []string{r.name, r.folds} {
		key := calibrationKey{r.st.Thread.Tenant, model}
		own := r.k.calibrations[key]
		factor := r.k.cfg.Counter.Factor(model)
		if own == nil || own.claimed || math.Abs(factor/own.factor-1) <= calibrationStep {
			continue
		}
		own.claimed = true
		rec := store.Record{Tenant: key.tenant, Kind: calibrationKind, ID: model, Data: mustJSON(calibration{factor}), Version: own.version}
		c.Records = append(c.Records, rec)
		r.claims = append(r.claims, claim{key, factor})
	}
}

// claim is a calibration that the commit under way writes.
type claim struct {
	key    calibrationKey
	factor float64
}

// endClaims notes what became of the calibrations in a commit. Where it failed they are read anew by a later turn; the
// turn under way leaves them out, since they are not worth doing a step again and again.
func (r *run) endClaims(written bool) {
	if len(r.claims) == 0 {
		return
	}
	r.k.mu.Lock()
	defer r.k.mu.Unlock()
	for _, c := range r.claims {
		if own := r.k.calibrations[c.key]; written {
			own.factor, own.claimed = c.factor, false
			own.version++
		} else {
			delete(r.k.calibrations, c.key)
		}
	}
	r.claims, r.uncounted = nil, !written
}
