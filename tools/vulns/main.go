// Command vulns judges what govulncheck found.
//
//	govulncheck -format json ./... | vulns
//
// It fails when we call something vulnerable in a module, since go.mod says which version of it we use. A
// vulnerability of the standard library is printed with the Go release that mends it, and is no failure: the
// compiler belongs to whoever builds, and the same commit must not fail or pass by the machine it is built on.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "vulns:", err)
		os.Exit(1)
	}
}

// A message is one of the JSON values that govulncheck prints; the fields that are not of its kind are nil.
type message struct {
	Config  *struct{ DB string }
	OSV     *struct{ ID, Summary string }
	Finding *finding
}

// A finding says that a vulnerability is required, imported or called: the first frame of the trace names its
// module, and a function when we call it.
type finding struct {
	OSV   string
	Fixed string `json:"fixed_version"`
	Trace []struct{ Module, Version, Package, Function string }
}

// called reports whether our code reaches the vulnerable function.
func (f *finding) called() bool { return len(f.Trace) > 0 && f.Trace[0].Function != "" }

func run(in io.Reader, out io.Writer) error {
	summaries := map[string]string{}
	found := map[string]*finding{}
	scanned := false
	for decoder := json.NewDecoder(in); ; {
		var m message
		err := decoder.Decode(&m)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("output of govulncheck: %w", err)
		}
		switch {
		case m.Config != nil:
			scanned = true
		case m.OSV != nil:
			summaries[m.OSV.ID] = m.OSV.Summary
		case m.Finding != nil && m.Finding.called():
			found[m.Finding.OSV] = m.Finding
		}
	}
	if !scanned {
		return errors.New("govulncheck did not run")
	}
	return judge(out, found, summaries)
}

// judge prints each finding once and returns an error when one of them is ours to mend.
func judge(out io.Writer, found map[string]*finding, summaries map[string]string) error {
	ours := 0
	for _, id := range slices.Sorted(maps.Keys(found)) {
		f := found[id]
		verdict := "build with Go"
		if f.Trace[0].Module != "stdlib" {
			verdict = "VULNERABLE, needs"
			ours++
		}
		fixed := f.Fixed
		if fixed == "" {
			fixed = "a version that is not there yet"
		}
		fmt.Fprintf(out, "%s: %s in %s %s: %s %s\n", id, summaries[id], f.Trace[0].Package, f.Trace[0].Version, verdict, fixed)
	}
	if ours > 0 {
		return fmt.Errorf("%d called in our modules", ours)
	}
	fmt.Fprintf(out, "vulns: none called in our modules, %d in this Go's standard library\n", len(found))
	return nil
}
