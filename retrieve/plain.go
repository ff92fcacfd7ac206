package retrieve

import (
	"context"
	"fmt"
	"math"
	"sync"

	"memgpt"
)

// plainTexts are short texts about nothing in common, as people say them to an assistant. Their vectors tell how a model's
// vectors lie where an owner has too few of its own: what all have in common, and how near unrelated ones come.
var plainTexts = []string{
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
	"这个季度的预算还没有批下来。",
	"我对花生过敏，吃了会起疹子。",
	"周末和同事去爬了山。",
	"他小时候住在海边的一个小镇。",
	"手机屏幕摔碎了，得拿去修。",
	"请把字体调大一点。",
	"附近有没有好一点的牙医？",
	"女儿下个月参加钢琴比赛。",
	"医生建议我少喝咖啡。",
	"来週の土曜日に引っ越します。",
	"El perro de mi vecino ladra toda la noche.",
	"Die Rechnung ist noch nicht bezahlt.",
	"Нам нужно купить билеты заранее.",
	"أحب قراءة الروايات قبل النوم.",
}

// prior is what is known of a model before any text of an owner.
type prior struct {
	mean  []float32
	apart float32 // root of the mean square of cosines between plain texts, less their mean
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
	vectors, err := e.Embed(ctx, plainTexts, false)
	if err != nil {
		return nil, fmt.Errorf("embed plain texts: %w", err)
	}
	if len(vectors) != len(plainTexts) || len(vectors[0]) == 0 {
		return nil, fmt.Errorf("embed plain texts: %d vectors for %d texts", len(vectors), len(plainTexts))
	}
	made := priorOf(vectors)
	if p.models == nil {
		p.models = map[string]*prior{}
	}
	p.models[e.Model()] = made
	return made, nil
}

func priorOf(vectors [][]float32) *prior {
	sum := make([]float64, len(vectors[0]))
	for _, v := range vectors {
		for i, x := range v {
			sum[i] += float64(x)
		}
	}
	p := &prior{mean: make([]float32, len(sum))}
	for i, s := range sum {
		p.mean[i] = float32(s / float64(len(vectors)))
	}
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
