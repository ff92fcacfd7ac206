package ingest

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// Scores of characters in encodings of one byte.
const (
	scoreMark    = -5.5  // punctuation as typesetters use it
	scoreForeign = -10.0 // a letter that the language does not have
	scoreSymbol  = -11.0
	scoreControl = -16.0
	scoreUpper   = -2.0 // for a capital, beside the letter
	scoreCapital = -0.3 // for a capital beside another
	scoreMixed   = -6.0 // for two scripts in one word, or a letter and a digit
	scoreSeldom  = -1.0 // for a family but the first, and twice for all but the first encoding of a family
	scoreLone    = -4.0 // for a letter of another script that stands alone
	scoreInner   = -5.0 // for a capital after a small letter
)

// alphabets hold the letters of languages, beyond ASCII, the most frequent first. Those of the Latin script are rare among
// letters of ASCII and begin lower, see first.
const (
	russian   = "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё"
	ukrainian = "оаинвертсікулмдпязьгйбчхжцюїєшщфґ"
	serbian   = "аоиенрутсјвкдмлпгзбшчцћжхђљњфџ"
	greek     = "αοιετσνηυρπκμλςίωάόγδέθφχβύήζξώψϊϋΐΰ"
	hebrew    = "יוהלרבאמתשנעםדקחפכטגצזסןךףץ"
	arabic    = "اليمنوتربةعدفسهكقحجشطصخىأإذضئثزغءظآؤ،؟؛ـًٌٍَُِّْ"
	persian   = "ایردنوهمتبسشکزلگخفقعجپحآصطچضغظژثذئء،؟؛\u200c"
	thai      = "านรอกเ่งมยล้วดทสตะัปบคีหแไจพขใช์ิุูื็ผโถธซำศณฐึภญๆษฉฟๅฝฮฎฏฑฒฆฌฬฤ๊๋ฯ"
	french    = "éàèêçùâôîûïëœæÿ"
	german    = "üäöß"
	spanish   = "óáíéñúüºª¡¿"
	lusitan   = "ãçáéõêíóúâàôü"
	nordic    = "äåöøæé"
	icelandic = "áðíéóöúýþæ"
	polish    = "ąęłóżśćńź"
	czech     = "íáěéčřžýšůúňťďóľôäŕĺ"
	magyar    = "áéöóőüíúű"
	romanian  = "ăîâșțşţ"
	croatian  = "čšžćđ"
	turkish   = "ışğüçöâî"
	baltic    = "ėųšžįąčęūāīēņķļģ"
	estonian  = "äõüöšž"
	vietnam   = "đăâêôơư\u0300\u0301\u0303\u0309\u0323"
	signs     = "×½¼¾±²³µ÷¢¥"
	marks     = "“”‘’–—…«»„°§©®€£№™·•\u00a0"
)

// single is an encoding of one byte a character, with one language.
type single struct {
	name   string
	enc    *charmap.Charmap
	scores [256]float64
	class  [256]byte
	prior  float64 // how likely the encoding is before a byte is seen
}

// Classes of bytes.
const (
	classNone  = iota
	classLatin // or classOther, of a letter; with classBig of a capital
	classOther
	classDigit
	classBig = 4
)

// family is a set of encodings with the languages that are written in them, the likelier first.
type family struct {
	names []string
	langs []string
}

func families() []family {
	return []family{
		{[]string{"windows-1252", "macintosh", "ibm850", "iso-8859-15"}, []string{french, german, spanish, lusitan, nordic, icelandic}},
		{[]string{"windows-1250", "iso-8859-2", "ibm852"}, []string{polish, czech, magyar, romanian, croatian}},
		{[]string{"windows-1251", "ibm866", "koi8-u", "iso-8859-5", "x-mac-cyrillic"}, []string{russian, ukrainian, serbian}},
		{[]string{"koi8-r"}, []string{russian}},
		{[]string{"windows-1253", "iso-8859-7"}, []string{greek}},
		{[]string{"windows-1254"}, []string{turkish}},
		{[]string{"windows-1255", "iso-8859-8", "ibm862"}, []string{hebrew}},
		{[]string{"windows-1256", "iso-8859-6"}, []string{arabic, persian}},
		{[]string{"windows-1257", "iso-8859-13"}, []string{baltic, estonian}},
		{[]string{"windows-1258"}, []string{vietnam}},
		{[]string{"windows-874"}, []string{thai}},
	}
}

func charmaps() map[string]*charmap.Charmap {
	return map[string]*charmap.Charmap{
		"windows-1250": charmap.Windows1250, "windows-1251": charmap.Windows1251, "windows-1252": charmap.Windows1252,
		"windows-1253": charmap.Windows1253, "windows-1254": charmap.Windows1254, "windows-1255": charmap.Windows1255,
		"windows-1256": charmap.Windows1256, "windows-1257": charmap.Windows1257, "windows-1258": charmap.Windows1258,
		"windows-874": charmap.Windows874, "iso-8859-2": charmap.ISO8859_2, "iso-8859-5": charmap.ISO8859_5,
		"iso-8859-6": charmap.ISO8859_6, "iso-8859-7": charmap.ISO8859_7, "iso-8859-8": charmap.ISO8859_8,
		"iso-8859-13": charmap.ISO8859_13, "iso-8859-15": charmap.ISO8859_15, "koi8-r": charmap.KOI8R, "koi8-u": charmap.KOI8U,
		"ibm850": charmap.CodePage850, "ibm852": charmap.CodePage852, "ibm862": charmap.CodePage862, "ibm866": charmap.CodePage866,
		"macintosh": charmap.Macintosh, "x-mac-cyrillic": charmap.MacintoshCyrillic,
	}
}

func newSingles() []*single {
	var all []*single
	maps := charmaps()
	for k, f := range families() {
		for i, name := range f.names {
			for _, lang := range f.langs {
				s := newSingle(name, maps[name], lang)
				s.prior = scoreSeldom * float64(min(k, 1)+2*min(i, 1))
				all = append(all, s)
			}
		}
	}
	return all
}

func newSingle(name string, enc *charmap.Charmap, lang string) *single {
	s := &single{name: name, enc: enc}
	shares := letterScores(lang)
	for b := range 256 {
		r := enc.DecodeByte(byte(b))
		s.scores[b], s.class[b] = runeScore(r, shares), classOf(r)
	}
	return s
}

// letterScores spreads the letters from the most to the least frequent.
func letterScores(lang string) map[rune]float64 {
	first, span := -2.2, 4.5 // a tenth of all letters, down to one in eight hundred
	if r, _ := utf8.DecodeRuneInString(lang); unicode.Is(unicode.Latin, r) {
		first, span = -4.5, 2
	}
	shares := map[rune]float64{}
	for _, r := range signs {
		shares[r] = scoreSign
	}
	for _, r := range marks {
		shares[r] = scoreMark
	}
	n := utf8.RuneCountInString(lang)
	i := 0
	for _, r := range lang {
		share := first - span*float64(i)/float64(n)
		shares[r] = share
		if up := unicode.ToUpper(r); up != r && up >= utf8.RuneSelf {
			shares[up] = share
		}
		i++
	}
	if lang == turkish {
		shares['İ'] = first
	}
	return shares
}

func runeScore(r rune, shares map[rune]float64) float64 {
	if score, ok := shares[r]; ok {
		return score
	}
	switch {
	case r < utf8.RuneSelf:
		return scoreASCII
	case r == utf8.RuneError:
		return scoreInvalid
	case unicode.IsControl(r):
		return scoreControl
	case unicode.IsLetter(r):
		return scoreForeign
	}
	return scoreSymbol
}

func classOf(r rune) byte {
	c := byte(classNone)
	switch {
	case unicode.Is(unicode.Latin, r):
		c = classLatin
	case unicode.IsDigit(r):
		c = classDigit
	case unicode.IsLetter(r) || unicode.IsMark(r):
		c = classOther
	}
	if unicode.IsUpper(r) {
		c |= classBig
	}
	return c
}

func (s *single) score(text []byte) float64 {
	sum := s.prior
	before, at := byte(classNone), byte(0)
	for i, b := range text {
		class, next := s.class[b], byte(classNone)
		if i+1 < len(text) {
			next = s.class[text[i+1]]
		}
		sum += s.scores[b]
		if b >= utf8.RuneSelf && class&classBig != 0 {
			sum += capital(before, next)
		}
		if class == classOther && before == classNone && next == classNone {
			sum += scoreLone
		}
		if (b >= utf8.RuneSelf || at >= utf8.RuneSelf) && before != classNone && class != classNone {
			sum += pair(before, class)
		}
		before, at = class, b
	}
	return sum
}

// capital scores a capital by its neighbours: words in capitals are rarer than words that begin with one, letter by
// letter they are not.
func capital(before, next byte) float64 {
	if before&classBig != 0 || next&classBig != 0 {
		return scoreCapital
	}
	return scoreUpper
}

// pair scores two letters that follow each other.
func pair(before, class byte) float64 {
	switch {
	case class&^classBig != before&^classBig:
		return scoreMixed
	case class&classBig != 0 && before&classBig == 0:
		return scoreInner
	}
	return 0
}
