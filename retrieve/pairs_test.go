package retrieve_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"memgpt/tool"
)

// memories are thirty things that someone may have told an assistant.
var memories = []string{
	"那只宠物猫", "北京分公司提案", "上次去吃饭的地方", "我家的猫叫咪咪，今年三岁", "女儿在学钢琴，每周三晚上有课", "爸爸对青霉素过敏",
	"周末打算去爬香山", "笔记本电脑的屏幕坏了，送去修了", "房租每月五号交", "妻子喜欢白色的玫瑰", "去年在上海入职了新公司",
	"合同编号 HT-2023-0578，已经续签", "王老师的邮箱是 wang.lei@example.com", "合同编号 HT-2023-0587，下月到期", "车停在地下二层 B217",
	"My sister is a nurse at the children's hospital in Leeds", "I gave up meat two years ago", "The wifi password is taped under the router",
	"We got married on a beach in Thailand", "My knee hurts when I run downhill", "Flight BA2490 lands at 18:35 on Friday",
	"Meeting with Dr. Okonkwo about the thyroid results", "The build script lives in /opt/tools/build/make_release.sh",
	"She said we will cross that bridge when we come to it", "The landlord's name is Piotr Wiśniewski",
	"My son starts kindergarten in September", "I can't sleep after an espresso in the evening",
	"The car insurance policy number is 4471-8820-16", "My favourite film is Spirited Away", "We adopted a greyhound called Biscuit last spring",
}

// pairs are questions and the memory that each is about: which, by its place; and how near the front it is held to stand.
var pairs = []struct {
	query string
	want  int
	rank  int // 0 is not held
}{
	{"我家的猫", 0, 3}, {"上次讨论的那个方案", 1, 3}, {"那家餐厅", 2, 3},
	{"我的宠物叫什么名字", 3, 1}, {"what is the name of my cat", 3, 1},
	{"孩子学什么乐器", 4, 0}, {"父亲不能用哪种药", 5, 0}, {"户外活动安排", 6, 0}, {"手提机哪里有故障", 7, 0}, {"什么时候付租金", 8, 0},
	{"老婆爱什么花", 9, 0}, {"什么时候换工作", 10, 0}, {"我妹妹在哪里上班", 15, 0}, {"我最喜欢的电影", 28, 0}, {"what medicine is my father allergic to", 5, 0},
	{"what does my sibling do for a living", 15, 0}, {"am I a vegetarian", 16, 0}, {"how do I get on the internet at home", 17, 0},
	{"where was our wedding", 18, 0}, {"joint pain while jogging", 19, 0}, {"when does my boy begin school", 25, 0},
	{"does coffee keep me awake", 26, 0}, {"the movie I like best", 28, 0}, {"our dog", 29, 0}, {"who do I pay rent to", 24, 0},
	// What has to be found to the letter.
	{"HT-2023-0587", 13, 1}, {"合同 HT-2023-0587 什么时候到期", 13, 1}, {"wang.lei@example.com", 12, 1}, {"B217", 14, 1}, {"BA2490", 20, 1},
	{"when does BA2490 land", 20, 1}, {"Okonkwo", 21, 1}, {"/opt/tools/build/make_release.sh", 22, 1}, {"make_release.sh", 22, 1},
	{`"cross that bridge when we come to it"`, 23, 1}, {"Wisniewski", 24, 1}, {"4471-8820-16", 27, 1}, {"18:35", 20, 1},
}

// TestPairs prints where words, vectors and both rank what each question is about; docs/retrieval.md has the table.
func TestPairs(t *testing.T) {
	c := newEncoder(t)
	m := newMemIndex()
	for i, text := range memories {
		m.addPassage(passage(i, text, noon.Add(time.Duration(i)*time.Hour)))
	}
	m.embed(c, memories)
	words, both := hybrid(t, m), hybrid(t, m, c)
	var table strings.Builder
	for _, p := range pairs {
		id := fmt.Sprint("passage-", p.want)
		w, f := rankOf(ask(t, words, tool.Query{Text: p.query, Size: 30}), id), rankOf(ask(t, both, tool.Query{Text: p.query, Size: 30}), id)
		v := vectorRank(c, p.query, p.want)
		fmt.Fprintf(&table, "| %s | %s | %s | %d | %s |\n", p.query, memories[p.want], orNone(w), v, orNone(f))
		if p.rank > 0 && (f == 0 || f > p.rank) {
			t.Errorf("%s: rank %d, want %d", p.query, f, p.rank)
		}
		best := v
		if w > 0 {
			best = min(w, v)
		}
		if f == 0 || f > best+2 {
			t.Errorf("%s: words rank it %d, vectors %d, both %d", p.query, w, v, f)
		}
	}
	t.Log("\n" + table.String())
}

// foreign are questions about nothing in the memories.
var foreign = []string{
	"lattice quantum chromodynamics", "利率互换合约的定价模型", "how do I tune a carburettor", "which enzyme unwinds DNA", "古罗马的水道是怎么修的",
	"the offside rule in football", "Kubernetes ingress annotations", "宋代瓷器的釉色", "tax treatment of stock options", "木星有几颗卫星",
}

// TestForeignQuestions: of questions about something else, most find nothing.
func TestForeignQuestions(t *testing.T) {
	c := newEncoder(t)
	m := newMemIndex()
	for i, text := range memories {
		m.addPassage(passage(i, text, noon.Add(time.Duration(i)*time.Hour)))
	}
	m.embed(c, memories)
	s, found := hybrid(t, m, c), 0
	for _, q := range foreign {
		if hits := ask(t, s, tool.Query{Text: q, Explain: true}); hits.Total > 0 {
			found++
			t.Logf("%s: %d found, first %s, %v", q, hits.Total, hits.List[0].Text, hits.List[0].Parts)
		}
	}
	if found > len(foreign)/2 {
		t.Errorf("%d of %d foreign questions find something", found, len(foreign))
	}
}

func orNone(rank int) string {
	if rank == 0 {
		return "-"
	}
	return fmt.Sprint(rank)
}

// rankOf returns the place of a hit, from 1; 0 for none.
func rankOf(hits tool.Hits, id string) int {
	return 1 + slices.IndexFunc(hits.List, func(h tool.Hit) bool { return h.ID == id })
}

// vectorRank returns the place of a memory by plain cosine.
func vectorRank(c *cachedEncoder, query string, want int) int {
	q := c.vectors(c.t, []string{query}, true)[0]
	vectors := c.vectors(c.t, memories, false)
	order := make([]int, len(memories))
	cosines := make([]float32, len(memories))
	for i, v := range vectors {
		order[i] = i
		for d, x := range v {
			cosines[i] += x * q[d]
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(cosines[b], cosines[a]) })
	return 1 + slices.Index(order, want)
}
