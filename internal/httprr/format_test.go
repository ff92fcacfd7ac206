package httprr

import (
	"bytes"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// The format is on disk in other packages, so it is fixed here as text.
const golden = `httprr trace 1
> POST http://127.0.0.1:8080/v1/chat/completions 17
Content-Type: application/json

{"messages":[{}]}
< 200 9 cut
Content-Type: text/event-stream
Vary: A
Vary: B

data: x


> GET http://h/ 0


< 503 0


`

func goldenExchanges() []Exchange {
	return []Exchange{
		{
			Request{"POST", "http://127.0.0.1:8080/v1/chat/completions", http.Header{"Content-Type": {"application/json"}}, []byte(`{"messages":[{}]}`)},
			Response{200, http.Header{"Vary": {"A", "B"}, "Content-Type": {"text/event-stream"}}, []byte("data: x\n\n"), true},
		},
		{Request{"GET", "http://h/", http.Header{}, []byte{}}, Response{503, http.Header{}, []byte{}, false}},
	}
}

func TestFormat(t *testing.T) {
	if got := string(Format(goldenExchanges()...)); got != golden {
		t.Errorf("got\n%s", got)
	}
	got, err := Parse([]byte(golden))
	if err != nil || !reflect.DeepEqual(got, goldenExchanges()) {
		t.Errorf("got %+v, %v", got, err)
	}
	const forged = "x\r\nSet: y"
	if text := string(Format(Exchange{Response: Response{Header: http.Header{"A": {forged}}}})); strings.Contains(text, "\nSet") {
		t.Errorf("a header's value made a line of its own:\n%s", text)
	}
}

func TestParseErrors(t *testing.T) {
	for _, tt := range []struct{ name, old, new, want string }{
		{"magic", "trace 1", "trace 2", "line 1"},
		{"length too short", "completions 17", "completions 16", "line 4: no newline after"},
		{"length too long", "completions 17", "completions 18", "no newline after a body of 18"},
		{"length beyond the end", "completions 17", "completions 17000", "no newline"},
		{"no length", "completions 17", "completions -1", "line 2: \"-1\" is no length"},
		{"status", "< 503", "< 5o3", "is no status"},
		{"status out of range", "< 503", "< 99", "is no status"},
		{"mark", "< 200", "> 200", "line 6: want a line that begins with \"<\""},
		{"cut", "9 cut", "9 cat", "want a line"},
		{"header", "Vary: A", "Vary", "line 8: \"Vary\" is no header"},
		{"header without a name", "Vary: A", ": A", "\": A\" is no header"},
		{"end", "< 503 0\n\n\n", "", "ends in the middle"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse([]byte(strings.Replace(golden, tt.old, tt.new, 1)))
			wantError(t, err, tt.want)
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(golden))
	f.Add([]byte(magic + "> GET u 0\n\n\n< 200 1\nA: \n\n\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Parse(data)
		if err != nil {
			return
		}
		text := Format(got...)
		again, err := Parse(text)
		if err != nil || !bytes.Equal(Format(again...), text) {
			t.Errorf("%q gave %q, which gave %q, %v", data, text, Format(again...), err)
		}
	})
}
