// Command licenses checks that every module linked into the product has a licence that we may ship under
// Apache-2.0, and prints one line per module.
//
//	licenses -dir REPOSITORY
//
// Modules that only tests use are not looked at: nobody ships them. The licence is recognised by its wording; a
// file that matches none of the known wordings is a failure, to be read by a person and added to the table.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// platforms differ in what they link, so each is asked.
var platforms = []string{"linux", "darwin", "windows"}

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("licenses", flag.ContinueOnError)
	dir := flags.String("dir", ".", "the repository")
	if err := flags.Parse(args); err != nil {
		return err
	}
	mods, err := linked(ctx, *dir)
	if err != nil {
		return err
	}
	var bad []error
	for _, m := range mods {
		name, err := licenceOf(m.dir)
		if err != nil {
			bad = append(bad, fmt.Errorf("%s %s: %w", m.path, m.version, err))
			continue
		}
		fmt.Fprintf(out, "%-12s  %s %s\n", name, m.path, m.version)
	}
	return errors.Join(bad...)
}

// A module is one dependency and where its files are.
type module struct{ path, version, dir string }

// linked returns the modules from which a non-test package of the repository imports something, on any platform,
// sorted by path.
func linked(ctx context.Context, dir string) ([]module, error) {
	seen := map[module]bool{}
	for _, goos := range platforms {
		const format = "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}"
		cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-f", format, "./...")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
		cmd.Stderr = os.Stderr
		list, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list for %s: %w", goos, err)
		}
		for line := range strings.Lines(string(list)) {
			if f := strings.Split(strings.TrimSpace(line), "\t"); len(f) == 3 {
				seen[module{path: f[0], version: f[1], dir: f[2]}] = true
			}
		}
	}
	var mods []module
	for m := range seen {
		mods = append(mods, m)
	}
	slices.SortFunc(mods, func(a, b module) int { return strings.Compare(a.path, b.path) })
	return mods, nil
}

// licenceFile is how people name the file; source files with such names are not it.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying)(\.(md|txt)|-\w+)?$`)

// licenceOf names the licence of the module whose files are in dir.
func licenceOf(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var files []string
	for _, e := range entries {
		if licenceFile.MatchString(e.Name()) && !e.IsDir() {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	if len(files) == 0 {
		return "", errors.New("no licence file")
	}
	var names []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		name := classify(text)
		if name == "" {
			return "", fmt.Errorf("%s: not a licence we know and may ship", filepath.Base(file))
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), "+"), nil
}

// wordings are the licences that may be linked into an Apache-2.0 program without further duties than to pass
// them on, each with sentences that all occur in it and, of the ones above it, in no other.
var wordings = []struct {
	name    string
	phrases []string
}{
	{"Apache-2.0", []string{"Apache License", "Version 2.0"}},
	{"BSD-3-Clause", []string{"Redistribution and use in source and binary forms", "endorse or promote"}},
	{"BSD-2-Clause", []string{"Redistribution and use in source and binary forms"}},
	{"MIT", []string{"Permission is hereby granted, free of charge", "shall be included in all copies"}},
	{"ISC", []string{"Permission to use, copy, modify, and/or distribute this software for any purpose"}},
}

// classify returns the name of the licence that text is, or "" when it is none that may be shipped.
func classify(text []byte) string {
	flat := bytes.Join(bytes.Fields(text), []byte(" "))
	for _, w := range wordings {
		missing := func(phrase string) bool { return !bytes.Contains(flat, []byte(phrase)) }
		if !slices.ContainsFunc(w.phrases, missing) {
			return w.name
		}
	}
	return ""
}
