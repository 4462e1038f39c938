package engine

import (
	"bytes"
	"crypto/rand"
	"io"
	"testing"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/record"
)

// benchStore has 128 MiB of waiting messages of 1 KiB, sent 500 a call.
func benchStore(b *testing.B) *Engine {
	b.Helper()
	e, tp := benchEngine(b, nil)
	body := make([]byte, 1024)
	for range 128 << 20 / (1024 * 500) {
		sends := make([]Send, 500)
		for i := range sends {
			sends[i] = Send{Message: record.Message{Body: body}, Topic: tp.Number, Turn: tp, Delay: Delay{DelayAfter, 7_000_000 + int64(i*7919)%3_000_000}}
		}
		if err := e.Send(b.Context(), sends); err != nil {
			b.Fatal(err)
		}
	}
	if err := e.Cut(); err != nil {
		b.Fatal(err)
	}
	return e
}

// BenchmarkBackup copies a store to nowhere: what reading and checking cost.
func BenchmarkBackup(b *testing.B) {
	e := benchStore(b)
	b.ReportAllocs()
	for b.Loop() {
		info, err := e.Backup(b.Context(), io.Discard, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(info.Bytes)
	}
}

// BenchmarkRestore makes a store of a stream in memory, synced.
func BenchmarkRestore(b *testing.B) {
	var stream bytes.Buffer
	info, err := benchStore(b).Backup(b.Context(), &stream, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Bytes)
	b.ReportAllocs()
	for b.Loop() {
		o := Options{FS: fs.Real(), Dir: b.TempDir(), Clock: clock.Real(), Rand: rand.Reader}
		if _, err := RestoreBackup(b.Context(), o, bytes.NewReader(stream.Bytes()), nil); err != nil {
			b.Fatal(err)
		}
	}
}
