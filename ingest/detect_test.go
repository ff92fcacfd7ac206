package ingest

import (
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/transform"

	"memgpt"
)

// sentences of our own, in the encodings in which such texts lie about.
func sentences() map[string][]string {
	return map[string][]string{
		"昨天我们去了苏州，参观了拙政园。天气很好，人也不多。":                                         {"gb18030", "gbk", "utf-16le", "utf-16be", "utf-32le", "utf-8"},
		"我的母亲在杭州的一所小学教书，她最喜欢的季节是秋天。":                                         {"gb18030"},
		"昨天我們去了臺南，參觀了孔廟。天氣很好，人也不多。":                                          {"big5", "utf-16le"},
		"會議改到星期五下午三點，請大家準時參加。":                                               {"big5"},
		"きのうは友達と京都へ行きました。天気がよくて、とても楽しかったです。":                                 {"shift_jis", "euc-jp", "iso-2022-jp", "utf-16be"},
		"東京都の人口は増加している。":                                                     {"shift_jis", "euc-jp", "iso-2022-jp"},
		"어제는 친구와 함께 부산에 갔습니다. 날씨가 아주 좋았어요.":                                  {"euc-kr", "utf-16le"},
		"Вчера мы ездили в Суздаль и видели старый монастырь.":               {"windows-1251", "koi8-r", "ibm866", "iso-8859-5", "x-mac-cyrillic"},
		"Привет, как дела?":                                                  {"windows-1251", "koi8-r", "ibm866"},
		"Учора ми їздили до Львова і бачили її родину.":                      {"windows-1251", "koi8-u"},
		"Le garçon a déjà mangé à l’école, où l’été est très agréable.":      {"windows-1252", "macintosh"},
		"Die Straße führt über die Brücke; wir möchten später zurückkehren.": {"windows-1252", "macintosh", "ibm850"},
		"El niño comió una manzana en la montaña. ¿Cómo está usted?":         {"windows-1252", "macintosh"},
		"A irmã não quer açúcar no café da manhã, só pão.":                   {"windows-1252"},
		"un café":                  {"windows-1252", "macintosh"},
		"Zürich":                   {"windows-1252", "macintosh"},
		"ÄRGER IM BÜRO, GRÖSSE XL": {"windows-1252"},
		"L’ÉCOLE DES FEMMES, COMÉDIE EN CINQ ACTES, PRÉSENTÉE À PARIS": {"windows-1252"},
		"They won 24–10 after 4½ minutes":                              {"windows-1252"},
		"25 °C and 10 £":                                               {"windows-1252"},
		"ПРИВЕТ ВСЕМ":                                                  {"windows-1251", "koi8-r", "ibm866"},
		"你好":                                                           {"gb18030"},
		"안녕하세요":                                                        {"euc-kr"},
		"こんにちは":                                                        {"shift_jis", "euc-jp", "iso-2022-jp"},
		"Smörgåsbordet är öppet på lördag.":                            {"windows-1252"},
		"“Quoted” – with a dash and nothing else… it’s English.":                    {"windows-1252", "macintosh"},
		"Zażółć gęślą jaźń. Wczoraj byliśmy w Łodzi i jedliśmy pączki.":             {"windows-1250", "iso-8859-2", "ibm852"},
		"Příliš žluťoučký kůň úpěl ďábelské ódy.":                                   {"windows-1250", "iso-8859-2"},
		"Őszintén szólva a tűzoltó nem tudta, hogy hol van a gyűrű és a kő.":        {"windows-1250", "iso-8859-2"},
		"Χθες πήγαμε στη Θεσσαλονίκη και είδαμε τον Λευκό Πύργο.":                   {"windows-1253", "iso-8859-7"},
		"Dün İstanbul'da güneşli bir gündü; çocuklar bahçede oynadı, kuş uçtu.":     {"windows-1254"},
		"אתמול נסענו לחיפה וראינו את הגנים הבהאיים.":                                {"windows-1255", "iso-8859-8"},
		"ذهبنا أمس إلى القاهرة وشاهدنا الأهرامات مع أصدقائنا.":                      {"windows-1256", "iso-8859-6"},
		"Vakar mes važiavome į Kauną ir matėme seną pilį, žąsys skrido virš ežero.": {"windows-1257"},
		"เมื่อวานเราไปเชียงใหม่และเห็นวัดเก่าแก่":                                   {"windows-874"},
	}
}

// TestDetectSentence holds that one sentence is enough, alone and after much ASCII.
func TestDetectSentence(t *testing.T) {
	long := strings.Repeat("plain words of no language at all\n", windowBytes/20)
	for text, names := range sentences() {
		for _, name := range names {
			raw := encode(t, text, name)
			if got, rep := decodeAll(t, raw, Config{}); got != text {
				t.Errorf("%s: read as %s: %s, want %s", name, rep.Encoding, got, text)
			}
			if strings.HasPrefix(name, "utf-16") || strings.HasPrefix(name, "utf-32") {
				continue
			}
			got, rep := decodeAll(t, append([]byte(long), raw...), Config{})
			if got != long+text || rep.Invalid != 0 {
				t.Errorf("%s after ASCII: read as %s: %s", name, rep.Encoding, got[len(long):])
			}
		}
	}
}

func encode(t testing.TB, text, name string) []byte {
	t.Helper()
	set, err := charsetByName(name)
	if err != nil {
		t.Fatal(err)
	}
	if set.enc == nil {
		return []byte(text)
	}
	raw, _, err := transform.Bytes(set.enc.NewEncoder(), []byte(text))
	if err != nil {
		t.Fatalf("encode %q as %s: %v", text, name, err)
	}
	return raw
}

func TestMarks(t *testing.T) {
	for _, set := range append(wideSets(), utf8Set()) {
		raw := append([]byte(set.bom), encode(t, "Zürich, 東京", set.name)...)
		got, rep := decodeAll(t, raw, Config{})
		if got != "Zürich, 東京" || rep.Encoding != set.name {
			t.Errorf("%s with a mark is read as %s: %q", set.name, rep.Encoding, got)
		}
		if got, _ := decodeAll(t, raw, Config{Encoding: set.name}); got != "Zürich, 東京" {
			t.Errorf("%s named, with a mark: %q", set.name, got)
		}
	}
	if got, _ := decodeAll(t, []byte("\xfe\xff\x00a\x00b"), Config{Encoding: "utf-16"}); got != "ab" {
		t.Errorf("a mark of the other order is not believed: %q", got)
	}
}

// TestClean holds what becomes of bytes that no text may have, and that they are counted.
func TestClean(t *testing.T) {
	for _, c := range []struct {
		raw, want string
		cfg       Config
		invalid   int
	}{
		{"a\x00b\r\nc\rd\r\r\n\r", "ab\nc\nd\n\n\n", Config{}, 0},
		{"été\r", "été\n", Config{}, 0},
		{strings.Repeat("été ", 20) + "\xff", strings.Repeat("été ", 20) + "\uFFFD", Config{}, 1},
		{"a\uFFFDb", "a\uFFFDb", Config{}, 0},
		{"a\xed\xa0\x80b", "a\uFFFD\uFFFD\uFFFDb", Config{Encoding: "utf-8"}, 3},
		{"\xd6", "\uFFFD", Config{Encoding: "gbk"}, 1},
		{"\x00\xd8a\x00", "\uFFFDa", Config{Encoding: "utf-16le"}, 1},
	} {
		got, rep := decodeAll(t, []byte(c.raw), c.cfg)
		if got != c.want || rep.Invalid != c.invalid {
			t.Errorf("%q became %q with %d invalid, want %q with %d", c.raw, got, rep.Invalid, c.want, c.invalid)
		}
	}
}

func TestUnknownNames(t *testing.T) {
	for _, cfg := range []Config{{Encoding: "klingon"}, {Encoding: "iso-2022-kr"}, {Format: "pdf"}, {Max: 3}, {Max: -1}} {
		if _, err := New(cfg); memgpt.CodeOf(err) != memgpt.CodeInvalid {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// FuzzDecode holds that anything decodes to text that may be stored, alike whatever the encoding is named.
func FuzzDecode(f *testing.F) {
	for text, names := range sentences() {
		f.Add(encode(f, text, names[0]), "")
	}
	f.Add([]byte("\x1b$B"), "iso-2022-jp")
	f.Add([]byte("\xff\xfe\x00"), "utf-16")
	f.Fuzz(func(t *testing.T, raw []byte, name string) {
		c, err := New(Config{Encoding: name, Format: FormatText})
		if err != nil {
			return
		}
		d := c.decoder(strings.NewReader(string(raw)))
		if d.begin("x", true) != nil {
			return
		}
		var text strings.Builder
		if _, err := copyText(&text, d); err != nil {
			t.Fatal(err)
		}
		if s := text.String(); !utf8.ValidString(s) || strings.ContainsAny(s, "\x00\r") {
			t.Errorf("%q as %s became %q", raw, d.set.name, s)
		}
	})
}

// TestLetterAtTheEndOfTheWindow: a letter that the looked-at window cuts is no broken one, also where there are hardly any
// others to tell UTF-8 by.
func TestLetterAtTheEndOfTheWindow(t *testing.T) {
	for _, letter := range []string{"é", "猫", "🐝"} {
		for cut := 1; cut < len(letter); cut++ {
			text := letter + strings.Repeat("a", windowBytes-cut-len(letter)) + letter + " end"
			c, err := New(Config{})
			if err != nil {
				t.Fatal(err)
			}
			rep, err := c.Cut(t.Context(), "x.txt", strings.NewReader(text), func(Chunk) error { return nil })
			if err != nil || rep.Encoding != "utf-8" || rep.Invalid != 0 {
				t.Errorf("%s cut after %d bytes: %s, %d invalid, %v", letter, cut, rep.Encoding, rep.Invalid, err)
			}
		}
	}
}
