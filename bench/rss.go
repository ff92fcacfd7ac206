package bench

import (
	"bytes"
	"fmt"
	"os"
	"runtime/metrics"
	"strconv"
)

const mib = 1 << 20

// resident returns the memory of this process in MiB: what is resident where Linux tells, else what the runtime has from
// the system and did not give back.
func resident() (float64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if os.IsNotExist(err) {
		return runtimeMemory(), nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the resident memory: %w", err)
	}
	return parseResident(status)
}

// parseResident reads VmRSS (proc_pid_status(5)): "VmRSS:     1234 kB".
func parseResident(status []byte) (float64, error) {
	for line := range bytes.Lines(status) {
		f := bytes.Fields(line)
		if len(f) == 3 && string(f[0]) == "VmRSS:" {
			kb, err := strconv.ParseFloat(string(f[1]), 64)
			return kb * 1024 / mib, err
		}
	}
	return 0, fmt.Errorf("read the resident memory: /proc/self/status has no VmRSS")
}

func runtimeMemory() float64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return float64(s[0].Value.Uint64()-s[1].Value.Uint64()) / mib
}
