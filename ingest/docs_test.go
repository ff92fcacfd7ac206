package ingest

import (
	"bytes"
	"encoding/base64"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/text/transform"

	"memgpt"
)

// documents finds the folder of awkward documents beside the module, and skips the test where it is not there.
func documents(t testing.TB) string {
	t.Helper()
	dir := filepath.Join("..", "..", "shared", "data", "docs")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the awkward documents (../shared/data/docs) are not here")
	}
	return dir
}

// TestDocumentEncodings holds that the encoding of each document is told, by comparing the decoded text with that of the
// encoding that its makers state.
func TestDocumentEncodings(t *testing.T) {
	dir := documents(t)
	for file, as := range map[string]string{
		"enc_Big5_upsaid.com.xml":                                                    "big5",
		"enc_EUC-KR_chisato.info.xml":                                                "euc-kr",
		"enc_GB2312_softsea.net.xml":                                                 "gb18030",
		"enc_IBM866_forum.template-toolkit.ru.6.xml":                                 "ibm866",
		"enc_SHIFT_JIS_amefoot.net.xml":                                              "shift_jis",
		"enc_TIS-620_pharmacy.kku.ac.th.healthinfo-ne.xml":                           "windows-874",
		"enc_UTF-16BE_plane1-utf-16be.html":                                          "utf-16be",
		"enc_iso-2022-jp__ude_1.txt":                                                 "iso-2022-jp",
		"enc_iso-8859-2-hungarian_auto-apro.hu.xml":                                  "iso-8859-2",
		"enc_iso-8859-6-arabic__chromium_ISO-8859-6_with_no_encoding_specified.html": "iso-8859-6",
		"enc_iso-8859-7-greek_disabled.gr.xml":                                       "iso-8859-7",
		"enc_windows-1250-polish__ude_1.txt":                                         "windows-1250",
		"enc_windows-1251-russian_aviaport.ru.xml":                                   "windows-1251",
		"enc_windows-1254-turkish__ude_1.txt":                                        "windows-1254",
		"tika__russian.cp866.txt":                                                    "ibm866",
		"unstructured__fake-text-utf-16.txt":                                         "utf-16le",
		"unstructured__fake-text-utf-32.txt":                                         "utf-32le",
		"unstructured__book-war-and-peace-1225p.txt":                                 "utf-8",
		"unstructured__norwich-city.txt":                                             "utf-8",
		"unstructured__eng_spa_mult.txt":                                             "utf-8",
	} {
		t.Run(file, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join(dir, "txt", file))
			if err != nil {
				t.Fatal(err)
			}
			got, rep := decodeAll(t, raw, Config{Format: FormatText})
			if want := decodeAs(t, raw, as); got != want {
				t.Errorf("read as %s, not %s; at %s", rep.Encoding, as, difference(got, want))
			}
			named, _ := decodeAll(t, raw, Config{Format: FormatText, Encoding: as})
			if want := decodeAs(t, raw, as); named != want {
				t.Errorf("named %s, it is read wrongly; at %s", as, difference(named, want))
			}
		})
	}
}

// decodeAll returns the text that a document is cut from.
func decodeAll(t testing.TB, raw []byte, cfg Config) (string, Report) {
	t.Helper()
	c := must(t, cfg)
	var text strings.Builder
	d := c.decoder(bytes.NewReader(raw))
	if err := d.begin("x", true); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(&text, d); err != nil {
		t.Fatal(err)
	}
	return text.String(), Report{Encoding: d.set.name, Invalid: d.clean.invalid}
}

// decodeAs decodes by a named encoding with its library alone.
func decodeAs(t testing.TB, raw []byte, name string) string {
	t.Helper()
	set, err := charsetByName(name)
	if err != nil {
		t.Fatal(err)
	}
	raw = bytes.TrimPrefix(raw, []byte(set.bom))
	if set.enc != nil {
		if raw, _, err = transform.Bytes(set.enc.NewDecoder(), raw); err != nil {
			t.Fatal(err)
		}
	}
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(raw))
	return memgpt.CleanText(text)
}

func difference(a, b string) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return "«" + memgpt.CutText(a[runeStart(a, i):], 60) + "», want «" + memgpt.CutText(b[runeStart(b, i):], 60) + "»"
}

func TestHebrewDocument(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(documents(t), "txt", "unstructured__hebrew-text-base64-iso88598i.txt"))
	if err != nil {
		t.Fatal(err)
	}
	raw, err = base64.StdEncoding.DecodeString(strings.TrimSpace(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	if got, rep := decodeAll(t, raw, Config{}); got != decodeAs(t, raw, "iso-8859-8") {
		t.Errorf("read as %s: %s", rep.Encoding, got)
	}
}
