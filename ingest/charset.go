package ingest

import (
	"bytes"
	"slices"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"

	"memgpt"
)

// charset is an encoding with its name. A nil enc is UTF-8, which needs no decoding.
type charset struct {
	name string
	enc  encoding.Encoding
	bom  string // bytes of the mark that may stand before the text
}

func utf8Set() *charset { return &charset{name: "utf-8", bom: "\xef\xbb\xbf"} }

// wideSets are the encodings of Unicode in units of two and four bytes. The longer marks come first, since that of UTF-16
// begins one of UTF-32. The mark is taken off by the decoder of this package.
func wideSets() []*charset {
	return []*charset{
		{"utf-32le", utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), "\xff\xfe\x00\x00"},
		{"utf-32be", utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM), "\x00\x00\xfe\xff"},
		{"utf-16le", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), "\xff\xfe"},
		{"utf-16be", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), "\xfe\xff"},
	}
}

// bomOf returns the encoding whose mark the document begins with, nil where there is none.
func bomOf(head []byte) *charset {
	for _, s := range append(wideSets(), utf8Set()) {
		if bytes.HasPrefix(head, []byte(s.bom)) {
			return s
		}
	}
	return nil
}

// charsetByName finds an encoding by the names that the web (WHATWG Encoding) and IANA know, and a few more.
func charsetByName(name string) (*charset, error) {
	n := strings.ToLower(strings.TrimSpace(name))
	switch n {
	case "utf8", "utf-8", "ascii", "us-ascii":
		return utf8Set(), nil
	case "utf-16", "utf16", "utf-32", "utf32": // a mark that says otherwise is believed
		n = strings.Replace(n, "utf-", "utf", 1) + "le"
	case "hz", "hz-gb-2312":
		return &charset{name: "hz-gb-2312", enc: simplifiedchinese.HZGB2312}, nil
	case "mac-roman", "macroman":
		n = "macintosh"
	}
	dashed := strings.Replace(n, "utf16", "utf-16", 1)
	dashed = strings.Replace(dashed, "utf32", "utf-32", 1)
	all := wideSets()
	if i := slices.IndexFunc(all, func(s *charset) bool { return s.name == dashed }); i >= 0 {
		return all[i], nil
	}
	enc, err := htmlindex.Get(n)
	if err != nil || enc == encoding.Replacement {
		enc, err = ianaindex.IANA.Encoding(n)
	}
	if err != nil || enc == nil {
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "cut documents: encoding %q is not known; use a name as utf-8, gb18030, big5, "+
			"shift_jis, euc-jp, euc-kr, windows-1252, koi8-r, or none to have it detected", name)
	}
	return &charset{name: n, enc: enc}, nil
}
