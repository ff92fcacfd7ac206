package eval

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// filled sets every field of a value to something that is not zero.
func filled(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			filled(v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		filled(v.Index(0))
		filled(v.Index(1))
	case reflect.String:
		v.SetString("a < b 天")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(.25)
	case reflect.Int:
		v.SetInt(7)
	case reflect.Uint64:
		v.SetUint(1<<63 + 1)
	default:
		panic("no value for " + v.Type().String())
	}
}

func TestRecordsComeBackFromTheirLines(t *testing.T) {
	var full Record
	filled(reflect.ValueOf(&full).Elem())
	full.Version = RecordVersion
	bare := Record{Version: RecordVersion, Evidence: []Piece{}}
	var b bytes.Buffer
	if err := WriteRecords(&b, []Record{full, bare}); err != nil {
		t.Fatal(err)
	}
	if strings.Count(b.String(), "\n") != 2 || strings.Contains(b.String(), `\u003c`) {
		t.Errorf("got %s", b.String())
	}
	got, err := ReadRecords(write(t, "r.jsonl", b.String()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Record{full, bare}, got); diff != "" {
		t.Error(diff)
	}
	for want, text := range map[string]string{"line 3: it is no record": b.String() + "{x", "has version 9": `{"v":9}`, "version 0": "{}"} {
		if _, err := ReadRecords(write(t, "r.jsonl", text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", want, err)
		}
	}
}
