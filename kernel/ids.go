package kernel

import (
	"encoding/hex"
	"io"
	"time"
)

// NewIDs returns a source of ids: the kind, a dash and a UUID of version 7 (RFC 9562), so that ids sort by time. It
// draws from rand and now only, so that a history replays from a seed. It is safe for concurrent
// use if rand and now are, as crypto/rand.Reader and time.Now.
func NewIDs(rand io.Reader, now func() time.Time) func(kind string) string {
	return func(kind string) string {
		var u [16]byte
		if _, err := io.ReadFull(rand, u[:]); err != nil {
			panic("kernel: the source of randomness failed: " + err.Error())
		}
		ms := now().UnixMilli()
		for i := range 6 {
			u[i] = byte(ms >> (40 - 8*i))
		}
		u[6] = u[6]&0x0f | 0x70
		u[8] = u[8]&0x3f | 0x80
		h := hex.EncodeToString(u[:])
		return kind + "-" + h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
	}
}
