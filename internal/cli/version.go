package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// A build is what is known about this binary.
type build struct {
	Version  string `json:"version"` // devel unless it was built as a released module
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built from files that differ from the commit
}

// buildVersion reads what the linker wrote into the binary.
func buildVersion() build {
	b := build{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	// A clone without a release tag gets v0.0.0-DATE-COMMIT, which says less than
	// the commit below.
	if v := info.Main.Version; v != "" && v != "(devel)" && !strings.HasPrefix(v, "v0.0.0-") {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func (b build) String() string {
	s := fmt.Sprintf("duemq %s (%s, %s", b.Version, b.Go, b.Platform)
	if b.Commit != "" {
		s += ", commit " + b.Commit[:min(12, len(b.Commit))]
	}
	if b.Modified {
		s += " with changes"
	}
	return s + ")"
}

func (a *app) versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "version", Short: "Say what this binary is", Args: a.args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			b := buildVersion()
			return a.one(b, b.String())
		},
	}
	a.outputFlag(cmd)
	return cmd
}
