//go:build ignore

// Command embed is the Go side of compare.py: it reads requests, a JSON object with texts and query a line, and answers
// each with a line of vectors and the seconds
// of CPU they took.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"log"
	"os"
	"syscall"
	"time"

	"memgpt/embed/e5"
)

func main() {
	if err := serve(); err != nil {
		log.Fatal(err)
	}
}

func serve() error {
	enc, err := e5.New(e5.Config{})
	if err != nil {
		return err
	}
	in, out := json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)
	for in.More() {
		var request struct {
			Texts []string
			Query bool
		}
		if err := in.Decode(&request); err != nil {
			return err
		}
		began, err := cpuTime()
		if err != nil {
			return err
		}
		vectors, err := enc.Embed(context.Background(), request.Texts, request.Query)
		if err != nil {
			return err
		}
		ended, err := cpuTime()
		if err != nil {
			return err
		}
		if err := out.Encode(map[string]any{"vectors": vectors, "seconds": (ended - began).Seconds()}); err != nil {
			return err
		}
	}
	return nil
}

// cpuTime is what this process has computed so far.
func cpuTime() (time.Duration, error) {
	var u syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), err
}
