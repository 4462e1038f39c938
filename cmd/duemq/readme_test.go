//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	codeBlock = regexp.MustCompile("(?s)```console\n(.*?)```")
	exitCode  = regexp.MustCompile(`# .*?(?:exits with|退出码) ?(\d+)`)
)

// TestReadme types what stands in the section "Sixty seconds" of the READMEs,
// but for building and starting, which is done here. It waits less long.
func TestReadme(t *testing.T) {
	for file, heading := range map[string]string{"README.md": "## Sixty seconds\n", "README.zh-CN.md": "## 六十秒"} {
		t.Run(file, func(t *testing.T) {
			content, err := os.ReadFile(filepath.Join("..", "..", file))
			if err != nil {
				t.Fatal(err)
			}
			_, section, ok := strings.Cut(string(content), heading)
			if !ok {
				t.Fatalf("no section %q", heading)
			}
			section, _, _ = strings.Cut(section, "\n## ")
			s := serve(t, t.TempDir())
			dir := t.TempDir()
			if err := os.Symlink(binary, filepath.Join(dir, "duemq")); err != nil {
				t.Fatal(err)
			}
			typed := script(section, s.url)
			if n := strings.Count(typed, "./duemq"); n < 6 {
				t.Fatalf("only %d commands found:\n%s", n, typed)
			}
			cmd := exec.CommandContext(t.Context(), "sh", "-c", typed)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "DUEMQ_SERVER="+s.url)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v after:\n%s\nof:\n%s", err, out, typed)
			}
			if !bytes.Contains(out, []byte(`"close order 1981"`)) {
				t.Errorf("the message was not received:\n%s", out)
			}
		})
	}
}

// script makes a shell script of the lines after a prompt. Each must succeed, or
// exit as its remark says.
func script(section, url string) string {
	var b strings.Builder
	for _, block := range codeBlock.FindAllStringSubmatch(section, -1) {
		for line := range strings.Lines(block[1]) {
			typed, ok := strings.CutPrefix(strings.TrimSpace(line), "$ ")
			if !ok || strings.Contains(typed, "go build") || strings.Contains(typed, "duemq serve") {
				continue
			}
			want := 0
			if m := exitCode.FindStringSubmatch(typed); m != nil {
				want, _ = strconv.Atoi(m[1])
			}
			typed = strings.ReplaceAll(typed, "10s", "1s")
			typed = strings.ReplaceAll(typed, "http://127.0.0.1:9870", url)
			b.WriteString(typed + "\n[ $? -eq " + strconv.Itoa(want) + " ] || exit 1\n")
		}
	}
	return b.String()
}
