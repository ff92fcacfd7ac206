package retrieve_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"memgpt/retrieve"
)

const (
	number   = retrieve.ChangeNumber
	date     = retrieve.ChangeDate
	name     = retrieve.ChangeName
	negation = retrieve.ChangeNegation
)

func TestSameKey(t *testing.T) {
	for _, same := range [][]string{
		{"I live in Paris", "i  LIVE in\tparis ", "Ｉ live in Ｐａｒｉｓ", "I live\u3000in Paris\n"},
		{"Straße", "STRASSE", "strasse"},
		{"ΣΊΣΥΦΟΣ", "σίσυφος"},
		{"café", "cafe\u0301", "CAFÉ"},
		{"ｶﾌｪ", "カフェ"},
		{"①", "1"},
		{"", " \n"},
	} {
		for _, text := range same {
			if got, want := retrieve.SameKey(text), retrieve.SameKey(same[0]); got != want {
				t.Errorf("SameKey(%q) is %q, and of %q %q", text, got, same[0], want)
			}
			if l := retrieve.Compare(same[0], text); l.Relation != retrieve.Same || l.Score != 1 {
				t.Errorf("Compare(%q, %q) is %+v, want the same", same[0], text, l)
			}
		}
	}
	for _, pair := range [][2]string{{"cafe", "café"}, {"I live", "Ilive"}, {"3pm", "3 pm"}, {"a.", "a"}, {"👍🏽", "👍"}} {
		if retrieve.SameKey(pair[0]) == retrieve.SameKey(pair[1]) {
			t.Errorf("%q and %q have one key", pair[0], pair[1])
		}
	}
}

func TestCompareConflict(t *testing.T) {
	for _, c := range []struct {
		a, b string
		diff []retrieve.Change
	}{
		{"I live in Paris", "I live in Berlin", []retrieve.Change{{A: "Paris", B: "Berlin", Kind: name}}},
		{"i live in paris", "i live in berlin", []retrieve.Change{{A: "paris", B: "berlin", Kind: name}}},
		{"I live in New York", "I live in San Francisco", []retrieve.Change{{A: "New York", B: "San Francisco", Kind: name}}},
		{"John likes tea", "Mary likes tea", []retrieve.Change{{A: "John", B: "Mary", Kind: name}}},
		{"Marco likes tea", "Marcos likes tea", []retrieve.Change{{A: "Marco", B: "Marcos", Kind: name}}},
		{"I like black coffee", "I like black tea", []retrieve.Change{{A: "coffee", B: "tea", Kind: name}}},
		{"I like pop music", "I like podcasts about pop music", []retrieve.Change{{B: "podcasts", Kind: name}}},
		{"I love the color red in clothes", "I love the colors pink and red in clothes", []retrieve.Change{{B: "pink", Kind: name}}},
		{"we meet in rome every summer for lunch", "we meet anna in rome every summer for lunch", []retrieve.Change{{B: "anna", Kind: name}}},
		{"下周三我去北京参加教育论坛", "下周三我跟王芳去北京参加教育论坛", []retrieve.Change{{B: "跟王芳", Kind: name}}},
		{"I like tea", "He likes tea", []retrieve.Change{{A: "I", B: "He", Kind: name}}},
		{"I like green tea with milk", "My mother likes green tea with milk", []retrieve.Change{{B: "mother", Kind: name}}},
		{"We meet in Rome every summer", "We meet Anna in Rome every summer", []retrieve.Change{{B: "Anna", Kind: name}}},
		{"the meeting is at 3pm", "the meeting is at 4pm", []retrieve.Change{{A: "3pm", B: "4pm", Kind: number}}},
		{"the meeting is at 3 pm", "the meeting is at 3 am", []retrieve.Change{{A: "3 pm", B: "3 am", Kind: number}}},
		{"I have two cats", "I have three cats", []retrieve.Change{{A: "two", B: "three", Kind: number}}},
		{"I am 35", "I am 36", []retrieve.Change{{A: "35", B: "36", Kind: number}}},
		{"The price is $50", "The price is €50", []retrieve.Change{{A: "$50", B: "€50", Kind: number}}},
		{"It was -5 degrees outside", "It was 5 degrees outside", []retrieve.Change{{A: "-5", B: "5", Kind: number}}},
		{"My code is A-113 now", "My code is A-114 now", []retrieve.Change{{A: "A-113", B: "A-114", Kind: number}}},
		{"It holds 1.5 and then 2 liters", "It holds 1 and then 5.2 liters", []retrieve.Change{
			{A: "1.5", B: "1", Kind: number}, {A: "2", B: "5.2", Kind: number}}},
		{"My birthday is May 3", "My birthday is 4 May", []retrieve.Change{{A: "May 3", B: "4 May", Kind: date}}},
		{"Moved to Lyon in 2019", "Moved to Lyon in 2020", []retrieve.Change{{A: "2019", B: "2020", Kind: date}}},
		{"The dentist is on Monday", "The dentist is on Friday", []retrieve.Change{{A: "Monday", B: "Friday", Kind: date}}},
		{"The exam is tomorrow", "The exam is today", []retrieve.Change{{A: "tomorrow", B: "today", Kind: date}}},
		{"I like coffee", "I don't like coffee", []retrieve.Change{{B: "don't", Kind: negation}}},
		{"I like coffee", "I don’t like coffee", []retrieve.Change{{B: "don’t", Kind: negation}}},
		{"I like coffee", "I never liked coffee", []retrieve.Change{{B: "never", Kind: negation}}},
		{"I live in Paris", "I no longer live in Paris", []retrieve.Change{{B: "no", Kind: negation}}},
		{"I live in Paris", "I used to live in Paris", []retrieve.Change{{B: "used", Kind: negation}}},
		{"allergic to nuts", "not allergic to nuts", []retrieve.Change{{B: "not", Kind: negation}}},
		{"coffee with sugar, please", "coffee without sugar, please", []retrieve.Change{{B: "without", Kind: negation}}},
		{"She is happy with her job", "She is unhappy with her job", []retrieve.Change{{A: "happy", B: "unhappy", Kind: negation}}},
		{"call me before lunch", "call me after lunch", []retrieve.Change{{A: "before", B: "after", Kind: negation}}},
		{"I am a vegetarian", "I was a vegetarian", []retrieve.Change{{A: "am", B: "was", Kind: negation}}},
		// the same words in an order that says something else
		{"I don't like tea but like coffee", "I like tea but don't like coffee", []retrieve.Change{
			{A: "don't like tea", B: "like tea but don't", Kind: negation}}},
		{"I drink not green tea but coffee", "I drink not coffee but green tea", nil},
		{"John is Mary's father", "Mary is John's father", []retrieve.Change{{A: "John is Mary", B: "Mary is John", Kind: name}}},
		{"The dog chased the cat", "The cat chased the dog", []retrieve.Change{{A: "dog chased the cat", B: "cat chased the dog", Kind: name}}},
		{"I told him", "he told me", nil},
		{"Flying from New York to Rome", "Flying from Rome to New York", []retrieve.Change{
			{A: "New York to Rome", B: "Rome to New York", Kind: name}}},
		{"Ann has 5 cats and 6 dogs", "Ann has 5 dogs and 6 cats", nil},
		{"Tom is 5 and Ann is 6", "Tom is 6 and Ann is 5", nil},
		// Chinese
		{"我喜欢咖啡", "我不喜欢咖啡", []retrieve.Change{{B: "不", Kind: negation}}},
		{"我有猫", "我没有猫", []retrieve.Change{{B: "没有", Kind: negation}}},
		{"我吃肉", "我不再吃肉", []retrieve.Change{{B: "不再", Kind: negation}}},
		{"打电话给她", "别打电话给她", []retrieve.Change{{B: "别", Kind: negation}}},
		{"我的生日是5月3日", "我的生日是5月4日", []retrieve.Change{{A: "5月3日", B: "5月4日", Kind: date}}},
		{"会议在下午3点", "会议在下午4点", []retrieve.Change{{A: "3", B: "4", Kind: number}}},
		{"我有两只猫", "我有三只猫", []retrieve.Change{{A: "两", B: "三", Kind: number}}},
		{"我周一去游泳", "我周二去游泳", []retrieve.Change{{A: "周一", B: "周二", Kind: date}}},
		{"我住在巴黎", "我住在柏林", []retrieve.Change{{A: "巴黎", B: "柏林", Kind: name}}},
		{"我喜欢喝茶", "他喜欢喝茶", []retrieve.Change{{A: "我", B: "他", Kind: name}}},
		{"我喜欢她", "她喜欢我", nil},
		{"我妈妈喜欢喝绿茶", "我喜欢喝绿茶", []retrieve.Change{{A: "妈妈", Kind: name}}},
		// Japanese
		{"コーヒーが好きです", "コーヒーが好きではありません", []retrieve.Change{{B: "ません", Kind: negation}}},
		{"私は肉を食べます", "私は肉を食べません", []retrieve.Change{{B: "ません", Kind: negation}}},
		{"私は東京に住んでいます", "私は大阪に住んでいます", []retrieve.Change{{A: "東京", B: "大阪", Kind: name}}},
		{"りんごが好きです", "みかんが好きです", nil},
		{"たこが大好きです", "いかが大好きです", nil},
		{"会議は3時です", "会議は4時です", []retrieve.Change{{A: "3", B: "4", Kind: number}}},
		{"誕生日は2020年5月3日です", "誕生日は2020年5月4日です", []retrieve.Change{{A: "2020年5月3日", B: "2020年5月4日", Kind: date}}},
		// mixed
		{"我用 iPhone 12 拍照", "我用 iPhone 13 拍照", []retrieve.Change{{A: "12", B: "13", Kind: number}}},
		{"我住在 Paris", "我住在 Berlin", []retrieve.Change{{A: "Paris", B: "Berlin", Kind: name}}},
		{"Ich mag Kaffee", "Ich mag keinen Kaffee", []retrieve.Change{{B: "keinen", Kind: negation}}},
	} {
		for range 2 {
			got := retrieve.Compare(c.a, c.b)
			if got.Relation != retrieve.Conflict || len(got.Diff) == 0 {
				t.Errorf("%q and %q: %+v, want a conflict", c.a, c.b, got)
			} else if c.diff != nil {
				if d := cmp.Diff(c.diff, got.Diff); d != "" {
					t.Errorf("%q and %q: %s", c.a, c.b, d)
				}
			}
			c.a, c.b = c.b, c.a // and the other way round
			for i := range c.diff {
				c.diff[i].A, c.diff[i].B = c.diff[i].B, c.diff[i].A
			}
		}
	}
}

func TestCompareNear(t *testing.T) {
	for _, c := range [][2]string{
		{"I like coffee", "I really like coffee!"},
		{"I like cats", "I like a cat"},
		{"I live in Paris.", "I currently live in Paris, now"},
		{"I am allergic to nuts", "Allergic to nuts: I am"},
		{"On Mondays I swim", "I swim on Mondays"},
		{"Daily I eat fresh meat", "I eat fresh meat daily"},
		{"In 2020 John moved to Paris", "John moved to Paris in 2020"},
		{"John met Mary in Paris", "In Paris John met Mary"},
		{"On 3 May I met Ann in Rome", "I met Ann in Rome on May 3rd"},
		{"I don't like coffee", "I do not like coffee"},
		{"I never eat meat", "I do not eat meat"},
		{"I have 2 cats at home", "I have two cats at home"},
		{"The dentist is at 3pm", "the dentist is at 3 pm"},
		{"Run 5km daily", "run 5 km daily"},
		{"It costs 1,000 euros", "It cost 1000 euros"},
		{"My birthday is May 3, 1990", "my birthday is 1990-05-03"},
		{"My sister works as a nurse in a hospital", "My sister works as a nurse in a big hospital"},
		{"Usually I drink tea at home", "I drink tea at home"},
		{"José lives in Málaga", "jose lives in malaga"},
		{"我喜欢咖啡", "我非常喜欢咖啡。"},
		{"我喜欢咖啡", "我很喜欢咖啡的"},
		{"我明天去北京", "明天我去北京"},
		{"我不喜欢咖啡", "我一直不喜欢咖啡"},
		{"我有2只猫", "我有两只猫"},
		{"生日是2020年5月3日", "生日: 2020-05-03"},
		{"私はコーヒーが好きです", "私は本当にコーヒーが好き"},
		{"東京に住んでいます", "東京に住んでいる"},
		{"我用 iPhone 12 拍照", "我用iPhone 12拍照！"},
	} {
		for range 2 {
			if l := retrieve.Compare(c[0], c[1]); l.Relation != retrieve.Near || l.Score < .7 || len(l.Diff) > 0 {
				t.Errorf("%q and %q: %+v, want near", c[0], c[1], l)
			}
			c[0], c[1] = c[1], c[0]
		}
	}
}

// TestCompareApart has texts that resemble each other and state different facts: none is to be merged, and where
// they share little they aren't worth a word.
func TestCompareApart(t *testing.T) {
	for _, c := range [][2]string{
		{"I have a cat named Tom", "I have a dog named Rex"},
		{"John likes tea", "Mary likes coffee"},
		{"I like coffee", "I like tea"},
		{"John lives in Paris and works at Google", "Mary lives in Paris and works at Apple"},
		{"My brother is a lawyer in London", "My sister was a lawyer in Leeds"},
		{"Yes.", "No."},
		{"8b9f3a1c-22aa-4e1b-9c1d-77aa11bb22cc: 0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0", "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0: 7d0ee18c-4b5a-6978-8796-a5b4c3d2e1f0"},
		{"12:30 17:45 2024", "12:30 17:50 2024"},
		{"!!!", "???"},
		{"", "I like tea"},
		{"I", "you"},
		{"我有一只叫汤姆的猫", "我有一条叫雷克斯的狗"},
		{"他在北京工作", "她在上海读书"},
		{"猫が好きです", "海へ行きました"},
		{"👍", "👎"},
	} {
		if l := retrieve.Compare(c[0], c[1]); l.Relation != retrieve.Different {
			t.Errorf("%q and %q: %+v, want different", c[0], c[1], l)
		}
	}
	for _, c := range [][2]string{
		{"I am a doctor", "I have a doctor"},
		{"I love anime", "I love animals"},
		{"I ate an apple", "1 ate an apple"},
		{"I don't have a television", "I remember when nobody had a television"},
		{"I have two children", "I have more than two children"},
		{"I am from Boston", "I am in Boston"},
		{"I do not go to school", "I did not go to school"},
		{"I don't work out", "I do not work"},
		{"I travel the world", "I would travel the world if I could"},
		{"I am about to start college", "I just started college"},
		{"I am in Paris", "I was born in Paris"},
		{"The red car belongs to my neighbour", "The blue car belongs to my neighbour"},
		{"I ate at the new restaurant", "I ate at the old restaurant"},
		{"The book is on the table", "The book is under the table"},
		{"Anna has a cat and a dog", "Anna has a cat"},
		{"妈妈喜欢红色的花", "妈妈喜欢白色的花"},
		{"我想买车", "我想卖车"},
		{"彼は先生です", "彼は学生です"},
	} {
		if l := retrieve.Compare(c[0], c[1]); l.Relation == retrieve.Near || l.Relation == retrieve.Same {
			t.Errorf("%q and %q: %+v, want no merge", c[0], c[1], l)
		}
	}
}
