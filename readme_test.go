package duemq_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq"
)

// readme is the program in the READMEs, so that it compiles.
func readme(ctx context.Context) error {
	q, err := duemq.Open(ctx, "data")
	if err != nil {
		return err
	}
	defer q.Close()

	r, err := q.Send(ctx, "orders", []byte("close order 1981"), duemq.After(30*time.Minute))
	if err != nil {
		return err
	}
	fmt.Println("due at", r.DueAt)

	for m, err := range q.Receive(ctx, "orders", duemq.Group("billing")) {
		if err != nil {
			return err
		}
		fmt.Println(string(m.Body))
		if err := m.Ack(ctx); err != nil {
			return err
		}
	}
	return nil
}

// TestReadmeIsThisProgram, which also runs until its context ends.
func TestReadmeIsThisProgram(t *testing.T) {
	source, err := os.ReadFile("readme_test.go")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```go\n(.*?)```")
	for _, name := range []string{"README.md", "README.zh-CN.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		blocks := block.FindAllStringSubmatch(string(text), -1)
		if len(blocks) == 0 {
			t.Errorf("%s shows no program", name)
		}
		for _, b := range blocks {
			indented := strings.ReplaceAll("\n"+strings.TrimSuffix(b[1], "\n"), "\n", "\n\t")
			if !strings.Contains(string(source), strings.ReplaceAll(indented, "\n\t\n", "\n\n")) {
				t.Errorf("%s shows a program that nobody has compiled; put it into readme_test.go:\n%s", name, b[1])
			}
		}
	}
	t.Chdir(t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := readme(ctx); err == nil || ctx.Err() == nil {
		t.Errorf("the program ended with %v before its context did", err)
	}
}
