package retrieve

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"memgpt"
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
}

// priors keeps each model's prior.
type priors struct {
	mu     sync.Mutex
	models map[string]*prior
}

// of returns the model's prior, made with the first use. A failure is not kept.
func (p *priors) of(ctx context.Context, e memgpt.Embedder) (*prior, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.models[e.Model()]; known != nil {
		return known, nil
	}
	texts := plainTexts()
	vectors, err := e.Embed(ctx, texts, false)
	if err != nil {
		return nil, fmt.Errorf("embed plain texts: %w", err)
	}
	if len(vectors) != len(texts) || slices.ContainsFunc(vectors, func(v []float32) bool { return len(v) == 0 || len(v) != len(vectors[0]) }) {
		return nil, fmt.Errorf("embed plain texts: got %d vectors for %d texts, not all of one length", len(vectors), len(texts))
	}
	made := priorOf(vectors)
	if p.models == nil {
		p.models = map[string]*prior{}
	}
	p.models[e.Model()] = made
	return made, nil
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
