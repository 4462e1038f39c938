package main

import (
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	const (
		config   = `{"config": {"db": "file:///x"}}` + "\n"
		osv      = `{"osv": {"id": "GO-1", "summary": "Rust in the wheel"}}` + "\n"
		progress = `{"progress": {"message": "Scanning"}}` + "\n"
		imported = `{"finding": {"osv": "GO-1", "trace": [{"module": "example.org/m", "version": "v1.0.0", "package": "example.org/m/p"}]}}`
		called   = `{"finding": {"osv": "GO-1", "fixed_version": "v1.0.1", "trace": [{"module": "example.org/m", "version": "v1.0.0", ` +
			`"package": "example.org/m/p", "function": "F"}, {"module": "github.com/duemq/duemq", "function": "main"}]}}`
	)
	library := strings.ReplaceAll(called, "example.org/m", "stdlib")
	tests := []struct {
		name, in, want, wantErr string
	}{
		{name: "nothing", in: config + progress, want: "none called in our modules, 0 in this Go's"},
		{name: "imported only", in: config + osv + imported, want: "none called in our modules, 0 in this Go's"},
		{name: "standard library", in: config + osv + library + library, want: "Rust in the wheel in stdlib/p v1.0.0: build with Go v1.0.1\nvulns: none called in our modules, 1 in"},
		{name: "module", in: config + osv + imported + called, want: "GO-1: Rust in the wheel in example.org/m/p v1.0.0: VULNERABLE, needs v1.0.1", wantErr: "1 called"},
		{name: "no fix", in: config + osv + strings.Replace(called, `"fixed_version": "v1.0.1", `, "", 1), want: "needs a version that is not there yet", wantErr: "1 called"},
		{name: "govulncheck failed at once", in: "", wantErr: "did not run"},
		{name: "govulncheck failed half-way", in: config + called[:20], wantErr: "unexpected EOF"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			err := run(strings.NewReader(tt.in), &out)
			if tt.wantErr == "" && err != nil || tt.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tt.wantErr)) {
				t.Errorf("run = %v, want %q", err, tt.wantErr)
			}
			if !strings.Contains(out.String(), tt.want) {
				t.Errorf("printed %q, want %q", out.String(), tt.want)
			}
		})
	}
}
