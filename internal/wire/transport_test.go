package wire

import (
	"fmt"
	"testing"
)

func TestBodyIsLetGo(t *testing.T) {
	o := NewBody([]byte("abc"))
	p := make([]byte, 2)
	if n, err := o.Read(p); n != 2 || err != nil || o.rest == nil {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := o.Read(p); n != 1 || fmt.Sprint(err) != "EOF" || o.rest != nil {
		t.Errorf("%d, %v, rest %q", n, err, o.rest)
	}
	o = NewBody([]byte("abc"))
	if _ = o.Close(); o.rest != nil {
		t.Error("closing kept the bytes")
	}
}
