package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestClassify(t *testing.T) {
	const redistribution = "Redistribution and use in source\n and binary forms, with or without modification, are permitted. "
	tests := []struct{ text, want string }{
		{"                Apache License\n            Version 2.0, January 2004", "Apache-2.0"},
		{redistribution + "may be used to endorse or\npromote products", "BSD-3-Clause"},
		{redistribution, "BSD-2-Clause"},
		{"Permission is hereby granted, free of charge, to any person. The above notice shall be included in all\ncopies", "MIT"},
		{"GNU GENERAL PUBLIC LICENSE Version 3", ""},
		{"Mozilla Public License Version 2.0", ""},
		{"All rights reserved.", ""},
		{"", ""},
	}
	for _, tt := range tests {
		if got := classify([]byte(tt.text)); got != tt.want {
			t.Errorf("classify(%.40q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestLicenceOf(t *testing.T) {
	tests := []struct {
		name    string
		files   map[string]string
		want    string
		wantErr string
	}{
		{name: "none", wantErr: "no licence file"},
		{name: "one", files: map[string]string{"License.md": "Apache License Version 2.0"}, want: "Apache-2.0"},
		{
			name:  "two",
			files: map[string]string{"LICENSE": "Apache License Version 2.0", "COPYING": "Redistribution and use in source and binary forms"},
			want:  "Apache-2.0+BSD-2-Clause",
		},
		{
			name:    "one of two refused",
			files:   map[string]string{"LICENSE": "Apache License Version 2.0", "LICENSE-extra": "ask us first"},
			wantErr: "LICENSE-extra: not a licence",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range tt.files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := licenceOf(dir)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Fatalf("licenceOf = %q, %v; want an error with %q", got, err, tt.wantErr)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Fatalf("licenceOf = %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}
