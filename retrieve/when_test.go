package retrieve

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"memgpt/store"
)

// wednesday is the moment at which the tables' questions are asked.
var wednesday = time.Date(2023, 8, 16, 14, 30, 0, 0, time.UTC)

// written writes spans as first/last day, or with hours where they don't end at midnight.
func written(list spans) string {
	var out []string
	for _, s := range list {
		const day, hour = "2006-01-02", "2006-01-02T15:04"
		from, to := s.from.Format(hour), s.to.Format(hour)
		if strings.HasSuffix(from, "T00:00") && strings.HasSuffix(to, "T00:00") {
			from, to = s.from.Format(day), s.to.Add(-time.Hour).Format(day)
		}
		if from == to {
			out = append(out, from)
		} else {
			out = append(out, from+"/"+to)
		}
	}
	return strings.Join(out, " ")
}

func checkSpans(t *testing.T, now time.Time, known []knownDate, table [][2]string) {
	t.Helper()
	for _, tt := range table {
		if diff := cmp.Diff(tt[1], written(findSpans(tt[0], now, known))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt[0], diff)
		}
	}
}

func TestSpansAbsolute(t *testing.T) {
	checkSpans(t, wednesday, nil, [][2]string{
		{"", ""},
		{"what happened on 2023-05-08?", "2023-05-08"},
		{"2023-05-08T13:56:00Z", "2023-05-08"},
		{"2023/5/8 and 2023.5.9", "2023-05-08 2023-05-09"},
		{"in 2023-05", "2023-05-01/2023-05-31"},
		{"8 May 2023", "2023-05-08"},
		{"the 8th of May, 2023", "2023-05-08"},
		{"May 8th", "2023-05-08"},
		{"May 8, 2022", "2022-05-08"},
		{"on the eighth of May", "2023-05-08"},
		{"Sept. 3", "2022-09-03"},
		{"Dec 25th 2020", "2020-12-25"},
		{"August 16", "2023-08-16"},
		{"Christmas '85", "1985-12-25"},
		{"the trip of May 3-5", "2023-05-03/2023-05-05"},
		{"on 5/8/2023", "2023-05-08 2023-08-05"},
		{"on 25/12/2022", "2022-12-25"},
		{"on 12/25/22", "2022-12-25"},
		{"am 8.5.2023", "2023-05-08"},
		{"on 5/8", "2023-05-08 2023-08-05"},
		{"30 Feb 2023", ""},
		{"2023-13-01", ""},
		{"Feb 29", "2020-02-29"},
		{"in May 2023", "2023-05-01/2023-05-31"},
		{"in may", "2023-05-01/2023-05-31"},
		{"in August", "2023-08-01/2023-08-31"},
		{"in September", "2022-09-01/2022-09-30"},
		{"What will I do in September?", "2023-09-01/2023-09-30"},
		{"Did I say what I will do in September?", "2022-09-01/2022-09-30"},
		{"May of last year", "2022-05-01/2022-05-31"},
		{"early June", "2023-06-01/2023-06-10"},
		{"in mid-June 2022", "2022-06-11/2022-06-20"},
		{"late in June", "2023-06-21/2023-06-30"},
		{"at the end of June", "2023-06-23/2023-06-30"},
		{"in 2022", "2022-01-01/2022-12-31"},
		{"early 2022", "2022-01-01/2022-05-01"},
		{"my 2022 trip", "2022-01-01/2022-12-31"},
		{"from 2019 to 2021", "2019-01-01/2021-12-31"},
		{"the 1990s", "1990-01-01/1999-12-31"},
		{"in the late '90s", "1996-08-31/1999-12-31"},
		{"in the eighties", "1980-01-01/1989-12-31"},
		{"Q2 2023", "2023-04-01/2023-06-30"},
		{"in the second quarter of 2022", "2022-04-01/2022-06-30"},
		{"2022 Q4 numbers", "2022-10-01/2022-12-31"},
		{"H1 2023", "2023-01-01/2023-06-30"},
		{"the week of May 10", "2023-05-08/2023-05-14"},
		{"the day before May 10", "2023-05-09"},
		{"the week after Christmas", "2022-12-26/2023-01-01"},
		{"the weekend before May 10, 2023", "2023-05-06/2023-05-07"},
		{"the weekend of May 10, 2023", "2023-05-13/2023-05-14"},
		{"last weekend before April 10, 2023", "2023-04-08/2023-04-09"},
		{"the weekend after May 6, 2023", "2023-05-13/2023-05-14"},
		{"since May 8", "2023-05-08/2023-08-16"},
		{"after May 8", "2023-05-09/2023-08-16"},
		{"after Christmas 2024", "2024-12-25"},
		{"between May and July", "2023-05-01/2023-07-31"},
		{"between 3 May and 9 May 2023", "2023-05-03/2023-05-09"},
		{"May 8 or June 9", "2023-05-08 2023-06-09"},
		{"in the morning of May 8", "2023-05-08"},
		{"on May 8 in the evening", "2023-05-08T17:00/2023-05-09T00:00"},
	})
}

func TestSpansRelative(t *testing.T) {
	checkSpans(t, wednesday, nil, [][2]string{
		{"yesterday", "2023-08-15"},
		{"the day before yesterday", "2023-08-14"},
		{"earlier today", "2023-08-16"},
		{"this morning", "2023-08-16T05:00/2023-08-16T12:00"},
		{"last night", "2023-08-15T18:00/2023-08-16T05:00"},
		{"yesterday evening", "2023-08-15T17:00/2023-08-16T00:00"},
		{"tomorrow", "2023-08-17"},
		{"last week", "2023-08-07/2023-08-13"},
		{"this week", "2023-08-14/2023-08-20"},
		{"next week", "2023-08-21/2023-08-27"},
		{"the week before last", "2023-07-31/2023-08-06"},
		{"last weekend", "2023-08-12/2023-08-13"},
		{"over the weekend", "2023-08-12/2023-08-13"},
		{"the weekend before last", "2023-08-05/2023-08-06"},
		{"last month", "2023-07-01/2023-07-31"},
		{"early last month", "2023-07-01/2023-07-10"},
		{"this month", "2023-08-01/2023-08-31"},
		{"last year", "2022-01-01/2022-12-31"},
		{"late last year", "2022-08-31/2022-12-31"},
		{"the year before last", "2021-01-01/2021-12-31"},
		{"last quarter", "2023-04-01/2023-06-30"},
		{"over the last month", "2023-07-16/2023-08-16"},
		{"in the past week", "2023-08-09/2023-08-16"},
		{"in the past 10 days", "2023-08-06/2023-08-16"},
		{"in the last three months", "2023-05-16/2023-08-16"},
		{"the past few days", "2023-08-11/2023-08-16"},
		{"last Monday", "2023-08-14"},
		{"last Wednesday", "2023-08-09"},
		{"on Friday", "2023-08-11"},
		{"Will we meet on Friday?", "2023-08-18"},
		{"this Friday", "2023-08-18"},
		{"next Friday", "2023-08-25"},
		{"Monday of last week", "2023-08-07"},
		{"last week's Tuesday", "2023-08-08"},
		{"the Monday before last", "2023-08-07"},
		{"Monday morning", "2023-08-14T05:00/2023-08-14T12:00"},
		{"last May", "2023-05-01/2023-05-31"},
		{"last August", "2022-08-01/2022-08-31"},
		{"this May", "2023-05-01/2023-05-31"},
		{"next May", "2024-05-01/2024-05-31"},
		{"last summer", "2022-06-01/2022-08-31"},
		{"this summer", "2023-06-01/2023-08-31"},
		{"last winter", "2022-12-01/2023-02-28"},
		{"the summer before last", "2021-06-01/2021-08-31"},
		{"early last summer", "2022-06-01/2022-06-30"},
		{"last year's summer", "2022-06-01/2022-08-31"},
		{"in the fall of 2021", "2021-09-01/2021-11-30"},
		{"during the spring", "2023-03-01/2023-05-31"},
		{"two weeks ago", "2023-07-30/2023-08-05"},
		{"3 days ago", "2023-08-13"},
		{"a couple of days ago", "2023-08-14"},
		{"a few days ago", "2023-08-11/2023-08-14"},
		{"two or three days ago", "2023-08-13/2023-08-14"},
		{"three months ago", "2023-05-01/2023-05-31"},
		{"half a year ago", "2022-11-16/2023-05-17"},
		{"a year ago", "2022-02-15/2023-02-14"},
		{"five hours ago", "2023-08-16T09:00/2023-08-16T10:00"},
		{"10 years ago", "2013-02-15/2014-02-14"},
		{"in two weeks, what will I do", "2023-08-27/2023-09-02"},
		{"recently", "2023-07-17/2023-08-16"},
		{"the other day", "2023-08-06/2023-08-15"},
		{"on the 8th", "2023-08-08"},
		{"on the 20th?", "2023-07-20"},
		{"on the 20th of last month", "2023-07-20"},
		{"this time last year", "2022-08-01/2022-08-30"},
		{"last Christmas", "2022-12-25"},
		{"on Christmas Eve", "2022-12-24"},
		{"New Year's Eve 2021", "2021-12-31"},
		{"Halloween last year", "2022-10-31"},
		{"valentines day", "2023-02-14"},
		{"at Thanksgiving", "2022-11-24"},
		{"Black Friday 2021", "2021-11-26"},
		{"Mother’s Day", "2023-05-14"},
		{"Chinese New Year", "2023-01-22/2023-01-28"},
		{"next Christmas", "2023-12-25"},
	})
}

func TestSpansEast(t *testing.T) {
	checkSpans(t, wednesday, nil, [][2]string{
		{"2023年5月8日我做了什么", "2023-05-08"},
		{"２０２３年５月８日", "2023-05-08"},
		{"二〇二三年五月八号", "2023-05-08"},
		{"五月八号", "2023-05-08"},
		{"十二月二十五日", "2022-12-25"},
		{"5月", "2023-05-01/2023-05-31"},
		{"6月初", "2023-06-01/2023-06-08"},
		{"6月中旬", "2023-06-11/2023-06-20"},
		{"去年6月下旬", "2022-06-21/2022-06-30"},
		{"2022年", "2022-01-01/2022-12-31"},
		{"去年年底", "2022-10-01/2022-12-31"},
		{"90年代", "1990-01-01/1999-12-31"},
		{"2023年第二季度", "2023-04-01/2023-06-30"},
		{"今年上半年", "2023-01-01/2023-06-30"},
		{"昨天", "2023-08-15"},
		{"前天", "2023-08-14"},
		{"大前天", "2023-08-13"},
		{"昨晚", "2023-08-15T18:00/2023-08-16T05:00"},
		{"昨天下午", "2023-08-15T12:00/2023-08-15T18:00"},
		{"上周", "2023-08-07/2023-08-13"},
		{"上週", "2023-08-07/2023-08-13"},
		{"上上周", "2023-07-31/2023-08-06"},
		{"上周三", "2023-08-09"},
		{"上週三晚上", "2023-08-09T18:00/2023-08-10T05:00"},
		{"上个星期天", "2023-08-13"},
		{"上個禮拜", "2023-08-07/2023-08-13"},
		{"下周五", "2023-08-25"},
		{"下周一下午两点", "2023-08-21T12:00/2023-08-21T18:00"},
		{"下周的日子", "2023-08-21/2023-08-27"},
		{"今天晚饭", "2023-08-16"},
		{"2003年至2006年", "2003-01-01/2006-12-31"},
		{"这周末", "2023-08-19/2023-08-20"},
		{"上周末", "2023-08-12/2023-08-13"},
		{"周末去哪了", "2023-08-12/2023-08-13"},
		{"周三开会", "2023-08-09"},
		{"上周一共去了几次", "2023-08-07/2023-08-13"},
		{"上个月", "2023-07-01/2023-07-31"},
		{"上個月八號", "2023-07-08"},
		{"上月底", "2023-07-24/2023-07-31"},
		{"去年", "2022-01-01/2022-12-31"},
		{"前年", "2021-01-01/2021-12-31"},
		{"今年", "2023-01-01/2023-12-31"},
		{"去年夏天", "2022-06-01/2022-08-31"},
		{"前年冬天", "2021-12-01/2022-02-28"},
		{"去年五月", "2022-05-01/2022-05-31"},
		{"两周前", "2023-07-30/2023-08-05"},
		{"兩個星期前", "2023-07-30/2023-08-05"},
		{"三个月前", "2023-05-01/2023-05-31"},
		{"半年前", "2022-11-16/2023-05-17"},
		{"两三天前", "2023-08-13/2023-08-14"},
		{"前几天", "2023-08-09/2023-08-15"},
		{"最近", "2023-07-17/2023-08-16"},
		{"最近三天", "2023-08-13/2023-08-16"},
		{"过去两周", "2023-08-02/2023-08-16"},
		{"国庆节", "2022-10-01/2022-10-07"},
		{"國慶", "2022-10-01/2022-10-07"},
		{"去年圣诞节", "2022-12-25"},
		{"元旦", "2023-01-01"},
		{"情人节", "2023-02-14"},
		{"春节", "2023-01-22/2023-01-28"},
		{"2021年春節", "2021-02-12/2021-02-18"},
		{"去年中秋", "2022-09-10"},
		{"除夕", "2023-01-21"},
		{"从5月3日到5月5日", "2023-05-03/2023-05-05"},
		{"5月3日前一天", "2023-05-02"},
		{"5月以来", "2023-05-01/2023-08-16"},
		{"先週", "2023-08-07/2023-08-13"},
		{"先々週", "2023-07-31/2023-08-06"},
		{"先週の金曜日", "2023-08-11"},
		{"今週末", "2023-08-19/2023-08-20"},
		{"昨日", "2023-08-15"},
		{"一昨日", "2023-08-14"},
		{"去年の夏", "2022-06-01/2022-08-31"},
		{"昨年5月", "2022-05-01/2022-05-31"},
		{"三日前", "2023-08-13"},
		{"二週間前", "2023-07-30/2023-08-05"},
		{"３ヶ月前", "2023-05-01/2023-05-31"},
		{"先月", "2023-07-01/2023-07-31"},
		{"先月の8日", "2023-07-08"},
		{"来月", "2023-09-01/2023-09-30"},
		{"月曜日に", "2023-08-14"},
		{"令和5年5月8日", "2023-05-08"},
		{"クリスマス", "2022-12-25"},
	})
}

func TestSpansFalseFriends(t *testing.T) {
	for _, q := range []string{
		"may I go", "you may", "this may be wrong", "it may 5 times fail", "the second may fail", "you may second that",
		"8 may attend",
		"march on", "they march 5 miles", "an army in red may march", "second", "the sun is hot", "I sat down",
		"we sat on the sun deck",
		"version 2.3.4", "v2.3.2004", "call 555-0123", "+86 138-0013-8000", "2023-05-08-1234", "138-2023-05-08",
		"in 5 minutes", "it costs $2023", "2023 dollars",
		"spring water", "in spring water", "the spring is broken", "they fall", "the fall of Rome", "fall asleep",
		"What did April say?", "ask June",
		"every Monday", "each summer", "every May", "room 2023", "in 2000 words", "Q1: what is it?", "at 12:30", "3.5.1",
		"1/2 cup", "in my 20s",
		"one week of holiday", "three days", "Sundays", "mayor", "in 3 steps", "5000 years ago", "5000 years from now",
		"一周五", "how much does it eat in a day", "on the 5th floor", "a score of 3-5-20", "in 12 hours a day",
		"一周三次", "一周一次", "三个月", "上面", "前天线", "后天性", "每周一", "每年五月", "三周日本", "两个星期一共", "上月球", "晚上周围", "最近的车站",
		"今日头条", "十三月", "五月四十号", "毎週月曜日", "周围", "秋田", "夏先生", "三天",
	} {
		if got := findSpans(q, wednesday, nil); len(got) > 0 {
			t.Errorf("%q: %s (%q)", q, written(got), got[0].text)
		}
	}
}

func TestSpansTextAndWeight(t *testing.T) {
	for q, want := range map[string]string{
		"Ｌａｓｔ May or 上週三晚上":          "Ｌａｓｔ May 1.00, 上週三晚上 1.00",
		"on 5/8/2023":                "5/8/2023 0.60, 5/8/2023 0.50",
		"on 5/8":                     "5/8 0.40, 5/8 0.40",
		"in 2019":                    "2019 0.80",
		"in the 1990s":               "the 1990s 0.50",
		"recently":                   "recently 0.25",
		"on May 8":                   "May 8 0.80",
		"before May 8, 2023":         "May 8, 2023 0.60",
		"since May 8, 2023":          "May 8, 2023 0.54",
		"a card from June":           "June 0.50",
		"from May 8, 2023 to May 10": "May 8, 2023 to May 10 0.80",
		"2023年5月8日以前":                "2023年5月8日 0.60",
		"on my birthday":             "birthday 0.45, birthday 0.45",
	} {
		var got []string
		for _, s := range findSpans(q, wednesday, knownDates("birthday 3/5/1990")) {
			got = append(got, fmt.Sprintf("%s %.2f", s.text, s.weight))
		}
		if diff := cmp.Diff(want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("%q (-want +got):\n%s", q, diff)
		}
	}
}

// TestSpansWinter asks in a winter that began the year before.
func TestSpansWinter(t *testing.T) {
	checkSpans(t, time.Date(2024, 1, 10, 9, 0, 0, 0, time.UTC), nil, [][2]string{
		{"this winter", "2023-12-01/2024-02-29"},
		{"in the winter", "2023-12-01/2024-02-29"},
		{"last winter", "2022-12-01/2023-02-28"},
		{"last Christmas", "2023-12-25"},
		{"last month", "2023-12-01/2023-12-31"},
		{"上个月底", "2023-12-24/2023-12-31"},
		{"on the 20th", "2023-12-20"},
		{"next May", "2024-05-01/2024-05-31"},
	})
}

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Skip("no zone ", name)
	}
	return loc
}

func TestSpansZones(t *testing.T) {
	for _, tt := range []struct {
		zone, now, q, from, to string // instants
	}{
		{"Asia/Shanghai", "2023-08-15T17:00:00Z", "昨天", "2023-08-14T16:00:00Z", "2023-08-15T16:00:00Z"},
		{"America/Los_Angeles", "2023-08-16T05:00:00Z", "yesterday", "2023-08-14T07:00:00Z", "2023-08-15T07:00:00Z"},
		{"Pacific/Kiritimati", "2023-12-31T11:00:00Z", "this year", "2023-12-31T10:00:00Z", "2024-12-31T10:00:00Z"},
		// Days of 23 and 25 hours, and weeks with them.
		{"America/New_York", "2023-03-13T12:00:00Z", "yesterday", "2023-03-12T05:00:00Z", "2023-03-13T04:00:00Z"},
		{"America/New_York", "2023-11-06T12:00:00Z", "yesterday", "2023-11-05T04:00:00Z", "2023-11-06T05:00:00Z"},
		{"Europe/Berlin", "2023-04-05T12:00:00Z", "last week", "2023-03-26T22:00:00Z", "2023-04-02T22:00:00Z"},
		{"Europe/Berlin", "2023-03-29T12:00:00Z", "last week", "2023-03-19T23:00:00Z", "2023-03-26T22:00:00Z"},
		// Midnight does not exist on 2018-11-04 in São Paulo; it comes twice on 2021-10-29 in Amman and on 2023-11-05 in Havana.
		{"America/Sao_Paulo", "2018-11-05T12:00:00Z", "yesterday", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"},
		{"America/Sao_Paulo", "2018-11-04T12:00:00Z", "yesterday", "2018-11-03T03:00:00Z", "2018-11-04T03:00:00Z"},
		{"Asia/Amman", "2021-10-30T12:00:00Z", "yesterday", "2021-10-28T21:00:00Z", "2021-10-29T22:00:00Z"},
		{"America/Havana", "2023-11-06T12:00:00Z", "yesterday", "2023-11-05T04:00:00Z", "2023-11-06T05:00:00Z"},
	} {
		now, _ := time.Parse(time.RFC3339, tt.now)
		got := findSpans(tt.q, now.In(zone(t, tt.zone)), nil)
		if len(got) != 1 {
			t.Errorf("%s in %s: %d spans", tt.q, tt.zone, len(got))
			continue
		}
		from, to := got[0].from.UTC().Format(time.RFC3339), got[0].to.UTC().Format(time.RFC3339)
		if from != tt.from || to != tt.to {
			t.Errorf("%s in %s is %s to %s, want %s to %s", tt.q, tt.zone, from, to, tt.from, tt.to)
		}
	}
	// Samoa leapt over 30 December 2011.
	if got := findSpans("2011-12-30", wednesday.In(zone(t, "Pacific/Apia")), nil); len(got) != 0 {
		t.Errorf("a day that was not has a span: %v", got)
	}
}

func TestKnownDates(t *testing.T) {
	for text, want := range map[string][]knownDate{
		"":                                    nil,
		"Her birthday is May 3.":              {{kind: "birthday", month: 5, day: 3}},
		"Birthday: 1990-05-03":                {{"birthday", "", 5, 3, 1990}},
		"User was born on 3 May 1990 in Bonn": {{"birthday", "", 5, 3, 1990}},
		"born in Paris on May 3rd":            {{kind: "birthday", month: 5, day: 3}},
		"May 3 is her birthday":               {{kind: "birthday", month: 5, day: 3}},
		"DOB: 13/5/1990":                      {{"birthday", "", 5, 13, 1990}},
		"birthday 3/5/1990":                   {{"birthday", "", 3, 5, 1990}, {"birthday", "", 5, 3, 1990}},
		"Tom's birthday is on June 9":         {{kind: "birthday", who: "tom", month: 6, day: 9}},
		"Her mom's birthday is on June 9":     {{kind: "birthday", who: "mother", month: 6, day: 9}},
		"wedding anniversary: June 10, 2015":  {{"anniversary", "", 6, 10, 2015}},
		"married on June 10, 2015":            {{"anniversary", "", 6, 10, 2015}},
		"生日是5月3日":                             {{kind: "birthday", month: 5, day: 3}},
		"我生日5月3号":                             {{kind: "birthday", month: 5, day: 3}},
		"她的生日：五月三日，结婚纪念日是6月10日": {{kind: "birthday", month: 5, day: 3}, {kind: "anniversary", month: 6, day: 10}},
		"1990年5月3日出生":                      {{"birthday", "", 5, 3, 1990}},
		"媽媽的生日是12月1日":                      {{kind: "birthday", who: "mother", month: 12, day: 1}},
		"小明的生日是12月1日":                      {{kind: "birthday", who: "小明", month: 12, day: 1}},
		"誕生日は5月3日":                         {{kind: "birthday", month: 5, day: 3}},
		"The birthday party is on May 3":   nil,
		"Birthday unknown. Moved on May 3": nil,
		"born in 1990":                     nil,
		"She likes May 3 and cakes":        nil,
	} {
		if diff := cmp.Diff(want, knownDates(text), cmp.AllowUnexported(knownDate{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestSpansKnown(t *testing.T) {
	known := knownDates("Name: Anna. Birthday is May 3, 1990.\nMom's birthday is on June 9.", "结婚纪念日是6月10日")
	checkSpans(t, wednesday, known, [][2]string{
		{"What did I get on my birthday?", "2023-05-03"},
		{"on my last birthday", "2023-05-03"},
		{"on my birthday last year", "2022-05-03"},
		{"last year on my birthday", "2022-05-03"},
		{"my 30th birthday", "2020-05-03"},
		{"at mom's birthday", "2023-06-09"},
		{"at my mother's birthday", "2023-06-09"},
		{"at Tom's birthday", ""},
		{"for our wedding anniversary", "2023-06-10"},
		{"What will I get for my birthday?", "2024-05-03"},
		{"the week before my birthday", "2023-04-26/2023-05-02"},
		{"我生日那天吃了什么", "2023-05-03"},
		{"去年我的生日", "2022-05-03"},
		{"媽媽的生日", "2023-06-09"},
		{"我们的结婚纪念日", "2023-06-10"},
	})
	checkSpans(t, wednesday, nil, [][2]string{{"on my birthday", ""}})
	checkSpans(t, wednesday, knownDates("Anna was born on 3 May 1990"), [][2]string{{"on my birthday", "2023-05-03"},
		{"on Bert's birthday", ""}})
}

func TestBoost(t *testing.T) {
	week := findSpans("last week", wednesday, nil) // 7 to 13 August, half-life 3.75 days behind it
	at := func(s string) int64 {
		tm, err := time.Parse("2006-01-02T15", s)
		if err != nil {
			t.Fatal(err)
		}
		return tm.Unix()
	}
	for _, tt := range []struct {
		when string
		want float64
	}{
		{"2023-08-07T00", 1}, {"2023-08-13T23", 1}, {"2023-08-14T00", 1}, {"2023-08-17T18", .5}, {"2023-08-21T12", .25},
		{"2023-08-06T00", .4774}, {"2023-07-20T00", 0}, {"2023-09-20T00", 0},
	} {
		if got := week.boost(at(tt.when)); math.Abs(got-tt.want) > .001 {
			t.Errorf("boost of %s is %.4f, want %v", tt.when, got, tt.want)
		}
	}
	for _, unix := range []int64{store.NoTime, math.MinInt64, math.MaxInt64} {
		if got := week.boost(unix); got != 0 {
			t.Errorf("boost of %d is %v", unix, got)
		}
	}
	two := findSpans("recently or on 2023-08-01", wednesday, nil)
	if got := two.boost(at("2023-08-01T12")); got != 1 {
		t.Errorf("of two spans the better gives %v", got)
	}
	if got := two.boost(at("2023-08-15T00")); got != .25 {
		t.Errorf("a weak span gives %v", got)
	}
	if got := findSpans("the 1990s", wednesday, nil).boost(at("2000-06-29T00")); got != .25 {
		t.Errorf("half a year behind a decade gives %v", got)
	}
	if got := spans(nil).boost(0); got != 0 {
		t.Errorf("no spans give %v", got)
	}
}

// TestLunarDates holds the table against the mean moon: a day's age in the lunation is its number, less one, within a
// day of what the true moon differs.
func TestLunarDates(t *testing.T) {
	const lunation = 29.530588853
	newMoon := time.Date(2000, 1, 6, 18, 14, 0, 0, time.UTC)
	for year := 2000; year <= 2040; year++ {
		for i, day := range []float64{0, 4, 14} {
			d := lunar(year, i+1).Add(4 * time.Hour) // noon in China
			age := math.Mod(d.Sub(newMoon).Hours()/24+100*lunation, lunation)
			if off := math.Mod(age-day+1.5*lunation, lunation) - .5*lunation; math.Abs(off) > 1.2 {
				t.Errorf("%s is %.1f days off", d.Format("2006-01-02"), off)
			}
		}
	}
	if !lunar(1999, 1).IsZero() || !lunar(2041, 1).IsZero() {
		t.Error("years outside the table have dates")
	}
}

func TestSpansBounded(t *testing.T) {
	long := strings.Repeat("2023-05-08 yesterday 上周 ", 1<<20/27)
	if n := len(findSpans(long, wednesday, nil)); n != maxSpans {
		t.Errorf("%d spans", n)
	}
	if n := len(findSpans(strings.Repeat("x", maxDateText)+" yesterday", wednesday, nil)); n != 0 {
		t.Errorf("looked behind the head of the text: %d", n)
	}
	if n := len(knownDates(strings.Repeat("born on May 3. ", 1<<16))); n != maxKnown {
		t.Errorf("%d known dates", n)
	}
}

func FuzzSpans(f *testing.F) {
	for _, q := range []string{"last May", "两三天前", "5/8/2023", "from May 3 to May 5", "the week before Christmas",
		"去年我的生日", "9999 years ago",
		"\xff\xfe2023年\xe5", "in the 90s", "0000-00-00", "令和99年13月", "十十十百年前", "my 99th birthday before last"} {
		f.Add(q, int64(1692196200))
	}
	f.Fuzz(func(t *testing.T, q string, unix int64) {
		now := time.Unix(unix%(1<<35), 0).In(time.FixedZone("", int(unix%50000)))
		list := findSpans(q, now, knownDates(q, "birthday May 3, 1990"))
		if len(list) > maxSpans {
			t.Fatalf("%d spans", len(list))
		}
		for _, s := range list {
			if !s.from.Before(s.to) || s.weight <= 0 || s.weight > 1 || s.text == "" || !strings.Contains(q, s.text) {
				t.Fatalf("span %+v", s)
			}
			if utf8.ValidString(q) && !utf8.ValidString(s.text) {
				t.Fatalf("cut text %q", s.text)
			}
			if b := (spans{s}).boost(s.from.Unix()); b != s.weight {
				t.Fatalf("boost %v inside of %+v", b, s)
			}
		}
	})
}

func BenchmarkSpans(b *testing.B) {
	for name, q := range map[string]string{"short": "What did I tell you about the trip to Rome last May?",
		"full": strings.Repeat("what may it be, the 5 of us 五月 ", 200)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				findSpans(q, wednesday, nil)
			}
		})
	}
}
