package ingest

import (
	"bytes"
	"encoding/json"
	"path"
	"strings"

	"memgpt"
)

// Format is how a document is read.
type Format string

// Formats that are read.
const (
	FormatText     Format = "text"
	FormatMarkdown Format = "markdown"
	FormatJSONL    Format = "jsonl"
)

// formatOf tells the format by the name, and where that says nothing by the beginning of the decoded text: a name without
// an ending, as that of standard input, may hold lines of JSON.
func formatOf(name string, head []byte) Format {
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".markdown", ".mdown", ".mkd":
		return FormatMarkdown
	case ".jsonl", ".ndjson":
		return FormatJSONL
	case "":
		line, _, _ := bytes.Cut(bytes.TrimSpace(head), []byte("\n"))
		var object struct {
			Text *string `json:"text"`
		}
		if bytes.HasPrefix(line, []byte("{")) && json.Unmarshal(line, &object) == nil && object.Text != nil {
			return FormatJSONL
		}
	}
	return FormatText
}

// kind is a format that is known and not read.
type kind struct {
	what  string
	exts  string // endings of names, each with a space before and after
	magic []string
}

const (
	aZip   = "a ZIP archive or an Office document"
	aBin   = "a binary file"
	anHTML = "an HTML page"
)

// kinds are told by their first bytes, and where those say nothing by their names.
var kinds = []kind{
	{"a PDF", " .pdf ", []string{"%PDF-"}},
	{"a Word document", " .docx .docm .dotx .doc .dot ", nil},
	{"a spreadsheet", " .xlsx .xlsm .xls .ods ", nil},
	{"a presentation", " .pptx .pptm .ppt .odp ", nil},
	{"an OpenDocument text", " .odt .ott ", nil},
	{"an EPUB book", " .epub ", nil},
	{"an RTF document", " .rtf ", []string{`{\rtf`}},
	{"an e-mail message", " .eml .msg .mbox ", nil},
	{aZip, " .zip .jar ", []string{"PK\x03\x04", "PK\x05\x06"}},
	{"an old Office document", "", []string{"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"}},
	{"a compressed file", " .gz .tgz .bz2 .xz .zst .7z .rar ", []string{"\x1f\x8b", "BZh", "\xfd7zXZ\x00", "\x28\xb5\x2f\xfd", "7z\xbc\xaf\x27\x1c", "Rar!\x1a"}},
	{"an image", " .png .jpg .jpeg .gif .webp .bmp .tif .tiff .ico .heic ",
		[]string{"\x89PNG\r\n", "\xff\xd8\xff", "GIF87a", "GIF89a", "II*\x00", "MM\x00*"}},
	{"a sound or a film", " .mp3 .ogg .flac .wav .m4a .mp4 .mkv .webm .avi .mov ", []string{"ID3", "OggS", "fLaC", "RIFF", "\x1aE\xdf\xa3"}},
	{"a program", " .exe .dll .so .o .a .class .wasm ", []string{"\x7fELF", "\xca\xfe\xba\xbe", "\x00asm"}},
	{"a database", " .db .sqlite .sqlite3 ", []string{"SQLite format 3\x00"}},
}

var html = kind{anHTML, " .html .htm .xhtml .mht .mhtml ", []string{"<!doctype html", "<html"}}

// Check says whether a document may be read, by its name and its first bytes (64 KiB are enough). It fails with CodeInvalid
// and a text for a person where the document is of another format, or no text.
func Check(name string, head []byte) error { return check(name, head, false) }

// check takes the caller's word for it, with sure, that something is text; only what could not be is refused then.
func check(name string, head []byte, sure bool) error {
	what := kindOf(name, head, sure)
	if what == "" {
		return nil
	}
	return memgpt.Errorf(memgpt.CodeInvalid, "%s is %s; this version reads plain text, Markdown and JSONL", name, what)
}

func kindOf(name string, head []byte, sure bool) string {
	ext := " " + strings.ToLower(path.Ext(name)) + " "
	byName := func(k kind) bool { return !sure && len(ext) > 2 && strings.Contains(k.exts, ext) }
	byMagic := ""
	for _, k := range kinds {
		if byName(k) {
			return k.what
		}
		for _, m := range k.magic {
			if byMagic == "" && bytes.HasPrefix(head, []byte(m)) && hasNonText(head[len(m):], k.what) {
				byMagic = k.what
			}
		}
	}
	if byMagic != "" {
		return byMagic
	}
	if !sure && (byName(html) || startsFold(head, html.magic)) {
		return anHTML
	}
	if bomOf(head) == nil && wide(head) == nil && isBinary(head) {
		return aBin
	}
	return ""
}

// hasNonText keeps a text that happens to begin with the letters of a magic number, as "ID3 is a format", from being taken
// for the format. PDF and RTF may be all text.
func hasNonText(rest []byte, what string) bool {
	return what == "a PDF" || what == "an RTF document" || isBinary(rest) || len(rest) < 4 ||
		bytes.ContainsFunc(rest[:min(len(rest), 64)], func(r rune) bool { return r < ' ' && !strings.ContainsRune("\t\n\r\f", r) })
}

func startsFold(head []byte, prefixes []string) bool {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n")
	for _, p := range prefixes {
		if len(head) >= len(p) && strings.EqualFold(string(head[:len(p)]), p) {
			return true
		}
	}
	return false
}

// isBinary reports whether more than one byte in fifty is a control character that no text has. A stray NUL makes no
// binary.
func isBinary(head []byte) bool {
	bad := 0
	for _, b := range head {
		if b < ' ' && !strings.ContainsRune("\t\n\v\f\r\b\x0e\x0f\x1a\x1b", rune(b)) {
			bad++
		}
	}
	return bad > 2 && bad*50 > len(head)
}
