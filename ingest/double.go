package ingest

import (
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// Scores of characters in encodings of two bytes. The standards put frequent characters into their first level.
const (
	scoreKana   = -4.5
	scoreCommon = -5.5 // the characters listed below make up about half of a text
	scoreHangul = -6.5
	scoreSign   = -7.0
	scoreLevel1 = -8.5
	scoreOdd    = -10.0 // signs and letters of other scripts
	scoreLevel2 = -12.0
	scoreGlued  = -5.0  // for a second byte that is a letter of ASCII, beside another: it may be a word
	scorePriv   = -20.0 // left to users by the standard
)

// The most frequent characters of running text, and its punctuation.
const (
	commonHans = "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多经" +
		"么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业" +
		"外将两高间由问很最重并物手应战向头文体政美相见被利什二等产或新己制身果加西斯月话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员解水名真论处走义各入几口认条平系气题活尔更别打女变四神总何电数安少报才结反受目太量再感建务做接必场件计管期市直德资命山金指克许统区保至队形社便空决治展马科司五基眼书非则听白却界达光放强即像难且权思王象完设式色路记南品住告类求据程北边死张该交规万取拉格望觉术领共确传师观清今切院让识候带导争运，。、；：？！“”《》（）"
	commonHant = "的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年過發後作裡用道行所然家種事成方多經" +
		"麼去法學如都同現當沒動面起看定天分還進好小部其些主樣理心她本前開但因只從想實日軍者意無力它與長把機十民第公此已工使情明性知全三又關點正業" +
		"外將兩高間由問很最重並物手應戰向頭文體政美相見被利什二等產或新己制身果加西月話合回特代內信表化老給世位次度門任常先海通教兒原東聲提立及比員解水名真論處走義各入幾口認條平系氣題活更別打女變四神總何電數安少報才結反受目太量再感建務做接必場件計管期市直資命山金指許統區保至隊形社便空決治展馬科司五基眼書非則聽白卻界達光放強即像難且權思王象完設式色路記南品住告類求據程北邊死張該交規萬取拉望覺術領共確傳師觀清今切院讓識候帶導爭運吧啊嗎呢，。、；：？！「」『』《》（）"
	commonJapan = "日一国人年大十二本中長出三時行見月後前生五間上東四今金九入学高円子外八六下来気小七山話女北午百書先名川千水半男西電校語土木聞食車何南万毎白天母火右読友左休父雨" +
		"会同事自社発者地業方新場員立開手力問代明動京目通言理体田主題意不作用度強公持野以思家世多正安院心界教文元重近考画海売知道集別物使品計死特私始朝運終台広住無真有口少町料工建空急止送切転研足究楽起着店病質待試族銀早映親験英医仕去味写字答夜音注帰古歌買悪図週室歩風紙黒花春赤青館屋色走秋夏習駅洋旅服夕借曜飲肉貸堂鳥飯勉冬昼茶弟牛魚兄犬妹姉漢、。「」ー・"
	commonKorea = "이다는의에을가고하지로한기사리나은도대자그어시를서인해들라스아정있수과만일니했보전여부것장제면원상주공게구경안소우성국적비지무문으와미신관화조연개마동방요세산회물생당모유분선내진학교중트오용때바위금년같양실거습여없될할였저드음점야터까"
)

// double is an encoding whose characters beyond ASCII have mostly two bytes.
type double struct {
	name   string
	enc    encoding.Encoding
	common map[[2]byte]bool
	// rank returns the size and the score of the character that s, which is not empty, begins with. The size is 0 for none.
	rank func(s []byte) (size int, score float64)
}

func newDoubles() []*double {
	ds := []*double{
		{"gb18030", simplifiedchinese.GB18030, codes(simplifiedchinese.GBK, commonHans), rankGBK},
		{"big5", traditionalchinese.Big5, codes(traditionalchinese.Big5, commonHant), rankBig5},
		{"shift_jis", japanese.ShiftJIS, codes(japanese.ShiftJIS, commonJapan), rankSJIS},
		{"euc-jp", japanese.EUCJP, codes(japanese.EUCJP, commonJapan), rankEUCJP},
		{"euc-kr", korean.EUCKR, codes(korean.EUCKR, commonKorea), rankEUCKR},
	}
	return ds
}

func codes(enc encoding.Encoding, chars string) map[[2]byte]bool {
	m := map[[2]byte]bool{}
	e := enc.NewEncoder()
	for _, r := range chars {
		if b, err := e.String(string(r)); err == nil && len(b) == 2 {
			m[[2]byte{b[0], b[1]}] = true
		}
	}
	return m
}

func isASCIILetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

func (d *double) score(s []byte) float64 {
	sum := 0.0
	letter := false // before s stands a letter of ASCII
	for len(s) > 0 {
		size, score := 1, scoreASCII
		if s[0] >= 0x80 {
			size, score = d.rank(s)
			switch {
			case size == 0:
				size, score = 1, scoreInvalid
			case size == 2 && d.common[[2]byte{s[0], s[1]}]:
				score = scoreCommon
			}
			if size == 2 && isASCIILetter(s[1]) && (letter || len(s) > 2 && isASCIILetter(s[2])) {
				score += scoreGlued
			}
		}
		letter = size == 1 && isASCIILetter(s[0])
		sum += score
		s = s[size:]
	}
	return sum
}

// trail reports whether the second byte lies in one of the ranges, given as pairs of first and last.
func trail(s []byte, ranges ...byte) bool {
	for i := 0; len(s) > 1 && i < len(ranges); i += 2 {
		if s[1] >= ranges[i] && s[1] <= ranges[i+1] {
			return true
		}
	}
	return false
}

func rankGBK(s []byte) (int, float64) {
	lead := s[0]
	high := trail(s, 0xa1, 0xfe)
	switch {
	case lead == 0x80 || lead == 0xff:
		return 0, 0
	case len(s) > 3 && trail(s, 0x30, 0x39) && s[2] >= 0x81 && s[2] <= 0xfe && s[3] >= 0x30 && s[3] <= 0x39:
		return 4, scoreRare
	case !trail(s, 0x40, 0x7e, 0x80, 0xfe):
		return 0, 0
	case !high && lead >= 0xa1 && lead <= 0xa7, high && lead >= 0xaa && lead <= 0xaf, high && lead >= 0xf8:
		return 2, scorePriv
	case !high:
		return 2, scoreRare
	case lead == 0xa1 || lead == 0xa3:
		return 2, scoreSign
	case lead < 0xb0:
		return 2, scoreOdd
	case lead < 0xd8:
		return 2, scoreLevel1
	}
	return 2, scoreLevel2
}

func rankBig5(s []byte) (int, float64) {
	lead := s[0]
	switch {
	case lead == 0x80 || lead == 0xff || !trail(s, 0x40, 0x7e, 0xa1, 0xfe):
		return 0, 0
	case lead < 0xa1 || lead > 0xf9:
		return 2, scoreRare
	case lead < 0xa4:
		return 2, scoreSign - 1
	case lead < 0xc7 && (lead != 0xc6 || s[1] < 0x7f):
		return 2, scoreLevel1
	case lead < 0xc9:
		return 2, scoreRare
	}
	return 2, scoreLevel2
}

func rankSJIS(s []byte) (int, float64) {
	lead := s[0]
	switch {
	case lead >= 0xa1 && lead <= 0xdf:
		return 1, scoreOdd // a narrow kana
	case lead == 0x80 || lead == 0xa0 || lead > 0xfc || !trail(s, 0x40, 0x7e, 0x80, 0xfc):
		return 0, 0
	case lead == 0x82 && trail(s, 0x9f, 0xf1):
		return 2, scoreKana
	case lead == 0x83 && trail(s, 0x40, 0x96):
		return 2, scoreKana - 0.5
	case lead == 0x81 || lead == 0x82:
		return 2, scoreSign
	case lead < 0x88:
		return 2, scoreOdd
	case lead < 0x98:
		return 2, scoreLevel1
	case lead < 0xeb:
		return 2, scoreLevel2
	case lead >= 0xf0 && lead < 0xfa:
		return 2, scorePriv
	}
	return 2, scoreRare
}

func rankEUCJP(s []byte) (int, float64) {
	lead := s[0]
	switch {
	case lead == 0x8e && trail(s, 0xa1, 0xdf):
		return 2, scoreOdd
	case lead == 0x8f && trail(s, 0xa1, 0xfe) && len(s) > 2 && s[2] >= 0xa1:
		return 3, scoreRare
	case lead < 0xa1 || lead == 0xff || !trail(s, 0xa1, 0xfe):
		return 0, 0
	case lead == 0xa4:
		return 2, scoreKana
	case lead == 0xa5:
		return 2, scoreKana - 0.5
	case lead == 0xa1 || lead == 0xa3:
		return 2, scoreSign
	case lead < 0xb0:
		return 2, scoreOdd
	case lead < 0xd0:
		return 2, scoreLevel1
	case lead < 0xf5:
		return 2, scoreLevel2
	}
	return 2, scoreRare
}

func rankEUCKR(s []byte) (int, float64) {
	lead := s[0]
	high := trail(s, 0xa1, 0xfe)
	switch {
	case lead == 0x80 || lead == 0xff || !trail(s, 0x41, 0x5a, 0x61, 0x7a, 0x81, 0xfe):
		return 0, 0
	case !high && lead > 0xc6, lead == 0xc9 || lead == 0xfe:
		return 2, scorePriv
	case !high:
		return 2, scoreRare // a syllable that the first standard left out
	case lead == 0xa1 || lead == 0xa3:
		return 2, scoreSign
	case lead < 0xb0:
		return 2, scoreOdd
	case lead < 0xc9:
		return 2, scoreHangul
	}
	return 2, scoreLevel2
}
