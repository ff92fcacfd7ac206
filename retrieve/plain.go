package retrieve

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"memgpt/store"
	"memgpt/tool"
)

// Plain texts are short texts about nothing in common, as people say them to an assistant. Their vectors tell how a
// model's vectors lie: what all have in common, how near unrelated ones come, and which way one language lies from
// another.
var (
	plainEnglish = []string{
		"I bought new running shoes yesterday.",
		"The meeting was moved to Thursday at three.",
		"My grandmother taught me how to bake bread.",
		"Restart the server before you deploy the update.",
		"It has been raining for a whole week here.",
		"Thank you, that is exactly what I needed!",
		"Which train should we take to the airport?",
		"He sold his old car to a friend for 900 dollars.",
		"The second chapter still lacks a good ending.",
		"She plays the violin in the city's orchestra.",
	}
	plainChinese = []string{
		"这个季度的预算还没有批下来。",
		"我对花生过敏，吃了会起疹子。",
		"周末和同事去爬了山。",
		"他小时候住在海边的一个小镇。",
		"手机屏幕摔碎了，得拿去修。",
		"请把字体调大一点。",
		"附近有没有好一点的牙医？",
		"女儿下个月参加钢琴比赛。",
		"医生建议我少喝咖啡。",
	}
	plainOthers = []string{
		"来週の土曜日に引っ越します。",
		"El perro de mi vecino ladra toda la noche.",
		"Die Rechnung ist noch nicht bezahlt.",
		"Нам нужно купить билеты заранее.",
		"أحب قراءة الروايات قبل النوم.",
	}
)

func plainTexts() []string { return slices.Concat(plainEnglish, plainChinese, plainOthers) }

// prior is what is known of a model before any text of an owner.
type prior struct {
	mean     []float32
	language []float32 // the way from texts in Chinese to texts in English, of length 1
	apart    float32   // root of the mean square of cosines between plain texts, less their mean

	strangers [][]float32 // of the questions of strangers
}

// priors keeps each model's prior.
type priors struct {
	records Records // nil is none
	mu      sync.Mutex
	models  map[string]*prior
}

// Records keep what is known of a model from one process to the next; every store.Store is one.
type Records interface {
	Record(ctx context.Context, tenant, kind, id string) (store.Record, error)
	Commit(ctx context.Context, c *store.Commit) (store.Committed, error)
}

// of returns the model's prior, made with the first use of all processes. A failure is not kept. dims are those of the
// model's vectors as far as they are known, else 0: a prior of others was another model's by the same name.
func (p *priors) of(ctx context.Context, e tool.Embedder, dims int) (*prior, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fits := func(x *prior) bool { return x != nil && (dims == 0 || len(x.mean) == dims) }
	if known := p.models[e.Model()]; fits(known) {
		return known, nil
	}
	if p.models == nil {
		p.models = map[string]*prior{}
	}
	made, version := p.load(ctx, e.Model())
	if !fits(made) {
		vectors, err := embedAlike(ctx, e, plainTexts(), false)
		if err != nil {
			return nil, err
		}
		made = priorOf(vectors)
		version = p.save(ctx, e.Model(), version, made) // a slow model comes further with each process
	}
	if made.strangers == nil {
		vectors, err := embedAlike(ctx, e, strangers(), true)
		if err != nil {
			return nil, err
		}
		made.strangers = vectors
		p.save(ctx, e.Model(), version, made)
	}
	p.models[e.Model()] = made
	return made, nil
}

// embedAlike returns the vectors of texts, which must be one each and of one length.
func embedAlike(ctx context.Context, e tool.Embedder, texts []string, query bool) ([][]float32, error) {
	vectors, err := e.Embed(ctx, texts, query)
	if err != nil {
		return nil, fmt.Errorf("embed plain texts: %w", err)
	}
	if len(vectors) != len(texts) || slices.ContainsFunc(vectors, func(v []float32) bool { return len(v) == 0 || len(v) != len(vectors[0]) }) {
		return nil, fmt.Errorf("embed plain texts: got %d vectors for %d texts, not all of one length", len(vectors), len(texts))
	}
	return vectors, nil
}

// kindPrior is the kind of the records that hold priors; their ids are the models'.
const kindPrior = "prior"

// keptPrior is a prior as a record.
type keptPrior struct {
	Texts     string // the texts that it was made of, hashed
	Mean      []byte // float32, little-endian
	Language  []byte
	Apart     float32
	Strangers []byte // one vector after another; nil before they were embedded
}

// load returns the prior that was kept, nil without one, and the version of its record. That a record can't be read costs
// but the time to make it again.
func (p *priors) load(ctx context.Context, model string) (*prior, int64) {
	if p.records == nil {
		return nil, 0
	}
	r, err := p.records.Record(ctx, "", kindPrior, model)
	if err != nil {
		return nil, 0
	}
	var k keptPrior
	if json.Unmarshal(r.Data, &k) != nil || k.Texts != hashedPlainTexts() || len(k.Mean) == 0 || len(k.Mean)%4 != 0 ||
		len(k.Mean) != len(k.Language) || k.Strangers != nil && len(k.Strangers) != len(strangers())*len(k.Mean) {
		return nil, r.Version
	}
	x := &prior{mean: readFloats(k.Mean), language: readFloats(k.Language), apart: k.Apart}
	for row := range slices.Chunk(k.Strangers, len(k.Mean)) {
		x.strangers = append(x.strangers, readFloats(row))
	}
	return x, r.Version
}

func readFloats(data []byte) []float32 {
	v := make([]float32, len(data)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return v
}

func appendFloats(data []byte, v []float32) []byte {
	for _, x := range v {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	return data
}

// save keeps a prior. Where it can't, because another process did at the same time or for any other reason, the next use
// will find or make it. It returns the version of the record.
func (p *priors) save(ctx context.Context, model string, version int64, x *prior) int64 {
	if p.records == nil {
		return version
	}
	k := keptPrior{Texts: hashedPlainTexts(), Mean: appendFloats(nil, x.mean), Language: appendFloats(nil, x.language), Apart: x.apart}
	for _, v := range x.strangers {
		k.Strangers = appendFloats(k.Strangers, v)
	}
	data, err := json.Marshal(k)
	if err == nil {
		r := store.Record{Kind: kindPrior, ID: model, Data: data, Version: version}
		_, err = p.records.Commit(ctx, &store.Commit{Now: time.Now(), Records: []store.Record{r}})
	}
	if err != nil {
		return version
	}
	return version + 1
}

func hashedPlainTexts() string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(slices.Concat(plainTexts(), strangers()), "\n"))))
}

func priorOf(vectors [][]float32) *prior {
	english, chinese := len(plainEnglish), len(plainEnglish)+len(plainChinese)
	p := &prior{mean: meanVector(vectors)}
	p.language = aimOf(meanVector(vectors[:english]), meanVector(vectors[english:chinese])).v
	squares, pairs := 0., 0
	for i := range vectors {
		a := aimOf(vectors[i], p.mean)
		for j := range i {
			c := float64(dot(a.v, aimOf(vectors[j], p.mean).v))
			squares += c * c
			pairs++
		}
	}
	p.apart = float32(math.Sqrt(squares / float64(pairs)))
	return p
}

func meanVector(vectors [][]float32) []float32 {
	mean := make([]float32, len(vectors[0]))
	for _, v := range vectors {
		for i, x := range v {
			mean[i] += x / float32(len(vectors))
		}
	}
	return mean
}

// aim returns what a query's vector aims at: less the owner's mean, and less what is only its language. Without the latter,
// texts in the language of the query stand before better ones in another, and a query in another language than all texts
// seems far from each. The strict aim lacks also what the query has in common with all of the owner's texts: what is near
// to that is near for a reason of its own.
func (p *prior) aim(v, mean []float32) (wide, strict *aim) {
	zero := make([]float32, len(v))
	own := without(aimOf(mean, p.mean).v, p.language) // which way the owner's texts lie from those of all
	q := make([]float32, len(v))
	for i := range v {
		q[i] = v[i] - mean[i]
	}
	q = without(q, p.language)
	strict = aimOf(without(q, own), zero)
	if dot(q, own) < 0 {
		return strict, strict
	}
	return aimOf(q, zero), strict
}

// without takes the part of v along a way out.
func without(v, way []float32) []float32 {
	along, square := dot(v, way), dot(way, way)
	if square == 0 {
		return v
	}
	out := make([]float32, len(v))
	for i := range v {
		out[i] = v[i] - along/square*way[i]
	}
	return out
}
