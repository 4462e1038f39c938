package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// clone makes a data folder that can be opened in the place of another one,
// without its index if that is not wanted. Files that an engine never writes
// again are linked where the disk can do it: tables of the index, and all
// segments of the log but the last two, since an engine that finds the last one
// empty goes on in the one before.
func clone(from, to string, withIndex bool) error {
	segments, err := filepath.Glob(filepath.Join(from, logName, "*.seg"))
	if err != nil {
		return err
	}
	slices.Sort(segments)
	sealed := segments[:max(0, len(segments)-2)]
	return filepath.WalkDir(from, func(source string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, source)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		switch {
		case name == indexName && !withIndex, strings.HasPrefix(name, tempPrefix):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(target, 0o700)
		case !d.Type().IsRegular() || d.Name() == lockName:
			return nil
		}
		final := slices.Contains(sealed, source) || filepath.Ext(source) == ".sst"
		if final && os.Link(source, target) == nil { //nolint:gosec // nobody else has the folder: it is locked
			return nil
		}
		return copyFile(source, target)
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
